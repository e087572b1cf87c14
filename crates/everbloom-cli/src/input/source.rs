//! One input: a file or stdin, unpacked if it is packed.

use super::place::{Member, Place};
use super::unpack::{Unpacked, Unpacker};
use crate::descriptors;
use crate::failure::{Failure, Result};
use crate::fault::{self, Fallible};
use crate::platform::{self, Interrupt, Readiness};
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STDIN: &str = "stdin";

/// What to do with one that is named for an input.
const DIRECTORY: &str = "is a directory; name the files in it";

/// Whether a path stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The data of a file that a later run can read again: no pipe, and nothing that is only another name of stdin.
pub(crate) fn rereadable(path: &Path) -> io::Result<Option<Metadata>> {
    let is_other = |path: PathBuf| is_stdin(&path) || path.starts_with("/dev") || path.starts_with("/proc");
    match platform::links(path).any(is_other) {
        true => Ok(None),
        false => Ok(platform::stat(path)?.filter(Metadata::is_file)),
    }
}

/// An open input.
pub(crate) struct Source {
    name: String,
    file: Arc<File>,
    /// What unpacks it; nothing once it is known to be plain, and all that was read to know it is given.
    unpacker: Option<Unpacker>,
    waits: Option<OwnedFd>,
    can_be_reread: bool,
    /// Where unpacking began.
    base: Member,
    /// Bytes read, as they are stored, from the file's start.
    stored: u64,
    consumed: Arc<AtomicU64>,
}

impl Source {
    /// Whether `path` can be read at all, so that a missing input is known before anything is written. A pipe is left alone.
    pub(crate) fn check(path: &Path) -> Result<()> {
        if is_stdin(path) {
            return descriptors::check_stdin().map_err(|error| Failure::io(STDIN, &error));
        }
        let checked = fault::point("stat").and_then(|()| path.metadata()).and_then(|data| {
            match (data.is_dir(), data.is_file()) {
                (true, _) => Err(io::Error::other(DIRECTORY)),
                (_, true) => fault::point("open").and_then(|()| File::open(path)).map(drop),
                _ => Ok(()),
            }
        });
        checked.map_err(|error| Failure::io(path.display(), &error))
    }

    /// Opens `path`, or stdin for `-`. `consumed` counts the bytes as they are stored.
    #[cfg(feature = "lab")]
    pub(crate) fn open(path: &Path, consumed: &Arc<AtomicU64>) -> Result<Self> {
        Self::open_at(path, &Place::default(), consumed)
    }

    /// Opens `path` at a place, or goes on with the file that the place has. What may keep us waiting is not read yet.
    pub(crate) fn open_at(path: &Path, place: &Place, consumed: &Arc<AtomicU64>) -> Result<Self> {
        let name = if is_stdin(path) { STDIN.to_string() } else { path.display().to_string() };
        let file = place.file.clone().map_or_else(|| open_file(path).map(Arc::new), Ok);
        let can_be_reread = if place.file.is_some() { Ok(true) } else { rereadable(path).map(|data| data.is_some()) };
        let source = can_be_reread.and_then(|can_be_reread| Self::new(file?, name.clone(), can_be_reread, consumed));
        let source = source.and_then(|mut source| source.go_to(place).map(|()| source));
        source.map_err(|error| Failure::io(name, &error))
    }

    fn new(file: Arc<File>, name: String, can_be_reread: bool, consumed: &Arc<AtomicU64>) -> io::Result<Self> {
        let metadata = platform::data_of(&file)?;
        if metadata.is_dir() {
            return Err(io::Error::other(DIRECTORY));
        }
        let waits = platform::may_wait(&*file, &metadata);
        let can_be_reread = can_be_reread && metadata.is_file();
        Ok(Source {
            name,
            file,
            unpacker: Some(Unpacker::new()),
            waits,
            can_be_reread,
            base: Member::default(),
            stored: 0,
            consumed: Arc::clone(consumed),
        })
    }

    /// Goes to a place: by a jump, and where the file is packed by unpacking the rest of the way.
    fn go_to(&mut self, place: &Place) -> io::Result<()> {
        if !self.can_be_reread || place.is_read {
            return Ok(());
        }
        self.base = place.member.unwrap_or_default();
        self.unpacker = match place.member {
            Some(member) => Some(Unpacker::behind_member(member.stored > 0)),
            None if place.offset > 0 => None,
            None => Some(Unpacker::new()),
        };
        self.stored = place.member.map_or(place.offset, |member| member.stored);
        fault::point("seek")?;
        (&*self.file).seek(SeekFrom::Start(self.stored))?;
        self.consumed.fetch_add(self.stored, Ordering::Relaxed);
        let mut left = place.member.map_or(0, |member| place.offset.saturating_sub(member.offset));
        let mut scratch = vec![0; if left > 0 { 1 << 16 } else { 0 }];
        while left > 0 {
            let most = scratch.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.read(&mut scratch[..most], None)? {
                Arrival::Bytes(count) => left -= count as u64,
                Arrival::End => return Err(io::Error::other(format!("is shorter than {} bytes", place.offset))),
                Arrival::Nothing | Arrival::Interrupted => {}
            }
        }
        Ok(())
    }

    /// The file, if a later run can read it again.
    pub(super) fn file(&self) -> Option<Arc<File>> {
        self.can_be_reread.then(|| Arc::clone(&self.file))
    }

    /// How many bytes have been read as they are stored.
    pub(super) fn stored(&self) -> u64 {
        self.stored
    }

    /// The end of the last whole member, if the input is packed.
    pub(super) fn member(&self) -> Option<Member> {
        let member = self.unpacker.as_ref().and_then(Unpacker::member)?;
        Some(Member { stored: self.base.stored + member.stored, offset: self.base.offset + member.offset })
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
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
                Readiness::ReaderGone => return Err(io::ErrorKind::BrokenPipe.into()),
            }
            let (mut file, consumed, stored) = (Fallible(&*self.file), &self.consumed, &mut self.stored);
            let mut read = |bytes: &mut [u8]| loop {
                match file.read(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                    Ok(count) => {
                        consumed.fetch_add(count as u64, Ordering::Relaxed);
                        *stored += count as u64;
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
    if !is_stdin(path) {
        return platform::open(path);
    }
    descriptors::check_stdin()?;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}
