//! `graceful`: exact as long as it can be, then [`ranked`](super).
//!
//! **Answers** "has this key been here?" in fixed memory, for ever. While the distinct keys fit into the memory as 64-bit
//! hashes, nothing errs, but for two keys that share one: among n keys that happens with probability about n²/2^65. From
//! the arrival at which they no longer fit it is a `ranked` filter of the whole memory that knows every key so far.
//! Nobody has to guess how many keys will come.
//!
//! # How it works
//!
//! At first the memory is a table of hashes in their own order ([`cells::in_place`](crate::cells::in_place)), which begins
//! small and grows, to seven of eight slots at the full size. Then one pass turns the table into words: hashes and words
//! lie in the same order, and a word takes less than the hashes that it replaces.
//!
//! ```text
//! 64 MiB, 7.3 M keys    h h h h h h h 0 | h h h h h h 0 0 | …     exact
//! one key more          w w w w w w w w w w w w w w w w w …       ranked: a wide word has 34 bits of one hash, or 9 of five
//! ```
//!
//! A word takes its keys in the order of their hashes, all with the rank of a new arrival: the table knows no ranks, which
//! is why importances are `ranked`'s alone. Few words have more keys than lanes then: of 7.34 M keys in 64 MiB at 1 % about
//! 550 are forgotten by the change. Most have one key or none, so wide words matter here: of the first 660,000 new keys after
//! the change 51 are dropped by mistake, not 866, and of those up to 10 M keys 291, not 3,745.
//!
//! Word and fingerprint are made of the 64 bits that are kept, in both forms.
//!
//! # Bytes
//!
//! The hashes in ascending order while it is exact, the words after that; so a copy goes on as the original would, and
//! few keys make few bytes.
//!
//! # Cost
//!
//! One or two cache lines an arrival. The change reads and writes the memory once.
//!
//! # When to choose it
//!
//! For streams of unknown length without importances: it is what `auto` takes for them.
//!
//! # Example
//!
//! ```
//! use everbloom::Goal;
//!
//! let mut seen = Goal::new().memory("64KiB").fpr("1%").filter("graceful").build()?;
//! assert_eq!(seen.promise().exact_until, Some(7_168));
//! assert_eq!(seen.unseen(0..7_168u64).count(), 7_168, "no key was taken for another");
//! assert_eq!(seen.unseen(0..7_168u64).count(), 0, "and none forgotten");
//! assert!(seen.unseen(10_000..30_000u64).count() > 19_700, "then one in a hundred at most");
//! # Ok::<(), everbloom::Error>(())
//! ```

use super::observe::{TOGETHER, kept};
use super::{Insert, Parameters, Ranked, plan};
use crate::cells::in_place::{InPlace, Outcome};
use crate::cells::lanes::Words;
use crate::filter::{Abilities, Base, Body, Filter, Kind, Model, Plan, Restore, insert_by_batches, observe_one};
use crate::format::StateWriter;
use crate::key::{KeyHash, scale};
use crate::promise::{Goal, Importance, Importances, Promise, Result, Spec, Status, Verdict};
use crate::simd::{CACHED_BYTES, PREFETCH_DISTANCE};
use libm::ldexp;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 13,
    retired: &[],
    name: "graceful",
    summary: "exact while the keys fit into its memory, then ranked: fixed memory for ever, no number to guess",
    parameters: &plan::GRACEFUL,
    can: Abilities { exact_first: true, ..Abilities::STREAM },
    model: Model { choices: super::KIND.model.choices, ..Model::sized(&["num_words"]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Graceful::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Graceful::restore(from)?)),
    map: None,
};

/// The parameters, which are those of the filter that follows.
fn parameters_of(spec: &Spec) -> Result<Parameters> {
    let parameters = Parameters::from_spec(spec)?;
    if parameters.insert == Insert::Importance {
        return Err(
            spec.error("insert=importance needs ranks from the first key on", "take ranked with insert=importance")
        );
    }
    Ok(parameters)
}

fn spec_of(parameters: &Parameters) -> Spec {
    parameters.spec().renamed(KIND.name).without("gate")
}

fn lines_of(parameters: &Parameters) -> u64 {
    Words::bits(parameters.num_words, parameters.stride()) / 512
}

fn promise_of(parameters: &Parameters) -> Promise {
    let exact_until = InPlace::capacity(lines_of(parameters));
    // Hundreds of GiB hold so many hashes that these err more often than fingerprints of 32 bits.
    let predicted_fpr = parameters.predicted_fpr().max(collisions(exact_until as f64));
    Promise { exact_until: Some(exact_until), ..Promise::always(predicted_fpr) }
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    // The bound must hold whatever comes, and hashes have no ranks.
    let goal = Goal { expected_items: None, importance: false, importance_mix: None, ..goal.clone() };
    let ranked = plan::planned(&spec.renamed(super::KIND.name), &goal)?;
    let parameters = parameters_of(&ranked.spec)?;
    Ok(Plan::new(&KIND, spec_of(&parameters), ranked.memory_bits, promise_of(&parameters), goal.hashing))
}

/// The probability that a new key shares its 64 bits with one of so many.
fn collisions(items: f64) -> f64 {
    ldexp(items, -64)
}

/// The filter that is exact while it can be. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Graceful {
    /// The filter that follows; its memory holds the table until then.
    ranked: Ranked,
    /// `None` once it has changed.
    table: Option<InPlace>,
    /// Arrivals before the change.
    exact_arrivals: u64,
    refused: u64,
}

impl Graceful {
    fn from_plan(plan: &Plan) -> Result<Self> {
        let parameters = parameters_of(&plan.spec)?;
        let base = Base {
            promise: Promise { exact_until: promise_of(&parameters).exact_until, ..plan.promise },
            ..Base::planned(plan)?
        };
        let table = Some(InPlace::new(lines_of(&parameters)));
        Ok(Graceful { ranked: Ranked::with_base(parameters, base)?, table, exact_arrivals: 0, refused: 0 })
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = parameters_of(from.spec)?;
        let base = Base::restored(spec_of(&parameters), &mut from)?;
        let (exact_arrivals, hashes) = (from.state.u64()?, from.state.u64()?);
        if let Some(count) = hashes.checked_sub(1) {
            from.state.finish()?;
            let (table, buffer) = InPlace::from_sorted(from.body.ascending(count)?, count, lines_of(&parameters))?;
            let (shape, wide) = parameters.division()?;
            let words = Words::in_part(buffer, parameters.num_words, shape, wide, parameters.stride());
            let ranked = Ranked::of(parameters, base, words);
            return Ok(Graceful { ranked, table: Some(table), exact_arrivals, refused: 0 });
        }
        Ok(Graceful { ranked: Ranked::restored(parameters, base, from)?, table: None, exact_arrivals, refused: 0 })
    }

    /// Whether nothing has been forgotten yet.
    pub fn is_exact(&self) -> bool {
        self.table.is_some()
    }

    /// The parameters of the filter that follows.
    pub fn parameters(&self) -> Parameters {
        self.ranked.parameters()
    }

    /// Turns the table into words. Those that wait lie in lines that were read before any of theirs is written.
    #[cold]
    fn change(&mut self) {
        let Some(table) = self.table.take() else { return };
        let (words, stride) = (self.ranked.words.len(), self.ranked.parameters.stride());
        // Many at a time, as arrivals come: 0.6 of the time that it takes one by one.
        let (mut hashes, mut count) = ([KeyHash::default(); TOGETHER], 0);
        table.convert(
            &mut self.ranked,
            |ranked| ranked.words.buffer_mut().lines_mut(),
            |bits| Words::last_line(scale(bits, words), stride),
            |ranked, bits| {
                hashes[count] = KeyHash { high: bits, low: 0 };
                count += 1;
                if count == TOGETHER {
                    ranked.take_kept(&hashes);
                    count = 0;
                }
            },
        );
        self.ranked.take_kept(&hashes[..count]);
    }
}

crate::typed_filter!(Graceful: KIND);

impl Filter for Graceful {
    fn base(&self) -> &Base {
        &self.ranked.base
    }

    fn base_mut(&mut self) -> &mut Base {
        &mut self.ranked.base
    }

    fn memory_bits(&self) -> u64 {
        // What was read back small has not asked for all of it yet.
        self.ranked.memory_bits()
    }

    fn status(&self) -> Status {
        let Some(table) = self.table else { return Status { refused: self.refused, ..self.ranked.status() } };
        let items = table.len() as f64;
        Status {
            arrivals: self.base().arrivals,
            fill: items / InPlace::capacity(lines_of(&self.ranked.parameters)) as f64,
            estimated_fpr: collisions(items),
            estimated_items: Some(items),
            refused: self.refused,
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        match self.table {
            Some(table) => table.contains(self.ranked.words.buffer(), hash.high),
            None => self.ranked.contains_hash(kept(hash.high)),
        }
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        observe_one(self, hash, importance)
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        let (mut hashes, mut verdicts) = (&hashes[..count], &mut verdicts[..count]);
        while let Some(table) = &mut self.table {
            let outcome = table.observe(self.ranked.words.buffer_mut(), hashes, verdicts);
            let done = match outcome {
                Outcome::Done => hashes.len(),
                Outcome::Full(done) => {
                    self.change();
                    done
                }
                Outcome::Refused(done) => {
                    verdicts[done] = Verdict::Distinct;
                    self.refused += 1;
                    done + 1
                }
            };
            self.ranked.base.count(done);
            self.exact_arrivals = self.exact_arrivals.saturating_add(done as u64);
            (hashes, verdicts) = (&hashes[done..], &mut verdicts[done..]);
            if hashes.is_empty() {
                return;
            }
        }
        self.ranked.observe_kept(hashes, verdicts);
    }

    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        insert_by_batches(self, hashes);
    }

    fn prefetch_distance(&self) -> usize {
        match self.table {
            Some(table) if table.lines() as usize * 64 <= CACHED_BYTES => 0,
            Some(_) => PREFETCH_DISTANCE,
            None => self.ranked.prefetch_distance(),
        }
    }

    fn prefetch_hashes(&self, hashes: &[KeyHash]) {
        match self.table {
            Some(table) => hashes.iter().for_each(|hash| table.prefetch(self.ranked.words.buffer(), hash.high)),
            None => self.ranked.prefetch_hashes(hashes),
        }
    }

    fn exact_arrivals(&self) -> u64 {
        self.exact_arrivals
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        match &mut self.table {
            Some(table) => table.make_room(self.ranked.words.buffer_mut(), hashes.len() as u64),
            None => Ok(()),
        }
    }

    fn clear(&mut self) {
        self.ranked.clear();
        self.table = Some(InPlace::new(lines_of(&self.ranked.parameters)).within(self.ranked.words.buffer()));
        (self.exact_arrivals, self.refused) = (0, 0);
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        state.u64(self.exact_arrivals).u64(self.table.map_or(0, |table| table.len() + 1))
    }

    fn body(&self) -> Body<'_> {
        match self.table {
            Some(table) => Body::Words(table.len(), Box::new(table.sorted(self.ranked.words.buffer()))),
            None => self.ranked.body(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Hashing, Key};

    fn built(spec: &str, bits: u64) -> Graceful {
        Graceful::from_plan(&Goal::new().memory_bits(bits).fpr(0.03).plan(spec).expect("a plan")).expect("memory")
    }

    fn hashes(keys: std::ops::Range<u64>) -> Vec<KeyHash> {
        keys.map(|key| key.hash_with(&Hashing::default())).collect()
    }

    #[test]
    fn the_change_leaves_what_ranked_would_hold_had_the_hashes_come_in_order() {
        for (spec, bits) in [
            ("graceful", 512),
            ("graceful", 1 << 16),
            ("graceful:words=plain", 1 << 16),
            ("graceful:packing=padded", 100_000),
            ("graceful:lanes=5,lane_bits=9,insert=rank1", 1 << 16),
            ("graceful:lanes=1", 1 << 17),
            ("graceful:lanes=7,lane_bits=8,insert=front,hit=bubble", 70_000),
            ("graceful:lanes=2,lane_bits=32,insert=tail,hit=still", 70_000),
        ] {
            let mut filter = built(spec, bits);
            let most = filter.promise().exact_until.expect("it is exact first");
            let (keys, mut verdicts) = (hashes(0..most), vec![Verdict::Duplicate; most as usize]);
            filter.observe_checked(&keys, Importances::default(), &mut verdicts);
            assert!(filter.is_exact() && verdicts.iter().all(|verdict| verdict.is_distinct()), "{spec}");
            let mut twin = Ranked::new(filter.parameters(), Hashing::default()).expect("memory");
            let mut ascending: Vec<u64> = keys.iter().map(|hash| hash.high).collect();
            ascending.sort_unstable();
            for bits in ascending {
                twin.observe_hash(kept(bits), Importance::FULL);
            }
            let last = (most..)
                .map(|key| key.hash_with(&Hashing::default()))
                .find(|hash| !twin.contains_hash(kept(hash.high)));
            let last = last.expect("a key that is no false positive");
            assert!(filter.observe_hash(last, Importance::FULL).is_distinct() && !filter.is_exact());
            twin.observe_hash(kept(last.high), Importance::FULL);
            assert_eq!(filter.ranked.words, twin.words, "{spec}");
            assert_eq!((filter.exact_arrivals(), filter.status().arrivals), (most, most + 1));
        }
    }

    #[test]
    fn wide_words_err_less_after_the_change() {
        let wrong = |spec: &str| {
            let mut filter = built(spec, 1 << 20);
            let most = filter.promise().exact_until.expect("it is exact first");
            filter.insert_hashes(&hashes(0..most + 1));
            assert!(!filter.is_exact());
            let (asked, estimated) = (hashes(1 << 40..(1 << 40) + 300_000), filter.status().estimated_fpr);
            let wrong = asked.iter().filter(|hash| filter.contains_hash(**hash)).count() as f64;
            let expected = estimated * asked.len() as f64;
            assert!((wrong - expected).abs() <= 4.0 * expected.sqrt().max(1.0), "{spec}: {wrong}, {expected} expected");
            wrong
        };
        let (wide, plain) = (wrong("graceful:lanes=5,lane_bits=9"), wrong("graceful:lanes=5,lane_bits=9,words=plain"));
        assert!(wide * 5.0 < plain, "{wide} and {plain}");
    }

    #[test]
    fn a_repeat_changes_nothing_however_full_it_is() {
        let mut filter = built("graceful", 1 << 14);
        let most = filter.promise().exact_until.expect("it is exact first");
        filter.insert_hashes(&hashes(0..most));
        filter.insert_hashes(&hashes(0..most));
        assert!(filter.is_exact() && filter.exact_arrivals() == 2 * most);
        filter.clear();
        filter.insert_hashes(&hashes(most..2 * most));
        assert!(filter.is_exact() && !filter.contains_hash(hashes(0..1)[0]));
    }

    #[test]
    fn importances_are_for_ranked() {
        let error =
            Goal::new().memory_bits(1 << 16).fpr(0.01).plan("graceful:insert=importance").expect_err("no ranks");
        assert!(error.to_string().contains("take ranked"), "{error}");
    }
}
