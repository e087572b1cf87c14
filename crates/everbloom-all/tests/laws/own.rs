//! Laws of filters that are named.

use crate::common::{binomial_error, build};
use everbloom::filters::{blocked, bloom};
use everbloom::{Blocked, Bloom, Counting, Goal, Holds};
use everbloom_all::KINDS;

#[test]
fn typed_constructors_refuse_what_specs_refuse() {
    for (items, rate) in [(0, 0.1), (10, 0.0), (10, 1.0), (10, f64::NAN), (10, -1.0), (u64::MAX, 1e-9)] {
        assert!(Bloom::with_rate(items, rate).is_err(), "{items} at {rate}");
        assert!(Blocked::with_rate(items, rate).is_err(), "{items} at {rate}");
        assert!(Counting::with_rate(items, rate).is_err(), "{items} at {rate}");
    }
    for (num_cells, num_hashes) in [(0, 3), (100, 0), (100, 65), (u64::MAX, 3)] {
        assert!(bloom::Size::new(num_cells, num_hashes).is_err(), "{num_cells}, {num_hashes}");
    }
    for num_bits in [0, 1, 511, 513, u64::MAX, 1 << 63] {
        assert!(blocked::Parameters::new(num_bits).is_err(), "{num_bits}");
    }
}

#[test]
fn a_millionth_is_kept_at_ten_million_keys() {
    let (items, queries) = (10_000_000u64, 30_000_000u64);
    let mut filter = build("bloom", &Goal::new().expected_items(items).fpr(1e-6));
    let predicted = filter.promise().fpr_bound;
    let in_parts = |from: u64, until: u64, act: &mut dyn FnMut(&[u64])| {
        for start in (from..until).step_by(10_000) {
            act(&(start..start + 10_000).collect::<Vec<_>>());
        }
    };
    in_parts(0, items, &mut |keys| filter.insert_batch(keys));
    let (mut found, mut wrong) = (vec![false; 10_000], 0);
    in_parts(items, items + queries, &mut |keys| {
        filter.contains_batch(keys, &mut found);
        wrong += found.iter().filter(|found| **found).count();
    });
    let (expected, error) = (predicted * queries as f64, binomial_error(predicted, queries as f64) * queries as f64);
    assert!(wrong as f64 <= expected + 4.0 * error, "{wrong} false positives where {expected} ± {error} were promised");
    assert!(
        wrong as f64 >= expected - 4.0 * error,
        "{wrong} false positives where {expected} ± {error} were predicted"
    );
}

#[test]
fn what_may_not_forget_is_refused_with_a_memory_and_a_rate_that_do() {
    for (memory, items, rate) in
        [("32KiB", 200_000, 0.001), ("1KiB", 5_000, 0.05), ("100B", 77, 1e-6), ("3MiB", 4_000_000, 0.01)]
    {
        let goal = Goal::new().memory(memory).expected_items(items).fpr(rate).never_forget();
        let error = goal.plan_among(KINDS, "auto").expect_err(memory).to_string();
        let after =
            |mark: &str| error.rsplit(mark).next().and_then(|rest| rest.split([' ', ',', ';']).next()).expect("text");
        let enough = goal
            .clone()
            .memory(after("; give "))
            .plan_among(KINDS, "auto")
            .unwrap_or_else(|refusal| panic!("{error}: {refusal}"));
        let kept = goal
            .clone()
            .fpr(after("accept a rate of "))
            .plan_among(KINDS, "auto")
            .unwrap_or_else(|refusal| panic!("{error}: {refusal}"));
        for plan in [enough, kept] {
            assert_eq!(plan.promise.predicted_fnr, Some(0.0), "{plan:?}");
            assert!(matches!(plan.promise.holds, Holds::UntilItems(until) if until >= items), "{plan:?}");
        }
    }
}
