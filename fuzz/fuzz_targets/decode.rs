//! Any bytes: an error, or a filter that works.
#![no_main]

use everbloom_all::KINDS;
use everbloom::{Filter, FilterExt, Importance};
use everbloom::codec::{encode, encode_compressed};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

const FIXED: usize = 72;

/// The bytes with right checksums wherever the lengths they claim lie inside them, so that the fuzzer
/// gets past the first gate.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes.len() < FIXED {
        return bytes;
    }
    let sections = u64::from(number(&bytes, 56)) + u64::from(number(&bytes, 60));
    let header = (FIXED as u64 + sections + 8).next_multiple_of(64) as usize;
    if header + 8 > bytes.len() {
        return bytes;
    }
    let checksum = xxh3_64(&bytes[..header - 8]);
    bytes[header - 8..header].copy_from_slice(&checksum.to_le_bytes());
    let end = bytes.len() - 8;
    let checksum = xxh3_64(&bytes[header..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// What a compressed body may unpack to.
const LIMIT: u64 = 1 << 20;

fn try_decode(bytes: &[u8]) {
    let Ok(mut filter) = KINDS.decoder().limit(LIMIT).decode(bytes) else { return };
    let again = encode(&*filter);
    let copy = KINDS.decoder().decode(&again).expect("a filter's own bytes");
    assert_eq!(encode(&*copy), again);
    let packed = encode_compressed(&*filter);
    assert!(packed.len() <= again.len());
    assert_eq!(encode(&*KINDS.decoder().limit(again.len() as u64).decode(&packed).expect("its own bytes")), again);
    let answers = |filter: &dyn Filter| (0..64u64).map(|key| filter.contains(&key)).collect::<Vec<_>>();
    assert_eq!(answers(&*filter), answers(&*copy));
    for key in 0..64u64 {
        filter.observe(&key, Importance::FULL);
    }
    let status = filter.status();
    assert!((0.0..=1.0).contains(&status.fill) && (0.0..=1.0).contains(&status.estimated_fpr));
    assert!(KINDS.decoder().decode(&encode(&*filter)).is_ok());
}

fuzz_target!(|bytes: &[u8]| {
    try_decode(bytes);
    try_decode(&sealed(bytes.to_vec()));
});
