//! Reinsertion: is the cache's memory better spent on cells?

use super::{SOURCE, USUAL, items, rates, scaled};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-reinsertion",
    source: SOURCE,
    figure: "section 5.3",
    shows: "important keys kept aside and inserted again, against the same memory in cells",
    expected: Seconds { quick: 1.0, default: 6.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

/// Bits of a cache entry, as the filter counts them.
const SLOT_BITS: u64 = 192;
/// Bits of a cell whose largest value is 4.
const CELL_BITS: u64 = 3;
const WAYS: [&str; 4] = ["fifo, periodic", "fifo, threshold", "random, periodic", "random, threshold"];

/// The filter alone, four ways of reinsertion, and the filter with the cache's memory in cells.
fn filters(items: u64) -> Vec<Named> {
    let size = scaled(USUAL, items);
    let slots = size.num_cells / 128;
    let larger = super::Size { num_cells: size.num_cells + slots * SLOT_BITS / CELL_BITS, ..size };
    let base = |words: String| format!("ibf:insertion=m,deletion=random,{words}");
    let again = |choice: &str, trigger: &str| {
        base(format!("{},reinsert={choice},reinsert_above=0.8,reinsert_slots={slots},{trigger}", size.words()))
    };
    let (periodic, threshold) = ("reinsert_every=10", "reinsert_every=0,reinsert_below=0.3");
    vec![
        ("none", base(size.words())),
        (WAYS[0], again("fifo", periodic)),
        (WAYS[1], again("fifo", threshold)),
        (WAYS[2], again("random", periodic)),
        (WAYS[3], again("random", threshold)),
        ("more cells", base(larger.words())),
    ]
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let cell = |seed| {
        Cell::new(format!("linear_70, {items} arrivals"), seed, move |_| {
            rates("linear_70", items, &filters(items), seed, |row: Row| row)
        })
    };
    Ok(scope.seeds().map(cell).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let at = |measure: &str, filter: &str| table.percent("rates", measure, &labels![filter = filter]);
    let mut panel =
        Panel::new("", Axis::linear("weighted false positives, %"), Axis::linear("weighted false negatives, %"));
    for filter in ["none", "more cells"].into_iter().chain(WAYS) {
        panel = panel.series(mark(filter, &at("wfp", filter)?, &at("wfn", filter)?));
    }
    let figure = Figure::new(
        "reinsertion",
        "Reinsertion against the same memory in cells",
        "Low and left is better. All but \"none\" take the same memory.",
    )
    .panel(panel);
    let mut verdicts = Vec::new();
    let larger = at("wfp", "more cells")?.with(&at("wfn", "more cells")?, |a, b| a + b);
    for way in WAYS {
        let sum = at("wfp", way)?.with(&at("wfn", way)?, |a, b| a + b);
        let outcome = Outcome::of(larger.mean() + 4.0 * larger.error() < sum.mean());
        verdicts.push(
            outcome
                .on(
                    format!("cells-{}", way.replace(", ", "-")),
                    "5.3",
                    format!("the memory of the reinsertion cache ({way}) is better spent on the filter"),
                )
                .mean("wfp + wfn with reinsertion, %", &sum)
                .mean("with more cells, %", &larger)
                .mean("reinsertion cache, bits in all", &table.need("rates", "memory_bits", &labels![filter = way])?)
                .mean("more cells, bits in all", &table.need("rates", "memory_bits", &labels![filter = "more cells"])?),
        );
    }
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
