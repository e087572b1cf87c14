//! Streams whose keys change: does the filter adapt?

use super::{SOURCE, reservoir, stable};
use crate::experiments::common::*;
use everbloom_cells::key::Generator;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-drift",
    source: SOURCE,
    figure: "section 4, changing streams",
    shows: "FNR along streams whose keys are replaced slowly, fast, or all at once",
    expected: Seconds { quick: 0.6, default: 6.0, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

const DRIFTS: [&str; 4] = ["none", "slow", "fast", "sudden"];
const PARTS: usize = 40;

/// Uniform draws from a window of keys that moves.
struct Drifting {
    drift: &'static str,
    items: u64,
    keys_in_use: u64,
    arrivals: u64,
    generator: Generator,
    oracle: IdOracle,
}

impl Drifting {
    /// The first key in use.
    fn first(&self) -> u64 {
        match self.drift {
            "slow" => self.arrivals / 100,
            "fast" => self.arrivals / 5,
            "sudden" if self.arrivals > self.items / 2 => self.keys_in_use,
            _ => 0,
        }
    }
}

impl Source for Drifting {
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()> {
        for _ in 0..(Batch::SIZE as u64).min(self.items - self.arrivals) {
            let key = self.first() + self.generator.below(self.keys_in_use);
            batch.hashes.push(key.hash_with(hashing));
            batch.importances.push(Importance::FULL);
            batch.truths.push(self.oracle.judge(key));
            self.arrivals += 1;
        }
        Ok(())
    }
}

fn filters(memory_bits: u64) -> Vec<Named> {
    // Ranked at about the same rate of false positives: 3 lanes of 5 bits.
    vec![
        stable(memory_bits),
        reservoir(memory_bits),
        ("ranked", format!("ranked:num_words={},lanes=3,lane_bits=5,insert=middle,hit=front", memory_bits / 15)),
    ]
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = scope.pick(100_000, 1_000_000, 1_000_000);
    let (keys_in_use, memory_bits) = (items / 20, items / 10);
    let cell = |drift: &'static str, seed: u64| {
        Cell::new(format!("{drift}, {items} arrivals, {memory_bits} bits"), seed, move |_| {
            let mut stream = Drifting {
                drift,
                items,
                keys_in_use,
                arrivals: 0,
                generator: Generator::seeded(1000 + seed),
                oracle: IdOracle::default(),
            };
            let filters = filters(memory_bits);
            let outcome = judge(&mut stream, &filters, seed, Record::default())?;
            let mut rows = Vec::new();
            for ((name, _), report) in filters.iter().zip(&outcome.reports) {
                let start = |table: &str| Row::new(table).label("drift", drift).label("filter", *name);
                rows.push(
                    start("rates")
                        .value("late_fnr", report.late_fnr)
                        .value("late_fpr", report.late_fpr)
                        .value("fnr", report.measured_fnr)
                        .value("fpr", report.measured_fpr),
                );
                for (place, (arrivals, fpr, fnr)) in integral(report, PARTS, Over::Part).into_iter().enumerate() {
                    rows.push(
                        start("along")
                            .label("part", place as u64)
                            .value("arrivals", arrivals as f64)
                            .value("fpr", fpr)
                            .value("fnr", fnr),
                    );
                }
            }
            Ok(rows)
        })
        .seconds(items as f64 * 3.0 * 50e-9)
    };
    Ok(scope.seeds().flat_map(|seed| DRIFTS.map(|drift| cell(drift, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "drift",
        "False negatives along changing streams",
        "Uniform draws from a window of keys. Slow: a new key every 100 arrivals; fast: every 5; sudden: all new halfway.",
    );
    for drift in DRIFTS {
        let mut panel = Panel::new(drift, Axis::linear("arrivals"), Axis::linear("false negatives, % of duplicates"));
        for filter in ["SBF", "RSBF", "ranked"] {
            let here = labels![drift = drift, filter = filter];
            panel = panel.series(along(filter, table, ("along", "fnr", 100.0), &here));
        }
        figure = figure.panel(panel);
    }
    let at = |measure: &str, drift: &str, filter: &str| {
        table.percent("rates", measure, &labels![drift = drift, filter = filter])
    };
    let mut verdicts = Vec::new();
    for drift in ["slow", "fast", "sudden"] {
        let (still, moving) = (at("late_fnr", "none", "RSBF")?, at("late_fnr", drift, "RSBF")?);
        let (sbf, ranked) = (at("late_fnr", drift, "SBF")?, at("late_fnr", drift, "ranked")?);
        let adapts = moving.mean() <= still.mean() + 4.0 * still.error().hypot(moving.error()) + 0.02 * still.mean();
        verdicts.push(
            Outcome::of(adapts)
                .on(
                    format!("adapts-{drift}"),
                    "4, 6.1",
                    format!("{drift} change: RSBF adapts, its FNR at the end is no higher than without change"),
                )
                .mean("late FNR without change, %", &still)
                .mean("with, %", &moving)
                .mean("SBF, %", &sbf)
                .mean("ranked, %", &ranked)
                .mean("late FPR of RSBF, %", &at("late_fpr", drift, "RSBF")?)
                .mean("SBF, %", &at("late_fpr", drift, "SBF")?)
                .mean("ranked, %", &at("late_fpr", drift, "ranked")?),
        );
    }
    let (sbf, rsbf) = (at("late_fnr", "sudden", "SBF")?, at("late_fnr", "none", "SBF")?);
    verdicts.push(
        Outcome::of(sbf.mean() > rsbf.mean() + 4.0 * sbf.error().hypot(rsbf.error()) + 0.02 * rsbf.mean())
            .on("stable-fails", "6.1", "SBF, on the other hand, fails to adapt to changing streams")
            .means([("late FNR of SBF without change, %", &rsbf), ("after a sudden one, %", &sbf)]),
    );
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
