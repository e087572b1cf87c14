//! An arrival at a line of counters: look up one in each of some neighbouring words, lower a run, set those.

/// What an arrival does at its line of counters of `D` bits.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The word of the arrival's first counter; each other one is a word further.
    pub word: usize,
    /// Where the counters are in their words is a sequence: it starts from this state, …
    pub state: u64,
    /// … adds this for each counter, …
    pub step: u64,
    /// … and mixes the sum with this factor.
    pub factor: u64,
    /// The first counter of the run, in the line.
    pub start: u32,
    /// How many counters are lowered: no more than a word has, and at least one.
    pub length: u32,
    /// What the arrival's counters are set to.
    pub value: u64,
    /// 1 if nothing is to change where none of the arrival's counters is zero.
    pub unless_seen: u64,
}

impl Visit {
    /// The counter of the arrival in the `probe`th of its words, which has `per_word` of them.
    #[inline(always)]
    fn position(&self, probe: usize, per_word: u32) -> u32 {
        let state = self.state.wrapping_add(self.step.wrapping_mul(probe as u64));
        let mixed = (state ^ state >> 32).wrapping_mul(self.factor);
        ((u128::from(mixed ^ (mixed >> 32)) * u128::from(per_word)) >> 64) as u32
    }

    /// The word in which the run begins, and the lanes to lower in it and in the next word.
    #[inline(always)]
    fn run<const D: u32>(&self) -> (u32, u64, u64) {
        let per_word = 64 / D;
        let (word, first) = (self.start / per_word, self.start % per_word);
        let beyond = (first + self.length).saturating_sub(per_word);
        let here = (u64::MAX >> (64 - self.length * D)) << (first * D);
        (word, here, !(u64::MAX << (beyond * D)))
    }
}

/// The lowest bit of every lane of `cell_bits` in a word.
#[inline]
pub const fn low_bits(cell_bits: u32) -> u64 {
    let mut mask = 0;
    let mut lane = 0;
    while lane < 64 / cell_bits {
        mask |= 1 << (lane * cell_bits);
        lane += 1;
    }
    mask
}

/// The lowest bit of every lane that is not zero.
#[inline]
pub const fn nonzero_lanes(word: u64, cell_bits: u32, low: u64) -> u64 {
    // Fold every bit of a lane onto its lowest; bits that cross into a neighbour are masked away,
    // because only the lowest bit of each lane is kept and a shift below `cell_bits` brings it
    // bits of its own lane alone.
    let folded = match cell_bits {
        1 => word,
        2 => word | word >> 1,
        3 => word | word >> 1 | word >> 2,
        _ => {
            let (mut folded, mut shift) = (word, 1);
            while shift < cell_bits {
                folded |= word >> shift;
                shift += 1;
            }
            folded
        }
    };
    folded & low
}

/// Makes a visit with `K` counters; whether none of them was zero. There is no branch on what it finds, because
/// the branch predictor would miss it half the time: where nothing is to change, nothing is masked in.
#[inline(always)]
pub(super) fn visit<const D: u32, const K: usize>(line: &mut [u64; 8], visit: &Visit) -> bool {
    let (low, lane) = const { (low_bits(D), u64::MAX >> (64 - D)) };
    let cells: [(usize, u32); K] =
        std::array::from_fn(|probe| ((visit.word + probe) % 8, visit.position(probe, 64 / D) * D));
    let seen = cells.iter().fold(1, |seen, (word, shift)| seen & u64::from(line[*word] >> shift & lane != 0));
    let mask = (seen & visit.unless_seen).wrapping_sub(1);
    let (word, here, there) = visit.run::<D>();
    for (word, lanes) in [(word, here), ((word + 1) % 8, there)] {
        let word = &mut line[word as usize];
        *word -= nonzero_lanes(*word, D, lanes & low & mask);
    }
    for (word, shift) in cells {
        let word = &mut line[word];
        *word = *word & !(lane << shift & mask) | visit.value << shift & mask;
    }
    seen == 1
}

#[cfg(target_arch = "x86_64")]
pub(super) mod wide {
    use super::{Visit, low_bits};
    use std::arch::x86_64::*;

    /// [`super::visit`] with the whole line in one register.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(in super::super) fn visit<const D: u32, const K: usize>(line: &mut [u64; 8], visit: &Visit) -> bool {
        let each = |number: u64| _mm512_set1_epi64(number as i64);
        let (low, lane) = const { (low_bits(D), u64::MAX >> (64 - D)) };
        let number = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let behind = |word: u64| _mm512_and_si512(_mm512_sub_epi64(number, each(word)), each(7));

        let probe = behind(visit.word as u64);
        let shifts = _mm512_mullo_epi64(positions::<D>(visit, probe), each(D.into()));
        let probed = _mm512_cmplt_epu64_mask(probe, each(K as u64));
        let cells = _mm512_sllv_epi64(each(lane), shifts);
        // SAFETY: a line is 64 bytes; neither load nor store needs alignment.
        let words = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        let seen = _mm512_mask_testn_epi64_mask(probed, words, cells) == 0;
        let changed = (u8::from(seen) & visit.unless_seen as u8).wrapping_sub(1);

        let (word, here, there) = visit.run::<D>();
        let behind = behind(word.into());
        let first = _mm512_maskz_set1_epi64(_mm512_cmpeq_epi64_mask(behind, each(0)), (here & low) as i64);
        let run = _mm512_mask_set1_epi64(first, _mm512_cmpeq_epi64_mask(behind, each(1)), (there & low) as i64);
        let folded = match D {
            1 => words,
            2 => _mm512_or_si512(words, _mm512_srli_epi64::<1>(words)),
            _ => {
                let two = _mm512_or_si512(words, _mm512_srli_epi64::<1>(words));
                _mm512_or_si512(two, _mm512_srli_epi64::<2>(words))
            }
        };
        let lowered = _mm512_sub_epi64(words, _mm512_maskz_and_epi64(changed, folded, run));
        let set = _mm512_sllv_epi64(each(visit.value), shifts);
        let written = _mm512_mask_or_epi64(lowered, probed & changed, _mm512_andnot_si512(cells, lowered), set);
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), written) };
        seen
    }

    /// [`Visit::position`] of eight probes, each with its number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn positions<const D: u32>(visit: &Visit, probe: __m512i) -> __m512i {
        let Visit { state, step, factor, .. } = *visit;
        let each = |number: u64| _mm512_set1_epi64(number as i64);
        let folded = |number| _mm512_xor_si512(number, _mm512_srli_epi64::<32>(number));
        let states = _mm512_add_epi64(each(state), _mm512_mullo_epi64(each(step), probe));
        let mixed = folded(_mm512_mullo_epi64(folded(states), each(factor)));
        let per_word = 64 / D;
        if per_word.is_power_of_two() {
            return _mm512_srlv_epi64(mixed, each((64 - per_word.ilog2()).into()));
        }
        // The upper half of a product of 96 bits.
        let range = each(per_word.into());
        let carried = _mm512_srli_epi64::<32>(_mm512_mul_epu32(mixed, range));
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(mixed), range);
        _mm512_srli_epi64::<32>(_mm512_add_epi64(high, carried))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ops::{Kernel, SimdOps, run, run_on_each};
    use super::*;

    /// Many visits to a line, of `K` counters of `D` bits each.
    struct Visits<const D: u32, const K: usize>;

    impl<const D: u32, const K: usize> Kernel for Visits<D, K> {
        type Output = (Vec<bool>, [u64; 8]);

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> Self::Output {
            let mut state = u64::from(D) * 10 + K as u64;
            let mut below = |range: u64| {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ state >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
                (mixed ^ mixed >> 32) % range
            };
            let (mut line, mut verdicts) = ([0; 8], Vec::new());
            let per_word = u64::from(64 / D);
            for _ in 0..3000 {
                let key = below(40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let visit = Visit {
                    word: key as usize % 8,
                    state: key,
                    step: 77,
                    factor: 0xd6e8_feb8_6659_fd93,
                    start: below(8 * per_word) as u32,
                    length: 1 + below(per_word) as u32,
                    value: 1 + below((1 << D) - 1),
                    unless_seen: below(2),
                };
                verdicts.push(ops.visit::<D, K>(&mut line, &visit));
            }
            (verdicts, line)
        }
    }

    #[test]
    fn wide_registers_visit_as_plain_code_does() {
        macro_rules! alike {
            ($(($bits:literal, $counters:literal))*) => {
                $(
                    let (plain, wider) = run_on_each(|| Visits::<$bits, $counters>);
                    for (name, outcome) in wider {
                        assert!(outcome == plain, "{name}: {} {}", $bits, $counters);
                    }
                    assert!(run(Visits::<$bits, $counters>) == plain);
                    assert!(plain.0.contains(&true) && plain.0.contains(&false));
                )*
            };
        }
        alike!((1, 1)(1, 8)(2, 3)(2, 4)(3, 1)(3, 4)(3, 7)(3, 8));
    }
}
