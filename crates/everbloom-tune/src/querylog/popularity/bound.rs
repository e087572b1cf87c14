//! A rate that no numbers of hashes can beat: a lower bound by the Lagrangian dual.
//!
//! Cut the possible loads into cells [a, b] and take any μ. Every choice of hashes whose load θ lies in the cell has
//!
//! ```text
//! Σ misses_i·B(θ)^k_i  =  Σ misses_i·B(θ)^k_i + μ·(Σ members_i·k_i − θ)
//! ```
//!
//! because the bracket is 0. B^k is convex in B and B is concave in θ, so with Δ = B′(b)·(θ − a) the power is at least
//! its tangent B(a)^k + k·B(a)^(k−1)·Δ. Now every class can be minimised on its own, and what is left is, for every
//! choice of hashes, linear in θ; the minimum over the choices is concave in θ, so its least value over the cell is at
//! one of the two ends. Both ends are sums over classes in the order of score, where a class takes a step as long as
//! its gain is worth μ: prefix sums give them in a few binary searches.
//!
//! The bound errs by the square of the cell's width. Cells are split where the bound is least until it is within a
//! part in a thousand of a known solution, or until the cell is so narrow that what remains is the gap between whole
//! and fractional hashes, which no split can close.

use super::free_fill::gains;
use super::ranked::Ranked;
use super::{Allocation, MAX_HASHES, powers};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// How near to a known solution the bound is driven.
const TOLERANCE: f64 = 1e-3;

/// A cell this narrow is not split: at 32 hashes it errs by 3e-5.
const NARROW: f64 = 1.0 + 1.0 / 4096.0;

/// Splits end by themselves; this only bounds them.
const MOST_SPLITS: usize = 2000;

/// What summing rounded numbers can have added.
const ROUNDING: f64 = 1e-9;

/// At this many times the bits per key, all bits are set.
const SATURATED: f64 = 40.0;

impl Allocation {
    /// A rate that no whole numbers of hashes in the range can beat; `known` is the rate of some solution, to which
    /// the bound is driven.
    pub fn lower_bound(&self, known: f64) -> f64 {
        lower_bound(self, &Ranked::new(self.classes()), known)
    }
}

/// A range of loads, and a rate that no choice of hashes with such a load can beat.
#[derive(Debug, Clone, Copy)]
struct Cell {
    from: f64,
    to: f64,
    bound: f64,
}

pub(super) fn lower_bound(problem: &Allocation, ranked: &Ranked, known: f64) -> f64 {
    let dual = Dual { problem, ranked };
    let mut cells: BinaryHeap<Cell> = dual.first_cells().into();
    let mut least = 0.0;
    for _ in 0..MOST_SPLITS {
        let Some(cell) = cells.pop() else { break };
        least = cell.bound;
        if least >= known * (1.0 - TOLERANCE) || cell.is_narrow() {
            break;
        }
        cells.extend(dual.split(&cell));
    }
    (least * (1.0 - ROUNDING)).max(0.0)
}

struct Dual<'a> {
    problem: &'a Allocation,
    ranked: &'a Ranked,
}

impl Dual<'_> {
    fn least_load(&self) -> f64 {
        f64::from(self.problem.min_hashes) * self.ranked.all_members()
    }

    /// All loads there can be; those at which every bit is set are one cell, whose rate is 1.
    fn first_cells(&self) -> Vec<Cell> {
        // The sums are rounded: a little more on both sides.
        let from = self.least_load() * (1.0 - ROUNDING);
        let to = f64::from(self.problem.max_hashes) * self.ranked.all_members() * (1.0 + ROUNDING);
        let saturated = (SATURATED * self.problem.bits_per_key).clamp(from, to);
        [(from, saturated), (saturated, to)].into_iter().map(|(from, to)| self.cell(from, to, 0.0)).collect()
    }

    fn split(&self, cell: &Cell) -> [Cell; 2] {
        // Loads range over many powers of ten where no hashes at all are allowed.
        let middle = if cell.from > 0.0 { (cell.from * cell.to).sqrt() } else { cell.to / 64.0 };
        [self.cell(cell.from, middle, cell.bound), self.cell(middle, cell.to, cell.bound)]
    }

    /// The bound of a cell, which is at least that of a cell around it.
    fn cell(&self, from: f64, to: f64, around: f64) -> Cell {
        Cell { from, to, bound: self.bound(from, to).max(around) }
    }

    fn bound(&self, from: f64, to: f64) -> f64 {
        let (first, last) = (usize::from(self.problem.min_hashes), usize::from(self.problem.max_hashes));
        let fill = self.problem.fill(from);
        let rates = powers(fill);
        let least_rise = self.problem.fill_slope(to) * (to - from);
        let tangents = tangents(&rates, least_rise);
        let multiplier = self.multiplier(&rates[first..=last], 0.5 * (from + to));
        let at_from = self.relaxed(&rates[first..=last], multiplier, from);
        // If gains do not fall, a class may stop short of its best; then the bound takes the fill at the least load.
        let at_to = match falls(&gains(&tangents[first..=last])[..last - first]) {
            true => self.relaxed(&tangents[first..=last], multiplier, to),
            false => self.relaxed(&rates[first..=last], multiplier, to),
        };
        at_from.min(at_to)
    }

    /// The price of load at which the relaxation takes about this much of it. Any price gives a bound.
    fn multiplier(&self, rates: &[f64], load: f64) -> f64 {
        self.ranked.bracket(&gains(rates)[..rates.len() - 1], load - self.least_load()).threshold
    }

    /// min over k of Σ misses·rate(k) + μ·(Σ members·k − load), class by class.
    fn relaxed(&self, rates: &[f64], multiplier: f64, load: f64) -> f64 {
        let steps = rates.len() - 1;
        let taken = self.ranked.at_threshold(&gains(rates)[..steps], multiplier);
        let used = self.least_load() + self.ranked.added_load(&taken, steps);
        self.ranked.total(&taken, rates) + multiplier * (used - load)
    }
}

/// B^k + k·B^(k−1)·Δ.
fn tangents(rates: &[f64; MAX_HASHES as usize + 1], rise: f64) -> [f64; MAX_HASHES as usize + 1] {
    let mut tangents = *rates;
    for count in 1..tangents.len() {
        tangents[count] += count as f64 * rates[count - 1] * rise;
    }
    tangents
}

fn falls(gains: &[f64]) -> bool {
    gains.windows(2).all(|pair| pair[0] >= pair[1]) && gains.iter().all(|gain| *gain >= 0.0)
}

impl Cell {
    fn is_narrow(&self) -> bool {
        self.to <= self.from * NARROW
    }
}

/// The heap gives the greatest first: that is the cell with the least bound.
impl Ord for Cell {
    fn cmp(&self, other: &Self) -> Ordering {
        other.bound.total_cmp(&self.bound).then(other.from.total_cmp(&self.from))
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Cell {}
