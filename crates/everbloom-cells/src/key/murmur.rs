//! The hash of RedisBloom: MurmurHash64A twice, the second time with the first one's result for a seed.
//!
//! Nothing about it can be chosen: its one use is to be equal to what another program computes. Its seed is public and
//! whoever knows it can make as many keys of one hash as they like, so filters that need not be equal to RedisBloom's do
//! not take it.

use super::KeyHash;

/// The multiplier of MurmurHash64A, which RedisBloom takes for its first seed, too.
const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;

/// The two halves of a key: `high` is where its positions begin, `low` how far they are apart.
#[inline]
pub(super) fn murmur_of_bytes(key: &[u8]) -> KeyHash {
    let high = murmur(key, FACTOR);
    KeyHash { high, low: murmur(key, high) }
}

/// MurmurHash64A.
#[inline(always)]
fn murmur(key: &[u8], seed: u64) -> u64 {
    let (words, rest) = key.as_chunks::<8>();
    let mut state = seed ^ (key.len() as u64).wrapping_mul(FACTOR);
    for word in words {
        let mut bits = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        bits ^= bits >> 47;
        state = (state ^ bits.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        state = (state ^ last_bytes(key, rest)).wrapping_mul(FACTOR);
    }
    state = (state ^ (state >> 47)).wrapping_mul(FACTOR);
    state ^ (state >> 47)
}

/// The bytes of `rest`, the one to seven last ones of `key`, as a number: read in one piece where there are others before.
#[inline(always)]
fn last_bytes(key: &[u8], rest: &[u8]) -> u64 {
    let length = rest.len();
    if let Some(eight) = key.last_chunk() {
        return u64::from_le_bytes(*eight) >> (64 - 8 * length);
    }
    match (rest.first_chunk(), rest.last_chunk()) {
        // Two fours, which overlap where they are alike.
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (length - 4))
        }
        _ => {
            let at = |index: usize| u64::from(rest[index]) << (8 * index);
            at(0) | at(length / 2) | at(length - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash, a byte at a time.
    fn plain(key: &[u8], seed: u64) -> u64 {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let mut state = seed ^ (key.len() as u64).wrapping_mul(FACTOR);
        for part in key.chunks(8) {
            if part.len() == 8 {
                let mut bits = number(part).wrapping_mul(FACTOR);
                bits ^= bits >> 47;
                bits = bits.wrapping_mul(FACTOR);
                state ^= bits;
            } else {
                state ^= number(part);
            }
            state = state.wrapping_mul(FACTOR);
        }
        state ^= state >> 47;
        state = state.wrapping_mul(FACTOR);
        state ^ (state >> 47)
    }

    #[test]
    fn keys_of_every_length_are_hashed_as_byte_by_byte() {
        let bytes: Vec<u8> = (0..200u32).map(|index| (index * 151 + 7) as u8).collect();
        for (start, end) in (0..8).flat_map(|start| (start..200).map(move |end| (start, end))) {
            for seed in [0, FACTOR, u64::MAX] {
                assert_eq!(murmur(&bytes[start..end], seed), plain(&bytes[start..end], seed), "{start}..{end}");
            }
        }
    }

    /// SMHasher's check: the hash of the hashes of 256 keys, published as 0x1f0d3804.
    #[test]
    fn the_function_is_the_published_one() {
        let keys: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> =
            (0..256).flat_map(|length| murmur(&keys[..length], 256 - length as u64).to_le_bytes()).collect();
        assert_eq!(murmur(&hashes, 0) as u32, 0x1f0d_3804);
    }

    #[test]
    fn known_hashes_never_change() {
        let known = [
            (&b""[..], 0x1ab1_1ea5_a7b2_c56e, 0xbbdd_cb5a_b56d_d547),
            (b"i0", 0x5106_d859_89fb_7057, 0x054b_05e2_9e89_3321),
            (b"absent77", 0x9828_50c2_682a_c974, 0xfed3_82db_42fd_bcf0),
            (b"a longer key of 32 bytes, exactly", 0x4558_8c7b_8de1_de8a, 0x341f_49fe_bb51_de70),
        ];
        for (key, high, low) in known {
            assert_eq!(murmur_of_bytes(key), KeyHash { high, low });
        }
    }
}
