//! Results as documents: one per experiment for programs, one page of all for people.

mod findings;
mod markdown;
mod page;

pub use markdown::markdown;
pub use page::html;

use super::{Conclusion, Experiment, Label, Outcome, Scope, Store, Summary, Table, Verdict};
use crate::charts::Figure;
use crate::experiments;
use everbloom::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of an experiment's results.
pub(super) const FILE: &str = "result.json";

/// What an experiment came to, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// The experiment.
    pub experiment: String,
    /// Whose claims.
    pub source: String,
    /// Which table or figure.
    pub figure: String,
    /// What it shows.
    pub shows: String,
    /// How much work was done.
    pub scale: String,
    /// How many seeds.
    pub seeds: u64,
    /// Its verdicts.
    pub verdicts: Vec<Verdict>,
    /// Its charts.
    pub charts: Vec<ChartFile>,
    /// Its measurements, over the seeds.
    pub tables: Vec<Measured>,
}

/// A chart of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChartFile {
    /// Its file, in the experiment's folder.
    pub file: String,
    /// Its title.
    pub title: String,
    /// What to see in it.
    pub caption: String,
}

/// A table of measurements.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// Its name; the rows of every seed are in NAME.csv.
    pub name: String,
    /// Its rows.
    pub rows: Vec<Mean>,
}

/// A measurement over the seeds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mean {
    /// What was measured.
    pub labels: Vec<(String, Label)>,
    /// (what, mean, standard deviation from seed to seed, seeds)
    pub values: Vec<(String, f64, f64, usize)>,
}

impl Results {
    pub(super) fn of(experiment: &Experiment, scope: &Scope, table: &Table, conclusion: &Conclusion) -> Self {
        let chart = |figure: &Figure| ChartFile {
            file: format!("{}.svg", figure.name),
            title: figure.title.clone(),
            caption: figure.caption.clone(),
        };
        let measured = |name: &&str| Measured {
            name: (*name).to_string(),
            rows: table.summary(name).into_iter().map(mean).collect(),
        };
        Results {
            experiment: experiment.name.into(),
            source: experiment.source.into(),
            figure: experiment.figure.into(),
            shows: experiment.shows.into(),
            scale: scope.scale.name().into(),
            seeds: scope.num_seeds,
            verdicts: conclusion.verdicts.clone(),
            charts: conclusion.figures.iter().map(chart).collect(),
            tables: table.names().iter().map(measured).collect(),
        }
    }
}

fn mean(summary: Summary) -> Mean {
    let value = |(name, sample): (String, super::Sample)| (name, sample.mean(), sample.deviation(), sample.count());
    Mean { labels: summary.labels, values: summary.values.into_iter().map(value).collect() }
}

/// The results in a directory, in the order of the registry.
pub fn read(store: &Store) -> Result<Vec<Results>> {
    let mut found = Vec::new();
    for experiment in experiments::ALL {
        found.extend(store.read_json::<Results>(&Path::new(experiment.name).join(FILE))?);
    }
    if found.is_empty() {
        return Err(Error::io(format!("{}: no experiment is finished; go on with `lab run`", store.root().display())));
    }
    Ok(found)
}

/// The results of several directories; where two have an experiment, the later directory's counts.
pub fn read_all(stores: &[Store]) -> Result<Vec<Results>> {
    let mut all: Vec<Results> = Vec::new();
    for store in stores {
        for found in read(store)? {
            match all.iter_mut().find(|known| known.experiment == found.experiment) {
                Some(known) => *known = found,
                None => all.push(found),
            }
        }
    }
    let place = |result: &Results| experiments::ALL.iter().position(|known| known.name == result.experiment);
    all.sort_by_key(place);
    Ok(all)
}

/// A chart as it was drawn, from the last directory that has the experiment.
pub fn drawn(stores: &[Store], result: &Results, chart: &ChartFile) -> Result<Option<String>> {
    beside(stores, result, &chart.file)
}

/// The points of a chart, as CSV.
fn points(stores: &[Store], result: &Results, chart: &ChartFile) -> Result<Option<String>> {
    beside(stores, result, &points_file(chart.file.trim_end_matches(".svg")))
}

/// The file of a chart's points; tables of the same name are beside it.
pub(super) fn points_file(chart: &str) -> String {
    format!("{chart}.points.csv")
}

/// A file beside an experiment's results, from the last directory that has the experiment.
fn beside(stores: &[Store], result: &Results, file: &str) -> Result<Option<String>> {
    for store in stores.iter().rev() {
        let there = store.read_json::<Results>(&Path::new(&result.experiment).join(FILE))?.is_some();
        if there {
            return store.read_text(&Path::new(&result.experiment).join(file));
        }
    }
    Ok(None)
}

/// How many verdicts of each outcome there are, in words; ours apart.
pub fn tally<'a>(verdicts: impl Iterator<Item = &'a Verdict> + Clone) -> String {
    let part = |ours: bool| {
        let some = verdicts.clone().filter(move |verdict| verdict.ours == ours);
        let parts = Outcome::ALL.into_iter().zip(count(some)).filter(|(_, count)| *count > 0);
        parts.map(|(outcome, count)| outcome.counted(count)).collect::<Vec<_>>().join(", ")
    };
    match (part(false), part(true)) {
        (papers, ours) if papers.is_empty() && ours.is_empty() => "no claims".into(),
        (papers, ours) if ours.is_empty() => papers,
        (papers, ours) if papers.is_empty() => format!("ours: {ours}"),
        (papers, ours) => format!("{papers}; ours: {ours}"),
    }
}

/// Verdicts by outcome, in the order of [`Outcome::ALL`].
type Counts = [usize; Outcome::ALL.len()];

/// How many verdicts of each outcome there are.
fn count<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Counts {
    let mut counts = Counts::default();
    for verdict in verdicts {
        let places = Outcome::ALL.iter().zip(&mut counts);
        places.filter(|(outcome, _)| **outcome == verdict.outcome).for_each(|(_, count)| *count += 1);
    }
    counts
}

/// What the verdicts come to: a row for each source, one for all papers, and one for ours.
fn count_by_source<'a>(verdicts: impl Iterator<Item = (&'a str, &'a Verdict)>) -> Vec<(&'a str, Counts)> {
    let (ours, papers): (Vec<_>, Vec<_>) = verdicts.partition(|(_, verdict)| verdict.ours);
    let mut sources: Vec<&str> = Vec::new();
    papers.iter().for_each(|(source, _)| {
        if !sources.contains(source) {
            sources.push(source);
        }
    });
    let of = |wanted: &str| count(papers.iter().filter(|(source, _)| *source == wanted).map(|(_, verdict)| *verdict));
    let mut rows: Vec<_> = sources.into_iter().map(|source| (source, of(source))).collect();
    rows.push((THE_PAPERS, count(papers.iter().map(|(_, verdict)| *verdict))));
    rows.push((super::OURS, count(ours.iter().map(|(_, verdict)| *verdict))));
    rows
}

/// The row of all papers together.
const THE_PAPERS: &str = "the papers' claims";

/// What the verdicts come to as a table in Markdown. A source is given with each verdict.
pub fn counts<'a>(verdicts: impl Iterator<Item = (&'a str, &'a Verdict)>) -> String {
    let mut table = format!("| claims of | in all | {} |\n", Outcome::ALL.map(Outcome::words).join(" | "));
    table.push_str(&format!("|---|{}\n", "---:|".repeat(Outcome::ALL.len() + 1)));
    for (source, counts) in count_by_source(verdicts) {
        let source = match source {
            THE_PAPERS => format!("**{source}**"),
            super::OURS => "*ours*".into(),
            paper => paper.into(),
        };
        let cells = counts.map(|count| count.to_string()).join(" | ");
        table.push_str(&format!("| {source} | {} | {cells} |\n", counts.iter().sum::<usize>()));
    }
    table
}

/// What is the same on every page.
const INTRODUCTION: &str = "Every claim of the papers, run again. A printed number holds if it lies within four deviations of the \
    difference between one run and the mean of ours, and half a unit of its last digit. It holds loosely if it lies \
    within a tenth or one unit of its last digit, and in direction if only the tendency is there. A comparison holds if it has the claimed \
    sign and exceeds four standard errors. A misprint is a printed number that does not hold where a mended one does; \
    the papers were read as converted text, so that it may be a fault of the conversion. Claims marked *ours* are \
    everbloom's own, not a paper's. Error bars are standard errors.";

/// Every verdict of the results, with its source.
fn sourced(results: &[Results]) -> impl Iterator<Item = (&str, &Verdict)> {
    results.iter().flat_map(|result| result.verdicts.iter().map(|verdict| (result.source.as_str(), verdict)))
}
