//! The rate of false positives against the number of hashes, and where it is lowest.

use crate::experiments::common::*;
use everbloom::filters::Bloom;
use everbloom::filters::bloom::Size;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lecture-hashes",
    source: "[CS6931], [SDS]",
    figure: "error estimation, example",
    shows: "false positives against the number of hashes, lowest at bits per key times ln 2, where half the bits are set",
    expected: Seconds { quick: 0.5, default: 6.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const BITS_PER_KEY: [u64; 3] = [4, 8, 16];
const MOST_HASHES: u32 = 16;

/// (1 − e^(−kn/m))^k.
fn textbook_fpr(bits_per_key: f64, num_hashes: f64) -> f64 {
    libm::pow(-libm::expm1(-num_hashes / bits_per_key), num_hashes)
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let num_keys = scope.pick(2_000, 20_000, 20_000);
    let queries = scope.pick(20_000, 400_000, 400_000);
    let cell = |bits_per_key: u64, seed: u64| {
        let name = format!("{bits_per_key} bits, {num_keys} keys, {queries} queries");
        Cell::new(name, seed, move |_| {
            (1..=MOST_HASHES).map(|num_hashes| measure(num_keys, queries, bits_per_key, num_hashes, seed)).collect()
        })
        .seconds(0.5)
    };
    Ok(BITS_PER_KEY.into_iter().flat_map(|bits| scope.seeds().map(move |seed| cell(bits, seed))).collect())
}

fn measure(num_keys: u64, queries: u64, bits_per_key: u64, num_hashes: u32, seed: u64) -> Result<Row> {
    let size = Size::new(num_keys * bits_per_key, num_hashes)?;
    let mut filter = Bloom::new(size, Hashing::seeded(seed))?;
    for key in 0..num_keys {
        filter.insert(key);
    }
    let wrong = (num_keys..num_keys + queries).filter(|key| filter.contains(key)).count();
    let fill = everbloom::Filter::status(&filter).fill;
    Ok(Row::new("rates")
        .label("bits_per_key", bits_per_key)
        .label("num_hashes", num_hashes)
        .value("measured_fpr", wrong as f64 / queries as f64)
        .value("textbook_fpr", textbook_fpr(bits_per_key as f64, f64::from(num_hashes)))
        .value("fill", fill))
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let axes = || (Axis::linear("hashes per key"), Axis::log("false positives, % of queries for absent keys"));
    let mut panel = Panel::new("", axes().0, axes().1);
    let mut conclusion = Conclusion::new();
    for bits in BITS_PER_KEY {
        let measured = Series::from_table(
            format!("{bits} bits a key"),
            Look::LineAndMarks,
            (table, "rates"),
            ("num_hashes", "measured_fpr", 100.0),
            &labels![bits_per_key = bits],
        );
        let lowest = measured.points.iter().min_by(|a, b| a.y.total_cmp(&b.y)).map_or(0.0, |point| point.x);
        let theory =
            (1..=MOST_HASHES).map(|k| Point::new(f64::from(k), 100.0 * textbook_fpr(bits as f64, f64::from(k))));
        panel = panel.series(Series::new("(1 − e^(−kn/m))^k", Look::Reference, theory)).series(measured);
        conclusion = conclusion.verdict(optimum(table, bits, lowest)?);
    }
    let caption = "Dots are measured, dashes the lectures' formula. More hashes give more chances to find an unset bit, and set more bits.";
    let figure = Figure::new("false-positives", "False positives against the number of hashes", caption);
    Ok(conclusion.figure(figure.panel(panel)).verdicts(formula(table)?))
}

/// The best whole number of hashes is next to (m/n)·ln 2, and there half the bits are set.
fn optimum(table: &Table, bits: u64, lowest: f64) -> Result<Verdict> {
    let best = bits as f64 * std::f64::consts::LN_2;
    let labels = labels![bits_per_key = bits, num_hashes = best.round()];
    let fill = table.need("rates", "fill", &labels)?;
    let holds = (lowest - best).abs() < 1.0 && (fill.mean() - 0.5).abs() < 0.05;
    let claim =
        format!("with {bits} bits a key, the best number of hashes is {bits}·ln 2, where half the bits are set");
    Ok(Outcome::of(holds)
        .on(format!("optimum-{bits}"), "bloom filter tradeoffs", claim)
        .numbers([("claimed", best), ("lowest at", lowest)])
        .mean("share of bits set there", &fill))
}

/// The formula is what is measured, for every number of hashes.
fn formula(table: &Table) -> Result<Option<Verdict>> {
    let (mut worst, mut holds): (Option<(f64, f64, f64)>, bool) = (None, true);
    for summary in table.summary("rates") {
        let (Some(measured), Some(theory)) = (summary.sample("measured_fpr"), summary.sample("textbook_fpr")) else {
            continue;
        };
        let off = (measured.mean() / theory.mean() - 1.0).abs();
        let enough = theory.mean() > 1e-3;
        holds &= !enough || (measured.mean() - theory.mean()).abs() <= 4.0 * measured.error();
        if enough && worst.is_none_or(|(known, ..)| off > known) {
            worst = Some((off, measured.mean(), theory.mean()));
        }
    }
    Ok(worst.map(|(off, measured, theory)| {
        let claim = "the rate of false positives is (1 − e^(−kn/m))^k";
        Outcome::loosely(holds, off <= 0.1, off < 0.2)
            .on("formula", "error estimation", claim)
            .number("largest deviation, share of the rate", off)
            .number("measured there", measured)
            .number("formula there", theory)
    }))
}
