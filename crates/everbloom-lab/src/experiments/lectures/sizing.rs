//! How large a filter must be for a rate: bits per key and hashes.

use crate::experiments::common::*;
use std::f64::consts::LN_2;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lecture-sizing",
    source: "[SDS], [CS6931]",
    figure: "bloom filter design; why bloom filters",
    shows: "filters sized for a rate keep it: 1 % takes 7 hashes and about 10 bits a key; 8 bits a key give 1–2 %",
    expected: Seconds { quick: 0.3, default: 4.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const TARGETS: [f64; 5] = [0.1, 0.03, 0.01, 0.003, 0.001];
const EIGHT: [u32; 4] = [4, 5, 6, 7];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let num_keys: u64 = scope.pick(2_000, 50_000, 50_000);
    let queries: u64 = scope.pick(50_000, 500_000, 500_000);
    let sized = |target: f64, seed| {
        Cell::new(format!("target {target}, {num_keys} keys"), seed, move |_| {
            let plan = Goal::new()
                .expected_items(num_keys)
                .fpr(target)
                .hashing(Hashing::seeded(seed))
                .plan_among(KINDS, "bloom")?;
            let number = |word: &str| plan.spec.get(word).and_then(|text| text.parse::<f64>().ok());
            let row = Row::new("sized")
                .label("target", target)
                .value("bits_per_key", number("num_bits").map(|bits| bits / num_keys as f64));
            Ok(vec![
                row.value("num_hashes", number("num_hashes"))
                    .value("fpr", rate(&plan.spec.to_string(), num_keys, queries, seed)?),
            ])
        })
        .seconds(0.08)
    };
    let eight = |num_hashes: u32, seed| {
        Cell::new(format!("8 bits a key, {num_hashes} hashes, {num_keys} keys"), seed, move |_| {
            let spec = format!("bloom:num_bits={},num_hashes={num_hashes}", 8 * num_keys);
            Ok(vec![
                Row::new("eight").label("num_hashes", num_hashes).value("fpr", rate(&spec, num_keys, queries, seed)?),
            ])
        })
        .seconds(0.08)
    };
    let all = move |seed| {
        TARGETS.map(|target| sized(target, seed)).into_iter().chain(EIGHT.map(|hashes| eight(hashes, seed)))
    };
    Ok(scope.seeds().flat_map(all).collect())
}

/// The share of absent keys that a filter of so many keys takes for members.
fn rate(spec: &str, num_keys: u64, queries: u64, seed: u64) -> Result<f64> {
    let mut filter = build(spec, seed)?;
    for key in 0..num_keys {
        filter.insert(key);
    }
    Ok((num_keys..num_keys + queries).filter(|key| filter.contains(key)).count() as f64 / queries as f64)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let at = |value: &str, target: f64| table.need("sized", value, &labels![target = target]);
    let mut points = Vec::new();
    let mut verdicts = Vec::new();
    for target in TARGETS {
        let (bits, fpr) = (at("bits_per_key", target)?, at("fpr", target)?);
        points.push(Point::of(bits.mean(), &fpr, 100.0));
        let claimed = (1.0 / target).ln() / (LN_2 * LN_2);
        let holds = fpr.mean() <= target + 4.0 * fpr.error() && (bits.mean() / claimed - 1.0).abs() < 0.03;
        verdicts.push(
            Outcome::of(holds)
                .on(
                    format!("target-{target}"),
                    "bloom filter design",
                    format!("ln(1/δ)/ln² 2 bits a key keep a rate of {target}"),
                )
                .number("formula, bits a key", claimed)
                .means([("planned, bits a key", &bits), ("measured rate", &fpr)]),
        );
    }
    let (hashes, bits) = (at("num_hashes", 0.01)?, at("bits_per_key", 0.01)?);
    verdicts.push(
        Outcome::of(hashes.mean() == 7.0 && (9.0..=10.5).contains(&bits.mean()))
            .on("one-percent", "bloom filter design", "1 % takes 7 hashes and 10 bits a key")
            .means([("hashes", &hashes), ("bits a key", &bits)]),
    );
    verdicts.push(eight(table)?);
    let theory =
        (20..=160).map(|tenths| f64::from(tenths) / 10.0).map(|bits| Point::new(bits, 100.0 * 0.6185f64.powf(bits)));
    let panel = Panel::new("", Axis::linear("bits per key").from(0.0, 17.0), Axis::log("false positives, %"))
        .series(Series::new("measured, as planned", Look::Marks, points))
        .series(Series::new("0.6185 to the power of bits per key", Look::Reference, theory));
    Ok(Conclusion::new()
        .figure(
            Figure::new(
                "sizing",
                "The rate that bits per key buy",
                "Dots: filters planned for 10, 3, 1, 0.3 and 0.1 %.",
            )
            .panel(panel),
        )
        .verdicts(verdicts))
}

fn eight(table: &Table) -> Result<Verdict> {
    let rates =
        EIGHT.map(|hashes| table.need("eight", "fpr", &labels![num_hashes = hashes]).map(|sample| sample.percent()));
    let mut best: Option<Sample> = None;
    for rate in rates {
        let rate = rate?;
        if best.as_ref().is_none_or(|best| rate.mean() < best.mean()) {
            best = Some(rate);
        }
    }
    let best = best.unwrap_or_default();
    let outcome =
        Outcome::loosely((1.0..=2.0).contains(&best.mean()), (0.9..=2.2).contains(&best.mean()), best.mean() < 2.5);
    Ok(outcome
        .on("eight-bits", "why bloom filters", "8 bits an entry give 1–2 % false positives")
        .mean("best whole number of hashes, %", &best)
        .number("0.6185^8, %", 100.0 * 0.6185f64.powi(8)))
}
