//! Deletion of the least important cells: compulsory, not, and with priorities.

use super::{SOURCE, USUAL, items, rates, scaled};
use crate::experiments::common::Named;
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Point, Row, Scope, Seconds, Series, Table,
    Verdict,
};
use everbloom::Result;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-min-imp",
    source: SOURCE,
    figure: "section 7, algorithms 7 and 8",
    shows: "the least important cells lowered: compulsorily, without compulsion, with priority",
    expected: Seconds { quick: 0.5, default: 6.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const NAMES: [&str; 5] = ["BF", "SBF", "compulsory", "without compulsion", "with priority"];

fn filters(items: u64) -> Vec<Named> {
    let size = scaled(USUAL, items);
    let words = size.words();
    let ibf = |deletion: &str| format!("ibf:insertion=m,deletion={deletion},{words}");
    let specs = [
        format!("bloom:num_bits={},num_hashes={}", size.num_cells, size.num_hashes),
        format!("stable:{words}"),
        ibf("min_imp"),
        ibf("min_imp_optional"),
        ibf("min_imp_priority"),
    ];
    NAMES.into_iter().zip(specs).collect()
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let cell = |set: &'static str, seed| {
        Cell::new(format!("{set}, {items} arrivals"), seed, move |_| {
            rates(set, items, &filters(items), seed, |row: Row| row.label("set", set))
        })
    };
    Ok(scope.seeds().flat_map(|seed| ["linear", "linear_70"].map(|set| cell(set, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let at = |measure: &str, set: &str, filter: &str| {
        table.percent("rates", measure, &[("set", set.into()), ("filter", filter.into())])
    };
    let mut figure = Figure::new(
        "min-imp",
        "Three forms of deleting the least important",
        "Without compulsion the same cells are picked again and again, so hardly anything is deleted: a Bloom filter.",
    );
    for (set, title) in [("linear", "set T, 44.5 % repeats"), ("linear_70", "set D, 70 % repeats")] {
        let mut panel =
            Panel::new(title, Axis::linear("weighted false positives, %"), Axis::linear("weighted false negatives, %"));
        for filter in NAMES {
            panel = panel.series(Series::new(
                filter,
                Look::Marks,
                [Point::of(at("wfp", set, filter)?.mean(), &at("wfn", set, filter)?, 1.0)],
            ));
        }
        figure = figure.panel(panel);
    }
    let (bloom, optional) = (at("wfp", "linear", "BF")?, at("wfp", "linear", "without compulsion")?);
    let missed = at("wfn", "linear", "without compulsion")?;
    let close = (optional.mean() - bloom.mean()).abs() <= 0.1 * bloom.mean() && missed.mean() < 1.0;
    let slope = |filter| at("fn_share_slope", "linear_70", filter);
    let (priority, stable, compulsory) = (slope("with priority")?, slope("SBF")?, slope("compulsory")?);
    let blind = priority.mean().abs() < 0.1 * compulsory.mean().abs();
    Ok(Conclusion::new()
        .figure(figure)
        .verdict(
            Verdict::new(
                "optional",
                "7",
                "without compulsion hardly anything is deleted: very close to a Bloom filter",
                Outcome::graded(close, optional.mean() > 0.7 * bloom.mean()),
            )
            .mean("wfp of BF, %", &bloom)
            .mean("without compulsion, %", &optional)
            .mean("its wfn, %", &missed),
        )
        .verdict(
            Verdict::new(
                "priority",
                "7",
                "with priority the behaviour is not importance-aware at all",
                Outcome::graded(blind, priority.mean().abs() < 0.5 * compulsory.mean().abs()),
            )
            .mean("slope with priority, points per unit", &priority)
            .mean("SBF", &stable)
            .mean("compulsory", &compulsory),
        ))
}
