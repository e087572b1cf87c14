//! Learning what a stream is like from a part of it, at the stream's speed and in bounded memory.
//!
//! As long as all arrivals fit they are all kept. When there are too many, an arrival is kept for one of two reasons:
//!
//! - **its key was chosen**, one key in 2^halvings, by its hash: of such a key every arrival is kept, so its lags are
//!   exact, and a filter of that part of the memory which sees those keys has the rates of the whole one;
//! - **the arrival itself was chosen**, one in 2^halvings. This is how the hottest keys are accounted for, one by one: a
//!   key that carries a twentieth of the stream is among the chosen keys or not, and either way the sample would not be
//!   like the stream.
//!
//! Every key counts in one of the two ways only: [`Kept`] decides which.

use super::Stream;
use super::kept::{Kept, key_of};
use super::scaled::Mixed;
use everbloom::{Error, Importance, ImportanceMix, Importances, KeyHash, Result};
use everbloom_cells::key::finalise;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

/// Arrivals that are kept for each reason: 128 MiB, and as much again while they are sorted out.
const MOST_KEPT: usize = 1 << 22;

/// With fewer repeats than this nothing is learned about them: 4σ would be a fifth.
pub(crate) const FEWEST_REPEATS: usize = 400;

/// A key with more than one in so many of the arrivals that are kept is hot: sampling the others by key then errs by about
/// the root of this share at most, 3 %.
pub(super) const COLD_PARTS: u64 = 1024;

/// A key with fewer arrivals than this is not called hot: chance would decide.
pub(super) const FEWEST_OF_HOT: u64 = 8;

/// What is known of keys, by their hash.
pub(super) type ByKey<T> = HashMap<u64, T, BuildHasherDefault<Mixed>>;

/// A stream as it is being learned.
///
/// ```
/// use everbloom::{Hashing, Importances, Key};
/// use everbloom_forecast::stream::Sample;
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
#[derive(Debug)]
pub struct Sample {
    pub(super) arrivals: u64,
    /// One key and one arrival in 2^halvings is kept.
    pub(super) halvings: u32,
    /// The arrivals of chosen keys; all of them at first.
    pub(super) by_key: Vec<Record>,
    /// Chosen arrivals; none at first.
    pub(super) by_arrival: Vec<Record>,
    /// Keys known to be hot, of which no more is kept by key.
    pub(super) hot: HashSet<u64, BuildHasherDefault<Mixed>>,
    pub(super) weighted: bool,
    most_kept: usize,
}

/// One arrival.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) hash: KeyHash,
    pub(super) arrival: u64,
    pub(super) importance: Importance,
}

/// Whether a key is in the first of 2^`halvings` parts.
fn is_kept(hash: KeyHash, halvings: u32) -> bool {
    hash.shard(1 << halvings) == 0
}

/// The bits by which arrivals are chosen: nothing about the stream can agree with them.
pub(super) fn lot(arrival: u64) -> u64 {
    finalise(arrival ^ 0x5851_f42d_4c95_7f2d)
}

fn is_chosen(arrival: u64, halvings: u32) -> bool {
    lot(arrival) & ((1 << halvings) - 1) == 0
}

/// How often each key is among some arrivals.
pub(super) fn count(records: &[Record]) -> ByKey<u64> {
    let mut counts = ByKey::default();
    records.iter().for_each(|record| *counts.entry(key_of(record.hash)).or_default() += 1);
    counts
}

impl Default for Sample {
    fn default() -> Self {
        Sample {
            arrivals: 0,
            halvings: 0,
            by_key: Vec::new(),
            by_arrival: Vec::new(),
            hot: HashSet::default(),
            weighted: false,
            most_kept: MOST_KEPT,
        }
    }
}

impl Sample {
    /// One that keeps fewer arrivals.
    pub fn keeping(most_kept: usize) -> Self {
        Sample { most_kept, ..Sample::default() }
    }

    /// Learns from the next arrivals.
    pub fn observe(&mut self, hashes: &[KeyHash], importances: Importances<'_>) {
        self.weighted |= matches!(importances, Importances::Each(_));
        for (index, hash) in hashes.iter().enumerate() {
            let arrival = self.arrivals + index as u64;
            let record = || Record { hash: *hash, arrival, importance: importances.at(index) };
            if is_kept(*hash, self.halvings) && (self.hot.is_empty() || !self.hot.contains(&key_of(*hash))) {
                self.by_key.push(record());
            }
            if self.halvings > 0 && is_chosen(arrival, self.halvings) {
                self.by_arrival.push(record());
            }
        }
        self.arrivals += hashes.len() as u64;
        while self.by_key.len().max(self.by_arrival.len()) > self.most_kept && self.halvings < 40 {
            self.thin_out();
        }
    }

    /// Lets go of hot keys, where that is enough, or else of every second key and arrival.
    fn thin_out(&mut self) {
        if self.halvings == 0 {
            self.by_arrival = self.by_key.clone();
        }
        let least = (self.by_key.len() as u64 / COLD_PARTS).max(FEWEST_OF_HOT);
        self.hot.extend(count(&self.by_key).iter().filter(|(_, count)| **count > least).map(|(key, _)| *key));
        let hot = &self.hot;
        self.by_key.retain(|record| !hot.contains(&key_of(record.hash)));
        if self.halvings == 0 || self.by_key.len().max(self.by_arrival.len()) > self.most_kept {
            self.halvings += 1;
            let halvings = self.halvings;
            self.by_key.retain(|record| is_kept(record.hash, halvings));
            self.by_arrival.retain(|record| is_chosen(record.arrival, halvings));
        }
    }

    /// What was learned; an error if there were too few repeats to learn from.
    pub fn finish(self) -> Result<Stream> {
        let (arrivals, weighted) = (self.arrivals, self.weighted);
        let kept = Kept::new(self);
        let repeats = kept.repeats();
        if repeats < FEWEST_REPEATS {
            return Err(Error::Infeasible {
                wanted: "a forecast from this sample".into(),
                reason: format!("only {repeats} of its {arrivals} arrivals are repeats"),
                remedy: format!(
                    "give a sample with at least {FEWEST_REPEATS}, or describe the stream: uniform, zipf:1"
                ),
            });
        }
        let mix = weighted.then(|| ImportanceMix::of(kept.importances()));
        Ok(Stream::learned(arrivals, kept, mix))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scaled::ScaledStream;
    use super::*;
    use everbloom::Hashing;
    use everbloom_cells::key::Generator;

    fn learn(arrivals: u64, universe: u64, most_kept: usize) -> Stream {
        let mut generator = Generator::seeded(5);
        learned((0..arrivals).map(|_| generator.below(universe)), most_kept)
    }

    fn learned(keys: impl Iterator<Item = u64>, most_kept: usize) -> Stream {
        let hashing = Hashing::default();
        let mut sample = Sample::keeping(most_kept);
        let hashes: Vec<_> = keys.map(|key| hashing.hash_u64(key)).collect();
        hashes.chunks(4096).for_each(|part| sample.observe(part, Importances::default()));
        sample.finish().expect("enough repeats")
    }

    #[test]
    fn a_learned_stream_has_the_footprint_of_the_one_it_comes_from() {
        let told = Stream::uniform(200_000, 86_466).expect("a stream");
        for most_kept in [MOST_KEPT, 1 << 16] {
            let learned = learn(200_000, 100_000, most_kept);
            for arrivals in [1e3, 1e4, 1e5, 2e5] {
                let (found, wanted) = (learned.footprint().distinct(arrivals), told.footprint().distinct(arrivals));
                assert!((found / wanted - 1.0).abs() < 0.02, "{found} of {arrivals}, not {wanted}");
            }
        }
    }

    #[test]
    fn a_long_stream_is_thinned_by_keys() {
        let stream = learn(1_300_000, 400_000, 1 << 20);
        assert_eq!(stream.arrivals(), 1_300_000);
        let wanted = 400_000.0 * (1.0 - (-1.3e6f64 / 4e5).exp());
        // Kept keys are a binomial half.
        assert!((stream.distinct() as f64 - wanted).abs() < 4.0 * wanted.sqrt(), "{}", stream.distinct());
        let scaled = ScaledStream::new(&stream, 1.0, 0, 0);
        assert_eq!(scaled.divisor, 2.0);
        assert!((600_000..700_000).contains(&scaled.hashes.len()));
    }

    /// One key has a quarter of the arrivals, eight have a tenth together, and the rest are drawn from many.
    fn with_hot_keys(arrivals: u64) -> impl Iterator<Item = u64> {
        let mut generator = Generator::seeded(11);
        (0..arrivals).map(move |_| match generator.below(40) {
            0..10 => 0,
            10..14 => 1 + generator.below(8),
            _ => 100 + generator.below(50_000),
        })
    }

    #[test]
    fn hot_keys_have_their_share_of_a_thinned_stream() {
        let arrivals = 400_000;
        let all: Vec<u64> = with_hot_keys(arrivals).collect();
        let distinct = all.iter().collect::<HashSet<_>>().len() as f64;
        for (most_kept, divisor) in
            [(MOST_KEPT, 1.0), (MOST_KEPT, 8.0), (1 << 17, 1.0), (1 << 15, 1.0), (1 << 15, 64.0)]
        {
            let stream = learned(all.iter().copied(), most_kept);
            for round in 0..2 {
                let scaled = ScaledStream::new(&stream, divisor, 0, round);
                let (length, divisor) = (scaled.hashes.len() as f64, scaled.divisor);
                // 65 % of the arrivals are of some 50,000 keys with five each, of which one in `divisor` is there; hot
                // arrivals are thrown one by one.
                let cold = 0.65 * arrivals as f64;
                let sigma = ((cold * 6.2 + 0.35 * arrivals as f64) / divisor).sqrt();
                let wanted = arrivals as f64 / divisor;
                assert!((length - wanted).abs() <= 4.0 * sigma, "{length} of {wanted} at {divisor}, {most_kept}");
                let new = scaled.lags.iter().filter(|lag| **lag == 0).count() as f64;
                let sigma = (distinct / divisor).sqrt() + 1.0;
                assert!((new - distinct / divisor).abs() <= 4.0 * sigma, "{new} new at {divisor}, {most_kept}");
            }
        }
    }

    #[test]
    fn a_short_stream_is_the_same_for_the_next_who_asks() {
        for most_kept in [MOST_KEPT, 1 << 15] {
            let stream = learned(with_hot_keys(100_000), most_kept);
            for divisor in [8.0, 64.0, 8.0] {
                let [first, again] = [(); 2].map(|()| ScaledStream::new(&stream, divisor, 0, 0));
                assert_eq!((&first.hashes, &first.lags, &first.is_hot), (&again.hashes, &again.lags, &again.is_hot));
                let other = ScaledStream::new(&stream, divisor, 0, 1);
                assert_ne!(first.hashes, other.hashes, "another round has other arrivals");
                assert_eq!(first.divisor, divisor);
            }
        }
    }

    #[test]
    fn a_key_that_turns_hot_late_does_not_crowd_out_the_others() {
        let (mut generator, arrivals) = (Generator::seeded(3), 1_000_000u64);
        let late = |at: u64| at > 600_000 && at.is_multiple_of(2);
        let stream = learned((0..arrivals).map(|at| if late(at) { 7 } else { generator.below(100_000) }), 1 << 16);
        let scaled = ScaledStream::new(&stream, 1.0, 0, 0);
        let wanted = arrivals as f64 / scaled.divisor;
        // Of the others one key in `divisor` is kept, with eight arrivals each.
        let sigma = (wanted * 9.0).sqrt();
        assert!((scaled.hashes.len() as f64 - wanted).abs() < 4.0 * sigma, "{} of {wanted}", scaled.hashes.len());
        assert!(scaled.divisor <= 32.0, "{}", scaled.divisor);
    }

    #[test]
    fn too_short_a_sample_says_what_would_do() {
        let mut sample = Sample::default();
        sample.observe(&[KeyHash::default(); 10], Importances::default());
        let error = sample.finish().expect_err("nine repeats").to_string();
        assert!(error.contains("only 9") && error.contains("400"), "{error}");
    }
}
