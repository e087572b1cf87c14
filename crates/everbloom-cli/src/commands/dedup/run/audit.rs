//! An audit beside the filter: how it begins, and what it shows.

use super::judge::Judge;
use crate::commands::dedup::job::{AuditSize, Rules};
use crate::failure::{Failure, Result};
use crate::report::words::{self, LINES};
use crate::report::{audit, short_size};
use everbloom::AnyFilter;
use everbloom_forecast::Auditing;
use everbloom_forecast::Audits;
use everbloom_forecast::audit::{Audit, usual_bytes};
use std::hash::{BuildHasher as _, Hasher as _};

/// What a check takes that nobody asked for.
const SPOT_CHECK_BYTES: u64 = 2 << 20;

/// A filter that has seen nothing yet, audited if that is wanted.
pub(crate) fn begin(rules: &Rules, quiet: bool, mut filter: AnyFilter) -> Result<AnyFilter> {
    let Some(asked) = rules.audit else { return Ok(filter) };
    let whole = rules.goal.wanted.memory.unwrap_or(filter.memory_bits());
    let bytes = match asked {
        AuditSize::Usual => usual_bytes(whole),
        AuditSize::Bits(bits) => bits / 8,
    };
    // Random, so that no stream can avoid the keys that are followed.
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    let seed = rules.audit_seed.unwrap_or_else(random);
    let size = short_size(bytes.saturating_mul(8));
    let new = Audit::new(bytes, seed);
    let new = new.map_err(|_| Failure::new(format!("--audit takes from 4KiB to 4GiB, not {size}; try 1MiB")))?;
    if !quiet {
        words::note(&format!("the audit takes {size} beside the filter, and follows some of the keys exactly"));
    }
    // Who asked for a window is told of repeats within it. Who named a filter that has one is told of all.
    let horizon = rules.window.and_then(|_| everbloom_forecast::audit::horizon(filter.as_mut()));
    Ok(filter.with_audit(new.with_horizon(horizon))?)
}

/// An audit of this run alone, for what a filter that forgets misses. The sample need not be random, as it judges nothing.
pub(crate) fn spot_check() -> Result<Audit> {
    Ok(Audit::new(SPOT_CHECK_BYTES, 0)?)
}

impl Judge {
    /// Looks at the audit whenever four times as many have come, and in the end.
    pub(crate) fn look_at_audit(&mut self, is_end: bool) -> Option<Failure> {
        let audit = self.memory.own().and_then(|memory| memory.audit());
        let found = audit.filter(|audit| is_end || audit.arrivals() >= self.audit_look)?;
        self.audit_look = found.arrivals().saturating_mul(4).max(super::judge::FIRST_AUDIT_LOOK);
        let breach = found.breach(self.watch.promise()).filter(|_| self.watch.broken_at().is_none())?;
        self.watch.break_at(self.records);
        self.say(|remedy| format!("{}; {remedy}", audit::breach(&breach, LINES)))
    }
}
