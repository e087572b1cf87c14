//! Loops compiled for the machine that they run on, with the same outcome on each.

use super::visit::{self, Visit};
use crate::cells::buffer::Line;

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
/// registers of 256 or 512 bits. The same code, so the same outcome.
#[inline]
pub(crate) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if x86::is_recent() {
        if x86::is_wide() {
            // SAFETY: the instructions were just detected.
            return unsafe { x86::run_wide(work) };
        }
        // SAFETY: the instructions were just detected.
        return unsafe { x86::run_recent(work) };
    }
    work.run(Plain)
}

/// What newer machines do in a few instructions that no compiler finds by itself.
pub(crate) trait Machine: Copy {
    /// Whether loops over arrays of 64-bit numbers are worth writing for it.
    fn is_recent(self) -> bool;
    /// A whole number a little above 2^22 divided by the upper 24 bits, of which the first is 0, of each
    /// number; 0 where those are 0. The excess is more than 0 and not more than 1.5.
    fn quotients(self, divisors: &[u32; 16]) -> [u32; 16];
    /// The sum of 16 numbers; what comes before each is written to `before`.
    fn sums(self, numbers: &[u32; 16], before: &mut [u32; 16]) -> u32;
    /// The last of 16 rising numbers below 2^31, the first of them 0, that is not above an offset.
    fn find(self, before: &[u32; 16], offset: u32) -> usize;
    /// Which of eight numbers are equal to one, as bits.
    fn equal(self, numbers: &[u64; 8], wanted: u64) -> u32;
    /// Which of 64 bytes are equal to one, as bits.
    fn equal_bytes(self, bytes: &[u8; 64], wanted: u8) -> u64;
    /// Which of eight words lack a bit that is wanted, as bits.
    #[inline(always)]
    fn lacking(self, words: &[u64; 8], wanted: &[u64; 8]) -> u32 {
        (0..8).fold(0, |lacking, word| lacking | u32::from(wanted[word] & !words[word] != 0) << word)
    }
    /// The lowest set bits, so many of them, or all if there are fewer.
    fn lowest_set(self, bits: u64, count: u32) -> u64;
    /// An arrival with `K` counters of `D` bits, up to 3, at its line; whether none of them was zero.
    #[inline(always)]
    fn visit<const D: u32, const K: usize>(self, line: &mut Line, visit: &Visit) -> bool {
        visit::visit::<D, K>(line, visit)
    }
}

/// Any machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

const DIVIDEND: f32 = (1 << 22) as f32;

/// Added to a float, it rounds it and leaves the whole number, and 1, in its low bits: above the float
/// whichever way it was rounded. Infinity stays what it is, and its low bits are 0.
const ROUNDING: f32 = ((1 << 23) + 1) as f32;

/// One of [`Machine::quotients`].
#[inline(always)]
pub(crate) fn quotient(divisor: u32) -> u32 {
    (DIVIDEND / (divisor >> 8) as f32 + ROUNDING).to_bits() & 0x7f_ffff
}

impl Machine for Plain {
    #[inline(always)]
    fn lowest_set(self, bits: u64, count: u32) -> u64 {
        let above = (0..count).fold(bits, |bits, _| bits & bits.wrapping_sub(1));
        bits & !above
    }

    #[inline(always)]
    fn is_recent(self) -> bool {
        false
    }

    #[inline(always)]
    fn quotients(self, divisors: &[u32; 16]) -> [u32; 16] {
        divisors.map(quotient)
    }

    #[inline(always)]
    fn sums(self, numbers: &[u32; 16], before: &mut [u32; 16]) -> u32 {
        let mut sum = 0;
        for (number, before) in numbers.iter().zip(before) {
            *before = sum;
            sum += number;
        }
        sum
    }

    #[inline(always)]
    fn find(self, before: &[u32; 16], offset: u32) -> usize {
        before[1..].iter().filter(|before| **before <= offset).count()
    }

    #[inline(always)]
    fn equal(self, numbers: &[u64; 8], wanted: u64) -> u32 {
        (0..8).fold(0, |equal, place| equal | u32::from(numbers[place] == wanted) << place)
    }

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
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::visit::wide;
    use super::{DIVIDEND, Line, Machine, ROUNDING, Visit, Work};
    use std::arch::x86_64::*;

    /// Whether the machine has what [`run_recent`] needs: since 2013 from Intel, 2015 from AMD.
    #[inline]
    pub(in crate::simd) fn is_recent() -> bool {
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
        fn lowest_set(self, bits: u64, count: u32) -> u64 {
            // SAFETY: the machine is recent.
            unsafe { lowest_set(bits, count) }
        }

        #[inline(always)]
        fn is_recent(self) -> bool {
            true
        }

        #[inline(always)]
        fn quotients(self, divisors: &[u32; 16]) -> [u32; 16] {
            // SAFETY: the machine is recent.
            unsafe { quotients_by_eights(divisors) }
        }

        #[inline(always)]
        fn sums(self, numbers: &[u32; 16], before: &mut [u32; 16]) -> u32 {
            // SAFETY: the machine is recent.
            unsafe { sums_by_eights(numbers, before) }
        }

        #[inline(always)]
        fn find(self, before: &[u32; 16], offset: u32) -> usize {
            // SAFETY: the machine is recent.
            unsafe { find_by_eights(before, offset) }
        }

        #[inline(always)]
        fn equal(self, numbers: &[u64; 8], wanted: u64) -> u32 {
            // SAFETY: the machine is recent.
            unsafe { equal_by_fours(numbers, wanted) }
        }

        #[inline(always)]
        fn equal_bytes(self, bytes: &[u8; 64], wanted: u8) -> u64 {
            // SAFETY: the machine is recent.
            unsafe { equal_bytes_by_halves(bytes, wanted) }
        }
    }

    /// Whether a recent machine has 512-bit registers, too: Intel's servers since 2017, AMD since 2022.
    #[inline]
    pub(super) fn is_wide() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
    }

    /// Runs a loop compiled for machines with 512-bit registers.
    #[target_feature(enable = "avx512f,avx512dq,avx2,bmi1,bmi2,popcnt")]
    pub(super) fn run_wide<W: Work>(work: W) -> W::Output {
        work.run(Wide(Recent(())))
    }

    /// A machine on which [`is_wide`] was true as well: only [`run_wide`] makes one.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Wide(Recent);

    impl Machine for Wide {
        #[inline(always)]
        fn lacking(self, words: &[u64; 8], wanted: &[u64; 8]) -> u32 {
            // SAFETY: the machine is wide.
            unsafe { lacking_of_eight(words, wanted) }
        }

        #[inline(always)]
        fn lowest_set(self, bits: u64, count: u32) -> u64 {
            self.0.lowest_set(bits, count)
        }

        #[inline(always)]
        fn is_recent(self) -> bool {
            true
        }

        #[inline(always)]
        fn quotients(self, divisors: &[u32; 16]) -> [u32; 16] {
            // SAFETY: the machine is wide.
            unsafe { quotients_of_sixteen(divisors) }
        }

        #[inline(always)]
        fn sums(self, numbers: &[u32; 16], before: &mut [u32; 16]) -> u32 {
            // SAFETY: the machine is wide.
            unsafe { sums_of_sixteen(numbers, before) }
        }

        #[inline(always)]
        fn find(self, before: &[u32; 16], offset: u32) -> usize {
            // SAFETY: the machine is wide.
            unsafe { find_in_sixteen(before, offset) }
        }

        #[inline(always)]
        fn equal(self, numbers: &[u64; 8], wanted: u64) -> u32 {
            // SAFETY: the machine is wide.
            unsafe { equal_of_eight(numbers, wanted) }
        }

        #[inline(always)]
        fn equal_bytes(self, bytes: &[u8; 64], wanted: u8) -> u64 {
            self.0.equal_bytes(bytes, wanted)
        }

        #[inline(always)]
        fn visit<const D: u32, const K: usize>(self, line: &mut Line, visit: &Visit) -> bool {
            // SAFETY: the machine is wide.
            unsafe { wide::visit::<D, K>(line, visit) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn lacking_of_eight(words: &[u64; 8], wanted: &[u64; 8]) -> u32 {
        // SAFETY: eight words are 64 bytes, and may be unaligned.
        let [words, wanted] = [words, wanted].map(|eight| unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) });
        let lacking = _mm512_andnot_si512(words, wanted);
        _mm512_test_epi64_mask(lacking, lacking).into()
    }

    #[inline]
    #[target_feature(enable = "bmi2")]
    fn lowest_set(bits: u64, count: u32) -> u64 {
        _pdep_u64(!u64::MAX.checked_shl(count).unwrap_or(0), bits)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn quotients_of_sixteen(divisors: &[u32; 16]) -> [u32; 16] {
        let mut quotients = [0; 16];
        // SAFETY: sixteen numbers are 64 bytes, and may be unaligned.
        unsafe {
            let divisors = _mm512_srli_epi32::<8>(_mm512_loadu_si512(divisors.as_ptr().cast()));
            let exact = _mm512_div_ps(_mm512_set1_ps(DIVIDEND), _mm512_cvtepi32_ps(divisors));
            let rounded = _mm512_castps_si512(_mm512_add_ps(exact, _mm512_set1_ps(ROUNDING)));
            let low = _mm512_and_si512(rounded, _mm512_set1_epi32(0x7f_ffff));
            _mm512_storeu_si512(quotients.as_mut_ptr().cast(), low);
        }
        quotients
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sums_of_sixteen(numbers: &[u32; 16], before: &mut [u32; 16]) -> u32 {
        let zero = _mm512_setzero_si512();
        // SAFETY: sixteen numbers are 64 bytes, and may be unaligned.
        let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
        let pairs = _mm512_add_epi32(numbers, _mm512_alignr_epi32::<15>(numbers, zero));
        let fours = _mm512_add_epi32(pairs, _mm512_alignr_epi32::<14>(pairs, zero));
        let eights = _mm512_add_epi32(fours, _mm512_alignr_epi32::<12>(fours, zero));
        let sums = _mm512_add_epi32(eights, _mm512_alignr_epi32::<8>(eights, zero));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(before.as_mut_ptr().cast(), _mm512_alignr_epi32::<15>(sums, zero)) };
        _mm_extract_epi32::<3>(_mm512_extracti32x4_epi32::<3>(sums)) as u32
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn find_in_sixteen(before: &[u32; 16], offset: u32) -> usize {
        // SAFETY: sixteen numbers are 64 bytes, and may be unaligned.
        let before = unsafe { _mm512_loadu_si512(before.as_ptr().cast()) };
        let beyond = u32::from(_mm512_cmpgt_epu32_mask(before, _mm512_set1_epi32(offset as i32)));
        ((beyond | 1 << 16).trailing_zeros() as usize - 1) & 15
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn equal_of_eight(numbers: &[u64; 8], wanted: u64) -> u32 {
        // SAFETY: eight numbers are 64 bytes, and may be unaligned.
        let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
        _mm512_cmpeq_epi64_mask(numbers, _mm512_set1_epi64(wanted as i64)).into()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal_by_fours(numbers: &[u64; 8], wanted: u64) -> u32 {
        let start: *const __m256i = numbers.as_ptr().cast();
        let equal = |half| {
            // SAFETY: eight numbers are two times 32 bytes, and the loads may be unaligned.
            let numbers = unsafe { _mm256_loadu_si256(start.add(half)) };
            let same = _mm256_cmpeq_epi64(numbers, _mm256_set1_epi64x(wanted as i64));
            _mm256_movemask_pd(_mm256_castsi256_pd(same)) as u32
        };
        equal(0) | equal(1) << 4
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal_bytes_by_halves(bytes: &[u8; 64], wanted: u8) -> u64 {
        let start: *const __m256i = bytes.as_ptr().cast();
        let equal = |half| {
            // SAFETY: 64 bytes are two times 32, and the loads may be unaligned.
            let bytes = unsafe { _mm256_loadu_si256(start.add(half)) };
            u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(wanted as i8))) as u32)
        };
        equal(0) | equal(1) << 32
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn quotients_of_eight(divisors: __m256i) -> __m256i {
        let quotients = _mm256_div_ps(_mm256_set1_ps(DIVIDEND), _mm256_cvtepi32_ps(_mm256_srli_epi32::<8>(divisors)));
        let rounded = _mm256_castps_si256(_mm256_add_ps(quotients, _mm256_set1_ps(ROUNDING)));
        _mm256_and_si256(rounded, _mm256_set1_epi32(0x7f_ffff))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn quotients_by_eights(divisors: &[u32; 16]) -> [u32; 16] {
        let mut quotients = [0; 16];
        let (from, to): (*const __m256i, *mut __m256i) = (divisors.as_ptr().cast(), quotients.as_mut_ptr().cast());
        for half in 0..2 {
            // SAFETY: sixteen numbers are two times 32 bytes, and may be unaligned.
            unsafe { _mm256_storeu_si256(to.add(half), quotients_of_eight(_mm256_loadu_si256(from.add(half)))) };
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
    fn sums_by_eights(numbers: &[u32; 16], before: &mut [u32; 16]) -> u32 {
        let (from, to): (*const __m256i, *mut __m256i) = (numbers.as_ptr().cast(), before.as_mut_ptr().cast());
        // SAFETY: sixteen numbers are two times 32 bytes, and may be unaligned.
        unsafe {
            let (first, second) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            let first_sums = sums_of_eight(first);
            let carried = _mm256_permutevar8x32_epi32(first_sums, _mm256_set1_epi32(7));
            let second_sums = _mm256_add_epi32(sums_of_eight(second), carried);
            _mm256_storeu_si256(to, _mm256_sub_epi32(first_sums, first));
            _mm256_storeu_si256(to.add(1), _mm256_sub_epi32(second_sums, second));
            _mm256_extract_epi32::<7>(second_sums) as u32
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn find_by_eights(before: &[u32; 16], offset: u32) -> usize {
        let start: *const __m256i = before.as_ptr().cast();
        let offsets = _mm256_set1_epi32(offset as i32);
        let beyond = |half| {
            // SAFETY: sixteen numbers are two times 32 bytes, and the loads may be unaligned.
            let numbers = unsafe { _mm256_loadu_si256(start.add(half)) };
            _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(numbers, offsets))) as u32
        };
        ((beyond(0) | beyond(1) << 8 | 1 << 16).trailing_zeros() as usize - 1) & 15
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Generator;

    /// Divides, sums up, finds, compares and selects, in numbers of all sizes.
    struct Trial;

    impl Work for Trial {
        type Output = Vec<([u32; 16], [u32; 16], u32, usize, (u32, u64), (u64, u32))>;

        #[inline(always)]
        fn run(self, machine: impl Machine) -> Self::Output {
            let mut generator = Generator::seeded(3);
            let mut outcomes = Vec::new();
            for trial in 0..20_000u64 {
                let parts = std::array::from_fn(|_| generator.below(1 << (trial % 27)) as u32);
                let mut before = [0; 16];
                let total = machine.sums(&parts, &mut before);
                let part = machine.find(&before, generator.below(u64::from(total) * 5 / 4 + 1) as u32);
                let few = std::array::from_fn(|_| generator.below(3));
                let bytes = std::array::from_fn(|_| [10, 138, 11, 9][generator.below(4) as usize]);
                let equal = (machine.equal(&few, generator.below(3)), machine.equal_bytes(&bytes, 10));
                let lowest = machine.lowest_set(generator.bits() & generator.bits(), trial as u32 % 66);
                let words = [(); 2].map(|()| std::array::from_fn(|_| generator.bits() & generator.bits()));
                let sparse = words[0].map(|word: u64| word & word << 7 & word << 11);
                let lacking = machine.lacking(&words[1], &sparse);
                outcomes.push((machine.quotients(&parts), before, total, part, equal, (lowest, lacking)));
            }
            outcomes
        }
    }

    #[test]
    fn every_machine_divides_sums_finds_compares_and_selects_the_same() {
        let plain = Trial.run(Plain);
        assert_eq!(run(Trial), plain);
        // Where the widest registers are used, the others have not been tried yet.
        #[cfg(target_arch = "x86_64")]
        if x86::is_recent() {
            // SAFETY: the instructions were just detected.
            assert_eq!(unsafe { x86::run_recent(Trial) }, plain);
        }
    }

    #[test]
    fn an_offset_is_found_in_the_part_that_spans_it() {
        let (mut parts, mut before) = ([0; 16], [0; 16]);
        (parts[2], parts[3], parts[9]) = (5, 1, 4);
        assert_eq!(Plain.sums(&parts, &mut before), 10);
        let places: Vec<_> = (0..12).map(|offset| Plain.find(&before, offset)).collect();
        assert_eq!(places, [2, 2, 2, 2, 2, 3, 9, 9, 9, 9, 15, 15]);
        assert_eq!((0..4).map(|count| Plain.lowest_set(0b1010, count)).collect::<Vec<_>>(), [0, 0b10, 0b1010, 0b1010]);
        assert_eq!(Plain.lacking(&[1, 0, 2, 7, 0, 0, 0, 8], &[1, 1, 3, 5, 0, 0, 0, 8]), 0b0110);
        assert_eq!(Plain.equal(&[7, 0, 7, 1, 2, 3, 4, 7], 7), 0b1000_0101);
        let bytes = std::array::from_fn(|at| if [0, 9, 63].contains(&at) { b'\n' } else { b'\n' | 128 });
        assert_eq!(Plain.equal_bytes(&bytes, b'\n'), 1 | 1 << 9 | 1 << 63);
    }
}
