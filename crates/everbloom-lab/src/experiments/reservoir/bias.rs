//! Other bias functions: the paper's future work.

use super::sweep::{STREAMS, cell, items, row};
use super::{SOURCE, stable};
use crate::experiments::common::ERRORS;
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Scope, Seconds, Table, Verdict, clearly_below,
};
use everbloom::Result;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-bias",
    source: SOURCE,
    figure: "section 7, future work",
    shows: "insertion probability s/i, constant and exponentially decaying, on uniform, Zipf and log-lag streams",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

const BIASES: [&str; 3] = ["reservoir", "constant", "exponential"];
const BITS_PER_ITEM: [f64; 4] = [0.0625, 0.125, 0.25, 0.5];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let cell = |stream, share: f64, seed| {
        let memory_bits = (items as f64 * share) as u64;
        let spec = |bias: &str| {
            format!("reservoir:memory_bits={memory_bits},num_filters=3,insert_floor=0.03,bias={bias},layout=spread")
        };
        let filters = BIASES.into_iter().map(|bias| (bias, spec(bias))).chain([stable(memory_bits)]);
        let row = |bias| row(stream).label("bits_per_arrival", share).label("bias", bias);
        cell(stream, (items, memory_bits), filters.map(|(bias, spec)| (row(bias), spec)).collect::<Vec<_>>(), seed)
    };
    let cells = |seed| STREAMS.into_iter().flat_map(move |stream| BITS_PER_ITEM.map(|share| cell(stream, share, seed)));
    Ok(scope.seeds().flat_map(cells).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "bias",
        "Bias functions: false negatives (above) and positives (below)",
        "Three arrays, p* = 0.03. \"reservoir\" is the paper's s/i; SBF for comparison.",
    );
    for (measure, name) in ERRORS {
        for stream in STREAMS {
            let (axes, here) = (("bits_per_arrival", measure, 100.0), [("stream", stream.into())]);
            let biases = ("bias", BIASES.into_iter().chain(["SBF"]));
            let panel = Panel::new(stream, Axis::log2("memory, bits per arrival"), Axis::linear(name));
            figure = figure.panel(panel.each(Look::LineAndMarks, (table, "rates"), axes, biases, &here));
        }
    }
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        let at = |measure: &str, bias: &str| {
            let here = [("stream", stream.into()), ("bias", bias.into()), ("bits_per_arrival", 0.125.into())];
            table.percent("rates", measure, &here)
        };
        let (plain, constant, exponential) =
            (at("fnr", "reservoir")?, at("fnr", "constant")?, at("fnr", "exponential")?);
        let better = if constant.mean() < exponential.mean() { &constant } else { &exponential };
        verdicts.push(
            Verdict::new(
                format!("improves-{stream}"),
                "7",
                format!("{stream}: other bias functions improve the FNR"),
                Outcome::of(clearly_below(better, &plain)),
            )
            .mean("FNR: s/i, %", &plain)
            .mean("constant, %", &constant)
            .mean("exponential, %", &exponential)
            .mean("FPR: s/i, %", &at("fpr", "reservoir")?)
            .mean("constant, %", &at("fpr", "constant")?)
            .mean("exponential, %", &at("fpr", "exponential")?)
            .remark("hoped for by the paper, not claimed"),
        );
    }
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
