//! Accidents: flipped bits, lost tails, bytes that were never a filter.

use crate::common::{arrivals, observe_all, small, variants};
use everbloom::codec::{MAGIC, MAX_NOTE_BYTES, encode, encode_compressed_to, encode_noted_to};
use everbloom::{AnyFilter, Error};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;

fn used(spec: &str) -> AnyFilter {
    let mut filter = small(spec, 5);
    observe_all(&mut *filter, &arrivals(600, 500, 1));
    filter
}

/// The message of a refusal: one line, with a remedy.
fn refusal(bytes: &[u8]) -> Option<String> {
    let error = KINDS.decoder().decode(bytes).err()?;
    assert!(!matches!(error, Error::Io { .. } | Error::OutOfMemory { .. }), "{error}");
    let text = error.to_string();
    assert!(!text.contains('\n') && text.contains(';'), "{text}");
    Some(text)
}

#[test]
fn every_flipped_byte_is_noticed() {
    for spec in variants() {
        let mut bytes = encode(&*used(&spec));
        for at in 0..bytes.len() {
            for flip in [0xff, 0x01, 0x80] {
                bytes[at] ^= flip;
                assert!(refusal(&bytes).is_some(), "{spec}: byte {at} ^ {flip:#x} went unnoticed");
                bytes[at] ^= flip;
            }
        }
        assert!(refusal(&bytes).is_none(), "{spec}");
    }
}

#[test]
fn every_truncation_is_noticed() {
    for spec in variants() {
        let bytes = encode(&*used(&spec));
        for length in 0..bytes.len() {
            assert!(refusal(&bytes[..length]).is_some(), "{spec} cut to {length} bytes went unnoticed");
            // Nor when the caller believes in the old length, as after a cut between stat and read.
            assert!(KINDS.decoder().read(&mut &bytes[..length], bytes.len() as u64).is_err(), "{spec} cut to {length}");
        }
    }
}

#[test]
fn what_follows_the_end_is_noticed() {
    for spec in variants() {
        let bytes = encode(&*used(&spec));
        for extra in [1, 7, 64, 4096] {
            let longer = [&bytes[..], &vec![0; extra]].concat();
            assert!(refusal(&longer).is_some(), "{spec} with {extra} bytes more");
        }
        assert!(refusal(&[&bytes[..], &bytes[..]].concat()).is_some(), "{spec} twice");
    }
}

#[test]
fn bytes_that_were_never_a_filter_are_refused() {
    let mut generator = Generator::seeded(1);
    for round in 0..20_000u64 {
        let mut bytes: Vec<u8> = (0..generator.below(300)).map(|_| generator.bits() as u8).collect();
        if round % 2 == 0 {
            bytes.splice(0..bytes.len().min(8), MAGIC);
        }
        assert!(refusal(&bytes).is_some(), "{bytes:?}");
        assert!(KINDS.decoder().summarise(&mut &bytes[..], bytes.len() as u64).is_err(), "{bytes:?}");
    }
    let text = refusal(b"user-1\nuser-2\n").expect("a text file");
    assert!(text.contains("not an everbloom filter"), "{text}");
    let text = refusal(b"").expect("an empty file");
    assert!(text.contains("empty"), "{text}");
}

#[test]
fn a_newer_version_says_so() {
    let mut bytes = encode(&*small("bloom", 0));
    bytes[8] = 2;
    let error = KINDS.decoder().decode(&bytes).expect_err("a newer version");
    assert!(matches!(error, Error::Version { found: 2, supported: 1 }), "{error}");
    assert!(error.to_string().contains("upgrade"), "{error}");
}

#[test]
fn a_note_comes_back_beside_the_filter_and_is_no_part_of_it() {
    for spec in ["bloom", "stable", "bloom:shards=2"] {
        let filter = used(spec);
        let note_of =
            |bytes: &[u8]| KINDS.decoder().summarise(&mut &*bytes, bytes.len() as u64).expect("a header").note;
        for note in ["", "x", r#"{"key":"2"}"#, &"ä".repeat(MAX_NOTE_BYTES / 2)] {
            let (mut plain, mut compressed) = (Vec::new(), Vec::new());
            encode_noted_to(&*filter, note, &mut plain).expect("a vector takes every write");
            encode_compressed_to(&*filter, note, &mut compressed).expect("a vector takes every write");
            for bytes in [plain, compressed] {
                assert_eq!(note_of(&bytes), note);
                let copy = KINDS.decoder().limit(1 << 24).decode(&bytes).expect("a filter");
                assert_eq!(encode(&*copy), encode(&*filter), "{spec}");
            }
        }
        for note in ["x".repeat(MAX_NOTE_BYTES + 1), "\0".into()] {
            assert!(encode_noted_to(&*filter, &note, &mut Vec::new()).is_err());
        }
        assert_eq!(note_of(&encode(&*filter)), "");
    }
}
