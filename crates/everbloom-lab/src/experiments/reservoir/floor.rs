//! The insertion floor p*, swept.

use super::SOURCE;
use super::sweep::{STREAMS, cell, items, row};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-floor",
    source: SOURCE,
    figure: "sections 4 and 6, p*",
    shows: "FNR and FPR against the insertion floor p*, as the text and as the pseudo-code read it, on three streams",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    revision: 2,
    ..Experiment::of(cells, conclude)
};

const FLOORS: [f64; 8] = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9, 0.99];

/// The readings of p*: the text's, and the pseudo-code's.
const READINGS: [&str; 2] = ["text", "algorithm"];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let memory_bits = items / 16;
    let spec = |reading: &str, floor: f64| {
        format!("reservoir:memory_bits={memory_bits},num_filters=3,insert_floor={floor},floor={reading},layout=spread")
    };
    let filters = |stream| -> Vec<_> {
        let all = READINGS.into_iter().flat_map(|reading| FLOORS.map(|floor| (reading, floor)));
        let row = |reading: &str, floor: f64| row(stream).label("reading", reading).label("insert_floor", floor);
        all.map(|(reading, floor)| (row(reading, floor), spec(reading, floor))).collect()
    };
    let cell = |stream, seed| cell(stream, (items, memory_bits), filters(stream), seed);
    Ok(scope.seeds().flat_map(|seed| STREAMS.map(|stream| cell(stream, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "floor",
        "False negatives and positives against the insertion floor",
        "Left: the text's p*, below which the probability of insertion must fall before arrivals that look new are let in; the \
         higher, the sooner. Right: the pseudo-code's, a share of what looks new that is refused.",
    );
    for (measure, name) in ERRORS {
        for reading in READINGS {
            let (axes, here) = (("insert_floor", measure, 100.0), labels![reading = reading]);
            let panel = Panel::new(format!("p* of the {reading}"), Axis::log("insertion floor p*"), Axis::linear(name));
            figure = figure.panel(panel.each(Look::LineAndMarks, (table, "rates"), axes, ("stream", STREAMS), &here));
        }
    }
    let at = |reading: &str, stream: &str, floor: f64| {
        let here = labels![reading = reading, stream = stream, insert_floor = floor];
        table.percent("rates", "fnr", &here)
    };
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        // By the text a low p* lets new arrivals in late, by the pseudo-code a high one hardly ever.
        let [text, refused] = [at("text", stream, 0.03)?, at("text", stream, 0.003)?];
        let [usual, nearly_none] = [at("algorithm", stream, 0.03)?, at("algorithm", stream, 0.99)?];
        let holds = clearly_below(&text, &refused);
        verdicts.push(
            Outcome::loosely(holds, clearly_below(&usual, &nearly_none), false)
                .on(
                    format!("bias-{stream}"),
                    "4",
                    format!("{stream}: letting distinct arrivals in once s/i is below p* keeps the FNR in check"),
                )
                .mean("the text's p* = 0.03, FNR, %", &text)
                .mean("0.003, when nearly none is let in, %", &refused)
                .mean("the pseudo-code's p* = 0.03, %", &usual)
                .mean("0.99, when nearly none is let in, %", &nearly_none)
                .remark("loosely: by the pseudo-code's reading alone"),
        );
    }
    let text = FASTER.map(|floor| at("text", "log_lag", floor));
    let [lowest, low, high, highest] = text;
    let (lowest, low, high, highest) = (lowest?, low?, high?, highest?);
    let falls = clearly_below(&low, &lowest) && clearly_below(&high, &low) && clearly_below(&highest, &high);
    verdicts.push(
        Outcome::of(falls)
            .on("faster", "6", "for faster changing streams p* can be set higher")
            .mean("log-lag stream, the text's p* = 0.003, FNR, %", &lowest)
            .mean("0.03, %", &low)
            .mean("0.1, %", &high)
            .mean("0.3, %", &highest)
            .mean("the pseudo-code's p* = 0.03, %", &at("algorithm", "log_lag", 0.03)?)
            .mean("0.3, %", &at("algorithm", "log_lag", 0.3)?)
            .remark("judged by the text; by the pseudo-code p* only refuses a share of what looks new"),
    );
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}

/// Floors at which the log-lag stream is judged.
const FASTER: [f64; 4] = [0.003, 0.03, 0.1, 0.3];
