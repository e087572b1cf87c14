//! A stream played scaled down: one arrival for every `divisor`, one key for every `divisor` keys.
//!
//! A filter that is `divisor` times as small then sees the same load per cell, the same share of hits and,
//! measured in its own arrivals, the same lags: its rates are those of the large one. Where keys differ in
//! popularity, neighbouring ranks become one key that comes as often as all of them together.

use super::footprint::RankWeights;
use super::{LagCurve, Repeats, Stream};
use crate::key::{Generator, Hashing, KeyHash, finalise};
use crate::promise::{Importance, ImportanceMix};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A stream ready to be shown to filters.
#[derive(Debug, Clone)]
pub struct ScaledStream {
    /// How many times as long the stream is.
    pub divisor: f64,
    /// The arrivals' keys.
    pub hashes: Vec<KeyHash>,
    /// Their importances; empty if all matter alike.
    pub importances: Vec<Importance>,
    /// Arrivals since the key was last seen; 0 if it is new.
    pub lags: Vec<u32>,
    /// Whether they are of hot keys, which are all there; empty if all keys are.
    pub is_hot: Vec<bool>,
}

/// Longer simulations take more time and tell no more.
const MOST_ARRIVALS: f64 = 4e6;

impl ScaledStream {
    /// About every `divisor`-th arrival of a stream, the same ones for the same seed and round; another round has others,
    /// as long as there are any.
    pub fn new(stream: &Stream, divisor: f64, seed: u64, round: u64) -> Self {
        let seed = seed.wrapping_add(round);
        let divisor = divisor.max(stream.arrivals as f64 / MOST_ARRIVALS).max(1.0);
        let arrivals = (stream.arrivals as f64 / divisor).ceil() as usize;
        let mut generator = Generator::seeded(seed);
        match stream.repeats() {
            Repeats::Drawn { universe, exponent } => {
                let keys = drawn(*universe, *exponent, divisor, &mut generator).take(arrivals);
                Self::of_keys(keys, divisor, stream.importance(), seed)
            }
            Repeats::Lags(curve) => {
                let keys = by_lag(curve, divisor, arrivals, &mut generator);
                Self::of_keys(keys.into_iter(), divisor, stream.importance(), seed)
            }
            Repeats::Learned(kept) => kept.scaled_down(divisor, round),
        }
    }

    fn of_keys(keys: impl Iterator<Item = u64>, divisor: f64, mix: Option<&ImportanceMix>, seed: u64) -> Self {
        let hashing = Hashing::seeded(seed);
        let mut scaled = Self::empty(divisor);
        let mut last = LastSeen::default();
        for key in keys {
            let hash = hashing.hash_u64(key);
            scaled.push(hash, last.lag(key, scaled.hashes.len()));
            if let Some(mix) = mix {
                scaled.importances.push(mix.quantile(unit(finalise(hash.low ^ hash.high.rotate_left(17)))));
            }
        }
        scaled
    }

    fn push(&mut self, hash: KeyHash, lag: u32) {
        self.hashes.push(hash);
        self.lags.push(lag);
    }

    pub(super) fn empty(divisor: f64) -> Self {
        ScaledStream { divisor, hashes: Vec::new(), importances: Vec::new(), lags: Vec::new(), is_hot: Vec::new() }
    }
}

fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// When keys were last seen.
#[derive(Default)]
pub(super) struct LastSeen(HashMap<u64, usize, BuildHasherDefault<Mixed>>);

impl LastSeen {
    /// The lag of a key that comes now; 0 if it is new.
    pub(super) fn lag(&mut self, key: u64, now: usize) -> u32 {
        self.0.insert(key, now).map_or(0, |before| u32::try_from(now - before).unwrap_or(u32::MAX).max(1))
    }
}

/// Keys are numbers or hashes: one round of mixing is enough.
#[derive(Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = finalise(self.0.rotate_left(5) ^ key);
    }
}

/// Independent draws, `divisor` neighbouring ranks as one key.
fn drawn(universe: f64, exponent: f64, divisor: f64, generator: &mut Generator) -> impl Iterator<Item = u64> {
    let weights = RankWeights::new(exponent);
    let total = weights.up_to(universe);
    std::iter::repeat_with(move || {
        let rank = match exponent {
            0.0 => generator.unit() * universe,
            _ => weights.rank_at(generator.unit() * total).min(universe) - 1.0,
        };
        (rank / divisor) as u64
    })
}

/// Repeats of the key that was last seen nearest to the drawn lag.
fn by_lag(curve: &LagCurve, divisor: f64, arrivals: usize, generator: &mut Generator) -> Vec<u64> {
    let mut history: Vec<u32> = Vec::with_capacity(arrivals);
    let mut newest: Vec<u32> = Vec::new();
    for now in 0..arrivals {
        let lag = curve.lag_at(1.0 - generator.unit()).map(|lag| (lag / divisor).ceil().max(1.0));
        let key = match lag {
            Some(lag) if lag <= now as f64 => history[live_near(&history, &newest, now - lag as usize)],
            _ => {
                newest.push(0);
                newest.len() as u32 - 1
            }
        };
        newest[key as usize] = now as u32;
        history.push(key);
    }
    history.into_iter().map(u64::from).collect()
}

/// The place nearest to `wanted` at which a key was last seen; the newest arrival is one.
fn live_near(history: &[u32], newest: &[u32], wanted: usize) -> usize {
    let live = |place: usize| newest[history[place] as usize] as usize == place;
    for distance in 0..history.len() {
        if wanted + distance < history.len() && live(wanted + distance) {
            return wanted + distance;
        }
        if distance <= wanted && live(wanted - distance) {
            return wanted - distance;
        }
    }
    history.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct(scaled: &ScaledStream) -> f64 {
        scaled.lags.iter().filter(|lag| **lag == 0).count() as f64 * scaled.divisor
    }

    #[test]
    fn a_scaled_stream_has_the_stream_s_share_of_new_keys_at_every_scale() {
        let streams = [
            Stream::uniform(400_000, 196_000).expect("a stream"),
            Stream::zipf(400_000, 80_000, 1.0).expect("a stream"),
            Stream::by_lag(400_000, 120_000, &[(10.0, 1.0), (1000.0, 1.0), (100_000.0, 1.0)]).expect("a stream"),
        ];
        for (stream, divisor) in streams.iter().flat_map(|stream| [1.0, 7.3].map(|divisor| (stream, divisor))) {
            let found = distinct(&ScaledStream::new(stream, divisor, 3, 0));
            let wanted = stream.distinct() as f64;
            // Each new key is a throw at most; half a per cent more for what the generators round.
            let sigma = (wanted * divisor).sqrt();
            assert!((found - wanted).abs() < 4.0 * sigma + 0.005 * wanted, "{found}, not {wanted}, at {divisor}");
        }
    }

    #[test]
    fn lags_follow_the_footprint() {
        let stream =
            Stream::by_lag(200_000, 60_000, &[(10.0, 1.0), (1000.0, 1.0), (100_000.0, 1.0)]).expect("a stream");
        let scaled = ScaledStream::new(&stream, 1.0, 9, 0);
        let footprint = stream.footprint();
        for lag in [10.0, 300.0, 5000.0] {
            let late = &scaled.lags[100_000..];
            let beyond = late.iter().filter(|found| **found == 0 || f64::from(**found) > lag).count() as f64;
            let (share, wanted) = (beyond / late.len() as f64, footprint.new_share(lag));
            assert!((share - wanted).abs() < 0.01, "{share} beyond {lag}, not {wanted}");
        }
    }

    #[test]
    fn the_same_seed_plays_the_same_stream() {
        let stream = Stream::zipf(50_000, 10_000, 1.1).expect("a stream");
        assert_eq!(ScaledStream::new(&stream, 2.0, 1, 0).lags, ScaledStream::new(&stream, 2.0, 1, 0).lags);
        assert_ne!(ScaledStream::new(&stream, 2.0, 1, 0).lags, ScaledStream::new(&stream, 2.0, 1, 1).lags);
    }
}
