//! The block operations for AVX2 and AVX-512.

use super::{batch_loops, distance_for, pipelined, prefetch};
use crate::cells::blocks;
use crate::cells::buffer::Line;
use crate::key::KeyHash;
use crate::promise::Verdict;
use std::arch::x86_64::*;

/// Where in `low` each word's six bits begin.
const SHIFTS: [i64; 8] = [0, 6, 12, 18, 24, 30, 36, 42];

pub(crate) mod avx2 {
    use super::*;

    /// The key's bit in each word, as two halves of a line.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn masks(low: u64) -> (__m256i, __m256i) {
        let (bits, one, six) = (_mm256_set1_epi64x(low as i64), _mm256_set1_epi64x(1), _mm256_set1_epi64x(63));
        let [a, b, c, d, e, f, g, h] = SHIFTS;
        let half = |shifts| _mm256_sllv_epi64(one, _mm256_and_si256(_mm256_srlv_epi64(bits, shifts), six));
        (half(_mm256_setr_epi64x(a, b, c, d)), half(_mm256_setr_epi64x(e, f, g, h)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(line: &Line) -> (__m256i, __m256i) {
        let start: *const __m256i = line.0.as_ptr().cast();
        // SAFETY: a line is 64 bytes and 64-byte aligned: two aligned halves.
        unsafe { (_mm256_load_si256(start), _mm256_load_si256(start.add(1))) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn contains_one(line: &Line, low: u64) -> bool {
        let ((first, second), (mask1, mask2)) = (load(line), masks(low));
        _mm256_testc_si256(first, mask1) & _mm256_testc_si256(second, mask2) != 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn insert_one(line: &mut Line, low: u64) -> bool {
        let ((first, second), (mask1, mask2)) = (load(line), masks(low));
        let start: *mut __m256i = line.0.as_mut_ptr().cast();
        // SAFETY: as in `load`; the line is borrowed exclusively.
        unsafe {
            _mm256_store_si256(start, _mm256_or_si256(first, mask1));
            _mm256_store_si256(start.add(1), _mm256_or_si256(second, mask2));
        }
        _mm256_testc_si256(first, mask1) & _mm256_testc_si256(second, mask2) == 0
    }

    batch_loops!(target_feature(enable = "avx2"));
}

pub(crate) mod avx512 {
    use super::*;
    use std::arch::asm;

    #[repr(align(64))]
    struct Lanes(#[allow(dead_code, reason = "read by assembly")] [i64; 8]);

    static LANE_SHIFTS: Lanes = Lanes(SHIFTS);
    static ONE: i64 = 1;

    /// Where the key's bit lies in each word, in the low six bits; rotations look at no others.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn places(low: u64) -> __m512i {
        let [a, b, c, d, e, f, g, h] = SHIFTS;
        _mm512_srlv_epi64(_mm512_set1_epi64(low as i64), _mm512_setr_epi64(a, b, c, d, e, f, g, h))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(line: &Line) -> __m512i {
        // SAFETY: a line is 64 bytes and 64-byte aligned.
        unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn contains_one(line: &Line, low: u64) -> bool {
        let rotated = _mm512_rorv_epi64(load(line), places(low));
        _mm512_testn_epi64_mask(rotated, _mm512_set1_epi64(1)) == 0
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn insert_one(line: &mut Line, low: u64) -> bool {
        let (old, mask) = (load(line), _mm512_rolv_epi64(_mm512_set1_epi64(1), places(low)));
        // SAFETY: as in `load`; the line is borrowed exclusively.
        unsafe { _mm512_store_si512(line.0.as_mut_ptr().cast(), _mm512_or_si512(old, mask)) };
        _mm512_testn_epi64_mask(old, mask) != 0
    }

    /// `contains_one` for callers that are not compiled for AVX-512, into which a function that is
    /// would not be inlined: a query in cache takes 3.2 ns instead of 4.3. Registers from 16 on and
    /// masks are unknown to such callers, and leave nothing behind that would need `vzeroupper`.
    ///
    /// # Safety
    ///
    /// The machine must have AVX-512F.
    #[inline(always)]
    pub(crate) unsafe fn contains_inline(line: &Line, low: u64) -> bool {
        let missing: u32;
        // SAFETY: the caller vouches for AVX-512F; a line is 64 bytes and 64-byte aligned, as the
        // shifts are; nothing is written but registers.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {low}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [rip + {shifts}]",
                "vmovdqa64 zmm17, zmmword ptr [{line}]",
                "vprorvq zmm17, zmm17, zmm16",
                "vptestnmq k1, zmm17, qword ptr [rip + {one}]{{1to8}}",
                "kmovw {missing:e}, k1",
                low = in(reg) low,
                shifts = sym LANE_SHIFTS,
                line = in(reg) line.0.as_ptr(),
                one = sym ONE,
                missing = lateout(reg) missing,
                out("xmm16") _,
                out("xmm17") _,
                out("k1") _,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        missing == 0
    }

    batch_loops!(target_feature(enable = "avx512f"));
}
