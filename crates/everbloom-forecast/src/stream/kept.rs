//! What was kept of a stream, and how it is played to a smaller filter.

use super::footprint::LagCurve;
use super::sample::{ByKey, COLD_PARTS, FEWEST_OF_HOT, Record, Sample, count, lot};
use super::scaled::{LastSeen, ScaledStream};
use everbloom::{Importance, KeyHash};
use everbloom_cells::key::finalise;
use libm::{exp2, log2};
use std::sync::{Mutex, PoisonError};

/// Buckets of lags for each doubling.
const STEPS_PER_OCTAVE: f64 = 4.0;

/// What was kept of a stream.
#[derive(Debug)]
pub(crate) struct Kept {
    arrivals: u64,
    halvings: u32,
    /// Every arrival of some of the keys.
    cold: Vec<Record>,
    /// For each of those: arrivals since the key was last seen, 0 if it is new; and how often it comes in all.
    lags: Vec<u32>,
    counts: Vec<u32>,
    /// Some of the arrivals of every hot key, and how many these are.
    hot: Vec<Record>,
    hot_counts: ByKey<u64>,
    distinct_kept: usize,
    weighted: bool,
    curve: LagCurve,
    /// Short streams that were put together already, by their halvings: a look at many filters asks for the same few, and
    /// each takes a walk through all that was kept.
    short: Mutex<Vec<(u32, ScaledStream)>>,
}

/// The longest that is kept for the next who asks; all of them together are twice as long at most.
const SHORT: usize = 1 << 19;

/// What tells keys apart: half of the bits of a hash.
pub(super) fn key_of(hash: KeyHash) -> u64 {
    hash.high ^ hash.low.rotate_left(32)
}

fn bucket(lag: f64) -> usize {
    (log2(lag) * STEPS_PER_OCTAVE) as usize
}

/// A hash as another seed might have made it, the same for equal hashes; the first round has them as they are.
fn rehashed(hash: KeyHash, round: u64) -> KeyHash {
    if round == 0 {
        return hash;
    }
    let mix = finalise(round);
    KeyHash { high: finalise(hash.high ^ mix), low: finalise(hash.low ^ mix.rotate_left(32)) }
}

impl Kept {
    pub(super) fn new(sample: Sample) -> Self {
        let Sample { arrivals, halvings, mut by_key, mut by_arrival, hot, weighted, .. } = sample;
        // As many arrivals as make a key hot, in arrivals that were chosen.
        let least = ((by_arrival.len() as u64 / COLD_PARTS) >> halvings).max(FEWEST_OF_HOT);
        let mut hot_counts = count(&by_arrival);
        hot_counts.retain(|key, count| *count > least || hot.contains(key));
        by_key.retain(|record| !hot_counts.contains_key(&key_of(record.hash)));
        by_arrival.retain(|record| hot_counts.contains_key(&key_of(record.hash)));
        let counted = count(&by_key);
        let counts = by_key.iter().map(|record| counted[&key_of(record.hash)].min(u32::MAX.into()) as u32).collect();
        let mut kept = Kept {
            arrivals,
            halvings,
            lags: Vec::new(),
            counts,
            cold: by_key,
            hot: by_arrival,
            hot_counts,
            distinct_kept: 0,
            weighted,
            curve: LagCurve::through(std::iter::empty()),
            short: Mutex::default(),
        };
        kept.learn_lags();
        kept
    }

    fn learn_lags(&mut self) {
        let each = self.one_in();
        let arrivals = self.arrivals as f64;
        let mut counts = vec![0.0; (64.0 * STEPS_PER_OCTAVE) as usize + 1];
        // There is room for a lag only at arrivals − lag places.
        let mut tally = |lag: f64| counts[bucket(lag)] += each / (arrivals - lag).max(1.0);
        let mut last = LastSeen::default();
        self.lags = self.cold.iter().map(|record| last.lag(key_of(record.hash), record.arrival as usize)).collect();
        self.lags.iter().filter(|lag| **lag > 0).for_each(|lag| tally(f64::from(*lag)));
        self.distinct_kept = self.lags.iter().filter(|lag| **lag == 0).count();
        let mut last = LastSeen::default();
        for record in &self.hot {
            // One arrival in so many is here, so lags are so many times as long.
            match last.lag(key_of(record.hash), record.arrival as usize) {
                0 => {}
                lag => tally((f64::from(lag) / each).max(1.0)),
            }
        }
        let upper = |bucket: usize| exp2((bucket as f64 + 1.0) / STEPS_PER_OCTAVE).min(arrivals);
        let mut below = 0.0;
        self.curve = LagCurve::through(counts.iter().enumerate().map(|(at, share)| {
            below += share;
            (upper(at), 1.0 - below)
        }));
    }

    /// Arrivals that are known to be repeats.
    pub(super) fn repeats(&self) -> usize {
        self.cold.len() - self.distinct_kept + self.hot.len() - self.hot_counts.len()
    }

    pub(super) fn importances(&self) -> impl Iterator<Item = Importance> + Clone {
        self.cold.iter().chain(&self.hot).map(|record| record.importance)
    }

    pub(super) fn distinct(&self) -> u64 {
        ((self.distinct_kept as u64) << self.halvings) + self.hot_counts.len() as u64
    }

    pub(super) fn one_in(&self) -> f64 {
        exp2(f64::from(self.halvings))
    }

    pub(super) fn curve(&self) -> &LagCurve {
        &self.curve
    }

    /// One arrival in about `divisor`, rounded to a power of two, others in the next round.
    ///
    /// Most keys are there with all their arrivals or not at all. A hot key's part of the stream must not depend on that,
    /// so hot keys are put in order of how often they come and `divisor` neighbours become one key, which comes as often
    /// as each of them did, measured in arrivals: of their arrivals together, one in `divisor` is there.
    pub(super) fn scaled_down(&self, divisor: f64, round: u64) -> ScaledStream {
        let halvings = (log2(divisor).round().max(0.0) as u32).clamp(self.halvings, 40);
        if halvings == 0 {
            return self.in_full(round);
        }
        if round > 0 {
            return self.put_together(halvings, round);
        }
        let mut short = self.short.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, scaled)) = short.iter().find(|(known, _)| *known == halvings) {
            return scaled.clone();
        }
        let scaled = self.put_together(halvings, round);
        if scaled.hashes.len() <= SHORT {
            short.push((halvings, scaled.clone()));
        }
        scaled
    }

    fn put_together(&self, halvings: u32, round: u64) -> ScaledStream {
        let parts = 1u64 << (halvings - self.halvings);
        let divisor = exp2(f64::from(halvings));
        let least = ((self.arrivals / COLD_PARTS) >> halvings).max(FEWEST_OF_HOT);
        let of_kept: ByKey<u64> = (self.cold.iter().zip(&self.counts))
            .zip(&self.lags)
            // The first arrival of each is enough.
            .filter(|((_, count), lag)| u64::from(**count) > least && **lag == 0)
            .map(|((record, count), _)| (key_of(record.hash), u64::from(*count)))
            .collect();
        // A key that was kept by its hash stands for 2^halvings already, a hot one only for itself.
        let (warm, hot) = (neighbours(&of_kept, parts), neighbours(&self.hot_counts, 1 << halvings));
        let part = round % parts;
        let is_chosen = |record: &Record| (lot(record.arrival) >> self.halvings) % parts == part;
        let mut playing =
            Playing { scaled: ScaledStream::empty(divisor), last: LastSeen::default(), kept: self, round };
        let mut hot_arrivals = self.hot.iter().filter(|record| is_chosen(record)).peekable();
        for (index, record) in self.cold.iter().enumerate() {
            while let Some(earlier) = hot_arrivals.next_if(|other| other.arrival < record.arrival) {
                playing.push_of_many(earlier, hot[&key_of(earlier.hash)]);
            }
            let is_warm = u64::from(self.counts[index]) > least;
            if is_warm && is_chosen(record) {
                playing.push_of_many(record, warm[&key_of(record.hash)]);
            } else if !is_warm && record.hash.shard(1 << halvings) == part {
                playing.push(record, self.lags[index]);
            }
        }
        hot_arrivals.for_each(|record| playing.push_of_many(record, hot[&key_of(record.hash)]));
        playing.scaled
    }

    /// Every arrival, where every arrival was kept: no key is chosen and none is hot. A forecast at full size plays the
    /// stream several times for each filter, so that this is a copy and nothing else.
    fn in_full(&self, round: u64) -> ScaledStream {
        let mut scaled = ScaledStream::empty(1.0);
        scaled.hashes = self.cold.iter().map(|record| rehashed(record.hash, round)).collect();
        scaled.lags = self.lags.clone();
        if self.weighted {
            scaled.importances = self.importances().collect();
        }
        scaled
    }
}

/// For each key the one that stands for it and for `many` others which come about as often.
fn neighbours(counts: &ByKey<u64>, many: u64) -> ByKey<KeyHash> {
    let mut keys: Vec<(u64, u64)> = counts.iter().map(|(key, count)| (*count, *key)).collect();
    keys.sort_unstable();
    let groups = keys.rchunks(usize::try_from(many).unwrap_or(usize::MAX));
    groups
        .flat_map(|group| {
            let one = KeyHash { high: finalise(group[0].1), low: finalise(!group[0].1) };
            group.iter().map(move |(_, key)| (*key, one))
        })
        .collect()
}

/// A scaled stream as it is put together.
struct Playing<'k> {
    scaled: ScaledStream,
    last: LastSeen,
    kept: &'k Kept,
    round: u64,
}

impl Playing<'_> {
    fn push(&mut self, record: &Record, lag: u32) {
        let lag = if lag == 0 { 0 } else { ((f64::from(lag) / self.scaled.divisor) as u32).max(1) };
        self.add(record, record.hash, lag, false);
    }

    /// An arrival of one of several keys that have become one.
    fn push_of_many(&mut self, record: &Record, one: KeyHash) {
        let lag = self.last.lag(key_of(one), self.scaled.hashes.len());
        self.add(record, one, lag, true);
    }

    fn add(&mut self, record: &Record, hash: KeyHash, lag: u32, hot: bool) {
        self.scaled.hashes.push(rehashed(hash, self.round));
        self.scaled.lags.push(lag);
        if self.kept.halvings > 0 {
            self.scaled.is_hot.push(hot);
        }
        if self.kept.weighted {
            self.scaled.importances.push(record.importance);
        }
    }
}
