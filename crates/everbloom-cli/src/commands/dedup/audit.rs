//! An audit beside the filter: how it begins, and what it shows.

use super::Dedup;
use super::judge::Judge;
use crate::args::quantity;
use crate::failure::{Failure, Result};
use crate::platform;
use crate::report::words::{self, LINES};
use crate::report::{audit, short_size};
use everbloom::{AnyFilter, filters};
use everbloom_forecast::Auditing;
use everbloom_forecast::audit::{Audit, usual_bytes};
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::PathBuf;

/// What a check takes that nobody asked for.
const SPOT_CHECK_BYTES: u64 = 2 << 20;

/// Refuses `--audit 1MiB`, where the size is taken for an input.
pub(super) fn refuse_size_as_input(dedup: &Dedup) -> Result<()> {
    let is_size = |path: &&PathBuf| {
        let is_missing = matches!(platform::stat(path), Ok(None));
        path.to_str().is_some_and(|text| is_missing && quantity::size_in_bits(text).is_ok())
    };
    match dedup.files.iter().find(is_size).filter(|_| dedup.audit == Some(None)) {
        Some(size) => {
            let size = size.display();
            Err(Failure::new(format!("there is no file '{size}'; if it is the audit's size, write --audit={size}")))
        }
        None => Ok(()),
    }
}

/// A filter that has seen nothing yet, audited if that is wanted.
pub(super) fn begin(dedup: &Dedup, mut filter: AnyFilter) -> Result<AnyFilter> {
    let Some(asked) = dedup.audit else { return Ok(filter) };
    let whole = dedup.goal.wanted.memory.unwrap_or(filter.memory_bits());
    let bytes = asked.map_or(usual_bytes(whole), |bits| bits / 8);
    // Random, so that no stream can avoid the keys that are followed.
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    let seed = dedup.audit_seed.unwrap_or_else(random);
    let size = short_size(bytes.saturating_mul(8));
    let new = Audit::new(bytes, seed);
    let new = new.map_err(|_| Failure::new(format!("--audit takes from 4KiB to 4GiB, not {size}; try 1MiB")))?;
    if !dedup.promise.quiet {
        words::note(&format!("the audit takes {size} beside the filter, and follows some of the keys exactly"));
    }
    // Who asked for a window is told of repeats within it. Who named a filter that has one is told of all.
    let horizon = dedup.window.and_then(|_| everbloom_forecast::audit::horizon(filter.as_mut()));
    Ok(filter.with_audit(new.with_horizon(horizon))?)
}

/// An audit of this run alone, for what a filter that forgets misses. The sample need not be random, as it judges nothing.
pub(super) fn spot_check() -> Result<Audit> {
    Ok(Audit::new(SPOT_CHECK_BYTES, 0)?)
}

impl Judge {
    /// Looks at the audit whenever four times as many have come, and in the end.
    pub(super) fn look_at_audit(&mut self, is_end: bool) -> Option<Failure> {
        let found = self.memory.audit().filter(|audit| is_end || audit.arrivals() >= self.audit_look)?;
        self.audit_look = found.arrivals().saturating_mul(4).max(super::judge::FIRST_AUDIT_LOOK);
        let breach = found.breach(self.watch.promise()).filter(|_| self.watch.broken_at().is_none())?;
        self.watch.break_at(self.records);
        self.say(|remedy| format!("{}; {remedy}", audit::breach(&breach, LINES)))
    }
}
