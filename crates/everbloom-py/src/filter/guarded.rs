//! A filter's state behind its lock.
//!
//! A lock costs two atomic operations, and, what is more, each makes the processor wait for the cells of the key before:
//! adding one key to a filter of a million took a quarter longer by it (asking for one no longer, within noise). With
//! Python's own lock neither is needed, so long as nobody works on the state while detached from Python. Without that
//! lock (a free-threaded Python) the state's own is always taken.

use super::state::State;
use everbloom::KeyHash;
use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Many look at the state, or one changes it.
pub(super) struct Guarded {
    lock: RwLock<()>,
    /// How many hold the lock, or wait for it. Only changed by who is attached to Python.
    holders: AtomicUsize,
    state: UnsafeCell<State>,
}

// SAFETY: the state is itself `Send` and `Sync`, and is looked at and changed as the lock of `Guarded` allows, or alone.
#[allow(unsafe_code)]
unsafe impl Sync for Guarded {}

/// What `Sync` above relies on.
const _: fn() = || {
    fn both<T: Send + Sync>() {}
    both::<State>();
};

impl Guarded {
    pub(super) fn new(state: State) -> Self {
        Guarded { lock: RwLock::new(()), holders: AtomicUsize::new(0), state: UnsafeCell::new(state) }
    }

    /// Whether the state is nobody else's for as long as this thread stays attached.
    #[inline(always)]
    fn is_ours(&self, _py: Python<'_>) -> bool {
        !cfg!(Py_GIL_DISABLED) && self.holders.load(Ordering::Acquire) == 0
    }

    /// Whether a key has been here.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(super) fn contains(&self, py: Python<'_>, hash: KeyHash) -> bool {
        if self.is_ours(py) {
            // SAFETY: nobody holds the lock. Who would take it must be attached first, or call this function or the next,
            // for which a thread must be attached, too. This thread stays attached until the filter has answered, as it
            // calls nothing of Python's. (Two interpreters in one process, each with a lock of its own, cannot both
            // import this module: PyO3 refuses the second.)
            return unsafe { &*self.state.get() }.filter.contains_hash(hash);
        }
        self.read(py).filter.contains_hash(hash)
    }

    /// Remembers a key; true if it seems new.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(super) fn insert(&self, py: Python<'_>, hash: KeyHash) -> bool {
        if self.is_ours(py) {
            // SAFETY: as in `contains`.
            return unsafe { &mut *self.state.get() }.filter.insert_hash(hash);
        }
        self.write(py).filter.insert_hash(hash)
    }

    /// Looks at the state while attached to Python. No Python code may run meanwhile.
    #[allow(unsafe_code)]
    pub(super) fn read(&self, py: Python<'_>) -> Reading<'_> {
        let holder = Holder::new(self);
        let lock = self.lock.read_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held for reading as long as the reference lives, and whoever goes without it sees a holder.
        let state = unsafe { &*self.state.get() };
        Reading { state, _lock: lock, _holder: holder }
    }

    /// The state, to change it.
    #[allow(unsafe_code)]
    pub(super) fn write(&self, py: Python<'_>) -> Writing<'_> {
        let holder = Holder::new(self);
        let lock = self.lock.write_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held for writing as long as the reference lives, and whoever goes without it sees a holder.
        let state = unsafe { &mut *self.state.get() };
        Writing { state, _lock: lock, _holder: holder }
    }

    /// Looks at the state for a while; other Python threads run.
    #[allow(unsafe_code)]
    pub(super) fn looking<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&State) -> T + Send) -> T {
        let _holder = Holder::new(self);
        py.detach(|| {
            let _lock = self.lock.read().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: as in `read`.
            look(unsafe { &*self.state.get() })
        })
    }

    /// Changes the state.
    #[allow(unsafe_code)]
    pub(super) fn changing<T: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut State) -> T + Send) -> T {
        let _holder = Holder::new(self);
        py.detach(|| {
            let _lock = self.lock.write().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: as in `write`.
            change(unsafe { &mut *self.state.get() })
        })
    }

    /// Changes this state by another one. Two threads may do so to two filters the other way round: the locks are taken in
    /// one order.
    #[allow(unsafe_code)]
    pub(super) fn changing_by<T: Send>(
        &self,
        py: Python<'_>,
        other: &Guarded,
        change: impl FnOnce(&mut State, &State) -> T + Send,
    ) -> T {
        assert!(!std::ptr::eq(self, other), "a state cannot be changed by itself");
        let _holders = (Holder::new(self), Holder::new(other));
        py.detach(|| {
            let (_this, _that);
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                _this = self.lock.write().unwrap_or_else(PoisonError::into_inner);
                _that = other.lock.read().unwrap_or_else(PoisonError::into_inner);
            } else {
                _that = other.lock.read().unwrap_or_else(PoisonError::into_inner);
                _this = self.lock.write().unwrap_or_else(PoisonError::into_inner);
            }
            // SAFETY: as in `write` and in `read`, and they are two.
            unsafe { change(&mut *self.state.get(), &*other.state.get()) }
        })
    }
}

/// One that holds the lock, or waits for it.
struct Holder<'g>(&'g AtomicUsize);

impl<'g> Holder<'g> {
    fn new(guarded: &'g Guarded) -> Self {
        guarded.holders.fetch_add(1, Ordering::AcqRel);
        Holder(&guarded.holders)
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The state, to look at.
pub(super) struct Reading<'g> {
    state: &'g State,
    _lock: RwLockReadGuard<'g, ()>,
    _holder: Holder<'g>,
}

impl Deref for Reading<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state
    }
}

/// The state, to change.
pub(super) struct Writing<'g> {
    state: &'g mut State,
    _lock: RwLockWriteGuard<'g, ()>,
    _holder: Holder<'g>,
}

impl Deref for Writing<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state
    }
}
