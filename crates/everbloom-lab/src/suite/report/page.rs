//! The page in HTML: findings first, then paper by paper the claims, ours beside theirs. Everything is inside, nothing is fetched.

use super::findings::findings;
use super::{
    ChartFile, Counts, INTRODUCTION, Measured, Results, THE_PAPERS, count_by_source, drawn, points, sourced, tally,
};
use crate::experiments;
use crate::suite::{OURS, Outcome, Store, Verdict, short};
use everbloom::Result;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// A paper, or several that go together, by how its experiments call their source.
struct Paper {
    id: &'static str,
    title: &'static str,
    sources: &'static [&'static str],
}

const PAPERS: [Paper; 5] = [
    Paper {
        id: "lectures",
        title: "Two lectures: Bloom and counting filters, their design rules and summary caches",
        sources: &["[CS6931]", "[SDS]"],
    },
    Paper { id: "thesis", title: "Importance-aware Bloom filters (Boraskar 2010)", sources: &["[Boraskar 2010]"] },
    Paper {
        id: "reservoir",
        title: "The reservoir-sampling Bloom filter (Dutta et al. 2012)",
        sources: &["[Dutta et al. 2012]"],
    },
    Paper {
        id: "popularity",
        title: "Popularity-conscious Bloom filters (Zhong et al. 2008)",
        sources: &["[Zhong et al. 2008]"],
    },
    Paper { id: "ours", title: "Beyond the papers", sources: &[OURS] },
];

impl Paper {
    fn has(&self, result: &Results) -> bool {
        self.sources.iter().any(|source| result.source.starts_with(source))
    }
}

/// A page in HTML, with its charts inside.
pub fn html(stores: &[Store], results: &[Results]) -> Result<String> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>What the lab found: everbloom</title><style>{}{STYLE}</style></head>\n\
         <body><a class=\"skip\" href=\"#findings\">To the findings</a>\n<header><h1>What the lab found</h1>\n<p class=\"quiet\">{}</p></header>\n<main>\n",
        crate::charts::STYLE,
        escape(&subtitle(results))
    );
    say_findings(&mut page, results);
    contents(&mut page, results);
    say_counts(&mut page, results);
    for paper in &PAPERS {
        let of: Vec<&Results> = results.iter().filter(|result| paper.has(result)).collect();
        if of.is_empty() {
            continue;
        }
        let verdicts = of.iter().flat_map(|result| &result.verdicts);
        let _ = writeln!(
            page,
            "<section aria-labelledby=\"{0}\"><h2 id=\"{0}\">{1}</h2>\n<p>{2}.</p>",
            paper.id,
            escape(paper.title),
            escape(&tally(verdicts))
        );
        for result in of {
            section(&mut page, stores, result)?;
        }
        page.push_str("</section>\n");
    }
    page.push_str("</main>\n<footer><p class=\"quiet\">Written by <code>everbloom lab report</code>.</p></footer>\n</body></html>\n");
    Ok(page)
}

/// How many experiments, claims and seeds.
fn subtitle(results: &[Results]) -> String {
    let claims: usize = results.iter().map(|result| result.verdicts.len()).sum();
    let mut scales: Vec<&str> = results.iter().map(|result| result.scale.as_str()).collect();
    scales.sort_unstable();
    scales.dedup();
    let (some, scale) = (results.len(), scales.join(" and "));
    format!("{some} experiments, {claims} claims of papers and of everbloom, run again at {scale} scale.")
}

fn say_findings(page: &mut String, results: &[Results]) {
    let found = findings(results);
    page.push_str("<section aria-labelledby=\"findings\"><h2 id=\"findings\">Findings</h2>\n");
    if found.is_empty() {
        page.push_str("<p>None of the experiments that findings stand on are among these results.</p>\n</section>\n");
        return;
    }
    page.push_str("<ol class=\"findings\">\n");
    for finding in found {
        // A number and its per cent stay on one line.
        let sentence = escape(&finding.sentence).replace(" %", "\u{a0}%");
        let experiment = finding.experiment;
        let _ = writeln!(page, "<li>{sentence} <a href=\"#{experiment}\">{experiment}</a></li>");
    }
    page.push_str("</ol></section>\n");
}

fn contents(page: &mut String, results: &[Results]) {
    page.push_str("<nav aria-labelledby=\"contents\"><h2 id=\"contents\">Contents</h2>\n");
    for paper in &PAPERS {
        let mut of = results.iter().filter(|result| paper.has(result)).peekable();
        if of.peek().is_none() {
            continue;
        }
        let _ = writeln!(page, "<p><a href=\"#{}\">{}</a></p><ul>", paper.id, escape(paper.title));
        for result in of {
            let _ = writeln!(page, "<li><a href=\"#{0}\">{0}</a></li>", escape(&result.experiment));
        }
        page.push_str("</ul>\n");
    }
    page.push_str("</nav>\n");
}

fn say_counts(page: &mut String, results: &[Results]) {
    let _ = writeln!(
        page,
        "<section aria-labelledby=\"verdicts\"><h2 id=\"verdicts\">Verdicts</h2>\n<p>{}</p>",
        escape(INTRODUCTION).replace("*ours*", "<em>ours</em>")
    );
    open_table(page, "verdicts by source");
    page.push_str("<tr><th scope=\"col\">claims of<th scope=\"col\" class=\"n\">in all");
    for outcome in Outcome::ALL {
        let _ = write!(page, "<th scope=\"col\" class=\"n {}\">{} {}", class(outcome), outcome.sign(), outcome.words());
    }
    page.push_str("</tr>\n");
    for (source, counts) in count_by_source(sourced(results)) {
        counts_row(page, source, &counts);
    }
    close_table(page);
    page.push_str("</section>\n");
}

fn counts_row(page: &mut String, source: &str, counts: &Counts) {
    let source = match source {
        THE_PAPERS => "all papers",
        OURS => "ours",
        paper => paper,
    };
    let _ = write!(page, "<tr><th scope=\"row\">{}<td class=\"n\">{}", escape(source), counts.iter().sum::<usize>());
    counts.iter().for_each(|count| page.push_str(&format!("<td class=\"n\">{count}")));
    page.push_str("</tr>\n");
}

fn section(page: &mut String, stores: &[Store], result: &Results) -> Result<()> {
    let [name, source, figure, shows] =
        [&result.experiment, &result.source, &result.figure, &result.shows].map(|text| escape(text));
    let seeds = if result.seeds == 1 { "1 seed".into() } else { format!("{} seeds", result.seeds) };
    let _ = writeln!(
        page,
        "<h3 id=\"{name}\">{name}</h3>\n<p>{source} {figure}: {shows}. <span class=\"quiet\">Scale {}, {seeds}.</span></p>\n\
         <p>Run it again: <code>{}</code></p>",
        result.scale,
        escape(&command(result))
    );
    let printed =
        experiments::ALL.iter().find(|known| known.name == result.experiment).map_or("", |known| known.printed);
    if !printed.is_empty() {
        let _ = writeln!(page, "<div class=\"printed\"><p><b>In the paper.</b> {}</p></div>", escape(printed));
    }
    for chart in &result.charts {
        figure_of(page, stores, result, chart)?;
    }
    verdicts(page, result);
    result.tables.iter().for_each(|table| measurements(page, &result.experiment, table));
    Ok(())
}

/// The command that makes an experiment's results again.
fn command(result: &Results) -> String {
    let scale = match result.scale.as_str() {
        "default" => String::new(),
        other => format!(" --{other}"),
    };
    format!("everbloom lab run {}{scale} --out results", result.experiment)
}

fn figure_of(page: &mut String, stores: &[Store], result: &Results, chart: &ChartFile) -> Result<()> {
    let label = escape(&chart.title);
    let drawn = drawn(stores, result, chart)?.unwrap_or_default();
    let drawn = drawn.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1);
    let _ = writeln!(
        page,
        "<figure><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"chart: {label}\">{drawn}</div>\n\
         <figcaption><b>Ours.</b> {}",
        escape(&chart.caption)
    );
    if let Some(points) = points(stores, result, chart)? {
        let file = format!("{}-{}.csv", result.experiment, chart.file.trim_end_matches(".svg"));
        let _ = writeln!(
            page,
            "<span class=\"data\"><a download=\"{}\" href=\"data:text/csv;charset=utf-8,{}\">Its points as CSV</a></span>",
            escape(&file),
            in_address(&points)
        );
    }
    page.push_str("</figcaption></figure>\n");
    Ok(())
}

fn verdicts(page: &mut String, result: &Results) {
    if result.verdicts.is_empty() {
        return;
    }
    open_table(page, &format!("claims of {}", result.experiment));
    page.push_str(
        "<tr><th scope=\"col\">verdict<th scope=\"col\">claim<th scope=\"col\">where<th scope=\"col\">numbers</tr>\n",
    );
    result.verdicts.iter().for_each(|verdict| verdict_row(page, verdict));
    close_table(page);
}

fn verdict_row(page: &mut String, verdict: &Verdict) {
    let outcome = verdict.outcome;
    let whose = if verdict.ours { "ours: " } else { "" };
    let remark = if verdict.remark.is_empty() {
        String::new()
    } else {
        format!(" <i class=\"quiet\">{}</i>", escape(&verdict.remark))
    };
    let _ = writeln!(
        page,
        "<tr><td class=\"verdict {}\">{} {whose}{}<td class=\"claim\">{}{remark}<td>{}<td>{}</tr>",
        class(outcome),
        outcome.sign(),
        outcome.words(),
        escape(&verdict.claim),
        escape(&verdict.place),
        escape(&verdict.figures())
    );
}

/// The class of an outcome, for its colour.
fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::HoldsLoosely => "holds_loosely",
        Outcome::HoldsInDirection => "holds_in_direction",
        Outcome::DoesNotHold => "does_not_hold",
        Outcome::Misprint => "misprint",
    }
}

/// Rows of a table on the page; longer ones are for programs.
const MOST_ROWS: usize = 200;

fn measurements(page: &mut String, experiment: &str, table: &Measured) {
    let Some(widest) = table.rows.iter().max_by_key(|row| row.values.len()) else { return };
    let name = escape(&table.name);
    let _ = writeln!(page, "<details><summary>Measurements: {name} ({} rows)</summary>", table.rows.len());
    open_table(page, &format!("measurements of {experiment}: {}", table.name));
    page.push_str("<tr>");
    let names = widest.labels.iter().map(|(name, _)| name).chain(widest.values.iter().map(|(name, ..)| name));
    names.for_each(|name| page.push_str(&format!("<th scope=\"col\">{}", escape(name))));
    page.push_str("</tr>\n");
    for row in table.rows.iter().take(MOST_ROWS) {
        page.push_str("<tr>");
        row.labels.iter().for_each(|(_, label)| page.push_str(&format!("<td>{}", escape(&label.to_string()))));
        for (name, ..) in &widest.values {
            let value = row.values.iter().find(|(known, ..)| known == name);
            let text = value.map(|(_, mean, deviation, _)| format!("{} ± {}", short(*mean), short(*deviation)));
            let _ = write!(page, "<td class=\"n\">{}", text.unwrap_or_default());
        }
        page.push_str("</tr>\n");
    }
    close_table(page);
    if table.rows.len() > MOST_ROWS {
        let file = escape(&format!("{experiment}/{}.csv", table.name));
        let _ = writeln!(page, "<p>The first {MOST_ROWS} rows; <code>{file}</code> beside the results has all.</p>");
    }
    page.push_str("</details>\n");
}

/// A table that scrolls by itself where the screen is narrow, by keyboard too.
fn open_table(page: &mut String, label: &str) {
    let label = escape(label);
    let _ = writeln!(page, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>");
}

fn close_table(page: &mut String) {
    page.push_str("</table></div>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text as part of an address: whatever is not a letter, a digit or one of a few signs as its bytes.
fn in_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b',' | b':' | b'(' | b')' | b'/' => {
                address.push(char::from(byte))
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}
