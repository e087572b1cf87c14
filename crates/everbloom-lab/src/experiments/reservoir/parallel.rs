//! Parallel RSBF: shards against one filter, their errors and their speed. The paper's future work.

use super::{SOURCE, reservoir_spec};
use crate::experiments::common::*;
use everbloom::{Importances, Verdict as Answer};
use std::time::Instant;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-parallel",
    source: SOURCE,
    figure: "section 7, future work",
    shows: "RSBF in 1 to 16 shards of the same total memory: errors on three streams, and arrivals a second with a thread a shard",
    expected: Seconds { quick: 1.0, default: 10.0, full: None },
    seeds: 4,
    timed: true,
    ..Experiment::of(cells, conclude)
};

const SHARDS: [u32; 5] = [1, 2, 4, 8, 16];
const STREAMS: [&str; 3] = ["uniform", "zipf", "log_lag"];
/// Memory of the timed filters: far beyond the caches, where threads wait for memory.
const TIMED_BITS: u64 = 1 << 28;

fn spec(memory_bits: u64, shards: u32) -> String {
    let one = reservoir_spec(memory_bits / u64::from(shards), 3);
    if shards == 1 { one } else { format!("{one},shards={shards}") }
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = scope.pick(50_000, 1_000_000, 1_000_000);
    let memory_bits = items / 8 / 512 * 512;
    let errors = |stream: &'static str, seed| {
        Cell::new(format!("{stream}, {items} arrivals, {memory_bits} bits"), seed, move |_: &Context<'_>| {
            let filters: Vec<Named> = SHARDS.map(|shards| ("", spec(memory_bits, shards))).to_vec();
            let request = Request { items: Some(items), seed, ..Default::default() };
            let outcome = judge_set(stream, request, &filters, Record::default())?;
            let row = |shards: u32| Row::new("rates").label("stream", stream).label("shards", shards);
            Ok(SHARDS.iter().zip(&outcome.reports).map(|(shards, report)| with_rates(row(*shards), report)).collect())
        })
        .seconds(items as f64 * SHARDS.len() as f64 * 60e-9)
    };
    let timed = scope.pick(1 << 16, 1 << 21, 1 << 21);
    let bits = scope.pick(TIMED_BITS >> 8, TIMED_BITS, TIMED_BITS);
    let speed = |seed| {
        Cell::new(format!("speed, {timed} arrivals, {bits} bits"), seed, move |_: &Context<'_>| {
            speed(timed, bits, seed)
        })
        .seconds(timed as f64 * SHARDS.len() as f64 * 100e-9)
    };
    Ok(scope
        .seeds()
        .flat_map(|seed| STREAMS.map(|stream| errors(stream, seed)).into_iter().chain([speed(seed)]))
        .collect())
}

/// Arrivals a second of filters with a thread each, on keys that are hashed and dealt out beforehand.
fn speed(items: usize, bits: u64, seed: u64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for threads in SHARDS.into_iter().take(3) {
        let hashing = Hashing::seeded(seed);
        let each = items / threads as usize;
        let parts: Vec<Vec<_>> = (0..u64::from(threads))
            .map(|part| (0..2 * each as u64).map(|key| (part << 40 | key).hash_with(&hashing)).collect())
            .collect();
        let mut filters = (0..threads)
            .map(|_| build(&reservoir_spec(bits / u64::from(threads), 3), seed))
            .collect::<Result<Vec<_>>>()?;
        // The first half touches the memory; the second one is timed.
        let mut seconds = 0.0;
        for half in 0..2 {
            let start = Instant::now();
            let failures = std::thread::scope(|scope| {
                let work = |(filter, part): (&mut AnyFilter, &Vec<_>)| {
                    let mut answers = vec![Answer::Distinct; each];
                    filter.observe_hashes(&part[half * each..(half + 1) * each], Importances::default(), &mut answers)
                };
                let running: Vec<_> =
                    filters.iter_mut().zip(&parts).map(|pair| scope.spawn(move || work(pair))).collect();
                running.into_iter().filter_map(|thread| thread.join().ok()?.err()).collect::<Vec<_>>()
            });
            if let Some(failure) = failures.into_iter().next() {
                return Err(failure);
            }
            seconds = start.elapsed().as_secs_f64();
        }
        let rate = (each * threads as usize) as f64 / seconds / 1e6;
        rows.push(Row::new("speed").label("threads", threads).value("million_per_second", rate));
    }
    Ok(rows)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "shards",
        "Errors against the number of shards, and speed against threads",
        "The same total memory, three arrays. A shard is a reservoir filter of its own for its part of the keys.",
    );
    for (measure, name) in ERRORS {
        let panel = Panel::new("", Axis::log2("shards"), Axis::linear(name));
        let axes = ("shards", measure, 100.0);
        figure = figure.panel(panel.each(Look::LineAndMarks, (table, "rates"), axes, ("stream", STREAMS), &[]));
    }
    let speeds =
        Series::from_table("RSBF", Look::LineAndMarks, (table, "speed"), ("threads", "million_per_second", 1.0), &[]);
    figure = figure.panel(
        Panel::new("", Axis::log2("threads, a shard each"), Axis::linear("million arrivals a second")).series(speeds),
    );
    let at = |measure: &str, stream: &str, shards: u32| {
        table.percent("rates", measure, &labels![stream = stream, shards = shards])
    };
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        // Within a hundredth of the rate, beyond chance.
        let same = |measure: &str| -> Result<bool> {
            let (one, many) = (at(measure, stream, 1)?, at(measure, stream, 16)?);
            let apart = one.with(&many, |one, many| many - one);
            Ok(apart.mean().abs() <= 4.0 * apart.error() + 0.01 * one.mean())
        };
        let (fnr, fpr) = (same("fnr")?, same("fpr")?);
        verdicts.push(
            Outcome::graded(fnr && fpr, fnr || fpr).on(format!("errors-{stream}"), "7, future work", format!("{stream}: 16 shards err as one filter of the same memory does"))
            .ours()
            .mean("FNR of one filter, %", &at("fnr", stream, 1)?)
            .mean("16 shards, %", &at("fnr", stream, 16)?)
            .mean("FPR of one filter, %", &at("fpr", stream, 1)?)
            .mean("16 shards, %", &at("fpr", stream, 16)?)
            .remark(
                "within a hundredth of the rate and four standard errors; a shard's arrivals are those of its own keys",
            ),
        );
    }
    let speed = |threads: u32| table.need("speed", "million_per_second", &labels![threads = threads]);
    let (one, two, four) = (speed(1)?, speed(2)?, speed(4)?);
    let ratio = two.with(&one, |two, one| two / one);
    verdicts.push(
        Outcome::graded(ratio.mean() >= 1.5, ratio.mean() > 1.0)
            .on(
                "speed",
                "7, future work",
                "two threads, a shard each, take in more than one and a half times the arrivals of one",
            )
            .ours()
            .means([("one thread, million a second", &one), ("two", &two), ("four", &four), ("two / one", &ratio)])
            .number("cores of this machine", std::thread::available_parallelism().map_or(1, usize::from) as f64),
    );
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
