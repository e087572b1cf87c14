//! Keys whose bits may lie anywhere: the classic way, as many cache lines as hashes.
//!
//! In memory of up to [`SimdOps::near_bytes`], a batch is its keys one by one. Where a filter is larger, a batch takes four
//! keys at a time, whose places wide registers compute together, and asks for their lines before it needs them. Most keys
//! that are not inside lack one of their first four bits, so a batch of queries reads only those of every key, and what
//! remains of the few others afterwards.

use crate::Verdict;
use crate::key::KeyHash;
use crate::simd::{Kernel, SimdOps, all_set, all_set_here, prefetch, run, set_all};
use std::ops::Range;

/// Which of its hashes a key has: from one on, up to another, for all keys of a batch or for each.
#[derive(Debug, Clone, Copy)]
pub struct Hashes<'h> {
    first: u32,
    end: End<'h>,
    /// No hash from this one on, whatever the end.
    most: u32,
}

#[derive(Debug, Clone, Copy)]
enum End<'h> {
    Same(u32),
    Each(&'h [u32]),
}

impl<'h> Hashes<'h> {
    /// So many.
    #[inline(always)]
    pub fn all(count: u32) -> Self {
        Hashes { first: 0, end: End::Same(count), most: u32::MAX }
    }

    /// For each key of a batch as many as its number says, without the first.
    #[inline(always)]
    pub fn each(first: u32, ends: &'h [u32]) -> Self {
        Hashes { first, end: End::Each(ends), most: u32::MAX }
    }

    /// The hashes of a key.
    #[inline(always)]
    fn of(&self, key: usize) -> Range<u32> {
        let end = match self.end {
            End::Same(end) => end,
            End::Each(ends) => ends[key],
        };
        self.first..end.min(self.most).max(self.first)
    }

    /// Without the first so many keys.
    #[inline(always)]
    fn skip(self, keys: usize) -> Self {
        match self.end {
            End::Same(_) => self,
            End::Each(ends) => Hashes { end: End::Each(&ends[keys..]), ..self },
        }
    }

    /// The first of them, which decide about most keys that are not inside.
    #[inline(always)]
    fn first_few(self) -> Self {
        Hashes { most: self.first + FIRST, ..self }
    }

    /// How many the key has that has most, of so many keys.
    #[inline(always)]
    fn longest(&self, keys: usize) -> usize {
        match self.end {
            End::Same(_) if keys > 0 => self.of(0).len(),
            End::Same(_) => 0,
            End::Each(_) => (0..keys).map(|key| self.of(key).len()).max().unwrap_or(0),
        }
    }

    /// How many each key has, if they begin with the first and all keys have as many.
    #[inline(always)]
    fn same_from_first(&self) -> Option<u32> {
        (self.first == 0 && self.are_same()).then(|| self.of(0).end)
    }

    /// Whether all keys have as many.
    #[inline(always)]
    fn are_same(&self) -> bool {
        matches!(self.end, End::Same(_))
    }
}

/// Whether the bits of these hashes of a key are all set.
#[inline(always)]
pub fn contains(words: &[u64], range: u64, hash: KeyHash, hashes: Range<u32>) -> bool {
    all_set(words, range, numbers(hash, hashes.start), hashes.len() as u32)
}

/// Sets the bits of the first so many hashes of a key; true if one was not set.
#[inline(always)]
pub fn insert(words: &mut [u64], range: u64, hash: KeyHash, count: u32) -> bool {
    set_all(words, range, numbers(hash, 0), count)
}

/// [`contains`] within a kernel.
#[inline(always)]
fn contains_here(words: &[u64], range: u64, hash: KeyHash, hashes: Range<u32>) -> bool {
    all_set_here(words, range, numbers(hash, hashes.start), hashes.len() as u32)
}

/// The numbers that a key's places are taken from, without the first so many.
#[inline(always)]
fn numbers(hash: KeyHash, first: u32) -> (u64, u64) {
    // The range plays no part in the numbers.
    let [number, next] = hash.places(1).after(first).numbers();
    (number, next)
}

/// A bit, and others above it.
#[inline(always)]
fn bit(words: &[u64], position: u64) -> u64 {
    words[(position / 64) as usize] >> (position % 64)
}

/// Sets a bit; not 0 if it was not set.
#[inline(always)]
fn set(words: &mut [u64], position: u64) -> u64 {
    let word = &mut words[(position / 64) as usize];
    let (old, bit) = (*word, 1 << (position % 64));
    *word = old | bit;
    bit & !old
}

/// Whether each key's bits are all set; `found` is as long as `keys`.
#[inline]
pub fn contains_batch(words: &[u64], range: u64, keys: &[KeyHash], hashes: Hashes<'_>, found: &mut [bool]) {
    run(Contains { words, range, keys, hashes, found });
}

/// Sets each key's bits, and says of each whether they were set already, if anybody wants to know.
#[inline]
pub fn insert_batch(
    words: &mut [u64],
    range: u64,
    keys: &[KeyHash],
    hashes: Hashes<'_>,
    verdicts: Option<&mut [Verdict]>,
) {
    match verdicts {
        Some(verdicts) => run(Insert { words, range, keys, hashes, told: verdicts }),
        None => run(Insert { words, range, keys, hashes, told: Nobody }),
    }
}

/// The bits of a key that are looked at first.
const FIRST: u32 = 4;

/// Keys that are asked about together.
const CHUNK: usize = 256;

/// Lines that a batch has asked for at any time.
const LINES_ASKED: usize = 64;

/// Positions that are kept, for four keys in each row: twice as many rows as a key has hashes at most.
type Rows = [[u64; 4]; 128];

/// Fewer keys than these are worked on one by one.
const FEW: usize = 8;

/// Asks for the lines of these hashes of a key.
#[inline(always)]
fn ask(words: &[u64], range: u64, hash: KeyHash, hashes: Range<u32>) {
    let mut places = hash.places(range).after(hashes.start);
    for _ in hashes {
        prefetch(words, (places.place() / 64) as usize);
    }
}

/// The positions of four keys after four keys, some of them ahead of their use, so that their lines are asked for.
///
/// ```text
/// rows    │ 0       1       …  6      │ 7       8      …          four keys with seven hashes each:
///         │ a b c d a b c d …  a b c d│ e f g h e f g h …          a row for each hash
/// ```
struct Fours<'a> {
    keys: &'a [[KeyHash; 4]],
    hashes: Hashes<'a>,
    range: u64,
    /// Rows of four keys.
    length: usize,
    /// How many fours ahead to ask.
    ahead: usize,
    /// One less than the fours that are kept, which are a power of two.
    mask: usize,
    /// Fours whose positions were computed.
    done: usize,
    rows: &'a mut Rows,
}

impl<'a> Fours<'a> {
    /// As many fours as there are; the lines of what remains are asked for at once.
    #[inline(always)]
    fn new(words: &[u64], range: u64, keys: &'a [KeyHash], hashes: Hashes<'a>, rows: &'a mut Rows) -> Self {
        let length = hashes.longest(keys.len());
        let fours = if length <= rows.len() / 2 && keys.len() >= FEW { keys.as_chunks().0 } else { &[] };
        let most = 1 << (rows.len() / length.clamp(1, rows.len() / 2)).ilog2();
        let ahead = (LINES_ASKED / (4 * length.max(1))).clamp(1, most - 1);
        let kept = (ahead + 1).next_power_of_two();
        for (at, key) in keys.iter().enumerate().skip(4 * fours.len()) {
            ask(words, range, *key, hashes.of(at));
        }
        Fours { keys: fours, hashes, range, length, ahead, mask: kept - 1, done: 0, rows }
    }

    /// The rows of a four; those of later ones are computed, and their lines asked for.
    #[inline(always)]
    fn rows(&mut self, ops: impl SimdOps, words: &[u64], at: usize) -> &[[u64; 4]] {
        while self.done <= at + self.ahead && self.done < self.keys.len() {
            self.compute(ops, words);
        }
        let start = (at & self.mask) * self.length;
        &self.rows[start..start + self.length]
    }

    #[inline(always)]
    fn compute(&mut self, ops: impl SimdOps, words: &[u64]) {
        let start = (self.done & self.mask) * self.length;
        let rows = &mut self.rows[start..start + self.length];
        let mut numbers = [[0; 4]; 2];
        for (key, hash) in self.keys[self.done].iter().enumerate() {
            let places = hash.places(self.range).after(self.hashes.first);
            [numbers[0][key], numbers[1][key]] = places.numbers();
        }
        ops.places(numbers, self.range, rows);
        for position in rows.iter().flatten() {
            prefetch(words, (position / 64) as usize);
        }
        self.done += 1;
    }
}

struct Contains<'a> {
    words: &'a [u64],
    range: u64,
    keys: &'a [KeyHash],
    hashes: Hashes<'a>,
    found: &'a mut [bool],
}

impl Kernel for Contains<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Contains { words, range, keys, hashes, found } = self;
        if size_of_val(words) <= ops.near_bytes() {
            // A loop of its own where all keys have as many: each key would ask otherwise.
            if let Some(count) = hashes.same_from_first() {
                keys.iter().zip(found).for_each(|(key, found)| *found = contains_here(words, range, *key, 0..count));
                return;
            }
            for (at, (key, found)) in keys.iter().zip(found).enumerate() {
                *found = contains_here(words, range, *key, hashes.of(at));
            }
            return;
        }
        let mut rows = [[0; 4]; 128];
        for (part, (keys, found)) in keys.chunks(CHUNK).zip(found.chunks_mut(CHUNK)).enumerate() {
            Contains { words, range, keys, hashes: hashes.skip(part * CHUNK), found }.chunk(ops, &mut rows);
        }
    }
}

impl Contains<'_> {
    /// Asks about at most [`CHUNK`] keys: their first bits, then the others of those that had the first.
    #[inline(always)]
    fn chunk(self, ops: impl SimdOps, rows: &mut Rows) {
        let Contains { words, range, keys, hashes, found } = self;
        Contains { words, range, keys, hashes: hashes.first_few(), found: &mut *found }.all(ops, rows);
        let (mut open, mut ends, mut places) = ([KeyHash::default(); CHUNK], [0; CHUNK], [0u8; CHUNK]);
        let mut left = 0;
        for at in 0..keys.len() {
            let own = hashes.of(at);
            // Written anyway, and the next goes to the same place: no branch, since it could not be predicted.
            (open[left], ends[left], places[left]) = (keys[at], own.end, at as u8);
            left += usize::from(found[at] & (own.len() > FIRST as usize));
        }
        let end = if hashes.are_same() { hashes.end } else { End::Each(&ends[..left]) };
        let others = Hashes { first: hashes.first + FIRST, end, ..hashes };
        let mut passed = [false; CHUNK];
        Contains { words, range, keys: &open[..left], hashes: others, found: &mut passed[..left] }.all(ops, rows);
        for (place, passed) in places[..left].iter().zip(passed) {
            found[usize::from(*place)] = passed;
        }
    }

    /// Asks about these hashes of all keys.
    #[inline(always)]
    fn all(self, ops: impl SimdOps, rows: &mut Rows) {
        let Contains { words, range, keys, hashes, found } = self;
        let mut fours = Fours::new(words, range, keys, hashes, rows);
        let count = 4 * fours.keys.len();
        for (at, found) in found[..count].as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let rows = fours.rows(ops, words, at);
            if hashes.are_same() {
                *found = four_contained(words, rows);
                continue;
            }
            for key in 0..4 {
                let mut all = 1;
                for row in &rows[..hashes.of(4 * at + key).len()] {
                    all &= bit(words, row[key]);
                }
                found[key] = all & 1 == 1;
            }
        }
        for at in count..keys.len() {
            found[at] = contains_here(words, range, keys[at], hashes.of(at));
        }
    }
}

/// Whether the bits in all rows are set, for each of four keys.
#[inline(always)]
fn four_contained(words: &[u64], rows: &[[u64; 4]]) -> [bool; 4] {
    let (first, others) = rows.split_at(rows.len().min(FIRST as usize));
    let mut all = [1; 4];
    for row in first {
        for key in 0..4 {
            all[key] &= bit(words, row[key]);
        }
    }
    // One of four is enough to go on for all: a branch for each would cost more than it saves.
    if (all[0] | all[1] | all[2] | all[3]) & 1 == 1 {
        for row in others {
            for key in 0..4 {
                all[key] &= bit(words, row[key]);
            }
        }
    }
    all.map(|all| all & 1 == 1)
}

/// Who is told whether keys are new.
trait Told {
    /// Whether the answer, and so the order of keys, matters to anybody.
    const LISTENS: bool;

    fn tell(&mut self, key: usize, new: bool);
}

struct Nobody;

impl Told for Nobody {
    const LISTENS: bool = false;

    #[inline(always)]
    fn tell(&mut self, _key: usize, _new: bool) {}
}

impl Told for &mut [Verdict] {
    const LISTENS: bool = true;

    #[inline(always)]
    fn tell(&mut self, key: usize, new: bool) {
        self[key] = Verdict::from_seen(!new);
    }
}

struct Insert<'a, T> {
    words: &'a mut [u64],
    range: u64,
    keys: &'a [KeyHash],
    hashes: Hashes<'a>,
    told: T,
}

impl<T: Told> Kernel for Insert<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Insert { words, range, keys, hashes, mut told } = self;
        if size_of_val(words) <= ops.near_bytes() {
            if let Some(count) = hashes.same_from_first() {
                keys.iter().enumerate().for_each(|(at, key)| told.tell(at, insert(words, range, *key, count)));
                return;
            }
            for (at, key) in keys.iter().enumerate() {
                told.tell(at, insert(words, range, *key, hashes.of(at).end));
            }
            return;
        }
        let mut rows = [[0; 4]; 128];
        let mut fours = Fours::new(words, range, keys, hashes, &mut rows);
        let count = 4 * fours.keys.len();
        for at in 0..fours.keys.len() {
            let rows = fours.rows(ops, words, at);
            if !T::LISTENS && hashes.are_same() {
                for row in rows {
                    for position in row {
                        set(words, *position);
                    }
                }
                continue;
            }
            for key in 0..4 {
                let mut missing = 0;
                for row in &rows[..hashes.of(4 * at + key).len()] {
                    missing |= set(words, row[key]);
                }
                told.tell(4 * at + key, missing != 0);
            }
        }
        for (at, key) in keys.iter().enumerate().skip(count) {
            let new = insert(words, range, *key, hashes.of(at).end);
            told.tell(at, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Hashing, Key};
    use crate::simd::run_on_each;

    /// A bit at a time.
    struct Naive {
        bits: Vec<bool>,
    }

    impl Naive {
        fn contains(&self, hash: KeyHash, hashes: std::ops::Range<u32>) -> bool {
            let mut places = hash.places(self.bits.len() as u64).skip(hashes.start as usize).take(hashes.len());
            places.all(|position| self.bits[position as usize])
        }

        fn insert(&mut self, hash: KeyHash, count: u32) -> bool {
            let new = !self.contains(hash, 0..count);
            for position in hash.places(self.bits.len() as u64).take(count as usize) {
                self.bits[position as usize] = true;
            }
            new
        }

        fn words(&self) -> Vec<u64> {
            let word = |bits: &[bool]| bits.iter().rev().fold(0, |word, bit| word << 1 | u64::from(*bit));
            self.bits.chunks(64).map(word).collect()
        }
    }

    /// Inserts some keys with verdicts and others without, and asks for all.
    struct Trial<'h> {
        range: u64,
        keys: &'h [KeyHash],
        counts: &'h [u32],
    }

    /// What is near.
    struct Near;

    impl Kernel for Near {
        type Output = usize;

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> usize {
            ops.near_bytes()
        }
    }

    type Outcome = (Vec<u64>, Vec<Verdict>, [Vec<bool>; 2]);

    impl Kernel for Trial<'_> {
        type Output = Outcome;

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> Outcome {
            let Trial { range, keys, counts } = self;
            let mut words = vec![0; range.div_ceil(64) as usize];
            let mut verdicts = vec![Verdict::Distinct; 1500];
            let hashes = Hashes::each(0, counts);
            Insert { words: &mut words, range, keys: &keys[..1498], hashes, told: &mut verdicts[..1498] }.run(ops);
            let rest = Hashes::each(0, &counts[1498..]);
            Insert { words: &mut words, range, keys: &keys[1498..1500], hashes: rest, told: &mut verdicts[1498..] }
                .run(ops);
            Insert { words: &mut words, range, keys: &keys[1500..2000], hashes: Hashes::all(7), told: Nobody }.run(ops);
            let mut found = [vec![false; keys.len()], vec![false; keys.len()]];
            Contains { words: &words, range, keys, hashes: Hashes::all(7), found: &mut found[0] }.run(ops);
            Contains { words: &words, range, keys, hashes: Hashes::each(2, counts), found: &mut found[1] }.run(ops);
            (words, verdicts, found)
        }
    }

    #[test]
    fn every_instruction_set_and_both_ways_to_ask_do_what_one_bit_at_a_time_does() {
        let keys: Vec<KeyHash> = (0..3000u64).map(|key| (key % 2900).hash_with(&Hashing::default())).collect();
        let counts: Vec<u32> = (0..3000).map(|key| [0, 1, 3, 4, 5, 7, 8, 12, 64][key % 9]).collect();
        // Near, and too large for each of the sizes that are near for some instructions.
        let (plain, wider) = run_on_each(|| Near);
        let far = wider.iter().map(|(_, bytes)| *bytes).chain([plain]).map(|bytes| bytes as u64 * 8 + 77);
        for range in [1, 100, 20_000].into_iter().chain(far) {
            let mut naive = Naive { bits: vec![false; range as usize] };
            let told = (0..1500).map(|at| Verdict::from_seen(!naive.insert(keys[at], counts[at])));
            let verdicts: Vec<Verdict> = told.collect();
            (1500..2000).for_each(|at| _ = naive.insert(keys[at], 7));
            let found = [
                keys.iter().map(|key| naive.contains(*key, 0..7)).collect::<Vec<_>>(),
                (0..3000).map(|at| naive.contains(keys[at], 2..counts[at].max(2))).collect(),
            ];
            let expected = (naive.words(), verdicts, found);
            let (plain, wider) = run_on_each(|| Trial { range, keys: &keys, counts: &counts });
            assert!(plain == expected, "plain code differs at {range} bits");
            for (name, outcome) in wider {
                assert!(outcome == expected, "{name} differs at {range} bits");
            }
            let mut words = vec![0; range.div_ceil(64) as usize];
            for (at, key) in keys[..1500].iter().enumerate() {
                assert_eq!(insert(&mut words, range, *key, counts[at]), expected.1[at].is_distinct());
                assert!(contains(&words, range, *key, 0..counts[at]));
            }
        }
    }
}
