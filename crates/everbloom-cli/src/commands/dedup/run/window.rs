//! Windows of time: which times the records have, and what is reported of the window.

use crate::failure::{Failure, Result};
use crate::record::{Batch, time};
use crate::report::{counted, thousands};
use everbloom::AnyFilter;
use everbloom::kind::{Timeline, Times, WindowStatus};
use serde::Serialize;
use std::time::Duration;

/// The timeline of a filter that was planned for a window of time.
pub(crate) fn timeline(window: Duration, filter: &mut AnyFilter) -> Result<Timeline> {
    let windowed = filter
        .as_windowed()
        .filter(|windowed| windowed.window() > 0)
        .ok_or_else(|| Failure::new("the filter has no window; leave --filter out to get one that has"))?;
    Ok(Timeline::new(window, windowed.generations(), windowed.window())?)
}

/// When the records of a batch came: at the time they give, or now.
pub(crate) fn times(batch: &Batch) -> Times<'_> {
    if batch.times().is_empty() { Times::Now(time::now()) } else { Times::Each(batch.times()) }
}

/// What a window of time has to report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WindowStats {
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
    pub(crate) fn new(timeline: &mut Timeline, filter: &AnyFilter) -> Self {
        let WindowStatus { planned_arrivals, most_arrivals, highest_fpr, late, .. } = timeline.status(filter.as_ref());
        let window_seconds = timeline.window().as_secs_f64();
        WindowStats { window_seconds, planned_arrivals, most_arrivals, highest_fpr, late }
    }

    /// A sentence for people.
    pub(crate) fn summary(&self) -> String {
        let late = match self.late {
            0 => String::new(),
            late => format!(
                " {} came late: with a time before that of an earlier line, together with which they count as arriving.",
                thousands(late)
            ),
        };
        let (most, planned) = (counted(self.most_arrivals, "line"), thousands(self.planned_arrivals));
        match self.most_arrivals > self.planned_arrivals {
            true => format!("{most} came in a window, and {planned} were planned for.{late}"),
            false => format!("At most {most} came in a window, of {planned} planned for.{late}"),
        }
    }
}
