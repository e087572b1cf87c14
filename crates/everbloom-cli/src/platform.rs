//! The calls that only Unix has, in one place: readiness, file identity.

use crate::failure::{Failure, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::Metadata;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What there is to do about an input that may keep us waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// A read returns at once.
    Ready,
    /// A read would wait.
    Waiting,
    /// Somebody asked us to stop.
    Interrupted,
}

const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Whether a read of `input` returns at once.
pub(crate) fn readiness(input: &OwnedFd) -> Readiness {
    let mut waiting = [PollFd::new(input, PollFlags::IN)];
    match poll(&mut waiting, Some(&NO_TIME)) {
        Ok(0) => Readiness::Waiting,
        _ => Readiness::Ready,
    }
}

/// Waits until `input` can be read or a signal asks us to stop, as long as patience lasts.
pub(crate) fn wait_for(input: &OwnedFd, interrupt: Option<&Interrupt>) -> Readiness {
    let Some(interrupt) = interrupt else { return Readiness::Ready };
    let mut waiting = [PollFd::new(input, PollFlags::IN), PollFd::new(&interrupt.wake, PollFlags::IN)];
    // An interrupted poll has nothing to report but the signal itself, which `is_requested` knows.
    let events = poll(&mut waiting, interrupt.patience.as_ref());
    match (interrupt.is_requested(), events) {
        (true, _) => Readiness::Interrupted,
        (false, Ok(0)) => Readiness::Waiting,
        (false, _) => Readiness::Ready,
    }
}

/// A request to stop reading, from a signal or from ourselves, that also ends a wait for input.
#[derive(Debug)]
pub(crate) struct Interrupt {
    request: Arc<AtomicUsize>,
    wake: UnixStream,
    ring: UnixStream,
    patience: Option<Timespec>,
}

/// What `request` holds when it was no signal.
const STOPPED: usize = usize::MAX;

impl Interrupt {
    /// Nobody has asked yet.
    pub(crate) fn new() -> Result<Self> {
        let (wake, ring) = UnixStream::pair().map_err(signals)?;
        Ok(Interrupt { request: Arc::default(), wake, ring, patience: None })
    }

    /// From now on SIGINT and SIGTERM only ask, and no wait for input lasts longer than `patience`.
    pub(crate) fn catch_signals(&mut self, patience: Duration) -> Result<()> {
        for number in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let ring = self.ring.try_clone().map_err(signals)?;
            signal_hook::flag::register_usize(number, Arc::clone(&self.request), number as usize)
                .and_then(|_| signal_hook::low_level::pipe::register(number, ring))
                .map_err(signals)?;
        }
        let patience = patience.clamp(Duration::from_millis(1), Duration::from_secs(1 << 30));
        self.patience = Timespec::try_from(patience).ok();
        Ok(())
    }

    /// Asks for an end.
    pub(crate) fn stop(&self) {
        self.request.store(STOPPED, Ordering::Relaxed);
        // The other end is ours, so there is a reader; a full buffer wakes it just as well.
        let _ = (&self.ring).write(&[0]);
    }

    /// Whether somebody asked for an end.
    pub(crate) fn is_requested(&self) -> bool {
        self.request.load(Ordering::Relaxed) != 0
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<u8> {
        u8::try_from(self.request.load(Ordering::Relaxed)).ok().filter(|number| *number != 0)
    }
}

fn signals(error: std::io::Error) -> Failure {
    Failure::io("signals", &error)
}

/// A duplicate of a descriptor that may keep its reader waiting: pipe, terminal, socket.
pub(crate) fn may_wait(descriptor: impl AsFd, metadata: &Metadata) -> Option<OwnedFd> {
    let kind = metadata.file_type();
    (kind.is_fifo() || kind.is_socket() || kind.is_char_device())
        .then(|| descriptor.as_fd().try_clone_to_owned().ok())
        .flatten()
}

/// What a new file may be used for, as far as the user's mask allows.
pub(crate) fn permissions_of_new_files() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

/// What makes two paths one file.
pub(crate) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
