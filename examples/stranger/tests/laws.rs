//! The stranger's kind is held to every law, and stands in a search and a comparison beside everbloom's own.

use everbloom::kind::{Kind, Kinds};
use everbloom::{FilterExt, Goal, Importance};
use everbloom_forecast::{Question, Stream};
use everbloom_laws::Set as _;

const OWN: &[&[&Kind]] = &[&[&stranger::KIND]];

everbloom_laws::hold!(Kinds::new(OWN));

/// Everbloom's own kinds, and the stranger's.
struct Both;

impl everbloom_laws::Set for Both {
    const KINDS: Kinds = {
        const BOTH: &[&[&Kind]] = &[everbloom::filters::KINDS, &[&stranger::KIND]];
        Kinds::new(BOTH)
    };
}

#[test]
fn its_name_and_id_are_nobody_elses() {
    everbloom_laws::verdicts::ids_and_names_are_unique::<Both>();
}

#[test]
fn a_search_finds_it_among_the_others_and_forecasts_what_it_misses() {
    let mut question = Question::among(Both::KINDS, Goal::new().memory("16KiB").fpr("1%"));
    question.stream = Some(Stream::uniform(100_000, 50_000).expect("a stream"));
    let found = question.answer().expect("an answer");
    let all = std::iter::once(&found.best).chain(&found.runners_up);
    let forecast = all.filter(|one| one.plan.kind.name == "tags").map(|one| one.forecast.predicted_fnr).next();
    let forecast = forecast.expect("it is one of five that forget");
    // What really happens: 50,000 keys, each drawn twice on average.
    let mut filter = Goal::new().filter("tags").memory("16KiB").build_among(Both::KINDS).expect("a filter");
    let (mut keys, mut seen) = (drawn(), std::collections::HashSet::new());
    let (mut repeats, mut missed) = (0.0, 0.0);
    for _ in 0..100_000 {
        let key = keys();
        let is_new = filter.as_mut().observe(key, Importance::FULL).is_distinct();
        if !seen.insert(key) {
            repeats += 1.0;
            missed += f64::from(u8::from(is_new));
        }
    }
    let (rate, error) = (missed / repeats, (missed / repeats * (1.0 - missed / repeats) / repeats).sqrt());
    assert!((rate - forecast).abs() < 4.0 * error + 0.02, "{rate} ± {error}, forecast {forecast}");
}

/// Keys drawn from as many as give 50,000 distinct ones among 100,000 arrivals.
fn drawn() -> impl FnMut() -> u64 {
    let mut state = 7u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(state >> 11) * 62_750) >> 53) as u64
    }
}

#[test]
fn a_set_without_it_says_that_it_is_not_there() {
    let filter = Goal::new().filter("tags").memory("1KiB").build_among(Both::KINDS).expect("a filter");
    let error = everbloom_all::KINDS.from_bytes(&filter.to_bytes()).expect_err("a stranger").to_string();
    assert!(error.contains("everbloom-all"), "{error}");
}
