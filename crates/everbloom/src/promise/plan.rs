//! What a filter promises.

use super::{Error, LEAST_RATE, Result};
use crate::key::Hashing;

/// Until when a promise holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// At every moment, however long the stream.
    Always,
    /// Until this many distinct keys are inside.
    UntilItems(u64),
    /// Not at all: the parameters were given by hand or by a paper's rule.
    Never,
}

/// A bound on the errors of a filter, kept whatever comes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Promise {
    /// The rate of false positives among distinct arrivals: a bound while the promise holds.
    pub fpr_bound: f64,
    /// The rate of false negatives among duplicates: 0 for filters that never forget, otherwise only
    /// where the stream is known.
    pub predicted_fnr: Option<f64>,
    /// Until when.
    pub holds: Holds,
    /// The distinct keys until which nothing errs at all, but for two that share a 64-bit hash.
    pub exact_until: Option<u64>,
}

impl Promise {
    /// The promise of a filter that never forgets and fills up at `items`.
    pub fn until(items: u64, fpr_bound: f64) -> Self {
        let fpr_bound = fpr_bound.max(LEAST_RATE);
        Promise { fpr_bound, predicted_fnr: Some(0.0), holds: Holds::UntilItems(items), exact_until: None }
    }

    /// The promise of a filter that forgets, and so never fills up.
    pub fn always(fpr_bound: f64) -> Self {
        let fpr_bound = fpr_bound.max(LEAST_RATE);
        Promise { fpr_bound, predicted_fnr: None, holds: Holds::Always, exact_until: None }
    }

    /// The promise with another end.
    pub fn held(self, holds: Holds) -> Self {
        Promise { holds, ..self }
    }

    /// The promise with this rate of false negatives.
    pub fn missing(self, predicted_fnr: f64) -> Self {
        Promise { predicted_fnr: Some(predicted_fnr), ..self }
    }
}

/// Refuses the hash that is for filters shared with RedisBloom alone, where another filter, or a scheme for it, would use it:
/// keys that share such a hash are easy to make.
pub fn refuse_murmur(kind: &str, hashing: &Hashing) -> Result<()> {
    match hashing {
        Hashing::Murmur => Err(Error::unsupported(
            kind,
            "be hashed with murmur64a",
            "only filters that must equal RedisBloom's are; take Hashing::seeded or Hashing::keyed".into(),
        )),
        _ => Ok(()),
    }
}
