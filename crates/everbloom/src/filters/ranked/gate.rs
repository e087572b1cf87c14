//! The importance gate: which arrivals are worth a lane at all.
//!
//! A histogram of the importances of arrivals that looked distinct. When more of them come than the
//! filter has lanes, the least important are turned away, so that what is left fits. Counts are halved
//! when they reach several times the capacity, so the threshold follows the stream.

use crate::error::{Error, Result};
use crate::traits::Importance;
use crate::wire::{StateReader, StateWriter};

/// Classes of importance.
const BINS: usize = 64;
/// The window, in capacities, after which counts are halved.
const WINDOW: u64 = 16;
/// Arrivals between two looks at the histogram.
const PERIOD: u64 = 256;

/// What the gate takes of the filter's memory.
pub(super) const GATE_BITS: u64 = (BINS as u64 + 2) * 64;

#[derive(Debug, Clone)]
pub(super) struct ImportanceGate {
    capacity: u64,
    counts: [u64; BINS],
    total: u64,
    threshold: usize,
}

fn bin(importance: Importance) -> usize {
    (importance.share_of(BINS as u32) as usize).min(BINS - 1)
}

impl ImportanceGate {
    pub(super) fn new(capacity: u64) -> Self {
        ImportanceGate { capacity, counts: [0; BINS], total: 0, threshold: 0 }
    }

    /// Whether an arrival of this importance may have a lane.
    pub(super) fn admits(&self, importance: Importance) -> bool {
        bin(importance) >= self.threshold
    }

    /// Notes an arrival that looked distinct, admitted or not.
    pub(super) fn count(&mut self, importance: Importance) {
        self.counts[bin(importance)] += 1;
        self.total += 1;
        if self.total.is_multiple_of(PERIOD) {
            self.adjust();
        }
    }

    fn adjust(&mut self) {
        if self.total >= self.capacity.saturating_mul(WINDOW).max(PERIOD * 2) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
        let mut above = 0;
        let full = |count: &u64| {
            above += count;
            above > self.capacity
        };
        self.threshold = self.counts.iter().rev().position(full).map_or(0, |from_top| BINS - 1 - from_top);
    }

    pub(super) fn save(&self, state: StateWriter) -> StateWriter {
        let state = self.counts.iter().fold(state, |state, count| state.u64(*count));
        state.u64(self.total).u64(self.threshold as u64)
    }

    pub(super) fn restore(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        for count in &mut self.counts {
            *count = state.u64()?;
        }
        self.total = state.u64()?;
        self.threshold = state.u64()? as usize;
        let sum = self.counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
        if sum != Some(self.total) || self.threshold >= BINS {
            return Err(Error::corrupt("the filter's importance gate is inconsistent"));
        }
        Ok(())
    }
}
