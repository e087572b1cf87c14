//! Two filters into one.

use super::Filter;
use crate::key::Hashing;
use crate::promise::{Error, Result};
use std::any::Any;

/// How two filters become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// Keys of either.
    Union,
    /// Keys of both, and some false positives: no more than the filter with fewer of them had.
    Intersection,
}

impl Combine {
    /// The bits of both, in equally long rows of words.
    pub fn words(self, words: &mut [u64], others: &[u64]) {
        for (word, other) in words.iter_mut().zip(others) {
            *word = if self == Combine::Union { *word | other } else { *word & other };
        }
    }

    /// The most keys that can have been inserted into the outcome.
    pub fn inserted(self, keys: u64, others: u64) -> u64 {
        match self {
            Combine::Union => keys.saturating_add(others),
            Combine::Intersection => keys.min(others),
        }
    }
}

/// Filters that can take another of the same shape into themselves.
pub trait Merge {
    /// Makes this the union or intersection of both; an error, and nothing changed, if they differ
    /// in kind, size or hashing.
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()>;
}

/// The other filter as one of type `F`, with the same spec and hashing, or why not.
pub fn same_shape<'a, F: Filter>(left: &F, right: &'a dyn Filter) -> Result<&'a F> {
    let mismatch = |what, left: String, right: String| Error::Mismatch {
        what,
        left,
        right,
        remedy: "build both with the same filter spec and seed",
    };
    let (left_spec, right_spec) = (left.spec(), right.spec());
    if left_spec != right_spec {
        return Err(mismatch("their spec", left_spec.to_string(), right_spec.to_string()));
    }
    if left.hashing() != right.hashing() {
        let name = |hashing: &Hashing| match hashing.seed() {
            Some(seed) => format!("{} with seed {seed}", hashing.name()),
            None => format!("{} with its own secret key", hashing.name()),
        };
        return Err(mismatch("how they hash", name(left.hashing()), name(right.hashing())));
    }
    (right as &dyn Any)
        .downcast_ref::<F>()
        .ok_or_else(|| mismatch("their type", left_spec.to_string(), right_spec.to_string()))
}
