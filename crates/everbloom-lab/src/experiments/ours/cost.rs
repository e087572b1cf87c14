//! Time per arrival against memory.

use crate::experiments::common::*;
use everbloom::{Importances, Verdict as Answer};
use std::time::Instant;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cost",
    source: "everbloom",
    figure: "cost per arrival",
    shows: "nanoseconds per arrival against memory, every endless filter as planned for 1 %, keys hashed beforehand",
    expected: Seconds { quick: 3.0, default: 30.0, full: None },
    seeds: 3,
    revision: 2,
    timed: true,
    ..Experiment::of(cells, conclude)
};

const LOG_BITS: [u32; 5] = [14, 18, 22, 26, 30];

fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter(|kind| kind.can.run_forever || ["bloom", "blocked"].contains(&kind.name)).map(|kind| kind.name)
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items: usize = scope.pick(1 << 15, 1 << 19, 1 << 19);
    let sizes = scope.pick(&LOG_BITS[..3], &LOG_BITS[..], &LOG_BITS[..]);
    let mut cells = Vec::new();
    for seed in scope.seeds() {
        for log_bits in sizes {
            let memory_bits = 1u64 << log_bits;
            for kind in kinds() {
                // The importance-aware filters take microseconds.
                let items = if kind.starts_with("ibf") { items >> 3 } else { items };
                let work = move |_: &Context<'_>| time(kind, memory_bits, items, seed);
                let cell = Cell::new(format!("{kind}, {memory_bits} bits, {items} arrivals"), seed, work);
                cells.push(cell.seconds(items as f64 * 150e-9 + memory_bits as f64 * 4e-10));
            }
        }
    }
    Ok(cells)
}

/// The second half of the arrivals is timed; the first one touches the memory.
fn time(kind: &'static str, memory_bits: u64, items: usize, seed: u64) -> Result<Vec<Row>> {
    let hashing = Hashing::seeded(seed);
    let goal = Goal::new().memory_bits(memory_bits).fpr(0.01).expected_items(memory_bits / 12).hashing(hashing);
    // What cannot be planned so small has no time.
    let Ok(plan) = goal.plan_among(KINDS, kind) else { return Ok(Vec::new()) };
    let mut filter = plan.build()?;
    let hashes: Vec<_> = (0..2 * items as u64).map(|key| key.hash_with(&hashing)).collect();
    let mut answers = vec![Answer::Distinct; items];
    filter.observe_hashes(&hashes[..items], Importances::default(), &mut answers)?;
    let start = Instant::now();
    filter.observe_hashes(&hashes[items..], Importances::default(), &mut answers)?;
    let each = start.elapsed().as_nanos() as f64 / items as f64;
    Ok(vec![Row::new("cost").label("kind", kind).label("memory", memory_bits).value("ns_per_item", each)])
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let group = |kind: &str| if kind.starts_with("ibf") { "importance-aware" } else { "others" };
    let mut figure = Figure::new(
        "cost",
        "Time per arrival against memory",
        "Batches of hashed keys, all distinct, filters as planned for 1 %. Up to about a megabyte (2 to the 23 bits) filters fit the cache.",
    );
    for side in ["others", "importance-aware"] {
        let kinds = kinds().filter(|kind| group(kind) == side);
        let panel = Panel::new(side, Axis::log2("memory, bits"), Axis::log("nanoseconds per arrival"));
        let panel =
            panel.each(Look::LineAndMarks, (table, "cost"), ("memory", "ns_per_item", 1.0), ("kind", kinds), &[]);
        figure = figure.panel(panel);
    }
    let largest = table.labels("cost", "memory").iter().filter_map(|label| label.number()).fold(0.0, f64::max);
    let at = |kind: &str| table.need("cost", "ns_per_item", &labels![kind = kind, memory = largest]);
    let (ranked, stable, reservoir) = (at("ranked")?, at("stable")?, at("reservoir")?);
    let slower = (stable.mean() / ranked.mean()).min(reservoir.mean() / ranked.mean());
    Ok(Conclusion::new().figure(figure).verdict(
        Outcome::graded(slower >= 2.0, slower > 1.0)
            .on("ranked", "everbloom", "ranked is 2–6 times faster than the stable and reservoir filters")
            .number("memory, bits", largest)
            .means([("ranked, ns", &ranked), ("stable, ns", &stable), ("reservoir, ns", &reservoir)])
            .number("least ratio", slower)
            .remark("the planned stable and reservoir filters are everbloom's blocked ones, not the papers'"),
    ))
}
