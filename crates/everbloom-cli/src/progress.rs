//! A bar on stderr over the bytes of the inputs, for people who watch.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the bar changes.
const INTERVAL: Duration = Duration::from_millis(500);

/// The bar; gone from the screen when it is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    consumed: Arc<AtomicU64>,
    started: Instant,
    shown: Instant,
}

impl Bar {
    /// A bar over what was `consumed` of these inputs, if stderr is a terminal and stdout is not filled
    /// with lines.
    pub(crate) fn for_terminal(consumed: Arc<AtomicU64>, inputs: &[PathBuf], stdout_is_free: bool) -> Option<Self> {
        let watched = std::io::stderr().is_terminal() && (stdout_is_free || !std::io::stdout().is_terminal());
        watched.then(|| Self::new(consumed, total_bytes(inputs)))
    }

    fn new(consumed: Arc<AtomicU64>, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{wide_bar} {bytes}/{total_bytes} {msg}",
            None => "{spinner} {bytes} {msg}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style);
        let now = Instant::now();
        Bar { bar, consumed, started: now, shown: now }
    }

    /// Does something on the screen while the bar is not there.
    pub(crate) fn hidden<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }

    /// Shows how far things are, now and then; `say` gets the seconds since the start.
    pub(crate) fn show(&mut self, say: impl FnOnce(f64) -> String) {
        if self.shown.elapsed() >= INTERVAL {
            self.shown = Instant::now();
            self.bar.set_position(self.consumed.load(Ordering::Relaxed));
            self.bar.set_message(say(self.started.elapsed().as_secs_f64()));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The size of the inputs as they are stored, if all are files.
fn total_bytes(inputs: &[PathBuf]) -> Option<u64> {
    let size = |path: &PathBuf| path.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
    if inputs.is_empty() { None } else { inputs.iter().map(size).sum() }
}
