//! `everbloom lab verdicts`: what came of every claim.

use crate::args::Format;
use crate::failure::{Ending, Result};
use crate::report;
use clap::Args;
use everbloom_lab::suite::report::{Results, read_all, tally};
use everbloom_lab::suite::{Store, Verdict};
use serde::Serialize;
use std::path::PathBuf;

/// Prints every claim, whether it holds, and the numbers.
#[derive(Debug, Args)]
pub(crate) struct Verdicts {
    /// The directories that `lab run` wrote to; where two have an experiment, the later one counts
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// How to print them
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Document<'a> {
    verdicts: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    experiment: &'a str,
    source: &'a str,
    scale: &'a str,
    seeds: u64,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

impl Verdicts {
    pub(crate) fn run(self) -> Result<Ending> {
        let stores = self.results.iter().map(|folder| Store::open(folder)).collect::<everbloom::Result<Vec<_>>>()?;
        let results = read_all(&stores)?;
        let document = Document { verdicts: results.iter().flat_map(entries).collect() };
        report::print(self.format, &document, || table(&results))?;
        Ok(Ending::Done)
    }
}

fn entries(result: &Results) -> impl Iterator<Item = Entry<'_>> {
    result.verdicts.iter().map(|verdict| Entry {
        experiment: &result.experiment,
        source: &result.source,
        scale: &result.scale,
        seeds: result.seeds,
        verdict,
    })
}

fn table(results: &[Results]) -> String {
    let mut text = String::new();
    for result in results.iter().filter(|result| !result.verdicts.is_empty()) {
        text.push_str(&format!("{}: {} {}\n", result.experiment, result.source, result.figure));
        for verdict in &result.verdicts {
            let remark = if verdict.remark.is_empty() { String::new() } else { format!(" ({})", verdict.remark) };
            let whose = if verdict.ours { "ours, " } else { "" };
            let words = format!("{whose}{}", verdict.outcome.words());
            text.push_str(&format!(
                "  {words:22} {}, {}: {}{remark}\n",
                verdict.place,
                verdict.claim,
                verdict.figures()
            ));
        }
    }
    let all = results.iter().flat_map(|result| &result.verdicts);
    text.push_str(&format!("{} verdicts: {}\n", all.clone().count(), tally(all)));
    text
}
