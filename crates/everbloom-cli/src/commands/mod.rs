//! The subcommands, one file each.

mod build;
mod compare;
#[cfg(feature = "pages")]
mod completions;
pub(crate) mod dedup;
#[cfg(feature = "web")]
mod explore;
mod filters;
mod info;
#[cfg(feature = "lab")]
mod lab;
mod learn;
#[cfg(feature = "pages")]
mod man;
mod merge;
pub(crate) mod plan;
mod query;
#[cfg(feature = "redis")]
mod redis;
mod remove;
mod tune;

use crate::failure::{Ending, Result};
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(about = "Drop repeats from a stream, in fixed memory")]
    Dedup(Box<dedup::Dedup>),
    #[command(about = "Build a filter file from keys")]
    Build(build::Build),
    #[command(about = "Look up keys in a filter file")]
    Query(query::Query),
    #[command(about = "Show what a filter file holds and promises")]
    Info(info::Info),
    #[command(about = "Merge several filter files into one")]
    Merge(merge::Merge),
    #[command(about = "Remove keys from a filter file")]
    Remove(remove::Remove),
    #[command(about = "Try filters on a stream: error rates, memory, speed", after_help = COMPARE_EXAMPLES)]
    Compare(compare::Compare),
    #[command(about = "Tune a filter to a query log")]
    Tune(tune::Tune),
    #[command(about = "Choose a filter: which kind, how large, and which errors to expect", after_help = PLAN_EXAMPLES)]
    Plan(plan::Plan),
    #[cfg(feature = "web")]
    #[command(about = "Explore error rates in the browser")]
    Explore(explore::Explore),
    #[command(about = "List the kinds of filters, or explain one and its parameters")]
    Filters(filters::Filters),
    /// Keep filters on Redis or Valkey servers, over the nodes of a cluster
    #[cfg(feature = "redis")]
    #[command(subcommand)]
    Redis(redis::Redis),
    /// Generate streams and run the papers' experiments
    #[cfg(feature = "lab")]
    #[command(subcommand, after_help = LAB_EXAMPLES)]
    Lab(lab::Lab),
    #[cfg(feature = "pages")]
    #[command(about = "Print the completions for a shell")]
    Completions(completions::Completions),
    #[cfg(feature = "pages")]
    #[command(about = "Print the manual page of a command, or write all of them")]
    Man(man::Man),
    #[cfg(not(feature = "web"))]
    #[command(hide = true, disable_help_flag = true)]
    Explore(LeftOut),
    #[cfg(not(feature = "redis"))]
    #[command(hide = true, disable_help_flag = true)]
    Redis(LeftOut),
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
#[cfg(not(all(feature = "lab", feature = "pages", feature = "redis", feature = "web")))]
#[derive(Debug, clap::Args)]
pub(crate) struct LeftOut {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<std::ffi::OsString>,
}

#[cfg(not(all(feature = "lab", feature = "pages", feature = "redis", feature = "web")))]
impl LeftOut {
    fn run(self) -> Result<Ending> {
        drop(self.arguments);
        Err(crate::failure::Failure::new(
            "this everbloom was built without the lab, servers, pages, manual pages and completions; `cargo build --release` has them",
        ))
    }
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  Every filter for endless streams, in 64 KiB:
    everbloom compare lines.txt --memory 64KiB
  Two of them, by the first field:
    everbloom compare visits.tsv -k 1 --filter stable --filter ranked --memory 4KiB
  With what matters weighed:
    everbloom compare visits.tsv -k 1 --importance 3 --importance-max 50 --memory 4KiB";
const PLAN_EXAMPLES: &str = "\
Examples:
  For a million keys, at most 1 % wrong:
    everbloom plan --expect 1e6 --fpr 1%
  For a stream like a sample of it:
    everbloom plan --memory 4KiB --stream lines.txt
  For a window of a day with a million lines:
    everbloom plan --window 24h --expect 1M";
#[cfg(feature = "lab")]
const LAB_EXAMPLES: &str = "\
Examples:
    everbloom lab list
    everbloom lab generate zipf --items 1000 > zipf.tsv";

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
            Command::Explore(explore) => explore.run(),
            Command::Filters(filters) => filters.run(),
            Command::Redis(redis) => redis.run(),
            Command::Lab(lab) => lab.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}
