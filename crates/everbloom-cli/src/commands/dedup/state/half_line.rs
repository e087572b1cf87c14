//! A half line is what a file ends with that has no ending yet: it is written behind all other lines, the state is saved as if
//! it had not come, and the next run takes it back and judges it whole; where it cannot be taken back it stays, and counts as seen.
//!
//! It can be taken back from files that end with it as it was written, or just before it: all half lines, or none. That of a
//! file that a run does not read waits in the state, and is written again when the run ends.

use super::Journal;
use super::marks::Marks;
use super::resume::Output;
use crate::commands::dedup::report::Tally;
use crate::commands::dedup::run::engine::{Engine, Saving, Taken, Worker};
use crate::commands::dedup::run::judge::Judge;
use crate::failure::{Failure, Result};
use crate::fault;
use crate::input::{Block, Mark, Place};
use crate::record::{Batch, Header, RecordReader};
use everbloom::{Importance, KeyHash};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::PoisonError;

/// So many bytes of half lines are kept for runs that do not read their files.
const KEPT_BYTES: usize = 64 << 10;

/// What a state has of half lines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HalfLines {
    /// Those that are written, and not remembered.
    written: Vec<HalfLine>,
    /// Those that are not written, either, until the run ends that does not read their files.
    waiting: Vec<HalfLine>,
}

/// A half line as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct HalfLine {
    /// Its file.
    mark: Mark,
    key: Option<Key>,
    tally: Tally,
    /// The line itself, unless it is too long to be kept.
    text: Vec<u8>,
}

/// A key as the filter knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    hash: (u64, u64),
    importance: Option<(u32, u32)>,
    time: Option<i64>,
}

/// What becomes of a state's half lines.
#[derive(Default)]
pub(crate) struct Retaken {
    /// The inputs that are read again from before theirs.
    pub(crate) inputs: Vec<usize>,
    /// Those of files that this run does not read.
    waiting: Vec<HalfLine>,
    /// Those that stay.
    stay: Vec<HalfLine>,
}

/// Takes back what can be taken back of what a state has; `outputs` are those that this run goes on with.
pub(crate) fn take_back(saved: &mut Journal, marks: &Marks, ending: u8, outputs: &[Output<'_>]) -> Result<Retaken> {
    let HalfLines { written, waiting } = std::mem::take(&mut saved.half_lines);
    let mut retaken = Retaken::default();
    let goes = is_taken_back(saved, &written, marks, ending, outputs)?;
    let (back, stay) = if goes { (written, Vec::new()) } else { (Vec::new(), written) };
    for line in waiting.into_iter().chain(back) {
        match marks.input_of(&line.mark)? {
            Some(input) => retaken.inputs.push(input),
            None => retaken.waiting.push(line),
        }
    }
    if !goes {
        saved.outputs.iter_mut().for_each(|output| output.bytes += std::mem::take(&mut output.half_bytes));
    }
    Ok(Retaken { stay, ..retaken })
}

fn is_taken_back(
    saved: &Journal,
    written: &[HalfLine],
    marks: &Marks,
    ending: u8,
    outputs: &[Output<'_>],
) -> Result<bool> {
    let mut have_ended = true;
    for line in written {
        match marks.input_of(&line.mark)? {
            Some(input) => {
                let known = marks.of_input(input)?.map(|(mark, path)| growth(mark, path, ending)).transpose()?;
                have_ended &= known == Some(Growth::Ended);
            }
            None if line.text.is_empty() => return Ok(false),
            None => have_ended = false,
        }
    }
    let mut is_cut = false;
    for output in saved.outputs.iter().filter(|output| output.half_bytes > 0) {
        let length = outputs.iter().find(|named| named.key == output.path).and_then(|named| named.length);
        // A run that took them back may have ended before it was saved.
        match length.map(|length| length.checked_sub(output.bytes)) {
            Some(Some(0)) => is_cut = true,
            Some(Some(more)) if more == output.half_bytes => {}
            _ => return Ok(false),
        }
    }
    Ok(is_cut || !have_ended)
}

/// Where to go on reading an input that was read to a mark.
pub(crate) fn start(mark: &Mark, path: &Path, input: usize, ending: u8, is_retaken: bool) -> Result<Place> {
    Ok(match growth(mark, path, ending)? {
        _ if is_retaken => mark.place(input),
        Growth::None => mark.place_left(input),
        Growth::Ended => mark.place_behind(input),
        Growth::WentOn => mark.place(input),
    })
}

/// How a named file stands to its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// There is nothing new in it.
    None,
    /// Its half line got its ending, and more may follow.
    Ended,
    /// It went on, or what is packed did.
    WentOn,
}

fn growth(mark: &Mark, path: &Path, ending: u8) -> Result<Growth> {
    let next = next_byte(mark, path).map_err(|error| Failure::io(path.display(), &error))?;
    Ok(match next {
        None => Growth::None,
        Some(next) if mark.is_plain() && mark.unfinished > 0 && next == ending => Growth::Ended,
        Some(_) => Growth::WentOn,
    })
}

/// The first byte behind what was read of a file.
fn next_byte(mark: &Mark, path: &Path) -> io::Result<Option<u8>> {
    fault::point("open")?;
    let file = File::open(path)?;
    let mut next = [0];
    fault::point("read")?;
    Ok((file.read_at(&mut next, mark.stored)? > 0).then_some(next[0]))
}

impl Retaken {
    /// Remembers those that stay.
    pub(crate) fn remember_others(&mut self, judge: &mut Judge, tally: &mut Tally) -> Result<()> {
        for line in self.stay.drain(..) {
            judge.remember(&line)?;
            *tally += line.tally;
        }
        Ok(())
    }

    /// What the state has of them while the run reads.
    pub(crate) fn kept(self) -> HalfLines {
        HalfLines { written: Vec::new(), waiting: self.waiting }
    }
}

impl Judge {
    /// Remembers a line that was judged before, and written accordingly; without a key, it only counts.
    fn remember(&mut self, line: &HalfLine) -> Result<()> {
        let Some(Key { hash: (high, low), importance, time }) = line.key else {
            self.records += line.tally.items;
            return Ok(());
        };
        let importance = importance.map(|(value, max)| Importance::new(value, max)).transpose()?;
        let mut batch = Batch::of_key((KeyHash { high, low }, importance, time));
        self.observe(&mut batch, &mut Vec::new())?.map_or(Ok(()), Err)
    }
}

/// A half line that is to be written.
enum Pending {
    /// One that this run read.
    Own(Block),
    Waiting(HalfLine),
}

/// How far the writing of half lines is.
struct Writing {
    worker: Worker,
    place: Place,
    turn: u64,
    /// Bytes of them that may still be kept.
    room: usize,
}

impl Engine {
    /// Writes the half lines behind all that was read, but only after the state is saved without them. Gives what is to be
    /// saved beside the memory that is saved then; nothing if there is no half line, or another thread has given up.
    pub(crate) fn write_half_lines(&self) -> Result<Option<Journal>> {
        let mut intake = self.intake.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(saving) = &self.saving else { return Ok(None) };
        let own = if intake.is_complete { intake.reader.blocks_mut().take_half_lines() } else { Vec::new() };
        // Before the first header nobody knows where their keys are.
        let can_wait = self.takes_back && intake.reader.extractor().is_ok();
        let waiting = if can_wait { saving.journal.half_lines.waiting.clone() } else { Vec::new() };
        if own.is_empty() && waiting.is_empty() {
            return Ok(None);
        }
        let (turn, (ended, place)) = (intake.turn, intake.reader.blocks_mut().take_places());
        let Some(mut journal) = self.save_without(saving, turn, &ended, &place)? else { return Ok(None) };
        if can_wait {
            journal.half_lines.waiting.clear();
        }
        let room = KEPT_BYTES.saturating_sub(waiting.iter().map(|line| line.text.len()).sum());
        let mut writing = Writing { worker: Worker::default(), place, turn, room };
        for line in own.into_iter().map(Pending::Own).chain(waiting.into_iter().map(Pending::Waiting)) {
            let Some(line) = self.write_half_line(&mut intake.reader, &mut writing, line)? else { return Ok(None) };
            journal.half_lines.written.extend(line);
        }
        let Some(outputs) = self.outputs.enter(writing.turn) else { return Ok(None) };
        journal.files = outputs.marks.known();
        for (written, now) in journal.outputs.iter_mut().zip(outputs.written()) {
            written.half_bytes += now.bytes - written.bytes;
        }
        journal.closed = true;
        outputs.sync()?;
        Ok(Some(journal))
    }

    /// Saves the state as if no half line had come.
    fn save_without(&self, saving: &Saving, turn: u64, ended: &[Place], place: &Place) -> Result<Option<Journal>> {
        let (Some(mut judge), Some(mut outputs)) = (self.judge.enter(turn), self.outputs.enter(turn)) else {
            return Ok(None);
        };
        // The last one, too, which nothing follows that would tell of it.
        ended.iter().chain([place]).try_for_each(|place| outputs.marks.note(place))?;
        outputs.place = place.clone();
        saving.save_settled(&mut judge, &outputs, false).map(Some)
    }

    /// Judges and writes one, and gives what is kept of it if its file can be read again; nothing at all if another thread has
    /// given up.
    fn write_half_line(
        &self,
        reader: &mut RecordReader,
        writing: &mut Writing,
        line: Pending,
    ) -> Result<Option<Option<HalfLine>>> {
        let Writing { worker, place, turn, room } = writing;
        let (block, header, known) = match line {
            Pending::Own(block) => {
                let header = reader.header(&block)?;
                (block, header, None)
            }
            Pending::Waiting(line) => (Block::of_half_line(&line.text, place), Header::default(), Some(line)),
        };
        *place = block.place.clone();
        let is_kept = known.is_none() && header.bytes == 0 && block.bytes().len() <= *room;
        let text = if is_kept { block.bytes().to_vec() } else { Vec::new() };
        *room = room.saturating_sub(if known.is_none() { block.bytes().len() } else { 0 });
        worker.block = block;
        let taken = Taken { turn: *turn, header, extractor: reader.extractor().ok(), is_half_line: true };
        if !self.process(worker, &taken)? {
            return Ok(None);
        }
        *turn += 1;
        let Some(mut outputs) = self.outputs.enter(*turn) else { return Ok(None) };
        let tally = worker.done.tally;
        if let Some(line) = known {
            return Ok(Some(Some(HalfLine { tally, ..line })));
        }
        outputs.marks.note(place)?;
        let mark = outputs.marks.mark(place)?;
        Ok(Some(mark.map(|mark| HalfLine { mark, key: worker.key(), tally, text })))
    }
}

impl Worker {
    fn key(&self) -> Option<Key> {
        self.batch.first_key().map(|(hash, importance, time)| Key {
            hash: (hash.high, hash.low),
            importance: importance.map(|importance| (importance.value(), importance.max())),
            time,
        })
    }
}
