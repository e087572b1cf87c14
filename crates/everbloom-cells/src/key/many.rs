//! Many keys, wherever they lie: in a slice, or one after another in one buffer.

use super::records::hash_short;
use super::xxh3::SHORT_KEYS;
use super::{Hashing, Key, KeyHash};
use crate::simd;

/// Many keys in their order, to be hashed some at a time.
pub trait Keys {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hashes the keys from `start` on, as many as `hashes` has room for.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    fn hash(&self, start: usize, hashing: &Hashing, hashes: &mut [KeyHash]);
}

impl<K: Key> Keys for [K] {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn hash(&self, start: usize, hashing: &Hashing, hashes: &mut [KeyHash]) {
        let keys = &self[start..start + hashes.len()];
        hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = key.hash_with(hashing));
    }
}

impl<K: Keys + ?Sized> Keys for &K {
    #[inline(always)]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline(always)]
    fn hash(&self, start: usize, hashing: &Hashing, hashes: &mut [KeyHash]) {
        (**self).hash(start, hashing, hashes);
    }
}

/// Where a key begins or ends, as columns of text have it.
pub trait Offset: Copy + PartialOrd {
    /// As a place in a buffer; one beyond every buffer if it is negative.
    fn place(self) -> usize;
}

impl Offset for i32 {
    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

impl Offset for i64 {
    #[inline(always)]
    fn place(self) -> usize {
        self as usize
    }
}

/// Keys one after another in one buffer, each from its offset to the next one's: a column of text.
///
/// ```
/// use everbloom_cells::key::{Hashing, KeyHash};
/// use everbloom_cells::key::{Keys, Packed};
///
/// let names = Packed::new(b"alicebobcarol", &[0i32, 5, 8, 13]).unwrap();
/// let mut hashes = [KeyHash::default(); 2];
/// names.hash(1, &Hashing::default(), &mut hashes);
/// assert_eq!(hashes, [Hashing::default().hash(b"bob"), Hashing::default().hash(b"carol")]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Packed<'b, O> {
    bytes: &'b [u8],
    offsets: &'b [O],
}

impl<'b, O: Offset> Packed<'b, O> {
    /// Keys between each two of these offsets; none if the offsets do not rise, or lie beyond the bytes.
    pub fn new(bytes: &'b [u8], offsets: &'b [O]) -> Option<Self> {
        let rising = offsets.windows(2).fold(true, |rising, two| rising & (two[0] <= two[1]));
        let within = |offset: Option<&O>| offset.is_none_or(|offset| offset.place() <= bytes.len());
        (rising && within(offsets.first()) && within(offsets.last())).then_some(Packed { bytes, offsets })
    }
}

impl<O: Offset> Keys for Packed<'_, O> {
    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    fn hash(&self, start: usize, hashing: &Hashing, hashes: &mut [KeyHash]) {
        let offsets = &self.offsets[start..start + hashes.len() + 1];
        simd::run(HashingPacked { keys: Packed { bytes: self.bytes, offsets }, hashing, hashes })
    }
}

struct HashingPacked<'b, O> {
    keys: Packed<'b, O>,
    hashing: &'b Hashing,
    hashes: &'b mut [KeyHash],
}

impl<O: Offset> simd::Kernel for HashingPacked<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) {
        let HashingPacked { keys: Packed { bytes, offsets }, hashing, hashes } = self;
        for (group, hashes) in hashes.chunks_mut(SHORT_KEYS).enumerate() {
            let offsets = &offsets[group * SHORT_KEYS..][..hashes.len() + 1];
            let done = match (hashing, hashes.first_chunk_mut()) {
                (Hashing::Xxh3 { seed }, Some(hashes)) if ops.has_wide_registers() => {
                    hash_short(bytes, offsets[0].place(), 0, |index| offsets[index + 1].place(), *seed, hashes)
                }
                _ => false,
            };
            if !done {
                for (ends, hash) in offsets.windows(2).zip(hashes) {
                    *hash = hashing.hash(&bytes[ends[0].place()..ends[1].place()]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Generator;

    #[test]
    fn packed_keys_hash_as_they_do_alone() {
        let mut generator = Generator::seeded(3);
        // Long runs of short keys, of which one is empty or long now and then, and keys of any length.
        for longest in [3, 8, 9, 40, 300] {
            let lengths: Vec<usize> = (0..1000).map(|_| generator.below(longest + 1) as usize).collect();
            let bytes: Vec<u8> = (0..lengths.iter().sum()).map(|_| generator.below(256) as u8).collect();
            let mut offsets = vec![0i64];
            offsets.extend(lengths.iter().scan(0, |end, length| {
                *end += *length as i64;
                Some(*end)
            }));
            let narrow: Vec<i32> = offsets.iter().map(|offset| *offset as i32).collect();
            for hashing in [Hashing::seeded(9), Hashing::measured(9), Hashing::Murmur] {
                for start in [0, 1, 500, 999, 1000] {
                    let (mut wide, mut other) = (vec![KeyHash::default(); 1000 - start], Vec::new());
                    other.resize(wide.len(), KeyHash::default());
                    Packed::new(&bytes, &offsets).expect("offsets that fit").hash(start, &hashing, &mut wide);
                    Packed::new(&bytes, &narrow).expect("offsets that fit").hash(start, &hashing, &mut other);
                    let ends = offsets[start..].windows(2);
                    let alone = ends.map(|ends| hashing.hash(&bytes[ends[0] as usize..ends[1] as usize]));
                    assert_eq!(wide, alone.collect::<Vec<_>>(), "keys of up to {longest} bytes");
                    assert_eq!(wide, other);
                }
            }
        }
    }

    #[test]
    fn short_keys_are_hashed_together_up_to_the_last_bytes() {
        for spare in 0..9 {
            let bytes = vec![7; 64 + spare];
            let offsets: Vec<i32> = (0..=16).map(|key| key * 4).collect();
            let mut hashes = [KeyHash::default(); 16];
            Packed::new(&bytes, &offsets).expect("offsets that fit").hash(0, &Hashing::default(), &mut hashes);
            assert_eq!(hashes, [Hashing::default().hash(&[7; 4]); 16]);
        }
    }

    #[test]
    fn offsets_that_lie_are_refused() {
        for wrong in [&[0, 4][..], &[-1, 0], &[2, 1, 3], &[0, 2, i32::MIN], &[4], &[-1], &[i32::MAX, i32::MAX]] {
            assert!(Packed::new(b"abc", wrong).is_none(), "{wrong:?}");
        }
        assert_eq!(Packed::new(b"abc", &[1, 1, 3]).map(|keys| keys.len()), Some(2));
        assert_eq!(Packed::<i64>::new(b"abc", &[]).map(|keys| keys.len()), Some(0));
    }
}
