//! The paper's closed forms beside the measurement, and its Algorithm 1 as printed.

use super::{SOURCE, reservoir};
use crate::datasets::{self, Request, universe_for};
use crate::evaluate::Record;
use crate::experiments::common::judge;
use crate::metrics::Tally;
use crate::oracle::{IdOracle, Truth};
use crate::suite::{
    Axis, Cell, Conclusion, Experiment, Figure, Look, Outcome, Panel, Point, Row, Scope, Seconds, Series, Table,
    Verdict,
};
use everbloom::internal::key::Generator;
use everbloom::{Hashing, Key as _, Result};
use libm::{exp, log, pow};

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-closed-forms",
    source: SOURCE,
    figure: "eqs. 5.1–5.28, Algorithm 1",
    shows: "FPR, FNR and ones as the paper's formulas predict them, as measured, and by Algorithm 1 as printed",
    expected: Seconds { quick: 1.0, default: 12.0, full: None },
    seeds: 2,
    ..Experiment::of(cells, conclude)
};

const MEMORY_BITS: u64 = 262_144;
const NUM_FILTERS: u64 = 3;
const FILTER_BITS: f64 = (MEMORY_BITS / NUM_FILTERS) as f64;
const DISTINCT: f64 = 0.49;

fn items(scope: &Scope) -> u64 {
    scope.pick(500_000, 10_000_000, 10_000_000)
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let request =
        move |seed| Request { items: Some(items), distinct: Some(DISTINCT), seed: 1000 + seed, ..Default::default() };
    let measured = |seed| {
        Cell::new(format!("RSBF, {items} arrivals"), seed, move |_| {
            let record = Record { fill_every: Some(items / 50), ..Record::default() };
            let outcome =
                judge(&mut datasets::open("uniform", &request(seed))?, &[reservoir(MEMORY_BITS)], seed, record)?;
            let mut rows = Vec::new();
            for report in &outcome.reports {
                let row = Row::new("rates")
                    .label("algorithm", "as read")
                    .value("fpr", report.measured_fpr)
                    .value("fnr", report.measured_fnr);
                rows.push(row.value("late_fpr", report.late_fpr).value("late_fnr", report.late_fnr));
                rows.extend(report.fill.iter().map(|(at, fill)| {
                    Row::new("fill").label("algorithm", "as read").label("arrivals", *at).value("fill", *fill)
                }));
            }
            Ok(rows)
        })
        .seconds(items as f64 * 60e-9)
    };
    let printed = |seed| Cell::new("Algorithm 1 as printed, Table 2", seed, move |_| as_printed(seed)).seconds(0.05);
    let start = |seed| Cell::new("the first s arrivals", seed, move |_| first_arrivals(seed)).seconds(0.05);
    Ok(scope.seeds().flat_map(|seed| [measured(seed), printed(seed), start(seed)]).collect())
}

/// The fill after exactly s arrivals.
fn first_arrivals(seed: u64) -> Result<Vec<Row>> {
    let (_, spec) = reservoir(MEMORY_BITS);
    let mut filter = crate::experiments::common::build(&spec, seed)?;
    for key in 0..FILTER_BITS as u64 {
        filter.insert_hash(key.hash_with(&Hashing::seeded(seed)));
    }
    Ok(vec![Row::new("start").label("arrivals", FILTER_BITS).value("fill", filter.status().fill)])
}

/// Table 2's first row: 100,000 arrivals, 76 % distinct, 16,384 bits; RSBF's FPR is printed as 11.22 %.
const TABLE_2: (u64, f64, u64, f64) = (100_000, 0.76, 16_384, 11.22);

/// Algorithm 1 word for word, which no filter does: a reservoir insertion resets nothing.
fn as_printed(seed: u64) -> Result<Vec<Row>> {
    let (items, distinct, memory_bits, _) = TABLE_2;
    let request = Request { items: Some(items), distinct: Some(distinct), seed: 1000 + seed, ..Default::default() };
    let size = memory_bits / NUM_FILTERS;
    let mut arrays = vec![vec![false; size as usize]; NUM_FILTERS as usize];
    let (mut oracle, mut tally) = (IdOracle::default(), Tally::default());
    let mut generator = Generator::seeded(!seed);
    for (iteration, arrival) in (1u64..).zip(datasets::open("uniform", &request)?) {
        let bits: Vec<_> = arrival.key.hash_with(&Hashing::seeded(seed)).probes(size).take(arrays.len()).collect();
        let duplicate = bits.iter().zip(&arrays).all(|(bit, array)| array[*bit as usize]);
        tally.record(oracle.judge(arrival.key) == Truth::Duplicate, duplicate);
        let draw = generator.unit();
        if iteration <= size || draw <= size as f64 / iteration as f64 {
            bits.iter().zip(&mut arrays).for_each(|(bit, array)| array[*bit as usize] = true);
        } else if draw > 0.03 && !duplicate {
            for (bit, array) in bits.iter().zip(&mut arrays) {
                exchange(array, *bit as usize, &mut generator);
            }
        }
    }
    let mut read = datasets::open("uniform", &request)?;
    let as_read = judge(&mut read, &[reservoir(memory_bits)], seed, Record::default())?;
    let ones: usize = arrays.iter().map(|array| array.iter().filter(|bit| **bit).count()).sum();
    let row = Row::new("algorithm_1").label("memory_bits", memory_bits).value("fpr", tally.fpr());
    let row = row.value("fnr", tally.fnr()).value("fill", ones as f64 / (size * NUM_FILTERS) as f64);
    Ok(vec![row.value("fpr_as_read", as_read.reports.first().and_then(|report| report.measured_fpr))])
}

/// Sets a bit that is not set, resetting a random one that is.
fn exchange(array: &mut [bool], bit: usize, generator: &mut Generator) {
    if array[bit] {
        return;
    }
    // Half of the bits are set or more, so this ends soon; the bound is for the very first arrivals.
    for _ in 0..1000 {
        let other = generator.below(array.len() as u64) as usize;
        if array[other] {
            array[other] = false;
            break;
        }
    }
    array[bit] = true;
}

/// Eq. 5.7 at the m-th arrival of a stream over U keys.
fn predicted_fpr(arrivals: f64, universe: f64) -> f64 {
    let (s, k) = (FILTER_BITS, NUM_FILTERS as f64);
    let unique = exp(-arrivals / universe);
    unique * (1.0 - k * s / arrivals + pow((1.0 - exp(-1.0)) * s / arrivals, k))
}

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    let arrivals = items(scope) as f64;
    let universe = universe_for(items(scope), DISTINCT)? as f64;
    let at = |measure: &str, algorithm: &str| table.need("rates", measure, &[("algorithm", algorithm.into())]);
    let (fpr, fnr) = (at("late_fpr", "as read")?, at("late_fnr", "as read")?);
    let whole_fpr = at("fpr", "as read")?.percent();
    let one = |value: &str| table.need("algorithm_1", value, &[]);
    let (printed_fpr, printed_fill, read_fpr) = (one("fpr")?.percent(), one("fill")?, one("fpr_as_read")?.percent());
    let bound = NUM_FILTERS as f64 * (arrivals - FILTER_BITS) / (universe * arrivals);
    let gamma = FILTER_BITS * exp(-FILTER_BITS * 0.5 / universe);
    let eq_57 = predicted_fpr(arrivals, universe);
    let start = table.need("start", "fill", &[])?;
    let expected = 1.0 - exp(-1.0);
    let rule = log(0.1) / log(1.0 - exp(-1.0));
    let fill = last_fill(table);
    let steady = table
        .summary("fill")
        .iter()
        .filter_map(|summary| summary.sample("fill").map(|sample| sample.mean()))
        .skip(2)
        .fold((1.0f64, 0.0f64), |(low, high), fill| (low.min(fill), high.max(fill)));
    let verdicts = vec![
        Verdict::new("algorithm-1", "Algorithm 1", "RSBF as printed has an FPR of 11.22 % (Table 2, 16,384 bits)", Outcome::graded((printed_fpr.mean() - TABLE_2.3).abs() < 1.0, false))
            .number("Table 2, %", TABLE_2.3).mean("Algorithm 1 word for word, %", &printed_fpr).mean("its share of ones at the end", &printed_fill).mean("with a reset on every insertion, %", &read_fpr)
            .remark("the text resets k bits on every insertion; the pseudo-code does not, and saturates"),
        Verdict::new("eq-5.7", "eq. 5.7", "the FPR at the end of the stream", Outcome::graded((eq_57 / fpr.mean() - 1.0).abs() < 0.1, (eq_57 / fpr.mean() - 1.0).abs() < 0.5))
            .number("eq. 5.7", eq_57).mean("measured over the last tenth", &fpr)
            .remark("eq. 5.7 is the probability that the arrival is new and called a duplicate; divided by that of being new it tends to 1"),
        Verdict::new("eq-5.12", "eq. 5.12", "γ ≤ 1", Outcome::of(gamma <= 1.0)).number("γ halfway", gamma),
        Verdict::new("eq-5.14", "eqs. 5.13–5.17", "the FNR is at most k(m − s)/(Um), that is O(k/U)", Outcome::of(fnr.mean() <= bound * 1.1))
            .number("bound", bound).mean("measured over the last tenth", &fnr),
        Verdict::new("eq-5.4", "eqs. 5.4, 5.25", "after the first s arrivals a bit is set with probability 1 − 1/e", Outcome::graded((start.mean() - expected).abs() < 0.01, (start.mean() - expected).abs() < 0.1))
            .number("1 − 1/e", expected).mean("measured share of ones", &start)
            .remark("the reading that gives the tables also resets during the first s arrivals"),
        Verdict::new("theorem-5.1", "Theorem 5.1, eq. 5.22", "the share of ones is constant after the first s arrivals", Outcome::graded(steady.1 - steady.0 < 0.01, steady.1 - steady.0 < 0.05))
            .number("least", steady.0).number("greatest", steady.1).number("at the end", fill),
        Verdict::new("eq-5.27", "eqs. 5.26, 5.27", "k = ln(0.1)/ln(1 − 1/e) arrays, averaged with 1, keep an FPR of 10 %", Outcome::of(whole_fpr.mean() <= 10.0))
            .number("k by eq. 5.27", rule).number("mean with 1, rounded", ((1.0 + rule) / 2.0).round()).mean("FPR, %", &whole_fpr)
            .remark("5 arrays would keep it: 0.5^5 = 3 %"),
    ];
    Ok(Conclusion::new().figure(figure(table)).verdicts(verdicts))
}

fn last_fill(table: &Table) -> f64 {
    table.summary("fill").last().and_then(|summary| summary.sample("fill").map(|sample| sample.mean())).unwrap_or(0.0)
}

fn figure(table: &Table) -> Figure {
    let series = Series::from_table("measured", Look::LineAndMarks, (table, "fill"), ("arrivals", "fill", 100.0), &[]);
    let ends = (series.points.first().map_or(0.0, |point| point.x), series.points.last().map_or(1.0, |point| point.x));
    let line = |name: &str, value: f64| {
        Series::new(name, Look::Reference, [Point::new(ends.0, value), Point::new(ends.1, value)])
    };
    let panel = Panel::new("", Axis::linear("arrivals"), Axis::linear("bits that are set, %").from(40.0, 70.0))
        .series(series)
        .series(line("½, where the fill tends", 50.0))
        .series(line("1 − 1/e, eq. 5.25", 100.0 * (1.0 - exp(-1.0))));
    Figure::new(
        "ones",
        "The share of ones along the stream (Theorem 5.1)",
        "262,144 bits in 3 arrays, uniform arrivals, 49 % distinct.",
    )
    .panel(panel)
}
