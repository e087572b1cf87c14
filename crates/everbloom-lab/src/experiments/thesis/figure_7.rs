//! Empty cells over time.

use super::{NAMES, SOURCE, Size, family};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-figure-7",
    source: SOURCE,
    figure: "Figure 7",
    shows: "empty cells of 512 over 100,000 arrivals settle at a point of each filter's own",
    printed: "Empty cells of 512 against arrivals. Each filter settles at a level of its own: the stable filter near 50, importance-aware ones between 50 and 400, IBF2 highest and least steady; the Bloom filter is soon full.",
    expected: Seconds { quick: 0.5, default: 5.0, full: None },
    seeds: 8,
    revision: 2,
    ..Experiment::of(cells, conclude)
};

const NUM_CELLS: u64 = 512;
const EVERY: u64 = 500;
/// From here on the counts have settled.
const SETTLED: f64 = 10_000.0;

/// The parameters as printed (p = 5, M = 5), and two readings that give the printed counts: M = 4, or p = 7.
const READINGS: [(u32, u32); 3] = [(5, 4), (5, 5), (7, 5)];

fn size((decrements, cell_max): (u32, u32)) -> Size {
    Size { num_cells: NUM_CELLS, num_hashes: 4, decrements, cell_max }
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = scope.pick(20_000, 100_000, 100_000);
    let cell = |reading: (u32, u32), seed| {
        let name = format!("{items} arrivals, decrements {}, cell_max {}", reading.0, reading.1);
        Cell::new(name, seed, move |_| zeros(items, reading, seed)).seconds(0.5)
    };
    Ok(scope.seeds().flat_map(|seed| READINGS.map(|reading| cell(reading, seed))).collect())
}

fn zeros(items: u64, reading: (u32, u32), seed: u64) -> Result<Vec<Row>> {
    let filters: Vec<Named> = family(size(reading));
    let mut built = filters.iter().map(|(_, spec)| build(spec, seed)).collect::<Result<Vec<_>>>()?;
    let set = datasets::open("linear", &Request { items: Some(items), seed: 1000 + seed, ..Default::default() })?;
    let mut rows = Vec::new();
    let start = |table: &str, name: &'static str| {
        Row::new(table).label("decrements", reading.0).label("cell_max", reading.1).label("filter", name)
    };
    let mut settled = vec![Vec::new(); filters.len()];
    for (arrivals, arrival) in (1u64..).zip(set) {
        let importance = Importance::new(arrival.importance, 50)?;
        for (((name, _), filter), settled) in filters.iter().zip(&mut built).zip(&mut settled) {
            filter.observe(arrival.key, importance);
            if arrivals % EVERY == 0 {
                let zeros = NUM_CELLS as f64 * (1.0 - filter.status().fill);
                rows.push(start("zeros", name).label("arrivals", arrivals).value("zeros", zeros));
                if arrivals as f64 >= SETTLED {
                    settled.push(zeros);
                }
            }
        }
    }
    for ((name, _), counts) in filters.iter().zip(settled) {
        let counts = Sample(counts);
        rows.push(start("settled", name).value("zeros", counts.mean()).value("deviation", counts.deviation()));
    }
    Ok(rows)
}

/// The settled counts of a filter, a mean for each seed, or how much they move from look to look.
fn settled(table: &Table, (decrements, cell_max): (u32, u32), filter: &str, value: &str) -> Result<Sample> {
    let labels = labels![decrements = decrements, cell_max = cell_max, filter = filter];
    table.need("settled", value, &labels)
}

/// 512 · (1/(1 + 1/(P·(1/K − 1/m))))^Max.
fn stable_point(reading: (u32, u32)) -> f64 {
    let size = size(reading);
    let load = f64::from(size.decrements) * (1.0 / f64::from(size.num_hashes) - 1.0 / NUM_CELLS as f64);
    NUM_CELLS as f64 * libm::pow(1.0 / (1.0 + 1.0 / load), f64::from(size.cell_max))
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let caption = "The stable point (dashed: theory for the stable filter) is reached within a thousand arrivals. M = 4. IBF2 is emptiest; of the filters that the thesis compares, IBF1 to IBF5, it moves most (IBF6, which it leaves out here, moves more).";
    let panel = Panel::new("", Axis::linear("arrivals"), Axis::linear("empty cells of 512").from(0.0, 512.0));
    let four = labels![decrements = 5u32, cell_max = 4u32];
    let panel = panel.each(Look::Line, (table, "zeros"), ("arrivals", "zeros", 1.0), ("filter", NAMES), &four);
    let ends = table.labels("zeros", "arrivals").iter().filter_map(|label| label.number()).fold(0.0, f64::max);
    let theory = [0.0, ends].map(|x| Point::new(x, stable_point(READINGS[0])));
    let panel = panel.series(Series::new("stable point, theory", Look::Reference, theory));
    let figure = Figure::new("zeros", "Empty cells over time (Figure 7)", caption).panel(panel);
    Ok(Conclusion::new().figure(figure).verdicts(verdicts(table)?))
}

/// The filters that the thesis's experiments compare.
const COMPARED: [&str; 5] = ["IBF1", "IBF2", "IBF3", "IBF4", "IBF5"];

fn verdicts(table: &Table) -> Result<Vec<Verdict>> {
    let [mended, as_printed, other] = READINGS;
    let at = |filter: &str| settled(table, mended, filter, "zeros");
    let of = |reading| settled(table, reading, "SBF", "zeros");
    let (stable, printed_stable, other_stable) = (at("SBF")?, of(as_printed)?, of(other)?);
    let means = COMPARED.iter().map(|name| at(name)).collect::<Result<Vec<_>>>()?;
    let lowest = means.iter().map(Sample::mean).fold(f64::INFINITY, f64::min);
    let highest = means.iter().map(Sample::mean).fold(0.0, f64::max);
    let deviation = |name: &str| settled(table, mended, name, "deviation");
    let moves = COMPARED.iter().map(|name| Ok((*name, deviation(name)?))).collect::<Result<Vec<_>>>()?;
    let ibf2_moves = deviation("IBF2")?;
    let most_moved = moves.iter().filter(|(name, _)| *name != "IBF2").max_by(|a, b| a.1.mean().total_cmp(&b.1.mean()));
    let (next, next_moves) = most_moved.cloned().unwrap_or(("", Sample::default()));
    let (ibf2, bloom) = (at("IBF2")?, at("BF")?);
    let fifty = Printed::new(50.0, 0);
    let outcome = match fifty.outcome(&printed_stable) {
        Outcome::DoesNotHold if fifty.is_near(&stable) || fifty.is_near(&other_stable) => Outcome::Misprint,
        outcome => outcome,
    };
    let theory_holds = (stable.mean() - stable_point(mended)).abs() <= 4.0 * stable.error();
    let four_hundred = Printed::new(400.0, 0);
    Ok(vec![
        outcome
            .on(
                "stable-point",
                "6.5",
                "the stable filter settles around 50 empty cells, with 5 decrements and a largest value of 5",
            )
            .number("printed", 50.0)
            .mean("as printed", &printed_stable)
            .mean("5 decrements, largest value 4", &stable)
            .mean("7 decrements, largest value 5", &other_stable)
            .mean("IBF2 as printed", &settled(table, as_printed, "IBF2", "zeros")?)
            .mean("5 decrements, largest value 4", &ibf2)
            .mean("7 decrements, largest value 5", &settled(table, other, "IBF2", "zeros")?)
            .remark("either mending fits; those below take a largest value of 4"),
        Outcome::of(theory_holds)
            .on("theory", "2.2, eq. 4", "the share of empty cells of a stable filter tends to a constant")
            .number("theory of Deng and Rafiei", stable_point(mended))
            .mean("measured", &stable),
        Outcome::loosely(
            (50.0..=400.0).contains(&lowest) && (50.0..=400.0).contains(&highest),
            lowest >= 45.0 && highest <= 440.0,
            lowest > 10.0,
        )
        .on("range", "6.5", "the importance-aware filters settle too, at 50 to 400 empty cells")
        .numbers([("lowest", lowest), ("highest", highest)]),
        four_hundred
            .outcome_about(&ibf2, ibf2.mean() >= highest)
            .on("ibf2-level", "6.5", "IBF2 has the most empty cells, nearly 400")
            .mean("measured", &ibf2),
        Outcome::of(clearly_below(&next_moves, &ibf2_moves))
            .on("ibf2-restless", "6.5", "IBF2 deviates most about its stable point")
            .mean("deviation of IBF2", &ibf2_moves)
            .mean(&format!("of {next}, the next of IBF1 to IBF5"), &next_moves)
            .mean("of IBF6, which the comparison leaves out", &deviation("IBF6")?),
        Outcome::of(bloom.mean() < 1.0)
            .on("bloom", "6.5", "the Bloom filter is full very soon")
            .mean("empty cells", &bloom),
    ])
}
