//! Room for long records, shared by the blocks that are under way.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Blocks longer than usual take no more than this together, unless one alone does.
const LONG_BLOCKS_BYTES: usize = 8 << 20;

/// How many bytes the long blocks hold.
#[derive(Debug, Default)]
pub(super) struct Room {
    taken: Mutex<usize>,
    left: Condvar,
}

/// The share of a block; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// Waits until a block may hold `bytes`, given what it `held` already. The others were read before it and need
    /// nothing of it, so they end.
    pub(super) fn take(self: &Arc<Self>, held: &mut Option<Share>, bytes: usize) {
        let before = held.as_ref().map_or(0, |share| share.bytes);
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut usize| *taken > before && *taken - before + bytes > LONG_BLOCKS_BYTES;
        let mut taken = self.left.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        *taken += bytes.saturating_sub(before);
        match held {
            Some(share) => share.bytes = bytes.max(before),
            None => *held = Some(Share { room: Arc::clone(self), bytes }),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(self.bytes);
        drop(taken);
        self.room.left.notify_all();
    }
}
