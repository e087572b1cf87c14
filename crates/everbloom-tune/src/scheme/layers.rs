//! The layers of a stacked filter, as data.

use crate::ribbon::MAX_WIDTH;
use everbloom::{Error, Result};
use libm::exp2;

/// The most pairs of layers behind the first; a third gains nothing measurable.
pub(crate) const MAX_PAIRS: usize = 4;

/// A map of hot negatives and the filter of the members that it takes for such.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Bits of the map's values: it takes 2^−width of the members for hot negatives.
    pub width: u32,
    /// The rate of the filter behind it.
    pub target_fpr: f64,
}

impl Pair {
    pub(crate) fn map_rate(self) -> f64 {
        exp2(-f64::from(self.width))
    }
}

/// The layers behind the first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Design {
    pairs: Vec<Pair>,
}

impl Design {
    /// These pairs of layers, unchecked: for searches that try many.
    pub(crate) fn of(pairs: Vec<Pair>) -> Self {
        Design { pairs }
    }

    /// These pairs of layers.
    pub fn new(pairs: Vec<Pair>) -> Result<Self> {
        Design { pairs }.checked()
    }

    /// The design, if it can be built.
    pub fn checked(self) -> Result<Self> {
        if self.pairs.len() > MAX_PAIRS {
            let needed = format!("at most {MAX_PAIRS}");
            return Err(Error::parameter("layers", self.pairs.len(), needed, "two pairs give nearly all of the gain"));
        }
        for pair in &self.pairs {
            if !(1..=MAX_WIDTH).contains(&pair.width) {
                let needed = format!("between 1 and {MAX_WIDTH}");
                return Err(Error::parameter("width", pair.width, needed, "try 6"));
            }
            if !(pair.target_fpr > 0.0 && pair.target_fpr < 1.0) {
                return Err(Error::parameter("target_fpr", pair.target_fpr, "above 0 and below 1", "try 0.01"));
            }
        }
        Ok(self)
    }

    /// The pairs of layers behind the first, in order.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The rate of false positives for hot negatives and for other keys, given that of the first layer.
    pub fn rates(&self, first_rate: f64) -> (f64, f64) {
        let hot = self.pairs.iter().fold(first_rate, |rate, pair| rate * pair.target_fpr);
        let behind = |rest: f64, pair: &Pair| (1.0 - pair.map_rate()) + pair.map_rate() * pair.target_fpr * rest;
        (hot, first_rate * self.pairs.iter().rev().fold(1.0, behind))
    }
}
