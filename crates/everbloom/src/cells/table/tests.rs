//! The table against sets of the standard library, while it grows and while it is loaded.

use super::*;
use crate::key::{Hashing, Key, finalise};
use std::collections::BTreeSet;

fn hash(key: u64) -> KeyHash {
    key.hash_with(&Hashing::default())
}

#[test]
fn agrees_with_a_set_while_it_grows_whatever_the_batches() {
    let keys: Vec<KeyHash> = (0..600_000u64).map(|key| hash(key * key % 400_009)).collect();
    for (batch, asks) in [(1000, false), (1000, true), (7777, true)] {
        let (mut ours, mut theirs) = (HashTable::new().expect("memory"), BTreeSet::new());
        for hashes in keys.chunks(batch) {
            let mut verdicts = vec![Verdict::Distinct; hashes.len()];
            if asks {
                ours.make_room(hashes).expect("memory");
            }
            ours.observe(hashes, &mut verdicts);
            for (hash, verdict) in hashes.iter().zip(verdicts) {
                assert_eq!(verdict.is_distinct(), theirs.insert(hash.high));
            }
        }
        assert_eq!((ours.len(), ours.refused()), (theirs.len() as u64, 0));
        assert!(ours.sorted().eq(theirs.iter().copied()));
        assert!(theirs.iter().all(|bits| ours.contains(*bits)));
        assert!(!(1_000_000..1_010_000).any(|key| ours.contains(hash(key).high)));
    }
}

#[test]
fn hashes_that_crowd_one_line_all_fit() {
    for (count, what) in [(300, "the first run of lines"), (50_000, "one part")] {
        let mut table = HashTable::new().expect("memory");
        assert!((0..count).all(|low| table.insert(u64::MAX - low)), "{what}");
        assert!((0..count).all(|low| !table.insert(u64::MAX - low)), "{what}");
        assert!((0..count).all(|low| table.contains(u64::MAX - low)), "{what}");
    }
}

#[test]
fn hashes_in_full_lines_are_found_again_however_often_the_part_grows() {
    let mut table = HashTable::new().expect("memory");
    // One part, and in it runs of neighbours, 30 to a line: nearly all of them spill.
    let bits = |key: u64| (finalise(key / 30) >> PART_BITS & !31) + key % 30 + 1;
    for key in 0..60_000 {
        assert!(table.insert(bits(key)), "{key}");
        if key % 1000 == 0 {
            assert!((0..=key).all(|key| !table.insert(bits(key))), "at {key}");
        }
    }
    assert_eq!(table.len(), 60_000);
}

#[test]
fn memory_stays_within_sixteen_bytes_a_key_beyond_the_first_pages() {
    let mut table = HashTable::new().expect("memory");
    for key in 0..3_000_000u64 {
        table.insert(hash(key).high);
        if key > 500_000 && key % 10_007 == 0 {
            let bytes_per_key = table.memory_bits() as f64 / 8.0 / table.len() as f64;
            assert!(bytes_per_key < 16.0, "{bytes_per_key} at {key}");
        }
    }
}

#[test]
fn sorted_hashes_are_loaded_as_if_they_had_come_one_by_one() {
    for count in [0, 1, 700, 90_112, 90_113, 300_000] {
        let mut one_by_one = HashTable::new().expect("memory");
        (0..count).for_each(|key| {
            one_by_one.insert(hash(key).high);
        });
        let mut loaded = HashTable::from_sorted(one_by_one.sorted().map(Ok), count).expect("spread as hashes are");
        assert!(loaded.sorted().eq(one_by_one.sorted()), "{count}");
        assert!((0..count).all(|key| loaded.contains(hash(key).high)), "{count}");
        assert!((count..2 * count + 9).all(|key| loaded.insert(hash(key).high)), "{count} goes on");
        assert!((0..2 * count + 9).all(|key| !loaded.insert(hash(key).high)), "{count} has all");
    }
}

#[test]
fn what_is_no_set_of_hashes_is_not_loaded() {
    for count in [20_000, 100_000, 2_000_000] {
        assert!(HashTable::from_sorted((1..=count).map(Ok), count).is_err(), "{count}");
    }
    // Each part has its share, all of it in one place.
    let crowded = (0..64u64).flat_map(|part| (1..=20_000).map(move |low| Ok(part << 58 | low)));
    assert!(HashTable::from_sorted(crowded, 1_280_000).is_err());
}

#[test]
fn a_few_keys_take_a_few_lines() {
    let mut table = HashTable::new().expect("memory");
    assert_eq!(table.memory_bits(), FIRST_BITS);
    (0..100).for_each(|key| {
        table.insert(hash(key).high);
    });
    assert!(table.memory_bits() <= 8 * 4096, "{} bits", table.memory_bits());
}
