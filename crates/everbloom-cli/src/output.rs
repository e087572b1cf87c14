//! Bytes out: stdout in large writes, and files that are whole or not there.

use crate::failure::{Failure, Result};
use crate::platform;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// Writes are this large.
const BUFFER_BYTES: usize = 256 << 10;

/// Stdout without the line buffering of the standard library.
pub(crate) fn raw_stdout() -> Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(|error| Failure::io("stdout", &error))
}

/// Buffered stdout.
pub(crate) struct Stdout(BufWriter<File>);

impl Stdout {
    /// Stdout, buffered.
    pub(crate) fn new() -> Result<Self> {
        Ok(Stdout(BufWriter::with_capacity(BUFFER_BYTES, raw_stdout()?)))
    }

    /// Writes bytes, sooner or later.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|error| Failure::io("stdout", &error))
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    /// Writes what has gathered.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(|error| Failure::io("stdout", &error))
    }
}

/// Prints text on stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = Stdout::new()?;
    stdout.write(text.as_bytes())?;
    stdout.finish()
}

/// Refuses to write where one of the inputs is read.
pub(crate) fn refuse_overwriting(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    let identity =
        |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|data| platform::identity(&data));
    let Some(target) = identity(output) else { return Ok(()) };
    match inputs.iter().find(|input| identity(input) == Some(target)) {
        Some(input) => Err(Failure::at(output, format!("is also read as {}; write to another file", input.display()))),
        None => Ok(()),
    }
}

/// Replaces a file by what `write` writes, or leaves it as it was.
///
/// The bytes go to a file beside it, which is synced and only then renamed. What is not a regular
/// file (`/dev/stdout`, a named pipe) is written to directly.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let result = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => write_into(File::options().write(true).open(path), write),
        existing => replace_file(path, existing.ok().as_ref(), write),
    };
    result.map_err(|error| match Failure::io(path.display(), &error) {
        // Only stdout can be a pipe that its reader closed; a file that cannot be written is a failure.
        Failure::ClosedPipe => Failure::at(path, "its reader has gone"),
        failure => failure,
    })
}

fn replace_file(
    path: &Path,
    existing: Option<&fs::Metadata>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A link keeps pointing to the file; the file is what is replaced.
    let path = if existing.is_some() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let aside = aside(&path);
    let written = write_into(File::create(&aside), write)
        .and_then(|()| existing.map_or(Ok(()), |existing| fs::set_permissions(&aside, existing.permissions())))
        .and_then(|()| fs::rename(&aside, &path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&aside);
        return written;
    }
    sync_directory(&path)
}

fn write_into(file: io::Result<File>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let file = file?;
    let mut buffered = BufWriter::with_capacity(BUFFER_BYTES, &file);
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    match file.metadata()?.is_file() {
        true => file.sync_all(),
        false => Ok(()),
    }
}

/// The name under which a file is written before it takes its place.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// A rename is only safe on disk once its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
