//! XXH3-128, to the letter of its specification: of keys of at most eight bytes, where the length need not be asked for,
//! or is asked for many keys at once; and of keys of 17 to 128 bytes, which most are, where it becomes part of the loop
//! that hashes them. The tests hold all of it to the crate that hashes everything else.

use super::KeyHash;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// XXH3-128 of any bytes.
#[inline(always)]
pub(super) fn xxh3_of_bytes(key: &[u8], seed: u64) -> KeyHash {
    match key.len() {
        17..=128 => xxh3_of_medium(key, seed),
        _ => xxh3_128_with_seed(key, seed).into(),
    }
}

/// The first 128 bytes of the default secret.
const SECRET: [u64; 16] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
    0xcb00_c391_bb52_283c,
    0xa32e_531b_8b65_d088,
    0x4ef9_0da2_9748_6471,
    0xd8ac_dea9_46ef_1938,
    0x3f34_9ce3_3f76_faa8,
    0x1d4f_0bc7_c7bb_dcf9,
    0x3159_b4cd_4be0_518a,
    0x6473_78d9_c97e_9fc8,
];

const PRIMES: [u64; 3] = [0x9e37_79b1_85eb_ca87, 0xc2b2_ae3d_27d4_eb4f, 0x85eb_ca77_c2b2_ae63];

/// XXH3-128 of 17 to 128 bytes: pairs of 16 bytes, one from each end, from the middle outwards.
#[inline(always)]
fn xxh3_of_medium(key: &[u8], seed: u64) -> KeyHash {
    let length = key.len();
    let (mut low, mut high) = ((length as u64).wrapping_mul(PRIMES[0]), 0u64);
    for pair in [3, 2, 1, 0] {
        if length > 32 * pair {
            let (front, back) = (words_at(key, 16 * pair), words_at(key, length - 16 * (pair + 1)));
            low = low.wrapping_add(folded(front, 4 * pair, seed)) ^ back[0].wrapping_add(back[1]);
            high = high.wrapping_add(folded(back, 4 * pair + 2, seed)) ^ front[0].wrapping_add(front[1]);
        }
    }
    let length = (length as u64).wrapping_sub(seed).wrapping_mul(PRIMES[1]);
    let mixed = low.wrapping_mul(PRIMES[0]).wrapping_add(high.wrapping_mul(PRIMES[2])).wrapping_add(length);
    KeyHash { high: xxh3_avalanche(mixed).wrapping_neg(), low: xxh3_avalanche(low.wrapping_add(high)) }
}

#[inline(always)]
fn words_at(key: &[u8], at: usize) -> [u64; 2] {
    [word_at(key, at), word_at(key, at + 8)]
}

#[inline(always)]
fn word_at(key: &[u8], at: usize) -> u64 {
    // There are always eight.
    key[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The halves of a product of two words, one upon the other.
#[inline(always)]
fn folded(words: [u64; 2], secret: usize, seed: u64) -> u64 {
    let (one, other) = (SECRET[secret].wrapping_add(seed), SECRET[secret + 1].wrapping_sub(seed));
    let product = u128::from(words[0] ^ one) * u128::from(words[1] ^ other);
    (product >> 64) as u64 ^ product as u64
}

#[inline(always)]
fn xxh3_avalanche(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 37)).wrapping_mul(0x1656_6791_9e37_79f9);
    bits ^ (bits >> 32)
}

/// XXH3-128 of exactly eight bytes: without the choice by length an integer takes 1.5 ns instead of 3.5.
#[inline(always)]
pub(super) fn xxh3_of_u64(key: u64, seed: u64) -> KeyHash {
    let product = u128::from(key ^ xxh3_flip(seed)) * u128::from(xxh3_factor(8));
    xxh3_of_product((product >> 64) as u64, product as u64)
}

/// Bytes 16 to 32 of the default secret, its two halves combined, and the seed: what four to eight bytes meet.
#[inline(always)]
const fn xxh3_flip(seed: u64) -> u64 {
    const FLIP: u64 = 0xdb97_9083_e96d_d4de ^ 0x1f67_b3b7_a4a4_4072;
    FLIP.wrapping_add(seed ^ ((seed as u32).swap_bytes() as u64) << 32)
}

#[inline(always)]
const fn xxh3_factor(length: u64) -> u64 {
    0x9e37_79b1_85eb_ca87 + (length << 2)
}

#[inline(always)]
fn xxh3_of_product(high: u64, mut low: u64) -> KeyHash {
    let high = high.wrapping_add(low << 1);
    low ^= high >> 3;
    low = (low ^ (low >> 35)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    KeyHash { high: xxh3_avalanche(high), low: low ^ (low >> 28) }
}

/// How many short keys are hashed together.
pub(super) const SHORT_KEYS: usize = 16;

/// XXH3-128 of the first one to eight bytes of each word; what comes after them does not matter.
///
/// The lengths of short keys cannot be predicted, so both cases are computed for every key, in registers that hold
/// several keys: 0.55 of the time that they take one by one.
#[inline(always)]
pub(super) fn xxh3_of_short(
    words: &[u64; SHORT_KEYS],
    lengths: &[u64; SHORT_KEYS],
    seed: u64,
) -> [KeyHash; SHORT_KEYS] {
    let (mut highs, mut lows) = ([0; SHORT_KEYS], [0; SHORT_KEYS]);
    for index in 0..SHORT_KEYS {
        let (word, length) = (words[index], lengths[index]);
        let (shorter, longer) = (xxh3_of_one_to_three(word, length, seed), xxh3_of_four_to_eight(word, length, seed));
        highs[index] = if length < 4 { shorter.high } else { longer.high };
        lows[index] = if length < 4 { shorter.low } else { longer.low };
    }
    let mut hashes = [KeyHash::default(); SHORT_KEYS];
    for index in 0..SHORT_KEYS {
        hashes[index] = KeyHash { high: highs[index], low: lows[index] };
    }
    hashes
}

#[inline(always)]
fn xxh3_of_four_to_eight(word: u64, length: u64, seed: u64) -> KeyHash {
    let last_four = word >> (8 * (length.wrapping_sub(4) & 7));
    let key = word & LOW_HALF | last_four << 32;
    let (high, low) = wide_product(key ^ xxh3_flip(seed), xxh3_factor(length));
    xxh3_of_product(high, low)
}

/// The first byte, the middle one and the last, and the length.
#[inline(always)]
fn xxh3_of_one_to_three(word: u64, length: u64, seed: u64) -> KeyHash {
    // Bytes 0 to 8 and 8 to 16 of the default secret, the two halves of each combined.
    const FLIPS: [u64; 2] = [0x396c_feb8 ^ 0xbe4b_a423, 0x2c81_017c ^ 0x1cad_21f7];
    let byte = |at: u64| word >> (8 * (at & 7)) & 255;
    let combined = byte(0) << 16 | byte(length >> 1) << 24 | byte(length.wrapping_sub(1)) | length << 8;
    // In lanes of 64 bits: the four bytes turned round, and all of it by 13 bits.
    let turned = combined >> 24 | combined >> 8 & 0xff00 | combined << 8 & 0xff_0000 | combined << 24 & 0xff00_0000;
    let turned = (turned << 13 | turned >> 19) & LOW_HALF;
    let avalanche = |bits: u64| {
        let bits = (bits ^ (bits >> 33)).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        let bits = (bits ^ (bits >> 29)).wrapping_mul(0x1656_67b1_9e37_79f9);
        bits ^ (bits >> 32)
    };
    KeyHash {
        high: avalanche(turned ^ FLIPS[1].wrapping_sub(seed)),
        low: avalanche(combined ^ FLIPS[0].wrapping_add(seed)),
    }
}

const LOW_HALF: u64 = 0xffff_ffff;

/// The high and the low half of a product, by halves: no wide register multiplies more than 32 bits at a time.
#[inline(always)]
fn wide_product(one: u64, other: u64) -> (u64, u64) {
    let (one_low, one_high) = (one & LOW_HALF, one >> 32);
    let (other_low, other_high) = (other & LOW_HALF, other >> 32);
    let (lows, across) = (one_low * other_low, one_high * other_low);
    let middle = (lows >> 32) + (across & LOW_HALF) + one_low * other_high;
    (one_high * other_high + (across >> 32) + (middle >> 32), middle << 32 | lows & LOW_HALF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Hashing, Key, SecretKey, finalise};

    #[test]
    fn integers_hash_as_their_bytes_do() {
        let values = (0..64).flat_map(|shift| [1u64 << shift, u64::MAX >> shift, 0x0123_4567_89ab_cdef << shift]);
        for (value, seed) in values.zip((0..7u64).map(|seed| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).cycle()) {
            for hashing in [Hashing::seeded(seed), Hashing::keyed(SecretKey::new([seed as u8; 16]))] {
                assert_eq!(hashing.hash_u64(value), hashing.hash(&value.to_le_bytes()), "{value:x} {hashing:?}");
                assert_eq!((value as i64).hash_with(&hashing), value.hash_with(&hashing));
            }
        }
    }

    #[test]
    fn bytes_of_every_length_hash_as_the_specification_has_it() {
        let bytes: Vec<u8> = (0..300u64).map(|at| finalise(at) as u8).collect();
        for length in 0..=300 {
            for seed in [0, 1, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
                let expected: KeyHash = xxh3_128_with_seed(&bytes[..length], seed).into();
                assert_eq!(Hashing::seeded(seed).hash(&bytes[..length]), expected, "{length} bytes, seed {seed}");
            }
        }
    }

    #[test]
    fn short_keys_hash_together_as_they_do_alone() {
        for (round, seed) in (0..200u64).zip([0, 1, u64::MAX, 0x9e37_79b9_7f4a_7c15].into_iter().cycle()) {
            let words = std::array::from_fn(|index| finalise(round << 8 | index as u64));
            let lengths = std::array::from_fn(|index| 1 + (index as u64 + round) % 8);
            let expected = std::array::from_fn(|index| {
                Hashing::seeded(seed).hash(&u64::to_le_bytes(words[index])[..lengths[index] as usize])
            });
            assert_eq!(xxh3_of_short(&words, &lengths, seed), expected);
        }
    }
}
