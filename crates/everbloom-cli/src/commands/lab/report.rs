//! `everbloom lab report`: finished experiments as a page.

use crate::failure::{Ending, Failure, Result};
use crate::output;
use clap::Args;
use everbloom_lab::suite::{Store, report, write_whole};
use std::path::{Path, PathBuf};

/// Writes a page with the charts and verdicts of what `lab run` finished: HTML with everything inside,
/// or, for a name that ends in .md, Markdown with the charts in a folder beside it.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The directories that `lab run` wrote to; where two have an experiment, the later one counts
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// The page [default: report.html in the first DIR]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The command that made the results, for the page to quote
    #[arg(long, value_name = "TEXT", default_value = "everbloom lab run")]
    command: String,
}

/// Where a Markdown page's charts go, beside it.
const CHARTS: &str = "charts";

impl Report {
    pub(crate) fn run(self) -> Result<Ending> {
        let stores = self.results.iter().map(|folder| Store::open(folder)).collect::<everbloom::Result<Vec<_>>>()?;
        let results = report::read_all(&stores)?;
        let first = self.results.first().cloned().unwrap_or_default();
        let page = self.output.clone().unwrap_or_else(|| first.join("report.html"));
        match page.extension().and_then(|extension| extension.to_str()) {
            Some("md") => self.markdown(&stores, &results, &page)?,
            Some("html") => write_whole(&page, report::html(&stores, &results)?.as_bytes())?,
            _ => return Err(Failure::at(&page, "is no page; name one that ends in .html or .md")),
        }
        output::print(&format!("{}\n", page.display()))?;
        Ok(Ending::Done)
    }

    fn markdown(&self, stores: &[Store], results: &[report::Results], page: &Path) -> Result<()> {
        let folder = page.parent().unwrap_or(Path::new("")).join(CHARTS);
        for result in results {
            for chart in &result.charts {
                let drawn = report::drawn(stores, result, chart)?.ok_or_else(|| {
                    let lacking = format!("lacks {}; run {} again", chart.file, result.experiment);
                    Failure::at(self.results.last().map_or(Path::new(""), PathBuf::as_path), lacking)
                })?;
                write_whole(&folder.join(format!("{}-{}", result.experiment, chart.file)), drawn.as_bytes())?;
            }
        }
        write_whole(page, report::markdown(results, &self.command, CHARTS).as_bytes())?;
        Ok(())
    }
}
