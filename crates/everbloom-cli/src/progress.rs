//! How far a command is, on stderr, for people who watch: never where nobody does, nor over lines that they read.
//!
//! Over files there is a bar with the time left, over a pipe the bytes and the rate, and while something is worked out
//! the time that it takes. Nothing is shown before half a second has passed.

use crate::report;
use crate::report::paper::Paper;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the bar changes.
const INTERVAL: Duration = Duration::from_millis(500);

/// Narrower terminals have no room for a bar beside what is said.
const ROOM_FOR_BAR: usize = 80;

/// What stands before a message at most: `100 %, 59m left, `, or the bytes and the time.
const BEFORE_MESSAGE: usize = 20;

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
        // What is said fits into one line: the bar gives way first, then the last parts of the message.
        let template = match total {
            Some(_) if Paper::of_stderr().width() < ROOM_FOR_BAR => "{percent} %{left}{wide_msg}",
            Some(_) => "{wide_bar} {percent} %{left}{msg}",
            None => "{spinner} {bytes} after {elapsed}{wide_msg}",
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
            let message = say(self.started.elapsed().as_secs_f64());
            self.bar.set_message(format!(", {}", fitting(&message, Paper::of_stderr().width())));
            self.bar.set_position(self.consumed.load(Ordering::Relaxed));
        }
    }

    /// Shows how far things are, with the number of records and their rate.
    pub(crate) fn show_records(&mut self, records: u64) {
        self.show(|seconds| {
            let rate = report::thousands((records as f64 / seconds) as u64);
            format!("{rate} lines/s, {}", report::counted(records, "line"))
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

/// As many parts of a message as fit on a line: a number without its last digits would be another one.
fn fitting(message: &str, columns: usize) -> &str {
    let room = if columns < ROOM_FOR_BAR { columns.saturating_sub(BEFORE_MESSAGE) } else { usize::MAX };
    let ends = message.match_indices(", ").map(|(end, _)| end).chain([message.len()]);
    let last = ends.filter(|end| message[..*end].chars().count() <= room).last();
    &message[..last.unwrap_or_default()]
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("left", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // Nothing is known of it before something is done.
        if state.pos() > 0 && state.elapsed() >= INTERVAL {
            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
        }
    })
}

/// The size of the inputs as they are stored, if all are files.
fn total_bytes(inputs: &[PathBuf]) -> Option<u64> {
    let size = |path: &PathBuf| path.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
    if inputs.is_empty() { None } else { inputs.iter().map(size).sum() }
}

/// A line that says what is being worked out, for how long and how far; gone when it is dropped.
pub(crate) struct Working {
    shown: Option<(Sender<()>, JoinHandle<()>)>,
    done: Arc<AtomicU64>,
}

impl Working {
    /// Says so, if somebody watches and it takes more than a moment.
    pub(crate) fn on(what: &'static str, screen: Screen) -> Self {
        Self::over(what, 0, screen)
    }

    /// Says what is being worked out, over so many steps, if it is known how many, with the rate and the time left.
    pub(crate) fn over(what: &'static str, steps: u64, screen: Screen) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&done);
        let shown = screen.is_watched().then(|| {
            let (done, is_done) = channel();
            let show = move || {
                if is_done.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let template = match steps {
                    0 => "{spinner} {wide_msg}",
                    _ => "{spinner} {percent} %{left}, {wide_msg}",
                };
                let bar = if steps == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(steps) };
                // The time counts from the start, not from when it was first shown.
                let (bar, started) =
                    (bar.with_style(style(template)).with_elapsed(INTERVAL), Instant::now() - INTERVAL);
                *on_screen() = Some(bar.clone());
                loop {
                    let (seconds, done) = (started.elapsed().as_secs_f64(), counter.load(Ordering::Relaxed));
                    bar.set_message(match done {
                        0 => format!("{what}, {seconds:.0}s"),
                        done => format!("{what}, {}/s", report::thousands((done as f64 / seconds) as u64)),
                    });
                    bar.set_position(done);
                    bar.tick();
                    if is_done.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                        break;
                    }
                }
                *on_screen() = None;
                bar.finish_and_clear();
            };
            // Where no thread is to be had, nothing is shown.
            Some((done, std::thread::Builder::new().spawn(show).ok()?))
        });
        Working { shown: shown.flatten(), done }
    }

    /// So many steps more are done.
    pub(crate) fn add(&self, steps: usize) {
        self.done.fetch_add(steps as u64, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_between_their_parts() {
        let message = "1,004,775 lines/s, 502,697 lines";
        assert_eq!((fitting(message, 100), fitting(message, 40)), (message, "1,004,775 lines/s"));
        assert_eq!((fitting(message, 55), fitting(message, 30)), (message, ""));
    }
}
