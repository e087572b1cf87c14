//! 512-bit blocks: a key touches one cache line, and in it one bit of each 64-bit word.
//!
//! ```text
//! word      0        1        2              7
//!      ┌────────┬────────┬────────┬─ … ─┬────────┐
//! line │···1····│1·······│······1·│     │··1·····│   the eight bits of one key
//!      └────────┴────────┴────────┴─ … ─┴────────┘
//! bits of `low`  0–5      6–11    12–17     42–47     choose the place in each word
//! ```
//!
//! Batches and single keys run on the widest registers that the machine has.

use crate::Verdict;
use crate::buffer::Line;
use crate::key::KeyHash;
use crate::simd::{Kernel, SimdOps, distance_for, prefetch, run};

/// The words of a block, and so the bits that a key sets.
pub const LANES: u32 = 8;

/// The bit that the key owns in word `lane`.
#[inline]
pub fn lane_bit(low: u64, lane: u32) -> u64 {
    1 << (low >> (6 * lane) & 63)
}

/// The line of a key among `lines`.
#[inline]
pub fn line_of(hash: KeyHash, lines: usize) -> usize {
    hash.index(lines as u64) as usize
}

/// Whether all eight bits of the key are set.
#[inline]
pub fn contains(line: &Line, low: u64) -> bool {
    run(ContainsOne { line, low })
}

/// Sets the key's bits; true if one was missing.
#[inline]
pub fn insert(line: &mut Line, low: u64) -> bool {
    run(InsertOne { line, low })
}

/// Whether each key's bits are all set, as far as there is room in `found`.
#[inline]
pub fn contains_batch(lines: &[Line], hashes: &[KeyHash], found: &mut [bool]) {
    run(Contains { lines, hashes, found });
}

/// Sets each key's bits.
#[inline]
pub fn insert_batch(lines: &mut [Line], hashes: &[KeyHash]) {
    run(Insert { lines, hashes });
}

/// Says of each key whether its bits were all set, and sets them, as far as there is room in `verdicts`.
#[inline]
pub fn observe_batch(lines: &mut [Line], hashes: &[KeyHash], verdicts: &mut [Verdict]) {
    run(Observe { lines, hashes, verdicts });
}

/// Asks for the lines of keys ahead of a loop over them: call [`PrefetchAhead::prefetch_next`] before each key. (A
/// loop whose work is a closure, as in `pipelined`, would not be compiled for newer machines.)
pub struct PrefetchAhead<'h> {
    next: std::slice::Iter<'h, KeyHash>,
}

impl<'h> PrefetchAhead<'h> {
    /// Asks for the first lines, if the batch is long enough for asking to pay.
    #[inline(always)]
    pub fn new(lines: &[Line], hashes: &'h [KeyHash]) -> Self {
        let distance = distance_for(lines);
        if distance == 0 || hashes.len() <= distance {
            return PrefetchAhead { next: [].iter() };
        }
        let (first, rest) = hashes.split_at(distance);
        first.iter().for_each(|hash| prefetch(lines, line_of(*hash, lines.len())));
        PrefetchAhead { next: rest.iter() }
    }

    /// Asks for one line more.
    #[inline(always)]
    pub fn prefetch_next(&mut self, lines: &[Line]) {
        if let Some(hash) = self.next.next() {
            prefetch(lines, line_of(*hash, lines.len()));
        }
    }
}

struct ContainsOne<'a> {
    line: &'a Line,
    low: u64,
}

impl Kernel for ContainsOne<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, ops: impl SimdOps) -> bool {
        ops.block_contains(&self.line.0, self.low)
    }
}

struct InsertOne<'a> {
    line: &'a mut Line,
    low: u64,
}

impl Kernel for InsertOne<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, ops: impl SimdOps) -> bool {
        ops.block_insert(&mut self.line.0, self.low)
    }
}

struct Contains<'a> {
    lines: &'a [Line],
    hashes: &'a [KeyHash],
    found: &'a mut [bool],
}

impl Kernel for Contains<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Contains { lines, hashes, found } = self;
        let mut ahead = PrefetchAhead::new(lines, hashes);
        for (hash, found) in hashes.iter().zip(found) {
            ahead.prefetch_next(lines);
            *found = ops.block_contains(&lines[line_of(*hash, lines.len())].0, hash.low);
        }
    }
}

struct Insert<'a> {
    lines: &'a mut [Line],
    hashes: &'a [KeyHash],
}

impl Kernel for Insert<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Insert { lines, hashes } = self;
        let mut ahead = PrefetchAhead::new(lines, hashes);
        for hash in hashes {
            ahead.prefetch_next(lines);
            let at = line_of(*hash, lines.len());
            ops.block_insert(&mut lines[at].0, hash.low);
        }
    }
}

struct Observe<'a> {
    lines: &'a mut [Line],
    hashes: &'a [KeyHash],
    verdicts: &'a mut [Verdict],
}

impl Kernel for Observe<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Observe { lines, hashes, verdicts } = self;
        let mut ahead = PrefetchAhead::new(lines, hashes);
        for (hash, verdict) in hashes.iter().zip(verdicts) {
            ahead.prefetch_next(lines);
            let at = line_of(*hash, lines.len());
            *verdict = Verdict::from_seen(!ops.block_insert(&mut lines[at].0, hash.low));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Hashing, Key};
    use crate::simd::run_on_each;

    #[test]
    fn a_key_sets_one_bit_in_each_word() {
        let mut line = Line([0; 8]);
        assert!(!contains(&line, 0x0123_4567_89ab_cdef));
        assert!(insert(&mut line, 0x0123_4567_89ab_cdef));
        assert!((0..LANES).all(|lane| line.0[lane as usize] == lane_bit(0x0123_4567_89ab_cdef, lane)));
        assert!(contains(&line, 0x0123_4567_89ab_cdef));
        assert!(!insert(&mut line, 0x0123_4567_89ab_cdef));
        line.0[5] = 0;
        assert!(!contains(&line, 0x0123_4567_89ab_cdef));
    }

    /// Observes some keys, inserts others, asks for all.
    struct Trial<'h> {
        lines: usize,
        hashes: &'h [KeyHash],
    }

    impl Kernel for Trial<'_> {
        type Output = (Vec<Line>, Vec<Verdict>, Vec<bool>);

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> Self::Output {
            let Trial { lines, hashes } = self;
            let mut cells = vec![Line([0; 8]); lines];
            let (mut verdicts, mut found) = (vec![Verdict::Distinct; 3000], vec![false; hashes.len()]);
            Observe { lines: &mut cells, hashes: &hashes[..3000], verdicts: &mut verdicts }.run(ops);
            Insert { lines: &mut cells, hashes: &hashes[3000..3300] }.run(ops);
            Contains { lines: &cells, hashes, found: &mut found }.run(ops);
            (cells, verdicts, found)
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits_and_verdicts() {
        for lines in [1, 3, 1000, 20_000] {
            let hashes: Vec<KeyHash> = (0..5000u64).map(|key| (key % 3500).hash_with(&Hashing::default())).collect();
            let (plain, wider) = run_on_each(|| Trial { lines, hashes: &hashes });
            let single = hashes.iter().map(|hash| contains(&plain.0[line_of(*hash, lines)], hash.low));
            assert!(single.eq(plain.2.iter().copied()));
            for (name, outcome) in wider {
                assert!(outcome == plain, "{name} differs at {lines} lines");
            }
        }
    }

    #[test]
    fn single_insertions_equal_batched_ones() {
        let hashes: Vec<KeyHash> = (0..2000u64).map(|key| key.hash_with(&Hashing::default())).collect();
        let mut batched = vec![Line([0; 8]); 64];
        let mut single = batched.clone();
        insert_batch(&mut batched, &hashes);
        for hash in &hashes {
            let line = &mut single[line_of(*hash, 64)];
            let new = !contains(line, hash.low);
            assert_eq!(insert(line, hash.low), new);
        }
        assert_eq!(batched, single);
    }
}
