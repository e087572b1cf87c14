//! A table of 64-bit hashes that grows.
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
//! so nothing is fragmented either. Only the first few thousand hashes, for which 64 parts would be waste, are in one
//! run of lines that doubles.
//!
//! **Lines are left with room.** A key that meets a full line waits for a second one. With 7 hashes of 8 in a line
//! before parts grow, ten million distinct keys met 0.82 full lines each; with 5.5 they meet 0.18.
//!
//! **Memory may be refused.** [`HashTable::make_room`] asks for it ahead and says so. A hash that comes without that is
//! still put into whatever room is left; once there is none it is not kept, and [`HashTable::refused`] counts it.

mod first;
mod load;
mod slabs;

use crate::key::{KeyHash, scale};
use crate::promise::{Error, Result, Verdict};
use crate::simd;
use first::First;
use load::Loading;
pub(in crate::cells) use load::uneven;
use slabs::{Place, Slabs};

const PART_BITS: u32 = 6;
const PAGE_LINES: u64 = 1 << 8;
/// Slabs grow with the set up to this many pages, 32 MiB.
const MAX_SLAB_PAGES: u64 = 1 << 11;
const PAGE_WORDS: u64 = PAGE_LINES * SLOTS;
/// 64-bit words of a huge page. Large slabs start on one, so that all of them can lie on such pages.
const HUGE_WORDS: u64 = 1 << 18;
pub(in crate::cells) const SLOTS: u64 = 8;
pub(in crate::cells) const EMPTY: u64 = 0;

/// The table.
///
/// ```
/// use everbloom::internal::cells::table::HashTable;
/// use everbloom::internal::key::{Hashing, Key};
///
/// let hashing = Hashing::default();
/// let mut seen = HashTable::new()?;
/// assert!(seen.insert("alice".hash_with(&hashing).high));
/// assert!(!seen.insert("alice".hash_with(&hashing).high));
/// assert!(seen.contains("alice".hash_with(&hashing).high) && seen.len() == 1);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct HashTable {
    first: First,
    /// None until the first run of lines is outgrown.
    parts: Vec<Part>,
    slabs: Slabs,
    move_out: MoveOut,
    refused: u64,
}

/// What a part needs while it grows.
#[derive(Debug, Clone, Default)]
struct MoveOut {
    /// How many slots of each line are taken.
    used: Vec<u8>,
    /// Hashes that had spilled, or would have to spill past the end.
    astray: Vec<u64>,
}

impl std::fmt::Debug for HashTable {
    /// How much there is, not all that it holds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HashTable({} of {} slots)", self.len(), self.slots())
    }
}

impl HashTable {
    /// An empty table of one line.
    pub fn new() -> Result<Self> {
        let mut table = Self::default();
        table.first.double()?;
        Ok(table)
    }

    /// The table of at most `count` hashes that come in ascending order. They are as evenly spread as hashes are, or refused:
    /// what crowds a few lines is no set of hashes, and would make every search a long one.
    pub fn from_sorted(hashes: impl Iterator<Item = Result<u64>>, count: u64) -> Result<Self> {
        let mut table = Self::new()?;
        if count <= FIRST_WORDS * 11 / 16 {
            while table.first.limit() < count {
                table.first.double()?;
            }
            for bits in hashes {
                table.first.load(stored(bits?))?;
            }
            return Ok(table);
        }
        table.first = First::default();
        let each = count as f64 / f64::from(1u32 << PART_BITS);
        let pages = (each + UNEVEN * each.sqrt()) as u64 / limit(1) + 1;
        reserve(&mut table.parts, 1 << PART_BITS)?;
        for _ in 0..1 << PART_BITS {
            table.parts.push(Part::with_pages(&mut table.slabs, pages)?);
        }
        let mut loading = Loading::default();
        for bits in hashes {
            loading.put(&mut table, stored(bits?))?;
        }
        Ok(table)
    }

    /// How many hashes are inside.
    pub fn len(&self) -> u64 {
        self.first.len + self.parts.iter().map(|part| part.len).sum::<u64>()
    }

    /// Whether nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots for hashes, taken and empty.
    pub fn slots(&self) -> u64 {
        self.first.words.len() as u64 + self.parts.iter().map(|part| part.lines() * SLOTS).sum::<u64>()
    }

    /// Hashes that were not kept, because memory to grow was refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// All the memory it takes now.
    pub fn memory_bits(&self) -> u64 {
        let words = self.first.words.capacity() as u64 + PAGE_WORDS * self.slabs.used;
        let places: usize = self.parts.iter().map(|part| part.pages.capacity() * size_of::<Place>()).sum();
        let MoveOut { used, astray } = &self.move_out;
        let parts = self.parts.capacity() * size_of::<Part>();
        64 * (words + astray.capacity() as u64) + 8 * (used.capacity() + places + parts) as u64
    }

    /// Whether a hash is inside.
    pub fn contains(&self, bits: u64) -> bool {
        let bits = stored(bits);
        match self.parts.get(part_of(bits)) {
            None => self.first.contains(bits),
            Some(part) => part.contains(&self.slabs, bits),
        }
    }

    /// Puts a hash in; true if it is new.
    pub fn insert(&mut self, bits: u64) -> bool {
        let mut verdict = [Verdict::Distinct];
        self.observe(&[KeyHash { high: bits, low: 0 }], &mut verdict);
        verdict[0].is_distinct()
    }

    /// Puts the high halves of these hashes in, and says of each whether it was there; `verdicts` is as long.
    pub fn observe(&mut self, hashes: &[KeyHash], verdicts: &mut [Verdict]) {
        let mut done = 0;
        while self.parts.is_empty() && done < hashes.len().min(verdicts.len()) {
            let bits = stored(hashes[done].high);
            if self.first.is_full() && self.first_grows().is_err() && self.first.is_crammed() {
                let seen = self.first.contains(bits);
                self.refused += u64::from(!seen);
                verdicts[done] = Verdict::from_seen(seen);
            } else if self.parts.is_empty() {
                verdicts[done] = Verdict::from_seen(!self.first.insert(bits));
            } else {
                break;
            }
            done += 1;
        }
        if done < hashes.len().min(verdicts.len()) {
            simd::run(Observing { table: self, hashes: &hashes[done..], verdicts: &mut verdicts[done..] });
        }
    }

    /// Makes room for so many hashes more, as they are: putting these in allocates nothing then.
    pub fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        while self.parts.is_empty() && self.first.len + hashes.len() as u64 > self.first.limit() {
            self.first_grows()?;
        }
        if self.parts.is_empty() {
            return Ok(());
        }
        let mut more = [0; 1 << PART_BITS];
        hashes.iter().for_each(|hash| more[part_of(stored(hash.high))] += 1);
        for (part, more) in self.parts.iter_mut().zip(more) {
            while part.len + more > part.limit {
                part.grow(&mut self.slabs, &mut self.move_out)?;
            }
        }
        Ok(())
    }

    /// Takes every hash out, and gives back all memory but a line.
    pub fn clear(&mut self) {
        let mut words = std::mem::take(&mut self.first.words);
        words.truncate(SLOTS as usize);
        words.shrink_to_fit();
        words.fill(EMPTY);
        *self = Self::default();
        // Once there are parts, the first line is gone, and comes back with the next hash.
        self.first.words = words;
    }

    /// Every hash inside, in ascending order.
    pub fn sorted(&self) -> impl Iterator<Item = u64> {
        let run = |mut bits: Vec<u64>| {
            bits.sort_unstable();
            bits
        };
        let first = run(self.first.words.iter().copied().filter(|bits| *bits != EMPTY).collect());
        // Parts are in order, so one at a time is sorted.
        first.into_iter().chain(self.parts.iter().flat_map(move |part| run(part.bits(&self.slabs).collect())))
    }

    /// The first run of lines doubles, or becomes the parts.
    #[cold]
    fn first_grows(&mut self) -> Result<()> {
        if self.first.words.len() as u64 + SLOTS <= FIRST_WORDS {
            return self.first.double();
        }
        let mut slabs = Slabs::default();
        let mut parts = Vec::new();
        reserve(&mut parts, 1 << PART_BITS)?;
        for _ in 0..1 << PART_BITS {
            parts.push(Part::with_pages(&mut slabs, 1)?);
        }
        let mut grown = HashTable { parts, slabs, refused: self.refused, ..HashTable::default() };
        let (mut before, mut verdicts) = (Vec::new(), Vec::new());
        reserve(&mut before, self.first.len as usize)?;
        reserve(&mut verdicts, self.first.len as usize)?;
        let inside = self.first.words.iter().filter(|bits| **bits != EMPTY);
        before.extend(inside.map(|bits| KeyHash { high: *bits, low: 0 }));
        verdicts.resize(before.len(), Verdict::Distinct);
        grown.make_room(&before)?;
        grown.observe(&before, &mut verdicts);
        *self = grown;
        Ok(())
    }

    /// Grows the part that a hash belongs to, if it is as full as may be; true if it has.
    #[inline(always)]
    fn grow_for(&mut self, bits: u64) -> Result<bool> {
        let part = &mut self.parts[part_of(bits)];
        let is_full = part.len >= part.limit;
        if is_full {
            self.grow_part(part_of(bits))?;
        }
        Ok(is_full)
    }

    /// Once a hash could not be kept, memory is asked for by [`HashTable::make_room`] alone: asking again for every hash
    /// would take for ever.
    #[cold]
    fn grow_part(&mut self, part: usize) -> Result<()> {
        if self.refused > 0 {
            return Err(Error::OutOfMemory { bytes: PAGE_WORDS * 8 });
        }
        let grown = self.parts[part].grow(&mut self.slabs, &mut self.move_out);
        if grown.is_err() {
            // What is left of the slots is used before anything is given up.
            let part = &mut self.parts[part];
            part.limit = part.limit.max(part.lines() * SLOTS - 1);
        }
        grown
    }

    /// What becomes of a hash for whose part memory was refused: it takes one of the slots that are usually left free.
    #[cold]
    fn insert_crammed(&mut self, bits: u64) -> bool {
        let part = &mut self.parts[part_of(bits)];
        if part.len + 1 < part.lines() * SLOTS {
            return part.insert(&mut self.slabs, bits);
        }
        let is_new = !part.contains(&self.slabs, bits);
        self.refused += u64::from(is_new);
        is_new
    }

    /// Puts a hash into its part, which has room, by way of its first line; false if it is there.
    #[inline(always)]
    fn insert_at(&mut self, machine: impl simd::SimdOps, place: Place, bits: u64) -> bool {
        let part = &mut self.parts[part_of(bits)];
        match put(machine, self.slabs.line_mut(place), bits) {
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

/// What an empty table takes: a line.
pub(crate) const FIRST_BITS: u64 = SLOTS * 64;

/// By how many standard deviations a part may have more hashes than the average; no set of hashes comes near.
const UNEVEN: f64 = 16.0;

/// How many lines a hash may spill over, in a table that is loaded; hashes spill over a few.
pub(in crate::cells) const FARTHEST_SPILL: u64 = 1 << 10;

/// Words of the first run of lines at most: what the parts begin with.
const FIRST_WORDS: u64 = PAGE_WORDS << PART_BITS;

/// Whether a hash is in a line, and whether the line has room, so that it can be in no later one.
fn look(slots: &[u64], bits: u64) -> (bool, bool) {
    (slots.contains(&bits), slots.contains(&EMPTY))
}

/// Room for exactly so many elements more, or an error.
fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<()> {
    items.try_reserve_exact(more).map_err(|_| Error::OutOfMemory { bytes: (more * size_of::<T>()) as u64 })
}

/// Observes a batch, compiled for the instructions that this machine has.
struct Observing<'s, 'b> {
    table: &'s mut HashTable,
    hashes: &'b [KeyHash],
    verdicts: &'b mut [Verdict],
}

impl simd::Kernel for Observing<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: impl simd::SimdOps) {
        let Observing { table, hashes, verdicts } = self;
        // The places of the keys to come, found when they are asked for. They hold until a part grows.
        let mut places = [Place::default(); simd::PREFETCH_DISTANCE];
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = table.place_of(stored(hash.high));
            table.prefetch(*place);
        }
        for (index, (hash, verdict)) in hashes.iter().zip(verdicts).enumerate() {
            let bits = stored(hash.high);
            let grown = table.grow_for(bits);
            if let Ok(true) = grown {
                for (ahead, hash) in hashes[index..].iter().enumerate().take(places.len()) {
                    places[(index + ahead) % places.len()] = table.place_of(stored(hash.high));
                }
            }
            let place = &mut places[index % simd::PREFETCH_DISTANCE];
            let here = *place;
            if let Some(ahead) = hashes.get(index + simd::PREFETCH_DISTANCE) {
                *place = table.place_of(stored(ahead.high));
                table.prefetch(*place);
            }
            let is_new = match grown {
                Ok(_) => table.insert_at(machine, here, bits),
                Err(_) => table.insert_crammed(bits),
            };
            *verdict = Verdict::from_seen(!is_new);
        }
    }
}

/// The form in which a hash is kept: zero marks an empty slot, so the one hash that is zero borrows its neighbour.
#[inline]
pub(crate) fn stored(bits: u64) -> u64 {
    bits.max(1)
}

#[inline]
fn part_of(bits: u64) -> usize {
    (bits >> (64 - PART_BITS)) as usize
}

/// The hashes that share their first bits.
#[derive(Debug, Clone)]
struct Part {
    pages: Vec<Place>,
    len: u64,
    /// How many hashes it takes before it grows.
    limit: u64,
}

impl Part {
    fn with_pages(slabs: &mut Slabs, count: u64) -> Result<Self> {
        let mut pages = Vec::new();
        reserve(&mut pages, count as usize)?;
        for _ in 0..count {
            pages.push(slabs.page()?);
        }
        Ok(Part { limit: limit(pages.len()), pages, len: 0 })
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
        let lines = (self.pages.len() + more) * PAGE_LINES as usize;
        move_out.used.clear();
        move_out.astray.clear();
        reserve(&mut move_out.used, lines)?;
        // Nearly all hashes that spilled, and no more than all: what cannot be moved is put back in one by one.
        reserve(&mut move_out.astray, self.len as usize)?;
        self.pages.try_reserve(more).map_err(|_| Error::OutOfMemory { bytes: (more * size_of::<Place>()) as u64 })?;
        let before = slabs.used;
        for place in 0..more {
            match slabs.page() {
                Ok(page) => self.pages.push(page),
                Err(error) => {
                    self.pages.truncate(self.pages.len() - place);
                    // Pages of an earlier slab cannot be handed out again; there is less than one growth of them.
                    slabs.used = before.max(slabs.last_start);
                    return Err(error);
                }
            }
        }
        self.limit = limit(self.pages.len());
        move_out.used.resize(lines, 0);
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

    fn contains(&self, slabs: &Slabs, bits: u64) -> bool {
        let (home, lines) = (self.line_of(bits), self.lines());
        for line in (home..lines).chain(0..home) {
            let Place { slab, word } = self.place(line);
            let (found, has_room) = look(&slabs.slabs[slab as usize][word as usize..][..SLOTS as usize], bits);
            if found || has_room {
                return found;
            }
        }
        false
    }

    fn bits(&self, slabs: &Slabs) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|page| slabs.words(*page)).copied().filter(|bits| *bits != EMPTY)
    }
}

/// Puts a hash into a line, and says whether it is new there; nothing if it is neither there nor has room.
#[inline(always)]
pub(in crate::cells) fn put(machine: impl simd::SimdOps, slots: &mut [u64; SLOTS as usize], bits: u64) -> Option<bool> {
    let (same, empty) = (machine.equal(slots, bits), machine.equal(slots, EMPTY));
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
mod tests;
