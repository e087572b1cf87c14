//! A set that changes, and its summary for others: counters at home, plain bits on the wire.
//!
//! ```text
//! at home   0 2 0 1 1 0 3 0    a key goes: its counters fall, and bits that no key needs any more are cleared
//! on wire   0 1 0 1 1 0 1 0    what peers get, an eighth of a byte per cell
//! ```
//!
//! This is what caches that share their contents do (Fan et al. 2000, summary cache). How many hashes a key has is the
//! caller's to say, the same every time.

use everbloom::{KeyHash, Result};
use everbloom_cells::bits::Bits;
use everbloom_cells::counters::Counters;

/// The usual width of a counter: at half fill one in 10^15 overflows.
const CELL_BITS: u32 = 4;

/// Counters, and the bits that are set where a counter is not zero.
#[derive(Debug, Clone)]
pub struct Summary {
    counters: Counters,
    bits: Bits,
}

impl Summary {
    /// The summary of an empty set.
    pub fn new(num_bits: u64) -> Result<Self> {
        Ok(Summary { counters: Counters::new(num_bits, CELL_BITS)?, bits: Bits::new(num_bits)? })
    }

    /// Puts a key with so many hashes into the set.
    pub fn insert(&mut self, hash: KeyHash, num_hashes: u32) {
        for position in hash.probes(self.bits.len()).take(num_hashes as usize) {
            let count = self.counters.get(position);
            self.counters.set(position, count.saturating_add(1));
            self.bits.set(position);
        }
    }

    /// Takes a key out that is inside, and was put in with as many hashes.
    ///
    /// A counter that reached its maximum stays there: how many keys it stands for is no longer known.
    pub fn remove(&mut self, hash: KeyHash, num_hashes: u32) {
        for position in hash.probes(self.bits.len()).take(num_hashes as usize) {
            let count = self.counters.get(position);
            if count < self.counters.max() {
                self.counters.set(position, count.saturating_sub(1));
            }
            if count <= 1 {
                self.bits.unset(position);
            }
        }
    }

    /// What is sent to others.
    pub fn bits(&self) -> &Bits {
        &self.bits
    }
}

/// Whether bits that were sent may have a key with so many hashes.
#[inline]
pub fn may_hold(bits: &Bits, hash: KeyHash, num_hashes: u32) -> bool {
    hash.probes(bits.len()).take(num_hashes as usize).all(|position| bits.get(position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom_cells::key::Hashing;

    #[test]
    fn keys_come_and_go_and_leave_nothing_behind() {
        let hash = |key: u64| Hashing::seeded(1).hash_u64(key);
        let hashes = |key: u64| (key % 7) as u32;
        let mut summary = Summary::new(4000).expect("memory");
        (0..500).for_each(|key| summary.insert(hash(key), hashes(key)));
        assert!((0..500).all(|key| may_hold(summary.bits(), hash(key), hashes(key))));
        let mut others = Summary::new(4000).expect("memory");
        (250..500).for_each(|key| others.insert(hash(key), hashes(key)));
        (0..250).for_each(|key| summary.remove(hash(key), hashes(key)));
        assert_eq!(summary.bits(), others.bits());
        (250..500).for_each(|key| summary.remove(hash(key), hashes(key)));
        assert_eq!(summary.bits().count_ones(), 0);
    }

    #[test]
    fn a_counter_that_overflowed_is_never_cleared() {
        let hash = |key: u64| Hashing::seeded(1).hash_u64(key);
        let mut summary = Summary::new(1).expect("memory");
        (0..20).for_each(|key| summary.insert(hash(key), 1));
        (0..19).for_each(|key| summary.remove(hash(key), 1));
        assert!(may_hold(summary.bits(), hash(19), 1));
    }
}
