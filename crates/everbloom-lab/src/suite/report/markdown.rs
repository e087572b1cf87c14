//! The page in Markdown, for the repository.

use super::{INTRODUCTION, Results, counts, sourced, tally};
use std::fmt::Write as _;

/// A page in Markdown. Charts are linked below `charts`, as `EXPERIMENT-CHART.svg`.
pub fn markdown(results: &[Results], command: &str, charts: &str) -> String {
    let mut page =
        format!("# Results of the lab\n\nWritten by `{command}`. {INTRODUCTION}\n\n{}\n", counts(sourced(results)));
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
