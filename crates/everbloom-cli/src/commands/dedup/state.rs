//! The state file: all that a later run needs to go on as if nothing had happened.
//!
//! ```text
//! memory    the filter as a whole .ebf document (so `info` and `query` read state files, too)
//! journal   JSON: how keys are chosen, how far the inputs and outputs are
//! footer    length of the memory, length of the journal, XXH3-64 of both, magic
//! ```

use super::stats::Tally;
use crate::failure::{Failure, Result};
use crate::filter_file;
use crate::output;
use everbloom::AnyFilter;
use everbloom::internal::codec;
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const MAGIC: [u8; 8] = *b"EBDEDUP\x01";
const FOOTER_BYTES: u64 = 32;
/// No journal is longer; what claims to be is not read.
const MAX_JOURNAL_BYTES: u64 = 1 << 24;

/// What is saved beside the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The filter's spec.
    pub(super) filter: String,
    pub(super) seed: u64,
    /// How keys are found in records, and what is done with them, in words.
    pub(super) keys: String,
    /// How keys are found, as the memory's own note has it.
    #[serde(skip)]
    pub(super) note: String,
    /// The inputs, and how far they have been read.
    pub(super) inputs: Vec<String>,
    pub(super) input: usize,
    pub(super) offset: u64,
    /// Whether every input was read to its end.
    pub(super) finished: bool,
    pub(super) output: Option<Written>,
    pub(super) duplicates: Option<Written>,
    pub(super) tally: Tally,
    /// Where a window of time is.
    #[serde(default)]
    pub(super) clock: Option<Vec<u8>>,
    /// What the promise's watch has counted.
    #[serde(default)]
    pub(super) new_keys: u64,
    /// The record that broke the promise.
    #[serde(default)]
    pub(super) broken_at: Option<u64>,
}

/// An output file, and how much of it belongs to the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) bytes: u64,
}

/// Saves a state: aside, synced, renamed.
pub(super) fn save(path: &Path, memory: &AnyFilter, journal: &Journal) -> Result<()> {
    let text = serde_json::to_vec(journal).map_err(Failure::new)?;
    output::replace(path, |out| {
        let mut hashed = Hashed { inner: &mut *out, hash: Xxh3::new(), bytes: 0 };
        codec::encode_noted_to(memory.as_ref(), &journal.note, &mut hashed)?;
        let memory_bytes = hashed.bytes;
        hashed.write_all(&text)?;
        let checksum = hashed.hash.digest();
        for word in [memory_bytes, text.len() as u64, checksum] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&MAGIC)
    })
}

/// Reads a state, or `None` if there is none yet.
pub(super) fn load(path: &Path) -> Result<Option<(AnyFilter, Journal)>> {
    if !path.try_exists().map_err(|error| Failure::io(path.display(), &error))? {
        return Ok(None);
    }
    let (mut file, length) = filter_file::open(path)?;
    let Some(footer) = Footer::read(&mut file, length).map_err(|error| Failure::io(path.display(), &error))? else {
        return Err(Failure::at(path, "is not a state that dedup saved; name another file, or remove it"));
    };
    read_whole(&mut file, footer).map(Some).map_err(|failure| match failure {
        Failure::Message(message) => Failure::at(path, message),
        quiet => quiet,
    })
}

fn read_whole(file: &mut std::fs::File, footer: Footer) -> Result<(AnyFilter, Journal)> {
    let damaged = || Failure::new("the state is damaged; restore it from a copy, or remove it to start anew");
    let mut text = vec![0; footer.journal_bytes as usize];
    file.seek(SeekFrom::Start(footer.memory_bytes)).and_then(|_| file.read_exact(&mut text)).map_err(|_| damaged())?;
    let journal: Journal = serde_json::from_slice(&text).map_err(|_| damaged())?;
    file.rewind().map_err(|_| damaged())?;
    let mut hashed = Hashed { inner: BufReader::with_capacity(1 << 16, file), hash: Xxh3::new(), bytes: 0 };
    let memory = codec::Decoder::new().read(&mut hashed, footer.memory_bytes)?.into();
    hashed.hash.update(&text);
    if hashed.hash.digest() != footer.checksum {
        return Err(damaged());
    }
    Ok((memory, journal))
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
    fn read(file: &mut std::fs::File, length: u64) -> io::Result<Option<Self>> {
        let Some(start) = length.checked_sub(FOOTER_BYTES) else { return Ok(None) };
        let mut bytes = [0; FOOTER_BYTES as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        file.rewind()?;
        let (words, magic) = bytes.split_at(24);
        let mut words = words.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let mut word = || words.next().unwrap_or_default();
        let footer = Footer { memory_bytes: word(), journal_bytes: word(), checksum: word() };
        let fits = footer.memory_bytes.checked_add(footer.journal_bytes) == Some(start);
        Ok((magic == MAGIC && fits && footer.journal_bytes <= MAX_JOURNAL_BYTES).then_some(footer))
    }
}

/// How many bytes of a file are its filter: all, unless it is a state.
pub(crate) fn filter_bytes(file: &mut std::fs::File, length: u64) -> io::Result<u64> {
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
