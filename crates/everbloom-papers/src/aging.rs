//! `aging`: two buffers that take turns.
//!
//! **Answers** "was this key among about the last `window` distinct keys?" Never says no to one that was;
//! keys up to twice as old may be found, too. The rate of false positives is bounded at every moment.
//!
//! # How it works
//!
//! Two Bloom filters of the same size (\[Yoon 2010\]). New keys go into the active one; a key found only in
//! the other is copied, so that what keeps coming stays. When the active one has taken `window` keys, the
//! other is emptied and becomes the active one.
//!
//! ```text
//!              active      retiring
//! filling      a b c …     v w x y z      both are asked
//! full         a … q       v w x y z
//! next         ∅           a … q          the retiring one is emptied and takes over
//! ```
//!
//! Both buffers are cache-line-blocked: an arrival touches one line in each.
//!
//! # Theory
//!
//! A query errs if either buffer does: FPR ≤ 1 − (1 − f)², f the blocked filter's rate at `window` keys
//! (see [`blocked`](everbloom::filters::blocked)). The older double buffering (an active and a warm-up buffer that is
//! filled in advance and not asked) guarantees half the window with the same memory; it is not offered.
//!
//! # When to choose it
//!
//! As the simplest window there is, where memory is plentiful: the last keys take about 23 bits each at
//! 1 %, a little more than the 21 of [`AgePartitioned`](everbloom::AgePartitioned), whose window slides smoothly and whose
//! memory of old keys ends sharply.
//!
//! # Example
//!
//! ```
//! use everbloom_all::KINDS;
//! use everbloom::FilterExt;
//! use everbloom::{Goal, Importance};
//!
//! let mut recent = Goal::new().fpr(0.01).plan_among(KINDS, "aging:window=1000")?.build()?;
//! for key in 0..10_000u64 {
//!     recent.observe(&key, Importance::FULL);
//! }
//! assert!((9_000..10_000u64).all(|key| recent.contains(&key)));
//! assert!(!recent.contains(&5u64));
//! # Ok::<(), everbloom::Error>(())
//! ```

use everbloom::kind::{
    Abilities, Base, Body, Effort, Kind, MAX_MEMORY_BITS, Model, Parameter, Restore, StateWriter, Takes,
    WindowParameters, Windowed, rate_text, shows_base, size_text,
};
use everbloom::sizing::closed_forms::{blocked_fpr, largest, smallest};
use everbloom::{Error, Filter, Goal, Hashing, Importance, KeyHash, Plan, Promise, Result, Spec, Status, Verdict};
use everbloom_cells::blocks::{self, line_of};
use everbloom_cells::buffer::{Buffer, LINE_BITS};
use everbloom_cells::simd::{distance_for, prefetch};

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 31,
    retired: &[],
    name: "aging",
    summary: "two buffers that take turns: the last keys are never missed",
    parameters: &PARAMETERS,
    can: Abilities {
        advance: true,
        window: Some(WindowParameters { parameter: "window", by_caller: None, refresh: None }),
        ..Abilities::STREAM
    },
    model: Model { effort, ..Model::sized(&["num_lines", "window"]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Aging::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Aging::restore(from)?)),
    map: None,
};

const PARAMETERS: [Parameter; 2] = [
    Parameter::planned("window", "new keys within which no repeat is missed", Takes::Whole(1, MAX_WINDOW)),
    Parameter::planned("num_lines", "lines of 512 bits of each of the two buffers", Takes::Whole(1, MAX_LINES)),
];

/// Longer windows are none.
const MAX_WINDOW: u64 = 1 << 56;
const MAX_LINES: u64 = MAX_MEMORY_BITS / LINE_BITS / 2;

/// The parameters of an aging filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// New keys that a buffer takes before the buffers change places.
    pub window: u64,
    /// Cache lines of each buffer.
    pub num_lines: u64,
}

impl Parameters {
    /// The bound of the rate of false positives: both buffers as full as they get.
    pub fn predicted_fpr(&self) -> f64 {
        let one = blocked_fpr(self.num_lines, self.window as f64);
        one * (2.0 - one)
    }

    fn checked(self) -> Result<Self> {
        if !(1..=MAX_LINES).contains(&self.num_lines) {
            let needed = format!("between 1 and {MAX_LINES}");
            return Err(Error::parameter("num_lines", self.num_lines, needed, "give at least 1024 bits of memory"));
        }
        if !(1..=MAX_WINDOW).contains(&self.window) {
            let remedy = "give the number of keys that must not be missed";
            return Err(Error::parameter("window", self.window, "between 1 and 2^56", remedy));
        }
        Ok(self)
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        Parameters { window: spec.required("window")?, num_lines: spec.required("num_lines")? }.checked()
    }

    fn spec(&self) -> Spec {
        Spec::new(KIND.name).with("window", self.window).with("num_lines", self.num_lines)
    }
}

/// What it costs to empty a buffer once it is full.
fn effort(spec: &Spec) -> Result<Option<Effort>> {
    let Parameters { window, num_lines } = Parameters::from_spec(spec)?;
    let changed = num_lines as f64 * (LINE_BITS / 64) as f64 / window as f64;
    Ok(Some(Effort { parameter: "window", given: window, changed, grows: false }))
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let given = spec.number("num_lines")?;
    let affordable = given.or(goal.most_memory_bits().map(|bits| bits / LINE_BITS / 2));
    let window = spec.number("window")?.or(if affordable.is_none() { goal.known_items() } else { None });
    let parameters = match (window, affordable, goal.target_fpr()) {
        (Some(window), None, Some(target)) => fewest_lines(window, target)?,
        (Some(window), Some(num_lines), None) => Parameters { window, num_lines },
        (Some(window), Some(num_lines), Some(target)) => {
            let draft = Parameters { window, num_lines }.checked()?;
            if given.is_some() { draft } else { within(draft, target)? }
        }
        (None, Some(num_lines), Some(target)) => Parameters {
            window: longest(num_lines, target),
            num_lines: Parameters { window: 1, num_lines }.checked()?.num_lines,
        },
        _ => {
            let remedy = "give window= and a target rate, or the memory and one of them";
            return Err(spec.error("too little is known to size it", remedy));
        }
    }
    .checked()?;
    Ok(Plan::new(
        &KIND,
        parameters.spec(),
        2 * parameters.num_lines * LINE_BITS,
        Promise::always(parameters.predicted_fpr()),
        goal.key_hashing(),
    ))
}

fn fewest_lines(window: u64, target: f64) -> Result<Parameters> {
    Parameters { window, num_lines: 1 }.checked()?;
    smallest(1, MAX_MEMORY_BITS / LINE_BITS / 2, |num_lines| Parameters { window, num_lines }.predicted_fpr() <= target)
        .map(|num_lines| Parameters { window, num_lines })
        .ok_or_else(|| Error::Infeasible {
            wanted: format!("a rate of {} for a window of {window}", rate_text(target)),
            reason: "eight hashes in one cache line do not reach it".into(),
            remedy: "accept a higher rate or take age_partitioned".into(),
        })
}

fn longest(num_lines: u64, target: f64) -> u64 {
    let most = num_lines.saturating_mul(LINE_BITS).min(1 << 56);
    largest(most, |window| Parameters { window, num_lines }.predicted_fpr() <= target)
}

fn within(draft: Parameters, target: f64) -> Result<Parameters> {
    let needed = fewest_lines(draft.window, target)?;
    if needed.num_lines <= draft.num_lines {
        return Ok(needed);
    }
    Err(Error::Infeasible {
        wanted: format!("a window of {} at a rate of {}", draft.window, rate_text(target)),
        reason: format!(
            "it needs {}, more than {}",
            size_text(needed.num_lines * 2 * LINE_BITS),
            size_text(draft.num_lines * 2 * LINE_BITS)
        ),
        remedy: format!("give that much memory, or a window of at most {}", longest(draft.num_lines, target)),
    })
}

/// The two-buffer filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Aging {
    parameters: Parameters,
    base: Base,
    active: Buffer,
    retiring: Buffer,
    /// New keys in the active buffer.
    taken: u64,
}

impl Aging {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        let promise = Promise::always(parameters.predicted_fpr());
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, promise)?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        Ok(Aging {
            parameters,
            base,
            active: Buffer::with_lines(parameters.num_lines)?,
            retiring: Buffer::with_lines(parameters.num_lines)?,
            taken: 0,
        })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(parameters.num_lines * 2 * 64)?;
        let taken = from.state.u64()?;
        let mut filter = Self::with_base(parameters, Base::restored(parameters.spec(), &mut from)?)?;
        filter.taken = taken;
        from.state.finish()?;
        from.body.fill(filter.active.bytes_mut())?;
        from.body.fill(filter.retiring.bytes_mut())?;
        Ok(filter)
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    #[inline]
    fn line(&self, hash: KeyHash) -> usize {
        line_of(hash, self.parameters.num_lines as usize)
    }

    fn swap(&mut self) {
        std::mem::swap(&mut self.active, &mut self.retiring);
        self.active.clear();
        self.taken = 0;
    }

    fn observe_lines(&mut self, hash: KeyHash) -> Verdict {
        self.base.count(1);
        let at = self.line(hash);
        if blocks::contains(&self.active.lines()[at], hash.low) {
            return Verdict::Duplicate;
        }
        let seen = blocks::contains(&self.retiring.lines()[at], hash.low);
        if self.taken >= self.parameters.window {
            self.swap();
        }
        blocks::insert(&mut self.active.lines_mut()[at], hash.low);
        self.taken = self.taken.saturating_add(1);
        Verdict::from_seen(seen)
    }

    fn prefetch(&self, hash: KeyHash) {
        let at = self.line(hash);
        prefetch(self.active.lines(), at);
        prefetch(self.retiring.lines(), at);
    }
}

/// The rate of a buffer: the mean over its lines of the product over their words.
fn rate_of(buffer: &Buffer) -> f64 {
    let line_rate = |words: &[u64; 8]| words.iter().map(|word| f64::from(word.count_ones()) / 64.0).product::<f64>();
    buffer.lines().iter().map(|line| line_rate(&line.0)).sum::<f64>() / buffer.lines().len() as f64
}

everbloom::typed_filter!(Aging: KIND; advance);

impl Filter for Aging {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.active.allocated_bits() + self.retiring.allocated_bits()
    }

    fn status(&self) -> Status {
        let ones = self.active.count_ones() + self.retiring.count_ones();
        let (one, other) = (rate_of(&self.active), rate_of(&self.retiring));
        Status {
            arrivals: self.base.arrivals,
            fill: ones as f64 / self.memory_bits() as f64,
            estimated_fpr: one + other - one * other,
            estimated_items: None,
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        let at = self.line(hash);
        blocks::contains(&self.active.lines()[at], hash.low) || blocks::contains(&self.retiring.lines()[at], hash.low)
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        self.observe_lines(hash)
    }

    fn prefetch_distance(&self) -> usize {
        distance_for(self.active.lines())
    }

    fn prefetch_hashes(&self, hashes: &[KeyHash]) {
        hashes.iter().for_each(|hash| self.prefetch(*hash));
    }

    fn clear(&mut self) {
        self.active.clear();
        self.retiring.clear();
        (self.taken, self.base.arrivals) = (0, 0);
    }

    fn as_windowed(&mut self) -> Option<&mut dyn Windowed> {
        Some(self)
    }

    fn state(&self) -> Vec<u8> {
        StateWriter::new().u64(self.taken).u64(self.base.arrivals).finish()
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.active.bytes(), self.retiring.bytes()])
    }
}

impl Windowed for Aging {
    fn generations(&self) -> u32 {
        1
    }

    fn window(&self) -> u64 {
        self.parameters.window
    }

    fn advance(&mut self) {
        self.swap();
    }
}
