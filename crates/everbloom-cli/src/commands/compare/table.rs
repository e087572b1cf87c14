//! A comparison for people.

use super::{Document, Row};
use crate::report::{percent, size, thousands};

/// The comparison as text; weighted columns only where importances were given.
pub(super) fn render(document: &Document, weighted: bool) -> String {
    let mut text = summary(document);
    text.push('\n');
    text.push_str(&align(&rows(document, weighted)));
    if document.filters.iter().any(|row| row.report.by_importance.is_some()) {
        text.push('\n');
        text.push_str(&by_importance(document));
    }
    let omitted = document.omitted.iter().map(|omitted| format!("{} is left out: {}", omitted.filter, omitted.reason));
    for remark in broken(document).into_iter().chain(notes(document)).chain(omitted) {
        text.push_str(&format!("\n{remark}"));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Which filters were filled with more than they were planned for.
fn broken(document: &Document) -> Vec<String> {
    let line = |(index, row): (usize, &Row)| {
        let at = thousands(row.report.broken_at?);
        Some(format!("the promise of {} is broken at arrival {at}: more came than it was planned for", index + 1))
    };
    document.filters.iter().enumerate().filter_map(line).collect()
}

/// What the plans have to say, each with the numbers of the filters that it is about.
fn notes(document: &Document) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (index, row) in document.filters.iter().enumerate() {
        for note in &row.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, rows)) => rows.push((index + 1).to_string()),
                None => notes.push((note, vec![(index + 1).to_string()])),
            }
        }
    }
    notes.into_iter().map(|(note, rows)| format!("note on {}: {note}", rows.join(", "))).collect()
}

fn summary(document: &Document) -> String {
    let about = if document.truth_sample.is_some() { "about " } else { "" };
    let mut text = format!(
        "{} arrivals, {about}{} distinct, {about}{} duplicates",
        thousands(document.items),
        thousands(document.distinct),
        thousands(document.duplicates)
    );
    if document.skipped > 0 {
        text.push_str(&format!(", {} records skipped", thousands(document.skipped)));
    }
    text.push('\n');
    if let Some(share) = document.truth_sample {
        text.push_str(&format!("rates are over {} of the keys, chosen by hash\n", percent(share)));
    }
    if let (Some(limit), Some(kind)) = (document.limit_fnr, document.limit_kind) {
        text.push_str(&format!(
            "limit of the FNR for this memory at an FPR of {}: {} ({kind})\n",
            percent(document.target_fpr),
            percent(limit)
        ));
    }
    text
}

fn rows(document: &Document, weighted: bool) -> Vec<Vec<String>> {
    let matched = document.filters.iter().any(|row| row.matched.is_some());
    let mut header: Vec<&str> = vec!["#"];
    if matched {
        header.extend(["matched FNR", "benefit", "grid"]);
    }
    header.extend(["FNR", "FPR", "promised", "late FNR", "late FPR"]);
    if weighted {
        header.extend(["wfn", "wfp", "precision", "recall"]);
    }
    header.extend(["ns/item", "memory", "filter"]);
    let mut rows = vec![header.into_iter().map(str::to_string).collect()];
    rows.extend(document.filters.iter().enumerate().map(|(index, row)| line(index, row, matched, weighted)));
    rows
}

fn line(index: usize, row: &Row, matched: bool, weighted: bool) -> Vec<String> {
    let report = &row.report;
    let mut cells = vec![(index + 1).to_string()];
    if matched {
        let found = row.matched.as_ref();
        cells.push(rate(found.and_then(|found| found.matched_fnr)));
        cells.push(rate(found.and_then(|found| found.benefit)));
        cells.push(found.map_or_else(String::new, |found| found.grid_size.to_string()));
    }
    let promised = match report.broken_at {
        Some(_) => format!("{} broken", percent(report.predicted_fpr)),
        None => percent(report.predicted_fpr),
    };
    cells.extend([rate(report.measured_fnr), rate(report.measured_fpr), promised]);
    cells.extend([report.late_fnr, report.late_fpr].map(rate));
    if weighted {
        cells.extend([report.wfn, report.wfp, report.weighted_precision, report.weighted_recall].map(rate));
    }
    cells.push(report.ns_per_item.map_or_else(|| "–".into(), |time| format!("{time:.1}")));
    cells.push(size(report.memory_bits));
    cells.push(report.filter.clone());
    cells
}

/// The share of false negatives among all arrivals of an importance, a column per filter.
fn by_importance(document: &Document) -> String {
    let curves: Vec<_> = document.filters.iter().filter_map(|row| row.report.by_importance.as_ref()).collect();
    let mut header = vec!["importance".to_string(), "arrivals".to_string()];
    header.extend((1..=curves.len()).map(|index| format!("fn_share {index}")));
    let mut rows = vec![header];
    for (index, first) in curves.first().into_iter().flat_map(|curve| curve.iter().enumerate()) {
        let importance = (first.importance * 100.0).round() / 100.0;
        let mut cells = vec![importance.to_string(), thousands(first.distinct + first.duplicates)];
        cells.extend(curves.iter().map(|curve| rate(curve.get(index).and_then(|row| row.fn_share))));
        rows.push(cells);
    }
    let mut text = align(&rows);
    for (index, row) in document.filters.iter().enumerate().skip(1) {
        if let Some(importance) = row.report.crossover_importance {
            text.push_str(&format!(
                "filter {} has fewer false negatives than filter 1 from importance {importance:.1} on\n",
                index + 1
            ));
        }
    }
    text
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".into(), percent)
}

/// Columns side by side, numbers to the right, the last one as it comes.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<_> =
            row.iter()
                .enumerate()
                .map(|(column, cell)| {
                    if column + 1 == columns { cell.clone() } else { format!("{cell:>width$}", width = widths[column]) }
                })
                .collect();
        format!("{}\n", cells.join("  "))
    };
    rows.iter().map(line).collect()
}
