//! `scalable`: grows as keys come, and still keeps its rate.
//!
//! **Answers** what [`Bloom`](super::Bloom) answers, where the number of keys is not known beforehand.
//! Never a false negative; the rate of false positives stays within the target at every size. Memory
//! grows with the keys, so it is not for endless streams.
//!
//! # How it works
//!
//! A row of Bloom filters (\[Almeida et al. 2007\]). When the last one has taken the keys it was sized for,
//! another follows, `growth` times as large and with a rate `tightening` times as high. A key is there if
//! any of them has it.
//!
//! ```text
//! stage    0        1              2
//! keys     1,000    2,000          4,000
//! rate     0.1·δ    0.1·0.9·δ      0.1·0.81·δ      together at most δ
//! ```
//!
//! # Theory
//!
//! Rates add up to at most δ0/(1 − t), so δ0 = δ·(1 − t) keeps the target δ for ever. Tightening is what
//! growth costs: stage i needs log2(1/(δ0·t^i)) bits for each 0.69 keys. From 1,000 keys to 10 million at
//! 1 %, compared with a filter of the right size (9.59 bits a key):
//!
//! | `tightening=` | 0.5, the usual halving | 0.7 | 0.8 | 0.85 | **0.9** | 0.95 |
//! |---|---|---|---|---|---|---|
//! | memory, times | 4.84 | 3.59 | 3.16 | 3.01 | **2.91** | 2.92 |
//!
//! (The test `the_table_of_tightening_rules_is_true` computes it.) Halving is right for a filter that
//! doubles once or twice; 0.9 for one that may grow ten-thousandfold. `growth=1` adds filters of equal
//! size, the dynamic Bloom filter: less is wasted at first, and queries ask ever more filters.
//!
//! Memory for another stage can be asked for ahead ([`Filter::make_room`]), where a refusal is an error;
//! [`Filter::growth_bits`] says beforehand how much it is. Without asking, a refusal lets the last stage take more keys than
//! it was sized for: the rate rises, and `status` counts those keys, also in a copy that was saved and read back.
//!
//! # Cost
//!
//! A query for an absent key asks every stage, newest first.
//!
//! # Example
//!
//! ```
//! use everbloom::{Filter, Goal};
//! use everbloom::FilterExt;
//!
//! let mut filter = Goal::new().fpr(0.01).plan("scalable:initial_items=100")?.build()?;
//! for key in 0..100_000u64 {
//!     filter.insert(&key);
//! }
//! assert!((0..100_000u64).all(|key| filter.contains(&key)));
//! let wrong = (100_000..200_000u64).filter(|key| filter.contains(key)).count();
//! assert!(wrong <= 1_100, "{wrong} of 100,000 at a promised 1 %");
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::cells::bits::Bits;
use crate::cells::probed;
use crate::filter::{Abilities, Base, Body, Filter, Kind, Model, Parameter, Plan, Restore, Takes, Unset, shows_base};
use crate::format::StateWriter;
use crate::key::{Hashing, KeyHash};
use crate::promise::{Error, Goal, Holds, Importance, LEAST_RATE, Promise, Result, Spec, Status, Verdict};
use crate::sizing::Size;
use crate::sizing::closed_forms::largest;
use libm::pow;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 35,
    retired: &[32],
    name: "scalable",
    summary: "grows as keys come and keeps its rate: for sets of unknown size",
    parameters: &PARAMETERS,
    can: Abilities { grow: true, ..Abilities::SET },
    model: Model::sized(&["initial_items"]),
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Scalable::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Scalable::restore(from)?)),
    map: None,
};

const PARAMETERS: [Parameter; 4] = [
    Parameter::planned("initial_items", "keys that the first stage takes", Takes::Whole(1, MAX_INITIAL_ITEMS)),
    Parameter::planned("target_fpr", "the rate that all stages together keep", Takes::FromBelow(LEAST_RATE, 1.0)),
    Parameter::planned(
        "growth",
        "how many times as many keys the next stage takes",
        Takes::Whole(1, MAX_GROWTH as u64),
    )
    .or(Unset::Value("2")),
    Parameter::planned("tightening", "how many times as high the next stage's rate is", Takes::Within(0.0, 1.0))
        .or(Unset::Value("0.9")),
];

/// Keys that the first stage takes by default.
pub const DEFAULT_INITIAL_ITEMS: u64 = 1000;
/// See the table in the [module](self).
pub const DEFAULT_TIGHTENING: f64 = 0.9;
const DEFAULT_GROWTH: u32 = 2;
const MAX_GROWTH: u32 = 1 << 15;
const MAX_INITIAL_ITEMS: u64 = 1 << 56;
/// Doubling from one key exceeds 2^56 before this; a dynamic filter of so many stages is too slow to use.
const MAX_STAGES: u64 = 1024;

/// The parameters of a scalable filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Keys that the first stage takes.
    pub initial_items: u64,
    /// The rate that all stages together keep.
    pub target_fpr: f64,
    /// How many times as many keys the next stage takes.
    pub growth: u32,
    /// How many times as high the next stage's rate is.
    pub tightening: f64,
}

impl Parameters {
    fn checked(self) -> Result<Self> {
        if !(1..=MAX_INITIAL_ITEMS).contains(&self.initial_items) {
            let remedy = "start with about as many keys as there will be at least";
            return Err(Error::parameter("initial_items", self.initial_items, "between 1 and 2^56", remedy));
        }
        if !(LEAST_RATE..1.0).contains(&self.target_fpr) {
            let needed = format!("at least {LEAST_RATE:e} and below 1");
            return Err(Error::parameter("target_fpr", self.target_fpr, needed, "0.001 is a usual rate"));
        }
        if !(1..=MAX_GROWTH).contains(&self.growth) {
            let needed = format!("between 1 and {MAX_GROWTH}");
            return Err(Error::parameter("growth", self.growth, needed, "2 doubles every stage"));
        }
        if !(self.tightening > 0.0 && self.tightening < 1.0) {
            return Err(Error::parameter("tightening", self.tightening, "above 0 and below 1", "0.9 suits most"));
        }
        self.stage(0)?;
        Ok(self)
    }

    /// Keys that stage `index` takes.
    pub(crate) fn stage_items(&self, index: u32) -> u64 {
        u64::from(self.growth).saturating_pow(index).saturating_mul(self.initial_items)
    }

    /// The size of stage `index`.
    pub fn stage(&self, index: u32) -> Result<Size> {
        let rate = self.target_fpr * (1.0 - self.tightening) * pow(self.tightening, f64::from(index));
        Size::for_rate(self.stage_items(index), rate)
    }

    /// Kept for as many keys as all stages take: for ever, unless they do not grow.
    fn promise(&self) -> Promise {
        let room = (0..MAX_STAGES as u32).fold(0u64, |room, index| room.saturating_add(self.stage_items(index)));
        let holds = if room >= MAX_INITIAL_ITEMS { Holds::Always } else { Holds::UntilItems(room) };
        Promise { predicted_fnr: Some(0.0), holds, ..Promise::always(self.target_fpr) }
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        Self::read(spec, &Goal::new())
    }

    fn read(spec: &Spec, goal: &Goal) -> Result<Self> {
        let target = spec.value("target_fpr", "a rate")?.or(goal.target_fpr);
        let draft = Parameters {
            initial_items: 1,
            target_fpr: target.ok_or_else(|| spec.error("target_fpr is missing", "add target_fpr=…"))?,
            growth: spec.number("growth")?.unwrap_or(DEFAULT_GROWTH),
            tightening: spec.value("tightening", "a factor below 1")?.unwrap_or(DEFAULT_TIGHTENING),
        }
        .checked()?;
        let initial_items = match (spec.number("initial_items")?, goal.expected_items, goal.memory_bits) {
            (Some(items), _, _) | (None, Some(items), _) => items,
            (None, None, Some(memory_bits)) => draft.fitting(memory_bits)?,
            (None, None, None) => DEFAULT_INITIAL_ITEMS,
        };
        Parameters { initial_items, ..draft }.checked()
    }

    /// The keys of a first stage that fills this memory.
    fn fitting(&self, memory_bits: u64) -> Result<u64> {
        let num_cells = memory_bits / 512 * 512;
        let rate = self.target_fpr * (1.0 - self.tightening);
        let most = Size::for_cells_and_rate(num_cells.max(1), rate)?.capacity(rate).min(MAX_INITIAL_ITEMS);
        // Sizing rounds up where capacity rounds down, so the last few keys may not fit.
        let fits = |items: u64| Size::for_rate(items.max(1), rate).is_ok_and(|size| size.num_cells <= num_cells);
        Ok(largest(most, fits).max(1))
    }

    fn spec(&self) -> Spec {
        Spec::new(KIND.name)
            .with("initial_items", self.initial_items)
            .with("target_fpr", self.target_fpr)
            .with("growth", self.growth)
            .with("tightening", self.tightening)
    }
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let parameters = Parameters::read(spec, goal)?;
    let memory_bits = Bits::byte_length(parameters.stage(0)?.num_cells) * 8;
    Ok(Plan::new(&KIND, parameters.spec(), memory_bits, parameters.promise(), goal.hashing))
}

#[derive(Debug, Clone)]
struct Stage {
    size: Size,
    bits: Bits,
    taken: u64,
    most: u64,
}

impl Stage {
    fn new(parameters: &Parameters, index: u32) -> Result<Self> {
        let size = parameters.stage(index)?;
        Ok(Stage { size, bits: Bits::new(size.num_cells)?, taken: 0, most: parameters.stage_items(index) })
    }

    #[inline]
    fn contains(&self, hash: KeyHash) -> bool {
        probed::contains(self.bits.words(), self.size.num_cells, hash, 0..self.size.num_hashes)
    }

    fn insert(&mut self, hash: KeyHash) {
        self.taken = self.taken.saturating_add(1);
        probed::insert(self.bits.words_mut(), self.size.num_cells, hash, self.size.num_hashes);
    }

    fn rate(&self) -> f64 {
        pow(self.bits.fill(), f64::from(self.size.num_hashes))
    }
}

/// The growing Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Scalable {
    parameters: Parameters,
    base: Base,
    stages: Vec<Stage>,
    /// Stages that were made ahead of the keys they are for.
    spare: Vec<Stage>,
    /// Keys that went into a full stage, because memory for the next one was refused.
    refused: u64,
}

impl Scalable {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, parameters.promise())?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        let stages = vec![Stage::new(&parameters, 0)?];
        Ok(Scalable { parameters, base, stages, spare: Vec::new(), refused: 0 })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        let base = Base::restored(parameters.spec(), &mut from)?;
        let count = from.state.u64()?;
        if !(1..=MAX_STAGES).contains(&count) {
            return Err(Error::corrupt(format!("the filter claims {count} stages")));
        }
        let sizes = (0..count as u32).map(|index| parameters.stage(index)).collect::<Result<Vec<_>>>()?;
        let needed = sizes.iter().fold(0u64, |sum, size| sum.saturating_add(Bits::byte_length(size.num_cells)));
        from.body.expect_bytes(needed)?;
        let mut stages = Vec::new();
        for index in 0..count as u32 {
            let mut stage = Stage::new(&parameters, index)?;
            stage.taken = from.state.u64()?;
            from.body.fill(stage.bits.bytes_mut())?;
            stage.bits.check()?;
            stages.push(stage);
        }
        from.state.finish()?;
        let refused = stages.iter().fold(0u64, |sum, stage| sum.saturating_add(stage.taken.saturating_sub(stage.most)));
        Ok(Scalable { parameters, base, stages, spare: Vec::new(), refused })
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// How many stages there are.
    pub fn num_stages(&self) -> usize {
        self.stages.len()
    }

    /// How many distinct keys came. A key that an earlier stage took for one of its own was not inserted
    /// again, so each stage stands for a few more than it holds.
    pub fn estimated_items(&self) -> Option<f64> {
        let mut earlier = 0.0;
        let mut items = 0.0;
        for stage in &self.stages {
            items += stage.size.items_at_fill(stage.bits.fill())? / (1.0 - earlier);
            earlier += (1.0 - earlier) * stage.rate();
        }
        Some(items)
    }

    /// Makes room for another key if the last stage is full. A key that finds none goes into the full stage, and is
    /// counted: it is found again, at a higher rate of false positives than promised.
    fn grow(&mut self) {
        if self.stages.last().is_some_and(|stage| stage.taken < stage.most) {
            return;
        }
        let next = (!self.spare.is_empty()).then(|| self.spare.remove(0));
        match next.map_or_else(|| self.stage_after(self.stages.len()), Ok) {
            Ok(stage) => self.stages.push(stage),
            Err(_) => self.refused = self.refused.saturating_add(1),
        }
    }

    /// The stage that follows so many others.
    fn stage_after(&self, stages: usize) -> Result<Stage> {
        self.check_count(stages)?;
        Stage::new(&self.parameters, stages as u32)
    }

    /// Refuses a stage behind so many others.
    fn check_count(&self, stages: usize) -> Result<()> {
        if stages as u64 >= MAX_STAGES {
            return Err(Error::Infeasible {
                wanted: format!("more than {MAX_STAGES} stages"),
                reason: "a query would ask every one of them".into(),
                remedy: "start with more initial_items, or let every stage grow".into(),
            });
        }
        Ok(())
    }

    /// The numbers of the stages that these keys need beyond those that there are.
    fn missing_stages(&self, hashes: &[KeyHash]) -> std::ops::Range<usize> {
        let first = self.stages.len() + self.spare.len();
        let last = self.stages.last().map_or(0, |stage| stage.most.saturating_sub(stage.taken));
        let mut room = self.spare.iter().fold(last, |room, stage| room.saturating_add(stage.most));
        if room >= hashes.len() as u64 {
            return first..first;
        }
        let new = hashes.iter().filter(|hash| !self.contains_hash(**hash)).count() as u64;
        let mut end = first;
        while room < new {
            room = room.saturating_add(self.parameters.stage_items(end as u32));
            end += 1;
        }
        first..end
    }
}

crate::typed_filter!(Scalable: KIND);

impl Filter for Scalable {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.stages.iter().chain(&self.spare).map(|stage| stage.bits.bytes().len() as u64 * 8).sum()
    }

    fn status(&self) -> Status {
        let (ones, cells) = self
            .stages
            .iter()
            .fold((0, 0), |(ones, cells), stage| (ones + stage.bits.count_ones(), cells + stage.size.num_cells));
        Status {
            arrivals: self.base.arrivals,
            fill: ones as f64 / cells as f64,
            estimated_fpr: 1.0 - self.stages.iter().map(|stage| 1.0 - stage.rate()).product::<f64>(),
            estimated_items: self.estimated_items(),
            refused: self.refused,
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        self.stages.iter().rev().any(|stage| stage.contains(hash))
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        Verdict::from_seen(!self.insert_hash(hash))
    }

    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.base.count(1);
        let new = !self.contains_hash(hash);
        if new {
            self.grow();
            if let Some(stage) = self.stages.last_mut() {
                stage.insert(hash);
            }
        }
        new
    }

    fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        let missing = self.missing_stages(hashes);
        let stages = missing.map(|stages| self.stage_after(stages)).collect::<Result<Vec<_>>>()?;
        self.spare.extend(stages);
        Ok(())
    }

    fn growth_bits(&self, hashes: &[KeyHash]) -> u64 {
        let bits = |index| self.parameters.stage(index as u32).map_or(0, |size| Bits::byte_length(size.num_cells) * 8);
        self.missing_stages(hashes).fold(0u64, |sum, index| sum.saturating_add(bits(index)))
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn clear(&mut self) {
        (self.refused, self.spare) = (0, Vec::new());
        self.stages.truncate(1);
        self.stages.iter_mut().for_each(|stage| {
            stage.bits.clear();
            stage.taken = 0;
        });
        self.base.arrivals = 0;
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        let state = state.u64(self.stages.len() as u64);
        self.stages.iter().fold(state, |state, stage| state.u64(stage.taken))
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(self.stages.iter().map(|stage| stage.bits.bytes()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    /// Memory at `items` keys, as a multiple of a filter sized for them.
    fn overhead(tightening: f64, items: u64) -> f64 {
        let parameters = Parameters { initial_items: 1000, target_fpr: 0.01, growth: 2, tightening };
        let (mut room, mut bits, mut index) = (0, 0, 0);
        while room < items {
            room += parameters.stage_items(index);
            bits += parameters.stage(index).expect("plans").num_cells;
            index += 1;
        }
        bits as f64 / Size::for_rate(items, 0.01).expect("plans").num_cells as f64
    }

    #[test]
    fn the_rate_is_kept_at_every_size() {
        let (target, queries) = (0.02, 20_000u64);
        let parameters = Parameters { initial_items: 50, target_fpr: target, growth: 2, tightening: 0.9 };
        let mut filter = Scalable::new(parameters, Hashing::seeded(3)).expect("small");
        let error = (target * (1.0 - target) / queries as f64).sqrt();
        for key in 0..40_000u64 {
            filter.insert_hash(key.hash_with(&Hashing::seeded(3)));
            if (key + 1).is_power_of_two() || key % 10_000 == 0 {
                let absent = (0..queries).map(|query| (1 << 40 | query).hash_with(&Hashing::seeded(3)));
                let wrong = absent.filter(|hash| filter.contains_hash(*hash)).count();
                assert!(wrong as f64 / queries as f64 <= target + 4.0 * error, "{wrong} wrong at {key} keys");
            }
        }
        assert!(filter.num_stages() >= 10);
        let estimated = filter.estimated_items().expect("not full");
        assert!((estimated / 40_000.0 - 1.0).abs() < target, "{estimated} of 40,000");
    }

    #[test]
    fn the_table_of_tightening_rules_is_true() {
        let table = [(0.5, 4.84), (0.7, 3.59), (0.8, 3.16), (0.85, 3.01), (0.9, 2.91), (0.95, 2.92)];
        for (tightening, printed) in table {
            let computed = overhead(tightening, 10_000_000);
            assert!((computed - printed).abs() < 0.006, "{tightening}: {computed:.3}, printed {printed}");
        }
        assert!(overhead(DEFAULT_TIGHTENING, 10_000_000) <= 3.2);
    }
}
