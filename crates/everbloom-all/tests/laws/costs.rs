//! What holds of the cheapest filter, whatever the costs; names no filter.

use everbloom::{Goal, ImportanceMix};
use everbloom_all::KINDS;
use everbloom_forecast::{Candidate, Cost, Price, Question, Recommendation, Stream};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

fn stream() -> Stream {
    Stream::zipf(20_000, 6_000, 0.9).expect("a stream")
}

fn asked(goal: Goal) -> Question {
    let mut question = Question::among(KINDS, goal);
    question.stream = Some(stream());
    question
}

/// In 2 KiB, where a false positive and a false negative cost this. A search takes a second, so each is made once.
fn cheapest(fp: u32, fnr: u32) -> Arc<Recommendation> {
    type Known = HashMap<(u32, u32), Arc<Recommendation>>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let search = || Arc::new(searched(Cost::of(f64::from(fp), f64::from(fnr))));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry((fp, fnr)).or_insert_with(search).clone()
}

fn searched(cost: Cost) -> Recommendation {
    asked(Goal::new().memory_bits(1 << 14)).cost(cost).answer().expect("an answer")
}

fn total(candidate: &Candidate) -> f64 {
    candidate.cost.expect("a cost").total()
}

#[test]
fn a_dearer_error_is_made_no_more_often() {
    let ratios = [(1, 100), (1, 5), (1, 1), (5, 1), (100, 1)];
    let found: Vec<_> = ratios.map(|(fp, fnr)| cheapest(fp, fnr).best.forecast.clone()).into();
    for pair in found.windows(2) {
        let (dear, cheap) = (&pair[0], &pair[1]);
        // Forecasts of two filters on the same arrivals: each is off by its own error.
        let slack = 4.0 * libm::hypot(dear.fnr_standard_error, cheap.fnr_standard_error);
        assert!(
            dear.predicted_fnr <= cheap.predicted_fnr + slack,
            "{} then {}",
            dear.predicted_fnr,
            cheap.predicted_fnr
        );
        let slack = 4.0 * libm::hypot(dear.standard_error, cheap.standard_error);
        assert!(cheap.mean_fpr <= dear.mean_fpr + slack, "{} then {}", dear.mean_fpr, cheap.mean_fpr);
    }
}

#[test]
fn the_unit_of_costs_does_not_matter_and_the_cheapest_comes_first() {
    let (cents, euros) = (cheapest(5, 1), searched(Cost::of(0.05, 0.01)));
    assert_eq!(cents.best.plan.spec, euros.best.plan.spec);
    assert!((total(&cents.best) / total(&euros.best) - 100.0).abs() < 1e-6);
    let costs: Vec<f64> = std::iter::once(&cents.best).chain(&cents.runners_up).map(total).collect();
    assert!(costs.is_sorted(), "{costs:?}");
    assert!(costs[0] < cents.without_filter.expect("a cost"), "{costs:?}");
}

#[test]
fn more_memory_never_costs_more_unless_memory_does() {
    let found = cheapest(1, 1);
    let points = &found.curve.as_ref().expect("a curve").points;
    let costs: Vec<f64> = points.iter().map(|point| point.cost.total()).collect();
    assert!(costs.len() > 5 && costs.windows(2).all(|pair| pair[1] <= pair[0]), "{costs:?}");
    let memory = |per_mib: f64| {
        let cost = Cost::of(1.0, 1.0).memory_per_mib(per_mib);
        asked(Goal::new()).cost(cost).answer().expect("an answer").best.plan.memory_bits
    };
    let (free, cheap, dear) = (memory(0.0), memory(1_000.0), memory(1_000_000.0));
    assert!(dear < cheap && cheap <= 2 * free, "{dear}, {cheap}, {free}");
}

#[test]
fn a_filter_that_is_not_worth_its_memory_is_called_so() {
    let notes = |found: &Recommendation| {
        (found.best.plan.notes.join(" "), total(&found.best), found.without_filter.expect("a cost"))
    };
    let (said, costs, without) = notes(&searched(Cost::of(1.0, 1.0).memory_per_mib(1e12)));
    assert!(costs >= without && said.contains("no filter is worth having"), "{said}: {costs}, {without}");
    let (said, costs, without) = notes(&cheapest(1, 1));
    assert!(costs < 0.9 * without && !said.contains("worth") && !said.contains("saves little"), "{said}");
}

#[test]
fn limits_are_kept_or_it_is_said_what_stands_against_them() {
    let limited = |fpr: f64, fnr: f64, memory_bits: u64| {
        let mut question = asked(Goal::new().memory_bits(memory_bits).fpr(fpr)).cost(Cost::of(1.0, 1.0));
        question.target_fnr = Some(fnr);
        question.answer()
    };
    let kept = limited(0.01, 0.5, 1 << 15).expect("an answer").best;
    assert!(kept.plan.promise.fpr_bound <= 0.01 && kept.forecast.predicted_fnr <= 0.5, "{kept:?}");
    let error = limited(0.001, 0.01, 1 << 12).expect_err("too little memory").to_string();
    for part in ["false positives", "false negatives", "give about", "accept"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn what_costs_less_by_importance_costs_less_in_all() {
    let cost = |price: Price| {
        let mut question = asked(Goal::new().memory_bits(1 << 13)).cost(Cost::of(100.0, price));
        question.stream = Some(stream().with_importance(ImportanceMix::uniform()));
        total(&question.answer().expect("an answer").best)
    };
    let steep = Price::table(5.0, &[(0.5, 0.0), (0.6, 1.0)]).expect("a table");
    let (alike, linear, steep) = (cost(Price::constant(5.0)), cost(Price::linear(5.0)), cost(steep));
    assert!(linear < alike && steep < alike, "{alike}, {linear}, {steep}");
    let question = asked(Goal::new().memory_bits(1 << 13)).cost(Cost::of(1.0, Price::linear(5.0)));
    let error = question.answer().expect_err("no importances").to_string();
    assert!(error.contains("importance"), "{error}");
}

#[test]
fn what_is_no_cost_is_refused_when_it_is_planned() {
    for cost in [Cost::of(-1.0, 1.0), Cost::of(0.0, 0.0), Cost::of(1.0, f64::NAN)] {
        let error = asked(Goal::new().memory_bits(1 << 14)).cost(cost).answer().expect_err("no cost").to_string();
        assert!(error.contains("cost"), "{error}");
    }
    let mut question = asked(Goal::new()).cost(Cost::of(1.0, 1.0));
    question.window = Some(everbloom::Window::Arrivals(100));
    assert!(question.answer().is_err());
}
