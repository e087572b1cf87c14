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

use crate::key::{KeyHash, scale};
use crate::promise::{Error, Result, Verdict};
use crate::simd;

const PART_BITS: u32 = 6;
const PAGE_LINES: u64 = 1 << 8;
/// Slabs grow with the set up to this many pages, 32 MiB.
const MAX_SLAB_PAGES: u64 = 1 << 11;
const PAGE_WORDS: u64 = PAGE_LINES * SLOTS;
/// 64-bit words of a huge page. Large slabs start on one, so that all of them can lie on such pages.
const HUGE_WORDS: u64 = 1 << 18;
const SLOTS: u64 = 8;
const EMPTY: u64 = 0;

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
const FARTHEST_SPILL: u64 = 1 << 10;

fn uneven() -> Error {
    Error::corrupt("the filter's hashes are not spread as hashes are")
}

/// Where the last of some ascending hashes went: the next goes there or behind.
#[derive(Default)]
struct Loading {
    part: usize,
    line: u64,
    used: usize,
}

impl Loading {
    fn put(&mut self, table: &mut HashTable, bits: u64) -> Result<()> {
        if part_of(bits) != self.part {
            *self = Loading { part: part_of(bits), ..Loading::default() };
        }
        let part = &mut table.parts[self.part];
        if part.len >= part.limit {
            return Err(uneven());
        }
        let home = part.line_of(bits);
        if home > self.line {
            (self.line, self.used) = (home, 0);
        } else if self.used == SLOTS as usize {
            (self.line, self.used) = (self.line + 1, 0);
        }
        if self.line - home > FARTHEST_SPILL {
            return Err(uneven());
        }
        if self.line == part.lines() {
            // Behind the last line comes the first, which has room or is followed by one that has.
            self.used = SLOTS as usize;
            self.line -= 1;
            part.insert(&mut table.slabs, bits);
            return Ok(());
        }
        table.slabs.line_mut(part.place(self.line))[self.used] = bits;
        self.used += 1;
        part.len += 1;
        Ok(())
    }
}

/// Words of the first run of lines at most: what the parts begin with.
const FIRST_WORDS: u64 = PAGE_WORDS << PART_BITS;

/// The hashes of a table that is still small, in lines of their own order; the last spills into the first.
#[derive(Debug, Clone, Default)]
struct First {
    words: Vec<u64>,
    len: u64,
}

impl First {
    fn limit(&self) -> u64 {
        self.words.len() as u64 * 11 / 16
    }

    fn is_full(&self) -> bool {
        self.len >= self.limit()
    }

    /// Whether one empty slot is left, at which a search for what is not there ends.
    fn is_crammed(&self) -> bool {
        self.len + 1 >= self.words.len() as u64
    }

    /// The lines from a hash's own on, once round.
    fn places(&self, bits: u64) -> impl Iterator<Item = usize> + use<> {
        let lines = self.words.len() as u64 / SLOTS;
        let home = scale(bits, lines);
        (home..lines).chain(0..home).map(|line| (line * SLOTS) as usize)
    }

    fn contains(&self, bits: u64) -> bool {
        for place in self.places(bits) {
            let (found, has_room) = look(&self.words[place..place + SLOTS as usize], bits);
            if found || has_room {
                return found;
            }
        }
        false
    }

    /// Puts a hash where there is room, which there is; false if it is there.
    fn insert(&mut self, bits: u64) -> bool {
        for place in self.places(bits) {
            let (lines, _) = self.words[place..].as_chunks_mut();
            if let Some(is_new) = put(simd::Plain, &mut lines[0], bits) {
                self.len += u64::from(is_new);
                return is_new;
            }
        }
        false
    }

    /// The same for one of some ascending hashes; an error if it spills as no hash does.
    fn load(&mut self, bits: u64) -> Result<()> {
        for place in self.places(bits).take(FARTHEST_SPILL as usize / 4) {
            let (lines, _) = self.words[place..].as_chunks_mut();
            if let Some(is_new) = put(simd::Plain, &mut lines[0], bits) {
                self.len += u64::from(is_new);
                return Ok(());
            }
        }
        Err(uneven())
    }

    fn double(&mut self) -> Result<()> {
        let count = (self.words.len() * 2).max(SLOTS as usize);
        let mut doubled = First::default();
        reserve(&mut doubled.words, count)?;
        doubled.words.resize(count, EMPTY);
        self.words.iter().filter(|bits| **bits != EMPTY).for_each(|bits| {
            doubled.insert(*bits);
        });
        *self = doubled;
        Ok(())
    }
}

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
#[derive(Debug, Clone, Default)]
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
        let more = self.pages.clamp(1 << PART_BITS, MAX_SLAB_PAGES);
        let aligned = if more * PAGE_WORDS >= 2 * HUGE_WORDS { HUGE_WORDS } else { 0 };
        let words = more * PAGE_WORDS + aligned;
        // Words rather than lines: only what has no alignment of its own comes zeroed from the system
        // without being touched.
        let mut slab: Vec<u64> = bytemuck::allocation::try_zeroed_vec(words as usize)
            .map_err(|()| Error::OutOfMemory { bytes: 8 * words })?;
        reserve(&mut self.slabs, 1)?;
        simd::advise_huge_pages(&mut slab);
        let start = slab.as_ptr() as u64 / 8;
        self.last_word = if aligned > 0 { start.next_multiple_of(HUGE_WORDS) - start } else { 0 };
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
fn put(machine: impl simd::SimdOps, slots: &mut [u64; SLOTS as usize], bits: u64) -> Option<bool> {
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
mod tests {
    use super::*;
    use crate::key::{Hashing, Key, finalise};
    use std::collections::BTreeSet;

    fn hash(key: u64) -> KeyHash {
        key.hash_with(&Hashing::default())
    }

    #[test]
    fn agrees_with_a_set_while_it_grows_whatever_the_batches() {
        let keys: Vec<KeyHash> = (0..600_000u64).map(|key| hash(key * key % 400_009)).collect();
        for (batch, asks) in [(1000, false), (1000, true), (7777, true)] {
            let (mut ours, mut theirs) = (HashTable::new().expect("memory"), BTreeSet::new());
            for hashes in keys.chunks(batch) {
                let mut verdicts = vec![Verdict::Distinct; hashes.len()];
                if asks {
                    ours.make_room(hashes).expect("memory");
                }
                ours.observe(hashes, &mut verdicts);
                for (hash, verdict) in hashes.iter().zip(verdicts) {
                    assert_eq!(verdict.is_distinct(), theirs.insert(hash.high));
                }
            }
            assert_eq!((ours.len(), ours.refused()), (theirs.len() as u64, 0));
            assert!(ours.sorted().eq(theirs.iter().copied()));
            assert!(theirs.iter().all(|bits| ours.contains(*bits)));
            assert!(!(1_000_000..1_010_000).any(|key| ours.contains(hash(key).high)));
        }
    }

    #[test]
    fn hashes_that_crowd_one_line_all_fit() {
        for (count, what) in [(300, "the first run of lines"), (50_000, "one part")] {
            let mut table = HashTable::new().expect("memory");
            assert!((0..count).all(|low| table.insert(u64::MAX - low)), "{what}");
            assert!((0..count).all(|low| !table.insert(u64::MAX - low)), "{what}");
            assert!((0..count).all(|low| table.contains(u64::MAX - low)), "{what}");
        }
    }

    #[test]
    fn hashes_in_full_lines_are_found_again_however_often_the_part_grows() {
        let mut table = HashTable::new().expect("memory");
        // One part, and in it runs of neighbours, 30 to a line: nearly all of them spill.
        let bits = |key: u64| (finalise(key / 30) >> PART_BITS & !31) + key % 30 + 1;
        for key in 0..60_000 {
            assert!(table.insert(bits(key)), "{key}");
            if key % 1000 == 0 {
                assert!((0..=key).all(|key| !table.insert(bits(key))), "at {key}");
            }
        }
        assert_eq!(table.len(), 60_000);
    }

    #[test]
    fn memory_stays_within_sixteen_bytes_a_key_beyond_the_first_pages() {
        let mut table = HashTable::new().expect("memory");
        for key in 0..3_000_000u64 {
            table.insert(hash(key).high);
            if key > 500_000 && key % 10_007 == 0 {
                let bytes_per_key = table.memory_bits() as f64 / 8.0 / table.len() as f64;
                assert!(bytes_per_key < 16.0, "{bytes_per_key} at {key}");
            }
        }
    }

    #[test]
    fn sorted_hashes_are_loaded_as_if_they_had_come_one_by_one() {
        for count in [0, 1, 700, 90_112, 90_113, 300_000] {
            let mut one_by_one = HashTable::new().expect("memory");
            (0..count).for_each(|key| {
                one_by_one.insert(hash(key).high);
            });
            let mut loaded = HashTable::from_sorted(one_by_one.sorted().map(Ok), count).expect("spread as hashes are");
            assert!(loaded.sorted().eq(one_by_one.sorted()), "{count}");
            assert!((0..count).all(|key| loaded.contains(hash(key).high)), "{count}");
            assert!((count..2 * count + 9).all(|key| loaded.insert(hash(key).high)), "{count} goes on");
            assert!((0..2 * count + 9).all(|key| !loaded.insert(hash(key).high)), "{count} has all");
        }
    }

    #[test]
    fn what_is_no_set_of_hashes_is_not_loaded() {
        for count in [20_000, 100_000, 2_000_000] {
            assert!(HashTable::from_sorted((1..=count).map(Ok), count).is_err(), "{count}");
        }
        // Each part has its share, all of it in one place.
        let crowded = (0..64u64).flat_map(|part| (1..=20_000).map(move |low| Ok(part << 58 | low)));
        assert!(HashTable::from_sorted(crowded, 1_280_000).is_err());
    }

    #[test]
    fn a_few_keys_take_a_few_lines() {
        let mut table = HashTable::new().expect("memory");
        assert_eq!(table.memory_bits(), FIRST_BITS);
        (0..100).for_each(|key| {
            table.insert(hash(key).high);
        });
        assert!(table.memory_bits() <= 8 * 4096, "{} bits", table.memory_bits());
    }
}
