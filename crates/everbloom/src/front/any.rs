//! Any filter behind one type.

use super::abilities;
use crate::codec::{self};
use crate::filter::Info;
use crate::filter::{Combine, Filter, FilterExt, Kinds, Removal, Unseen, alone};
use crate::key::{Hashing, Key};
use crate::promise::{Error, Importance, Importances, Promise, Result, Spec, Verdict};
use std::any::Any;
use std::io::{Read, Write};
use std::ops::{Deref, DerefMut};

/// A filter of any kind, as planned by a [`Goal`](crate::Goal), read from bytes, or made of a typed one.
///
/// ```
/// use everbloom::{AnyFilter, Goal};
///
/// let mut cached = Goal::new().filter("counting").expected_items("10k").fpr("1%").build()?;
/// cached.insert("page");
/// assert!(cached.remove("page")? && !cached.contains("page"));
///
/// let copy = AnyFilter::from_bytes(&cached.to_bytes())?;
/// assert_eq!(copy.info().spec, cached.info().spec);
///
/// let error = cached.count("page").unwrap_err();
/// assert_eq!(error.to_string(), "counting filters cannot count; these can: spectral");
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AnyFilter {
    filter: Box<dyn Filter>,
}

impl AnyFilter {
    /// Whether the key seems to have been here. Changes nothing.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        FilterExt::contains(self.filter.as_ref(), key)
    }

    /// Remembers the key; true if it seems new.
    ///
    /// A filter that grows and is refused the memory still answers, but may lose the key; [`Info::refused`] counts such keys.
    /// [`AnyFilter::try_insert`] is an error then.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> bool {
        FilterExt::insert(self.filter.as_mut(), key)
    }

    /// [`AnyFilter::insert`], or an error, and nothing changed, if the filter must grow and the memory is refused.
    pub fn try_insert(&mut self, key: impl Key) -> Result<bool> {
        let hash = key.hash_with(self.hashing());
        self.filter.make_room(&[hash])?;
        Ok(self.filter.insert_hash(hash))
    }

    /// Says whether the key has been here, then remembers it: the more important, the longer, if the kind can.
    #[inline]
    pub fn observe(&mut self, key: impl Key, importance: Importance) -> Verdict {
        FilterExt::observe(self.filter.as_mut(), key, importance)
    }

    /// [`AnyFilter::contains`] for many keys, several times as fast in large filters; `found` is as long as `keys`.
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.filter.as_ref().contains_batch(keys, found);
    }

    /// [`AnyFilter::insert`] for many keys.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K]) {
        self.filter.as_mut().insert_batch(keys);
    }

    /// [`AnyFilter::observe`] for many keys; `verdicts` is as long as `keys`. An error, and nothing observed, if there are
    /// fewer importances than keys.
    ///
    /// ```
    /// use everbloom::{Goal, Importance, Importances, Verdict};
    ///
    /// let mut seen = Goal::new().memory("64KiB").fpr("1%").build()?;
    /// let mut verdicts = [Verdict::Distinct; 2];
    /// let one = [Importance::FULL];
    /// assert!(seen.observe_batch(&["a", "a"], Importances::Each(&one), &mut verdicts).is_err());
    /// seen.observe_batch(&["a", "a"], Importances::default(), &mut verdicts)?;
    /// assert_eq!(verdicts, [Verdict::Distinct, Verdict::Duplicate]);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn observe_batch<K: Key>(
        &mut self,
        keys: &[K],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        self.filter.as_mut().observe_batch(keys, importances, verdicts)
    }

    /// The items that the filter has not seen yet; it remembers every one.
    ///
    /// ```
    /// let mut seen = everbloom::Goal::new().memory("64KiB").fpr("0.1%").build()?;
    /// let words = ["to", "be", "or", "not", "to", "be"];
    /// assert_eq!(seen.unseen(words).collect::<Vec<_>>(), ["to", "be", "or", "not"]);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn unseen<I: IntoIterator<Item: Key>>(&mut self, items: I) -> Unseen<'_, I::IntoIter, dyn Filter> {
        FilterExt::unseen(self.filter.as_mut(), items)
    }

    /// Takes one insertion of the key back; false, and nothing changed, if the key is not there.
    ///
    /// Only keys that were inserted may be removed: removing one that is merely a false positive takes cells away from
    /// other keys.
    pub fn remove(&mut self, key: impl Key) -> Result<bool> {
        abilities::remove(self.filter.as_mut(), &key)
    }

    /// How often the key came, or seems to have; at least so often where its counters are full ([`Info::full_counters`]).
    pub fn count(&self, key: impl Key) -> Result<u64> {
        abilities::count(self.filter.as_ref(), &key)
    }

    /// Takes the keys of another filter of the same spec and seed into this one.
    pub fn merge(&mut self, other: &AnyFilter) -> Result<()> {
        abilities::merge(self.filter.as_mut(), other.filter.as_ref(), Combine::Union)
    }

    /// Keeps the keys that are in both, and false positives: no more of them than the filter with fewer had.
    pub fn intersect(&mut self, other: &AnyFilter) -> Result<()> {
        abilities::merge(self.filter.as_mut(), other.filter.as_ref(), Combine::Intersection)
    }

    /// Begins a new generation: what is older than the window is forgotten, counts fade.
    pub fn advance(&mut self) -> Result<()> {
        abilities::advance(self.filter.as_mut())
    }

    /// Forgets everything, as if just built.
    pub fn clear(&mut self) {
        self.filter.clear();
    }

    /// What it is, promises and looks like now. Passes over the cells, so it takes a while in large filters.
    pub fn info(&self) -> Info {
        Info::of(self.filter.as_ref())
    }

    /// Its kind and every parameter.
    pub fn spec(&self) -> &Spec {
        self.filter.spec()
    }

    /// What it promised when it was planned.
    pub fn promise(&self) -> Promise {
        self.filter.promise()
    }

    /// How it hashes keys.
    pub fn hashing(&self) -> &Hashing {
        self.filter.hashing()
    }

    /// The filter as bytes, which are the same on every machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self.filter.as_ref())
    }

    /// The filter as bytes with its body compressed, or as [`AnyFilter::to_bytes`] has them if that is no gain. To be read
    /// by a [`Decoder`](crate::Decoder) that is told how far it may unpack.
    ///
    /// ```
    /// use everbloom::{AnyFilter, Decoder, Goal};
    ///
    /// let goal = Goal::new().filter("bloom").expected_items(10_000).fpr("1%");
    /// let mut sparse = goal.compressed().build()?;
    /// sparse.extend(0..10_000);
    /// let sent = sparse.to_compressed_bytes();
    /// assert!(sent.len() < 10_500, "{} bytes for 10,000 keys at 1 %", sent.len());
    /// let received: AnyFilter = Decoder::new().limit(1 << 20).decode(&sent)?.into();
    /// assert!(received.contains(9_999));
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn to_compressed_bytes(&self) -> Vec<u8> {
        codec::encode_compressed(self.filter.as_ref())
    }

    /// The filter in these bytes, of any kind of this crate ([`Kinds::from_bytes`] reads others). They are trusted with nothing:
    /// damage is an error, and no more is allocated than their length justifies.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Kinds::default().from_bytes(bytes)
    }

    /// Writes the filter, without a copy of its cells.
    pub fn write_to(&self, out: &mut impl Write) -> Result<()> {
        Ok(codec::encode_to(self.filter.as_ref(), out)?)
    }

    /// Reads a filter of any kind of this crate, which must be all that the reader has.
    pub fn read_from(source: &mut impl Read) -> Result<Self> {
        Kinds::default().read_from(source)
    }

    /// The filter as one of type `F`, or an error if it is of another.
    pub fn downcast<F: Filter>(self) -> Result<F> {
        let spec = self.spec().clone();
        let filter: Box<dyn Any> = self.filter;
        filter.downcast().map(|filter| *filter).map_err(|_| Error::Mismatch {
            what: "their type",
            left: std::any::type_name::<F>().rsplit("::").next().unwrap_or_default().to_string(),
            right: spec.to_string(),
            remedy: "take AnyFilter, which holds every kind",
        })
    }

    /// The filter as one of type `F`, if it is.
    pub fn downcast_ref<F: Filter>(&self) -> Option<&F> {
        let filter: &dyn Any = alone(self.filter.as_ref());
        filter.downcast_ref()
    }

    /// The filter as one that can remove by hash, or an error that names the kinds which can.
    pub fn removal(&mut self) -> Result<&mut dyn Removal> {
        abilities::removal(self.filter.as_mut())
    }

    /// The filter itself.
    pub fn into_dyn(self) -> Box<dyn Filter> {
        self.filter
    }
}

/// What takes any [`Filter`] takes this one.
impl Deref for AnyFilter {
    type Target = dyn Filter;

    fn deref(&self) -> &dyn Filter {
        self.filter.as_ref()
    }
}

impl DerefMut for AnyFilter {
    fn deref_mut(&mut self) -> &mut dyn Filter {
        self.filter.as_mut()
    }
}

impl AsRef<dyn Filter> for AnyFilter {
    fn as_ref(&self) -> &dyn Filter {
        self.filter.as_ref()
    }
}

impl AsMut<dyn Filter> for AnyFilter {
    fn as_mut(&mut self) -> &mut dyn Filter {
        self.filter.as_mut()
    }
}

impl From<Box<dyn Filter>> for AnyFilter {
    fn from(filter: Box<dyn Filter>) -> Self {
        AnyFilter { filter }
    }
}

impl<K: Key> Extend<K> for AnyFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.filter.as_mut().insert_all(keys);
    }
}
