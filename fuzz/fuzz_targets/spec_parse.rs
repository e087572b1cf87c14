//! Any text as a spec, with any goal: an error, or a plan that keeps it and a filter as planned.
#![no_main]

use everbloom::{Goal, Importance, Spec};
use everbloom_all::KINDS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Option<u64>, Option<u64>, Option<u64>, Option<f64>, bool, &str)| {
    let (memory_bits, transmitted_bytes, expected_items, target_fpr, importance, text) = input;
    if let Ok(spec) = Spec::parse(text) {
        assert_eq!(Spec::parse(&spec.to_string()).as_ref(), Ok(&spec));
    }
    let goal = memory_bits.into_iter().fold(Goal::new(), Goal::memory_bits);
    let goal = expected_items.into_iter().fold(goal, Goal::expected_items);
    let goal = target_fpr.into_iter().fold(goal, Goal::fpr);
    let goal = transmitted_bytes.into_iter().fold(goal, Goal::transmitted_bytes);
    let goal = if importance { goal.with_importance() } else { goal };
    let Ok(plan) = goal.plan_among(KINDS, text) else { return };
    assert!((0.0..=1.0).contains(&plan.promise.fpr_bound));
    if plan.memory_bits > 1 << 20 {
        return;
    }
    let Ok(mut filter) = plan.build() else { return };
    assert_eq!((filter.spec(), filter.memory_bits()), (&plan.spec, plan.memory_bits));
    for key in 0..32u64 {
        filter.observe(key, Importance::FULL);
    }
});
