//! One array, the paper's mean, and the full formula.

use super::common::{Named, judge_set, with_rates};
use super::reservoir::{SOURCE, reservoir_spec};
use crate::datasets::Request;
use crate::evaluate::Record;
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Point, Row, Scope, Seconds, Series, Summary,
    Table, Verdict, clearly_below,
};
use everbloom::Result;

/// See the module.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-settings",
    source: SOURCE,
    figure: "section 5.4",
    shows: "FNR and FPR for 1 to 8 arrays: low FNR (1), balanced (3 for 10 %) and low FPR (5)",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    revision: 1,
    timed: false,
    needs: &[],
    cells,
    conclude,
};

const ARRAYS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const STREAMS: [&str; 3] = ["uniform", "zipf", "log_lag"];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = scope.pick(100_000, 1_000_000, 1_000_000);
    let memory_bits = items / 8;
    let cell = |stream: &'static str, seed| {
        Cell::new(format!("{stream}, {items} arrivals, {memory_bits} bits"), seed, move |_| {
            let filters: Vec<Named> =
                ARRAYS.iter().map(|arrays| ("RSBF", reservoir_spec(memory_bits, *arrays))).collect();
            let outcome = judge_set(
                stream,
                Request { items: Some(items), seed, ..Default::default() },
                &filters,
                Record::default(),
            )?;
            let row = |(arrays, report): (&u32, _)| {
                with_rates(Row::new("rates").label("stream", stream).label("num_filters", *arrays), report)
            };
            Ok(ARRAYS.iter().zip(&outcome.reports).map(row).collect())
        })
        .seconds(items as f64 * 8.0 * 40e-9)
    };
    Ok(scope.seeds().flat_map(|seed| STREAMS.map(|stream| cell(stream, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "arrays",
        "Errors against the number of arrays",
        "Dashed: 2 to the power of minus k, what k arrays half full come to.",
    );
    for (measure, name) in [("fnr", "false negatives, % of duplicates"), ("fpr", "false positives, % of distinct")] {
        let y = if measure == "fpr" { Axis::log(name) } else { Axis::linear(name) };
        let mut panel = Panel::new("", Axis::linear("arrays"), y);
        for stream in STREAMS {
            let here = |summary: &Summary| summary.label("stream") == Some(&stream.into());
            panel = panel.series(Series::from_table(
                stream,
                Look::LineAndMarks,
                (table, "rates"),
                ("num_filters", measure, 100.0),
                here,
            ));
        }
        if measure == "fpr" {
            let half = ARRAYS.map(|arrays| Point::new(f64::from(arrays), 100.0 * 0.5f64.powi(arrays as i32)));
            panel = panel.series(Series::new("half full", Look::Reference, half));
        }
        figure = figure.panel(panel);
    }
    let at = |measure: &str, stream: &str, arrays: u32| {
        Ok::<_, everbloom::Error>(
            table.need("rates", measure, &[("stream", stream.into()), ("num_filters", arrays.into())])?.percent(),
        )
    };
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        let (one, three, five) = (at("fpr", stream, 1)?, at("fpr", stream, 3)?, at("fpr", stream, 5)?);
        verdicts.push(
            Verdict::new(
                format!("fpr-{stream}"),
                "5.4",
                format!("{stream}: the FPR falls with the number of arrays"),
                Outcome::of(clearly_below(&three, &one) && clearly_below(&five, &three)),
            )
            .mean("1 array, %", &one)
            .mean("3, %", &three)
            .mean("5, %", &five),
        );
        let (one, three, five) = (at("fnr", stream, 1)?, at("fnr", stream, 3)?, at("fnr", stream, 5)?);
        verdicts.push(
            Verdict::new(
                format!("fnr-{stream}"),
                "5.4",
                format!("{stream}: the FNR is lowest with one array"),
                Outcome::of(clearly_below(&one, &three) && clearly_below(&one, &five)),
            )
            .mean("1 array, %", &one)
            .mean("3, %", &three)
            .mean("5, %", &five),
        );
    }
    let (three, four) = (at("late_fpr", "uniform", 3)?, at("late_fpr", "uniform", 4)?);
    verdicts.push(
        Verdict::new("threshold", "5.4, eq. 5.27", "3 arrays keep an FPR of 10 %", Outcome::of(three.mean() <= 10.0))
            .mean("late FPR of 3 arrays, uniform, %", &three)
            .mean("of 4, the least k with 2^-k below 10 %, %", &four),
    );
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
