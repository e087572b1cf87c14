//! What a call asks for, as plain data: the options are resolved into it before anything is opened, and nothing after that
//! knows how they were typed.

mod adopt;
mod cost;
mod plan;
mod refused;

use crate::args::{CostArgs, Format, GoalArgs, ImportanceArgs, KeyArgs, OnError, PromiseArgs, Refresh, quantity};
use crate::failure::{Failure, Result};
use crate::input::{is_stdin, rereadable};
use crate::platform;
use everbloom::Window;
use everbloom::planning;
use serde::{Deserialize, Serialize};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

/// More threads than this would not fit into 32 MiB with their blocks, and would wait anyway.
const MAX_THREADS: usize = 8;

/// All of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) rules: Rules,
    /// What is read; stdin if there are none.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) follow: bool,
    /// Where lines go; stdout if there is none.
    pub(crate) output: Option<PathBuf>,
    pub(crate) duplicates: Option<PathBuf>,
    pub(crate) mode: Mode,
    pub(crate) counts: bool,
    pub(crate) state: Option<PathBuf>,
    /// How often the state is saved, if that was said.
    pub(crate) checkpoint: Option<Duration>,
    pub(crate) servers: Servers,
    /// How totals are printed.
    pub(crate) format: Format,
    pub(crate) stats: Option<PathBuf>,
    pub(crate) verbose: bool,
    /// The port of a page that shows the run.
    pub(crate) serve: Option<u16>,
    pub(crate) promise: PromiseArgs,
    pub(crate) threads: Option<u64>,
}

/// The part of a job that decides verdicts, which a state keeps. What is missing was not given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub(crate) exact: bool,
    #[serde(flatten)]
    pub(crate) goal: GoalArgs,
    #[serde(flatten)]
    pub(crate) cost: CostArgs,
    #[serde(with = "quantity::window_as_text")]
    pub(crate) window: Option<Window>,
    pub(crate) time: Option<String>,
    pub(crate) refresh: Refresh,
    #[serde(flatten)]
    pub(crate) keys: KeyArgs,
    #[serde(flatten)]
    pub(crate) importance: ImportanceArgs,
    pub(crate) audit: Option<AuditSize>,
    pub(crate) audit_seed: Option<u64>,
    /// The filter's name on servers, and in how many keys it is.
    pub(crate) name: Option<String>,
    pub(crate) shards: Option<u32>,
}

/// What an audit takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditSize {
    /// A share of the filter's memory.
    Usual,
    Bits(u64),
}

/// The servers that have the filter, if it is not our own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Servers {
    pub(crate) redis: Option<String>,
    pub(crate) replicas: Option<u32>,
    pub(crate) patience: Option<Duration>,
}

/// What to do with records and repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Write the new ones.
    Drop,
    /// Write the repeats.
    OnlyDuplicates,
    /// Write all, each behind a mark.
    Flag,
    /// Write nothing.
    Count,
}

impl Rules {
    /// These rules with keys written in one way, and without what decides no verdict: what is equal then means the same.
    fn meaning(&self) -> Self {
        Rules { keys: self.keys.canonical(), ..self.clone() }
    }

    pub(crate) fn window_time(&self) -> Option<Duration> {
        match self.window {
            Some(Window::Time(time)) => Some(time),
            _ => None,
        }
    }

    /// What would have kept the promise.
    pub(crate) fn remedy(&self) -> &'static str {
        match (self.window.is_some(), self.goal.filter.kind() == planning::AUTO) {
            (true, _) => "give --expect twice the most lines of a window, or more --memory",
            (false, true) => "give a larger --expect, or more --memory",
            (false, false) => "give a larger --expect and the --memory it takes, or leave --filter out",
        }
    }
}

impl Job {
    /// Whether people are to be told in the end what became of it.
    pub(crate) fn wants_summary(&self) -> bool {
        self.verbose || (std::io::stderr().is_terminal() && !self.promise.quiet)
    }

    /// What becomes of records without a key.
    pub(crate) fn on_error(&self) -> OnError {
        self.rules.keys.on_error.unwrap_or(OnError::Keep)
    }

    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.map_or_else(cores, |threads| threads as usize).min(MAX_THREADS)
    }

    /// Whether all that is read can be read again.
    pub(crate) fn reads_only_files(&self) -> Result<bool> {
        for path in &self.files {
            // One that is not there yet will be a file.
            let is_file = rereadable(path).and_then(|data| Ok(data.is_some() || platform::stat(path)?.is_none()));
            if !is_file.map_err(|error| Failure::io(path.display(), &error))? {
                return Ok(false);
            }
        }
        Ok(!self.files.is_empty())
    }

    /// Whether a window of time is given for files that are read once, at a stroke, however long they took to be written.
    pub(crate) fn reads_the_past(&self) -> Result<bool> {
        if self.rules.window_time().is_none() || self.rules.time.is_some() || self.follow || self.state.is_some() {
            return Ok(false);
        }
        let is_file = |path: &PathBuf| match platform::stat(path) {
            Ok(data) => Ok(data.is_some_and(|data| data.is_file())),
            Err(error) => Err(Failure::io(path.display(), &error)),
        };
        self.files.iter().filter(|path| !is_stdin(path)).map(is_file).try_fold(false, |any, is| Ok(any || is?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use crate::commands::Command;
    use clap::Parser as _;

    fn job(options: &str) -> Job {
        match Cli::try_parse_from("everbloom dedup".split(' ').chain(options.split(' '))).expect("options").command {
            Command::Dedup(dedup) => dedup.job(),
            other => panic!("{other:?} is another command"),
        }
    }

    #[test]
    fn a_job_is_data_that_survives_being_written_down() {
        for options in [
            "-c in.txt",
            "--json -k .user.id --window 90m --time .at --refresh no --audit=1MiB --audit-seed 7 --state s -o out in",
            "--filter ranked:lanes=3 -m 65537b --fpr 0.1234567890123456% --cost-fp 0.3 --cost-fn 7e-3 --cost-fp-by-importance t.tsv",
            "--exact --csv -d ; --on-error skip --redis redis://h --name n --shards 8 --importance 2 --importance-max 0.7 -j 2 a b",
        ] {
            let job = job(options);
            let text = serde_json::to_string(&job).expect("text");
            assert_eq!(serde_json::from_str::<Job>(&text).expect("a job"), job, "{options}");
            let journal = |text: &str| serde_json::from_str(text).expect("an object");
            assert!(job.rules.are_all_in(&journal(&text)));
            assert!(!job.rules.are_all_in(&journal(&text.replacen("\"exact\"", "\"colour\":\"red\",\"exact\"", 1))));
        }
    }
}
