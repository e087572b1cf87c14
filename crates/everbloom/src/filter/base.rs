//! What every filter carries besides its cells.

use super::{Kind, Plan, Restore};
use crate::key::Hashing;
use crate::promise::{Promise, Result, Spec, refuse_murmur};

/// What all filters answer alike: their spec, how they hash, what they promise, how many arrivals they have seen.
///
/// Every [`Filter`](super::Filter) has one: made by [`Base::planned`] of a plan, by [`Base::restored`] of what was saved.
#[derive(Debug, Clone)]
pub struct Base {
    /// What kind of filter it is.
    pub kind: &'static Kind,
    /// Kind and every parameter.
    pub spec: Spec,
    /// How it hashes keys.
    pub hashing: Hashing,
    /// What it promised when it was planned.
    pub promise: Promise,
    /// Arrivals observed or keys inserted so far.
    pub arrivals: u64,
}

impl Base {
    /// The base of a filter that no keys were inserted into; refuses hashes that are too weak for filters in general.
    pub fn new(kind: &'static Kind, spec: Spec, hashing: Hashing, promise: Promise) -> Result<Self> {
        refuse_murmur(spec.kind(), &hashing)?;
        Ok(Self::of_any_hash(kind, spec, hashing, promise))
    }

    /// The base of a filter that takes whatever hashes it is given, or leaves it to its parts to refuse them.
    pub fn of_any_hash(kind: &'static Kind, spec: Spec, hashing: Hashing, promise: Promise) -> Self {
        Base { kind, spec, hashing, promise, arrivals: 0 }
    }

    /// The base of a planned filter.
    pub fn planned(plan: &Plan) -> Result<Self> {
        Self::new(plan.kind, plan.spec.clone(), plan.hashing, plan.promise)
    }

    /// The base of a filter that is read back, with its spec as it would print it; the arrivals come first in the state.
    pub fn restored(spec: Spec, from: &mut Restore<'_, '_>) -> Result<Self> {
        let arrivals = from.state.u64()?;
        Ok(Base { arrivals, ..Self::new(from.kind, spec, from.hashing, from.promise)? })
    }

    /// Counts arrivals. A crafted file may begin at the end.
    #[inline(always)]
    pub fn count(&mut self, arrivals: usize) {
        self.arrivals = self.arrivals.saturating_add(arrivals as u64);
    }
}

/// The methods by which a [`Filter`](crate::Filter) shows its field `base`.
#[macro_export]
macro_rules! shows_base {
    () => {
        #[inline(always)]
        fn base(&self) -> &$crate::kind::Base {
            &self.base
        }

        #[inline(always)]
        fn base_mut(&mut self) -> &mut $crate::kind::Base {
            &mut self.base
        }
    };
}
pub use crate::shows_base;
