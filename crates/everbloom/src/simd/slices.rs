//! Blocks of 32 words, in each of which a key has one bit: which are set, and setting some of them.

/// The words of a block.
pub(crate) type Block = [u64; 32];

/// Where the bit lies in each word: the low six bits of a byte for each, eight to a word.
pub(crate) type Places = [u64; 4];

/// The two operations, on some instruction set.
pub(crate) trait Slices {
    /// The words in which the key's bit is set, as bits.
    fn hits(block: &Block, places: &Places) -> u32;

    /// Sets the key's bit in the words that `which` has a bit for.
    fn set(block: &mut Block, places: &Places, which: u32);
}

/// Plain 64-bit code.
pub(crate) struct Portable;

impl Slices for Portable {
    #[inline]
    fn hits(block: &Block, places: &Places) -> u32 {
        (0..32).fold(0, |hits, word| hits | u32::from(block[word] & bit(places, word) != 0) << word)
    }

    #[inline]
    fn set(block: &mut Block, places: &Places, which: u32) {
        let mut left = which;
        while left != 0 {
            let word = left.trailing_zeros() as usize;
            block[word] |= bit(places, word);
            left &= left - 1;
        }
    }
}

#[inline]
fn bit(places: &Places, word: usize) -> u64 {
    1 << (places[word / 8] >> (word % 8 * 8) & 63)
}

/// A loop over keys that works on such blocks.
pub(crate) trait SliceWork {
    /// Runs it. Mark it `#[inline(always)]`: it then becomes part of a function that is compiled for the
    /// instruction set. (A closure that it passes on would not.)
    fn run<S: Slices>(self);
}

/// Runs a loop on the instructions that this machine has; all give the same outcome.
#[inline]
pub(crate) fn run_on_slices<W: SliceWork>(work: W) {
    #[cfg(target_arch = "x86_64")]
    if super::machine::is_recent() {
        // SAFETY: the instructions were just detected.
        return unsafe { wide::run(work) };
    }
    work.run::<Portable>();
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Block, Places, SliceWork, Slices};
    use std::arch::x86_64::*;

    /// 256-bit registers: four words at once. Only [`run`] hands it out.
    struct Avx2;

    /// Runs a loop compiled for recent machines.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn run<W: SliceWork>(work: W) {
        work.run::<Avx2>();
    }

    impl Slices for Avx2 {
        #[inline(always)]
        fn hits(block: &Block, places: &Places) -> u32 {
            // SAFETY: whoever has this type was called by `run`, whose caller detected AVX2.
            unsafe { hits(block, places) }
        }

        #[inline(always)]
        fn set(block: &mut Block, places: &Places, which: u32) {
            // SAFETY: as for `hits`.
            unsafe { set(block, places, which) }
        }
    }

    /// The places in four neighbouring words, the first of them a multiple of four.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn places_of(places: &Places, quarter: usize) -> __m256i {
        let shifts = [_mm256_setr_epi64x(0, 8, 16, 24), _mm256_setr_epi64x(32, 40, 48, 56)][quarter % 2];
        let all = _mm256_set1_epi64x(places[quarter / 2] as i64);
        _mm256_and_si256(_mm256_srlv_epi64(all, shifts), _mm256_set1_epi64x(63))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(block: &Block, quarter: usize) -> __m256i {
        let words = &block[quarter * 4..quarter * 4 + 4];
        // SAFETY: four words are 32 bytes; the load needs no alignment.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn hits(block: &Block, places: &Places) -> u32 {
        let mut hits = 0;
        for quarter in 0..8 {
            // The bit goes to the top of its word, where a mask is taken.
            let up = _mm256_xor_si256(places_of(places, quarter), _mm256_set1_epi64x(63));
            let tops = _mm256_castsi256_pd(_mm256_sllv_epi64(load(block, quarter), up));
            hits |= (_mm256_movemask_pd(tops) as u32) << (4 * quarter);
        }
        hits
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn set(block: &mut Block, places: &Places, which: u32) {
        let (one, lanes) = (_mm256_set1_epi64x(1), _mm256_setr_epi64x(1, 2, 4, 8));
        for quarter in 0..8 {
            let four = which >> (4 * quarter) & 15;
            if four != 0 {
                let wanted = _mm256_and_si256(_mm256_set1_epi64x(four.into()), lanes);
                let mask = _mm256_cmpeq_epi64(wanted, lanes);
                let bits = _mm256_and_si256(_mm256_sllv_epi64(one, places_of(places, quarter)), mask);
                let words = _mm256_or_si256(load(block, quarter), bits);
                // SAFETY: four words are 32 bytes, borrowed exclusively; the store needs no alignment.
                unsafe { _mm256_storeu_si256(block[quarter * 4..quarter * 4 + 4].as_mut_ptr().cast(), words) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Generator;

    /// Random blocks and places, each asked and changed; keeps what came out.
    struct Trial<'t>(&'t mut Vec<(u32, Block)>);

    impl SliceWork for Trial<'_> {
        #[inline(always)]
        fn run<S: Slices>(self) {
            let mut generator = Generator::seeded(5);
            for _ in 0..2000 {
                let mut block: Block = std::array::from_fn(|_| generator.bits() & generator.bits());
                let places: Places = std::array::from_fn(|_| generator.bits());
                let hits = S::hits(&block, &places);
                let which = generator.bits() as u32 & generator.bits() as u32;
                S::set(&mut block, &places, which);
                assert_eq!(S::hits(&block, &places), hits | which);
                self.0.push((hits, block));
            }
        }
    }

    #[test]
    fn wide_registers_do_what_plain_code_does() {
        let (mut plain, mut best) = (Vec::new(), Vec::new());
        Trial(&mut plain).run::<Portable>();
        run_on_slices(Trial(&mut best));
        assert!(plain == best && plain.iter().any(|(hits, _)| hits.count_ones() > 8));
    }
}
