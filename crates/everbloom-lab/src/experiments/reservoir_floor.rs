//! The insertion floor p*, swept.

use super::common::{Named, judge_set, with_rates};
use super::reservoir::SOURCE;
use crate::datasets::Request;
use crate::evaluate::Record;
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Row, Scope, Seconds, Series, Summary, Table,
    Verdict, clearly_below,
};
use everbloom::Result;

/// See the module.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-floor",
    source: SOURCE,
    figure: "sections 4 and 6, p*",
    shows: "FNR and FPR against the insertion floor p* on uniform, Zipf and log-lag streams",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    revision: 1,
    timed: false,
    needs: &[],
    cells,
    conclude,
};

const STREAMS: [&str; 3] = ["uniform", "zipf", "log_lag"];
const FLOORS: [f64; 8] = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9, 0.99];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = scope.pick(100_000, 1_000_000, 1_000_000);
    let memory_bits = items / 16;
    let cell = |stream: &'static str, seed| {
        Cell::new(format!("{stream}, {items} arrivals, {memory_bits} bits"), seed, move |_| {
            let spec = |floor: f64| {
                format!("reservoir:memory_bits={memory_bits},num_filters=3,insert_floor={floor},layout=spread")
            };
            let filters: Vec<Named> = FLOORS.iter().map(|floor| ("RSBF", spec(*floor))).collect();
            let request = Request { items: Some(items), seed, ..Default::default() };
            let outcome = judge_set(stream, request, &filters, Record::default())?;
            let row = |(floor, report): (&f64, _)| {
                with_rates(Row::new("rates").label("stream", stream).label("insert_floor", *floor), report)
            };
            Ok(FLOORS.iter().zip(&outcome.reports).map(row).collect())
        })
        .seconds(items as f64 * 8.0 * 40e-9)
    };
    Ok(scope.seeds().flat_map(|seed| STREAMS.map(|stream| cell(stream, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "floor",
        "False negatives and positives against the insertion floor",
        "A low floor lets nearly every arrival that looks new in; near 1 only the reservoir is left, and new keys are refused.",
    );
    for (measure, name) in [("fnr", "false negatives, % of duplicates"), ("fpr", "false positives, % of distinct")] {
        let mut panel = Panel::new("", Axis::log("insertion floor p*"), Axis::linear(name));
        for stream in STREAMS {
            let here = |summary: &Summary| summary.label("stream") == Some(&stream.into());
            panel = panel.series(Series::from_table(
                stream,
                Look::LineAndMarks,
                (table, "rates"),
                ("insert_floor", measure, 100.0),
                here,
            ));
        }
        figure = figure.panel(panel);
    }
    let at = |stream: &str, floor: f64| {
        Ok::<_, everbloom::Error>(
            table.need("rates", "fnr", &[("stream", stream.into()), ("insert_floor", floor.into())])?.percent(),
        )
    };
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        let (usual, refused) = (at(stream, 0.03)?, at(stream, 0.99)?);
        verdicts.push(
            Verdict::new(
                format!("bias-{stream}"),
                "4",
                format!("{stream}: letting distinct arrivals in below the threshold keeps the FNR in check"),
                Outcome::of(clearly_below(&usual, &refused)),
            )
            .mean("FNR with p* = 0.03, %", &usual)
            .mean("with p* = 0.99, nearly none let in, %", &refused),
        );
    }
    let (low, usual, high) = (at("log_lag", 0.003)?, at("log_lag", 0.03)?, at("log_lag", 0.3)?);
    verdicts.push(
        Verdict::new(
            "faster",
            "6",
            "for faster changing streams p* can be set higher",
            Outcome::of(clearly_below(&high, &usual)),
        )
        .mean("log-lag stream, FNR with p* = 0.003, %", &low)
        .mean("0.03, %", &usual)
        .mean("0.3, %", &high)
        .remark("as read, p* only refuses a share of what looks new"),
    );
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
