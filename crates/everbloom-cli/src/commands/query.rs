//! `everbloom query`: which keys are in a filter file.

use crate::args::{Format, ImportanceArgs, KeyArgs, OnError, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::filter_file;
use crate::input::BlockReader;
use crate::mapped::Mapped;
use crate::output::Stdout;
use crate::progress::Screen;
use crate::record::{Batch, FaultWatch, Layout, Part, RecordReader, for_each_batch};
use crate::report::words::{self, KEYS};
use crate::report::{self, audit};
use clap::Args;
use everbloom::kind::Standing;
use everbloom::kind::standing;
use everbloom::{AnyFilter, Hashing, Holds, KeyHash, Status, View};
use everbloom_all::KINDS;
use everbloom_forecast::Audits;
use serde::Serialize;
use std::path::PathBuf;

/// Prints the lines whose keys are in the filter, each as soon as it was read; exits with 1 if there are none.
///
/// Keys are found as they were when the filter was built, unless options say otherwise: any of --key,
/// --delimiter, --csv, --header, --json, --ignore-case and --null replaces all that the filter file says.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 some lines were found, 1 none, 2 an error

Examples:
  The lines that are in a filter, and how many are not:
    everbloom build members.txt -o members.ebf
    everbloom query members.ebf lines.txt
    everbloom query members.ebf lines.txt --missing -c
  How often each line came:
    everbloom build lines.txt --filter spectral -o counts.ebf
    everbloom query counts.ebf members.txt --count-each")]
pub(crate) struct Query {
    /// The filter file
    filter: PathBuf,
    /// Files to look up, .gz, .zst, .xz, .bz2 and .lz4 too [default: stdin]
    files: Vec<PathBuf>,
    /// Print the lines whose keys are not in it
    #[arg(long)]
    missing: bool,
    /// Print only the number of lines
    #[arg(short, long)]
    count: bool,
    /// How to print what --count counts
    #[arg(long, value_name = "FORMAT", default_value = "table", requires = "count")]
    format: Format,
    /// Print every line after the number of times its key came and a tab; for spectral filters. A counter that is full
    /// has a plus sign: 65535+ is 65535 times or more
    #[arg(long, conflicts_with_all = ["count", "missing"])]
    count_each: bool,
    /// The most memory that a compressed filter may unpack to [default: 1GiB]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
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
    /// Print errors on stderr, and nothing else
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    keys: KeyArgs,
}

impl Query {
    pub(crate) fn run(self) -> Result<Ending> {
        crate::output::refuse_stdout(&self.files, &[])?;
        let mapped = if self.mmap { Some(Mapped::open(&self.filter)?) } else { None };
        let asked = match &mapped {
            Some(mapped) => Asked::Mapped(mapped.view()?, mapped),
            None => Asked::Loaded(self.load()?),
        };
        let (keys, from_file) = filter_file::key_arguments(&self.filter, &self.keys)?;
        let layout = Layout::new(&keys, &ImportanceArgs::default())?;
        let reader = RecordReader::new(BlockReader::new(self.files.clone(), keys.framing()), layout)?;
        let mut reader = reader.watched(&self.files, Screen::of(!self.count, self.quiet));
        let watch = FaultWatch::new(keys.on_error, OnError::Fail);
        let mut answers = Answers { query: &self, stdout: Stdout::new()?, found: Vec::new(), watch, matched: 0 };
        let hashing = *asked.hashing();
        let outcome = for_each_batch(&mut reader, &hashing, |part| match part {
            Part::Header(line) => answers.print(line),
            Part::Records(bytes, batch) => answers.look_up(&asked, bytes, batch).map_err(|failure| match &from_file {
                Some(note) => failure.with(note),
                None => failure,
            }),
            Part::Wait => answers.stdout.flush(),
        });
        // What was found before an input broke off is an answer all the same.
        let matched = answers.finish()?;
        outcome?;
        Ok(if matched > 0 { Ending::Done } else { Ending::Negative })
    }

    fn load(&self) -> Result<AnyFilter> {
        let filter = filter_file::load(&self.filter, self.memory, self.scheme.as_deref())?;
        // A promise without end is broken by nothing but full counters; a look at the cells is not needed otherwise.
        let may_break = filter.promise().holds != Holds::Always || KINDS.of(filter.spec())?.can.count;
        let status = if may_break { filter.status() } else { Status::default() };
        if self.quiet {
            // What is asked is answered all the same.
        } else if let Some(breach) = filter.breach() {
            words::warn(&format!("{}: {}", self.filter.display(), audit::breach(&breach, KEYS)));
        } else if may_break && standing(filter.as_ref(), &status) == Standing::Broken {
            let seen = words::seen_in_cells(&filter.promise(), &status, KEYS);
            words::warn(&format!("{}: {seen}; build it anew with a larger --expect", self.filter.display()));
        }
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
        let (count, most) = counts.map_or((0, u64::MAX), |counts| (counts.count_hash(hash), counts.max_count()));
        if count >= most { format!("{count}+") } else { count.to_string() }
    }
}

/// What `--count` counts.
#[derive(Debug, Serialize)]
struct Counts {
    /// Lines that were looked up.
    lines: u64,
    /// Those whose keys are in the filter, or with --missing are not.
    matched: u64,
    /// Those without a key.
    errors: u64,
}

struct Answers<'q> {
    query: &'q Query,
    stdout: Stdout,
    found: Vec<bool>,
    watch: FaultWatch,
    matched: u64,
}

impl Answers<'_> {
    fn look_up(&mut self, asked: &Asked<'_>, bytes: &[u8], batch: &Batch) -> Result<()> {
        self.found.clear();
        self.found.resize(batch.hashes().len(), false);
        asked.contains_hashes(batch.hashes(), &mut self.found)?;
        let (len, refused) = match self.watch.count(bytes, batch) {
            Some((index, failure)) => (index, Err(failure)),
            None => (batch.len(), Ok(())),
        };
        let mut faults = batch.faults().iter().peekable();
        let mut answered = 0;
        for index in 0..len {
            let (is_match, hash) = match faults.next_if(|(at, _)| *at == index) {
                // A record without a key is in no filter.
                Some(_) => (self.watch.on_error() == OnError::Keep && self.query.missing, None),
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
        refused
    }

    fn print(&mut self, record: &[u8]) -> Result<()> {
        if self.query.count { Ok(()) } else { self.stdout.write(record) }
    }

    fn counts(&self) -> Counts {
        Counts { lines: self.watch.records(), matched: self.matched, errors: self.watch.faults() }
    }

    fn finish(mut self) -> Result<u64> {
        if self.query.count {
            let Counts { lines, matched, errors } = self.counts();
            let text = match self.query.format {
                Format::Table => format!("{matched}\n"),
                Format::Json => report::json(&Counts { lines, matched, errors })?,
            };
            self.stdout.write(text.as_bytes())?;
        }
        self.stdout.finish()?;
        Ok(self.matched)
    }
}
