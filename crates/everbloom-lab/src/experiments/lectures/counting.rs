//! Deletion: resetting bits, counting, and counters that overflow.

use crate::experiments::common::*;
use everbloom::filters::bloom::Size;
use everbloom::filters::{Counting, counting};
use everbloom::kind::Removal as _;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lecture-counting",
    source: "[CS6931], [SDS]",
    figure: "handling deletions",
    shows: "deletion by resetting bits loses other keys, by counters does not; how often 4-bit counters overflow",
    expected: Seconds { quick: 0.3, default: 5.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const NUM_HASHES: u32 = 7;
const CELLS_PER_KEY: u64 = 10;
const CELL_BITS: [u32; 2] = [2, 4];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let num_keys: u64 = scope.pick(5_000, 200_000, 200_000);
    let bits = move |seed| {
        Cell::new(format!("bits, {num_keys} keys"), seed, move |_| by_resetting(num_keys, seed)).seconds(0.1)
    };
    let counters = move |cell_bits, seed| {
        Cell::new(format!("{cell_bits}-bit counters, {num_keys} keys"), seed, move |_| {
            by_counting(num_keys, cell_bits, seed)
        })
        .seconds(0.2)
    };
    Ok(scope
        .seeds()
        .flat_map(|seed| CELL_BITS.map(|cell_bits| counters(cell_bits, seed)).into_iter().chain([bits(seed)]))
        .collect())
}

/// Keys deleted from a plain filter by resetting their bits: every second one.
fn by_resetting(num_keys: u64, seed: u64) -> Result<Vec<Row>> {
    let (hashing, num_cells) = (Hashing::seeded(seed), num_keys * CELLS_PER_KEY);
    let mut bits = vec![false; num_cells as usize];
    let positions = |key: u64| key.hash_with(&hashing).probes(num_cells).take(NUM_HASHES as usize);
    for key in 0..num_keys {
        positions(key).for_each(|at| bits[at as usize] = true);
    }
    for key in (0..num_keys).step_by(2) {
        positions(key).for_each(|at| bits[at as usize] = false);
    }
    let lost = (1..num_keys).step_by(2).filter(|key| !positions(*key).all(|at| bits[at as usize])).count();
    Ok(vec![Row::new("deletion").label("how", "bits reset").value("lost", lost as f64 / (num_keys / 2) as f64)])
}

/// Keys that are lost by counters, then what is left, and how large counters got.
fn by_counting(num_keys: u64, cell_bits: u32, seed: u64) -> Result<Vec<Row>> {
    let hashing = Hashing::seeded(seed);
    let parameters = counting::Parameters::new(Size::new(num_keys * CELLS_PER_KEY, NUM_HASHES)?, cell_bits)?;
    let mut filter = Counting::new(parameters, hashing)?;
    for key in 0..num_keys {
        filter.insert(key);
    }
    let overflown = filter.saturated();
    for key in (0..num_keys).step_by(2) {
        filter.remove_hash(key.hash_with(&hashing));
    }
    let lost = (1..num_keys).step_by(2).filter(|key| !filter.contains(key)).count();
    let left = (0..num_keys).step_by(2).filter(|key| filter.contains(key)).count();
    // What a plain filter of the remaining keys would say.
    let mut plain = build(&format!("bloom:num_bits={},num_hashes={NUM_HASHES}", num_keys * CELLS_PER_KEY), seed)?;
    for key in (1..num_keys).step_by(2) {
        plain.insert(key);
    }
    let would = (0..num_keys).step_by(2).filter(|key| plain.contains(key)).count();
    let half = (num_keys / 2) as f64;
    let how = format!("{cell_bits}-bit counters");
    let row =
        Row::new("deletion").label("how", how).value("lost", lost as f64 / half).value("left", left as f64 / half);
    Ok(vec![
        row.value("left_in_plain", would as f64 / half)
            .value("overflown", overflown as f64 / (num_keys * CELLS_PER_KEY) as f64),
    ])
}

/// The share of counters that reach `count`, for a Poisson load.
fn poisson_tail(load: f64, count: u32) -> f64 {
    let mut term = libm::exp(-load);
    let mut below = 0.0;
    for value in 0..count {
        below += term;
        term *= load / f64::from(value + 1);
    }
    // The tail itself, where 1 − below would be rounding.
    let mut tail = 0.0;
    for value in count..count + 60 {
        tail += term;
        term *= load / f64::from(value + 1);
    }
    tail.min(1.0 - below.min(1.0) + 1e-300).max(if below < 0.999 { 1.0 - below } else { tail })
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let at = |value: &str, how: &str| table.need("deletion", value, &labels![how = how]);
    let (reset, counted) = (at("lost", "bits reset")?.percent(), at("lost", "4-bit counters")?.percent());
    let (left, plain) = (at("left", "4-bit counters")?.percent(), at("left_in_plain", "4-bit counters")?.percent());
    let (overflown, two_bits) = (at("overflown", "4-bit counters")?, at("overflown", "2-bit counters")?);
    let load = f64::from(NUM_HASHES) / CELLS_PER_KEY as f64;
    let theory = poisson_tail(load, 15);
    let points = |of: f64| (2u32..=20).map(move |count| Point::new(f64::from(count), poisson_tail(of, count)));
    let panel = Panel::new("", Axis::linear("value of a counter"), Axis::log("share of counters that reach it"))
        .series(Series::new("Poisson, 0.7 probes a counter", Look::Reference, points(load)))
        .series(Series::new("measured: full 2-bit counters", Look::Marks, [Point::of(3.0, &two_bits, 1.0)]));
    let figure = Figure::new("overflow", "How large counters get", "A 2-bit counter is full at 3, a 4-bit one at 15: about 1 counter in 10 to the 15 gets there, so that no real filter ever sees one.").panel(panel);
    Ok(Conclusion::new().figure(figure).verdicts([
        Outcome::of(reset.mean() > 1.0)
            .on("resetting", "handling deletions", "resetting the bits of a key deletes others, too")
            .mean("other keys lost when half are deleted, %", &reset),
        Outcome::of(counted.mean() == 0.0)
            .on("counting", "counting Bloom filters", "counters make deletion possible: other keys stay")
            .mean("other keys lost, %", &counted),
        Outcome::of((left.mean() - plain.mean()).abs() < 1e-9)
            .on("reduced", "counting Bloom filters", "reduced to 0 and 1, it is the Bloom filter of what is left")
            .means([("deleted keys still found, %", &left), ("by a filter of the rest, %", &plain)]),
        Outcome::of(overflown.mean() < 1e-6 && theory < 1e-12)
            .on(
                "four-bits",
                "handling deletions",
                "4 bits per counter are enough: overflow has a very small probability",
            )
            .mean("share of counters that overflowed", &overflown)
            .number("theory", theory)
            .mean("2-bit counters, for comparison", &two_bits),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_poisson() {
        assert!((poisson_tail(1.0, 1) - (1.0 - (-1.0f64).exp())).abs() < 1e-12);
        let tail = poisson_tail(std::f64::consts::LN_2, 16);
        assert!((tail / 6.7e-17 - 1.0).abs() < 0.2, "{tail}");
    }
}
