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
use super::in_order::InOrder;
use super::outputs::Outputs;
use super::progress::Progress;
use super::state::{self, Journal};
use super::window;
use crate::args::OnError;
use crate::failure::{Failure, Result};
use crate::input::{Block, Position, Reading};
use crate::platform::Interrupt;
use crate::record::{Batch, Extractor, Header, RecordReader};
use everbloom::internal::filter::Timeline;
use everbloom::{AnyFilter, Hashing, Verdict};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Everything that threads share.
pub(super) struct Engine {
    intake: Mutex<Intake>,
    judge: InOrder<Judge>,
    outputs: InOrder<Outputs>,
    options: Options,
    hashing: Hashing,
    delimiter: u8,
    saving: Option<Arc<Saving>>,
    interrupt: Arc<Interrupt>,
    failure: Mutex<Option<Failure>>,
}

/// What was asked for, beside what is read, remembered and written.
pub(super) struct Setup {
    pub(super) options: Options,
    pub(super) saving: Option<Arc<Saving>>,
    pub(super) progress: Option<Progress>,
    pub(super) interrupt: Arc<Interrupt>,
}

/// Where and how often the state is saved.
pub(super) struct Saving {
    pub(super) path: PathBuf,
    pub(super) interval: Duration,
    /// What does not change from one checkpoint to the next.
    pub(super) journal: Journal,
}

struct Intake {
    reader: RecordReader,
    turn: u64,
    is_over: bool,
}

struct Judge {
    memory: AnyFilter,
    timeline: Option<Timeline>,
    records: u64,
    saved: Instant,
    saved_records: u64,
    progress: Option<Progress>,
}

impl Judge {
    /// Whether the time has come to save what has changed.
    fn is_due(&self, interval: Duration) -> bool {
        self.records != self.saved_records && self.saved.elapsed() >= interval
    }
}

/// What is left when all is done.
pub(super) struct Finished {
    pub(super) memory: AnyFilter,
    pub(super) timeline: Option<Timeline>,
    pub(super) outputs: Outputs,
    pub(super) position: Position,
    pub(super) failure: Option<Failure>,
}

/// What one thread carries along.
#[derive(Default)]
struct Worker {
    block: Block,
    batch: Batch,
    verdicts: Vec<Verdict>,
    done: BlockOutput,
}

/// A block that has been read.
struct Taken {
    turn: u64,
    header: Header,
    extractor: Option<Arc<Extractor>>,
}

impl Engine {
    pub(super) fn new(
        reader: RecordReader,
        memory: AnyFilter,
        timeline: Option<Timeline>,
        outputs: Outputs,
        setup: Setup,
    ) -> Self {
        let Setup { options, saving, progress, interrupt } = setup;
        let (hashing, delimiter) = (*memory.hashing(), reader.blocks().delimiter());
        let records = outputs.tally.items;
        Engine {
            intake: Mutex::new(Intake { reader, turn: 0, is_over: false }),
            judge: InOrder::new(Judge {
                memory,
                timeline,
                records,
                saved: Instant::now(),
                saved_records: records,
                progress,
            }),
            outputs: InOrder::new(outputs),
            options,
            hashing,
            delimiter,
            saving,
            interrupt,
            failure: Mutex::new(None),
        }
    }

    /// Works with this many threads until the input ends.
    pub(super) fn run(self, threads: usize) -> Finished {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.work());
            }
            self.work();
        });
        let reader = self.intake.into_inner().unwrap_or_else(PoisonError::into_inner).reader;
        let Judge { memory, timeline, .. } = self.judge.into_inner();
        Finished {
            memory,
            timeline,
            outputs: self.outputs.into_inner(),
            position: reader.blocks().position(),
            failure: self.failure.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn work(&self) {
        let _guard = CloseOnPanic(self);
        let mut worker = Worker::default();
        while let Some(taken) = self.take(&mut worker.block) {
            match self.process(&mut worker, &taken) {
                Ok(true) => {}
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
                Some(Taken { turn: intake.turn - 1, header, extractor: intake.reader.extractor().ok() })
            }
            Ok((Reading::End | Reading::Interrupted, _)) => {
                intake.is_over = true;
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
    fn process(&self, worker: &mut Worker, taken: &Taken) -> Result<bool> {
        let Worker { block, batch, verdicts, done } = worker;
        done.clear();
        let position = block.position;
        let bytes = block.bytes_mut();
        let mut start = taken.header.bytes;
        if start > 0 {
            done.header(&bytes[..start], taken.header.is_new, self.options);
        }
        self.split_and_hash(bytes, start, batch, taken);

        let Some(mut judge) = self.judge.enter(taken.turn) else { return Ok(false) };
        let mut stopped = self.judge_batch(&mut judge, batch, verdicts)?;
        start = batch.end();
        // Only blocks of very short records have more than one batch: they are judged here and now,
        // so that memory does not grow with the number of records.
        while start < bytes.len() && stopped.is_none() {
            done.records(bytes, batch, verdicts, self.options);
            self.split_and_hash(bytes, start, batch, taken);
            stopped = self.judge_batch(&mut judge, batch, verdicts)?;
            start = batch.end();
        }
        let is_due = self.saving.as_ref().is_some_and(|saving| judge.is_due(saving.interval));
        let judge = if is_due || stopped.is_some() {
            Some(judge)
        } else {
            judge.pass();
            None
        };

        done.records(bytes, batch, verdicts, self.options);
        let Some(mut outputs) = self.outputs.enter(taken.turn) else { return Ok(false) };
        outputs.tally += done.tally;
        let output = done.output(bytes, self.options);
        if !output.is_empty() {
            outputs.main.write(output)?;
        }
        if let Some(duplicates) = outputs.duplicates.as_mut().filter(|_| !done.aside.is_empty()) {
            duplicates.write(&done.aside)?;
        }
        if let Some(failure) = stopped {
            return Err(failure);
        }
        if let Some(mut judge) = judge {
            self.save(&judge, &outputs, position)?;
            (judge.saved, judge.saved_records) = (Instant::now(), judge.records);
            judge.pass();
        }
        outputs.pass();
        Ok(true)
    }

    fn split_and_hash(&self, bytes: &[u8], start: usize, batch: &mut Batch, taken: &Taken) {
        match &taken.extractor {
            Some(extractor) => batch.take(bytes, start, self.delimiter, extractor, &self.hashing),
            // Only an empty block comes before the first header.
            None => batch.clear(),
        }
    }

    /// Asks the memory. A record without a key that must not be ends the batch before it.
    fn judge_batch(
        &self,
        judge: &mut Judge,
        batch: &mut Batch,
        verdicts: &mut Vec<Verdict>,
    ) -> Result<Option<Failure>> {
        let failure = match batch.faults().first() {
            Some((index, fault)) if self.options.on_error == OnError::Fail => {
                let number = judge.records + *index as u64 + 1;
                let failure = Failure::new(format!(
                    "record {number} cannot be used: {fault}; --on-error keep or skip goes on without its key"
                ));
                let index = *index;
                batch.truncate(index);
                Some(failure)
            }
            _ => None,
        };
        let Judge { memory, timeline, .. } = judge;
        match timeline {
            Some(timeline) => window::observe(timeline, memory, batch, verdicts)?,
            None => observe(memory, batch, verdicts)?,
        }
        judge.records += batch.len() as u64;
        if let Some(progress) = &mut judge.progress {
            progress.show(&judge.memory, verdicts);
        }
        Ok(failure)
    }

    /// Syncs the outputs, then saves what belongs to them.
    fn save(&self, judge: &Judge, outputs: &Outputs, position: Position) -> Result<()> {
        let Some(saving) = &self.saving else { return Ok(()) };
        saving.save(&judge.memory, judge.timeline.as_ref(), outputs, position, false)
    }

    fn give_up(&self, failure: Failure) {
        self.remember(failure);
        self.close();
    }

    fn close(&self) {
        self.interrupt.stop();
        self.judge.close();
        self.outputs.close();
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

/// Judges the keys of a batch and remembers them; one verdict per key. Memory that is refused is an error before anything
/// of the batch is judged.
fn observe(filter: &mut AnyFilter, batch: &Batch, verdicts: &mut Vec<Verdict>) -> Result<()> {
    verdicts.resize(batch.hashes().len(), Verdict::Distinct);
    filter.make_room(batch.hashes())?;
    Ok(filter.observe_hashes(batch.hashes(), batch.importances(), verdicts)?)
}

impl Saving {
    /// Syncs the outputs, then saves what belongs to them.
    pub(super) fn save(
        &self,
        memory: &AnyFilter,
        timeline: Option<&Timeline>,
        outputs: &Outputs,
        position: Position,
        finished: bool,
    ) -> Result<()> {
        outputs.sync()?;
        let journal = Journal {
            input: position.input,
            offset: position.offset,
            finished,
            output: outputs.main.written(),
            duplicates: outputs.duplicates.as_ref().and_then(|sink| sink.written()),
            tally: outputs.tally,
            clock: timeline.map(Timeline::state),
            ..self.journal.clone()
        };
        state::save(&self.path, memory, &journal)
    }
}
