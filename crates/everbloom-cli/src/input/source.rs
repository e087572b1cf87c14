//! One input: a file or stdin, unpacked if it is packed.

use crate::failure::{Failure, Result};
use crate::platform::{self, Interrupt, Readiness};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

const STDIN: &str = "stdin";

/// Whether a path stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// An open input.
pub(crate) struct Source {
    name: String,
    reader: Box<dyn Read + Send>,
    waits: Option<OwnedFd>,
    can_be_reread: bool,
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
        let start = File::open(path).and_then(|mut file| read_magic(&mut file));
        start.is_ok_and(|start| start == GZIP || start == ZSTD)
    }

    /// Opens `path`, or stdin for `-`. `consumed` counts the bytes as they are stored.
    pub(crate) fn open(path: &Path, consumed: &Arc<AtomicU64>) -> Result<Self> {
        Self::open_at(path, 0, consumed)
    }

    /// Opens `path` at an offset into what it unpacks to.
    pub(crate) fn open_at(path: &Path, offset: u64, consumed: &Arc<AtomicU64>) -> Result<Self> {
        let name = if is_stdin(path) { STDIN.to_string() } else { path.display().to_string() };
        let source = open_file(path).and_then(|file| Self::unpack(file, name.clone(), offset, consumed));
        source.map_err(|error| Failure::io(name, &error))
    }

    fn unpack(mut file: File, name: String, offset: u64, consumed: &Arc<AtomicU64>) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::other("is a directory"));
        }
        let waits = platform::may_wait(&file, &metadata);
        let can_be_reread = metadata.is_file() && name != STDIN;
        let start = read_magic(&mut file)?;
        let packed = start == GZIP || start == ZSTD;
        if metadata.is_file() && !packed {
            file.seek(SeekFrom::Current(offset as i64 - start.len() as i64))?;
            consumed.fetch_add(offset, Ordering::Relaxed);
            let reader = Box::new(Counted { inner: file, count: Arc::clone(consumed) });
            return Ok(Source { name, reader, waits, can_be_reread });
        }
        let is_gzip = start == GZIP;
        let stored = Counted { inner: Cursor::new(start).chain(file), count: Arc::clone(consumed) };
        let mut reader: Box<dyn Read + Send> = match (packed, is_gzip) {
            (false, _) => Box::new(stored),
            (true, true) => {
                Box::new(flate2::bufread::MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, stored)))
            }
            (true, false) => Box::new(zstd::Decoder::new(stored)?),
        };
        skip(&mut reader, offset)?;
        Ok(Source { name, reader, waits, can_be_reread })
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a later run can read the same bytes again.
    pub(crate) fn can_be_reread(&self) -> bool {
        self.can_be_reread
    }

    /// Whether a read would have to wait.
    pub(crate) fn would_wait(&self) -> bool {
        self.waits.as_ref().is_some_and(|input| platform::readiness(input) == Readiness::Waiting)
    }

    /// Reads what there is, waiting for the first byte unless a signal comes.
    pub(crate) fn read(&mut self, bytes: &mut [u8], interrupt: Option<&Interrupt>) -> io::Result<Arrival> {
        loop {
            let readiness = match &self.waits {
                Some(input) => platform::wait_for(input, interrupt),
                None if interrupt.is_some_and(Interrupt::is_requested) => Readiness::Interrupted,
                None => Readiness::Ready,
            };
            match readiness {
                Readiness::Interrupted => return Ok(Arrival::Interrupted),
                Readiness::Waiting => return Ok(Arrival::Nothing),
                Readiness::Ready => {}
            }
            match self.reader.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => return Ok(Arrival::End),
                result => return result.map(Arrival::Bytes),
            }
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

/// Reads as many bytes as it takes to tell packed from plain, and not one more: a live pipe may hold
/// the rest back.
fn read_magic(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    while [GZIP, ZSTD].iter().any(|magic| magic.len() > start.len() && magic.starts_with(&start)) {
        let mut byte = [0];
        match file.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => start.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(start)
}

fn skip(reader: &mut dyn Read, offset: u64) -> io::Result<()> {
    let skipped = io::copy(&mut reader.take(offset), &mut io::sink())?;
    if skipped == offset { Ok(()) } else { Err(io::Error::other(format!("is shorter than {offset} bytes"))) }
}

/// Counts the bytes that pass, for the progress bar.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
