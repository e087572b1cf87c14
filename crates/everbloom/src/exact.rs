//! A set of 64-bit key hashes that grows: for when no error is wanted and memory may be spent.
//!
//! **Answers** "was this key here?" without forgetting and, but for two keys that share a 64-bit
//! hash, without error: among n keys that happens with probability about n²/2^65, one in 370 billion
//! for ten thousand keys, 0.0003 % for ten million ([`ExactSet::collision_probability`]). It takes 9 to 14 bytes
//! a distinct key and grows as long as keys come, so it is not a filter of the registry.
//!
//! # How it works
//!
//! The first bits of a hash choose one of 64 parts, the rest a cache line of eight slots in it; a full
//! line spills into the next one.
//!
//! ```text
//! hash  pppppp llllll…      part p  ┌ page ─────────┬ page ─────────┬ …
//!                                   │ line │ line │ │
//!                                     └ h h h h h 0 0 0   slots fill from the left, 0 is empty
//! ```
//!
//! **It grows in parts.** A table that doubles as a whole needs old and new side by side, three times
//! its contents at the worst moment. Here one part grows at a time, by half, and by adding pages of one size:
//! its hashes are lifted into a scratch buffer, a sixty-fourth of the set, and put back. Nothing is
//! ever freed, so nothing is fragmented either.

use crate::cells::simd;
use crate::error::{Error, Result};
use crate::hash::{KeyHash, scale};
use crate::traits::Verdict;

const PART_BITS: u32 = 6;
const PAGE_LINES: u64 = 1 << 8;
/// Slabs grow with the set up to this many pages, 32 MiB.
const MAX_SLAB_PAGES: u64 = 1 << 11;
const PAGE_WORDS: u64 = PAGE_LINES * SLOTS;
/// 64-bit words of a huge page. Slabs start on one, so that all of them can lie on such pages.
const HUGE_WORDS: u64 = 1 << 18;
const SLOTS: u64 = 8;
const EMPTY: u64 = 0;

/// The set.
///
/// ```
/// use everbloom::{Hashing, Key, exact::ExactSet};
///
/// let hashing = Hashing::default();
/// let mut seen = ExactSet::new()?;
/// assert!(seen.insert_hash("alice".hash_with(&hashing))?);
/// assert!(!seen.insert_hash("alice".hash_with(&hashing))?);
/// assert!(seen.insert_hash("bob".hash_with(&hashing))?);
/// assert_eq!(seen.len(), 2);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug)]
pub struct ExactSet {
    parts: Vec<Part>,
    slabs: Slabs,
    scratch: Vec<u64>,
}

impl ExactSet {
    /// An empty set.
    pub fn new() -> Result<Self> {
        let mut slabs = Slabs::default();
        let parts = (0..1 << PART_BITS).map(|_| Part::new(&mut slabs)).collect::<Result<_>>()?;
        Ok(ExactSet { parts, slabs, scratch: Vec::new() })
    }

    /// How many hashes are inside.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Whether nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All the memory it takes now.
    pub fn memory_bits(&self) -> u64 {
        let pages = 64 * PAGE_WORDS * self.slabs.used;
        let places: usize = self.parts.iter().map(|part| part.pages.capacity() * size_of::<Page>()).sum();
        pages + 64 * self.scratch.capacity() as u64 + 8 * places as u64
    }

    /// The probability that any two of the keys inside share their 64 bits, in which case one of
    /// them was taken for the other: 1 − exp(−n(n − 1)/2^65).
    pub fn collision_probability(&self) -> f64 {
        let items = self.len() as f64;
        -libm::expm1(-items * (items - 1.0).max(0.0) / libm::ldexp(1.0, 65))
    }

    /// Remembers a key; true if it is new.
    pub fn insert_hash(&mut self, hash: KeyHash) -> Result<bool> {
        self.insert_bits(hash.high)
    }

    /// Remembers a batch of keys, and says of each whether it was there; `verdicts` is as long as `hashes`.
    pub fn observe_hashes(&mut self, hashes: &[KeyHash], verdicts: &mut [Verdict]) -> Result<()> {
        simd::run(Observing { set: self, hashes, verdicts })
    }

    /// Every hash inside, for saving.
    pub fn bits(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().flat_map(|part| part.bits(&self.slabs))
    }

    /// Puts one saved hash back; true if it was not there.
    #[inline(always)]
    pub fn insert_bits(&mut self, bits: u64) -> Result<bool> {
        // Zero marks an empty slot, so the one hash that is zero borrows its neighbour.
        let bits = bits.max(1);
        let part = &mut self.parts[part_of(bits)];
        if part.len >= part.limit {
            part.grow(&mut self.slabs, &mut self.scratch)?;
        }
        Ok(part.insert(&mut self.slabs, bits))
    }

    #[inline(always)]
    fn prefetch(&self, bits: u64) {
        let part = &self.parts[part_of(bits)];
        let (slab, word) = part.place(part.line_of(bits));
        simd::prefetch(&self.slabs.slabs[slab], word);
    }
}

/// A batch at work, compiled for the instructions that this machine has.
struct Observing<'s, 'b> {
    set: &'s mut ExactSet,
    hashes: &'b [KeyHash],
    verdicts: &'b mut [Verdict],
}

impl simd::Work for Observing<'_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self, _: impl simd::Machine) -> Result<()> {
        let Observing { set, hashes, verdicts } = self;
        let distance = simd::PREFETCH_DISTANCE.min(hashes.len());
        for hash in &hashes[..distance] {
            set.prefetch(hash.high);
        }
        for (index, (hash, verdict)) in hashes.iter().zip(verdicts).enumerate() {
            if let Some(ahead) = hashes.get(index + distance) {
                set.prefetch(ahead.high);
            }
            *verdict = Verdict::from_seen(!set.insert_bits(hash.high)?);
        }
        Ok(())
    }
}

#[inline]
fn part_of(bits: u64) -> usize {
    (bits >> (64 - PART_BITS)) as usize
}

/// Where a page is.
#[derive(Debug, Clone, Copy)]
struct Page {
    slab: u32,
    first_word: u32,
}

/// The allocations that pages are cut from.
#[derive(Debug, Default)]
struct Slabs {
    slabs: Vec<Vec<u64>>,
    /// Pages handed out, and pages there are.
    used: u64,
    pages: u64,
    last_start: u64,
    /// The word at which the last slab's first page starts.
    last_word: u64,
}

impl Slabs {
    fn page(&mut self) -> Result<Page> {
        if self.used == self.pages {
            self.add_slab()?;
        }
        let first_word = self.last_word + (self.used - self.last_start) * PAGE_WORDS;
        self.used += 1;
        Ok(Page { slab: self.slabs.len() as u32 - 1, first_word: first_word as u32 })
    }

    /// Pages of a slab that are not used yet take no memory, and neither does what lies before its
    /// first huge page; so the next slab can be as large as all before.
    fn add_slab(&mut self) -> Result<()> {
        let more = self.pages.clamp(256, MAX_SLAB_PAGES);
        let words = more * PAGE_WORDS + HUGE_WORDS;
        // Words rather than lines: only what has no alignment of its own comes zeroed from the system
        // without being touched.
        let mut slab: Vec<u64> = bytemuck::allocation::try_zeroed_vec(words as usize)
            .map_err(|()| Error::OutOfMemory { bytes: 8 * words })?;
        simd::advise_huge_pages(&mut slab);
        let start = slab.as_ptr() as u64 / 8;
        self.last_word = start.next_multiple_of(HUGE_WORDS) - start;
        self.last_start = self.pages;
        self.pages += more;
        self.slabs.push(slab);
        Ok(())
    }

    fn words(&self, page: Page) -> &[u64] {
        &self.slabs[page.slab as usize][page.first_word as usize..][..PAGE_WORDS as usize]
    }

    fn words_mut(&mut self, page: Page) -> &mut [u64] {
        &mut self.slabs[page.slab as usize][page.first_word as usize..][..PAGE_WORDS as usize]
    }

    /// The eight slots that start at a word of a slab; a page always has all of them.
    #[inline(always)]
    fn line_mut(&mut self, (slab, word): (usize, usize)) -> &mut [u64; SLOTS as usize] {
        let (lines, _) = self.slabs[slab][word..].as_chunks_mut();
        &mut lines[0]
    }
}

/// The hashes that share their first bits.
#[derive(Debug)]
struct Part {
    pages: Vec<Page>,
    len: u64,
    /// How many hashes it takes before it grows.
    limit: u64,
}

impl Part {
    fn new(slabs: &mut Slabs) -> Result<Self> {
        Ok(Part { pages: vec![slabs.page()?], len: 0, limit: limit(1) })
    }

    #[inline(always)]
    fn lines(&self) -> u64 {
        self.pages.len() as u64 * PAGE_LINES
    }

    #[inline(always)]
    fn line_of(&self, bits: u64) -> u64 {
        scale(bits << PART_BITS, self.lines())
    }

    /// The slab of a line, and the word there at which it starts.
    #[inline(always)]
    fn place(&self, line: u64) -> (usize, usize) {
        let page = self.pages[(line / PAGE_LINES) as usize];
        (page.slab as usize, page.first_word as usize + (line % PAGE_LINES * SLOTS) as usize)
    }

    /// Puts a hash in; false if it is there. There is always an empty slot, since parts grow before
    /// they are full.
    #[inline(always)]
    fn insert(&mut self, slabs: &mut Slabs, bits: u64) -> bool {
        let mut at = self.line_of(bits);
        loop {
            let slots = slabs.line_mut(self.place(at));
            // All eight are looked at, without a branch that depends on where a hash is.
            let same = slots.map(|slot| u64::from(slot == bits));
            if same.iter().fold(0, |any, same| any | same) != 0 {
                return false;
            }
            let used = slots.map(|slot| u64::from(slot != EMPTY)).iter().sum::<u64>();
            if let Some(slot) = slots.get_mut(used as usize) {
                *slot = bits;
                self.len += 1;
                return true;
            }
            at = if at + 1 == self.lines() { 0 } else { at + 1 };
        }
    }

    /// Puts a hash in that is known not to be there.
    #[inline]
    fn put_back(&mut self, slabs: &mut Slabs, bits: u64) {
        let mut at = self.line_of(bits);
        loop {
            if let Some(slot) = slabs.line_mut(self.place(at)).iter_mut().find(|slot| **slot == EMPTY) {
                *slot = bits;
                self.len += 1;
                return;
            }
            at = if at + 1 == self.lines() { 0 } else { at + 1 };
        }
    }

    /// Makes the part half as large again, in whole pages.
    #[cold]
    fn grow(&mut self, slabs: &mut Slabs, scratch: &mut Vec<u64>) -> Result<()> {
        let more = self.pages.len().div_ceil(2);
        let pages = (0..more).map(|_| slabs.page()).collect::<Result<Vec<_>>>()?;
        scratch.clear();
        scratch.extend(self.bits(slabs));
        for page in &self.pages {
            slabs.words_mut(*page).fill(EMPTY);
        }
        self.pages.extend(pages);
        (self.len, self.limit) = (0, limit(self.pages.len()));
        scratch.iter().for_each(|bits| self.put_back(slabs, *bits));
        Ok(())
    }

    fn bits(&self, slabs: &Slabs) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|page| slabs.words(*page)).copied().filter(|bits| *bits != EMPTY)
    }
}

/// Seven slots of eight: lines then rarely spill.
fn limit(pages: usize) -> u64 {
    pages as u64 * PAGE_LINES * (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Hashing, Key};
    use std::collections::HashSet;

    #[test]
    fn agrees_with_a_hash_set_while_it_grows() {
        let (mut ours, mut theirs) = (ExactSet::new().expect("a set"), HashSet::new());
        let keys: Vec<u64> = (0..600_000u64).map(|key| key * key % 400_009).collect();
        for batch in keys.chunks(1000) {
            let hashes: Vec<KeyHash> = batch.iter().map(|key| key.hash_with(&Hashing::default())).collect();
            let mut verdicts = vec![Verdict::Distinct; batch.len()];
            ours.observe_hashes(&hashes, &mut verdicts).expect("memory");
            for (key, verdict) in batch.iter().zip(verdicts) {
                assert_eq!(verdict.is_distinct(), theirs.insert(*key), "{key}");
            }
        }
        assert_eq!(ours.len(), theirs.len() as u64);
        assert_eq!(ours.bits().collect::<HashSet<_>>().len(), theirs.len());
    }

    #[test]
    fn hashes_that_crowd_one_line_all_fit() {
        let mut set = ExactSet::new().expect("a set");
        for low in 0..5000u64 {
            assert!(set.insert_bits(u64::MAX - low).expect("memory"));
        }
        assert!((0..5000u64).all(|low| !set.insert_bits(u64::MAX - low).expect("memory")));
    }

    #[test]
    fn memory_stays_within_fifteen_bytes_a_key_beyond_the_first_pages() {
        let mut set = ExactSet::new().expect("a set");
        for key in 0..3_000_000u64 {
            set.insert_hash(key.hash_with(&Hashing::default())).expect("memory");
            if key > 500_000 && key % 10_007 == 0 {
                let bytes_per_key = set.memory_bits() as f64 / 8.0 / set.len() as f64;
                assert!(bytes_per_key < 15.0, "{bytes_per_key} at {key}");
            }
        }
    }

    #[test]
    fn collisions_are_as_likely_as_birthdays() {
        let mut set = ExactSet::new().expect("a set");
        assert_eq!(set.collision_probability(), 0.0);
        for key in 0..10_000u64 {
            set.insert_hash(key.hash_with(&Hashing::default())).expect("memory");
        }
        let expected = 9_999.0 * 10_000.0 / 2.0 / 2f64.powi(64);
        assert!((set.collision_probability() / expected - 1.0).abs() < 1e-9);
    }
}
