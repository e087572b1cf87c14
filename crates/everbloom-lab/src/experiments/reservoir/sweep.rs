//! What the sweeps of a parameter share: three streams, and filters on them that differ in it.

use crate::experiments::common::*;

/// The streams.
pub(super) const STREAMS: [&str; 3] = ["uniform", "zipf", "log_lag"];

/// Their arrivals.
pub(super) fn items(scope: &Scope) -> u64 {
    scope.pick(100_000, 1_000_000, 1_000_000)
}

/// The start of a filter's row; what sets it apart is to be added.
pub(super) fn row(stream: &str) -> Row {
    Row::new("rates").label("stream", stream)
}

/// Rates of filters of one size on a stream. Each filter is given by the start of its row and its spec.
pub(super) fn cell(
    stream: &'static str,
    (items, memory_bits): (u64, u64),
    filters: impl Into<Vec<(Row, String)>>,
    seed: u64,
) -> Cell {
    let (rows, specs): (Vec<Row>, Vec<Named>) = filters.into().into_iter().map(|(row, spec)| (row, ("", spec))).unzip();
    let seconds = items as f64 * rows.len() as f64 * 40e-9;
    Cell::new(format!("{stream}, {items} arrivals, {memory_bits} bits"), seed, move |_| {
        let request = Request { items: Some(items), seed, ..Default::default() };
        let outcome = judge_set(stream, request, &specs, Record::default())?;
        Ok(rows.iter().zip(&outcome.reports).map(|(row, report)| with_rates(row.clone(), report)).collect())
    })
    .seconds(seconds)
}
