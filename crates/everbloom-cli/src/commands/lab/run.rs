//! `everbloom lab run`: experiments, run and kept.

use super::list::duration;
use super::progress::Bar;
use crate::args::{Format, quantity};
use crate::failure::{Ending, Result};
use crate::report;
use clap::Args;
use everbloom_lab::suite::{self, Experiment, Outcome, Ran, Request, Scale, Store};
use everbloom_lab::{datasets, experiments};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Runs experiments and writes tables (JSON, CSV), charts (SVG) and verdicts. What an earlier run in
/// the same directory finished is kept, so an interrupted run goes on where it was. Recorded streams
/// are found in the folder that EVERBLOOM_DATA names.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The experiments, as `lab list` names them [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Where results go
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// How many seeds [default: each experiment's own choice]
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    seeds: Option<u64>,
    /// Only as much work as shows that everything works: a minute for all
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The papers' own sizes, where the default is smaller: hours for all
    #[arg(long)]
    full: bool,
    /// How many cells run at a time [default: one per core]
    #[arg(short = 'j', long, value_name = "COUNT", value_parser = quantity::threads)]
    threads: Option<u64>,
    /// How to print what was done
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Document {
    scale: &'static str,
    experiments: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
    cells: usize,
    reused: usize,
    damaged: usize,
    cell_seconds: f64,
    verdicts: BTreeMap<&'static str, usize>,
    charts: Vec<String>,
}

impl Run {
    pub(crate) fn run(self) -> Result<Ending> {
        let chosen = self.chosen()?;
        let store = Store::create(&self.out)?;
        let request = self.request();
        let ran = suite::run(&chosen, &request, &store, &Bar::for_terminal())?;
        let document =
            Document { scale: request.scale.name(), experiments: ran.iter().map(|ran| self.entry(ran)).collect() };
        report::print(self.format, &document, || ran.iter().map(line).collect())?;
        Ok(Ending::Done)
    }

    fn chosen(&self) -> Result<Vec<&'static Experiment>> {
        if self.names.is_empty() || self.names.iter().any(|name| name == "all") {
            return Ok(experiments::ALL.to_vec());
        }
        let mut chosen: Vec<&'static Experiment> = Vec::new();
        for name in &self.names {
            let experiment = suite::find(experiments::ALL, name)?;
            if !chosen.iter().any(|known| known.name == experiment.name) {
                chosen.push(experiment);
            }
        }
        Ok(chosen)
    }

    fn request(&self) -> Request {
        let scale = match (self.quick, self.full) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Full,
            _ => Scale::Default,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or(cores, |threads| threads.min(1024) as usize);
        Request { scale, num_seeds: self.seeds, data: datasets::real::folder(), threads }
    }

    fn entry(&self, ran: &Ran) -> Entry {
        let mut verdicts = BTreeMap::new();
        for verdict in &ran.conclusion.verdicts {
            *verdicts.entry(name(verdict.outcome)).or_insert(0) += 1;
        }
        let chart = |figure: &suite::Figure| self.out.join(ran.name).join(format!("{}.svg", figure.name));
        Entry {
            name: ran.name,
            skipped: ran.skipped.clone(),
            cells: ran.cells,
            reused: ran.reused,
            damaged: ran.damaged,
            cell_seconds: ran.seconds,
            verdicts,
            charts: ran.conclusion.figures.iter().map(|figure| chart(figure).display().to_string()).collect(),
        }
    }
}

/// The outcome as the results write it.
pub(super) fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::HoldsLoosely => "holds_loosely",
        Outcome::HoldsInDirection => "holds_in_direction",
        Outcome::DoesNotHold => "does_not_hold",
        Outcome::Misprint => "misprint",
    }
}

fn line(ran: &Ran) -> String {
    if let Some(why) = &ran.skipped {
        return format!("{}: skipped, {why}\n", ran.name);
    }
    let kept = match (ran.reused, ran.damaged) {
        (0, 0) => String::new(),
        (reused, 0) => format!(", {reused} kept from before"),
        (reused, damaged) => format!(", {reused} kept from before, {damaged} damaged and run again"),
    };
    let verdicts = suite::report::tally(ran.conclusion.verdicts.iter());
    format!("{}: {} cells{kept}, {} of work; {verdicts}\n", ran.name, ran.cells, duration(ran.seconds))
}
