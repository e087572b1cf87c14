//! `ibf`, `ibf1` … `ibf6`: importance-aware Bloom filters.
//!
//! **Answers** "has this key been here?" in fixed memory, for ever, and forgets unimportant keys
//! first. Both errors are possible; a filter planned from a [`Goal`](everbloom::Goal) keeps its rate of false
//! positives at every moment of every stream.
//!
//! # How it works
//!
//! As in the stable filter, every arrival is looked up, then some cells are lowered, then the
//! arrival's own cells are raised. Importance decides **what is written**, **what is lowered**, or both
//! (\[Boraskar 2010\]):
//!
//! | `insertion=` | an arrival's cells become |
//! |---|---|
//! | `m` | `cell_max` |
//! | `imp` | ⌊`cell_max` · importance / its maximum⌋, unless they hold more; low importance may write 0 |
//!
//! | `deletion=` | which cells are lowered by one |
//! |---|---|
//! | `random` | `decrements` random ones, unless zero |
//! | `probabilistic` | `decrements` picks with probability ∝ 1/(importance mapped to the cell), among cells ever touched; one that meets a zero cell is wasted |
//! | `probabilistic_p` | the same among cells that are not zero: none is wasted |
//! | `probabilistic_val` | ∝ 1/value among cells that are not zero; needs `insertion=imp` |
//! | `min_imp` | the `decrements` least important cells that are not zero, ties from the lowest position |
//! | `min_imp_optional` | the `decrements` least important cells, zero or not: deletes next to nothing |
//! | `min_imp_priority` | least importance + priority, one by one; a pick raises the priority by `priority_step` |
//!
//! ```text
//! cell value/importance   4/90   2/15   0/8   3/40        cell_max = 4, one decrement
//! probabilistic           rarely often  wasted sometimes
//! min_imp                        ^ 1/15                   lowest that is not zero
//! insert, importance ½:   imp writes 2 where less is, m writes 4
//! ```
//!
//! The thesis's heuristics are presets: `ibf1` = imp + random, `ibf2` = imp + min_imp, `ibf3` = m +
//! probabilistic, `ibf4` = m + min_imp, `ibf5` = imp + probabilistic, `ibf6` = imp + probabilistic_val.
//!
//! **Importance of a cell**, `cell_importance=`: the `sum` of all importances mapped to it, as in the
//! thesis; `last`, the newest; or `decayed`, halved whenever each cell was mapped four more keys on
//! average, which is when the mean has doubled. Where keys are replaced as a stream goes on, a sum
//! evens out: every cell's grows alike, and the difference between them, which is all that tells
//! important cells, fades. On such a stream (70 % repeats, 31,250 keys in use, 65,536 cells) the slope
//! of `ibf3`'s false negatives fell from −0.16 points per unit of importance in the first million
//! arrivals to −0.002 in the tenth with `sum`; with `decayed` it went from −0.27 to −0.24. (Halving twice
//! or half as often gives −0.10 and −0.17.) So `decayed` is the default, and `sum` what a spec with all
//! numbers gets. Sums stop at 2^23 − 1, 8,388 arrivals of full importance.
//!
//! **Reinsertion**, `reinsert=fifo|random`: a cache of important keys that are inserted again, every
//! `reinsert_every` arrivals or while the share of zero cells is under `reinsert_below`. The thesis
//! found its memory better spent on cells.
//!
//! # The promise
//!
//! None of the deletions bounds the rate by itself on every stream: picks are wasted, totals drift,
//! importances change. So a planned filter has a `fill_limit`, the most cells that may be non-zero. The
//! count is kept exactly; where the deletion leaves more, random cells are lowered until it holds.
//! A new key meets only non-zero cells with probability (fill_limit/num_cells)^num_hashes, whatever has
//! happened. Decrements are planned such that the limit is rarely needed. Without `fill_limit` (all
//! numbers given by hand) the filter is the thesis's and promises nothing.
//!
//! # On a described stream
//!
//! Random deletion is forecast by a Markov chain of one cell, whose state is how often it was lowered and its class of
//! importance: `ibf1` on the thesis's set T gives 2.13/30.62 (wfp/wfn in %) where the reference is 2.12/30.68. The
//! other deletions choose cells by everything that was ever mapped to them, which no small chain can follow, so they
//! are simulated: `probabilistic` in a smaller filter, `min_imp` at its own size for streams up to two million
//! arrivals, because a smaller filter has fewer cells to choose the least important from (a quarter of the size gave
//! 77.0 for 84.7 % on lags of all magnitudes).
//!
//! # Cost
//!
//! No deletion passes over the cells. `random` is `num_hashes` + `decrements` cache lines an arrival.
//! `probabilistic` draws groups of cells from a sampling index: about 1.4 draws a pick, two lines each.
//! `probabilistic_val` draws from a list while up to one cell in 16 is in use, from all cells beyond; it
//! passes over them when it returns to the list, at most once in num_cells/(32 · num_hashes) arrivals.
//! `min_imp` keeps the lowest cells sorted and finds the next ones in a tree of minima: one path for
//! each cell that leaves. Halving passes over all cells once in 4 · num_cells/num_hashes arrivals.
//!
//! Memory: `random` takes the bits of its values. `probabilistic_val` adds 3 a cell for its list. The
//! others take 32 bits a cell for value and importance, 2 to 4 more for index or queue, and 32 for a
//! priority. All of it counts.
//!
//! # Where we differ from the thesis
//!
//! - Its Table 1 calls `ibf3` and `ibf5` "-p"; its numbers are those of the plain form, which the
//!   presets are. The readings are listed with the reference figures in the lab's tests.
//! - Importances are fractions of their maximum, kept in thousandths, so that streams with different
//!   scales behave alike; a pick adds `priority_step` to a priority, on the thesis's scale of 50: `cell_max`, as in its
//!   Algorithm 8, if not given. Its section 7 speaks of a very large one, which makes deletion blind to importance.
//! - Imp-insert keeps the larger of the cell's value and its own, and rounds down, so that low importances write 0. The
//!   thesis's Algorithm 2 overwrites, and its section 6.3 says values from 1 to the largest; only this reading gives its
//!   tables.
//!
//! # When to choose it
//!
//! To repeat the thesis, or where the forgetting of the unimportant must be gradual. At equal **total**
//! memory a stable filter with the cells that the totals cost usually has fewer weighted errors, and
//! [`Ranked`](everbloom::Ranked) far fewer: compare before you choose.
//!
//! # Example
//!
//! ```
//! use everbloom_all::KINDS;
//! use everbloom::FilterExt;
//! use everbloom::{Goal, Importance};
//!
//! let mut seen = Goal::new().memory_bits(1 << 18).fpr(0.01).with_importance().plan_among(KINDS, "ibf3")?.build()?;
//! let importance = |key: u64| Importance::new(if key % 10 == 0 { 50 } else { 1 }, 50);
//! for key in 0..4_000u64 {
//!     seen.observe(&key, importance(key)?);
//! }
//! let remembered = |residue: u64| (0..400).filter(|tens| seen.contains(&(tens * 10 + residue))).count();
//! assert!(remembered(0) > 2 * remembered(1), "{} important, {} others", remembered(0), remembered(1));
//! # Ok::<(), everbloom::Error>(())
//! ```

mod by_value;
mod draws;
mod forecast;
mod listing;
mod min_imp;
mod parameters;
mod plan;
mod probabilistic;
mod queue;
mod random;
mod reinsertion;
mod sampling;
mod weighed;

use draws::Draws;
use everbloom::kind::{Abilities, Base, Body, Kind, Model, Parameter, Restore, StateReader, StateWriter, shows_base};
use everbloom::{
    Error, Filter, Hashing, Importance, ImportanceMix, Importances, KeyHash, Plan, Result, Status, Verdict,
};
use everbloom_cells::key::Generator;
use everbloom_cells::simd::{CACHED_BYTES, pipelined};
use everbloom_forecast::forecast::StreamModel;
use libm::pow;
use reinsertion::Cache;

pub use parameters::{CellImportance, Deletion, Insertion, Parameters, Sizes};
pub use reinsertion::{Choice, Reinsertion};

const fn kind(id: u16, name: &'static str, parameters: &'static [Parameter], summary: &'static str) -> Kind {
    Kind {
        id,
        retired: &[],
        name,
        summary,
        parameters,
        can: Abilities { weigh_importance: true, ..Abilities::STREAM },
        model: Model {
            // The thesis's own question: cells, their size, decrements and hashes. The rate gives the first and the third.
            choices_by_cost: &[("cell_max", &["1", "3", "7", "15"]), ("num_hashes", &["1", "2", "3", "4", "6"])],
            effort: plan::effort,
            full_size: forecast::takes_full_size,
            whole_stream: forecast::takes_whole_stream,
            ..Model::sized(&["num_cells", "fill_limit", "reinsert_slots", "reinsert_every"])
        },
        extension: Some(&StreamModel(forecast::forecast)),
        plan: plan::planned,
        build: |plan| Ok(Box::new(Ibf::from_plan(plan)?)),
        restore: |from| Ok(Box::new(Ibf::restore(from)?)),
        map: None,
    }
}

/// The kind, for sets of kinds.
pub static IBF: Kind =
    kind(20, "ibf", &parameters::IBF, "importance-aware Bloom filter: any insertion with any deletion");
/// The kind, for sets of kinds.
pub static IBF1: Kind =
    kind(21, "ibf1", &parameters::IBF1, "importance sets the value of cells, random ones are lowered");
/// The kind, for sets of kinds.
pub static IBF2: Kind =
    kind(22, "ibf2", &parameters::IBF2, "importance sets the value of cells, the least important are lowered");
/// The kind, for sets of kinds.
pub static IBF3: Kind =
    kind(23, "ibf3", &parameters::IBF3, "cells are lowered in inverse proportion to their importance");
/// The kind, for sets of kinds.
pub static IBF4: Kind = kind(24, "ibf4", &parameters::IBF4, "the least important cells are lowered");
/// The kind, for sets of kinds.
pub static IBF5: Kind = kind(25, "ibf5", &parameters::IBF5, "as ibf3, and importance sets the value of cells");
/// The kind, for sets of kinds.
pub static IBF6: Kind =
    kind(26, "ibf6", &parameters::IBF6, "as ibf1, and cells are lowered in inverse proportion to their value");

/// The kind of all combinations, and its presets.
pub const KINDS: [&Kind; 7] = [&IBF, &IBF1, &IBF2, &IBF3, &IBF4, &IBF5, &IBF6];

/// What an insertion and deletion work on.
trait Cells {
    /// Whether a cell is not zero.
    fn is_set(&self, position: u64) -> bool;
    /// How many cells are not zero.
    fn nonzero(&self) -> u64;
    /// Asks for a cell to be brought near.
    fn prefetch(&self, position: u64);
    /// Asks for a cell, and for what an insertion into it changes.
    #[inline(always)]
    fn prefetch_insert(&self, position: u64) {
        self.prefetch(position);
    }
    /// Asks for the cells that a deletion with these draws will probably pick.
    fn prefetch_delete(&self, _decrements: u32, _draws: Draws) {}
    /// Makes room before an insertion.
    fn delete(&mut self, decrements: u32, draws: &mut Draws);
    /// Lowers one cell unless it is zero.
    fn lower(&mut self, position: u64);
    /// Raises a cell to at least `value`, and its importance by `weight`.
    fn insert(&mut self, position: u64, value: u32, weight: u32);
    /// Halves what cells remember of importance.
    fn decay(&mut self);
    /// Back to the beginning.
    fn clear(&mut self);
    /// Bits of all of it.
    fn memory_bits(parameters: &Parameters) -> u64
    where
        Self: Sized;
    /// Bytes of its part of the body.
    fn byte_length(parameters: &Parameters) -> u64
    where
        Self: Sized;
    /// Its part of the body.
    fn bytes(&self) -> Vec<&[u8]>;
    /// Its part of the state.
    fn write_state(&self, state: StateWriter) -> StateWriter;
    /// Reads state and body back and checks what a loop relies on.
    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()>;
}

/// The cells of a filter, by how they are deleted from.
#[derive(Debug, Clone)]
enum Memory {
    Random(random::Random),
    Probabilistic(probabilistic::Probabilistic<false>),
    ProbabilisticP(probabilistic::Probabilistic<true>),
    ByValue(by_value::ByValue),
    MinImp(min_imp::MinImp),
}

/// Runs an expression with whichever cells there are.
macro_rules! with_cells {
    ($memory:expr, $cells:ident => $call:expr) => {
        match $memory {
            Memory::Random($cells) => $call,
            Memory::Probabilistic($cells) => $call,
            Memory::ProbabilisticP($cells) => $call,
            Memory::ByValue($cells) => $call,
            Memory::MinImp($cells) => $call,
        }
    };
}

/// Runs an expression with the type of cells that a deletion needs.
macro_rules! for_deletion {
    ($deletion:expr, $type:ident => $call:expr) => {
        match $deletion {
            Deletion::Random => {
                type $type = random::Random;
                $call
            }
            Deletion::Probabilistic => {
                type $type = probabilistic::Probabilistic<false>;
                $call
            }
            Deletion::ProbabilisticP => {
                type $type = probabilistic::Probabilistic<true>;
                $call
            }
            Deletion::ProbabilisticVal => {
                type $type = by_value::ByValue;
                $call
            }
            Deletion::MinImp | Deletion::MinImpOptional | Deletion::MinImpPriority => {
                type $type = min_imp::MinImp;
                $call
            }
        }
    };
}

impl Memory {
    fn new(parameters: &Parameters) -> Result<Self> {
        Ok(match parameters.deletion {
            Deletion::Random => Memory::Random(random::Random::new(parameters)?),
            Deletion::Probabilistic => Memory::Probabilistic(probabilistic::Probabilistic::new(parameters)?),
            Deletion::ProbabilisticP => Memory::ProbabilisticP(probabilistic::Probabilistic::new(parameters)?),
            Deletion::ProbabilisticVal => Memory::ByValue(by_value::ByValue::new(parameters)?),
            _ => Memory::MinImp(min_imp::MinImp::new(parameters)?),
        })
    }
}

impl Parameters {
    /// All the memory that a filter with these parameters takes.
    pub fn memory_bits(&self) -> u64 {
        let cache = self.reinsertion.map_or(0, |reinsertion| reinsertion.byte_length().saturating_mul(8));
        for_deletion!(self.deletion, C => C::memory_bits(self)).saturating_add(cache)
    }

    fn byte_length(&self) -> u64 {
        let cache = self.reinsertion.map_or(0, |reinsertion| reinsertion.byte_length());
        for_deletion!(self.deletion, C => C::byte_length(self)).saturating_add(cache)
    }
}

/// How many times a cell's share of the arrivals passes until importances are halved.
const DECAY_TOUCHES: u64 = 4;

/// How many arrivals ahead the cells of an arrival are asked for.
const PREFETCH_DISTANCE: usize = 4;

/// What does not depend on the cells.
#[derive(Debug, Clone)]
struct Policy {
    parameters: Parameters,
    arrivals: u64,
    until_decay: u64,
    cache: Option<Cache>,
}

impl Policy {
    fn new(parameters: Parameters) -> Result<Self> {
        let cache = parameters.reinsertion.map(Cache::new).transpose()?;
        let until_decay = Self::decay_period(&parameters);
        Ok(Policy { parameters, arrivals: 0, until_decay, cache })
    }

    /// Arrivals between two halvings: as many as map each cell [`DECAY_TOUCHES`] keys on average.
    fn decay_period(parameters: &Parameters) -> u64 {
        (parameters.num_cells * DECAY_TOUCHES / u64::from(parameters.num_hashes)).max(1)
    }

    #[inline]
    fn probes(&self, hash: KeyHash) -> impl Iterator<Item = u64> + use<> {
        hash.probes(self.parameters.num_cells).take(self.parameters.num_hashes as usize)
    }

    /// Query, delete, insert: the order of the thesis.
    #[inline(always)]
    fn observe(&mut self, cells: &mut impl Cells, (hash, importance, seed): Arrival) -> Verdict {
        // Every cell is read: whether one is zero is too hard to predict for stopping early to pay.
        let seen = self.probes(hash).fold(true, |seen, position| seen & cells.is_set(position));
        let mut draws = Draws::new(seed);
        self.insert(cells, hash, importance, &mut draws);
        self.arrivals = self.arrivals.saturating_add(1);
        let state = (self.arrivals, cells.nonzero(), self.parameters.num_cells);
        if let Some(cache) = &mut self.cache
            && let Some((hash, importance)) = cache.arrive((hash, importance, !seen), state, &mut draws)
        {
            self.insert(cells, hash, importance, &mut draws);
        }
        Verdict::from_seen(seen)
    }

    #[inline(always)]
    fn insert(&mut self, cells: &mut impl Cells, hash: KeyHash, importance: Importance, draws: &mut Draws) {
        let Parameters { decrements, cell_max, num_cells, .. } = self.parameters;
        cells.delete(decrements, draws);
        if let Some(limit) = self.parameters.fill_limit {
            // Whatever the stream and the deletion, no more cells than promised are in use.
            let before = limit - u64::from(self.parameters.num_hashes);
            while cells.nonzero() > before {
                cells.lower(draws.below(num_cells));
            }
        }
        let value = match self.parameters.insertion {
            Insertion::Max => cell_max,
            Insertion::Importance => importance.share_of(cell_max),
        };
        let weight = match self.parameters.deletion.weighs_cells() {
            true => importance.share_of(weighed::FULL_WEIGHT).max(1),
            false => 0,
        };
        for position in self.probes(hash) {
            cells.insert(position, value, weight);
        }
        if self.parameters.cell_importance == CellImportance::Decayed {
            self.tick(cells);
        }
    }

    /// Counts an insertion, and halves the importances when it is time.
    #[inline]
    fn tick(&mut self, cells: &mut impl Cells) {
        self.until_decay -= 1;
        if self.until_decay == 0 {
            self.until_decay = Self::decay_period(&self.parameters);
            cells.decay();
        }
    }

    /// Asks for the lines that an arrival will touch. Cells may change until it is its turn, so some of them may
    /// be others by then: that costs time, and changes nothing else.
    #[inline(always)]
    fn prefetch(&self, cells: &impl Cells, (hash, _, seed): Arrival) {
        self.probes(hash).for_each(|position| cells.prefetch_insert(position));
        cells.prefetch_delete(self.parameters.decrements, Draws::new(seed));
    }

    /// How many arrivals ahead lines are asked for: none where all of them are in the cache.
    fn distance(&self) -> usize {
        if self.parameters.byte_length() <= CACHED_BYTES as u64 { 0 } else { PREFETCH_DISTANCE }
    }

    fn observe_one(&mut self, cells: &mut impl Cells, arrival: Arrival) -> Verdict {
        if self.distance() > 0 {
            // All lines at once take as long as one.
            self.prefetch(cells, arrival);
        }
        self.observe(cells, arrival)
    }

    fn observe_batch(&mut self, cells: &mut impl Cells, arrival: impl Fn(usize) -> Arrival, verdicts: &mut [Verdict]) {
        let distance = self.distance();
        pipelined(
            &mut (self, cells),
            verdicts.len(),
            distance,
            |(policy, cells), index| policy.prefetch(*cells, arrival(index)),
            |(policy, cells), index| verdicts[index] = policy.observe(*cells, arrival(index)),
        );
    }

    fn write_state(&self, generator: &Generator) -> StateWriter {
        let state = StateWriter::new().u64(self.arrivals).u64(self.until_decay).generator(generator);
        match &self.cache {
            Some(cache) => cache.write_state(state),
            None => state,
        }
    }

    fn restore(&mut self, state: &mut StateReader<'_>) -> Result<Generator> {
        (self.arrivals, self.until_decay) = (state.u64()?, state.u64()?);
        if !(1..=Self::decay_period(&self.parameters)).contains(&self.until_decay) {
            return Err(Error::corrupt("the filter's next halving is out of its period"));
        }
        let generator = state.generator()?;
        if let Some(cache) = &mut self.cache {
            cache.restore(state)?;
        }
        Ok(generator)
    }
}

/// An arrival: key, importance, and the seed of its draws.
type Arrival = (KeyHash, Importance, u64);

/// An importance-aware Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Ibf {
    base: Base,
    generator: Generator,
    policy: Policy,
    memory: Memory,
}

impl Ibf {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        let promise = plan::promise(&parameters, &ImportanceMix::uniform());
        Self::with_base(parameters, Base::new(parameters.kind(), parameters.spec(), hashing, promise)?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        Ok(Ibf {
            generator: Generator::for_filter(&base.hashing),
            base,
            policy: Policy::new(parameters)?,
            memory: Memory::new(&parameters)?,
        })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(parameters.byte_length())?;
        let mut filter =
            Self::with_base(parameters, Base::new(from.kind, parameters.spec(), from.hashing, from.promise)?)?;
        filter.generator = filter.policy.restore(&mut from.state)?;
        with_cells!(&mut filter.memory, cells => cells.restore(&parameters, &mut from)?);
        if let Some(cache) = &mut filter.policy.cache {
            from.body.fill(cache.bytes_mut())?;
            cache.check()?;
        }
        from.state.finish()?;
        Ok(filter)
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.policy.parameters
    }

    /// How many cells are zero now.
    pub fn zeros(&self) -> u64 {
        self.policy.parameters.num_cells - with_cells!(&self.memory, cells => cells.nonzero())
    }
}

/// Arrivals whose random draws are made at once.
const CHUNK: usize = 256;

everbloom::typed_filter!(Ibf: IBF, IBF1, IBF2, IBF3, IBF4, IBF5, IBF6);

impl Filter for Ibf {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.policy.parameters.memory_bits()
    }

    fn arrivals(&self) -> u64 {
        self.policy.arrivals
    }

    fn status(&self) -> Status {
        let Parameters { num_cells, num_hashes, .. } = self.policy.parameters;
        let fill = 1.0 - self.zeros() as f64 / num_cells as f64;
        Status {
            arrivals: self.policy.arrivals,
            fill,
            estimated_fpr: pow(fill, f64::from(num_hashes)),
            estimated_items: None,
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        with_cells!(&self.memory, cells => self.policy.probes(hash).all(|position| cells.is_set(position)))
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        let policy = &self.policy;
        with_cells!(&self.memory, cells => pipelined(
            &mut (),
            hashes.len().min(found.len()),
            policy.distance(),
            |(), index| policy.probes(hashes[index]).for_each(|position| cells.prefetch(position)),
            |(), index| found[index] = policy.probes(hashes[index]).all(|position| cells.is_set(position)),
        ));
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        let seed = self.generator.bits();
        let policy = &mut self.policy;
        with_cells!(&mut self.memory, cells => policy.observe_one(cells, (hash, importance, seed)))
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        let mut seeds = [0; CHUNK];
        for (part, verdicts) in verdicts[..count].chunks_mut(CHUNK).enumerate() {
            let (start, seeds) = (part * CHUNK, &mut seeds[..verdicts.len()]);
            seeds.fill_with(|| self.generator.bits());
            let arrival = |index: usize| (hashes[start + index], importances.at(start + index), seeds[index]);
            let policy = &mut self.policy;
            with_cells!(&mut self.memory, cells => policy.observe_batch(cells, arrival, verdicts));
        }
    }

    fn clear(&mut self) {
        with_cells!(&mut self.memory, cells => cells.clear());
        self.generator = Generator::for_filter(&self.base.hashing);
        self.policy.arrivals = 0;
        self.policy.until_decay = Policy::decay_period(&self.policy.parameters);
        if let Some(cache) = &mut self.policy.cache {
            cache.clear();
        }
    }

    fn state(&self) -> Vec<u8> {
        let state = self.policy.write_state(&self.generator);
        with_cells!(&self.memory, cells => cells.write_state(state)).finish()
    }

    fn body(&self) -> Body<'_> {
        let mut slices = with_cells!(&self.memory, cells => cells.bytes());
        slices.extend(self.policy.cache.as_ref().map(|cache| cache.bytes()));
        Body::Bytes(slices)
    }
}

#[cfg(test)]
mod tests;
