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
    #[command(about = "List the experiments: source, figure, what they show, how long they take")]
    List(list::List),
    #[command(about = "Run experiments; what an earlier run finished is kept")]
    Run(run::Run),
    #[command(about = "Write a page with the charts and verdicts of finished experiments")]
    Report(report::Report),
    #[command(about = "Print the verdict on every claim")]
    Verdicts(verdicts::Verdicts),
    /// Simulate systems that ship filters: cooperative caching, keyword search
    #[command(subcommand)]
    Simulate(simulate::Simulate),
    #[command(about = "Write a synthetic stream, one key and importance a line")]
    Generate(generate::Generate),
}

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
