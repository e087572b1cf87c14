//! Errors against the length of the stream.

use super::{NAMES, SOURCE, USUAL, family, rates, scaled};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-varying-items",
    source: SOURCE,
    figure: "sections 6.2 and 6.3, varying N",
    shows: "weighted errors of eight filters as the stream grows from 25,000 to 800,000 arrivals",
    expected: Seconds { quick: 2.0, default: 25.0, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

fn lengths(scope: &Scope) -> [u64; 6] {
    [25_000, 50_000, 100_000, 200_000, 400_000, 800_000].map(|items| items / scope.pick(8, 1, 1))
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let size = scaled(USUAL, scope.pick(12_500, 100_000, 100_000));
    let cell = |items: u64, seed| {
        let name = format!("linear, {items} arrivals, {}", size.words());
        Cell::new(name, seed, move |_| {
            rates("linear", items, &family(size), seed, |row: Row| row.label("arrivals", items))
        })
        .seconds(items as f64 * 8e-6)
    };
    let lengths = lengths(scope);
    Ok(scope.seeds().flat_map(|seed| lengths.map(|items| cell(items, seed))).collect())
}

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    let caption = "The Bloom filter fills up; filters that forget settle: their false positives stay, their false negatives rise towards the share of duplicates.";
    let mut figure = Figure::new("length", "Weighted errors against the length of the stream", caption);
    for (measure, name) in [("wfp", "weighted false positives, %"), ("wfn", "weighted false negatives, %")] {
        let panel = Panel::new("", Axis::log("arrivals"), Axis::linear(name));
        let panel =
            panel.each(Look::LineAndMarks, (table, "rates"), ("arrivals", measure, 100.0), ("filter", NAMES), &[]);
        figure = figure.panel(panel);
    }
    let lengths = lengths(scope);
    let at = |measure: &str, items: u64, filter: &str| {
        table.percent("rates", measure, &labels![arrivals = items, filter = filter])
    };
    let mut verdicts = Vec::new();
    for (filter, measure, words) in [
        ("SBF", "fnr", "false negatives"),
        ("SBF", "fpr", "false positives"),
        ("IBF5", "fnr", "false negatives"),
        ("BF", "fpr", "false positives"),
    ] {
        let (short, long) = (at(measure, lengths[0], filter)?, at(measure, lengths[5], filter)?);
        let claim = format!("{filter}: {words} rise with the length of the stream");
        verdicts.push(
            Outcome::of(clearly_below(&short, &long))
                .on(format!("{filter}-{measure}"), "6.2", claim)
                .means([("shortest stream, %", &short), ("longest, %", &long)]),
        );
    }
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
