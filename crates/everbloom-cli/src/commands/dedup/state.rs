//! The state file: all that a later run needs to go on as if nothing had happened.
//!
//! ```text
//! memory    the filter as a whole .ebf document, with its audit if it has one (so `info` and `query` read state files, too)
//! journal   JSON: the options that decide verdicts, how far the inputs and outputs are
//! footer    length of the memory, length of the journal, XXH3-64 of both, magic
//! ```

use super::lock::Lock;
use super::memory::{Kept, Memory};
use super::options::{self, Typed};
use super::stats::Tally;
use crate::args::KeyArgs;
use crate::failure::{Failure, Result};
use crate::fault::{self, Fallible};
use crate::input::Mark;
use crate::platform;
use crate::record::Columns;
use everbloom::codec;
use everbloom_all::KINDS;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const MAGIC: [u8; 8] = *b"EBDEDUP\x01";
const FOOTER_BYTES: u64 = 32;

/// What is saved beside the memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The options that decide verdicts.
    pub(super) options: Vec<Typed>,
    /// How keys are found, as the memory's own note has it.
    #[serde(skip)]
    pub(super) note: String,
    /// What else the plan says of the filter.
    pub(super) notes: Vec<String>,
    /// Every file that was read, and how far.
    pub(super) files: Vec<Mark>,
    /// Whether the run ended in order, so that it wrote nothing behind what the state knows.
    pub(super) closed: bool,
    /// Whether something was read that cannot be read again.
    pub(super) reads_pipe: bool,
    /// Every file that was written.
    pub(super) outputs: Vec<Written>,
    /// Records that are written and not remembered, in case they go on.
    pub(super) last_records: Vec<LastRecord>,
    /// Those that are not written, either: runs that do not read their files write them in the end, so that they can
    /// still be taken back.
    #[serde(default)]
    pub(super) carried: Vec<LastRecord>,
    /// The counts of all runs.
    pub(super) tally: Tally,
    /// Where a window of time is.
    pub(super) clock: Option<Vec<u8>>,
    /// What the promise's watch has counted.
    pub(super) new_keys: u64,
    /// The record that broke the promise.
    pub(super) broken_at: Option<u64>,
    /// Where a filter on servers is, of which the memory is only what is on its way there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) servers: Option<OnServers>,
    /// What the columns of keys are called, where inputs have headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) columns: Option<Columns>,
    /// Who saved it.
    pub(super) process: u32,
}

/// How far a client is with a filter on servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OnServers {
    pub(super) name: String,
    pub(super) client: String,
    /// For each shard: how often it registered anew, and its last batch.
    pub(super) sessions: Vec<(u32, u64)>,
    /// For each shard: the new lines of its last batches that were acknowledged.
    #[serde(default)]
    pub(super) acknowledged: Vec<Vec<u32>>,
    /// Lines that servers acknowledged and lost.
    #[serde(default)]
    pub(super) forgotten: u64,
    /// Whether there may be more.
    #[serde(default)]
    pub(super) forgotten_or_more: bool,
}

/// An output file, and how much of it belongs to the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) bytes: u64,
    /// Bytes of the last record behind them.
    pub(super) provisional: u64,
    /// Whether the run that saved the state wrote to it.
    pub(super) is_open: bool,
}

/// The last record of a file that had no ending when it was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LastRecord {
    /// The file.
    pub(super) mark: Mark,
    /// The key's hash, importance and time, if it has a key.
    pub(super) key: Option<LastKey>,
    pub(super) tally: Tally,
    /// The record itself, unless it is too long to be kept here.
    #[serde(default)]
    pub(super) text: Vec<u8>,
}

/// A key as the filter knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastKey {
    pub(super) hash: (u64, u64),
    pub(super) importance: Option<(u32, u32)>,
    pub(super) time: Option<i64>,
}

/// Saves a state: aside, synced, renamed.
pub(super) fn save(lock: &Lock, memory: &Memory, journal: &Journal) -> Result<()> {
    match memory {
        Memory::Own(filter) => write(lock, journal, |out| codec::encode_noted_to(filter.as_ref(), &journal.note, out)),
        Memory::Servers(servers) => write(lock, journal, |out| out.write_all(&servers.on_its_way())),
    }
}

/// Saves another journal beside the same memory.
pub(super) fn save_journal(lock: &Lock, journal: &Journal) -> Result<()> {
    let fail = |error: io::Error| Failure::io(lock.path().display(), &error);
    let mut file = lock.file().map_err(fail)?;
    let length = platform::data_of(&file).map_err(fail)?.len();
    let footer = Footer::read(&mut file, length).map_err(fail)?.ok_or_else(|| Failure::at(lock.path(), NO_STATE))?;
    write(lock, journal, |out| io::copy(&mut Fallible(&file).take(footer.memory_bytes), out).map(drop))
}

fn write(lock: &Lock, journal: &Journal, memory: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let text = serde_json::to_vec(journal).map_err(Failure::new)?;
    lock.replace(|out| {
        let mut hashed = Hashed { inner: &mut *out, hash: Xxh3::new(), bytes: 0 };
        memory(&mut hashed)?;
        let memory_bytes = hashed.bytes;
        hashed.write_all(&text)?;
        let checksum = hashed.hash.digest();
        for word in [memory_bytes, text.len() as u64, checksum] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&MAGIC)
    })
}

const NO_STATE: &str = "is not a state that dedup saved; name another file";

/// Reads a state, or `None` if there is none yet.
pub(super) fn load(lock: &Lock) -> Result<Option<(Kept, Journal)>> {
    let fail = |error: io::Error| Failure::io(lock.path().display(), &error);
    let mut file = lock.file().map_err(fail)?;
    let length = platform::data_of(&file).map_err(fail)?.len();
    if length == 0 {
        return Ok(None);
    }
    let Some(footer) = Footer::read(&mut file, length).map_err(fail)? else {
        return Err(Failure::at(lock.path(), NO_STATE));
    };
    read_whole(&mut file, footer).map(Some).map_err(|failure| failure.within(lock.path()))
}

fn read_whole(file: &mut File, footer: Footer) -> Result<(Kept, Journal)> {
    let damaged = || Failure::new("the state is damaged; restore it from a copy, or remove it to start anew");
    let text = footer.journal(file).map_err(|error| Failure::io("the state", &error))?;
    file.rewind().map_err(|error| Failure::io("the state", &error))?;
    let mut hashed = Hashed { inner: BufReader::with_capacity(1 << 16, Fallible(file)), hash: Xxh3::new(), bytes: 0 };
    let journal: Result<Journal, _> = serde_json::from_slice(&text);
    let memory = match journal.as_ref().is_ok_and(|journal| journal.servers.is_some()) {
        true => {
            let mut bytes = Vec::new();
            let read = (&mut hashed).take(footer.memory_bytes).read_to_end(&mut bytes);
            read.map_err(|error| Failure::io("the state", &error))?;
            Kept::OnItsWay(bytes)
        }
        false => Kept::Filter(KINDS.decoder().read(&mut hashed, footer.memory_bytes)?.into()),
    };
    hashed.hash.update(&text);
    if hashed.hash.digest() != footer.checksum {
        return Err(damaged());
    }
    // Nothing is wrong with the bytes, so it is the version that does not fit.
    let journal = journal.map_err(|_| {
        Failure::new("the state was saved by another version of dedup; go on with that one, or name another state file")
    })?;
    Ok((memory, journal))
}

/// Who saved a state, as far as that can be told.
pub(super) fn process_of(mut file: &File) -> Option<u32> {
    #[derive(Deserialize)]
    struct Saved {
        process: u32,
    }
    let mut file = file.try_clone().ok().filter(|_| file.rewind().is_ok())?;
    let length = file.metadata().ok()?.len();
    let footer = Footer::read(&mut file, length).ok()??;
    serde_json::from_slice::<Saved>(&footer.journal(&mut file).ok()?).ok().map(|saved| saved.process)
}

/// The last bytes of a state file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Footer {
    memory_bytes: u64,
    journal_bytes: u64,
    checksum: u64,
}

impl Footer {
    /// The footer of a file of `length` bytes, if it is a state; leaves the file at its start.
    fn read(file: &mut File, length: u64) -> io::Result<Option<Self>> {
        let Some(start) = length.checked_sub(FOOTER_BYTES) else { return Ok(None) };
        let mut bytes = [0; FOOTER_BYTES as usize];
        fault::point("seek")?;
        file.seek(SeekFrom::Start(start))?;
        Fallible(&*file).read_exact(&mut bytes)?;
        file.rewind()?;
        let (words, magic) = bytes.split_at(24);
        let mut words = words.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let mut word = || words.next().unwrap_or_default();
        let footer = Footer { memory_bytes: word(), journal_bytes: word(), checksum: word() };
        let fits = footer.memory_bytes.checked_add(footer.journal_bytes) == Some(start);
        Ok((magic == MAGIC && fits).then_some(footer))
    }

    /// The journal as it is written.
    fn journal(&self, file: &mut File) -> io::Result<Vec<u8>> {
        // The file is as long as the footer says, so that this is no more than there is.
        let mut text = vec![0; self.journal_bytes as usize];
        fault::point("seek")?;
        file.seek(SeekFrom::Start(self.memory_bytes))?;
        Fallible(&*file).read_exact(&mut text)?;
        Ok(text)
    }
}

/// How keys were found by the run that saved a state; `None` if the file is no state, but a filter.
pub(crate) fn keys_of(path: &Path) -> Result<Option<KeyArgs>> {
    #[derive(Deserialize)]
    struct Saved {
        options: Vec<Typed>,
    }
    let fail = |error: io::Error| Failure::io(path.display(), &error);
    let mut file = File::open(path).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    let Some(footer) = Footer::read(&mut file, length).map_err(fail)? else { return Ok(None) };
    let saved: Option<Saved> = serde_json::from_slice(&footer.journal(&mut file).map_err(fail)?).ok();
    saved.map(|saved| options::keys_of(&saved.options)).transpose()
}

/// How many bytes of a file are its filter: all, unless it is a state.
pub(crate) fn filter_bytes(file: &mut File, length: u64) -> io::Result<u64> {
    Ok(Footer::read(file, length)?.map_or(length, |footer| footer.memory_bytes))
}

/// Hashes what passes.
struct Hashed<T> {
    inner: T,
    hash: Xxh3,
    bytes: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.hash.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}
