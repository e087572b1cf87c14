//! The exact truth: which arrivals have been here before.
//!
//! [`Oracle`] remembers every key by its 128-bit hash (two keys of a trillion share one with
//! probability 10^-15), [`IdOracle`] keys that are small numbers, in a bit each. Where the truth does
//! not fit in memory, an [`Oracle`] can remember a hashed share of the keys only: it then knows
//! everything about those keys and nothing about the others, so rates over the sample are unbiased.

use crate::bad;
use everbloom::{Error, KeyHash, Result};
use everbloom_cells::key::ByHash;
use std::collections::BTreeMap;

/// What is known about an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Truth {
    /// Its key is outside the sample.
    #[default]
    Unknown,
    /// Its key is new.
    Distinct,
    /// Its key has been here.
    Duplicate,
}

impl Truth {
    fn from_seen(seen: bool) -> Self {
        if seen { Truth::Duplicate } else { Truth::Distinct }
    }
}

/// What is remembered of a key.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    repeats: u32,
    /// The repeats a key that has been there from the start would have had, when this one came.
    missed: f32,
}

/// The truth about keys known by their hash.
#[derive(Debug, Clone)]
pub struct Oracle {
    seen: ByHash<KeyHash, Record>,
    sample: f64,
    expected_repeats: f64,
}

impl Default for Oracle {
    fn default() -> Self {
        Oracle { seen: ByHash::default(), sample: 1.0, expected_repeats: 0.0 }
    }
}

impl Oracle {
    /// An oracle that knows a share of the keys, chosen by hash.
    pub fn sampling(share: f64) -> Result<Self> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(bad("truth_sample", share, "above 0 and at most 1", "try 0.1 or 10%"));
        }
        Ok(Oracle { sample: share, ..Oracle::default() })
    }

    /// The share of keys it knows.
    pub fn sample(&self) -> f64 {
        self.sample
    }

    /// The truth about the next arrival.
    #[inline]
    pub fn judge(&mut self, hash: KeyHash) -> Truth {
        if self.sample < 1.0 && share_of(hash) >= self.sample {
            return Truth::Unknown;
        }
        let missed = self.expected_repeats as f32;
        let (seen, known) = match self.seen.entry(hash) {
            std::collections::hash_map::Entry::Occupied(mut record) => {
                record.get_mut().repeats = record.get().repeats.saturating_add(1);
                (true, 0)
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(Record { repeats: 0, missed });
                (false, 1)
            }
        };
        if known == 0 {
            self.expected_repeats += 1.0 / self.seen.len() as f64;
        }
        Truth::from_seen(seen)
    }

    /// The truth about a batch; an error if there is no memory for its keys.
    pub fn judge_all(&mut self, hashes: &[KeyHash], truths: &mut Vec<Truth>) -> Result<()> {
        truths.clear();
        // All may be new. With this room, none of what follows allocates.
        let room = self.seen.try_reserve(hashes.len()).and_then(|()| truths.try_reserve(hashes.len()));
        room.map_err(|_| Error::OutOfMemory { bytes: self.bytes_when_larger() })?;
        truths.extend(hashes.iter().map(|&hash| self.judge(hash)));
        Ok(())
    }

    /// About what the next larger table takes: twice as many keys, each with its record and a byte.
    fn bytes_when_larger(&self) -> u64 {
        let each = size_of::<(KeyHash, Record)>() + 1;
        ((self.seen.capacity() * 2).next_power_of_two() * each) as u64
    }

    /// How the repeats are spread over the keys so far.
    pub fn repeats(&self) -> Repeats {
        let mut repeats = Repeats { keys_by_repeats: BTreeMap::new(), dispersion: None };
        let (mut misfit, mut keys) = (0.0, 0.0);
        for record in self.seen.values() {
            *repeats.keys_by_repeats.entry(record.repeats).or_default() += 1;
            let expected = self.expected_repeats - f64::from(record.missed);
            // Pearson's χ² needs a few repeats to be expected; the last keys have hardly any.
            if expected > 0.5 {
                misfit += (f64::from(record.repeats) - expected).powi(2) / expected;
                keys += 1.0;
            }
        }
        repeats.dispersion = (keys >= 100.0).then(|| misfit / keys);
        repeats
    }
}

/// How repeats are spread over keys.
#[derive(Debug, Clone, Default)]
pub struct Repeats {
    /// Number of keys that had this many repeats.
    pub keys_by_repeats: BTreeMap<u32, u64>,
    /// The variance of repeats over keys, compared with repeats that fall evenly on the keys seen so
    /// far: 1 for a uniform stream, more where some keys or the recent ones are preferred. `None`
    /// with too few repeats to tell.
    pub dispersion: Option<f64>,
}

impl Repeats {
    /// Whether the repeats look evenly spread: the variance within 10 % of what chance gives.
    pub fn even(&self) -> bool {
        self.dispersion.is_some_and(|dispersion| (0.9..=1.1).contains(&dispersion))
    }
}

/// Where a key falls in 0..1, for sampling: a mix of its own, so that the sample is independent of
/// the positions and shards that filters derive from the same hash.
fn share_of(hash: KeyHash) -> f64 {
    let mut mixed = hash.low.rotate_left(23) ^ hash.high.wrapping_mul(0xa076_1d64_78bd_642f);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xe703_7ed1_a0b4_28db);
    mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0x8ebc_6af0_9c88_c6e3);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The truth about keys that are small numbers.
#[derive(Debug, Clone, Default)]
pub struct IdOracle {
    words: Vec<u64>,
}

impl IdOracle {
    /// The truth about the next arrival. Memory grows to one bit for every id up to the largest.
    #[inline]
    pub fn judge(&mut self, id: u64) -> Truth {
        let (word, bit) = ((id / 64) as usize, 1 << (id % 64));
        if word >= self.words.len() {
            self.words.resize((word + 1).next_power_of_two(), 0);
        }
        let seen = self.words[word] & bit != 0;
        self.words[word] |= bit;
        Truth::from_seen(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::{Hashing, Key};
    use everbloom_cells::key::Generator;

    fn hash(key: u64) -> KeyHash {
        key.hash_with(&Hashing::default())
    }

    #[test]
    fn both_oracles_tell_the_truth() {
        let (mut by_hash, mut by_id) = (Oracle::default(), IdOracle::default());
        let mut seen = std::collections::BTreeSet::new();
        let mut generator = Generator::seeded(1);
        for _ in 0..20_000 {
            let key = generator.below(10_000);
            let truth = Truth::from_seen(!seen.insert(key));
            assert_eq!((by_hash.judge(hash(key)), by_id.judge(key)), (truth, truth));
        }
    }

    #[test]
    fn a_sample_knows_all_about_its_share_of_keys() {
        let (mut whole, mut sampling) = (Oracle::default(), Oracle::sampling(0.1).expect("a share"));
        let mut generator = Generator::seeded(2);
        let mut known = 0u32;
        for _ in 0..200_000 {
            let hash = hash(generator.below(100_000));
            let (truth, sampled) = (whole.judge(hash), sampling.judge(hash));
            assert!(sampled == truth || sampled == Truth::Unknown);
            known += u32::from(sampled != Truth::Unknown);
        }
        // A key has two arrivals on average, and all or none of them are sampled.
        let sigma = (100_000.0f64 * 0.1 * 0.9 * 6.0).sqrt();
        assert!((f64::from(known) - 20_000.0).abs() < 4.0 * sigma, "{known} of 200,000 at 10 %");
    }

    #[test]
    fn the_sample_is_independent_of_shards() {
        let sampled: Vec<_> = (0..100_000u64).map(hash).filter(|&hash| share_of(hash) < 0.1).collect();
        for shard in 0..8 {
            let there = sampled.iter().filter(|hash| hash.shard(8) == shard).count() as f64;
            let expected = sampled.len() as f64 / 8.0;
            assert!((there - expected).abs() < 4.5 * expected.sqrt(), "{there} in shard {shard}, not {expected}");
        }
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        for share in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(Oracle::sampling(share).is_err(), "{share}");
        }
    }

    #[test]
    fn uniform_repeats_are_even_and_others_are_not() {
        let mut generator = Generator::seeded(3);
        let [mut uniform, mut skewed, mut recent] = [(); 3].map(|()| Oracle::default());
        for i in 0..200_000u64 {
            uniform.judge(hash(generator.below(60_000)));
            skewed.judge(hash((generator.unit() * generator.unit() * 60_000.0) as u64));
            recent.judge(hash(i / 3 + generator.below(100)));
        }
        assert!(uniform.repeats().even(), "{:?}", uniform.repeats().dispersion);
        assert!(!skewed.repeats().even(), "{:?}", skewed.repeats().dispersion);
        assert!(!recent.repeats().even(), "{:?}", recent.repeats().dispersion);
    }
}
