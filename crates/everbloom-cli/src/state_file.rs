//! The file of a state of `dedup`: a filter, and what a later run needs beside it.
//!
//! ```text
//! memory    the filter as a whole .ebf document, with its audit if it has one (so `info` and `query` read state files, too)
//! journal   JSON, of which only `dedup` knows all
//! footer    length of the memory, length of the journal, XXH3-64 of both, magic
//! ```

use crate::args::KeyArgs;
use crate::failure::{Failure, Result};
use crate::fault::{self, Fallible};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const MAGIC: [u8; 8] = *b"EBDEDUP\x01";
const FOOTER_BYTES: u64 = 32;

/// Writes a state.
pub(crate) fn write(
    out: &mut dyn Write,
    memory: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    journal: &[u8],
) -> io::Result<()> {
    let mut hashed = Hashed::new(&mut *out);
    memory(&mut hashed)?;
    let memory_bytes = hashed.bytes;
    hashed.write_all(journal)?;
    let checksum = hashed.hash.digest();
    for word in [memory_bytes, journal.len() as u64, checksum] {
        out.write_all(&word.to_le_bytes())?;
    }
    out.write_all(&MAGIC)
}

/// The last bytes of a state file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Footer {
    pub(crate) memory_bytes: u64,
    journal_bytes: u64,
    pub(crate) checksum: u64,
}

impl<T> Hashed<T> {
    pub(crate) fn new(inner: T) -> Self {
        Hashed { inner, hash: Xxh3::new(), bytes: 0 }
    }
}

impl Footer {
    /// The footer of a file of `length` bytes, if it is a state; leaves the file at its start.
    pub(crate) fn read(file: &mut File, length: u64) -> io::Result<Option<Self>> {
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
    pub(crate) fn journal(&self, file: &mut File) -> io::Result<Vec<u8>> {
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
        rules: Rules,
    }
    #[derive(Deserialize)]
    struct Rules {
        #[serde(flatten)]
        keys: KeyArgs,
    }
    let fail = |error: io::Error| Failure::io(path.display(), &error);
    let mut file = File::open(path).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    let Some(footer) = Footer::read(&mut file, length).map_err(fail)? else { return Ok(None) };
    let saved: Option<Saved> = serde_json::from_slice(&footer.journal(&mut file).map_err(fail)?).ok();
    Ok(saved.map(|saved| saved.rules.keys.canonical()))
}

/// How many bytes of a file are its filter: all, unless it is a state.
pub(crate) fn filter_bytes(file: &mut File, length: u64) -> io::Result<u64> {
    Ok(Footer::read(file, length)?.map_or(length, |footer| footer.memory_bytes))
}

/// Hashes what passes.
pub(crate) struct Hashed<T> {
    inner: T,
    pub(crate) hash: Xxh3,
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
