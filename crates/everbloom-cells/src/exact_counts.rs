//! How often keys came, exactly but for chance collisions of 64-bit hashes.

use crate::key::{ByHash, KeyHash};
use crate::{Error, Result};

/// Bytes of a slot of a map of the standard library: a hash, its count, and a byte that says whether it is used.
const SLOT_BYTES: u64 = 17;

/// Counts by 64 bits of a key's hash.
///
/// ```
/// use everbloom_cells::key::Hashing;
/// use everbloom_cells::exact_counts::ExactCounts;
///
/// let hash = |key| Hashing::default().hash_u64(key);
/// let mut counts = ExactCounts::within(8 * 1024)?;
/// assert!(counts.add(hash(1))?);
/// assert!(!counts.add(hash(1))?);
/// assert_eq!((counts.count(hash(1)), counts.count(hash(2)), counts.len()), (2, 0, 1));
/// # Ok::<(), everbloom_cells::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ExactCounts {
    counts: ByHash<u64, u64>,
    limit: Option<Limit>,
}

/// So many keys, in so much memory.
#[derive(Debug)]
struct Limit {
    keys: usize,
    memory_bits: u64,
}

impl ExactCounts {
    /// As many keys as the memory holds; without such a limit, as many as come ([`Default`]). A map of the standard library
    /// has a power of two of slots, and uses seven in eight of them.
    pub fn within(memory_bits: u64) -> Result<Self> {
        let slots = (memory_bits / 8 / SLOT_BYTES).max(8);
        let keys = (1usize << slots.ilog2().min(40)) / 8 * 7;
        let mut counts = ByHash::default();
        // Memory that is not touched is not taken.
        counts.try_reserve(keys).map_err(|_| Error::OutOfMemory { bytes: memory_bits / 8 })?;
        Ok(ExactCounts { counts, limit: Some(Limit { keys, memory_bits }) })
    }

    /// Counts a key once more; whether it is new. An error if it is one more than fit.
    #[inline]
    pub fn add(&mut self, hash: KeyHash) -> Result<bool> {
        if let Some(count) = self.counts.get_mut(&hash.high) {
            *count += 1;
            return Ok(false);
        }
        let refused = |counts: &Self| Error::OutOfMemory { bytes: counts.memory_bits() / 8 };
        if self.full_bits().is_some() || self.counts.try_reserve(1).is_err() {
            return Err(refused(self));
        }
        self.counts.insert(hash.high, 1);
        Ok(true)
    }

    /// The memory that it may take, if another key would be one more than fit.
    pub fn full_bits(&self) -> Option<u64> {
        self.limit.as_ref().filter(|limit| self.counts.len() >= limit.keys).map(|limit| limit.memory_bits)
    }

    /// How often a key came.
    pub fn count(&self, hash: KeyHash) -> u64 {
        self.counts.get(&hash.high).copied().unwrap_or(0)
    }

    /// The number of different keys.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether none has come.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The memory it takes.
    pub fn memory_bits(&self) -> u64 {
        (self.counts.capacity() as u64).div_ceil(7) * 8 * SLOT_BYTES * 8
    }

    /// The chance that any two of its keys share a hash.
    pub fn collision(&self) -> f64 {
        let keys = self.counts.len() as f64;
        keys * keys / libm::exp2(65.0)
    }
}
