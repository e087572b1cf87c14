//! All the random numbers of one arrival, from one draw of the filter's generator.
//!
//! The generator moves once an arrival, however many numbers the arrival needs; so a batch can draw
//! for the arrivals ahead and ask for their cells before it comes to them, with the same verdicts.

use crate::hash::{KeyHash, Probes, finalise, scale};

/// A SplitMix64 sequence, named by its seed.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    state: u64,
}

impl Draws {
    #[inline(always)]
    pub(super) fn new(seed: u64) -> Self {
        Draws { state: seed }
    }

    /// 64 uniform bits.
    #[inline(always)]
    pub(super) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finalise(self.state)
    }

    /// 64 bits more from the state that the last were made from, at half the price: uniform given the
    /// high bits of the last.
    #[inline(always)]
    pub(super) fn more_bits(&self) -> u64 {
        let bits = (self.state ^ (self.state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        bits ^ (bits >> 32)
    }

    /// A uniform integer below `range`.
    #[inline(always)]
    pub(super) fn below(&mut self, range: u64) -> u64 {
        scale(self.bits(), range)
    }

    /// Any number of uniform integers below `range`.
    #[inline(always)]
    pub(super) fn positions(&mut self, range: u64) -> Probes {
        let high = self.bits();
        KeyHash { high, low: finalise(high) }.probes(range)
    }
}
