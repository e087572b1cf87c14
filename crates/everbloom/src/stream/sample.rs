//! Learning what a stream is like from a part of it, at the stream's speed and in bounded memory.
//!
//! Keys are sampled by hash: of a chosen key every arrival is kept, with the number of arrivals before it,
//! so its lags are exact. When there are too many, every second key is dropped. What was kept is at once
//! the distribution of lags and a stream to simulate on: a filter of a part of the memory that sees the
//! part of the keys has the rates of the whole one.

use super::Stream;
use super::footprint::LagCurve;
use super::scaled::{LastSeen, ScaledStream};
use crate::key::KeyHash;
use crate::promise::{Error, Importance, ImportanceMix, Importances, Result};
use libm::{exp2, log2};

/// Arrivals that are kept: 24 MiB.
const MOST_KEPT: usize = 1 << 20;

/// With fewer repeats than this nothing is learned about them: 4σ would be a fifth.
const FEWEST_REPEATS: usize = 400;

/// Buckets of lags for each doubling.
const STEPS_PER_OCTAVE: f64 = 4.0;

/// A stream as it is being learned.
///
/// ```
/// use everbloom::{Hashing, Importances, Key};
/// use everbloom::internal::stream::Sample;
///
/// let hashing = Hashing::default();
/// let mut sample = Sample::default();
/// for round in 0..10u64 {
///     let hashes: Vec<_> = (0..1000u64).map(|key| (key * (1 + round % 2)).hash_with(&hashing)).collect();
///     sample.observe(&hashes, Importances::default());
/// }
/// let stream = sample.finish()?;
/// assert_eq!((stream.arrivals(), stream.distinct()), (10_000, 1_500));
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Sample {
    arrivals: u64,
    /// One key in 2^halvings is kept.
    halvings: u32,
    records: Vec<Record>,
    weighted: bool,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    hash: KeyHash,
    arrival: u64,
    importance: Importance,
}

/// Whether a key is in the first of 2^`halvings` parts.
fn is_kept(hash: KeyHash, halvings: u32) -> bool {
    hash.shard(1 << halvings) == 0
}

impl Sample {
    /// Learns from the next arrivals.
    pub fn observe(&mut self, hashes: &[KeyHash], importances: Importances<'_>) {
        self.weighted |= matches!(importances, Importances::Each(_));
        for (index, hash) in hashes.iter().enumerate() {
            if is_kept(*hash, self.halvings) {
                let importance = importances.at(index);
                self.records.push(Record { hash: *hash, arrival: self.arrivals + index as u64, importance });
            }
        }
        self.arrivals += hashes.len() as u64;
        while self.records.len() > MOST_KEPT && self.halvings < 40 {
            self.halvings += 1;
            let halvings = self.halvings;
            self.records.retain(|record| is_kept(record.hash, halvings));
        }
    }

    /// What was learned; an error if there were too few repeats to learn from.
    pub fn finish(self) -> Result<Stream> {
        let kept = Kept::new(self.records, self.halvings, self.arrivals, self.weighted);
        let repeats = kept.records.len() - kept.distinct_kept;
        if repeats < FEWEST_REPEATS {
            return Err(Error::Infeasible {
                wanted: "a forecast from this sample".into(),
                reason: format!("only {repeats} of its {} arrivals are repeats", self.arrivals),
                remedy: format!(
                    "give a sample with at least {FEWEST_REPEATS}, or describe the stream: uniform, zipf:1"
                ),
            });
        }
        let mix = self.weighted.then(|| ImportanceMix::of(kept.records.iter().map(|record| record.importance)));
        Ok(Stream::learned(self.arrivals, kept, mix))
    }
}

/// What was kept of a stream.
#[derive(Debug)]
pub(crate) struct Kept {
    records: Vec<Record>,
    halvings: u32,
    distinct_kept: usize,
    weighted: bool,
    curve: LagCurve,
}

impl Kept {
    fn new(records: Vec<Record>, halvings: u32, arrivals: u64, weighted: bool) -> Self {
        let mut last = LastSeen::default();
        let each = exp2(f64::from(halvings));
        let (mut distinct_kept, mut counts) = (0, vec![0.0; (64.0 * STEPS_PER_OCTAVE) as usize + 1]);
        for record in &records {
            match last.lag(key_of(record.hash), record.arrival as usize) {
                0 => distinct_kept += 1,
                // There is room for a lag only at arrivals − lag places.
                lag => counts[bucket(f64::from(lag))] += each / (arrivals as f64 - f64::from(lag)).max(1.0),
            }
        }
        let upper = |bucket: usize| exp2((bucket as f64 + 1.0) / STEPS_PER_OCTAVE).min(arrivals as f64);
        let mut below = 0.0;
        let curve = LagCurve::through(counts.iter().enumerate().map(|(at, share)| {
            below += share;
            (upper(at), 1.0 - below)
        }));
        Kept { records, halvings, distinct_kept, weighted, curve }
    }

    pub(super) fn distinct(&self) -> u64 {
        (self.distinct_kept as u64) << self.halvings
    }

    pub(super) fn curve(&self) -> &LagCurve {
        &self.curve
    }

    /// The keys of one part in about `divisor`, another one in the next round; the divisor is rounded to a power of two.
    pub(super) fn scaled_down(&self, divisor: f64, round: u64) -> ScaledStream {
        let halvings = (log2(divisor).round().max(0.0) as u32).clamp(self.halvings, 40);
        let divisor = exp2(f64::from(halvings));
        let mut scaled = ScaledStream::empty(divisor);
        let mut last = LastSeen::default();
        // The first part of those that were kept has parts of its own, which come first.
        let part = round % (1 << (halvings - self.halvings));
        for record in self.records.iter().filter(|record| record.hash.shard(1 << halvings) == part) {
            let lag = last.lag(key_of(record.hash), record.arrival as usize);
            scaled.hashes.push(record.hash);
            scaled.lags.push(if lag == 0 { 0 } else { ((f64::from(lag) / divisor) as u32).max(1) });
            if self.weighted {
                scaled.importances.push(record.importance);
            }
        }
        scaled
    }
}

fn key_of(hash: KeyHash) -> u64 {
    hash.high ^ hash.low.rotate_left(32)
}

fn bucket(lag: f64) -> usize {
    (log2(lag) * STEPS_PER_OCTAVE) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Generator, Hashing};

    fn learn(arrivals: u64, universe: u64) -> Stream {
        let (hashing, mut generator) = (Hashing::default(), Generator::seeded(5));
        let mut sample = Sample::default();
        let hashes: Vec<_> = (0..arrivals).map(|_| hashing.hash_u64(generator.below(universe))).collect();
        hashes.chunks(4096).for_each(|part| sample.observe(part, Importances::default()));
        sample.finish().expect("enough repeats")
    }

    #[test]
    fn a_learned_stream_has_the_footprint_of_the_one_it_comes_from() {
        let (learned, told) = (learn(200_000, 100_000), Stream::uniform(200_000, 86_466).expect("a stream"));
        for arrivals in [1e3, 1e4, 1e5, 2e5] {
            let (found, wanted) = (learned.footprint().distinct(arrivals), told.footprint().distinct(arrivals));
            assert!((found / wanted - 1.0).abs() < 0.02, "{found} of {arrivals}, not {wanted}");
        }
    }

    #[test]
    fn a_long_stream_is_thinned_by_keys() {
        let stream = learn(1_300_000, 400_000);
        assert_eq!(stream.arrivals(), 1_300_000);
        let wanted = 400_000.0 * (1.0 - (-1.3e6f64 / 4e5).exp());
        // Kept keys are a binomial half.
        assert!((stream.distinct() as f64 - wanted).abs() < 4.0 * wanted.sqrt(), "{}", stream.distinct());
        let scaled = ScaledStream::new(&stream, 1.0, 0, 0);
        assert_eq!(scaled.divisor, 2.0);
        assert!((600_000..700_000).contains(&scaled.hashes.len()));
    }

    #[test]
    fn too_short_a_sample_says_what_would_do() {
        let mut sample = Sample::default();
        sample.observe(&[KeyHash::default(); 10], Importances::default());
        let error = sample.finish().expect_err("nine repeats").to_string();
        assert!(error.contains("only 9") && error.contains("400"), "{error}");
    }
}
