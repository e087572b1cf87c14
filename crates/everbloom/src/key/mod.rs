//! A key as it travels: bytes → 128 bits → positions and shards.
//!
//! [`Key`] says what the bytes of a key are, [`Hashing`] makes 128 bits of them ([`KeyHash`]), and whatever a filter needs
//! is derived from those. [`records`] finds and hashes many keys of a block of text at once. The random [`Generator`] that
//! some filters hold is here, too: it is the other source of positions.

mod generator;
mod hash;
pub mod records;
mod xxh3;

pub use generator::Generator;
pub(crate) use generator::STATE_BYTES;
pub use hash::{Hashing, KeyHash, Probes, SecretKey};
pub(crate) use hash::{finalise, scale};

/// Something that has bytes to hash.
///
/// Strings and byte slices are their bytes. Integers are their 8 bytes, little-endian, whatever
/// their width, so `5u8` and `5u64` are one key and `5` is not `"5"`. Tuples are their parts, each
/// behind its length, so `("ab", "c")` is not `("a", "bc")`.
pub trait Key {
    /// The key's hash.
    fn hash_with(&self, hashing: &Hashing) -> KeyHash;
}

impl<K: Key + ?Sized> Key for &K {
    #[inline(always)]
    fn hash_with(&self, hashing: &Hashing) -> KeyHash {
        (**self).hash_with(hashing)
    }
}

macro_rules! bytes_key {
    ($($type:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn hash_with(&self, hashing: &Hashing) -> KeyHash {
                hashing.hash(self.as_ref())
            }
        }
    )*};
}
bytes_key!([u8], str, String, Vec<u8>);

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> KeyHash {
        hashing.hash(self)
    }
}

macro_rules! integer_key {
    ($($type:ty => $wide:ty),*) => {$(
        impl Key for $type {
            #[inline(always)]
            fn hash_with(&self, hashing: &Hashing) -> KeyHash {
                hashing.hash_u64(<$wide>::from(*self) as u64)
            }
        }
    )*};
}
integer_key!(u8 => u64, u16 => u64, u32 => u64, u64 => u64, i8 => i64, i16 => i64, i32 => i64, i64 => i64);

/// Joins the parts of a composite key: each part behind its length as 8 bytes, little-endian.
pub fn composite_key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_le_bytes());
        joined.extend_from_slice(part);
    }
    joined
}

macro_rules! tuple_key {
    ($($name:ident $place:tt),*) => {
        impl<$($name: AsRef<[u8]>),*> Key for ($($name,)*) {
            fn hash_with(&self, hashing: &Hashing) -> KeyHash {
                hashing.hash(&composite_key([$(self.$place.as_ref()),*]))
            }
        }
    };
}
tuple_key!(A 0, B 1);
tuple_key!(A 0, B 1, C 2);
tuple_key!(A 0, B 1, C 2, D 3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_eight_bytes_and_not_their_digits() {
        let hashing = Hashing::default();
        assert_eq!(5u8.hash_with(&hashing), 5u64.hash_with(&hashing));
        assert_eq!(5u64.hash_with(&hashing), hashing.hash(&[5, 0, 0, 0, 0, 0, 0, 0]));
        assert_ne!(5u64.hash_with(&hashing), "5".hash_with(&hashing));
    }

    #[test]
    fn composite_keys_keep_their_parts_apart() {
        let hashing = Hashing::default();
        assert_ne!(("ab", "c").hash_with(&hashing), ("a", "bc").hash_with(&hashing));
    }
}
