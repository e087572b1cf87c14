//! Where records go: the output, and the repeats aside.

use crate::commands::dedup::report::Tally;
use crate::commands::dedup::state::Written;
use crate::commands::dedup::state::marks::Marks;
use crate::failure::{Failure, Result};
use crate::fault::{self, Fallible};
use crate::input::Place;
use crate::{output, platform};
use memchr::memrchr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// The outputs, what went through them, and how much of the inputs that was.
pub(crate) struct Outputs {
    pub(crate) main: Sink,
    pub(crate) duplicates: Option<Sink>,
    /// The counts of this run.
    pub(crate) tally: Tally,
    /// The counts of earlier runs.
    pub(crate) before: Tally,
    /// Files that earlier runs wrote, and this one does not.
    pub(crate) others: Vec<Written>,
    pub(crate) marks: Marks,
    /// How far the input is that is being read.
    pub(crate) place: Place,
    /// Whether the files still hold what they held before this run.
    pub(crate) is_stale: bool,
    /// What is to be written to the two once the files may be emptied.
    held: [Vec<u8>; 2],
}

/// So many bytes are held back at most.
const HELD_BYTES: usize = 1 << 20;

impl Outputs {
    pub(crate) fn new(main: Sink, duplicates: Option<Sink>, marks: Marks) -> Self {
        let (tally, before) = (Tally::default(), Tally::default());
        Outputs {
            main,
            duplicates,
            tally,
            before,
            others: Vec::new(),
            marks,
            place: Place::default(),
            is_stale: false,
            held: Default::default(),
        }
    }

    /// Takes out what the files held before this run, once.
    pub(crate) fn empty(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_stale) {
            return Ok(());
        }
        self.sinks().try_for_each(Sink::empty)?;
        let [main, aside] = std::mem::take(&mut self.held);
        self.write(&main, &aside)
    }

    /// Writes what a block came to.
    pub(crate) fn write(&mut self, main: &[u8], aside: &[u8]) -> Result<()> {
        if !main.is_empty() {
            self.main.write(main)?;
        }
        match self.duplicates.as_mut().filter(|_| !aside.is_empty()) {
            Some(duplicates) => duplicates.write(aside),
            None => Ok(()),
        }
    }

    /// Whether a file still holds what it held before this run, which a mistaken call must not destroy.
    pub(crate) fn holds_old_output(&self) -> bool {
        self.is_stale && self.sinks().any(Sink::is_file)
    }

    /// Holds back what a block came to, if that is not too much.
    pub(crate) fn hold(&mut self, main: &[u8], aside: &[u8]) -> bool {
        let fits = self.held.iter().map(Vec::len).sum::<usize>() + main.len() + aside.len() <= HELD_BYTES;
        if fits {
            self.held[0].extend_from_slice(main);
            self.held[1].extend_from_slice(aside);
        }
        fits
    }

    /// Brings to disk what was written to files.
    pub(crate) fn sync(&self) -> Result<()> {
        self.sinks().try_for_each(Sink::sync)
    }

    /// The counts of all runs.
    pub(crate) fn total(&self) -> Tally {
        let mut total = self.before;
        total += self.tally;
        total
    }

    /// All files that were ever written.
    pub(crate) fn written(&self) -> Vec<Written> {
        self.others.iter().cloned().chain(self.sinks().filter_map(Sink::written)).collect()
    }

    fn sinks(&self) -> impl Iterator<Item = &Sink> {
        [&self.main].into_iter().chain(&self.duplicates)
    }
}

/// One output, written in blocks as they are decided.
pub(crate) struct Sink {
    file: File,
    name: String,
    /// What a state calls it; nothing for stdout.
    key: Option<String>,
    kind: Kind,
    /// Whether its reader may leave without a word: that of the lines we are asked for, on stdout.
    is_asked_for: bool,
    ending: u8,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Pipe,
    Other,
}

/// How to go on with a file that an earlier run wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopening {
    /// Cut it to this length.
    Cut(u64),
    /// Keep all of it, but for a record without an ending behind this length.
    KeepRecords(u64),
    /// Keep all of it.
    Append,
}

impl Sink {
    /// Standard output, for the lines that are asked for.
    pub(crate) fn stdout(ending: u8) -> Result<Self> {
        Ok(Sink { is_asked_for: true, ..Self::stdout_aside(ending)? })
    }

    /// Standard output, for others.
    pub(crate) fn stdout_aside(ending: u8) -> Result<Self> {
        Self::new(output::raw_stdout()?, "stdout".into(), None, ending)
    }

    /// A file, to be written from its beginning; until it is emptied it stays as it was.
    pub(crate) fn create(path: &Path, ending: u8) -> Result<Self> {
        let name = path.display().to_string();
        let is_open = output::descriptor_of(path).is_some();
        let options = File::options().write(true).append(is_open).create(true).truncate(false).clone();
        let file = fault::point("create").and_then(|()| options.open(path));
        let key = (!is_open).then(|| key(path));
        Self::new(file.map_err(|error| Failure::io(&name, &error))?, name, key, ending)
    }

    /// Takes out what a file holds.
    pub(crate) fn empty(&self) -> Result<()> {
        if !self.is_file() {
            return Ok(());
        }
        fault::point("truncate").and_then(|()| self.file.set_len(0)).map_err(|error| self.failure(&error))
    }

    /// A file that an earlier run may have left.
    pub(crate) fn reopen(path: &Path, ending: u8, how: Reopening) -> Result<Self> {
        let name = path.display().to_string();
        let data = platform::stat(path).map_err(|error| Failure::io(&name, &error))?;
        let is_pipe = data.is_some_and(|data| !data.is_file());
        let options = File::options().read(!is_pipe).write(true).create(true).truncate(false).clone();
        let file = fault::point("open").and_then(|()| options.open(path));
        let mut sink = Self::new(file.map_err(|error| Failure::io(&name, &error))?, name, Some(key(path)), ending)?;
        if sink.kind == Kind::File {
            sink.go_on(how)?;
        }
        Ok(sink)
    }

    fn new(file: File, name: String, key: Option<String>, ending: u8) -> Result<Self> {
        let kind = platform::data_of(&file).map_err(|error| Failure::io(&name, &error))?.file_type();
        let kind = match (kind.is_file(), kind.is_fifo()) {
            (true, _) => Kind::File,
            (_, true) => Kind::Pipe,
            _ => Kind::Other,
        };
        let sink = Sink { file, name, key, kind, is_asked_for: false, ending, bytes: 0 };
        sink.lock()?;
        Ok(sink)
    }

    /// Refuses a file that another run writes to: each would write over the other's lines. The lock is on the file itself and
    /// goes with the process; where files cannot be locked, nothing is known of others.
    fn lock(&self) -> Result<()> {
        if !self.is_file() || platform::try_lock(&self.file).unwrap_or(true) {
            return Ok(());
        }
        let remedy = "wait for it, or name another file";
        Err(Failure::new(format!("{}: the output is in use by another process; {remedy}", self.name)))
    }

    fn go_on(&mut self, how: Reopening) -> Result<()> {
        let cut = match how {
            Reopening::Cut(bytes) => Some(bytes),
            Reopening::KeepRecords(bytes) => self.last_ending().map_err(|error| self.failure(&error))?.max(Some(bytes)),
            Reopening::Append => None,
        };
        let set = cut
            .map_or(Ok(()), |bytes| fault::point("truncate").and_then(|()| self.file.set_len(bytes)))
            .and_then(|()| fault::point("seek"))
            .and_then(|()| self.file.seek(SeekFrom::End(0)));
        self.bytes = set.map_err(|error| self.failure(&error))?;
        if self.last_ending().map_err(|error| self.failure(&error))? != Some(self.bytes) && self.bytes > 0 {
            // Somebody else's last line.
            self.write(&[self.ending])?;
        }
        Ok(())
    }

    /// Where the last record ends that has an ending; leaves the file at its end.
    fn last_ending(&mut self) -> std::io::Result<Option<u64>> {
        fault::point("seek")?;
        let mut end = self.file.seek(SeekFrom::End(0))?;
        let mut bytes = vec![0; 1 << 16];
        while end > 0 {
            let count = end.min(bytes.len() as u64);
            self.file.seek(SeekFrom::Start(end - count))?;
            Fallible(&self.file).read_exact(&mut bytes[..count as usize])?;
            if let Some(at) = memrchr(self.ending, &bytes[..count as usize]) {
                self.file.seek(SeekFrom::End(0))?;
                return Ok(Some(end - count + at as u64 + 1));
            }
            end -= count;
        }
        self.file.seek(SeekFrom::End(0)).map(|_| None)
    }

    /// Whether it is a file, of which a record can be taken back.
    pub(crate) fn is_file(&self) -> bool {
        self.kind == Kind::File && self.key.is_some()
    }

    /// How many bytes of it belong to this state.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes whole records at once. Into a pipe goes what fits, so that its reader gets no half a record if we are ended
    /// while it keeps us waiting.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let most = if self.kind == Kind::Pipe { platform::room_in_pipe(&self.file) } else { left.len() };
            let fits = &left[..left.len().min(most)];
            // A record that does not fit into a pipe is given in pieces.
            let count = memrchr(self.ending, fits).map_or(fits.len(), |at| at + 1);
            let count = if most >= left.len() { left.len() } else { count };
            Fallible(&self.file).write_all(&left[..count]).map_err(|error| self.failure(&error))?;
            left = &left[count..];
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// What a state says of this file.
    fn written(&self) -> Option<Written> {
        let path = self.key.clone().filter(|_| self.kind == Kind::File)?;
        Some(Written { path, bytes: self.bytes, half_bytes: 0, is_open: true })
    }

    fn sync(&self) -> Result<()> {
        if !self.is_file() {
            return Ok(());
        }
        fault::point("sync").and_then(|()| self.file.sync_data()).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        match Failure::io(&self.name, error) {
            Failure::ClosedPipe if !self.is_asked_for => Failure::reader_gone(&self.name),
            failure => failure,
        }
    }
}

/// What a state calls a file that was written.
pub(crate) fn key(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    path.to_str().map_or_else(|| path.as_os_str().as_encoded_bytes().escape_ascii().to_string(), str::to_string)
}
