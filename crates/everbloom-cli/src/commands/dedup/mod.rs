//! `everbloom dedup`: repeats out of an endless stream, in fixed memory.

mod audit;
mod block_output;
mod cost;
mod counts;
mod engine;
mod in_order;
mod judge;
#[cfg(feature = "web")]
mod live;
mod lock;
mod marks;
mod memory;
mod options;
mod outputs;
mod progress;
mod refused;
mod resume;
#[cfg(feature = "redis")]
mod servers;
mod state;
mod stats;
mod window;

use everbloom_all::KINDS;
pub(crate) use state::{filter_bytes, keys_of};

use crate::args::{
    self, CostArgs, Format, GoalArgs, ImportanceArgs, KeyArgs, OnError, PromiseArgs, Refresh, ServersArgs, quantity,
    with_exit_codes,
};
use crate::failure::{Ending, Failure, Result};
use crate::input::{BlockReader, Lost, Source, is_stdin, rereadable};
use crate::output;
use crate::platform::{self, Interrupt};
use crate::progress::{Bar, Screen};
use crate::record::{Before, Layout, RecordReader, shown};
use crate::report::audit::Audited;
use crate::report::{self, counted, words};
use block_output::{Mode, Options};
use clap::Args;
use engine::{Engine, Finished, Setup};
use everbloom::kind::{Standing, Timeline};
use everbloom::{Goal, Plan, Spec, Window, filters, planning};
use judge::Judge;
use lock::Lock;
use memory::Memory;
use progress::Progress;
use resume::{Held, Resumption};
use stats::{Stats, Told, Totals};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use window::WindowStats;

/// Writes each line that is new, in order, and keeps within the memory it was given.
///
/// With --state a later run goes on where this one ended, with the same filter and keys. From files into
/// a file (-o), even after kill -9, the result is then byte for byte that of one uninterrupted run. To
/// stdout, or from a pipe, lines since the last checkpoint may be written twice but are never lost.
/// A last line that has no newline yet is then written behind those of all files, and taken back if it goes on.
///
/// Memory stays within --memory and --audit plus 32 MiB plus three times the longest record, which may have 1 GiB, and what a
/// packed input needs to be unpacked. Threads do not change the result. A signal ends a run between two lines.
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

/// How often a state is saved when nothing is said.
const DEFAULT_CHECKPOINT: Duration = Duration::from_secs(30);
/// Memory of the filter when none is asked for: 64 MiB.
pub(crate) const DEFAULT_MEMORY_BITS: u64 = 64 << 23;
/// More threads than this would not fit into 32 MiB with their blocks, and would wait anyway.
const MAX_THREADS: usize = 8;

impl Dedup {
    pub(crate) fn run(self) -> Result<Ending> {
        let this = self.with_dash();
        this.refuse_clashes()?;
        this.refuse_idle_costs()?;
        audit::refuse_size_as_input(&this)?;
        this.check_inputs()?;
        if this.counts {
            return counts::run(&this);
        }
        let Some(path) = &this.state else { return this.work(None) };
        let lock = Lock::take(path)?;
        let saved = state::load(&lock)?;
        if saved.is_none() && !lock.is_new() && !this.promise.quiet {
            // A run that was killed before it could save anything leaves one, so that it is no mistake.
            words::note(&format!("{} is empty, so nothing is known of earlier runs; starting anew", path.display()));
        }
        let dedup = match &saved {
            Some((_, journal)) => options::adopt(path, &journal.options)?.with_dash(),
            None => this,
        };
        dedup.work(Some(Held { lock, saved }))
    }

    /// `-o -` is stdout, as if nothing was said.
    fn with_dash(mut self) -> Self {
        self.output = self.output.filter(|path| !output::is_dash(path));
        self
    }

    /// Refuses what cannot be read.
    fn check_inputs(&self) -> Result<()> {
        let stdin = self.files.is_empty().then_some(Path::new("-"));
        self.files.iter().map(PathBuf::as_path).chain(stdin).try_for_each(|path| self.check_input(path))
    }

    /// Refuses names that the files' headers do not have, before anything is written.
    fn check_header(&self, layout: &Layout, before: &Before) -> Result<()> {
        if !layout.has_header {
            return Ok(());
        }
        // Files that are followed may have no header yet.
        let files = self.files.iter().take(if self.follow { 1 } else { usize::MAX });
        let files: Vec<_> = files.take_while(|path| matches!(rereadable(path), Ok(Some(_)))).collect();
        layout.check_headers(&files, self.keys.framing(), before)
    }

    /// Refuses an input that cannot be read; a file that is followed may still come.
    fn check_input(&self, path: &Path) -> Result<()> {
        let is_missing = || Ok(platform::stat(path)?.is_none());
        if self.follow && !is_stdin(path) && is_missing().map_err(|error| Failure::io(path.display(), &error))? {
            if !self.promise.quiet {
                words::say(format_args!("{}: is not there yet; waiting for it", path.display()));
            }
            return Ok(());
        }
        Source::check(path)
    }

    fn work(self, held: Option<Held>) -> Result<Ending> {
        let started = Instant::now();
        if held.as_ref().is_none_or(|held| held.saved.is_none()) {
            self.servers.check(false)?;
        }
        let layout = Layout::new(&self.keys, &self.importance)?.with_time(self.time.as_deref())?;
        let before = match held.as_ref().filter(|_| layout.has_header) {
            Some(held) => held.before(&self)?,
            None => Before::default(),
        };
        self.check_header(&layout, &before)?;
        let mut interrupt = Interrupt::new()?;
        interrupt.catch_signals(self.patience(), self.state.is_some())?;
        let writes_stdout = self.output.is_none() && !self.count;
        interrupt.watch_output(if writes_stdout { platform::watched_stdout() } else { None });
        let interrupt = Arc::new(interrupt);
        let Resumption { mut judge, notes, outputs, starts, saving } =
            resume::start(&self, &layout, held, &before, &interrupt)?;
        // What breaks the usual rate is said unasked.
        let is_usual = !self.exact && self.cost.cost_fp.is_none();
        let is_worse = is_usual && judge.watch.promise().predicted_fpr > self.goal.goal().target_fpr().unwrap_or(1.0);
        let says = is_worse && !self.wants_summary() && !self.promise.quiet;
        notes.iter().filter(|_| says).for_each(|note| words::note(note));
        if self.reads_the_past()? && !self.promise.quiet {
            words::note(match self.servers.redis {
                Some(_) => "the window counts the time at which lines reach the servers, by the servers' clocks",
                None => "the window counts the time at which lines are read; --time FIELD takes it from the lines",
            });
        }
        // Only from a file can a record be taken back.
        let takes_back = saving.is_some() && outputs.main.is_file() && judge.memory.takes_back();
        let blocks = BlockReader::new(self.files.clone(), self.keys.framing()).start_at(starts);
        let blocks = blocks.follow(self.follow).hold_back(takes_back);
        let is_header_written = outputs.main.bytes() > 0;
        let reader = RecordReader::new(blocks.stop_on(Some(Arc::clone(&interrupt))), layout)?;
        let reader = reader.after(before)?.header_is_written(is_header_written).doubting(self.promise.quiet);
        let is_aside = |path: &Option<PathBuf>| path.as_deref().is_some_and(output::is_dash);
        let screen = Screen::of(writes_stdout || is_aside(&self.duplicates), self.promise.quiet);
        judge.progress = Bar::for_terminal(reader.blocks().consumed(), &self.files, screen).map(Progress::new);
        #[cfg(feature = "web")]
        if let Some(port) = self.serve {
            judge.live = Some(live::Live::start(port)?);
        }
        let forgets = judge.forgets();
        // A window is known to miss nothing.
        let is_windowed = judge.memory.window(self.window).is_some();
        let is_checked = forgets && !is_windowed && judge.memory.audit().is_none() && self.wants_summary();
        judge.spot_check = is_checked.then(audit::spot_check).transpose()?;
        let saving = saving.map(Arc::new);
        let setup = Setup { options: self.options(), saving: saving.clone(), interrupt: Arc::clone(&interrupt) };
        let mut ended = Engine::new(reader, judge, outputs, setup).run(self.threads());
        interrupt.ending();
        ended.judge.progress = None;

        if ended.failure.is_none() {
            ended.failure = ended.judge.finish();
        }
        // First the state, so that what is reported is safe.
        if let (Some(saving), None) = (saving, &ended.failure) {
            match &ended.journal {
                Some(journal) => saving.save_journal(journal)?,
                None => saving.save_settled(&mut ended.judge, &ended.outputs, true).map(drop)?,
            }
        }
        let finished = ended.failure.is_none() && interrupt.signal().is_none();
        let reported = self.report(&mut ended, notes, started, finished);
        // Servers that forgot lines, so that their repeats are written again, have not kept what was promised either.
        let has_lost = ended.judge.memory.lost().is_some_and(|lost| lost != (0, false));
        let (note, is_broken) = (ended.judge.memory.note(), has_lost || ended.judge.watch.broken_at().is_some());
        ended.judge.memory.release();
        reported?;
        if let Some(note) = note {
            words::note(&note);
        }
        if let Some(failure) = ended.failure {
            return Err(failure);
        }
        if let Some(Lost { name, bytes, start }) = &ended.lost {
            let start = shown(start);
            words::say(format_args!(
                "{name}: {bytes} bytes of a line whose end had not come were not written: {start}"
            ));
        }
        if let Some(note) = ended.judge.faults.note().filter(|_| !self.promise.quiet) {
            words::note(&note);
        }
        if let (Some(signal), None) = (interrupt.signal(), &self.state) {
            platform::end_by(signal);
        }
        Ok(interrupt.signal().map_or(self.promise.ending(is_broken), Ending::Interrupted))
    }

    /// How often the state is saved.
    fn checkpoint(&self) -> Duration {
        self.checkpoint.unwrap_or(DEFAULT_CHECKPOINT)
    }

    /// How long lines are waited for before there is something else to do.
    fn patience(&self) -> Duration {
        #[cfg(feature = "web")]
        if self.serve.is_some() {
            return self.checkpoint().min(live::INTERVAL);
        }
        self.checkpoint()
    }

    /// Whether people are to be told in the end what became of it.
    fn wants_summary(&self) -> bool {
        self.verbose || (std::io::stderr().is_terminal() && !self.promise.quiet)
    }

    /// What would have kept the promise.
    fn remedy(&self) -> &'static str {
        match (self.window.is_some(), self.goal.filter.kind() == planning::AUTO) {
            (true, _) => "give --expect twice the most lines of a window, or more --memory",
            (false, true) => "give a larger --expect, or more --memory",
            (false, false) => "give a larger --expect and the --memory it takes, or leave --filter out",
        }
    }

    fn options(&self) -> Options {
        let mode = match (self.flag, self.only_duplicates, self.count) {
            (true, ..) => Mode::Flag,
            (_, true, _) => Mode::OnlyDuplicates,
            (.., true) => Mode::Count,
            _ => Mode::Drop,
        };
        let on_error = self.keys.on_error.unwrap_or(OnError::Keep);
        Options { mode, on_error, keeps_duplicates: self.duplicates.is_some() }
    }

    /// The memory asked for, on paper.
    fn plan_memory(&self, layout: &Layout) -> Result<Plan> {
        if let Some(cost) = self.cost.cost(layout.importance_scale())? {
            return self.plan_by_cost(cost, layout);
        }
        if self.exact {
            let exact = KINDS.iter().find(|kind| kind.can.be_exact);
            let spec = self.in_shards(&Spec::new(exact.map_or(planning::AUTO, |kind| kind.name)))?;
            return Ok(KINDS.plan(&spec, &Goal::new().hashing(self.goal.hashing()))?);
        }
        let mut goal = self.goal.goal().default_memory_bits(DEFAULT_MEMORY_BITS);
        if layout.has_importance() {
            goal = goal.with_importance();
        }
        if let Some(window) = self.window {
            let refresh = self.refresh == Refresh::Yes;
            return Ok(planning::for_window(&window, &goal, refresh, self.servers.shards())?);
        }
        let goal = goal.open_ended();
        Ok(planning::held_to_rate(KINDS.plan(&self.in_shards(&self.goal.filter)?, &goal)?, &goal)?)
    }

    /// The spec in shards, if it goes to servers.
    fn in_shards(&self, spec: &Spec) -> Result<Spec> {
        match self.servers.redis {
            Some(_) => args::in_shards(spec, self.servers.shards),
            None => Ok(spec.clone()),
        }
    }

    /// Whether anything was said of what the filter should be.
    #[cfg(feature = "redis")]
    fn describes_filter(&self) -> bool {
        let wanted = &self.goal.wanted;
        let is_wanted = wanted.memory.or(wanted.expect).is_some() || wanted.fpr.is_some() || wanted.seed != 0;
        is_wanted
            || self.exact
            || self.window.is_some()
            || self.servers.shards.is_some()
            || self.goal.filter != Spec::new(planning::AUTO)
    }

    fn window_time(&self) -> Option<Duration> {
        match self.window {
            Some(Window::Time(time)) => Some(time),
            _ => None,
        }
    }

    /// Whether a window of time is given for files that are read once, at a stroke, however long they took to be written.
    fn reads_the_past(&self) -> Result<bool> {
        if self.window_time().is_none() || self.time.is_some() || self.follow || self.state.is_some() {
            return Ok(false);
        }
        let is_file = |path: &PathBuf| match platform::stat(path) {
            Ok(data) => Ok(data.is_some_and(|data| data.is_file())),
            Err(error) => Err(Failure::io(path.display(), &error)),
        };
        self.files.iter().filter(|path| !is_stdin(path)).map(is_file).try_fold(false, |any, is| Ok(any || is?))
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.map_or_else(cores, |threads| threads as usize).min(MAX_THREADS)
    }

    /// Says so if lines came so late that a window of their own would not have known those before them: files were read in
    /// another order than they were written in, or their times are none.
    fn note_order(&self, timeline: Option<&Timeline>) {
        let outdated = timeline.map_or(0, Timeline::outdated);
        if outdated > 0 && !self.promise.quiet {
            words::note(&format!(
                "{} came late by more than the window, judged as if together with those before; name \
                 the file with the oldest lines first, and the field of the time with --time",
                counted(outdated, "line")
            ));
        }
    }

    fn report(&self, ended: &mut Finished, notes: Vec<String>, started: Instant, finished: bool) -> Result<()> {
        let tally = ended.outputs.tally;
        if self.count && ended.failure.is_none() {
            let totals = Totals::of(&tally);
            report::print(self.format, &totals, || totals.table())?;
        }
        self.note_order(ended.judge.timeline.as_ref());
        if self.stats.is_none() && !self.wants_summary() {
            return Ok(());
        }
        let seconds = started.elapsed().as_secs_f64();
        let Judge { memory, timeline, watch, spot_check, .. } = &mut ended.judge;
        let window = match (timeline, memory) {
            (Some(timeline), Memory::Own(memory)) => Some(WindowStats::new(timeline, memory)),
            _ => None,
        };
        let missed = spot_check.take().map(|check| check.missed());
        let look = self.stats.is_some() || watch.standing() != Standing::Kept;
        let tallies = (tally, ended.outputs.total());
        let audit = ended.judge.memory.audit().map(|audit| Audited::of(&audit.report()));
        let stats = Stats::new(tallies, &ended.judge, look, seconds, self.threads(), finished);
        let stats = stats.with(window, notes).audited(audit);
        if let Some(path) = &self.stats {
            output::replace_text(path, &report::json(&stats)?)?;
        }
        if self.wants_summary() {
            // After a failover that lost lines, nothing is known of their repeats.
            let memory = &ended.judge.memory;
            let has_lost = memory.lost().is_some_and(|lost| lost != (0, false));
            let window = memory.window(self.window).filter(|_| !has_lost);
            let is_shared = memory.on_servers().is_some();
            let told = Told {
                mode: self.options().mode,
                window,
                is_shared,
                forgets: has_lost || ended.judge.forgets(),
                missed,
            };
            words::say(stats.summary(&told));
            stats.notes.iter().for_each(|note| words::note(note));
        }
        Ok(())
    }
}
