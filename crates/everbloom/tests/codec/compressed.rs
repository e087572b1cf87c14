//! Compressed bodies: as good as plain ones, and no way to unpack more than the reader allows.

use crate::common::{arrivals, observe_all, small, variants};
use crate::document::Document;
use everbloom::codec::{decode, decode_compressed, encode, encode_compressed, summarise};
use everbloom::rng::Generator;
use everbloom::{Error, Filter, FilterExt, Goal};

/// More than any filter here unpacks to.
const AMPLE: u64 = 1 << 24;

/// A filter that has seen little, so that there is something to compress.
fn lightly_used(spec: &str) -> Box<dyn Filter> {
    let mut filter = small(spec, 5);
    observe_all(&mut *filter, &arrivals(40, 40, 1));
    filter
}

fn sparse(items: u64) -> Box<dyn Filter> {
    let goal = Goal::new().expected_items(items).target_fpr(0.01).compressed();
    let mut filter = goal.plan("bloom").and_then(|plan| plan.build()).expect("a filter");
    (0..items).for_each(|key| {
        filter.insert(&key);
    });
    filter
}

fn is_compressed(bytes: &[u8]) -> bool {
    summarise(&mut &*bytes, bytes.len() as u64).expect("a header").compressed
}

#[test]
fn every_filter_comes_back_to_the_byte_and_is_never_larger() {
    let mut compressed = 0;
    for spec in variants() {
        let mut filter = lightly_used(&spec);
        let (plain, bytes) = (encode(&*filter), encode_compressed(&*filter));
        assert!(bytes.len() <= plain.len(), "{spec}: {} bytes instead of {}", bytes.len(), plain.len());
        compressed += usize::from(is_compressed(&bytes));
        let mut copy = decode_compressed(&bytes, AMPLE).unwrap_or_else(|error| panic!("{spec}: {error}"));
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
        let goal = Goal::new().expected_items(items).target_fpr(rate);
        let usual = encode(&*goal.plan("bloom").and_then(|plan| plan.build()).expect("fits")).len();
        let plan = goal.compressed().plan("bloom").expect("a plan");
        assert!(plan.forecast.predicted_fpr <= rate);
        let mut filter = plan.build().expect("fits");
        filter.insert_batch(&(0..items).collect::<Vec<_>>());
        let sent = encode_compressed(&*filter).len();
        assert!((sent as f64) < usual as f64 * bound, "{sent} bytes instead of {usual} at {rate}");
        let wrong = (items..4 * items).filter(|key| filter.contains(key)).count() as f64;
        let asked = 3.0 * items as f64;
        assert!(wrong <= asked * rate + 4.0 * (asked * rate * (1.0 - rate)).sqrt(), "{wrong} of {asked} at {rate}");
    }
}

#[test]
fn memory_bounds_how_sparse_a_plan_gets() {
    let goal = Goal::new().expected_items(100_000).target_fpr(0.01);
    let usual = goal.plan("bloom").expect("a plan").memory_bits;
    let mut last = f64::INFINITY;
    for times in [1, 2, 3, 11] {
        let plan = goal.memory_bits(usual * times).compressed().plan("auto").expect("a plan");
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
                assert!(decode_compressed(&bytes, AMPLE).is_err(), "byte {at} ^ {flip:#x} went unnoticed");
                bytes[at] ^= flip;
            }
        }
        assert!(decode_compressed(&bytes, AMPLE).is_ok());
    }
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = encode_compressed(&*sparse(500));
    for length in 0..bytes.len() {
        assert!(decode_compressed(&bytes[..length], AMPLE).is_err(), "cut to {length} bytes");
    }
    assert!(decode_compressed(&[&bytes[..], &[0; 64]].concat(), AMPLE).is_err());
}

#[test]
fn nothing_unpacks_beyond_the_limit() {
    let filter = sparse(5000);
    let bytes = encode_compressed(&*filter);
    let plain = filter.memory_bits() / 8;
    assert!(decode_compressed(&bytes, plain).is_ok());
    let error = decode_compressed(&bytes, plain - 1).err().expect("too large");
    assert!(matches!(error, Error::Parameter { .. }) && error.to_string().contains("raise the limit"), "{error}");
    // Without a limit of the caller's, the length of the bytes is the limit.
    assert!(decode(&bytes).is_err());
}

#[test]
fn bodies_that_claim_to_expand_without_end_are_refused() {
    let document = Document::parse(&encode_compressed(&*sparse(500)));
    let claims = [0, 1, 63, 1 << 18, (1 << 18) + 1, 1 << 30, 1 << 40, 1 << 63, u64::MAX];
    for claim in claims {
        let mut body = document.body.clone();
        body[..8].copy_from_slice(&u64::to_le_bytes(claim));
        let lie = document.with_body(body).bytes();
        assert!(decode_compressed(&lie, u64::MAX).is_err(), "a claim of {claim} bytes went unnoticed");
    }
    // Chunks of nothing but zeros are the cheapest there are: 12 bytes for 256 KiB.
    let spec = format!("bloom:num_bits={},num_hashes=1", 1u64 << 40);
    let zeros = [&(1u64 << 37).to_le_bytes()[..], &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(1 << 19)].concat();
    let bomb = document.with_spec(spec).with_body(zeros).bytes();
    let error = decode_compressed(&bomb, AMPLE).err().expect("128 GiB");
    assert!(error.to_string().contains("137438953472 bytes"), "{error}");
}

#[test]
fn a_part_may_not_be_compressed_by_itself() {
    let document = Document::parse(&encode(&*lightly_used("bloom:shards=3")));
    let part = {
        let mut one =
            Goal::new().plan("bloom:num_bits=5461,num_hashes=7").and_then(|plan| plan.build()).expect("small");
        one.insert("key");
        encode_compressed(&*one)
    };
    assert!(is_compressed(&part));
    let error = decode_compressed(&document.with_body(part.repeat(3)).bytes(), AMPLE).err().expect("nested");
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
        if let Ok(filter) = decode_compressed(&crafted.bytes(), AMPLE) {
            survived += 1;
            let status = filter.status();
            assert!((0.0..=1.0).contains(&status.fill), "{status:?}");
            assert!(decode(&encode(&*filter)).is_ok());
        }
    }
    assert!(survived > 100, "only {survived} crafted bodies were read: the test tests nothing");
}
