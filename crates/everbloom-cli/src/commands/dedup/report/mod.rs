//! What is reported in the end: totals, the document of --stats, and a summary for people.

mod stats;

pub(super) use stats::Tally;

use super::job::{Job, Mode};
use super::run::engine::Finished;
use super::run::judge::Judge;
use super::run::window::WindowStats;
use crate::failure::Result;
use crate::output;
use crate::report::audit::Audited;
use crate::report::{counted, json, print, words};
use everbloom::kind::{Standing, Timeline};
use stats::{Stats, Told, Totals};
use std::time::Instant;

/// Says so if lines came so late that a window of their own would not have known those before them: files were read in
/// another order than they were written in, or their times are none.
fn note_order(timeline: Option<&Timeline>, quiet: bool) {
    let outdated = timeline.map_or(0, Timeline::outdated);
    if outdated > 0 && !quiet {
        words::note(&format!(
            "{} came late by more than the window, judged as if together with those before; name \
             the file with the oldest lines first, and the field of the time with --time",
            counted(outdated, "line")
        ));
    }
}

/// Prints, writes and says what was asked for.
pub(super) fn report(
    job: &Job,
    ended: &mut Finished,
    notes: Vec<String>,
    started: Instant,
    finished: bool,
) -> Result<()> {
    let tally = ended.outputs.tally;
    if job.mode == Mode::Count && ended.failure.is_none() {
        let totals = Totals::of(&tally);
        print(job.format, &totals, || totals.table())?;
    }
    note_order(ended.judge.timeline.as_ref(), job.promise.quiet);
    if job.stats.is_none() && !job.wants_summary() {
        return Ok(());
    }
    let seconds = started.elapsed().as_secs_f64();
    let Judge { memory, timeline, watch, spot_check, .. } = &mut ended.judge;
    let window = match (timeline, memory.own()) {
        (Some(timeline), Some(memory)) => Some(WindowStats::new(timeline, memory)),
        _ => None,
    };
    let missed = spot_check.take().map(|check| check.missed());
    let look = job.stats.is_some() || watch.standing() != Standing::Kept;
    let tallies = (tally, ended.outputs.total());
    let audit = ended.judge.audit().map(|audit| Audited::of(&audit.report()));
    let mut stats = Stats::new(tallies, &ended.judge, look, seconds, job.threads(), finished);
    (stats.window, stats.notes, stats.audit) = (window, notes, audit);
    if let Some(path) = &job.stats {
        output::replace_text(path, &json(&stats)?)?;
    }
    if job.wants_summary() {
        // After a failover that lost lines, nothing is known of their repeats.
        let memory = &ended.judge.memory;
        let has_lost = memory.lost().is_some_and(|lost| lost != (0, false));
        let window = memory.window(job.rules.window).filter(|_| !has_lost);
        let is_shared = memory.on_servers().is_some();
        let told = Told { mode: job.mode, window, is_shared, forgets: has_lost || ended.judge.forgets(), missed };
        words::say(stats.summary(&told));
        stats.notes.iter().for_each(|note| words::note(note));
    }
    Ok(())
}
