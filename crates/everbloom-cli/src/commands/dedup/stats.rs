//! What happened, in numbers.

use super::window::WindowStats;
use crate::report;
use everbloom::{AnyFilter, Exact, filters};
use serde::{Deserialize, Serialize};

/// Every record is written, dropped or skipped: `items = written + dropped + skipped`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Records read.
    pub(super) items: u64,
    /// Records written to the output.
    pub(super) written: u64,
    /// Records not written because of what the filter said.
    pub(super) dropped: u64,
    /// Records that the filter called repeats.
    pub(super) repeats: u64,
    /// Records without a key, skipped or not.
    pub(super) errors: u64,
    /// Records without a key that were not written.
    pub(super) skipped: u64,
    /// Bytes read, unpacked.
    pub(super) bytes: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.written += other.written;
        self.dropped += other.dropped;
        self.repeats += other.repeats;
        self.errors += other.errors;
        self.skipped += other.skipped;
        self.bytes += other.bytes;
    }
}

/// The document of `--stats`.
#[derive(Debug, Serialize)]
pub(super) struct Stats {
    #[serde(flatten)]
    tally: Tally,
    seconds: f64,
    threads: usize,
    filter: String,
    memory_bits: u64,
    /// Whether the memory grows with the keys.
    grows: bool,
    predicted_fpr: f64,
    predicted_fnr: Option<f64>,
    fill: Option<f64>,
    estimated_fpr: f64,
    /// The probability that any key was taken for another.
    collision_probability: Option<f64>,
    /// Whether all of the input was read.
    finished: bool,
    /// What else the plan says of the filter.
    pub(super) notes: Vec<String>,
    /// What became of a window of time.
    #[serde(flatten)]
    window: Option<WindowStats>,
}

impl Stats {
    pub(super) fn new(tally: Tally, filter: &AnyFilter, seconds: f64, threads: usize, finished: bool) -> Self {
        let (promise, status) = (filter.promise(), filter.status());
        let exact = filter.downcast_ref::<Exact>();
        let grows = filters::kind(filter.spec()).is_ok_and(|kind| kind.can.grow);
        Stats {
            tally,
            seconds,
            threads,
            filter: filter.spec().to_string(),
            memory_bits: filter.memory_bits(),
            grows,
            predicted_fpr: if exact.is_some() { status.estimated_fpr } else { promise.predicted_fpr },
            predicted_fnr: promise.predicted_fnr,
            fill: exact.is_none().then_some(status.fill),
            estimated_fpr: status.estimated_fpr,
            collision_probability: exact.map(Exact::collision_probability),
            finished,
            notes: Vec::new(),
            window: None,
        }
    }

    /// With what a window of time and the plan have to report.
    pub(super) fn with(self, window: Option<WindowStats>, notes: Vec<String>) -> Self {
        Stats { window, notes, ..self }
    }

    /// One line for people.
    pub(super) fn summary(&self) -> String {
        let Tally { items, written, dropped, errors, bytes, .. } = self.tally;
        let rate = bytes as f64 / 1e6 / self.seconds.max(1e-9);
        let memory = match self.collision_probability {
            Some(collision) => format!(
                "exact, grown to {}, any collision {}",
                report::size(self.memory_bits),
                report::percent(collision)
            ),
            None => format!(
                "{}, predicted fpr {}, fill {}, estimated fpr {}",
                self.filter,
                report::percent(self.predicted_fpr),
                report::percent(self.fill.unwrap_or_default()),
                report::percent(self.estimated_fpr)
            ),
        };
        let window = self.window.as_ref().map_or(String::new(), |window| format!("; {}", window.summary()));
        format!(
            "{} items, {} written, {} dropped, {} errors; {} bytes in {:.2} s ({rate:.0} MB/s); {memory}{window}",
            report::thousands(items),
            report::thousands(written),
            report::thousands(dropped),
            report::thousands(errors),
            report::thousands(bytes),
            self.seconds,
        )
    }
}
