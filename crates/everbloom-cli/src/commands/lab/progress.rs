//! A bar with the time left, for people who watch.

use everbloom_lab::suite::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;

/// A bar over the expected seconds of work, which is hidden if nobody watches.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn for_terminal() -> Self {
        let template = "{wide_bar} {percent} % after {elapsed}, {eta} left";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let is_watched = std::io::stderr().is_terminal();
        Bar(if is_watched { ProgressBar::new(0).with_style(style) } else { ProgressBar::hidden() })
    }
}

impl Progress for Bar {
    fn start(&self, seconds: f64) {
        self.0.set_length((seconds * 1000.0) as u64);
        if !self.0.is_hidden() {
            self.0.enable_steady_tick(Duration::from_millis(500));
        }
    }

    fn advance(&self, seconds: f64) {
        self.0.inc((seconds * 1000.0).round() as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
