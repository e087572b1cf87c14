//! What a filter says of itself.

use libm::{expm1, ldexp};

/// What a filter knows about itself right now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Status {
    /// Arrivals observed or keys inserted so far.
    pub arrivals: u64,
    /// Share of cells that are not zero.
    pub fill: f64,
    /// The rate of false positives to expect of the next query, from the present contents.
    pub estimated_fpr: f64,
    /// How many distinct keys are inside, as far as the fill tells; a full filter tells nothing.
    pub estimated_items: Option<f64>,
    /// Keys that could not be kept, or were kept at a higher rate than promised, because memory to grow was refused.
    pub refused: u64,
    /// Counters that are full: keys that came more often count as this often.
    pub full_counters: u64,
}

impl Status {
    /// The status of a filter whose parts, at least one, have these: equal parts, each with its own keys.
    pub fn of_parts(parts: &[Status]) -> Status {
        let mean = |value: fn(&Status) -> f64| parts.iter().map(value).sum::<f64>() / parts.len().max(1) as f64;
        Status {
            arrivals: parts.iter().fold(0, |sum, status| sum.saturating_add(status.arrivals)),
            fill: mean(|status| status.fill),
            estimated_fpr: mean(|status| status.estimated_fpr),
            estimated_items: parts.iter().map(|status| status.estimated_items).sum(),
            refused: parts.iter().map(|status| status.refused).sum(),
            full_counters: parts.iter().map(|status| status.full_counters).sum(),
        }
    }

    /// The probability that any two of the keys inside share their 64 bits, in which case one of them was taken for the
    /// other: 1 − exp(−n(n − 1)/2^65). The only error of a filter that keeps whole hashes.
    pub fn collision_probability(&self) -> f64 {
        let items = self.estimated_items.unwrap_or(0.0);
        -expm1(-items * ldexp((items - 1.0).max(0.0), -65))
    }
}
