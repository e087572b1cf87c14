//! Schemes and the filters built with them: no false negatives, ever; bytes that are whole or refused.

use everbloom::codec::encode;
use everbloom::kind::{Body, Combine};
use everbloom::{AnyFilter, Error, Filter, FilterExt, Hashing, Importances, Key, KeyHash, Result, SecretKey, Verdict};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use everbloom_tune::querylog::stacking::Demand;
use everbloom_tune::scheme::{Classes, Design, HotNegatives, KeyClass, MAX_HASHES, Pair, Recipe};
use everbloom_tune::{Popularity, Scheme, Stacked, WithScheme};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

fn hash(key: u64, hashing: &Hashing) -> KeyHash {
    // Keys of different lengths, so that lengths can tell them apart.
    format!("{key:0width$}", width = 1 + (key % 40) as usize).as_str().hash_with(hashing)
}

/// Random classes: hashes from 0 to 32, sometimes by length, sometimes with a map of some keys.
fn random_scheme(seed: u64) -> Arc<Scheme> {
    let mut generator = Generator::seeded(seed);
    let hashing = match generator.below(3) {
        0 => Hashing::seeded(seed),
        1 => Hashing::measured(seed),
        _ => Hashing::keyed(SecretKey::new([seed as u8; 16])),
    };
    let count = 1 + generator.below(5);
    let hashes = (0..count).map(|_| KeyClass::of(generator.below(u64::from(MAX_HASHES) + 1) as u32)).collect();
    let mut classes = Classes::new(hashes).expect("few classes");
    if matches!(hashing, Hashing::Measured { .. }) {
        let by_length = std::array::from_fn(|_| generator.below(count) as u8);
        classes = classes.by_length(by_length).expect("known classes");
    }
    if generator.below(3) > 0 {
        let mapped = generator.below(2000);
        let keys: Vec<_> = (0..mapped).map(|key| (hash(key * 3, &hashing), generator.below(count) as u8)).collect();
        let width = 3 + generator.below(8) as u32;
        classes = classes.with_exceptions(&keys, width).expect("a map");
    }
    Arc::new(Scheme::new(hashing, 8.0, Recipe::Popularity(classes)).expect("a scheme"))
}

fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut generator = Generator::seeded(seed);
    for place in (1..items.len()).rev() {
        items.swap(place, generator.below(place as u64 + 1) as usize);
    }
}

fn reread(filter: &dyn Filter, scheme: &Arc<Scheme>) -> Result<AnyFilter> {
    let bytes = encode(filter);
    KINDS.decoder().scheme(scheme).read(&mut &bytes[..], bytes.len() as u64).map(AnyFilter::from)
}

/// Whether a bit of a filter is set.
fn is_set(filter: &dyn Filter, position: u64) -> bool {
    let Body::Bytes(parts) = filter.body() else { panic!("a filter of bits") };
    parts[0][position as usize / 8] >> (position % 8) & 1 == 1
}

/// The input on which a random run of the test below once failed: a map of no keys.
#[test]
fn a_map_of_nothing_is_read_as_it_was_written() {
    let scheme = random_scheme(16_808_280_271_862_128_498);
    let read = Scheme::decode(&scheme.encode()).expect("its own bytes");
    assert_eq!(read.encode(), scheme.encode());
}

/// One class, and none of its keys has a hash: the filter says yes to all, also once it is read again.
#[test]
fn a_filter_without_hashes_is_read_as_it_was_written() {
    let classes = Classes::new(vec![KeyClass::of(0)]).expect("one class");
    let scheme = Arc::new(Scheme::new(Hashing::seeded(1), 8.0, Recipe::Popularity(classes)).expect("a scheme"));
    let mut filter = Popularity::with_scheme(&scheme, 64).expect("a filter");
    filter.insert_hash(hash(1, scheme.hashing()));
    let read = reread(&filter, &scheme).expect("its own scheme");
    assert_eq!(read.spec(), filter.spec());
    assert!(read.contains_hash(hash(2, scheme.hashing())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn classes_never_lose_a_key(seed in any::<u64>(), bits in 64u64..40_000, keys in 1u64..1500, order in any::<u64>()) {
        let scheme = random_scheme(seed);
        // The filter is built with one copy of the scheme and asked with another.
        let key = match scheme.hashing() { Hashing::SipHash { key } => Some(*key), _ => None };
        let copy = Arc::new(Scheme::decode_with_key(&scheme.encode(), key).expect("its own bytes"));
        let mut members: Vec<KeyHash> = (0..keys).map(|key| hash(key, scheme.hashing())).collect();
        shuffle(&mut members, order);
        let mut filter = Popularity::with_scheme(&scheme, bits).expect("a filter");
        for (index, member) in members.iter().enumerate() {
            if index % 2 == 0 { filter.insert_hash(*member); }
        }
        filter.insert_hashes(&members);
        let mut read = reread(&filter, &copy).expect("its own scheme");
        shuffle(&mut members, order ^ 1);
        for member in &members {
            prop_assert!(filter.contains_hash(*member) && read.contains_hash(*member));
        }
        // And what is inserted into the copy is found there.
        let later: Vec<KeyHash> = (5000..5200).map(|key| hash(key, scheme.hashing())).collect();
        read.insert_hashes(&later);
        prop_assert!(later.iter().chain(&members).all(|member| read.contains_hash(*member)));
    }

    #[test]
    fn batches_answer_as_keys_one_by_one(seed in any::<u64>(), bits in 64u64..40_000, keys in 1u64..1500) {
        let scheme = random_scheme(seed);
        let hashes: Vec<KeyHash> = (0..keys).map(|key| hash(key, scheme.hashing())).collect();
        let (members, asked) = (&hashes[..keys as usize / 2], &hashes[..]);
        let filter = || Popularity::with_scheme(&scheme, bits).expect("a filter");
        let (mut single, mut batched, mut observing) = (filter(), filter(), filter());
        let seen: Vec<bool> = members.iter().map(|member| !single.insert_hash(*member)).collect();
        batched.insert_hashes(members);
        let mut verdicts = vec![Verdict::from_seen(false); members.len()];
        observing.observe_hashes(members, Importances::default(), &mut verdicts).expect("one for all");
        prop_assert_eq!(verdicts, seen.into_iter().map(Verdict::from_seen).collect::<Vec<_>>());
        prop_assert_eq!(encode(&batched), encode(&single));
        prop_assert_eq!(encode(&observing), encode(&single));
        let mut found = vec![false; asked.len()];
        batched.contains_hashes(asked, &mut found);
        let expected = asked.iter().map(|hash| {
            hash.places(bits).take(single.hashes_for(*hash) as usize).all(|position| is_set(&single, position))
        });
        prop_assert_eq!(&found, &expected.collect::<Vec<_>>());
        prop_assert_eq!(found, asked.iter().map(|hash| single.contains_hash(*hash)).collect::<Vec<_>>());
    }

    #[test]
    fn stacks_never_lose_a_key(
        seed in any::<u64>(), memory in 2048u64..40_000, members in 1u64..1500, negatives in 0u64..3000,
        pairs in prop::collection::vec((1u32..=12, 1u32..14), 0..=3), order in any::<u64>(),
    ) {
        let hashing = Hashing::seeded(seed);
        let pair = |(width, rate): (u32, u32)| Pair { width, target_fpr: 0.5f64.powi(rate as i32) };
        let design = Design::new(pairs.into_iter().map(pair).collect()).expect("a design");
        // Some hot negatives are members: these must be found all the same.
        let hot = (0..negatives).map(|key| hash(key * 7, &hashing)).collect();
        let hot = HotNegatives::new(hot, design, 0.5).expect("hot negatives");
        let mut keys: Vec<KeyHash> = (0..members).map(|key| hash(key, &hashing)).collect();
        shuffle(&mut keys, order);
        let Ok(mut filter) = Stacked::build(hashing, memory, &keys, &hot, None) else { return Ok(()) };
        prop_assert!(filter.memory_bits() <= memory);
        prop_assert!(keys.iter().all(|key| filter.contains_hash(*key)));
        // Keys that come later, hot negatives among them.
        let later: Vec<KeyHash> = (0..4000).step_by(7).map(|key| hash(key, &hashing)).collect();
        for key in &later {
            filter.insert_hash(*key);
        }
        let read = KINDS.decoder().decode(&encode(&filter)).expect("its own bytes");
        for key in keys.iter().chain(&later) {
            prop_assert!(filter.contains_hash(*key) && read.contains_hash(*key));
        }
    }

    #[test]
    fn crafted_schemes_give_an_error_or_a_working_scheme(seed in any::<u64>(), edits in prop::collection::vec((any::<u64>(), any::<u8>()), 1..6)) {
        let bytes = random_scheme(seed).encode();
        let mut content = bytes[..bytes.len() - 8].to_vec();
        let length = content.len() as u64;
        for (place, value) in edits {
            // Mostly in the first bytes, where all that is not map lies.
            let place = if value % 4 == 0 { place % length } else { place % length.min(200) };
            content[place as usize] ^= value;
        }
        content.extend_from_slice(&xxh3_64(&content).to_le_bytes());
        let key = SecretKey::new([seed as u8; 16]);
        if let Ok(scheme) = Scheme::decode_with_key(&content, Some(key)) {
            prop_assert_eq!(scheme.encode(), content);
            if scheme.classes().is_some() {
                let mut filter = Popularity::with_scheme(&Arc::new(scheme), 1000).expect("a filter");
                let mut found = |key: u64| {
                    filter.insert(key);
                    filter.contains(key)
                };
                prop_assert!((0..50).all(&mut found));
            }
        }
    }
}

/// Two classes, told apart by a map of 100 keys.
fn mapped_scheme(hot_hashes: u32) -> Arc<Scheme> {
    let hashing = Hashing::seeded(3);
    let share = |num_hashes, key_share, query_share| KeyClass { num_hashes, key_share, query_share };
    let classes = Classes::new(vec![share(5, 0.99, 0.2), share(hot_hashes, 0.01, 0.8)]).expect("two classes");
    let hot: Vec<_> = (0..100u64).map(|key| (key.hash_with(&hashing), 1)).collect();
    let classes = classes.with_exceptions(&hot, 6).expect("a map");
    Arc::new(Scheme::new(hashing, 8.0, Recipe::Popularity(classes)).expect("a scheme"))
}

fn stacked_scheme() -> Scheme {
    let pairs = vec![Pair { width: 6, target_fpr: 0.1 }, Pair { width: 3, target_fpr: 0.02 }];
    let keys = (0..60u64).map(|key| key.hash_with(&Hashing::seeded(3))).collect();
    let negatives = HotNegatives::new(keys, Design::new(pairs).expect("a design"), 0.75).expect("hot negatives");
    Scheme::new(Hashing::seeded(3), 9.5, Recipe::Stacked(negatives)).expect("a scheme")
}

fn by_length_scheme() -> Scheme {
    let classes = Classes::new(vec![KeyClass::of(4), KeyClass::of(14)]).expect("two classes");
    let classes = classes.by_length(std::array::from_fn(|length| u8::from(length < 9))).expect("known classes");
    Scheme::new(Hashing::measured(3), 8.0, Recipe::Popularity(classes)).expect("a scheme")
}

fn standard_scheme() -> Scheme {
    Scheme::new(Hashing::seeded(3), 8.0, Recipe::Standard).expect("a scheme")
}

fn filled(scheme: &Arc<Scheme>) -> Popularity {
    let mut filter = Popularity::with_scheme(scheme, 4096).expect("a filter");
    (1000..1500u64).for_each(|key| {
        filter.insert(key);
    });
    filter
}

#[test]
fn another_scheme_or_none_is_refused_never_answered() {
    let (own, other) = (mapped_scheme(12), mapped_scheme(13));
    assert_ne!(own.id(), other.id());
    let filter = filled(&own);
    assert!(reread(&filter, &own).is_ok());
    for wrong in [other.clone(), Arc::new(stacked_scheme()), Arc::new(by_length_scheme()), Arc::new(standard_scheme())]
    {
        let error = reread(&filter, &wrong).expect_err("not its scheme");
        assert!(matches!(error, Error::Scheme { .. }), "{error}");
        assert!(error.to_string().contains(&own.id().to_string()), "{error}");
    }
    let error = KINDS.decoder().decode(&encode(&filter)).expect_err("no scheme");
    assert!(matches!(error, Error::Scheme { .. }), "{error}");
    let mut one = filled(&own);
    let merged = one.as_merge().expect("it merges").merge(&filled(&other), Combine::Union);
    assert!(matches!(merged, Err(Error::Mismatch { .. })), "{merged:?}");
    assert!(Popularity::with_scheme(&Arc::new(standard_scheme()), 4096).is_err());
}

#[test]
fn a_spec_that_names_a_scheme_says_where_to_give_it() {
    let error = everbloom::Goal::new()
        .plan_among(KINDS, "popularity:num_bits=64,scheme=00ff")
        .expect_err("no scheme")
        .to_string();
    assert!(error.contains("--scheme"), "{error}");
}

#[test]
fn filters_of_one_scheme_merge() {
    let scheme = mapped_scheme(12);
    let mut one = filled(&scheme);
    let mut other = Popularity::with_scheme(&scheme, 4096).expect("a filter");
    (0..50u64).for_each(|key| {
        other.insert(key);
    });
    one.as_merge().expect("it merges").merge(&other, Combine::Union).expect("alike");
    assert!((0..50u64).chain(1000..1500).all(|key| one.contains(key)));
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    for scheme in [(*mapped_scheme(12)).clone(), stacked_scheme(), by_length_scheme(), standard_scheme()] {
        let bytes = scheme.encode();
        assert_eq!(Scheme::decode(&bytes).as_ref(), Ok(&scheme));
        for length in 0..bytes.len() {
            assert!(Scheme::decode(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
        for place in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[place / 8] ^= 1 << (place % 8);
            assert!(Scheme::decode(&damaged).is_err(), "bit {place}");
        }
        assert!(Scheme::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}

#[test]
fn claims_beyond_the_bytes_are_refused() {
    let sealed = |mut content: Vec<u8>| {
        content.extend_from_slice(&xxh3_64(&content).to_le_bytes());
        Scheme::decode(&content)
    };
    let content = |scheme: &Scheme| scheme.encode()[..scheme.encode().len() - 8].to_vec();
    // The number of hot negatives lies behind their share and two pairs of layers.
    let mut negatives = content(&stacked_scheme());
    assert_eq!(negatives[48 + 8 + 1 + 18..][..8], 60u64.to_le_bytes());
    for lie in [61, 1 << 40, 1 << 60, u64::MAX] {
        negatives[48 + 8 + 1 + 18..][..8].copy_from_slice(&u64::to_le_bytes(lie));
        assert!(sealed(negatives.clone()).is_err(), "{lie} keys");
    }
    // The slots of the map lie behind two classes, no lengths, one code and the width.
    let mut map = content(&mapped_scheme(12));
    let place = 48 + 1 + 2 * 17 + 1 + 1 + 1 + 1;
    assert_eq!(map[place..][..8], 106u64.to_le_bytes());
    for lie in [0, 300, 1 << 28, 1 << 40, u64::MAX] {
        map[place..][..8].copy_from_slice(&u64::to_le_bytes(lie));
        assert!(sealed(map.clone()).is_err(), "{lie} slots");
    }
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schemes").join(name)
}

#[test]
fn golden_schemes_and_their_filters_are_frozen() {
    let scheme = mapped_scheme(12);
    let stack = everbloom_tune::querylog::build(
        &Arc::new(stacked_scheme()),
        &(1000..1500u64).map(|key| key.hash_with(&Hashing::seeded(3))).collect::<Vec<_>>(),
        8192,
    );
    let files = [
        ("mapped.ebs", scheme.encode()),
        ("stacked.ebs", stacked_scheme().encode()),
        ("by-length.ebs", by_length_scheme().encode()),
        ("standard.ebs", standard_scheme().encode()),
        ("mapped.ebf", encode(&filled(&scheme))),
        ("stacked.ebf", encode(&*stack.expect("room enough"))),
    ];
    for (name, bytes) in files {
        if std::env::var_os("EVERBLOOM_BLESS").is_some_and(|value| value == "1") && !golden(name).exists() {
            fs::write(golden(name), &bytes).expect("a writable folder");
        }
        let frozen = fs::read(golden(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(frozen == bytes, "{name} is written differently");
    }
}

/// False positives among `count` keys from `from` on, and how many there were.
fn false_positives(filter: &dyn Filter, keys: impl Iterator<Item = u64>) -> (f64, f64) {
    let found: Vec<bool> = keys.map(|key| filter.contains(key)).collect();
    (found.iter().filter(|found| **found).count() as f64, found.len() as f64)
}

#[test]
fn each_class_errs_as_its_hashes_say() {
    // 20,000 members of the default class at 8 bits each, on several seeds; each class is asked for by itself.
    let hashing = Hashing::seeded(1);
    let classes = Classes::new(vec![
        KeyClass { num_hashes: 4, key_share: 1.0, query_share: 0.5 },
        KeyClass { num_hashes: 9, key_share: 0.0, query_share: 0.5 },
    ]);
    let hot: Vec<_> = (1_000_000..1_100_000u64).map(|key| (key.hash_with(&hashing), 1)).collect();
    // Wide enough that hardly a member is misread.
    let classes = classes.expect("two").with_exceptions(&hot, 14).expect("a map");
    let scheme = Arc::new(Scheme::new(hashing, 8.0, Recipe::Popularity(classes.clone())).expect("a scheme"));
    let mut filter = Popularity::with_scheme(&scheme, 160_000).expect("a filter");
    (0..20_000u64).for_each(|key| {
        filter.insert(key);
    });
    let fill = filter.status().fill;
    // σ of the fill: √(e^−c·(1 − (1 + c)·e^−c)/m), c = 4·20,000/160,000.
    let c = 0.5f64;
    let fill_error = ((-c).exp() * (1.0 - (1.0 + c) * (-c).exp()) / 160_000.0).sqrt();
    assert!((fill - (1.0 - (-c).exp())).abs() < 4.0 * fill_error + 9.0 / 16_384.0 * c, "{fill}");
    for (keys, num_hashes) in [(2_000_000..2_400_000u64, 4), (1_000_000..1_100_000, 9)] {
        let (wrong, asked) = false_positives(&filter, keys);
        let rate = fill.powi(num_hashes);
        let error = (rate * (1.0 - rate) / asked).sqrt();
        assert!((wrong / asked - rate).abs() < 4.0 * error, "{num_hashes} hashes: {} for {rate}", wrong / asked);
    }
    assert!((filter.status().estimated_fpr - 0.5 * (fill.powi(4) + fill.powi(9))).abs() < 1e-12);
}

#[test]
fn stacks_err_as_their_formula_says() {
    let hashing = Hashing::seeded(2);
    let demand = Demand { members: 2e4, hot_negatives: 4e4, query_share: 0.8, memory_bits: 163_840.0 };
    let planned = Design::best(&demand).expect("room enough");
    let members: Vec<_> = (0..20_000u64).map(|key| key.hash_with(&hashing)).collect();
    let hot = (1_000_000..1_040_000u64).map(|key| key.hash_with(&hashing)).collect();
    let negatives = HotNegatives::new(hot, planned.design.clone(), 0.8).expect("hot negatives");
    let filter = Stacked::build(hashing, 163_840, &members, &negatives, None).expect("room enough");
    assert!(filter.memory_bits() <= 163_840 && filter.memory_bits() > 160_000);
    let (unknown, asked) = false_positives(&filter, 2_000_000..2_400_000);
    let rate = filter.status().estimated_fpr;
    let error = (rate * (1.0 - rate) / asked).sqrt();
    assert!((unknown / asked - rate).abs() < 4.0 * error, "{} for {rate} ± {error}", unknown / asked);
    let (known, asked) = false_positives(&filter, 1_000_000..1_040_000);
    let overall = 0.8 * known / asked + 0.2 * rate;
    // The plan rounds rates of rear layers up to what whole bits and hashes keep.
    let hot_error = 0.8 * ((known + 1.0) / asked / asked).sqrt();
    let most = planned.predicted_fpr + 4.0 * hot_error.hypot(0.2 * error) + 0.02 * planned.predicted_fpr;
    assert!(overall <= most, "{overall} where {} was planned (≤ {most})", planned.predicted_fpr);
}

#[test]
fn classes_without_sense_are_refused() {
    assert!(Classes::new(vec![]).is_err());
    assert!(Classes::new(vec![KeyClass::of(33)]).is_err());
    assert!(Classes::new(vec![KeyClass::of(3); 65]).is_err());
    for share in [-0.1, 1.5, f64::NAN] {
        assert!(Classes::new(vec![KeyClass { key_share: share, ..KeyClass::of(3) }]).is_err(), "{share}");
        assert!(Classes::new(vec![KeyClass { query_share: share, ..KeyClass::of(3) }]).is_err(), "{share}");
    }
    let two = || Classes::new(vec![KeyClass::of(3), KeyClass::of(9)]).expect("two classes");
    let key = 1u64.hash_with(&Hashing::default());
    assert!(two().with_exceptions(&[(key, 2)], 4).is_err(), "a class that is not there");
    assert!(two().with_exceptions(&[(key, 0), (key, 1)], 4).is_err(), "two classes for one key");
    for width in [0, 17] {
        assert!(two().with_exceptions(&[(key, 1)], width).is_err(), "{width} bits");
    }
    assert!(two().by_length([2; 256]).is_err());
    let by_length = two().by_length([1; 256]).expect("known classes");
    assert!(Scheme::new(Hashing::seeded(0), 8.0, Recipe::Popularity(by_length)).is_err(), "lengths nobody measures");
    for bits in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Scheme::new(Hashing::seeded(0), bits, Recipe::Standard).is_err(), "{bits}");
    }
}
