//! `everbloom dedup`: repeats out of an endless stream, in fixed memory.
//!
//! ```text
//! options ─ job (what is asked for, as data) ─ state (where earlier runs ended) ─ run (the work) ─ report
//! ```

mod job;
mod report;
mod run;
mod state;

use crate::args::{
    CostArgs, Format, GoalArgs, ImportanceArgs, KeyArgs, PromiseArgs, Refresh, ServersArgs, quantity, with_exit_codes,
};
use crate::failure::{Ending, Result};
use crate::output;
use clap::Args;
use everbloom::Window;
use job::{AuditSize, Job, Mode, Rules, Servers};
use std::path::PathBuf;
use std::time::Duration;

/// Writes each line that is new, in order, and keeps within the memory it was given.
///
/// With --state a later run goes on where this one ended, with the same filter and keys. From files into
/// a file (-o), even after kill -9, the result is then byte for byte that of one uninterrupted run. To
/// stdout, or from a pipe, lines since the last checkpoint may be written twice but are never lost.
/// A last line that has no newline yet is then written behind those of all files, and taken back if it goes on.
///
/// Memory stays within --memory and --audit plus 32 MiB plus three times the longest record, which may have 1 GiB, and what a
/// packed input needs to be unpacked. Threads do not change the result. SIGINT and SIGTERM stop at a line boundary.
#[derive(Debug, Args)]
#[command(after_help = with_exit_codes("\
Examples:
  Drop repeated lines, in 64 MiB however many come:
    everbloom dedup lines.txt > unique.txt
  One line for each visitor and page, the first two of several fields:
    everbloom dedup -k 1,2 visits.tsv
  By a column of a CSV file, by a value of JSON lines:
    everbloom dedup --csv -H -k email people.csv
    everbloom dedup --json -k .user.id events.jsonl
  Only repeats within a day, by the times in the lines:
    everbloom dedup --json -k .user.id --window 24h --time .at events.jsonl
  Where a lost click costs 5 cents and one that is counted twice 1 cent:
    everbloom dedup --cost-fp 5 --cost-fn 1 -k 1,2 visits.tsv
  How often each line came, the most frequent first:
    everbloom dedup --counts lines.txt | sort -rn
  In steps, each run going on where the last one ended:
    everbloom dedup --state seen.ebf -o unique.txt lines.txt
  How often it errs on this very stream, measured:
    everbloom dedup --filter ranked -m 1MiB --audit -v lines.txt > unique.txt
  With a page that shows how it goes:
    everbloom dedup --serve -o unique.txt lines.txt"))]
pub(crate) struct Dedup {
    /// Files to read, .gz, .zst, .xz, .bz2 and .lz4 too [default: stdin]
    files: Vec<PathBuf>,
    /// Keep reading files as they grow and are rotated, like tail -F, until a signal comes
    ///
    /// A file that was renamed is read on, beside the one that has its name now, until nothing has come to it for 10 s: whoever
    /// writes it may take the new one only later. Only then a last line that has no newline is written
    #[arg(short = 'F', long)]
    follow: bool,
    /// Where to write; - is stdout [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Remember every 64-bit hash: no errors except chance collisions, and memory that grows with the
    /// distinct keys (10 to 15 bytes each)
    #[arg(long, conflicts_with_all = ["filter", "memory", "fpr", "expect"], help_heading = "Filter")]
    exact: bool,
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    cost: CostArgs,
    /// Drop every repeat of a key among the last so many lines (1000000) or within a time (24h, 90s, 7d),
    /// without exception; older ones are forgotten in steps: most within a twentieth more (or 30 lines),
    /// nearly all within a fifth.
    ///
    /// Lines: takes the memory it needs, or refuses if --memory is less. Time: planned for --expect lines
    /// in a window, or for as many as --memory holds; when more come the window stays whole, and the rate
    /// of false positives rises and is reported (--stats, --verbose)
    #[arg(long, value_name = "COUNT|TIME", value_parser = quantity::window, conflicts_with_all = ["exact", "filter"], help_heading = "Window")]
    window: Option<Window>,
    /// The time of a record, for a window of time: a field or JSON pointer, as for --key, or several that
    /// are read as one [default: when it arrives]
    ///
    /// Seconds since 1970 (or milli-, micro-, nanoseconds), RFC 3339, or the web servers' log format. A
    /// record whose time cannot be read, or is more than a day ahead of this machine's clock, is treated as
    /// one without a key: see --on-error.
    ///
    /// A record is late if its time is before that of an earlier one: it counts as arriving together with that one, and the
    /// summary and --stats say how many were late
    #[arg(long, value_name = "FIELD", requires = "window", help_heading = "Window")]
    time: Option<String>,
    /// Whether a repeat renews a key's age in the window
    #[arg(long, value_name = "WHETHER", default_value = "yes", requires = "window", help_heading = "Window")]
    refresh: Refresh,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    importance: ImportanceArgs,
    /// Write the repeats to this file, so that a false positive is never lost; - is stdout, with -o FILE
    #[arg(long, value_name = "FILE", help_heading = "Repeats")]
    duplicates: Option<PathBuf>,
    /// Drop nothing: write every line after a mark (new, dup or err) and a tab
    #[arg(long, conflicts_with_all = ["only_duplicates", "count"], help_heading = "Repeats")]
    flag: bool,
    /// Write the repeats instead of the new lines
    #[arg(long, conflicts_with = "count", help_heading = "Repeats")]
    only_duplicates: bool,
    /// Print totals instead of lines
    #[arg(short, long, conflicts_with = "output", help_heading = "Repeats")]
    count: bool,
    /// Write every new line behind the number of times it came, as uniq -c does, when the input ends
    ///
    /// The counts are exact (but for chance collisions of hashes) and take 20 to 39 bytes a key within --memory, or as
    /// much as they need with --exact; with --filter spectral they are estimates in fixed memory that are never too low,
    /// and new lines are missing at the rate of --fpr, because they are taken for repeats: -v and --stats say how many.
    /// Lines wait in a temporary file, and a signal ends the run without them
    #[arg(long, help_heading = "Repeats")]
    counts: bool,
    /// How to print what --count counts
    #[arg(long, value_name = "FORMAT", default_value = "table", requires = "count", help_heading = "Repeats")]
    format: Format,
    /// Resume from this file if it exists, and save to it: at the end, at every checkpoint, and on
    /// SIGINT and SIGTERM
    #[arg(long, value_name = "FILE", help_heading = "State")]
    state: Option<PathBuf>,
    /// How often to save the state [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, help_heading = "State")]
    checkpoint: Option<Duration>,
    /// Write what happened to this file, as JSON; - is stdout, if the lines go to -o FILE
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    stats: Option<PathBuf>,
    /// Print a summary on stderr at the end, as when stderr is a terminal
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Report")]
    verbose: bool,
    /// Measure how often the filter errs, on this very stream: some keys are followed exactly beside it, in 2 % of its
    /// memory, or 256KiB if that is more; --audit=1MiB gives another size
    ///
    /// Both rates are in the summary and in --stats with 95 % intervals, for all lines and for the last ones, by how long
    /// ago a line last came, and by importance. A promise that is broken beyond chance is reported like any other.
    /// With --state the audit goes on with the filter
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, value_parser = quantity::size_in_bits, conflicts_with = "counts", help_heading = "Report")]
    audit: Option<Option<u64>>,
    /// Which keys the audit follows [default: a random number]
    ///
    /// Audits of one number follow the same keys, so that the states they are in can be merged with them. A stream whose
    /// makers know the number could keep clear of those keys
    #[arg(long, value_name = "NUMBER", requires = "audit", value_parser = quantity::seed, allow_negative_numbers = true, help_heading = "Report")]
    audit_seed: Option<u64>,
    /// Show this run on a page of this machine, updated each second, with metrics for Prometheus at /metrics; --serve=PORT
    /// takes a port of your choice
    #[cfg(feature = "web")]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0", value_parser = quantity::port, conflicts_with = "counts", help_heading = "Report")]
    serve: Option<u16>,
    #[command(flatten)]
    servers: ServersArgs,
    #[command(flatten)]
    promise: PromiseArgs,
    /// How many threads work [default: one per core, at most 8]
    #[arg(short = 'j', long, value_name = "COUNT", value_parser = quantity::threads)]
    threads: Option<u64>,
}

impl Dedup {
    pub(crate) fn run(self) -> Result<Ending> {
        let job = self.job();
        job.check()?;
        if job.counts { run::counts::run(&job) } else { run::begin(job) }
    }

    /// What is asked for.
    fn job(self) -> Job {
        let ServersArgs { redis, name, shards, replicas, patience } = self.servers;
        let mode = match (self.flag, self.only_duplicates, self.count) {
            (true, ..) => Mode::Flag,
            (_, true, _) => Mode::OnlyDuplicates,
            (.., true) => Mode::Count,
            _ => Mode::Drop,
        };
        let rules = Rules {
            exact: self.exact,
            goal: self.goal,
            cost: self.cost,
            window: self.window,
            time: self.time,
            refresh: self.refresh,
            keys: self.keys,
            importance: self.importance,
            audit: self.audit.map(|bits| bits.map_or(AuditSize::Usual, AuditSize::Bits)),
            audit_seed: self.audit_seed,
            name,
            shards,
        };
        #[cfg(feature = "web")]
        let serve = self.serve;
        #[cfg(not(feature = "web"))]
        let serve = None;
        Job {
            rules,
            files: self.files,
            follow: self.follow,
            // Stdout, as if nothing was said.
            output: self.output.filter(|path| !output::is_dash(path)),
            duplicates: self.duplicates,
            mode,
            counts: self.counts,
            state: self.state,
            checkpoint: self.checkpoint,
            servers: Servers { redis, replicas, patience },
            format: self.format,
            stats: self.stats,
            verbose: self.verbose,
            serve,
            promise: self.promise,
            threads: self.threads,
        }
    }
}
