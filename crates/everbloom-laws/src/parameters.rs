//! What the registry says of parameters is what the filters do with them.

use crate::Set;
use crate::common::small_goal;
use everbloom::kind::{Kind, Parameter, Takes, Unset};
use everbloom::{Goal, Plan, Spec};
use std::collections::HashSet;

/// What may be wanted of a filter while one parameter is looked at.
fn goals() -> [Goal; 5] {
    [
        small_goal(0),
        Goal::new(),
        Goal::new().fpr(0.1),
        Goal::new().expected_items(1).fpr(0.5),
        Goal::new().memory_bits(1 << 40).fpr(0.1),
    ]
}

/// The spec with what a parameter needs, so that it means something.
fn base(kind: &Kind, parameter: &Parameter) -> Spec {
    parameter.needs.iter().fold(Spec::new(kind.name), |spec, (name, values)| spec.with(name, values[0]))
}

/// A value of a parameter at one end of what it takes; choices are left to the filter.
fn extreme(parameter: &Parameter, least: bool) -> Option<String> {
    match parameter.takes {
        Takes::Whole(low, high) | Takes::Layers(low, high) => Some(if least { low } else { high }.to_string()),
        Takes::Between(low, high) => Some(if least { low } else { high }.to_string()),
        Takes::Within(..) => Some("0.5".into()),
        _ => None,
    }
}

/// Specs that give this parameter this value: alone, and with the rest as a plan has it.
fn planned_contexts<S: Set>(kind: &Kind, parameter: &Parameter, value: &str) -> Vec<Spec> {
    let base = base(kind, parameter);
    let mut specs = vec![base.clone().with(parameter.name, value)];
    for full in
        goals().iter().filter_map(|goal| goal.plan_among(S::KINDS, &base.to_string()).ok()).map(|plan| plan.spec)
    {
        let others = full.parameters().filter(|name| *name != parameter.name);
        let spec = others.fold(Spec::new(kind.name), |spec, name| spec.with(name, full.get(name).unwrap_or_default()));
        specs.push(spec.with(parameter.name, value));
    }
    specs
}

/// Specs with this value, and all other numbers at their least or most, in every mixture, and every named choice.
fn extreme_contexts(kind: &Kind, parameter: &Parameter, value: &str) -> Vec<Spec> {
    let base = base(kind, parameter).with(parameter.name, value);
    let means_something =
        |other: &Parameter| other.needs.is_none_or(|(name, values)| base.get(name) == Some(values[0]));
    let is_free = |other: &&Parameter| base.get(other.name).is_none() && means_something(other);
    let others: Vec<&Parameter> = kind.parameters.iter().filter(is_free).collect();
    let numbers: Vec<&&Parameter> = others.iter().filter(|other| extreme(other, true).is_some()).collect();
    let mixture = |mix: u32| {
        let ends = numbers.iter().enumerate().map(|(at, other)| (other.name, extreme(other, mix >> at & 1 == 0)));
        ends.fold(base.clone(), |spec, (name, value)| spec.with(name, value.unwrap_or_default()))
    };
    let mixtures: Vec<Spec> = (0..1 << numbers.len()).map(mixture).collect();
    let mut choices: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for other in &others {
        if let Takes::Choice(names) = other.takes {
            choices.extend(names.iter().map(|name| vec![(other.name, *name)]));
        }
    }
    let chosen = |spec: &Spec, choice: &[(&str, &str)]| {
        choice.iter().fold(spec.clone(), |spec, (name, value)| spec.with(name, value))
    };
    mixtures.iter().flat_map(|spec| choices.iter().map(|choice| chosen(spec, choice))).collect()
}

/// Whether there is any spec and goal with which the value is taken.
fn is_taken<S: Set>(kind: &Kind, parameter: &Parameter, value: &str) -> bool {
    let planned = planned_contexts::<S>(kind, parameter, value);
    planned.iter().any(|spec| goals().iter().any(|goal| goal.plan_among(S::KINDS, &spec.to_string()).is_ok()))
        || extreme_contexts(kind, parameter, value)
            .iter()
            .any(|spec| Goal::new().plan_among(S::KINDS, &spec.to_string()).is_ok())
}

fn every_parameter<S: Set>() -> impl Iterator<Item = (&'static Kind, &'static Parameter)> {
    S::KINDS.iter().flat_map(|kind| kind.all_parameters().map(move |parameter| (kind, parameter)))
}

pub fn every_parameter_is_described_once_and_in_words<S: Set>() {
    for kind in S::KINDS {
        let mut seen = HashSet::new();
        for parameter in kind.all_parameters() {
            assert!(seen.insert(parameter.name), "{} has {} twice", kind.name, parameter.name);
            assert!(parameter.meaning.len() > 8 && !parameter.meaning.ends_with('.'), "{}", parameter.meaning);
            let needs_something = parameter.needs.is_none_or(|(name, values)| {
                kind.parameters.iter().any(|other| {
                    other.name == name
                        && matches!(other.takes, Takes::Choice(names) if names.contains(&values[0]) || names.len() == 1)
                })
            });
            assert!(needs_something, "{} of {} needs what is not there", parameter.name, kind.name);
        }
        for plan in goals().iter().filter_map(|goal| goal.plan_among(S::KINDS, kind.name).ok()) {
            let unknown = plan.spec.parameters().find(|name| !seen.contains(name)).map(str::to_string);
            assert_eq!(unknown, None, "{} prints a parameter that is not described", kind.name);
        }
        assert!(Goal::new().plan_among(S::KINDS, &format!("{}:no_such=1", kind.name)).is_err());
    }
}

/// The ends of a range are taken with some other parameters, and one beyond with none.
pub fn ranges_end_where_they_say<S: Set>() {
    let mut wrong = Vec::new();
    for (kind, parameter) in every_parameter::<S>() {
        let named = |value: &str, what: &str| format!("{}:{}={value} {what}", kind.name, parameter.name);
        let can_be = parameter.needs.is_none_or(|(name, values)| is_choice(kind, name, values[0]));
        if !can_be {
            continue;
        }
        let (inside, outside): (Vec<String>, Vec<String>) = match parameter.takes {
            Takes::Whole(least, most) | Takes::Layers(least, most) => (
                vec![least.to_string(), most.to_string()],
                vec![i128::from(least).wrapping_sub(1).to_string(), (i128::from(most) + 1).to_string()],
            ),
            Takes::Between(least, most) => (
                vec![least.to_string(), most.to_string()],
                vec![(least - 1e-9).to_string(), (most + 1e-9).to_string(), "NaN".into()],
            ),
            // A part in 10^12 of the range from its ends.
            Takes::Within(least, most) => (
                [least + (most - least) * 1e-12, most - (most - least) * 1e-12].map(|end| end.to_string()).to_vec(),
                vec![least.to_string(), most.to_string(), "NaN".into()],
            ),
            Takes::FromBelow(least, most) => (
                vec![least.to_string(), (most - (most - least) * 1e-12).to_string()],
                vec![(least * (1.0 - 1e-12)).to_string(), most.to_string(), "NaN".into()],
            ),
            Takes::Choice(names) => (names.iter().map(|name| name.to_string()).collect(), vec!["no_such".into()]),
            Takes::SchemeId => (Vec::new(), vec!["no_such".into()]),
            other => panic!("{other:?} has no law yet"),
        };
        for value in
            inside.iter().filter(|_| !matches!(parameter.takes, Takes::Layers(..)) || parameter.unset != Unset::Without)
        {
            wrong.extend((!is_taken::<S>(kind, parameter, value)).then(|| named(value, "is refused")));
        }
        for value in &outside {
            wrong.extend(is_taken::<S>(kind, parameter, value).then(|| named(value, "is taken")));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

fn is_choice(kind: &Kind, name: &str, value: &str) -> bool {
    kind.parameters
        .iter()
        .any(|other| other.name == name && matches!(other.takes, Takes::Choice(names) if names.contains(&value)))
}

/// What a spec comes to that leaves a parameter out is what it comes to with the value that is said to hold then.
pub fn defaults_are_what_holds_without_them<S: Set>() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for (kind, parameter) in every_parameter::<S>() {
        if !parameter.needs.is_none_or(|(name, values)| is_choice(kind, name, values[0])) {
            continue;
        }
        let bare = base(kind, parameter);
        let spec_of = |spec: &Spec, goal: &Goal| {
            goal.plan_among(S::KINDS, &spec.to_string()).map(|plan: Plan| plan.spec.to_string())
        };
        for goal in goals() {
            let Ok(without) = goal.plan_among(S::KINDS, &bare.to_string()) else { continue };
            match parameter.unset {
                Unset::Value(value) | Unset::BySizes(value, _) => {
                    let with = spec_of(&bare.clone().with(parameter.name, value), &goal);
                    if with.as_deref() != Ok(&*without.spec.to_string()) {
                        wrong.push(format!("{}:{} is not {value}", kind.name, parameter.name));
                    }
                    checked += 1;
                }
                Unset::Without => assert_eq!(without.spec.get(parameter.name), None, "{}", parameter.name),
                _ => {}
            }
            if let Unset::BySizes(_, value) = parameter.unset {
                let sizes = kind.parameters.iter().filter(|other| matches!(other.takes, Takes::Whole(..)));
                let sized = sizes.filter(|size| size.needs.is_none()).fold(bare.clone(), |spec, size| {
                    let planned = without.spec.get(size.name).filter(|_| size.name != "fill_limit");
                    planned.map_or(spec.clone(), |planned| spec.with(size.name, planned))
                });
                let with = spec_of(&sized.clone().with(parameter.name, value), &Goal::new());
                if with.is_err() || with != spec_of(&sized, &Goal::new()) {
                    wrong.push(format!("{sized}: {} is not {value}", parameter.name));
                }
                checked += 1;
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(S::CAN_EVERYTHING <= (checked > 100), "{checked} defaults");
}
