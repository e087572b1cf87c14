//! Results as documents: one per experiment for programs, one page of all for people.

use super::chart::Figure;
use super::{Conclusion, Experiment, Label, Outcome, Scope, Store, Summary, Table, Verdict};
use crate::experiments;
use everbloom::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
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
        return Err(Error::Io {
            message: format!("{}: no experiment is finished; go on with `lab run`", store.root().display()),
        });
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
    for store in stores.iter().rev() {
        let there = store.read_json::<Results>(&Path::new(&result.experiment).join(FILE))?.is_some();
        if there {
            return store.read_text(&Path::new(&result.experiment).join(&chart.file));
        }
    }
    Ok(None)
}

/// How many verdicts of each outcome there are, in words; ours apart.
pub fn tally<'a>(verdicts: impl Iterator<Item = &'a Verdict> + Clone) -> String {
    let part = |ours: bool| {
        let some = verdicts.clone().filter(move |verdict| verdict.ours == ours);
        let count = |outcome: Outcome| some.clone().filter(|verdict| verdict.outcome == outcome).count();
        let parts = Outcome::ALL.map(|outcome| (count(outcome), outcome.words()));
        let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
        parts.collect::<Vec<_>>().join(", ")
    };
    match (part(false), part(true)) {
        (papers, ours) if papers.is_empty() && ours.is_empty() => "no claims".into(),
        (papers, ours) if ours.is_empty() => papers,
        (papers, ours) if papers.is_empty() => format!("ours: {ours}"),
        (papers, ours) => format!("{papers}; ours: {ours}"),
    }
}

/// What the verdicts come to, a row for each source and one for ours, as a table in Markdown. A source is given with each verdict.
pub fn counts<'a>(verdicts: impl Iterator<Item = (&'a str, &'a Verdict)>) -> String {
    let mut rows: Vec<(String, [usize; Outcome::ALL.len()])> = Vec::new();
    let mut ours = [0; Outcome::ALL.len()];
    for (source, verdict) in verdicts {
        let place = Outcome::ALL.iter().position(|outcome| *outcome == verdict.outcome).unwrap_or(0);
        if verdict.ours {
            ours[place] += 1;
            continue;
        }
        let row = match rows.iter().position(|(known, _)| known == source) {
            Some(row) => row,
            None => {
                rows.push((source.into(), [0; Outcome::ALL.len()]));
                rows.len() - 1
            }
        };
        rows[row].1[place] += 1;
    }
    let mut all = [0; Outcome::ALL.len()];
    rows.iter().for_each(|(_, counts)| all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count));
    rows.push(("**the papers' claims**".into(), all));
    rows.push(("*ours*".into(), ours));
    let mut table = format!("| claims of | in all | {} |\n", Outcome::ALL.map(Outcome::words).join(" | "));
    table.push_str(&format!("|---|{}\n", "---:|".repeat(Outcome::ALL.len() + 1)));
    for (source, counts) in rows {
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

/// The counts by source of results.
fn counted(results: &[Results]) -> String {
    counts(results.iter().flat_map(|result| result.verdicts.iter().map(|verdict| (result.source.as_str(), verdict))))
}

/// A page in Markdown. Charts are linked below `charts`, as `EXPERIMENT-CHART.svg`.
pub fn markdown(results: &[Results], command: &str, charts: &str) -> String {
    let mut page = format!("# Results of the lab\n\nWritten by `{command}`. {INTRODUCTION}\n\n{}\n", counted(results));
    let _ = writeln!(page, "| experiment | source | shows | verdicts |\n|---|---|---|---|");
    for result in results {
        let link = format!("[{0}](#{0})", result.experiment);
        let source = format!("{} {}", result.source, result.figure);
        let verdicts = tally(result.verdicts.iter());
        let _ = writeln!(page, "| {link} | {} | {} | {verdicts} |", cell(&source), cell(&result.shows));
    }
    results.iter().for_each(|result| section(&mut page, result, charts));
    page
}

fn section(page: &mut String, result: &Results, charts: &str) {
    let _ = writeln!(page, "\n## {}\n\n{} {}: {}.", result.experiment, result.source, result.figure, result.shows);
    let _ =
        writeln!(page, "Scale {}, {} seed{}.", result.scale, result.seeds, if result.seeds == 1 { "" } else { "s" });
    for chart in &result.charts {
        let link = format!("{charts}/{}-{}", result.experiment, chart.file);
        let _ = writeln!(page, "\n![{}]({link})\n\n{}", chart.title.replace(['[', ']'], ""), chart.caption);
    }
    if !result.verdicts.is_empty() {
        let _ = writeln!(page, "\n| where | claim | verdict | numbers |\n|---|---|---|---|");
    }
    for verdict in &result.verdicts {
        let claim = if verdict.remark.is_empty() {
            verdict.claim.clone()
        } else {
            format!("{} *{}*", verdict.claim, verdict.remark)
        };
        let words =
            if verdict.ours { format!("*ours:* {}", verdict.outcome.words()) } else { verdict.outcome.words().into() };
        let row = [&verdict.place, &claim, words.as_str(), &verdict.figures()].map(cell);
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
}

/// Text that cannot break a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:1340px;margin:2rem auto;padding:0 1rem;color:#222}\
    table{border-collapse:collapse;margin:1rem 0;font-size:14px}td,th{border-bottom:1px solid #ddd;padding:.25rem .6rem;\
    text-align:left;vertical-align:top}svg{max-width:100%;height:auto}h2{margin-top:3rem;border-top:2px solid #ddd;\
    padding-top:1rem}.holds{color:#00664b}.holds_loosely{color:#3d6b00}.holds_in_direction{color:#7a5200}\
    .does_not_hold{color:#a03a00}.misprint_or_conversion{color:#555;font-style:italic}.ours{color:#2a4d8f}i{color:#555}summary{cursor:pointer}td.n{text-align:right;\
    font-variant-numeric:tabular-nums}";

/// A page in HTML, with its charts inside.
pub fn html(stores: &[Store], results: &[Results]) -> Result<String> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Results of the lab</title><style>{STYLE}</style></head><body>\n\
         <h1>Results of the lab</h1>\n<p>{}</p>\n",
        escape(INTRODUCTION)
    );
    for (at, line) in counted(results).lines().enumerate().filter(|(at, _)| *at != 1) {
        let cells = line.trim_matches('|').split('|').map(|text| escape(text.trim()).replace('*', ""));
        let tag = if at == 0 { "<table><tr><th>" } else { "<tr><td>" };
        let _ = writeln!(page, "{tag}{}</tr>", cells.collect::<Vec<_>>().join(if at == 0 { "<th>" } else { "<td>" }));
    }
    page.push_str("</table>\n<table><tr><th>experiment<th>source<th>shows<th>verdicts</tr>\n");
    for result in results {
        let [name, source, figure, shows] =
            [&result.experiment, &result.source, &result.figure, &result.shows].map(|text| escape(text));
        let verdicts = tally(result.verdicts.iter());
        let _ =
            writeln!(page, "<tr><td><a href=\"#{name}\">{name}</a><td>{source} {figure}<td>{shows}<td>{verdicts}</tr>");
    }
    page.push_str("</table>\n");
    for result in results {
        html_section(&mut page, stores, result)?;
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn html_section(page: &mut String, stores: &[Store], result: &Results) -> Result<()> {
    let [name, source, figure, shows] =
        [&result.experiment, &result.source, &result.figure, &result.shows].map(|text| escape(text));
    let _ = writeln!(
        page,
        "<h2 id=\"{name}\">{name}</h2>\n<p>{source} {figure}: {shows}. Scale {}, seeds: {}.</p>",
        result.scale, result.seeds
    );
    for chart in &result.charts {
        let drawn = drawn(stores, result, chart)?.unwrap_or_default();
        let _ = writeln!(page, "<figure>{drawn}<figcaption>{}</figcaption></figure>", escape(&chart.caption));
    }
    if !result.verdicts.is_empty() {
        page.push_str("<table><tr><th>where<th>claim<th>verdict<th>numbers</tr>\n");
    }
    for verdict in &result.verdicts {
        // Ours have a colour of their own, whatever came of them.
        let class = if verdict.ours { "ours".into() } else { verdict.outcome.words().replace(' ', "_") };
        let whose = if verdict.ours { "ours: " } else { "" };
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{} <i>{}</i><td class=\"{class}\">{whose}{}<td>{}</tr>",
            escape(&verdict.place),
            escape(&verdict.claim),
            escape(&verdict.remark),
            verdict.outcome.words(),
            escape(&verdict.figures())
        );
    }
    if !result.verdicts.is_empty() {
        page.push_str("</table>\n");
    }
    result.tables.iter().for_each(|table| html_table(page, table));
    Ok(())
}

fn html_table(page: &mut String, table: &Measured) {
    let Some(widest) = table.rows.iter().max_by_key(|row| row.values.len()) else { return };
    let _ = write!(
        page,
        "<details><summary>measurements: {} ({} rows)</summary><table><tr>",
        escape(&table.name),
        table.rows.len()
    );
    let names = widest.labels.iter().map(|(name, _)| name).chain(widest.values.iter().map(|(name, ..)| name));
    names.for_each(|name| page.push_str(&format!("<th>{}", escape(name))));
    page.push_str("</tr>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        row.labels.iter().for_each(|(_, label)| page.push_str(&format!("<td>{}", escape(&label.to_string()))));
        for (name, ..) in &widest.values {
            let value = row.values.iter().find(|(known, ..)| known == name);
            let text =
                value.map(|(_, mean, deviation, _)| format!("{} ± {}", super::short(*mean), super::short(*deviation)));
            let _ = write!(page, "<td class=\"n\">{}", text.unwrap_or_default());
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></details>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
