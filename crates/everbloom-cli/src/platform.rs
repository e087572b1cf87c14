//! The calls that only Unix has, in one place: readiness, signals, locks, file identity.

use crate::failure::{Failure, Result};
use crate::fault;
use crate::report::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// Nobody reads what we write any more.
    ReaderGone,
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

/// Waits until `input` can be read, a signal asks us to stop or the reader of our output goes, as long as patience lasts.
pub(crate) fn wait_for(input: &OwnedFd, interrupt: Option<&Interrupt>) -> Readiness {
    match interrupt {
        Some(interrupt) => interrupt.wait(Some((input.as_fd(), PollFlags::IN)), interrupt.patience.as_ref()),
        // Until there is a writer, a named pipe would seem to be at its end.
        None => {
            while poll(&mut [PollFd::new(input, PollFlags::IN)], None) == Err(rustix::io::Errno::INTR) {}
            Readiness::Ready
        }
    }
}

/// Whether the reader of a pipe or socket has gone, so that nothing written to it would arrive.
pub(crate) fn is_reader_gone(output: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(output, PollFlags::empty())];
    poll(&mut watched, Some(&NO_TIME)).is_ok_and(|_| is_gone(&watched[0]))
}

fn is_gone(output: &PollFd<'_>) -> bool {
    output.revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Stdout, if its reader can go away.
pub(crate) fn watched_stdout() -> Option<OwnedFd> {
    let stdout = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
    let kind = File::from(stdout.try_clone().ok()?).metadata().ok()?.file_type();
    (kind.is_fifo() || kind.is_socket()).then_some(stdout)
}

/// Opens a file to be read, without waiting for the writer of a named pipe.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    fault::point("open")?;
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    // Whoever reads waits until there is something, so that reads need not be repeated.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// What is known of a file; nothing if there is none of that name.
pub(crate) fn stat(path: &Path) -> std::io::Result<Option<Metadata>> {
    fault::point("stat")?;
    match path.metadata() {
        Ok(data) => Ok(Some(data)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A path, and where it leads by links, as far as systems follow them.
pub(crate) fn links(path: &Path) -> impl Iterator<Item = PathBuf> {
    const MOST_LINKS: usize = 40;
    let next = |path: &PathBuf| Some(path.parent()?.join(std::fs::read_link(path).ok()?));
    std::iter::successors(Some(path.to_path_buf()), next).take(MOST_LINKS + 1)
}

/// What is known of an open file.
pub(crate) fn data_of(file: &File) -> std::io::Result<Metadata> {
    fault::point("stat")?;
    file.metadata()
}

/// Locks a file against other processes until it is closed; false if one of them has it.
pub(crate) fn try_lock(file: &File) -> std::io::Result<bool> {
    fault::point("lock")?;
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A request to stop reading, from a signal or from ourselves, that also ends a wait for input.
#[derive(Debug)]
pub(crate) struct Interrupt {
    request: Arc<AtomicUsize>,
    wake: UnixStream,
    ring: UnixStream,
    patience: Option<Timespec>,
    /// The output whose reader may go while we wait.
    output: Option<OwnedFd>,
    /// Held while something is done that must not be broken off.
    busy: Arc<Mutex<()>>,
    is_ending: Arc<AtomicBool>,
}

/// What `request` holds when it was no signal.
const STOPPED: usize = usize::MAX;
/// Who is not done so long after a signal is held up by somebody else.
const ORDERLY_END: Duration = Duration::from_millis(700);
const HELD_UP: &str = "a signal came while an output was blocked, or an input: what was read since the last checkpoint is \
                       neither written nor remembered; files give it again, pipes do not";
/// Saving and reporting may take longer.
const LAST_WORDS: Duration = Duration::from_secs(20);

impl Interrupt {
    /// Nobody has asked yet.
    pub(crate) fn new() -> Result<Self> {
        let (wake, ring) = UnixStream::pair().map_err(signals)?;
        let (busy, is_ending) = (Arc::default(), Arc::default());
        Ok(Interrupt { request: Arc::default(), wake, ring, patience: None, output: None, busy, is_ending })
    }

    /// From now on SIGINT and SIGTERM only ask, and no wait for input lasts longer than `patience`. If the end does not
    /// come soon, because a reader or a writer keeps us waiting, it comes without ceremony; where there is a state, with a
    /// word about it.
    pub(crate) fn catch_signals(&mut self, patience: Duration, has_state: bool) -> Result<()> {
        let (mut called, call) = UnixStream::pair().map_err(signals)?;
        for number in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            if is_ignored(number) {
                continue;
            }
            let (ring, call) = (self.ring.try_clone().map_err(signals)?, call.try_clone().map_err(signals)?);
            signal_hook::flag::register_usize(number, Arc::clone(&self.request), number as usize)
                .and_then(|_| signal_hook::low_level::pipe::register(number, ring))
                .and_then(|_| signal_hook::low_level::pipe::register(number, call))
                .map_err(signals)?;
        }
        let (request, busy, is_ending) =
            (Arc::clone(&self.request), Arc::clone(&self.busy), Arc::clone(&self.is_ending));
        std::thread::spawn(move || {
            if called.read_exact(&mut [0]).is_err() {
                return;
            }
            loop {
                std::thread::sleep(ORDERLY_END);
                if is_ending.load(Ordering::Relaxed) {
                    std::thread::sleep(LAST_WORDS);
                }
                if let Ok(_idle) = busy.try_lock() {
                    if let (false, Ok(signal)) = (has_state, u8::try_from(request.load(Ordering::Relaxed))) {
                        end_by(signal);
                    }
                    // Who does not take our lines may not take our words, either.
                    std::thread::spawn(|| words::say(HELD_UP));
                    std::thread::sleep(ORDERLY_END / 7);
                    let signal = request.load(Ordering::Relaxed);
                    std::process::exit(128 + i32::try_from(signal).unwrap_or(signal_hook::consts::SIGTERM));
                }
                // A state is being saved; what comes behind it has its time, too.
                drop(busy.lock());
            }
        });
        let patience = patience.clamp(Duration::from_millis(1), Duration::from_secs(1 << 30));
        self.patience = Timespec::try_from(patience).ok();
        Ok(())
    }

    /// Also notices when nobody reads this output any more.
    pub(crate) fn watch_output(&mut self, output: Option<OwnedFd>) {
        self.output = output;
    }

    /// Whether nobody reads the output any more.
    pub(crate) fn is_reader_gone(&self) -> bool {
        self.output.as_ref().is_some_and(is_reader_gone)
    }

    /// Waits for a moment.
    pub(crate) fn pause(&self, moment: Duration) -> Readiness {
        self.wait(None, Timespec::try_from(moment).ok().as_ref())
    }

    /// Waits until a descriptor is ready or there is nothing more to wait for.
    pub(crate) fn wait(
        &self,
        descriptor: Option<(BorrowedFd<'_>, PollFlags)>,
        patience: Option<&Timespec>,
    ) -> Readiness {
        let mut waiting = vec![PollFd::new(&self.wake, PollFlags::IN)];
        waiting.extend(self.output.as_ref().map(|output| PollFd::new(output, PollFlags::empty())));
        let outputs = waiting.len();
        waiting.extend(descriptor.map(|(descriptor, events)| PollFd::from_borrowed_fd(descriptor, events)));
        // An interrupted poll has nothing to report but the signal itself, which `is_requested` knows.
        let events = poll(&mut waiting, patience);
        match (self.is_requested(), events) {
            (true, _) => Readiness::Interrupted,
            (false, Ok(0) | Err(_)) => Readiness::Waiting,
            (false, _) if waiting[1..outputs].iter().any(is_gone) => Readiness::ReaderGone,
            (false, _) => Readiness::Ready,
        }
    }

    /// Does something that no signal breaks off.
    pub(crate) fn uninterruptible<T>(&self, act: impl FnOnce() -> T) -> T {
        let _busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        act()
    }

    /// All is read and written: what is left to do keeps nobody waiting.
    pub(crate) fn ending(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Asks for an end. A signal that came before is not forgotten.
    pub(crate) fn stop(&self) {
        let _ = self.request.compare_exchange(0, STOPPED, Ordering::Relaxed, Ordering::Relaxed);
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

/// Ends as the signal would have ended us, so that a shell that waits for us knows.
pub(crate) fn end_by(signal: u8) {
    // Only what is no signal at all is an error.
    let _ = signal_hook::low_level::emulate_default_handler(signal.into());
}

/// Whether whoever started us wants us to ignore a signal, as shells do with SIGINT in the background.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (number - 1) & 1 == 1
}

/// From now on a file that would grow beyond what a process may write is an error, and no end without a word.
pub(crate) fn fail_at_the_file_limit() {
    // Without it, a process that reaches its limit ends as it always did.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
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

/// A file in a folder that has no name yet, where the system has such files: nobody finds it if we end before it gets one.
pub(crate) fn unnamed_file(folder: &Path) -> Option<File> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        open(folder, flags, Mode::from_raw_mode(0o666)).ok().map(File::from)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        None
    }
}

/// Gives such a file its name.
pub(crate) fn name_file(file: &File, name: &Path) -> std::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// What makes two paths one file.
pub(crate) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether a path still leads to an open file, of which these are the data.
pub(crate) fn leads_to(path: &Path, data: &Metadata) -> std::io::Result<bool> {
    Ok(stat(path)?.is_some_and(|named| identity(&named) == identity(data)))
}

/// The number that a file system knows a file by.
pub(crate) fn inode(file: &File) -> std::io::Result<u64> {
    data_of(file).map(|data| data.ino())
}

/// Waits until a pipe takes something, and says how much it takes at once for certain.
pub(crate) fn room_in_pipe(pipe: &File) -> usize {
    // Whether there is room is all that matters; a reader that has gone makes the write fail.
    let _ = poll(&mut [PollFd::new(pipe, PollFlags::OUT)], None);
    #[cfg(target_os = "linux")]
    if rustix::io::ioctl_fionread(pipe) == Ok(0) {
        return rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(rustix::pipe::PIPE_BUF);
    }
    rustix::pipe::PIPE_BUF
}
