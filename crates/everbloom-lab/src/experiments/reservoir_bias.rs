//! Other bias functions: the paper's future work.

use super::common::{Named, judge_set, with_rates};
use super::reservoir::{SOURCE, stable};
use crate::datasets::Request;
use crate::evaluate::Record;
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Row, Scope, Seconds, Series, Summary, Table,
    Verdict, clearly_below,
};
use everbloom::Result;

/// See the module.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-bias",
    source: SOURCE,
    figure: "section 7, future work",
    shows: "insertion probability s/i, constant and exponentially decaying, on uniform, Zipf and log-lag streams",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    revision: 1,
    timed: false,
    needs: &[],
    cells,
    conclude,
};

const STREAMS: [&str; 3] = ["uniform", "zipf", "log_lag"];
const BIASES: [&str; 3] = ["reservoir", "constant", "exponential"];
const BITS_PER_ITEM: [f64; 4] = [0.0625, 0.125, 0.25, 0.5];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = scope.pick(100_000, 1_000_000, 1_000_000);
    let cell = |stream: &'static str, share: f64, seed| {
        let memory_bits = (items as f64 * share) as u64;
        Cell::new(format!("{stream}, {items} arrivals, {memory_bits} bits"), seed, move |_| {
            let spec = |bias: &str| {
                format!("reservoir:memory_bits={memory_bits},num_filters=3,insert_floor=0.03,bias={bias},layout=spread")
            };
            let mut filters: Vec<Named> = BIASES.iter().map(|bias| (*bias, spec(bias))).collect();
            filters.push(stable(memory_bits));
            let outcome = judge_set(
                stream,
                Request { items: Some(items), seed, ..Default::default() },
                &filters,
                Record::default(),
            )?;
            let row = |((name, _), report): (&Named, _)| {
                with_rates(
                    Row::new("rates").label("stream", stream).label("bits_per_arrival", share).label("bias", *name),
                    report,
                )
            };
            Ok(filters.iter().zip(&outcome.reports).map(row).collect())
        })
        .seconds(items as f64 * 4.0 * 40e-9)
    };
    Ok(scope
        .seeds()
        .flat_map(|seed| {
            STREAMS.into_iter().flat_map(move |stream| BITS_PER_ITEM.map(|share| cell(stream, share, seed)))
        })
        .collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "bias",
        "Bias functions: false negatives (above) and positives (below)",
        "Three arrays, p* = 0.03. \"reservoir\" is the paper's s/i; SBF for comparison.",
    );
    for (measure, name) in [("fnr", "false negatives, % of duplicates"), ("fpr", "false positives, % of distinct")] {
        for stream in STREAMS {
            let mut panel = Panel::new(stream, Axis::log2("memory, bits per arrival"), Axis::linear(name));
            for bias in BIASES.into_iter().chain(["SBF"]) {
                let here = |summary: &Summary| {
                    summary.label("stream") == Some(&stream.into()) && summary.label("bias") == Some(&bias.into())
                };
                panel = panel.series(Series::from_table(
                    bias,
                    Look::LineAndMarks,
                    (table, "rates"),
                    ("bits_per_arrival", measure, 100.0),
                    here,
                ));
            }
            figure = figure.panel(panel);
        }
    }
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        let at = |measure: &str, bias: &str| {
            Ok::<_, everbloom::Error>(
                table
                    .need(
                        "rates",
                        measure,
                        &[("stream", stream.into()), ("bias", bias.into()), ("bits_per_arrival", 0.125.into())],
                    )?
                    .percent(),
            )
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
