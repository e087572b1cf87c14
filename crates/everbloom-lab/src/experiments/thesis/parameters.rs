//! Which parameter matters: hashes against decrements, and forgetting cell by cell against flushing.

use super::{SOURCE, Size, USUAL, items, rates, scaled};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-parameters",
    source: SOURCE,
    figure: "sections 2.1.2 and 6.6",
    shows: "the stable filter's false positives by hashes and by decrements, and beside a Bloom filter that is flushed",
    expected: Seconds { quick: 0.5, default: 4.0, full: None },
    seeds: 8,
    ..Experiment::of(cells, conclude)
};

const HASHES: [u32; 2] = [4, 8];
/// The ends of the thesis's own range.
const DECREMENTS: [u32; 2] = [7, 3];
const LARGEST: [u32; 2] = [4, 8];
/// A flushed filter forgets everything after so many sixteenths of its cells in arrivals.
const FLUSHED: [u64; 7] = [1, 2, 3, 4, 6, 8, 12];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let stable = |seed| {
        Cell::new(format!("stable, {items} arrivals, 3 to 7 decrements"), seed, move |_| {
            let mut rows = Vec::new();
            for cell_max in LARGEST {
                for (num_hashes, decrements) in
                    [(HASHES[0], DECREMENTS[0]), (HASHES[1], DECREMENTS[0]), (HASHES[0], DECREMENTS[1])]
                {
                    let size = scaled(Size { num_hashes, decrements, cell_max, ..USUAL }, items);
                    let filters: [Named; 1] = [("SBF", format!("stable:{}", size.words()))];
                    let label = |row: Row| {
                        row.label("num_hashes", num_hashes).label("decrements", decrements).label("cell_max", cell_max)
                    };
                    rows.extend(rates("linear_70", items, &filters, seed, label)?);
                }
            }
            Ok(rows)
        })
        .seconds(0.2)
    };
    let flushed = |seed| {
        Cell::new(format!("flushed, {items} arrivals, a bit a cell"), seed, move |_| flushed(items, seed)).seconds(0.2)
    };
    Ok(scope.seeds().flat_map(|seed| [stable(seed), flushed(seed)]).collect())
}

/// Bloom filters with a bit for each of the stable filter's cells that are emptied now and then.
fn flushed(items: u64, seed: u64) -> Result<Vec<Row>> {
    let num_bits = scaled(USUAL, items).num_cells;
    let mut rows = Vec::new();
    for sixteenths in FLUSHED {
        let every = num_bits * sixteenths / 16;
        let mut filter = build(&format!("bloom:num_bits={num_bits},num_hashes=4"), seed)?;
        let (mut oracle, mut tally) = (IdOracle::default(), Tally::default());
        let request = Request { items: Some(items), seed: 1000 + seed, ..Default::default() };
        for (arrivals, arrival) in (1u64..).zip(datasets::open("linear_70", &request)?) {
            let seen = !filter.observe(arrival.key, Importance::FULL).is_distinct();
            tally.record(oracle.judge(arrival.key) == Truth::Duplicate, seen);
            if arrivals.is_multiple_of(every) {
                filter.clear();
            }
        }
        let row = Row::new("flushed").label("every", every);
        rows.push(row.value("fpr", tally.fpr()).value("fnr", tally.fnr()));
    }
    Ok(rows)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let fpr = |num_hashes: u32, decrements: u32, cell_max: u32| {
        let labels = labels![num_hashes = num_hashes, decrements = decrements, cell_max = cell_max];
        table.percent("rates", "fpr", &labels)
    };
    let mut verdicts = Vec::new();
    for cell_max in LARGEST {
        let usual = fpr(HASHES[0], DECREMENTS[0], cell_max)?;
        // What doubling does to the rate, as a power of two.
        let effect = |sample: Sample, from: u32, to: u32| {
            let doublings = libm::log2(f64::from(to) / f64::from(from)).abs();
            usual.with(&sample, |usual, other| libm::log2(other / usual).abs() / doublings)
        };
        let hashes = effect(fpr(HASHES[1], DECREMENTS[0], cell_max)?, HASHES[0], HASHES[1]);
        let decrements = effect(fpr(HASHES[0], DECREMENTS[1], cell_max)?, DECREMENTS[0], DECREMENTS[1]);
        let ratio = hashes.with(&decrements, |hashes, decrements| hashes / decrements);
        if cell_max == LARGEST[0] {
            verdicts.push(
                Outcome::of(clearly_below(&decrements, &hashes))
                    .on(
                        "dominates",
                        "6.6",
                        "of hashes and decrements, the number of hashes has more effect on false positives",
                    )
                    .mean("doublings of the FPR when hashes double", &hashes)
                    .mean("halvings when decrements double", &decrements),
            );
        }
        let printed = Printed::new(f64::from(cell_max), 0);
        verdicts.push(
            printed.outcome_about(&ratio, ratio.mean() > 1.0).on(format!("times-{cell_max}"), "6.6", format!("hashes have M = {cell_max} times as much effect on false positives as decrements"))
            .mean("effect of doubling the hashes / the decrements", &ratio)
            .mean("doublings of the FPR when hashes double", &hashes)
            .mean("halvings when decrements double", &decrements)
            .remark(
                "quoted from Deng and Rafiei; 4 to 8 hashes, 3 to 7 decrements; effect as the logarithm of what doubling the parameter does to the FPR",
            ),
        );
    }
    let stable = labels![num_hashes = HASHES[0], decrements = DECREMENTS[0], cell_max = LARGEST[0]];
    let (sbf_fpr, sbf_fnr) = (table.percent("rates", "fpr", &stable)?, table.percent("rates", "fnr", &stable)?);
    let flushed = table.summary("flushed");
    let percent = |place: usize, value: &str| flushed[place].sample(value).map(Sample::percent).unwrap_or_default();
    let least = (0..flushed.len()).map(|place| percent(place, "fnr").mean()).fold(f64::INFINITY, f64::min);
    verdicts.push(
        Outcome::of(least > 0.0)
            .on("flushing", "2.1.2", "a Bloom filter that is flushed now and then has false negatives")
            .number("least FNR over the periods, %", least)
            .means([("SBF: FNR, %", &sbf_fnr), ("SBF: FPR, %", &sbf_fpr)]),
    );
    let near = (0..flushed.len()).filter(|&place| percent(place, "fpr").mean() <= sbf_fpr.mean());
    let best =
        near.min_by(|&one, &other| percent(one, "fnr").mean().total_cmp(&percent(other, "fnr").mean())).unwrap_or(0);
    verdicts.push(
        Outcome::of(clearly_below(&sbf_fnr, &percent(best, "fnr"))).on("flushing-worse", "everbloom", "with as many cells and no more false positives, the stable filter misses fewer repeats than a flushed one")
        .ours()
        .mean("flushed: FNR, %", &percent(best, "fnr"))
        .mean("FPR, %", &percent(best, "fpr"))
        .mean("SBF: FNR, %", &sbf_fnr)
        .mean("FPR, %", &sbf_fpr)
        .remark("cells of one bit, against the stable filter's of three"),
    );
    let points = (0..flushed.len()).map(|place| Point::of(percent(place, "fpr").mean(), &percent(place, "fnr"), 1.0));
    let panel =
        Panel::new("", Axis::log("false positives, % of distinct"), Axis::linear("false negatives, % of duplicates"))
            .series(Series::new("Bloom filter, flushed", Look::LineAndMarks, points))
            .series(mark("SBF", &sbf_fpr, &sbf_fnr));
    let caption = "Set D, as many cells. A flushed filter is emptied after every so many arrivals; the more often, the further left.";
    let figure = Figure::new("flushing", "Flushing a Bloom filter, and a stable filter", caption).panel(panel);
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
