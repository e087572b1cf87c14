//! Deletion of the least important cells: compulsory, not, and with priorities.

use super::{SOURCE, USUAL, items, rates, scaled};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-min-imp",
    source: SOURCE,
    figure: "section 7, algorithms 7 and 8",
    shows: "the least important cells lowered: compulsorily, without compulsion, with priority",
    expected: Seconds { quick: 0.5, default: 6.0, full: None },
    seeds: 8,
    revision: 2,
    ..Experiment::of(cells, conclude)
};

const NAMES: [&str; 8] =
    ["BF", "SBF", "compulsory", "without compulsion", "with priority", "priority 64", "priority 256", "priority 1024"];

fn filters(items: u64) -> Vec<Named> {
    let size = scaled(USUAL, items);
    let words = size.words();
    let ibf = |deletion: &str| format!("ibf:insertion=m,deletion={deletion},{words}");
    let specs = [
        format!("bloom:num_bits={},num_hashes={}", size.num_cells, size.num_hashes),
        format!("stable:{words}"),
        ibf("min_imp"),
        ibf("min_imp_optional"),
        // Algorithm 8 adds M, which is 4; section 7 speaks of a very large value.
        ibf("min_imp_priority"),
        ibf("min_imp_priority,priority_step=64"),
        ibf("min_imp_priority,priority_step=256"),
        ibf("min_imp_priority,priority_step=1024"),
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
    let at =
        |measure: &str, set: &str, filter: &str| table.percent("rates", measure, &labels![set = set, filter = filter]);
    let mut figure = Figure::new(
        "min-imp",
        "Three forms of deleting the least important",
        "Without compulsion the same cells are picked again and again, so hardly anything is deleted: a Bloom filter.",
    );
    for (set, title) in [("linear", "set T, 44.5 % repeats"), ("linear_70", "set D, 70 % repeats")] {
        let mut panel =
            Panel::new(title, Axis::linear("weighted false positives, %"), Axis::linear("weighted false negatives, %"));
        for filter in NAMES {
            panel = panel.series(mark(filter, &at("wfp", set, filter)?, &at("wfn", set, filter)?));
        }
        figure = figure.panel(panel);
    }
    let (bloom, optional) = (at("wfp", "linear", "BF")?, at("wfp", "linear", "without compulsion")?);
    let missed = at("wfn", "linear", "without compulsion")?;
    let close = (optional.mean() - bloom.mean()).abs() <= 0.1 * bloom.mean() && missed.mean() < 1.0;
    let apart = optional.with(&bloom, |optional, bloom| (optional - bloom).abs());
    let same = apart.mean() <= 4.0 * bloom.error() && missed.mean() == 0.0;
    let slope = |filter| at("fn_share_slope", "linear_70", filter);
    let (stable, compulsory) = (slope("SBF")?, slope("compulsory")?);
    let (as_printed, middle) = (slope("with priority")?, slope("priority 64")?);
    let (large, largest) = (slope("priority 256")?, slope("priority 1024")?);
    // Not aware at all: as the stable filter, or nearly nothing beside the compulsory form.
    let blind = !clearly_below(&largest, &stable);
    let nearly = largest.mean().abs() < 0.05 * compulsory.mean().abs();
    let wfn = |filter| at("wfn", "linear_70", filter);
    let (few, many) = (wfn("with priority")?, wfn("priority 1024")?);
    Ok(Conclusion::new().figure(figure).verdicts([
        Outcome::loosely(same, close, optional.mean() > 0.7 * bloom.mean())
            .on("optional", "7", "without compulsion hardly anything is deleted: very close to a Bloom filter")
            .means([("wfp of BF, %", &bloom), ("without compulsion, %", &optional), ("its wfn, %", &missed)]),
        Outcome::loosely(blind, nearly, largest.mean() > as_printed.mean())
            .on("priority", "7", "with a very large priority the behaviour is not importance-aware at all")
            .mean("slope with a priority of 4, points per unit", &as_printed)
            .mean("64", &middle)
            .mean("256", &large)
            .mean("1024", &largest)
            .mean("SBF", &stable)
            .mean("compulsory", &compulsory)
            .remark("Algorithm 8 as printed adds M = 4, and is importance-aware"),
        Outcome::of(clearly_below(&few, &many))
            .on("priority-deletes", "7", "it takes a very large priority to get a significant number of deletions")
            .means([("wfn with a priority of 4, %", &few), ("1024, %", &many), ("SBF, %", &wfn("SBF")?)])
            .remark("false negatives stand for deletions"),
    ]))
}
