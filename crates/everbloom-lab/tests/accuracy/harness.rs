//! Many seeds, many filters, one pass each.

use everbloom::{AnyFilter, Goal, Hashing};
use everbloom_all::KINDS;
use everbloom_lab::datasets::{self, Request, real};
use everbloom_lab::evaluate::{self, Outcome, Report, Source};
use std::path::PathBuf;

/// The same measurement for several seeds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample(pub(crate) Vec<f64>);

impl Sample {
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Standard deviation from seed to seed.
    pub(crate) fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (self.0.len() as f64 - 1.0).max(1.0)).sqrt()
    }

    /// Asserts that the mean agrees with a figure that is the mean of as many seeds or more and was
    /// rounded to `digits` of a percentage: within four standard errors of the difference. The
    /// deviation is the larger of what was measured here, what the figure states, and what binomial
    /// counts have at least.
    pub(crate) fn assert_near(&self, what: &str, percent: f64, stated_deviation: f64, trials: f64, digits: i32) {
        let rate = percent / 100.0;
        let binomial = (rate * (1.0 - rate) / trials).sqrt();
        let sigma = self.deviation().max(stated_deviation / 100.0).max(binomial);
        let tolerance = 4.0 * sigma * (2.0 / self.0.len() as f64).sqrt() + 0.5 * 10f64.powi(-digits - 2);
        let mean = self.mean();
        println!(
            "{what}: {:.3} ± {:.3} measured, {percent} stated, tolerance {:.3}",
            mean * 100.0,
            self.deviation() * 100.0,
            tolerance * 100.0
        );
        assert!((mean - rate).abs() <= tolerance, "{what}: {mean}, not {rate} ± {tolerance}");
    }
}

/// FNR and FPR of a filter, seed by seed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rates {
    pub(crate) fnr: Sample,
    pub(crate) fpr: Sample,
    /// Duplicates and distinct arrivals of one seed.
    pub(crate) duplicates: f64,
    pub(crate) distinct: f64,
}

impl Rates {
    pub(crate) fn add(&mut self, report: &Report) {
        self.fnr.0.push(report.measured_fnr.expect("duplicates"));
        self.fpr.0.push(report.measured_fpr.expect("distinct arrivals"));
        (self.duplicates, self.distinct) = (report.total.duplicates as f64, report.total.distinct as f64);
    }
}

/// The filter of a spec, its memory and its seed.
pub(crate) fn filter(spec: &str, memory_bits: u64, seed: u64) -> AnyFilter {
    let goal = Goal::new().memory_bits(memory_bits).fpr(0.01).defaults_only().hashing(Hashing::seeded(seed));
    goal.plan_among(KINDS, spec).and_then(|plan| plan.build()).expect(spec)
}

/// Rates of filters, given as (spec, memory), on a data set, over seeds.
pub(crate) fn rates_on(name: &str, request: Request, filters: &[(&str, u64)], seeds: u64) -> Vec<Rates> {
    let stream = |seed| -> Box<dyn Source> {
        Box::new(datasets::open(name, &Request { seed: 1000 + seed, ..request }).expect(name))
    };
    rates(stream, filters, seeds)
}

/// Rates of filters on any stream, over seeds.
pub(crate) fn rates(stream: impl Fn(u64) -> Box<dyn Source>, filters: &[(&str, u64)], seeds: u64) -> Vec<Rates> {
    let mut rates = vec![Rates::default(); filters.len()];
    for seed in 0..seeds {
        let built = filters.iter().map(|(spec, memory)| filter(spec, *memory, seed)).collect();
        let outcome = run(&mut *stream(seed), seed, built);
        rates.iter_mut().zip(&outcome.reports).for_each(|(rates, report)| rates.add(report));
    }
    rates
}

pub(crate) fn run(source: &mut dyn Source, seed: u64, filters: Vec<AnyFilter>) -> Outcome {
    evaluate::run(source, Hashing::seeded(seed), filters).expect("a run")
}

/// A recording, or `None`, with a message, where the data folder is absent.
pub(crate) fn recording(name: &str) -> Option<real::Recording> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("EVERBLOOM_DATA").map_or_else(beside, PathBuf::from);
    let found = real::open(&folder, name).expect("a readable recording");
    if found.is_none() {
        eprintln!("skipped: no recording '{name}'; point EVERBLOOM_DATA at the data folder");
    }
    found
}
