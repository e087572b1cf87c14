//! The random generator that lives inside a filter.
//!
//! Xoshiro256++, seeded, value-stable, part of the filter's bytes: the same seed and the same
//! arrivals give the same verdicts and the same bytes on every machine, replica and restart. A
//! filter advances it only by observing.

use crate::key::{Hashing, scale};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How many bytes the state takes in the format.
pub const STATE_BYTES: usize = 32;

/// A seeded generator whose state can be saved and resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator(Xoshiro256PlusPlus);

impl Generator {
    /// The generator that a seed names.
    pub fn seeded(seed: u64) -> Self {
        Generator(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The generator of a filter that hashes this way.
    pub fn for_filter(hashing: &Hashing) -> Self {
        Self::seeded(hashing.derive("everbloom generator"))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform integer below `range`; its bias is below `range`/2^64.
    #[inline]
    pub fn below(&mut self, range: u64) -> u64 {
        scale(self.bits(), range)
    }

    /// A uniform number in 0..1 with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The state, to be resumed by [`Generator::resume`].
    pub fn state(&self) -> [u8; STATE_BYTES] {
        self.0.state()
    }

    /// The generator that had this state; none if it is all zeros, from which no generator moves.
    pub fn resume(state: [u8; STATE_BYTES]) -> Option<Self> {
        (state != [0; STATE_BYTES]).then(|| Generator(Xoshiro256PlusPlus::from_seed(state)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumes_where_it_was() {
        let mut first = Generator::seeded(7);
        first.bits();
        let mut second = Generator::resume(first.state()).expect("a live state");
        assert_eq!((first.bits(), first.below(10)), (second.bits(), second.below(10)));
    }

    #[test]
    fn values_are_frozen() {
        let mut generator = Generator::seeded(0);
        assert_eq!([generator.bits(), generator.bits()], [0x53175d61490b23df, 0x61da6f3dc380d507]);
    }
}
