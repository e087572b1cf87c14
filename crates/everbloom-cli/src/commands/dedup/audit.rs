//! An audit beside the filter: how it begins, and what it shows.

use super::Dedup;
use super::judge::Judge;
use crate::args::Refresh;
use crate::failure::{Failure, Result};
use crate::report::words::{self, LINES};
use crate::report::{audit, short_size};
use everbloom::internal::audit::{Audit, Horizon};
use everbloom::{AnyFilter, Window};
use std::hash::{BuildHasher as _, Hasher as _};

/// The least that is given unasked: 256 KiB. Fewer keys would tell little.
const LEAST_BITS: u64 = 256 << 13;
/// Unasked, one part of the filter's memory in so many.
const PARTS: u64 = 50;

/// The audit of a filter that has seen nothing yet, if one is wanted.
pub(super) fn begin(dedup: &Dedup, filter: &mut AnyFilter) -> Result<Option<Audit>> {
    let Some(asked) = dedup.audit else { return Ok(None) };
    let whole = dedup.goal.wanted.memory.unwrap_or(filter.memory_bits());
    let bits = asked.unwrap_or((whole / PARTS).max(LEAST_BITS));
    // Random, so that no stream can avoid the keys that are followed.
    let seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let new = Audit::new(bits / 8, seed);
    let new =
        new.map_err(|_| Failure::new(format!("--audit takes from 4KiB to 4GiB, not {}; try 1MiB", short_size(bits))))?;
    if !dedup.promise.quiet {
        words::note(&format!(
            "the audit takes {} beside the filter, and follows as many keys as fit",
            short_size(bits)
        ));
    }
    Ok(Some(match horizon(dedup, filter) {
        Some(horizon) => new.with_horizon(horizon),
        None => new,
    }))
}

/// What a window has to know and what it has to forget. It forgets by generations, one or two too late.
fn horizon(dedup: &Dedup, filter: &mut AnyFilter) -> Option<Horizon> {
    let (within, timed) = match dedup.window? {
        Window::Arrivals(lines) => (lines, false),
        Window::Time(time) => (u64::try_from(time.as_micros()).unwrap_or(u64::MAX), true),
        _ => return None,
    };
    let generations = filter.as_windowed().map_or(1, |windowed| u64::from(windowed.generations()).max(1));
    let beyond = within.saturating_add(within.div_ceil(generations).saturating_mul(2));
    Some(Horizon { within, beyond, timed, renews: dedup.refresh == Refresh::Yes })
}

impl Judge {
    /// Looks at the audit whenever the arrivals have doubled, and in the end.
    pub(super) fn look_at_audit(&mut self, is_end: bool) -> Option<Failure> {
        let found = self.audit.as_ref().filter(|audit| is_end || audit.arrivals() >= self.audit_look)?;
        self.audit_look = found.arrivals().saturating_mul(2).max(super::judge::FIRST_AUDIT_LOOK);
        let breach = found.breach(self.watch.promise()).filter(|_| self.watch.broken_at().is_none())?;
        self.watch.break_at(self.records);
        self.say(|remedy| format!("{}; {remedy}", audit::breach(&breach, LINES)))
    }
}
