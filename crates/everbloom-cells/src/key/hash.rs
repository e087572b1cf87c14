//! From a key's bytes to 128 bits, and from those to positions.
//!
//! Every key is hashed **once**, to 128 bits; whatever a filter needs is derived from them, so one
//! hash can be asked of many filters ([`KeyHash`] is what the `*_hash` methods take).
//!
//! # Positions
//!
//! Double hashing, `(a + i·b) mod n`, is the usual way to stretch one hash over many probes. It is
//! not good enough: the probes of a key form an arithmetic progression, which at 20 probes costs a
//! factor of 80 in false positives (1.7e-5 against 2.2e-7 for 1,000 keys at 20 hashes). The cubic
//! term of *enhanced* double hashing does not help here either, because positions are taken from the
//! **high** bits of a 64-bit product, and the cubic term only moves the low ones. So each point of
//! the progression is mixed before it is scaled: a SplitMix-style generator whose step is the key's
//! own low half. The tests hold it to the independent-probe theory at 30 probes.
//!
//! That is [`KeyHash::probes`], for filters that forget. Those that never do have a faster sequence, [`KeyHash::places`]:
//! the two halves of the hash, then always the sum of the last number and of the one before it, turned by 27 bits. The
//! high bits of a number are its place, and turning brings up bits that were none yet, so up to 2^27 cells four places of
//! a key are independent exactly, and a fifth is tied to four others. Double hashing ties three. What that can cost is
//! one key that has four places of another one's, and so more easily a fifth: of n keys in m cells n/m^4 do, beside m^-1
//! for one place, which no test here can see at 30 places and 46,000 cells. All 128 bits are used, so that rates far
//! below n/2^64 hold as well. Of hashes that carry the key's length, eight bits are the same for keys of one length: their
//! fourth, fifth and sixth place are tied: given two, the third may have no more than a 256th of its values left. Any two are independent, and
//! what it costs is a key that shares the fourth and fifth with another one, n/m^2 of them, which then shares the sixth
//! with 256/m at most instead of 1/m; the tests see none of that, in 64 cells either.
//!
//! Scaling is `(x · n) >> 64`, so any `n` up to 2^64 works without a division.

use super::murmur::murmur_of_bytes;
use super::xxh3::{xxh3_of_bytes, xxh3_of_u64};
use crate::simd::PLACE_TURN;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher as _;

/// The 128 bits that stand for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeyHash {
    /// Bits that choose the word, line or block.
    pub high: u64,
    /// Bits that choose the place or the fingerprint within it.
    pub low: u64,
}

impl From<u128> for KeyHash {
    #[inline]
    fn from(bits: u128) -> Self {
        KeyHash { high: (bits >> 64) as u64, low: bits as u64 }
    }
}

/// Maps a uniform 64-bit value to `0..range` by its high bits.
#[inline]
pub const fn scale(bits: u64, range: u64) -> u64 {
    ((bits as u128 * range as u128) >> 64) as u64
}

/// A bijection of 64 bits in which every input bit reaches every output bit (Stafford's variant 13).
#[inline]
pub const fn finalise(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl KeyHash {
    /// The position in `0..range` that the high half chooses.
    #[inline]
    pub fn index(self, range: u64) -> u64 {
        scale(self.high, range)
    }

    /// Any number of positions in `0..range`, independent for practical purposes.
    #[inline]
    pub fn probes(self, range: u64) -> Probes {
        Probes { state: self.high, step: self.low | 1, range }
    }

    /// Any number of positions in `0..range`, independent for practical purposes, as filters that never forget have them.
    #[inline(always)]
    pub fn places(self, range: u64) -> Places {
        Places { numbers: [self.high, self.low], range }
    }

    /// The key's length in bytes, 255 if it is longer; only of hashes made by [`Hashing::Measured`].
    #[inline]
    pub fn key_length(self) -> u8 {
        self.low as u8
    }

    /// The hash with the key's length in place of the last byte.
    #[inline]
    fn measured(self, length: usize) -> Self {
        KeyHash { low: self.low & !255 | length.min(255) as u64, ..self }
    }

    /// The shard in `0..shards` that the key belongs to.
    ///
    /// A filter indexes with the bits of `high` and `low`; a shard chosen by those same bits would
    /// leave it only a slice of its cells. This one is a finaliser over both halves, so it tells a
    /// filter nothing.
    #[inline]
    pub fn shard(self, shards: u64) -> u64 {
        scale(finalise(self.high.rotate_left(32) ^ self.low.wrapping_mul(0x9e37_79b9_7f4a_7c15)), shards)
    }
}

const PROBE_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// The probe positions of one key; made by [`KeyHash::probes`].
#[derive(Debug, Clone)]
pub struct Probes {
    state: u64,
    step: u64,
    range: u64,
}

impl Probes {
    /// The next position. There is always one.
    #[inline]
    pub fn position(&mut self) -> u64 {
        let mixed = (self.state ^ (self.state >> 32)).wrapping_mul(PROBE_FACTOR);
        self.state = self.state.wrapping_add(self.step);
        scale(mixed ^ (mixed >> 32), self.range)
    }

    /// The state, what is added to it for each position, and what it is multiplied by: for wide registers.
    #[inline(always)]
    pub fn sequence(&self) -> (u64, u64, u64) {
        (self.state, self.step, PROBE_FACTOR)
    }
}

impl Iterator for Probes {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        Some(self.position())
    }
}

/// The places of one key; made by [`KeyHash::places`].
#[derive(Debug, Clone)]
pub struct Places {
    numbers: [u64; 2],
    range: u64,
}

impl Places {
    /// The next place. There is always one.
    #[inline(always)]
    pub fn place(&mut self) -> u64 {
        let [number, next] = self.numbers;
        self.numbers = [next, number.rotate_left(PLACE_TURN).wrapping_add(next)];
        scale(number, self.range)
    }

    /// The numbers that the next two places are taken from; those of all others are sums of the two before: for wide
    /// registers.
    #[inline(always)]
    pub fn numbers(&self) -> [u64; 2] {
        self.numbers
    }

    /// The places without the first so many.
    #[inline(always)]
    pub fn after(mut self, count: u32) -> Self {
        for _ in 0..count {
            self.place();
        }
        self
    }
}

impl Iterator for Places {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        Some(self.place())
    }
}

/// A 128-bit secret for input that an adversary chooses.
///
/// It is never written into a filter, only a check value that tells the right key from a wrong one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretKey([u8; 16]);

impl SecretKey {
    /// A key from 16 bytes of the caller's own randomness.
    pub fn new(bytes: [u8; 16]) -> Self {
        SecretKey(bytes)
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// How keys become hashes: the function and its seed.
///
/// Two filters agree about keys only if they hash alike, so this is part of every filter and of its
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hashing {
    /// XXH3-128 with a seed: fast, and right for keys that no adversary chooses.
    Xxh3 {
        /// The seed.
        seed: u64,
    },
    /// XXH3-128 with a seed, whose last byte gives way to the key's length (255 if it is longer): for filters
    /// that treat short and long keys differently. A hash is all that a filter sees of a key.
    Measured {
        /// The seed.
        seed: u64,
    },
    /// SipHash-2-4-128 under a secret key: slower, for keys that an adversary may choose.
    SipHash {
        /// The key.
        key: SecretKey,
    },
    /// MurmurHash64A twice, as RedisBloom hashes: it has no seed, and keys that share their hash are easy to make. Only
    /// filters that must equal RedisBloom's take it; others refuse it.
    Murmur,
}

impl Hashing {
    /// The function's number in files.
    pub fn id(&self) -> u8 {
        match self {
            Hashing::Xxh3 { .. } => 1,
            Hashing::SipHash { .. } => 2,
            Hashing::Measured { .. } => 3,
            Hashing::Murmur => 4,
        }
    }
}

impl Default for Hashing {
    fn default() -> Self {
        Hashing::Xxh3 { seed: 0 }
    }
}

impl Hashing {
    /// XXH3-128 with this seed.
    pub fn seeded(seed: u64) -> Self {
        Hashing::Xxh3 { seed }
    }

    /// XXH3-128 with this seed and the key's length.
    pub fn measured(seed: u64) -> Self {
        Hashing::Measured { seed }
    }

    /// SipHash-128 with this secret key.
    pub fn keyed(key: SecretKey) -> Self {
        Hashing::SipHash { key }
    }

    /// The hash of a key's bytes.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        match self {
            Hashing::Xxh3 { seed } => xxh3_of_bytes(key, *seed),
            other => other.hash_out_of_line(key),
        }
    }

    /// The hash by any function but the usual one, whose loops stay small without the others.
    #[inline(never)]
    fn hash_out_of_line(&self, key: &[u8]) -> KeyHash {
        match self {
            Hashing::Xxh3 { seed } => xxh3_of_bytes(key, *seed),
            Hashing::Measured { seed } => xxh3_of_bytes(key, *seed).measured(key.len()),
            Hashing::SipHash { key: secret } => siphash(secret, key),
            Hashing::Murmur => murmur_of_bytes(key),
        }
    }

    /// The hash of an integer's 8 bytes, little-endian.
    #[inline(always)]
    pub fn hash_u64(&self, key: u64) -> KeyHash {
        match self {
            Hashing::Xxh3 { seed } => xxh3_of_u64(key, *seed),
            other => other.hash_out_of_line(&key.to_le_bytes()),
        }
    }

    /// The name of the function, as specs and `info` print it.
    pub fn name(&self) -> &'static str {
        match self {
            Hashing::Xxh3 { .. } => "xxh3",
            Hashing::Measured { .. } => "xxh3_measured",
            Hashing::SipHash { .. } => "siphash",
            Hashing::Murmur => "murmur64a",
        }
    }

    /// The seed, where there is one to show.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Hashing::Xxh3 { seed } | Hashing::Measured { seed } => Some(*seed),
            Hashing::SipHash { .. } | Hashing::Murmur => None,
        }
    }

    /// The secret key, where there is one.
    pub fn secret_key(&self) -> Option<SecretKey> {
        match self {
            Hashing::SipHash { key } => Some(*key),
            Hashing::Xxh3 { .. } | Hashing::Measured { .. } | Hashing::Murmur => None,
        }
    }

    /// 64 bits for a stated purpose, different for every seed or key.
    pub fn derive(&self, purpose: &str) -> u64 {
        let hash = self.hash(purpose.as_bytes());
        finalise(hash.high ^ hash.low.rotate_left(17))
    }

    /// What the format stores to recognise the right secret key.
    pub fn check_value(&self) -> u64 {
        match self {
            Hashing::Xxh3 { .. } | Hashing::Measured { .. } | Hashing::Murmur => 0,
            Hashing::SipHash { .. } => self.derive("everbloom key check"),
        }
    }
}

fn siphash(secret: &SecretKey, key: &[u8]) -> KeyHash {
    let mut hasher = SipHasher24::new_with_key(&secret.0);
    hasher.write(key);
    hasher.finish128().as_u128().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn measured_hashes_carry_the_length_and_differ_in_nothing_else() {
        let (plain, measured) = (Hashing::seeded(3), Hashing::measured(3));
        for length in [0, 1, 16, 17, 240, 241, 254, 255, 256, 1000] {
            let key = vec![b'a'; length];
            let (one, other) = (plain.hash(&key), measured.hash(&key));
            assert_eq!(other.key_length() as usize, length.min(255));
            assert_eq!((one.high, one.low >> 8), (other.high, other.low >> 8));
        }
        assert_eq!(measured.hash_u64(77), measured.hash(&77u64.to_le_bytes()));
    }

    #[test]
    fn known_hashes_never_change() {
        // The published XXH3-128 of the empty input and the SipHash-2-4-128 test vector for the key
        // 00..0f and the message 00 01: files written today depend on them.
        assert_eq!(Hashing::seeded(0).hash(b""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128.into());
        let key = SecretKey::new(std::array::from_fn(|i| i as u8));
        let sip = Hashing::keyed(key).hash(&[0, 1]);
        let expected = 0xe4ff_0af6_de8b_a3fc_c75d_a4a4_8d22_7781_u128;
        assert_eq!(sip, expected.into());
    }

    #[test]
    fn probes_spread_beyond_32_bits() {
        let range = 1u64 << 40;
        let above = (0u64..1000)
            .flat_map(|key| key.hash_with(&Hashing::default()).probes(range).take(8))
            .filter(|&position| position >= 1 << 32)
            .count();
        assert!(above > 7_900, "{above} of 8000 positions beyond 2^32");
    }
}
