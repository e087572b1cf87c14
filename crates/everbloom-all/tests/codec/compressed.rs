//! Compressed bodies: as good as plain ones, and no way to unpack more than the reader allows.

use crate::common::{arrivals, observe_all, small, variants};
use crate::document::Document;
use everbloom::codec::{encode, encode_compressed};
use everbloom::{AnyFilter, Error, Goal, Hashing, Plan};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;

/// More than any filter here unpacks to.
const AMPLE: u64 = 1 << 24;

/// A filter that has seen little, so that there is something to compress.
fn lightly_used(spec: &str) -> AnyFilter {
    let mut filter = small(spec, 5);
    observe_all(&mut *filter, &arrivals(40, 40, 1));
    filter
}

fn sparse(items: u64) -> AnyFilter {
    let goal = Goal::new().expected_items(items).fpr(0.01).compressed();
    let mut filter = goal.plan_among(KINDS, "bloom").and_then(|plan| plan.build()).expect("a filter");
    (0..items).for_each(|key| {
        filter.insert(key);
    });
    filter
}

fn is_compressed(bytes: &[u8]) -> bool {
    KINDS.decoder().summarise(&mut &*bytes, bytes.len() as u64).expect("a header").compressed
}

#[test]
fn every_filter_comes_back_to_the_byte_and_is_never_larger() {
    let mut compressed = 0;
    for spec in variants() {
        let mut filter = lightly_used(&spec);
        let (plain, bytes) = (encode(&*filter), encode_compressed(&*filter));
        assert!(bytes.len() <= plain.len(), "{spec}: {} bytes instead of {}", bytes.len(), plain.len());
        compressed += usize::from(is_compressed(&bytes));
        let mut copy = KINDS.decoder().limit(AMPLE).decode(&bytes).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(encode(&*copy), plain, "{spec}");
        let stream = arrivals(500, 400, 2);
        assert_eq!(observe_all(&mut *filter, &stream), observe_all(&mut *copy, &stream), "{spec}");
    }
    assert!(compressed > variants().len() / 2, "only {compressed} were compressed: the test tests little");
}

#[test]
fn a_plan_for_the_wire_sends_less_at_the_same_rate() {
    // The bars of the bench, with the header's few hundred bytes, on a filter that tests can afford.
    let items = 100_000u64;
    for (rate, bound) in [(0.0216, 0.875), (0.01, 0.85)] {
        let goal = Goal::new().expected_items(items).fpr(rate);
        let usual = encode(&*goal.plan_among(KINDS, "bloom").and_then(|plan| plan.build()).expect("fits")).len();
        let plan = goal.compressed().plan_among(KINDS, "bloom").expect("a plan");
        assert!(plan.promise.fpr_bound <= rate);
        let mut filter = plan.build().expect("fits");
        filter.insert_batch(&(0..items).collect::<Vec<_>>());
        let sent = encode_compressed(&*filter).len();
        assert!((sent as f64) < usual as f64 * bound, "{sent} bytes instead of {usual} at {rate}");
        let wrong = (items..4 * items).filter(|key| filter.contains(key)).count() as f64;
        let asked = 3.0 * items as f64;
        assert!(wrong <= asked * rate + 4.0 * (asked * rate * (1.0 - rate)).sqrt(), "{wrong} of {asked} at {rate}");
    }
}

/// The filter with these keys inside, planned for so many bytes on the wire.
fn within(bytes: u64, items: u64, seed: u64) -> (Plan, AnyFilter) {
    let goal = Goal::new().expected_items(items).transmitted_bytes(bytes).hashing(Hashing::seeded(seed));
    let plan = goal.plan_among(KINDS, "auto").unwrap_or_else(|error| panic!("{bytes} bytes for {items} keys: {error}"));
    let mut filter = plan.build().expect("fits");
    filter.insert_batch(&(0..items).collect::<Vec<_>>());
    (plan, filter)
}

#[test]
fn a_plan_for_bytes_on_the_wire_stays_within_them() {
    for (items, seeds) in [(1, 20), (10, 20), (300, 20), (5000, 20), (80_000, 6), (700_000, 1)] {
        for bits_per_key in [1.6, 3.0, 6.0, 8.0, 9.0, 12.0, 30.0, 200.0] {
            let budget = 320 + (items as f64 * bits_per_key / 8.0) as u64;
            let mut sum = 0;
            for seed in 0..seeds {
                let sent = encode_compressed(&*within(budget, items, seed).1).len() as u64;
                assert!(sent <= budget, "{sent} of {budget} bytes for {items} keys, seed {seed}");
                sum += sent;
            }
            // What is left unused is the margin, unless the memory ran out before the bytes did.
            let unused = 1.0 - sum as f64 / (seeds * budget) as f64;
            assert!(unused < 0.06 || items < 5000 || bits_per_key > 8.0, "{unused} of {budget} for {items} keys");
        }
    }
}

#[test]
fn bytes_on_the_wire_keep_the_rate_they_promise_and_beat_plain_ones() {
    let items = 50_000u64;
    for (bytes, seed) in [(25_000, 1), (50_000, 2), (60_000, 3), (100_000, 4)] {
        let (plan, filter) = within(bytes, items, seed);
        let predicted = plan.promise.fpr_bound;
        let asked = if predicted < 1e-3 { 8_000_000 } else { 1_000_000 };
        let wrong = (items..items + asked).filter(|key| filter.contains(key)).count() as f64;
        let (expected, sigma) = (asked as f64 * predicted, (asked as f64 * predicted * (1.0 - predicted)).sqrt());
        // The bits of one filter are set a little more or less than on average, which all its queries share.
        let number = |word| plan.spec.get(word).and_then(|text| text.parse::<f64>().ok()).expect("a number");
        let (bits, hashes) = (number("num_bits"), number("num_hashes"));
        let load = items as f64 * hashes / bits;
        let fill_sigma = ((-2.0 * load).exp() * (load.exp_m1() - load) / bits).sqrt() / (1.0 - (-load).exp());
        let sigma = sigma.hypot(expected * hashes * fill_sigma);
        assert!((wrong - expected).abs() <= 4.0 * sigma, "{wrong} of {asked}, {expected} ± {sigma} expected");

        let plain = Goal::new()
            .expected_items(items)
            .memory_bits((bytes - 192) * 8)
            .plan_among(KINDS, "bloom")
            .expect("a plan");
        assert!(encode(&*plain.build().expect("fits")).len() as u64 <= bytes);
        let plain = plain.promise.fpr_bound;
        assert!(predicted < plain && wrong < asked as f64 * plain, "{bytes} bytes: {predicted}, not under {plain}");
    }
}

#[test]
fn too_few_bytes_to_transmit_are_refused_with_enough() {
    let goal = Goal::new().expected_items(10_000);
    let error = goal
        .clone()
        .transmitted_bytes(9000)
        .fpr(0.001)
        .plan_among(KINDS, "bloom")
        .expect_err("7.2 bits a key")
        .to_string();
    let needed: u64 = error.split_whitespace().filter_map(|word| word.parse().ok()).max().expect("bytes");
    assert!((14_000..18_000).contains(&needed), "{error}");
    assert!(goal.clone().transmitted_bytes(needed).fpr(0.001).plan_among(KINDS, "bloom").is_ok(), "{error}");
    for (bytes, memory) in [(0, 1 << 30), (64, 1 << 30), (9000, 512), (u64::MAX, 512)] {
        let error = goal
            .clone()
            .transmitted_bytes(bytes)
            .memory_bits(memory)
            .plan_among(KINDS, "bloom")
            .expect_err("too little");
        assert!(matches!(error, Error::Infeasible { .. }), "{error}");
    }
    assert!(Goal::new().transmitted_bytes(9000).plan_among(KINDS, "auto").is_err(), "for how many keys?");
    // However many bytes there are, memory is not wasted on them.
    let plan = goal.transmitted_bytes(u64::MAX).plan_among(KINDS, "auto").expect("a plan");
    assert!(plan.memory_bits <= 16 * 96 * 10_000, "{}", plan.spec);
}

#[test]
fn odd_limits_are_kept_or_refused() {
    let odd = [0, 1, 191, 192, 257, 1 << 20, 1 << 40, 1 << 60, u64::MAX];
    let mut planned = 0;
    for (bytes, items) in odd.iter().flat_map(|bytes| odd.iter().map(move |items| (*bytes, *items))) {
        for memory in [None, Some(0), Some(511), Some(1 << 30), Some(u64::MAX)] {
            let mut goal = Goal::new().expected_items(items).transmitted_bytes(bytes);
            goal = memory.into_iter().fold(goal, Goal::memory_bits);
            if let Ok(plan) = goal.plan_among(KINDS, "auto") {
                planned += 1;
                assert!(plan.promise.fpr_bound <= 0.5, "{}", plan.spec);
                assert!(memory.is_none_or(|most| plan.memory_bits <= most), "{}", plan.spec);
            }
        }
    }
    assert!(planned > 20, "only {planned} were planned: the test tests little");
}

#[test]
fn memory_bounds_how_sparse_a_plan_gets() {
    let goal = Goal::new().expected_items(100_000).fpr(0.01);
    let usual = goal.plan_among(KINDS, "bloom").expect("a plan").memory_bits;
    let mut last = f64::INFINITY;
    for times in [1, 2, 3, 11] {
        let plan = goal.clone().memory_bits(usual * times).compressed().plan_among(KINDS, "auto").expect("a plan");
        assert!(plan.memory_bits <= usual * times, "{}", plan.spec);
        let hashes: f64 = plan.spec.get("num_hashes").and_then(|text| text.parse().ok()).expect("a number");
        assert!(hashes < last || times == 3, "{}", plan.spec);
        last = hashes;
    }
    assert_eq!(last, 1.0);
}

#[test]
fn every_flipped_byte_is_noticed() {
    for mut bytes in [encode_compressed(&*sparse(500)), encode_compressed(&*lightly_used("bloom:shards=3"))] {
        assert!(is_compressed(&bytes));
        for at in 0..bytes.len() {
            for flip in [0xff, 0x01, 0x80] {
                bytes[at] ^= flip;
                assert!(KINDS.decoder().limit(AMPLE).decode(&bytes).is_err(), "byte {at} ^ {flip:#x} went unnoticed");
                bytes[at] ^= flip;
            }
        }
        assert!(KINDS.decoder().limit(AMPLE).decode(&bytes).is_ok());
    }
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = encode_compressed(&*sparse(500));
    for length in 0..bytes.len() {
        assert!(KINDS.decoder().limit(AMPLE).decode(&bytes[..length]).is_err(), "cut to {length} bytes");
    }
    assert!(KINDS.decoder().limit(AMPLE).decode(&[&bytes[..], &[0; 64]].concat()).is_err());
}

#[test]
fn nothing_unpacks_beyond_the_limit() {
    let filter = sparse(5000);
    let bytes = encode_compressed(&*filter);
    let plain = filter.memory_bits() / 8;
    assert!(KINDS.decoder().limit(plain).decode(&bytes).is_ok());
    let error = KINDS.decoder().limit(plain - 1).decode(&bytes).expect_err("too large");
    assert!(matches!(error, Error::Parameter { .. }) && error.to_string().contains("raise the limit"), "{error}");
    // Without a limit of the caller's, the length of the bytes is the limit.
    assert!(KINDS.decoder().decode(&bytes).is_err());
}

#[test]
fn bodies_that_claim_to_expand_without_end_are_refused() {
    let document = Document::parse(&encode_compressed(&*sparse(500)));
    let claims = [0, 1, 63, 1 << 18, (1 << 18) + 1, 1 << 30, 1 << 40, 1 << 63, u64::MAX];
    for claim in claims {
        let mut body = document.body.clone();
        body[..8].copy_from_slice(&u64::to_le_bytes(claim));
        let lie = document.with_body(body).bytes();
        assert!(KINDS.decoder().limit(u64::MAX).decode(&lie).is_err(), "a claim of {claim} bytes went unnoticed");
    }
    // Chunks of nothing but zeros are the cheapest there are: 12 bytes for 256 KiB.
    let spec = format!("bloom:num_bits={},num_hashes=1", 1u64 << 40);
    let zeros = [&(1u64 << 37).to_le_bytes()[..], &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(1 << 19)].concat();
    let bomb = document.with_spec(spec).with_body(zeros).bytes();
    let error = KINDS.decoder().limit(AMPLE).decode(&bomb).expect_err("128 GiB");
    assert!(error.to_string().contains("137438953472 bytes"), "{error}");
}

#[test]
fn a_part_may_not_be_compressed_by_itself() {
    let document = Document::parse(&encode(&*lightly_used("bloom:shards=3")));
    let part = {
        let mut one = Goal::new()
            .plan_among(KINDS, "bloom:num_bits=5461,num_hashes=7")
            .and_then(|plan| plan.build())
            .expect("small");
        one.insert("key");
        encode_compressed(&*one)
    };
    assert!(is_compressed(&part));
    let error = KINDS.decoder().limit(AMPLE).decode(&document.with_body(part.repeat(3)).bytes()).expect_err("nested");
    assert!(error.to_string().contains("compressed by itself"), "{error}");
}

#[test]
fn crafted_codes_give_an_error_or_a_working_filter() {
    let document = Document::parse(&encode_compressed(&*sparse(500)));
    let mut generator = Generator::seeded(4);
    let mut survived = 0;
    for _ in 0..20_000 {
        let mut crafted = document.clone();
        for _ in 0..1 + generator.below(3) {
            let length = crafted.body.len() as u64;
            crafted.body[generator.below(length) as usize] = generator.bits() as u8;
        }
        if let Ok(filter) = KINDS.decoder().limit(AMPLE).decode(&crafted.bytes()) {
            survived += 1;
            let status = filter.status();
            assert!((0.0..=1.0).contains(&status.fill), "{status:?}");
            assert!(KINDS.decoder().decode(&encode(&*filter)).is_ok());
        }
    }
    assert!(survived > 100, "only {survived} crafted bodies were read: the test tests nothing");
}
