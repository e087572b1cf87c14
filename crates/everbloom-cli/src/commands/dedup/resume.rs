//! How a run starts: afresh, or where an earlier one ended.

use super::Dedup;
use super::block_output::Mode;
use super::engine::Saving;
use super::judge::Judge;
use super::outputs::{Outputs, Sink};
use super::state::{self, Journal, Written};
use super::stats::Tally;
use super::window;
use crate::args::OnError;
use crate::failure::{Failure, Result};
use crate::input::{Position, Source};
use crate::record::{FaultWatch, KeyOptions, Layout};
use clap::ValueEnum;
use everbloom::internal::filter::Watch;
use everbloom::{AnyFilter, Plan, filters};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a run starts with.
pub(super) struct Resumption {
    pub(super) judge: Judge,
    /// What else the plan says of the filter.
    pub(super) notes: Vec<String>,
    pub(super) outputs: Outputs,
    pub(super) position: Position,
    pub(super) saving: Option<Saving>,
}

/// Reads the state if there is one, and opens the outputs accordingly.
pub(super) fn start(dedup: &Dedup, layout: &Layout) -> Result<Resumption> {
    let planned = dedup.plan_memory(layout)?;
    let notes = planned.notes.clone();
    let Some(path) = &dedup.state else {
        let judge = judge(dedup, planned.build()?, &Tally::default())?;
        let (outputs, position) = (fresh(dedup)?, Position::default());
        return Ok(Resumption { judge, notes, outputs, position, saving: None });
    };
    let mut journal = journal_of(dedup, &planned);
    journal.note = KeyOptions::of(&dedup.keys).to_note()?;
    let (judge, outputs, position) = match state::load(path)? {
        None => (judge(dedup, planned.build()?, &Tally::default())?, fresh(dedup)?, Position::default()),
        Some((memory, saved)) => {
            check_same(path, &journal, &saved)?;
            let position = position(dedup, path, &journal, &saved)?;
            let mut judge = judge(dedup, memory, &saved.tally)?;
            if let (Some(timeline), Some(clock)) = (&mut judge.timeline, &saved.clock) {
                timeline.resume(clock).map_err(|error| Failure::at(path, error))?;
            }
            judge.watch = judge.watch.resumed(saved.new_keys, saved.broken_at);
            // Before an output is opened: where the promise must not be broken, nothing is written.
            if let Some(failure) = judge.welcome() {
                return Err(failure);
            }
            (judge, reopen(dedup, &saved)?, position)
        }
    };
    let saving = Saving { path: path.clone(), interval: dedup.checkpoint, journal };
    // What cannot be saved is better known before the input is read; and from here on the state says
    // which inputs it is in the middle of.
    saving.save(&judge, &outputs, position, false)?;
    Ok(Resumption { judge, notes, outputs, position, saving: Some(saving) })
}

/// The filter, watched from here on.
fn judge(dedup: &Dedup, mut memory: AnyFilter, tally: &Tally) -> Result<Judge> {
    let timeline = dedup.window_time().map(|window| window::timeline(window, &mut memory)).transpose()?;
    let watch = match &timeline {
        Some(timeline) => Watch::over_window(&memory.promise(), timeline),
        None => filters::watch(memory.as_ref()),
    };
    let is_exact_first = filters::kind(memory.spec())?.can.exact_first;
    let arrivals = is_exact_first.then(|| memory.status().arrivals);
    Ok(Judge {
        exact: arrivals.filter(|arrivals| *arrivals == memory.exact_arrivals()),
        memory,
        timeline,
        watch,
        faults: FaultWatch::new(dedup.keys.on_error, OnError::Keep),
        spot_check: None,
        promise: dedup.promise,
        remedy: dedup.remedy(),
        progress: None,
        records: tally.items,
        saved: Instant::now(),
        saved_records: tally.items,
    })
}

/// What this call would save.
fn journal_of(dedup: &Dedup, planned: &Plan) -> Journal {
    Journal {
        filter: planned.spec.to_string(),
        seed: dedup.goal.wanted.seed,
        keys: choices(dedup),
        note: String::new(),
        inputs: dedup.files.iter().map(|path| absolute(path)).collect(),
        input: 0,
        offset: 0,
        finished: false,
        output: None,
        duplicates: None,
        tally: Tally::default(),
        clock: None,
        new_keys: 0,
        broken_at: None,
    }
}

/// The options that must be the same for two runs to share a state, as they are typed.
fn choices(dedup: &Dedup) -> String {
    let (keys, importance, options) = (&dedup.keys, &dedup.importance, dedup.options());
    let mut typed = vec![keys.key.as_ref().map_or("whole lines".to_string(), |key| format!("--key {key}"))];
    let flags = [
        (keys.csv, "--csv"),
        (keys.json, "--json"),
        (keys.header, "--header"),
        (keys.ignore_case, "--ignore-case"),
        (keys.null, "--null"),
        (options.mode == Mode::Flag, "--flag"),
        (options.mode == Mode::OnlyDuplicates, "--only-duplicates"),
        (options.mode == Mode::Count, "--count"),
    ];
    typed.extend(flags.iter().filter(|(given, _)| *given).map(|(_, flag)| flag.to_string()));
    let default = if keys.csv { b',' } else { b'\t' };
    let delimiter = keys.delimiter.filter(|delimiter| *delimiter != default);
    typed.extend(delimiter.map(|delimiter| format!("--delimiter {:?}", char::from(delimiter))));
    if let (Some(field), Some(max)) = (&importance.importance, importance.importance_max) {
        let scale = value_name(importance.importance_scale);
        typed.push(format!("--importance {field} --importance-max {max} --importance-scale {scale}"));
    }
    typed.extend(dedup.window_time().map(|window| format!("--window {window:?}")));
    typed.extend(dedup.time.as_ref().map(|time| format!("--time {time}")));
    typed.push(format!("--on-error {}", value_name(options.on_error)));
    typed.join(" ")
}

/// A choice as it is typed.
fn value_name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

/// Refuses a state that other choices made.
fn check_same(path: &Path, now: &Journal, saved: &Journal) -> Result<()> {
    let differs = |what: &str, saved: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
        let advice = "repeat the options it was saved with, or name another state file";
        Failure::at(path, format!("the state was saved with {what} {saved}, not {now}; {advice}"))
    };
    if saved.filter != now.filter {
        return Err(differs("filter", &saved.filter, &now.filter));
    }
    if saved.seed != now.seed {
        return Err(differs("seed", &saved.seed, &now.seed));
    }
    if saved.keys != now.keys {
        return Err(differs("the options", &saved.keys, &now.keys));
    }
    Ok(())
}

/// Where to go on reading.
///
/// The same files: where the last run stopped, so that a log that has grown is read from there on.
/// Other files after a finished run, or a pipe, whose past is gone: from the beginning.
fn position(dedup: &Dedup, path: &Path, now: &Journal, saved: &Journal) -> Result<Position> {
    let is_same = saved.inputs == now.inputs && dedup.reads_only_files();
    let was_interrupted = !saved.finished && !saved.inputs.is_empty() && saved.inputs.iter().all(|name| name != "-");
    if !is_same {
        if was_interrupted {
            let inputs = saved.inputs.join(" ");
            return Err(Failure::at(
                path,
                format!("the state is in the middle of {inputs}; name the same files to go on, or another state file"),
            ));
        }
        return Ok(Position::default());
    }
    let has_shrunk = dedup
        .files
        .get(saved.input)
        .and_then(|file| file.metadata().ok())
        .is_some_and(|data| !Source::is_packed(&dedup.files[saved.input]) && data.len() < saved.offset);
    match (has_shrunk, saved.finished) {
        (false, _) => Ok(Position { input: saved.input, offset: saved.offset }),
        // A log that was rotated is a new one.
        (true, true) => Ok(Position::default()),
        (true, false) => Err(Failure::at(
            &dedup.files[saved.input],
            format!(
                "is shorter than the {} bytes that the state says were read; restore it, or remove the state",
                saved.offset
            ),
        )),
    }
}

fn fresh(dedup: &Dedup) -> Result<Outputs> {
    let main = dedup.output.as_deref().map_or_else(Sink::stdout, Sink::create)?;
    let duplicates = dedup.duplicates.as_deref().map(Sink::create).transpose()?;
    Ok(Outputs { main, duplicates, tally: Tally::default() })
}

fn reopen(dedup: &Dedup, saved: &Journal) -> Result<Outputs> {
    let open = |path: &PathBuf, written: &Option<Written>| reopen_file(dedup, path, written.as_ref(), saved.finished);
    let main = dedup.output.as_ref().map_or_else(Sink::stdout, |path| open(path, &saved.output))?;
    let duplicates = dedup.duplicates.as_ref().map(|path| open(path, &saved.duplicates)).transpose()?;
    Ok(Outputs { main, duplicates, tally: saved.tally })
}

fn reopen_file(dedup: &Dedup, path: &Path, written: Option<&Written>, finished: bool) -> Result<Sink> {
    match written {
        Some(written) if written.path == absolute(path) => {
            // What a pipe brought since the last checkpoint is nowhere but in the output.
            if dedup.reads_only_files() {
                Sink::resume(path, written.bytes)
            } else {
                Sink::append(path, dedup.keys.ending())
            }
        }
        Some(written) if !finished && dedup.reads_only_files() => Err(Failure::at(
            path,
            format!("the state belongs to the output {}; name that one, or another state file", written.path),
        )),
        _ => Sink::create(path),
    }
}

fn absolute(path: &Path) -> String {
    if crate::input::is_stdin(path) {
        "-".to_string()
    } else {
        std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
    }
}
