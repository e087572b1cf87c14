//! A filter on paper.

use super::model::Effort;
use super::sharded::{SHARDS, Sharded, is_sharded, shards_of};
use super::{Filter, Kind};
use crate::key::Hashing;
use crate::promise::{Promise, Result, Spec};

/// A filter on paper: every parameter fixed, nothing allocated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// What kind of filter it is.
    pub kind: &'static Kind,
    /// The full spec.
    pub spec: Spec,
    /// All the memory that the filter will take.
    pub memory_bits: u64,
    /// What it promises.
    pub promise: Promise,
    /// How it will hash.
    pub hashing: Hashing,
    /// What else there is to know about it, a sentence each.
    pub notes: Vec<String>,
}

impl Plan {
    /// A plan about which there is nothing else to know.
    pub fn new(kind: &'static Kind, spec: Spec, memory_bits: u64, promise: Promise, hashing: Hashing) -> Self {
        Plan { kind, spec, memory_bits, promise, hashing, notes: Vec::new() }
    }
}

impl Plan {
    /// Allocates the filter.
    pub fn filter(&self) -> Result<Box<dyn Filter>> {
        if is_sharded(&self.spec) {
            return Ok(Box::new(Sharded::from_plan(self)?));
        }
        (self.kind.build)(self)
    }

    /// What an arrival costs, where a parameter can make it too much.
    pub fn effort(&self) -> Result<Option<Effort>> {
        (self.kind.model.effort)(&self.spec.without(SHARDS))
    }

    /// The cells or words that an arrival changes besides its own, on average.
    pub fn changed(&self) -> Result<f64> {
        Ok(self.effort()?.map_or(0.0, |effort| effort.changed))
    }

    /// A plan for about 1/`divisor` of the filter, shards put together; `None` if its kind does not scale.
    pub fn scaled(&self, divisor: f64) -> Result<Option<Plan>> {
        let shards = shards_of(&self.spec)?;
        let whole = self.spec.without(SHARDS);
        let scaled = self.kind.model.scaled(&whole, divisor / f64::from(shards))?;
        Ok(scaled.map(|(spec, share)| Plan {
            spec,
            memory_bits: (self.memory_bits as f64 * share / f64::from(shards)) as u64,
            ..self.clone()
        }))
    }

    /// Whether a part of a stream's keys does not tell what a filter does on all of it.
    pub fn takes_whole_stream(&self) -> bool {
        (self.kind.model.whole_stream)(&self.spec.without(SHARDS))
    }

    /// Whether a filter is only like itself at its own size.
    pub fn takes_full_size(&self) -> bool {
        (self.kind.model.full_size)(&self.spec.without(SHARDS))
    }
}
