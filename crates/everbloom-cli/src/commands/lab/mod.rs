//! `everbloom lab`: streams to try filters on, and the papers' tables and figures run again.

mod generate;
mod list;
mod progress;
mod report;
mod run;
mod simulate;
mod verdicts;

use crate::failure::{Ending, Result};
use clap::Subcommand;

/// What to do in the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    #[command(about = "List the experiments: source, figure, what they show, how long they take", after_help = LIST_EXAMPLES)]
    List(list::List),
    #[command(about = "Run experiments; what an earlier run finished is kept", after_help = RUN_EXAMPLES)]
    Run(run::Run),
    #[command(about = "Write a page with the charts and verdicts of finished experiments", after_help = RUN_EXAMPLES)]
    Report(report::Report),
    #[command(about = "Print the verdict on every claim", after_help = RUN_EXAMPLES)]
    Verdicts(verdicts::Verdicts),
    /// Simulate systems that ship filters: cooperative caching, keyword search
    #[command(subcommand, after_help = SIMULATE_EXAMPLES)]
    Simulate(simulate::Simulate),
    #[command(about = "Write a synthetic stream, one key and importance a line", after_help = GENERATE_EXAMPLES)]
    Generate(generate::Generate),
}

const LIST_EXAMPLES: &str = "\
Examples:
    everbloom lab list
    everbloom lab list --format json";
const RUN_EXAMPLES: &str = "\
Examples:
  One experiment in seconds, a page with its charts, and what came of each claim:
    everbloom lab run --quick --out results lecture-sizing
    everbloom lab report results
    everbloom lab verdicts results";
const SIMULATE_EXAMPLES: &str = "\
Examples:
    everbloom lab simulate caching --slots 100
    everbloom lab simulate keyword --documents 500 --words 50 --queries 50";
const GENERATE_EXAMPLES: &str = "\
Examples:
    everbloom lab generate --list
    everbloom lab generate zipf --items 1000 --exponent 1.2 > zipf.tsv";

impl Lab {
    pub(crate) fn run(self) -> Result<Ending> {
        match self {
            Lab::List(list) => list.run(),
            Lab::Run(run) => run.run(),
            Lab::Report(report) => report.run(),
            Lab::Verdicts(verdicts) => verdicts.run(),
            Lab::Simulate(simulate) => simulate.run(),
            Lab::Generate(generate) => generate.run(),
        }
    }
}
