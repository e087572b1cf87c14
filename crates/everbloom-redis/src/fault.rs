//! Defects on demand, in debug builds alone: `CONFIG SET everbloom.fault NAME` makes the next such moment fail, so that tests
//! see what becomes of a panic in a write and of a growth that is refused.

#[cfg(debug_assertions)]
use crate::server::{Setting, Sort};

/// What fails next: 0 nothing, 1 a write after it changed the filter, 2 a growth.
#[cfg(debug_assertions)]
pub(crate) static FAULT: Setting = Setting::new(c"fault", 0, Sort::Number(0, 2));

/// Panics, if that was asked for.
#[inline(always)]
pub(crate) fn panic_after_change() {
    #[cfg(debug_assertions)]
    if FAULT.get() == 1 {
        FAULT.set(0);
        panic!("a defect on demand");
    }
}

/// Whether a growth is refused as if there were no memory.
#[inline(always)]
pub(crate) fn refuses_growth() -> bool {
    #[cfg(debug_assertions)]
    if FAULT.get() == 2 {
        FAULT.set(0);
        return true;
    }
    false
}
