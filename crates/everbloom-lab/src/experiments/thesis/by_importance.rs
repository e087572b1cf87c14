//! What Figures 3 to 6 share: errors by importance, for three values of one parameter.

use super::{SHOWN, Size, family, items, scaled};
use crate::curve;
use crate::experiments::common::*;
use std::ops::RangeInclusive;

/// A figure that varies one parameter.
pub(super) struct Varied {
    /// The set whose arrivals it shows.
    pub(super) set: &'static str,
    /// What is varied, as rows are labelled, and as panels say it.
    pub(super) parameter: &'static str,
    pub(super) words: &'static str,
    pub(super) values: [u64; 3],
    /// The filters' size for a value.
    pub(super) size: fn(u64) -> Size,
    pub(super) title: &'static str,
    pub(super) caption: &'static str,
}

impl Varied {
    /// Rates, rates by importance and crossovers: a cell per value and seed.
    pub(super) fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        let items = items(scope);
        let &Varied { set, parameter, values, size, .. } = self;
        let cell = |value: u64, seed: u64| {
            let size = scaled(size(value), items);
            let name = format!("{set}, {items} arrivals, {parameter} {value}, {}", size.words());
            Cell::new(name, seed, move |_| by_importance(set, items, (parameter, value), size, seed)).seconds(0.6)
        };
        Ok(scope.seeds().flat_map(|seed| values.map(|value| cell(value, seed))).collect())
    }

    /// A measure of a filter, for a value of the parameter.
    pub(super) fn measured(&self, table: &Table, measure: &str, value: u64, filter: &str) -> Result<Sample> {
        table.need("rates", measure, &[(self.parameter, value.into()), ("filter", filter.into())])
    }

    /// [`Varied::measured`], in percent.
    pub(super) fn percent(&self, table: &Table, measure: &str, value: u64, filter: &str) -> Result<Sample> {
        Ok(self.measured(table, measure, value, filter)?.percent())
    }

    /// The mean false negatives, in percent, of a filter's arrivals of these importances.
    pub(super) fn missed(
        &self,
        table: &Table,
        value: u64,
        filter: &str,
        importances: RangeInclusive<u32>,
    ) -> Result<Sample> {
        let mut sum: Option<Sample> = None;
        let count = importances.clone().count() as f64;
        for importance in importances {
            let here = [(self.parameter, value.into()), ("filter", filter.into()), ("importance", importance.into())];
            let sample = table.need("by_importance", "fn_share", &here)?.times(100.0 / count);
            sum = Some(sum.map_or(sample.clone(), |sum| sum.with(&sample, |a, b| a + b)));
        }
        Ok(sum.unwrap_or_default())
    }

    /// False negatives and positives by importance, a column of panels for every value of the parameter.
    pub(super) fn figure(&self, table: &Table) -> Figure {
        let mut figure = Figure::new("by-importance", self.title, self.caption);
        let values = table.labels("by_importance", self.parameter);
        for (measure, unit) in
            [("fn_share", "false negatives, % of arrivals"), ("fp_share", "false positives, % of arrivals")]
        {
            for value in &values {
                let title = format!("{} {value}", self.words);
                let (axes, here) = (("importance", measure, 100.0), [(self.parameter, value.into())]);
                let panel = Panel::new(title, Axis::linear("importance").from(0.0, 51.0), Axis::linear(unit));
                figure = figure.panel(panel.each(Look::Line, (table, "by_importance"), axes, ("filter", SHOWN), &here));
            }
        }
        figure
    }
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
