//! A set of 64-bit key hashes that grows: for when no error is wanted and memory may be spent.
//!
//! **Answers** "was this key here?" without forgetting and, but for two keys that share a 64-bit
//! hash, without error: among n keys that happens with probability about n²/2^65, one in 370 billion
//! for ten thousand keys, 0.0003 % for ten million ([`ExactSet::collision_probability`]). It takes 12 to 16 bytes
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
//! its contents at the worst moment. Here one part grows at a time, by a third, and by adding pages of one size.
//! Hashes lie in their own order, so in a longer part every one moves towards the end or stays: lines are
//! emptied from the last to the first, and what they held goes to lines that are done. Nothing is ever freed,
//! so nothing is fragmented either.
//!
//! **Lines are left with room.** A key that meets a full line waits for a second one. With 7 hashes of 8 in a line
//! before parts grow, ten million distinct keys met 0.82 full lines each; with 5.5 they meet 0.18.

use crate::key::{KeyHash, scale};
use crate::promise::{Error, Result, Verdict};
use crate::simd;

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
/// use everbloom::{Hashing, Key};
/// use everbloom::exact::ExactSet;
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
    move_out: MoveOut,
}

/// What a part needs while it grows.
#[derive(Debug, Default)]
struct MoveOut {
    /// How many slots of each line are taken.
    used: Vec<u8>,
    /// Hashes that had spilled, or would have to spill past the end.
    astray: Vec<u64>,
}

impl ExactSet {
    /// An empty set.
    pub fn new() -> Result<Self> {
        let mut slabs = Slabs::default();
        let parts = (0..1 << PART_BITS).map(|_| Part::new(&mut slabs)).collect::<Result<_>>()?;
        Ok(ExactSet { parts, slabs, move_out: MoveOut::default() })
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
        let places: usize = self.parts.iter().map(|part| part.pages.capacity() * size_of::<Place>()).sum();
        let MoveOut { used, astray } = &self.move_out;
        pages + 64 * astray.capacity() as u64 + 8 * (used.capacity() + places) as u64
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
    pub fn insert_bits(&mut self, bits: u64) -> Result<bool> {
        let bits = stored(bits);
        self.make_room(bits)?;
        let place = self.place_of(bits);
        Ok(self.insert_at(simd::Plain, place, bits))
    }

    /// Grows the part that a hash belongs to, if it is as full as may be; true if it has.
    #[inline(always)]
    fn make_room(&mut self, bits: u64) -> Result<bool> {
        let part = &mut self.parts[part_of(bits)];
        let is_full = part.len >= part.limit;
        if is_full {
            part.grow(&mut self.slabs, &mut self.move_out)?;
        }
        Ok(is_full)
    }

    /// Puts a hash into its part, which has room, by way of its first line; false if it is there.
    #[inline(always)]
    fn insert_at(&mut self, ops: impl simd::SimdOps, place: Place, bits: u64) -> bool {
        let part = &mut self.parts[part_of(bits)];
        match put(ops, self.slabs.line_mut(place), bits) {
            Some(is_new) => {
                part.len += u64::from(is_new);
                is_new
            }
            None => part.insert(&mut self.slabs, bits),
        }
    }

    /// Where a hash is looked for first.
    #[inline(always)]
    fn place_of(&self, bits: u64) -> Place {
        let part = &self.parts[part_of(bits)];
        part.place(part.line_of(bits))
    }

    #[inline(always)]
    fn prefetch(&self, place: Place) {
        simd::prefetch(&self.slabs.slabs[place.slab as usize], place.word as usize);
    }
}

/// A batch at work, compiled for the instructions that this machine has.
struct Observing<'s, 'b> {
    set: &'s mut ExactSet,
    hashes: &'b [KeyHash],
    verdicts: &'b mut [Verdict],
}

impl simd::Kernel for Observing<'_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) -> Result<()> {
        let Observing { set, hashes, verdicts } = self;
        // The places of the keys to come, found when they are asked for. They hold until a part grows.
        let mut places = [Place::default(); simd::PREFETCH_DISTANCE];
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = set.place_of(stored(hash.high));
            set.prefetch(*place);
        }
        for (index, (hash, verdict)) in hashes.iter().zip(verdicts).enumerate() {
            let bits = stored(hash.high);
            if set.make_room(bits)? {
                for (ahead, hash) in hashes[index..].iter().enumerate().take(places.len()) {
                    places[(index + ahead) % places.len()] = set.place_of(stored(hash.high));
                }
            }
            let place = &mut places[index % simd::PREFETCH_DISTANCE];
            let here = *place;
            if let Some(ahead) = hashes.get(index + simd::PREFETCH_DISTANCE) {
                *place = set.place_of(stored(ahead.high));
                set.prefetch(*place);
            }
            *verdict = Verdict::from_seen(!set.insert_at(ops, here, bits));
        }
        Ok(())
    }
}

/// The form in which a hash is kept: zero marks an empty slot, so the one hash that is zero borrows its neighbour.
#[inline]
fn stored(bits: u64) -> u64 {
    bits.max(1)
}

#[inline]
fn part_of(bits: u64) -> usize {
    (bits >> (64 - PART_BITS)) as usize
}

/// Where a page or a line starts: a word of a slab.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    slab: u32,
    word: u32,
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
    fn page(&mut self) -> Result<Place> {
        if self.used == self.pages {
            self.add_slab()?;
        }
        let first_word = self.last_word + (self.used - self.last_start) * PAGE_WORDS;
        self.used += 1;
        Ok(Place { slab: self.slabs.len() as u32 - 1, word: first_word as u32 })
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

    fn words(&self, page: Place) -> &[u64] {
        &self.slabs[page.slab as usize][page.word as usize..][..PAGE_WORDS as usize]
    }

    /// The eight slots that start at a word of a slab; a page always has all of them.
    #[inline(always)]
    fn line_mut(&mut self, Place { slab, word }: Place) -> &mut [u64; SLOTS as usize] {
        let (lines, _) = self.slabs[slab as usize][word as usize..].as_chunks_mut();
        &mut lines[0]
    }
}

/// The hashes that share their first bits.
#[derive(Debug)]
struct Part {
    pages: Vec<Place>,
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

    #[inline(always)]
    fn place(&self, line: u64) -> Place {
        let page = self.pages[(line / PAGE_LINES) as usize];
        Place { slab: page.slab, word: page.word + (line % PAGE_LINES * SLOTS) as u32 }
    }

    /// Puts a hash into the first line from its own on that has it or room; false if it is there. There is
    /// always an empty slot, since parts grow before they are full.
    fn insert(&mut self, slabs: &mut Slabs, bits: u64) -> bool {
        let mut at = self.line_of(bits);
        loop {
            if let Some(is_new) = put(simd::Plain, slabs.line_mut(self.place(at)), bits) {
                self.len += u64::from(is_new);
                return is_new;
            }
            at = if at + 1 == self.lines() { 0 } else { at + 1 };
        }
    }

    /// Makes the part larger by a third, in whole pages.
    #[cold]
    fn grow(&mut self, slabs: &mut Slabs, move_out: &mut MoveOut) -> Result<()> {
        let old_lines = self.lines();
        let more = self.pages.len().div_ceil(3);
        let pages = (0..more).map(|_| slabs.page()).collect::<Result<Vec<_>>>()?;
        self.pages.extend(pages);
        self.limit = limit(self.pages.len());
        move_out.used.clear();
        move_out.used.resize(self.lines() as usize, 0);
        move_out.astray.clear();
        for line in (0..old_lines).rev() {
            let slots = std::mem::take(slabs.line_mut(self.place(line)));
            slots.iter().take_while(|bits| **bits != EMPTY).for_each(|bits| self.move_up(slabs, move_out, line, *bits));
        }
        self.len -= move_out.astray.len() as u64;
        for bits in &move_out.astray {
            self.insert(slabs, *bits);
        }
        Ok(())
    }

    /// Puts a hash where it belongs in the grown part, if it can stay there: at or beyond `line`, the first that
    /// has been emptied. A line counted is faster than a line searched, most of all one just written.
    #[inline]
    fn move_up(&self, slabs: &mut Slabs, move_out: &mut MoveOut, line: u64, bits: u64) {
        let home = self.line_of(bits);
        if home >= line {
            for at in home..self.lines() {
                let used = &mut move_out.used[at as usize];
                if let Some(slot) = slabs.line_mut(self.place(at)).get_mut(*used as usize) {
                    *slot = bits;
                    *used += 1;
                    return;
                }
            }
        }
        move_out.astray.push(bits);
    }

    fn bits(&self, slabs: &Slabs) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|page| slabs.words(*page)).copied().filter(|bits| *bits != EMPTY)
    }
}

/// Puts a hash into a line, and says whether it is new there; nothing if it is neither there nor has room.
#[inline(always)]
fn put(ops: impl simd::SimdOps, slots: &mut [u64; SLOTS as usize], bits: u64) -> Option<bool> {
    let (same, empty) = (ops.equal(slots, bits), ops.equal(slots, EMPTY));
    // A hash that is there is written once more: cheaper than a branch that cannot be predicted.
    let slot = (same | empty).trailing_zeros() % SLOTS as u32;
    (same | empty != 0).then(|| {
        slots[slot as usize] = bits;
        same == 0
    })
}

/// Eleven slots of sixteen: lines then rarely spill.
fn limit(pages: usize) -> u64 {
    pages as u64 * PAGE_LINES * SLOTS * 11 / 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Hashing, Key, finalise};
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
    fn hashes_in_full_lines_are_found_again_however_often_the_part_grows() {
        let mut set = ExactSet::new().expect("a set");
        // One part, and in it runs of neighbours, 30 to a line: nearly all of them spill.
        let bits = |key: u64| (finalise(key / 30) >> PART_BITS & !31) + key % 30 + 1;
        for key in 0..60_000 {
            assert!(set.insert_bits(bits(key)).expect("memory"), "{key}");
            if key % 1000 == 0 {
                assert!((0..=key).all(|key| !set.insert_bits(bits(key)).expect("memory")), "at {key}");
            }
        }
        assert_eq!(set.len(), 60_000);
    }

    #[test]
    fn memory_stays_within_sixteen_bytes_a_key_beyond_the_first_pages() {
        let mut set = ExactSet::new().expect("a set");
        for key in 0..3_000_000u64 {
            set.insert_hash(key.hash_with(&Hashing::default())).expect("memory");
            if key > 500_000 && key % 10_007 == 0 {
                let bytes_per_key = set.memory_bits() as f64 / 8.0 / set.len() as f64;
                assert!(bytes_per_key < 16.0, "{bytes_per_key} at {key}");
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
