//! What a batch takes in Rust, for those who call the library from elsewhere: `cargo bench --bench batches -- KEYS`.
//!
//! It prints one line for each sort of key, with the nanoseconds of CPU time that a key takes to be inserted and to be
//! asked for in vain: the least of several rounds. The keys and the filter are those of the Python package's
//! `tests/speed.py`, which puts its own numbers beside them.

mod harness;

use everbloom::{AnyFilter, FilterExt, Goal};
use everbloom_all::KINDS;
use everbloom_cells::key::{Keys, Packed};
use harness::per_item;

const ROUNDS: usize = 3;

fn main() {
    let count = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1_000_000usize);
    // Any keys do that are unlike each other.
    let key = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
    let inside: Vec<u64> = (0..count).map(key).collect();
    let outside: Vec<u64> = (count..2 * count).map(key).collect();
    report("u64", count, &inside[..], &outside[..]);
    let (inside, outside) = (texts(&inside), texts(&outside));
    report("text", count, &packed(&inside), &packed(&outside));
}

fn packed((bytes, offsets): &(Vec<u8>, Vec<i32>)) -> Packed<'_, i32> {
    Packed::new(bytes, offsets).expect("rising offsets")
}

/// A column of addresses, and where each ends.
fn texts(numbers: &[u64]) -> (Vec<u8>, Vec<i32>) {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
    for number in numbers {
        bytes.extend_from_slice(format!("https://example.org/{number:012x}").as_bytes());
        offsets.push(bytes.len() as i32);
    }
    (bytes, offsets)
}

fn report(name: &str, count: usize, inside: &(impl Keys + ?Sized), outside: &(impl Keys + ?Sized)) {
    let (mut insert, mut ask) = (f64::INFINITY, f64::INFINITY);
    let mut found = vec![false; count];
    for _ in 0..ROUNDS {
        let goal = Goal::new().filter("blocked").expected_items(count as u64).fpr("1%");
        let mut filter: AnyFilter = goal.build_among(KINDS).expect("a filter");
        insert = insert.min(per_item(count, || filter.as_mut().insert_keys(inside)));
        ask = ask.min(per_item(count, || filter.as_ref().contains_keys(outside, &mut found)));
        assert!(found.iter().filter(|found| **found).count() < count / 50, "the rate is not kept");
    }
    println!("{name} {insert:.2} {ask:.2}");
}
