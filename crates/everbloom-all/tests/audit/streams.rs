//! Streams of ten sorts, and what really became of each arrival.

use everbloom::{AnyFilter, Goal, Hashing, Importance, Importances, KeyHash, Verdict};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use everbloom_forecast::audit::Audit;
use std::collections::HashMap;

pub(crate) const SORTS: [&str; 10] = [
    "uniform",
    "zipf 0.8",
    "zipf 1.0",
    "zipf 1.2",
    "zipf 1.5",
    "bursts",
    "phases",
    "all distinct",
    "one hot key",
    "recent pages",
];

/// Kinds that err, in so little memory that they do.
pub(crate) const NAMES: [&str; 5] = ["ranked", "stable", "reservoir", "bloom", "age_partitioned"];

/// The keys of a stream of one of the [`SORTS`].
pub(crate) fn keys(sort: &str, arrivals: u64, seed: u64) -> Vec<u64> {
    let mut generator = Generator::seeded(seed);
    let universe = arrivals / 5;
    if let Some(exponent) = sort.strip_prefix("zipf ") {
        let exponent: f64 = exponent.parse().expect("a number");
        let mut sums = Vec::new();
        (0..universe).for_each(|rank| {
            sums.push(sums.last().copied().unwrap_or(0.0) + ((rank + 1) as f64).powf(-exponent));
        });
        let whole = sums[sums.len() - 1];
        return (0..arrivals)
            .map(|_| {
                let drawn = generator.unit() * whole;
                sums.partition_point(|sum| *sum < drawn) as u64
            })
            .collect();
    }
    let mut recent = vec![0; 5000];
    let mut key = |at: u64| match sort {
        "uniform" => generator.below(universe),
        // A key comes ten times within fifty arrivals, and then hardly ever again.
        "bursts" => (at + generator.below(50)) / 10 % (arrivals / 15),
        // Each quarter of the stream has keys of its own, and a few of the one before.
        "phases" => {
            let phase = at * 4 / arrivals - u64::from(generator.below(10) == 0 && at * 4 >= arrivals);
            phase * universe + generator.below(universe / 4)
        }
        "all distinct" => at,
        "one hot key" => {
            if generator.below(3) > 0 {
                0
            } else {
                1 + generator.below(universe)
            }
        }
        _ => {
            let place = generator.below(5000) as usize;
            if generator.below(2) == 0 {
                recent[place] = at;
            }
            recent[place]
        }
    };
    (0..arrivals).map(&mut key).collect()
}

/// A filter of a kind that is too small for its stream.
pub(crate) fn filter(kind: &str, arrivals: u64, seed: u64) -> AnyFilter {
    let goal = Goal::new().hashing(Hashing::seeded(seed));
    let built = match kind {
        "bloom" => goal.expected_items((arrivals / 20).max(10)).fpr(0.02).plan_among(KINDS, kind),
        "age_partitioned" => goal.fpr(0.02).plan_among(KINDS, &format!("{kind}:window={}", arrivals / 10)),
        _ => goal.memory_bits(arrivals / 2).fpr(0.05).plan_among(KINDS, kind),
    };
    built.and_then(|plan| plan.build()).unwrap_or_else(|error| panic!("{kind}: {error}"))
}

/// What became of some arrivals: (all, wrong) of the new ones and of the repeats.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Truth {
    pub(crate) new: (u64, u64),
    pub(crate) repeats: (u64, u64),
}

impl Truth {
    fn count(&mut self, is_repeat: bool, verdict: Verdict) {
        let (counts, wrong) = match is_repeat {
            true => (&mut self.repeats, verdict.is_distinct()),
            false => (&mut self.new, !verdict.is_distinct()),
        };
        *counts = (counts.0 + 1, counts.1 + u64::from(wrong));
    }
}

/// A rate of two counts.
pub(crate) fn rate((all, wrong): (u64, u64)) -> Option<f64> {
    (all > 0).then(|| wrong as f64 / all as f64)
}

/// A run: the audit, and the truth of all arrivals, those from `last_from` of its report on, each lag and each importance.
pub(crate) struct Run {
    pub(crate) audit: Audit,
    pub(crate) all: Truth,
    pub(crate) last: Truth,
    pub(crate) by_lag: HashMap<u32, Truth>,
    pub(crate) by_importance: HashMap<u32, Truth>,
}

/// Runs a filter over keys, audited.
pub(crate) fn run(filter: &mut AnyFilter, keys: &[u64], mut audit: Audit, weighted: bool) -> Run {
    let hashing = *filter.hashing();
    let hashes: Vec<KeyHash> = keys.iter().map(|key| hashing.hash_u64(*key)).collect();
    // By key, so that some keys matter and others do not.
    let importance = |key: u64| Importance::new((key % 16) as u32, 15).expect("no more than the most");
    let importances: Vec<Importance> = keys.iter().map(|key| importance(*key)).collect();
    let mut verdicts = vec![Verdict::Distinct; keys.len()];
    for start in (0..keys.len()).step_by(1000) {
        let part = start..keys.len().min(start + 1000);
        let given = match weighted {
            true => Importances::Each(&importances[part.clone()]),
            false => Importances::default(),
        };
        filter.observe_hashes(&hashes[part.clone()], given, &mut verdicts[part.clone()]).expect("importances for all");
        audit.observe(&hashes[part.clone()], given, &verdicts[part]);
    }
    let from = audit.report().last.from;
    let mut run = Run {
        audit,
        all: Truth::default(),
        last: Truth::default(),
        by_lag: HashMap::new(),
        by_importance: HashMap::new(),
    };
    let mut last_seen: HashMap<u64, u64> = HashMap::new();
    for ((at, key), verdict) in (1u64..).zip(keys).zip(&verdicts) {
        let before = last_seen.insert(*key, at);
        run.all.count(before.is_some(), *verdict);
        if at >= from {
            run.last.count(before.is_some(), *verdict);
        }
        if let Some(before) = before {
            run.by_lag.entry((at - before).ilog2()).or_default().count(true, *verdict);
        }
        let class = importance(*key).share_of(8).min(7);
        run.by_importance.entry(class).or_default().count(before.is_some(), *verdict);
    }
    run
}
