//! The state file: all that a later run needs to go on as if nothing had happened. The file's parts are those of
//! [`state_file`]; its journal says in JSON by which rules lines are judged, and how far the inputs and outputs are.

pub(super) mod half_line;
pub(super) mod lock;
pub(super) mod marks;
pub(super) mod resume;

use super::job::Rules;
use super::report::Tally;
use super::run::memory::{Kept, Memory};
use crate::failure::{Failure, Result};
use crate::fault::Fallible;
use crate::input::Mark;
use crate::platform;
use crate::record::Columns;
use crate::state_file::{self, Footer, Hashed};
use everbloom::codec;
use everbloom_all::KINDS;
use half_line::HalfLines;
use lock::Lock;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, Write};

/// What is saved beside the memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// What decides verdicts.
    pub(crate) rules: Rules,
    /// How keys are found, as the memory's own note has it.
    #[serde(skip)]
    pub(crate) note: String,
    /// What else the plan says of the filter.
    pub(crate) notes: Vec<String>,
    /// Every file that was read, and how far.
    pub(crate) files: Vec<Mark>,
    /// Whether the run ended in order, so that it wrote nothing behind what the state knows.
    pub(crate) closed: bool,
    /// Whether something was read that cannot be read again.
    pub(crate) reads_pipe: bool,
    /// Every file that was written.
    pub(crate) outputs: Vec<Written>,
    pub(crate) half_lines: HalfLines,
    /// The counts of all runs.
    pub(crate) tally: Tally,
    /// Where a window of time is.
    pub(crate) clock: Option<Vec<u8>>,
    /// What the promise's watch has counted.
    pub(crate) new_keys: u64,
    /// The record that broke the promise.
    pub(crate) broken_at: Option<u64>,
    /// Where a filter on servers is, of which the memory is only what is on its way there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) servers: Option<OnServers>,
    /// What the columns of keys are called, where inputs have headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<Columns>,
    /// Who saved it.
    pub(crate) process: u32,
}

/// How far a client is with a filter on servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OnServers {
    pub(crate) name: String,
    pub(crate) client: String,
    /// For each shard: how often it registered anew, and its last batch.
    pub(crate) sessions: Vec<(u32, u64)>,
    /// For each shard: the new lines of its last batches that were acknowledged.
    #[serde(default)]
    pub(crate) acknowledged: Vec<Vec<u32>>,
    /// Lines that servers acknowledged and lost.
    #[serde(default)]
    pub(crate) forgotten: u64,
    /// Whether there may be more.
    #[serde(default)]
    pub(crate) forgotten_or_more: bool,
}

/// An output file, and how much of it belongs to the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// Bytes of half lines behind them.
    pub(crate) half_bytes: u64,
    /// Whether the run that saved the state wrote to it.
    pub(crate) is_open: bool,
}

/// Saves a state: aside, synced, renamed.
pub(crate) fn save(lock: &Lock, memory: &dyn Memory, journal: &Journal) -> Result<()> {
    match memory.own() {
        Some(filter) => write(lock, journal, |out| codec::encode_noted_to(filter.as_ref(), &journal.note, out)),
        None => write(lock, journal, |out| out.write_all(&memory.on_its_way())),
    }
}

/// Saves another journal beside the same memory.
pub(crate) fn save_journal(lock: &Lock, journal: &Journal) -> Result<()> {
    let fail = |error: io::Error| Failure::io(lock.path().display(), &error);
    let mut file = lock.file().map_err(fail)?;
    let length = platform::data_of(&file).map_err(fail)?.len();
    let footer = Footer::read(&mut file, length).map_err(fail)?.ok_or_else(|| Failure::at(lock.path(), NO_STATE))?;
    write(lock, journal, |out| io::copy(&mut Fallible(&file).take(footer.memory_bytes), out).map(drop))
}

fn write(lock: &Lock, journal: &Journal, memory: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let text = serde_json::to_vec(journal).map_err(Failure::new)?;
    lock.replace(|out| state_file::write(out, memory, &text))
}

const NO_STATE: &str = "is not a state that dedup saved; name another file";

/// Reads a state, or `None` if there is none yet.
pub(crate) fn load(lock: &Lock) -> Result<Option<(Kept, Journal)>> {
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
    let mut hashed = Hashed::new(BufReader::with_capacity(1 << 16, Fallible(file)));
    let is_whole = |journal: &Journal| serde_json::from_slice(&text).is_ok_and(|text| journal.rules.are_all_in(&text));
    let journal = serde_json::from_slice(&text).ok().filter(is_whole);
    let memory = match journal.as_ref().is_some_and(|journal| journal.servers.is_some()) {
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
    let journal = journal.ok_or_else(|| {
        Failure::new("the state was saved by another version of dedup; go on with that one, or name another state file")
    })?;
    Ok((memory, journal))
}

/// Who saved a state, as far as that can be told.
pub(crate) fn process_of(mut file: &File) -> Option<u32> {
    #[derive(Deserialize)]
    struct Saved {
        process: u32,
    }
    let mut file = file.try_clone().ok().filter(|_| file.rewind().is_ok())?;
    let length = file.metadata().ok()?.len();
    let footer = Footer::read(&mut file, length).ok()??;
    serde_json::from_slice::<Saved>(&footer.journal(&mut file).ok()?).ok().map(|saved| saved.process)
}
