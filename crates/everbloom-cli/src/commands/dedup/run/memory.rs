//! What remembers the lines: a filter of our own, or one on servers.

#[cfg(feature = "redis")]
use super::servers::Servers;
use crate::commands::dedup::job::Job;
use crate::commands::dedup::state::{Journal, OnServers};
use crate::failure::{Failure, Result};
use crate::platform::Interrupt;
use crate::record::Layout;
use everbloom::internal::audit::Audit;
use everbloom::internal::filter::Watch;
use everbloom::{AnyFilter, Hashing, Importances, KeyHash, Promise, Spec, Status, Window, filters};
use std::sync::Arc;
use std::time::Duration;

/// What remembers the lines.
pub(crate) enum Memory {
    Own(AnyFilter),
    Servers(Box<Servers>),
}

/// What a state has of it.
pub(crate) enum Kept {
    Filter(AnyFilter),
    /// What was on its way to servers.
    OnItsWay(Vec<u8>),
}

impl Memory {
    /// What is asked for, empty or as others left it; and what else its plan says.
    pub(crate) fn new(job: &Job, layout: &Layout, interrupt: &Arc<Interrupt>) -> Result<(Self, Vec<String>)> {
        let planned = job.plan(layout)?;
        let notes = planned.notes.clone();
        let memory = match job.servers.redis {
            Some(_) => Memory::Servers(Box::new(Servers::open(job, layout, &planned, interrupt)?)),
            None => Memory::Own(planned.build()?),
        };
        Ok((memory, notes))
    }

    /// What a state left.
    pub(crate) fn kept(job: &Job, kept: Kept, saved: &Journal, interrupt: &Arc<Interrupt>) -> Result<Self> {
        match (kept, &saved.servers, &job.servers.redis) {
            (Kept::Filter(filter), _, None) => Ok(Memory::Own(filter)),
            (Kept::OnItsWay(bytes), Some(saved), Some(_)) => {
                Ok(Memory::Servers(Box::new(Servers::resume(job, saved, &bytes, interrupt)?)))
            }
            (_, _, None) => Err(Failure::new("the state belongs to a filter on servers; say where: --redis URL")),
            _ => Err(Failure::new("the state has a filter of its own; leave --redis out, or name another state file")),
        }
    }

    pub(crate) fn spec(&self) -> &Spec {
        match self {
            Memory::Own(filter) => filter.spec(),
            Memory::Servers(servers) => servers.spec(),
        }
    }

    pub(crate) fn promise(&self) -> Promise {
        match self {
            Memory::Own(filter) => filter.promise(),
            Memory::Servers(servers) => servers.promise(),
        }
    }

    pub(crate) fn hashing(&self) -> &Hashing {
        match self {
            Memory::Own(filter) => filter.hashing(),
            Memory::Servers(servers) => servers.hashing(),
        }
    }

    pub(crate) fn memory_bits(&self) -> u64 {
        match self {
            Memory::Own(filter) => filter.memory_bits(),
            Memory::Servers(servers) => servers.memory_bits(),
        }
    }

    /// What measures how often the filter errs, if that is asked for.
    pub(crate) fn audit(&self) -> Option<&Audit> {
        match self {
            Memory::Own(filter) => filter.audit(),
            Memory::Servers(_) => None,
        }
    }

    pub(crate) fn exact_arrivals(&self) -> u64 {
        match self {
            Memory::Own(filter) => filter.exact_arrivals(),
            Memory::Servers(_) => 0,
        }
    }

    /// A look at all of the cells.
    pub(crate) fn status(&self) -> Status {
        match self {
            Memory::Own(filter) => filter.status(),
            Memory::Servers(servers) => servers.status(),
        }
    }

    pub(crate) fn watch(&self) -> Watch {
        match self {
            Memory::Own(filter) => filters::watch(filter.as_ref()),
            Memory::Servers(servers) => servers.watch(),
        }
    }

    /// Whether a record that was judged can be taken back.
    pub(crate) fn takes_back(&self) -> bool {
        matches!(self, Memory::Own(_))
    }

    /// Makes a batch ready to be sent to servers; whether there is something to send.
    pub(crate) fn deal(&mut self, hashes: &[KeyHash], importances: Importances<'_>) -> Result<bool> {
        match self {
            Memory::Own(_) => Ok(false),
            Memory::Servers(servers) => servers.deal(hashes, importances),
        }
    }

    /// All that was judged so far is written, or will be before anything is saved.
    pub(crate) fn settle(&mut self) {
        if let Memory::Servers(servers) = self {
            servers.settle();
        }
    }

    /// What a state says of a filter on servers.
    pub(crate) fn on_servers(&self) -> Option<OnServers> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => Some(servers.sessions()),
        }
    }

    /// The window that is kept: the one that was asked for, or that others gave a filter on servers.
    pub(crate) fn window(&self, asked: Option<Window>) -> Option<Window> {
        asked.or_else(|| self.shared_window().map(|(time, _)| Window::Time(time)))
    }

    /// A window of time that servers turn, and the lines that it was planned for.
    pub(crate) fn shared_window(&self) -> Option<(Duration, u64)> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => servers.window(),
        }
    }

    /// Whether it is time for a look at what others do to the window.
    pub(crate) fn wants_look(&self) -> bool {
        match self {
            Memory::Own(_) => false,
            Memory::Servers(servers) => servers.wants_look(),
        }
    }

    /// A look that tells whether the promise is kept.
    pub(crate) fn look(&mut self) -> Status {
        match self {
            Memory::Own(filter) => filter.status(),
            Memory::Servers(servers) => servers.look(),
        }
    }

    /// Lines that servers acknowledged and lost, and whether there may be more.
    pub(crate) fn lost(&self) -> Option<(u64, bool)> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => Some(servers.lost()),
        }
    }

    /// What is to be said in the end.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => servers.note(),
        }
    }

    /// Leaves the servers to others.
    pub(crate) fn release(self) {
        if let Memory::Servers(servers) = self {
            servers.release();
        }
    }
}

/// A small build knows no servers.
#[cfg(not(feature = "redis"))]
pub(crate) enum Servers {}

#[cfg(not(feature = "redis"))]
#[rustfmt::skip]
#[allow(clippy::unused_self)]
impl Servers {
    fn left_out<T>() -> Result<T> {
        Err(Failure::new("this everbloom was built without servers; `cargo build --release` has them"))
    }

    fn open(_: &Job, _: &Layout, _: &everbloom::Plan, _: &Arc<Interrupt>) -> Result<Self> { Self::left_out() }
    fn resume(_: &Job, _: &OnServers, _: &[u8], _: &Arc<Interrupt>) -> Result<Self> { Self::left_out() }
    pub(crate) fn observe(&mut self, _: &[KeyHash], _: Importances<'_>, _: &mut [everbloom::Verdict]) -> Result<()> { match *self {} }
    pub(crate) fn counted_by_all(&mut self) -> Option<u64> { match *self {} }
    pub(crate) fn on_its_way(&self) -> Vec<u8> { match *self {} }
    fn spec(&self) -> &Spec { match *self {} }
    fn promise(&self) -> Promise { match *self {} }
    fn hashing(&self) -> &Hashing { match *self {} }
    fn memory_bits(&self) -> u64 { match *self {} }
    fn status(&self) -> Status { match *self {} }
    fn watch(&self) -> Watch { match *self {} }
    fn window(&self) -> Option<(Duration, u64)> { match *self {} }
    fn wants_look(&self) -> bool { match *self {} }
    fn look(&mut self) -> Status { match *self {} }
    fn lost(&self) -> (u64, bool) { match *self {} }
    fn release(self) { match self {} }
    fn deal(&mut self, _: &[KeyHash], _: Importances<'_>) -> Result<bool> { match *self {} }
    fn settle(&mut self) { match *self {} }
    fn sessions(&self) -> OnServers { match *self {} }
    fn note(&self) -> Option<String> { match *self {} }
}
