//! What remembers the lines: a filter of our own, or one on servers.

use super::audit;
#[cfg(feature = "redis")]
use super::servers;
use crate::commands::dedup::job::Job;
use crate::commands::dedup::state::{Journal, OnServers};
use crate::failure::{Failure, Result};
use crate::platform::Interrupt;
use crate::record::Layout;
use everbloom::kind::Watch;
use everbloom::kind::watch;
use everbloom::{AnyFilter, Hashing, Importances, KeyHash, Promise, Spec, Status, Verdict, Window};
use std::sync::Arc;
use std::time::Duration;

/// What remembers the lines. What only servers do is nothing for a filter of our own.
pub(crate) trait Memory: Send {
    fn spec(&self) -> &Spec;
    fn promise(&self) -> Promise;
    fn hashing(&self) -> &Hashing;
    fn memory_bits(&self) -> u64;
    /// A look at all of the cells.
    fn status(&self) -> Status;
    fn watch(&self) -> Watch;

    /// The filter, if it is our own: then a record that was judged can be taken back.
    fn own(&self) -> Option<&AnyFilter> {
        None
    }

    fn own_mut(&mut self) -> Option<&mut AnyFilter> {
        None
    }

    /// Makes a batch ready to be sent; whether there is something to send.
    fn stage(&mut self, _: &[KeyHash], _: Importances<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Has a batch judged; now and then also says how many new keys everybody had.
    fn ask(&mut self, _: &[KeyHash], _: Importances<'_>, _: &mut [Verdict]) -> Result<Option<u64>> {
        Ok(None)
    }

    /// All that was judged so far is written, or will be before anything is saved.
    fn commit(&mut self) {}

    /// What a state says of a filter on servers.
    fn on_servers(&self) -> Option<OnServers> {
        None
    }

    /// What a state keeps of keys on their way.
    fn on_its_way(&self) -> Vec<u8> {
        Vec::new()
    }

    /// A window of time that servers turn, and the lines that it was planned for.
    fn shared_window(&self) -> Option<(Duration, u64)> {
        None
    }

    /// The window that is kept: the one that was asked for, or that others gave a filter on servers.
    fn window(&self, asked: Option<Window>) -> Option<Window> {
        asked.or_else(|| self.shared_window().map(|(time, _)| Window::Time(time)))
    }

    /// Whether it is time for a look at what others do to the window.
    fn wants_look(&self) -> bool {
        false
    }

    /// A look that tells whether the promise is kept.
    fn look(&mut self) -> Status {
        self.status()
    }

    /// Lines that servers acknowledged and lost, and whether there may be more.
    fn lost(&self) -> Option<(u64, bool)> {
        None
    }

    /// What is to be said in the end.
    fn note(&self) -> Option<String> {
        None
    }

    /// Leaves the servers to others.
    fn release(self: Box<Self>) {}
}

#[rustfmt::skip]
impl Memory for AnyFilter {
    fn spec(&self) -> &Spec { self.as_ref().spec() }
    fn promise(&self) -> Promise { self.as_ref().promise() }
    fn hashing(&self) -> &Hashing { self.as_ref().hashing() }
    fn memory_bits(&self) -> u64 { self.as_ref().memory_bits() }
    fn status(&self) -> Status { self.as_ref().status() }
    fn watch(&self) -> Watch { watch(self.as_ref()) }
    fn own(&self) -> Option<&AnyFilter> { Some(self) }
    fn own_mut(&mut self) -> Option<&mut AnyFilter> { Some(self) }
}

/// What a state has of it.
pub(crate) enum Kept {
    Filter(AnyFilter),
    /// What was on its way to servers.
    OnItsWay(Vec<u8>),
}

/// What is asked for, empty or as others left it; and what else its plan says.
pub(crate) fn begin(job: &Job, layout: &Layout, interrupt: &Arc<Interrupt>) -> Result<(Box<dyn Memory>, Vec<String>)> {
    let planned = job.plan(layout)?;
    let notes = planned.notes.clone();
    let memory: Box<dyn Memory> = match job.servers.redis {
        Some(_) => Box::new(servers::open(job, layout, &planned, interrupt)?),
        None => Box::new(audit::begin(&job.rules, job.promise.quiet, planned.build()?)?),
    };
    Ok((memory, notes))
}

/// What a state left.
pub(crate) fn resume(job: &Job, kept: Kept, saved: &Journal, interrupt: &Arc<Interrupt>) -> Result<Box<dyn Memory>> {
    match (kept, &saved.servers, &job.servers.redis) {
        (Kept::Filter(filter), _, None) => Ok(Box::new(filter)),
        (Kept::OnItsWay(bytes), Some(saved), Some(_)) => Ok(Box::new(servers::resume(job, saved, &bytes, interrupt)?)),
        (_, _, None) => Err(Failure::new("the state belongs to a filter on servers; say where: --redis URL")),
        _ => Err(Failure::new("the state has a filter of its own; leave --redis out, or name another state file")),
    }
}

/// A small build knows no servers.
#[cfg(not(feature = "redis"))]
mod servers {
    use super::*;

    const LEFT_OUT: &str = "this everbloom was built without servers; `cargo build --release` has them";

    pub(super) fn open(_: &Job, _: &Layout, _: &everbloom::Plan, _: &Arc<Interrupt>) -> Result<AnyFilter> {
        Err(Failure::new(LEFT_OUT))
    }

    pub(super) fn resume(_: &Job, _: &OnServers, _: &[u8], _: &Arc<Interrupt>) -> Result<AnyFilter> {
        Err(Failure::new(LEFT_OUT))
    }
}
