//! `stable`: the Stable Bloom filter, for streams without end.
//!
//! **Answers** "has this key been here lately?" in fixed memory, for ever. Old keys fade, so there are
//! false negatives; the rate of false positives rises to a level that is known beforehand and never
//! passes it.
//!
//! # How it works
//!
//! `num_cells` small counters. Each arrival is looked up (all of its `num_hashes` cells non-zero means
//! Duplicate); then `decrements` cells are lowered by one; then the arrival's own cells are set to
//! `cell_max`.
//!
//! ```text
//!                  run of decrements       cells of the arrival
//!                  ┌───────────┐             │        │
//! before   3 0 1   2  0  3  1   0 0 2        0  3 1   1
//! after    3 0 1   1  0  2  0   0 0 2        3  3 1   3
//! ```
//!
//! # Theory
//!
//! Whatever the stream, the share of zero cells falls towards its value at the stable point
//! (\[Deng & Rafiei 2006\], theorem 3)
//!
//! > Pr0 = (1 / (1 + 1 / (P·(1/K − 1/m))))^Max,  FPR ≤ (1 − Pr0)^K
//!
//! with P decrements, K hashes, m cells and Max = `cell_max`. So the bound holds at every moment. The
//! plan rounds decrements **up**: truncating breaks the rate (1.23 % where 1 % was promised). With
//! `update=distinct` arrivals that look like duplicates leave the cells alone, so those which do set
//! cells set more zero ones; the plan replaces K by K/(1 − target) in Pr0, which errs upwards.
//!
//! A key is forgotten when one of its cells is; [`Parameters::forgotten_after`] gives the probability
//! as a function of the lag since it was last set.
//!
//! # Where we differ from the paper
//!
//! | word | paper | here, by default |
//! |---|---|---|
//! | `decrement=` | `independent`: P cells drawn one by one | `run`: P neighbours from one random start, a few words in all; rates differ by less than a point |
//! | `layout=` | `spread`: cells anywhere, K + 1 cache lines | `blocked`: the arrival's cells and the decrements share one cache line; each line is a small stable filter of its own |
//! | `update=` | `always` | `distinct`: on streams that repeat themselves the promise then is not undershot, and more is remembered |
//!
//! A spec that gives numbers by hand gets the paper's filter; a planned one gets ours. In a line the
//! arrival's cells lie in different words, so that uneven words do not add up.
//!
//! # Cost
//!
//! One cache line an arrival (blocked), asked for ahead in batches.
//!
//! # When to choose it
//!
//! When you need the literature's filter, or one whose forgetting depends on the number of arrivals
//! alone. For the fewest false negatives at a given memory take [`Ranked`](super::Ranked).
//!
//! # Example
//!
//! ```
//! use everbloom::{FilterExt, Goal, Importance, Verdict};
//!
//! let mut recent = Goal::new().memory_bits(65_536).target_fpr(0.01).plan("stable")?.build()?;
//! let mut wrong = 0;
//! for key in 0..200_000u64 {
//!     wrong += u32::from(recent.observe(&key, Importance::FULL) == Verdict::Duplicate);
//! }
//! assert!(wrong <= 2_200, "{wrong} of 200,000 at a promised 1 %");
//! assert!(recent.contains(&199_999u64), "the last arrival is remembered");
//! # Ok::<(), everbloom::Error>(())
//! ```

use super::{Kind, Restore};
use crate::cells::buffer::Line;
use crate::cells::counters::{Counters, low_bits, lower_range, nonzero_lanes, with_width};
use crate::cells::simd::{CACHED_BYTES, pipelined, prefetch};
use crate::error::{Error, Result};
use crate::goal::{Forecast, Goal, MAX_MEMORY_BITS, Plan};
use crate::hash::{Hashing, KeyHash, Probes, finalise, scale};
use crate::rng::Generator;
use crate::spec::{Spec, choice_name};
use crate::traits::{Body, Filter, Importance, Importances, Status, Verdict};
use crate::wire::StateWriter;
use libm::{exp, pow};

pub(super) const KIND: Kind = Kind {
    id: 10,
    name: "stable",
    summary: "stable Bloom filter: fixed memory for ever, old keys fade, the FPR never passes its bound",
    words: &["num_cells", "cell_max", "num_hashes", "decrements", "decrement", "layout", "update"],
    never_forgets: false,
    endless: true,
    plan: planned,
    build: |plan| Ok(Box::new(Stable::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Stable::restore(from)?)),
};

/// Which cells an arrival lowers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decrement {
    /// Neighbours from one random start.
    Run,
    /// Each drawn on its own, as in the paper.
    Independent,
}

/// Where an arrival's cells lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Anywhere, as in the paper.
    Spread,
    /// All in one cache line, decrements too.
    Blocked,
}

/// Which arrivals change the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Every one, as in the paper.
    Always,
    /// Those that the filter calls distinct.
    Distinct,
}

const DECREMENTS: &[(&str, Decrement)] = &[("run", Decrement::Run), ("independent", Decrement::Independent)];
const LAYOUTS: &[(&str, Layout)] = &[("spread", Layout::Spread), ("blocked", Layout::Blocked)];
const UPDATES: &[(&str, Update)] = &[("always", Update::Always), ("distinct", Update::Distinct)];

const WORDS_PER_LINE: u64 = 8;
const MAX_HASHES: u32 = 32;
const MAX_CELL: u32 = 255;

/// The parameters of a stable filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    fn checked(self) -> Result<Self> {
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

    fn from_spec(spec: &Spec) -> Result<Self> {
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

    fn spec(&self) -> Spec {
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

const fn cells_per_line(cell_bits: u32) -> u64 {
    (64 / cell_bits) as u64 * WORDS_PER_LINE
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let by_hand = ["num_cells", "cell_max", "num_hashes", "decrements"].iter().all(|word| spec.get(word).is_some());
    let parameters = if by_hand { Parameters::from_spec(spec)? } else { best(spec, goal)? };
    let forecast = Forecast::always(parameters.predicted_fpr());
    let memory_bits = Counters::byte_length(parameters.num_cells, parameters.cell_bits()) * 8;
    Ok(Plan { spec: parameters.spec(), memory_bits, forecast, hashing: goal.hashing })
}

/// The parameters that forget least among those that keep the target; words that are given are kept.
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
                let forgetting = parameters.forgetting(memory_bits, goal.expected_items);
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
    let most = draft.neighbourhood().min(u32::MAX.into());
    let keeps = |decrements| Parameters { decrements: decrements as u32, ..draft }.predicted_fpr() <= target;
    crate::solve::smallest(1, most, keeps)
        .map(|decrements| Parameters { decrements: decrements as u32, ..draft })
        .ok_or_else(|| Error::Infeasible {
            wanted: format!("a rate of {target}"),
            reason: format!("lowering all of {most} cells at every arrival does not reach it"),
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
    Err(Error::parameter("memory_bits", memory_bits, "at least 512, one cache line", "give 512 bits or more"))
}

/// The stable Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Stable {
    parameters: Parameters,
    hashing: Hashing,
    forecast: Forecast,
    cells: Counters,
    generator: Generator,
    arrivals: u64,
}

impl Stable {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        Ok(Stable {
            parameters,
            hashing,
            forecast: Forecast::always(parameters.predicted_fpr()),
            cells: Counters::new(parameters.num_cells, parameters.cell_bits())?,
            generator: Generator::for_filter(&hashing),
            arrivals: 0,
        })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Ok(Stable { forecast: plan.forecast, ..Self::new(Parameters::from_spec(&plan.spec)?, plan.hashing)? })
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(Counters::byte_length(parameters.num_cells, parameters.cell_bits()))?;
        let mut filter = Stable { forecast: from.forecast, ..Self::new(parameters, from.hashing)? };
        filter.arrivals = from.state.u64()?;
        filter.generator = from.state.generator()?;
        from.state.finish()?;
        from.body.fill(filter.cells.bytes_mut())?;
        filter.cells.check()?;
        Ok(filter)
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// The share of cells that are zero now.
    pub fn zeros(&self) -> f64 {
        1.0 - self.cells.fill()
    }

    #[inline]
    fn spread_probes(&self, hash: KeyHash) -> impl Iterator<Item = u64> + use<> {
        hash.probes(self.parameters.num_cells).take(self.parameters.num_hashes as usize)
    }

    /// The cells that an arrival with this draw lowers, in the paper's way.
    #[inline]
    fn independent_picks(draw: u64, range: u64, decrements: u32) -> impl Iterator<Item = u64> {
        KeyHash { high: draw, low: finalise(draw) }.probes(range).take(decrements as usize)
    }

    fn observe_spread(&mut self, hash: KeyHash, draw: u64) -> Verdict {
        let seen = self.spread_probes(hash).all(|position| self.cells.get(position) > 0);
        if seen && self.parameters.update == Update::Distinct {
            return Verdict::Duplicate;
        }
        let Parameters { num_cells, decrements, decrement, cell_max, .. } = self.parameters;
        match decrement {
            Decrement::Run => self.cells.lower_run(scale(draw, num_cells), decrements.into()),
            Decrement::Independent => {
                Self::independent_picks(draw, num_cells, decrements).for_each(|position| self.cells.lower(position));
            }
        }
        for position in self.spread_probes(hash) {
            self.cells.set(position, cell_max as u16);
        }
        Verdict::from_seen(seen)
    }

    /// Asks for the lines that an arrival with this draw will touch.
    #[inline]
    fn prefetch_spread(&self, hash: KeyHash, draw: u64) {
        let Parameters { num_cells, decrements, decrement, .. } = self.parameters;
        self.spread_probes(hash).for_each(|position| self.cells.prefetch(position));
        match decrement {
            Decrement::Run => self.cells.prefetch(scale(draw, num_cells)),
            Decrement::Independent => {
                Self::independent_picks(draw, num_cells, decrements).for_each(|position| self.cells.prefetch(position));
            }
        }
    }

    /// The rate in the blocked layout: lines differ in fill, so it is averaged over them, not the fill.
    fn rate_over_lines(&self) -> f64 {
        let (cell_bits, num_hashes) = (self.parameters.cell_bits(), self.parameters.num_hashes as usize);
        let (low, per_word) = (low_bits(cell_bits), f64::from(64 / cell_bits));
        let rate = |line: &Line| {
            let fills = line.0.map(|word| f64::from(nonzero_lanes(word, cell_bits, low).count_ones()) / per_word);
            let from =
                |start: usize| (start..start + num_hashes).map(|word| fills[word % fills.len()]).product::<f64>();
            (0..fills.len()).map(from).sum::<f64>() / fills.len() as f64
        };
        let lines = self.cells.lines();
        (lines.iter().map(rate).sum::<f64>() / lines.len() as f64).min(1.0)
    }

    fn observe_chunk(&mut self, hashes: &[KeyHash], draws: &[u64], verdicts: &mut [Verdict]) {
        let near = self.cells.bytes().len() <= CACHED_BYTES;
        match self.parameters.layout {
            Layout::Spread => pipelined(
                self,
                hashes.len(),
                if near { 0 } else { 8 },
                |filter, index| filter.prefetch_spread(hashes[index], draws[index]),
                |filter, index| verdicts[index] = filter.observe_spread(hashes[index], draws[index]),
            ),
            Layout::Blocked => {
                let parameters = self.parameters;
                let lines = self.cells.lines_mut();
                with_width!(parameters.cell_bits(), D => {
                    observe_lines::<D>(&parameters, lines, near, hashes, draws, verdicts)
                });
            }
        }
    }
}

/// The cells of a key in its line: one in each of neighbouring words, so that no two are the same
/// and uneven words do not add up.
#[derive(Clone)]
struct LineProbes {
    word: usize,
    lanes: Probes,
}

impl LineProbes {
    #[inline]
    fn new<const D: u32>(hash: KeyHash) -> Self {
        // The high half chose the line; the low half begins here, with the word from its top bits.
        let lanes = KeyHash { high: hash.low, low: hash.high }.probes((64 / D).into());
        LineProbes { word: (hash.low >> 61) as usize, lanes }
    }

    /// The next cell's word and shift.
    #[inline]
    fn next<const D: u32>(&mut self) -> (usize, u32) {
        let word = self.word;
        self.word = (word + 1) % WORDS_PER_LINE as usize;
        (word, self.lanes.position() as u32 * D)
    }
}

#[inline]
fn line_contains<const D: u32>(line: &Line, hash: KeyHash, num_hashes: u32) -> bool {
    let mut probes = LineProbes::new::<D>(hash);
    let lane = u64::MAX >> (64 - D);
    (0..num_hashes).all(|_| {
        let (word, shift) = probes.next::<D>();
        line.0[word] >> shift & lane != 0
    })
}

/// One arrival at its line: look up, lower, set.
#[inline]
fn observe_line<const D: u32>(parameters: &Parameters, line: &mut Line, hash: KeyHash, draw: u64) -> Verdict {
    let seen = line_contains::<D>(line, hash, parameters.num_hashes);
    if seen && parameters.update == Update::Distinct {
        return Verdict::Duplicate;
    }
    let cells = const { cells_per_line(D) };
    match parameters.decrement {
        Decrement::Run => {
            let start = scale(draw, cells) as usize;
            let end = start + parameters.decrements as usize;
            lower_range::<D>(&mut line.0, start, end.min(cells as usize));
            lower_range::<D>(&mut line.0, 0, end.saturating_sub(cells as usize));
        }
        Decrement::Independent => {
            for position in Stable::independent_picks(draw, cells, parameters.decrements) {
                lower_range::<D>(&mut line.0, position as usize, position as usize + 1);
            }
        }
    }
    let mut probes = LineProbes::new::<D>(hash);
    let lane = u64::MAX >> (64 - D);
    for _ in 0..parameters.num_hashes {
        let (word, shift) = probes.next::<D>();
        line.0[word] = line.0[word] & !(lane << shift) | u64::from(parameters.cell_max) << shift;
    }
    Verdict::from_seen(seen)
}

fn observe_lines<const D: u32>(
    parameters: &Parameters,
    lines: &mut [Line],
    near: bool,
    hashes: &[KeyHash],
    draws: &[u64],
    verdicts: &mut [Verdict],
) {
    let count = lines.len() as u64;
    let at = |index: usize| hashes[index].index(count) as usize;
    pipelined(
        lines,
        hashes.len(),
        if near { 0 } else { crate::cells::simd::PREFETCH_DISTANCE },
        |lines, index| prefetch(lines, at(index)),
        |lines, index| {
            verdicts[index] = observe_line::<D>(parameters, &mut lines[at(index)], hashes[index], draws[index]);
        },
    );
}

/// Arrivals whose random draws are made at once.
const CHUNK: usize = 256;

impl Filter for Stable {
    fn spec(&self) -> Spec {
        self.parameters.spec()
    }

    fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    fn memory_bits(&self) -> u64 {
        self.cells.memory_bits()
    }

    fn forecast(&self) -> Forecast {
        self.forecast
    }

    fn status(&self) -> Status {
        let fill = self.cells.fill();
        Status {
            arrivals: self.arrivals,
            fill,
            estimated_fpr: match self.parameters.layout {
                Layout::Spread => pow(fill, f64::from(self.parameters.num_hashes)),
                Layout::Blocked => self.rate_over_lines(),
            },
            estimated_items: None,
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        match self.parameters.layout {
            Layout::Spread => self.spread_probes(hash).all(|position| self.cells.get(position) > 0),
            Layout::Blocked => {
                let lines = self.cells.lines();
                let line = &lines[hash.index(lines.len() as u64) as usize];
                with_width!(self.parameters.cell_bits(), D => line_contains::<D>(line, hash, self.parameters.num_hashes))
            }
        }
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        let mut verdict = [Verdict::Distinct];
        self.observe_hashes(&[hash], Importances::All(importance), &mut verdict);
        verdict[0]
    }

    fn observe_hashes(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        let (hashes, verdicts) = (&hashes[..count], &mut verdicts[..count]);
        let mut draws = [0; CHUNK];
        for (hashes, verdicts) in hashes.chunks(CHUNK).zip(verdicts.chunks_mut(CHUNK)) {
            let draws = &mut draws[..hashes.len()];
            // One draw an arrival, used or not, so that lines can be asked for before verdicts are known.
            draws.fill_with(|| self.generator.bits());
            self.arrivals = self.arrivals.saturating_add(hashes.len() as u64);
            self.observe_chunk(hashes, draws, verdicts);
        }
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.generator = Generator::for_filter(&self.hashing);
        self.arrivals = 0;
    }

    fn state(&self) -> Vec<u8> {
        StateWriter::new().u64(self.arrivals).generator(&self.generator).finish()
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.cells.bytes()])
    }
}
