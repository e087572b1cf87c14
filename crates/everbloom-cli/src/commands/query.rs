//! `everbloom query`: which keys are in a filter file.

use crate::args::{ImportanceArgs, KeyArgs, OnError, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::filter_file;
use crate::input::BlockReader;
use crate::mapped::Mapped;
use crate::output::Stdout;
use crate::record::{Batch, Layout, Part, RecordReader, for_each_batch};
use clap::Args;
use everbloom::{AnyFilter, Hashing, KeyHash, View};
use std::path::PathBuf;

/// Prints the lines whose keys are in the filter; exits with 1 if there are none.
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The filter file
    filter: PathBuf,
    /// Files to look up, .gz and .zst too [default: stdin]
    files: Vec<PathBuf>,
    /// Print the lines whose keys are not in it
    #[arg(long)]
    missing: bool,
    /// Print only the number of lines
    #[arg(long)]
    count: bool,
    /// Print every line after the number of times its key came and a tab; for spectral filters. A counter that is full
    /// has a plus sign: 65535+ is 65535 times or more
    #[arg(long, conflicts_with_all = ["count", "missing"])]
    count_each: bool,
    /// The most memory that a compressed filter may unpack to [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    memory: Option<u64>,
    /// Map the file instead of reading it, for bloom and blocked filters: starts at once, and shares the
    /// memory with every process that maps it
    ///
    /// Only the header and the length are checked; `everbloom info` checks all of the file. Do not cut
    /// or overwrite a file that is mapped: the system kills processes that read past its end. Renaming
    /// another file over it, as `build` does, is safe
    #[arg(long, conflicts_with_all = ["memory", "count_each", "scheme"])]
    mmap: bool,
    /// The scheme that the filter was built with
    #[arg(long, value_name = "FILE")]
    scheme: Option<PathBuf>,
    #[command(flatten)]
    keys: KeyArgs,
}

impl Query {
    pub(crate) fn run(self) -> Result<Ending> {
        let mapped = if self.mmap { Some(Mapped::open(&self.filter)?) } else { None };
        let asked = match &mapped {
            Some(mapped) => Asked::Mapped(mapped.view()?, mapped),
            None => Asked::Loaded(self.load()?),
        };
        let layout = Layout::new(&self.keys, &ImportanceArgs::default())?;
        let mut reader = RecordReader::new(BlockReader::new(self.files.clone(), self.keys.ending()), layout)?;
        let mut answers = Answers { query: &self, stdout: Stdout::new()?, found: Vec::new(), records: 0, matched: 0 };
        let hashing = *asked.hashing();
        let outcome = for_each_batch(&mut reader, &hashing, |part| match part {
            Part::Header(line) => answers.print(line),
            Part::Records(bytes, batch) => answers.look_up(&asked, bytes, batch),
        });
        // What was found before an input broke off is an answer all the same.
        let matched = answers.finish()?;
        outcome?;
        Ok(if matched > 0 { Ending::Done } else { Ending::Negative })
    }

    fn load(&self) -> Result<AnyFilter> {
        let filter = filter_file::load(&self.filter, self.memory, self.scheme.as_deref())?;
        if self.count_each {
            // A kind that does not count says so, and which ones do.
            filter.count(0).map_err(|error| Failure::at(&self.filter, error))?;
        }
        Ok(filter)
    }
}

/// The filter, in memory of our own or where it lies.
enum Asked<'m> {
    Loaded(AnyFilter),
    Mapped(View<'m>, &'m Mapped),
}

impl Asked<'_> {
    fn hashing(&self) -> &Hashing {
        match self {
            Asked::Loaded(filter) => filter.hashing(),
            Asked::Mapped(view, _) => view.hashing(),
        }
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) -> Result<()> {
        match self {
            Asked::Loaded(filter) => filter.contains_hashes(hashes, found),
            Asked::Mapped(view, mapped) => {
                mapped.check()?;
                view.contains_hashes(hashes, found);
            }
        }
        Ok(())
    }

    /// How often a key came, for people; a full counter knows no more than that it did so often.
    fn count_of(&self, hash: KeyHash) -> String {
        let counts = match self {
            Asked::Loaded(filter) => filter.as_multiplicity(),
            Asked::Mapped(..) => None,
        };
        let (count, most) = counts.map_or((0, u64::MAX), |counts| (counts.count_hash(hash), counts.most()));
        if count >= most { format!("{count}+") } else { count.to_string() }
    }
}

struct Answers<'q> {
    query: &'q Query,
    stdout: Stdout,
    found: Vec<bool>,
    records: u64,
    matched: u64,
}

impl Answers<'_> {
    fn look_up(&mut self, asked: &Asked<'_>, bytes: &[u8], batch: &Batch) -> Result<()> {
        self.found.clear();
        self.found.resize(batch.hashes().len(), false);
        asked.contains_hashes(batch.hashes(), &mut self.found)?;
        let mut faults = batch.faults().iter().peekable();
        let mut answered = 0;
        for index in 0..batch.len() {
            let (is_match, hash) = match faults.next_if(|(at, _)| *at == index) {
                Some((_, fault)) => (self.keyless(index, fault)?, None),
                None => {
                    answered += 1;
                    (self.found[answered - 1] != self.query.missing, Some(batch.hashes()[answered - 1]))
                }
            };
            self.matched += u64::from(is_match);
            if let (true, Some(hash)) = (self.query.count_each, hash) {
                let count = asked.count_of(hash);
                self.stdout.write(format!("{count}\t").as_bytes())?;
                self.print(batch.record(bytes, index))?;
            } else if is_match {
                self.print(batch.record(bytes, index))?;
            }
        }
        self.records += batch.len() as u64;
        Ok(())
    }

    /// Whether a record without a key is to be printed: it is in no filter.
    fn keyless(&self, index: usize, fault: &crate::record::Fault) -> Result<bool> {
        match self.query.keys.on_error {
            Some(OnError::Skip) => Ok(false),
            Some(OnError::Keep) => Ok(self.query.missing),
            Some(OnError::Fail) | None => Err(Failure::new(format!(
                "record {} cannot be used: {fault}; --on-error skip leaves such records out",
                self.records + index as u64 + 1
            ))),
        }
    }

    fn print(&mut self, record: &[u8]) -> Result<()> {
        if self.query.count { Ok(()) } else { self.stdout.write(record) }
    }

    fn finish(mut self) -> Result<u64> {
        if self.query.count {
            self.stdout.write(format!("{}\n", self.matched).as_bytes())?;
        }
        self.stdout.finish()?;
        Ok(self.matched)
    }
}
