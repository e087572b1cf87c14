//! How much memory the filters and the decoder really take, counted at the allocator.

#[path = "common/mod.rs"]
#[allow(unreachable_pub, dead_code)] // shared by several test binaries, each of which uses its part
mod common;
#[path = "common/document.rs"]
#[allow(unreachable_pub, dead_code)]
mod document;

use allocation_counter::measure;
use common::{arrivals, large, observe_all, small, variants};
use document::Document;
use everbloom::Goal;
use everbloom::codec::{encode, encode_compressed};
use everbloom_all::KINDS;

/// An index that is rebuilt from the cells, not stored, may take as much again as the bytes.
fn justified(bytes: usize) -> u64 {
    2 * bytes as u64
}

/// What decoding takes besides the filter: header, spec, state, an error's text.
const DECODING_BYTES: u64 = 16 << 10;

/// The header's variable parts may be 64 KiB each, and are held twice while they are read.
const LARGEST_HEADER_BYTES: u64 = 256 << 10;

/// What each filter within a filter takes besides its cells: its own struct and its part of a batch.
const SHARD_BYTES: u64 = 1 << 10;

/// What a filter takes besides its cells: its own struct, its spec, small vectors.
const FILTER_BYTES: u64 = 4 << 10;

/// The largest number of bytes held at once by decoding; whether it worked does not matter.
fn peak_of_decoding(bytes: &[u8]) -> u64 {
    measure(|| drop(KINDS.decoder().decode(bytes))).bytes_max
}

/// The memory of the filter in these bytes. One that is still small may have been built with more.
fn decoded_bytes(bytes: &[u8]) -> u64 {
    KINDS.decoder().decode(bytes).expect("as encoded").memory_bits() / 8
}

#[test]
fn decoding_allocates_no_more_than_the_input_and_a_constant() {
    for spec in variants() {
        for filter in [Some(small(&spec, 1)), large(&spec, 1)].into_iter().flatten() {
            let bytes = encode(&*filter);
            let peak = peak_of_decoding(&bytes);
            let most = decoded_bytes(&bytes).max(bytes.len() as u64) + DECODING_BYTES;
            assert!(peak <= most, "{spec}: {peak} bytes for {} given", bytes.len());
            assert!(most <= justified(bytes.len()) + DECODING_BYTES, "{spec}: {most} bytes for {} given", bytes.len());
        }
    }
}

#[test]
fn no_spec_makes_a_filter_much_larger_than_its_bytes() {
    for spec in variants() {
        let own = small(&spec, 1).spec().clone();
        for word in own.parameters().filter(|word| own.get(word).is_some_and(|value| value.parse::<u64>().is_ok())) {
            for number in ["1", "2", "15", "255", "4096", "65535"] {
                let parts: Vec<String> = own
                    .parameters()
                    .map(|name| {
                        format!("{name}={}", if name == word { number } else { own.get(name).expect("listed") })
                    })
                    .collect();
                let changed = format!("{}:{}", own.kind(), parts.join(","));
                let Ok(plan) = everbloom::Goal::new().plan_among(KINDS, &changed) else { continue };
                if plan.memory_bits > 1 << 24 {
                    continue;
                }
                let filter = plan.build().expect("2 MiB");
                let bytes = encode(&*filter);
                let (memory, bytes) = (decoded_bytes(&bytes), bytes.len());
                assert!(memory <= justified(bytes) + FILTER_BYTES, "{changed}: {memory} bytes in {bytes}");
            }
        }
    }
}

#[test]
fn decoding_many_small_shards_allocates_a_constant_for_each() {
    for kind in everbloom_all::KINDS {
        for shards in [16u64, 1024] {
            let goal = everbloom::Goal::new().memory_bits(shards * 2048).fpr(0.1);
            let Ok(plan) = goal.plan_among(KINDS, &format!("{}:shards={shards}", kind.name)) else { continue };
            let bytes = encode(&*plan.build().expect("small"));
            let (peak, most) = (peak_of_decoding(&bytes), bytes.len() as u64 + DECODING_BYTES + shards * SHARD_BYTES);
            assert!(peak <= most, "{}: {peak} bytes for {} given and {shards} shards", kind.name, bytes.len());
        }
    }
}

#[test]
fn decoding_lies_allocates_no_more_than_the_lie_is_long() {
    for spec in variants() {
        let document = Document::parse(&encode(&*small(&spec, 1)));
        let own = String::from_utf8(document.spec.clone()).expect("text");
        let huge = |number: &str| number.parse::<u64>().map_or(number.to_string(), |number| (number << 26).to_string());
        let words: Vec<String> = own
            .split([':', ','])
            .map(|part| {
                part.split_once('=').map_or(part.to_string(), |(word, value)| format!("{word}={}", huge(value)))
            })
            .collect();
        let every_number_huge = format!("{}:{}", words[0], words[1..].join(","));
        let mut lies = vec![
            document.claiming_body(1 << 40),
            document.claiming_body(u64::MAX - 100),
            document.with_spec(vec![b','; 65_536]),
            document.with_spec(vec![b'x'; 60_000]),
            document.with_state(vec![1; 65_536]),
            document.with_spec(every_number_huge.clone()),
            document.with_spec(every_number_huge).claiming_body(1 << 45),
        ];
        // One number huge at a time, with the claim that would fit it.
        for word in &words[1..] {
            let name = word.split('=').next().expect("a word");
            let parts: Vec<&str> = own.split([':', ',']).skip(1).collect();
            let changed: Vec<&str> = parts
                .iter()
                .map(|part| if part.starts_with(&format!("{name}=")) { word.as_str() } else { part })
                .collect();
            lies.push(document.with_spec(format!("{}:{}", words[0], changed.join(","))).claiming_body(1 << 38));
        }
        for lie in lies {
            let bytes = lie.bytes();
            let peak = peak_of_decoding(&bytes);
            let most = justified(bytes.len()) + LARGEST_HEADER_BYTES;
            assert!(peak <= most, "{spec}: {peak} bytes for {} given", bytes.len());
        }
    }
}

/// Two chunks of 256 KiB: one plain, one in codes, with room for both to grow into.
const UNPACKING_BYTES: u64 = 600 << 10;

#[test]
fn unpacking_allocates_no_more_than_the_limit_and_a_constant() {
    let goal = Goal::new().expected_items(20_000).fpr(0.01).compressed();
    let mut filter = goal.plan_among(KINDS, "bloom").and_then(|plan| plan.build()).expect("fits");
    (0..20_000u64).for_each(|key| {
        filter.insert(key);
    });
    let (bytes, plain) = (encode_compressed(&*filter), filter.memory_bits() / 8);
    assert!((bytes.len() as u64) < plain / 8);
    let peak = |limit: u64| measure(|| drop(KINDS.decoder().limit(limit).decode(&bytes))).bytes_max;
    assert!(peak(plain) <= plain + UNPACKING_BYTES, "{} bytes for {plain}", peak(plain));
    assert!(peak(plain - 1) <= DECODING_BYTES, "{} bytes to refuse", peak(plain - 1));
    assert!(peak_of_decoding(&bytes) <= DECODING_BYTES);
}

#[test]
fn memory_bits_are_all_the_memory_there_is() {
    for spec in variants() {
        let mut kept = None;
        let built = measure(|| kept = large(&spec, 1));
        let Some(filter) = &mut kept else { continue };
        let stated = filter.memory_bits() / 8;
        let held = built.bytes_current.unsigned_abs();
        assert!(held <= stated + FILTER_BYTES, "{spec}: {held} bytes held, {stated} stated");
        assert!(held + FILTER_BYTES >= stated, "{spec}: {held} bytes held, {stated} stated");
        // And what arrivals make it grow by, if it grows, is stated, too.
        let stream = arrivals(20_000, 15_000, 1);
        let growth = measure(|| drop(observe_all(&mut **filter, &stream)));
        let allowed = (filter.memory_bits() / 8 - stated + FILTER_BYTES) as i64;
        assert!(growth.bytes_current <= allowed, "{spec} grew by {} bytes", growth.bytes_current);
    }
}

#[test]
fn planning_allocates_next_to_nothing() {
    for spec in variants() {
        let goal = everbloom::Goal::new().memory_bits(1 << 40).expected_items(1 << 20).fpr(0.01);
        let peak = measure(|| drop(goal.plan_among(KINDS, &spec))).bytes_max;
        assert!(peak <= 1 << 20, "{spec}: {peak} bytes to plan");
    }
}

#[test]
fn a_forecast_allocates_no_large_filter() {
    let stream = everbloom_forecast::Stream::zipf(200_000, 60_000, 1.0).expect("a stream");
    for kind in everbloom_all::KINDS.iter().filter(|kind| kind.can.run_forever) {
        let mut question =
            everbloom_forecast::Question::among(KINDS, Goal::new().memory("16GiB").fpr(0.01).filter(kind.name));
        question.stream = Some(stream.clone());
        let (mut answer, mut memory) = (None, 0);
        let peak = measure(|| {
            answer = question.answer().ok();
            memory = answer.as_ref().map_or(0, |answer| answer.best.plan.memory_bits / 8);
        });
        // A few streams of 200,000 arrivals with their keys, and filters of half a megabyte.
        assert!(peak.bytes_max <= 48 << 20, "{}: {} bytes to forecast {memory}", kind.name, peak.bytes_max);
    }
}
