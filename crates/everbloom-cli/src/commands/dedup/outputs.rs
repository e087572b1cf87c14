//! Where records go: the output, and the repeats aside.

use super::state::Written;
use super::stats::Tally;
use crate::failure::{Failure, Result};
use crate::output;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The outputs, and what went through them.
pub(super) struct Outputs {
    pub(super) main: Sink,
    pub(super) duplicates: Option<Sink>,
    pub(super) tally: Tally,
}

impl Outputs {
    /// Brings to disk what was written to files.
    pub(super) fn sync(&self) -> Result<()> {
        self.main.sync()?;
        self.duplicates.as_ref().map_or(Ok(()), Sink::sync)
    }
}

/// One output, written in blocks as they are decided.
pub(super) struct Sink {
    file: File,
    name: String,
    path: Option<PathBuf>,
    bytes: u64,
}

impl Sink {
    /// Standard output.
    pub(super) fn stdout() -> Result<Self> {
        Ok(Sink { file: output::raw_stdout()?, name: "stdout".into(), path: None, bytes: 0 })
    }

    /// A file, from its beginning.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|error| Failure::io(&name, &error))?;
        let path = Some(std::path::absolute(path).map_err(|error| Failure::io(&name, &error))?);
        Ok(Sink { file, name, path, bytes: 0 })
    }

    /// A file that an earlier run left: what it wrote after its last checkpoint is taken back.
    pub(super) fn resume(path: &Path, bytes: u64) -> Result<Self> {
        let mut sink = Self::open(path)?;
        if sink.length()? < bytes {
            return Err(Failure::at(
                path,
                format!(
                    "is shorter than the {bytes} bytes that the state says were written; restore it, or remove the state"
                ),
            ));
        }
        sink.file
            .set_len(bytes)
            .and_then(|()| sink.file.seek(SeekFrom::End(0)))
            .map_err(|error| sink.failure(&error))?;
        sink.bytes = bytes;
        Ok(sink)
    }

    /// A file to go on with, all of which is kept; a last record without its ending gets one.
    pub(super) fn append(path: &Path, delimiter: u8) -> Result<Self> {
        let mut sink = Self::open(path)?;
        sink.bytes = sink.length()?;
        let mut last = [delimiter];
        if sink.bytes > 0 {
            sink.file
                .seek(SeekFrom::End(-1))
                .and_then(|_| sink.file.read_exact(&mut last))
                .map_err(|error| sink.failure(&error))?;
        }
        sink.file.seek(SeekFrom::End(0)).map_err(|error| sink.failure(&error))?;
        if last[0] != delimiter {
            sink.write(&[delimiter])?;
        }
        Ok(sink)
    }

    fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| Failure::io(&name, &error))?;
        let path = Some(std::path::absolute(path).map_err(|error| Failure::io(&name, &error))?);
        Ok(Sink { file, name, path, bytes: 0 })
    }

    fn length(&self) -> Result<u64> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(|error| self.failure(&error))
    }

    /// Writes at once.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| self.failure(&error))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// What a state says of this file; nothing for stdout.
    pub(super) fn written(&self) -> Option<Written> {
        self.path.as_ref().map(|path| Written { path: path.display().to_string(), bytes: self.bytes })
    }

    fn sync(&self) -> Result<()> {
        let is_file = self.path.is_some() && self.file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file { self.file.sync_data().map_err(|error| self.failure(&error)) } else { Ok(()) }
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        match Failure::io(&self.name, error) {
            Failure::ClosedPipe if self.path.is_some() => Failure::reader_gone(&self.name),
            failure => failure,
        }
    }
}
