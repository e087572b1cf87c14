//! A bar with the time left, for people who watch.

use everbloom_lab::suite::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// A bar over the expected seconds of work, or nothing if nobody watches.
pub(super) struct Bar {
    bar: Option<ProgressBar>,
    done: Mutex<f64>,
}

impl Bar {
    pub(super) fn for_terminal() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{wide_bar} {percent} % after {elapsed}, {eta} left";
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(0).with_style(style)
        });
        Bar { bar, done: Mutex::new(0.0) }
    }
}

impl Progress for Bar {
    fn start(&self, seconds: f64) {
        if let Some(bar) = &self.bar {
            bar.set_length((seconds * 1000.0) as u64);
            bar.enable_steady_tick(Duration::from_millis(500));
        }
    }

    fn advance(&self, seconds: f64) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += seconds;
        if let Some(bar) = &self.bar {
            bar.set_position((*done * 1000.0) as u64);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
