//! `dedup --counts`: how often each line came, when the input has ended.
//!
//! New lines wait in a temporary file, each behind its key's hash; only counts are in memory.

use crate::args::{DEFAULT_MEMORY_BITS, OnError};
use crate::commands::dedup::job::{Job, Mode};
use crate::failure::{Ending, Failure, Result};
use crate::input::BlockReader;
use crate::output::{self, Stdout};
use crate::progress::Screen;
use crate::record::{Batch, FaultWatch, Layout, Part, RecordReader, for_each_batch};
use crate::report::words::{self, LINES};
use crate::report::{self, counted, percent, short_size, thousands};
use everbloom::kind::Standing;
use everbloom::kind::standing;
use everbloom::{AnyFilter, Hashing, KeyHash};
use everbloom_all::KINDS;
use everbloom_cells::exact_counts::ExactCounts;
use serde::Serialize;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::time::Instant;

/// So much of the lines that wait is kept in memory.
const WAITING_BYTES: usize = 1 << 20;
/// Marks a line without a key, which came once.
const NO_KEY: KeyHash = KeyHash { high: u64::MAX, low: u64::MAX };

/// What `--stats` says of counts.
#[derive(Debug, Serialize)]
struct CountStats {
    items: u64,
    written: u64,
    repeats: u64,
    errors: u64,
    skipped: u64,
    /// Whether the counts are exact, but for chance collisions of hashes.
    exact: bool,
    /// The filter whose estimates they are, if not.
    filter: Option<String>,
    /// The rate at which a new line is taken for a repeat, and is missing, as promised and as the filter is now.
    predicted_fpr: f64,
    estimated_fpr: f64,
    /// So many lines are expected to be missing, at most: no more than were taken for repeats.
    expected_missing: u64,
    memory_bits: u64,
    seconds: f64,
}

pub(crate) fn run(job: &Job) -> Result<Ending> {
    refuse_clashes(job)?;
    let started = Instant::now();
    let layout = Layout::new(&job.rules.keys, &job.rules.importance)?;
    let mut counter = Counter::new(job)?;
    let hashing = counter.hashing(job);
    let reader = RecordReader::new(BlockReader::new(job.files.clone(), job.rules.keys.framing()), layout)?;
    // Lines are written when all has been read, and the bar is gone.
    let mut reader =
        reader.watched(&job.files, Screen::of(false, job.promise.quiet)).warn_on_suspect_input(job.promise.quiet);
    let mut watch = FaultWatch::new(job.rules.keys.on_error, OnError::Keep);
    let mut waiting = Waiting::default();
    for_each_batch(&mut reader, &hashing, |part| match part {
        Part::Header(line) => {
            waiting.header = line.to_vec();
            Ok(())
        }
        Part::Records(bytes, batch) => {
            watch.check(bytes, batch)?;
            counter.count(bytes, batch, watch.on_error(), &mut waiting)
        }
        Part::Wait => Ok(()),
    })?;
    watch.finish()?;
    let mut lines = waiting.finish()?;
    match &job.output {
        Some(path) => output::replace(path, |out| lines.write(&counter, out))?,
        None => to_stdout(|out| lines.write(&counter, out))?,
    }
    let seconds = started.elapsed().as_secs_f64();
    let skipped = if watch.on_error() == OnError::Skip { watch.faults() } else { 0 };
    let (predicted_fpr, estimated_fpr) = counter.rates();
    let repeats = watch.records() - lines.count - skipped;
    let stats = CountStats {
        items: watch.records(),
        written: lines.count,
        repeats,
        errors: watch.faults(),
        skipped,
        exact: matches!(counter, Counter::Exact(_)),
        filter: counter.filter(),
        predicted_fpr,
        estimated_fpr,
        expected_missing: missing(lines.count, predicted_fpr.max(estimated_fpr)).min(repeats),
        memory_bits: counter.memory_bits(),
        seconds,
    };
    if let Some(path) = &job.stats {
        output::replace_text(path, &report::json(&stats)?)?;
    }
    if job.wants_summary() {
        words::say(summary(&stats, &counter));
    }
    if let Some(note) = watch.note().filter(|_| !job.promise.quiet) {
        words::note(&note);
    }
    counter.ending(job)
}

/// Counts are known in the end, and only of lines that are written.
fn refuse_clashes(job: &Job) -> Result<()> {
    let clashes = [
        (job.follow, "--follow", "counts are known when the input ends, and it does not"),
        (job.state.is_some(), "--state", "a later run could not correct the counts that are written"),
        (job.rules.window.is_some(), "--window", "what has left the window is not counted any more"),
        (job.mode == Mode::Flag, "--flag", "repeats are counted instead of written"),
        (job.mode == Mode::OnlyDuplicates, "--only-duplicates", "repeats are counted instead of written"),
        (job.mode == Mode::Count, "--count", "one of them writes lines and the other totals"),
        (job.duplicates.is_some(), "--duplicates", "repeats are counted instead of written"),
        (job.rules.importance.importance.is_some(), "--importance", "every line counts alike"),
        (job.threads.is_some_and(|threads| threads > 1), "--threads", "one thread counts"),
    ];
    match clashes.iter().find(|(is_given, ..)| *is_given) {
        Some((_, option, why)) => {
            Err(Failure::new(format!("--counts and {option} cannot be combined: {why}; leave one of them out")))
        }
        None => Ok(()),
    }
}

/// Where counts are kept.
enum Counter {
    /// Exactly.
    Exact(ExactCounts),
    /// In a filter that counts.
    Estimated(Box<AnyFilter>),
}

impl Counter {
    fn new(job: &Job) -> Result<Self> {
        if job.rules.exact {
            return Ok(Counter::Exact(ExactCounts::default()));
        }
        let memory = job.rules.goal.wanted.memory.unwrap_or(DEFAULT_MEMORY_BITS);
        if job.rules.goal.filter.is_bare() && job.rules.goal.filter.kind() == everbloom::planning::AUTO {
            let counts = ExactCounts::within(memory).map_err(|_| {
                Failure::new(format!("{} could not be allocated; give less --memory", short_size(memory)))
            })?;
            return Ok(Counter::Exact(counts));
        }
        let kind = KINDS.of(&job.rules.goal.filter)?;
        // As elsewhere, it grows beyond --memory.
        if kind.can.exact {
            return Ok(Counter::Exact(ExactCounts::default()));
        }
        if !kind.can.count {
            let able = able();
            let problem = format!("--counts needs a filter that counts, and {} does not", kind.name);
            return Err(Failure::new(format!("{problem}; leave --filter out for exact counts, or take {able}")));
        }
        if let Some(parameter) =
            kind.can.fade.filter(|name| job.rules.goal.filter.get(name).is_some_and(|value| value.parse() != Ok(0.0)))
        {
            let problem = format!("--counts and {parameter}= cannot be combined: counts that fade are too low");
            return Err(Failure::new(format!("{problem}; leave {parameter} out of --filter")));
        }
        let goal = job.rules.goal.goal().default_memory_bits(DEFAULT_MEMORY_BITS);
        let plan = KINDS.plan(&job.rules.goal.filter, &goal)?;
        Ok(Counter::Estimated(Box::new(plan.build()?)))
    }

    /// The rate of false positives, as promised and as it is: new lines that are taken for repeats.
    fn rates(&self) -> (f64, f64) {
        match self {
            Counter::Exact(_) => (0.0, 0.0),
            Counter::Estimated(filter) => (filter.promise().fpr_bound, filter.status().estimated_fpr),
        }
    }

    fn hashing(&self, job: &Job) -> Hashing {
        match self {
            Counter::Exact(_) => job.rules.goal.hashing(),
            Counter::Estimated(filter) => *filter.hashing(),
        }
    }

    fn count(&mut self, bytes: &[u8], batch: &Batch, on_error: OnError, waiting: &mut Waiting) -> Result<()> {
        if let Counter::Estimated(filter) = self {
            filter.make_room(batch.hashes())?;
        }
        let mut faults = batch.faults().iter().peekable();
        let mut hashes = batch.hashes().iter();
        for index in 0..batch.len() {
            let hash = match faults.next_if(|(at, _)| *at == index) {
                Some(_) if on_error == OnError::Skip => continue,
                Some(_) => NO_KEY,
                None => *hashes.next().unwrap_or(&NO_KEY),
            };
            if hash == NO_KEY || self.is_new(hash)? {
                waiting.add(hash, batch.record(bytes, index))?;
            }
        }
        Ok(())
    }

    /// Counts a key once more.
    fn is_new(&mut self, hash: KeyHash) -> Result<bool> {
        match self {
            Counter::Exact(counts) => counts.add(hash).map_err(|_| {
                let (lines, kinds) = (thousands(counts.len() as u64), able());
                Failure::new(match counts.full_bits() {
                    Some(bits) => format!(
                        "{} holds the exact counts of {lines} different lines, and there are more; give more --memory, or \
                         --exact for as much as it takes, or --filter {kinds} with --expect for estimates",
                        short_size(bits)
                    ),
                    None => format!(
                        "there is no memory to count more than {lines} different lines; --filter {kinds} with --expect \
                         has estimates in less"
                    ),
                })
            }),
            Counter::Estimated(filter) => Ok(filter.insert_hash(hash)),
        }
    }

    /// How often a key came; a counter that is full knows no more than that it did so often.
    fn of(&self, hash: KeyHash) -> String {
        let (count, most) = match self {
            _ if hash == NO_KEY => (1, u64::MAX),
            Counter::Exact(counts) => (counts.count(hash).max(1), u64::MAX),
            Counter::Estimated(filter) => match filter.as_multiplicity() {
                Some(counts) => (counts.count_hash(hash), counts.max_count()),
                None => (1, u64::MAX),
            },
        };
        if count >= most { format!("{count}+") } else { count.to_string() }
    }

    fn filter(&self) -> Option<String> {
        match self {
            Counter::Exact(_) => None,
            Counter::Estimated(filter) => Some(filter.spec().to_string()),
        }
    }

    fn memory_bits(&self) -> u64 {
        match self {
            Counter::Exact(counts) => counts.memory_bits(),
            Counter::Estimated(filter) => filter.memory_bits(),
        }
    }

    fn ending(&self, job: &Job) -> Result<Ending> {
        let Counter::Estimated(filter) = self else { return Ok(Ending::Done) };
        let status = filter.status();
        let is_broken = standing(filter.as_ref().as_ref(), &status) == Standing::Broken;
        if is_broken {
            let text =
                || format!("{}; {}", words::seen_in_cells(&filter.promise(), &status, LINES), job.rules.remedy());
            job.promise.broken(text)?;
        }
        Ok(job.promise.ending(is_broken))
    }
}

/// The lines that are missing where so many came through and the others were taken for repeats at this rate.
fn missing(written: u64, rate: f64) -> u64 {
    (written as f64 * rate / (1.0 - rate).max(f64::EPSILON)).ceil() as u64
}

/// The kinds that count.
fn able() -> String {
    let able: Vec<_> = KINDS.iter().filter(|kind| kind.can.count).map(|kind| kind.name).collect();
    able.join(" or ")
}

/// Lines that are to be written, in order.
struct Waiting {
    file: BufWriter<tempfile::SpooledTempFile>,
    header: Vec<u8>,
    count: u64,
}

impl Default for Waiting {
    fn default() -> Self {
        let file = BufWriter::with_capacity(1 << 16, tempfile::SpooledTempFile::new(WAITING_BYTES));
        Waiting { file, header: Vec::new(), count: 0 }
    }
}

impl Waiting {
    fn add(&mut self, hash: KeyHash, record: &[u8]) -> Result<()> {
        self.count += 1;
        let numbers = [hash.high, hash.low, record.len() as u64];
        let mut written = numbers.iter().try_for_each(|number| self.file.write_all(&number.to_le_bytes()));
        written = written.and_then(|()| self.file.write_all(record));
        written.map_err(|error| aside(&error))
    }

    fn finish(self) -> Result<Lines> {
        let mut file = self.file.into_inner().map_err(|error| aside(error.error()))?;
        file.rewind().map_err(|error| aside(&error))?;
        Ok(Lines { file: BufReader::with_capacity(1 << 16, file), header: self.header, count: self.count })
    }
}

fn aside(error: &io::Error) -> Failure {
    Failure::io(format!("the temporary file in {}", std::env::temp_dir().display()), error)
        .with("TMPDIR can name another folder")
}

/// The lines that were put aside, to be read back.
struct Lines {
    file: BufReader<tempfile::SpooledTempFile>,
    header: Vec<u8>,
    count: u64,
}

impl Lines {
    /// Writes every line behind its count, as `uniq -c` does.
    fn write(&mut self, counter: &Counter, out: &mut dyn Write) -> io::Result<()> {
        if !self.header.is_empty() {
            out.write_all(b"  count ")?;
            out.write_all(&self.header)?;
        }
        let file = &mut self.file;
        for _ in 0..self.count {
            let mut numbers = [0; 24];
            file.read_exact(&mut numbers)?;
            let mut numbers =
                numbers.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
            let mut number = || numbers.next().unwrap_or_default();
            let hash = KeyHash { high: number(), low: number() };
            let length = number();
            write!(out, "{:>7} ", counter.of(hash))?;
            io::copy(&mut (&mut *file).take(length), out)?;
        }
        Ok(())
    }
}

fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut stdout = Stdout::new()?;
    write(stdout.writer()).map_err(|error| Failure::io("stdout", &error))?;
    stdout.finish()
}

fn summary(stats: &CountStats, counter: &Counter) -> String {
    let CountStats { items, written, repeats, .. } = stats;
    let source = match counter {
        Counter::Exact(counts) => format!(
            "the counts are exact, but for a chance of {} that two lines share a hash",
            percent(counts.collision())
        ),
        Counter::Estimated(filter) => {
            let rate = stats.predicted_fpr.max(stats.estimated_fpr);
            let missing = match stats.expected_missing {
                0 => "which is none of these".into(),
                all if all == *repeats => format!("up to {}, all that did not get through", counted(all, "line")),
                some => format!("up to about {}", counted(some, "line")),
            };
            let (was, is) = (if words::verb(rate) == "is" { "was" } else { "were" }, words::verb(rate));
            format!(
                "the counts are estimates of {}: never too low, and too high for about {} of lines; at most {} new lines \
                 {was} taken for a repeat and {is} missing, {} (promised {})",
                filter.spec().kind(),
                words::about(stats.estimated_fpr),
                words::at_most_one_in(rate),
                missing,
                percent(stats.predicted_fpr)
            )
        }
    };
    let (items, written, repeats) = (counted(*items, "line"), thousands(*written), counted(*repeats, "repeat"));
    format!("{items}: {written} new, {repeats}; {source}. {:.2} s, {}.", stats.seconds, short_size(stats.memory_bits))
}
