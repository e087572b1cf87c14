//! What the registry knows about a kind of filter, and what one is restored from.

use super::{Filter, Model};
use crate::format::{BodyReader, StateReader};
use crate::key::Hashing;
use crate::promise::{Goal, Plan, Promise, Result, Spec};
use crate::scheme::Scheme;
use std::sync::Arc;

/// What the registry knows about a kind of filter.
#[non_exhaustive]
pub struct Kind {
    /// The id in the format. Never reused.
    pub id: u16,
    /// The name in specs.
    pub name: &'static str,
    /// One line for help and listings.
    pub summary: &'static str,
    /// The words a spec may give, in the order a full spec prints them.
    pub words: &'static [&'static str],
    /// Whether a key that was inserted is always found; a spec may say otherwise, see [`Kind::keeps_all`].
    pub never_forgets: bool,
    /// Whether the filter works for ever in fixed memory, so that stream comparisons include it.
    pub endless: bool,
    /// How its errors are foretold.
    pub model: Model,
    /// Fills in what a spec leaves out.
    pub plan: fn(&Spec, &Goal) -> Result<Plan>,
    pub(crate) build: fn(&Plan) -> Result<Box<dyn Filter>>,
    pub(crate) restore: fn(Restore<'_, '_>) -> Result<Box<dyn Filter>>,
}

/// The word of every filter whose counts fade.
pub(crate) const HALF_LIFE: &str = "half_life";

impl Kind {
    /// Whether a filter of this kind and spec always finds a key that was inserted: not if its counts fade.
    pub fn keeps_all(&self, spec: &Spec) -> bool {
        let fades = spec.number::<u64>(HALF_LIFE).is_ok_and(|arrivals| arrivals.is_some_and(|arrivals| arrivals > 0));
        self.never_forgets && !fades
    }
}

/// What a filter is restored from.
pub struct Restore<'r, 's> {
    pub(crate) spec: &'r Spec,
    pub(crate) hashing: Hashing,
    pub(crate) promise: Promise,
    pub(crate) state: StateReader<'r>,
    pub(crate) body: &'r mut BodyReader<'s>,
    /// The scheme that the caller has, if any.
    pub(crate) scheme: Option<&'r Arc<Scheme>>,
    /// Reads the next whole filter from a body that is made of such.
    pub(crate) read_part: &'r dyn Fn(&mut BodyReader<'_>) -> Result<Box<dyn Filter>>,
}
