//! `counting`: a Bloom filter from which keys can be removed.
//!
//! **Answers** "is this key inside?" and takes keys out again. Never a false negative for a key that
//! is still inside, provided that only keys which were inserted are removed.
//!
//! *Inserted* means `insert`. `observe` takes a key that is new but looks like a repeat for one, and does not insert it; to
//! remove it afterwards would take cells from the keys that it was mistaken for. So fill a filter that keys will be removed
//! from with `insert`, each key once, as `everbloom build` does.
//!
//! # How it works
//!
//! Counters in place of bits (\[Fan et al. 2000\], the summary cache). Inserting raises the probed
//! counters, removing lowers them, a key is inside if none of them is zero.
//!
//! ```text
//! before      0 1 0 2 0 0 1
//! insert "a"    ^   ^     ^      probes 1, 3, 6
//! after       0 2 0 3 0 0 2
//! remove "a"  0 1 0 2 0 0 1
//! ```
//!
//! **A counter that reached its maximum stays there for ever.** How many keys it stands for is no
//! longer known, and lowering it could make a key that is still inside disappear. A stuck counter only
//! costs a little in false positives. Four bits are the usual width: with the best number of hashes a
//! counter exceeds 15 with probability below 1.37e-15 times the number of counters (\[Fan et al. 2000\]);
//! after that many insertions without removals, more counters stick.
//!
//! # Theory
//!
//! The rate of false positives is the classic filter's with as many counters as it has bits; the
//! memory is `cell_bits` times as much. `Bloom::try_from(&counting)` is the plain filter to send to others
//! (`everbloom build --from`): it has the same cells, so that it answers alike, and keeps the same promise.
//!
//! # Cost
//!
//! `num_hashes` cache lines a key.
//!
//! # When to choose it
//!
//! When keys leave as well as come: the contents of a cache, live sessions. Not on an endless stream
//! without removals, where a classic filter takes a quarter of the memory.
//!
//! # Example
//!
//! ```
//! use everbloom::FilterExt;
//! use everbloom::kind::Removal;
//! use everbloom::{Hashing, Key};
//! use everbloom::filters::Counting;
//!
//! let mut cached = Counting::with_rate(1000, 0.01)?;
//! cached.insert("page");
//! let hash = "page".hash_with(&Hashing::default());
//! assert!(cached.remove_hash(hash));
//! assert!(!cached.contains("page"));
//! assert!(!cached.remove_hash(hash), "it is gone already");
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::cells::bits::Bits;
use crate::cells::counters::{Counters, MAX_CELL_BITS};
use crate::filter::{
    Abilities, Base, Body, Combine, FillAt, Filter, Kind, Merge, Model, Parameter, Plan, Removal, Restore, Takes,
    Unset, same_shape, shows_base,
};
use crate::key::{Hashing, KeyHash};
use crate::promise::{Error, Goal, Importance, MAX_MEMORY_BITS, Promise, Result, Spec, Status, Verdict};
use crate::simd::spread_distance_for;
use crate::sizing::{MAX_HASHES, Size};

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 6,
    retired: &[3],
    name: "counting",
    summary: "counting Bloom filter: keys can be removed again",
    parameters: &PARAMETERS,
    can: Abilities { remove: true, merge: true, ..Abilities::SET },
    model: Model { fill_at, accesses: Some("num_hashes"), ..Model::sized(&["num_cells"]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Counting::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Counting::restore(from)?)),
    map: None,
};

const PARAMETERS: [Parameter; 3] = [
    Parameter::planned("num_cells", "counters in all", Takes::Whole(1, MAX_MEMORY_BITS)),
    Parameter::planned("num_hashes", "counters that a key raises", Takes::Whole(1, MAX_HASHES as u64)),
    Parameter::planned("cell_bits", "bits of a counter", Takes::Whole(2, MAX_CELL_BITS as u64)).or(Unset::Value("4")),
];

/// The usual width of a counter.
pub const DEFAULT_CELL_BITS: u32 = 4;

/// The size of a counting filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// Counters and probes.
    pub size: Size,
    /// Bits of a counter.
    pub cell_bits: u32,
}

impl Parameters {
    /// Counters of so many bits.
    pub fn new(size: Size, cell_bits: u32) -> Result<Self> {
        Parameters { size, cell_bits }.checked()
    }

    fn checked(self) -> Result<Self> {
        self.size.checked()?;
        if !(2..=MAX_CELL_BITS).contains(&self.cell_bits) {
            return Err(Error::parameter(
                "cell_bits",
                self.cell_bits,
                format!("between 2 and {MAX_CELL_BITS}"),
                "4 bits are enough for nearly every set",
            ));
        }
        Ok(self)
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        let size = Size { num_cells: spec.required("num_cells")?, num_hashes: spec.required("num_hashes")? };
        Parameters { size, cell_bits: cell_bits_of(spec)? }.checked()
    }

    fn spec(self) -> Spec {
        Spec::new(KIND.name)
            .with("num_cells", self.size.num_cells)
            .with("num_hashes", self.size.num_hashes)
            .with("cell_bits", self.cell_bits)
    }
}

fn cell_bits_of(spec: &Spec) -> Result<u32> {
    let cell_bits = spec.number("cell_bits")?.unwrap_or(DEFAULT_CELL_BITS);
    let placeholder = Size { num_cells: 1, num_hashes: 1 };
    Ok(Parameters { size: placeholder, cell_bits }.checked()?.cell_bits)
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let cell_bits = cell_bits_of(spec)?;
    let (size, items) = Size::planned(spec, goal, ["num_cells", "num_hashes"], cell_bits)?;
    let parameters = Parameters { size, cell_bits };
    let memory_bits = Counters::byte_length(size.num_cells, cell_bits).saturating_mul(8);
    Ok(Plan::new(&KIND, parameters.spec(), memory_bits, size.promise(items, goal.target_fpr), goal.hashing))
}

fn fill_at(spec: &Spec) -> Result<Option<FillAt>> {
    let size = Parameters::from_spec(spec)?.size;
    Ok(Some(Box::new(move |items| size.state(items))))
}

/// The counting Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Counting {
    parameters: Parameters,
    base: Base,
    counters: Counters,
}

impl Counting {
    /// A filter of this size.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        Self::with_promise(parameters, hashing, parameters.size.promise(None, None))
    }

    /// The smallest filter with 4-bit counters that keeps `target_fpr` for `expected_items` keys.
    pub fn with_rate(expected_items: u64, target_fpr: f64) -> Result<Self> {
        let size = Size::for_rate(expected_items, target_fpr)?;
        let parameters = Parameters { size, cell_bits: DEFAULT_CELL_BITS };
        Self::with_promise(parameters, Hashing::default(), size.promise(Some(expected_items), Some(target_fpr)))
    }

    fn with_promise(parameters: Parameters, hashing: Hashing, promise: Promise) -> Result<Self> {
        let parameters = parameters.checked()?;
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, promise)?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        let counters = Counters::new(parameters.size.num_cells, parameters.cell_bits)?;
        Ok(Counting { parameters, base, counters })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(Counters::byte_length(parameters.size.num_cells, parameters.cell_bits))?;
        let mut filter = Self::with_base(parameters, Base::restored(parameters.spec(), &mut from)?)?;
        from.state.finish()?;
        from.body.fill(filter.counters.bytes_mut())?;
        filter.counters.check()?;
        Ok(filter)
    }

    /// The size.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// How many counters are stuck at their maximum.
    pub fn saturated(&self) -> u64 {
        self.counters.count_saturated()
    }

    /// One bit per counter: set where it is not zero.
    pub(super) fn to_bits(&self) -> Result<Bits> {
        let mut bits = Bits::new(self.counters.len())?;
        for position in (0..self.counters.len()).filter(|position| self.counters.get(*position) > 0) {
            bits.set(position);
        }
        Ok(bits)
    }

    /// Keys inserted and not removed.
    pub fn len(&self) -> u64 {
        self.base.arrivals
    }

    /// Whether no key is inside.
    pub fn is_empty(&self) -> bool {
        self.base.arrivals == 0
    }

    #[inline]
    fn probes(&self, hash: KeyHash) -> impl Iterator<Item = u64> + use<> {
        self.parameters.size.probes(hash)
    }
}

crate::typed_filter!(Counting: KIND; merge remove);

impl Filter for Counting {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.counters.memory_bits()
    }

    fn status(&self) -> Status {
        // A full counter never falls again: what it stands for stays inside, which breaks no promise.
        self.parameters.size.status(self.base.arrivals, self.counters.fill())
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        let Size { num_cells, num_hashes } = self.parameters.size;
        let mut places = hash.places(num_cells);
        let mut next = || self.counters.get(places.place());
        // Two at a time: a branch for each is mispredicted too often. The last one or two are the answer and need none.
        for _ in 0..(num_hashes - 1) / 2 {
            if next().min(next()) == 0 {
                return false;
            }
        }
        let last = next();
        (if num_hashes % 2 == 0 { last.min(next()) } else { last }) != 0
    }

    /// A repeat is not counted again: a stream has set semantics, so that one removal takes a key out. Nor is a new key
    /// that looks like a repeat, which must not be removed then.
    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        let seen = self.contains_hash(hash);
        if !seen {
            self.insert_hash(hash);
        }
        Verdict::from_seen(seen)
    }

    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.base.count(1);
        let mut new = false;
        for position in self.probes(hash) {
            new |= self.counters.raise(position) == 0;
        }
        new
    }

    fn prefetch_distance(&self) -> usize {
        spread_distance_for(self.counters.bytes())
    }

    fn prefetch_hashes(&self, hashes: &[KeyHash]) {
        let positions = hashes.iter().flat_map(|hash| self.probes(*hash));
        positions.for_each(|position| self.counters.prefetch(position));
    }

    fn clear(&mut self) {
        self.counters.clear();
        self.base.arrivals = 0;
    }

    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }

    fn as_removal(&mut self) -> Option<&mut dyn Removal> {
        Some(self)
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.counters.bytes()])
    }
}

impl Removal for Counting {
    fn remove_hash(&mut self, hash: KeyHash) -> bool {
        if !self.contains_hash(hash) {
            return false;
        }
        self.base.arrivals = self.base.arrivals.saturating_sub(1);
        for position in self.probes(hash) {
            let count = self.counters.get(position);
            if count < self.counters.max() {
                self.counters.set(position, count.saturating_sub(1));
            }
        }
        true
    }

    fn stuck_counters(&mut self) -> u64 {
        self.saturated()
    }
}

impl Merge for Counting {
    /// The union adds counters (stuck ones stay stuck); an intersection of counters means nothing.
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()> {
        let other = same_shape(self, other)?;
        if how == Combine::Intersection {
            return Err(Error::unsupported(KIND.name, "be intersected", "turn both into plain bits first".into()));
        }
        for position in 0..self.counters.len() {
            let sum = self.counters.get(position).saturating_add(other.counters.get(position));
            self.counters.set(position, sum);
        }
        self.base.arrivals = self.base.arrivals.saturating_add(other.base.arrivals);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn stuck_counters_never_lose_a_key() {
        let size = Size { num_cells: 64, num_hashes: 3 };
        let mut filter = Counting::new(Parameters { size, cell_bits: 2 }, Hashing::default()).expect("small");
        for key in 0..100u64 {
            filter.insert(key);
        }
        assert!(filter.saturated() > 0, "the case must arise");
        for key in 0..90u64 {
            filter.remove_hash(key.hash_with(&Hashing::default()));
        }
        assert!((90..100u64).all(|key| filter.contains(key)));
    }

    #[test]
    fn a_key_is_found_where_none_of_its_counters_is_zero() {
        for num_hashes in 1..=9 {
            let size = Size { num_cells: 128 * u64::from(num_hashes), num_hashes };
            let mut filter = Counting::new(Parameters { size, cell_bits: 4 }, Hashing::default()).expect("small");
            (0..80u64).for_each(|key| _ = filter.insert(key));
            let hashes: Vec<KeyHash> = (0..2000u64).map(|key| key.hash_with(&Hashing::default())).collect();
            let expected = |hash: &KeyHash| size.probes(*hash).all(|position| filter.counters.get(position) > 0);
            let expected: Vec<bool> = hashes.iter().map(expected).collect();
            let mut found = vec![false; hashes.len()];
            filter.contains_hashes(&hashes, &mut found);
            assert_eq!(found, expected, "{num_hashes} hashes");
            assert!(hashes.iter().zip(found).all(|(hash, found)| filter.contains_hash(*hash) == found));
        }
    }

    #[test]
    fn a_key_inserted_twice_is_removed_twice() {
        let mut filter = Counting::with_rate(100, 0.01).expect("plans");
        let hash = "twice".hash_with(&Hashing::default());
        filter.insert_hash(hash);
        filter.insert_hash(hash);
        assert!(filter.remove_hash(hash) && filter.contains_hash(hash));
        assert!(filter.remove_hash(hash) && !filter.contains_hash(hash));
        assert!(filter.is_empty() && filter.counters.count_nonzero() == 0);
    }

    #[test]
    fn removing_what_is_not_there_changes_nothing() {
        let mut filter = Counting::with_rate(100, 0.001).expect("plans");
        filter.insert("here");
        let before = filter.counters.clone();
        assert!(!filter.remove_hash("absent".hash_with(&Hashing::default())));
        assert_eq!(filter.counters, before);
    }
}
