//! `age_partitioned`: a sliding window with no false negatives inside it.
//!
//! **Answers** "was this key among the last `window` arrivals?" Never says no to one that was. Keys that
//! are older fade out within one more generation. The rate of false positives has a bound at every
//! moment, as long as no more keys arrive than planned.
//!
//! # How it works
//!
//! An Age-Partitioned Bloom filter (\[Shtul et al. 2020\]): k + l slices in order of age. An
//! insertion sets one bit in each of the k youngest. After every generation of arrivals the oldest slice
//! is emptied and becomes the youngest. A key is there if **k neighbouring** slices have its bits set.
//!
//! ```text
//! slices, youngest first          k = 3, l = 4
//! inserted            1 1 1 0 0 0 0
//! a generation later  0 1 1 1 0 0 0
//! two later           0 0 1 1 1 0 0
//! l later             0 0 0 0 1 1 1        still found
//! one more            0 0 0 0 0 1 1        gone
//! ```
//!
//! A key survives l generations in full, so with generations of ⌈window/l⌉ arrivals nothing within the
//! window is ever missed.
//!
//! # Where we differ from the paper
//!
//! The paper's slices are separate bit arrays: k cache lines an insertion, more a query. Here **every
//! block of four neighbouring lines is a small filter of its own**: 32 slices of 64 bits. A key has one
//! block, and in it one bit in each slice; the k youngest lie side by side. A query looks at all slices at
//! once, in wide registers, and finds a run of k in a handful of shifts. Ageing empties one word of every
//! block, once a generation.
//!
//! # Theory
//!
//! A block gets a Poisson number of keys, and uneven blocks raise the rate. With f(N) = 1 − (63/64)^N the
//! fill of a slice that has received N keys, N with mean k·g/blocks for g arrivals a generation:
//!
//! > FPR = E[Σ over runs: f^k, times (1 − f) for the slice before it]
//!
//! a run of k set bits at the youngest slices, or one that begins behind an unset bit; slices younger
//! than k generations are filled in proportion to their age. The slices of a run share generations, so N
//! varies as 67 % of a Poisson number does (k = 9). The plan tries every k from 1 to 31 (l = 32 − k) and
//! takes the one that needs fewest blocks. Measured at 1 % (window
//! 100,000, 2 M distinct keys, one seed): 0.93 % over the stream, 0.99 % late in it.
//!
//! On a described stream a filter of fewer blocks and as much shorter a window is simulated, since repeats within
//! the window leave slices emptier than the bound assumes.
//!
//! # Cost
//!
//! Four neighbouring cache lines an arrival, asked for ahead in batches; one pass over the blocks a
//! generation (over those that changed, where the caller turns the window and few did). About 21 bits per arrival
//! of the window at 1 %.
//!
//! # When to choose it
//!
//! When "within the last million arrivals" or "within 24 hours" must hold without exception. If a stream
//! has no natural window, [`Ranked`](super::Ranked) remembers more in the same memory.
//!
//! # Example
//!
//! ```
//! use everbloom::FilterExt;
//! use everbloom::{Goal, Importance, Verdict};
//!
//! let plan = Goal::new().fpr(0.01).plan("age_partitioned:window=1000")?;
//! let mut recent = plan.build()?;
//! for key in 0..10_000u64 {
//!     recent.observe(&key, Importance::FULL);
//! }
//! assert!((9_000..10_000u64).all(|key| recent.contains(&key)), "the window is whole");
//! let stale = (0..8_000u64).filter(|key| recent.contains(key)).count();
//! assert!(stale < 160, "{stale} of 8,000 at a promised 1 %");
//! # Ok::<(), everbloom::Error>(())
//! ```

mod plan;
mod touched;

use crate::cells::buffer::Buffer;
use crate::filter::{
    Abilities, Base, Body, Filter, Kind, Model, Plan, Restore, WindowParameters, Windowed, shows_base,
};
use crate::format::StateWriter;
use crate::key::{Hashing, KeyHash, finalise};
use crate::promise::{Error, Importance, Importances, Result, Status, Verdict};
use crate::simd::{Kernel, SimdOps, SlicePlaces, Slices, distance_for, prefetch, run};

pub use plan::{Advance, Parameters, Refresh};
use plan::{BLOCK_BITS, SLICE_BITS, SLICES};
use touched::Touched;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 30,
    retired: &[],
    name: "age_partitioned",
    summary: "sliding window of arrivals: no false negatives inside it",
    parameters: &plan::PARAMETERS,
    can: Abilities {
        advance: true,
        window: Some(WindowParameters {
            parameter: "window",
            by_caller: Some(("advance", "caller")),
            refresh: Some("refresh"),
        }),
        ..Abilities::STREAM
    },
    model: Model { effort: plan::effort, ..Model::sized(&["num_blocks", "window"]) },
    extension: None,
    plan: plan::planned,
    build: |plan| Ok(Box::new(AgePartitioned::from_plan(plan)?)),
    restore: |from| Ok(Box::new(AgePartitioned::restore(from)?)),
    map: None,
};

/// The age-partitioned filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct AgePartitioned {
    parameters: Parameters,
    base: Base,
    cells: Buffer,
    /// Arrivals of the youngest generation.
    young: u64,
    /// The youngest slice's place in the lines.
    youngest: u32,
    /// What changed lately, where the caller turns the window.
    touched: Option<Touched>,
}

impl AgePartitioned {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, parameters.promise())?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        Ok(AgePartitioned {
            parameters,
            base,
            cells: Buffer::with_bits(parameters.num_blocks * BLOCK_BITS)?,
            young: 0,
            youngest: 0,
            touched: (parameters.advance == Advance::Caller).then(|| Touched::nothing(parameters.num_blocks)),
        })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(parameters.num_blocks * BLOCK_BITS / 8)?;
        let mut filter = Self::with_base(parameters, Base::restored(parameters.spec(), &mut from)?)?;
        filter.young = from.state.u64()?;
        let youngest = from.state.u64()?;
        from.state.finish()?;
        if youngest >= u64::from(SLICES) {
            return Err(Error::corrupt("the filter's youngest slice does not exist"));
        }
        filter.youngest = youngest as u32;
        from.body.fill(filter.cells.bytes_mut())?;
        filter.touched.iter_mut().for_each(Touched::forget);
        Ok(filter)
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Counts an arrival; after the last one of a generation, begins the next.
    #[inline(always)]
    fn tick(&mut self) {
        self.base.count(1);
        self.young = self.young.saturating_add(1);
        if self.parameters.advance == Advance::Arrivals && self.young >= self.parameters.generation() {
            self.age();
        }
    }

    /// Empties the oldest slice and makes it the youngest.
    #[cold]
    fn age(&mut self) {
        self.youngest = (self.youngest + SLICES - 1) % SLICES;
        self.young = 0;
        let AgePartitioned { cells, touched, youngest, parameters, .. } = self;
        let (slice, words) = (*youngest as usize, cells.words_mut());
        match touched.as_ref().and_then(|touched| touched.blocks_of(*youngest, parameters.num_hashes)) {
            Some(few) => few.for_each(|block| words[block * SLICES as usize + slice] = 0),
            None => words.chunks_exact_mut(SLICES as usize).for_each(|block| block[slice] = 0),
        }
        if let Some(touched) = touched {
            touched.begin(*youngest);
        }
    }

    #[inline(always)]
    fn is_inside(&self, ops: impl SimdOps, hash: KeyHash) -> bool {
        let Parameters { num_blocks, num_hashes, .. } = self.parameters;
        let (blocks, _) = self.cells.words().as_chunks();
        has_run(ops.slice_hits(&blocks[hash.index(num_blocks) as usize], &places_of(hash)), self.youngest, num_hashes)
    }

    #[inline(always)]
    fn observe_block(&mut self, ops: impl SimdOps, hash: KeyHash) -> Verdict {
        let Parameters { num_blocks, num_hashes, refresh, .. } = self.parameters;
        let (places, youngest, index) = (places_of(hash), self.youngest, hash.index(num_blocks));
        let (blocks, _) = self.cells.words_mut().as_chunks_mut();
        let block: &mut Slices = &mut blocks[index as usize];
        let seen = has_run(ops.slice_hits(block, &places), youngest, num_hashes);
        if !seen || refresh == Refresh::Yes {
            ops.slice_set(block, &places, ((1u32 << num_hashes) - 1).rotate_left(youngest));
            if let Some(touched) = &mut self.touched {
                touched.note(youngest, index);
            }
        }
        self.tick();
        Verdict::from_seen(seen)
    }

    /// Asks for the first blocks of a batch, if that pays; says how far ahead. (A loop whose work is a
    /// closure, as in `pipelined`, would not be compiled for newer machines.)
    #[inline(always)]
    fn ask_first(&self, hashes: &[KeyHash]) -> usize {
        let distance = distance_for(self.cells.lines()).min(DISTANCE);
        let ahead = if hashes.len() > distance { distance } else { 0 };
        hashes[..ahead].iter().for_each(|hash| self.prefetch(*hash));
        ahead
    }

    /// Asks for the block that is so far ahead.
    #[inline(always)]
    fn ask_next(&self, hashes: &[KeyHash], index: usize, ahead: usize) {
        if ahead > 0 && index + ahead < hashes.len() {
            self.prefetch(hashes[index + ahead]);
        }
    }

    /// Asks for the lines of the key's block.
    #[inline(always)]
    fn prefetch(&self, hash: KeyHash) {
        let start = hash.index(self.parameters.num_blocks) as usize * SLICES as usize;
        for line in 0..SLICES as usize / 8 {
            prefetch(self.cells.words(), start + line * 8);
        }
    }
}

/// The place of the key's bit in every slice.
#[inline(always)]
fn places_of(hash: KeyHash) -> SlicePlaces {
    // The block was chosen by the top bits of the high half. 64 bits serve eight slices;
    // mixtures of both halves serve the others.
    let other = hash.high.rotate_left(29);
    [
        hash.low,
        finalise(hash.low ^ other),
        finalise(hash.low.wrapping_add(other)),
        finalise(hash.low.rotate_left(17) ^ other),
    ]
}

/// Whether `length` slices in a row, by age, are among the hits.
#[inline(always)]
fn has_run(hits: u32, youngest: u32, length: u32) -> bool {
    // Bit a: the slices of ages a to a + done − 1 are all hit. Ages do not wrap around.
    let (mut runs, mut done) = (hits.rotate_right(youngest), 1);
    while done < length {
        let step = done.min(length - done);
        runs &= runs >> step;
        done += step;
    }
    runs != 0
}

/// Observes a batch, compiled for the instructions that this machine has.
struct Observing<'w> {
    filter: &'w mut AgePartitioned,
    hashes: &'w [KeyHash],
    verdicts: &'w mut [Verdict],
}

impl Kernel for Observing<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Observing { filter, hashes, verdicts } = self;
        let ahead = filter.ask_first(hashes);
        for (index, (hash, verdict)) in hashes.iter().zip(verdicts).enumerate() {
            filter.ask_next(hashes, index, ahead);
            *verdict = filter.observe_block(ops, *hash);
        }
    }
}

/// A batch of queries.
struct Asking<'w> {
    filter: &'w AgePartitioned,
    hashes: &'w [KeyHash],
    found: &'w mut [bool],
}

impl Kernel for Asking<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Asking { filter, hashes, found } = self;
        let ahead = filter.ask_first(hashes);
        for (index, (hash, found)) in hashes.iter().zip(found).enumerate() {
            filter.ask_next(hashes, index, ahead);
            *found = filter.is_inside(ops, *hash);
        }
    }
}

/// How many keys ahead lines are asked for; each key asks for four.
const DISTANCE: usize = 8;

crate::typed_filter!(AgePartitioned: KIND; advance);

impl Filter for AgePartitioned {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.parameters.memory_bits()
    }

    fn status(&self) -> Status {
        let ones = self.cells.count_ones();
        // Up to 4,096 blocks, evenly spaced, tell the rate well enough.
        let step = (self.parameters.num_blocks as usize / 4096).max(1);
        let blocks = self.cells.words().chunks_exact(SLICES as usize).step_by(step);
        let sample = blocks.map(|block| run_probability(block, self.youngest, self.parameters.num_hashes));
        let (sum, count) = sample.fold((0.0, 0.0), |(sum, count), rate| (sum + rate, count + 1.0));
        Status {
            arrivals: self.base.arrivals,
            fill: ones as f64 / self.cells.allocated_bits() as f64,
            estimated_fpr: sum / count,
            estimated_items: None,
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        let mut found = [false];
        self.contains_hashes(&[hash], &mut found);
        found[0]
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        run(Asking { filter: self, hashes, found });
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        let mut verdicts = [Verdict::Distinct];
        run(Observing { filter: self, hashes: &[hash], verdicts: &mut verdicts });
        verdicts[0]
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        run(Observing { filter: self, hashes, verdicts });
    }

    fn clear(&mut self) {
        self.cells.clear();
        (self.base.arrivals, self.young, self.youngest) = (0, 0, 0);
        if let Some(touched) = &mut self.touched {
            *touched = Touched::nothing(self.parameters.num_blocks);
        }
    }

    fn as_windowed(&mut self) -> Option<&mut dyn Windowed> {
        Some(self)
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        state.u64(self.young).u64(self.youngest.into())
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.cells.bytes()])
    }
}

impl Windowed for AgePartitioned {
    fn generations(&self) -> u32 {
        self.parameters.generations()
    }

    /// Of its bits, one slice after another is emptied.
    fn partial_generations(&self) -> u32 {
        self.parameters.num_hashes
    }

    fn window(&self) -> u64 {
        self.parameters.window
    }

    fn advance(&mut self) {
        self.age();
    }

    fn advance_by(&mut self, generations: u64) {
        // Once round, every slice is empty.
        (0..generations.min(SLICES.into())).for_each(|_| self.age());
    }
}

/// The probability that a random key has `length` set bits in a row in this block.
fn run_probability(block: &[u64], youngest: u32, length: u32) -> f64 {
    // runs[j]: probability that the last j slices, and no more, are set; found: a run was complete.
    let mut runs = vec![0.0; length as usize];
    runs[0] = 1.0;
    let mut found = 0.0;
    for age in 0..SLICES {
        let slice = ((youngest + age) % SLICES) as usize;
        let fill = f64::from(block[slice].count_ones()) / f64::from(SLICE_BITS);
        let alive: f64 = runs.iter().sum();
        found += runs[length as usize - 1] * fill;
        for run in (1..length as usize).rev() {
            runs[run] = runs[run - 1] * fill;
        }
        runs[0] = alive * (1.0 - fill);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::promise::Goal;
    use crate::simd::Plain;

    #[test]
    fn runs_are_found_wherever_they_are() {
        let places = places_of(7u64.hash_with(&Hashing::default()));
        for (length, youngest) in [(1, 0), (3, 5), (7, 31), (16, 2), (31, 9)] {
            for pattern in 0..5000u64 {
                let mask = finalise(pattern) as u32 | finalise(pattern + 1) as u32;
                let mut block = [0; SLICES as usize];
                Plain.slice_set(&mut block, &places, mask);
                let by_age: Vec<bool> = (0..SLICES).map(|age| mask >> ((youngest + age) % SLICES) & 1 == 1).collect();
                let plain = by_age.windows(length as usize).any(|run| run.iter().all(|set| *set));
                let hits = Plain.slice_hits(&block, &places);
                assert_eq!((hits, has_run(hits, youngest, length)), (mask, plain), "{youngest}, {length}");
            }
        }
    }

    #[test]
    fn ageing_few_blocks_and_all_of_them_come_to_the_same() {
        let plan = Goal::new().memory_bits(1 << 22).fpr(0.01).plan("age_partitioned:advance=caller");
        let mut noted = AgePartitioned::from_plan(&plan.expect("plans")).expect("fits");
        let mut passing = noted.clone();
        passing.touched.iter_mut().for_each(Touched::forget);
        let room = noted.parameters.num_blocks / 256;
        let mut key = 0u64;
        for turn in 0..200u64 {
            // From nothing to more than is noted, and many turns at once.
            let arrivals = [0, 1, 3, room - 1, room, room + 1, 5, 4 * room][turn as usize % 8];
            for _ in 0..arrivals {
                let hash = (key % 5000).hash_with(&Hashing::default());
                assert_eq!(noted.observe_hash(hash, Importance::FULL), passing.observe_hash(hash, Importance::FULL));
                key += 1;
            }
            let steps = [1, 1, 1, 2, 1, 1, 40, 7, 1][turn as usize % 9];
            noted.advance_by(steps);
            (0..steps.min(SLICES.into())).for_each(|_| Windowed::advance(&mut passing));
            passing.touched.iter_mut().for_each(Touched::forget);
            assert!(noted.cells == passing.cells, "after turn {turn}");
        }
    }

    #[test]
    fn nothing_inside_the_window_is_ever_missed() {
        for window in [1u64, 2, 31, 1000, 4097] {
            let plan = Goal::new().fpr(0.05).plan(&format!("age_partitioned:window={window}")).expect("plans");
            let mut filter = plan.build().expect("fits");
            for arrival in 0..window * 5 + 100 {
                filter.observe_hash(arrival.hash_with(&Hashing::default()), Importance::FULL);
                let oldest = (arrival + 1).saturating_sub(window);
                assert!(
                    filter.contains_hash(oldest.hash_with(&Hashing::default())),
                    "{oldest} of {arrival} at {window}"
                );
            }
        }
    }
}
