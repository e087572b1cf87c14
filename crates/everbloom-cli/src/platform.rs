//! The calls that only Unix has, in one place: readiness, file identity.

use crate::failure::{Failure, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::Metadata;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Waits until `input` can be read or a signal asks us to stop.
pub(crate) fn wait_for(input: &OwnedFd, interrupt: Option<&Interrupt>) -> Readiness {
    let Some(interrupt) = interrupt else { return Readiness::Ready };
    let mut waiting = [PollFd::new(input, PollFlags::IN), PollFd::new(&interrupt.wake, PollFlags::IN)];
    // An interrupted poll has nothing to report but the signal itself, which `requested` knows.
    let _ = poll(&mut waiting, None);
    if interrupt.requested().is_some() { Readiness::Interrupted } else { Readiness::Ready }
}

/// SIGINT and SIGTERM as a question that can be asked between two blocks.
#[derive(Debug)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
    wake: UnixStream,
}

impl Interrupt {
    /// From now on the signals no longer end the process by themselves.
    pub(crate) fn catch() -> Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        let (wake, ring) = UnixStream::pair().map_err(|error| Failure::io("signals", &error))?;
        for number in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let ring = ring.try_clone().map_err(|error| Failure::io("signals", &error))?;
            signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
                .and_then(|_| signal_hook::low_level::pipe::register(number, ring))
                .map_err(|error| Failure::io("signals", &error))?;
        }
        Ok(Interrupt { signal, wake })
    }

    /// The signal that came, if one did.
    pub(crate) fn requested(&self) -> Option<u8> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => Some(number as u8),
        }
    }
}

/// A duplicate of a descriptor that may keep its reader waiting: pipe, terminal, socket.
pub(crate) fn may_wait(descriptor: impl AsFd, metadata: &Metadata) -> Option<OwnedFd> {
    let kind = metadata.file_type();
    (kind.is_fifo() || kind.is_socket() || kind.is_char_device())
        .then(|| descriptor.as_fd().try_clone_to_owned().ok())
        .flatten()
}

/// What makes two paths one file.
pub(crate) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
