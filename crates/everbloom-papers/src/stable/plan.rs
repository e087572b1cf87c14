//! The parameters of a stable filter, its stable point, and how a goal becomes them.

use super::KIND;
use everbloom::kind::{Effort, MAX_MEMORY_BITS, MOST_CHANGED, Parameter, Takes, Unset, choice_name, one_of, rate_text};
use everbloom::{Error, Goal, Plan, Promise, Result, Spec};
use everbloom_cells::counters::Counters;
use libm::{exp, pow};

/// Which cells an arrival lowers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decrement {
    /// Neighbours from one random start.
    Run,
    /// Each drawn on its own, as in the paper.
    Independent,
}

/// Where an arrival's cells lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Anywhere, as in the paper.
    Spread,
    /// All in one cache line, decrements too.
    Blocked,
}

/// Which arrivals change the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// Every one, as in the paper.
    Always,
    /// Those that the filter calls distinct.
    Distinct,
}

const DECREMENTS: &[(&str, Decrement)] = &[("run", Decrement::Run), ("independent", Decrement::Independent)];
const LAYOUTS: &[(&str, Layout)] = &[("spread", Layout::Spread), ("blocked", Layout::Blocked)];
const UPDATES: &[(&str, Update)] = &[("always", Update::Always), ("distinct", Update::Distinct)];

pub(super) const WORDS_PER_LINE: u64 = 8;
const MAX_HASHES: u32 = 32;
const MAX_CELL: u32 = 255;

pub(super) const PARAMETERS: [Parameter; 7] = [
    Parameter::planned("num_cells", "cells in all", Takes::Whole(1, MAX_MEMORY_BITS / 8)),
    Parameter::planned("cell_max", "what a key sets its cells to", Takes::Whole(1, MAX_CELL as u64)),
    Parameter::planned("num_hashes", "cells that a key sets", Takes::Whole(1, MAX_HASHES as u64)),
    // A run of cells of one bit is lowered 64 at a time.
    Parameter::planned("decrements", "cells that an arrival lowers", Takes::Whole(1, MOST_CHANGED as u64 * 64)),
    Parameter::planned("decrement", "which cells: a run of neighbours, or each at random", one_of!(DECREMENTS))
        .or(Unset::BySizes("run", "independent")),
    Parameter::planned("layout", "where a key's cells lie: anywhere, or in one cache line", one_of!(LAYOUTS))
        .or(Unset::BySizes("blocked", "spread")),
    Parameter::planned("update", "which arrivals change cells: all, or those called new", one_of!(UPDATES))
        .or(Unset::BySizes("distinct", "always")),
];

/// The parameters of a stable filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// Counters in all.
    pub num_cells: u64,
    /// What an arrival's cells are set to.
    pub cell_max: u32,
    /// Cells of an arrival.
    pub num_hashes: u32,
    /// Cells lowered by an arrival.
    pub decrements: u32,
    /// Which cells those are.
    pub decrement: Decrement,
    /// Where an arrival's cells lie.
    pub layout: Layout,
    /// Which arrivals change the cells.
    pub update: Update,
}

impl Parameters {
    /// Bits of a cell: as many as `cell_max` needs.
    pub fn cell_bits(&self) -> u32 {
        cell_bits(self.cell_max)
    }

    /// The cells among which an arrival's cells and decrements fall: all, or those of a line.
    fn neighbourhood(&self) -> u64 {
        match self.layout {
            Layout::Spread => self.num_cells,
            Layout::Blocked => cells_per_line(self.cell_bits()),
        }
    }

    pub(super) fn checked(self) -> Result<Self> {
        let bounded = |name, given: u64, most: u64, remedy: &str| {
            if (1..=most).contains(&given) {
                return Ok(());
            }
            Err(Error::parameter(name, given, format!("between 1 and {most}"), remedy))
        };
        bounded("num_cells", self.num_cells, MAX_MEMORY_BITS / 8, "give memory for at least one cell")?;
        bounded("cell_max", self.cell_max.into(), MAX_CELL.into(), "1 or 3 are the usual values")?;
        bounded("num_hashes", self.num_hashes.into(), MAX_HASHES.into(), "3 hashes suit a target of 1 %")?;
        let remedy = "lower fewer cells per arrival, or give more cells";
        bounded("decrements", self.decrements.into(), self.neighbourhood(), remedy)?;
        let per_line = cells_per_line(self.cell_bits());
        if self.layout == Layout::Blocked && !self.num_cells.is_multiple_of(per_line) {
            return Err(Error::parameter(
                "num_cells",
                self.num_cells,
                format!("a multiple of {per_line}, the cells of a cache line, in the blocked layout"),
                format!("take {}, or layout=spread", self.num_cells.next_multiple_of(per_line)),
            ));
        }
        Ok(self)
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        Parameters {
            num_cells: spec.required("num_cells")?,
            cell_max: spec.required("cell_max")?,
            num_hashes: spec.required("num_hashes")?,
            decrements: spec.required("decrements")?,
            decrement: spec.choice("decrement", DECREMENTS, Decrement::Independent)?,
            layout: spec.choice("layout", LAYOUTS, Layout::Spread)?,
            update: spec.choice("update", UPDATES, Update::Always)?,
        }
        .checked()
    }

    pub(super) fn spec(&self) -> Spec {
        Spec::new(KIND.name)
            .with("num_cells", self.num_cells)
            .with("cell_max", self.cell_max)
            .with("num_hashes", self.num_hashes)
            .with("decrements", self.decrements)
            .with("decrement", choice_name(DECREMENTS, self.decrement))
            .with("layout", choice_name(LAYOUTS, self.layout))
            .with("update", choice_name(UPDATES, self.update))
    }

    /// The share of zero cells at the stable point, when arrivals set `hashes` cells.
    fn zeros_with(&self, hashes: f64) -> f64 {
        let (p, m) = (f64::from(self.decrements), self.neighbourhood() as f64);
        let room = p * (1.0 / hashes - 1.0 / m);
        if room <= 0.0 {
            return 0.0;
        }
        pow(1.0 / (1.0 + 1.0 / room), f64::from(self.cell_max))
    }

    /// The share of zero cells that remains, however long the stream.
    pub fn stable_zeros(&self) -> f64 {
        let hashes = f64::from(self.num_hashes);
        match self.update {
            Update::Always => self.zeros_with(hashes),
            // Only arrivals that find a zero cell set any: those set K/(1 − FPR) times as many zero
            // cells. The rate depends on the zeros and they on it; three rounds settle it.
            Update::Distinct => (0..3).fold(self.zeros_with(hashes), |zeros, _| {
                let rate = pow(1.0 - zeros, hashes).min(0.99);
                self.zeros_with(hashes / (1.0 - rate))
            }),
        }
    }

    /// The bound of the rate of false positives.
    pub fn predicted_fpr(&self) -> f64 {
        pow(1.0 - self.stable_zeros(), f64::from(self.num_hashes))
    }

    /// The probability that a key whose cells were set `lag` updates ago is no longer recognised.
    ///
    /// A cell is zero if it was lowered `cell_max` times since it was last set, by this key or by
    /// another: P0(τ) = e^(−Kτ)·Q(Pτ) + ∫₀^τ K·e^(−Ka)·Q(Pa) da with τ = lag/m and Q(x) the chance of
    /// at least Max events in a Poisson number with mean x.
    pub fn forgotten_after(&self, lag: f64) -> f64 {
        let (m, k, p) = (self.num_cells as f64, f64::from(self.num_hashes), f64::from(self.decrements));
        let age = lag / m;
        let lowered = |age: f64| at_least(self.cell_max, p * age);
        let steps = 48;
        let step = age / f64::from(steps);
        let integral: f64 = (0..steps)
            .map(|index| {
                let middle = (f64::from(index) + 0.5) * step;
                k * exp(-k * middle) * lowered(middle) * step
            })
            .sum();
        let zero = (exp(-k * age) * lowered(age) + integral).min(1.0);
        1.0 - pow(1.0 - zero, k)
    }

    /// How much is forgotten on average: over repeats of `items` keys in random order, or, if their
    /// number is unknown, over lags of every magnitude up to four times the number of bits.
    fn forgetting(&self, memory_bits: u64, items: Option<u64>) -> f64 {
        let points = 24;
        let shares = (0..points).map(|index| (f64::from(index) + 0.5) / f64::from(points));
        let lags = shares.map(|share| match items {
            Some(items) => -libm::log(1.0 - share) * items as f64,
            None => pow(memory_bits as f64 * 4.0, share),
        });
        lags.map(|lag| self.forgotten_after(lag)).sum::<f64>() / f64::from(points)
    }
}

/// P(N ≥ least) for a Poisson N.
fn at_least(least: u32, mean: f64) -> f64 {
    let mut term = exp(-mean);
    let mut below = 0.0;
    for count in 0..least {
        below += term;
        term *= mean / f64::from(count + 1);
    }
    (1.0 - below).max(0.0)
}

const fn cell_bits(cell_max: u32) -> u32 {
    u32::BITS - cell_max.leading_zeros()
}

pub(super) const fn cells_per_line(cell_bits: u32) -> u64 {
    (64 / cell_bits) as u64 * WORDS_PER_LINE
}

/// Cells come in whole lines in the blocked layout.
pub(super) fn cells_unit(spec: &Spec) -> Result<u64> {
    let parameters = Parameters::from_spec(spec)?;
    Ok(if parameters.layout == Layout::Blocked { parameters.neighbourhood() } else { 1 })
}

/// What the decrements cost: a run of them is lowered by the word.
pub(super) fn effort(spec: &Spec) -> Result<Option<Effort>> {
    let parameters = Parameters::from_spec(spec)?;
    let together = match parameters.decrement {
        Decrement::Run => 64 / parameters.cell_bits(),
        Decrement::Independent => 1,
    };
    let changed = f64::from(parameters.decrements) / f64::from(together);
    Ok(Some(Effort { parameter: "decrements", given: parameters.decrements.into(), changed, grows: true }))
}

pub(super) fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let by_hand = ["num_cells", "cell_max", "num_hashes", "decrements"].iter().all(|word| spec.get(word).is_some());
    let parameters = if by_hand { Parameters::from_spec(spec)? } else { best(spec, goal)? };
    let promise = Promise::always(parameters.predicted_fpr());
    let memory_bits = Counters::byte_length(parameters.num_cells, parameters.cell_bits()) * 8;
    Ok(Plan::new(&KIND, parameters.spec(), memory_bits, promise, goal.key_hashing()))
}

/// The parameters that forget least among those that keep the target; parameters that are given stay.
fn best(spec: &Spec, goal: &Goal) -> Result<Parameters> {
    let target = goal.required_fpr()?;
    let cell_maxes = spec.number("cell_max")?.map_or_else(|| vec![1, 3, 7], |given| vec![given]);
    let hashes = spec.number("num_hashes")?.map_or_else(|| (1..=12).collect(), |given: u32| vec![given]);
    let mut best: Option<(f64, Parameters)> = None;
    let mut refusal = None;
    for (cell_max, num_hashes) in cell_maxes.iter().flat_map(|max| hashes.iter().map(move |hashes| (*max, *hashes))) {
        match candidate(spec, goal, target, cell_max, num_hashes) {
            Ok(parameters) => {
                let memory_bits = parameters.num_cells * u64::from(parameters.cell_bits());
                let forgetting = parameters.forgetting(memory_bits, goal.known_items());
                if best.is_none_or(|(least, _)| forgetting < least) {
                    best = Some((forgetting, parameters));
                }
            }
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    match (best, refusal) {
        (Some((_, parameters)), _) => Ok(parameters),
        (None, Some(error)) => Err(error),
        (None, None) => Err(spec.error("no parameters to try", "leave out cell_max and num_hashes")),
    }
}

/// The parameters with the fewest decrements that keep the target.
fn candidate(spec: &Spec, goal: &Goal, target: f64, cell_max: u32, num_hashes: u32) -> Result<Parameters> {
    let cell_bits = cell_bits(cell_max.clamp(1, MAX_CELL));
    let layout = spec.choice("layout", LAYOUTS, Layout::Blocked)?;
    let num_cells = match spec.number("num_cells")? {
        Some(given) => given,
        None => affordable(goal.required_memory()?, cell_bits, layout)?,
    };
    let draft = Parameters {
        num_cells,
        cell_max,
        num_hashes,
        decrements: spec.number("decrements")?.unwrap_or(1),
        decrement: spec.choice("decrement", DECREMENTS, Decrement::Run)?,
        layout,
        update: spec.choice("update", UPDATES, Update::Distinct)?,
    }
    .checked()?;
    if spec.get("decrements").is_some() {
        return Ok(draft);
    }
    let most = draft.neighbourhood().min(MOST_CHANGED.into());
    let keeps = |decrements| Parameters { decrements: decrements as u32, ..draft }.predicted_fpr() <= target;
    everbloom::sizing::closed_forms::smallest(1, most, keeps)
        .map(|decrements| Parameters { decrements: decrements as u32, ..draft })
        .ok_or_else(|| Error::Infeasible {
            wanted: format!("a rate of {}", rate_text(target)),
            reason: format!("lowering {most} cells at every arrival does not reach it"),
            remedy: "give more memory or accept a higher rate".into(),
        })
}

/// The cells that fit into whole lines (blocked) or words (spread).
fn affordable(memory_bits: u64, cell_bits: u32, layout: Layout) -> Result<u64> {
    let per_word = u64::from(64 / cell_bits);
    let cells = match layout {
        Layout::Blocked => memory_bits / 512 * cells_per_line(cell_bits),
        Layout::Spread => memory_bits / 512 * WORDS_PER_LINE * per_word,
    };
    if cells > 0 {
        return Ok(cells);
    }
    Err(Error::memory(memory_bits, "at least 64B, one cache line", "give that much"))
}
