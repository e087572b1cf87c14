//! Crafted bytes: every checksum right, every claim suspect.

use crate::common::{arrivals, observe_all, small, variants};
use crate::document::Document;
use everbloom::codec::{MAGIC, encode};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn documents() -> Vec<(String, Document)> {
    let used = |spec: String| {
        let mut filter = small(&spec, 5);
        observe_all(&mut *filter, &arrivals(600, 500, 1));
        let bytes = encode(&*filter);
        let document = Document::parse(&bytes);
        assert_eq!(document.bytes(), bytes, "{spec}: the layout is not the one documented");
        (spec, document)
    };
    variants().into_iter().map(used).collect()
}

fn refused(document: &Document, what: &str) {
    let Err(error) = KINDS.decoder().decode(&document.bytes()) else { panic!("{what} went unnoticed") };
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 1000, "{what}: {text}");
}

#[test]
fn lengths_that_lie_are_refused() {
    for (spec, document) in documents() {
        for claim in [0, 1, 63, 64, 1 << 20, 1 << 40, 1 << 63, u64::MAX - 71, u64::MAX - 8, u64::MAX] {
            refused(&document.claiming_body(claim), &format!("{spec} with a body of {claim} bytes"));
        }
        refused(&document.with_body(Vec::new()), &format!("{spec} without a body"));
        let longer = [&document.body[..], &[0; 64]].concat();
        refused(&document.with_body(longer), &format!("{spec} with a longer body"));
        for length in 0..document.state.len() {
            let cut = document.state[..length].to_vec();
            refused(&document.with_state(cut), &format!("{spec} with {length} bytes of state"));
        }
        for extra in [1, 8, 65_536 - document.state.len(), 65_537, 1 << 20] {
            let longer = [&document.state[..], &vec![0; extra]].concat();
            refused(&document.with_state(longer), &format!("{spec} with {extra} more bytes of state"));
        }
    }
}

#[test]
fn identities_that_lie_are_refused() {
    for (spec, document) in documents() {
        for id in (0..=u16::MAX).step_by(97).chain(KINDS.iter().map(|kind| kind.id)) {
            let lie = document.with(10, &id.to_le_bytes());
            if lie.fixed != document.fixed {
                refused(&lie, &format!("{spec} under id {id}"));
            }
        }
        // 3 is the same hash with the key's length in it: another filter, but a filter.
        for hash_id in (0..=255u8).filter(|id| ![1, 3, document.fixed[12]].contains(id)) {
            refused(&document.with(12, &[hash_id]), &format!("{spec} with hash {hash_id}"));
        }
        for coding in 1..=255u8 {
            refused(&document.with(13, &[coding]), &format!("{spec} with coding {coding}"));
        }
        for at in [14, 15] {
            refused(&document.with(at, &[1]), &format!("{spec} with byte {at} set"));
        }
        for version in [0u16, 2, 3, 256, u16::MAX] {
            refused(&document.with(8, &version.to_le_bytes()), &format!("{spec} of version {version}"));
        }
        for rate in [f64::NAN, f64::INFINITY, -1.0, 1.5] {
            refused(&document.with(32, &rate.to_le_bytes()), &format!("{spec} predicting {rate}"));
        }
        for rate in [f64::INFINITY, -1.0, 1.5] {
            refused(&document.with(40, &rate.to_le_bytes()), &format!("{spec} predicting an FNR of {rate}"));
        }
    }
}

/// What was written when a key had other bits would miss every key, were it read.
#[test]
fn filters_of_earlier_kinds_are_refused_with_what_to_do() {
    let retired =
        [("bloom", 1), ("counting", 3), ("scalable", 32), ("spectral", 33), ("popularity", 40), ("stacked", 41)];
    let mut tried = 0;
    for (spec, document) in documents() {
        let kind = spec.split(':').next().unwrap_or_default();
        for (_, id) in retired.iter().filter(|(name, _)| *name == kind) {
            let id = id | u16::from(spec.contains("shards=")) << 15;
            let error =
                KINDS.decoder().decode(&document.with(10, &u16::to_le_bytes(id)).bytes()).expect_err("other bits");
            assert!(error.to_string().ends_with("build it again from its keys"), "{spec}: {error}");
            tried += 1;
        }
    }
    assert_eq!(tried, 12, "each of them, whole and in shards");
}

#[test]
fn specs_that_lie_are_refused() {
    let all = documents();
    for (spec, document) in &all {
        let own = String::from_utf8(document.spec.clone()).expect("a spec is text");
        for other in all.iter().map(|(_, other)| &other.spec).filter(|other| **other != document.spec) {
            let lie = document.with_spec(other.clone());
            // Another variant of the same kind and size may be just another filter; not another kind.
            if other.split(|byte| *byte == b':').next() != document.spec.split(|byte| *byte == b':').next() {
                refused(&lie, &format!("{spec} as {}", String::from_utf8_lossy(other)));
            }
        }
        let texts: [&[u8]; 9] = [
            b"",
            b":",
            b"bloom",
            b"auto",
            b"\xff\xfe",
            b"bloom:num_bits=,num_hashes=",
            &[b'a'; 5000],
            &[b','; 65_536],
            b"\0",
        ];
        for text in texts {
            refused(&document.with_spec(text), &format!("{spec} as {} bytes of nonsense", text.len()));
        }
        // Every number of the spec in turn, made huge, zero or odd.
        let words: Vec<(&str, &str)> = own
            .split_once(':')
            .map_or(Vec::new(), |(_, words)| words.split(',').filter_map(|w| w.split_once('=')).collect());
        for (word, value) in words.iter().filter(|(_, value)| value.parse::<u64>().is_ok()) {
            for lie in ["0", "18446744073709551615", "1152921504606846976", "-1", "NaN", "1e9", ""] {
                let text = own.replace(&format!("{word}={value}"), &format!("{word}={lie}"));
                if lie.parse::<u64>().is_ok() {
                    // A number that says nothing about sizes may be any; then the filter is no larger.
                    let bytes = document.with_spec(text.clone()).bytes();
                    let memory = KINDS.decoder().decode(&bytes).map_or(0, |filter| filter.memory_bits());
                    // An index that is not stored may take as much again.
                    assert!(memory <= bytes.len() as u64 * 16, "{text}: {memory} bits from {} bytes", bytes.len());
                } else {
                    refused(&document.with_spec(text.clone()), &text);
                }
            }
        }
    }
}

#[test]
fn filters_within_filters_within_filters_are_refused() {
    for (spec, document) in documents().into_iter().filter(|(_, document)| document.body.starts_with(&MAGIC)) {
        let mut nested = document.clone();
        for depth in 0..8 {
            nested = document.with_body(nested.bytes());
            refused(&nested, &format!("{spec} nested {depth} times in itself"));
        }
        // As many parts as there should be, but each a whole such filter again.
        let part = document.bytes();
        refused(&document.with_body(part.repeat(3)), &format!("{spec} made of three like itself"));
        refused(
            &document.with_body(document.body[..document.body.len() / 3].to_vec()),
            &format!("{spec} with one part"),
        );
    }
}

#[test]
fn lies_within_shards_are_no_trap() {
    for (spec, document) in documents().into_iter().filter(|(_, document)| document.body.starts_with(&MAGIC)) {
        for fill in [0x00, 0x01, 0x7f, 0xff] {
            for (body, state) in [(true, false), (false, true), (true, true)] {
                let crafted = document.with_parts(|part| {
                    if body {
                        part.body.fill(fill);
                    }
                    if state {
                        part.state.fill(fill);
                    }
                });
                let Ok(mut filter) = KINDS.decoder().decode(&crafted.bytes()) else { continue };
                filter.status();
                observe_all(&mut *filter, &arrivals(300, 200, 2));
                filter.status();
                assert!(KINDS.decoder().decode(&encode(&*filter)).is_ok(), "{spec}, parts filled with {fill:#x}");
            }
        }
        let other_seed = document.with_parts(|part| part.fixed[16] ^= 1);
        refused(&other_seed, &format!("{spec} with parts of another seed"));
        let mut first = true;
        let one_odd = document.with_parts(|part| part.fixed[16] ^= u8::from(std::mem::take(&mut first)));
        refused(&one_odd, &format!("{spec} with one part of another seed"));
    }
}

#[test]
fn crafted_sections_give_an_error_or_a_working_filter() {
    let mut generator = Generator::seeded(3);
    let mut survived = 0;
    for (spec, document) in documents() {
        for _ in 0..1500 {
            let mut crafted = document.clone();
            let sections: [&mut [u8]; 4] =
                [&mut crafted.fixed[8..], &mut crafted.spec, &mut crafted.state, &mut crafted.body];
            for section in sections {
                for _ in 0..generator.below(3) {
                    if let Some(byte) = section.get_mut(generator.below(section.len().max(1) as u64) as usize) {
                        *byte = if generator.below(2) == 0 {
                            generator.bits() as u8
                        } else {
                            *byte ^ 1 << generator.below(8)
                        };
                    }
                }
            }
            let bytes = crafted.bytes();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let Ok(mut filter) = KINDS.decoder().decode(&bytes) else { return 0 };
                observe_all(&mut *filter, &arrivals(300, 200, 2));
                let status = filter.status();
                assert!(
                    (0.0..=1.0).contains(&status.fill) && (0.0..=1.0).contains(&status.estimated_fpr),
                    "{status:?}"
                );
                let again = encode(&*filter);
                assert_eq!(encode(&*KINDS.decoder().decode(&again).expect("its own bytes")), again);
                1
            }));
            survived += outcome.unwrap_or_else(|_| panic!("{spec}, crafted, panics: {bytes:?}"));
        }
    }
    assert!(survived > 1000, "only {survived} crafted filters got past the header: the test tests nothing");
}

#[test]
fn all_ones_and_all_zeros_are_no_trap() {
    for (spec, document) in documents() {
        for fill in [0x00, 0xff, 0x55, 0x80] {
            for (body, state) in [(true, false), (false, true), (true, true)] {
                let mut crafted = document.clone();
                if body {
                    crafted.body.fill(fill);
                }
                if state {
                    crafted.state.fill(fill);
                }
                let Ok(mut filter) = KINDS.decoder().decode(&crafted.bytes()) else { continue };
                observe_all(&mut *filter, &arrivals(300, 200, 2));
                filter.status();
                assert!(KINDS.decoder().decode(&encode(&*filter)).is_ok(), "{spec} filled with {fill:#x}");
            }
        }
    }
}

/// Counts of what a filter has seen may be anything; going on from there must not overflow.
#[test]
fn numbers_at_their_limits_are_refused_or_counted_on_from() {
    for (spec, document) in documents() {
        for at in 0..document.state.len() / 8 {
            for number in [u64::MAX, u64::MAX - 1, 1 << 63, 0] {
                let mut state = document.state.clone();
                state[8 * at..][..8].copy_from_slice(&number.to_le_bytes());
                if let Ok(mut filter) = KINDS.decoder().decode(&document.with_state(state).bytes()) {
                    let going_on = AssertUnwindSafe(|| observe_all(&mut *filter, &arrivals(300, 250, 2)));
                    assert!(catch_unwind(going_on).is_ok(), "{spec} with {number} as number {at} of its state");
                }
            }
        }
    }
}
