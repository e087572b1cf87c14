//! Other bias functions: the paper's future work.

use super::sweep::{STREAMS, cell, items, row};
use super::{SOURCE, stable};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-bias",
    source: SOURCE,
    figure: "section 7, future work",
    shows: "insertion probability s/i, constant and exponentially decaying, on uniform, Zipf and log-lag streams",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    revision: 2,
    ..Experiment::of(cells, conclude)
};

const BIASES: [&str; 3] = ["reservoir", "constant", "exponential"];
const BITS_PER_ITEM: [f64; 4] = [0.0625, 0.125, 0.25, 0.5];
/// Numbers of arrays, between which the rate of false positives is matched.
const ARRAYS: [u32; 6] = [1, 2, 3, 4, 5, 6];
/// Where biases are compared.
const USUAL: f64 = 0.125;

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let cell = |stream, share: f64, seed| {
        let memory_bits = (items as f64 * share) as u64;
        let spec = |bias: &str, arrays: u32| {
            format!(
                "reservoir:memory_bits={memory_bits},num_filters={arrays},insert_floor=0.03,bias={bias},layout=spread"
            )
        };
        let row = |bias: &str, arrays: u32| {
            row(stream).label("bits_per_arrival", share).label("bias", bias).label("num_filters", arrays)
        };
        let (name, own) = stable(memory_bits);
        let mut filters = vec![(row(name, 3), own)];
        for bias in BIASES {
            let arrays = ARRAYS.into_iter().filter(|arrays| *arrays == 3 || share == USUAL);
            filters.extend(arrays.map(|arrays| (row(bias, arrays), spec(bias, arrays))));
        }
        cell(stream, (items, memory_bits), filters, seed)
    };
    let cells = |seed| STREAMS.into_iter().flat_map(move |stream| BITS_PER_ITEM.map(|share| cell(stream, share, seed)));
    Ok(scope.seeds().flat_map(cells).collect())
}

/// The FNR of a bias at an FPR, in percent, seed by seed: between its numbers of arrays on either side, linearly in ln(FPR).
fn at_fpr(table: &Table, stream: &str, bias: &str, fpr: &Sample) -> Result<Sample> {
    let at = |measure: &str, arrays: u32| {
        let here = labels![stream = stream, bias = bias, bits_per_arrival = USUAL, num_filters = arrays];
        table.percent("rates", measure, &here)
    };
    let points =
        ARRAYS.iter().map(|arrays| Ok((at("fpr", *arrays)?, at("fnr", *arrays)?))).collect::<Result<Vec<_>>>()?;
    let of_seed = |seed: usize, asked: f64| {
        let mut points: Vec<_> = points
            .iter()
            .filter_map(|(fpr, fnr)| Some((libm::log(fpr.0.get(seed)?.max(1e-9)), *fnr.0.get(seed)?)))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let after = points.partition_point(|point| point.0 <= libm::log(asked)).clamp(1, points.len() - 1);
        let ((low, at_low), (high, at_high)) = (points[after - 1], points[after]);
        at_low + (libm::log(asked) - low) / (high - low) * (at_high - at_low)
    };
    Ok(Sample(fpr.0.iter().enumerate().map(|(seed, asked)| of_seed(seed, *asked)).collect()))
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "bias",
        "Bias functions: false negatives (above) and positives (below)",
        "Three arrays, p* = 0.03. \"reservoir\" is the paper's s/i; SBF for comparison.",
    );
    for (measure, name) in ERRORS {
        for stream in STREAMS {
            let (axes, here) = (("bits_per_arrival", measure, 100.0), labels![stream = stream, num_filters = 3u32]);
            let biases = ("bias", BIASES.into_iter().chain(["SBF"]));
            let panel = Panel::new(stream, Axis::log2("memory, bits per arrival"), Axis::linear(name));
            figure = figure.panel(panel.each(Look::LineAndMarks, (table, "rates"), axes, biases, &here));
        }
    }
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        let at = |measure: &str, bias: &str| {
            let here = labels![stream = stream, bias = bias, bits_per_arrival = USUAL, num_filters = 3u32];
            table.percent("rates", measure, &here)
        };
        let (plain, fpr) = (at("fnr", "reservoir")?, at("fpr", "reservoir")?);
        let (constant, exponential) =
            (at_fpr(table, stream, "constant", &fpr)?, at_fpr(table, stream, "exponential", &fpr)?);
        let better = if constant.mean() < exponential.mean() { &constant } else { &exponential };
        verdicts.push(
            Outcome::of(clearly_below(better, &plain))
                .on(
                    format!("improves-{stream}"),
                    "7, future work",
                    format!("{stream}: another bias function has a lower FNR than s/i at the same FPR"),
                )
                .ours()
                .mean("FNR of s/i, %", &plain)
                .mean("constant, %", &constant)
                .mean("exponential, %", &exponential)
                .mean("FPR of all, %", &fpr)
                .mean("constant with 3 arrays: FNR, %", &at("fnr", "constant")?)
                .mean("FPR, %", &at("fpr", "constant")?)
                .mean("exponential with 3 arrays: FNR, %", &at("fnr", "exponential")?)
                .mean("FPR, %", &at("fpr", "exponential")?)
                .remark("hoped for by the paper, not claimed; FNRs are interpolated between numbers of arrays"),
        );
    }
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
