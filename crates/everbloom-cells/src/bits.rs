//! Single bits.

use crate::buffer::Buffer;
use crate::{Error, Result};

/// A fixed number of bits, all zero at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits {
    buffer: Buffer,
    length: u64,
}

impl Bits {
    /// `length` zero bits.
    pub fn new(length: u64) -> Result<Self> {
        Ok(Bits { buffer: Buffer::with_bits(length)?, length })
    }

    /// A copy, or an error if there is no memory for it.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Bits { buffer: self.buffer.try_clone()?, length: self.length })
    }

    /// How many bits there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether bit `position` is set.
    #[inline]
    pub fn get(&self, position: u64) -> bool {
        is_set(self.buffer.words(), position)
    }

    /// Sets bit `position`; true if it was not set.
    #[inline]
    pub fn set(&mut self, position: u64) -> bool {
        set(self.buffer.words_mut(), position)
    }

    /// Clears bit `position`.
    #[inline]
    pub fn unset(&mut self, position: u64) {
        self.buffer.words_mut()[(position / 64) as usize] &= !(1 << (position % 64));
    }

    /// Asks for the line of bit `position` to be brought near.
    #[inline]
    pub fn prefetch(&self, position: u64) {
        self.buffer.prefetch_word(position / 64);
    }

    /// How many bits are set.
    pub fn count_ones(&self) -> u64 {
        self.buffer.count_ones()
    }

    /// The share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.count_ones() as f64 / self.length as f64
    }

    /// The words, with zeros after the last bit.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.buffer.words()
    }

    /// The words, to change; bits after the last must stay zero.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.buffer.words_mut()
    }

    /// The bytes, as the format stores them.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// The bytes, to be filled by a decoder, which then calls [`Bits::check`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    /// The bytes that `length` bits take in the format.
    pub fn byte_length(length: u64) -> u64 {
        length.div_ceil(512) * 64
    }

    /// Refuses bits set after the last one, which would falsify every count.
    pub fn check(&self) -> Result<()> {
        check_end(self.words(), self.length)
    }

    /// Sets every bit to zero.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }
}

#[inline(always)]
fn is_set(words: &[u64], position: u64) -> bool {
    words[(position / 64) as usize] >> (position % 64) & 1 == 1
}

/// Sets a bit; true if it was not set.
#[inline(always)]
fn set(words: &mut [u64], position: u64) -> bool {
    let word = &mut words[(position / 64) as usize];
    let old = *word;
    *word |= 1 << (position % 64);
    *word != old
}

/// Refuses words in which bits from `length` on are set.
pub fn check_end(words: &[u64], length: u64) -> Result<()> {
    let (whole, rest) = ((length / 64) as usize, length % 64);
    let beyond = words[whole..].iter().enumerate().any(|(index, word)| {
        let inside = if index == 0 { (1u64 << rest) - 1 } else { 0 };
        word & !inside != 0
    });
    if beyond { Err(Error::corrupt("the filter has bits set beyond its end")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behave_like_a_vector_of_bools(length in 1u64..2000, steps in prop::collection::vec((any::<u64>(), any::<bool>()), 0..200)) {
            let mut bits = Bits::new(length).expect("small");
            let mut plain = vec![false; length as usize];
            for (at, on) in steps {
                let position = at % length;
                if on {
                    prop_assert_eq!(bits.set(position), !plain[position as usize]);
                } else {
                    bits.unset(position);
                }
                plain[position as usize] = on;
            }
            for position in 0..length {
                prop_assert_eq!(bits.get(position), plain[position as usize]);
            }
            prop_assert_eq!(bits.count_ones(), plain.iter().filter(|bit| **bit).count() as u64);
            prop_assert!(bits.check().is_ok());
        }
    }

    #[test]
    fn bits_behind_the_end_are_noticed() {
        for length in [1, 63, 64, 65, 511, 513] {
            let mut bits = Bits::new(length).expect("small");
            let last = bits.bytes().len() - 1;
            bits.bytes_mut()[last] = 0x80;
            assert!(bits.check().is_err(), "{length}");
        }
        let mut full = Bits::new(512).expect("small");
        full.bytes_mut().fill(0xff);
        assert!(full.check().is_ok());
    }
}
