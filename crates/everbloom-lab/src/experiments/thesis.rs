//! What the thesis's experiments share: its eight filters, its sets, its figures.

use super::common::{Named, judge_set, with_rates};
use crate::curve;
use crate::datasets::Request;
use crate::evaluate::{Record, Report};
use crate::suite::{Axis, Cell, Figure, Look, Panel, Printed, Row, Sample, Scope, Series, Summary, Table, Verdict};
use everbloom::Result;

/// The citation.
pub(super) const SOURCE: &str = "[Boraskar 2010]";

/// The size of a filter, in the thesis's letters: n, k, p, M.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub(super) num_cells: u64,
    pub(super) num_hashes: u32,
    pub(super) decrements: u32,
    pub(super) cell_max: u32,
}

/// n = 65536, k = 4, p = 7, M = 4: where the thesis is when it says nothing else.
pub(super) const USUAL: Size = Size { num_cells: 65_536, num_hashes: 4, decrements: 7, cell_max: 4 };

impl Size {
    /// The words of a spec.
    pub(super) fn words(&self) -> String {
        let Size { num_cells, num_hashes, decrements, cell_max } = self;
        format!("num_cells={num_cells},num_hashes={num_hashes},decrements={decrements},cell_max={cell_max}")
    }
}

/// The thesis's names for its filters.
pub(super) const NAMES: [&str; 8] = ["BF", "SBF", "IBF1", "IBF2", "IBF3", "IBF4", "IBF5", "IBF6"];

/// All eight filters of a size.
pub(super) fn family(size: Size) -> Vec<Named> {
    let words = size.words();
    let spec = |name: &'static str| match name {
        "BF" => format!("bloom:num_bits={},num_hashes={}", size.num_cells, size.num_hashes),
        "SBF" => format!("stable:{words}"),
        other => format!("{}:{words}", other.to_lowercase()),
    };
    NAMES.into_iter().map(|name| (name, spec(name))).collect()
}

/// Some of the eight filters of a size.
pub(super) fn some(size: Size, names: &[&str]) -> Vec<Named> {
    family(size).into_iter().filter(|(name, _)| names.contains(name)).collect()
}

/// The arrivals of the thesis's sets, fewer at quick scale.
pub(super) fn items(scope: &Scope) -> u64 {
    scope.pick(20_000, 100_000, 100_000)
}

/// A size for fewer arrivals: as many cells per arrival as the thesis has.
pub(super) fn scaled(size: Size, items: u64) -> Size {
    Size { num_cells: size.num_cells * items / 100_000, ..size }
}

/// Runs filters on a set: a row of rates each.
pub(super) fn rates(
    set: &str,
    items: u64,
    filters: &[Named],
    seed: u64,
    label: impl Fn(Row) -> Row,
) -> Result<Vec<Row>> {
    let request = Request { items: Some(items), seed, ..Default::default() };
    let record = Record { by_importance: true, ..Record::default() };
    let outcome = judge_set(set, request, filters, record)?;
    let row = |((name, _), report): (&Named, &Report)| {
        with_rates(label(Row::new("rates")).label("filter", *name), report)
            .value("fn_share_slope", report.fn_share_slope)
    };
    Ok(filters.iter().zip(&outcome.reports).map(row).collect())
}

/// The filters that the figures by importance show.
pub(super) const SHOWN: [&str; 5] = ["BF", "SBF", "IBF1", "IBF3", "IBF5"];

/// Cells of a figure that varies one parameter: rates, rates by importance and crossovers.
pub(super) fn varying(
    scope: &Scope,
    set: &'static str,
    parameter: &'static str,
    sizes: &[(u64, Size)],
) -> Result<Vec<Cell>> {
    let items = items(scope);
    let cell = |value: u64, size: Size, seed: u64| {
        let size = scaled(size, items);
        let name = format!("{set}, {items} arrivals, {parameter} {value}, {}", size.words());
        Cell::new(name, seed, move |_| by_importance(set, items, (parameter, value), size, seed)).seconds(0.6)
    };
    Ok(scope.seeds().flat_map(|seed| sizes.iter().map(move |(value, size)| cell(*value, *size, seed))).collect())
}

fn by_importance(set: &str, items: u64, (parameter, value): (&str, u64), size: Size, seed: u64) -> Result<Vec<Row>> {
    let filters = family(size);
    let request = Request { items: Some(items), seed, ..Default::default() };
    let outcome = judge_set(set, request, &filters, Record { by_importance: true, ..Record::default() })?;
    let stable = outcome.reports.get(1);
    let mut rows = Vec::new();
    for ((name, _), report) in filters.iter().zip(&outcome.reports) {
        let start = |table: &str| Row::new(table).label(parameter, value).label("filter", *name);
        rows.push(
            with_rates(start("rates"), report)
                .value("fn_share_slope", report.fn_share_slope)
                .value("fn_share", report.total.fn_share())
                .value("fp_share", report.total.fp_share())
                .value("crossover", stable.and_then(|stable| crossover(report, stable))),
        );
        for point in report.by_importance.iter().flatten() {
            let row = start("by_importance").label("importance", point.importance);
            rows.push(row.value("fn_share", point.fn_share).value("fp_share", point.fp_share));
        }
    }
    Ok(rows)
}

/// The importance from which on a filter has fewer false negatives than the stable one.
fn crossover(report: &Report, stable: &Report) -> Option<f64> {
    let points = |report: &Report| -> Option<Vec<(f64, f64, f64)>> {
        let rows = report.by_importance.as_ref()?;
        Some(
            rows.iter()
                .filter_map(|row| Some((row.importance, row.fn_share?, (row.distinct + row.duplicates) as f64)))
                .collect(),
        )
    };
    curve::crossing(&points(report)?, &points(stable)?)
}

/// The means of a measure of a filter, for a value of the parameter.
pub(super) fn measured(table: &Table, value: &str, (parameter, at): (&str, u64), filter: &str) -> Result<Sample> {
    table.need("rates", value, &[(parameter, at.into()), ("filter", filter.into())])
}

/// False negatives and positives by importance, a column of panels for every value of the parameter.
pub(super) fn figure(table: &Table, parameter: &str, words: &str, name: &str, title: &str, caption: &str) -> Figure {
    let mut figure = Figure::new(name, title, caption);
    let values = table.labels("by_importance", parameter);
    for (measure, unit) in
        [("fn_share", "false negatives, % of arrivals"), ("fp_share", "false positives, % of arrivals")]
    {
        for value in &values {
            let title = format!("{words} {value}");
            let mut panel = Panel::new(title, Axis::linear("importance").from(0.0, 51.0), Axis::linear(unit));
            for filter in SHOWN {
                let here = |summary: &Summary| {
                    summary.label(parameter) == Some(value) && summary.label("filter") == Some(&filter.into())
                };
                panel = panel.series(Series::from_table(
                    filter,
                    Look::Line,
                    (table, "by_importance"),
                    ("importance", measure, 100.0),
                    here,
                ));
            }
            figure = figure.panel(panel);
        }
    }
    figure
}

/// The mean false negatives, in percent, of a filter's least or most important arrivals.
pub(super) fn at_importance(
    table: &Table,
    (parameter, at): (&str, u64),
    filter: &str,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Sample> {
    let mut sum: Option<Sample> = None;
    let count = range.clone().count() as f64;
    for importance in range {
        let labels = [(parameter, at.into()), ("filter", filter.into()), ("importance", importance.into())];
        let sample = table.need("by_importance", "fn_share", &labels)?.times(100.0 / count);
        sum = Some(sum.map_or(sample.clone(), |sum| sum.with(&sample, |a, b| a + b)));
    }
    Ok(sum.unwrap_or_default())
}

/// A verdict on a figure that the prose rounds, or that was read off a chart.
pub(super) fn about(id: &str, place: &str, claim: &str, printed: f64, sample: &Sample, tendency: bool) -> Verdict {
    let outcome = Printed::new(printed, 0).outcome_about(sample, tendency);
    Verdict::new(id, place, claim, outcome).number("printed", printed).mean("measured", sample)
}
