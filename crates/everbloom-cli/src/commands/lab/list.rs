//! `everbloom lab list`: the experiments.

use crate::args::Format;
use crate::failure::{Ending, Result};
use crate::report;
use clap::Args;
use everbloom_lab::experiments;
use everbloom_lab::suite::{Experiment, Scale};
use serde::Serialize;

/// Lists the experiments.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// How to print the list
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    source: &'static str,
    figure: &'static str,
    shows: &'static str,
    seeds: u64,
    quick_seconds: f64,
    default_seconds: f64,
    full_seconds: Option<f64>,
    needs: &'static [&'static str],
}

#[derive(Serialize)]
struct Document {
    experiments: Vec<Entry>,
}

fn entry(experiment: &Experiment) -> Entry {
    Entry {
        name: experiment.name,
        source: experiment.source,
        figure: experiment.figure,
        shows: experiment.shows,
        seeds: experiment.seeds,
        quick_seconds: experiment.expected.quick,
        default_seconds: experiment.expected.default,
        full_seconds: experiment.expected.full,
        needs: experiment.needs,
    }
}

impl List {
    pub(crate) fn run(self) -> Result<Ending> {
        let document = Document { experiments: experiments::ALL.iter().map(|experiment| entry(experiment)).collect() };
        report::print(self.format, &document, table)?;
        Ok(Ending::Done)
    }
}

fn table() -> String {
    let line = |experiment: &&Experiment| {
        let time = duration(experiment.expected.at(Scale::Default));
        let full = experiment.expected.full.map_or(String::new(), |full| format!(" (full: {})", duration(full)));
        let text = format!("{time}{full}; {} {}: {}", experiment.source, experiment.figure, experiment.shows);
        (experiment.name, text)
    };
    report::columns(&experiments::ALL.iter().map(line).collect::<Vec<_>>())
}

/// A time as people say it.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => "under 1 s".into(),
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}
