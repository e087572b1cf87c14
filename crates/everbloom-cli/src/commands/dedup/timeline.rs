//! Windows of time: when the filter's generations turn.
//!
//! A generation is a fixed part of the window, counted from 1970, so that runs of the same stream turn
//! alike. The newest time so far is what counts as now: a record with an earlier one arrives late, and
//! is judged and remembered as if it came now. So nothing inside the window is ever forgotten; what is
//! late is forgotten later.

use super::memory::Memory;
use crate::failure::{Failure, Result};
use crate::record::{Batch, time};
use everbloom::{Filter, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Turns the generations of a filter.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    window: Duration,
    /// Microseconds of a generation.
    generation: i64,
    /// Arrivals of a window that the filter is planned for.
    planned: u64,
    pub(super) clock: Clock,
}

/// What a later run needs to go on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Clock {
    /// The newest time so far, in microseconds since 1970.
    newest: Option<i64>,
    /// Arrivals of the present generation, and of those before it that are in the window.
    arrivals: VecDeque<u64>,
    late: u64,
    most_arrivals: u64,
    highest_fpr: f64,
}

/// What a window of time has to report.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WindowStats {
    window_seconds: f64,
    /// Arrivals of a window that the filter was planned for, if they come evenly.
    planned_arrivals: u64,
    /// The most that came.
    pub(super) most_arrivals: u64,
    /// The highest rate of false positives, from the filter's contents.
    pub(super) highest_fpr: f64,
    /// Records with a time before that of an earlier record.
    late: u64,
}

impl Timeline {
    /// The timeline of a filter that was planned for a window of time.
    pub(super) fn new(window: Duration, memory: &mut Memory) -> Result<Self> {
        let unfit = || Failure::new("the filter has no window");
        let Memory::Filter(filter) = memory else { return Err(unfit()) };
        let planned = filter.spec().number("window")?.ok_or_else(unfit)?;
        let generations = filter.as_windowed().ok_or_else(unfit)?.generations();
        // Rounded up, so that the generations together are never shorter than the window.
        let generation = window.as_micros().div_ceil(generations.into()).max(1);
        let arrivals = VecDeque::from(vec![0; generations as usize + 1]);
        Ok(Timeline {
            window,
            generation: i64::try_from(generation).map_err(|_| Failure::new("the window is too long; try 24h"))?,
            planned,
            clock: Clock { arrivals, ..Clock::default() },
        })
    }

    /// Goes on where an earlier run ended.
    pub(super) fn resume(&mut self, clock: Clock) {
        if clock.arrivals.len() == self.clock.arrivals.len() {
            self.clock = clock;
        }
    }

    /// Judges the keys of a batch in the generations that they belong to.
    pub(super) fn observe(&mut self, memory: &mut Memory, batch: &Batch, verdicts: &mut Vec<Verdict>) -> Result<()> {
        let Memory::Filter(filter) = memory else { return memory.observe(batch, verdicts) };
        let (hashes, now) = (batch.hashes(), time::now());
        verdicts.resize(hashes.len(), Verdict::Distinct);
        let time_of = |index: usize| batch.times().get(index).copied().unwrap_or(now);
        let mut start = 0;
        while start < hashes.len() {
            let turns_at = self.turn_to(filter.as_mut(), time_of(start));
            let mut end = start;
            while end < hashes.len() && time_of(end) < turns_at {
                self.note(time_of(end), !batch.times().is_empty());
                end += 1;
            }
            let importances = batch.importances().skip(start);
            filter.observe_hashes(&hashes[start..end], importances, &mut verdicts[start..end]);
            self.clock.arrivals[0] += (end - start) as u64;
            start = end;
        }
        Ok(())
    }

    fn note(&mut self, time: i64, may_be_late: bool) {
        let newest = self.clock.newest.get_or_insert(time);
        self.clock.late += u64::from(may_be_late && time < *newest);
        *newest = time.max(*newest);
    }

    /// Turns the filter to the generation of a time, and says when the next one begins.
    fn turn_to(&mut self, filter: &mut dyn Filter, time: i64) -> i64 {
        let generation_of = |time: i64| time.div_euclid(self.generation);
        let newest = self.clock.newest.unwrap_or(time);
        let (before, after) = (generation_of(newest), generation_of(time.max(newest)));
        if after > before {
            self.weigh(filter);
            let turns = after.abs_diff(before);
            if let Some(windowed) = filter.as_windowed() {
                windowed.advance_by(turns);
            }
            for _ in 0..turns.min(self.clock.arrivals.len() as u64) {
                self.clock.arrivals.rotate_right(1);
                self.clock.arrivals[0] = 0;
            }
        }
        after.saturating_add(1).saturating_mul(self.generation)
    }

    /// Takes note of how much came, and of what that did where it was more than planned.
    fn weigh(&mut self, filter: &dyn Filter) {
        let arrivals: u64 = self.clock.arrivals.iter().sum();
        self.clock.most_arrivals = self.clock.most_arrivals.max(arrivals);
        let evenly = self.planned.div_ceil(self.clock.arrivals.len() as u64 - 1);
        // Looking takes a pass over the filter, so it is only done where the forecast no longer holds.
        if self.clock.arrivals[0] > evenly || arrivals > self.planned {
            self.clock.highest_fpr = self.clock.highest_fpr.max(filter.status().estimated_fpr);
        }
    }

    /// What there is to report at the end.
    pub(super) fn stats(&mut self, memory: &Memory) -> WindowStats {
        if let Memory::Filter(filter) = memory {
            self.weigh(filter.as_ref());
            self.clock.highest_fpr = self.clock.highest_fpr.max(filter.status().estimated_fpr);
        }
        WindowStats {
            window_seconds: self.window.as_secs_f64(),
            planned_arrivals: self.planned,
            most_arrivals: self.clock.most_arrivals,
            highest_fpr: self.clock.highest_fpr,
            late: self.clock.late,
        }
    }
}

impl WindowStats {
    /// Part of a line for people.
    pub(super) fn summary(&self) -> String {
        use crate::report::{percent, thousands};
        let over = if self.most_arrivals > self.planned_arrivals { " (more than planned)" } else { "" };
        format!(
            "at most {} in a window{over}, planned for {}; highest fpr {}; {} late",
            thousands(self.most_arrivals),
            thousands(self.planned_arrivals),
            percent(self.highest_fpr),
            thousands(self.late)
        )
    }
}
