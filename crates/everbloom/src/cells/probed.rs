//! Keys whose bits may lie anywhere: the classic way, as many cache lines as hashes.
//!
//! Where a filter is larger than the cache, a batch asks for lines before it needs them. Most keys that are not inside lack
//! one of their first four bits, so a batch of queries reads only those of every key, and what remains of the few others
//! afterwards.

use crate::key::KeyHash;
use crate::promise::Verdict;
use crate::simd::{CACHED_BYTES, Kernel, SimdOps, prefetch, run};
use std::ops::Range;

/// Which of its hashes a key has: from one on, up to another, for all keys of a batch or for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashes<'h> {
    first: u32,
    end: End<'h>,
}

#[derive(Debug, Clone, Copy)]
enum End<'h> {
    Same(u32),
    Each(&'h [u32]),
}

impl<'h> Hashes<'h> {
    /// So many.
    #[inline(always)]
    pub(crate) fn all(count: u32) -> Self {
        Hashes { first: 0, end: End::Same(count) }
    }

    /// For each key of a batch as many as its number says, without the first.
    #[inline(always)]
    pub(crate) fn each(first: u32, ends: &'h [u32]) -> Self {
        Hashes { first, end: End::Each(ends) }
    }

    /// The hashes of a key.
    #[inline(always)]
    fn of(&self, key: usize) -> Range<u32> {
        let end = match self.end {
            End::Same(end) => end,
            End::Each(ends) => ends[key],
        };
        self.first..end.max(self.first)
    }

    /// Without the first so many keys.
    #[inline(always)]
    fn skip(self, keys: usize) -> Self {
        match self.end {
            End::Same(_) => self,
            End::Each(ends) => Hashes { end: End::Each(&ends[keys..]), ..self },
        }
    }
}

/// Whether the bits of these hashes of a key are all set.
#[inline(always)]
pub(crate) fn contains(words: &[u64], range: u64, hash: KeyHash, hashes: Range<u32>) -> bool {
    let mut probes = hash.probes(range).after(hashes.start);
    let mut count = hashes.len();
    while count >= FIRST as usize {
        // All four are read: a branch for each would cost more than it saves.
        let two = bit(words, probes.position()) & bit(words, probes.position());
        if two & bit(words, probes.position()) & bit(words, probes.position()) & 1 == 0 {
            return false;
        }
        count -= FIRST as usize;
    }
    let mut all = 1;
    for _ in 0..count {
        all &= bit(words, probes.position());
    }
    all & 1 == 1
}

/// Sets the bits of the first so many hashes of a key; true if one was not set.
#[inline(always)]
pub(crate) fn insert(words: &mut [u64], range: u64, hash: KeyHash, count: u32) -> bool {
    let mut probes = hash.probes(range);
    let mut missing = 0;
    for _ in 0..count {
        missing |= set(words, probes.position());
    }
    missing != 0
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
pub(crate) fn contains_batch(words: &[u64], range: u64, keys: &[KeyHash], hashes: Hashes<'_>, found: &mut [bool]) {
    run(Contains { words, range, keys, hashes, found });
}

/// Sets each key's bits, and says of each whether they were set already, if anybody wants to know.
pub(crate) fn insert_batch(
    words: &mut [u64],
    range: u64,
    keys: &[KeyHash],
    hashes: Hashes<'_>,
    verdicts: Option<&mut [Verdict]>,
) {
    run(Insert { words, range, keys, hashes, verdicts });
}

/// The bits of a key that are looked at first.
const FIRST: u32 = 4;

/// Keys that are asked about together.
const CHUNK: usize = 256;

/// Lines that a batch has asked for at any time.
const LINES_ASKED: usize = 64;

/// How many keys ahead to ask, where each has so many lines; 0 if all is in cache, where asking only costs.
#[inline(always)]
fn keys_ahead(words: &[u64], lines: u32) -> usize {
    if size_of_val(words) <= CACHED_BYTES { 0 } else { (LINES_ASKED / lines.max(1) as usize).max(2) }
}

/// Asks for the lines of these hashes of a key.
#[inline(always)]
fn ask(words: &[u64], range: u64, hash: KeyHash, hashes: Range<u32>) {
    let mut probes = hash.probes(range).after(hashes.start);
    for _ in hashes {
        prefetch(words, (probes.position() / 64) as usize);
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
    fn run(self, _: impl SimdOps) {
        let Contains { words, range, keys, hashes, found } = self;
        let ahead = keys_ahead(words, FIRST);
        if ahead == 0 {
            for (at, (key, found)) in keys.iter().zip(found).enumerate() {
                *found = contains(words, range, *key, hashes.of(at));
            }
            return;
        }
        for (part, (keys, found)) in keys.chunks(CHUNK).zip(found.chunks_mut(CHUNK)).enumerate() {
            contains_chunk(words, range, keys, hashes.skip(part * CHUNK), found, ahead);
        }
    }
}

/// Asks about at most [`CHUNK`] keys: their first bits, then the others of those that had the first.
#[inline(always)]
fn contains_chunk(words: &[u64], range: u64, keys: &[KeyHash], hashes: Hashes<'_>, found: &mut [bool], ahead: usize) {
    let first = |at: usize| {
        let all = hashes.of(at);
        all.start..all.end.min(all.start + FIRST)
    };
    for (at, key) in keys.iter().enumerate().take(ahead) {
        ask(words, range, *key, first(at));
    }
    let (mut open, mut left) = ([0u8; CHUNK], 0);
    for at in 0..keys.len() {
        if at + ahead < keys.len() {
            ask(words, range, keys[at + ahead], first(at + ahead));
        }
        found[at] = contains(words, range, keys[at], first(at));
        // Written anyway, and the next goes to the same place: no branch, since it could not be predicted.
        open[left] = at as u8;
        left += usize::from(found[at] & (hashes.of(at).len() > FIRST as usize));
    }
    let others = |at: u8| {
        let all = hashes.of(at.into());
        all.start + FIRST..all.end
    };
    let open = &open[..left];
    for at in open.iter().take(ahead) {
        ask(words, range, keys[usize::from(*at)], others(*at));
    }
    for (index, at) in open.iter().enumerate() {
        if let Some(next) = open.get(index + ahead) {
            ask(words, range, keys[usize::from(*next)], others(*next));
        }
        found[usize::from(*at)] = contains(words, range, keys[usize::from(*at)], others(*at));
    }
}

struct Insert<'a> {
    words: &'a mut [u64],
    range: u64,
    keys: &'a [KeyHash],
    hashes: Hashes<'a>,
    verdicts: Option<&'a mut [Verdict]>,
}

impl Kernel for Insert<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: impl SimdOps) {
        let Insert { words, range, keys, hashes, mut verdicts } = self;
        let ahead = if keys.is_empty() { 0 } else { keys_ahead(words, hashes.of(0).end) };
        for (at, key) in keys.iter().enumerate().take(ahead) {
            ask(words, range, *key, hashes.of(at));
        }
        for at in 0..keys.len() {
            if ahead > 0 && at + ahead < keys.len() {
                ask(words, range, keys[at + ahead], hashes.of(at + ahead));
            }
            let new = insert(words, range, keys[at], hashes.of(at).end);
            if let Some(verdicts) = &mut verdicts {
                verdicts[at] = Verdict::from_seen(!new);
            }
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
            let mut probes = hash.probes(self.bits.len() as u64).skip(hashes.start as usize).take(hashes.len());
            probes.all(|position| self.bits[position as usize])
        }

        fn insert(&mut self, hash: KeyHash, count: u32) -> bool {
            let new = !self.contains(hash, 0..count);
            for position in hash.probes(self.bits.len() as u64).take(count as usize) {
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

    type Outcome = (Vec<u64>, Vec<Verdict>, [Vec<bool>; 2]);

    impl Kernel for Trial<'_> {
        type Output = Outcome;

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> Outcome {
            let Trial { range, keys, counts } = self;
            let mut words = vec![0; range.div_ceil(64) as usize];
            let mut verdicts = vec![Verdict::Distinct; 1500];
            let hashes = Hashes::each(0, counts);
            let told = Some(&mut verdicts[..]);
            Insert { words: &mut words, range, keys: &keys[..1500], hashes, verdicts: told }.run(ops);
            Insert { words: &mut words, range, keys: &keys[1500..2000], hashes: Hashes::all(7), verdicts: None }
                .run(ops);
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
        // In cache, and too large for it.
        for range in [1, 100, 20_000, CACHED_BYTES as u64 * 8 + 77] {
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
