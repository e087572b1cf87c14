//! Views: the same answers as a decoded filter, from bytes that stay where they are.

use crate::common::{arrivals, build, observe_all, small, variants};
use crate::document::Document;
use everbloom::codec::{encode, encode_compressed};
use everbloom::{AnyFilter, Error, Goal, Hashing, Key, KeyHash, SecretKey, View};
use everbloom_all::KINDS;

/// Bytes that start at a multiple of 64, as a mapping does.
struct Aligned {
    room: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let mut room = vec![0; bytes.len() + 64];
        let start = room.as_ptr().align_offset(64);
        room[start..start + bytes.len()].copy_from_slice(bytes);
        Aligned { room, start, length: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.room[self.start..self.start + self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.start + self.length]
    }
}

const SPECS: [&str; 2] = ["bloom", "blocked"];

fn used(spec: &str) -> AnyFilter {
    let mut filter = small(spec, 5);
    observe_all(&mut *filter, &arrivals(600, 500, 1));
    filter
}

fn open(bytes: &[u8]) -> everbloom::Result<String> {
    View::open_among(KINDS, Aligned::new(bytes).bytes(), None).map(|view| view.spec().to_string())
}

#[test]
fn a_view_answers_as_the_filter_does() {
    for spec in SPECS {
        // Small enough for the caches, and too large for them, where batches fetch ahead.
        for items in [500u64, 12_000_000] {
            let goal = Goal::new().expected_items(items).fpr(0.05).hashing(Hashing::seeded(3));
            let mut filter = build(spec, &goal);
            filter.insert_batch(&(0..items / 2).collect::<Vec<_>>());
            let bytes = Aligned::new(&encode(&*filter));
            let view = View::open_among(KINDS, bytes.bytes(), None).expect("a filter");
            view.verify().expect("whole");
            assert_eq!((view.spec(), view.promise()), (filter.spec(), filter.promise()));
            let hashes: Vec<KeyHash> = (0..5000u64).map(|key| (key * 997).hash_with(view.hashing())).collect();
            let (mut seen, mut expected) = (vec![false; hashes.len()], vec![false; hashes.len()]);
            view.contains_hashes(&hashes, &mut seen);
            filter.contains_hashes(&hashes, &mut expected);
            assert_eq!(seen, expected, "{spec} of {items}");
            assert!(hashes.iter().zip(&expected).all(|(hash, found)| view.contains_hash(*hash) == *found), "{spec}");
        }
    }
}

#[test]
fn opening_notices_a_damaged_header_and_any_wrong_length() {
    for spec in SPECS {
        let bytes = encode(&*used(spec));
        let header = bytes.len() - Document::parse(&bytes).body.len() - 64;
        let mut damaged = Aligned::new(&bytes);
        for at in 0..header {
            for flip in [0xff, 0x01, 0x80] {
                damaged.bytes_mut()[at] ^= flip;
                assert!(
                    View::open_among(KINDS, damaged.bytes(), None).is_err(),
                    "{spec}: byte {at} ^ {flip:#x} went unnoticed"
                );
                damaged.bytes_mut()[at] ^= flip;
            }
        }
        for length in 0..bytes.len() {
            assert!(open(&bytes[..length]).is_err(), "{spec} cut to {length} bytes");
        }
        for extra in [1, 64, 4096] {
            assert!(open(&[&bytes[..], &vec![0; extra]].concat()).is_err(), "{spec} with {extra} bytes more");
        }
    }
}

#[test]
fn verifying_notices_every_flipped_byte_of_the_body() {
    for spec in SPECS {
        let bytes = encode(&*used(spec));
        let start = bytes.len() - Document::parse(&bytes).body.len() - 64;
        let mut damaged = Aligned::new(&bytes);
        for at in start..bytes.len() {
            damaged.bytes_mut()[at] ^= 0x10;
            let view = View::open_among(KINDS, damaged.bytes(), None).expect("only the body is damaged");
            assert!(view.verify().is_err(), "{spec}: byte {at}");
            view.contains(&1u64);
            drop(view);
            damaged.bytes_mut()[at] ^= 0x10;
        }
    }
    // Set bits behind the end, under a right checksum.
    let document = Document::parse(&encode(&*used("bloom:num_bits=9000,num_hashes=3")));
    let lie = document.with_body(vec![0xff; document.body.len()]).bytes();
    assert!(KINDS.decoder().decode(&lie).is_err());
    assert!(View::open_among(KINDS, Aligned::new(&lie).bytes(), None).expect("a header").verify().is_err());
}

#[test]
fn lies_about_sizes_are_refused() {
    for spec in SPECS {
        let document = Document::parse(&encode(&*used(spec)));
        let own = String::from_utf8(document.spec.clone()).expect("text");
        for lie in ["512", "1152921504606846976", "18446744073709551615", "0"] {
            let bits = own.split([':', ',']).find(|word| word.starts_with("num_bits=")).expect("its bits");
            let text = own.replace(bits, &format!("num_bits={lie}"));
            assert!(open(&document.with_spec(text).bytes()).is_err(), "{spec} with {lie} bits");
        }
        for claim in [0, 1 << 20, u64::MAX - 8, u64::MAX] {
            assert!(open(&document.claiming_body(claim).bytes()).is_err(), "{spec} claiming {claim}");
        }
    }
}

#[test]
fn unmappable_filter_names_a_remedy() {
    for spec in variants().iter().filter(|spec| !SPECS.contains(&spec.as_str())) {
        let filter = small(spec, 5);
        if SPECS.contains(&filter.spec().kind()) && filter.spec().get("shards").is_none() {
            continue;
        }
        let error = open(&encode(&*filter)).expect_err("not viewable");
        assert!(
            matches!(error, Error::Unsupported { .. }) && error.to_string().contains("decode it"),
            "{spec}: {error}"
        );
    }
    let mut sparse = build("bloom", &Goal::new().expected_items(10_000).fpr(0.01));
    sparse.insert("key");
    let error = open(&encode_compressed(&*sparse)).expect_err("compressed");
    assert!(error.to_string().contains("without compression"), "{error}");
    let bytes = Aligned::new(&[&[0], &encode(&*used("bloom"))[..]].concat());
    let error = View::open_among(KINDS, &bytes.bytes()[1..], None).expect_err("not aligned");
    assert!(error.to_string().contains("multiple of 64"), "{error}");
}

#[test]
fn a_secret_key_is_asked_for() {
    let key = || SecretKey::new(*b"k3y-that-nobody!");
    let mut filter = build("blocked", &Goal::new().expected_items(100).fpr(0.01).hashing(Hashing::keyed(key())));
    filter.insert("key");
    let bytes = Aligned::new(&encode(&*filter));
    assert!(matches!(View::open_among(KINDS, bytes.bytes(), None), Err(Error::SecretKey { .. })));
    assert!(View::open_among(KINDS, bytes.bytes(), Some(key())).expect("the right key").contains("key"));
}
