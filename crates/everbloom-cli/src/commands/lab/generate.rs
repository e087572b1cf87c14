//! `everbloom lab generate`: a synthetic stream on stdout.

use crate::args::quantity;
use crate::failure::{Ending, Failure, Result};
use crate::output::{self, Stdout};
use crate::progress::{Screen, Working};
use crate::report;
use clap::Args;
use everbloom_lab::datasets::{self, Request};
use std::io::Write as _;

/// Writes a synthetic stream: a key, a tab and its importance on each line. The same seed gives the
/// same stream everywhere.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// The data set; --list shows them
    #[arg(value_name = "SET", required_unless_present = "list")]
    set: Option<String>,
    /// List the data sets
    #[arg(long)]
    list: bool,
    /// Number of lines [default: 100000]
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    items: Option<u64>,
    /// Share of lines that are distinct, such as 30% [default: the set's own, as --list says]
    #[arg(long, value_name = "SHARE", value_parser = quantity::rate)]
    distinct: Option<f64>,
    /// Exponent of the zipf set [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = quantity::number)]
    exponent: Option<f64>,
    /// The seed of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = quantity::seed)]
    seed: u64,
}

impl Generate {
    pub(crate) fn run(self) -> Result<Ending> {
        match &self.set {
            Some(set) if !self.list => self.write(set)?,
            _ => output::print(&listing())?,
        }
        Ok(Ending::Done)
    }

    fn write(&self, set: &str) -> Result<()> {
        let request = Request { items: self.items, distinct: self.distinct, seed: self.seed, exponent: self.exponent };
        let _working = Working::on("generating", Screen::Lines);
        let mut stdout = Stdout::new()?;
        let mut line = Vec::new();
        for arrival in datasets::open(set, &request)? {
            line.clear();
            writeln!(line, "{}\t{}", arrival.key, arrival.importance).map_err(Failure::new)?;
            stdout.write(&line)?;
        }
        stdout.finish()
    }
}

fn listing() -> String {
    let rows: Vec<_> = datasets::KINDS.iter().map(|kind| (kind.name, kind.summary.to_string())).collect();
    report::columns(&rows)
}
