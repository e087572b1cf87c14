//! Loops written once and compiled for the machine that they run on, with the same outcome on each.

use super::level::InstructionSet;
use super::parity;
use super::prefetch::CACHED_BYTES;
use super::visit::{self, Visit};
#[cfg(target_arch = "x86_64")]
use super::x86;

/// A loop that gains from being compiled for newer machines as well.
pub trait Kernel {
    /// What the loop gives.
    type Output;

    /// Runs it. Mark it `#[inline(always)]`: it then becomes part of a function that is compiled for newer
    /// machines, and so does everything it calls that is inlined. Closures usually are not.
    fn run(self, ops: impl SimdOps) -> Self::Output;
}

/// Runs a kernel with the widest registers that this machine has. Part of its caller, since a single key would feel one call
/// more.
#[inline(always)]
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match InstructionSet::used() {
        // SAFETY: the instructions were detected.
        InstructionSet::Avx512 => unsafe { x86::run_avx512(kernel) },
        // SAFETY: the instructions were detected.
        InstructionSet::Avx2 => unsafe { x86::run_avx2(kernel) },
        InstructionSet::Portable => run_plain(kernel),
    }
    #[cfg(not(target_arch = "x86_64"))]
    kernel.run(Plain)
}

/// Apart from the callers of [`run`], few of which ever need it.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn run_plain<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Plain)
}

/// The outcome of a kernel on plain code, and on each kind of wider registers that this machine has: for tests.
pub fn run_on_each<K: Kernel>(kernel: impl Fn() -> K) -> (K::Output, Vec<(&'static str, K::Output)>) {
    let plain = kernel().run(Plain);
    #[cfg(target_arch = "x86_64")]
    let wider = [
        // SAFETY: only run where the instructions were detected.
        (InstructionSet::detected() >= InstructionSet::Avx2).then(|| ("AVX2", unsafe { x86::run_avx2(kernel()) })),
        (InstructionSet::detected() == InstructionSet::Avx512).then(|| {
            // SAFETY: as above.
            ("AVX-512", unsafe { x86::run_avx512(kernel()) })
        }),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let wider: [Option<(&'static str, K::Output)>; 0] = [];
    (plain, wider.into_iter().flatten().collect())
}

/// 32 words, in each of which a key has one bit.
pub type Slices = [u64; 32];

/// Where a key's bit lies in each of 32 words: the low six bits of a byte for each, eight to a number.
pub type SlicePlaces = [u64; 4];

/// How far the older of two numbers is turned before it is added to the other: so that the high bits of their sum, which
/// are a place, come from bits of it that were no place yet.
pub const PLACE_TURN: u32 = 27;

/// What wide registers do in a few instructions that no compiler finds by itself. The defaults are plain code and
/// say what every implementation must do.
pub trait SimdOps: Copy {
    /// Whether loops over arrays of 64-bit numbers are worth writing.
    #[inline(always)]
    fn has_wide_registers(self) -> bool {
        false
    }

    /// Memory up to this size is near enough for places that do not depend on each other to be visited without asking for
    /// their lines beforehand.
    #[inline(always)]
    fn near_bytes(self) -> usize {
        CACHED_BYTES
    }

    /// Whether a key's bit is set in each of eight words. Six bits of `low` say where it is in each word.
    #[inline(always)]
    fn block_contains(self, block: &[u64; 8], low: u64) -> bool {
        // Two words decide most queries for absent keys. The others are read together: a branch for each
        // would cost more than it saves.
        let missing = |words: std::ops::Range<usize>| {
            words.fold(0, |missing, word| missing | !block[word] & block_bit(low, word))
        };
        missing(0..2) == 0 && missing(2..8) == 0
    }

    /// Sets a key's bit in each of eight words; true if one was missing.
    #[inline(always)]
    fn block_insert(self, block: &mut [u64; 8], low: u64) -> bool {
        let mut missing = 0;
        for (word, bits) in block.iter_mut().enumerate() {
            let bit = block_bit(low, word);
            missing |= !*bits & bit;
            *bits |= bit;
        }
        missing != 0
    }

    /// The words in which the key's bit is set, as bits.
    #[inline(always)]
    fn slice_hits(self, slices: &Slices, places: &SlicePlaces) -> u32 {
        (0..32).fold(0, |hits, word| hits | u32::from(slices[word] & slice_bit(places, word) != 0) << word)
    }

    /// Sets the key's bit in the words that `which` has a bit for.
    #[inline(always)]
    fn slice_set(self, slices: &mut Slices, places: &SlicePlaces, which: u32) {
        let mut left = which;
        while left != 0 {
            let word = left.trailing_zeros() as usize;
            slices[word] |= slice_bit(places, word);
            left &= left - 1;
        }
    }

    /// Which of eight numbers are equal to one, as bits.
    #[inline(always)]
    fn equal(self, numbers: &[u64; 8], wanted: u64) -> u32 {
        (0..8).fold(0, |equal, place| equal | u32::from(numbers[place] == wanted) << place)
    }

    /// Which of 64 bytes are equal to one, as bits.
    #[inline(always)]
    fn equal_bytes(self, bytes: &[u8; 64], wanted: u8) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().rev().fold(0, |equal, word| {
            let word = u64::from_le_bytes(*word) ^ u64::from_ne_bytes([wanted; 8]);
            // The high bit of every byte that is zero, then all of them side by side.
            let zeros = !(((word & LOW) + LOW) | word | LOW);
            equal << 8 | (zeros >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
        })
    }

    /// Which of eight words lack a bit that is wanted, as bits.
    #[inline(always)]
    fn missing_bits(self, words: &[u64; 8], wanted: &[u64; 8]) -> u32 {
        (0..8).fold(0, |missing, word| missing | u32::from(wanted[word] & !words[word] != 0) << word)
    }

    /// The lowest `count` set bits, or all if there are fewer.
    #[inline(always)]
    fn lowest_set(self, bits: u64, count: u32) -> u64 {
        let above = (0..count).fold(bits, |bits, _| bits & bits.wrapping_sub(1));
        bits & !above
    }

    /// The first places of four keys in `0..range`, a row for each: the scaled numbers of a sequence whose first two are given
    /// and whose others are the one before plus the one before that, turned by 27 bits.
    #[inline(always)]
    fn places(self, numbers: [[u64; 4]; 2], range: u64, rows: &mut [[u64; 4]]) {
        places(numbers, range, rows);
    }

    /// Whether an odd number of bits is selected in each of eight columns, a word of which is in each of three blocks; a
    /// bit for each.
    #[inline(always)]
    fn odd_columns(self, blocks: [&[u64; 8]; 3], selections: [u64; 3]) -> u32 {
        parity::odd_columns(blocks, selections)
    }

    /// An arrival with `K` counters of `D` bits, up to 3, at its line; whether none of them was zero.
    #[inline(always)]
    fn visit<const D: u32, const K: usize>(self, line: &mut [u64; 8], visit: &Visit) -> bool {
        visit::visit::<D, K>(line, visit)
    }
}

/// The bit that a key owns in a word of its block.
#[inline(always)]
fn block_bit(low: u64, word: usize) -> u64 {
    1 << (low >> (6 * word) & 63)
}

/// The bit that a key owns in one of 32 words.
#[inline(always)]
fn slice_bit(places: &SlicePlaces, word: usize) -> u64 {
    1 << (places[word / 8] >> (word % 8 * 8) & 63)
}

/// The plain code of [`SimdOps::places`], for any range.
#[inline(always)]
pub(super) fn places([mut numbers, mut next]: [[u64; 4]; 2], range: u64, rows: &mut [[u64; 4]]) {
    for row in rows {
        for key in 0..4 {
            row[key] = ((u128::from(numbers[key]) * u128::from(range)) >> 64) as u64;
            (numbers[key], next[key]) = (next[key], numbers[key].rotate_left(PLACE_TURN).wrapping_add(next[key]));
        }
    }
}

/// Plain 64-bit code, for any machine.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl SimdOps for Plain {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers to try operations on.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
            mixed ^ mixed >> 32
        }

        /// One bit in four is set.
        fn sparse(&mut self) -> u64 {
            self.next() & self.next()
        }
    }

    /// What came of one trial of every operation.
    #[derive(Debug, Clone, PartialEq)]
    struct Outcome {
        /// Whether a key was there, and was missing; and the block after it was inserted.
        block: (bool, bool, [u64; 8]),
        /// The slices that had a key, and all of them after some were set.
        slices: (u32, Slices),
        equal: (u32, u64),
        missing: u32,
        lowest: u64,
        positions: [[u64; 4]; 5],
        odd: u32,
    }

    struct Trials;

    impl Kernel for Trials {
        type Output = Vec<Outcome>;

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> Self::Output {
            let mut numbers = Numbers(3);
            let mut outcomes = Vec::new();
            for trial in 0..20_000u32 {
                let (mut block, low) = ([0; 8], numbers.next());
                for word in &mut block {
                    *word = numbers.next() | numbers.next();
                }
                if trial % 4 == 0 {
                    Plain.block_insert(&mut block, low);
                    block[trial as usize / 4 % 8] &= numbers.next() | numbers.next();
                }
                let found = ops.block_contains(&block, low);
                let was_missing = ops.block_insert(&mut block, low);

                let mut slices = std::array::from_fn(|_| numbers.sparse());
                let places = std::array::from_fn(|_| numbers.next());
                let hits = ops.slice_hits(&slices, &places);
                let which = numbers.sparse() as u32;
                ops.slice_set(&mut slices, &places, which);
                assert_eq!(ops.slice_hits(&slices, &places), hits | which);

                let few = std::array::from_fn(|_| numbers.next() % 3);
                let bytes = std::array::from_fn(|_| [10, 138, 11, 9][numbers.next() as usize % 4]);
                let equal = (ops.equal(&few, numbers.next() % 3), ops.equal_bytes(&bytes, 10));
                let words = std::array::from_fn(|_| numbers.sparse());
                let wanted = std::array::from_fn(|_| numbers.sparse() & numbers.sparse() & numbers.sparse());
                let missing = ops.missing_bits(&words, &wanted);
                let lowest = ops.lowest_set(numbers.sparse(), trial % 66);
                let keys = std::array::from_fn(|_| std::array::from_fn(|_| numbers.next()));
                let range = [1, 77, 1 << 21, u64::from(u32::MAX), 1 << 32, u64::MAX][trial as usize % 6];
                let mut positions = [[0; 4]; 5];
                ops.places(keys, range, &mut positions);
                let odd = ops.odd_columns([&block, &words, &wanted], std::array::from_fn(|_| numbers.next()));
                let (block, slices) = ((found, was_missing, block), (hits, slices));
                outcomes.push(Outcome { block, slices, equal, missing, lowest, positions, odd });
            }
            outcomes
        }
    }

    #[test]
    fn wide_registers_do_what_plain_code_does() {
        let (plain, wider) = run_on_each(|| Trials);
        for (name, outcomes) in wider {
            assert!(outcomes == plain, "{name} differs");
        }
        assert!(run(Trials) == plain);
        // The trials are worth something: both answers, and hits enough to be wrong about.
        assert!(plain.iter().any(|outcome| outcome.block.0) && plain.iter().any(|outcome| outcome.block.1));
        assert!(plain.iter().all(|outcome| outcome.block.0 != outcome.block.1));
        assert!(plain.iter().any(|outcome| outcome.slices.0.count_ones() > 8));
    }

    #[test]
    fn plain_code_does_what_it_says() {
        assert_eq!((0..4).map(|count| Plain.lowest_set(0b1010, count)).collect::<Vec<_>>(), [0, 0b10, 0b1010, 0b1010]);
        assert_eq!(Plain.missing_bits(&[1, 0, 2, 7, 0, 0, 0, 8], &[1, 1, 3, 5, 0, 0, 0, 8]), 0b0110);
        assert_eq!(Plain.equal(&[7, 0, 7, 1, 2, 3, 4, 7], 7), 0b1000_0101);
        let bytes = std::array::from_fn(|at| if [0, 9, 63].contains(&at) { b'\n' } else { b'\n' | 128 });
        assert_eq!(Plain.equal_bytes(&bytes, b'\n'), 1 | 1 << 9 | 1 << 63);
        let mut block = [0; 8];
        assert!(Plain.block_insert(&mut block, 0o12_34_56_70_01_23_45_67));
        assert_eq!(block.map(u64::trailing_zeros), [0o67, 0o45, 0o23, 0o01, 0o70, 0o56, 0o34, 0o12]);
        let mut slices = [0; 32];
        Plain.slice_set(&mut slices, &[0x0706_0504_0302_0100, 0, 0, 63 << 56], 1 << 3 | 1 << 9 | 1 << 31);
        assert_eq!((slices[3], slices[9], slices[31]), (1 << 3, 1, 1 << 63));
    }
}
