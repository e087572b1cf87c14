//! One hash split in two, against independent ones.

use crate::experiments::common::*;
use everbloom::KeyHash;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lecture-less-hashing",
    source: "[SDS]",
    figure: "other extensions: can we do with less hashing?",
    shows: "one 128-bit hash split in two, plainly and mixed, against independent hashes, for small filters and many hashes",
    expected: Seconds { quick: 1.0, default: 14.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const WAYS: [&str; 3] = ["independent", "plain double", "everbloom's"];
const HASHES: [u32; 6] = [4, 6, 8, 10, 14, 20];
/// Bits per key for each number of hashes: the size at which that number is best.
const LN_2: f64 = std::f64::consts::LN_2;

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let queries: u64 = scope.pick(100_000, 2_000_000, 2_000_000);
    let cell = |num_keys: u64, num_hashes: u32, seed| {
        let name = format!("{num_keys} keys, {num_hashes} hashes, {queries} queries");
        Cell::new(name, seed, move |_| Ok(WAYS.map(|way| measure(way, num_keys, num_hashes, queries, seed)).to_vec()))
            .seconds(queries as f64 * 80e-9)
    };
    Ok(scope.seeds().flat_map(|seed| HASHES.map(|num_hashes| cell(1_000, num_hashes, seed))).collect())
}

/// The positions of a key.
fn positions(way: &str, key: u64, num_hashes: u32, num_bits: u64, seed: u64) -> Vec<u64> {
    let hash = |number: u64| key.hash_with(&Hashing::seeded(seed.wrapping_mul(1009).wrapping_add(number)));
    let KeyHash { high, low, .. } = hash(0);
    match way {
        "independent" => (1..=u64::from(num_hashes)).map(|number| hash(number).index(num_bits)).collect(),
        "plain double" => {
            let (first, step) = (high % num_bits, low % num_bits);
            (0..u64::from(num_hashes)).map(|number| (first + number * step) % num_bits).collect()
        }
        _ => hash(0).probes(num_bits).take(num_hashes as usize).collect(),
    }
}

fn measure(way: &'static str, num_keys: u64, num_hashes: u32, queries: u64, seed: u64) -> Row {
    let num_bits = (num_keys as f64 * f64::from(num_hashes) / LN_2) as u64;
    let mut bits = vec![false; num_bits as usize];
    for key in 0..num_keys {
        positions(way, key, num_hashes, num_bits, seed).into_iter().for_each(|at| bits[at as usize] = true);
    }
    // Queries beyond the first few positions are rare, so ask lazily where the way allows it.
    let all_set = |key: u64| match way {
        "independent" => (1..=u64::from(num_hashes)).all(|number| {
            let hashing = Hashing::seeded(seed.wrapping_mul(1009).wrapping_add(number));
            bits[key.hash_with(&hashing).index(num_bits) as usize]
        }),
        _ => positions(way, key, num_hashes, num_bits, seed).into_iter().all(|at| bits[at as usize]),
    };
    let wrong = (num_keys..num_keys + queries).filter(|key| all_set(*key)).count();
    let theory =
        libm::pow(-libm::expm1(-f64::from(num_hashes) * num_keys as f64 / num_bits as f64), f64::from(num_hashes));
    Row::new("rates")
        .label("hashes", way)
        .label("num_hashes", num_hashes)
        .value("fpr", wrong as f64 / queries as f64)
        .value("theory", theory)
}

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    let mut panel = Panel::new(
        "",
        Axis::linear("hashes per key, at the best size for them"),
        Axis::log("false positives, share of queries"),
    );
    let line = |name: &str, look, value, way: &str| {
        Series::from_table(name, look, (table, "rates"), ("num_hashes", value, 1.0), &labels![hashes = way])
    };
    for way in WAYS {
        let mut measured = line(way, Look::LineAndMarks, "fpr", way);
        measured.points.retain(|point| point.y > 0.0);
        panel = panel.series(measured);
    }
    panel = panel.series(line("theory", Look::Reference, "theory", WAYS[0]));
    let figure = Figure::new("less-hashing", "One hash split in two, against independent ones", "1,000 keys. Plain double hashing degrades from about 10 hashes on: two keys with the same step and start share all positions. A point is missing where nothing was found.").panel(panel);
    let at = |way: &str, num_hashes: u32, value: &str| {
        table.need("rates", value, &labels![hashes = way, num_hashes = num_hashes])
    };
    let ratio = |way: &str, num_hashes: u32| {
        Ok::<_, Error>(at(way, num_hashes, "fpr")?.mean() / at(way, num_hashes, "theory")?.mean())
    };
    let (plain_few, plain_many) = (ratio("plain double", 6)?, ratio("plain double", 20)?);
    let (mixed_few, mixed_ten) = (ratio("everbloom's", 6)?, ratio("everbloom's", 10)?);
    let seen = at("plain double", 20, "fpr")?;
    // So many errors are expected in theory at 20 hashes over all seeds: hardly any.
    let expected = at("plain double", 20, "theory")?.mean() * scope.pick(100_000.0, 2e6, 2e6) * scope.num_seeds as f64;
    Ok(Conclusion::new().figure(figure).verdicts([
        Outcome::graded(plain_few < 1.1 && plain_many < 2.0, plain_few < 1.5)
            .on("two-hashes", "other extensions", "two hashes do for a Bloom filter")
            .numbers([("plain double hashing / theory, 6 hashes", plain_few), ("20 hashes", plain_many)])
            .mean("its rate at 20 hashes", &seen)
            .number("false positives that theory expects there in all", expected)
            .remark("at few hashes; at many, plain double hashing has a floor"),
        Outcome::of((mixed_few - 1.0).abs() < 0.1 && (mixed_ten - 1.0).abs() < 0.35)
            .on("mixed", "everbloom", "one hash, split and mixed, is as good as independent ones")
            .ours()
            .numbers([("everbloom's / theory, 6 hashes", mixed_few), ("10 hashes", mixed_ten)]),
    ]))
}
