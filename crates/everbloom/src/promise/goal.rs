//! What a user wants, what a filter promises for it, and the way from one to the other.
//!
//! `Goal` → `Plan` (with its `Promise`) → filter. Planning never allocates the filter, so it can be
//! asked freely.

use super::{Count, Error, ImportanceMix, Rate, Result, Size, Spec};
use crate::key::Hashing;

/// The largest memory that can be planned, 128 PiB: beyond it, arithmetic on bits would overflow.
pub const MAX_MEMORY_BITS: u64 = 1 << 60;

/// The largest number of keys that can be planned for: no stream is longer, and 2^64 − 1 means
/// "always" in the format.
pub const MAX_ITEMS: u64 = 1 << 60;

/// The least rate that can be asked for, and that is promised.
///
/// A filter that keeps 64 bits of each hash takes a new key for one of n others with probability n/2^64, which is 1e-15
/// with 18,000 keys; such filters say so themselves for the keys they are planned for. Filters that use all 128 bits
/// would come to less by their formulas. But a formula is as good as the hash is random, and nobody has counted collisions
/// of XXH3 at such rates: that takes 10^15 keys. So no lower rate is promised, whatever the filter.
pub const LEAST_RATE: f64 = 1e-15;

/// The least rate of a filter that is a part of another, whose own is the sum of such.
pub(crate) const LEAST_RATE_OF_A_PART: f64 = 1e-30;

/// What a user wants of a filter. Say what you know; the planner does the rest.
///
/// ```
/// use everbloom::Goal;
///
/// let plan = Goal::new().expected_items(1_000_000).fpr(0.01).plan("bloom")?;
/// assert_eq!(plan.spec.to_string(), "bloom:num_bits=9592964,num_hashes=7");
/// assert!(plan.promise.fpr_bound <= 0.01);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Goal {
    /// The kind, and what is settled of its parameters; the planner chooses if nothing is said.
    pub(crate) filter: Option<Spec>,
    /// The most memory the filter's state may take.
    pub(crate) memory_bits: Option<u64>,
    /// The rate of false positives to keep at every moment.
    pub(crate) target_fpr: Option<f64>,
    /// How many distinct keys will come, if known.
    pub(crate) expected_items: Option<u64>,
    /// Whether arrivals carry importances that tell them apart.
    pub(crate) importance: bool,
    /// How their importances are spread, if known.
    pub(crate) importance_mix: Option<ImportanceMix>,
    /// Whether the filter is to be small when compressed, rather than in memory.
    pub(crate) compressed: bool,
    /// The most bytes that the filter may take when it is sent, compressed and with its header.
    pub(crate) transmitted_bytes: Option<u64>,
    /// How keys are hashed.
    pub(crate) hashing: Hashing,
    /// Whether a key that was inserted may never be missed, whichever kind the planner chooses.
    pub(crate) never_forget: bool,
    /// Whether no arrival may take much longer than others, whichever kind the planner chooses.
    pub(crate) bounded_latency: bool,
    /// Whether the number of keys is a guess, and more may come.
    pub(crate) open_ended: bool,
    /// Whether nobody asked for the target rate: what breaks it is then said, not refused.
    pub(crate) assumed_fpr: bool,
    /// Whether nobody bounded the memory: it is what there is to plan with, and a spec may give itself more.
    pub(crate) assumed_memory: bool,
    /// What could not be read of what was given; the first such error surfaces when the goal is planned.
    pub(crate) problem: Option<Error>,
}

impl Goal {
    /// A goal that says nothing yet.
    pub fn new() -> Self {
        Goal::default()
    }

    /// Names the filter, with as many of its parameters as are settled: `counting`, `ranked:lanes=3`. One filter can be
    /// named, or a window asked for, not both.
    pub fn filter(self, spec: &str) -> Self {
        let spec = Spec::parse(spec);
        self.set_filter_once(spec)
    }

    /// Settles the filter, which may be done once.
    pub(crate) fn set_filter_once(mut self, spec: Result<Spec>) -> Self {
        let spec = match (spec, &self.filter) {
            (Ok(spec), Some(before)) => Err(spec.error(
                format!("the goal has a filter already, '{before}'"),
                "name one filter, or ask for a window and leave the filter to the planner",
            )),
            (spec, _) => spec,
        };
        if let Some(spec) = self.kept(spec) {
            self.filter = Some(spec);
        }
        self
    }

    /// Bounds the memory of the filter's state: a number of bytes, or a size such as `64MiB`. A spec whose own sizes take
    /// more is refused. Filters that grow (`scalable`, `exact`) begin within it, and take more as keys come.
    pub fn memory(mut self, size: impl Into<Size>) -> Self {
        (self.memory_bits, self.assumed_memory) = (self.kept(size.into().named("memory").get()), false);
        self
    }

    /// Bounds the memory of the filter's state, in bits.
    pub fn memory_bits(mut self, bits: u64) -> Self {
        (self.memory_bits, self.assumed_memory) = (Some(bits), false);
        self
    }

    /// The memory in bits to plan with where nobody bounded it. A spec whose own sizes are larger is taken.
    pub fn default_memory_bits(mut self, bits: u64) -> Self {
        if self.memory_bits.is_none() {
            (self.memory_bits, self.assumed_memory) = (Some(bits), true);
        }
        self
    }

    /// Takes memory and rate as what to plan with, not as bounds: specs whose own parameters exceed them are planned all
    /// the same, to be compared.
    pub fn defaults_only(mut self) -> Self {
        (self.assumed_memory, self.assumed_fpr) = (true, true);
        self
    }

    /// Sets the rate of false positives to keep: a number, or a percentage such as `1%`.
    pub fn fpr(mut self, rate: impl Into<Rate>) -> Self {
        (self.target_fpr, self.assumed_fpr) = (self.kept(rate.into().named("fpr").get()), false);
        self
    }

    /// The rate to plan for where nobody asked for one. Parameters that break it are taken, with a note.
    pub fn default_fpr(mut self, rate: impl Into<Rate>) -> Self {
        if self.target_fpr.is_none() {
            (self, self.assumed_fpr) = (self.fpr(rate), true);
        }
        self
    }

    /// Says that no key may be missed once it was inserted: the planner's own choice then falls on no kind that forgets,
    /// and is refused if the memory does not suffice.
    pub fn never_forget(mut self) -> Self {
        self.never_forget = true;
        self
    }

    /// Says that no arrival may take much longer than others, because many wait for it: the planner's own choice then falls on
    /// no kind that changes all of its cells at once.
    ///
    /// ```
    /// let goal = everbloom::Goal::new().memory("1MiB").fpr("1%");
    /// assert_eq!(goal.plan("auto")?.spec.kind(), "graceful");
    /// assert_eq!(goal.bounded_latency().plan("auto")?.spec.kind(), "ranked");
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn bounded_latency(mut self) -> Self {
        self.bounded_latency = true;
        self
    }

    /// Says that the number of expected keys is a guess, and that more may come, as in a stream that does not end: the
    /// planner's own choice then falls on a kind that is exact as long as the memory lasts, or, if memory has no bound, on one that
    /// grows.
    ///
    /// ```
    /// let goal = everbloom::Goal::new().expected_items("10k").fpr("1%");
    /// assert_eq!(goal.plan("auto")?.spec.kind(), "blocked");
    /// assert_eq!(goal.open_ended().plan("auto")?.spec.kind(), "scalable");
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn open_ended(mut self) -> Self {
        self.open_ended = true;
        self
    }

    /// Leaves the memory open.
    pub fn without_memory(mut self) -> Self {
        (self.memory_bits, self.assumed_memory) = (None, false);
        self
    }

    /// Leaves the rate open.
    pub fn without_fpr(mut self) -> Self {
        (self.target_fpr, self.assumed_fpr) = (None, false);
        self
    }

    /// Leaves the number of keys open.
    pub fn without_expected_items(mut self) -> Self {
        self.expected_items = None;
        self
    }

    /// Says that importances do not matter.
    pub fn without_importance(mut self) -> Self {
        (self.importance, self.importance_mix) = (false, None);
        self
    }

    /// Leaves the choice of the filter to the planner.
    pub fn without_filter(mut self) -> Self {
        self.filter = None;
        self
    }

    /// Says how many distinct keys will come: a number, or a count such as `5M`.
    pub fn expected_items(mut self, items: impl Into<Count>) -> Self {
        self.expected_items = self.kept(items.into().named("expected_items").get());
        self
    }

    /// The value, or nothing, with the error kept for later.
    pub(crate) fn kept<T>(&mut self, value: Result<T>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem.get_or_insert(error);
                None
            }
        }
    }

    /// Surfaces the first error of the builder, and of its numbers.
    pub fn checked(&self) -> Result<()> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        self.checked_fpr()?;
        self.checked_memory()?;
        self.checked_items().map(|_| ())
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
    /// use everbloom::{codec, FilterExt};
    /// use everbloom::Goal;
    ///
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let plan = Goal::new().expected_items(10_000).transmitted_bytes(10_000).plan("bloom")?;
    /// let mut filter = plan.build()?;
    /// filter.insert_batch(&keys);
    /// assert!(codec::encode_compressed(&*filter).len() <= 10_000);
    /// // What the same bytes keep as they are, 8 bits a key, is 2.2 %.
    /// assert!(plan.promise.fpr_bound < 0.012, "{:?}", plan.promise);
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

    /// The target rate, checked; `None` if not given.
    pub fn checked_fpr(&self) -> Result<Option<f64>> {
        match self.target_fpr {
            Some(rate) if !(rate > 0.0 && rate < 1.0) => {
                Err(Error::parameter("fpr", rate, "above 0 and below 1", "try 0.1%"))
            }
            Some(rate) if rate < LEAST_RATE => Err(too_low("fpr", format!("{rate:e}"))),
            rate => Ok(rate),
        }
    }

    /// The memory bound, checked; `None` if not given.
    pub(crate) fn checked_memory(&self) -> Result<Option<u64>> {
        match self.memory_bits {
            Some(bits) if bits == 0 || bits > MAX_MEMORY_BITS => {
                Err(Error::memory(bits, "at least one bit and at most 128PiB", "try 64MiB"))
            }
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
    pub fn required_fpr(&self) -> Result<f64> {
        self.checked_fpr()?.ok_or_else(|| missing("fpr", "say which rate of false positives to keep"))
    }

    /// The number of distinct keys that a filter needs to plan at all.
    pub fn required_items(&self) -> Result<u64> {
        self.checked_items()?.ok_or_else(|| missing("expected_items", "say how many distinct keys will come"))
    }

    /// The memory that a filter needs to plan at all.
    pub fn required_memory(&self) -> Result<u64> {
        self.checked_memory()?.ok_or_else(|| missing("memory", "say how much memory the filter may use"))
    }
}

/// What a goal says, for those who plan for it.
impl Goal {
    /// The filter that is named, if any.
    pub fn named_filter(&self) -> Option<&Spec> {
        self.filter.as_ref()
    }

    /// The most memory, in bits.
    pub fn most_memory_bits(&self) -> Option<u64> {
        self.memory_bits
    }

    /// The rate of false positives to keep.
    pub fn target_fpr(&self) -> Option<f64> {
        self.target_fpr
    }

    /// The number of distinct keys.
    pub fn known_items(&self) -> Option<u64> {
        self.expected_items
    }

    /// Whether arrivals carry importances.
    pub fn has_importance(&self) -> bool {
        self.importance
    }

    /// How importances are spread, if that is known.
    pub fn known_importance_mix(&self) -> Option<ImportanceMix> {
        self.importance_mix
    }

    /// Whether the filter is to be small when it is compressed.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Whether no key may be missed.
    pub fn never_forgets(&self) -> bool {
        self.never_forget
    }

    /// Whether no arrival may take much longer than others.
    pub fn has_bounded_latency(&self) -> bool {
        self.bounded_latency
    }

    /// Whether the number of keys is a guess.
    pub fn is_open_ended(&self) -> bool {
        self.open_ended
    }

    /// Whether nobody bounded the memory.
    pub fn has_default_memory(&self) -> bool {
        self.assumed_memory
    }

    /// How keys are hashed.
    pub fn key_hashing(&self) -> Hashing {
        self.hashing
    }
}

/// A rate that no hash justifies.
pub(crate) fn too_low(name: &'static str, given: impl ToString) -> Error {
    let needed = format!("at least {LEAST_RATE:e}, since keys that share their hash cannot be told apart");
    Error::parameter(name, given, needed, "try 1e-12")
}

fn missing(name: &'static str, remedy: &str) -> Error {
    Error::parameter(name, "not given", "given", remedy)
}
