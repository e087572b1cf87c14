//! Filters built with a secret key: nothing without it, and it never leaves.

use crate::common::{arrivals, build, is_seeded, observe_all, small_goal, variants};
use everbloom::codec::encode;
use everbloom::{AnyFilter, Error, Hashing, Result, SecretKey};
use everbloom_all::KINDS;

const SECRET: [u8; 16] = *b"k3y-that-nobody!";

/// The filters that take a key: some have a hash function of their own.
fn keyable() -> Vec<String> {
    let (keyable, others): (Vec<String>, Vec<String>) = variants().into_iter().partition(|spec| is_seeded(spec));
    for spec in others {
        let goal = small_goal(0).hashing(Hashing::keyed(SecretKey::new(SECRET)));
        let error = goal.plan_among(KINDS, &spec).expect_err(&spec).to_string();
        assert!(error.contains("cannot take a secret key"), "{error}");
    }
    keyable
}

fn read(bytes: &[u8], key: Option<SecretKey>) -> Result<AnyFilter> {
    KINDS.decoder().secret_key(key).read(&mut &*bytes, bytes.len() as u64).map(AnyFilter::from)
}

fn keyed(spec: &str) -> AnyFilter {
    let mut filter = build(spec, &small_goal(0).hashing(Hashing::keyed(SecretKey::new(SECRET))));
    observe_all(&mut *filter, &arrivals(600, 500, 1));
    filter
}

#[test]
fn the_right_key_opens_and_preserves_every_future_verdict() {
    for spec in keyable() {
        let mut filter = keyed(&spec);
        let bytes = encode(&*filter);
        let mut copy = read(&bytes, Some(SecretKey::new(SECRET))).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(encode(&*copy), bytes, "{spec}");
        let stream = arrivals(2000, 1500, 2);
        assert_eq!(observe_all(&mut *filter, &stream), observe_all(&mut *copy, &stream), "{spec}");
    }
}

#[test]
fn a_wrong_or_missing_key_is_refused() {
    for spec in keyable() {
        let bytes = encode(&*keyed(&spec));
        let missing = KINDS.decoder().decode(&bytes).expect_err("no key");
        assert!(matches!(missing, Error::SecretKey { needed: "a secret key", .. }), "{spec}: {missing}");
        for bit in 0..128 {
            let mut wrong = SECRET;
            wrong[bit / 8] ^= 1 << (bit % 8);
            let error = read(&bytes, Some(SecretKey::new(wrong))).expect_err("a wrong key");
            assert!(matches!(error, Error::SecretKey { needed: "another secret key", .. }), "{spec}: {error}");
        }
    }
}

#[test]
fn the_key_is_in_no_output() {
    let half = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    for spec in keyable() {
        let filter = keyed(&spec);
        let bytes = encode(&*filter);
        for part in SECRET.chunks(4) {
            assert!(!half(&bytes, part), "{spec} holds a part of the key");
        }
        let shown = format!("{:?} {:?}", filter.hashing(), SecretKey::new(SECRET));
        assert!(!shown.contains("k3y") && !shown.contains("107") && !shown.contains("0x6b"), "{shown}");
        let summary = KINDS.decoder().summarise(&mut &bytes[..], bytes.len() as u64).expect("a header needs no key");
        assert_eq!((summary.hash, summary.seed), ("siphash", None));
    }
}

#[test]
fn other_keys_give_other_bytes() {
    for spec in keyable() {
        let other = small_goal(0).hashing(Hashing::keyed(SecretKey::new([1; 16])));
        let mut other = build(&spec, &other);
        observe_all(&mut *other, &arrivals(600, 500, 1));
        assert_ne!(encode(&*keyed(&spec)), encode(&*other), "{spec}");
    }
}
