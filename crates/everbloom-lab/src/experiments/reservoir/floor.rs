//! The insertion floor p*, swept.

use super::SOURCE;
use super::sweep::{STREAMS, cell, items, row};
use crate::experiments::common::ERRORS;
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Scope, Seconds, Table, Verdict, clearly_below,
};
use everbloom::Result;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-floor",
    source: SOURCE,
    figure: "sections 4 and 6, p*",
    shows: "FNR and FPR against the insertion floor p* on uniform, Zipf and log-lag streams",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

const FLOORS: [f64; 8] = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9, 0.99];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let memory_bits = items / 16;
    let spec =
        |floor: f64| format!("reservoir:memory_bits={memory_bits},num_filters=3,insert_floor={floor},layout=spread");
    let filters = |stream| FLOORS.map(|floor| (row(stream).label("insert_floor", floor), spec(floor)));
    let cell = |stream, seed| cell(stream, (items, memory_bits), filters(stream), seed);
    Ok(scope.seeds().flat_map(|seed| STREAMS.map(|stream| cell(stream, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "floor",
        "False negatives and positives against the insertion floor",
        "A low floor lets nearly every arrival that looks new in; near 1 only the reservoir is left, and new keys are refused.",
    );
    for (measure, name) in ERRORS {
        let axes = ("insert_floor", measure, 100.0);
        let panel = Panel::new("", Axis::log("insertion floor p*"), Axis::linear(name));
        figure = figure.panel(panel.each(Look::LineAndMarks, (table, "rates"), axes, ("stream", STREAMS), &[]));
    }
    let at = |stream: &str, floor: f64| {
        table.percent("rates", "fnr", &[("stream", stream.into()), ("insert_floor", floor.into())])
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
