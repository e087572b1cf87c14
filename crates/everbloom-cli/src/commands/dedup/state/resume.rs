//! How a run starts: afresh, or where an earlier one ended.

use super::half_line::{self, HalfLines};
use super::lock::Lock;
use super::marks::Marks;
use super::{Journal, Written};
use crate::commands::dedup::job::Job;
use crate::commands::dedup::run::engine::Saving;
use crate::commands::dedup::run::judge::Judge;
use crate::commands::dedup::run::memory::{self, Kept, Memory};
use crate::commands::dedup::run::outputs::{self, Outputs, Reopening, Sink};
use crate::failure::{Failure, Result};
use crate::input::Place;
use crate::output;
use crate::platform::{self, Interrupt};
use crate::record::{Before, Layout};
use crate::report::{thousands, words};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A state that is ours, and what it holds.
pub(crate) struct Held {
    pub(crate) lock: Lock,
    pub(crate) saved: Option<(Kept, Journal)>,
}

/// What a run starts with.
pub(crate) struct Resumption {
    pub(crate) judge: Judge,
    /// What else the plan says of the filter.
    pub(crate) notes: Vec<String>,
    pub(crate) outputs: Outputs,
    /// Where each input is read from.
    pub(crate) starts: Vec<Place>,
    pub(crate) saving: Option<Saving>,
}

impl Held {
    /// What earlier runs say of headers.
    pub(crate) fn before(&self, job: &Job) -> Result<Before> {
        let Some((_, journal)) = &self.saved else { return Ok(Before::default()) };
        let before = Before::default();
        if let Some(columns) = &journal.columns {
            before.columns.get_or_init(|| columns.clone());
        }
        let Some(path) = &job.output else { return Ok(before) };
        let is_file = platform::stat(path).map_err(|error| Failure::io(path.display(), &error))?;
        let is_emptied = Output::of(path)?.reopening(journal).0 == Reopening::Cut(0);
        match is_file.is_some_and(|data| data.is_file()) && !is_emptied {
            true => before.with_output(path, job.rules.keys.framing()),
            false => Ok(before),
        }
    }
}

/// Goes on with a state if there is one, and opens the outputs accordingly.
pub(crate) fn start(
    job: &Job,
    layout: &Layout,
    held: Option<Held>,
    before: &Before,
    interrupt: &Arc<Interrupt>,
) -> Result<Resumption> {
    let (lock, saved) = held.map_or((None, None), |held| (Some(held.lock), held.saved));
    let (judge, outputs, starts, notes, half_lines) = match saved {
        None => {
            let (memory, notes) = memory::begin(job, layout, interrupt)?;
            (Judge::new(&job.rules, job.promise, memory, 0)?, fresh(job)?, Vec::new(), notes, HalfLines::default())
        }
        Some((kept, saved)) => {
            let path = job.state.as_deref().unwrap_or(Path::new(""));
            let memory = memory::resume(job, kept, &saved, interrupt).map_err(|failure| failure.within(path))?;
            let notes = saved.notes.clone();
            let (half_lines, judge, outputs, starts) = resumed(job, path, memory, saved)?;
            (judge, outputs, starts, notes, half_lines)
        }
    };
    let Some(lock) = lock else { return Ok(Resumption { judge, notes, outputs, starts, saving: None }) };
    let journal = Journal {
        rules: job.rules.clone(),
        note: job.rules.keys.canonical().to_note()?,
        notes: notes.clone(),
        half_lines,
        reads_pipe: !job.reads_only_files()?,
        process: std::process::id(),
        ..Journal::default()
    };
    let (columns, interrupt) = (Arc::clone(&before.columns), Arc::clone(interrupt));
    let saving = Saving { lock, interval: job.interval(), journal, columns, interrupt };
    // What cannot be saved is better known before the input is read.
    saving.save(&judge, &outputs, false)?;
    Ok(Resumption { judge, notes, outputs, starts, saving: Some(saving) })
}

fn resumed(
    job: &Job,
    path: &Path,
    memory: Box<dyn Memory>,
    mut saved: Journal,
) -> Result<(HalfLines, Judge, Outputs, Vec<Place>)> {
    let mut marks = Marks::new(std::mem::take(&mut saved.files), &job.files)?;
    let named = job.output.iter().chain(&job.duplicates).map(|path| Output::of(path)).collect::<Result<Vec<_>>>()?;
    let ending = job.rules.keys.ending();
    let mut half_lines = half_line::take_back(&mut saved, &marks, ending, &named)?;
    let (starts, says) = starts(job.files.len(), &marks, ending, &half_lines.inputs)?;
    half_lines.inputs.iter().try_for_each(|input| marks.take_back(*input))?;
    // Nothing is changed before everything is checked.
    named.iter().try_for_each(|output| output.check(&saved.outputs))?;

    let mut judge = Judge::new(&job.rules, job.promise, memory, saved.tally.items)?;
    judge.faults = judge.faults.after(saved.tally.items, saved.tally.errors);
    if let (Some(timeline), Some(clock)) = (&mut judge.timeline, &saved.clock) {
        timeline.resume(clock).map_err(|error| Failure::at(path, error))?;
    }
    judge.watch = judge.watch.resumed(saved.new_keys, saved.broken_at);
    half_lines.remember_others(&mut judge, &mut saved.tally)?;
    // Before an output is opened: where the promise must not be broken, nothing is written.
    if let Some(failure) = judge.report_prior_breach() {
        return Err(failure);
    }
    if !job.promise.quiet {
        says.iter().for_each(words::say);
        for (now, before, bytes) in marks.left_behind() {
            let (now, before, bytes) = (now.display(), before.display(), thousands(bytes));
            words::note(&format!(
                "{bytes} bytes of {now}, which was {before}, were never read; name it, too: {now} {before}"
            ));
        }
    }
    let mut outputs = reopen(job, &named, &saved, marks)?;
    outputs.before = saved.tally;
    Ok((half_lines.kept(), judge, outputs, starts))
}

/// Where to go on reading: files that are known, where they were left; all else from its start.
fn starts(inputs: usize, marks: &Marks, ending: u8, retaken: &[usize]) -> Result<(Vec<Place>, Vec<String>)> {
    let mut says = Vec::new();
    let start = |input: usize| {
        let Some((mark, path)) = marks.of_input(input)? else { return Ok(Place::start_of(input)) };
        let place = half_line::start(mark, path, input, ending, retaken.contains(&input))?;
        let reached = place.offset + place.unfinished;
        if reached > 0 {
            says.push(format!("resuming {} at byte {reached}", path.display()));
        }
        Ok(place)
    };
    let starts = (0..inputs).map(start).collect::<Result<_>>()?;
    Ok((starts, says))
}

fn fresh(job: &Job) -> Result<Outputs> {
    let ending = job.rules.keys.ending();
    let create = |path: &PathBuf| match output::is_dash(path) {
        true => Sink::stdout_aside(ending),
        false => Sink::create(path, ending),
    };
    let main = job.output.as_ref().map_or_else(|| Sink::stdout(ending), create)?;
    let duplicates = job.duplicates.as_ref().map(create).transpose()?;
    let mut outputs = Outputs::new(main, duplicates, Marks::new(Vec::new(), &job.files)?);
    // Nothing is destroyed before all of them can be written, and before the first block is judged: then the keys are where
    // they were said to be. A state says of its outputs that they are empty, so that then they are; and whoever follows a
    // file may wait for long.
    outputs.is_stale = true;
    if job.follow || job.state.is_some() {
        outputs.empty()?;
    }
    Ok(outputs)
}

fn reopen(job: &Job, named: &[Output<'_>], saved: &Journal, marks: Marks) -> Result<Outputs> {
    let ending = job.rules.keys.ending();
    let mut sinks = named.iter().map(|output| {
        let (how, say) = output.reopening(saved);
        if let Some(say) = say.filter(|_| !job.promise.quiet) {
            words::note(&format!("{}: {say}", output.path.display()));
        }
        Sink::reopen(output.path, ending, how)
    });
    let main = job.output.as_ref().and_then(|_| sinks.next()).unwrap_or_else(|| Sink::stdout(ending))?;
    let mut outputs = Outputs::new(main, sinks.next().transpose()?, marks);
    let others = saved.outputs.iter().filter(|written| named.iter().all(|output| output.key != written.path));
    outputs.others = others.map(|written| Written { is_open: false, ..written.clone() }).collect();
    Ok(outputs)
}

/// An output that may be there already.
pub(crate) struct Output<'a> {
    path: &'a Path,
    /// What a state calls it.
    pub(crate) key: String,
    /// How long it is, if it is there.
    pub(crate) length: Option<u64>,
}

impl<'a> Output<'a> {
    fn of(path: &'a Path) -> Result<Self> {
        let data = platform::stat(path).map_err(|error| Failure::io(path.display(), &error))?;
        Ok(Output { path, key: outputs::key(path), length: data.map(|data| data.len()) })
    }

    fn written<'w>(&self, written: &'w [Written]) -> Option<&'w Written> {
        written.iter().find(|written| written.path == self.key)
    }

    /// Refuses one that lacks what the state says is in it.
    fn check(&self, written: &[Written]) -> Result<()> {
        let bytes = self.written(written).map_or(0, |written| written.bytes);
        let remedy = "restore it, or name another output, or start anew with another state";
        let problem = match self.length {
            Some(length) if length < bytes => {
                format!("is shorter than the {bytes} bytes that the state says were written")
            }
            None if bytes > 0 => format!("is gone, with {bytes} bytes that the state says were written"),
            _ => return Ok(()),
        };
        Err(Failure::at(self.path, format!("{problem}; {remedy}")))
    }

    /// What to do with what it has beyond what the state knows, and what to say about it.
    fn reopening(&self, saved: &Journal) -> (Reopening, Option<String>) {
        let length = self.length.unwrap_or(0);
        let Some(written) = self.written(&saved.outputs) else {
            let say = format!("has {length} bytes already, which are kept");
            return (Reopening::Append, (length > 0).then_some(say));
        };
        let more = length.saturating_sub(written.bytes);
        match (more, written.is_open && !saved.closed, saved.reads_pipe) {
            (0, ..) => (Reopening::Append, None),
            (_, true, false) => {
                let say = format!("{more} bytes written after the last checkpoint are taken back");
                (Reopening::Cut(written.bytes), Some(say))
            }
            // What a pipe brought since the last checkpoint is nowhere but in the output.
            (_, true, true) => {
                let say =
                    format!("{more} bytes written after the last checkpoint are kept, and their lines not remembered");
                (Reopening::KeepRecords(written.bytes), Some(say))
            }
            (_, false, _) if more == written.half_bytes => (Reopening::Cut(written.bytes), None),
            (_, false, _) => {
                (Reopening::Append, Some(format!("{more} bytes that others wrote behind the last run are kept")))
            }
        }
    }
}
