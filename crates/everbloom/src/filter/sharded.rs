//! `shards=N`: any filter, split by hash.
//!
//! **Answers** what the filter inside answers. A key belongs to one of N equal filters, chosen by hash
//! bits that no filter uses for anything else, so that N threads can work on N filters without sharing
//! a cache line. Verdicts depend on the number of shards and **not** on the number of threads.
//!
//! ```text
//! hashes ──► shard 0: h0 h4 h7 …  ──► filter 0  (thread A)
//!        ├─► shard 1: h1 h2 h9 …  ──► filter 1  (thread B)
//!        └─► …                        verdicts go back to where their hashes came from
//! ```
//!
//! The parameters of a spec with `shards=` describe **one shard**: `bloom:num_bits=1000,num_hashes=7,shards=4`
//! has 4,000 bits. A plan divides the memory and the expected keys.
//!
//! **Why other bits.** A shard chosen by bits that the filter indexes with leaves each filter only the
//! part of its cells that those bits name: in a trial it raised the rate of false negatives from 38 to
//! 90 %. [`KeyHash::shard`] is a finaliser over all 128 bits.
//!
//! **Memory.** `memory_bits` is that of the filters. A batch is dealt out into working memory of about 25
//! bytes per arrival, kept for the next batch; callers bound it by the size of their batches.
//!
//! # Example
//!
//! ```
//! use everbloom::FilterExt;
//! use everbloom::{Goal, Importances, KeyHash, Hashing, Key, Verdict};
//! use everbloom::kind::Sharded;
//!
//! let plan = Goal::new().memory_bits(1 << 20).fpr(0.01).plan("ranked:shards=8")?;
//! let hashes: Vec<KeyHash> = (0..50_000u64).map(|key| (key % 20_000).hash_with(&plan.hashing)).collect();
//! let run = |threads| {
//!     let mut filter = Sharded::from_plan(&plan).expect("fits");
//!     let mut verdicts = vec![Verdict::Distinct; hashes.len()];
//!     filter.observe_on(threads, &hashes, Importances::default(), &mut verdicts).expect("one importance for all");
//!     verdicts
//! };
//! assert_eq!(run(1), run(3));
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::filter::{
    Base, Body, Combine, Filter, Kind, Merge, Multiplicity, Parameter, Plan, Removal, Restore, Takes, Unset, Windowed,
    same_shape, shows_base,
};
use crate::key::KeyHash;
use crate::promise::{
    Error, Goal, Holds, Importance, Importances, Promise, Result, Spec, Status, Verdict, rate_text, size_text,
};
use crate::sizing::closed_forms::largest;
use libm::log;
use std::any::Any;

/// The parameter that asks for shards.
pub const SHARDS: &str = "shards";
/// More shards than this only cost.
pub const MAX_SHARDS: u32 = 4096;
/// What it means, for people; kinds do not list it.
pub const SHARDS_PARAMETER: Parameter = Parameter::planned(
    SHARDS,
    "equal filters, each with its own part of the keys, so that threads do not wait for each other",
    Takes::Whole(1, MAX_SHARDS as u64),
)
.or(Unset::Without);

fn count_of(spec: &Spec) -> Result<u32> {
    let count: u32 = spec.required(SHARDS)?;
    if (1..=MAX_SHARDS).contains(&count) {
        return Ok(count);
    }
    let needed = format!("between 1 and {MAX_SHARDS}");
    Err(Error::parameter(SHARDS, count, needed, "a few for each thread are enough"))
}

/// One build in so many has a shard with more keys than it was planned for.
const RARITY: f64 = 1e3;

/// The keys of the fullest of `count` shards, when `items` are dealt out by their hashes: more than this only in one build
/// in [`RARITY`]. By Bernstein, a shard exceeds its mean by t with a probability of at most e^(−t²/(2·(mean + t/3))).
pub(crate) fn largest_share(items: u64, count: u64) -> u64 {
    let mean = items as f64 / count as f64;
    let third = log(count as f64 * RARITY) / 3.0;
    let excess = third + (third * third + 6.0 * third * mean).sqrt();
    if count == 1 { items } else { items.min((mean + excess).ceil() as u64) }
}

/// The keys in all at which the fullest of `count` shards has `share`.
fn items_of_share(share: u64, count: u64) -> u64 {
    largest(share.saturating_mul(count), |items| largest_share(items, count) <= share)
}

/// The error of one shard, said of all of them: what they need together, if more memory would do.
fn of_all(error: Error, spec: &Spec, goal: &Goal, plan_one: PlanOne) -> Error {
    let (Error::Infeasible { wanted, .. }, Some(most)) = (&error, goal.memory_bits) else { return error };
    match planned(spec, &Goal { memory_bits: None, ..goal.clone() }, plan_one) {
        Ok(plan) if plan.memory_bits > most => Error::Infeasible {
            wanted: match (goal.target_fpr, goal.expected_items) {
                (Some(rate), Some(items)) => format!("a rate of {} for {items} keys", rate_text(rate)),
                _ => wanted.clone(),
            },
            reason: format!("its shards need {} together, more than {}", size_text(plan.memory_bits), size_text(most)),
            remedy: "give that much memory, fewer shards or a higher rate".into(),
        },
        _ => error,
    }
}

/// How a kind plans one filter.
type PlanOne = fn(&Spec, &Goal) -> Result<Plan>;

/// Plans a filter of this kind, in shards or in one piece.
pub(crate) fn plan_any(kind: &Kind, spec: &Spec, goal: &Goal) -> Result<Plan> {
    if is_sharded(spec) { planned(spec, goal, kind.plan) } else { (kind.plan)(spec, goal) }
}

/// Plans one shard with its part of the memory and the likely largest part of the keys, so that the promise of each is
/// that of all.
fn planned(spec: &Spec, goal: &Goal, plan_one: PlanOne) -> Result<Plan> {
    let count = u64::from(count_of(spec)?);
    let part = Goal {
        memory_bits: goal.memory_bits.map(|bits| bits / count),
        expected_items: goal.expected_items.map(|items| largest_share(items, count)),
        ..goal.clone()
    };
    let one = plan_one(&spec.without(SHARDS), &part).map_err(|error| of_all(error, spec, goal, plan_one))?;
    let holds = match one.promise.holds {
        Holds::UntilItems(items) => Holds::UntilItems(items_of_share(items, count)),
        other => other,
    };
    let exact_until = one.promise.exact_until.map(|items| items_of_share(items, count));
    Ok(Plan {
        kind: one.kind,
        spec: one.spec.with(SHARDS, count),
        memory_bits: one.memory_bits.saturating_mul(count),
        promise: Promise { holds, exact_until, ..one.promise },
        hashing: one.hashing,
        notes: one.notes,
    })
}

/// The plan of one shard.
pub fn shard_plan(plan: &Plan) -> Plan {
    Plan { spec: plan.spec.without(SHARDS), ..plan.clone() }
}

/// Whether a spec asks for shards.
pub fn is_sharded(spec: &Spec) -> bool {
    spec.get(SHARDS).is_some()
}

/// How many shards a spec asks for: one, if it says nothing of them.
pub fn shards_of(spec: &Spec) -> Result<u32> {
    if is_sharded(spec) { count_of(spec) } else { Ok(1) }
}

/// The spec with so many shards.
pub fn in_shards(spec: &Spec, count: u32) -> Spec {
    spec.clone().with(SHARDS, count)
}

/// The spec of each of its shards.
pub fn shard_spec(spec: &Spec) -> Spec {
    spec.without(SHARDS)
}

/// The arrivals of a window in all, of which each of `count` shards keeps `share`.
pub fn window_in_shards(share: u64, count: u32) -> u64 {
    items_of_share(share, count.into())
}

/// Whether the window of such a filter stands still unless somebody turns it.
pub fn is_turned_by_caller(kind: &Kind, spec: &Spec) -> bool {
    let by_caller = kind.can.window.and_then(|takes| takes.by_caller);
    by_caller.is_some_and(|(parameter, value)| spec.get(parameter) == Some(value))
}

/// One shard of what a plan describes, empty: all of them are alike.
pub fn build_shard(plan: &Plan) -> Result<Box<dyn Filter>> {
    shard_plan(plan).filter()
}

/// The shards of a filter with nothing beside it, in the order of [`KeyHash::shard`]; a filter without shards is its own only one.
pub fn split(mut filter: Box<dyn Filter>) -> Vec<Box<dyn Filter>> {
    let any: &mut dyn Any = filter.as_mut();
    match any.downcast_mut::<Sharded>() {
        Some(sharded) => sharded.take_shards(),
        None => vec![filter],
    }
}

/// The filter with this spec whose shards these are: what [`split`] took apart. Its bytes are those of a filter that was
/// never apart. Shards that do not belong together are an error.
pub fn join(spec: &Spec, mut shards: Vec<Box<dyn Filter>>) -> Result<Box<dyn Filter>> {
    let count = shards_of(spec)? as usize;
    if shards.len() != count {
        return Err(Error::corrupt(format!("the filter has {count} shards, and {} are there", shards.len())));
    }
    let part = spec.without(SHARDS);
    let (hashing, promise) = (*shards[0].hashing(), shards[0].promise());
    let belongs =
        |shard: &dyn Filter| *shard.spec() == part && *shard.hashing() == hashing && shard.promise() == promise;
    if let Some(at) = shards.iter().position(|shard| !belongs(shard.as_ref())) {
        let problem = format!("shard {at} is '{}', which does not belong to '{spec}'", shards[at].spec());
        return Err(Error::corrupt(problem));
    }
    if !is_sharded(spec) {
        return Ok(shards.remove(0));
    }
    let base = Base::of_any_hash(shards[0].kind(), spec.clone(), hashing, promise);
    Ok(Box::new(Sharded::of(shards, base)))
}

/// Equal filters, each with its own part of the keys. See the [module](self).
#[derive(Clone)]
pub struct Sharded {
    shards: Vec<Box<dyn Filter>>,
    base: Base,
    batches: Vec<Batch>,
    /// The generations and the window of each shard, if there are any.
    window: (u32, u32, u64),
}

/// What one shard has to do of a batch. Kept between batches for its allocations only.
#[derive(Clone, Default)]
struct Batch {
    hashes: Vec<KeyHash>,
    importances: Vec<Importance>,
    verdicts: Vec<Verdict>,
    places: Vec<usize>,
}

impl Batch {
    fn clear(&mut self) {
        self.hashes.clear();
        self.importances.clear();
        self.places.clear();
    }

    fn observe(&mut self, filter: &mut dyn Filter, importances: Importances<'_>) {
        self.verdicts.clear();
        self.verdicts.resize(self.hashes.len(), Verdict::Distinct);
        let importances = match importances {
            Importances::All(_) => importances,
            Importances::Each(_) => Importances::Each(&self.importances),
        };
        filter.observe_checked(&self.hashes, importances, &mut self.verdicts);
    }
}

impl Sharded {
    /// The filter that a plan with `shards=` describes.
    pub fn from_plan(plan: &Plan) -> Result<Self> {
        let (one, count) = (shard_plan(plan), count_of(&plan.spec)?);
        let shards = (0..count).map(|_| one.filter()).collect::<Result<_>>()?;
        let base = Base::of_any_hash(plan.kind, plan.spec.clone(), plan.hashing, plan.promise);
        Ok(Sharded::of(shards, base))
    }

    /// These filters, of which there is at least one, and all are alike.
    pub fn of(mut shards: Vec<Box<dyn Filter>>, base: Base) -> Self {
        let batches = shards.iter().map(|_| Batch::default()).collect();
        let window = shards[0]
            .as_windowed()
            .map_or((0, 0, 0), |shard| (shard.generations(), shard.partial_generations(), shard.window()));
        Sharded { shards, base, batches, window }
    }

    pub(super) fn restore(from: Restore<'_, '_>) -> Result<Self> {
        let count = count_of(from.spec)?;
        let part = from.spec.without(SHARDS);
        from.state.finish()?;
        let mut shards = Vec::new();
        for _ in 0..count {
            let filter = (from.read_part)(from.body)?;
            if *filter.spec() != part || *filter.hashing() != from.hashing {
                return Err(Error::corrupt("the filter's shards do not match its spec"));
            }
            shards.push(filter);
        }
        Ok(Self::of(shards, Base::of_any_hash(from.kind, part.with(SHARDS, count), from.hashing, from.promise)))
    }

    /// The filters.
    pub fn shards(&self) -> &[Box<dyn Filter>] {
        &self.shards
    }

    /// Takes the filters out, for somebody who keeps them elsewhere and brings them back.
    pub(crate) fn take_shards(&mut self) -> Vec<Box<dyn Filter>> {
        std::mem::take(&mut self.shards)
    }

    /// Brings back what [`Sharded::take_shards`] took out.
    pub(crate) fn put_shards(&mut self, shards: Vec<Box<dyn Filter>>) {
        self.shards = shards;
    }

    /// The shard that a key belongs to.
    #[inline]
    pub(crate) fn shard_of(&self, hash: KeyHash) -> usize {
        hash.shard(self.shards.len() as u64) as usize
    }

    /// [`Filter::observe_hashes`] on up to this many threads, with the same verdicts for any number.
    ///
    /// Worth it for batches of tens of thousands: threads are started for every call.
    pub fn observe_on(
        &mut self,
        threads: usize,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        importances.check(hashes.len())?;
        self.observe_in_parts(threads, hashes, importances, verdicts);
        Ok(())
    }

    fn observe_in_parts(
        &mut self,
        threads: usize,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) {
        let count = hashes.len().min(verdicts.len());
        self.deal(&hashes[..count], importances);
        let threads = threads.clamp(1, self.shards.len());
        let per_thread = self.shards.len().div_ceil(threads);
        let work = |shards: &mut [Box<dyn Filter>], batches: &mut [Batch]| {
            for (shard, batch) in shards.iter_mut().zip(batches) {
                batch.observe(shard.as_mut(), importances);
            }
        };
        let mut parts = self.shards.chunks_mut(per_thread).zip(self.batches.chunks_mut(per_thread));
        let own = parts.next();
        std::thread::scope(|scope| {
            for (shards, batches) in parts {
                scope.spawn(move || work(shards, batches));
            }
            if let Some((shards, batches)) = own {
                work(shards, batches);
            }
        });
        for batch in &self.batches {
            for (place, verdict) in batch.places.iter().zip(&batch.verdicts) {
                verdicts[*place] = *verdict;
            }
        }
    }

    /// Deals a batch out to the shards, in order.
    fn deal(&mut self, hashes: &[KeyHash], importances: Importances<'_>) {
        self.batches.iter_mut().for_each(Batch::clear);
        let count = self.shards.len() as u64;
        for (place, hash) in hashes.iter().enumerate() {
            let batch = &mut self.batches[hash.shard(count) as usize];
            batch.hashes.push(*hash);
            batch.places.push(place);
            if let Importances::Each(_) = importances {
                batch.importances.push(importances.at(place));
            }
        }
    }

    fn shard(&self, hash: KeyHash) -> &dyn Filter {
        self.shards[self.shard_of(hash)].as_ref()
    }
}

impl Filter for Sharded {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.memory_bits()).sum()
    }

    fn status(&self) -> Status {
        Status::of_parts(&self.shards.iter().map(|shard| shard.status()).collect::<Vec<_>>())
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        self.shard(hash).contains_hash(hash)
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        let at = self.shard_of(hash);
        self.shards[at].observe_hash(hash, importance)
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &mut [Verdict]) {
        self.observe_in_parts(1, hashes, importances, verdicts);
    }

    fn exact_arrivals(&self) -> u64 {
        self.shards.iter().map(|shard| shard.exact_arrivals()).sum()
    }

    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        let at = self.shard_of(hash);
        self.shards[at].insert_hash(hash)
    }

    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        self.deal(hashes, Importances::default());
        for (shard, batch) in self.shards.iter_mut().zip(&self.batches) {
            shard.insert_hashes(&batch.hashes);
        }
    }

    fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        if !self.base.kind.can.grow {
            return Ok(());
        }
        self.deal(hashes, Importances::default());
        self.shards.iter_mut().zip(&self.batches).try_for_each(|(shard, batch)| shard.make_room(&batch.hashes))
    }

    fn growth_bits(&self, hashes: &[KeyHash]) -> u64 {
        if !self.base.kind.can.grow {
            return 0;
        }
        let mut parts = vec![Vec::new(); self.shards.len()];
        hashes.iter().for_each(|hash| parts[self.shard_of(*hash)].push(*hash));
        self.shards.iter().zip(&parts).fold(0u64, |bits, (shard, part)| bits.saturating_add(shard.growth_bits(part)))
    }

    fn arrivals(&self) -> u64 {
        self.shards.iter().fold(0, |sum, shard| sum.saturating_add(shard.arrivals()))
    }

    fn refused(&self) -> u64 {
        self.shards.iter().map(|shard| shard.refused()).sum()
    }

    fn clear(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.clear());
    }

    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        if self.base.kind.can.merge { Some(self) } else { None }
    }

    fn as_removal(&mut self) -> Option<&mut dyn Removal> {
        if self.base.kind.can.remove { Some(self) } else { None }
    }

    fn as_windowed(&mut self) -> Option<&mut dyn Windowed> {
        if self.base.kind.can.advance { Some(self) } else { None }
    }

    fn as_multiplicity(&self) -> Option<&dyn Multiplicity> {
        if self.base.kind.can.count { Some(self) } else { None }
    }

    fn state(&self) -> Vec<u8> {
        Vec::new()
    }

    fn body(&self) -> Body<'_> {
        Body::Filters(self.shards.iter().map(|shard| shard.as_ref()).collect())
    }
}

impl Merge for Sharded {
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()> {
        let other = same_shape(self, other)?;
        for (shard, other) in self.shards.iter_mut().zip(&other.shards) {
            if let Some(shard) = shard.as_merge() {
                shard.merge(other.as_ref(), how)?;
            }
        }
        Ok(())
    }
}

impl Removal for Sharded {
    fn remove_hash(&mut self, hash: KeyHash) -> bool {
        let at = self.shard_of(hash);
        self.shards[at].as_removal().is_some_and(|shard| shard.remove_hash(hash))
    }

    fn stuck_counters(&mut self) -> u64 {
        self.shards.iter_mut().filter_map(|shard| shard.as_removal()).map(|shard| shard.stuck_counters()).sum()
    }
}

impl Windowed for Sharded {
    fn generations(&self) -> u32 {
        self.window.0
    }

    fn partial_generations(&self) -> u32 {
        self.window.1
    }

    fn window(&self) -> u64 {
        self.window.2.saturating_mul(self.shards.len() as u64)
    }

    fn advance(&mut self) {
        self.advance_by(1);
    }

    fn advance_by(&mut self, generations: u64) {
        for shard in self.shards.iter_mut().filter_map(|shard| shard.as_windowed()) {
            shard.advance_by(generations);
        }
    }
}

impl Multiplicity for Sharded {
    fn count_hash(&self, hash: KeyHash) -> u64 {
        self.shard(hash).as_multiplicity().map_or(0, |shard| shard.count_hash(hash))
    }

    fn max_count(&self) -> u64 {
        self.shards[0].as_multiplicity().map_or(0, |shard| shard.max_count())
    }
}

impl std::fmt::Debug for Sharded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sharded").field("spec", &self.spec().to_string()).finish_non_exhaustive()
    }
}
