//! How far a command is, on stderr, for people who watch: never where nobody does, nor over lines that they read.
//!
//! Over files there is a bar with the time left, over a pipe the bytes and the rate, and while something is worked out
//! the time that it takes. Nothing is shown before half a second has passed.

use crate::report;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the bar changes.
const INTERVAL: Duration = Duration::from_millis(500);

/// What is on the screen while a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    /// Nothing: results come at the end.
    Free,
    /// Lines of results, if stdout is the screen.
    Lines,
    /// Whatever there is, nothing is to be added to it.
    Quiet,
}

impl Screen {
    /// What it is for a command that writes lines to stdout, or may not say anything.
    pub(crate) fn of(writes_lines: bool, quiet: bool) -> Self {
        match (quiet, writes_lines) {
            (true, _) => Screen::Quiet,
            (_, true) => Screen::Lines,
            _ => Screen::Free,
        }
    }

    /// Whether somebody watches stderr, and nothing else is written to the same screen.
    fn is_watched(self) -> bool {
        let is_free = match self {
            Screen::Quiet => false,
            Screen::Lines => !std::io::stdout().is_terminal(),
            Screen::Free => true,
        };
        is_free && std::io::stderr().is_terminal()
    }
}

/// The bar; gone from the screen when it is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    consumed: Arc<AtomicU64>,
    started: Instant,
    shown: Instant,
}

impl Bar {
    /// A bar over what was `consumed` of these inputs, if somebody watches.
    pub(crate) fn for_terminal(consumed: Arc<AtomicU64>, inputs: &[PathBuf], screen: Screen) -> Option<Self> {
        screen.is_watched().then(|| Self::new(consumed, total_bytes(inputs)))
    }

    fn new(consumed: Arc<AtomicU64>, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{wide_bar} {percent} %, {eta} left, {msg}",
            None => "{spinner} {bytes} after {elapsed}, {msg}",
        };
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style(template));
        *on_screen() = Some(bar.clone());
        let now = Instant::now();
        Bar { bar, consumed, started: now, shown: now }
    }

    /// Shows how far things are, now and then; `say` gets the seconds since the start.
    pub(crate) fn show(&mut self, say: impl FnOnce(f64) -> String) {
        if self.shown.elapsed() >= INTERVAL {
            self.shown = Instant::now();
            self.bar.set_position(self.consumed.load(Ordering::Relaxed));
            self.bar.set_message(say(self.started.elapsed().as_secs_f64()));
        }
    }

    /// The same with the number of records and their rate.
    pub(crate) fn show_records(&mut self, records: u64) {
        self.show(|seconds| {
            let (lines, rate) = (report::thousands(records), report::thousands((records as f64 / seconds) as u64));
            format!("{lines} lines, {rate} lines/s")
        });
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        *on_screen() = None;
        self.bar.finish_and_clear();
    }
}

/// The bar that is on the screen.
static ON_SCREEN: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn on_screen() -> MutexGuard<'static, Option<ProgressBar>> {
    ON_SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something on the screen while no bar is there; it must not come here again.
pub(crate) fn aside<T>(act: impl FnOnce() -> T) -> T {
    let bar = on_screen().clone();
    match bar {
        Some(bar) => bar.suspend(act),
        None => act(),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// The size of the inputs as they are stored, if all are files.
fn total_bytes(inputs: &[PathBuf]) -> Option<u64> {
    let size = |path: &PathBuf| path.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
    if inputs.is_empty() { None } else { inputs.iter().map(size).sum() }
}

/// A line that says what is being worked out, and for how long; gone when it is dropped.
pub(crate) struct Working {
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Working {
    /// Says so, if somebody watches and it takes more than a moment.
    pub(crate) fn on(what: &'static str, screen: Screen) -> Self {
        let shown = screen.is_watched().then(|| {
            let (done, is_done) = channel();
            let show = move || {
                if is_done.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let bar = ProgressBar::new_spinner().with_style(style("{spinner} {msg}, {elapsed}")).with_message(what);
                // The time counts from the start, not from when it was first shown.
                let bar = bar.with_elapsed(INTERVAL);
                *on_screen() = Some(bar.clone());
                bar.enable_steady_tick(INTERVAL);
                let _ = is_done.recv();
                *on_screen() = None;
                bar.finish_and_clear();
            };
            // Where no thread is to be had, nothing is shown.
            Some((done, std::thread::Builder::new().spawn(show).ok()?))
        });
        Working { shown: shown.flatten() }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.shown.take() {
            drop(done);
            let _ = thread.join();
        }
    }
}
