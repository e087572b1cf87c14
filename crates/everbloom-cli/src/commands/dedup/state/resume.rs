//! How a run starts: afresh, or where an earlier one ended.

use super::lock::Lock;
use super::marks::{self, Growth, Marks};
use super::{Journal, LastRecord, Written};
use crate::args::OnError;
use crate::commands::dedup::job::Job;
use crate::commands::dedup::run::engine::Saving;
use crate::commands::dedup::run::judge::{FIRST_AUDIT_LOOK, Judge};
use crate::commands::dedup::run::memory::{Kept, Memory};
use crate::commands::dedup::run::outputs::{self, Outputs, Reopening, Sink};
use crate::commands::dedup::run::{audit, window};
use crate::failure::{Failure, Result};
use crate::input::Place;
use crate::output;
use crate::platform::{self, Interrupt};
use crate::record::{Before, FaultWatch, KeyOptions, Layout};
use crate::report::{thousands, words};
use everbloom::filters;
use everbloom::internal::filter::Watch;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

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
        let is_emptied = reopening(path, journal)?.0 == Reopening::Cut(0);
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
    let Some(Held { lock, saved }) = held else {
        let (memory, notes) = Memory::new(job, layout, interrupt)?;
        let judge = begin(job, memory)?;
        return Ok(Resumption { judge, notes, outputs: fresh(job)?, starts: Vec::new(), saving: None });
    };
    let mut journal = Journal {
        rules: job.rules.clone(),
        note: KeyOptions::of(&job.rules.keys).to_note()?,
        reads_pipe: !job.reads_only_files()?,
        process: std::process::id(),
        ..Journal::default()
    };
    let (judge, outputs, starts) = match saved {
        None => {
            let (memory, notes) = Memory::new(job, layout, interrupt)?;
            journal.notes = notes;
            (begin(job, memory)?, fresh(job)?, Vec::new())
        }
        Some((kept, saved)) => {
            let memory = Memory::kept(job, kept, &saved, interrupt).map_err(|failure| failure.within(lock.path()))?;
            journal.notes.clone_from(&saved.notes);
            let (retaken, judge, outputs, starts) = resumed(job, lock.path(), memory, saved)?;
            journal.carried = retaken.carried;
            (judge, outputs, starts)
        }
    };
    let notes = journal.notes.clone();
    let (columns, interrupt) = (Arc::clone(&before.columns), Arc::clone(interrupt));
    let saving = Saving { lock, interval: job.interval(), journal, columns, interrupt };
    // What cannot be saved is better known before the input is read.
    saving.save(&judge, &outputs, false)?;
    Ok(Resumption { judge, notes, outputs, starts, saving: Some(saving) })
}

/// The last records without an ending that are taken back.
#[derive(Default)]
struct Retaken {
    /// The inputs that are read again from before theirs.
    inputs: Vec<usize>,
    /// Those of files that this run does not read.
    carried: Vec<LastRecord>,
}

fn resumed(
    job: &Job,
    path: &Path,
    memory: Memory,
    mut saved: Journal,
) -> Result<(Retaken, Judge, Outputs, Vec<Place>)> {
    let mut marks = Marks::new(std::mem::take(&mut saved.files), &job.files)?;
    let mut retaken = Retaken::default();
    let are_taken_back = take_back(job, &marks, &saved, &mut retaken)?;
    let (starts, says) = starts(job, &marks, &retaken.inputs)?;
    retaken.inputs.iter().try_for_each(|input| marks.take_back(*input))?;
    // Nothing is changed before everything is checked.
    let named: Vec<&PathBuf> = job.output.iter().chain(&job.duplicates).collect();
    named.iter().try_for_each(|output| check_output(output, &saved.outputs))?;

    let mut judge = judge(job, memory, saved.tally.items)?;
    judge.faults = judge.faults.after(saved.tally.items, saved.tally.errors);
    if let (Some(timeline), Some(clock)) = (&mut judge.timeline, &saved.clock) {
        timeline.resume(clock).map_err(|error| Failure::at(path, error))?;
    }
    judge.watch = judge.watch.resumed(saved.new_keys, saved.broken_at);
    if !are_taken_back {
        // They stay as they were written, and are remembered from now on.
        for last in saved.last_records.drain(..) {
            if let Some(failure) = judge.remember(&last)? {
                return Err(failure);
            }
            saved.tally += last.tally;
        }
        for written in &mut saved.outputs {
            written.bytes += std::mem::take(&mut written.provisional);
        }
    }
    // Before an output is opened: where the promise must not be broken, nothing is written.
    if let Some(failure) = judge.welcome() {
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
    let mut outputs = reopen(job, &saved, marks)?;
    outputs.before = saved.tally;
    Ok((retaken, judge, outputs, starts))
}

/// A new filter, and its audit if there is to be one.
fn begin(job: &Job, memory: Memory) -> Result<Judge> {
    let memory = match memory {
        Memory::Own(filter) => Memory::Own(audit::begin(job, filter)?),
        servers => servers,
    };
    judge(job, memory, 0)
}

/// The filter, watched from here on.
fn judge(job: &Job, mut memory: Memory, records: u64) -> Result<Judge> {
    // Servers turn their filters by their own clocks.
    let timeline = match (&mut memory, job.rules.window_time()) {
        (Memory::Own(memory), Some(window)) => Some(window::timeline(window, memory)?),
        _ => None,
    };
    let watch = match &timeline {
        Some(timeline) => Watch::over_window(&memory.promise(), timeline),
        None => memory.watch(),
    };
    let is_exact_first = filters::kind(memory.spec())?.can.exact_first;
    let exact = match &memory {
        Memory::Own(memory) if is_exact_first => {
            Some(memory.status().arrivals).filter(|all| *all == memory.exact_arrivals())
        }
        _ => None,
    };
    Ok(Judge {
        exact,
        memory,
        timeline,
        watch,
        faults: FaultWatch::new(job.rules.keys.on_error, OnError::Keep),
        spot_check: None,
        audit_look: FIRST_AUDIT_LOOK,
        promise: job.promise,
        remedy: job.rules.remedy(),
        progress: None,
        #[cfg(feature = "web")]
        live: None,
        records,
        saved: Instant::now(),
        saved_records: records,
    })
}

/// Where to go on reading: files that are known, where they were left; all else from its start.
fn starts(job: &Job, marks: &Marks, retaken: &[usize]) -> Result<(Vec<Place>, Vec<String>)> {
    let mut says = Vec::new();
    let mut start = |input: usize| {
        let Some((mark, path)) = marks.of_input(input)? else { return Ok(Place::start_of(input)) };
        let place = match marks::growth(mark, path, job.rules.keys.ending())? {
            _ if retaken.contains(&input) => mark.place(input),
            Growth::Ended => mark.place_behind(input),
            Growth::None => mark.place_left(input),
            Growth::WentOn => mark.place(input),
        };
        let reached = place.offset + place.unfinished;
        if reached > 0 {
            says.push(format!("resuming {} at byte {reached}", path.display()));
        }
        Ok(place)
    };
    let starts = (0..job.files.len()).map(&mut start).collect::<Result<_>>()?;
    Ok((starts, says))
}

/// Finds the last records that had no ending and are taken back, to be judged whole: all that are written, or none of
/// those; says which. Their files are read again from before them, if this run reads them.
fn take_back(job: &Job, marks: &Marks, saved: &Journal, retaken: &mut Retaken) -> Result<bool> {
    for last in &saved.carried {
        match marks.input_of(&last.mark)? {
            Some(input) => retaken.inputs.push(input),
            None => retaken.carried.push(last.clone()),
        }
    }
    let (mut inputs, mut carried, mut have_ended) = (Vec::new(), Vec::new(), true);
    for last in &saved.last_records {
        let input = marks.input_of(&last.mark)?;
        let known = input.map_or(Ok(None), |input| marks.of_input(input))?;
        match (input, known) {
            (Some(input), Some((mark, path))) => {
                have_ended &= marks::growth(mark, path, job.rules.keys.ending())? == Growth::Ended;
                inputs.push(input);
            }
            _ if last.text.is_empty() => return Ok(false),
            _ => carried.push(last.clone()),
        }
    }
    let named: Vec<(String, &PathBuf)> =
        job.output.iter().chain(&job.duplicates).map(|path| (outputs::key(path), path)).collect();
    let mut is_cut = false;
    for written in saved.outputs.iter().filter(|written| written.provisional > 0) {
        let path = named.iter().find(|(key, _)| *key == written.path);
        let length = path.map_or(Ok(None), |(_, path)| length_of(path))?;
        // A run that took them back may have ended before it was saved.
        is_cut |= length == Some(written.bytes);
        if length != Some(written.bytes) && length != Some(written.bytes + written.provisional) {
            return Ok(false);
        }
    }
    let are_taken_back = is_cut || !have_ended || !carried.is_empty();
    if are_taken_back {
        retaken.inputs.extend(inputs);
        retaken.carried.extend(carried);
    }
    Ok(are_taken_back)
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

/// Refuses an output that lacks what the state says is in it.
fn check_output(path: &Path, written: &[Written]) -> Result<()> {
    let key = outputs::key(path);
    let Some(Written { bytes: 1.., .. }) = written.iter().find(|written| written.path == key) else { return Ok(()) };
    let bytes = written.iter().find(|written| written.path == key).map_or(0, |written| written.bytes);
    let remedy = "restore it, or name another output, or start anew with another state";
    match length_of(path)? {
        Some(length) if length < bytes => {
            let problem = format!("is shorter than the {bytes} bytes that the state says were written");
            Err(Failure::at(path, format!("{problem}; {remedy}")))
        }
        Some(_) => Ok(()),
        None => {
            Err(Failure::at(path, format!("is gone, with {bytes} bytes that the state says were written; {remedy}")))
        }
    }
}

fn reopen(job: &Job, saved: &Journal, marks: Marks) -> Result<Outputs> {
    let ending = job.rules.keys.ending();
    let open = |path: &PathBuf| {
        let (how, say) = reopening(path, saved)?;
        if let Some(say) = say.filter(|_| !job.promise.quiet) {
            words::note(&format!("{}: {say}", path.display()));
        }
        Sink::reopen(path, ending, how)
    };
    let main = job.output.as_ref().map_or_else(|| Sink::stdout(ending), open)?;
    let duplicates = job.duplicates.as_ref().map(open).transpose()?;
    let mut outputs = Outputs::new(main, duplicates, marks);
    let named: Vec<String> = job.output.iter().chain(&job.duplicates).map(|path| outputs::key(path)).collect();
    let others = saved.outputs.iter().filter(|written| !named.contains(&written.path));
    outputs.others = others.map(|written| Written { is_open: false, ..written.clone() }).collect();
    Ok(outputs)
}

/// What to do with what an output has beyond what the state knows, and what to say about it.
fn reopening(path: &Path, saved: &Journal) -> Result<(Reopening, Option<String>)> {
    let key = outputs::key(path);
    let length = length_of(path)?.unwrap_or(0);
    let Some(written) = saved.outputs.iter().find(|written| written.path == key) else {
        let say = format!("has {length} bytes already, which are kept");
        return Ok((Reopening::Append, (length > 0).then_some(say)));
    };
    let more = length.saturating_sub(written.bytes);
    Ok(match (more, written.is_open && !saved.closed, saved.reads_pipe) {
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
        (_, false, _) if more == written.provisional => (Reopening::Cut(written.bytes), None),
        (_, false, _) => {
            (Reopening::Append, Some(format!("{more} bytes that others wrote behind the last run are kept")))
        }
    })
}

/// The length of an output, if it is there.
fn length_of(path: &Path) -> Result<Option<u64>> {
    let data = platform::stat(path).map_err(|error| Failure::io(path.display(), &error))?;
    Ok(data.map(|data| data.len()))
}
