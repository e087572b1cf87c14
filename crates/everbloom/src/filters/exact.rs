//! `exact`: every key's hash, in memory that grows.
//!
//! **Answers** "was this key here?" without forgetting and, but for two keys that share a 64-bit
//! hash, without error: among n keys that happens with probability about n²/2^65, one in 370 billion
//! for ten thousand keys, 0.0003 % for ten million ([`Exact::collision_probability`]). It takes 10 to 15 bytes
//! a distinct key and grows as long as keys come.
//!
//! # How it works
//!
//! The first 64 bits of each key's hash, in a table ([`cells::table`](crate::cells::table)) of cache lines with eight slots
//! each. A key is there if its line, or one that it spilled into, has its hash.
//!
//! ```text
//! line of "a"    h1 h2 0 0 0 0 0 0        before
//! insert "a"     h1 h2 ha 0 0 0 0 0       after
//! ```
//!
//! # Bytes
//!
//! The hashes in ascending order, 8 bytes each, so that the same keys give the same bytes however the table grew.
//!
//! # Cost
//!
//! One cache line a key, seldom two, asked for ahead where batches are inserted. When the table is full, it grows by a third or
//! a half, in one pass over it.
//!
//! # When to choose it
//!
//! When no error is wanted and memory may grow with the keys. A set whose size nobody knows, but which may err at a known
//! rate, takes a tenth of that as [`Scalable`](super::Scalable).
//!
//! # Example
//!
//! ```
//! use everbloom::Exact;
//!
//! let mut seen = Exact::new(Default::default())?;
//! assert!((0..100_000u64).all(|key| seen.insert(&key)));
//! assert!((0..100_000u64).all(|key| seen.contains(&key)));
//! assert!(!(100_000..200_000u64).any(|key| seen.contains(&key)));
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::cells::table::{FIRST_BITS, HashTable};
use crate::filter::{
    Abilities, Base, Body, Combine, FillAt, Filter, Kind, Merge, Model, Plan, Restore, insert_by_batches, observe_one,
    same_shape, shows_base,
};
use crate::format::StateWriter;
use crate::key::{Hashing, KeyHash};
use crate::promise::{
    Error, Goal, Importance, Importances, Promise, Result, Spec, Status, Verdict, rate_text, size_text,
};
use crate::sizing::promise_until;
use libm::ldexp;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 4,
    retired: &[],
    name: "exact",
    summary: "every key's 64-bit hash: no errors but for chance collisions, grows",
    parameters: &[],
    can: Abilities { exact: true, grow: true, merge: true, ..Abilities::SET },
    model: Model { fill_at, ..Model::sized(&[]) },
    extension: None,
    plan: |_, goal| planned(goal),
    build: |plan| Ok(Box::new(Exact::with_base(Base::planned(plan)?)?)),
    restore: |from| Ok(Box::new(Exact::restore(from)?)),
    map: None,
};

/// The rate of false positives with so many keys inside: one more shares its 64 bits with one of them.
fn rate(items: f64) -> f64 {
    ldexp(items, -64)
}

/// The keys for which the promised rate holds, if nothing is said: more take 16 TB.
const MOST_ITEMS: u64 = 1 << 40;

fn promised(items: Option<u64>, target: Option<f64>) -> Promise {
    promise_until(items, target, [MOST_ITEMS, MOST_ITEMS], |items| rate(items as f64))
}

/// It begins with a line, so it fits into nearly any memory; its size depends on the number of keys.
fn planned(goal: &Goal) -> Result<Plan> {
    let target = goal.target_fpr.unwrap_or(1.0);
    let most = ldexp(target, 64).min(MOST_ITEMS as f64) as u64;
    let items = goal.expected_items.unwrap_or(most);
    if items == 0 || rate(items as f64) > target {
        return Err(Error::Infeasible {
            wanted: format!("a rate of {} for {} keys", rate_text(target), items.max(1)),
            reason: "so many keys share a 64-bit hash more often than that".into(),
            remedy: format!("accept a rate of {}", rate_text(rate(items.max(1) as f64))),
        });
    }
    if let Some(most) = goal.memory_bits.filter(|most| *most < FIRST_BITS) {
        let needed = format!("at least {}, one cache line", size_text(FIRST_BITS));
        return Err(Error::memory(most, needed, "give that much; it grows with the keys"));
    }
    Ok(Plan::new(&KIND, Spec::new(KIND.name), FIRST_BITS, promised(goal.expected_items, goal.target_fpr), goal.hashing))
}

fn fill_at(_spec: &Spec) -> Result<Option<FillAt>> {
    // Of the slots, between a fifth and a half are empty.
    Ok(Some(Box::new(|items| (rate(items), 0.4))))
}

/// The set of all hashes. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Exact {
    base: Base,
    table: HashTable,
}

impl Exact {
    /// An empty set.
    pub fn new(hashing: Hashing) -> Result<Self> {
        Self::with_base(Base::new(&KIND, Spec::new(KIND.name), hashing, promised(None, None))?)
    }

    fn with_base(base: Base) -> Result<Self> {
        Ok(Exact { base, table: HashTable::new()? })
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let base = Base::restored(Spec::new(KIND.name), &mut from)?;
        let count = from.state.u64()?;
        from.state.finish()?;
        let hashes = from.body.ascending(count)?;
        Ok(Exact { base, table: HashTable::from_sorted(hashes, count)? })
    }

    /// How many distinct keys are inside.
    pub fn len(&self) -> u64 {
        self.table.len()
    }

    /// Whether no key is inside.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The probability that any two of the keys inside share their 64 bits, in which case one of
    /// them was taken for the other: 1 − exp(−n(n − 1)/2^65).
    pub fn collision_probability(&self) -> f64 {
        self.status().collision_probability()
    }
}

crate::typed_filter!(Exact: KIND; merge intersect);

impl Filter for Exact {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.table.memory_bits()
    }

    fn status(&self) -> Status {
        let items = self.len() as f64;
        Status {
            arrivals: self.base.arrivals,
            fill: items / self.table.slots().max(1) as f64,
            estimated_fpr: rate(items),
            estimated_items: Some(items),
            refused: self.table.refused(),
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        self.table.contains(hash.high)
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        observe_one(self, hash, importance)
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        self.base.count(count);
        self.table.observe(&hashes[..count], &mut verdicts[..count]);
    }

    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        insert_by_batches(self, hashes);
    }

    fn exact_arrivals(&self) -> u64 {
        self.base.arrivals
    }

    fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        self.table.make_room(hashes)
    }

    fn growth_bits(&self, hashes: &[KeyHash]) -> u64 {
        self.table.growth_bits(hashes.len() as u64)
    }

    fn refused(&self) -> u64 {
        self.table.refused()
    }

    fn clear(&mut self) {
        self.table.clear();
        self.base.arrivals = 0;
    }

    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        state.u64(self.table.len())
    }

    fn body(&self) -> Body<'_> {
        Body::Words(self.table.len(), Box::new(self.table.sorted()))
    }
}

impl Merge for Exact {
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()> {
        let other = same_shape(self, other)?;
        let merged = match how {
            Combine::Union => {
                let all = union(self.table.sorted(), other.table.sorted());
                HashTable::from_sorted(all.map(Ok), self.len().saturating_add(other.len()))?
            }
            Combine::Intersection => {
                let common = other.table.sorted().filter(|bits| self.table.contains(*bits));
                HashTable::from_sorted(common.map(Ok), self.len().min(other.len()))?
            }
        };
        self.table = merged;
        self.base.arrivals = how.inserted(self.base.arrivals, other.base.arrivals);
        Ok(())
    }
}

/// The numbers of two ascending rows, each once.
fn union(one: impl Iterator<Item = u64>, other: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(left), Some(right)) if left == right => {
            one.next();
            other.next()
        }
        (Some(left), Some(right)) if left < right => one.next(),
        (Some(_), None) => one.next(),
        (_, Some(_)) => other.next(),
        (None, None) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn collisions_are_as_likely_as_birthdays() {
        let mut filter = Exact::new(Hashing::default()).expect("memory");
        assert_eq!(filter.collision_probability(), 0.0);
        for key in 0..10_000u64 {
            filter.insert_hash(key.hash_with(&Hashing::default()));
        }
        let expected = 9_999.0 * 10_000.0 / 2.0 / 2f64.powi(64);
        assert!((filter.collision_probability() / expected - 1.0).abs() < 1e-9);
    }
}
