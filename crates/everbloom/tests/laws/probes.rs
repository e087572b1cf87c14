//! Probe positions against the theory of independent ones.

use crate::common::{Keys, binomial_error};
use everbloom::filters::bloom::{Bloom, Size};
use everbloom::{Filter, Hashing, KeyHash};

const HASHES: u32 = 30;

fn hash(keys: Keys, index: u64) -> KeyHash {
    Hashing::seeded(1).hash(&keys.key(index))
}

/// Mean and standard deviation of the occupied share of `cells` cells after `balls` uniform throws: exact.
fn occupancy(cells: f64, balls: f64) -> (f64, f64) {
    let (one_empty, two_empty) = ((1.0 - 1.0 / cells).powf(balls), (1.0 - 2.0 / cells).powf(balls));
    let variance = cells * one_empty + cells * (cells - 1.0) * two_empty - (cells * one_empty).powi(2);
    (1.0 - one_empty, variance.sqrt() / cells)
}

#[test]
fn thirty_probes_fill_and_answer_as_independent_ones_would() {
    let (items, queries) = (2000u64, 12_000_000u64);
    for keys in [Keys::Random, Keys::Sequential] {
        let size = Size::new(46_000, HASHES).expect("a size");
        let mut filter = Bloom::new(size, Hashing::seeded(1)).expect("small");
        for index in 0..items {
            filter.insert_hash(hash(keys, index));
        }
        let (mean, error) = occupancy(46_000.0, (items * u64::from(HASHES)) as f64);
        let fill = filter.status().fill;
        assert!((fill - mean).abs() <= 4.0 * error, "{keys:?}: fill {fill}, {mean} ± {error} expected");
        // Given the fill, a foreign key finds all its cells set with fill^30, exactly.
        let rate = fill.powi(HASHES as i32);
        let found = (0..queries).filter(|index| filter.contains((1 << 32) + index)).count() as f64;
        let (expected, error) = (rate * queries as f64, binomial_error(rate, queries as f64) * queries as f64);
        assert!((found - expected).abs() <= 4.0 * error, "{keys:?}: {found} found, {expected} ± {error} expected");
    }
}

/// How far a chi-square statistic with equal expected counts lies from its mean, in standard deviations.
fn chi_square_deviation(counts: &[u64]) -> f64 {
    let cells = counts.len() as f64;
    let expected = counts.iter().sum::<u64>() as f64 / cells;
    let statistic: f64 = counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    (statistic - (cells - 1.0)) / (2.0 * (cells - 1.0)).sqrt()
}

#[test]
fn positions_are_uniform_beyond_two_to_the_32_cells() {
    for range in [(1u64 << 33) + 1, (1 << 40) - 87, 1 << 50] {
        for keys in Keys::ALL {
            let (mut high, mut low) = (vec![0u64; 256], vec![0u64; 256]);
            for index in 0..20_000 {
                let hash = hash(keys, index);
                for position in hash.probes(range).take(HASHES as usize).chain(hash.places(range).take(HASHES as usize))
                {
                    assert!(position < range);
                    high[(u128::from(position) * 256 / u128::from(range)) as usize] += 1;
                    low[(position % 256) as usize] += 1;
                }
            }
            for (part, counts) in [("high", high), ("low", low)] {
                let deviation = chi_square_deviation(&counts);
                assert!(deviation <= 4.0, "{keys:?} in {range} cells, {part} bits: {deviation} σ");
            }
        }
    }
}

#[test]
fn positions_form_no_progression() {
    for keys in [Keys::Random, Keys::Sequential] {
        holds_no_progression(1 << 20, |index, range| hash(keys, index).probes(range).take(HASHES as usize).collect());
        // A power of two, another even number and an odd one: the next of their positions comes from what the range leaves.
        for range in [1 << 20, 999_998, 1_000_003] {
            holds_no_progression(range, |index, range| hash(keys, index).places(range).take(HASHES as usize).collect());
        }
    }
}

/// Neighbours together, and how far three of them are from evenly spaced: what plain double hashing gets wrong. Every
/// second position, too, because that is how those of a [`places`](KeyHash::places) come from each other.
fn holds_no_progression(range: u64, positions: impl Fn(u64, u64) -> Vec<u64>) {
    let positions: Vec<Vec<u64>> = (0..40_000).map(|index| positions(index, range)).collect();
    let part = |position: u64, parts: u64| (u128::from(position) * u128::from(parts) / u128::from(range)) as usize;
    let mut worst: f64 = 0.0;
    for (first, apart) in (1..=2).flat_map(|apart| (0..HASHES as usize - 2 * apart).map(move |first| (first, apart))) {
        let (mut joint, mut bend) = (vec![0u64; 256], vec![0u64; 256]);
        for positions in &positions {
            let [one, two, three] = [positions[first], positions[first + apart], positions[first + 2 * apart]];
            joint[part(one, 16) << 4 | part(two, 16)] += 1;
            bend[part((one + three + 2 * (range - two)) % range, 256)] += 1;
        }
        worst = worst.max(chi_square_deviation(&joint)).max(chi_square_deviation(&bend));
    }
    // The largest of 108 statistics: 5.5 σ of a chi-square with 255 degrees is less than one chance in 10^4 for all.
    assert!(worst <= 5.5, "{range}: {worst} σ");
}

#[test]
fn a_shard_says_nothing_about_positions() {
    // Keys of one of eight shards still use every part of a filter evenly.
    let mut counts = vec![0u64; 256];
    let mut fingerprints = vec![0u64; 256];
    let mut kept = 0;
    for index in 0..400_000 {
        let hash = hash(Keys::Sequential, index);
        if hash.shard(8) == 3 {
            kept += 1;
            counts[hash.index(256) as usize] += 1;
            fingerprints[(hash.low >> 56) as usize] += 1;
        }
    }
    let share = f64::from(kept) / 400_000.0;
    assert!((share - 0.125).abs() <= 4.0 * binomial_error(0.125, 400_000.0), "{share}");
    let deviation = chi_square_deviation(&counts).max(chi_square_deviation(&fingerprints));
    assert!(deviation <= 4.0, "{deviation} σ");
}
