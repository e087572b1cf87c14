//! A table of 64-bit hashes in memory that becomes something else when it is full.
//!
//! Cache lines of eight slots, which fill from the left; a full one spills into the next. Hashes lie in their own
//! order, line by line, so whatever else lies in that order and takes no more room can take their place in one pass.
//!
//! ```text
//! half of the memory       h1 h2 … | h3 … | h4 …   |        |        |        |
//! three quarters           h1 h2 … |      | h3 …   | h4 …   |        |        |
//! when it is full          w0 w1 w2 w3 w4 w5 …                                       words of something else
//! ```
//!
//! **It grows inside the memory it was given**, from a few lines at the beginning to all of them, so that few hashes touch
//! little memory. In a larger table every hash moves towards the end or stays: lines are emptied from the last to the
//! first, and what they held goes to lines that are done.

use super::buffer::{Buffer, Line};
use crate::key::{KeyHash, scale};
use crate::simd;
use crate::{Error, Result, Verdict};
use std::hint::{black_box, select_unpredictable};

/// Slots of a line.
pub(super) const SLOTS: u64 = 8;
const EMPTY: u64 = 0;
/// How many lines a hash may spill over, in a table that is read back; hashes spill over a few.
const FARTHEST_SPILL: u64 = 1 << 10;
/// Slots of a line that may be taken, on average, at the full size.
const LOAD: u64 = 7;
/// Slots of two lines that may be taken before: a table that can still grow does so before lines spill much.
const LOAD_OF_TWO: u64 = 13;
/// Hashes that are put in together.
const TOGETHER: usize = 128;
/// Lines to begin with, more or less: a page.
const FIRST_LINES: u64 = 64;

/// How far such a table is; the lines themselves are the caller's.
#[derive(Debug, Clone, Copy)]
pub struct InPlace {
    /// Lines in use.
    lines: u64,
    /// Lines there will be.
    full: u64,
    length: u64,
}

/// What became of a batch.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// Every hash is in.
    Done,
    /// So many are; the next is new, and the table is full.
    Full(usize),
    /// So many are; the next is new, and memory was refused.
    Refused(usize),
}

impl InPlace {
    /// An empty table that will grow to `full` lines, at least one.
    pub fn new(full: u64) -> Self {
        InPlace { lines: ladder(full, FIRST_LINES), full, length: 0 }
    }

    /// The table where the memory is still shorter than all lines.
    pub fn within(self, buffer: &Buffer) -> Self {
        InPlace { lines: self.lines.min(buffer.lines().len() as u64), ..self }
    }

    /// How many hashes a table of so many lines takes at most.
    pub fn capacity(full: u64) -> u64 {
        full.saturating_mul(LOAD)
    }

    /// How many hashes are inside.
    #[inline]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Lines that are, or may soon be, in use.
    #[inline]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The most hashes before it grows, or is full.
    fn limit(&self) -> u64 {
        if self.lines == self.full { Self::capacity(self.full) } else { self.lines * LOAD_OF_TWO / 2 }
    }

    /// Whether a hash is inside.
    #[inline]
    pub fn contains(&self, buffer: &Buffer, bits: u64) -> bool {
        let lines = &buffer.lines()[..self.lines as usize];
        let home = scale(stored(bits), self.lines) as usize;
        let (before, after) = lines.split_at(home);
        for line in after.iter().chain(before) {
            if line.0.contains(&stored(bits)) {
                return true;
            }
            if line.0[SLOTS as usize - 1] == EMPTY {
                return false;
            }
        }
        false
    }

    /// Asks for the line in which a hash is looked for first.
    #[inline(always)]
    pub fn prefetch(&self, buffer: &Buffer, bits: u64) {
        simd::prefetch(buffer.lines(), scale(bits, self.lines) as usize);
    }

    /// Puts the high halves of these hashes in, and says of each whether it was there; `verdicts` is as long.
    #[inline]
    pub fn observe(&mut self, buffer: &mut Buffer, hashes: &[KeyHash], verdicts: &mut [Verdict]) -> Outcome {
        simd::run(Observing { table: self, buffer, hashes, verdicts })
    }

    /// Puts in hashes from `done` on, as far as there is room; says how many are done then.
    #[inline(always)]
    fn observe_within(
        &mut self,
        machine: impl simd::SimdOps,
        lines: &mut [Line],
        hashes: &[KeyHash],
        verdicts: &mut [Verdict],
        mut done: usize,
    ) -> usize {
        let limit = self.limit();
        let ask = |lines: &[Line], hash: &KeyHash| simd::prefetch(lines, scale(hash.high, self.lines) as usize);
        hashes[done..].iter().take(simd::PREFETCH_DISTANCE).for_each(|hash| ask(lines, hash));
        while self.length + TOGETHER as u64 <= limit && hashes.len() - done >= TOGETHER {
            let (ahead, verdicts) = (&hashes[done..], &mut verdicts[done..]);
            let (Some(hashes), Some(verdicts)) = (ahead.first_chunk(), verdicts.first_chunk_mut()) else { break };
            self.observe_together(machine, lines, hashes, ahead, verdicts);
            done += TOGETHER;
        }
        for (index, (hash, verdict)) in hashes.iter().zip(verdicts).enumerate().skip(done) {
            if self.length >= limit {
                return index;
            }
            if let Some(ahead) = hashes.get(index + simd::PREFETCH_DISTANCE) {
                simd::prefetch(lines, scale(ahead.high, self.lines) as usize);
            }
            *verdict = Verdict::from_seen(!self.insert(machine, lines, stored(hash.high)));
        }
        hashes.len()
    }

    /// Puts in hashes for which there is room; they are the first of those that lie `ahead`.
    ///
    /// When the table is about to grow, one line in five is full, and who goes on to the next one waits for memory that
    /// nobody asked for. So those that find their own line full ask for the next and are put in after the others. Two that
    /// are equal both are, in their order: a full line stays full.
    #[inline(always)]
    fn observe_together(
        &mut self,
        machine: impl simd::SimdOps,
        lines: &mut [Line],
        hashes: &[KeyHash; TOGETHER],
        ahead: &[KeyHash],
        verdicts: &mut [Verdict; TOGETHER],
    ) {
        let (mut spilled, mut count, mut length) = ([0u8; TOGETHER], 0, self.length);
        // Boxed, or a compiler that sees that nobody reads it makes a branch of the choice.
        let mut nowhere = 0;
        let nowhere = black_box(&mut nowhere);
        for index in 0..TOGETHER {
            if let Some(ahead) = ahead.get(index + simd::PREFETCH_DISTANCE) {
                simd::prefetch(lines, scale(ahead.high, self.lines) as usize);
            }
            let bits = stored(hashes[index].high);
            let home = scale(bits, self.lines) as usize;
            let slots = &mut lines[home].0;
            let (same, empty) = (machine.equal(slots, bits), machine.equal(slots, EMPTY));
            let (is_there, is_full) = (same != 0, same | empty == 0);
            // Without a branch, for none of this can be predicted: what is there, or finds its line full, is written where
            // nobody reads. Written into its line once more, a key that comes again soon would keep the next search of that
            // line waiting until the line is in the cache again: a register that holds half a line is not filled from a
            // store of one slot that is still on its way.
            let slot = &mut slots[(same | empty).trailing_zeros() as usize % SLOTS as usize];
            *select_unpredictable(is_there | is_full, &mut *nowhere, slot) = bits;
            length += u64::from(!is_there & !is_full);
            verdicts[index] = Verdict::from_seen(is_there);
            simd::prefetch(lines, home + usize::from(is_full));
            spilled[count % TOGETHER] = index as u8;
            count += usize::from(is_full);
        }
        self.length = length;
        for &index in &spilled[..count] {
            let index = usize::from(index);
            let bits = stored(hashes[index].high);
            let home = scale(bits, self.lines) as usize;
            verdicts[index] = Verdict::from_seen(!self.insert_from(machine, lines, bits, self.behind(home)));
        }
    }

    /// Makes sure that so many hashes more, as far as they fit, ask for no memory.
    pub fn make_room(&mut self, buffer: &mut Buffer, more: u64) -> Result<()> {
        while self.lines < self.full && self.length.saturating_add(more) > self.limit() {
            self.grow(buffer)?;
        }
        Ok(())
    }

    /// The lines that there are once so many hashes more have room.
    pub fn lines_for(&self, more: u64) -> u64 {
        let mut later = *self;
        while later.lines < later.full && later.length.saturating_add(more) > later.limit() {
            later.lines = ladder(later.full, later.lines + 1);
        }
        later.lines
    }

    /// Takes the next size.
    #[cold]
    fn grow(&mut self, buffer: &mut Buffer) -> Result<()> {
        let lines = ladder(self.full, self.lines + 1);
        if (buffer.lines().len() as u64) < lines {
            buffer.grow(lines)?;
        }
        let mut used = Vec::new();
        used.try_reserve_exact(lines as usize).map_err(|_| Error::OutOfMemory { bytes: lines })?;
        used.resize(lines as usize, 0);
        simd::run(Growing { table: self, lines: buffer.lines_mut(), used });
        Ok(())
    }

    /// Puts a hash into the first line from its own on that has it or room; false if it is there. One slot at least is
    /// empty.
    #[inline(always)]
    fn insert(&mut self, machine: impl simd::SimdOps, lines: &mut [Line], bits: u64) -> bool {
        self.insert_from(machine, lines, bits, scale(bits, self.lines) as usize)
    }

    /// Puts a hash in where the lines before this one are full and do not have it.
    #[inline(always)]
    fn insert_from(&mut self, machine: impl simd::SimdOps, lines: &mut [Line], bits: u64, mut at: usize) -> bool {
        loop {
            if let Some(is_new) = put(machine, &mut lines[at].0, bits) {
                self.length += u64::from(is_new);
                return is_new;
            }
            at = self.behind(at);
        }
    }

    /// The line that a full one spills into.
    #[inline(always)]
    fn behind(&self, line: usize) -> usize {
        if line + 1 == self.lines as usize { 0 } else { line + 1 }
    }

    /// Puts a hash into one of the slots that are usually left free, where no more memory is to be had; nothing if only one
    /// is left, at which a search for what is not there ends.
    pub fn insert_overfull(&mut self, buffer: &mut Buffer, bits: u64) -> Option<bool> {
        if self.contains(buffer, bits) {
            return Some(false);
        }
        let has_room = self.length + 1 < self.lines * SLOTS;
        has_room.then(|| self.insert(simd::Plain, buffer.lines_mut(), stored(bits)))
    }

    /// The table of `count` hashes that come in ascending order, and memory for it: less than twice what the hashes take.
    /// They are as evenly spread as hashes are, or refused.
    pub fn from_sorted(hashes: impl Iterator<Item = Result<u64>>, count: u64, full: u64) -> Result<(Self, Buffer)> {
        Self::of_lines((count / LOAD_READ_BACK + 1).min(full), hashes, count, full)
    }

    /// A table of `count` ascending hashes, as large as one that grew to hold them.
    pub fn from_sorted_as_grown(
        hashes: impl Iterator<Item = Result<u64>>,
        count: u64,
        full: u64,
    ) -> Result<(Self, Buffer)> {
        let mut grown = InPlace { lines: 1, full, length: 0 };
        while grown.lines < full && count > grown.limit() {
            grown.lines = ladder(full, grown.lines + 1);
        }
        Self::of_lines(grown.lines, hashes, count, full)
    }

    fn of_lines(
        lines: u64,
        hashes: impl Iterator<Item = Result<u64>>,
        count: u64,
        full: u64,
    ) -> Result<(Self, Buffer)> {
        if count > Self::capacity(full) {
            return Err(Error::corrupt("the filter has more hashes than it can hold"));
        }
        let mut buffer = Buffer::with_lines(lines)?;
        let mut table = InPlace { lines, full, length: 0 };
        for bits in hashes {
            let bits = stored(bits?);
            let home = scale(bits, lines);
            let mut spilled = 0;
            let is_new = loop {
                let line = &mut buffer.lines_mut()[((home + spilled) % lines) as usize].0;
                if let Some(is_new) = put(simd::Plain, line, bits) {
                    break is_new;
                }
                spilled += 1;
                if spilled > FARTHEST_SPILL.min(lines) {
                    return Err(Error::corrupt("the filter's hashes are not spread as hashes are"));
                }
            };
            table.length += u64::from(is_new);
        }
        Ok((table, buffer))
    }

    /// Every hash inside, in ascending order.
    pub fn sorted<'b>(&self, buffer: &'b Buffer) -> impl Iterator<Item = u64> + use<'b> {
        let (table, lines) = (*self, &buffer.lines()[..self.lines as usize]);
        let (mut ahead, mut next) = (Ahead::default(), 0);
        std::iter::from_fn(move || {
            loop {
                if let Some(bits) =
                    ahead.next_below(|bits| next == lines.len() || scale(bits, table.lines) < next as u64)
                {
                    return Some(bits);
                }
                if next == lines.len() {
                    return None;
                }
                next = ahead.take_run(next, lines.len(), |at| lines[at]);
            }
        })
    }

    /// Takes all hashes out, in ascending order, and hands each to `put`, which may write what it makes of them into the
    /// same lines, `T`: before the end of line `line_of(hash)`, which is never behind the hash's own of all lines.
    pub fn convert<T>(
        self,
        target: &mut T,
        lines_of: impl Fn(&mut T) -> &mut [Line],
        line_of: impl Fn(u64) -> u64,
        mut put: impl FnMut(&mut T, u64),
    ) {
        let (mut ahead, mut next, end) = (Ahead::default(), 0, self.lines as usize);
        while next < end {
            let lines = lines_of(target);
            next = ahead.take_run(next, end, |at| std::mem::replace(&mut lines[at], Line([EMPTY; SLOTS as usize])));
            while let Some(bits) = ahead.next_below(|bits| next == end || line_of(bits) < next as u64) {
                put(target, bits);
            }
        }
    }
}

/// The form in which a hash is kept: zero marks an empty slot, so the one hash that is zero borrows its neighbour.
#[inline]
pub fn stored(bits: u64) -> u64 {
    bits.max(1)
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

/// Slots of a line that are taken in what is read back, on average.
const LOAD_READ_BACK: u64 = 5;

/// The smallest of the sizes that is at least `lines`: all, three quarters, half, three eighths, … Doubling alone would take
/// twice the memory that is needed at times.
fn ladder(full: u64, lines: u64) -> u64 {
    let mut size = full;
    while size / 2 >= lines {
        size /= 2;
    }
    let between = size - size / 4;
    if between >= lines { between } else { size }
}

/// Hashes that were read and whose turn has not come: those of a run of full lines, in ascending order.
///
/// What spilled past the last line lies in the first ones and is read first; it waits here until the end.
#[derive(Default)]
struct Ahead {
    hashes: std::collections::VecDeque<u64>,
}

impl Ahead {
    /// Reads lines up to and with the first that has room, behind which no hash of theirs lies; gives the next.
    fn take_run(&mut self, mut at: usize, end: usize, mut line: impl FnMut(usize) -> Line) -> usize {
        loop {
            let slots = line(at).0;
            self.hashes.extend(slots.iter().filter(|bits| **bits != EMPTY));
            at += 1;
            if slots[SLOTS as usize - 1] == EMPTY || at == end {
                break;
            }
        }
        self.hashes.make_contiguous().sort_unstable();
        at
    }

    /// The least of them, if its turn has come.
    #[inline]
    fn next_below(&mut self, is_due: impl Fn(u64) -> bool) -> Option<u64> {
        self.hashes.front().is_some_and(|bits| is_due(*bits)).then(|| self.hashes.pop_front())?
    }
}

/// Observes a batch, compiled for the instructions that this machine has.
struct Observing<'s, 'b> {
    table: &'s mut InPlace,
    buffer: &'s mut Buffer,
    hashes: &'b [KeyHash],
    verdicts: &'b mut [Verdict],
}

impl simd::Kernel for Observing<'_, '_> {
    type Output = Outcome;

    #[inline(always)]
    fn run(self, machine: impl simd::SimdOps) -> Outcome {
        let Observing { table, buffer, hashes, verdicts } = self;
        let mut done = 0;
        loop {
            done = table.observe_within(machine, buffer.lines_mut(), hashes, verdicts, done);
            let Some(hash) = hashes.get(done) else { return Outcome::Done };
            // What is there already asks for no room.
            if table.contains(buffer, hash.high) {
                verdicts[done] = Verdict::Duplicate;
                done += 1;
            } else if table.lines == table.full {
                return Outcome::Full(done);
            } else if table.grow(buffer).is_err() {
                return Outcome::Refused(done);
            }
        }
    }
}

/// Spreads the hashes over more lines, compiled for the instructions that this machine has.
struct Growing<'s> {
    table: &'s mut InPlace,
    lines: &'s mut [Line],
    /// How many slots of each line are taken; as many as there will be lines. A line counted is faster than a line
    /// searched, most of all one just written.
    used: Vec<u8>,
}

impl simd::Kernel for Growing<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: impl simd::SimdOps) {
        let Growing { table, lines, mut used } = self;
        let (to, end) = (used.len() as u64, used.len());
        let old = std::mem::replace(&mut table.lines, to);
        // Those that had spilled, or would have to spill past the end: a few.
        let mut astray = Vec::new();
        for at in (0..old as usize).rev() {
            let slots = std::mem::replace(&mut lines[at].0, [EMPTY; SLOTS as usize]);
            for bits in slots.into_iter().take_while(|bits| *bits != EMPTY) {
                let mut home = scale(bits, to) as usize;
                if home < at {
                    astray.push(bits);
                    continue;
                }
                while home < end && used[home] == SLOTS as u8 {
                    home += 1;
                }
                if home == end {
                    astray.push(bits);
                    continue;
                }
                lines[home].0[usize::from(used[home]) % SLOTS as usize] = bits;
                used[home] += 1;
            }
        }
        table.length -= astray.len() as u64;
        for bits in astray {
            table.insert(machine, lines, bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Evenly spread numbers.
    fn hashes(count: u64) -> Vec<KeyHash> {
        (1..=count).map(|index| KeyHash { high: crate::key::finalise(index), low: index }).collect()
    }

    fn filled(full: u64, hashes: &[KeyHash]) -> (InPlace, Buffer, Vec<Verdict>, Outcome) {
        let (mut table, mut buffer) = (InPlace::new(full), Buffer::with_lines(full).expect("small"));
        let mut verdicts = vec![Verdict::Distinct; hashes.len()];
        let outcome = table.observe(&mut buffer, hashes, &mut verdicts);
        (table, buffer, verdicts, outcome)
    }

    #[test]
    fn it_is_a_set_to_its_last_slot_at_every_size() {
        for full in [1, 2, 3, 7, 63, 64, 65, 1000, 5000] {
            let most = InPlace::capacity(full);
            let keys = hashes(most + 1);
            let twice: Vec<KeyHash> =
                keys[..most as usize].iter().flat_map(|hash| [*hash, *hash]).chain(keys.last().copied()).collect();
            let (table, buffer, verdicts, outcome) = filled(full, &twice);
            assert_eq!(outcome, Outcome::Full(twice.len() - 1), "{full} lines");
            assert!(verdicts.chunks_exact(2).all(|pair| pair == [Verdict::Distinct, Verdict::Duplicate]));
            assert!(keys[..most as usize].iter().all(|hash| table.contains(&buffer, hash.high)));
            assert!(!table.contains(&buffer, keys[most as usize].high));
            let inside: BTreeSet<u64> = keys[..most as usize].iter().map(|hash| hash.high).collect();
            assert!(table.sorted(&buffer).eq(inside.iter().copied()), "{full} lines");
            assert_eq!(table.len(), most);
        }
    }

    /// Thirty neighbours to a line, so that nearly all of them spill, each several times and soon after itself.
    #[test]
    fn what_spills_is_judged_as_if_it_had_come_alone() {
        let neighbour = |key: u64| (crate::key::finalise(key / 30) & !31) + key % 30 + 1;
        let arrival = |at: u64| KeyHash { high: neighbour(crate::key::finalise(at) % (at / 3 + 1)), low: 0 };
        let arrivals: Vec<KeyHash> = (0..60_000).map(arrival).collect();
        let mut seen = BTreeSet::new();
        let expected: Vec<Verdict> = arrivals.iter().map(|hash| Verdict::from_seen(!seen.insert(hash.high))).collect();
        for batch in [1, 100, 128, 1000, 60_000] {
            let (mut table, mut buffer) = (InPlace::new(4096), Buffer::with_lines(4096).expect("small"));
            let mut verdicts = vec![Verdict::Distinct; arrivals.len()];
            for (hashes, verdicts) in arrivals.chunks(batch).zip(verdicts.chunks_mut(batch)) {
                assert_eq!(table.observe(&mut buffer, hashes, verdicts), Outcome::Done);
            }
            assert!(verdicts == expected, "in batches of {batch}");
            assert!(table.sorted(&buffer).eq(seen.iter().copied()) && table.len() == seen.len() as u64);
        }
    }

    #[test]
    fn few_hashes_touch_few_lines() {
        let (table, buffer, ..) = filled(1 << 16, &hashes(1000));
        assert!(table.lines() <= 512);
        assert!(buffer.lines()[512..].iter().all(|line| line.0 == [0; 8]));
    }

    #[test]
    fn what_is_read_back_goes_on_as_what_was_written() {
        let keys = hashes(20_000);
        for count in [0, 1, 7, 1000, 12_000, 13_999, 14_000] {
            let (mut table, mut buffer, ..) = filled(2000, &keys[..count]);
            let sorted = table.sorted(&buffer).map(Ok);
            let (mut copy, mut copied) = InPlace::from_sorted(sorted, table.len(), 2000).expect("hashes");
            assert!(copied.lines().len() as u64 * 64 <= 16 * count as u64 + 64);
            let mut verdicts = [vec![Verdict::Distinct; keys.len()], vec![Verdict::Distinct; keys.len()]];
            let one = table.observe(&mut buffer, &keys, &mut verdicts[0]);
            assert_eq!(one, copy.observe(&mut copied, &keys, &mut verdicts[1]));
            assert_eq!(one, Outcome::Full(14_000));
            assert_eq!(verdicts[0], verdicts[1]);
        }
        let crowded = (1..20_000).map(Ok);
        assert!(InPlace::from_sorted(crowded, 20_000, 100_000).is_err(), "these are no hashes");
        assert!(InPlace::from_sorted([].into_iter(), 8, 1).is_err(), "there is no room for eight");
    }

    #[test]
    fn what_takes_the_place_of_hashes_finds_them_in_order_and_its_own_lines_empty() {
        for (full, count) in [(1, 7), (2, 14), (900, 6300), (1000, 10), (1000, 7000)] {
            let keys = hashes(count);
            let (mut table, mut buffer, ..) = filled(full, &keys);
            while table.lines < full {
                table.grow(&mut buffer).expect("within the buffer");
            }
            let mut sorted: Vec<u64> = keys.iter().map(|hash| hash.high).collect();
            sorted.sort_unstable();
            // Each leaves a byte of its own in its line, where nothing may be that a hash left.
            let mut found = Vec::new();
            table.convert(
                &mut buffer,
                Buffer::lines_mut,
                |bits| scale(bits, full),
                |buffer, bits| {
                    let line = &mut buffer.lines_mut()[scale(bits, full) as usize].0;
                    let before =
                        found.iter().rev().take_while(|other| scale(**other, full) == scale(bits, full)).count();
                    assert_eq!(line.iter().sum::<u64>(), before as u64);
                    line[before % 8] += 1;
                    found.push(bits);
                },
            );
            assert_eq!(found, sorted);
        }
    }
}
