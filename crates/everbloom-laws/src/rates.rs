//! Measured rates against promised ones. Every tolerance is four standard errors, computed.

use crate::Set;
use crate::common::{
    Keys, binomial_error, build, endless_kinds, filling_kinds, is_exact, mean_and_error, plan, variants,
};
use everbloom::{Filter, FilterExt, Goal, Hashing, Holds, Importance, Verdict};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The first keys of each sort: to make them takes longer than what is done with them.
static FIRST_KEYS: LazyLock<Vec<(Keys, Vec<Vec<u8>>)>> = LazyLock::new(|| {
    let first = |keys: Keys| (keys, (0..FIRST).map(|index| keys.key(index)).collect());
    Keys::ALL.map(first).into()
});
const FIRST: u64 = 160_000;

/// Does something with the keys `from..from + count`.
fn with_keys<R>(keys: Keys, from: u64, count: u64, act: impl FnOnce(&[Vec<u8>]) -> R) -> R {
    let known = FIRST_KEYS.iter().find(|(known, _)| *known == keys);
    match known.and_then(|(_, list)| list.get(from as usize..(from + count) as usize)) {
        Some(list) => act(list),
        None => act(&(from..from + count).map(|index| keys.key(index)).collect::<Vec<_>>()),
    }
}

/// The share of keys `from..from + count` that the filter claims to know.
fn found_share(filter: &dyn Filter, keys: Keys, from: u64, count: u64) -> f64 {
    let mut found = vec![false; count as usize];
    with_keys(keys, from, count, |asked| filter.contains_batch(asked, &mut found));
    found.iter().filter(|found| **found).count() as f64 / count as f64
}

fn fill(filter: &mut dyn Filter, keys: Keys, count: u64) {
    with_keys(keys, 0, count, |inside| filter.insert_batch(inside));
}

/// Four standard errors of a mean over seeds, or of as many independent trials if that is more.
fn tolerance(rates: &[f64], predicted: f64, trials: u64) -> f64 {
    let (_, error) = mean_and_error(rates);
    4.0 * error.max(binomial_error(predicted, (rates.len() as u64 * trials) as f64))
}

pub fn filters_that_fill_up_keep_their_rate_until_the_promised_number_of_keys<S: Set>() {
    let (items, queries) = (20_000, 100_000);
    for kind in filling_kinds::<S>() {
        for target in [0.1, 0.01, 0.001] {
            for keys in Keys::ALL {
                let goal = Goal::new().expected_items(items).fpr(target);
                let predicted = plan::<S>(&kind, &goal).promise.fpr_bound;
                let rates: Vec<f64> = (0..4)
                    .map(|seed| {
                        let mut filter = build::<S>(&kind, &goal.clone().hashing(Hashing::seeded(seed)));
                        fill(&mut *filter, keys, items);
                        found_share(&*filter, keys, items, queries)
                    })
                    .collect();
                let (measured, _) = mean_and_error(&rates);
                let most = predicted + tolerance(&rates, predicted, queries);
                assert!(measured <= most, "{kind}, {keys:?}: {measured} where {predicted} was promised (≤ {most})");
                // Nor may it be far better than told: a forecast is no forecast if it is merely safe.
                assert!(
                    measured >= predicted / 2.0 || is_exact::<S>(&kind),
                    "{kind}, {keys:?}: {measured} where {predicted} was predicted"
                );
            }
        }
    }
}

pub fn uneven_shards_keep_their_rate_until_the_promised_number_of_keys<S: Set>() {
    let queries = 50_000;
    for kind in filling_kinds::<S>().into_iter().filter(|kind| !is_exact::<S>(kind)) {
        let goal = Goal::new().memory_bits(64 * 4096).fpr(0.01);
        let spec = format!("{kind}:shards=64");
        let promise = plan::<S>(&spec, &goal).promise;
        let Holds::UntilItems(items) = promise.holds else { panic!("{spec}: {promise:?}") };
        let rates: Vec<f64> = (0..4)
            .map(|seed| {
                let mut filter = build::<S>(&spec, &goal.clone().hashing(Hashing::seeded(seed)));
                fill(&mut *filter, Keys::Sequential, items);
                found_share(&*filter, Keys::Sequential, items, queries)
            })
            .collect();
        let (measured, _) = mean_and_error(&rates);
        let most = promise.fpr_bound + tolerance(&rates, promise.fpr_bound, queries);
        assert!(measured <= most, "{spec}: {measured} where {} was promised (≤ {most})", promise.fpr_bound);
    }
}

pub fn tiny_filters_keep_their_rate<S: Set>() {
    for kind in filling_kinds::<S>() {
        for (items, target) in [(1, 0.1), (2, 0.1), (5, 0.1), (1, 0.01), (3, 0.01), (10, 0.01), (40, 0.001)] {
            let goal = Goal::new().expected_items(items).fpr(target);
            let predicted = plan::<S>(&kind, &goal).promise.fpr_bound;
            let rates: Vec<f64> = (0..600)
                .map(|seed| {
                    let mut filter = build::<S>(&kind, &goal.clone().hashing(Hashing::seeded(seed)));
                    fill(&mut *filter, Keys::Sequential, items);
                    found_share(&*filter, Keys::Sequential, items, 500)
                })
                .collect();
            let (measured, _) = mean_and_error(&rates);
            let most = predicted + tolerance(&rates, predicted, 500);
            assert!(measured <= most, "{kind} for {items} keys: {measured} where {predicted} was promised (≤ {most})");
        }
    }
}

/// A stream over which a promise must hold at every moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stream {
    AllDistinct,
    HalfRepeats,
    /// A few keys again and again, among ever new ones.
    HotKeys,
}

impl Stream {
    /// Arrival number `index`.
    fn key(self, index: u64, bits: u64) -> u64 {
        let noise = bits % 1000;
        match self {
            Stream::AllDistinct => index,
            Stream::HalfRepeats if noise < 500 => bits % (index + 1),
            Stream::HotKeys if noise < 700 => bits % 50,
            _ => 1_000_000_000 + index,
        }
    }
}

/// The keys of a stream with whether each is new: the same for every filter, so they are worked out once.
fn told(stream: Stream, arrivals: u64, seed: u64) -> Arc<[(u64, bool)]> {
    type Known = HashMap<(Stream, u64, u64), Arc<[(u64, bool)]>>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let tell = || {
        let mut generator = everbloom_cells::key::Generator::seeded(seed);
        let mut seen = HashSet::new();
        let keys = (0..arrivals).map(|index| stream.key(index, generator.bits()));
        keys.map(|key| (key, seen.insert(key))).collect()
    };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry((stream, arrivals, seed)).or_insert_with(tell).clone()
}

/// The rate of false positives among distinct arrivals in each tenth of a stream.
fn rates_by_tenth(filter: &mut dyn Filter, stream: Stream, arrivals: u64, seed: u64) -> Vec<(f64, u64)> {
    let mut tenths = vec![(0u64, 0u64); 10];
    for (index, (key, is_new)) in told(stream, arrivals, seed).iter().enumerate() {
        let verdict = filter.observe(key, Importance::FULL);
        if *is_new {
            let (wrong, distinct) = &mut tenths[index * 10 / arrivals as usize];
            *wrong += u64::from(verdict == Verdict::Duplicate);
            *distinct += 1;
        }
    }
    tenths.into_iter().map(|(wrong, distinct)| (wrong as f64 / distinct as f64, distinct)).collect()
}

pub fn filters_for_endless_streams_keep_their_rate_at_every_moment<S: Set>() {
    let (memory, arrivals) = (1 << 14, 50_000);
    for kind in endless_kinds::<S>() {
        for target in [0.1, 0.01, 0.001] {
            for stream in [Stream::AllDistinct, Stream::HalfRepeats, Stream::HotKeys] {
                let goal = Goal::new().memory_bits(memory).fpr(target);
                let plan = plan::<S>(&kind, &goal);
                assert_eq!(plan.promise.holds, Holds::Always, "{kind}");
                let predicted = plan.promise.fpr_bound;
                let runs: Vec<_> = (0..4)
                    .map(|seed| {
                        let mut filter = build::<S>(&kind, &goal.clone().hashing(Hashing::seeded(seed)));
                        rates_by_tenth(&mut *filter, stream, arrivals, seed)
                    })
                    .collect();
                for tenth in 0..10 {
                    let rates: Vec<f64> = runs.iter().map(|run| run[tenth].0).collect();
                    let most = predicted + tolerance(&rates, predicted, runs[0][tenth].1);
                    let (measured, _) = mean_and_error(&rates);
                    assert!(
                        measured <= most,
                        "{kind}, {stream:?}, tenth {tenth}: {measured} where {predicted} was promised (≤ {most})"
                    );
                }
            }
        }
    }
}

/// The worst tenth of a stream over a few seeds: its measured rate and the most it may be.
fn worst_tenth<S: Set>(spec: &str, goal: &Goal, stream: Stream, predicted: f64) -> (f64, f64) {
    let runs: Vec<_> = (0..4)
        .map(|seed| {
            rates_by_tenth(&mut *build::<S>(spec, &goal.clone().hashing(Hashing::seeded(seed))), stream, 30_000, seed)
        })
        .collect();
    let tenths = (0..10).map(|tenth| {
        let rates: Vec<f64> = runs.iter().map(|run| run[tenth].0).collect();
        (mean_and_error(&rates).0, predicted + tolerance(&rates, predicted, runs[0][tenth].1))
    });
    tenths.max_by(|one, other| (one.0 - one.1).total_cmp(&(other.0 - other.1))).expect("ten tenths")
}

pub fn every_variant_that_promises_a_rate_keeps_it<S: Set>() {
    let goal = Goal::new().memory_bits(1 << 14).expected_items(500).fpr(0.05);
    let mut promising = 0;
    for spec in variants::<S>() {
        let Ok(plan) = goal.plan_among(S::KINDS, &spec) else { continue };
        let predicted = plan.promise.fpr_bound;
        let (measured, most) = match plan.promise.holds {
            Holds::Never => continue,
            Holds::UntilItems(items) => {
                // What grows with its keys promises more of them than fit into a test.
                let items = items.min(1 << 16);
                let rates: Vec<f64> = (0..8)
                    .map(|seed| {
                        let mut filter = build::<S>(&spec, &goal.clone().hashing(Hashing::seeded(seed)));
                        fill(&mut *filter, Keys::Sequential, items);
                        found_share(&*filter, Keys::Sequential, items, 20_000)
                    })
                    .collect();
                (mean_and_error(&rates).0, predicted + tolerance(&rates, predicted, 20_000))
            }
            Holds::Always => [Stream::AllDistinct, Stream::HalfRepeats, Stream::HotKeys]
                .into_iter()
                .map(|stream| worst_tenth::<S>(&spec, &goal, stream, predicted))
                .max_by(|one, other| (one.0 - one.1).total_cmp(&(other.0 - other.1)))
                .expect("three streams"),
        };
        promising += 1;
        assert!(measured <= most, "{spec}: {measured} where {predicted} was promised (≤ {most})");
    }
    assert!(promising > bare_count::<S>(), "only {promising} variants promise anything");
}

fn bare_count<S: Set>() -> usize {
    S::KINDS.iter().count()
}

pub fn filters_for_endless_streams_keep_their_rate_for_awkward_keys<S: Set>() {
    for kind in endless_kinds::<S>() {
        for keys in Keys::ALL {
            let goal = Goal::new().memory_bits(1 << 15).fpr(0.01);
            let predicted = plan::<S>(&kind, &goal).promise.fpr_bound;
            let (arrivals, queries) = (60_000, 100_000);
            let rates: Vec<f64> = (0..4)
                .map(|seed| {
                    let mut filter = build::<S>(&kind, &goal.clone().hashing(Hashing::seeded(seed)));
                    fill(&mut *filter, keys, arrivals);
                    found_share(&*filter, keys, arrivals, queries)
                })
                .collect();
            let (measured, _) = mean_and_error(&rates);
            let most = predicted + tolerance(&rates, predicted, queries);
            assert!(measured <= most, "{kind}, {keys:?}: {measured} where {predicted} was promised (≤ {most})");
        }
    }
}

pub fn the_estimated_rate_is_the_one_measured_on_the_present_contents<S: Set>() {
    let queries = 400_000;
    for kind in filling_kinds::<S>().into_iter().chain(endless_kinds::<S>()) {
        for inserted in [1000, 4000, 20_000] {
            let mut filter = build::<S>(&kind, &Goal::new().memory_bits(1 << 18).expected_items(8000).fpr(0.05));
            fill(&mut *filter, Keys::Random, inserted);
            let estimated = filter.status().estimated_fpr;
            let measured = found_share(&*filter, Keys::Random, 1 << 40, queries);
            let error = binomial_error(estimated.max(1.0 / queries as f64), queries as f64);
            assert!(
                (measured - estimated).abs() <= 4.0 * error,
                "{kind} after {inserted} keys: estimated {estimated}, measured {measured} ± {error}"
            );
        }
    }
}

pub fn the_estimated_number_of_keys_is_right_on_average<S: Set>() {
    for kind in filling_kinds::<S>() {
        for inserted in [500u64, 8000, 16_000] {
            let goal = Goal::new().expected_items(8000).fpr(0.01);
            let estimates: Vec<f64> = (0..24)
                .filter_map(|seed| {
                    let mut filter = build::<S>(&kind, &goal.clone().hashing(Hashing::seeded(seed)));
                    fill(&mut *filter, Keys::Random, inserted);
                    filter.status().estimated_items
                })
                .collect();
            if estimates.is_empty() {
                continue;
            }
            let (mean, error) = mean_and_error(&estimates);
            let off = (mean - inserted as f64).abs();
            assert!(off <= 4.0 * error, "{kind}: {mean} ± {error} estimated, {inserted} inserted");
        }
    }
}
