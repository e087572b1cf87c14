//! A comparison for people.

use super::{Document, Row, Sort};
use crate::report::paper::{Cell, Paper};
use crate::report::{counted, percent, predicted, short_size, thousands, with_error};
use everbloom::kind::Standing;
use everbloom::planning;
use everbloom_lab::evaluate::Report;
use everbloom_lab::spread::{self, Errors};
use std::cmp::Ordering;

/// What to show of it, and in which order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Whether importances were given.
    pub(super) weighted: bool,
    /// Whether the whole specs are wanted.
    pub(super) verbose: bool,
    /// The order, if not that of the options.
    pub(super) sort: Option<Sort>,
}

/// The most classes of importance.
const MOST_CLASSES: usize = 10;
/// Standard deviations of a count that are called chance.
const CHANCE: f64 = 4.0;
/// Longer specs than this do not name a row.
const LONGEST_NAME: usize = 24;

/// The comparison as text.
pub(super) fn render(document: &Document, shown: Shown, paper: &Paper) -> String {
    if document.items == 0 {
        return paper.wrap("there were no lines, so that there is nothing to compare", 0);
    }
    let rows = sorted(document, shown.sort);
    let mut text = summary(document, paper);
    text.push('\n');
    text.push_str(&paper.table(2, &cells(&rows, shown.weighted)));
    text.push('\n');
    text.push_str(&legend(document, &rows, shown.weighted, paper));
    if shown.verbose || has_repeated_kinds(&rows) {
        text.push('\n');
        let width = rows.len().to_string().len();
        for (index, row) in rows.iter().enumerate() {
            text.push_str(&format!("{:>width$}  {}\n", index + 1, row.report.filter));
        }
    }
    if rows.iter().any(|row| row.report.by_importance.is_some()) {
        text.push('\n');
        text.push_str(&by_importance(&rows, paper));
    }
    let remarks: Vec<String> = broken(&rows).into_iter().chain(notes(&rows)).chain(omitted(document, shown)).collect();
    if !remarks.is_empty() {
        text.push('\n');
    }
    remarks.iter().for_each(|remark| text.push_str(&paper.wrap(remark, 2)));
    text
}

/// The rows in the order in which they are shown. Those that broke their promise come last where errors decide: one that
/// calls everything a repeat misses none.
fn sorted(document: &Document, sort: Option<Sort>) -> Vec<&Row> {
    let mut rows: Vec<&Row> = document.filters.iter().collect();
    let by = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        // What is not known comes last.
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    let is_broken = |row: &Row| row.report.broken_at.is_some();
    let by_errors = |one: &Row, other: &Row, rate: fn(&Row) -> Option<f64>| -> Ordering {
        is_broken(one).cmp(&is_broken(other)).then(by(rate(one), rate(other)))
    };
    match sort {
        None => {}
        Some(Sort::Fnr) => rows.sort_by(|one, other| by_errors(one, other, fnr)),
        Some(Sort::Fpr) => rows.sort_by(|one, other| by_errors(one, other, |row| row.report.measured_fpr)),
        Some(Sort::Memory) => rows.sort_by_key(|row| row.report.memory_bits),
        Some(Sort::Time) => rows.sort_by(|one, other| by(one.report.ns_per_item, other.report.ns_per_item)),
    }
    rows
}

/// The rate of false negatives that counts: at the same rate of false positives, if filters were matched.
fn fnr(row: &Row) -> Option<f64> {
    row.matched.as_ref().map_or(row.report.measured_fnr, |matched| matched.matched_fnr)
}

/// A filter in a few letters: its kind, and what was typed where others are of the same kind.
pub(super) fn name(row: &Row, all: &[Row]) -> String {
    let kind_of = |row: &Row| row.report.filter.split(':').next().unwrap_or_default().to_string();
    let (kind, asked) = (kind_of(row), row.asked.to_string());
    match row.asked.kind() {
        planning::AUTO => format!("{kind} (auto)"),
        _ if all.iter().filter(|other| kind_of(other) == kind).count() == 1 => kind,
        _ if asked.chars().count() <= LONGEST_NAME => asked,
        _ => format!("{}…", asked.chars().take(LONGEST_NAME - 1).collect::<String>()),
    }
}

/// Whether names alone do not tell the filters apart.
fn has_repeated_kinds(rows: &[&Row]) -> bool {
    let is_known = |(index, row): (usize, &&Row)| rows[..index].iter().any(|other| other.name == row.name);
    rows.iter().any(|row| row.name.ends_with('…')) || rows.iter().enumerate().any(is_known)
}

fn summary(document: &Document, paper: &Paper) -> String {
    let about = if document.truth_sample.is_some() { "about " } else { "" };
    let mut counts = format!(
        "{}, {about}{} distinct, {about}{}",
        counted(document.items, "line"),
        thousands(document.distinct),
        counted(document.duplicates, "repeat")
    );
    if document.skipped > 0 {
        counts.push_str(&format!(", {} skipped", counted(document.skipped, "line")));
    }
    let mut text = paper.wrap(&counts, 2);
    if let Some(share) = document.truth_sample {
        text.push_str(&paper.wrap(&format!("rates are over {} of the keys, chosen by hash", percent(share)), 2));
    }
    if let (Some(limit), Some(kind)) = (document.limit_fnr, document.limit_kind) {
        let limit = format!(
            "limit of the FNR for this memory at an FPR of {}: {} ({kind})",
            percent(document.target_fpr),
            percent(limit)
        );
        text.push_str(&paper.wrap(&limit, 2));
    }
    text
}

/// What the columns mean.
fn legend(document: &Document, rows: &[&Row], weighted: bool, paper: &Paper) -> String {
    let mut text = String::from(
        "FNR: repeats that the filter took for new. FPR: new lines that it took for repeats. late: both in the last \
         tenth of the lines, which is nearest to what comes next.",
    );
    if rows.iter().any(|row| row.matched.is_some()) {
        text.push_str(&format!(
            " matched FNR: at an FPR of {}, by the best of so many filters (grid). benefit: importance saved against stable.",
            percent(document.target_fpr)
        ));
    }
    if weighted {
        text.push_str(
            " wfn, wfp: the importance of these errors, as a share of all. precision, recall: by importance, of what was called \
             a repeat and of the repeats.",
        );
    }
    if let Some(seeds) = document.seeds {
        let by = if document.truth_sample.is_some() { "seeds and other keys" } else { "seeds" };
        text.push_str(&format!(" Means of {seeds} seeds; with many more {by} they are within the ± 19 times of 20."));
    } else if document.truth_sample.is_some() {
        text.push_str(" ±: by the choice of keys; the rate over all keys is within it 19 times of 20.");
    }
    if rows.iter().any(|row| exceeds_by_chance(row)) {
        text.push_str(
            " ~: above what is promised, within chance: a promise is about the mean, and a count varies around it.",
        );
    }
    if rows.len() > 1 {
        let among = if rows.iter().any(|row| row.report.broken_at.is_some()) { " among kept promises" } else { "" };
        text.push_str(&format!(" {}: best of its column{among}.", paper.mark()));
    }
    paper.wrap(&text, 0)
}

/// A column: its name, what it shows, and what counts as its value, the lower the better.
struct Column {
    name: &'static str,
    text: fn(&Row) -> String,
    value: fn(&Row) -> Option<f64>,
}

/// A rate with its ±.
macro_rules! rate_column {
    ($name:literal, $rate:ident, $error:ident) => {
        Column {
            name: $name,
            text: |row| with_spread(row.report.$rate, errors(&row.report).$error),
            value: |row| row.report.$rate,
        }
    };
}

const MATCHED: &[Column] = &[
    Column { name: "matched FNR", text: |row| rate(fnr(row)), value: fnr },
    Column {
        name: "benefit",
        text: |row| rate(row.matched.as_ref().and_then(|matched| matched.benefit)),
        value: |row| row.matched.as_ref().and_then(|matched| matched.benefit).map(|benefit| -benefit),
    },
    Column {
        name: "grid",
        text: |row| row.matched.as_ref().map_or_else(String::new, |matched| matched.grid_size.to_string()),
        value: |_| None,
    },
];

const RATES: &[Column] = &[
    rate_column!("FNR", measured_fnr, measured_fnr_error),
    rate_column!("FPR", measured_fpr, measured_fpr_error),
    Column { name: "promised", text: promised, value: |_| None },
    rate_column!("late FNR", late_fnr, late_fnr_error),
    rate_column!("late FPR", late_fpr, late_fpr_error),
];

const COSTS: &[Column] = &[
    Column { name: "ns/item", text: time, value: |row| row.report.ns_per_item },
    Column {
        name: "memory",
        text: |row| short_size(row.report.memory_bits),
        value: |row| Some(row.report.memory_bits as f64),
    },
];

const WEIGHTED: &[Column] = &[
    rate_column!("wfn", wfn, wfn_error),
    rate_column!("wfp", wfp, wfp_error),
    Column {
        name: "precision",
        text: |row| rate(row.report.weighted_precision),
        value: |row| row.report.weighted_precision.map(|share| -share),
    },
    Column {
        name: "recall",
        text: |row| rate(row.report.weighted_recall),
        value: |row| row.report.weighted_recall.map(|share| -share),
    },
];

/// The table; columns that do not fit beside the others come below.
fn cells(rows: &[&Row], weighted: bool) -> Vec<Vec<Cell>> {
    let is_matched = rows.iter().any(|row| row.matched.is_some());
    let columns = [(MATCHED, is_matched), (RATES, true), (COSTS, true), (WEIGHTED, weighted)];
    let columns: Vec<&Column> = columns.iter().filter(|(_, shown)| *shown).flat_map(|(columns, _)| *columns).collect();
    let mut header = vec![Cell::from("#"), Cell::name("filter")];
    header.extend(columns.iter().map(|column| Cell::from(column.name)));
    let mut table = vec![header];
    let best: Vec<Option<f64>> = columns.iter().map(|column| best(rows, column.value)).collect();
    for (index, row) in rows.iter().enumerate() {
        let mut line = vec![Cell::from((index + 1).to_string()), Cell::name(&row.name)];
        line.extend(columns.iter().zip(&best).map(|(column, best)| {
            let is_best = best.is_some() && (column.value)(row) == *best && competes(rows, row);
            Cell::from((column.text)(row)).best(is_best)
        }));
        table.push(line);
    }
    table
}

/// Whether a row can be the best: it kept its promise, or none did.
fn competes(rows: &[&Row], row: &Row) -> bool {
    row.report.broken_at.is_none() || rows.iter().all(|row| row.report.broken_at.is_some())
}

/// The best value of a column, if rows differ in it.
fn best(rows: &[&Row], value: fn(&Row) -> Option<f64>) -> Option<f64> {
    let values = rows.iter().filter(|row| competes(rows, row)).filter_map(|row| value(row));
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    (least < most).then_some(least)
}

fn errors(report: &Report) -> Errors {
    report.errors.unwrap_or_default()
}

fn promised(row: &Row) -> String {
    let rate = predicted(row.report.predicted_fpr);
    match row.report.broken_at {
        Some(_) => format!("{rate} broken"),
        None if exceeds_by_chance(row) => format!("{rate} ~"),
        None => rate,
    }
}

/// Whether more was counted than promised though the promise is kept: by no more than chance explains.
fn exceeds_by_chance(row: &Row) -> bool {
    let (report, promised) = (&row.report, row.report.predicted_fpr);
    let most = promised + CHANCE * (promised / (report.total.distinct as f64).max(1.0)).sqrt();
    report.broken_at.is_none()
        && report.promise == Standing::Kept.name()
        && report.measured_fpr.is_some_and(|rate| rate > promised && rate <= most)
}

fn time(row: &Row) -> String {
    match (row.report.ns_per_item, errors(&row.report).ns_per_item_error) {
        (None, _) => "–".into(),
        (Some(time), None) => format!("{time:.1}"),
        (Some(time), Some(error)) => format!("{time:.1} ± {error:.1}"),
    }
}

fn rate(rate: Option<f64>) -> String {
    with_spread(rate, None)
}

fn with_spread(rate: Option<f64>, error: Option<f64>) -> String {
    rate.map_or_else(|| "–".into(), |rate| with_error(rate, error))
}

/// The share of false negatives among all arrivals of an importance, a column per filter.
fn by_importance(rows: &[&Row], paper: &Paper) -> String {
    let curves: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((*row, spread::classes(row.report.by_importance.as_ref()?, MOST_CLASSES))))
        .collect();
    let mut header = vec![Cell::from("importance"), Cell::from("lines")];
    header.extend(curves.iter().map(|(row, _)| Cell::from(row.name.as_str())));
    let mut table = vec![header];
    for (index, class) in curves.first().into_iter().flat_map(|(_, classes)| classes.iter().enumerate()) {
        let number = |importance: f64| ((importance * 100.0).round() / 100.0).to_string();
        let importance = match class.from == class.to {
            true => number(class.from),
            false => format!("{}–{}", number(class.from), number(class.to)),
        };
        let mut line = vec![Cell::from(importance), Cell::from(thousands(class.arrivals))];
        line.extend(
            curves
                .iter()
                .map(|(_, classes)| Cell::from(rate(classes.get(index).and_then(|class| class.tally.fn_share())))),
        );
        table.push(line);
    }
    let mut text = paper.wrap("fn_share: repeats that the filter took for new, among all lines of an importance", 2);
    text.push('\n');
    text.push_str(&paper.table(2, &table));
    // The crossing is with the filter that was named first.
    for row in rows {
        if let Some(importance) = row.report.crossover_importance {
            let first = rows.iter().find(|row| row.is_first).map_or("", |row| row.name.as_str());
            let line =
                format!("{} has fewer false negatives than {first} from importance {importance:.1} on", row.name);
            text.push_str(&paper.wrap(&line, 2));
        }
    }
    text
}

/// Which filters were filled with more than they were planned for.
fn broken(rows: &[&Row]) -> Vec<String> {
    let line = |(index, row): (usize, &&Row)| {
        let at = thousands(row.report.broken_at?);
        let name = &row.name;
        Some(format!(
            "the promise of {} ({name}) is broken at arrival {at}: more came than it was planned for",
            index + 1
        ))
    };
    rows.iter().enumerate().filter_map(line).collect()
}

/// What the plans have to say, each with the numbers of the filters that it is about.
fn notes(rows: &[&Row]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for note in &row.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, rows)) => rows.push((index + 1).to_string()),
                None => notes.push((note, vec![(index + 1).to_string()])),
            }
        }
    }
    notes.into_iter().map(|(note, rows)| format!("note on {}: {note}", rows.join(", "))).collect()
}

/// What could not be tried: why, on request.
fn omitted(document: &Document, shown: Shown) -> Vec<String> {
    if shown.verbose {
        return document
            .omitted
            .iter()
            .map(|omitted| format!("{} is left out: {}", omitted.filter, omitted.reason))
            .collect();
    }
    let names: Vec<&str> = document.omitted.iter().map(|omitted| omitted.filter.as_str()).collect();
    match names.len() {
        0 => Vec::new(),
        _ => vec![format!("left out, since they cannot be had so (--verbose says why): {}", names.join(", "))],
    }
}
