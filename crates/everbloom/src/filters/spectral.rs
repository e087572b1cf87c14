//! `spectral`: how often did this key come?
//!
//! **Answers** with a count that is never too low (until a counter is full) and seldom too high, and so
//! also whether the key came at all. With `half_life=` counts fade: the time-decaying filter.
//!
//! # How it works
//!
//! A Spectral Bloom filter with *minimum increase* (\[Cohen & Matias 2003\]): the count of a key is the
//! smallest of its counters, and an insertion raises only those that hold that smallest value.
//!
//! ```text
//! probes of "a"    2   5   3        count 2
//! insert "a"       3   5   3        count 3; the 5 belongs to other keys and stays
//! ```
//!
//! Raising only the smallest halves the error of a plain counting filter or more, at the price that keys
//! cannot be removed.
//!
//! # Theory
//!
//! A count is too high only if every counter of the key was raised by others: at most at the rate at which
//! a Bloom filter with as many cells has false positives. Counters that are full stay full.
//!
//! `half_life=N` halves all counters, rounding down, after every N arrivals: a key that came c times
//! within the last half-life counts about c to 2c, one that stopped coming is gone after log2 c
//! half-lives. It may then be missed, so a spectral filter with a half-life forgets:
//! [`Kind::forgets`] says so, and it does not promise an FNR of 0.
//!
//! # Cost
//!
//! `num_hashes` cache lines a key; a pass over the counters every half-life.
//!
//! # Example
//!
//! ```
//! use everbloom::{Filter, Goal, Hashing, Key};
//! use everbloom::FilterExt;
//!
//! let mut seen = Goal::new().expected_items(1_000).fpr(0.01).plan("spectral")?.build()?;
//! for _ in 0..5 {
//!     seen.insert("five times");
//! }
//! let counts = seen.as_multiplicity().expect("it counts");
//! assert_eq!(counts.count_hash("five times".hash_with(&Hashing::default())), 5);
//! assert_eq!(counts.count_hash("never".hash_with(&Hashing::default())), 0);
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::cells::counters::{Counters, MAX_CELL_BITS};
use crate::filter::{
    Abilities, Base, Body, Effort, FillAt, Filter, Kind, Model, Multiplicity, Parameter, Plan, Restore, Takes, Unset,
    Windowed, shows_base,
};
use crate::format::StateWriter;
use crate::key::{Hashing, KeyHash};
use crate::promise::{Error, Goal, Holds, Importance, MAX_MEMORY_BITS, Promise, Result, Spec, Status, Verdict};
use crate::simd::spread_distance_for;
use crate::sizing::{MAX_HASHES, Size};

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 36,
    retired: &[33],
    name: "spectral",
    summary: "counts how often each key came; counts can fade with a half-life",
    parameters: &PARAMETERS,
    can: Abilities { count: true, advance: true, fade: Some("half_life"), ..Abilities::SET },
    model: Model { fill_at, effort, accesses: Some("num_hashes"), ..Model::sized(&["num_cells", "half_life"]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Spectral::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Spectral::restore(from)?)),
    map: None,
};

const PARAMETERS: [Parameter; 4] = [
    Parameter::planned("num_cells", "counters in all", Takes::Whole(1, MAX_MEMORY_BITS)),
    Parameter::planned("num_hashes", "counters that a key raises", Takes::Whole(1, MAX_HASHES as u64)),
    Parameter::planned(
        "cell_bits",
        "bits of a counter: 16, which count up to 65,535, or 8 or 4 where the memory is short",
        Takes::Whole(2, MAX_CELL_BITS as u64),
    ),
    Parameter::planned(
        "half_life",
        "arrivals after which counts are halved; 0 for never",
        Takes::Whole(0, MAX_HALF_LIFE),
    )
    .or(Unset::Value("0")),
];

/// Longer half-lives are none.
const MAX_HALF_LIFE: u64 = 1 << 56;
/// Counts up to 65,535.
pub const DEFAULT_CELL_BITS: u32 = 16;
/// Counts up to 255 or 15, where the memory does not suffice for more.
const NARROW_CELL_BITS: [u32; 2] = [8, 4];

/// The parameters of a spectral filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// Counters and probes.
    pub size: Size,
    /// Bits of a counter.
    pub cell_bits: u32,
    /// Arrivals after which counts are halved; 0 for never.
    pub half_life: u64,
}

impl Parameters {
    fn checked(self) -> Result<Self> {
        self.size.checked()?;
        if !(2..=MAX_CELL_BITS).contains(&self.cell_bits) {
            let needed = format!("between 2 and {MAX_CELL_BITS}");
            return Err(Error::parameter("cell_bits", self.cell_bits, needed, "16 bits count up to 65,535"));
        }
        if self.half_life > MAX_HALF_LIFE {
            return Err(Error::parameter(
                "half_life",
                self.half_life,
                "at most 2^56",
                "give 0 for counts that never fade",
            ));
        }
        Ok(self)
    }

    fn with_size(spec: &Spec, size: Size) -> Result<Self> {
        let cell_bits = spec.number("cell_bits")?.unwrap_or(DEFAULT_CELL_BITS);
        Parameters { size, cell_bits, half_life: spec.number("half_life")?.unwrap_or(0) }.checked()
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        let size = Size { num_cells: spec.required("num_cells")?, num_hashes: spec.required("num_hashes")? };
        Self::with_size(spec, size)
    }

    fn spec(&self) -> Spec {
        Spec::new(KIND.name)
            .with("num_cells", self.size.num_cells)
            .with("num_hashes", self.size.num_hashes)
            .with("cell_bits", self.cell_bits)
            .with("half_life", self.half_life)
    }

    fn promise(&self, items: Option<u64>, rate: Option<f64>) -> Promise {
        let promise = self.size.promise(items, rate);
        if self.half_life == 0 { promise } else { Promise { predicted_fnr: None, ..promise } }
    }
}

fn fill_at(spec: &Spec) -> Result<Option<FillAt>> {
    let Parameters { size, half_life, .. } = Parameters::from_spec(spec)?;
    // Counts that fade have no formula.
    Ok(if half_life == 0 { Some(Box::new(move |items| size.state(items))) } else { None })
}

/// What it costs to halve all counters, where that is asked for.
fn effort(spec: &Spec) -> Result<Option<Effort>> {
    let Parameters { size, cell_bits, half_life } = Parameters::from_spec(spec)?;
    let words = size.num_cells / u64::from(64 / cell_bits);
    let one = |half_life| {
        let changed = words as f64 / half_life as f64;
        Effort { parameter: "half_life", given: half_life, changed, grows: false }
    };
    Ok((half_life > 0).then(|| one(half_life)))
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let plan = planned_with(spec, goal);
    if !matches!(plan, Err(Error::Infeasible { .. })) || spec.get("cell_bits").is_some() {
        return plan;
    }
    // Where memory is short, low counts are better than none.
    let narrow = |cell_bits: u32| {
        let mut plan = planned_with(&spec.clone().with("cell_bits", cell_bits), goal).ok()?;
        plan.notes.push(format!("the memory allows counts up to {}; a full counter says so", (1 << cell_bits) - 1));
        Some(plan)
    };
    NARROW_CELL_BITS.into_iter().find_map(narrow).map_or(plan, Ok)
}

fn planned_with(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let placeholder = Parameters::with_size(spec, Size { num_cells: 1, num_hashes: 1 })?;
    let (size, items) = Size::planned(spec, goal, ["num_cells", "num_hashes"], placeholder.cell_bits)?;
    let parameters = Parameters { size, ..placeholder };
    Ok(Plan::new(
        &KIND,
        parameters.spec(),
        Counters::byte_length(size.num_cells, parameters.cell_bits).saturating_mul(8),
        parameters.promise(items, goal.target_fpr),
        goal.hashing,
    ))
}

/// The spectral Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Spectral {
    parameters: Parameters,
    base: Base,
    counters: Counters,
    /// Arrivals since counts were last halved.
    since_halving: u64,
}

impl Spectral {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        let promise = Promise { holds: Holds::Never, ..parameters.promise(None, None) };
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, promise)?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        Ok(Spectral {
            parameters,
            base,
            counters: Counters::new(parameters.size.num_cells, parameters.cell_bits)?,
            since_halving: 0,
        })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(Counters::byte_length(parameters.size.num_cells, parameters.cell_bits))?;
        let mut filter = Self::with_base(parameters, Base::restored(parameters.spec(), &mut from)?)?;
        filter.since_halving = from.state.u64()?;
        from.state.finish()?;
        from.body.fill(filter.counters.bytes_mut())?;
        filter.counters.check()?;
        Ok(filter)
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    #[inline]
    fn probes(&self, hash: KeyHash) -> impl Iterator<Item = u64> + use<> {
        self.parameters.size.probes(hash)
    }

    #[inline]
    fn smallest(&self, hash: KeyHash) -> u16 {
        self.probes(hash).map(|position| self.counters.get(position)).min().unwrap_or(0)
    }

    fn halve(&mut self) {
        self.counters.halve();
        self.since_halving = 0;
    }
}

crate::typed_filter!(Spectral: KIND; count advance);

impl Filter for Spectral {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.counters.memory_bits()
    }

    fn status(&self) -> Status {
        let status = self.parameters.size.status(self.base.arrivals, self.counters.fill());
        Status { full_counters: self.counters.count_saturated(), ..status }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        self.smallest(hash) > 0
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        Verdict::from_seen(!self.insert_hash(hash))
    }

    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        if self.parameters.half_life > 0 && self.since_halving >= self.parameters.half_life {
            self.halve();
        }
        self.base.count(1);
        self.since_halving = self.since_halving.saturating_add(1);
        let count = self.smallest(hash);
        for position in self.probes(hash) {
            if self.counters.get(position) == count {
                self.counters.set(position, count.saturating_add(1));
            }
        }
        count == 0
    }

    fn prefetch_distance(&self) -> usize {
        spread_distance_for(self.counters.bytes())
    }

    fn prefetch_hashes(&self, hashes: &[KeyHash]) {
        let positions = hashes.iter().flat_map(|hash| self.probes(*hash));
        positions.for_each(|position| self.counters.prefetch(position));
    }

    fn clear(&mut self) {
        self.counters.clear();
        (self.base.arrivals, self.since_halving) = (0, 0);
    }

    fn as_multiplicity(&self) -> Option<&dyn Multiplicity> {
        Some(self)
    }

    fn as_windowed(&mut self) -> Option<&mut dyn Windowed> {
        Some(self)
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        state.u64(self.since_halving)
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.counters.bytes()])
    }
}

impl Multiplicity for Spectral {
    fn count_hash(&self, hash: KeyHash) -> u64 {
        self.smallest(hash).into()
    }

    fn max_count(&self) -> u64 {
        self.counters.max().into()
    }
}

/// A generation is a half-life: for counts that fade with time, the caller halves them.
impl Windowed for Spectral {
    fn generations(&self) -> u32 {
        1
    }

    fn window(&self) -> u64 {
        0
    }

    fn advance(&mut self) {
        self.halve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn counts_are_never_too_low_and_seldom_too_high() {
        let plan = Goal::new().expected_items(2000).fpr(0.01).plan("spectral").expect("plans");
        let mut filter = Spectral::from_plan(&plan).expect("fits");
        let times = |key: u64| 1 + key % 7;
        for key in 0..2000u64 {
            (0..times(key)).for_each(|_| {
                filter.insert_hash(key.hash_with(&plan.hashing));
            });
        }
        let counts: Vec<u64> = (0..2000u64).map(|key| filter.count_hash(key.hash_with(&plan.hashing))).collect();
        assert!((0..2000u64).all(|key| counts[key as usize] >= times(key)));
        let high = (0..2000u64).filter(|key| counts[*key as usize] > times(*key)).count();
        // At most the false-positive rate, with four standard deviations of room.
        assert!((high as f64) <= 20.0 + 4.0 * 20f64.sqrt(), "{high} counts are too high");
    }

    #[test]
    fn a_full_counter_says_so_and_is_counted() {
        let plan = Goal::new().expected_items(100).fpr(0.001).plan("spectral:cell_bits=8").expect("plans");
        let mut filter = Spectral::from_plan(&plan).expect("fits");
        let hash = "busy".hash_with(&plan.hashing);
        (0..254).for_each(|_| {
            filter.insert_hash(hash);
        });
        assert_eq!((filter.count_hash(hash), filter.status().full_counters), (254, 0));
        (0..3).for_each(|_| {
            filter.insert_hash(hash);
        });
        let full = u64::from(plan.spec.required::<u32>("num_hashes").expect("a full spec"));
        assert_eq!((filter.count_hash(hash), filter.max_count(), filter.status().full_counters), (255, 255, full));
    }

    #[test]
    fn counters_are_as_wide_as_the_memory_allows() {
        let wide = Goal::new().expected_items(1000).fpr(0.01).plan("spectral").expect("plans");
        assert_eq!((wide.spec.get("cell_bits"), wide.notes.len()), (Some("16"), 0));
        let narrow = Goal::new().expected_items(1000).fpr(0.01).memory_bits(80_000).plan("spectral").expect("plans");
        assert_eq!(narrow.spec.get("cell_bits"), Some("8"));
        assert!(narrow.notes[0].contains("up to 255"), "{:?}", narrow.notes);
    }

    #[test]
    fn counts_fade_with_their_half_life() {
        let plan = Goal::new().expected_items(5000).fpr(0.001).plan("spectral:half_life=1000").expect("plans");
        let mut filter = Spectral::from_plan(&plan).expect("fits");
        let hash = "once busy".hash_with(&plan.hashing);
        (0..64).for_each(|_| {
            filter.insert_hash(hash);
        });
        let mut counts = vec![filter.count_hash(hash)];
        for key in 0..8000u64 {
            filter.insert_hash(key.hash_with(&plan.hashing));
            if key % 1000 == 999 {
                counts.push(filter.count_hash(hash));
            }
        }
        assert_eq!(counts, [64, 32, 16, 8, 4, 2, 1, 0, 0]);
    }
}
