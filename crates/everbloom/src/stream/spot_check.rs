//! How many repeats a filter missed, from a sample of the keys.
//!
//! Keys are sampled by hash: of a chosen key every arrival is kept with the filter's verdict, so what was missed of it is
//! known exactly. When there are too many, every second key is dropped.

use super::scaled::LastSeen;
use crate::key::KeyHash;
use crate::promise::Verdict;

/// Arrivals that are kept: 1.5 MiB.
const MOST_KEPT: usize = 1 << 16;

/// Fewer misses than this of a sample of the keys do not tell how many there are of all: 2σ would be a half.
const FEWEST_MISSED: u64 = 16;

/// A filter's verdicts on some of the keys.
///
/// ```
/// use everbloom::internal::stream::SpotCheck;
/// use everbloom::{Hashing, Verdict};
///
/// let hashes = [1u64, 2, 1, 2].map(|key| Hashing::default().hash_u64(key));
/// let mut check = SpotCheck::default();
/// check.observe(&hashes, &[Verdict::Distinct, Verdict::Distinct, Verdict::Distinct, Verdict::Duplicate]);
/// let missed = check.finish();
/// assert_eq!((missed.repeats(), missed.one_in, missed.mostly_after), (Some(1.0), 1, 1));
/// ```
#[derive(Debug, Default)]
pub struct SpotCheck {
    arrivals: u64,
    /// One key in 2^halvings is kept.
    halvings: u32,
    records: Vec<Record>,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    hash: KeyHash,
    arrival: u64,
    verdict: Verdict,
}

/// Both halves of a hash: filters find their cells with one of them, and all cells are to be checked.
fn mixed(hash: KeyHash) -> u64 {
    hash.high ^ hash.low.rotate_left(32)
}

/// Whether a key is in the sample. This is asked for every arrival, so it costs next to nothing.
fn is_kept(hash: KeyHash, halvings: u32) -> bool {
    mixed(hash) & ((1 << halvings) - 1) == 0
}

/// What a filter missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// Repeats of the keys in the sample that it called new.
    pub found: u64,
    /// One key in so many is in the sample.
    pub one_in: u64,
    /// Three quarters of what it missed came more than so many arrivals after its key was last seen.
    pub mostly_after: u64,
}

impl Missed {
    /// Repeats of all keys that it called new, about; nothing if the sample does not tell.
    pub fn repeats(&self) -> Option<f64> {
        (self.one_in == 1 || self.found >= FEWEST_MISSED).then_some(self.found as f64 * self.one_in as f64)
    }
}

impl SpotCheck {
    /// Takes note of the next verdicts.
    pub fn observe(&mut self, hashes: &[KeyHash], verdicts: &[Verdict]) {
        for (arrival, (hash, verdict)) in (self.arrivals..).zip(hashes.iter().zip(verdicts)) {
            if is_kept(*hash, self.halvings) {
                self.records.push(Record { hash: *hash, arrival, verdict: *verdict });
            }
        }
        self.arrivals += hashes.len() as u64;
        while self.records.len() > MOST_KEPT && self.halvings < 40 {
            self.halvings += 1;
            let halvings = self.halvings;
            self.records.retain(|record| is_kept(record.hash, halvings));
        }
    }

    /// What was missed.
    pub fn finish(self) -> Missed {
        let mut last = LastSeen::default();
        let mut lags: Vec<u32> = self
            .records
            .iter()
            .filter_map(|record| {
                let lag = last.lag(mixed(record.hash), record.arrival as usize);
                (lag > 0 && record.verdict.is_distinct()).then_some(lag)
            })
            .collect();
        lags.sort_unstable();
        let quarter = lags.get(lags.len() / 4).copied().unwrap_or(0);
        let (found, mostly_after) = (lags.len() as u64, u64::from(quarter.saturating_sub(1)));
        Missed { found, one_in: 1 << self.halvings, mostly_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Generator, Hashing};
    use crate::promise::{Goal, Importances};
    use std::collections::HashSet;

    #[test]
    fn a_sample_tells_what_a_filter_misses() {
        let plan = Goal::new().memory_bits(1 << 17).fpr(0.01).plan("ranked").expect("plans");
        let mut filter = plan.build().expect("fits");
        let (hashing, mut generator) = (Hashing::default(), Generator::seeded(7));
        let (mut check, mut seen, mut missed) = (SpotCheck::default(), HashSet::new(), 0.0f64);
        for _ in 0..100 {
            let keys: Vec<u64> = (0..4096).map(|_| generator.below(30_000)).collect();
            let hashes: Vec<_> = keys.iter().map(|key| hashing.hash_u64(*key)).collect();
            let mut verdicts = vec![Verdict::Distinct; hashes.len()];
            filter.observe_hashes(&hashes, Importances::default(), &mut verdicts).expect("as many importances");
            let wrong = |(key, verdict): (&u64, &Verdict)| !seen.insert(*key) && verdict.is_distinct();
            missed += keys.iter().zip(&verdicts).map(wrong).filter(|wrong| *wrong).count() as f64;
            check.observe(&hashes, &verdicts);
        }
        let found = check.finish();
        assert!(found.one_in > 1 && missed > 10_000.0, "{missed} missed");
        // Each of the 30,000 keys is kept with its misses, about missed / 30,000, with probability 1 / one_in.
        let noise = (missed / 30_000.0) * (30_000.0 * (found.one_in as f64 - 1.0)).sqrt();
        let told = found.repeats().expect("many are missed");
        assert!((told - missed).abs() < 4.0 * noise, "{found:?}, not {missed}");
    }

    #[test]
    fn few_misses_of_a_sample_tell_nothing_and_of_all_keys_everything() {
        let hashing = Hashing::default();
        let hashes = |count: u64| (0..count).map(|key| hashing.hash_u64(key)).collect::<Vec<_>>();
        let mut all = SpotCheck::default();
        all.observe(&hashes(1000), &[Verdict::Distinct; 1000]);
        assert_eq!(all.finish().repeats(), Some(0.0));
        let mut some = SpotCheck::default();
        some.observe(&hashes(100_000), &[Verdict::Distinct; 100_000]);
        let missed = some.finish();
        assert_eq!((missed.repeats(), missed.found, missed.one_in), (None, 0, 2));
    }
}
