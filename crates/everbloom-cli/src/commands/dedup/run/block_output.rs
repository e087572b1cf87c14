//! From verdicts to output: what is done with each record of a block.
//!
//! Records that stay move down within their own block, runs of them at once; a block without
//! repeats is written as it was read.

use crate::args::OnError;
use crate::commands::dedup::job::Mode;
use crate::commands::dedup::report::Tally;
use crate::failure::{Failure, Result};
use crate::record::{Batch, MARK_COLUMN};
use everbloom::Verdict;
use std::hint::select_unpredictable;

/// What became of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    New,
    Repeat,
    Faulty,
}

/// The choices that hold for a whole run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) on_error: OnError,
    pub(crate) keeps_duplicates: bool,
}

/// What a block comes to.
#[derive(Debug, Default)]
pub(crate) struct BlockOutput {
    /// How many bytes at the start of the block are to be written.
    kept: usize,
    /// Marked records, where records cannot stay in their block.
    marked: Vec<u8>,
    /// Repeats to be put aside.
    pub(crate) aside: Vec<u8>,
    pub(crate) tally: Tally,
    /// Bytes of records for which there was no memory.
    refused: usize,
}

/// Where more than one record in so many is of the rarer kind, a branch on which it is costs more than moving both.
const MIXED: usize = 8;
/// Records that are shorter than this, on average, are moved in a few steps.
const SHORT_BYTES: usize = 128;
/// Bytes moved at a time.
const STEP: usize = 32;

/// Longer records are added only if there is memory for them.
const LONG_BYTES: usize = 1 << 20;

impl BlockOutput {
    /// Makes it ready for the next block.
    pub(crate) fn clear(&mut self) {
        self.kept = 0;
        self.marked.clear();
        self.aside.clear();
        self.tally = Tally::default();
        self.refused = 0;
    }

    /// Refuses to go on without a record for which there was no memory.
    pub(crate) fn check(&self) -> Result<()> {
        if self.refused == 0 {
            return Ok(());
        }
        let (mib, remedy) = (self.refused >> 20, "give the process more, or leave --flag and --duplicates out");
        Err(Failure::new(format!("a copy of a record of {mib} MiB does not fit into memory; {remedy}")))
    }

    /// The bytes to write.
    pub(crate) fn output<'a>(&'a self, block: &'a [u8], options: Options) -> &'a [u8] {
        if options.mode == Mode::Flag { &self.marked } else { &block[..self.kept] }
    }

    /// Passes the header line at the start of a block on, or drops its repetition.
    pub(crate) fn header(&mut self, line: &[u8], is_new: bool, options: Options) {
        self.tally.bytes += line.len() as u64;
        if !is_new {
            return;
        }
        match options.mode {
            Mode::Drop | Mode::OnlyDuplicates => self.kept = line.len(),
            Mode::Flag => {
                self.marked.extend_from_slice(MARK_COLUMN);
                self.marked.extend_from_slice(line);
            }
            Mode::Count => {}
        }
    }

    /// Does with the records of a batch what their verdicts ask for.
    pub(crate) fn records(&mut self, block: &mut [u8], batch: &Batch, verdicts: &[Verdict], options: Options) {
        let repeats = verdicts.iter().filter(|verdict| !verdict.is_distinct()).count() as u64;
        let (items, errors) = (batch.len() as u64, batch.faults().len() as u64);
        let bytes = (batch.end() - batch.start()) as u64;
        let skipped =
            if options.on_error == OnError::Skip || options.mode == Mode::OnlyDuplicates { errors } else { 0 };
        let written = match options.mode {
            // Totals are of what would be written.
            Mode::Drop | Mode::Count => items - repeats - skipped,
            Mode::OnlyDuplicates => repeats,
            Mode::Flag => items - skipped,
        };
        let dropped = items - written - skipped;
        self.tally += Tally { items, written, dropped, repeats, errors, skipped, bytes };
        match options.mode {
            Mode::Count => {}
            Mode::Flag => self.mark(block, batch, verdicts, options),
            Mode::Drop if errors == 0 && !options.keeps_duplicates => {
                self.keep(block, batch, (Verdict::Distinct, items - repeats), verdicts)
            }
            Mode::OnlyDuplicates if errors == 0 => self.keep(block, batch, (Verdict::Duplicate, repeats), verdicts),
            Mode::Drop | Mode::OnlyDuplicates => self.sort_out(block, batch, verdicts, options),
        }
        if options.mode == Mode::Count && options.keeps_duplicates {
            self.set_aside(block, batch, verdicts);
        }
    }

    /// Moves the records with the wanted verdict down to the others that stay, of which there are so many.
    fn keep(&mut self, block: &mut [u8], batch: &Batch, (wanted, count): (Verdict, u64), verdicts: &[Verdict]) {
        let (records, count) = (batch.len(), count as usize);
        if count.min(records - count) > records / MIXED && batch.end() - batch.start() < records * SHORT_BYTES {
            return self.keep_mixed(block, batch, wanted, verdicts);
        }
        let mut run = batch.start()..batch.start();
        for (end, verdict) in batch.ends().iter().zip(verdicts) {
            if *verdict == wanted {
                run.end = *end;
            } else {
                self.move_down(block, run);
                run = *end..*end;
            }
        }
        self.move_down(block, run);
    }

    /// Keeps the wanted records of a batch where they are mixed with others. Every record is copied; one that is not wanted is
    /// overwritten by the next, so that there is no branch to mispredict.
    fn keep_mixed(&mut self, block: &mut [u8], batch: &Batch, wanted: Verdict, verdicts: &[Verdict]) {
        let mut start = batch.start();
        for (end, verdict) in batch.ends().iter().zip(verdicts) {
            // A step may reach beyond its record, but not to one that is still to be moved.
            if start - self.kept >= STEP && block.len() - end >= STEP {
                for at in (0..end - start).step_by(STEP) {
                    block.copy_within(start + at..start + at + STEP, self.kept + at);
                }
            } else {
                block.copy_within(start..*end, self.kept);
            }
            self.kept += select_unpredictable(*verdict == wanted, end - start, 0);
            start = *end;
        }
    }

    #[inline]
    fn move_down(&mut self, block: &mut [u8], run: std::ops::Range<usize>) {
        let length = run.len();
        if length > 0 {
            if run.start != self.kept {
                block.copy_within(run, self.kept);
            }
            self.kept += length;
        }
    }

    /// Sorts out a block with records without keys, and with repeats put aside.
    fn sort_out(&mut self, block: &mut [u8], batch: &Batch, verdicts: &[Verdict], options: Options) {
        for (index, outcome) in outcomes(batch, verdicts).enumerate() {
            let stays = match outcome {
                Outcome::New => options.mode == Mode::Drop,
                Outcome::Repeat => options.mode == Mode::OnlyDuplicates,
                Outcome::Faulty => options.mode == Mode::Drop && options.on_error != OnError::Skip,
            };
            if outcome == Outcome::Repeat && options.keeps_duplicates {
                self.refused += add(&mut self.aside, batch.record(block, index));
            }
            if stays {
                self.move_down(block, batch.range(index));
            }
        }
    }

    fn mark(&mut self, block: &[u8], batch: &Batch, verdicts: &[Verdict], options: Options) {
        for (index, outcome) in outcomes(batch, verdicts).enumerate() {
            let mark: &[u8] = match outcome {
                Outcome::New => b"new\t",
                Outcome::Repeat => b"dup\t",
                Outcome::Faulty if options.on_error == OnError::Skip => continue,
                Outcome::Faulty => b"err\t",
            };
            self.marked.extend_from_slice(mark);
            self.refused += add(&mut self.marked, batch.record(block, index));
        }
        if options.keeps_duplicates {
            self.set_aside(block, batch, verdicts);
        }
    }

    fn set_aside(&mut self, block: &[u8], batch: &Batch, verdicts: &[Verdict]) {
        for (index, outcome) in outcomes(batch, verdicts).enumerate() {
            if outcome == Outcome::Repeat {
                self.refused += add(&mut self.aside, batch.record(block, index));
            }
        }
    }
}

/// Adds a record, and says how many bytes did not fit into memory.
#[inline]
fn add(target: &mut Vec<u8>, record: &[u8]) -> usize {
    if record.len() > LONG_BYTES && target.try_reserve_exact(record.len()).is_err() {
        return record.len();
    }
    target.extend_from_slice(record);
    0
}

/// What became of every record, those without a key included.
fn outcomes(batch: &Batch, verdicts: &[Verdict]) -> impl Iterator<Item = Outcome> {
    let mut faults = batch.faults().iter().peekable();
    let mut verdicts = verdicts.iter();
    (0..batch.len()).map(move |index| match faults.next_if(|(at, _)| *at == index) {
        Some(_) => Outcome::Faulty,
        None if verdicts.next().is_some_and(|verdict| verdict.is_distinct()) => Outcome::New,
        None => Outcome::Repeat,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ImportanceArgs, KeyArgs};
    use crate::record::Layout;
    use everbloom::Hashing;
    use proptest::prelude::*;

    /// Lines, short or long, and whether each is new; of few new ones, of as many as repeats, or of many.
    fn lines() -> impl Strategy<Value = Vec<(usize, bool)>> {
        let length = prop_oneof![12 => 0usize..12, 6 => 50usize..70, 1 => 0usize..1000];
        prop_oneof![Just(0.02), Just(0.3), Just(0.5), Just(0.98)]
            .prop_flat_map(move |share| prop::collection::vec((length.clone(), prop::bool::weighted(share)), 1..400))
    }

    proptest! {
        /// Whichever way they are moved, what is written are the records that stay, one behind the other, batch by batch.
        #[test]
        fn what_stays_is_what_was_there(lines in lines(), header in 0usize..40, mode in prop_oneof![Just(Mode::Drop), Just(Mode::OnlyDuplicates)]) {
            let line = |(index, (length, _)): (usize, &(usize, bool))| [&vec![b'a' + index as u8 % 26; *length][..], b"\n"].concat();
            let records: Vec<Vec<u8>> = lines.iter().enumerate().map(line).collect();
            let mut block = [vec![b'#'; header], records.concat()].concat();
            let extractor = Layout::new(&KeyArgs::default(), &ImportanceArgs::default()).expect("whole lines");
            let extractor = extractor.resolve(&[]).expect("whole lines");
            let options = Options { mode, on_error: OnError::Keep, keeps_duplicates: false };
            let (mut done, mut batch) = (BlockOutput::default(), Batch::default());
            if header > 0 {
                done.header(&block[..header], true, options);
            }
            let cut = header + records[..records.len() / 2].concat().len();
            for range in [header..cut, cut..block.len()] {
                batch.take(&block[..range.end], range.start, b'\n'.into(), &extractor, &Hashing::default());
                let from = if range.start == header { 0 } else { records.len() / 2 };
                let verdicts: Vec<Verdict> = lines[from..].iter().take(batch.len()).map(|(_, is_new)| Verdict::from_seen(!is_new)).collect();
                done.records(&mut block, &batch, &verdicts, options);
            }
            let stays = |(_, is_new): &&(usize, bool)| *is_new == (mode == Mode::Drop);
            let kept = records.iter().zip(&lines).filter(|(_, line)| stays(line)).flat_map(|(record, _)| record.clone());
            let expected: Vec<u8> = vec![b'#'; header].into_iter().chain(kept).collect();
            prop_assert_eq!(done.output(&block, options), &expected[..]);
        }
    }
}
