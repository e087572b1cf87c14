//! What a stream is like, as far as a forecast needs to know.
//!
//! A description says how many arrivals there are, how many of them are distinct, how keys come back and
//! how importances are spread. Everything that depends on lags alone follows from one function, the
//! **footprint** D(τ): the distinct keys among τ successive arrivals. Its slope is the share of arrivals
//! whose key did not come within the last τ, so an arrival's lag exceeds τ with probability D′(τ), and a
//! stream that begins with nothing sees new keys at the rate D′(t).
//!
//! [`Sample`] learns a description from a stream; [`ScaledStream`](scaled::ScaledStream) plays one, scaled down.

pub mod cell_chain;
mod footprint;
mod forecast;
pub mod integrate;
mod kept;
mod sample;
pub mod scaled;

use everbloom::kind::MAX_ITEMS;
use everbloom::{Error, ImportanceMix, Result};
pub use footprint::{Footprint, LagCurve, RateBand};
pub(crate) use forecast::PARTS_OF_STREAM;
pub use forecast::{ErrorsAt, Forecast, Method, RateAt, RatesAt};
use integrate::Course;
pub(crate) use sample::FEWEST_REPEATS;
pub use sample::Sample;
use std::sync::{Arc, OnceLock};

/// How keys come back.
#[derive(Debug, Clone)]
pub(crate) enum Repeats {
    /// Every arrival is drawn from `universe` keys, ∝ rank^−`exponent`; 0 for all alike.
    Drawn { universe: f64, exponent: f64 },
    /// By the number of arrivals since a key was last seen.
    Lags(LagCurve),
    /// As in a sample that was kept.
    Learned(Arc<kept::Kept>),
}

/// The description of a stream.
///
/// ```
/// use everbloom_forecast::Stream;
///
/// let stream = Stream::uniform(1_000_000, 490_000)?;
/// let footprint = stream.footprint();
/// assert!((footprint.distinct(1e6) - 490_000.0).abs() < 1.0);
/// // After half of the arrivals, more than half of the keys have come.
/// assert!(footprint.distinct(5e5) > 300_000.0);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    arrivals: u64,
    repeats: Repeats,
    importance: Option<ImportanceMix>,
    /// What every integral along it needs, once it was needed.
    course: Arc<OnceLock<Course>>,
}

/// A larger universe cannot be told from an infinite one.
const MOST_KEYS: f64 = 1e15;

impl Stream {
    fn empty() -> Self {
        let repeats = Repeats::Drawn { universe: 1.0, exponent: 0.0 };
        Stream { arrivals: 1, repeats, importance: None, course: Arc::default() }
    }

    /// Draws from equally popular keys, so many of them that `distinct` of the arrivals are new.
    pub fn uniform(arrivals: u64, distinct: u64) -> Result<Self> {
        Self::drawn(arrivals, distinct, 0.0)
    }

    /// Draws ∝ rank^−`exponent`, from so many keys that `distinct` of the arrivals are new.
    pub fn zipf(arrivals: u64, distinct: u64, exponent: f64) -> Result<Self> {
        Self::drawn(arrivals, distinct, checked_exponent(exponent)?)
    }

    /// Draws ∝ rank^−`exponent`, ending when `distinct` keys have come, half of all keys.
    pub fn zipf_of(distinct: u64, exponent: f64) -> Result<Self> {
        checked_counts(distinct, distinct)?;
        let universe = 2.0 * distinct as f64;
        let footprint = Footprint::drawn(universe, checked_exponent(exponent)?);
        let (mut low, mut high) = (distinct as f64, 1e17);
        for _ in 0..80 {
            let middle = libm::sqrt(low * high);
            if footprint.distinct(middle) < distinct as f64 { low = middle } else { high = middle }
        }
        checked_counts(high as u64, distinct)?;
        Ok(Stream { arrivals: high as u64, repeats: Repeats::Drawn { universe, exponent }, ..Self::empty() })
    }

    /// The stream that a word or two describe, with so many distinct keys: `uniform`, with two arrivals for each of them,
    /// `zipf` or `zipf:1.1`.
    ///
    /// ```
    /// use everbloom_forecast::Stream;
    ///
    /// assert_eq!(Stream::named("uniform", 1000)?.arrivals(), 2000);
    /// assert_eq!(Stream::named("zipf:1.1", 1000)?.distinct(), 1000);
    /// let error = Stream::named("zip", 1000).unwrap_err().to_string();
    /// assert_eq!(error, "stream is 'zip', but must be uniform, zipf or zipf:EXPONENT; try zipf:1.1");
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn named(text: &str, distinct: u64) -> Result<Self> {
        let unknown = || {
            let given = format!("'{}'", text.chars().take(80).collect::<String>());
            Error::parameter("stream", given, "uniform, zipf or zipf:EXPONENT", "try zipf:1.1")
        };
        match text.split_once(':') {
            None if text == "uniform" => Self::uniform(distinct.saturating_mul(2).min(MAX_ITEMS), distinct),
            None if text == "zipf" => Self::zipf_of(distinct, 1.0),
            Some(("zipf", exponent)) => Self::zipf_of(distinct, exponent.parse().map_err(|_| unknown())?),
            _ => Err(unknown()),
        }
    }

    fn drawn(arrivals: u64, distinct: u64, exponent: f64) -> Result<Self> {
        checked_counts(arrivals, distinct)?;
        let (items, wanted) = (arrivals as f64, distinct as f64);
        let reached = |universe: f64| Footprint::drawn(universe, exponent).distinct(items);
        let most = reached(MOST_KEYS.max(items * 1e3));
        if most + 1.0 < wanted {
            return Err(Error::Infeasible {
                wanted: format!("{distinct} distinct keys among {arrivals} arrivals"),
                reason: format!("the first keys repeat too often with an exponent of {exponent}"),
                remedy: format!("expect at most {} distinct keys, more arrivals, or a lower exponent", most as u64),
            });
        }
        let (mut low, mut high) = (wanted.max(1.0), MOST_KEYS.max(items * 1e3));
        for _ in 0..60 {
            let middle = libm::sqrt(low * high);
            if reached(middle) < wanted { low = middle } else { high = middle }
        }
        Ok(Stream { arrivals, repeats: Repeats::Drawn { universe: high.round(), exponent }, ..Self::empty() })
    }

    /// Repeats whose lags (arrivals since the key was last seen) follow `lags`, so often that `distinct` of
    /// the arrivals are new. `lags` lists, in any order, a lag and the weight of the repeats up to it and beyond the next
    /// shorter lag, among which it is spread evenly: `[(10.0, 1.0), (1000.0, 1.0)]` has half of them at lags of up to 10,
    /// the others at 10 to 1000.
    pub fn by_lag(arrivals: u64, distinct: u64, lags: &[(f64, f64)]) -> Result<Self> {
        checked_counts(arrivals, distinct)?;
        let curve = LagCurve::with_distinct(lags, arrivals as f64, distinct as f64)?;
        Ok(Stream { arrivals, repeats: Repeats::Lags(curve), ..Self::empty() })
    }

    /// A stream in equal phases, each of which draws evenly from keys of its own, so many that `distinct` of all arrivals are
    /// new. It is described by the lags of its repeats: that new keys come in bursts is not part of it.
    ///
    /// ```
    /// use everbloom_forecast::Stream;
    ///
    /// let stream = Stream::in_phases(1_000_000, 200_000, 10)?;
    /// // No key comes back after its phase: uniform draws would have 79,000 keys among 100,000 successive arrivals.
    /// assert!(stream.footprint().distinct(1e5) < 50_000.0);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn in_phases(arrivals: u64, distinct: u64, phases: u64) -> Result<Self> {
        checked_counts(arrivals, distinct)?;
        if !(1..=distinct).contains(&phases) {
            let needed = format!("between 1 and the {distinct} distinct keys");
            return Err(Error::parameter("phases", phases, needed, "try 10"));
        }
        let one = Self::uniform((arrivals / phases).max(1), (distinct / phases).max(1))?;
        let Repeats::Drawn { universe, .. } = one.repeats else { return Ok(one) };
        let length = one.arrivals as f64;
        // The repeats of a phase with a lag of up to so much: an arrival has one unless its key did not come since, or at all.
        let repeats = |lag: f64| {
            let came = -libm::expm1(-lag / universe);
            (length - lag) * came + lag - universe * came
        };
        let steps = libm::ceil(2.0 * libm::log2(length)).max(1.0) as i32;
        let lags = (0..=steps).map(|step| libm::exp2(0.5 * f64::from(step)).min(length));
        let mut before = 0.0;
        let weighed: Vec<_> = lags
            .map(|lag| {
                let weight = (repeats(lag) - before).max(1e-9);
                before = repeats(lag);
                (lag, weight)
            })
            .collect();
        Self::by_lag(arrivals, distinct, &weighed)
    }

    /// What is assumed of a stream if only its distinct keys are known: every second arrival is new, the others
    /// come back soon or much later, at lags of every order of magnitude equally often.
    pub fn assumed(distinct: u64) -> Result<Self> {
        checked_counts(distinct, distinct)?;
        let arrivals = distinct.saturating_mul(2).min(MAX_ITEMS);
        let octaves = libm::ceil(libm::log2(arrivals as f64)).max(1.0) as i32;
        let lags: Vec<_> = (0..=octaves).map(|octave| (libm::exp2(f64::from(octave)), 1.0)).collect();
        Self::by_lag(arrivals, distinct, &lags)
    }

    pub(crate) fn learned(arrivals: u64, kept: kept::Kept, importance: Option<ImportanceMix>) -> Self {
        Stream { arrivals, repeats: Repeats::Learned(Arc::new(kept)), importance, ..Self::empty() }
    }

    /// The stream by nothing but its lags and importances, as if it had been described.
    pub(crate) fn by_its_lags(&self) -> Self {
        let curve = match &self.repeats {
            Repeats::Learned(kept) => kept.curve().clone(),
            _ => return self.clone(),
        };
        Stream { arrivals: self.arrivals, repeats: Repeats::Lags(curve), importance: self.importance, ..Self::empty() }
    }

    /// What one of so many equal parts of the keys sees of it.
    pub(crate) fn part(&self, parts: u32) -> Self {
        let count = f64::from(parts);
        let repeats = match &self.repeats {
            Repeats::Drawn { universe, exponent } => {
                Repeats::Drawn { universe: (universe / count).max(1.0), exponent: *exponent }
            }
            Repeats::Lags(curve) => Repeats::Lags(curve.shortened(count)),
            Repeats::Learned(kept) => Repeats::Lags(kept.curve().shortened(count)),
        };
        let arrivals = (self.arrivals / u64::from(parts)).max(1);
        Stream { arrivals, repeats, importance: self.importance, ..Self::empty() }
    }

    /// The stream with importances, fixed for each key.
    pub fn with_importance(mut self, mix: ImportanceMix) -> Self {
        self.importance = Some(mix);
        self
    }

    /// Arrivals in all.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Distinct keys in all.
    pub fn distinct(&self) -> u64 {
        match &self.repeats {
            Repeats::Learned(kept) => kept.distinct(),
            _ => self.footprint().distinct(self.arrivals as f64).round() as u64,
        }
    }

    /// How importances are spread, if arrivals have any.
    pub fn importance(&self) -> Option<&ImportanceMix> {
        self.importance.as_ref()
    }

    /// How fast distinct keys come, and come back.
    pub fn footprint(&self) -> Footprint {
        match &self.repeats {
            Repeats::Drawn { universe, exponent } => Footprint::drawn(*universe, *exponent),
            Repeats::Lags(curve) => Footprint::Lags(curve.clone()),
            Repeats::Learned(kept) => Footprint::Lags(kept.curve().clone()),
        }
    }

    /// How keys come along it, where integrals look.
    pub(crate) fn course(&self) -> &Course {
        self.course.get_or_init(|| Course::new(&self.footprint(), self.arrivals as f64))
    }

    pub(crate) fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    /// Whether repeats fall evenly on all keys.
    pub fn is_even(&self) -> bool {
        matches!(self.repeats, Repeats::Drawn { exponent: 0.0, .. })
    }

    /// Whether it was learned from a sample. Such a stream may change as it goes on, which its lags do not tell;
    /// a simulation does.
    pub fn is_learned(&self) -> bool {
        matches!(self.repeats, Repeats::Learned(_))
    }

    /// Of how many keys and arrivals one is known; more than one only where it was learned from a long sample.
    pub(crate) fn sampled_one_in(&self) -> f64 {
        match &self.repeats {
            Repeats::Learned(kept) => kept.one_in(),
            _ => 1.0,
        }
    }

    /// Whether lags are known by classes so wide that a filter's memory may end anywhere within one.
    pub(crate) fn has_coarse_lags(&self) -> bool {
        matches!(&self.repeats, Repeats::Lags(curve) if curve.is_coarse())
    }

    /// How it is described, for people.
    pub fn describe(&self) -> String {
        match &self.repeats {
            Repeats::Drawn { exponent, .. } if *exponent == 0.0 => "uniform repeats".into(),
            Repeats::Drawn { exponent, .. } => format!("Zipf repeats with exponent {exponent}"),
            Repeats::Lags(_) => "repeats by lag".into(),
            Repeats::Learned(_) => "repeats as in the sample".into(),
        }
    }
}

fn checked_exponent(exponent: f64) -> Result<f64> {
    if exponent > 0.0 && exponent <= 10.0 {
        return Ok(exponent);
    }
    Err(Error::parameter("exponent", exponent, "above 0 and at most 10", "natural streams have about 1"))
}

fn checked_counts(arrivals: u64, distinct: u64) -> Result<()> {
    if !(1..=MAX_ITEMS).contains(&arrivals) {
        let needed = format!("between 1 and {MAX_ITEMS}");
        return Err(Error::parameter("arrivals", arrivals, needed, "say how long the stream is"));
    }
    if !(1..=arrivals).contains(&distinct) {
        let needed = format!("between 1 and the {arrivals} arrivals");
        return Err(Error::parameter("distinct", distinct, needed, "say how many different keys will come"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_descriptions_end() {
        for distinct in [1 << 53, (1 << 53) + 2, 10_000_000_000_000_000, MAX_ITEMS / 4] {
            let stream = Stream::zipf_of(distinct, 1.0);
            assert!(stream.is_ok() || stream.is_err_and(|error| error.to_string().contains("arrivals")), "{distinct}");
        }
    }

    #[test]
    fn every_description_has_the_distinct_keys_it_was_asked_for() {
        let streams = [
            Stream::uniform(100_000, 49_000),
            Stream::uniform(100_000, 99_999),
            Stream::zipf(100_000, 20_000, 1.0),
            Stream::zipf(100_000, 20_000, 0.6),
            Stream::by_lag(100_000, 30_000, &[(1.0, 1.0), (100.0, 2.0), (10_000.0, 1.0)]),
            Stream::assumed(50_000),
            Stream::zipf_of(20_000, 1.1),
            Stream::in_phases(100_000, 30_000, 7),
        ];
        let wanted = [49_000, 99_999, 20_000, 20_000, 30_000, 50_000, 20_000, 30_000];
        for (stream, wanted) in streams.into_iter().zip(wanted) {
            let stream = stream.expect("a stream");
            let found = stream.distinct() as f64;
            assert!((found / f64::from(wanted) - 1.0).abs() < 0.002, "{found} of {wanted}: {}", stream.describe());
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (arrivals, distinct) in [(0, 0), (10, 0), (10, 11), (u64::MAX, 5)] {
            assert!(Stream::uniform(arrivals, distinct).is_err(), "{distinct} of {arrivals}");
        }
        for exponent in [0.0, -1.0, f64::NAN, 11.0] {
            assert!(Stream::zipf(1000, 500, exponent).is_err(), "{exponent}");
        }
        let error = Stream::zipf(1_000_000, 900_000, 1.5).expect_err("the first keys repeat").to_string();
        assert!(error.contains("at most"), "{error}");
        assert!(Stream::in_phases(1000, 500, 0).is_err() && Stream::in_phases(1000, 500, 501).is_err());
        assert!(Stream::by_lag(1000, 500, &[]).is_err());
        assert!(Stream::by_lag(1000, 500, &[(5.0, -1.0)]).is_err());
        assert!(Stream::by_lag(1000, 500, &[(f64::NAN, 1.0)]).is_err());
    }
}
