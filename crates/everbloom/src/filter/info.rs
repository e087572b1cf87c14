//! What a filter says of itself.

use super::Filter;
use crate::promise::{Promise, Spec};

/// What a filter is, promises and looks like now.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// Its kind and every parameter.
    pub spec: Spec,
    /// All of the memory that it takes now.
    pub memory_bits: u64,
    /// What it promised when it was planned.
    pub promise: Promise,
    /// Arrivals observed or keys inserted so far.
    pub arrivals: u64,
    /// The share of cells that are in use.
    pub fill: f64,
    /// The rate of false positives to expect of the next query, from the present contents.
    pub estimated_fpr: f64,
    /// How many distinct keys are inside, as far as the filter can tell.
    pub estimated_items: Option<f64>,
    /// Keys for which memory to grow was refused.
    pub refused: u64,
    /// Counters at their largest value, which may stand for more.
    pub full_counters: u64,
}

impl Info {
    /// What this filter says of itself.
    pub fn of<F: Filter + ?Sized>(filter: &F) -> Self {
        let status = filter.status();
        Info {
            spec: filter.spec().clone(),
            memory_bits: filter.memory_bits(),
            promise: filter.promise(),
            arrivals: status.arrivals,
            fill: status.fill,
            estimated_fpr: status.estimated_fpr,
            estimated_items: status.estimated_items,
            refused: status.refused,
            full_counters: status.full_counters,
        }
    }
}
