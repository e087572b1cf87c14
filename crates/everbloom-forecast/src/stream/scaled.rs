//! A stream played scaled down: one arrival for every `divisor`, one key for every `divisor` keys.
//!
//! A filter that is `divisor` times as small then sees the same load per cell, the same share of hits and,
//! measured in its own arrivals, the same lags: its rates are those of the large one. Where keys differ in
//! popularity, neighbouring ranks become one key that comes as often as all of them together.
//!
//! A filter can be too small for that: with a few cells it would not behave like itself. Such a filter sees a **section**
//! of the stream instead, at its own scale. Repeats of what came before the section are known to be repeats, and the
//! filter, which has forgotten so much since, sees keys that it does not know.

use super::footprint::RankWeights;
use super::{LagCurve, Repeats, Stream};
use everbloom::{Hashing, Importance, ImportanceMix, KeyHash};
use everbloom_cells::key::{Generator, finalise};
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
    /// The first arrivals of a section, which fill the filter and are not judged.
    pub warm_up: usize,
    /// Whether it is a section of the stream, and not all of it.
    pub is_section: bool,
    /// See [`judged`](Self::judged).
    stands_for: (f64, f64),
}

/// The part of a section that fills the filter.
fn warm_up(arrivals: usize) -> usize {
    arrivals / 4
}

/// Longer simulations take more time and tell no more.
const MOST_ARRIVALS: f64 = 4e6;

impl ScaledStream {
    /// About every `divisor`-th arrival of a stream, the same ones for the same seed and round; another round has others,
    /// as long as there are any.
    pub fn new(stream: &Stream, divisor: f64, seed: u64, round: u64) -> Self {
        Self::played(stream, divisor.max(stream.arrivals as f64 / MOST_ARRIVALS), f64::INFINITY, seed, round)
    }

    /// About every `divisor`-th arrival, or a section of so many arrivals where that is more than twice as long.
    pub(crate) fn section(stream: &Stream, divisor: f64, most_arrivals: f64, seed: u64, round: u64) -> Self {
        Self::played(stream, divisor, most_arrivals.min(MOST_ARRIVALS), seed, round)
    }

    fn played(stream: &Stream, divisor: f64, most_arrivals: f64, seed: u64, round: u64) -> Self {
        let seed = seed.wrapping_add(round);
        let divisor = divisor.max(1.0);
        let whole = (stream.arrivals as f64 / divisor).ceil();
        let mut generator = Generator::seeded(seed);
        // The times of a section, if the whole is too long.
        let times = (whole > 2.0 * most_arrivals).then_some(Times { arrivals: most_arrivals as usize, whole });
        let arrivals = whole as usize;
        let keys = match (stream.repeats(), times) {
            (Repeats::Learned(kept), _) => {
                let scaled = kept.scaled_down(divisor, round);
                let is_longer = scaled.hashes.len() as f64 > 2.0 * most_arrivals;
                return if is_longer {
                    let (start, section) = scaled.middle(most_arrivals as usize);
                    let mut section = section.into_section();
                    let arrivals = |place: usize| (start + place) as f64 * section.divisor;
                    section.stands_for = (arrivals(section.warm_up), arrivals(section.hashes.len()));
                    section
                } else {
                    scaled.of_all(stream)
                };
            }
            (Repeats::Drawn { universe, exponent }, Some(times)) => {
                section_drawn(*universe, *exponent, divisor, times, &mut generator)
            }
            (Repeats::Drawn { universe, exponent }, None) => {
                with_lags(drawn(*universe, *exponent, divisor, &mut generator).take(arrivals))
            }
            (Repeats::Lags(curve), Some(times)) => section_by_lag(curve, divisor, times, &mut generator),
            (Repeats::Lags(curve), None) => with_lags(by_lag(curve, divisor, arrivals, &mut generator).into_iter()),
        };
        // Those of a section that was described are spread over all of the stream.
        let scaled = Self::of_keys(&keys, divisor, stream.importance(), seed).of_all(stream);
        if times.is_some() { scaled.into_section() } else { scaled }
    }

    fn into_section(mut self) -> Self {
        (self.warm_up, self.is_section) = (warm_up(self.hashes.len()), true);
        self
    }

    /// Of keys with their lags.
    fn of_keys(keys: &[(u64, u32)], divisor: f64, mix: Option<&ImportanceMix>, seed: u64) -> Self {
        let hashing = Hashing::seeded(seed);
        let mut scaled = Self::empty(divisor);
        for (key, lag) in keys {
            let hash = hashing.hash_u64(*key);
            scaled.push(hash, *lag);
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
        ScaledStream {
            divisor,
            hashes: Vec::new(),
            importances: Vec::new(),
            lags: Vec::new(),
            is_hot: Vec::new(),
            warm_up: 0,
            is_section: false,
            stands_for: (0.0, 0.0),
        }
    }

    fn of_all(mut self, stream: &Stream) -> Self {
        self.stands_for = (0.0, stream.arrivals as f64);
        self
    }

    /// So many arrivals from the middle, and where they begin.
    fn middle(mut self, arrivals: usize) -> (usize, Self) {
        let start = self.hashes.len().saturating_sub(arrivals) / 2;
        fn cut<T>(values: &mut Vec<T>, start: usize, arrivals: usize) {
            values.drain(..start.min(values.len()));
            values.truncate(arrivals);
        }
        cut(&mut self.hashes, start, arrivals);
        cut(&mut self.lags, start, arrivals);
        cut(&mut self.importances, start, arrivals);
        cut(&mut self.is_hot, start, arrivals);
        (start, self)
    }

    /// Which arrivals of the stream those that are judged stand for: the first and the last.
    pub(crate) fn judged(&self) -> (f64, f64) {
        self.stands_for
    }

    /// The lags of the arrivals that are judged.
    pub(crate) fn judged_lags(&self) -> &[u32] {
        self.lags.get(self.warm_up..).unwrap_or_default()
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

/// Keys with their lags.
fn with_lags(keys: impl Iterator<Item = u64>) -> Vec<(u64, u32)> {
    let mut last = LastSeen::default();
    keys.enumerate().map(|(now, key)| (key, last.lag(key, now))).collect()
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

/// How long a section is, and the whole stream of the same scale.
#[derive(Clone, Copy)]
struct Times {
    arrivals: usize,
    whole: f64,
}

impl Times {
    /// The time in the whole stream that an arrival of the section stands for: those that are judged are spread over all of
    /// it.
    fn of(self, now: usize) -> f64 {
        let warm_up = warm_up(self.arrivals);
        match now.checked_sub(warm_up) {
            Some(judged) => judged as f64 * self.whole / (self.arrivals - warm_up) as f64,
            None => now as f64,
        }
    }
}

fn whole_lag(lag: f64) -> u32 {
    lag.ceil().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// A section of independent draws. A key that did not come in it may have come before, the sooner the more often it comes.
fn section_drawn(
    universe: f64,
    exponent: f64,
    divisor: f64,
    times: Times,
    generator: &mut Generator,
) -> Vec<(u64, u32)> {
    let weights = RankWeights::new(exponent);
    let total = weights.up_to(universe);
    let rate = |key: u64| {
        let (first, last) = (key as f64 * divisor, ((key + 1) as f64 * divisor).min(universe));
        match exponent {
            0.0 => (last - first) / universe,
            _ if first < 1.0 => weights.up_to(last) / total,
            _ => (weights.up_to(last) - weights.up_to(first)) / total,
        }
    };
    let keys: Vec<u64> = drawn(universe, exponent, divisor, generator).take(times.arrivals).collect();
    let mut last = LastSeen::default();
    let lag = |(now, key): (usize, u64)| {
        let lag = match last.lag(key, now) {
            // Early in the stream it is new, though the section has had it.
            lag if f64::from(lag) > times.of(now) => return (u64::MAX - now as u64, 0),
            0 => {
                let (rate, before) = (rate(key), (times.of(now) - now as f64).max(0.0));
                let came = -libm::expm1(-rate * before);
                let drawn = generator.unit();
                // The time since it came, of those that are possible.
                if drawn < came { whole_lag(now as f64 - libm::log1p(-drawn) / rate) } else { 0 }
            }
            lag => lag,
        };
        (key, lag)
    };
    keys.into_iter().enumerate().map(lag).collect()
}

/// A section of repeats by lag.
fn section_by_lag(curve: &LagCurve, divisor: f64, times: Times, generator: &mut Generator) -> Vec<(u64, u32)> {
    let mut history: Vec<u32> = Vec::with_capacity(times.arrivals);
    let (mut newest, mut lags): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for now in 0..times.arrivals {
        let lag = curve.lag_at(1.0 - generator.unit()).map(|lag| (lag / divisor).ceil().max(1.0));
        let (key, lag) = match lag {
            Some(lag) if lag <= times.of(now).min(now as f64) => {
                let place = live_near(&history, &newest, now - lag as usize);
                (history[place], (now - place) as u32)
            }
            lag => {
                newest.push(0);
                (newest.len() as u32 - 1, lag.filter(|lag| *lag <= times.of(now)).map_or(0, whole_lag))
            }
        };
        newest[key as usize] = now as u32;
        history.push(key);
        lags.push(lag);
    }
    history.into_iter().map(u64::from).zip(lags).collect()
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
    fn a_section_has_the_stream_s_share_of_new_keys() {
        let streams = [
            Stream::uniform(4_000_000, 1_960_000).expect("a stream"),
            Stream::zipf(4_000_000, 800_000, 1.0).expect("a stream"),
            Stream::assumed(2_000_000).expect("a stream"),
        ];
        for (stream, divisor) in streams.iter().flat_map(|stream| [1.0, 7.3].map(|divisor| (stream, divisor))) {
            let section = ScaledStream::section(stream, divisor, 40_000.0, 3, 0);
            assert!(section.is_section && section.hashes.len() == 40_000 && section.warm_up == 10_000);
            let share = section.judged_lags().iter().filter(|lag| **lag == 0).count() as f64 / 30_000.0;
            let wanted = stream.distinct() as f64 / stream.arrivals() as f64;
            // Each arrival is a throw.
            let sigma = (wanted * (1.0 - wanted) / 30_000.0).sqrt();
            assert!((share - wanted).abs() < 4.0 * sigma, "{share}, not {wanted}, at {divisor}: {}", stream.describe());
            // Its lags are those of the whole.
            let whole = ScaledStream::new(stream, divisor, 3, 0);
            let beyond = |scaled: &ScaledStream, lag: u32| {
                let long = scaled.judged_lags().iter().filter(|found| **found > lag).count() as f64;
                long / scaled.judged_lags().len() as f64
            };
            for lag in [10, 1000, 100_000] {
                let (found, wanted) = (beyond(&section, lag), beyond(&whole, lag));
                assert!((found - wanted).abs() < 0.015, "{found}, not {wanted}, beyond {lag}: {}", stream.describe());
            }
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
