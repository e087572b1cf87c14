//! Loops compiled for the machine that they run on, with the same outcome on each.

#[cfg(target_arch = "x86_64")]
pub(super) use x86::is_recent;

/// A loop that gains from being compiled for newer machines as well.
pub(crate) trait Work {
    /// What the loop gives.
    type Output;

    /// Runs it. Mark it `#[inline(always)]`: it then becomes part of a function that is compiled for
    /// newer machines, as does all that it calls and that is inlined. (Closures are not, as a rule.)
    fn run(self, machine: impl Machine) -> Self::Output;
}

/// Runs a loop compiled for the machine that it runs on: three-operand shifts, wide multiplications,
/// 256-bit registers. The same code, so the same outcome.
#[inline]
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if x86::is_recent() {
        // SAFETY: the instructions were just detected.
        return unsafe { x86::run_recent(work) };
    }
    work.run(Plain)
}

/// Where in consecutive parts an offset falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The sum of all parts.
    pub(crate) total: u32,
    /// The part; the last, if the offset is beyond the total.
    pub(crate) part: usize,
    /// The offset within the part.
    pub(crate) rest: u32,
}

/// What newer machines do in a few instructions that no compiler finds by itself.
pub(crate) trait Machine: Copy {
    /// A whole number a little above 2^22 divided by the upper 24 bits, of which the first is 0, of each
    /// number; 0 for numbers in which no bit of `needed` is set. The excess is more than 0 and not more
    /// than 1.5.
    fn quotients(self, divisors: &[u32; 16], needed: u32) -> [u32; 16];
    /// Finds the part of 16, one after another and not 2^31 long together, in which an offset falls.
    fn find(self, parts: &[u32; 16], offset: u32) -> Found;
    /// The position of the set bit with this many set ones below it; anything if there is none.
    fn nth_set(self, bits: u64, below: u32) -> u32;
}

/// Any machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

const DIVIDEND: f32 = (1 << 22) as f32;

/// Added to a float, it rounds it and leaves the whole number in its low bits.
const ROUNDING: f32 = (1 << 23) as f32;

impl Machine for Plain {
    #[inline(always)]
    fn quotients(self, divisors: &[u32; 16], needed: u32) -> [u32; 16] {
        divisors.map(|divisor| {
            let rounded = (DIVIDEND / (divisor >> 8) as f32 + ROUNDING).to_bits() & 0x7f_ffff;
            // One more is above the quotient whichever way it was rounded.
            if divisor & needed == 0 { 0 } else { rounded + 1 }
        })
    }

    #[inline(always)]
    fn find(self, parts: &[u32; 16], offset: u32) -> Found {
        let (mut total, mut part, mut before) = (0, 0, 0);
        for (at, length) in parts.iter().enumerate() {
            if total <= offset {
                (part, before) = (at, total);
            }
            total += length;
        }
        Found { total, part, rest: offset - before }
    }

    #[inline(always)]
    fn nth_set(self, mut bits: u64, below: u32) -> u32 {
        for _ in 0..below {
            bits &= bits.wrapping_sub(1);
        }
        bits.trailing_zeros()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{DIVIDEND, Found, Machine, ROUNDING, Work};
    use std::arch::x86_64::*;

    /// Whether the machine has what [`run_recent`] needs: since 2013 from Intel, 2015 from AMD.
    #[inline]
    pub(in crate::cells::simd) fn is_recent() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
    }

    /// Runs a loop compiled for recent machines.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn run_recent<W: Work>(work: W) -> W::Output {
        work.run(Recent(()))
    }

    /// A machine on which [`is_recent`] was true: only [`run_recent`] makes one.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Recent(());

    impl Machine for Recent {
        #[inline(always)]
        fn quotients(self, divisors: &[u32; 16], needed: u32) -> [u32; 16] {
            // SAFETY: the machine is recent.
            unsafe { quotients_by_eights(divisors, needed) }
        }

        #[inline(always)]
        fn find(self, parts: &[u32; 16], offset: u32) -> Found {
            // SAFETY: the machine is recent.
            unsafe { find_by_eights(parts, offset) }
        }

        #[inline(always)]
        fn nth_set(self, bits: u64, below: u32) -> u32 {
            // SAFETY: the machine is recent.
            unsafe { nth_set(bits, below) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn quotients_of_eight(divisors: __m256i, needed: u32) -> __m256i {
        let quotients = _mm256_div_ps(_mm256_set1_ps(DIVIDEND), _mm256_cvtepi32_ps(_mm256_srli_epi32::<8>(divisors)));
        let rounded = _mm256_castps_si256(_mm256_add_ps(quotients, _mm256_set1_ps(ROUNDING)));
        let above = _mm256_add_epi32(_mm256_and_si256(rounded, _mm256_set1_epi32(0x7f_ffff)), _mm256_set1_epi32(1));
        let kept = _mm256_and_si256(divisors, _mm256_set1_epi32(needed as i32));
        _mm256_andnot_si256(_mm256_cmpeq_epi32(kept, _mm256_setzero_si256()), above)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn quotients_by_eights(divisors: &[u32; 16], needed: u32) -> [u32; 16] {
        let mut quotients = [0; 16];
        let (from, to): (*const __m256i, *mut __m256i) = (divisors.as_ptr().cast(), quotients.as_mut_ptr().cast());
        for half in 0..2 {
            // SAFETY: sixteen numbers are two times 32 bytes, and may be unaligned.
            unsafe {
                _mm256_storeu_si256(to.add(half), quotients_of_eight(_mm256_loadu_si256(from.add(half)), needed))
            };
        }
        quotients
    }

    /// The running sums of eight numbers.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums_of_eight(numbers: __m256i) -> __m256i {
        let pairs = _mm256_add_epi32(numbers, _mm256_slli_si256::<4>(numbers));
        let fours = _mm256_add_epi32(pairs, _mm256_slli_si256::<8>(pairs));
        // Zero for the lower four, the lower four's sum for the upper.
        let carried = _mm256_shuffle_epi32::<0xff>(_mm256_permute2x128_si256::<0x08>(fours, fours));
        _mm256_add_epi32(fours, carried)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn find_by_eights(parts: &[u32; 16], offset: u32) -> Found {
        let start: *const __m256i = parts.as_ptr().cast();
        // SAFETY: sixteen numbers are two times 32 bytes, and the loads may be unaligned.
        let (first, second) = unsafe { (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))) };
        let first = sums_of_eight(first);
        let carried = _mm256_permutevar8x32_epi32(first, _mm256_set1_epi32(7));
        let second = _mm256_add_epi32(sums_of_eight(second), carried);
        let mut sums = [0; 17];
        let after: *mut __m256i = sums[1..].as_mut_ptr().cast();
        // SAFETY: sixteen of the seventeen numbers follow the first.
        unsafe {
            _mm256_storeu_si256(after, first);
            _mm256_storeu_si256(after.add(1), second);
        }
        let offsets = _mm256_set1_epi32(offset as i32);
        let beyond = |sums| _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(sums, offsets))) as u32;
        let part = (beyond(first) | beyond(second) << 8 | 1 << 15).trailing_zeros() as usize & 15;
        Found { total: sums[16], part, rest: offset - sums[part] }
    }

    #[inline]
    #[target_feature(enable = "bmi1,bmi2")]
    fn nth_set(bits: u64, below: u32) -> u32 {
        _tzcnt_u64(_pdep_u64(1 << (below & 63), bits)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Generator;

    /// Finds, and selects, in numbers of all sizes.
    struct Trial;

    impl Work for Trial {
        type Output = Vec<([u32; 16], Found, u32)>;

        #[inline(always)]
        fn run(self, machine: impl Machine) -> Self::Output {
            let mut generator = Generator::seeded(3);
            let mut outcomes = Vec::new();
            for trial in 0..20_000u64 {
                let parts = std::array::from_fn(|_| generator.below(1 << (trial % 27)) as u32);
                let quotients = machine.quotients(&parts, if trial % 2 == 0 { 0xff } else { 0xffff_ff00 });
                let total: u32 = parts.iter().sum();
                let found = machine.find(&parts, generator.below(u64::from(total) * 5 / 4 + 1) as u32);
                let bits = generator.bits() & generator.bits() | 1;
                let position = machine.nth_set(bits, generator.below(bits.count_ones().into()) as u32);
                outcomes.push((quotients, found, position));
            }
            outcomes
        }
    }

    #[test]
    fn every_machine_finds_and_selects_the_same() {
        let plain = Trial.run(Plain);
        assert_eq!(run(Trial), plain);
    }

    #[test]
    fn an_offset_is_found_in_the_part_that_spans_it() {
        let mut parts = [0; 16];
        (parts[2], parts[3], parts[9]) = (5, 1, 4);
        let places: Vec<_> =
            (0..12).map(|offset| Plain.find(&parts, offset)).map(|found| (found.part, found.rest)).collect();
        let within = [(2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (3, 0), (9, 0), (9, 1), (9, 2), (9, 3)];
        assert_eq!(places[..10], within);
        assert_eq!(Plain.find(&parts, 11).total, 10);
        assert_eq!((0..3).map(|below| Plain.nth_set(0b1010_0100, below)).collect::<Vec<_>>(), [2, 5, 7]);
    }
}
