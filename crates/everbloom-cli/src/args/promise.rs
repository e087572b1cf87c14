//! What to do when a promise is broken.

use crate::failure::{Ending, Failure};
use crate::report::words;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What to do, and whether to speak about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Args)]
pub(crate) struct PromiseArgs {
    /// What to do when more comes than the filter was planned for, so that it errs more often than promised
    #[arg(long, value_name = "HOW", default_value = "warn", help_heading = "Report")]
    pub(crate) on_broken_promise: OnBrokenPromise,
    /// Print errors on stderr, and nothing else
    #[arg(short, long, help_heading = "Report")]
    pub(crate) quiet: bool,
}

/// What to do about a broken promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
pub(crate) enum OnBrokenPromise {
    /// Go on, print a warning, and exit with 3 in the end
    #[default]
    Warn,
    /// Stop before it is broken, and exit with 3
    Fail,
    /// Go on as if nothing had happened
    Ignore,
}

/// The exit codes of commands that can break a promise, for their help.
const EXIT_CODES: &str = "Exit codes: 0 done, 2 an error, 3 the filter's promise is broken (see --on-broken-promise)";

/// Examples with the exit codes before them.
pub(crate) fn with_exit_codes(examples: &str) -> String {
    format!("{EXIT_CODES}\n\n{examples}")
}

impl PromiseArgs {
    /// Whether to stop before a promise is broken.
    pub(crate) fn stops(&self) -> bool {
        self.on_broken_promise == OnBrokenPromise::Fail
    }

    /// Whether to speak when one is.
    pub(crate) fn warns(&self) -> bool {
        self.on_broken_promise == OnBrokenPromise::Warn && !self.quiet
    }

    /// What to do about one that turned out to be broken: stop, or go on and speak.
    pub(crate) fn broken(&self, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.stops() {
            return Err(Failure::BrokenPromise(text()));
        }
        if self.warns() {
            words::warn(&text());
        }
        Ok(())
    }

    /// How a command ends that did its work.
    pub(crate) fn ending(&self, is_broken: bool) -> Ending {
        let speaks = self.on_broken_promise != OnBrokenPromise::Ignore;
        if is_broken && speaks { Ending::BrokenPromise } else { Ending::Done }
    }
}
