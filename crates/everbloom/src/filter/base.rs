//! What every filter carries besides its cells.

use super::{Kind, Plan, Restore};
use crate::key::Hashing;
use crate::promise::{Promise, Result, Spec, refuse_murmur};

/// What all filters answer alike: their spec, how they hash, what they promise, how many arrivals they have seen.
///
/// Only this crate makes one, and every [`Filter`](super::Filter) must have one: the trait is sealed.
#[derive(Debug, Clone)]
pub struct Base {
    pub(crate) kind: &'static Kind,
    pub(crate) spec: Spec,
    pub(crate) hashing: Hashing,
    pub(crate) promise: Promise,
    pub(crate) arrivals: u64,
}

impl Base {
    /// The base of a filter that no keys were inserted into; refuses hashes that are too weak for filters in general.
    pub(crate) fn new(kind: &'static Kind, spec: Spec, hashing: Hashing, promise: Promise) -> Result<Self> {
        refuse_murmur(spec.kind(), &hashing)?;
        Ok(Self::of_any_hash(kind, spec, hashing, promise))
    }

    /// The same for a filter that takes whatever hashes it is given, or leaves it to its parts to refuse them.
    pub(crate) fn of_any_hash(kind: &'static Kind, spec: Spec, hashing: Hashing, promise: Promise) -> Self {
        Base { kind, spec, hashing, promise, arrivals: 0 }
    }

    pub(crate) fn planned(plan: &Plan) -> Result<Self> {
        Self::new(plan.kind, plan.spec.clone(), plan.hashing, plan.promise)
    }

    /// The base of a filter that is read back, with its spec as it would print it; the arrivals come first in the state.
    pub(crate) fn restored(spec: Spec, from: &mut Restore<'_, '_>) -> Result<Self> {
        let arrivals = from.state.u64()?;
        Ok(Base { arrivals, ..Self::new(from.kind, spec, from.hashing, from.promise)? })
    }

    /// Counts arrivals. A crafted file may begin at the end.
    #[inline(always)]
    pub(crate) fn count(&mut self, arrivals: usize) {
        self.arrivals = self.arrivals.saturating_add(arrivals as u64);
    }
}

/// The methods by which a [`Filter`](super::Filter) shows its field `base`.
macro_rules! shows_base {
    () => {
        #[inline(always)]
        fn base(&self) -> &$crate::filter::Base {
            &self.base
        }

        #[inline(always)]
        fn base_mut(&mut self) -> &mut $crate::filter::Base {
            &mut self.base
        }
    };
}
pub(crate) use shows_base;
