//! `everbloom remove`: keys out of a filter file.

use crate::args::{Format, ImportanceArgs, KeyArgs, OnError, PromiseArgs, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::filter_file::FilterFile;
use crate::input::BlockReader;
use crate::progress::Screen;
use crate::record::{Batch, FaultWatch, Layout, Part, RecordReader, for_each_batch, shown};
use crate::report::words::{self, KEYS};
use crate::{filter_file, output, report};
use clap::Args;
use everbloom::AnyFilter;
use everbloom::kind::Standing;
use everbloom::kind::standing;
use serde::Serialize;
use std::path::PathBuf;

/// Takes keys out of a filter that can do that, such as one built with --filter counting.
///
/// A key that the filter does not know is left alone and counted. Remove only keys that were inserted: for one that merely
/// looks as if it were inside, the filter cannot tell, and a key that is inside may be missed afterwards. The file is
/// replaced once all keys are read; if anything is wrong with them, it stays as it was.
///
/// Keys are found as they were when the filter was built, unless options say otherwise: any of --key,
/// --delimiter, --csv, --header, --json, --ignore-case and --null replaces all that the filter file says.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 every key was there and is removed, 1 some were not there, 2 an error and nothing is changed, \
3 the filter's promise is broken (see --on-broken-promise)

Examples:
  Sessions that are open, and those that have ended:
    everbloom build sessions.txt --filter counting --fpr 1% -o sessions.ebf
    everbloom remove sessions.ebf ended.txt")]
pub(crate) struct Remove {
    /// The filter file
    filter: PathBuf,
    /// Files with the keys to remove, .gz, .zst, .xz, .bz2 and .lz4 too [default: stdin]
    files: Vec<PathBuf>,
    /// Write the filter without the keys to another file, and leave this one as it is [default: the filter file]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to print what was done
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// The most memory that a compressed filter may unpack to [default: 1GiB]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    memory: Option<u64>,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    promise: PromiseArgs,
}

#[derive(Debug, Serialize)]
struct Document {
    filter: String,
    /// Keys that were read.
    keys: u64,
    removed: u64,
    /// Keys that the filter did not know.
    not_there: u64,
    /// Keys among the removed that were not there either, by the rate of false positives.
    expected_mistaken: f64,
    /// Keys that the filter still says are inside.
    still_found: u64,
    /// Counters at their maximum, which never fall.
    stuck_counters: u64,
    /// Keys that are left.
    arrivals: u64,
    estimated_fpr: f64,
    standing: &'static str,
    #[serde(skip)]
    first_not_there: Option<String>,
}

impl Remove {
    pub(crate) fn run(self) -> Result<Ending> {
        output::check(&self.filter, &self.files)?;
        if let Some(output) = &self.output {
            output::check(output, &self.files)?;
            output::refuse_dash(output, "--output", "where the report goes", "name a file")?;
        }
        let _held = filter_file::hold(&self.filter)?;
        let mut file = FilterFile::read(&self.filter, self.memory, None)?;
        let stored = file.keys(&self.filter)?;
        let filter = &mut file.filter;
        // A kind that cannot remove says so, and which ones can.
        filter.removal().map_err(|error| Failure::at(&self.filter, error))?;
        if file.is_state {
            return Err(Failure::at(
                &self.filter,
                "is a state of `everbloom dedup`, which may not have inserted every key that it read; build a filter with \
                 `everbloom build`, and remove keys from that",
            ));
        }
        let (keys, from_file) = filter_file::key_arguments(&self.filter, &self.keys)?;
        let taken = self.take_out(filter, &keys).map_err(|failure| match &from_file {
            Some(note) => failure.with(note),
            None => failure,
        })?;
        let document = taken.document(filter);
        let is_broken = document.standing == Standing::Broken.name();
        if is_broken {
            let (promise, status) = (filter.promise(), filter.status());
            self.promise.broken(|| {
                let seen = words::seen_in_cells(&promise, &status, KEYS);
                format!("{}: {seen}; build it anew with a larger --expect", self.filter.display())
            })?;
        }
        if document.removed > 0 || self.output.is_some() {
            let output = self.output.as_ref().unwrap_or(&self.filter);
            filter_file::save(output, filter.as_ref(), &stored, file.compressed)?;
        }
        report::print(self.format, &document, || table(&document))?;
        let found_all = if document.not_there > 0 { Ending::Negative } else { Ending::Done };
        Ok(match self.promise.ending(is_broken) {
            Ending::Done => found_all,
            broken => broken,
        })
    }

    fn take_out(&self, filter: &mut AnyFilter, keys: &KeyArgs) -> Result<Taken> {
        let layout = Layout::new(keys, &ImportanceArgs::default())?;
        let reader = RecordReader::new(BlockReader::new(self.files.clone(), keys.framing()), layout)?;
        let mut reader = reader.watched(&self.files, Screen::of(false, self.promise.quiet));
        let mut faults = FaultWatch::new(keys.on_error, OnError::Fail);
        let mut taken = Taken { rate: filter.status().estimated_fpr, ..Taken::default() };
        for_each_batch(&mut reader, &filter.hashing().clone(), |part| {
            if let Part::Records(bytes, batch) = part {
                faults.check(bytes, batch)?;
                taken.take(filter, bytes, batch)?;
            }
            Ok(())
        })?;
        Ok(taken)
    }
}

/// What became of the keys.
#[derive(Debug, Default)]
struct Taken {
    /// The rate of false positives before anything was removed.
    rate: f64,
    records: u64,
    removed: u64,
    not_there: u64,
    still_found: u64,
    first_not_there: Option<String>,
}

impl Taken {
    fn take(&mut self, filter: &mut AnyFilter, bytes: &[u8], batch: &Batch) -> Result<()> {
        for (key, hash) in batch.hashes().iter().enumerate() {
            if filter.removal()?.remove_hash(*hash) {
                self.removed += 1;
                self.still_found += u64::from(filter.contains_hash(*hash));
            } else {
                self.not_there += 1;
                self.first_not_there.get_or_insert_with(|| {
                    let record = batch.record_of_key(key);
                    let line = report::thousands(self.records + record as u64 + 1);
                    format!("record {line}: {}", shown(batch.record(bytes, record)))
                });
            }
        }
        self.records += batch.len() as u64;
        Ok(())
    }

    fn document(self, filter: &mut AnyFilter) -> Document {
        let status = filter.status();
        Document {
            filter: filter.spec().to_string(),
            keys: self.removed + self.not_there,
            removed: self.removed,
            not_there: self.not_there,
            // Of so many keys that are not inside, this many more looked as if they were.
            expected_mistaken: match self.not_there {
                0 => 0.0,
                others => (others as f64 * self.rate / (1.0 - self.rate)).min(self.removed as f64),
            },
            still_found: self.still_found,
            stuck_counters: filter.removal().map_or(0, |filter| filter.stuck_counters()),
            arrivals: status.arrivals,
            estimated_fpr: status.estimated_fpr,
            standing: standing(filter.as_ref(), &status).name(),
            first_not_there: self.first_not_there,
        }
    }
}

fn table(document: &Document) -> String {
    let count = |keys: u64| format!("{} {}", report::thousands(keys), if keys == 1 { "key" } else { "keys" });
    let mut rows = vec![("removed", count(document.removed))];
    if let Some(first) = &document.first_not_there {
        rows.push(("not there", format!("{}, left alone; the first is {first}", count(document.not_there))));
        if document.removed > 0 {
            rows.push((
                "mistaken",
                format!(
                    "about {:.2} of the keys removed were not there either, by the rate before; each may hide keys that are inside",
                    document.expected_mistaken
                ),
            ));
        }
    }
    if document.still_found > 0 {
        let why = match document.stuck_counters {
            0 => "they look like other keys, or were inserted more than once".into(),
            stuck => format!(
                "{} counters are full and never fall, since how many keys they stand for is not known; build the filter anew to \
                 be rid of them",
                report::thousands(stuck)
            ),
        };
        rows.push(("still found", format!("{} of those removed: {why}", report::thousands(document.still_found))));
    }
    rows.push(("left", count(document.arrivals)));
    rows.push(("estimated fpr", report::percent(document.estimated_fpr)));
    report::columns(&rows)
}
