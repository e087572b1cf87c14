//! A place that blocks pass one by one, in the order in which they were read.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Guards a value that turns 0, 1, 2, … may hold, each after the one before.
pub(crate) struct InOrder<T> {
    gate: Mutex<Gate<T>>,
    moved: Condvar,
}

struct Gate<T> {
    turn: u64,
    closed: bool,
    value: T,
}

impl<T> InOrder<T> {
    pub(crate) fn new(value: T) -> Self {
        InOrder { gate: Mutex::new(Gate { turn: 0, closed: false, value }), moved: Condvar::new() }
    }

    /// Waits for this turn; nothing if it was closed instead.
    pub(crate) fn enter(&self, turn: u64) -> Option<Turn<'_, T>> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = self.moved.wait_while(gate, |gate| gate.turn != turn && !gate.closed);
        let gate = gate.unwrap_or_else(PoisonError::into_inner);
        (!gate.closed).then_some(Turn { gate, moved: &self.moved })
    }

    /// Sends everybody home who waits or is yet to come.
    fn close(&self) {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.moved.notify_all();
    }

    /// The value, once nobody can come any more.
    pub(crate) fn into_inner(self) -> T {
        self.gate.into_inner().unwrap_or_else(PoisonError::into_inner).value
    }
}

/// Closes two places, of which somebody may hold the one while waiting for the other. The one that is waited for comes
/// first: who holds the other then lets it go.
pub(crate) fn close<A, B>(held: &InOrder<A>, waited_for: &InOrder<B>) {
    waited_for.close();
    held.close();
}

/// A turn that has come. Whoever holds it calls [`Turn::pass`] in the end, or closes the place.
pub(crate) struct Turn<'t, T> {
    gate: MutexGuard<'t, Gate<T>>,
    moved: &'t Condvar,
}

impl<T> Turn<'_, T> {
    /// Lets the next one in.
    pub(crate) fn pass(mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Two places in a row, as a checkpoint passes them: one turn holds the first and waits at the second, where the turn
    /// before it fails and closes both.
    fn ends_within(time: Duration, close: fn(&InOrder<()>, &InOrder<()>)) -> bool {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            let (first, second) = (InOrder::new(()), InOrder::new(()));
            let (holds, has_both) = mpsc::channel();
            std::thread::scope(|scope| {
                let failing = second.enter(0).expect("nobody is before it");
                first.enter(0).expect("nobody is before it").pass();
                scope.spawn(|| {
                    let held = first.enter(1).expect("its turn");
                    holds.send(()).expect("somebody listens");
                    assert!(second.enter(1).is_none(), "the turn before never passed");
                    drop(held);
                });
                has_both.recv().expect("it comes");
                drop(failing);
                close(&first, &second);
            });
            done.send(()).expect("somebody listens");
        });
        is_done.recv_timeout(time).is_ok()
    }

    #[test]
    fn who_holds_one_place_and_waits_for_another_is_sent_home() {
        assert!(ends_within(Duration::from_secs(60), close));
        // In the other order it hangs for ever, so that this test can fail.
        assert!(!ends_within(Duration::from_secs(1), |first, second| close(second, first)));
    }
}
