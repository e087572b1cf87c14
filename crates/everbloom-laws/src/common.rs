//! What the laws share: every filter the registry knows, streams, and honest error bars.
//!
//! Nothing here names a filter. Kinds and their named choices come from [`Set::KINDS`], so a new choice is tested from the day
//! it exists.

use crate::Set;
use everbloom::kind::{Parameter, Takes};
use everbloom::{AnyFilter, Error, Filter, FilterExt, Goal, Hashing, Holds, Importance, Importances, Plan, Verdict};
use everbloom_cells::key::{Generator, composite_key};
use std::collections::HashSet;

/// A goal that every kind can keep, small enough to err often.
pub fn small_goal(seed: u64) -> Goal {
    Goal::new().memory_bits(16_384).expected_items(600).fpr(0.1).hashing(Hashing::seeded(seed))
}

/// The named choices of a parameter.
fn choices(kind: &str, parameter: &Parameter) -> Vec<String> {
    let Takes::Choice(names) = parameter.takes else { return Vec::new() };
    names.iter().map(|name| format!("{kind}:{}={name}", parameter.name)).collect()
}

/// Every kind, bare.
pub fn bare_kinds<S: Set>() -> Vec<String> {
    S::KINDS.iter().map(|kind| kind.name.to_string()).collect()
}

/// Every kind, bare, with each of its named choices, and in shards; those that can be planned, and of
/// those that come to the same filter the first.
pub fn variants<S: Set>() -> Vec<String> {
    let mut specs = Vec::new();
    for kind in S::KINDS {
        specs.push(kind.name.to_string());
        specs.extend(kind.parameters.iter().flat_map(|word| choices(kind.name, word)));
        specs.push(format!("{}:shards=3", kind.name));
    }
    let mut seen = HashSet::new();
    let is_new = |spec: &String| seen.insert(plan::<S>(spec, &small_goal(0)).spec.to_string());
    let plannable: Vec<String> = specs.iter().filter_map(|spec| plannable::<S>(spec)).filter(is_new).collect();
    // A kind that cannot be planned for a small goal would pass every law unseen.
    for kind in S::KINDS {
        let is_there = plannable.iter().any(|spec| spec.split(':').next() == Some(kind.name));
        assert!(is_there, "{} cannot be planned for {:?}", kind.name, small_goal(0));
    }
    plannable
}

/// The spec if it can be planned, as it is or with the number that its error asks for.
fn plannable<S: Set>(spec: &str) -> Option<String> {
    match small_goal(0).plan_among(S::KINDS, spec) {
        Ok(_) => Some(spec.to_string()),
        Err(Error::Parameter { name, needed, .. }) => {
            let number: u64 = needed.split(' ').next()?.parse().ok()?;
            let mended = format!("{spec},{name}={number}");
            small_goal(0).plan_among(S::KINDS, &mended).is_ok().then_some(mended)
        }
        Err(_) => None,
    }
}

pub fn never_forgets<S: Set>(spec: &str) -> bool {
    let spec = everbloom::Spec::parse(spec).expect("a spec");
    S::KINDS.iter().any(|kind| kind.name == spec.kind() && !kind.forgets(&spec))
}

/// Whether a spec's filter makes no error but for chance collisions.
pub fn is_exact<S: Set>(spec: &str) -> bool {
    let spec = everbloom::Spec::parse(spec).expect("a spec");
    S::KINDS.iter().any(|kind| kind.name == spec.kind() && kind.can.exact)
}

/// Whether a spec's filter hashes as its goal says, and has no hash function of its own.
pub fn is_seeded<S: Set>(spec: &str) -> bool {
    let spec = everbloom::Spec::parse(spec).expect("a spec");
    S::KINDS.iter().any(|kind| kind.name == spec.kind() && kind.can.own_hash.is_none())
}

/// Kinds that fill up: their promise is a number of keys.
pub fn filling_kinds<S: Set>() -> Vec<String> {
    let fills_up = |kind: &String| matches!(plan::<S>(kind, &small_goal(0)).promise.holds, Holds::UntilItems(_));
    bare_kinds::<S>().into_iter().filter(|kind| never_forgets::<S>(kind)).filter(fills_up).collect()
}

/// Kinds whose promise holds at every moment of a stream.
pub fn endless_kinds<S: Set>() -> Vec<String> {
    let endless = S::KINDS.iter().filter(|kind| kind.can.run_forever && kind.can.forget);
    endless.map(|kind| kind.name.to_string()).collect()
}

pub fn build<S: Set>(spec: &str, goal: &Goal) -> AnyFilter {
    plan::<S>(spec, goal).build().unwrap_or_else(|error| panic!("{spec} does not build: {error}"))
}

pub fn plan<S: Set>(spec: &str, goal: &Goal) -> Plan {
    goal.plan_among(S::KINDS, spec).unwrap_or_else(|error| panic!("{spec} cannot be planned: {error}"))
}

/// A small filter of this spec.
pub fn small<S: Set>(spec: &str, seed: u64) -> AnyFilter {
    build::<S>(spec, &small_goal(seed))
}

/// A filter of up to 4 MiB: most kinds take all of it, which is too large for the near caches.
pub fn large<S: Set>(spec: &str, seed: u64) -> Option<AnyFilter> {
    let goal = Goal::new().memory_bits(1 << 25).expected_items(500_000).fpr(0.01);
    goal.hashing(Hashing::seeded(seed)).plan_among(S::KINDS, spec).ok().map(|plan| plan.build().expect("4 MiB"))
}

/// `count` arrivals drawn from `universe` keys, with importances that belong to the keys.
pub fn arrivals(count: usize, universe: u64, seed: u64) -> Vec<(u64, Importance)> {
    let mut generator = Generator::seeded(seed);
    let weight = |key: u64| Importance::new((key % 50) as u32 + 1, 50).expect("1 to 50 of 50");
    (0..count).map(|_| generator.below(universe)).map(|key| (key, weight(key))).collect()
}

pub fn observe_all(filter: &mut dyn Filter, arrivals: &[(u64, Importance)]) -> Vec<Verdict> {
    arrivals.iter().map(|(key, importance)| filter.observe(key, *importance)).collect()
}

/// Observes all arrivals in batches of the given sizes, over and over.
pub fn observe_batched(filter: &mut dyn Filter, arrivals: &[(u64, Importance)], sizes: &[usize]) -> Vec<Verdict> {
    let (keys, weights): (Vec<u64>, Vec<Importance>) = arrivals.iter().copied().unzip();
    let mut verdicts = vec![Verdict::Distinct; keys.len()];
    let mut start = 0;
    for size in sizes.iter().cycle() {
        let end = (start + size).min(keys.len());
        filter
            .observe_batch(&keys[start..end], Importances::Each(&weights[start..end]), &mut verdicts[start..end])
            .expect("one each");
        start = end;
        if start == keys.len() {
            break;
        }
    }
    verdicts
}

/// The kinds of keys that have broken hash functions before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    Random,
    Sequential,
    SharedPrefix,
    Composite,
}

impl Keys {
    pub const ALL: [Keys; 4] = [Keys::Random, Keys::Sequential, Keys::SharedPrefix, Keys::Composite];

    /// Key number `index`; different for different numbers.
    pub fn key(self, index: u64) -> Vec<u8> {
        match self {
            // Odd multiplier: a bijection, so no two numbers share a key.
            Keys::Random => index.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).to_le_bytes().to_vec(),
            Keys::Sequential => index.to_le_bytes().to_vec(),
            Keys::SharedPrefix => {
                format!("https://www.example.org/archive/2024/list?order=ascending&category=letters&page={index}")
                    .into()
            }
            Keys::Composite => composite_key([&(index / 1000).to_le_bytes()[..], &(index % 1000).to_le_bytes()[..]]),
        }
    }
}

/// Mean and standard error of the mean.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// The standard deviation of a rate measured over `trials` independent trials.
pub fn binomial_error(rate: f64, trials: f64) -> f64 {
    (rate * (1.0 - rate) / trials).sqrt()
}
