//! Keys: every number names one, as 8 bytes or as 40.

/// A key of 40 bytes.
pub type Long = [u8; 40];

/// A bijection that makes neighbours look unrelated.
fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ (bits >> 32)
}

/// A kind of key.
pub trait BenchKey: everbloom::Key + std::hash::Hash + Copy + 'static {
    /// What tables call it.
    const NAME: &'static str;

    /// The key with this number.
    fn numbered(number: u64) -> Self;

    /// The key's bytes.
    fn bytes(&self) -> &[u8];
}

impl BenchKey for u64 {
    const NAME: &'static str = "u64";

    fn numbered(number: u64) -> Self {
        scramble(number)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }
}

impl BenchKey for Long {
    const NAME: &'static str = "40-byte";

    fn numbered(number: u64) -> Self {
        let mut key = *b"https://example.org/items/0000000000000/";
        key[24..32].copy_from_slice(&scramble(number).to_le_bytes());
        key
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// `count` keys from number `start` on.
pub fn keys<K: BenchKey>(start: u64, count: usize) -> Vec<K> {
    (start..start + count as u64).map(K::numbered).collect()
}
