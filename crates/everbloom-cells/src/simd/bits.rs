//! The bits of a key that lie anywhere in a filter, asked for or set one after another.
//!
//! Each place is a number of the key's sequence, scaled to the range. So none lies beyond it, and whether the range lies
//! within the words is asked once a key instead of at every place, which is felt where all is in cache: a place is a
//! product, a shift and a load.

use super::ops::PLACE_TURN;
#[cfg(target_arch = "x86_64")]
use super::{InstructionSet, x86};

/// The first two numbers of a key's sequence; all others are the one before plus the one before that, turned.
pub(super) type Numbers = (u64, u64);

/// Whether the bits at the first `count` places are all set. Panics if there is no range, or not within the words.
#[inline(always)]
pub fn all_set(words: &[u64], range: u64, numbers: Numbers, count: u32) -> bool {
    #[cfg(target_arch = "x86_64")]
    if InstructionSet::used() >= InstructionSet::Avx2 {
        // SAFETY: the instructions were detected.
        return unsafe { x86::all_set(words, range, numbers, count) };
    }
    all_set_here(words, range, numbers, count)
}

/// [`all_set`] as a part of its caller: for kernels, which are compiled for newer instructions as a whole.
#[inline(always)]
pub fn all_set_here(words: &[u64], range: u64, numbers: Numbers, count: u32) -> bool {
    let mut places = Places::within(words.len(), range, numbers);
    // Two at a time: a branch for each is mispredicted too often, and each bit more that is read for nothing costs as much.
    let mut both = || places.bit(words) & places.bit(words) & 1 == 1;
    for _ in 0..count / 4 {
        if !(both() && both()) {
            return false;
        }
    }
    if count & 2 != 0 && !both() {
        return false;
    }
    count & 1 == 0 || places.bit(words) & 1 == 1
}

/// Sets the bits at the first `count` places; true if one was not set. Panics as [`all_set`] does. Always a part of its
/// caller: most do not ask whether a key is new, and the answer costs more than newer instructions gain.
#[inline(always)]
pub fn set_all(words: &mut [u64], range: u64, numbers: Numbers, count: u32) -> bool {
    let mut places = Places::within(words.len(), range, numbers);
    let mut missing = 0;
    // By fours, since what a loop asks at each place is felt as well.
    for _ in 0..count / 4 {
        for _ in 0..4 {
            missing |= places.set(words);
        }
    }
    if count & 2 != 0 {
        missing |= places.set(words);
        missing |= places.set(words);
    }
    if count & 1 != 0 {
        missing |= places.set(words);
    }
    missing != 0
}

/// Places within so many words.
struct Places {
    numbers: Numbers,
    range: u64,
}

impl Places {
    #[inline(always)]
    fn within(words: usize, range: u64, numbers: Numbers) -> Self {
        // Without the numbers, which every key would put where a message finds them.
        assert!(range.wrapping_sub(1) / 64 < words as u64, "the range lies within the words");
        Places { numbers, range }
    }

    /// The next place: below the range, or 0 if the range is 0; so in one of as many words as there were said to be.
    #[inline(always)]
    fn next(&mut self) -> u64 {
        let (number, next) = self.numbers;
        self.numbers = (next, number.rotate_left(PLACE_TURN).wrapping_add(next));
        ((u128::from(number) * u128::from(self.range)) >> 64) as u64
    }

    /// The bit at the next place, and others above it.
    #[inline(always)]
    fn bit(&mut self, words: &[u64]) -> u64 {
        let place = self.next();
        debug_assert!(place / 64 < words.len() as u64);
        // SAFETY: the place is in one of the words that `within` was told of, which are these.
        unsafe { *words.get_unchecked((place / 64) as usize) >> (place % 64) }
    }

    /// Sets the bit at the next place; not 0 if it was not set.
    #[inline(always)]
    fn set(&mut self, words: &mut [u64]) -> u64 {
        let place = self.next();
        debug_assert!(place / 64 < words.len() as u64);
        // SAFETY: as in `bit`.
        let word = unsafe { words.get_unchecked_mut((place / 64) as usize) };
        let (old, bit) = (*word, 1 << (place % 64));
        *word = old | bit;
        bit & !old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    /// The places, one by one, by the definition.
    fn naive_places(range: u64, (mut number, mut next): Numbers, count: u32) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let place = ((u128::from(number) * u128::from(range)) >> 64) as u64;
                (number, next) = (next, number.rotate_left(27).wrapping_add(next));
                place
            })
            .collect()
    }

    fn numbers(key: u64) -> Numbers {
        let mix = |bits: u64| (bits ^ bits >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mix(mix(key + 1)), mix(mix(!key)))
    }

    #[test]
    fn keys_are_set_and_found_as_bit_by_bit() {
        for range in [1u64, 63, 64, 65, 1000, 1 << 16] {
            for count in 0..=33 {
                let mut plain = vec![false; range as usize];
                let mut words = vec![0u64; range.div_ceil(64) as usize];
                for key in 0..(range / 8).clamp(4, 300) {
                    let places = naive_places(range, numbers(key), count);
                    let has_all = places.iter().all(|place| plain[*place as usize]);
                    assert_eq!(all_set(&words, range, numbers(key), count), has_all, "{range} {count} {key}");
                    assert_eq!(all_set_here(&words, range, numbers(key), count), has_all);
                    assert_eq!(set_all(&mut words, range, numbers(key), count), !has_all);
                    places.iter().for_each(|place| plain[*place as usize] = true);
                }
                assert!((0..plain.len()).all(|place| (words[place / 64] >> (place % 64) & 1 == 1) == plain[place]));
            }
        }
    }

    #[test]
    fn the_highest_number_is_the_last_place_and_a_range_beyond_the_words_is_refused() {
        let mut words = [0u64; 2];
        assert!(set_all(&mut words, 128, (u64::MAX, u64::MAX), 2));
        assert_eq!(words, [0, 1 << 63]);
        for range in [0, 129, 1 << 40, u64::MAX] {
            assert!(catch_unwind(|| all_set(&[0, 0], range, (u64::MAX, 0), 1)).is_err(), "{range}");
        }
        assert!(catch_unwind(|| all_set(&[], 1, (0, 0), 1)).is_err());
    }
}
