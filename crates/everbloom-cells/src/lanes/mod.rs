//! Words of short lanes in priority order.
//!
//! ```text
//! lane      4       3       2       1       0
//!      ┌───────┬───────┬───────┬───────┬───────┐
//!      │   0   │   0   │  fp c │  fp b │  fp a │   a matters most, two lanes are empty
//!      └───────┴───────┴───────┴───────┴───────┘
//!  bit  b·w                              w     0
//! ```
//!
//! Lanes hold fingerprints, 0 means empty, and empty lanes are always behind the others. All
//! operations work on the whole word at once. [`Shape`] knows how one word is divided, [`Words`] holds
//! many of them, packed without gaps: word i begins at bit i·stride and is read by one unaligned
//! 64-bit load, which is why a packed word has at most 57 bits. [`Wide`] words divide their bits in another way until they
//! are full.

mod wide;

pub use wide::{Forms, MOST_MOVED, Wide};

use crate::buffer::Buffer;
use crate::simd::prefetch;
use crate::{Error, Result};

/// The longest word that an unaligned load always covers: 64 bits less the 7 it may begin late.
pub const MAX_PACKED_BITS: u32 = 57;
/// Wider lanes than this are not needed: 2^−32 is the least rate of a full word.
pub const MAX_LANE_BITS: u32 = 32;

/// Numbers of keys that a word may have, 0 to 64; a power of two.
const CLASSES: usize = 128;

/// The keys of all words, given how many words have 0, 1, … of them.
fn keys_of(words: &[u64; CLASSES]) -> u64 {
    words.iter().zip(0..).map(|(words, keys)| words * keys).sum()
}

/// How a word is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    lanes: u32,
    lane_bits: u32,
    /// The lowest bit of every lane.
    low: u64,
    /// The highest bit of every lane.
    high: u64,
    /// All bits of all lanes.
    mask: u64,
}

impl Shape {
    /// `lanes` lanes of `lane_bits` bits.
    pub fn new(lanes: u32, lane_bits: u32) -> Result<Self> {
        if !(1..=MAX_LANE_BITS).contains(&lane_bits) {
            return Err(Error::parameter("lane_bits", lane_bits, "between 1 and 32", "9 bits suit a target of 1 %"));
        }
        if lanes == 0 || lanes.saturating_mul(lane_bits) > 64 {
            let needed = format!("between 1 and {}, so that a word has at most 64 bits", 64 / lane_bits);
            return Err(Error::parameter("lanes", lanes, needed, "5 lanes of 9 bits suit a target of 1 %"));
        }
        let low = (0..lanes).fold(0, |low, lane| low | 1 << (lane * lane_bits));
        let mask = u64::MAX >> (64 - lanes * lane_bits);
        Ok(Shape { lanes, lane_bits, low, high: low << (lane_bits - 1), mask })
    }

    /// Lanes in a word.
    #[inline]
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Bits of a lane.
    #[inline]
    pub fn lane_bits(&self) -> u32 {
        self.lane_bits
    }

    /// Bits of a word.
    #[inline]
    pub fn word_bits(&self) -> u32 {
        self.lanes * self.lane_bits
    }

    /// The largest fingerprint.
    #[inline]
    pub fn max_fingerprint(&self) -> u64 {
        u64::MAX >> (64 - self.lane_bits)
    }

    /// The shift of the last lane.
    #[inline]
    fn last(&self) -> u32 {
        self.word_bits() - self.lane_bits
    }

    /// The shift of the first lane that is zero in `word`, or something beyond the last lane's.
    #[inline]
    fn first_zero(&self, word: u64) -> u32 {
        // A borrow can flag lanes above a zero one wrongly, never the lowest.
        let flags = word.wrapping_sub(self.low) & !word & self.high;
        flags.trailing_zeros().wrapping_add(1).wrapping_sub(self.lane_bits)
    }

    /// The shift of the first lane that holds the fingerprint.
    #[inline]
    pub fn find(&self, word: u64, fingerprint: u64) -> Option<u32> {
        let shift = self.first_zero(word ^ fingerprint.wrapping_mul(self.low));
        (shift <= self.last()).then_some(shift)
    }

    /// The shift of the first empty lane, or of the last lane if none is.
    #[inline]
    pub fn free(&self, word: u64) -> u32 {
        lesser(self.first_zero(word), self.last())
    }

    /// How many lanes are in use.
    #[inline]
    pub fn occupied(&self, word: u64) -> u32 {
        self.lanes_before(self.first_zero(word)) as u32
    }

    /// How many lanes are in use if the first that is not has this shift.
    #[inline]
    fn lanes_before(&self, free: u32) -> usize {
        (if free <= self.last() { free / self.lane_bits } else { self.lanes }) as usize
    }

    /// The word with the fingerprint at shift `to`, the lanes from there up to shift `from` moved one
    /// on, and what was at `from` gone. `to` is not behind `from`.
    #[inline]
    pub fn place(&self, word: u64, fingerprint: u64, to: u32, from: u32) -> u64 {
        let before = (1u64 << to) - 1;
        let upto = (1u64 << from) - 1;
        let behind = (u64::MAX << from) << (self.lane_bits - 1) << 1;
        word & before | (word & upto & !before) << self.lane_bits | word & behind | fingerprint << to
    }

    /// Whether empty lanes are all behind the others.
    pub fn is_ordered(&self, word: u64) -> bool {
        word & self.mask == word && {
            let used = self.occupied(word) * self.lane_bits;
            used >= 64 || word >> used == 0
        }
    }
}

/// The lesser of two shifts, without the branch into which a compiler may turn `min`: whether a word is
/// full cannot be predicted, and a misprediction costs more than all the rest.
#[inline(always)]
pub const fn lesser(one: u32, other: u32) -> u32 {
    let difference = one.wrapping_sub(other).cast_signed();
    other.wrapping_add((difference & (difference >> 31)).cast_unsigned())
}

/// Many words of one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    buffer: Buffer,
    shape: Shape,
    /// How words are divided that are not full, if not by lanes.
    wide: Option<&'static Wide>,
    stride: u32,
    length: u64,
}

/// Words whose prints are compared to tell how many are equal.
const SAMPLED: u64 = 1 << 18;

impl Words {
    /// `length` empty words, each `stride` bits after the one before.
    pub fn new(length: u64, shape: Shape, wide: Option<&'static Wide>, stride: u32) -> Result<Self> {
        debug_assert!(stride >= shape.word_bits() && (stride <= MAX_PACKED_BITS || stride == 64));
        Ok(Self::in_part(Buffer::with_bits(Self::bits(length, stride))?, length, shape, wide, stride))
    }

    /// Empty words in memory that is not there yet: a `buffer` of fewer lines, which must be made as long as the words are
    /// before one is asked for.
    #[inline]
    pub fn in_part(buffer: Buffer, length: u64, shape: Shape, wide: Option<&'static Wide>, stride: u32) -> Self {
        Words { buffer, shape, wide, stride, length }
    }

    /// The memory behind the words.
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The memory behind the words, for who keeps something else there first.
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// The line in which the last byte lies that a change of word `index` writes.
    #[inline]
    pub fn last_line(index: u64, stride: u32) -> u64 {
        (index * u64::from(stride) / 8 + 7) / 64
    }

    /// The bits that such words take, with room for the last unaligned load.
    #[inline]
    pub fn bits(length: u64, stride: u32) -> u64 {
        (length.saturating_sub(1)).saturating_mul(stride.into()).saturating_add(64).next_multiple_of(512)
    }

    /// The words that fit into this many bits.
    pub fn fitting(memory_bits: u64, stride: u32) -> u64 {
        let whole = memory_bits / 512 * 512;
        if whole == 0 { 0 } else { (whole - 64) / u64::from(stride) + 1 }
    }

    /// How many words there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How a word is divided.
    #[inline]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How it is divided as long as it is not full, if not by lanes.
    #[inline]
    pub fn wide(&self) -> Option<&'static Wide> {
        self.wide
    }

    #[inline(always)]
    fn raw(&self, byte: usize) -> u64 {
        let mut raw = [0; 8];
        raw.copy_from_slice(&self.buffer.bytes()[byte..byte + 8]);
        u64::from_le_bytes(raw)
    }

    /// Word `index`.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        self.word_at(self.place(index))
    }

    /// Replaces word `index`, and gives what `change` says of it.
    #[inline(always)]
    pub fn update<T>(&mut self, index: u64, change: impl FnOnce(u64) -> (u64, T)) -> T {
        let place = self.place(index);
        let (word, outcome) = change(self.word_at(place));
        self.put_at(place, word);
        outcome
    }

    /// Where word `index` lies: its first byte, and the bits of that which belong to the word before.
    #[inline(always)]
    pub fn place(&self, index: u64) -> (usize, u32) {
        let bit = index * u64::from(self.stride);
        ((bit / 8) as usize, (bit % 8) as u32)
    }

    /// The word at a place.
    #[inline(always)]
    pub fn word_at(&self, (byte, shift): (usize, u32)) -> u64 {
        self.raw(byte) >> shift & self.shape.mask
    }

    /// Replaces the word at a place.
    #[inline(always)]
    pub fn put_at(&mut self, (byte, shift): (usize, u32), word: u64) {
        let raw = self.raw(byte) & !(self.shape.mask << shift) | word << shift;
        self.buffer.bytes_mut()[byte..byte + 8].copy_from_slice(&raw.to_le_bytes());
    }

    /// Asks for the one or two lines of word `index` to be brought near.
    #[inline(always)]
    pub fn prefetch(&self, index: u64) {
        let byte = (index * u64::from(self.stride) / 8) as usize;
        prefetch(self.buffer.bytes(), byte);
        // One packed word in nine reaches into the next line.
        prefetch(self.buffer.bytes(), byte + 7);
    }

    /// How many keys there are in all, and the rate of false positives at this moment.
    ///
    /// Which prints of a word are equal takes longer to find than how many there are. So, of many words, one in so many is
    /// looked at that `SAMPLED` are: the deviation of their mean is a 512th of that of one word.
    pub fn keys_and_rate(&self) -> (u64, f64) {
        let words = self.words_by_keys();
        let Some(wide) = self.wide else {
            let keys = keys_of(&words);
            return (keys, keys as f64 / (self.shape.max_fingerprint() as f64 * self.length as f64));
        };
        let every = (self.length / SAMPLED).max(1);
        // Of words with 0, 1, … keys: how many were looked at, and the different prints of those.
        let mut looked_at = [(0u64, 0u64); CLASSES];
        for word in (0..self.length).step_by(every as usize).map(|index| self.get(index)) {
            let keys = wide.keys(word);
            let (sampled, different) = &mut looked_at[keys as usize % CLASSES];
            *sampled += 1;
            // One print differs from no other.
            *different += u64::from(if keys > 1 { wide.different(word) } else { keys });
        }
        let different = |words: u64, keys: u32, (sampled, different): (u64, u64)| match sampled {
            // So few have so many keys that none was met: at most all of their prints differ.
            0 => words as f64 * f64::from(keys),
            _ if sampled == words => different as f64,
            _ => different as f64 / sampled as f64 * words as f64,
        };
        let classes = words.into_iter().zip(0..=self.shape.lanes).zip(looked_at);
        let rates = classes.map(|((words, keys), found)| different(words, keys, found) / wide.prints(keys) as f64);
        (keys_of(&words), rates.sum::<f64>() / self.length as f64)
    }

    /// How many keys there are in all.
    pub fn count_occupied(&self) -> u64 {
        keys_of(&self.words_by_keys())
    }

    /// How many words have 0, 1, … keys.
    fn words_by_keys(&self) -> [u64; CLASSES] {
        match self.wide {
            None => {
                // What takes a division is done once for all words that are alike.
                let by_place = self.words_by(|word| self.shape.first_zero(word));
                let mut words = [0; CLASSES];
                by_place.iter().zip(0..).for_each(|(count, free)| words[self.shape.lanes_before(free)] += count);
                words
            }
            Some(wide) => self.words_by(|word| wide.keys(word)),
        }
    }

    #[inline(always)]
    fn words_by(&self, keys: impl Fn(u64) -> u32) -> [u64; CLASSES] {
        // Most words have the same number of keys: one count alone would be waited for by the next word.
        let mut counts = [[0; CLASSES]; 4];
        for index in 0..self.length {
            counts[index as usize % 4][keys(self.get(index)) as usize % CLASSES] += 1;
        }
        std::array::from_fn(|keys| counts.iter().map(|counts| counts[keys]).sum())
    }

    /// The bits that were allocated.
    pub fn memory_bits(&self) -> u64 {
        self.buffer.allocated_bits()
    }

    /// The bytes, as the format stores them.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// The bytes, to be filled by a decoder, which then calls [`Words::check`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    /// Refuses words that arrivals could not have left: with a gap between their lanes, or wide ones with a print that is
    /// none.
    pub fn check(&self) -> Result<()> {
        let mut words = (0..self.length).map(|index| self.get(index));
        match self.wide {
            None if !words.all(|word| self.shape.is_ordered(word)) => {
                Err(Error::corrupt("the filter has an empty lane before a used one"))
            }
            Some(wide) if !words.all(|word| wide.is_possible(word)) => {
                Err(Error::corrupt("the filter has a word that no keys leave behind"))
            }
            _ => Ok(()),
        }
    }

    /// Empties every word.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The obviously right twin: a vector of fingerprints, best first.
    #[derive(Clone)]
    struct PlainWord {
        lanes: Vec<u64>,
        most: usize,
    }

    impl PlainWord {
        fn pack(&self, lane_bits: u32) -> u64 {
            self.lanes.iter().enumerate().fold(0, |word, (lane, print)| word | print << (lane as u32 * lane_bits))
        }

        fn insert(&mut self, print: u64, rank: usize) {
            self.lanes.insert(rank.min(self.lanes.len()).min(self.most - 1), print);
            self.lanes.truncate(self.most);
        }

        fn promote(&mut self, from: usize, to: usize) {
            let print = self.lanes.remove(from);
            self.lanes.insert(to, print);
        }
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        (1u32..=32).prop_flat_map(|lane_bits| {
            (1..=64 / lane_bits).prop_map(move |lanes| Shape::new(lanes, lane_bits).expect("fits"))
        })
    }

    proptest! {
        #[test]
        fn words_behave_like_vectors_of_fingerprints(
            shape in shapes(),
            steps in prop::collection::vec((any::<u64>(), 0usize..8, any::<bool>()), 1..60),
        ) {
            let mut plain = PlainWord { lanes: Vec::new(), most: shape.lanes() as usize };
            let mut word = 0;
            for (bits, rank, to_front) in steps {
                let print = 1 + bits % shape.max_fingerprint().min(12);
                let found = shape.find(word, print);
                prop_assert_eq!(
                    found.map(|shift| (shift / shape.lane_bits()) as usize),
                    plain.lanes.iter().position(|lane| *lane == print)
                );
                if let Some(from) = found {
                    let lane = (from / shape.lane_bits()) as usize;
                    let to = if to_front { 0 } else { lane.saturating_sub(1) };
                    word = shape.place(word, print, to as u32 * shape.lane_bits(), from);
                    plain.promote(lane, to);
                } else {
                    let from = shape.free(word);
                    let to = (rank as u32 * shape.lane_bits()).min(from);
                    word = shape.place(word, print, to, from);
                    plain.insert(print, rank);
                }
                prop_assert_eq!(word, plain.pack(shape.lane_bits()));
                prop_assert_eq!(shape.occupied(word) as usize, plain.lanes.len());
                prop_assert!(shape.is_ordered(word));
            }
        }

        #[test]
        fn packed_words_do_not_touch_their_neighbours(
            stride in prop_oneof![1u32..=57, Just(64u32)],
            length in 1u64..100,
            values in prop::collection::vec(any::<u64>(), 100),
        ) {
            let shape = Shape::new(if stride > 32 { 2 } else { 1 }, if stride > 32 { stride / 2 } else { stride }).expect("fits");
            let mut words = Words::new(length, shape, None, stride).expect("small");
            let expected: Vec<u64> = (0..length as usize).map(|index| values[index] & shape.mask).collect();
            for index in (0..length).rev() {
                words.update(index, |_| (expected[index as usize], ()));
            }
            for index in 0..length {
                prop_assert_eq!(words.get(index), expected[index as usize]);
            }
            prop_assert!(Words::fitting(words.memory_bits(), stride) >= length);
        }
    }

    #[test]
    fn words_that_are_read_are_checked_by_their_own_rules() {
        let shape = Shape::new(5, 9).expect("fits");
        let checked = |wide: Option<&'static Wide>, word: u64| {
            let mut words = Words::new(9, shape, wide, 45).expect("small");
            words.update(7, |_| (word, ()));
            words.check().is_ok()
        };
        let wide = Wide::of(shape).expect("suits");
        let (one_long, two_lanes) = (130_560 << 17, 1 << 9 | 1);
        assert!(checked(Some(wide), one_long) && !checked(None, one_long));
        assert!(checked(None, two_lanes) && !checked(Some(wide), 3 << 34 | two_lanes));
    }

    #[test]
    fn the_rate_of_many_words_is_told_from_some() {
        let shape = Shape::new(5, 9).expect("fits");
        let wide = Wide::of(shape).expect("suits");
        let length = 4 * SAMPLED + 3;
        let mut words = Words::new(length, shape, Some(wide), 45).expect("small");
        let mut generator = crate::key::Generator::seeded(9);
        let (mut sum, mut squares) = (0.0, 0.0);
        for index in 0..length {
            // Full words, in which one in fifty has two equal prints.
            let word = (0..5).fold(0, |word, lane| word | (1 + generator.below(510)) << (9 * lane));
            words.update(index, |_| (word, ()));
            let different = f64::from(wide.different(word));
            (sum, squares) = (sum + different, squares + different * different);
        }
        let (keys, rate) = words.keys_and_rate();
        assert_eq!(keys, 5 * length);
        let (mean, count) = (sum / length as f64, length as f64);
        let deviation = (squares / count - mean * mean).sqrt() / (SAMPLED as f64).sqrt();
        let found = rate * wide.prints(5) as f64;
        assert!(deviation > 0.0 && (found - mean).abs() < 4.0 * deviation, "{found} is not {mean} ± {deviation}");
    }

    #[test]
    fn gaps_between_lanes_are_noticed() {
        let shape = Shape::new(3, 5).expect("fits");
        assert!(shape.is_ordered(0) && shape.is_ordered(0b00001) && shape.is_ordered(0b11111_00001_10000));
        assert!(!shape.is_ordered(0b00001_00000) && !shape.is_ordered(0b00001_00000_00001));
        assert!(!shape.is_ordered(1 << 15));
    }
}
