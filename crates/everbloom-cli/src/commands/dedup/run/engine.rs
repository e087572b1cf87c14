//! Many threads, one order.
//!
//! ```text
//!            read            split, hash       judge             apply          write
//! block 0  ──█──────────────────██──────────────█──────────────────█──────────────█──
//! block 1     ──█──────────────────██──────────────█──────────────────█──────────────█──
//!           one at a time      side by side    in order         side by side    in order
//! ```
//!
//! Every thread takes one block through all of it. Reading, judging and writing each happen in the
//! order of the input, so the verdicts and the output are the same whatever the number of threads,
//! and a decided block is written at once: nothing waits in a buffer while a pipe is silent.

use super::block_output::{BlockOutput, Options};
use super::in_order::{self, InOrder};
use super::judge::Judge;
use super::outputs::Outputs;
use crate::commands::dedup::state::lock::Lock;
use crate::commands::dedup::state::{self, Journal};
use crate::failure::{Failure, Result};
use crate::input::{Block, Framing, Lost, Reading};
use crate::platform::Interrupt;
use crate::record::{Batch, Columns, Extractor, Header, RecordReader};
use everbloom::kind::Timeline;
use everbloom::{Hashing, Verdict};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Everything that threads share.
pub(crate) struct Engine {
    pub(crate) intake: Mutex<Intake>,
    pub(crate) judge: InOrder<Judge>,
    pub(crate) outputs: InOrder<Outputs>,
    options: Options,
    hashing: Hashing,
    framing: Framing,
    /// What long blocks come to. Allocators keep what a thread frees for that thread, so that one for each would stay.
    long_output: Mutex<BlockOutput>,
    pub(crate) saving: Option<Arc<Saving>>,
    /// Whether half lines can be taken back from where they are written.
    pub(crate) takes_back: bool,
    on_servers: bool,
    interrupt: Arc<Interrupt>,
    failure: Mutex<Option<Failure>>,
}

/// Where and how often the state is saved.
pub(crate) struct Saving {
    pub(crate) lock: Lock,
    pub(crate) interval: Duration,
    /// What does not change from one checkpoint to the next.
    pub(crate) journal: Journal,
    /// What the columns of keys are called, once a header has been read.
    pub(crate) columns: Arc<OnceLock<Columns>>,
    pub(crate) interrupt: Arc<Interrupt>,
}

pub(crate) struct Intake {
    pub(crate) reader: RecordReader,
    pub(crate) turn: u64,
    is_over: bool,
    /// Whether that is so because all has been read.
    pub(crate) is_complete: bool,
}

/// What is left when all is done.
pub(crate) struct Finished {
    pub(crate) judge: Judge,
    pub(crate) outputs: Outputs,
    pub(crate) failure: Option<Failure>,
    /// What is to be saved beside the memory that is saved already, if the last record is not to be remembered yet.
    pub(crate) journal: Option<Journal>,
    /// What a signal left of a pipe.
    pub(crate) lost: Option<Lost>,
}

/// What one thread carries along.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) block: Block,
    pub(crate) batch: Batch,
    verdicts: Vec<Verdict>,
    pub(crate) done: BlockOutput,
}

/// A block that has been read.
pub(crate) struct Taken {
    pub(crate) turn: u64,
    pub(crate) header: Header,
    pub(crate) extractor: Option<Arc<Extractor>>,
    /// Whether it came after all others, and no state knows of it.
    pub(crate) is_half_line: bool,
}

impl Engine {
    pub(crate) fn new(
        reader: RecordReader,
        judge: Judge,
        outputs: Outputs,
        options: Options,
        saving: Option<Arc<Saving>>,
        takes_back: bool,
        interrupt: Arc<Interrupt>,
    ) -> Self {
        let (hashing, framing) = (*judge.memory.hashing(), reader.blocks().framing());
        let on_servers = judge.memory.on_servers().is_some();
        Engine {
            intake: Mutex::new(Intake { reader, turn: 0, is_over: false, is_complete: false }),
            judge: InOrder::new(judge),
            outputs: InOrder::new(outputs),
            options,
            hashing,
            framing,
            long_output: Mutex::default(),
            saving,
            takes_back,
            on_servers,
            interrupt,
            failure: Mutex::new(None),
        }
    }

    /// Works with this many threads until the input ends.
    pub(crate) fn run(self, threads: usize) -> Finished {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Where no more threads are to be had, those there are do all of it.
                if std::thread::Builder::new().spawn_scoped(scope, || self.work()).is_err() {
                    break;
                }
            }
            self.work();
        });
        let journal = self.write_half_lines().unwrap_or_else(|failure| {
            self.remember(failure);
            None
        });
        let mut reader = self.intake.into_inner().unwrap_or_else(PoisonError::into_inner).reader;
        let mut outputs = self.outputs.into_inner();
        let (ended, place) = reader.blocks_mut().take_places();
        let noted = ended.iter().try_for_each(|place| outputs.marks.note(place));
        outputs.place = place;
        let failure = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        let judge = self.judge.into_inner();
        let is_whole = failure.is_none() && self.interrupt.signal().is_none();
        let failure = if is_whole { judge.faults.finish().err() } else { failure };
        // An input without a single record leaves nothing, either.
        let failure = failure.or_else(|| outputs.empty().err());
        Finished { judge, outputs, failure: failure.or(noted.err()), journal, lost: reader.blocks().lost().cloned() }
    }

    fn work(&self) {
        let _guard = CloseOnPanic(self);
        // Before a long record takes what memory there is.
        let block = if self.on_servers { Block::large() } else { Block::default() };
        let mut worker = Worker { block, batch: Batch::with_room(), ..Worker::default() };
        while let Some(taken) = self.take(&mut worker.block) {
            match self.process(&mut worker, &taken) {
                Ok(true) => worker.block.release(),
                Ok(false) => return,
                Err(failure) => return self.give_up(failure),
            }
        }
    }

    /// Reads the next block. A failure to read ends the input; what came before is still written.
    fn take(&self, block: &mut Block) -> Option<Taken> {
        let mut intake = self.intake.lock().unwrap_or_else(PoisonError::into_inner);
        if intake.is_over {
            return None;
        }
        let next = intake.reader.next(block);
        match next {
            Ok((Reading::Block | Reading::Idle, header)) => {
                intake.turn += 1;
                let extractor = intake.reader.extractor().ok();
                Some(Taken { turn: intake.turn - 1, header, extractor, is_half_line: false })
            }
            Ok((reading, _)) => {
                (intake.is_over, intake.is_complete) = (true, reading == Reading::End);
                None
            }
            Err(failure) => {
                intake.is_over = true;
                self.remember(failure);
                None
            }
        }
    }

    /// Takes a block through all stages; false if another thread has given up.
    pub(crate) fn process(&self, worker: &mut Worker, taken: &Taken) -> Result<bool> {
        let Worker { block, batch, verdicts, done } = worker;
        let is_long = block.is_long();
        if is_long {
            std::mem::swap(done, &mut self.long_output.lock().unwrap_or_else(PoisonError::into_inner));
        }
        done.clear();
        let (place, first, ended) = (block.place.clone(), block.start.clone(), std::mem::take(&mut block.ended));
        let bytes = block.bytes_mut();
        let mut start = taken.header.bytes;
        if start > 0 {
            done.header(&bytes[..start], taken.header.is_new, self.options);
        }
        self.split_and_hash(bytes, start, batch, taken);

        let Some(mut judge) = self.judge.enter(taken.turn) else { return Ok(false) };
        judge.memory.commit();
        let mut stopped = self.judge_batch(&mut judge, taken.turn, bytes, batch, verdicts)?;
        start = batch.end();
        // Only blocks of very short records have more than one batch: they are judged here and now,
        // so that memory does not grow with the number of records.
        while start < bytes.len() && stopped.is_none() {
            done.records(bytes, batch, verdicts, self.options);
            self.split_and_hash(bytes, start, batch, taken);
            stopped = self.judge_batch(&mut judge, taken.turn, bytes, batch, verdicts)?;
            start = batch.end();
        }
        let is_due = self.saving.as_ref().is_some_and(|saving| judge.is_due(saving.interval));
        let is_due = is_due && !taken.is_half_line;
        let is_doubtful = judge.faults.finish().is_err();
        let judge = if is_due || stopped.is_some() {
            Some(judge)
        } else {
            judge.pass();
            None
        };

        done.records(bytes, batch, verdicts, self.options);
        done.check()?;
        let Some(mut outputs) = self.outputs.enter(taken.turn) else { return Ok(false) };
        let output = done.output(bytes, self.options);
        if outputs.holds_old_output() {
            // What the first block shows to be a mistake leaves the files as they were.
            if let Some(Failure::Message(_)) = stopped {
                return stopped.map_or(Ok(true), Err);
            }
        }
        let is_held = outputs.holds_old_output() && is_doubtful && outputs.hold(output, &done.aside);
        // A block without a byte only says that nothing has come yet.
        if !is_held && !bytes.is_empty() {
            outputs.empty()?;
        }
        outputs.tally += done.tally;
        if self.saving.is_some() {
            ended.iter().try_for_each(|place| outputs.marks.note(place))?;
        }
        outputs.place = place;
        if output.is_empty() && self.interrupt.is_reader_gone() {
            return Err(Failure::ClosedPipe);
        }
        if !is_held {
            outputs.write(output, &done.aside)?;
        }
        if let Some(failure) = stopped {
            if let (Failure::BrokenPromise(_), Some(mut judge)) = (&failure, judge) {
                // A later run goes on with the record that was not written.
                outputs.place = first.further(start as u64);
                self.save(&mut judge, &outputs)?;
                let record = judge.records + 1;
                judge.watch.break_at(record);
            }
            return Err(failure);
        }
        if let Some(mut judge) = judge {
            self.save(&mut judge, &outputs)?;
            (judge.saved, judge.saved_records) = (Instant::now(), judge.records);
            judge.pass();
        }
        outputs.pass();
        if is_long {
            std::mem::swap(done, &mut self.long_output.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Ok(true)
    }

    fn split_and_hash(&self, bytes: &[u8], start: usize, batch: &mut Batch, taken: &Taken) {
        match &taken.extractor {
            Some(extractor) => batch.take(bytes, start, self.framing, extractor, &self.hashing),
            // Only an empty block comes before the first header.
            None => batch.clear(),
        }
    }

    /// Asks the memory. A record without a key that must not be ends the batch before it.
    fn judge_batch(
        &self,
        judge: &mut Judge,
        turn: u64,
        bytes: &[u8],
        batch: &mut Batch,
        verdicts: &mut Vec<Verdict>,
    ) -> Result<Option<Failure>> {
        let failure = judge.faults.count(bytes, batch).map(|(index, failure)| {
            batch.truncate(index);
            failure
        });
        if let (Some(saving), true) = (&self.saving, judge.memory.stage(batch.hashes(), batch.importances())?) {
            // What is about to be sent is noted first, with the outputs as they are before it: whatever happens then, a later
            // run finds out what became of it.
            let Some(outputs) = self.outputs.enter(turn) else { return Err(Failure::new("another thread gave up")) };
            saving.save(judge, &outputs, false)?;
        }
        Ok(judge.observe(batch, verdicts)?.or(failure))
    }

    /// Syncs the outputs, then saves what belongs to them.
    fn save(&self, judge: &mut Judge, outputs: &Outputs) -> Result<()> {
        let Some(saving) = &self.saving else { return Ok(()) };
        saving.save_settled(judge, outputs, false).map(drop)
    }

    fn give_up(&self, failure: Failure) {
        self.remember(failure);
        self.close();
    }

    fn close(&self) {
        self.interrupt.stop();
        // Whoever holds the judge for a checkpoint waits at the outputs.
        in_order::close(&self.judge, &self.outputs);
    }

    /// Keeps the first failure.
    fn remember(&self, failure: Failure) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// Lets nobody wait for a thread that will never come.
struct CloseOnPanic<'e>(&'e Engine);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

impl Saving {
    /// Syncs the outputs, then saves what belongs to them; gives what was saved beside the memory.
    pub(crate) fn save(&self, judge: &Judge, outputs: &Outputs, closed: bool) -> Result<Journal> {
        outputs.sync()?;
        let mut marks = outputs.marks.clone();
        marks.note(&outputs.place)?;
        let journal = Journal {
            files: marks.known(),
            closed,
            outputs: outputs.written(),
            tally: outputs.total(),
            clock: judge.timeline.as_ref().map(Timeline::state),
            new_keys: judge.watch.came(),
            broken_at: judge.watch.broken_at(),
            servers: judge.memory.on_servers(),
            columns: self.columns.get().cloned(),
            ..self.journal.clone()
        };
        self.interrupt.uninterruptible(|| state::save(&self.lock, judge.memory.as_ref(), &journal))?;
        Ok(journal)
    }

    /// Saves the state when all that was judged is written.
    pub(crate) fn save_settled(&self, judge: &mut Judge, outputs: &Outputs, closed: bool) -> Result<Journal> {
        judge.memory.commit();
        self.save(judge, outputs, closed)
    }

    /// Saves what belongs to the memory that was saved last.
    pub(crate) fn save_journal(&self, journal: &Journal) -> Result<()> {
        self.interrupt.uninterruptible(|| state::save_journal(&self.lock, journal))
    }
}
