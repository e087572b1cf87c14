//! Saturating counters of 1 to 16 bits, packed without straddling a word.
//!
//! ```text
//! 3-bit counters, 21 to a 64-bit word, one bit spare
//!  63 62 60        5 3 2 0
//! ┌──┬────┬── … ──┬───┬───┐
//! │ 0│ 20 │       │ 1 │ 0 │
//! └──┴────┴── … ──┴───┴───┘
//! ```

use crate::buffer::{Buffer, Line};
use crate::key::scale;
use crate::simd;
pub use crate::simd::{low_bits, nonzero_lanes};
use crate::{Error, Result};

/// The largest counters that are supported.
pub const MAX_CELL_BITS: u32 = 16;

/// A fixed number of counters, all zero at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    buffer: Buffer,
    length: u64,
    cell_bits: u32,
    per_word: u64,
    /// ⌈2^64 / per_word⌉: a multiplication by it divides, exactly for positions below 2^58.
    reciprocal: u64,
}

impl Counters {
    /// `length` zero counters of `cell_bits` bits each.
    pub fn new(length: u64, cell_bits: u32) -> Result<Self> {
        if !(1..=MAX_CELL_BITS).contains(&cell_bits) {
            return Err(Error::parameter("cell_bits", cell_bits, "from 1 to 16", "take 4, the usual width"));
        }
        let per_word = u64::from(64 / cell_bits);
        let buffer = Buffer::with_bits(length.div_ceil(per_word).saturating_mul(64))?;
        let reciprocal = (u64::MAX / per_word) + 1;
        Ok(Counters { buffer, length, cell_bits, per_word, reciprocal })
    }

    /// The bytes that such counters take in the format.
    pub fn byte_length(length: u64, cell_bits: u32) -> u64 {
        length.div_ceil(u64::from(64 / cell_bits)).div_ceil(8).saturating_mul(64)
    }

    /// How many counters there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bits of a counter.
    #[inline]
    pub fn cell_bits(&self) -> u32 {
        self.cell_bits
    }

    /// The largest value a counter holds.
    #[inline]
    pub fn max(&self) -> u16 {
        ((1u32 << self.cell_bits) - 1) as u16
    }

    #[inline]
    fn place(&self, position: u64) -> (usize, u32) {
        let word = scale(position, self.reciprocal);
        (word as usize, (position - word * self.per_word) as u32 * self.cell_bits)
    }

    /// The value of counter `position`.
    #[inline]
    pub fn get(&self, position: u64) -> u16 {
        let (word, shift) = self.place(position);
        (self.buffer.words()[word] >> shift) as u16 & self.max()
    }

    /// Sets counter `position`; a value too large becomes the largest.
    #[inline]
    pub fn set(&mut self, position: u64, value: u16) {
        let (word, shift) = self.place(position);
        let max = u64::from(self.max());
        let word = &mut self.buffer.words_mut()[word];
        *word = *word & !(max << shift) | u64::from(value).min(max) << shift;
    }

    /// Raises counter `position` by one unless it is at its largest; what it was.
    #[inline]
    pub fn raise(&mut self, position: u64) -> u16 {
        let (word, shift) = self.place(position);
        let max = u64::from(self.max());
        let word = &mut self.buffer.words_mut()[word];
        let value = *word >> shift & max;
        *word += u64::from(value != max) << shift;
        value as u16
    }

    /// Lowers counter `position` by one if it is not zero.
    #[inline]
    pub fn lower(&mut self, position: u64) {
        let (word, shift) = self.place(position);
        let max = u64::from(self.max());
        let word = &mut self.buffer.words_mut()[word];
        *word -= u64::from(*word >> shift & max != 0) << shift;
    }

    /// Lowers counter `position` by one if it is not zero; what it was.
    #[inline]
    pub fn lower_from(&mut self, position: u64) -> u16 {
        let (word, shift) = self.place(position);
        let max = u64::from(self.max());
        let word = &mut self.buffer.words_mut()[word];
        let value = *word >> shift & max;
        *word -= u64::from(value != 0) << shift;
        value as u16
    }

    /// Lowers counter `position`, which is not less, by an amount.
    #[inline]
    pub fn lower_by(&mut self, position: u64, amount: u16) {
        let (word, shift) = self.place(position);
        self.buffer.words_mut()[word] -= u64::from(amount) << shift;
    }

    /// Raises counter `position` to `value` unless it is there already; what it was.
    #[inline]
    pub fn raise_to(&mut self, position: u64, value: u16) -> u16 {
        let (word, shift) = self.place(position);
        let max = u64::from(self.max());
        let word = &mut self.buffer.words_mut()[word];
        let old = *word >> shift & max;
        *word += u64::from(value).min(max).saturating_sub(old) << shift;
        old as u16
    }

    /// Lowers `count` neighbouring counters from `start` on by one each, unless zero; behind the last
    /// counter comes the first. `count` is at most [`Counters::len`].
    #[inline]
    pub fn lower_run(&mut self, start: u64, count: u64) {
        let end = start + count;
        let (cell_bits, length) = (self.cell_bits, self.length);
        let words = self.buffer.words_mut();
        lower_cells(cell_bits, words, start, end.min(length));
        if end > length {
            lower_cells(cell_bits, words, 0, end - length);
        }
    }

    /// Halves every counter, rounding down.
    pub fn halve(&mut self) {
        // The bit that a shift brings into the top of a lane belongs to its neighbour.
        let keep = !(low_bits(self.cell_bits) << (self.cell_bits - 1));
        self.buffer.words_mut().iter_mut().for_each(|word| *word = *word >> 1 & keep);
    }

    /// Asks for the line of counter `position` to be brought near.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        self.buffer.prefetch_word(scale(position, self.reciprocal));
    }

    /// The words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.buffer.words()
    }

    /// The words, to change.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.buffer.words_mut()
    }

    /// How many counters are not zero.
    pub fn count_nonzero(&self) -> u64 {
        simd::run(CountNonzero { words: self.buffer.words(), cell_bits: self.cell_bits, flipped: 0 })
    }

    /// The share of counters that are not zero.
    pub fn fill(&self) -> f64 {
        self.count_nonzero() as f64 / self.length as f64
    }

    /// How many counters are at their largest value.
    pub fn count_saturated(&self) -> u64 {
        let words = self.buffer.words();
        // A counter is full exactly if its complement is zero.
        let others = simd::run(CountNonzero { words, cell_bits: self.cell_bits, flipped: u64::MAX });
        words.len() as u64 * self.per_word - others
    }

    /// The cache lines.
    #[inline]
    pub fn lines(&self) -> &[Line] {
        self.buffer.lines()
    }

    /// The cache lines, to change.
    #[inline]
    pub fn lines_mut(&mut self) -> &mut [Line] {
        self.buffer.lines_mut()
    }

    /// The bits that the counters take.
    pub fn memory_bits(&self) -> u64 {
        self.buffer.allocated_bits()
    }

    /// The bytes, as the format stores them.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// The bytes, to be filled by a decoder, which then calls [`Counters::check`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    /// Refuses counters beyond the last one that are not zero, and spare bits that are set.
    pub fn check(&self) -> Result<()> {
        let spare = !lane_mask(self.cell_bits);
        let (last, lanes) = ((self.length / self.per_word) as usize, self.length % self.per_word);
        let inside = (1u64 << (lanes as u32 * self.cell_bits)) - 1;
        let words = self.buffer.words();
        let beyond = words.iter().any(|word| word & spare != 0)
            || words[last..].iter().enumerate().any(|(at, word)| word & !(if at == 0 { inside } else { 0 }) != 0);
        if beyond { Err(Error::corrupt("the filter has counters set beyond its end")) } else { Ok(()) }
    }

    /// Sets every counter to zero.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }
}

/// Counts the lanes that are not zero, in words whose bits are first flipped where `flipped` has ones. Whoever watches a
/// filter fill reads all of it again and again, so this is work for wide registers.
struct CountNonzero<'w> {
    words: &'w [u64],
    cell_bits: u32,
    flipped: u64,
}

impl simd::Kernel for CountNonzero<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self, _: impl simd::SimdOps) -> u64 {
        let low = low_bits(self.cell_bits);
        let top = low << (self.cell_bits - 1);
        // All bits of a lane below its highest: added to those, they carry into the highest unless all of them are zero.
        let below = top - low;
        let mut count = 0;
        for word in self.words {
            let word = word ^ self.flipped;
            count += u64::from(((((word & below) + below) | word) & top).count_ones());
        }
        count
    }
}

/// All bits of all lanes of `cell_bits` in a word.
#[inline]
const fn lane_mask(cell_bits: u32) -> u64 {
    let used = 64 / cell_bits * cell_bits;
    if used == 64 { u64::MAX } else { (1 << used) - 1 }
}

/// Runs an expression with a counter width that the compiler knows: `with_width!(bits, D => f::<D>())`.
#[doc(hidden)]
#[macro_export]
macro_rules! with_width {
    ($cell_bits:expr, $width:ident => $call:expr) => {
        match $cell_bits {
            1 => {
                const $width: u32 = 1;
                $call
            }
            2 => {
                const $width: u32 = 2;
                $call
            }
            3 => {
                const $width: u32 = 3;
                $call
            }
            4 => {
                const $width: u32 = 4;
                $call
            }
            5 => {
                const $width: u32 = 5;
                $call
            }
            6 => {
                const $width: u32 = 6;
                $call
            }
            7 => {
                const $width: u32 = 7;
                $call
            }
            _ => {
                const $width: u32 = 8;
                $call
            }
        }
    };
}
pub use crate::with_width;

/// [`lower_range`] for widths up to 8, one counter at a time beyond.
fn lower_cells(cell_bits: u32, words: &mut [u64], first: u64, end: u64) {
    if cell_bits <= 8 {
        return with_width!(cell_bits, D => lower_range::<D>(words, first as usize, end as usize));
    }
    let per_word = u64::from(64 / cell_bits);
    let max = (1u64 << cell_bits) - 1;
    for position in first..end {
        let shift = (position % per_word) as u32 * cell_bits;
        let word = &mut words[(position / per_word) as usize];
        *word -= u64::from(*word >> shift & max != 0) << shift;
    }
}

/// Lowers a counter of `D` bits by one, unless zero.
#[inline]
pub fn lower_cell<const D: u32>(words: &mut [u64], position: usize) {
    let per_word = (64 / D) as usize;
    let word = &mut words[position / per_word];
    *word -= nonzero_lanes(*word, D, 1 << ((position % per_word) as u32 * D));
}

/// Lowers counters `first..end` of `D` bits each by one, unless zero: a whole word at a time.
#[inline]
pub fn lower_range<const D: u32>(words: &mut [u64], first: usize, end: usize) {
    if first >= end {
        return;
    }
    let (low, per_word) = (const { low_bits(D) }, (64 / D) as usize);
    let (from, to) = (first / per_word, (end - 1) / per_word);
    let skip = (first - from * per_word) as u32 * D;
    if end - first <= per_word {
        // In one word or two: both are worked on, since a branch would often be mispredicted.
        let beyond = (end - from * per_word).saturating_sub(per_word) as u32 * D;
        let here = (u64::MAX >> (64 - (end - first) as u32 * D)) << skip;
        words[from] -= nonzero_lanes(words[from], D, low & here);
        words[to] -= nonzero_lanes(words[to], D, low & !(u64::MAX << beyond));
        return;
    }
    let keep = (end - to * per_word) as u32 * D;
    let behind = u64::MAX << skip;
    let ahead = if keep == 64 { u64::MAX } else { (1 << keep) - 1 };
    words[from] -= nonzero_lanes(words[from], D, low & behind);
    for word in &mut words[from + 1..to] {
        *word -= nonzero_lanes(*word, D, low);
    }
    words[to] -= nonzero_lanes(words[to], D, low & ahead);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behave_like_a_vector_of_numbers(
            length in 1u64..500,
            cell_bits in 1u32..=16,
            steps in prop::collection::vec((any::<u64>(), any::<u16>()), 0..200),
        ) {
            let mut counters = Counters::new(length, cell_bits).expect("small");
            let mut plain = vec![0u16; length as usize];
            for (at, value) in steps {
                let position = at % length;
                counters.set(position, value);
                plain[position as usize] = value.min(counters.max());
            }
            for position in 0..length {
                prop_assert_eq!(counters.get(position), plain[position as usize]);
            }
            let nonzero = plain.iter().filter(|value| **value > 0).count() as u64;
            let saturated = plain.iter().filter(|value| **value == counters.max()).count() as u64;
            prop_assert_eq!(counters.count_nonzero(), nonzero);
            prop_assert_eq!(counters.count_saturated(), saturated);
            prop_assert!(counters.check().is_ok());
            prop_assert_eq!(counters.bytes().len() as u64, Counters::byte_length(length, cell_bits));
        }
    }

    proptest! {
        #[test]
        fn runs_are_lowered_as_single_counters_would_be(
            length in 1u64..300,
            cell_bits in 1u32..=16,
            values in prop::collection::vec(any::<u16>(), 300),
            start in any::<u64>(),
            count in any::<u64>(),
        ) {
            let (start, count) = (start % length, count % (length + 1));
            let mut fast = Counters::new(length, cell_bits).expect("small");
            for (position, value) in (0..length).zip(values) {
                fast.set(position, value % 3);
            }
            let mut plain = fast.clone();
            fast.lower_run(start, count);
            for step in 0..count {
                plain.lower((start + step) % length);
            }
            prop_assert_eq!(fast, plain);
        }
    }

    #[test]
    fn halving_rounds_every_counter_down() {
        for cell_bits in 1..=16 {
            let mut counters = Counters::new(100, cell_bits).expect("small");
            let value = |position: u64| (position * 37 % 71) as u16;
            (0..100).for_each(|position| counters.set(position, value(position)));
            counters.halve();
            assert!((0..100).all(|position| counters.get(position) == value(position).min(counters.max()) / 2));
            assert!(counters.check().is_ok());
        }
    }

    #[test]
    fn what_lies_beyond_the_end_is_noticed() {
        for (length, cell_bits) in [(1, 4), (16, 4), (21, 3), (22, 3), (100, 1)] {
            let mut counters = Counters::new(length, cell_bits).expect("small");
            let last = counters.bytes().len() - 1;
            counters.bytes_mut()[last] = 0x80;
            assert!(counters.check().is_err(), "{length} of {cell_bits} bits");
        }
    }
}
