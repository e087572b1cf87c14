//! A key as it travels: bytes → 128 bits → positions and shards.
//!
//! [`Key`] says what the bytes of a key are, [`Hashing`] makes 128 bits of them ([`KeyHash`]), and whatever a filter needs
//! is derived from those. [`Keys`] are many at once, in a slice or in a column of text; [`records`] finds and hashes many
//! keys of a block of text, quoted fields included. The random [`Generator`] that some filters hold is here, too: it is the
//! other source of positions.

mod generator;
mod hash;
mod many;
mod murmur;
mod quoted;
mod quotes;
pub mod records;
mod taken;
mod xxh3;

pub use generator::Generator;
pub use generator::STATE_BYTES;
pub use hash::{Hashing, KeyHash, Places, Probes, SecretKey};
pub use hash::{finalise, scale};
pub use many::{Keys, Offset, Packed};
pub use taken::{ByHash, TakenAsIs};

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// Something that has bytes to hash.
///
/// The same value is the same key however it is held, and in every language that has everbloom:
///
/// - Strings and byte slices are their bytes; a `char` is its UTF-8, so `'a'` is `"a"`.
/// - Integers are their 8 bytes, little-endian, whatever their width, so `5u8` and `5u64` are one key and `5` is not
///   `"5"`. A 128-bit integer that does not fit into 64 bits is its 16 bytes.
/// - A key has no type: eight bytes of text are the integer with these bytes, and `-1i64` is `u64::MAX`. Where keys of
///   several sorts meet in one filter, put the sort in front: `("user", 7)`.
/// - Tuples, of up to six, are their parts, each preceded by its length, so `("ab", "c")` is not `("a", "bc")`.
///
/// ```
/// use everbloom_cells::key::{Hashing, Key};
/// use std::borrow::Cow;
///
/// let hash = |key: &dyn Fn(&Hashing) -> _| key(&Hashing::default());
/// let one = hash(&|hashing| "user:7".hash_with(hashing));
/// assert_eq!(one, hash(&|hashing| String::from("user:7").hash_with(hashing)));
/// assert_eq!(one, hash(&|hashing| Cow::from("user:7").hash_with(hashing)));
/// assert_eq!(one, hash(&|hashing| b"user:7".hash_with(hashing)));
/// assert_ne!(one, hash(&|hashing| ("user:", 7).hash_with(hashing)));
/// ```
pub trait Key {
    /// Shows the key's bytes to `act`.
    fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R;

    /// The key's hash.
    #[inline(always)]
    fn hash_with(&self, hashing: &Hashing) -> KeyHash {
        self.with_bytes(|bytes| hashing.hash(bytes))
    }
}

/// Keys that are held by something else.
macro_rules! held_key {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> Key for $type {
            #[inline(always)]
            fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(act)
            }

            #[inline(always)]
            fn hash_with(&self, hashing: &Hashing) -> KeyHash {
                (**self).hash_with(hashing)
            }
        }
    )*};
}
held_key!([K: Key + ?Sized] &K, [K: Key + ?Sized] &mut K, [K: Key + ?Sized] Box<K>, [K: Key + ?Sized] Rc<K>);
held_key!([K: Key + ?Sized] Arc<K>, [K: Key + ToOwned + ?Sized] Cow<'_, K>);

macro_rules! bytes_key {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> Key for $type {
            #[inline(always)]
            fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
                act(self.as_ref())
            }

            // Without the closure, which would stay a function of its own and not see a constant length.
            #[inline(always)]
            fn hash_with(&self, hashing: &Hashing) -> KeyHash {
                hashing.hash(self.as_ref())
            }
        }
    )*};
}
bytes_key!([] [u8], [] str, [] String, [] Vec<u8>, [const N: usize] [u8; N]);
#[cfg(feature = "uuid")]
bytes_key!([] uuid::Uuid);

impl Key for char {
    #[inline]
    fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
        act(self.encode_utf8(&mut [0; 4]).as_bytes())
    }
}

macro_rules! integer_key {
    ($($type:ty as $wide:ty),*) => {$(
        impl Key for $type {
            #[inline(always)]
            fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
                act(&(*self as $wide).to_le_bytes())
            }

            #[inline(always)]
            fn hash_with(&self, hashing: &Hashing) -> KeyHash {
                hashing.hash_u64(*self as $wide as u64)
            }
        }
    )*};
}
integer_key!(u8 as u64, u16 as u64, u32 as u64, u64 as u64, usize as u64);
integer_key!(i8 as i64, i16 as i64, i32 as i64, i64 as i64, isize as i64);

impl Key for u128 {
    #[inline]
    fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
        match u64::try_from(*self) {
            Ok(short) => short.with_bytes(act),
            Err(_) => act(&self.to_le_bytes()),
        }
    }
}

impl Key for i128 {
    #[inline]
    fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
        match (i64::try_from(*self), u64::try_from(*self)) {
            (Ok(short), _) => short.with_bytes(act),
            (_, Ok(short)) => short.with_bytes(act),
            _ => act(&self.to_le_bytes()),
        }
    }
}

/// Joins the parts of a composite key: each part preceded by its length as 8 bytes, little-endian.
pub fn composite_key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    parts.into_iter().for_each(|part| append_part(&mut joined, part));
    joined
}

fn append_part(joined: &mut Vec<u8>, part: &[u8]) {
    joined.extend_from_slice(&(part.len() as u64).to_le_bytes());
    joined.extend_from_slice(part);
}

macro_rules! tuple_key {
    ($($name:ident $place:tt),*) => {
        impl<$($name: Key),*> Key for ($($name,)*) {
            fn with_bytes<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
                let mut joined = Vec::new();
                $(self.$place.with_bytes(|part| append_part(&mut joined, part));)*
                act(&joined)
            }
        }
    };
}
tuple_key!(A 0);
tuple_key!(A 0, B 1);
tuple_key!(A 0, B 1, C 2);
tuple_key!(A 0, B 1, C 2, D 3);
tuple_key!(A 0, B 1, C 2, D 3, E 4);
tuple_key!(A 0, B 1, C 2, D 3, E 4, F 5);

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

    #[test]
    fn a_value_is_one_key_however_it_is_held() {
        let hashing = Hashing::seeded(3);
        let hash = |key: &dyn Fn() -> KeyHash| key();
        macro_rules! alike {
            ($first:expr $(, $other:expr)*) => {
                $(assert_eq!(hash(&|| $first.hash_with(&hashing)), hash(&|| $other.hash_with(&hashing)));)*
            };
        }
        alike!("ä", String::from("ä"), 'ä', Cow::Borrowed("ä"), Box::<str>::from("ä"), "ä".as_bytes(), [0xc3u8, 0xa4]);
        alike!("ä", Arc::<str>::from("ä"), vec![0xc3u8, 0xa4], &&"ä");
        alike!(7u8, 7u16, 7u32, 7u64, 7usize, 7u128, 7i8, 7i16, 7i32, 7i64, 7isize, 7i128, &7, Box::new(7));
        alike!(-7i8, -7i16, -7i32, -7i64, -7isize, -7i128);
        alike!(u64::MAX, u128::from(u64::MAX), i128::from(u64::MAX));
        alike!(("a", 7), (String::from("a"), 7u8), ('a', 7u128));
        let wide = 1u128 << 64;
        alike!(wide, wide as i128, wide.to_le_bytes());
        assert_ne!(wide.hash_with(&hashing), 0u64.hash_with(&hashing));
    }

    #[test]
    fn parts_of_a_tuple_are_as_composite_keys_have_them() {
        let hashing = Hashing::default();
        let joined = composite_key([&b"ab"[..], &7u64.to_le_bytes()]);
        assert_eq!(("ab", 7).hash_with(&hashing), hashing.hash(&joined));
        assert_ne!((("a", "b"), "c").hash_with(&hashing), ("a", ("b", "c")).hash_with(&hashing));
    }

    #[cfg(feature = "uuid")]
    #[test]
    fn a_uuid_is_its_sixteen_bytes() {
        let bytes = [7u8; 16];
        let hashing = Hashing::default();
        assert_eq!(uuid::Uuid::from_bytes(bytes).hash_with(&hashing), bytes.hash_with(&hashing));
    }
}
