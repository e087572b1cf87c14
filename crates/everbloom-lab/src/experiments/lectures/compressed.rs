//! Compressed filters on the wire.

use crate::experiments::common::*;
use everbloom::{FilterExt as _, codec};

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lecture-compressed",
    source: "[SDS]",
    figure: "other extensions: can Bloom filters be compressed?",
    shows: "bits on the wire per key at the same rate: usual filters, compressed, and planned for compression",
    expected: Seconds { quick: 0.4, default: 3.0, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

const RATES: [f64; 4] = [0.1, 0.03, 0.01, 0.001];
const WAYS: [&str; 3] = ["usual", "usual, compressed", "planned for it, compressed"];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let num_keys: u64 = scope.pick(5_000, 50_000, 50_000);
    let cell = |rate: f64, seed| {
        Cell::new(format!("{num_keys} keys at {rate}"), seed, move |_| measure(num_keys, rate, seed)).seconds(0.2)
    };
    Ok(scope.seeds().flat_map(|seed| RATES.map(|rate| cell(rate, seed))).collect())
}

fn measure(num_keys: u64, rate: f64, seed: u64) -> Result<Vec<Row>> {
    let goal = Goal::new().expected_items(num_keys).fpr(rate).hashing(Hashing::seeded(seed));
    let mut rows = Vec::new();
    for way in WAYS {
        let planned = if way == WAYS[2] {
            goal.clone().compressed().plan_among(KINDS, "bloom")?
        } else {
            goal.plan_among(KINDS, "bloom")?
        };
        let mut filter = planned.build()?;
        for key in 0..num_keys {
            filter.insert(key);
        }
        let queries = 20 * num_keys;
        let wrong = (num_keys..num_keys + queries).filter(|key| filter.contains(key)).count();
        let sent = if way == WAYS[0] { codec::encode(&*filter) } else { codec::encode_compressed(&*filter) };
        let read = if way == WAYS[0] {
            KINDS.decoder().decode(&sent)?
        } else {
            KINDS.decoder().limit(1 << 30).decode(&sent)?
        };
        let lost = (0..num_keys).filter(|key| !read.contains(key)).count();
        let per_key = |bits: f64| bits / num_keys as f64;
        let row =
            Row::new("wire").label("way", way).label("rate", rate).value("bits_sent", per_key(8.0 * sent.len() as f64));
        rows.push(
            row.value("bits_in_memory", per_key(filter.memory_bits() as f64))
                .value("fpr", wrong as f64 / queries as f64)
                .value("lost", lost as f64),
        );
    }
    Ok(rows)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "compressed",
        "What a filter costs on the wire",
        "Left: bits sent per key, all headers included. Right: bits per key in memory. Dashed: log2(1/rate), which no set of answers can go below.",
    );
    for (value, name) in [("bits_sent", "bits sent per key"), ("bits_in_memory", "bits in memory per key")] {
        let mut panel = Panel::new("", Axis::log("rate of false positives, %"), Axis::linear(name));
        for way in WAYS {
            let here = labels![way = way];
            let mut series = Series::from_table(way, Look::LineAndMarks, (table, "wire"), ("rate", value, 1.0), &here);
            series.points.iter_mut().for_each(|point| point.x *= 100.0);
            panel = panel.series(series);
        }
        let limit = RATES.map(|rate| Point::new(100.0 * rate, (1.0 / rate).log2()));
        figure = figure.panel(panel.series(Series::new("limit", Look::Reference, limit)));
    }
    let at = |value: &str, way: &str| table.need("wire", value, &labels![way = way, rate = 0.01]);
    let (usual, packed, planned) = (at("bits_sent", WAYS[0])?, at("bits_sent", WAYS[1])?, at("bits_sent", WAYS[2])?);
    let (rate, lost) = (at("fpr", WAYS[2])?, at("lost", WAYS[2])?);
    Ok(Conclusion::new()
        .figure(figure)
        .verdicts([Outcome::graded(packed.mean() < 0.95 * usual.mean(), planned.mean() < 0.9 * usual.mean()).on("half-full", "other extensions", "Bloom filters can be compressed very nicely")
                .mean("usual filter for 1 %, bits sent per key", &usual).mean("compressed", &packed).mean("planned for compression", &planned)
                .remark("not one that is half full, as the optimum has it; one planned for it, with fewer hashes and more bits, can"), Outcome::of(rate.mean() <= 0.01 + 4.0 * rate.error() && lost.mean() == 0.0 && clearly_below(&planned, &usual)).on("same-answers", "other extensions", "a filter planned for compression keeps its rate and its keys")
                .mean("rate asked for: 1 %; measured, %", &rate.percent()).mean("keys lost", &lost)]))
}
