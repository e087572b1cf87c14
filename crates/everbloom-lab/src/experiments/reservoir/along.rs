//! What the figures over records share: rates and ones along a stream.

use crate::experiments::common::*;

/// How many points a curve has.
pub(super) const PARTS: u64 = 50;

/// Rates so far and the number of set bits, after each part of a stream of so many arrivals.
pub(super) fn rows(
    source: &mut dyn Source,
    items: u64,
    filters: &[Named],
    memory_bits: u64,
    seed: u64,
) -> Result<Vec<Row>> {
    let record = Record { fill_every: Some((items / PARTS).max(1)), ..Record::default() };
    let outcome = judge(source, filters, seed, record)?;
    let mut rows = Vec::new();
    for ((name, _), report) in filters.iter().zip(&outcome.reports) {
        let start = |table: &str| Row::new(table).label("memory_bits", memory_bits).label("filter", *name);
        for (place, (arrivals, fpr, fnr)) in integral(report, PARTS as usize, Over::All).into_iter().enumerate() {
            let row = start("along").label("part", place as u64 + 1);
            rows.push(row.value("arrivals", arrivals as f64).value("fpr", fpr).value("fnr", fnr));
        }
        let ones: Vec<_> = report.fill.iter().map(|(at, fill)| (*at, fill * memory_bits as f64)).collect();
        for (place, pair) in ones.windows(2).enumerate() {
            let row = start("ones").label("part", place as u64 + 2);
            rows.push(
                row.value("arrivals", pair[1].0 as f64)
                    .value("ones", pair[1].1)
                    .value("change", (pair[1].1 - pair[0].1).abs()),
            );
        }
        let rates = start("rates").value("fpr", report.measured_fpr).value("fnr", report.measured_fnr);
        rows.push(rates.value("late_fpr", report.late_fpr).value("late_fnr", report.late_fnr));
    }
    Ok(rows)
}

/// The first arrivals of a stream.
pub(super) struct Head<S> {
    pub(super) source: S,
    pub(super) left: usize,
}

impl<S: Source> Source for Head<S> {
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.source.fill(hashing, batch)?;
        let kept = batch.hashes.len().min(self.left);
        batch.hashes.truncate(kept);
        batch.importances.truncate(kept);
        batch.truths.truncate(kept);
        self.left -= kept;
        Ok(())
    }
}

/// A panel for every memory.
pub(super) fn figure(
    table: &Table,
    (rows, value, unit): (&str, &str, f64),
    axis: impl Fn() -> Axis,
    (name, title, caption): (&str, &str, &str),
) -> Figure {
    let mut figure = Figure::new(name, title, caption);
    for memory in table.labels(rows, "memory_bits") {
        let bits = memory.number().unwrap_or(0.0);
        let mut panel = Panel::new(size(bits), Axis::linear("records"), axis());
        for filter in table.labels(rows, "filter") {
            let here = labels![memory_bits = memory.clone(), filter = filter.clone()];
            panel = panel.series(along(&filter.to_string(), table, (rows, value, unit), &here));
        }
        figure = figure.panel(panel);
    }
    figure
}

/// From which record on the number of ones stays within 2 % of its last value.
pub(super) fn settled(table: &Table, bits: u64, filter: &str) -> f64 {
    let curve = along("", table, ("ones", "ones", 1.0), &labels![memory_bits = bits, filter = filter]).points;
    let last = curve.last().map_or(0.0, |point| point.y);
    let outside = curve.iter().rposition(|point| (point.y - last).abs() > 0.02 * last).map_or(0, |place| place + 1);
    curve.get(outside).map_or(0.0, |point| point.x)
}

/// Bits as bytes, in words.
pub(super) fn size(bits: f64) -> String {
    match bits / 8.0 {
        bytes if bytes >= 1048576.0 => format!("{} MiB", bytes / 1048576.0),
        bytes => format!("{} KiB", bytes / 1024.0),
    }
}
