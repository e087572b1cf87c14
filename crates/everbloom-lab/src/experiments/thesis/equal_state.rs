//! The comparison that the thesis asks for and does not make: equal total state.

use super::{SOURCE, Size, USUAL, items, rates, scaled, some};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-equal-state",
    source: SOURCE,
    figure: "section 7, left open",
    shows: "IBF3 and IBF5 against stable filters of twice the cells, and of the same total memory",
    expected: Seconds { quick: 1.0, default: 12.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const COLUMNS: [(u64, u32); 6] = [(16_384, 4), (16_384, 8), (65_536, 4), (65_536, 8), (262_144, 4), (262_144, 8)];
const TWICE: &str = "SBF, twice the cells";
const SAME: &str = "SBF, the memory of IBF3";

fn filters(size: Size) -> Result<Vec<Named>> {
    let mut filters = some(size, &["SBF", "IBF3", "IBF5"]);
    let stable = |num_cells| format!("stable:{}", Size { num_cells, ..size }.words());
    let aware = filters.iter().find(|(name, _)| *name == "IBF3").map_or("", |(_, spec)| spec.as_str());
    // A cell with a largest value of 4 takes 3 bits.
    let same = build(aware, 0)?.memory_bits() / 3;
    filters.push((TWICE, stable(2 * size.num_cells)));
    filters.push((SAME, stable(same)));
    Ok(filters)
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let cell = |(num_cells, num_hashes): (u64, u32), seed| {
        let size = scaled(Size { num_cells, num_hashes, ..USUAL }, items);
        Cell::new(format!("linear, {items} arrivals, {}", size.words()), seed, move |_| {
            rates("linear", items, &filters(size)?, seed, |row: Row| {
                row.label("num_cells", num_cells).label("num_hashes", num_hashes)
            })
        })
        .seconds(0.5)
    };
    Ok(scope.seeds().flat_map(|seed| COLUMNS.map(|column| cell(column, seed))).collect())
}

fn sum(table: &Table, (num_cells, num_hashes): (u64, u32), filter: &str) -> Result<Sample> {
    let labels = labels![num_cells = num_cells, num_hashes = num_hashes, filter = filter];
    Ok(table.need("rates", "wfp", &labels)?.with(&table.need("rates", "wfn", &labels)?, |wfp, wfn| 100.0 * (wfp + wfn)))
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "equal-state",
        "All weighted errors, at equal state",
        "4 and 8 hashes. What a stable filter does with the memory that the importance-aware ones spend on totals.",
    );
    for num_hashes in [4u32, 8] {
        let mut panel = Panel::new(
            format!("{num_hashes} hashes"),
            Axis::log2("cells of the importance-aware filter"),
            Axis::linear("wfp and wfn, % of all importance"),
        );
        for filter in ["SBF", "IBF3", "IBF5", TWICE, SAME] {
            let points = COLUMNS
                .into_iter()
                .filter(|column| column.1 == num_hashes)
                .map(|column| Ok(Point::of(column.0 as f64, &sum(table, column, filter)?, 1.0)));
            panel = panel.series(Series::new(filter, Look::LineAndMarks, points.collect::<Result<Vec<_>>>()?));
        }
        figure = figure.panel(panel);
    }
    let mut verdicts = Vec::new();
    for aware in ["IBF3", "IBF5"] {
        for (id, other) in [("twice", TWICE), ("same", SAME)] {
            verdicts.push(duel(table, aware, id, other)?);
        }
    }
    let memory = |filter: &str| {
        table
            .summary("rates")
            .iter()
            .filter(|summary: &&Summary| summary.label("filter") == Some(&filter.into()))
            .find_map(|summary| summary.sample("memory_bits").map(Sample::mean))
            .unwrap_or(0.0)
    };
    let ratio = memory("IBF3") / memory("SBF");
    verdicts.push(
        Outcome::of(ratio >= 2.0).on("state", "7", "the totals need a space at least equal to that of the cells")
        .number("memory of IBF3 / memory of SBF, same cells", ratio)
        .remark(
            "totals of 100,000 arrivals need more bits than a cell of 3, and deletion in constant time needs an index",
        ),
    );
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}

fn duel(table: &Table, aware: &str, id: &str, other: &str) -> Result<Verdict> {
    let (mut won, mut gains) = (0u32, Vec::new());
    for column in COLUMNS {
        let (mine, theirs) = (sum(table, column, aware)?, sum(table, column, other)?);
        won += u32::from(mine.mean() < theirs.mean());
        gains.push(mine.mean() - theirs.mean());
    }
    let claim = format!("at equal state the stable filter is better: {other} has fewer weighted errors than {aware}");
    let outcome = Outcome::graded(won == 0, won < 3);
    Ok(outcome
        .on(format!("{aware}-{id}"), "7", claim)
        .number(&format!("cells of the tables, of 6, where {aware} has fewer errors"), f64::from(won))
        .number("mean difference in wfp + wfn, points", gains.iter().sum::<f64>() / gains.len() as f64)
        .ours()
        .remark("asked by the thesis, not claimed"))
}
