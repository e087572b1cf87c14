//! What a filter can do.
//!
//! [`Filter`] is the object-safe heart: every registered filter answers `contains`, and every one
//! observes a stream. [`FilterExt`] puts keys in front of it, and the rest are abilities that only
//! some filters have: [`Membership`] (never a false negative), [`Removal`], [`Merge`].
//!
//! All work is defined on [`KeyHash`]es, so that a key is hashed once however many filters are
//! asked, and all of it has a batch form, because a batch can hash, prefetch and only then act.

use crate::cells::simd::pipelined;
use crate::error::{Error, Result};
use crate::goal::Forecast;
use crate::hash::{Hashing, Key, KeyHash};
use crate::spec::Spec;
use std::any::Any;
use std::ops::Deref;

/// What a filter says of an arrival: seen before, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Verdict {
    /// Not seen, as far as the filter remembers.
    #[default]
    Distinct = 0,
    /// Seen before, or so it looks.
    Duplicate = 1,
}

impl Verdict {
    /// Duplicate if `seen`.
    #[inline]
    pub fn from_seen(seen: bool) -> Self {
        if seen { Verdict::Duplicate } else { Verdict::Distinct }
    }

    /// Whether the arrival counts as new.
    #[inline]
    pub fn is_distinct(self) -> bool {
        self == Verdict::Distinct
    }
}

/// How much an arrival matters: `value` out of `max`.
///
/// An exact fraction rather than a float, so that "the largest cell value times importance over its
/// maximum, rounded down" is the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Importance {
    value: u32,
    max: u32,
}

impl Importance {
    /// The importance of an arrival when nothing is said about it: all there is.
    pub const FULL: Importance = Importance { value: 1, max: 1 };

    /// No importance at all.
    pub const NONE: Importance = Importance { value: 0, max: 1 };

    /// `value` out of `max`.
    pub fn new(value: u32, max: u32) -> Result<Self> {
        if max == 0 {
            return Err(Error::parameter(
                "importance_max",
                max,
                "at least 1",
                "give the largest importance of the stream",
            ));
        }
        if value > max {
            return Err(Error::parameter(
                "importance",
                value,
                format!("at most the maximum, {max}"),
                "raise the maximum",
            ));
        }
        Ok(Importance { value, max })
    }

    /// The importance itself.
    #[inline]
    pub fn value(self) -> u32 {
        self.value
    }

    /// The largest it could be.
    #[inline]
    pub fn max(self) -> u32 {
        self.max
    }

    /// value / max, as a number from 0 to 1.
    #[inline]
    pub fn share(self) -> f64 {
        f64::from(self.value) / f64::from(self.max)
    }

    /// ⌊`steps` · value / max⌋: where the importance falls among `steps` equal parts.
    #[inline]
    pub fn share_of(self, steps: u32) -> u32 {
        (u64::from(steps) * u64::from(self.value) / u64::from(self.max)) as u32
    }

    /// ⌊`steps` · (max − value) / max⌋: how far from the top it falls.
    #[inline]
    pub fn distance_from_top(self, steps: u32) -> u32 {
        (u64::from(steps) * u64::from(self.max - self.value) / u64::from(self.max)) as u32
    }
}

impl Default for Importance {
    fn default() -> Self {
        Importance::FULL
    }
}

/// How the numbers a user has become [`Importance`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportanceScale {
    max: f64,
    logarithmic: bool,
}

impl ImportanceScale {
    /// The grid on which importances that are not small whole numbers are placed.
    const GRID: u32 = 1 << 20;

    /// Importance as given, from 0 to `max`.
    pub fn linear(max: f64) -> Result<Self> {
        Self::checked(max, false)
    }

    /// Importance as ln(1 + value), from 0 to `max`: for sizes and counts over several magnitudes.
    pub fn logarithmic(max: f64) -> Result<Self> {
        Self::checked(max, true)
    }

    fn checked(max: f64, logarithmic: bool) -> Result<Self> {
        if !(max > 0.0 && max.is_finite()) {
            return Err(Error::parameter(
                "importance_max",
                max,
                "a positive number",
                "give the largest importance of the stream",
            ));
        }
        Ok(ImportanceScale { max, logarithmic })
    }

    /// The importance of a value, or why it has none.
    pub fn of(&self, value: f64) -> Result<Importance> {
        if !(0.0..=self.max).contains(&value) {
            return Err(Error::parameter(
                "importance",
                value,
                format!("between 0 and the maximum, {}", self.max),
                "raise the maximum or mend the record",
            ));
        }
        let whole = |number: f64| number.fract() == 0.0 && number <= f64::from(Self::GRID);
        if !self.logarithmic && whole(self.max) && whole(value) {
            return Importance::new(value as u32, self.max as u32);
        }
        let share = if self.logarithmic { libm::log1p(value) / libm::log1p(self.max) } else { value / self.max };
        Importance::new((share * f64::from(Self::GRID)).round() as u32, Self::GRID)
    }

    /// The value whose importance is this share of the largest: the way back, for reports.
    pub fn value_at(&self, share: f64) -> f64 {
        if self.logarithmic { libm::expm1(share * libm::log1p(self.max)) } else { share * self.max }
    }
}

/// The importances of a batch: one for all, or one each.
#[derive(Debug, Clone, Copy)]
pub enum Importances<'a> {
    /// Every arrival matters alike.
    All(Importance),
    /// One per arrival, as many as there are hashes.
    Each(&'a [Importance]),
}

impl<'a> Importances<'a> {
    /// The importance of arrival `index`.
    #[inline]
    pub fn at(&self, index: usize) -> Importance {
        match self {
            Importances::All(importance) => *importance,
            Importances::Each(each) => each.get(index).copied().unwrap_or_default(),
        }
    }

    /// The importances from `start` on.
    #[inline]
    pub fn skip(self, start: usize) -> Self {
        match self {
            Importances::All(_) => self,
            Importances::Each(each) => Importances::Each(each.get(start..).unwrap_or_default()),
        }
    }
}

impl Default for Importances<'_> {
    fn default() -> Self {
        Importances::All(Importance::FULL)
    }
}

/// What a filter knows about itself right now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Status {
    /// Arrivals observed or keys inserted so far.
    pub arrivals: u64,
    /// Share of cells that are not zero.
    pub fill: f64,
    /// The rate of false positives to expect of the next query, from the present contents.
    pub estimated_fpr: f64,
    /// How many distinct keys are inside, as far as the fill tells; a full filter tells nothing.
    pub estimated_items: Option<f64>,
}

/// The bytes behind a filter, as the format stores them.
pub enum Body<'a> {
    /// Raw little-endian cells, one slice after another.
    Bytes(Vec<&'a [u8]>),
    /// Whole filters, one after another.
    Filters(Vec<&'a dyn Filter>),
}

/// Every filter of the registry.
///
/// Methods take hashes made by [`Filter::hashing`]; [`FilterExt`] does the hashing.
pub trait Filter: Any + Send + Sync {
    /// The full spec: kind and every parameter, as [`Spec::parse`] reads it.
    fn spec(&self) -> Spec;

    /// How keys must be hashed for this filter.
    fn hashing(&self) -> &Hashing;

    /// All of the state: cells, side tables, indexes.
    fn memory_bits(&self) -> u64;

    /// What was promised when the filter was planned.
    fn forecast(&self) -> Forecast;

    /// What the filter looks like now.
    fn status(&self) -> Status;

    /// Whether the key seems to have been here. Changes nothing.
    fn contains_hash(&self, hash: KeyHash) -> bool;

    /// [`Filter::contains_hash`] for a batch; `found` is as long as `hashes`.
    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        pipelined(
            &mut (),
            hashes.len().min(found.len()),
            self.keys_ahead(),
            |(), index| self.prefetch_hashes(&hashes[index..=index]),
            |(), index| found[index] = self.contains_hash(hashes[index]),
        );
    }

    /// Says whether the key has been here, then remembers it.
    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict;

    /// [`Filter::observe_hash`] for a batch, with the same verdicts; `verdicts` is as long as `hashes`.
    fn observe_hashes(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let (count, distance) = (hashes.len().min(verdicts.len()), self.keys_ahead());
        pipelined(
            self,
            count,
            distance,
            |filter, index| filter.prefetch_hashes(&hashes[index..=index]),
            |filter, index| verdicts[index] = filter.observe_hash(hashes[index], importances.at(index)),
        );
    }

    /// Remembers a key; true if it seems new, as for `HashSet`.
    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.observe_hash(hash, Importance::FULL).is_distinct()
    }

    /// Remembers a batch of keys.
    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        let distance = self.keys_ahead();
        pipelined(
            self,
            hashes.len(),
            distance,
            |filter, index| filter.prefetch_hashes(&hashes[index..=index]),
            |filter, index| {
                filter.insert_hash(hashes[index]);
            },
        );
    }

    /// How many keys' cells should be asked for together, ahead of their turn; 0 if asking does not
    /// pay, because everything is in cache. A batch no longer than this is worked on at once: whoever
    /// sends it has called [`Filter::prefetch_hashes`], or gains little from it.
    fn keys_ahead(&self) -> usize {
        0
    }

    /// Asks for what these keys will touch to be brought near. A hint: it changes nothing.
    fn prefetch_hashes(&self, _hashes: &[KeyHash]) {}

    /// Forgets everything, as if just built.
    fn clear(&mut self);

    /// The filter as one that can merge, if it can.
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        None
    }

    /// The filter as one that can remove, if it can.
    fn as_removal(&mut self) -> Option<&mut dyn Removal> {
        None
    }

    /// The filter as one with a window, if it has one.
    fn as_windowed(&mut self) -> Option<&mut dyn Windowed> {
        None
    }

    /// The filter as one that counts, if it does.
    fn as_multiplicity(&self) -> Option<&dyn Multiplicity> {
        None
    }

    /// What besides spec, hashing and body must be saved: counters, generator.
    fn state(&self) -> Vec<u8>;

    /// The cells.
    fn body(&self) -> Body<'_>;
}

/// Filters that never forget: a key that was inserted is always found.
pub trait Membership: Filter {}

/// Filters from which keys can be taken out again.
pub trait Removal {
    /// Takes one insertion of the key back; false, and nothing changed, if the key is not there.
    ///
    /// Only keys that were inserted may be removed: removing one that is merely a false positive
    /// takes cells away from other keys.
    fn remove_hash(&mut self, hash: KeyHash) -> bool;
}

/// Filters that remember a window of the stream, in generations.
pub trait Windowed {
    /// Generations that a key survives in full.
    fn generations(&self) -> u32;

    /// Begins a new generation: what is older than [`Windowed::generations`] is forgotten.
    fn advance(&mut self);

    /// Begins so many generations, one after another.
    fn advance_by(&mut self, generations: u64) {
        // No filter remembers anything for longer.
        (0..generations.min(64)).for_each(|_| self.advance());
    }
}

/// Filters that know how often a key came.
pub trait Multiplicity {
    /// How often the key came, or seems to have; never less than it did, unless counts decay or are full.
    fn count_hash(&self, hash: KeyHash) -> u64;
}

/// How two filters become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// Keys of either.
    Union,
    /// Keys of both (and of false positives, as many as in the smaller one).
    Intersection,
}

impl Combine {
    /// The bits of both, in equally long rows of words.
    pub(crate) fn words(self, words: &mut [u64], others: &[u64]) {
        for (word, other) in words.iter_mut().zip(others) {
            *word = if self == Combine::Union { *word | other } else { *word & other };
        }
    }

    /// The most keys that can have been inserted into the outcome.
    pub(crate) fn inserted(self, keys: u64, others: u64) -> u64 {
        match self {
            Combine::Union => keys.saturating_add(others),
            Combine::Intersection => keys.min(others),
        }
    }
}

/// Filters that can take another of the same shape into themselves.
pub trait Merge {
    /// Makes this the union or intersection of both; an error, and nothing changed, if they differ
    /// in kind, size or hashing.
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()>;
}

/// The other filter as one of type `F`, with the same spec and hashing, or why not.
pub(crate) fn same_shape<'a, F: Filter>(left: &F, right: &'a dyn Filter) -> Result<&'a F> {
    let mismatch = |what, left: String, right: String| Error::Mismatch {
        what,
        left,
        right,
        remedy: "build both with the same filter spec and seed",
    };
    let (left_spec, right_spec) = (left.spec(), right.spec());
    if left_spec != right_spec {
        return Err(mismatch("their spec", left_spec.to_string(), right_spec.to_string()));
    }
    if left.hashing() != right.hashing() {
        let name = |hashing: &Hashing| match hashing.seed() {
            Some(seed) => format!("{} with seed {seed}", hashing.name()),
            None => format!("{} with its own secret key", hashing.name()),
        };
        return Err(mismatch("how they hash", name(left.hashing()), name(right.hashing())));
    }
    (right as &dyn Any)
        .downcast_ref::<F>()
        .ok_or_else(|| mismatch("their type", left_spec.to_string(), right_spec.to_string()))
}

/// How many keys are hashed before a filter is asked about them: enough to hide memory latency,
/// few enough for the hashes to stay in the first-level cache.
const KEYS_AT_A_TIME: usize = 256;

/// [`Filter`] for people who have keys rather than hashes.
pub trait FilterExt: Filter {
    /// Whether the key seems to have been here. Changes nothing.
    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash_with(self.hashing()))
    }

    /// Remembers the key; true if it seems new.
    #[inline]
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        let hash = key.hash_with(self.hashing());
        self.insert_hash(hash)
    }

    /// Says whether the key has been here, then remembers it.
    #[inline]
    fn observe<K: Key + ?Sized>(&mut self, key: &K, importance: Importance) -> Verdict {
        let hash = key.hash_with(self.hashing());
        self.observe_hash(hash, importance)
    }

    /// [`FilterExt::contains`] for many keys.
    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        let keys = &keys[..keys.len().min(found.len())];
        hashed_ahead(self, keys, |filter, start, hashes| {
            filter.contains_hashes(hashes, &mut found[start..start + hashes.len()])
        });
    }

    /// [`FilterExt::insert`] for many keys.
    fn insert_batch<K: Key>(&mut self, keys: &[K]) {
        hashed_ahead(self, keys, |filter, _, hashes| filter.insert_hashes(hashes));
    }

    /// [`FilterExt::observe`] for many keys.
    fn observe_batch<K: Key>(&mut self, keys: &[K], importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let keys = &keys[..keys.len().min(verdicts.len())];
        hashed_ahead(self, keys, |filter, start, hashes| {
            let verdicts = &mut verdicts[start..start + hashes.len()];
            filter.observe_hashes(hashes, importances.skip(start), verdicts);
        });
    }
}

impl<F: Filter + ?Sized> FilterExt for F {}

/// How many keys are hashed between two requests for their cells: short enough for both to overlap.
const KEYS_BETWEEN_REQUESTS: usize = 8;

/// Hashes the keys part by part and hands each part to `act` with its start. While one part is worked
/// on, the cells of the next one are on their way, and so is the hashing that waits for nothing.
#[inline]
fn hashed_ahead<F: Deref<Target: Filter>, K: Key>(
    mut filter: F,
    keys: &[K],
    mut act: impl FnMut(&mut F, usize, &[KeyHash]),
) {
    let hashing = *filter.hashing();
    let ahead = filter.keys_ahead().min(KEYS_AT_A_TIME / 2);
    let mut hashes = [KeyHash::default(); KEYS_AT_A_TIME];
    if ahead == 0 {
        for (part, keys) in keys.chunks(KEYS_AT_A_TIME).enumerate() {
            hash_all(&hashing, keys, &mut hashes);
            act(&mut filter, part * KEYS_AT_A_TIME, &hashes[..keys.len()]);
        }
        return;
    }
    let (mut now, mut next) = hashes.split_at_mut(KEYS_AT_A_TIME / 2);
    let mut parts = keys.chunks(ahead);
    let mut count = hash_and_ask(&*filter, &hashing, parts.next(), now);
    for start in (0..keys.len()).step_by(ahead) {
        let following = hash_and_ask(&*filter, &hashing, parts.next(), next);
        act(&mut filter, start, &now[..count]);
        std::mem::swap(&mut now, &mut next);
        count = following;
    }
}

#[inline(always)]
fn hash_all<K: Key>(hashing: &Hashing, keys: &[K], hashes: &mut [KeyHash]) {
    for (hash, key) in hashes.iter_mut().zip(keys) {
        *hash = key.hash_with(hashing);
    }
}

/// Hashes a part, if there is one, and asks for its cells; says how many keys it has.
#[inline(always)]
fn hash_and_ask<F: Filter + ?Sized, K: Key>(
    filter: &F,
    hashing: &Hashing,
    keys: Option<&[K]>,
    hashes: &mut [KeyHash],
) -> usize {
    let keys = keys.unwrap_or_default();
    let (groups, rest) = keys.as_chunks::<KEYS_BETWEEN_REQUESTS>();
    let mut places = hashes.chunks_exact_mut(KEYS_BETWEEN_REQUESTS);
    for (group, place) in groups.iter().zip(&mut places) {
        hash_all(hashing, group, place);
        filter.prefetch_hashes(place);
    }
    if let (false, Some(place)) = (rest.is_empty(), places.next()) {
        hash_all(hashing, rest, place);
        filter.prefetch_hashes(&place[..rest.len()]);
    }
    keys.len()
}

/// `stream.unseen(&mut filter)`: the items that a filter has not seen yet.
pub trait UnseenExt: Iterator + Sized {
    /// Keeps the items that the filter calls distinct, and lets it remember every one.
    ///
    /// ```
    /// use everbloom::{Goal, UnseenExt, filters::Bloom};
    ///
    /// let mut filter = Bloom::with_rate(1000, 0.001)?;
    /// let words = ["to", "be", "or", "not", "to", "be"];
    /// assert_eq!(words.into_iter().unseen(&mut filter).collect::<Vec<_>>(), ["to", "be", "or", "not"]);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    fn unseen<F: Filter + ?Sized>(self, filter: &mut F) -> Unseen<'_, Self, F>
    where
        Self::Item: Key,
    {
        Unseen { items: self, filter }
    }
}

impl<I: Iterator> UnseenExt for I {}

/// The iterator behind [`UnseenExt::unseen`].
#[derive(Debug)]
pub struct Unseen<'f, I, F: ?Sized> {
    items: I,
    filter: &'f mut F,
}

impl<I, F> Iterator for Unseen<'_, I, F>
where
    I: Iterator<Item: Key>,
    F: Filter + ?Sized,
{
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let Unseen { items, filter } = self;
        items.find(|item| filter.observe(item, Importance::FULL).is_distinct())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importance_outside_its_range_is_refused() {
        let scale = ImportanceScale::linear(50.0).expect("a scale");
        for wrong in [-1.0, 50.5, f64::NAN, f64::INFINITY] {
            assert!(scale.of(wrong).is_err(), "{wrong}");
        }
        assert!(ImportanceScale::linear(0.0).is_err());
        assert!(ImportanceScale::logarithmic(f64::NAN).is_err());
        assert!(Importance::new(3, 2).is_err());
    }

    #[test]
    fn whole_importances_stay_exact() {
        let scale = ImportanceScale::linear(50.0).expect("a scale");
        for value in 0..=50u32 {
            let importance = scale.of(f64::from(value)).expect("in range");
            assert_eq!((importance.value(), importance.max()), (value, 50));
            assert_eq!(importance.share_of(4), 4 * value / 50);
        }
    }

    #[test]
    fn logarithmic_importance_spans_its_range() {
        let scale = ImportanceScale::logarithmic(1e9).expect("a scale");
        assert_eq!(scale.of(0.0).expect("zero").value(), 0);
        let top = scale.of(1e9).expect("the maximum");
        assert_eq!(top.value(), top.max());
        let middle = scale.of(31_622.0).expect("the middle");
        assert_eq!(middle.share_of(100), 50);
        let share = f64::from(middle.value()) / f64::from(middle.max());
        assert!((scale.value_at(share) / 31_622.0 - 1.0).abs() < 1e-4, "{}", scale.value_at(share));
    }
}
