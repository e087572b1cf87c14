//! The operations on 256-bit and 512-bit registers.

use super::bits::{self, Numbers};
use super::ops::{self, Kernel, PLACE_TURN, SimdOps, SlicePlaces, Slices};
use super::prefetch::CACHED_BYTES;
use super::visit::{Visit, wide};
use std::arch::x86_64::*;

/// Runs a kernel compiled for 256-bit registers.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

/// Runs a kernel compiled for 512-bit registers.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx2,bmi1,bmi2,popcnt")]
pub(super) fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(Avx2(())))
}

/// [`bits::all_set_here`] with shifts that need no fixed register: a key by itself gains from no wide ones.
#[target_feature(enable = "bmi1,bmi2")]
pub(super) fn all_set(words: &[u64], range: u64, numbers: Numbers, count: u32) -> bool {
    bits::all_set_here(words, range, numbers, count)
}

/// Proof of 256-bit registers: only [`run_avx2`] and [`run_avx512`] make one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

/// Proof of 512-bit registers: only [`run_avx512`] makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(Avx2);

impl SimdOps for Avx2 {
    #[inline(always)]
    fn has_wide_registers(self) -> bool {
        true
    }

    #[inline(always)]
    fn block_contains(self, block: &[u64; 8], low: u64) -> bool {
        // SAFETY: a value of this type exists only where AVX2 was detected. So below.
        unsafe { avx2::block_contains(block, low) }
    }

    #[inline(always)]
    fn block_insert(self, block: &mut [u64; 8], low: u64) -> bool {
        // SAFETY: as for `block_contains`.
        unsafe { avx2::block_insert(block, low) }
    }

    #[inline(always)]
    fn slice_hits(self, slices: &Slices, places: &SlicePlaces) -> u32 {
        // SAFETY: as for `block_contains`.
        unsafe { avx2::slice_hits(slices, places) }
    }

    #[inline(always)]
    fn slice_set(self, slices: &mut Slices, places: &SlicePlaces, which: u32) {
        // SAFETY: as for `block_contains`.
        unsafe { avx2::slice_set(slices, places, which) }
    }

    #[inline(always)]
    fn equal(self, numbers: &[u64; 8], wanted: u64) -> u32 {
        // SAFETY: as for `block_contains`.
        unsafe { avx2::equal(numbers, wanted) }
    }

    #[inline(always)]
    fn equal_bytes(self, bytes: &[u8; 64], wanted: u8) -> u64 {
        // SAFETY: as for `block_contains`.
        unsafe { avx2::equal_bytes(bytes, wanted) }
    }

    #[inline(always)]
    fn lowest_set(self, bits: u64, count: u32) -> u64 {
        // SAFETY: as for `block_contains`; BMI2 was detected with AVX2.
        unsafe { avx2::lowest_set(bits, count) }
    }

    #[inline(always)]
    fn places(self, numbers: [[u64; 4]; 2], range: u64, rows: &mut [[u64; 4]]) {
        match range >> 32 {
            // SAFETY: as for `block_contains`.
            0 => unsafe { avx2::places(numbers, range, rows) },
            _ => ops::places(numbers, range, rows),
        }
    }

    #[inline(always)]
    fn odd_columns(self, blocks: [&[u64; 8]; 3], selections: [u64; 3]) -> u32 {
        // SAFETY: as for `block_contains`.
        unsafe { avx2::odd_columns(blocks, selections) }
    }
}

impl SimdOps for Avx512 {
    #[inline(always)]
    fn has_wide_registers(self) -> bool {
        true
    }

    /// Processors that have these registers mostly look far enough ahead to hide the third-level cache. On the one that this was
    /// measured on (AMD's fifth Zen, 32 MiB of it), batches took half to four fifths of the time up to 8 MiB, as long with 16, and twice
    /// as long beyond.
    #[inline(always)]
    fn near_bytes(self) -> usize {
        8 * CACHED_BYTES
    }

    #[inline(always)]
    fn block_contains(self, block: &[u64; 8], low: u64) -> bool {
        // SAFETY: a value of this type exists only where AVX-512F, DQ and BW were detected. So below.
        unsafe { avx512::block_contains(block, low) }
    }

    #[inline(always)]
    fn block_insert(self, block: &mut [u64; 8], low: u64) -> bool {
        // SAFETY: as for `block_contains`.
        unsafe { avx512::block_insert(block, low) }
    }

    #[inline(always)]
    fn slice_hits(self, slices: &Slices, places: &SlicePlaces) -> u32 {
        self.0.slice_hits(slices, places)
    }

    #[inline(always)]
    fn slice_set(self, slices: &mut Slices, places: &SlicePlaces, which: u32) {
        self.0.slice_set(slices, places, which);
    }

    #[inline(always)]
    fn equal(self, numbers: &[u64; 8], wanted: u64) -> u32 {
        // SAFETY: as for `block_contains`.
        unsafe { avx512::equal(numbers, wanted) }
    }

    #[inline(always)]
    fn equal_bytes(self, bytes: &[u8; 64], wanted: u8) -> u64 {
        // SAFETY: as for `block_contains`.
        unsafe { avx512::equal_bytes(bytes, wanted) }
    }

    #[inline(always)]
    fn missing_bits(self, words: &[u64; 8], wanted: &[u64; 8]) -> u32 {
        // SAFETY: as for `block_contains`.
        unsafe { avx512::missing_bits(words, wanted) }
    }

    #[inline(always)]
    fn lowest_set(self, bits: u64, count: u32) -> u64 {
        self.0.lowest_set(bits, count)
    }

    #[inline(always)]
    fn places(self, numbers: [[u64; 4]; 2], range: u64, rows: &mut [[u64; 4]]) {
        self.0.places(numbers, range, rows);
    }

    #[inline(always)]
    fn odd_columns(self, blocks: [&[u64; 8]; 3], selections: [u64; 3]) -> u32 {
        self.0.odd_columns(blocks, selections)
    }

    #[inline(always)]
    fn visit<const D: u32, const K: usize>(self, line: &mut [u64; 8], visit: &Visit) -> bool {
        // SAFETY: as for `block_contains`.
        unsafe { wide::visit::<D, K>(line, visit) }
    }
}

/// Where in `low` the six bits of each word of a block begin.
const SHIFTS: [i64; 8] = [0, 6, 12, 18, 24, 30, 36, 42];

mod avx2 {
    use super::*;

    /// Loads four words, the first of them number `4 * quarter`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(words: &[u64], quarter: usize) -> __m256i {
        let four = &words[4 * quarter..4 * quarter + 4];
        // SAFETY: four words are 32 bytes; the load needs no alignment.
        unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }
    }

    /// Stores four words, the first of them number `4 * quarter`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(words: &mut [u64], quarter: usize, value: __m256i) {
        let four = &mut words[4 * quarter..4 * quarter + 4];
        // SAFETY: four words are 32 bytes, borrowed exclusively; the store needs no alignment.
        unsafe { _mm256_storeu_si256(four.as_mut_ptr().cast(), value) };
    }

    /// The key's bit in each word of a block, in two halves.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn block_bits(low: u64) -> [__m256i; 2] {
        let (bits, one, six) = (_mm256_set1_epi64x(low as i64), _mm256_set1_epi64x(1), _mm256_set1_epi64x(63));
        let [a, b, c, d, e, f, g, h] = SHIFTS;
        let half = |shifts| _mm256_sllv_epi64(one, _mm256_and_si256(_mm256_srlv_epi64(bits, shifts), six));
        [half(_mm256_setr_epi64x(a, b, c, d)), half(_mm256_setr_epi64x(e, f, g, h))]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn block_contains(block: &[u64; 8], low: u64) -> bool {
        let [first, second] = block_bits(low);
        _mm256_testc_si256(load(block, 0), first) & _mm256_testc_si256(load(block, 1), second) != 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn block_insert(block: &mut [u64; 8], low: u64) -> bool {
        let bits = block_bits(low);
        let old = [load(block, 0), load(block, 1)];
        store(block, 0, _mm256_or_si256(old[0], bits[0]));
        store(block, 1, _mm256_or_si256(old[1], bits[1]));
        _mm256_testc_si256(old[0], bits[0]) & _mm256_testc_si256(old[1], bits[1]) == 0
    }

    /// The key's places in four neighbouring slices.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn slice_places(places: &SlicePlaces, quarter: usize) -> __m256i {
        let shifts = [_mm256_setr_epi64x(0, 8, 16, 24), _mm256_setr_epi64x(32, 40, 48, 56)][quarter % 2];
        let all = _mm256_set1_epi64x(places[quarter / 2] as i64);
        _mm256_and_si256(_mm256_srlv_epi64(all, shifts), _mm256_set1_epi64x(63))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn slice_hits(slices: &Slices, places: &SlicePlaces) -> u32 {
        let mut hits = 0;
        for quarter in 0..8 {
            // The bit goes to the top of its word, where a mask is taken.
            let up = _mm256_xor_si256(slice_places(places, quarter), _mm256_set1_epi64x(63));
            let tops = _mm256_castsi256_pd(_mm256_sllv_epi64(load(slices, quarter), up));
            hits |= (_mm256_movemask_pd(tops) as u32) << (4 * quarter);
        }
        hits
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn slice_set(slices: &mut Slices, places: &SlicePlaces, which: u32) {
        let (one, lanes) = (_mm256_set1_epi64x(1), _mm256_setr_epi64x(1, 2, 4, 8));
        for quarter in 0..8 {
            let four = which >> (4 * quarter) & 15;
            if four != 0 {
                let wanted = _mm256_and_si256(_mm256_set1_epi64x(four.into()), lanes);
                let mask = _mm256_cmpeq_epi64(wanted, lanes);
                let bits = _mm256_and_si256(_mm256_sllv_epi64(one, slice_places(places, quarter)), mask);
                let old = load(slices, quarter);
                store(slices, quarter, _mm256_or_si256(old, bits));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn equal(numbers: &[u64; 8], wanted: u64) -> u32 {
        let wanted = _mm256_set1_epi64x(wanted as i64);
        let equal = |half| {
            let same = _mm256_cmpeq_epi64(load(numbers, half), wanted);
            _mm256_movemask_pd(_mm256_castsi256_pd(same)) as u32
        };
        equal(0) | equal(1) << 4
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn equal_bytes(bytes: &[u8; 64], wanted: u8) -> u64 {
        let start: *const __m256i = bytes.as_ptr().cast();
        let equal = |half| {
            // SAFETY: 64 bytes are two times 32, and the loads need no alignment.
            let bytes = unsafe { _mm256_loadu_si256(start.add(half)) };
            u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(wanted as i8))) as u32)
        };
        equal(0) | equal(1) << 32
    }

    #[inline]
    #[target_feature(enable = "bmi2")]
    pub(super) fn lowest_set(bits: u64, count: u32) -> u64 {
        _pdep_u64(!u64::MAX.checked_shl(count).unwrap_or(0), bits)
    }

    /// Products of 96 bits from products of 64; `range` is below 2^32.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn places(numbers: [[u64; 4]; 2], range: u64, rows: &mut [[u64; 4]]) {
        const TURN: i32 = PLACE_TURN as i32;
        let (mut number, mut next) = (load(&numbers[0], 0), load(&numbers[1], 0));
        // Cut to 32 bits, so that compilers see that one product is enough.
        let range = _mm256_set1_epi64x((range as u32).into());
        for row in rows {
            let low = _mm256_srli_epi64::<32>(_mm256_mul_epu32(number, range));
            let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(number), range);
            store(row, 0, _mm256_srli_epi64::<32>(_mm256_add_epi64(high, low)));
            let turned = _mm256_or_si256(_mm256_slli_epi64::<TURN>(number), _mm256_srli_epi64::<{ 64 - TURN }>(number));
            (number, next) = (next, _mm256_add_epi64(turned, next));
        }
    }

    /// The parity of each half of a byte comes from a table; the sum over a word's bytes has that of the word.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn odd_columns(blocks: [&[u64; 8]; 3], selections: [u64; 3]) -> u32 {
        let selections = selections.map(|selection| _mm256_set1_epi64x(selection as i64));
        let parities = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
        let odd = |half| {
            let selected = |block: usize| _mm256_and_si256(load(blocks[block], half), selections[block]);
            let sum = _mm256_xor_si256(_mm256_xor_si256(selected(0), selected(1)), selected(2));
            let folded = _mm256_xor_si256(sum, _mm256_srli_epi64::<4>(sum));
            let bytes = _mm256_shuffle_epi8(parities, _mm256_and_si256(folded, _mm256_set1_epi8(15)));
            let counts = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_slli_epi64::<63>(counts))) as u32
        };
        odd(0) | odd(1) << 4
    }
}

mod avx512 {
    use super::*;

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(words: &[u64; 8]) -> __m512i {
        // SAFETY: eight words are 64 bytes; the load needs no alignment.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    /// Where the key's bit lies in each word, in the low six bits; rotations look at no others.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn block_places(low: u64) -> __m512i {
        let [a, b, c, d, e, f, g, h] = SHIFTS;
        _mm512_srlv_epi64(_mm512_set1_epi64(low as i64), _mm512_setr_epi64(a, b, c, d, e, f, g, h))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn block_contains(block: &[u64; 8], low: u64) -> bool {
        let rotated = _mm512_rorv_epi64(load(block), block_places(low));
        _mm512_testn_epi64_mask(rotated, _mm512_set1_epi64(1)) == 0
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn block_insert(block: &mut [u64; 8], low: u64) -> bool {
        let (old, bits) = (load(block), _mm512_rolv_epi64(_mm512_set1_epi64(1), block_places(low)));
        // SAFETY: eight words are 64 bytes, borrowed exclusively; the store needs no alignment.
        unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), _mm512_or_si512(old, bits)) };
        _mm512_testn_epi64_mask(old, bits) != 0
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn equal(numbers: &[u64; 8], wanted: u64) -> u32 {
        _mm512_cmpeq_epi64_mask(load(numbers), _mm512_set1_epi64(wanted as i64)).into()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn equal_bytes(bytes: &[u8; 64], wanted: u8) -> u64 {
        // SAFETY: the load needs no alignment.
        let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(wanted as i8))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn missing_bits(words: &[u64; 8], wanted: &[u64; 8]) -> u32 {
        let missing = _mm512_andnot_si512(load(words), load(wanted));
        _mm512_test_epi64_mask(missing, missing).into()
    }
}
