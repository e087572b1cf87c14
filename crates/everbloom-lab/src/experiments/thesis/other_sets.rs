//! The sets that the thesis ran and did not print: exponential and crawl.

use super::{SHOWN, SOURCE, USUAL, family, items, scaled};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-other-sets",
    source: SOURCE,
    figure: "section 6.1, exponential and crawl sets",
    shows: "weighted errors and errors by importance on the exponential and crawl sets",
    expected: Seconds { quick: 1.5, default: 14.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const SETS: [&str; 3] = ["exponential", "exponential_70", "crawl"];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let size = scaled(USUAL, items);
    let cell = |set: &'static str, seed| {
        let name = format!("{set}, {items} arrivals, {}", size.words());
        Cell::new(name, seed, move |_| measure(set, items, &family(size), seed)).seconds(0.8)
    };
    Ok(scope.seeds().flat_map(|seed| SETS.map(|set| cell(set, seed))).collect())
}

fn measure(set: &'static str, items: u64, filters: &[Named], seed: u64) -> Result<Vec<Row>> {
    let request = Request { items: Some(items), seed, ..Default::default() };
    let outcome = judge_set(set, request, filters, Record { by_importance: true, ..Record::default() })?;
    let mut rows = Vec::new();
    for ((name, _), report) in filters.iter().zip(&outcome.reports) {
        let start = |table: &str| Row::new(table).label("set", set).label("filter", *name);
        rows.push(with_rates(start("rates"), report).value("fn_share_slope", report.fn_share_slope));
        for point in report.by_importance.iter().flatten() {
            let row = start("by_importance").label("importance", point.importance);
            rows.push(row.value("fnr", point.measured_fnr).value("fn_share", point.fn_share));
        }
    }
    Ok(rows)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "by-importance",
        "False negatives by importance on other sets",
        "As on the linear sets, false negatives of the importance-aware filters fall with importance. In the crawl the most important pages are also linked most, so every filter knows them.",
    );
    for (set, top) in [("exponential_70", 51.0), ("crawl", 8.5)] {
        let panel = Panel::new(
            set.replace('_', ", ") + if set == "crawl" { "" } else { " % repeats" },
            Axis::linear("importance").from(0.0, top),
            Axis::linear("false negatives, % of duplicates"),
        );
        let (axes, here) = (("importance", "fnr", 100.0), labels![set = set]);
        let panel = panel.each(Look::Line, (table, "by_importance"), axes, ("filter", SHOWN), &here);
        figure = figure.panel(panel);
    }
    let mut verdicts = Vec::new();
    for set in SETS {
        let at = |measure: &str, filter: &str| table.percent("rates", measure, &labels![set = set, filter = filter]);
        let aware = ["IBF1", "IBF3", "IBF5"].map(|filter| at("fn_share_slope", filter));
        let [ibf1, ibf3, ibf5] = aware;
        let (ibf1, ibf3, ibf5) = (ibf1?, ibf3?, ibf5?);
        let falls = [&ibf1, &ibf3, &ibf5].iter().all(|slope| slope.mean() < -4.0 * slope.error());
        let (sbf, sum3) = (at("wfn", "SBF")?, at("wfn", "IBF3")?);
        verdicts.push(
            Outcome::of(falls)
                .on(format!("{set}-slope"), "8", format!("{set}: false negatives do not rise with importance"))
                .means([("IBF1, points per unit", &ibf1), ("IBF3", &ibf3), ("IBF5", &ibf5)]),
        );
        verdicts.push(
            Outcome::of(clearly_below(&sum3, &sbf))
                .on(
                    format!("{set}-wfn"),
                    "3",
                    format!("{set}: weighted false negatives of IBF3 are below the stable filter's"),
                )
                .mean("SBF, %", &sbf)
                .mean("IBF3, %", &sum3)
                .mean("their wfp: SBF, %", &at("wfp", "SBF")?)
                .mean("IBF3, %", &at("wfp", "IBF3")?),
        );
    }
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
