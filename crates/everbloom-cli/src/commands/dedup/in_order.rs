//! A place that blocks pass one by one, in the order in which they were read.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Guards a value that turns 0, 1, 2, … may hold, each after the one before.
pub(super) struct InOrder<T> {
    gate: Mutex<Gate<T>>,
    moved: Condvar,
}

struct Gate<T> {
    turn: u64,
    closed: bool,
    value: T,
}

impl<T> InOrder<T> {
    pub(super) fn new(value: T) -> Self {
        InOrder { gate: Mutex::new(Gate { turn: 0, closed: false, value }), moved: Condvar::new() }
    }

    /// Waits for this turn; nothing if it was closed instead.
    pub(super) fn enter(&self, turn: u64) -> Option<Turn<'_, T>> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = self.moved.wait_while(gate, |gate| gate.turn != turn && !gate.closed);
        let gate = gate.unwrap_or_else(PoisonError::into_inner);
        (!gate.closed).then_some(Turn { gate, moved: &self.moved })
    }

    /// Sends everybody home who waits or is yet to come.
    pub(super) fn close(&self) {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.moved.notify_all();
    }

    /// The value, once nobody can come any more.
    pub(super) fn into_inner(self) -> T {
        self.gate.into_inner().unwrap_or_else(PoisonError::into_inner).value
    }
}

/// A turn that has come. Whoever holds it calls [`Turn::pass`] in the end, or closes the place.
pub(super) struct Turn<'t, T> {
    gate: MutexGuard<'t, Gate<T>>,
    moved: &'t Condvar,
}

impl<T> Turn<'_, T> {
    /// Lets the next one in.
    pub(super) fn pass(mut self) {
        self.gate.turn += 1;
        drop(self.gate);
        self.moved.notify_all();
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.gate.value
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.gate.value
    }
}
