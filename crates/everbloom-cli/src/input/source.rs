//! One input: a file or stdin, unpacked if it is packed.

use super::unpack::{MAGIC_BYTES, Recognised, Unpacked, Unpacker, recognise};
use crate::failure::{Failure, Result};
use crate::platform::{self, Interrupt, Readiness};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STDIN: &str = "stdin";

/// Whether a path stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// An open input.
pub(crate) struct Source {
    name: String,
    file: File,
    /// What unpacks it; nothing once it is known to be plain, and all that was read to know it is given.
    unpacker: Option<Unpacker>,
    waits: Option<OwnedFd>,
    can_be_reread: bool,
    consumed: Arc<AtomicU64>,
}

impl Source {
    /// Whether `path` can be read at all, so that a missing input is known before anything is written. A pipe is left alone.
    pub(crate) fn check(path: &Path) -> Result<()> {
        if is_stdin(path) {
            return Ok(());
        }
        let checked = path.metadata().and_then(|data| match (data.is_dir(), data.is_file()) {
            (true, _) => Err(io::Error::other("is a directory")),
            (_, true) => File::open(path).map(drop),
            _ => Ok(()),
        });
        checked.map_err(|error| Failure::io(path.display(), &error))
    }

    /// Whether a file is stored packed, so that its length says nothing about what is in it.
    pub(crate) fn is_packed(path: &Path) -> bool {
        let mut start = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAGIC_BYTES as u64).read_to_end(&mut start));
        read.is_ok() && matches!(recognise(&start), Recognised::Packed(_))
    }

    /// Opens `path`, or stdin for `-`. `consumed` counts the bytes as they are stored.
    pub(crate) fn open(path: &Path, consumed: &Arc<AtomicU64>) -> Result<Self> {
        Self::open_at(path, 0, consumed)
    }

    /// Opens `path` at an offset into what it unpacks to. What may keep us waiting is not read yet.
    pub(crate) fn open_at(path: &Path, offset: u64, consumed: &Arc<AtomicU64>) -> Result<Self> {
        let name = if is_stdin(path) { STDIN.to_string() } else { path.display().to_string() };
        let source = open_file(path).and_then(|file| Self::new(file, name.clone(), consumed));
        let source = source.and_then(|mut source| source.skip(offset).map(|()| source));
        source.map_err(|error| Failure::io(name, &error))
    }

    fn new(file: File, name: String, consumed: &Arc<AtomicU64>) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::other("is a directory"));
        }
        let waits = platform::may_wait(&file, &metadata);
        let can_be_reread = metadata.is_file() && name != STDIN;
        Ok(Source { name, file, unpacker: Some(Unpacker::new()), waits, can_be_reread, consumed: Arc::clone(consumed) })
    }

    /// Goes to an offset: where the file allows it by a jump, elsewhere by reading up to there.
    fn skip(&mut self, offset: u64) -> io::Result<()> {
        let (mut left, mut scratch) = (offset, vec![0; if offset > 0 { 1 << 16 } else { 0 }]);
        while left > 0 {
            let most = scratch.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.read(&mut scratch[..most], None)? {
                Arrival::Bytes(count) => left -= count as u64,
                // A plain file may have shrunk; its reader finds nothing there.
                Arrival::End if self.unpacker.is_none() => return Ok(()),
                Arrival::End => return Err(io::Error::other(format!("is shorter than {offset} bytes"))),
                Arrival::Nothing | Arrival::Interrupted => {}
            }
            let is_plain_file = self.unpacker.is_none() && self.waits.is_none();
            if let (true, Ok(ahead)) = (is_plain_file, i64::try_from(left))
                && self.file.seek(SeekFrom::Current(ahead)).is_ok()
            {
                self.consumed.fetch_add(left, Ordering::Relaxed);
                return Ok(());
            }
        }
        Ok(())
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a later run can read the same bytes again.
    pub(crate) fn can_be_reread(&self) -> bool {
        self.can_be_reread
    }

    /// Whether a read would have to wait: all that has come is given, and no more is there.
    pub(crate) fn would_wait(&self) -> bool {
        self.unpacker.as_ref().is_none_or(Unpacker::is_hungry)
            && self.waits.as_ref().is_some_and(|input| platform::readiness(input) == Readiness::Waiting)
    }

    /// Whether a read may have to wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.waits.is_some()
    }

    /// Reads what there is, waiting for the first byte unless a signal comes.
    pub(crate) fn read(&mut self, bytes: &mut [u8], interrupt: Option<&Interrupt>) -> io::Result<Arrival> {
        loop {
            if let Some(unpacker) = &mut self.unpacker {
                match unpacker.unpack(bytes)? {
                    Unpacked::Bytes(count) => return Ok(Arrival::Bytes(count)),
                    Unpacked::End => return Ok(Arrival::End),
                    Unpacked::Hungry => {}
                    Unpacked::Plain => {
                        let stored = unpacker.stored();
                        let count = stored.len().min(bytes.len());
                        bytes[..count].copy_from_slice(&stored[..count]);
                        unpacker.consume(count);
                        if unpacker.stored().is_empty() {
                            self.unpacker = None;
                        }
                        if count > 0 {
                            return Ok(Arrival::Bytes(count));
                        }
                    }
                }
            }
            match self.wait(interrupt) {
                Readiness::Interrupted => return Ok(Arrival::Interrupted),
                Readiness::Waiting => return Ok(Arrival::Nothing),
                Readiness::Ready => {}
            }
            let (mut file, consumed) = (&self.file, &self.consumed);
            let mut read = |bytes: &mut [u8]| loop {
                match file.read(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                    Ok(count) => {
                        consumed.fetch_add(count as u64, Ordering::Relaxed);
                        return Ok(count);
                    }
                }
            };
            match &mut self.unpacker {
                Some(unpacker) => unpacker.feed(read)?,
                None => {
                    let count = read(bytes)?;
                    return Ok(if count == 0 { Arrival::End } else { Arrival::Bytes(count) });
                }
            }
        }
    }

    fn wait(&self, interrupt: Option<&Interrupt>) -> Readiness {
        match &self.waits {
            Some(input) => platform::wait_for(input, interrupt),
            None if interrupt.is_some_and(Interrupt::is_requested) => Readiness::Interrupted,
            None => Readiness::Ready,
        }
    }
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet, and patience is at its end.
    Nothing,
    /// The end of the input.
    End,
    /// A signal.
    Interrupted,
}

fn open_file(path: &Path) -> io::Result<File> {
    if is_stdin(path) { Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?)) } else { File::open(path) }
}
