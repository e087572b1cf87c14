//! What verdicts may depend on: the seed and the arrivals, nothing else.

use crate::Set;
use crate::common::{
    arrivals, bare_kinds, is_exact, is_seeded, large, never_forgets, observe_all, observe_batched, small, variants,
};
use everbloom::codec::{encode, encode_to, encoded_bytes};
use everbloom::kind::{join, split};
use everbloom::{Filter, Status};
use everbloom_cells::simd::InstructionSet;
use std::io::Read;

pub fn the_same_seed_gives_the_same_verdicts_and_bytes<S: Set>() {
    for spec in variants::<S>() {
        let (mut one, mut other) = (small::<S>(&spec, 7), small::<S>(&spec, 7));
        let stream = arrivals(4000, 2000, 1);
        assert_eq!(observe_all(&mut *one, &stream), observe_all(&mut *other, &stream), "{spec}");
        assert_eq!(encode(&*one), encode(&*other), "{spec}");
    }
}

pub fn another_seed_gives_other_verdicts<S: Set>() {
    for spec in variants::<S>().into_iter().filter(|spec| !is_exact::<S>(spec)) {
        let (mut one, mut other) = (small::<S>(&spec, 7), small::<S>(&spec, 8));
        let stream = arrivals(8000, 4000, 1);
        let is_same = observe_all(&mut *one, &stream) == observe_all(&mut *other, &stream);
        assert_eq!(is_same, !is_seeded::<S>(&spec), "{spec}");
    }
}

pub fn batches_give_the_verdicts_and_bytes_of_single_calls<S: Set>() {
    for spec in variants::<S>() {
        for (size, stream) in [("small", arrivals(5000, 2000, 2)), ("large", arrivals(40_000, 30_000, 3))] {
            let make = || if size == "small" { Some(small::<S>(&spec, 5)) } else { large::<S>(&spec, 5) };
            let (Some(mut single), Some(mut batched)) = (make(), make()) else { continue };
            let expected = observe_all(&mut *single, &stream);
            let verdicts = observe_batched(&mut *batched, &stream, &[1, 0, 255, 256, 257, 31, 4096]);
            assert_eq!(expected, verdicts, "{size} {spec}");
            assert_eq!(encode(&*single), encode(&*batched), "{size} {spec}");
        }
    }
}

pub fn every_instruction_set_gives_the_same_verdicts_and_bytes<S: Set>() {
    // The limit holds for the whole process; tests that run at the same time must not feel it, either.
    for spec in variants::<S>() {
        for make in [|spec: &str| Some(small::<S>(spec, 5)), |spec: &str| large::<S>(spec, 5)] {
            let stream = arrivals(6000, 4000, 2);
            let outcome = |set: InstructionSet| {
                let mut filter = make(&spec)?;
                set.limit();
                let batched = observe_batched(&mut *filter, &stream[..4000], &[1, 257, 31, 4096]);
                let single = observe_all(&mut *filter, &stream[4000..]);
                let asked: Vec<u64> = (0..5000).collect();
                let mut found = vec![false; asked.len()];
                filter.contains_batch(&asked, &mut found);
                InstructionSet::detected().limit();
                Some((batched, single, found, encode(&*filter)))
            };
            let portable = outcome(InstructionSet::Portable);
            for set in InstructionSet::ALL.into_iter().filter(|set| *set <= InstructionSet::detected()) {
                assert!(outcome(set) == portable, "{set} {spec}");
            }
        }
    }
}

pub fn batched_insertions_and_queries_equal_single_ones<S: Set>() {
    for spec in variants::<S>() {
        for make in [|spec: &str| Some(small::<S>(spec, 5)), |spec: &str| large::<S>(spec, 5)] {
            let (Some(mut single), Some(mut batched)) = (make(&spec), make(&spec)) else { continue };
            let keys: Vec<u64> = (0..3000).map(|key| key % 2500).collect();
            for key in &keys {
                single.insert(key);
            }
            batched.insert_batch(&keys);
            assert_eq!(encode(&*single), encode(&*batched), "{spec}");
            let asked: Vec<u64> = (0..9001).collect();
            let mut found = vec![false; asked.len()];
            batched.contains_batch(&asked, &mut found);
            let expected: Vec<bool> = asked.iter().map(|key| single.contains(key)).collect();
            assert_eq!(found, expected, "{spec}");
        }
    }
}

pub fn queries_change_nothing<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 3);
        observe_all(&mut *filter, &arrivals(3000, 2000, 4));
        let before = encode(&*filter);
        for key in 0..5000u64 {
            filter.contains(key);
        }
        assert_eq!(encode(&*filter), before, "{spec}");
    }
}

pub fn insertion_says_whether_the_key_seemed_new<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 3);
        for (key, _) in arrivals(3000, 2000, 5) {
            let seen = filter.contains(key);
            assert_eq!(filter.insert(key), !seen, "{spec}");
        }
    }
}

pub fn a_cleared_filter_is_as_if_just_built<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 3);
        let fresh = encode(&*filter);
        observe_all(&mut *filter, &arrivals(3000, 2000, 6));
        assert_ne!(encode(&*filter), fresh, "{spec}");
        filter.clear();
        assert_eq!(encode(&*filter), fresh, "{spec}");
    }
}

/// Gives a byte or three at a time, as a pipe may.
struct Trickle<'b>(&'b [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let most = bytes.len().min(1 + self.0.len() % 3);
        self.0.read(&mut bytes[..most])
    }
}

fn assert_alike<S: Set>(one: &dyn Filter, other: &dyn Filter, spec: &str) {
    assert_eq!(one.spec(), other.spec());
    assert_eq!(one.hashing(), other.hashing(), "{spec}");
    // What is exact at first and was read back has not asked for all of its memory yet.
    let may_be_smaller = S::KINDS.of(one.spec()).expect("a kind").can.exact_first;
    let (memory, read_back) = (one.memory_bits(), other.memory_bits());
    assert!(read_back == memory || may_be_smaller && read_back < memory, "{spec}: {read_back}, not {memory}");
    assert_eq!(one.promise(), other.promise(), "{spec}");
    assert_eq!(one.status(), other.status(), "{spec}");
}

pub fn encoding_and_decoding_preserves_every_future_verdict<S: Set>() {
    for spec in variants::<S>() {
        let mut original = small::<S>(&spec, 11);
        for round in 0..4 {
            let bytes = encode(&*original);
            assert_eq!(bytes.len() as u64, encoded_bytes(&*original), "{spec}");
            let mut copy = S::KINDS.decoder().decode(&bytes).unwrap_or_else(|error| panic!("{spec}: {error}"));
            assert_alike::<S>(&*original, &*copy, &spec);
            assert_eq!(encode(&*copy), bytes, "{spec} is not re-encoded as it was");
            let stream = arrivals(2000, 1500, round);
            assert_eq!(observe_all(&mut *original, &stream), observe_all(&mut *copy, &stream), "{spec}");
            assert_eq!(encode(&*original), encode(&*copy), "{spec}");
        }
    }
}

pub fn streams_of_bytes_hold_what_slices_hold<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 11);
        observe_all(&mut *filter, &arrivals(1000, 900, 1));
        let bytes = encode(&*filter);
        let mut written = Vec::new();
        encode_to(&*filter, &mut written).expect("a vector takes all");
        assert_eq!(written, bytes, "{spec}");
        let length = bytes.len() as u64;
        let read =
            S::KINDS.decoder().read(&mut Trickle(&bytes), length).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(encode(&*read), bytes, "{spec}");
        let summary = S::KINDS.decoder().summarise(&mut Trickle(&bytes), length).expect("a whole filter");
        assert_eq!(
            (&summary.spec, summary.promise, summary.seed),
            (filter.spec(), filter.promise(), is_seeded::<S>(&spec).then_some(11))
        );
    }
}

pub fn kinds_that_never_forget_never_do<S: Set>() {
    // 800 keys are promised; nothing is forgotten at ten times as many either.
    for spec in variants::<S>().iter().filter(|spec| never_forgets::<S>(spec)) {
        let mut filter = small::<S>(spec, 2);
        for key in 0..8000u64 {
            filter.insert(key);
            assert!(filter.contains(key), "{spec} at once forgot {key}");
        }
        assert!((0..8000u64).all(|key| filter.contains(key)), "{spec} forgot");
        assert_eq!(filter.promise().predicted_fnr, Some(0.0), "{spec}");
    }
}

pub fn what_a_filter_says_of_itself_is_a_number_however_full_it_is<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 2);
        for round in 0..6u64 {
            let status = filter.status();
            assert!((0.0..=1.0).contains(&status.fill), "{spec}: {status:?}");
            assert!((0.0..=1.0).contains(&status.estimated_fpr), "{spec}: {status:?}");
            assert!(status.estimated_items.is_none_or(|items| items.is_finite() && items >= 0.0), "{spec}: {status:?}");
            // Ten times as many each round, until every cell that can be full is.
            for key in 0..10u64.pow(round as u32) {
                filter.insert(key << 8 | round);
            }
        }
    }
}

pub fn ids_and_names_are_unique<S: Set>() {
    let mut names = bare_kinds::<S>();
    names.sort();
    names.dedup();
    let mut ids: Vec<u16> = S::KINDS.iter().map(|kind| kind.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((names.len(), ids.len()), (bare_kinds::<S>().len(), bare_kinds::<S>().len()));
    assert!(!names.contains(&"auto".to_string()), "auto is the planner's word");
}

/// What is taken apart and put together again, or judged part by part, is what it was.
pub fn shards_that_were_apart_are_the_filter_again<S: Set>() {
    let stream = arrivals(3000, 900, 5);
    for kind in S::KINDS.iter().filter(|kind| kind.can.shard) {
        let mut whole = small::<S>(&format!("{}:shards=3", kind.name), 7).into_dyn();
        let spec = whole.spec().clone();
        let mut parts = split(whole.try_clone_boxed().expect("memory"));
        assert_eq!(parts.len(), 3, "{}", kind.name);
        for (key, importance) in &stream {
            let hash = whole.hashing().hash_u64(*key);
            let apart = parts[hash.shard(3) as usize].observe_hash(hash, *importance);
            assert_eq!(apart, whole.observe_hash(hash, *importance), "{}", kind.name);
        }
        let read_back = parts.iter().map(|part| S::KINDS.decoder().decode(&encode(part.as_ref())));
        let parts: Vec<_> = read_back.collect::<Result<_, _>>().expect("its own bytes");
        assert_eq!(Status::of_parts(&parts.iter().map(|part| part.status()).collect::<Vec<_>>()), whole.status());
        let joined = join(&spec, parts).expect("its own shards");
        assert_eq!(encode(joined.as_ref()), encode(whole.as_ref()), "{}", kind.name);
        let mut strange = split(joined);
        assert!(join(&spec, strange.split_off(1)).is_err(), "{}: one is missing", kind.name);
    }
}

/// A kind and its promise agree on who forgets.
pub fn kinds_and_promises_agree_on_who_forgets<S: Set>() {
    // Kinds that forget only if a parameter says so.
    let fading = S::KINDS.iter().filter_map(|kind| Some((kind.name, kind.can.fade?)));
    let fading: Vec<String> = fading.map(|(name, parameter)| format!("{name}:{parameter}=100")).collect();
    assert!(
        S::CAN_EVERYTHING <= !fading.is_empty() && fading.iter().all(|spec| !never_forgets::<S>(spec)),
        "{fading:?}"
    );
    for spec in variants::<S>().iter().chain(&fading) {
        let promise = small::<S>(spec, 2).promise();
        assert_eq!(promise.predicted_fnr == Some(0.0), never_forgets::<S>(spec), "{spec}: {promise:?}");
    }
}
