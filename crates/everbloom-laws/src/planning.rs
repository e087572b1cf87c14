//! Goals become plans that keep them, and plans become exactly the filters they describe.

use crate::Set;
use crate::common::{arrivals, bare_kinds, filling_kinds, is_exact, is_seeded, observe_all, small, variants};
use everbloom::kind::size_text;
use everbloom::{Goal, Hashing, Holds, Plan, Spec};
use std::any::type_name;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const MEMORIES: [Option<u64>; 9] =
    [None, Some(1), Some(511), Some(512), Some(1000), Some(4096), Some(100_001), Some(1 << 20), Some((1 << 24) + 777)];
const ITEMS: [Option<u64>; 8] =
    [None, Some(1), Some(2), Some(10), Some(777), Some(10_000), Some(1_000_000), Some(50_000_000)];
const RATES: [Option<f64>; 10] =
    [None, Some(0.99), Some(0.5), Some(0.3), Some(0.1), Some(0.03), Some(0.01), Some(0.001), Some(1e-6), Some(1e-12)];

fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    for memory in MEMORIES {
        for items in ITEMS {
            for rate in RATES {
                let goal = memory.into_iter().fold(Goal::new().hashing(Hashing::seeded(3)), Goal::memory_bits);
                let goal = items.into_iter().fold(goal, Goal::expected_items);
                goals.push(rate.into_iter().fold(goal, Goal::fpr));
            }
        }
    }
    goals
}

/// Every variant, and the planner's own choice.
fn planned_specs<S: Set>() -> Vec<String> {
    variants::<S>().into_iter().chain(S::CAN_EVERYTHING.then(|| "auto".to_string())).collect()
}

/// Every kind, and the planner's own choice.
fn kinds_and_auto<S: Set>() -> Vec<String> {
    bare_kinds::<S>().into_iter().chain(S::CAN_EVERYTHING.then(|| "auto".to_string())).collect()
}

type Plans = Vec<(Goal, Plan)>;

/// For every variant, every plan that some goal of the grid gives, with the goal. Made once. What differs from its kind
/// by a parameter takes every third goal, each another third, since the kind's planner is tried with all of them; so does
/// the planner's own choice, which simulates every kind for every goal. In a soak, each takes all of them.
fn all_plans<S: Set>() -> Vec<(String, Plans)> {
    let with_plan = |spec: &str, goal: Goal| goal.plan_among(S::KINDS, spec).ok().map(|plan| (goal, plan));
    let (whole, soaks) = (bare_kinds::<S>(), std::env::var_os("EVERBLOOM_SOAK").is_some());
    let plans = |(index, spec): (usize, String)| {
        let (first, step) = if soaks || whole.contains(&spec) { (0, 1) } else { (index % 3, 3) };
        let goals = goals().into_iter().skip(first).step_by(step);
        let plans = goals.filter_map(|goal| with_plan(&spec, goal)).collect();
        (spec, plans)
    };
    planned_specs::<S>().into_iter().enumerate().map(plans).collect()
}

/// Those of one kind or variant, which are kept for the laws that follow.
fn plans<S: Set>(spec: &str) -> &'static [(Goal, Plan)] {
    static KEPT: Mutex<BTreeMap<&str, &'static [(String, Plans)]>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let all = *kept.entry(type_name::<S>()).or_insert_with(|| all_plans::<S>().leak());
    let (_, plans) = all.iter().find(|(name, _)| name == spec).expect("a variant");
    assert!(plans.len() >= 20, "{spec} can be planned for {} goals only", plans.len());
    plans
}

pub fn the_predicted_rate_keeps_the_target_after_rounding<S: Set>() {
    for kind in kinds_and_auto::<S>() {
        for (goal, plan) in plans::<S>(&kind) {
            let Some(target) = goal.target_fpr() else { continue };
            let predicted = plan.promise.fpr_bound;
            assert!(predicted > 0.0 && predicted <= target, "{goal:?} gives {plan:?}");
            assert_ne!(plan.promise.holds, Holds::Never, "{goal:?} gives {plan:?}");
        }
    }
}

pub fn a_promise_covers_the_expected_items<S: Set>() {
    for kind in kinds_and_auto::<S>() {
        for (goal, plan) in plans::<S>(&kind) {
            if let (Some(items), Holds::UntilItems(until)) = (goal.known_items(), plan.promise.holds) {
                assert!(until >= items, "{goal:?} gives {plan:?}");
            }
        }
    }
}

pub fn plans_stay_within_the_memory<S: Set>() {
    for spec in planned_specs::<S>() {
        for (goal, plan) in plans::<S>(&spec) {
            let most = goal.most_memory_bits().unwrap_or(u64::MAX);
            assert!(plan.memory_bits > 0 && plan.memory_bits <= most, "{goal:?} gives {plan:?}");
        }
    }
}

pub fn memory_is_used_where_nothing_else_bounds_it<S: Set>() {
    // Given memory and a rate alone, a filter takes the memory: at least half of it.
    // One that keeps every hash takes what the keys need.
    for kind in bare_kinds::<S>().into_iter().filter(|kind| !is_exact::<S>(kind)) {
        for memory in [4096, 1 << 20, 10_000_000] {
            let Ok(plan) = Goal::new().memory_bits(memory).fpr(0.01).plan_among(S::KINDS, &kind) else { continue };
            assert!(plan.memory_bits * 2 >= memory, "{plan:?} of {memory} bits");
        }
    }
}

pub fn plans_become_the_filters_they_describe<S: Set>() {
    for spec in planned_specs::<S>() {
        for (goal, plan) in plans::<S>(&spec).iter().filter(|(_, plan)| plan.memory_bits < 1 << 21).step_by(7) {
            let filter = plan.build().unwrap_or_else(|error| panic!("{plan:?}: {error}"));
            assert_eq!(*filter.spec(), plan.spec);
            assert_eq!(filter.memory_bits(), plan.memory_bits, "{plan:?}");
            assert_eq!(filter.promise(), plan.promise, "{plan:?}");
            assert_eq!(*filter.hashing(), plan.hashing, "{plan:?}");
            assert!(plan.hashing == goal.key_hashing() || !is_seeded::<S>(filter.spec().kind()), "{plan:?}");
        }
    }
}

pub fn specs_print_what_they_parse<S: Set>() {
    for spec in planned_specs::<S>() {
        for (_, plan) in plans::<S>(&spec).iter().step_by(5) {
            let text = plan.spec.to_string();
            assert_eq!(Spec::parse(&text).expect("a printed spec").to_string(), text);
            assert_eq!(Spec::parse(&text).expect("a printed spec"), plan.spec);
        }
    }
}

pub fn a_full_spec_needs_no_goal_and_plans_itself<S: Set>() {
    for spec in planned_specs::<S>() {
        for (goal, plan) in plans::<S>(&spec).iter().step_by(11) {
            let text = plan.spec.to_string();
            let again = Goal::new()
                .hashing(goal.key_hashing())
                .plan_among(S::KINDS, &text)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((&again.spec, again.memory_bits), (&plan.spec, plan.memory_bits));
        }
    }
}

pub fn a_filter_built_from_a_printed_spec_gives_the_same_verdicts<S: Set>() {
    for spec in variants::<S>() {
        let mut planned = small::<S>(&spec, 9);
        let text = planned.spec().to_string();
        let goal = Goal::new().hashing(Hashing::seeded(9));
        let mut named = goal
            .plan_among(S::KINDS, &text)
            .and_then(|plan| plan.build())
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        let stream = arrivals(3000, 1500, 1);
        assert_eq!(observe_all(&mut *planned, &stream), observe_all(&mut *named, &stream), "{text}");
    }
}

pub fn the_words_of_a_full_spec_are_the_kinds_own_in_order<S: Set>() {
    for kind in S::KINDS {
        let filter = small::<S>(kind.name, 0);
        let (spec, mut order) = (filter.spec(), kind.parameters.iter());
        assert_eq!(spec.kind(), kind.name);
        for word in spec.parameters() {
            assert!(order.any(|known| known.name == word), "{spec}: {word} is unknown or out of order");
        }
    }
}

pub fn a_spec_larger_than_the_memory_is_refused_with_both_sizes<S: Set>() {
    let ample = Goal::new().memory("64KiB").expected_items(10_000).fpr(0.03);
    for spec in variants::<S>().into_iter().filter(|spec| !is_exact::<S>(spec)) {
        let Ok(plan) = ample.plan_among(S::KINDS, &spec) else { continue };
        let full = plan.spec.to_string();
        let scarce = Goal::new().memory("2KiB");
        assert!(plan.memory_bits > 2 << 13, "{plan:?}");
        let error = scarce.plan_among(S::KINDS, &full).expect_err(&full).to_string();
        assert!(error.contains("2KiB") && error.contains(&size_text(plan.memory_bits)), "{error}");
        // Where the memory is only what others get, the spec is taken as it is.
        let taken = [scarce.clone().defaults_only(), Goal::new().default_memory_bits(2 << 13)];
        for goal in taken {
            assert_eq!(goal.plan_among(S::KINDS, &full).expect(&full).memory_bits, plan.memory_bits, "{full}");
        }
    }
}

pub fn the_asked_rate_is_promised_for_as_many_keys_as_it_is_kept_for<S: Set>() {
    for kind in filling_kinds::<S>() {
        let asked = Goal::new().expected_items(1000).fpr(0.01);
        let full = asked.plan_among(S::KINDS, &kind).expect(&kind).spec.to_string();
        // The same parameters, with keys to spare: the rate is the asked one, and holds for as many keys as before.
        let spared = asked.clone().expected_items(10).plan_among(S::KINDS, &full).expect(&full);
        assert_eq!(spared.promise, asked.plan_among(S::KINDS, &full).expect(&full).promise, "{full}");
        assert_eq!(spared.promise.fpr_bound, 0.01, "{full}");
        assert!(matches!(spared.promise.holds, Holds::UntilItems(items) if items >= 1000), "{full}: {spared:?}");
        // Without a rate, it is what the parameters come to with these keys.
        let open = Goal::new().expected_items(10).plan_among(S::KINDS, &full).expect(&full);
        assert_eq!(open.promise.holds, Holds::UntilItems(10), "{full}");
        assert!(open.promise.fpr_bound < 0.01, "{full}: {open:?}");
    }
}

pub fn parameters_that_break_an_asked_rate_are_refused_and_an_assumed_one_is_noted<S: Set>() {
    for kind in filling_kinds::<S>().into_iter().filter(|kind| !is_exact::<S>(kind)) {
        let full =
            Goal::new().expected_items(1000).fpr(0.01).plan_among(S::KINDS, &kind).expect(&kind).spec.to_string();
        let asked = Goal::new().expected_items(10_000).fpr(0.01);
        let error = asked.plan_among(S::KINDS, &full).expect_err(&full).to_string();
        assert!(error.contains("a rate of 1% for 10000 keys"), "{error}");
        let assumed = Goal::new().expected_items(10_000).default_fpr(0.01).plan_among(S::KINDS, &full).expect(&full);
        assert!(assumed.notes.iter().any(|note| note.contains("do not keep a rate of 1%")), "{assumed:?}");
        assert!(assumed.promise.fpr_bound > 0.01, "{assumed:?}");
    }
}

pub fn no_rate_is_promised_that_hashes_cannot_keep<S: Set>() {
    for kind in kinds_and_auto::<S>() {
        let goal = Goal::new().memory_bits(1 << 24).expected_items(10).fpr(0.99e-15);
        let error = goal.plan_among(S::KINDS, &kind).expect_err(&kind).to_string();
        assert!(error.contains("at least 1e-15") && error.ends_with("try 1e-12"), "{error}");
        let ample = Goal::new().memory_bits(1 << 24).expected_items(2);
        if let Ok(plan) = ample.plan_among(S::KINDS, &kind) {
            assert!(plan.promise.fpr_bound >= 1e-15, "{plan:?}");
        }
    }
    // Those that keep 64 bits of a hash do not promise what so many keys cannot keep.
    for kind in S::KINDS.iter().filter(|kind| kind.can.exact || kind.can.exact_first) {
        let goal = Goal::new().memory_bits(1 << 44).expected_items(1u64 << 30).default_fpr(1e-9);
        let plan = goal.plan_among(S::KINDS, kind.name).expect(kind.name);
        let keys = plan.promise.exact_until.unwrap_or(1 << 30) as f64;
        assert!(plan.promise.fpr_bound >= keys * 0.5f64.powi(64), "{plan:?}");
    }
}
