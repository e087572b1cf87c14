//! Any bytes as a scheme: an error, or one that encodes to what it was decoded from and loses no key.
#![no_main]

use everbloom_tune::{Popularity, Scheme};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

fn try_scheme(bytes: &[u8]) {
    let Ok(scheme) = Scheme::decode(bytes) else { return };
    assert_eq!(scheme.encode(), bytes);
    let scheme = Arc::new(scheme);
    let Ok(mut filter) = Popularity::with_scheme(&scheme, 4096) else { return };
    for key in 0..64u64 {
        filter.insert(&key);
        assert!(filter.contains(&key));
    }
}

/// The bytes with the length they claim and the checksum made right, so that the fuzzer gets past the first gate.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < 56 {
        return bytes;
    }
    let end = bytes.len() - 8;
    let rest = (end - 48) as u64;
    bytes[40..48].copy_from_slice(&rest.to_le_bytes());
    let checksum = xxh3_64(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    try_scheme(bytes);
    try_scheme(&sealed(bytes.to_vec()));
});
