//! The subcommands, one file each.

mod build;
mod compare;
pub(crate) mod dedup;
mod info;
mod lab;
mod merge;
mod plan;
mod query;
mod tune;

use crate::failure::{Ending, Result};
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Drop repeats from a stream, in fixed memory
    Dedup(dedup::Dedup),
    /// Build a filter file from keys
    Build(build::Build),
    /// Say which keys a filter file knows
    Query(query::Query),
    /// Show what a filter file holds and promises
    Info(info::Info),
    /// Make one filter file of several
    Merge(merge::Merge),
    /// Try filters on a stream: error rates, memory, speed
    Compare(compare::Compare),
    /// Find how many hashes each key deserves
    Tune(tune::Tune),
    /// Say which filter to take, how large, and what errors it will make
    Plan(plan::Plan),
    /// Streams and experiments
    #[command(subcommand)]
    Lab(lab::Lab),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self) -> Result<Ending> {
        match self {
            Command::Dedup(dedup) => dedup.run(),
            Command::Build(build) => build.run(),
            Command::Query(query) => query.run(),
            Command::Info(info) => info.run(),
            Command::Merge(merge) => merge.run(),
            Command::Compare(compare) => compare.run(),
            Command::Tune(tune) => tune.run(),
            Command::Plan(plan) => plan.run(),
            Command::Lab(lab) => lab.run(),
        }
    }
}
