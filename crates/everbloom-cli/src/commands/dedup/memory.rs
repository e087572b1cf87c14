//! What remembers the lines: a filter of our own, or one on servers.

use super::Dedup;
#[cfg(feature = "redis")]
use super::servers::Servers;
use super::state::{Journal, OnServers};
use crate::failure::{Failure, Result};
use crate::platform::Interrupt;
use crate::record::Layout;
use everbloom::kind::Watch;
use everbloom::kind::watch;
use everbloom::{AnyFilter, Hashing, Importances, KeyHash, Promise, Spec, Status, Window, filters};
use everbloom_forecast::Audits;
use everbloom_forecast::audit::Audit;
use std::sync::Arc;
use std::time::Duration;

/// What remembers the lines.
pub(super) enum Memory {
    Own(AnyFilter),
    Servers(Box<Servers>),
}

/// What a state has of it.
pub(super) enum Kept {
    Filter(AnyFilter),
    /// What was on its way to servers.
    OnItsWay(Vec<u8>),
}

impl Memory {
    /// What is asked for, empty or as others left it; and what else its plan says.
    pub(super) fn new(dedup: &Dedup, layout: &Layout, interrupt: &Arc<Interrupt>) -> Result<(Self, Vec<String>)> {
        let planned = dedup.plan_memory(layout)?;
        let notes = planned.notes.clone();
        let memory = match dedup.servers.redis {
            Some(_) => Memory::Servers(Box::new(Servers::open(dedup, layout, &planned, interrupt)?)),
            None => Memory::Own(planned.build()?),
        };
        Ok((memory, notes))
    }

    /// What a state left.
    pub(super) fn kept(dedup: &Dedup, kept: Kept, saved: &Journal, interrupt: &Arc<Interrupt>) -> Result<Self> {
        match (kept, &saved.servers, &dedup.servers.redis) {
            (Kept::Filter(filter), _, None) => Ok(Memory::Own(filter)),
            (Kept::OnItsWay(bytes), Some(saved), Some(_)) => {
                Ok(Memory::Servers(Box::new(Servers::resume(dedup, saved, &bytes, interrupt)?)))
            }
            (_, _, None) => Err(Failure::new("the state belongs to a filter on servers; say where: --redis URL")),
            _ => Err(Failure::new("the state has a filter of its own; leave --redis out, or name another state file")),
        }
    }

    pub(super) fn spec(&self) -> &Spec {
        match self {
            Memory::Own(filter) => filter.spec(),
            Memory::Servers(servers) => servers.spec(),
        }
    }

    pub(super) fn promise(&self) -> Promise {
        match self {
            Memory::Own(filter) => filter.promise(),
            Memory::Servers(servers) => servers.promise(),
        }
    }

    pub(super) fn hashing(&self) -> &Hashing {
        match self {
            Memory::Own(filter) => filter.hashing(),
            Memory::Servers(servers) => servers.hashing(),
        }
    }

    pub(super) fn memory_bits(&self) -> u64 {
        match self {
            Memory::Own(filter) => filter.memory_bits(),
            Memory::Servers(servers) => servers.memory_bits(),
        }
    }

    /// What measures how often the filter errs, if that is asked for.
    pub(super) fn audit(&self) -> Option<&Audit> {
        match self {
            Memory::Own(filter) => filter.audit(),
            Memory::Servers(_) => None,
        }
    }

    pub(super) fn exact_arrivals(&self) -> u64 {
        match self {
            Memory::Own(filter) => filter.exact_arrivals(),
            Memory::Servers(_) => 0,
        }
    }

    /// A look at all of the cells.
    pub(super) fn status(&self) -> Status {
        match self {
            Memory::Own(filter) => filter.status(),
            Memory::Servers(servers) => servers.status(),
        }
    }

    pub(super) fn watch(&self) -> Watch {
        match self {
            Memory::Own(filter) => watch(filter.as_ref()),
            Memory::Servers(servers) => servers.watch(),
        }
    }

    /// Whether a record that was judged can be taken back.
    pub(super) fn takes_back(&self) -> bool {
        matches!(self, Memory::Own(_))
    }

    /// Makes a batch ready to be sent to servers; whether there is something to send.
    pub(super) fn deal(&mut self, hashes: &[KeyHash], importances: Importances<'_>) -> Result<bool> {
        match self {
            Memory::Own(_) => Ok(false),
            Memory::Servers(servers) => servers.deal(hashes, importances),
        }
    }

    /// All that was judged so far is written, or will be before anything is saved.
    pub(super) fn settle(&mut self) {
        if let Memory::Servers(servers) = self {
            servers.settle();
        }
    }

    /// What a state says of a filter on servers.
    pub(super) fn on_servers(&self) -> Option<OnServers> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => Some(servers.sessions()),
        }
    }

    /// The window that is kept: the one that was asked for, or that others gave a filter on servers.
    pub(super) fn window(&self, asked: Option<Window>) -> Option<Window> {
        asked.or_else(|| self.shared_window().map(|(time, _)| Window::Time(time)))
    }

    /// A window of time that servers turn, and the lines that it was planned for.
    pub(super) fn shared_window(&self) -> Option<(Duration, u64)> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => servers.window(),
        }
    }

    /// Whether it is time for a look at what others do to the window.
    pub(super) fn wants_look(&self) -> bool {
        match self {
            Memory::Own(_) => false,
            Memory::Servers(servers) => servers.wants_look(),
        }
    }

    /// A look that tells whether the promise is kept.
    pub(super) fn look(&mut self) -> Status {
        match self {
            Memory::Own(filter) => filter.status(),
            Memory::Servers(servers) => servers.look(),
        }
    }

    /// Lines that servers acknowledged and lost, and whether there may be more.
    pub(super) fn lost(&self) -> Option<(u64, bool)> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => Some(servers.lost()),
        }
    }

    /// What is to be said in the end.
    pub(super) fn note(&self) -> Option<String> {
        match self {
            Memory::Own(_) => None,
            Memory::Servers(servers) => servers.note(),
        }
    }

    /// Leaves the servers to others.
    pub(super) fn release(self) {
        if let Memory::Servers(servers) = self {
            servers.release();
        }
    }
}

/// A small build knows no servers.
#[cfg(not(feature = "redis"))]
pub(super) enum Servers {}

#[cfg(not(feature = "redis"))]
#[rustfmt::skip]
#[allow(clippy::unused_self)]
impl Servers {
    fn left_out<T>() -> Result<T> {
        Err(Failure::new("this everbloom was built without servers; `cargo build --release` has them"))
    }

    fn open(_: &Dedup, _: &Layout, _: &everbloom::Plan, _: &Arc<Interrupt>) -> Result<Self> { Self::left_out() }
    fn resume(_: &Dedup, _: &OnServers, _: &[u8], _: &Arc<Interrupt>) -> Result<Self> { Self::left_out() }
    pub(super) fn observe(&mut self, _: &[KeyHash], _: Importances<'_>, _: &mut [everbloom::Verdict]) -> Result<()> { match *self {} }
    pub(super) fn counted_by_all(&mut self) -> Option<u64> { match *self {} }
    pub(super) fn on_its_way(&self) -> Vec<u8> { match *self {} }
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
