//! Many seeds, many filters, one pass each.

use everbloom::{AnyFilter, Goal, Hashing};
use everbloom_all::KINDS;
use everbloom_lab::datasets::{self, Request, real};
use everbloom_lab::evaluate::{self, Outcome, Report, Source};
use everbloom_lab::suite::Sample;
use std::path::PathBuf;

/// Asserts that the mean agrees with a figure that is the mean of as many seeds or more and was
/// rounded to `digits` of a percentage: within four standard errors of the difference. The
/// deviation is the larger of what was measured here, what the figure states, and what binomial
/// counts have at least.
pub(crate) fn assert_near(
    what: &str,
    sample: &Sample,
    (percent, stated_deviation): (f64, f64),
    trials: f64,
    digits: i32,
) {
    let rate = percent / 100.0;
    let binomial = (rate * (1.0 - rate) / trials).sqrt();
    let sigma = sample.deviation().max(stated_deviation / 100.0).max(binomial);
    let tolerance = 4.0 * sigma * (2.0 / sample.count() as f64).sqrt() + 0.5 * 10f64.powi(-digits - 2);
    let mean = sample.mean();
    println!("{what}: {mean} ± {}, {percent} % stated, tolerance {tolerance}", sample.deviation());
    assert!((mean - rate).abs() <= tolerance, "{what}: {mean}, not {rate} ± {tolerance}");
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

/// The folder of recorded streams.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("EVERBLOOM_DATA").map_or_else(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

/// A recording, or `None`, with a message, where the data folder is absent.
pub(crate) fn recording(name: &str) -> Option<real::Recording> {
    let found = data_folder().and_then(|folder| real::open(&folder, name).expect("a readable recording"));
    if found.is_none() {
        eprintln!("skipped: no recording '{name}'; point EVERBLOOM_DATA at the data folder");
    }
    found
}
