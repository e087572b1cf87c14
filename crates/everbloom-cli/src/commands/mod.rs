//! The subcommands, one file each.

mod build;
mod compare;
#[cfg(feature = "pages")]
mod completions;
pub(crate) mod dedup;
mod info;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "pages")]
mod man;
mod merge;
mod plan;
mod query;
mod remove;
mod tune;

use crate::failure::{Ending, Result};
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(about = "Drop repeats from a stream, in fixed memory")]
    Dedup(dedup::Dedup),
    #[command(about = "Build a filter file from keys")]
    Build(build::Build),
    #[command(about = "Look up keys in a filter file")]
    Query(query::Query),
    #[command(about = "Show what a filter file holds and promises")]
    Info(info::Info),
    #[command(about = "Merge several filter files into one")]
    Merge(merge::Merge),
    #[command(about = "Take keys out of a filter file that can do that")]
    Remove(remove::Remove),
    #[command(about = "Try filters on a stream: error rates, memory, speed")]
    Compare(compare::Compare),
    #[command(about = "Learn from a query log how to get fewer false positives from the same memory")]
    Tune(tune::Tune),
    #[command(about = "Choose a filter: which kind, how large, and which errors to expect")]
    Plan(plan::Plan),
    /// Generate streams and run the papers' experiments
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(lab::Lab),
    #[cfg(feature = "pages")]
    #[command(about = "Print the completions for a shell")]
    Completions(completions::Completions),
    #[cfg(feature = "pages")]
    #[command(about = "Print the manual page of a command, or write all of them")]
    Man(man::Man),
    #[cfg(not(feature = "lab"))]
    #[command(hide = true, disable_help_flag = true)]
    Lab(LeftOut),
    #[cfg(not(feature = "pages"))]
    #[command(hide = true, disable_help_flag = true)]
    Completions(LeftOut),
    #[cfg(not(feature = "pages"))]
    #[command(hide = true, disable_help_flag = true)]
    Man(LeftOut),
}

/// A command that a small build goes without. It is known, so that whoever types it is told where it is.
#[cfg(not(all(feature = "lab", feature = "pages")))]
#[derive(Debug, clap::Args)]
pub(crate) struct LeftOut {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<std::ffi::OsString>,
}

#[cfg(not(all(feature = "lab", feature = "pages")))]
impl LeftOut {
    fn run(self) -> Result<Ending> {
        drop(self.arguments);
        Err(crate::failure::Failure::new(
            "this everbloom was built without the lab, manual pages and completions; `cargo build --release` has them",
        ))
    }
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
            Command::Remove(remove) => remove.run(),
            Command::Compare(compare) => compare.run(),
            Command::Tune(tune) => tune.run(),
            Command::Plan(plan) => plan.run(),
            Command::Lab(lab) => lab.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}
