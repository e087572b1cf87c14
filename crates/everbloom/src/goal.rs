//! What a user wants, what a filter promises for it, and the way from one to the other.
//!
//! `Goal` → `Plan` (with its `Forecast`) → filter. Planning never allocates the filter, so it can be
//! asked freely.

use crate::error::{Error, Result};
use crate::hash::Hashing;
use crate::spec::Spec;
use crate::traits::{Filter, Importance};

/// The largest memory that can be planned, 128 PiB: beyond it, arithmetic on bits would overflow.
pub(crate) const MAX_MEMORY_BITS: u64 = 1 << 60;

/// The largest number of keys that can be planned for: no stream is longer, and 2^64 − 1 means
/// "always" in the format.
pub(crate) const MAX_ITEMS: u64 = 1 << 60;

/// What a user wants of a filter. Say what you know; the planner does the rest.
///
/// ```
/// use everbloom::Goal;
///
/// let plan = Goal::new().expected_items(1_000_000).target_fpr(0.01).plan("bloom")?;
/// assert_eq!(plan.spec.to_string(), "bloom:num_bits=9592964,num_hashes=7");
/// assert!(plan.forecast.predicted_fpr <= 0.01);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Goal {
    /// The most memory the filter's state may take.
    pub memory_bits: Option<u64>,
    /// The rate of false positives to keep at every moment.
    pub target_fpr: Option<f64>,
    /// How many distinct keys will come, if known.
    pub expected_items: Option<u64>,
    /// Whether arrivals carry importances that tell them apart.
    pub importance: bool,
    /// How their importances are spread, if known.
    pub importance_mix: Option<ImportanceMix>,
    /// Whether the filter is to be small when compressed, rather than in memory.
    pub compressed: bool,
    /// The most bytes that the filter may take when it is sent, compressed and with its header.
    pub transmitted_bytes: Option<u64>,
    /// How keys are hashed.
    pub hashing: Hashing,
}

impl Goal {
    /// A goal that says nothing yet.
    pub fn new() -> Self {
        Goal::default()
    }

    /// Bounds the memory of the filter's state.
    pub fn memory_bits(mut self, bits: u64) -> Self {
        self.memory_bits = Some(bits);
        self
    }

    /// Sets the rate of false positives to keep.
    pub fn target_fpr(mut self, rate: f64) -> Self {
        self.target_fpr = Some(rate);
        self
    }

    /// Says how many distinct keys will come.
    pub fn expected_items(mut self, items: u64) -> Self {
        self.expected_items = Some(items);
        self
    }

    /// Says that arrivals carry importances.
    pub fn with_importance(mut self) -> Self {
        self.importance = true;
        self
    }

    /// Says that arrivals carry importances, and how these are spread.
    pub fn importance_mix(mut self, mix: ImportanceMix) -> Self {
        (self.importance, self.importance_mix) = (true, Some(mix));
        self
    }

    /// Asks for the fewest bytes on the wire ([`codec::encode_compressed`](crate::codec::encode_compressed))
    /// instead of the fewest in memory: a `bloom` filter is then planned sparser, within the memory that
    /// is given, or 16 times what it would take otherwise.
    pub fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    /// Bounds the bytes on the wire, header included, and asks for the lowest rate that they buy: a `bloom`
    /// filter is planned whose compressed bytes stay within them but for one of three million builds.
    ///
    /// It takes the memory that is given, or up to 16 times these bytes. A target rate, if there is one, is
    /// the highest that will do; otherwise 1/2 is.
    ///
    /// ```
    /// use everbloom::{FilterExt, Goal, codec};
    ///
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let plan = Goal::new().expected_items(10_000).transmitted_bytes(10_000).plan("bloom")?;
    /// let mut filter = plan.build()?;
    /// filter.insert_batch(&keys);
    /// assert!(codec::encode_compressed(&*filter).len() <= 10_000);
    /// // What the same bytes keep as they are, 8 bits a key, is 2.2 %.
    /// assert!(plan.forecast.predicted_fpr < 0.012, "{:?}", plan.forecast);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn transmitted_bytes(mut self, bytes: u64) -> Self {
        (self.compressed, self.transmitted_bytes) = (true, Some(bytes));
        self
    }

    /// Sets how keys are hashed; by default XXH3 with seed 0.
    pub fn hashing(mut self, hashing: Hashing) -> Self {
        self.hashing = hashing;
        self
    }

    /// Plans a filter from a spec in text form: `bloom`, `stable:cell_max=3`, `auto`.
    pub fn plan(&self, spec: &str) -> Result<Plan> {
        crate::planner::plan(&Spec::parse(spec)?, self)
    }

    /// The target rate, checked; `None` if not given.
    pub(crate) fn checked_fpr(&self) -> Result<Option<f64>> {
        match self.target_fpr {
            Some(rate) if !(rate > 0.0 && rate < 1.0) => Err(Error::parameter(
                "target_fpr",
                rate,
                "above 0 and below 1",
                "a filter always errs a little; try 0.001",
            )),
            rate => Ok(rate),
        }
    }

    /// The memory bound, checked; `None` if not given.
    pub(crate) fn checked_memory(&self) -> Result<Option<u64>> {
        match self.memory_bits {
            Some(bits) if bits == 0 || bits > MAX_MEMORY_BITS => Err(Error::parameter(
                "memory_bits",
                bits,
                format!("between 1 and {MAX_MEMORY_BITS}"),
                "give the bits that the filter may use",
            )),
            bits => Ok(bits),
        }
    }

    /// The number of distinct keys, checked; `None` if not given.
    pub(crate) fn checked_items(&self) -> Result<Option<u64>> {
        match self.expected_items {
            Some(items) if items == 0 || items > MAX_ITEMS => Err(Error::parameter(
                "expected_items",
                items,
                format!("between 1 and {MAX_ITEMS}"),
                "say how many distinct keys will come, or leave it out",
            )),
            items => Ok(items),
        }
    }

    /// The target rate that a filter needs to plan at all.
    pub(crate) fn required_fpr(&self) -> Result<f64> {
        self.checked_fpr()?.ok_or_else(|| missing("target_fpr", "say which rate of false positives to keep"))
    }

    /// The number of distinct keys that a filter needs to plan at all.
    pub(crate) fn required_items(&self) -> Result<u64> {
        self.checked_items()?.ok_or_else(|| missing("expected_items", "say how many distinct keys will come"))
    }

    /// The memory that a filter needs to plan at all.
    pub(crate) fn required_memory(&self) -> Result<u64> {
        self.checked_memory()?.ok_or_else(|| missing("memory_bits", "say how much memory the filter may use"))
    }
}

fn missing(name: &'static str, remedy: &str) -> Error {
    Error::parameter(name, "not given", "given", remedy)
}

/// How the importances of arrivals are spread: the share of arrivals in each of 64 equal steps from
/// nothing to the greatest, and at the greatest itself.
///
/// ```
/// use everbloom::{Importance, goal::ImportanceMix};
///
/// let sample = (1..=50).map(|value| Importance::new(value, 50)).collect::<Result<Vec<_>, _>>()?;
/// let mix = ImportanceMix::of(sample);
/// assert!((mix.share_from(0.5) - 0.52).abs() < 0.02);
/// assert_eq!(mix.share_from(0.0), 1.0);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportanceMix {
    shares: [f64; Self::STEPS + 1],
    /// The least and the greatest importance.
    range: (Importance, Importance),
}

impl ImportanceMix {
    const STEPS: usize = 64;

    /// Every importance as often as every other.
    pub fn uniform() -> Self {
        let mut shares = [1.0 / Self::STEPS as f64; Self::STEPS + 1];
        shares[Self::STEPS] = 0.0;
        ImportanceMix { shares, range: (Importance::NONE, Importance::FULL) }
    }

    /// As in a sample; an empty one counts as uniform.
    pub fn of(sample: impl IntoIterator<Item = Importance>) -> Self {
        let (mut counts, mut total) = ([0.0; Self::STEPS + 1], 0.0);
        let (mut least, mut greatest) = (Importance::FULL, Importance::NONE);
        for importance in sample {
            counts[importance.share_of(Self::STEPS as u32) as usize] += 1.0;
            total += 1.0;
            if importance.share() < least.share() {
                least = importance;
            }
            if importance.share() > greatest.share() {
                greatest = importance;
            }
        }
        if total == 0.0 {
            return Self::uniform();
        }
        ImportanceMix { shares: counts.map(|count| count / total), range: (least, greatest) }
    }

    /// The share of arrivals whose importance is at least this share of the maximum.
    pub fn share_from(&self, least: f64) -> f64 {
        if least <= self.range.0.share() {
            return 1.0;
        }
        if least > self.range.1.share() {
            return 0.0;
        }
        let place = least * Self::STEPS as f64;
        let above: f64 = self.shares.iter().skip(place as usize + 1).sum();
        let here = self.shares.get(place as usize).map_or(0.0, |share| share * (1.0 - place.fract()));
        (above + here).min(1.0)
    }

    /// The importance that a share of `below` of the arrivals stays under.
    pub fn quantile(&self, below: f64) -> Importance {
        let (mut step, mut rest) = (0, below);
        while step < Self::STEPS && rest >= self.shares[step] {
            rest -= self.shares[step];
            step += 1;
        }
        let within = if self.shares[step] > 0.0 && step < Self::STEPS { rest / self.shares[step] } else { 0.0 };
        let share = ((step as f64 + within.clamp(0.0, 1.0)) / Self::STEPS as f64)
            .clamp(self.range.0.share(), self.range.1.share());
        // A grid fine enough for every number of steps that filters tell apart.
        let grid = 1 << 20;
        Importance::new((share * f64::from(grid)).round() as u32, grid).unwrap_or_default()
    }

    /// The mean importance of the arrivals from one share of the maximum up to another.
    pub(crate) fn mean_between(&self, low: f64, high: f64) -> f64 {
        let mut points: Vec<f64> = (0..=32).map(|index| low + (high - low) * f64::from(index) / 32.0).collect();
        points.retain(|point| *point <= 1.0);
        let (mut sum, mut mass) = (0.0, 0.0);
        for pair in points.windows(2) {
            let share = self.share_from(pair[0]) - self.share_from(pair[1]);
            (sum, mass) = (sum + share * 0.5 * (pair[0] + pair[1]), mass + share);
        }
        if mass > 0.0 { sum / mass } else { low.min(1.0) }
    }

    /// ⌊`steps` · importance⌋, if it is the same for all arrivals.
    pub fn only_share_of(&self, steps: u32) -> Option<u32> {
        let (least, greatest) = (self.range.0.share_of(steps), self.range.1.share_of(steps));
        (least == greatest).then_some(least)
    }
}

/// Until when a forecast holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// At every moment, however long the stream.
    Always,
    /// Until this many distinct keys are inside.
    UntilItems(u64),
    /// Not at all: the parameters were given by hand or by a paper's rule.
    None,
}

/// Which errors to expect.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Forecast {
    /// The rate of false positives among distinct arrivals: a bound while the promise holds.
    pub predicted_fpr: f64,
    /// The rate of false negatives among duplicates: 0 for filters that never forget, otherwise only
    /// where the stream is known.
    pub predicted_fnr: Option<f64>,
    /// Until when.
    pub promise: Promise,
}

impl Forecast {
    /// The forecast of a filter that never forgets and fills up at `items`.
    pub(crate) fn until(items: u64, predicted_fpr: f64) -> Self {
        Forecast { predicted_fpr, predicted_fnr: Some(0.0), promise: Promise::UntilItems(items) }
    }

    /// The forecast of a filter that forgets, and so never fills up.
    pub(crate) fn always(predicted_fpr: f64) -> Self {
        Forecast { predicted_fpr, predicted_fnr: None, promise: Promise::Always }
    }
}

/// A filter on paper: every parameter fixed, nothing allocated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// The full spec.
    pub spec: Spec,
    /// All the memory that the filter will take.
    pub memory_bits: u64,
    /// Which errors to expect of it.
    pub forecast: Forecast,
    /// How it will hash.
    pub hashing: Hashing,
    /// What else there is to know about it, a sentence each.
    pub notes: Vec<String>,
}

impl Plan {
    /// A plan about which there is nothing else to know.
    pub(crate) fn new(spec: Spec, memory_bits: u64, forecast: Forecast, hashing: Hashing) -> Self {
        Plan { spec, memory_bits, forecast, hashing, notes: Vec::new() }
    }

    /// Allocates the filter.
    pub fn build(&self) -> Result<Box<dyn Filter>> {
        crate::planner::build(self)
    }
}
