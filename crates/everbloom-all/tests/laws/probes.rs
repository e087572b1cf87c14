//! Probe positions against the theory of independent ones.

use crate::common::{Keys, binomial_error};
use everbloom::filters::bloom::{Bloom, Size};
use everbloom::{Filter, Hashing, Key, KeyHash};

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

/// Counts of many cells beside what was due, each in its own standard deviations.
#[derive(Default)]
struct Deviations(Vec<(f64, String)>);

impl Deviations {
    /// Fewer are due than a normal distribution describes: nothing is learned from them.
    const LEAST_VARIANCE: f64 = 25.0;

    fn add(&mut self, cell: String, counted: f64, expected: f64, variance: f64) {
        if variance >= Self::LEAST_VARIANCE {
            self.0.push(((counted - expected) / variance.sqrt(), cell));
        }
    }

    /// Holds each cell to 5 σ, which of 1,000 cells none exceeds but once in 1,700 times, and the mean of the squares, which
    /// a small error in all of them would raise, to 4 of its own.
    fn check(&self) {
        let count = self.0.len() as f64;
        assert!(count > 100.0, "only {count} cells");
        for (deviation, cell) in &self.0 {
            assert!(deviation.abs() <= 5.0, "{cell}: {deviation} σ");
        }
        let mean = self.0.iter().map(|(deviation, _)| deviation * deviation).sum::<f64>() / count;
        // The square of a normal variable has variance 2; that of a count has 1/expected more.
        let error = ((2.0 + 1.0 / Self::LEAST_VARIANCE) / count).sqrt();
        assert!((mean - 1.0).abs() <= 4.0 * error, "mean square {mean}, 1 ± {error} expected");
    }
}

const HASH_COUNTS: [usize; 10] = [1, 2, 3, 4, 5, 7, 11, 16, 23, 30];

#[test]
fn places_fill_and_answer_as_independent_ones_in_tiny_filters_and_in_powers_of_two() {
    const QUERIES: u64 = 20_000;
    let mut deviations = Deviations::default();
    // A hash that carries the key's length has eight bits less; all of these keys are equally long.
    for (keys, hashing) in [
        (Keys::Random, Hashing::seeded(1)),
        (Keys::Sequential, Hashing::seeded(0)),
        (Keys::Sequential, Hashing::measured(7)),
    ] {
        let mut next = 0;
        for (cells, num_hashes) in [64u64, 128, 1000, 1024, 4096, 1 << 16]
            .into_iter()
            .flat_map(|cells| HASH_COUNTS.map(|num_hashes| (cells, num_hashes)))
        {
            for target in [0.5f64, 0.93] {
                let items = (-(1.0 - target).ln() * cells as f64 / num_hashes as f64).ceil() as u64;
                // Many small filters, or the same few bits would be asked over and over.
                let filters = (4096 / cells).clamp(1, 40);
                let asked = QUERIES / filters;
                let (mut filled, mut found) = ([0.0; 3], [0.0; 3]);
                for _ in 0..filters {
                    let mut places = |index: u64| hashing.hash(&keys.key(next + index)).places(cells).take(num_hashes);
                    let mut bits = vec![false; cells as usize];
                    (0..items).flat_map(&mut places).for_each(|place| bits[place as usize] = true);
                    let set = bits.iter().filter(|bit| **bit).count() as f64;
                    let (mean, error) = occupancy(cells as f64, (items * num_hashes as u64) as f64);
                    let rate = (set / cells as f64).powi(num_hashes as i32);
                    let passed = |index: &u64| places(items + index).all(|place| bits[place as usize]);
                    let passed = (0..asked).filter(passed).count() as f64;
                    let of = |counts: &mut [f64; 3], more: [f64; 3]| (0..3).for_each(|at| counts[at] += more[at]);
                    of(&mut filled, [set, mean * cells as f64, (error * cells as f64).powi(2)]);
                    of(&mut found, [passed, rate * asked as f64, rate * (1.0 - rate) * asked as f64]);
                    next += items + asked;
                }
                let cell = format!("{keys:?}, {}, {num_hashes} of {cells} cells, {target}", hashing.name());
                deviations.add(format!("fill: {cell}"), filled[0], filled[1], filled[2]);
                deviations.add(format!("found: {cell}"), found[0], found[1], found[2]);
            }
        }
    }
    deviations.check();
}

#[test]
fn places_answer_as_independent_ones_beyond_two_to_the_32_cells() {
    const QUERIES: u64 = 20_000;
    let mut deviations = Deviations::default();
    let mut next = 0;
    for cells in [1u64 << 32, (1 << 33) + 64, 1 << 36, (1 << 40) - 87, 1 << 50] {
        for keys in [Keys::Random, Keys::Sequential] {
            for num_hashes in HASH_COUNTS {
                for fill in [0.5f64, 0.93] {
                    // A filter without its memory: whether a bit is set is another hash's affair.
                    let limit = (fill * 2f64.powi(64)) as u64;
                    let is_set = |place: u64| place.hash_with(&Hashing::seeded(next)).high < limit;
                    let passed = |index: &u64| hash(keys, *index).places(cells).take(num_hashes).all(is_set);
                    let found = (next..next + QUERIES).filter(passed).count() as f64;
                    let (rate, asked) = (fill.powi(num_hashes as i32), QUERIES as f64);
                    let cell = format!("{keys:?}, {num_hashes} of {cells} cells, {fill}");
                    deviations.add(cell, found, rate * asked, rate * (1.0 - rate) * asked);
                    next += QUERIES;
                }
            }
        }
    }
    deviations.check();
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
