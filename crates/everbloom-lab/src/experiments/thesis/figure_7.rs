//! Empty cells over time.

use super::{NAMES, SOURCE, Size, family};
use crate::datasets::{self, Request};
use crate::experiments::common::{Named, build};
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Row, Sample, Scope, Seconds, Series, Summary,
    Table, Verdict,
};
use everbloom::{Importance, Result};

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-figure-7",
    source: SOURCE,
    figure: "Figure 7",
    shows: "empty cells of 512 over 100,000 arrivals settle at a point of each filter's own",
    expected: Seconds { quick: 0.5, default: 5.0, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

const NUM_CELLS: u64 = 512;
const EVERY: u64 = 500;
/// From here on the counts have settled.
const SETTLED: f64 = 10_000.0;

/// The text says a largest value of 5; the curve fits 4.
fn size(cell_max: u32) -> Size {
    Size { num_cells: NUM_CELLS, num_hashes: 4, decrements: 5, cell_max }
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = scope.pick(20_000, 100_000, 100_000);
    let cell = |cell_max: u32, seed| {
        Cell::new(format!("{items} arrivals, cell_max {cell_max}"), seed, move |_| zeros(items, cell_max, seed))
            .seconds(0.5)
    };
    Ok(scope.seeds().flat_map(|seed| [4, 5].map(|cell_max| cell(cell_max, seed))).collect())
}

fn zeros(items: u64, cell_max: u32, seed: u64) -> Result<Vec<Row>> {
    let filters: Vec<Named> = family(size(cell_max));
    let mut built = filters.iter().map(|(_, spec)| build(spec, seed)).collect::<Result<Vec<_>>>()?;
    let set = datasets::open("linear", &Request { items: Some(items), seed: 1000 + seed, ..Default::default() })?;
    let mut rows = Vec::new();
    for (arrivals, arrival) in (1u64..).zip(set) {
        let importance = Importance::new(arrival.importance, 50)?;
        for ((name, _), filter) in filters.iter().zip(&mut built) {
            filter.observe(arrival.key, importance);
            if arrivals % EVERY == 0 {
                let row =
                    Row::new("zeros").label("cell_max", cell_max).label("filter", *name).label("arrivals", arrivals);
                rows.push(row.value("zeros", NUM_CELLS as f64 * (1.0 - filter.status().fill)));
            }
        }
    }
    Ok(rows)
}

/// The settled counts of a filter, and how much they move from look to look.
fn settled(table: &Table, cell_max: u32, filter: &str) -> Sample {
    let belongs = |summary: &Summary| {
        summary.label("cell_max") == Some(&cell_max.into())
            && summary.label("filter") == Some(&filter.into())
            && summary.label("arrivals").and_then(|label| label.number()).is_some_and(|at| at >= SETTLED)
    };
    let summaries = table.summary("zeros");
    let counts = summaries.iter().filter(|summary| belongs(summary)).filter_map(|summary| summary.sample("zeros"));
    Sample(counts.flat_map(|sample| sample.0.clone()).collect())
}

/// 512 · (1/(1 + 1/(P·(1/K − 1/m))))^Max.
fn stable_point(cell_max: u32) -> f64 {
    let size = size(cell_max);
    let load = f64::from(size.decrements) * (1.0 / f64::from(size.num_hashes) - 1.0 / NUM_CELLS as f64);
    NUM_CELLS as f64 * libm::pow(1.0 / (1.0 + 1.0 / load), f64::from(cell_max))
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let caption = "The stable point (dashed: theory for the stable filter) is reached within a thousand arrivals. IBF2 is emptiest and most restless.";
    let panel = Panel::new("", Axis::linear("arrivals"), Axis::linear("empty cells of 512").from(0.0, 512.0));
    let four = [("cell_max", 4u32.into())];
    let panel = panel.each(Look::Line, (table, "zeros"), ("arrivals", "zeros", 1.0), ("filter", NAMES), &four);
    let ends = table.labels("zeros", "arrivals").iter().filter_map(|label| label.number()).fold(0.0, f64::max);
    let theory = [0.0, ends].map(|x| crate::suite::Point::new(x, stable_point(4)));
    let panel = panel.series(Series::new("stable point, theory", Look::Reference, theory));
    let figure = Figure::new("zeros", "Empty cells over time (Figure 7)", caption).panel(panel);
    Ok(Conclusion::new().figure(figure).verdicts(verdicts(table)))
}

fn verdicts(table: &Table) -> Vec<Verdict> {
    let at = |filter: &str| settled(table, 4, filter);
    let (stable, as_printed) = (at("SBF"), settled(table, 5, "SBF"));
    let others: Vec<_> = ["IBF1", "IBF2", "IBF3", "IBF4", "IBF5", "IBF6"].map(|name| (name, at(name))).to_vec();
    let lowest = others.iter().map(|(_, sample)| sample.mean()).fold(f64::INFINITY, f64::min);
    let highest = others.iter().map(|(_, sample)| sample.mean()).fold(0.0, f64::max);
    let restless =
        others.iter().max_by(|a, b| a.1.deviation().total_cmp(&b.1.deviation())).map_or("", |(name, _)| name);
    let (ibf2, bloom) = (at("IBF2"), at("BF"));
    // Looks 500 arrivals apart are nearly independent.
    let near = |sample: &Sample, value: f64| (sample.mean() - value).abs() <= 0.1 * value + 1.0;
    let printed = match (near(&as_printed, 50.0), near(&stable, 50.0)) {
        (true, _) => Outcome::Holds,
        (false, true) => Outcome::Misprint,
        _ => Outcome::DoesNotHold,
    };
    let theory_holds = (stable.mean() - stable_point(4)).abs() <= 4.0 * stable.error();
    vec![
        Verdict::new(
            "stable-point",
            "6.5",
            "the stable filter settles around 50 empty cells, with a largest value of 5",
            printed,
        )
        .number("printed", 50.0)
        .mean("largest value 5", &as_printed)
        .mean("largest value 4", &stable),
        Verdict::new(
            "theory",
            "2.2, eq. 4",
            "the share of empty cells of a stable filter tends to a constant",
            Outcome::of(theory_holds),
        )
        .number("theory of Deng and Rafiei", stable_point(4))
        .mean("measured", &stable),
        Verdict::new(
            "range",
            "6.5",
            "the importance-aware filters settle too, at 50 to 400 empty cells",
            Outcome::graded(lowest >= 45.0 && highest <= 440.0, lowest > 10.0),
        )
        .number("lowest", lowest)
        .number("highest", highest),
        Verdict::new(
            "ibf2-level",
            "6.5",
            "IBF2 has the most empty cells, nearly 400",
            Outcome::graded(near(&ibf2, 400.0), ibf2.mean() >= highest),
        )
        .mean("measured", &ibf2),
        Verdict::new(
            "ibf2-restless",
            "6.5",
            "IBF2 deviates most about its stable point",
            Outcome::of(restless == "IBF2"),
        )
        .number("deviation of IBF2", ibf2.deviation())
        .number("largest of all", others.iter().map(|(_, sample)| sample.deviation()).fold(0.0, f64::max))
        .remark(format!("{restless} deviates most")),
        Verdict::new("bloom", "6.5", "the Bloom filter is full very soon", Outcome::of(bloom.mean() < 1.0))
            .mean("empty cells", &bloom),
    ]
}
