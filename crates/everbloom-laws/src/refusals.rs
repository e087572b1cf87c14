//! Nothing that can be written down as a spec or a goal panics, hangs or builds a broken filter.

use crate::Set;
use crate::common::{arrivals, observe_all, small, variants};
use everbloom::codec::encode;
use everbloom::kind::Takes;
use everbloom::{Error, Goal, Hashing, Importance, Importances, Key, KeyHash, Spec, Verdict};
use everbloom_cells::key::Generator;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Filters larger than this are planned but not built; nor is memory that does not exist asked for.
const BUILD_BITS: u64 = 1 << 22;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "16",
    "30",
    "63",
    "64",
    "65",
    "255",
    "256",
    "511",
    "512",
    "513",
    "1000",
    "4096",
    "65535",
    "65536",
    "1048576",
    "4294967295",
    "4294967296",
    "1152921504606846976",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "-0.5",
    "0.0",
    "0.03",
    "0.5",
    "1.0",
    "1.5",
    "1e-300",
    "1e300",
    "NaN",
    "inf",
    "-inf",
    "",
    " 8 ",
    "eight",
    "0x10",
    "٣",
];

const RATES: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    5e-324,
    1e-300,
    1e-18,
    1e-6,
    0.01,
    0.1,
    0.5,
    0.999,
    1.0 - f64::EPSILON / 2.0,
];

const COUNTS: &[u64] =
    &[0, 1, 2, 63, 64, 511, 512, 1000, 65_536, 1 << 20, 1 << 32, 1 << 53, 1 << 60, (1 << 60) + 1, u64::MAX];

fn pick<'a, T>(generator: &mut Generator, from: &'a [T]) -> &'a T {
    &from[generator.below(from.len() as u64) as usize]
}

/// A goal with each part absent, odd or sound.
fn random_goal(generator: &mut Generator) -> Goal {
    let mut goal = Goal::new().hashing(Hashing::seeded(generator.bits()));
    if generator.below(3) == 0 {
        return goal.memory_bits(16_384).expected_items(800).fpr(0.1);
    }
    let mut some = |chance: u64| generator.below(4) < chance;
    let (memory, items, rate) = (some(3), some(2), some(3));
    if memory {
        goal = goal.memory_bits(*pick(generator, COUNTS));
    }
    if items {
        goal = goal.expected_items(*pick(generator, COUNTS));
    }
    if rate {
        goal = goal.fpr(*pick(generator, RATES));
    }
    if generator.below(2) == 0 {
        goal = goal.with_importance();
    }
    goal
}

/// A spec of the kind: a sound one, then some words dropped and some changed.
fn random_spec(kind: &str, words: &[&str], sound: &[Spec], generator: &mut Generator) -> String {
    let start = pick(generator, sound);
    let mut parts = Vec::new();
    for word in words.iter().chain(&["shards"]) {
        let value = match generator.below(6) {
            0 => Some(pick(generator, NUMBERS).to_string()),
            1 => pick(generator, sound).get(word).map(str::to_string),
            2 => None,
            _ => start.get(word).map(str::to_string),
        };
        parts.extend(value.map(|value| format!("{word}={value}")));
    }
    format!("{kind}:{}", parts.join(","))
}

/// Plans, and if the result is small, builds and uses it.
fn exercise<S: Set>(spec: &str, goal: &Goal) -> Result<(), Error> {
    let plan = goal.plan_among(S::KINDS, spec)?;
    assert!((0.0..=1.0).contains(&plan.promise.fpr_bound), "{plan:?}");
    assert!(plan.promise.predicted_fnr.is_none_or(|rate| (0.0..=1.0).contains(&rate)), "{plan:?}");
    assert!(plan.memory_bits > 0, "{plan:?}");
    if plan.memory_bits > BUILD_BITS {
        return Ok(());
    }
    let mut filter = plan.build()?;
    assert_eq!((filter.spec(), filter.memory_bits()), (&plan.spec, plan.memory_bits));
    observe_all(&mut *filter, &arrivals(200, 150, 1));
    let status = filter.status();
    assert!((0.0..=1.0).contains(&status.fill) && (0.0..=1.0).contains(&status.estimated_fpr), "{spec}: {status:?}");
    assert!(status.estimated_items.is_none_or(f64::is_finite), "{spec}: {status:?}");
    let bytes = encode(&*filter);
    let copy = S::KINDS.decoder().decode(&bytes).unwrap_or_else(|error| panic!("{plan:?} does not come back: {error}"));
    assert_eq!(encode(&*copy), bytes, "{plan:?}");
    assert_eq!(copy.promise(), filter.promise());
    Ok(())
}

pub fn odd_specs_and_goals_give_errors_or_working_filters<S: Set>() {
    let sound: Vec<Spec> = variants::<S>().iter().map(|spec| small::<S>(spec, 0).spec().clone()).collect();
    let (mut built, mut refused) = (0, 0);
    for kind in S::KINDS {
        let own: Vec<Spec> = sound.iter().filter(|spec| spec.kind() == kind.name).cloned().collect();
        let words: Vec<&str> = kind.parameters.iter().map(|parameter| parameter.name).collect();
        let mut generator = Generator::seeded(u64::from(kind.id));
        for _ in 0..10_000 {
            let spec = random_spec(kind.name, &words, &own, &mut generator);
            let goal = random_goal(&mut generator);
            let outcome = catch_unwind(AssertUnwindSafe(|| exercise::<S>(&spec, &goal)));
            match outcome.unwrap_or_else(|_| panic!("'{spec}' with {goal:?} panics")) {
                Ok(()) => built += 1,
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    assert!(!text.is_empty() && !text.contains('\n') && text.len() < 1000, "'{spec}': {text}");
                }
            }
        }
    }
    assert!(
        built > 200 * S::KINDS.iter().count() && refused > 200 * S::KINDS.iter().count(),
        "{built} built, {refused} refused"
    );
}

pub fn goals_without_sense_are_refused_by_every_kind<S: Set>() {
    let sound = Goal::new().memory_bits(16_384).expected_items(800).fpr(0.1);
    let wrong = [
        sound.clone().fpr(0.0),
        sound.clone().fpr(1.0),
        sound.clone().fpr(-0.1),
        sound.clone().fpr(f64::NAN),
        sound.clone().fpr(f64::INFINITY),
        sound.clone().memory_bits(0),
        sound.clone().memory_bits(u64::MAX),
        sound.clone().expected_items(0),
        sound.clone().expected_items(u64::MAX),
    ];
    for spec in variants::<S>() {
        for goal in &wrong {
            let error = goal.plan_among(S::KINDS, &spec).expect_err("a goal without sense");
            assert!(matches!(error, Error::Parameter { .. }), "{spec}: {error}");
        }
    }
}

pub fn unknown_kinds_and_parameters_say_what_was_probably_meant_or_what_there_is<S: Set>() {
    let goal = Goal::new().memory_bits(16_384).expected_items(800).fpr(0.1);
    let refusal = |spec: &str| goal.plan_among(S::KINDS, spec).expect_err("no such thing").to_string();
    assert!(S::KINDS.iter().all(|kind| refusal("cuckoo").contains(kind.name)), "{}", refusal("cuckoo"));
    for kind in S::KINDS {
        let (shouted, ending) = (kind.name.to_uppercase(), format!("did you mean '{}'?", kind.name));
        assert!(refusal(&shouted).ends_with(&ending), "{}", refusal(&shouted));
        let error = refusal(&format!("{}:colour=8", kind.name));
        assert!(kind.parameters.iter().all(|parameter| error.contains(parameter.name)), "{error}");
        for parameter in kind.parameters {
            let error = refusal(&format!("{}:{}x=8", kind.name, parameter.name));
            assert!(error.contains("did you mean '"), "{error}");
            if let Takes::Choice(names) = parameter.takes {
                let error = refusal(&format!("{}:{}={}", kind.name, parameter.name, names[0].to_uppercase()));
                assert!(error.ends_with(&format!("did you mean '{}'?", names[0])), "{error}");
            }
        }
    }
}

pub fn random_text_is_refused_or_printed_as_it_was_read<S: Set>() {
    let mut generator = Generator::seeded(6);
    let pieces = ["bloom", "stable", ":", ",", "=", "num_bits", "8", " ", "é", "\n", "\0", "auto", "shards", "=="];
    for _ in 0..20_000 {
        let text: String = (0..generator.below(12)).map(|_| *pick(&mut generator, &pieces)).collect();
        if let Ok(spec) = Spec::parse(&text) {
            let printed = spec.to_string();
            assert_eq!(Spec::parse(&printed).as_ref(), Ok(&spec), "{text:?}");
        }
        let _ = Goal::new().memory_bits(4096).fpr(0.1).expected_items(50).plan_among(S::KINDS, &text);
    }
}

pub fn more_memory_than_there_can_be_gives_an_error<S: Set>() {
    // 2^57 bytes: more than any address space, so no allocator tries.
    for kind in S::KINDS.iter().filter(|kind| !kind.can.exact) {
        for memory_bits in [1 << 60, (1 << 60) - 12_345] {
            let Ok(plan) = Goal::new().memory_bits(memory_bits).fpr(0.01).plan_among(S::KINDS, kind.name) else {
                continue;
            };
            assert!(plan.memory_bits > 1 << 59, "{plan:?}");
            let Err(error) = plan.build() else { panic!("{plan:?} was built") };
            assert!(matches!(error, Error::OutOfMemory { .. }), "{}: {error}", kind.name);
        }
    }
}

pub fn fewer_importances_than_keys_are_an_error_and_nothing_is_observed<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 1);
        let keys: Vec<u64> = (0..10).collect();
        let (weights, mut verdicts) = ([Importance::FULL; 9], [Verdict::Distinct; 10]);
        let error =
            filter.observe_batch(&keys, Importances::Each(&weights), &mut verdicts).expect_err(&spec).to_string();
        assert!(error.contains("importances is 9") && error.contains("each of 10"), "{error}");
        let hashes: Vec<KeyHash> = keys.iter().map(|key| key.hash_with(filter.hashing())).collect();
        assert!(filter.observe_hashes(&hashes, Importances::Each(&weights), &mut verdicts).is_err(), "{spec}");
        assert_eq!(filter.status().arrivals, 0, "{spec}");
        filter.observe_hashes(&hashes[..9], Importances::Each(&weights), &mut verdicts).expect(&spec);
        assert_eq!((filter.status().arrivals, filter.arrivals()), (9, 9), "{spec}");
    }
}
