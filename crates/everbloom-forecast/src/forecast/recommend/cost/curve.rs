//! The cost against the memory, and where the curve bends.

use super::search::{Leader, Search, Tried};
use super::{ExpectedCost, Idle};
use everbloom::kind::MAX_MEMORY_BITS;
use everbloom::{Result, Spec};
use libm::{ceil, exp2, floor, log2};

/// The best filter of a memory, as a short simulation finds it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CostPoint {
    /// The memory.
    pub memory_bits: u64,
    /// The cheapest filter of that memory, within the limits.
    pub filter: Spec,
    /// What it costs.
    pub cost: ExpectedCost,
    /// The mean rate of false positives.
    pub predicted_fpr: f64,
    /// The rate of false negatives.
    pub predicted_fnr: f64,
}

/// The cost of the cheapest filter against its memory.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CostCurve {
    /// From little memory to so much that no error is left, each time twice as much.
    pub points: Vec<CostPoint>,
    /// The memory at which the curve bends: from there on, every doubling saves less than a hundredth of what it costs to
    /// let everything through or to drop everything, whichever is cheaper.
    pub bend_bits: Option<u64>,
}

/// Bits for each distinct key at which the curve begins,
const FEWEST_BITS: f64 = 1.0 / 16.0;

/// and at which it ends: every key has room in a table that is half full.
const MOST_BITS: f64 = 160.0;

/// Bits for each distinct key at which it is told who takes part at a glance: filters that forget differ most where they must.
const BITS_OF_LEADERS: f64 = 2.0;

/// A smaller filter than this is none.
const LEAST_BITS: f64 = 4096.0;

/// A doubling of the memory that saves less than this share of what no filter costs is not worth much.
const WORTH_DOUBLING: f64 = 0.01;

/// Errors that cost less than this share of it are none.
const NOTHING: f64 = 1e-4;

fn doublings(from: f64, to: f64) -> impl DoubleEndedIterator<Item = u64> {
    let (first, last) = (floor(log2(from)), ceil(log2(to.max(from))).min(log2(MAX_MEMORY_BITS as f64)));
    (first as u32..=last as u32).map(|power| exp2(f64::from(power)) as u64)
}

/// The cheapest filter of a memory that keeps the limits, at a glance one of the leaders.
fn cheapest(search: &Search<'_>, memory_bits: u64, leaders: &[Leader]) -> Option<Tried> {
    search.glance_for_curve(memory_bits, leaders).into_iter().find(|one| search.keeps_limits(one, 1.0))
}

/// The smallest memory, each time twice as much, above a limit that was too low.
pub(super) fn least_memory(search: &Search<'_>, above: u64) -> Option<u64> {
    let most = MOST_BITS * search.stream.distinct() as f64;
    let leaders = search.leaders(above);
    doublings(above as f64, most).filter(|bits| *bits > above).find(|bits| cheapest(search, *bits, &leaders).is_some())
}

impl CostCurve {
    /// From little memory to so much that no error is left.
    pub(super) fn drawn(search: &Search<'_>, given: Option<u64>) -> Result<Self> {
        let distinct = search.stream.distinct() as f64;
        let mut from = (FEWEST_BITS * distinct).max(LEAST_BITS);
        let mut to = (MOST_BITS * distinct).max(from);
        if let Some(given) = given {
            (from, to) = (from.min(given as f64).max(512.0), to.max(given as f64));
        }
        let leaders = search.leaders((BITS_OF_LEADERS * distinct).clamp(from, to) as u64);
        let at = |bits: u64| cheapest(search, bits, &leaders).map(|one| CostPoint::of(bits, &one));
        let mut points: Vec<CostPoint> = Vec::new();
        let step = doublings(from, to).count().div_ceil(search.question.pace().memories).max(1);
        for bits in doublings(from, to).step_by(step) {
            points.extend(at(bits));
            // Beyond, there is nothing to save.
            let is_free = points.last().is_some_and(|last| last.errors() <= NOTHING * search.idle.least());
            if is_free && given.is_none_or(|given| bits >= given) {
                break;
            }
        }
        let mut curve = CostCurve { points, bend_bits: None };
        curve.level();
        curve.bend_bits = curve.bend(search.idle);
        Ok(curve)
    }

    /// More memory does no harm: what costs more with it on a short simulation is chance.
    fn level(&mut self) {
        let points = &mut self.points;
        for index in 1..points.len() {
            if points[index].errors() > points[index - 1].errors() {
                let (memory_bits, before) = (points[index].memory_bits, points[index - 1].clone());
                let memory = points[index].cost.memory;
                points[index] = CostPoint { memory_bits, cost: ExpectedCost { memory, ..before.cost }, ..before };
            }
        }
    }

    /// The curve with what was found by a closer look at one memory. A smaller memory does no better than that: a point that
    /// seems to is chance, and goes.
    pub(super) fn with_found(mut self, found: CostPoint) -> Self {
        let is_above = |point: &CostPoint| point.memory_bits > found.memory_bits;
        let is_below = |point: &CostPoint| point.memory_bits < found.memory_bits && point.errors() >= found.errors();
        self.points.retain(|point| is_above(point) || is_below(point));
        let place = self.points.partition_point(|point| point.memory_bits < found.memory_bits);
        self.points.insert(place, found);
        self.level();
        self
    }

    /// The curve with its bend, where it only shows what other memories would cost.
    pub(super) fn with_bend(mut self, idle: Idle) -> Self {
        self.bend_bits = self.bend(idle);
        self
    }

    /// The largest memory of the curve.
    pub(super) fn largest(&self) -> u64 {
        self.points.last().map_or(1 << 20, |point| point.memory_bits)
    }

    /// The memory to take: where all costs together are least, or, if memory costs nothing, where the curve bends.
    pub(super) fn chosen(&self, search: &Search<'_>, most: Option<u64>) -> Option<u64> {
        let within = |point: &&CostPoint| most.is_none_or(|most| point.memory_bits <= most);
        if search.cost.memory_per_mib == 0.0 {
            let bits = self.points.iter().filter(within).map(|point| point.memory_bits);
            return bits.filter(|bits| Some(*bits) <= self.bend_bits).max();
        }
        let total = |point: &CostPoint| point.cost.total();
        let best = self.points.iter().filter(within).min_by(|one, other| total(one).total_cmp(&total(other)))?;
        // Between the doublings, too.
        let beside = [-0.5, -0.25, 0.25, 0.5].map(|power| (best.memory_bits as f64 * exp2(power)) as u64);
        let beside = beside.into_iter().filter(|bits| most.is_none_or(|most| *bits <= most));
        let leaders = search.leaders(best.memory_bits);
        let beside = beside.filter_map(|bits| cheapest(search, bits, &leaders).map(|one| CostPoint::of(bits, &one)));
        let all = beside.chain([best.clone()]);
        all.min_by(|one, other| total(one).total_cmp(&total(other))).map(|point| point.memory_bits)
    }

    /// From where on every doubling saves little.
    fn bend(&self, idle: Idle) -> Option<u64> {
        let saves = |index: usize| self.points[index - 1].errors() - self.points[index].errors();
        let last = (1..self.points.len()).rev().find(|index| saves(*index) >= WORTH_DOUBLING * idle.least());
        self.points.get(last.unwrap_or(0)).map(|point| point.memory_bits)
    }
}

impl CostPoint {
    pub(super) fn of(memory_bits: u64, one: &Tried) -> Self {
        CostPoint {
            memory_bits,
            filter: one.plan.spec.clone(),
            cost: one.cost,
            predicted_fpr: one.forecast.mean_fpr,
            predicted_fnr: one.forecast.predicted_fnr,
        }
    }

    fn errors(&self) -> f64 {
        self.cost.false_positives + self.cost.false_negatives
    }
}
