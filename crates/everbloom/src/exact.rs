//! A set of 64-bit key hashes that grows: for when no error is wanted and memory may be spent.
//!
//! **Answers** "was this key here?" without forgetting and, but for two keys that share a 64-bit
//! hash, without error: among n keys that happens with probability about n²/2^65, one in 370 billion
//! for ten thousand keys, 0.0003 % for ten million ([`ExactSet::collision_probability`]). It takes 9 to 13 bytes
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
//! its contents at the worst moment. Here one part grows at a time, by a quarter, and by adding pages of one size:
//! its hashes are lifted into a scratch buffer, a sixty-fourth of the set, and put back. Nothing is
//! ever freed, so nothing is fragmented either.

use crate::cells::buffer::{Buffer, Line};
use crate::cells::simd;
use crate::error::Result;
use crate::hash::{KeyHash, scale};
use crate::traits::Verdict;

const PART_BITS: u32 = 6;
const PAGE_LINES: u64 = 1 << 8;
const FIRST_LINES: u64 = 16;
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
    scratch: Vec<u64>,
}

impl ExactSet {
    /// An empty set.
    pub fn new() -> Result<Self> {
        let parts = (0..1 << PART_BITS).map(|_| Part::new()).collect::<Result<_>>()?;
        Ok(ExactSet { parts, scratch: Vec::new() })
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
        let pages: u64 = self.parts.iter().flat_map(|part| &part.pages).map(Buffer::allocated_bits).sum();
        pages + 64 * self.scratch.capacity() as u64
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
        let distance = simd::PREFETCH_DISTANCE.min(hashes.len());
        for hash in &hashes[..distance] {
            self.prefetch(hash.high);
        }
        for (index, (hash, verdict)) in hashes.iter().zip(verdicts).enumerate() {
            if let Some(ahead) = hashes.get(index + distance) {
                self.prefetch(ahead.high);
            }
            *verdict = Verdict::from_seen(!self.insert_bits(hash.high)?);
        }
        Ok(())
    }

    /// Every hash inside, for saving.
    pub fn bits(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().flat_map(Part::bits)
    }

    /// Puts one saved hash back; true if it was not there.
    #[inline]
    pub fn insert_bits(&mut self, bits: u64) -> Result<bool> {
        // Zero marks an empty slot, so the one hash that is zero borrows its neighbour.
        let bits = bits.max(1);
        let part = &mut self.parts[(bits >> (64 - PART_BITS)) as usize];
        if part.is_full() {
            part.grow(&mut self.scratch)?;
        }
        Ok(part.insert(bits))
    }

    #[inline]
    fn prefetch(&self, bits: u64) {
        let part = &self.parts[(bits >> (64 - PART_BITS)) as usize];
        let line = part.line_of(bits);
        simd::prefetch(part.pages[(line / PAGE_LINES) as usize].lines(), (line % PAGE_LINES) as usize);
    }
}

/// The hashes that share their first bits.
#[derive(Debug)]
struct Part {
    /// One page below [`PAGE_LINES`] lines, or any number of whole ones.
    pages: Vec<Buffer>,
    lines: u64,
    len: u64,
    /// How many hashes it takes before it grows.
    limit: u64,
}

impl Part {
    fn new() -> Result<Self> {
        Ok(Part {
            pages: vec![Buffer::with_lines(FIRST_LINES)?],
            lines: FIRST_LINES,
            len: 0,
            limit: limit(FIRST_LINES),
        })
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.len >= self.limit
    }

    #[inline]
    fn line_of(&self, bits: u64) -> u64 {
        scale(bits << PART_BITS, self.lines)
    }

    #[inline]
    fn line_mut(&mut self, line: u64) -> &mut Line {
        &mut self.pages[(line / PAGE_LINES) as usize].lines_mut()[(line % PAGE_LINES) as usize]
    }

    /// Puts a hash in; false if it is there. There is always an empty slot, since parts grow before
    /// they are full.
    #[inline]
    fn insert(&mut self, bits: u64) -> bool {
        let mut at = self.line_of(bits);
        loop {
            for slot in &mut self.line_mut(at).0 {
                if *slot == bits {
                    return false;
                }
                if *slot == EMPTY {
                    *slot = bits;
                    self.len += 1;
                    return true;
                }
            }
            at = if at + 1 == self.lines { 0 } else { at + 1 };
        }
    }

    /// Makes the part a quarter larger, or twice as large while it is below a page.
    #[cold]
    fn grow(&mut self, scratch: &mut Vec<u64>) -> Result<()> {
        let lines = if self.lines < PAGE_LINES { self.lines * 2 } else { self.lines + page_step(self.lines) };
        let mut pages = Vec::new();
        let missing = if lines <= PAGE_LINES { lines } else { lines - self.lines };
        for start in (0..missing).step_by(PAGE_LINES as usize) {
            pages.push(Buffer::with_lines(PAGE_LINES.min(missing - start))?);
        }
        scratch.clear();
        scratch.extend(self.bits());
        if lines <= PAGE_LINES {
            self.pages.clear();
        }
        self.pages.iter_mut().for_each(Buffer::clear);
        self.pages.append(&mut pages);
        (self.lines, self.limit, self.len) = (lines, limit(lines), 0);
        for bits in scratch.iter() {
            self.insert(*bits);
        }
        Ok(())
    }

    fn bits(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|page| page.words()).copied().filter(|bits| *bits != EMPTY)
    }
}

/// Seven slots of eight, rounded down: lines then rarely spill.
fn limit(lines: u64) -> u64 {
    lines * (SLOTS - 1)
}

/// A quarter of the lines, in whole pages, rounded up so that a part always grows.
fn page_step(lines: u64) -> u64 {
    (lines / 4).next_multiple_of(PAGE_LINES)
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
    fn memory_stays_within_thirteen_bytes_a_key_beyond_the_first_pages() {
        let mut set = ExactSet::new().expect("a set");
        for key in 0..3_000_000u64 {
            set.insert_hash(key.hash_with(&Hashing::default())).expect("memory");
            if key > 500_000 && key % 10_007 == 0 {
                let bytes_per_key = set.memory_bits() as f64 / 8.0 / set.len() as f64;
                assert!(bytes_per_key < 13.0, "{bytes_per_key} at {key}");
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
