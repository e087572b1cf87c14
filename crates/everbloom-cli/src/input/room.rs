//! Room for long records, shared by the blocks that are under way.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Blocks longer than usual take no more than this together, unless one alone does.
const LONG_BLOCKS_BYTES: usize = 8 << 20;

/// How many bytes the long blocks hold, and a buffer that one of them left.
#[derive(Debug, Default)]
pub(super) struct Room {
    used: Mutex<Used>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    bytes: usize,
    /// Allocators keep what a thread frees for that thread, so that a long buffer for each would stay.
    spare: Vec<u8>,
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
        let is_full = |used: &mut Used| used.bytes > before && used.bytes - before + bytes > LONG_BLOCKS_BYTES;
        let used = self.left.wait_while(self.lock(), is_full);
        used.unwrap_or_else(PoisonError::into_inner).bytes += bytes.saturating_sub(before);
        match held {
            Some(share) => share.bytes = bytes.max(before),
            None => *held = Some(Share { room: Arc::clone(self), bytes }),
        }
    }

    /// The buffer that was left, if it is longer than `bytes`.
    pub(super) fn spare(&self, bytes: usize) -> Option<Vec<u8>> {
        let mut used = self.lock();
        (used.spare.len() > bytes).then(|| std::mem::take(&mut used.spare))
    }

    /// Lets go of the buffer that was left.
    pub(super) fn forget_spare(&self) {
        self.lock().spare = Vec::new();
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Gives the share back, and its buffer for the next long block.
    pub(super) fn leave(self, buffer: Vec<u8>) {
        let mut used = self.room.lock();
        if buffer.len() > used.spare.len() {
            used.spare = buffer;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut used = self.room.lock();
        used.bytes = used.bytes.saturating_sub(self.bytes);
        drop(used);
        self.room.left.notify_all();
    }
}
