//! All the random numbers of one arrival, from one draw of the filter's generator.
//!
//! The filter's generator moves once per arrival, however many numbers the arrival needs. So a batch can draw
//! for later arrivals and prefetch their cells, and its verdicts stay those of single arrivals.

use everbloom::KeyHash;
use everbloom_cells::key::{Probes, finalise, scale};

/// The sequence of folded products (Wang Yi's wyrand) that starts from a seed. It takes half the time of mixing,
/// which shows where an arrival needs many numbers.
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
        self.state = self.state.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.state) * u128::from(self.state ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    /// A uniform integer below `range`.
    #[inline(always)]
    pub(super) fn below(&mut self, range: u64) -> u64 {
        scale(self.bits(), range)
    }

    /// A uniform integer below `range`, and another below 2^16.
    #[inline(always)]
    pub(super) fn below_with_fraction(&mut self, range: u64) -> (u64, u32) {
        let product = u128::from(self.bits()) * u128::from(range);
        ((product >> 64) as u64, (product as u64 >> 48) as u32)
    }

    /// A uniform integer below `range`, one below `part`, and one below 2^16.
    #[inline(always)]
    pub(super) fn below_twice(&mut self, range: u64, part: u32) -> (u64, u32, u32) {
        let product = u128::from(self.bits()) * u128::from(range);
        let within = (product as u64 >> 32) * u64::from(part);
        ((product >> 64) as u64, (within >> 32) as u32, within as u32 >> 16)
    }

    /// Any number of uniform integers below `range`.
    #[inline(always)]
    pub(super) fn positions(&mut self, range: u64) -> Probes {
        let high = self.bits();
        KeyHash { high, low: finalise(high) }.probes(range)
    }
}
