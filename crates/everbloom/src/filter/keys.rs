//! Filters for people who have keys rather than hashes.

use super::{Filter, Info};
use crate::key::{Hashing, Key, KeyHash, Keys};
use crate::promise::{Importance, Importances, Result, Verdict};
use std::ops::Deref;

/// How many keys are hashed before a filter is asked about them: enough to hide memory latency,
/// few enough for the hashes to stay in the first-level cache.
const KEYS_AT_A_TIME: usize = 256;

/// [`Filter`] for people who have keys rather than hashes.
pub trait FilterExt: Filter {
    /// Whether the key seems to have been here. Changes nothing.
    #[inline]
    fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(key.hash_with(self.hashing()))
    }

    /// Remembers the key; true if it seems new.
    #[inline]
    fn insert(&mut self, key: impl Key) -> bool {
        let hash = key.hash_with(self.hashing());
        self.insert_hash(hash)
    }

    /// Says whether the key has been here, then remembers it.
    #[inline]
    fn observe(&mut self, key: impl Key, importance: Importance) -> Verdict {
        let hash = key.hash_with(self.hashing());
        self.observe_hash(hash, importance)
    }

    /// Remembers the key, or an error, and nothing changed, if the filter must grow and the memory is refused.
    fn try_insert(&mut self, key: impl Key) -> Result<bool> {
        let hash = key.hash_with(self.hashing());
        self.make_room(&[hash])?;
        Ok(self.insert_hash(hash))
    }

    /// The items that the filter has not seen yet; it remembers every one.
    ///
    /// ```
    /// use everbloom::{Bloom, FilterExt};
    ///
    /// let mut filter = Bloom::with_rate(1000, 0.001)?;
    /// let words = ["to", "be", "or", "not", "to", "be"];
    /// assert_eq!(filter.unseen(words).collect::<Vec<_>>(), ["to", "be", "or", "not"]);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    fn unseen<I: IntoIterator<Item: Key>>(&mut self, items: I) -> Unseen<'_, I::IntoIter, Self> {
        Unseen { items: items.into_iter(), filter: self }
    }

    /// Remembers keys as they come, some at a time, so that cells can be asked for ahead.
    fn insert_all<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) {
        let hashing = *self.hashing();
        let mut hashes = Vec::with_capacity(KEYS_AT_A_TIME);
        for key in keys {
            hashes.push(key.hash_with(&hashing));
            if hashes.len() == KEYS_AT_A_TIME {
                self.insert_hashes(&hashes);
                hashes.clear();
            }
        }
        self.insert_hashes(&hashes);
    }

    /// What it is, promises and looks like now. Passes over the cells, so it takes a while in large filters.
    fn info(&self) -> Info {
        Info::of(self)
    }

    /// [`FilterExt::contains`] for many keys.
    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.contains_keys(keys, found);
    }

    /// [`FilterExt::insert`] for many keys.
    fn insert_batch<K: Key>(&mut self, keys: &[K]) {
        self.insert_keys(keys);
    }

    /// [`FilterExt::observe`] for many keys. An error, and nothing observed, if there are fewer importances than keys.
    fn observe_batch<K: Key>(
        &mut self,
        keys: &[K],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        self.observe_keys(keys, importances, verdicts)
    }

    /// [`FilterExt::contains_batch`] for keys wherever they lie.
    fn contains_keys<K: Keys + ?Sized>(&self, keys: &K, found: &mut [bool]) {
        hashed_ahead(self, keys, found.len(), |filter, start, hashes| {
            filter.contains_hashes(hashes, &mut found[start..start + hashes.len()])
        });
    }

    /// [`FilterExt::insert_batch`] for keys wherever they lie.
    fn insert_keys<K: Keys + ?Sized>(&mut self, keys: &K) {
        hashed_ahead(self, keys, keys.len(), |filter, _, hashes| filter.insert_hashes(hashes));
    }

    /// [`FilterExt::observe_batch`] for keys wherever they lie.
    fn observe_keys<K: Keys + ?Sized>(
        &mut self,
        keys: &K,
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        importances.check(keys.len())?;
        hashed_ahead(self, keys, verdicts.len(), |filter, start, hashes| {
            let verdicts = &mut verdicts[start..start + hashes.len()];
            filter.observe_checked(hashes, importances.skip(start), verdicts);
        });
        Ok(())
    }
}

impl<F: Filter + ?Sized> FilterExt for F {}

/// How many keys are hashed between two requests for their cells: short enough for both to overlap.
const KEYS_BETWEEN_REQUESTS: usize = 16;

/// Hashes the keys, no more than `most`, part by part and hands each part to `act` with its start. While one part is
/// worked on, the cells of the next one are on their way, and so is the hashing that waits for nothing.
#[inline]
fn hashed_ahead<F: Deref<Target: Filter>, K: Keys + ?Sized>(
    mut filter: F,
    keys: &K,
    most: usize,
    mut act: impl FnMut(&mut F, usize, &[KeyHash]),
) {
    let hashing = *filter.hashing();
    let ahead = filter.prefetch_distance().min(KEYS_AT_A_TIME / 2);
    let mut hashes = [KeyHash::default(); KEYS_AT_A_TIME];
    let total = keys.len().min(most);
    if ahead == 0 {
        for start in (0..total).step_by(KEYS_AT_A_TIME) {
            let hashes = &mut hashes[..KEYS_AT_A_TIME.min(total - start)];
            keys.hash(start, &hashing, hashes);
            act(&mut filter, start, hashes);
        }
        return;
    }
    let (mut now, mut next) = hashes.split_at_mut(KEYS_AT_A_TIME / 2);
    let mut count = ahead.min(total);
    hash_and_ask(&*filter, &hashing, keys, 0, &mut now[..count]);
    for start in (0..total).step_by(ahead) {
        let following = ahead.min(total - start - count);
        hash_and_ask(&*filter, &hashing, keys, start + count, &mut next[..following]);
        act(&mut filter, start, &now[..count]);
        std::mem::swap(&mut now, &mut next);
        count = following;
    }
}

/// Hashes as many keys from `start` on as there is room for, and asks for their cells.
#[inline(always)]
fn hash_and_ask<F: Filter + ?Sized, K: Keys + ?Sized>(
    filter: &F,
    hashing: &Hashing,
    keys: &K,
    mut start: usize,
    hashes: &mut [KeyHash],
) {
    let (groups, rest) = hashes.as_chunks_mut::<KEYS_BETWEEN_REQUESTS>();
    for group in groups {
        keys.hash(start, hashing, group);
        filter.prefetch_hashes(group);
        start += KEYS_BETWEEN_REQUESTS;
    }
    keys.hash(start, hashing, rest);
    filter.prefetch_hashes(rest);
}

/// The iterator behind [`FilterExt::unseen`].
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
