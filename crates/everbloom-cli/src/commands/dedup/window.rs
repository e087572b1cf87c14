//! Windows of time: which times the records have, and what is reported of the window.

use crate::failure::{Failure, Result};
use crate::record::{Batch, time};
use crate::report::{percent, thousands};
use everbloom::internal::filter::{Timeline, Times, WindowStatus};
use everbloom::{AnyFilter, Verdict};
use serde::Serialize;
use std::time::Duration;

/// The timeline of a filter that was planned for a window of time.
pub(super) fn timeline(window: Duration, filter: &mut AnyFilter) -> Result<Timeline> {
    let windowed = filter
        .as_windowed()
        .filter(|windowed| windowed.window() > 0)
        .ok_or_else(|| Failure::new("the filter has no window; leave --filter out to get one that has"))?;
    Ok(Timeline::new(window, windowed.generations(), windowed.window())?)
}

/// Judges the keys of a batch in the generations that their times belong to.
pub(super) fn observe(
    timeline: &mut Timeline,
    filter: &mut AnyFilter,
    batch: &Batch,
    verdicts: &mut Vec<Verdict>,
) -> Result<()> {
    let times = if batch.times().is_empty() { Times::Now(time::now()) } else { Times::Each(batch.times()) };
    verdicts.resize(batch.hashes().len(), Verdict::Distinct);
    Ok(timeline.observe_hashes(filter.as_mut(), batch.hashes(), batch.importances(), times, verdicts)?)
}

/// What a window of time has to report.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WindowStats {
    window_seconds: f64,
    /// Arrivals of a window that the filter was planned for, if they come evenly.
    planned_arrivals: u64,
    /// The most that came.
    most_arrivals: u64,
    /// The highest rate of false positives, from the filter's contents.
    highest_fpr: f64,
    /// Records with a time before that of an earlier record.
    late: u64,
}

impl WindowStats {
    /// The report at the end.
    pub(super) fn new(timeline: &mut Timeline, filter: &AnyFilter) -> Self {
        let WindowStatus { planned_arrivals, most_arrivals, highest_fpr, late, .. } = timeline.status(filter.as_ref());
        let window_seconds = timeline.window().as_secs_f64();
        WindowStats { window_seconds, planned_arrivals, most_arrivals, highest_fpr, late }
    }

    /// Part of a line for people.
    pub(super) fn summary(&self) -> String {
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
