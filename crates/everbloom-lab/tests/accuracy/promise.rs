//! A target is a promise at every moment: the last tenth of every stream keeps it.

use crate::harness::{recording, run};
use everbloom::kind::Kind;
use everbloom::{Goal, Hashing, Holds};
use everbloom_all::KINDS;
use everbloom_lab::datasets::{self, Request};
use everbloom_lab::evaluate::Source;

const TARGETS: [f64; 3] = [0.1, 0.01, 0.001];
const SEED: u64 = 3;

/// Plans every endless filter for every memory and target and holds `late_fpr` to the target.
fn assert_kept(what: &str, source: &mut dyn Source, memories: &[u64]) {
    assert_kept_by(what, source, memories, |kind| kind.can.run_forever);
}

fn assert_kept_by(what: &str, source: &mut dyn Source, memories: &[u64], wanted: impl Fn(&Kind) -> bool) {
    let mut filters = Vec::new();
    let mut targets = Vec::new();
    for kind in KINDS.iter().filter(|kind| wanted(kind)) {
        for (&memory_bits, target) in memories.iter().flat_map(|memory| TARGETS.map(|target| (memory, target))) {
            let goal = Goal::new().memory_bits(memory_bits).fpr(target).hashing(Hashing::seeded(SEED));
            let plan = goal.plan_among(KINDS, kind.name).expect(kind.name);
            assert!(plan.memory_bits <= memory_bits, "{}: {} bits of {memory_bits}", plan.spec, plan.memory_bits);
            assert!(plan.promise.holds == Holds::Always, "{} promises nothing", plan.spec);
            filters.push(plan.build().expect(kind.name));
            targets.push(target);
        }
    }
    assert!(filters.len() >= 3 * TARGETS.len() * memories.len(), "{} filters", filters.len());
    let outcome = run(source, SEED, filters);
    let mut broken = Vec::new();
    for (report, target) in outcome.reports.iter().zip(targets) {
        let late = report.late_fpr.expect("distinct arrivals to the end");
        let sigma = (target * (1.0 - target) / report.late.distinct as f64).sqrt();
        println!("{what}: {} keeps {target}: {late:.5} late, {:?} in all", report.filter, report.measured_fpr);
        if late > target + 4.0 * sigma {
            broken.push(format!("{}: {late} instead of {target} ± {sigma}", report.filter));
        }
    }
    assert!(broken.is_empty(), "{what}: {broken:#?}");
}

fn set(name: &str, items: u64, distinct: Option<f64>) -> datasets::Set {
    datasets::open(name, &Request { items: Some(items), distinct, seed: 11, ..Default::default() }).expect(name)
}

/// Small enough for the streams below to reach every filter's last state.
const MEMORIES: [u64; 2] = [16 << 10, 256 << 10];

#[test]
fn planned_filters_keep_their_target_on_a_uniform_stream() {
    assert_kept("uniform", &mut set("uniform", 250_000, Some(0.49)), &MEMORIES);
}

#[test]
fn planned_filters_keep_their_target_on_a_skewed_stream() {
    assert_kept("zipf", &mut set("zipf", 250_000, None), &MEMORIES);
}

#[test]
fn planned_filters_keep_their_target_when_nothing_repeats() {
    assert_kept("all_distinct", &mut set("all_distinct", 250_000, None), &MEMORIES);
}

#[test]
fn planned_filters_keep_their_target_on_a_stream_with_locality() {
    assert_kept("log_lag", &mut set("log_lag", 250_000, Some(0.3)), &MEMORIES);
}

#[test]
fn planned_filters_keep_their_target_on_the_history_stream() {
    if let Some(mut history) = recording("history") {
        assert_kept("history", &mut history, &[64 << 10]);
    }
}

#[test]
#[ignore = "minutes: every filter on 4 million arrivals, three times, and on the history stream"]
fn planned_filters_keep_their_target_at_4_megabits() {
    for name in ["uniform", "zipf", "all_distinct"] {
        assert_kept(name, &mut set(name, 4_000_000, None), &[4 << 20]);
    }
    if let Some(mut history) = recording("history") {
        assert_kept("history", &mut history, &[16 << 10, 256 << 10, 4 << 20]);
    }
}

#[test]
#[ignore = "minutes, and a gigabyte: 100 million arrivals"]
fn planned_filters_keep_their_target_at_512_megabits() {
    let wanted = |kind: &Kind| ["stable", "reservoir", "ranked"].contains(&kind.name);
    assert_kept_by("all_distinct", &mut set("all_distinct", 100_000_000, None), &[512 << 20], wanted);
}
