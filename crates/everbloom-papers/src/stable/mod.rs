//! `stable`: the Stable Bloom filter, for streams without end.
//!
//! **Answers** "has this key been here lately?" in fixed memory, for ever. Old keys fade, so there are
//! false negatives; the rate of false positives rises to a level that is known beforehand and never
//! exceeds it.
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
//! **On a described stream** the spread layout with `update=always` is predicted by the chain of one cell
//! (`stream/cell_chain.rs`), which counts distinct keys rather than arrivals: within 0.3 points of the
//! reference figures of both papers. The other variants are simulated small: in the blocked layout the cells
//! of a line are not independent, and with `update=distinct` the past depends on the verdicts.
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
//! alone. For the fewest false negatives at a given memory take [`Ranked`](everbloom::Ranked).
//!
//! # Example
//!
//! ```
//! use everbloom_all::KINDS;
//! use everbloom::FilterExt;
//! use everbloom::{Goal, Importance, Verdict};
//!
//! let mut recent = Goal::new().memory_bits(65_536).fpr(0.01).plan_among(KINDS, "stable")?.build()?;
//! let mut wrong = 0;
//! for key in 0..200_000u64 {
//!     wrong += u32::from(recent.observe(&key, Importance::FULL) == Verdict::Duplicate);
//! }
//! assert!(wrong <= 2_200, "{wrong} of 200,000 at a promised 1 %");
//! assert!(recent.contains(&199_999u64), "the last arrival is remembered");
//! # Ok::<(), everbloom::Error>(())
//! ```

mod forecast;
mod plan;
#[cfg(test)]
mod tests;

use everbloom::kind::{Abilities, Base, Body, Kind, Model, Restore, StateWriter, shows_base};
use everbloom::sizing::closed_forms::rate_of_neighbours;
use everbloom::{Filter, Hashing, Importance, Importances, KeyHash, Plan, Promise, Result, Status, Verdict};
use everbloom_cells::blocks::PrefetchAhead;
use everbloom_cells::buffer::Line;
use everbloom_cells::counters::{Counters, low_bits, lower_cell, lower_range, nonzero_lanes, with_width};
use everbloom_cells::key::{Generator, Probes, finalise, scale};
use everbloom_cells::simd::{CACHED_BYTES, Kernel, Plain, SimdOps, Visit, distance_for, pipelined, prefetch, run};
use everbloom_forecast::forecast::StreamModel;
use libm::pow;

pub use plan::{Decrement, Layout, Parameters, Update};
use plan::{WORDS_PER_LINE, cells_per_line};

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 10,
    retired: &[],
    name: "stable",
    summary: "stable Bloom filter: fixed memory for ever, old keys fade, the FPR never exceeds its bound",
    parameters: &plan::PARAMETERS,
    can: Abilities::STREAM,
    model: Model {
        unit: plan::cells_unit,
        choices: &[
            ("update", &["always", "distinct"]),
            ("cell_max", &["1", "3"]),
            ("num_hashes", &["1", "2", "3", "4", "6"]),
        ],
        effort: plan::effort,
        ..Model::sized(&["num_cells"])
    },
    extension: Some(&StreamModel(forecast::forecast)),
    plan: plan::planned,
    build: |plan| Ok(Box::new(Stable::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Stable::restore(from)?)),
    map: None,
};

/// The stable Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Stable {
    parameters: Parameters,
    base: Base,
    cells: Counters,
    generator: Generator,
}

impl Stable {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        let promise = Promise::always(parameters.predicted_fpr());
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, promise)?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        Ok(Stable {
            parameters,
            cells: Counters::new(parameters.num_cells, parameters.cell_bits())?,
            generator: Generator::for_filter(&base.hashing),
            base,
        })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(Counters::byte_length(parameters.num_cells, parameters.cell_bits()))?;
        let mut filter = Self::with_base(parameters, Base::restored(parameters.spec(), &mut from)?)?;
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
        let cell_bits = self.parameters.cell_bits();
        let (low, per_word) = (low_bits(cell_bits), f64::from(64 / cell_bits));
        let fill = |word: u64| f64::from(nonzero_lanes(word, cell_bits, low).count_ones()) / per_word;
        let rate = |line: &Line| rate_of_neighbours(&line.0.map(fill), self.parameters.num_hashes);
        let lines = self.cells.lines();
        (lines.iter().map(rate).sum::<f64>() / lines.len() as f64).min(1.0)
    }

    fn observe_chunk(&mut self, hashes: &[KeyHash], draws: &[u64], verdicts: &mut [Verdict]) {
        with_width!(self.cells.cell_bits(), D => match self.parameters.layout {
            Layout::Spread => self.observe_all_spread::<D>(hashes, draws, verdicts),
            Layout::Blocked => {
                observe_lines::<D>(&self.parameters, self.cells.lines_mut(), hashes, draws, verdicts);
            }
        });
    }

    fn observe_all_spread<const D: u32>(&mut self, hashes: &[KeyHash], draws: &[u64], verdicts: &mut [Verdict]) {
        // Every arrival touches several lines, so a second-level cache of half a mebibyte is felt: 1 MiB with two bits to a
        // cell takes 42 ns an arrival with asking ahead and 53 without.
        let (parameters, near) = (self.parameters, self.cells.bytes().len() <= CACHED_BYTES / 2);
        pipelined(
            self,
            hashes.len(),
            if near { 0 } else { 8 },
            |filter, index| filter.prefetch_spread(hashes[index], draws[index]),
            |filter, index| {
                let words = filter.cells.words_mut();
                verdicts[index] = observe_spread::<D>(&parameters, words, hashes[index], draws[index]);
            },
        );
    }
}

/// Lowers the cells that an arrival with this draw lowers, of so many.
#[inline]
fn lower<const D: u32>(parameters: &Parameters, words: &mut [u64], cells: u64, draw: u64) {
    match parameters.decrement {
        Decrement::Run => {
            let start = scale(draw, cells) as usize;
            let (end, cells) = (start + parameters.decrements as usize, cells as usize);
            lower_range::<D>(words, start, end.min(cells));
            lower_range::<D>(words, 0, end.saturating_sub(cells));
        }
        Decrement::Independent => Stable::independent_picks(draw, cells, parameters.decrements)
            .for_each(|position| lower_cell::<D>(words, position as usize)),
    }
}

/// One arrival whose cells may lie anywhere: look up, lower, set.
#[inline]
fn observe_spread<const D: u32>(parameters: &Parameters, words: &mut [u64], hash: KeyHash, draw: u64) -> Verdict {
    let Parameters { num_cells, num_hashes, cell_max, .. } = *parameters;
    let (per_word, lane) = const { (64 / D as u64, u64::MAX >> (64 - D)) };
    let places = hash
        .probes(num_cells)
        .take(num_hashes as usize)
        .map(|position| ((position / per_word) as usize, (position % per_word) as u32 * D));
    // All cells are read: a branch for each would be mispredicted, and what is not seen is written anyway.
    let seen = places.clone().fold(true, |seen, (word, shift)| seen & (words[word] >> shift & lane != 0));
    if seen && parameters.update == Update::Distinct {
        return Verdict::Duplicate;
    }
    lower::<D>(parameters, words, num_cells, draw);
    for (word, shift) in places {
        words[word] = words[word] & !(lane << shift) | u64::from(cell_max) << shift;
    }
    Verdict::from_seen(seen)
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
    lower::<D>(parameters, &mut line.0, const { cells_per_line(D) }, draw);
    let mut probes = LineProbes::new::<D>(hash);
    let lane = u64::MAX >> (64 - D);
    for _ in 0..parameters.num_hashes {
        let (word, shift) = probes.next::<D>();
        line.0[word] = line.0[word] & !(lane << shift) | u64::from(parameters.cell_max) << shift;
    }
    Verdict::from_seen(seen)
}

/// What an arrival does at its line.
#[inline(always)]
fn visit<const D: u32>(parameters: &Parameters, hash: KeyHash, draw: u64) -> Visit {
    let LineProbes { word, lanes } = LineProbes::new::<D>(hash);
    let (state, step, factor) = lanes.sequence();
    Visit {
        word,
        state,
        step,
        factor,
        start: scale(draw, const { cells_per_line(D) }) as u32,
        length: parameters.decrements,
        value: parameters.cell_max.into(),
        unless_seen: (parameters.update == Update::Distinct).into(),
    }
}

/// Whether an arrival's line can be visited at once.
#[inline]
fn is_visited<const D: u32>(parameters: &Parameters) -> bool {
    D <= 3 && parameters.decrement == Decrement::Run && parameters.decrements <= 64 / D
}

/// Runs an expression with a number of hashes that the compiler knows, if it is one of those that plans give, else another;
/// those are rare enough to take longer.
macro_rules! with_hashes {
    ($num_hashes:expr, $count:ident => $call:expr, $other:expr) => {
        with_hashes!($num_hashes, $count => $call, $other, 1 2 3 4 5 6 7 8)
    };
    ($num_hashes:expr, $count:ident => $call:expr, $other:expr, $($number:literal)*) => {
        match $num_hashes {
            $($number => {
                const $count: usize = $number;
                $call
            })*
            _ => $other,
        }
    };
}

/// A single arrival at its line: [`ObserveLines`] without what a batch needs besides.
#[inline]
fn observe_one<const D: u32>(parameters: &Parameters, line: &mut Line, hash: KeyHash, draw: u64) -> Verdict {
    let step_by_step = |line: &mut Line| observe_line::<D>(parameters, line, hash, draw);
    if !is_visited::<D>(parameters) {
        return step_by_step(line);
    }
    with_hashes!(
        parameters.num_hashes,
        K => Verdict::from_seen(run(VisitOne::<D, K> { parameters, line, hash, draw })),
        step_by_step(line)
    )
}

struct VisitOne<'a, const D: u32, const K: usize> {
    parameters: &'a Parameters,
    line: &'a mut Line,
    hash: KeyHash,
    draw: u64,
}

impl<const D: u32, const K: usize> Kernel for VisitOne<'_, D, K> {
    type Output = bool;

    #[inline(always)]
    fn run(self, ops: impl SimdOps) -> bool {
        ops.visit::<D, K>(&mut self.line.0, &visit::<D>(self.parameters, self.hash, self.draw))
    }
}

/// Arrivals at their lines, `K` hashes each, or any number if `K` is 0.
struct ObserveLines<'a, const D: u32, const K: usize> {
    parameters: &'a Parameters,
    lines: &'a mut [Line],
    hashes: &'a [KeyHash],
    draws: &'a [u64],
    verdicts: &'a mut [Verdict],
}

impl<const D: u32, const K: usize> Kernel for ObserveLines<'_, D, K> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let ObserveLines { parameters, lines, hashes, draws, verdicts } = self;
        let count = lines.len() as u64;
        // Read once: the compiler cannot know that lines are no parameters.
        let parameters = &Parameters { ..*parameters };
        let mut ahead = PrefetchAhead::new(lines, hashes);
        for ((hash, draw), verdict) in hashes.iter().zip(draws).zip(verdicts) {
            ahead.prefetch_next(lines);
            let line = &mut lines[hash.index(count) as usize];
            *verdict = if K == 0 {
                observe_line::<D>(parameters, line, *hash, *draw)
            } else {
                Verdict::from_seen(ops.visit::<D, K>(&mut line.0, &visit::<D>(parameters, *hash, *draw)))
            };
        }
    }
}

fn observe_lines<const D: u32>(
    parameters: &Parameters,
    lines: &mut [Line],
    hashes: &[KeyHash],
    draws: &[u64],
    verdicts: &mut [Verdict],
) {
    if !is_visited::<D>(parameters) {
        return ObserveLines::<D, 0> { parameters, lines, hashes, draws, verdicts }.run(Plain);
    }
    with_hashes!(
        parameters.num_hashes,
        K => run(ObserveLines::<D, K> { parameters, lines, hashes, draws, verdicts }),
        ObserveLines::<D, 0> { parameters, lines, hashes, draws, verdicts }.run(Plain)
    )
}

/// Arrivals whose random draws are made at once.
const CHUNK: usize = 256;

everbloom::typed_filter!(Stable: KIND);

impl Filter for Stable {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.cells.memory_bits()
    }

    fn status(&self) -> Status {
        let fill = self.cells.fill();
        Status {
            arrivals: self.base.arrivals,
            fill,
            estimated_fpr: match self.parameters.layout {
                Layout::Spread => pow(fill, f64::from(self.parameters.num_hashes)),
                Layout::Blocked => self.rate_over_lines(),
            },
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        match self.parameters.layout {
            Layout::Spread => self.spread_probes(hash).all(|position| self.cells.get(position) > 0),
            Layout::Blocked => {
                let lines = self.cells.lines();
                let line = &lines[hash.index(lines.len() as u64) as usize];
                with_width!(self.cells.cell_bits(), D => line_contains::<D>(line, hash, self.parameters.num_hashes))
            }
        }
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        let draw = self.generator.bits();
        self.base.count(1);
        let Stable { parameters, cells, .. } = self;
        with_width!(cells.cell_bits(), D => match parameters.layout {
            Layout::Spread => observe_spread::<D>(parameters, cells.words_mut(), hash, draw),
            Layout::Blocked => {
                let lines = cells.lines_mut();
                let line = hash.index(lines.len() as u64) as usize;
                observe_one::<D>(parameters, &mut lines[line], hash, draw)
            }
        })
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        let (hashes, verdicts) = (&hashes[..count], &mut verdicts[..count]);
        let mut draws = [0; CHUNK];
        for (hashes, verdicts) in hashes.chunks(CHUNK).zip(verdicts.chunks_mut(CHUNK)) {
            let draws = &mut draws[..hashes.len()];
            // One draw an arrival, used or not, so that lines can be asked for before verdicts are known.
            draws.fill_with(|| self.generator.bits());
            self.base.count(hashes.len());
            self.observe_chunk(hashes, draws, verdicts);
        }
    }

    fn prefetch_distance(&self) -> usize {
        // In the spread layout the draws, too, choose lines; there the batch asks for its own.
        if self.parameters.layout == Layout::Blocked { distance_for(self.cells.lines()) } else { 0 }
    }

    fn prefetch_hashes(&self, hashes: &[KeyHash]) {
        let lines = self.cells.lines();
        hashes.iter().for_each(|hash| prefetch(lines, hash.index(lines.len() as u64) as usize));
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.generator = Generator::for_filter(&self.base.hashing);
        self.base.arrivals = 0;
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        state.generator(&self.generator)
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.cells.bytes()])
    }
}
