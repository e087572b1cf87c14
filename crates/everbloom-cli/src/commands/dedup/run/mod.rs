//! A job at work, from opening what it needs to the last report.

mod audit;
mod block_output;
pub(super) mod counts;
pub(super) mod engine;
mod in_order;
pub(super) mod judge;
#[cfg(feature = "web")]
mod live;
pub(super) mod memory;
pub(super) mod outputs;
mod progress;
#[cfg(feature = "redis")]
mod servers;
pub(super) mod window;

use super::job::{Job, Mode};
use super::report::report;
use super::state;
use super::state::lock::Lock;
use super::state::resume::{self, Held, Resumption};
use crate::failure::{Ending, Failure, Result};
use crate::input::{BlockReader, Lost, Source, is_stdin, rereadable};
use crate::output;
use crate::platform::{self, Interrupt};
use crate::progress::{Bar, Screen};
use crate::record::{Before, Layout, RecordReader, shown};
use crate::report::words;
use block_output::Options;
use engine::{Engine, Finished, Saving};
use judge::Judge;
use progress::Progress;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a state is saved when nothing is said.
const DEFAULT_CHECKPOINT: Duration = Duration::from_secs(30);

/// Goes on with the job's state, if it has one, or begins.
pub(super) fn begin(mut job: Job) -> Result<Ending> {
    let Some(path) = job.state.clone() else { return work(&job, None) };
    let lock = Lock::take(&path)?;
    let saved = state::load(&lock)?;
    match &saved {
        Some((_, journal)) => job.adopt(&path, &journal.rules)?,
        // A run that was killed before it could save anything leaves one, so that it is no mistake.
        None if !lock.is_new() && !job.promise.quiet => {
            words::note(&format!("{} is empty, so nothing is known of earlier runs; starting anew", path.display()));
        }
        None => {}
    }
    work(&job, Some(Held { lock, saved }))
}

fn work(job: &Job, held: Option<Held>) -> Result<Ending> {
    let started = Instant::now();
    if held.as_ref().is_none_or(|held| held.saved.is_none()) {
        job.check_servers(false)?;
    }
    let Open { engine, saving, notes, interrupt } = open(job, held)?;
    let mut ended = engine.run(job.threads());
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
    let reported = report(job, &mut ended, notes, started, finished);
    end(job, ended, reported, interrupt.signal())
}

/// A job with all that it needs open.
struct Open {
    engine: Engine,
    saving: Option<Arc<Saving>>,
    notes: Vec<String>,
    interrupt: Arc<Interrupt>,
}

fn open(job: &Job, held: Option<Held>) -> Result<Open> {
    let quiet = job.promise.quiet;
    let layout = Layout::new(&job.rules.keys, &job.rules.importance)?.with_time(job.rules.time.as_deref())?;
    let before = match held.as_ref().filter(|_| layout.has_header) {
        Some(held) => held.before(job)?,
        None => Before::default(),
    };
    job.check_header(&layout, &before)?;
    let mut interrupt = Interrupt::new()?;
    interrupt.catch_signals(job.patience(), job.state.is_some())?;
    let writes_stdout = job.output.is_none() && job.mode != Mode::Count;
    interrupt.watch_output(if writes_stdout { platform::watched_stdout() } else { None });
    let interrupt = Arc::new(interrupt);
    let Resumption { mut judge, notes, outputs, starts, saving } =
        resume::start(job, &layout, held, &before, &interrupt)?;
    job.say_what_may_surprise(&judge, &notes)?;
    // Only from a file can a record be taken back.
    let takes_back = saving.is_some() && outputs.main.is_file() && judge.memory.own().is_some();
    let blocks = BlockReader::new(job.files.clone(), job.rules.keys.framing()).start_at(starts);
    let blocks = blocks.follow(job.follow).hold_half_lines(takes_back).stop_on(Some(Arc::clone(&interrupt)));
    let reader = RecordReader::new(blocks, layout)?.after(before)?;
    let reader = reader.header_is_written(outputs.main.bytes() > 0).warn_on_suspect_input(quiet);
    let is_aside = job.duplicates.as_deref().is_some_and(output::is_dash);
    let screen = Screen::of(writes_stdout || is_aside, quiet);
    judge.progress = Bar::for_terminal(reader.blocks().consumed(), &job.files, screen).map(Progress::new);
    #[cfg(feature = "web")]
    if let Some(port) = job.serve {
        judge.live = Some(live::Live::start(port)?);
    }
    // A window is known to miss nothing.
    let is_windowed = judge.memory.window(job.rules.window).is_some();
    let is_checked = judge.forgets() && !is_windowed && judge.audit().is_none() && job.wants_summary();
    judge.spot_check = is_checked.then(audit::spot_check).transpose()?;
    let saving = saving.map(Arc::new);
    let options = Options { mode: job.mode, on_error: job.on_error(), keeps_duplicates: job.duplicates.is_some() };
    let (own, kept) = (Arc::clone(&interrupt), saving.clone());
    Ok(Open { engine: Engine::new(reader, judge, outputs, options, kept, takes_back, own), saving, notes, interrupt })
}

/// Leaves the servers, and says what else there is to say.
fn end(job: &Job, ended: Finished, reported: Result<()>, signal: Option<u8>) -> Result<Ending> {
    let Judge { memory, watch, faults, .. } = ended.judge;
    // Servers that forgot lines, so that their repeats are written again, have not kept what was promised either.
    let has_lost = memory.lost().is_some_and(|lost| lost != (0, false));
    let (note, is_broken) = (memory.note(), has_lost || watch.broken_at().is_some());
    memory.release();
    reported?;
    if let Some(note) = note {
        words::note(&note);
    }
    if let Some(failure) = ended.failure {
        return Err(failure);
    }
    if let Some(Lost { name, bytes, start }) = &ended.lost {
        let start = shown(start);
        words::say(format_args!("{name}: {bytes} bytes of a line whose end had not come were not written: {start}"));
    }
    if let Some(note) = faults.note().filter(|_| !job.promise.quiet) {
        words::note(&note);
    }
    if let (Some(signal), None) = (signal, &job.state) {
        platform::end_by(signal);
    }
    Ok(signal.map_or(job.promise.ending(is_broken), Ending::Interrupted))
}

impl Job {
    /// Refuses a job that contradicts itself, would destroy a file, or has an input that cannot be read.
    pub(super) fn check(&self) -> Result<()> {
        self.refuse_clashes()?;
        self.refuse_idle_costs()?;
        let stdin = self.files.is_empty().then_some(Path::new("-"));
        self.files.iter().map(PathBuf::as_path).chain(stdin).try_for_each(|path| self.check_input(path))
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

    /// Says what nobody asked for: a filter that errs more often than usual, and a window that counts another time.
    fn say_what_may_surprise(&self, judge: &Judge, notes: &[String]) -> Result<()> {
        if self.promise.quiet {
            return Ok(());
        }
        let is_usual = !self.rules.exact && self.rules.cost.cost_fp.is_none();
        let usual = self.rules.goal.goal().target_fpr().unwrap_or(1.0);
        let says = is_usual && judge.watch.promise().fpr_bound > usual && !self.wants_summary();
        notes.iter().filter(|_| says).for_each(|note| words::note(note));
        if self.reads_the_past()? {
            words::note(match self.servers.redis {
                Some(_) => "the window counts the time at which lines reach the servers, by the servers' clocks",
                None => "the window counts the time at which lines are read; --time FIELD takes it from the lines",
            });
        }
        Ok(())
    }

    /// Refuses names that the files' headers do not have, before anything is written.
    fn check_header(&self, layout: &Layout, before: &Before) -> Result<()> {
        if !layout.has_header {
            return Ok(());
        }
        // Files that are followed may have no header yet.
        let files = self.files.iter().take(if self.follow { 1 } else { usize::MAX });
        let files: Vec<_> = files.take_while(|path| matches!(rereadable(path), Ok(Some(_)))).collect();
        layout.check_headers(&files, self.rules.keys.framing(), before)
    }

    /// How often the state is saved.
    pub(super) fn interval(&self) -> Duration {
        self.checkpoint.unwrap_or(DEFAULT_CHECKPOINT)
    }

    /// How long lines are waited for before there is something else to do.
    fn patience(&self) -> Duration {
        #[cfg(feature = "web")]
        if self.serve.is_some() {
            return self.interval().min(live::INTERVAL);
        }
        self.interval()
    }
}
