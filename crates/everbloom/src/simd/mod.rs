//! Wide registers, prefetch and page advice: the only unsafe code of this crate.
//!
//! The instruction set is chosen at run time, once per batch; every path gives the same verdicts as
//! the plain code in [`blocks`], which the tests hold it to.

mod advice;
mod machine;
pub(crate) mod slices;
mod visit;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::cells::blocks;
use crate::cells::buffer::Line;
use crate::key::KeyHash;
use crate::promise::Verdict;

pub(crate) use advice::advise_huge_pages;
pub(crate) use machine::{Machine, Plain, Work, quotient, run};
pub(crate) use visit::Visit;

/// An instruction set that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// Plain 64-bit code.
    Portable,
    /// 256-bit registers.
    Avx2,
    /// 512-bit registers.
    Avx512,
}

impl Isa {
    /// The best set that this machine has.
    #[inline]
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Isa::Avx2;
            }
        }
        Isa::Portable
    }

    /// Every set that this machine has.
    pub fn available() -> Vec<Self> {
        let best = Self::best();
        [Isa::Portable, Isa::Avx2, Isa::Avx512].into_iter().take_while(|isa| *isa as u8 <= best as u8).collect()
    }
}

/// How many keys ahead of the work their lines are asked for.
pub(crate) const PREFETCH_DISTANCE: usize = 32;

/// Buffers up to this size live in the second-level cache, where asking ahead only costs.
pub(crate) const CACHED_BYTES: usize = 1 << 20;

/// Asks for the line of `items[index]` to be brought into the second-level cache, which takes more
/// requests at a time than the first (256 MiB: 15.0 ns a query instead of 17.3; 8 MiB: no difference).
/// Any index is fine.
#[inline(always)]
pub fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let address = items.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch never faults, whatever the address, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Runs `act` on each index of `0..count`, having called `ask` a fixed distance ahead. Batches no
/// longer than the distance ask for nothing: see [`Filter::keys_ahead`](crate::Filter::keys_ahead).
#[inline(always)]
pub(crate) fn pipelined<S: ?Sized>(
    shared: &mut S,
    count: usize,
    distance: usize,
    ask: impl Fn(&S, usize),
    mut act: impl FnMut(&mut S, usize),
) {
    let ahead = if distance == 0 { 0 } else { count.saturating_sub(distance) };
    if ahead > 0 {
        (0..distance).for_each(|index| ask(shared, index));
    }
    for index in 0..ahead {
        ask(shared, index + distance);
        act(shared, index);
    }
    for index in ahead..count {
        act(shared, index);
    }
}

/// [`pipelined`] for loops over keys with one line each, which the high half of the hash chooses: call
/// [`AskAhead::ask`] before each key. (A loop whose work is a closure would not be inlined whole.)
pub(crate) struct AskAhead<'h> {
    next: std::slice::Iter<'h, KeyHash>,
}

impl<'h> AskAhead<'h> {
    /// Asks for the first lines, if the batch is long enough for asking to pay.
    #[inline(always)]
    pub(crate) fn new(lines: &[Line], hashes: &'h [KeyHash]) -> Self {
        let distance = distance_for(lines);
        if distance == 0 || hashes.len() <= distance {
            return AskAhead { next: [].iter() };
        }
        let (first, rest) = hashes.split_at(distance);
        first.iter().for_each(|hash| prefetch(lines, blocks::line_of(*hash, lines.len())));
        AskAhead { next: rest.iter() }
    }

    /// Asks for one line more.
    #[inline(always)]
    pub(crate) fn ask(&mut self, lines: &[Line]) {
        if let Some(hash) = self.next.next() {
            prefetch(lines, blocks::line_of(*hash, lines.len()));
        }
    }
}

/// The distance at which to ask ahead in a buffer of this many lines.
#[inline]
pub(crate) fn distance_for(lines: &[Line]) -> usize {
    if size_of_val(lines) <= CACHED_BYTES { 0 } else { PREFETCH_DISTANCE }
}

/// [`distance_for`] where every key asks for several lines, all over the buffer.
#[inline]
pub(crate) fn spread_distance_for<T>(items: &[T]) -> usize {
    if size_of_val(items) <= CACHED_BYTES { 0 } else { PREFETCH_DISTANCE / 4 }
}

macro_rules! dispatch {
    ($isa:expr, $call:ident($($argument:expr),*)) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::best` reports AVX-512F only where it was detected.
            Isa::Avx512 => unsafe { x86::avx512::$call($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::best` reports AVX2 only where it was detected.
            Isa::Avx2 => unsafe { x86::avx2::$call($($argument),*) },
            _ => portable::$call($($argument),*),
        }
    };
}

/// Whether each key's bits are all set; `found` is as long as `hashes`.
pub fn contains_blocks(isa: Isa, lines: &[Line], hashes: &[KeyHash], found: &mut [bool]) {
    assert!(!lines.is_empty() && hashes.len() == found.len());
    let isa = isa_or_best(isa);
    dispatch!(isa, contains(lines, hashes, found));
}

/// Sets each key's bits.
pub fn insert_blocks(isa: Isa, lines: &mut [Line], hashes: &[KeyHash]) {
    assert!(!lines.is_empty());
    let isa = isa_or_best(isa);
    dispatch!(isa, insert(lines, hashes));
}

/// Says of each key whether its bits were all set, and sets them.
pub fn observe_blocks(isa: Isa, lines: &mut [Line], hashes: &[KeyHash], verdicts: &mut [Verdict]) {
    assert!(!lines.is_empty() && hashes.len() == verdicts.len());
    let isa = isa_or_best(isa);
    dispatch!(isa, observe(lines, hashes, verdicts));
}

/// Proof that this machine has an instruction set: a filter that keeps one need not look again for
/// every key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected(Isa);

impl Detected {
    /// The best set that this machine has.
    pub fn best() -> Self {
        Detected(Isa::best())
    }
}

/// Whether one key's bits are all set in its line.
#[inline(always)]
pub fn contains_block(isa: Detected, line: &Line, low: u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if isa.0 == Isa::Avx512 {
        // SAFETY: only `Detected::best` makes the proof, and only where AVX-512F was detected.
        return unsafe { x86::avx512::contains_inline(line, low) };
    }
    contains_block_called(isa.0, line, low)
}

/// The rest of [`contains_block`], out of line.
fn contains_block_called(isa: Isa, line: &Line, low: u64) -> bool {
    dispatch!(isa, contains_one(line, low))
}

/// Sets one key's bits; true if one was missing.
#[inline]
pub fn insert_block(line: &mut Line, low: u64) -> bool {
    dispatch!(Isa::best(), insert_one(line, low))
}

/// Never a wider set than the machine has, whatever the caller says.
#[inline]
fn isa_or_best(isa: Isa) -> Isa {
    if isa as u8 <= Isa::best() as u8 { isa } else { Isa::best() }
}

/// The loops over a batch, for one instruction set's single-key functions.
macro_rules! batch_loops {
    ($($attribute:meta)?) => {
        $(#[$attribute])?
        pub(crate) fn contains(lines: &[Line], hashes: &[KeyHash], found: &mut [bool]) {
            let at = |index: usize| blocks::line_of(hashes[index], lines.len());
            pipelined(
                &mut (),
                hashes.len().min(found.len()),
                distance_for(lines),
                |_, index| prefetch(lines, at(index)),
                |_, index| found[index] = contains_one(&lines[at(index)], hashes[index].low),
            );
        }

        $(#[$attribute])?
        pub(crate) fn insert(lines: &mut [Line], hashes: &[KeyHash]) {
            let count = lines.len();
            let distance = distance_for(lines);
            let at = |index: usize| blocks::line_of(hashes[index], count);
            pipelined(
                &mut *lines,
                hashes.len(),
                distance,
                |lines, index| prefetch(lines, at(index)),
                |lines, index| {
                    insert_one(&mut lines[at(index)], hashes[index].low);
                },
            );
        }

        $(#[$attribute])?
        pub(crate) fn observe(lines: &mut [Line], hashes: &[KeyHash], verdicts: &mut [Verdict]) {
            let count = lines.len();
            let distance = distance_for(lines);
            let at = |index: usize| blocks::line_of(hashes[index], count);
            pipelined(
                &mut *lines,
                hashes.len().min(verdicts.len()),
                distance,
                |lines, index| prefetch(lines, at(index)),
                |lines, index| {
                    let new = insert_one(&mut lines[at(index)], hashes[index].low);
                    verdicts[index] = Verdict::from_seen(!new);
                },
            );
        }
    };
}
use batch_loops;

mod portable {
    use super::*;
    use blocks::{contains as contains_one_block, insert as insert_one_block};

    #[inline]
    pub(crate) fn contains_one(line: &Line, low: u64) -> bool {
        contains_one_block(line, low)
    }

    #[inline]
    pub(crate) fn insert_one(line: &mut Line, low: u64) -> bool {
        insert_one_block(line, low)
    }

    batch_loops!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Hashing, Key};

    #[test]
    fn every_instruction_set_gives_the_same_bits_and_verdicts() {
        for lines in [1, 3, 1000, 20_000] {
            let hashes: Vec<KeyHash> = (0..5000u64).map(|key| (key % 3500).hash_with(&Hashing::default())).collect();
            let run = |isa| {
                let mut cells = vec![Line([0; 8]); lines];
                let mut verdicts = vec![Verdict::Distinct; 3000];
                observe_blocks(isa, &mut cells, &hashes[..3000], &mut verdicts);
                insert_blocks(isa, &mut cells, &hashes[3000..3300]);
                let mut found = vec![false; hashes.len()];
                contains_blocks(isa, &cells, &hashes, &mut found);
                (cells, verdicts, found)
            };
            let plain = run(Isa::Portable);
            let single: Vec<bool> = hashes
                .iter()
                .map(|hash| contains_block(Detected::best(), &plain.0[blocks::line_of(*hash, lines)], hash.low))
                .collect();
            assert_eq!(single, plain.2);
            for isa in Isa::available() {
                assert!(run(isa) == plain, "{isa:?} differs at {lines} lines");
            }
        }
    }

    #[test]
    fn single_insertions_equal_batched_ones() {
        let hashes: Vec<KeyHash> = (0..2000u64).map(|key| key.hash_with(&Hashing::default())).collect();
        let mut batched = vec![Line([0; 8]); 64];
        let mut single = batched.clone();
        insert_blocks(Isa::best(), &mut batched, &hashes);
        for hash in &hashes {
            let line = &mut single[blocks::line_of(*hash, 64)];
            let new = !blocks::contains(line, hash.low);
            assert_eq!(insert_block(line, hash.low), new);
        }
        assert_eq!(batched, single);
    }
}
