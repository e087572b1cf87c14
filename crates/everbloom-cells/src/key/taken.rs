//! Maps by hashes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are hashes already, of 64 or 128 bits.
pub type ByHash<K, V> = HashMap<K, V, BuildHasherDefault<TakenAsIs>>;

/// The hash of a hash is itself.
#[derive(Debug, Default, Clone)]
pub struct TakenAsIs(u64);

impl Hasher for TakenAsIs {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(32) ^ word;
    }
}
