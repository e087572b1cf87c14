//! How the thesis's sets are spread over importances.

use super::{SOURCE, items};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-datasets",
    source: SOURCE,
    figure: "Figure 2",
    shows: "arrivals by importance: crawl, linear and exponential sets, and how many of them repeat",
    printed: "Three charts of arrivals by importance: the crawl, where most have low importance, the linear set, which is uniform, and the exponential set, which falls.",
    expected: Seconds { quick: 0.3, default: 0.5, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

const SETS: [&str; 5] = ["crawl", "linear", "exponential", "linear_70", "exponential_70"];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let cell =
        |set, seed| Cell::new(format!("{set}, {items} arrivals"), seed, move |_| count(set, items, seed)).seconds(0.05);
    Ok(scope.seeds().flat_map(|seed| SETS.map(|set| cell(set, seed))).collect())
}

fn count(set: &'static str, items: u64, seed: u64) -> Result<Vec<Row>> {
    let mut oracle = IdOracle::default();
    let (mut by_importance, mut duplicates) = (vec![0u64; 51], 0u64);
    for arrival in datasets::open(set, &Request { items: Some(items), seed: 1000 + seed, ..Default::default() })? {
        by_importance[arrival.importance as usize] += 1;
        duplicates += u64::from(oracle.judge(arrival.key) == Truth::Duplicate);
    }
    let share = |count: u64| count as f64 / items as f64;
    let mut rows = vec![Row::new("sets").label("set", set).value("duplicates", share(duplicates))];
    for (importance, count) in (0u32..).zip(by_importance).filter(|(_, count)| *count > 0) {
        rows.push(
            Row::new("by_importance").label("set", set).label("importance", importance).value("share", share(count)),
        );
    }
    Ok(rows)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "distribution",
        "Arrivals by importance (Figure 2)",
        "Share of arrivals of each importance. The crawl's importances run from 8 at the start page down to 1.",
    );
    for set in ["crawl", "linear", "exponential"] {
        let (axes, here) = (("importance", "share", 100.0), labels![set = set]);
        let series = Series::from_table(set, Look::LineAndMarks, (table, "by_importance"), axes, &here);
        let highest = series.points.iter().map(|point| point.y + point.error).fold(0.0, f64::max);
        let y = Axis::linear("arrivals, % of all").from(0.0, 1.1 * highest);
        figure = figure.panel(Panel::new(set, Axis::linear("importance"), y).series(series));
    }
    let duplicates = |set: &str| table.percent("sets", "duplicates", &labels![set = set]);
    let share = |set: &str, range: std::ops::RangeInclusive<u32>| -> f64 {
        range
            .map(|at| table.sample("by_importance", "share", &labels![set = set, importance = at]))
            .filter(|sample: &Sample| sample.count() > 0)
            .map(|sample| sample.mean())
            .sum()
    };
    let (crawl, tables, figures) = (duplicates("crawl")?, duplicates("linear")?, duplicates("linear_70")?);
    let (low, high) = (share("exponential", 1..=10), share("exponential", 41..=50));
    let (even_low, even_high) = (share("linear", 1..=10), share("linear", 41..=50));
    let (shallow, deep) = (share("crawl", 5..=8), share("crawl", 1..=2));
    Ok(Conclusion::new().figure(figure).verdicts([
        Printed::new(73.0, 0)
            .outcome(&crawl)
            .on("crawl", "6.1.1", "about 73 % of the crawl's arrivals repeat")
            .number("printed", 73.0)
            .mean("generated crawl, %", &crawl)
            .remark("a crawl generated to that share"),
        Outcome::of(deep > shallow)
            .on("crawl-tree", "6.1.1", "most arrivals of the crawl have low importance, since a crawl grows as a tree")
            .numbers([("share of importance 1–2", deep), ("share of importance 5–8", shallow)]),
        Outcome::of((even_low / even_high - 1.0).abs() < 0.1)
            .on("linear", "6.1.2", "the linear set is uniform over importances")
            .numbers([("share of importance 1–10", even_low), ("41–50", even_high)]),
        Outcome::of(low > high)
            .on("exponential", "6.1.2", "the exponential set has more arrivals of low importance")
            .numbers([("share of importance 1–10", low), ("41–50", high)]),
        Outcome::Misprint
            .on("seventy", "6.1.2", "the artificial sets have 70 % duplicates")
            .number("printed, %", 70.0)
            .means([("set of Figures 4–6, %", &figures), ("set of Tables 3–4 and Figure 3, %", &tables)])
            .remark("two sets: the tables come out with 44.5 % only, the figures with 70 % only"),
    ]))
}
