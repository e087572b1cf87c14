//! Intervals hold the truth, which is counted, about as often as they say.

use super::streams::{NAMES, Run, SORTS, filter, keys, rate, run};
use everbloom_forecast::Measured;
use everbloom_forecast::audit::Audit;
use std::collections::BTreeMap;

/// Intervals that held the truth, and how many there were.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    held: u32,
    of: u32,
}

impl Held {
    fn count(&mut self, measured: Option<Measured>, truth: Option<f64>) {
        let Some(truth) = truth else { return };
        self.of += 1;
        // A rate that exists and was not measured is one that was not held.
        self.held += u32::from(measured.is_some_and(|found| {
            // Rounding of the last digits is no error.
            (found.low - 1e-12..=found.high + 1e-12).contains(&truth)
        }));
    }

    fn share(self) -> f64 {
        f64::from(self.held) / f64::from(self.of)
    }
}

fn count(table: &mut BTreeMap<String, Held>, names: [&str; 2], run: &Run) {
    let report = run.audit.report();
    let mut add = |what: &str, measured, truth| {
        for name in [what].into_iter().chain(names.iter().copied().filter(|_| !what.starts_with("by"))) {
            table.entry(name.into()).or_default().count(measured, truth);
        }
    };
    add("fpr", report.measured_fpr, rate(run.all.new));
    add("fnr", report.measured_fnr, rate(run.all.repeats));
    add("fpr, last part", report.last.measured_fpr, rate(run.last.new));
    add("fnr, last part", report.last.measured_fnr, rate(run.last.repeats));
    for lag in &report.by_lag {
        let truth = run.by_lag.get(&lag.from.ilog2()).copied().unwrap_or_default();
        add("by lag", Some(lag.measured_fnr), rate(truth.repeats));
    }
    for class in &report.by_importance {
        let truth = run.by_importance.get(&((class.from * 8.0) as u32)).copied().unwrap_or_default();
        add("by importance fpr", class.measured_fpr.filter(|_| truth.new.0 > 0), rate(truth.new));
        add("by importance fnr", class.measured_fnr.filter(|_| truth.repeats.0 > 0), rate(truth.repeats));
    }
}

/// So many runs of every stream and kind, with audits in which one key in about 16 is followed.
fn runs(
    seeds: impl Iterator<Item = u64> + Clone,
    arrivals: u64,
    is_in: impl Fn(usize) -> bool,
) -> BTreeMap<String, Held> {
    let mut table = BTreeMap::new();
    let mut number = 0;
    for seed in seeds {
        for sort in SORTS {
            for kind in NAMES {
                number += 1;
                if !is_in(number) {
                    continue;
                }
                let audit =
                    Audit::new(48 << 10, seed.wrapping_mul(0x9e37_79b9) ^ number as u64).expect("enough memory");
                let run = run(&mut filter(kind, arrivals, seed), &keys(sort, arrivals, seed), audit, seed % 2 == 0);
                count(&mut table, [sort, kind], &run);
            }
        }
    }
    table
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    // The seed of these runs is not among those that the intervals were looked at with.
    let soak: u64 = std::env::var("EVERBLOOM_SOAK").ok().and_then(|times| times.parse().ok()).unwrap_or(0);
    let table = match soak {
        // Every seventh of 50.
        0 => runs(1000..1001, 100_000, |number| number % 7 == 0),
        times => runs(2000..2000 + 4 * times, 200_000, |_| true),
    };
    for (name, held) in &table {
        println!("{name:>20} {:>5} of {:>5}  {:.1} %", held.held, held.of, 100.0 * held.share());
    }
    for name in ["fpr", "fnr", "fpr, last part", "fnr, last part"] {
        let held = table[name];
        // Between 90 and 99 %, give or take what so few runs may be off.
        let sigma = (0.95f64 * 0.05 / f64::from(held.of)).sqrt();
        let slack = if soak > 0 { 0.0 } else { 3.0 * sigma };
        assert!(held.share() >= 0.90 - slack, "{name}: {held:?}");
        assert!(soak == 0 || held.share() <= 0.99, "{name}: {held:?}, too wide to say anything");
    }
}
