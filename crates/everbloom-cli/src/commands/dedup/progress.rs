//! A bar for people who watch.

use super::memory::Memory;
use crate::report;
use everbloom::Verdict;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the bar changes; looking at a filter's fill takes a pass over it.
const INTERVAL: Duration = Duration::from_millis(500);

/// The bar, and what it counts.
pub(super) struct Progress {
    bar: ProgressBar,
    consumed: Arc<AtomicU64>,
    items: u64,
    repeats: u64,
    started: Instant,
    shown: Instant,
}

impl Progress {
    /// A bar over `total` stored bytes, if stderr is a terminal and stdout is not filled with lines.
    pub(super) fn for_terminal(consumed: Arc<AtomicU64>, total: Option<u64>, stdout_is_free: bool) -> Option<Self> {
        let watched = std::io::stderr().is_terminal() && (stdout_is_free || !std::io::stdout().is_terminal());
        watched.then(|| Self::new(consumed, total))
    }

    fn new(consumed: Arc<AtomicU64>, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{wide_bar} {bytes}/{total_bytes} {msg}",
            None => "{spinner} {bytes} {msg}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style);
        let now = Instant::now();
        Progress { bar, consumed, items: 0, repeats: 0, started: now, shown: now }
    }

    /// Takes note of a batch, and shows the state of things now and then.
    pub(super) fn show(&mut self, memory: &Memory, verdicts: &[Verdict]) {
        self.items += verdicts.len() as u64;
        self.repeats += verdicts.iter().filter(|verdict| !verdict.is_distinct()).count() as u64;
        if self.shown.elapsed() < INTERVAL {
            return;
        }
        self.shown = Instant::now();
        let rate = self.items as f64 / self.started.elapsed().as_secs_f64();
        let error = match memory {
            Memory::Filter(filter) => filter.status().estimated_fpr,
            Memory::Exact(set, _) => set.collision_probability(),
        };
        self.bar.set_position(self.consumed.load(Ordering::Relaxed));
        self.bar.set_message(format!(
            "{} lines/s, {} repeats, {}, error now {}",
            report::thousands(rate as u64),
            report::thousands(self.repeats),
            report::size(memory.memory_bits()),
            report::percent(error),
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
