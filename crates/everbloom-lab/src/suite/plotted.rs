//! Charts of tables: means over seeds with their errors, as points and series.

use super::table::{Label, Sample, Summary, Table};
use crate::charts::{Look, Panel, Point, Series};

impl Panel {
    /// Adds a [`Series::from_table`] for each of these values of a label, named for it, of the rows that also have
    /// the `other` labels.
    #[must_use]
    pub fn each<'a>(
        mut self,
        look: Look,
        (table, rows): (&Table, &str),
        axes: (&str, &str, f64),
        (label, names): (&str, impl IntoIterator<Item = &'a str>),
        other: &[(&str, Label)],
    ) -> Self {
        for name in names {
            let labels: Vec<_> = other.iter().cloned().chain([(label, name.into())]).collect();
            self.series.push(Series::from_table(name, look, (table, rows), axes, &labels));
        }
        self
    }
}

impl Point {
    /// The mean of a sample, times `unit`, with its standard error.
    pub fn of(x: f64, sample: &Sample, unit: f64) -> Self {
        Point { x, y: sample.mean() * unit, error: sample.error() * unit }
    }
}

impl Series {
    /// The means of `value`, times `unit`, over the numeric label `x`, of the rows with these labels.
    pub fn from_table(
        name: impl Into<String>,
        look: Look,
        (table, rows): (&Table, &str),
        (x, value, unit): (&str, &str, f64),
        labels: &[(&str, Label)],
    ) -> Self {
        let summaries = table.summary(rows);
        let point = |summary: &Summary| Some(Point::of(summary.label(x)?.number()?, summary.sample(value)?, unit));
        let mut points: Vec<_> = summaries.iter().filter(|summary| summary.has(labels)).filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { name: name.into(), look, points }
    }
}
