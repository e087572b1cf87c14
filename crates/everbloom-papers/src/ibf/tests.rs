//! Every deletion against a naive twin that passes over all cells and is obviously right.

use super::parameters::{DELETIONS, INSERTIONS};
use super::weighed::FULL_WEIGHT;
use super::*;
use everbloom::codec::encode;
use everbloom::{FilterExt, Goal, Key, Spec};

const CELL_IMPORTANCES: [CellImportance; 3] = [CellImportance::Sum, CellImportance::Decayed, CellImportance::Last];

/// Plain arrays and no index.
struct Twin {
    parameters: Parameters,
    values: Vec<u32>,
    totals: Vec<u32>,
    priorities: Vec<u32>,
    arrivals: u64,
}

impl Twin {
    fn new(parameters: Parameters) -> Self {
        let zeros = vec![0; parameters.num_cells as usize];
        Twin { parameters, values: zeros.clone(), totals: zeros.clone(), priorities: zeros, arrivals: 0 }
    }

    fn probes(&self, hash: KeyHash) -> Vec<usize> {
        let Parameters { num_cells, num_hashes, .. } = self.parameters;
        hash.probes(num_cells).take(num_hashes as usize).map(|position| position as usize).collect()
    }

    /// Positions sorted by key, ties by position.
    fn sorted(&self, key: impl Fn(usize) -> u32) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..self.values.len()).collect();
        positions.sort_by_key(|&position| (key(position), position));
        positions
    }

    fn lower(&mut self, position: usize) {
        self.values[position] = self.values[position].saturating_sub(1);
    }

    /// The deterministic deletions, in the words of the thesis.
    fn delete(&mut self) {
        let decrements = self.parameters.decrements as usize;
        match self.parameters.deletion {
            Deletion::MinImp => {
                let mut lowest = self.sorted(|position| self.totals[position]);
                lowest.retain(|&position| self.values[position] > 0);
                lowest.into_iter().take(decrements).for_each(|position| self.lower(position));
            }
            Deletion::MinImpOptional => {
                let lowest = self.sorted(|position| self.totals[position]);
                lowest.into_iter().take(decrements).for_each(|position| self.lower(position));
            }
            Deletion::MinImpPriority => {
                for _ in 0..decrements {
                    let key = |position: &usize| self.totals[*position] + self.priorities[*position];
                    let Some(lowest) = (0..self.values.len()).min_by_key(key) else { return };
                    self.lower(lowest);
                    let step = self.parameters.priority_step.unwrap_or(self.parameters.cell_max);
                    self.priorities[lowest] += step * (FULL_WEIGHT / 50);
                }
            }
            other => panic!("{other:?} is not deterministic"),
        }
    }

    fn observe(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        let probes = self.probes(hash);
        let seen = probes.iter().all(|&position| self.values[position] > 0);
        self.delete();
        let cell_max = self.parameters.cell_max;
        let value = match self.parameters.insertion {
            Insertion::Max => cell_max,
            Insertion::Importance => cell_max * importance.value() / importance.max(),
        };
        let weight = (FULL_WEIGHT * importance.value() / importance.max()).max(1);
        for position in probes {
            self.values[position] = self.values[position].max(value);
            let total = &mut self.totals[position];
            *total = if self.parameters.cell_importance == CellImportance::Last { weight } else { *total + weight };
        }
        self.arrivals += 1;
        self.decay();
        Verdict::from_seen(seen)
    }

    fn decay(&mut self) {
        let period = Policy::decay_period(&self.parameters);
        if self.parameters.cell_importance == CellImportance::Decayed && self.arrivals.is_multiple_of(period) {
            let touched = |total: &mut u32| *total = if *total == 0 { 0 } else { (*total / 2).max(1) };
            self.totals.iter_mut().for_each(touched);
            self.priorities.iter_mut().for_each(|priority| *priority /= 2);
        }
    }
}

fn arrival(generator: &mut Generator, universe: u64) -> (KeyHash, Importance) {
    let key = generator.below(universe);
    let importance = Importance::new((key * 7919 % 51) as u32, 50).expect("at most 50");
    (key.hash_with(&Hashing::seeded(3)), importance)
}

fn by_hand(insertion: Insertion, deletion: Deletion, size: [u32; 4]) -> Parameters {
    let [num_cells, num_hashes, decrements, cell_max] = size;
    let sizes = Sizes { num_cells: num_cells.into(), num_hashes, decrements, cell_max };
    Parameters::by_hand(insertion, deletion, sizes)
}

fn values(filter: &Ibf) -> Vec<u32> {
    let num_cells = filter.parameters().num_cells;
    let value = |position| match &filter.memory {
        Memory::MinImp(cells) => cells.cell(position).value(),
        Memory::Probabilistic(cells) => cells.cell(position).value(),
        Memory::ProbabilisticP(cells) => cells.cell(position).value(),
        Memory::Random(cells) => cells.value(position),
        Memory::ByValue(cells) => cells.value(position),
    };
    (0..num_cells).map(value).collect()
}

#[test]
fn deterministic_deletions_pick_what_a_full_sort_picks() {
    let sizes = [[1, 1, 1, 1], [15, 2, 3, 4], [16, 4, 7, 4], [40, 3, 60, 2], [300, 4, 7, 4], [700, 4, 40, 5]];
    for deletion in [Deletion::MinImp, Deletion::MinImpOptional, Deletion::MinImpPriority] {
        for (insertion, cell_importance) in
            INSERTIONS.iter().flat_map(|(_, insertion)| CELL_IMPORTANCES.map(|importance| (*insertion, importance)))
        {
            for size in sizes {
                let parameters = Parameters { cell_importance, ..by_hand(insertion, deletion, size) };
                let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
                let mut twin = Twin::new(parameters);
                let mut generator = Generator::seeded(u64::from(size[0]));
                for step in 0..600 {
                    let (hash, importance) = arrival(&mut generator, u64::from(size[0]));
                    let verdicts = (filter.observe_hash(hash, importance), twin.observe(hash, importance));
                    assert_eq!(verdicts.0, verdicts.1, "{parameters:?} at {step}");
                    assert_eq!(values(&filter), twin.values, "{parameters:?} at {step}");
                }
            }
        }
    }
}

#[test]
fn a_priority_step_is_what_a_pick_adds() {
    for step in [1, 64, 1000] {
        let parameters = by_hand(Insertion::Max, Deletion::MinImpPriority, [40, 3, 5, 4]);
        let parameters = Parameters { priority_step: Some(step), ..parameters };
        let (mut filter, mut twin) = (Ibf::new(parameters, Hashing::seeded(3)).expect("small"), Twin::new(parameters));
        let mut generator = Generator::seeded(u64::from(step));
        for at in 0..600 {
            let (hash, importance) = arrival(&mut generator, 60);
            let verdicts = (filter.observe_hash(hash, importance), twin.observe(hash, importance));
            assert_eq!(verdicts.0, verdicts.1, "step {step} at {at}");
            assert_eq!(values(&filter), twin.values, "step {step} at {at}");
        }
        let spec = parameters.spec();
        assert_eq!(spec.get("priority_step"), Some(step.to_string().as_str()));
        assert_eq!(Parameters::from_spec(&spec).expect("its own spec"), parameters);
    }
}

#[test]
fn a_priority_step_needs_priorities_and_a_bound() {
    let with = |words: &str| format!("ibf:num_cells=64,num_hashes=2,decrements=1,cell_max=4,{words}");
    for (words, works) in [
        ("deletion=min_imp_priority,priority_step=256", true),
        ("deletion=min_imp_priority,priority_step=0", false),
        ("deletion=min_imp_priority,priority_step=70000", false),
        ("deletion=min_imp,priority_step=4", false),
    ] {
        let spec = Spec::parse(&with(words)).expect("a spec");
        assert_eq!(Parameters::from_spec(&spec).is_ok(), works, "{words}");
    }
}

/// How far χ² of counts against weights lies above its mean, in its standard deviations.
fn chi_square_deviation(counts: &[u64], weights: &[f64]) -> f64 {
    let (drawn, total) = (counts.iter().sum::<u64>() as f64, weights.iter().sum::<f64>());
    let mut statistic = 0.0;
    for (count, weight) in counts.iter().zip(weights) {
        let expected = drawn * weight / total;
        match expected == 0.0 {
            true => assert_eq!(*count, 0, "a cell that cannot be picked was"),
            false => statistic += (*count as f64 - expected).powi(2) / expected,
        }
    }
    let freedom = weights.iter().filter(|weight| **weight > 0.0).count() as f64 - 1.0;
    (statistic - freedom) / (2.0 * freedom).sqrt()
}

/// A filter after some arrivals, and how often its next deletion, of one cell, falls on each cell: the
/// state is the same each time, the draws are not.
fn first_picks(parameters: Parameters, deletions: u64) -> (Ibf, Vec<u64>) {
    let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
    let mut generator = Generator::seeded(11);
    for _ in 0..400 {
        let (hash, importance) = arrival(&mut generator, 300);
        filter.observe_hash(hash, importance);
    }
    let before = values(&filter);
    let mut counts = vec![0; before.len()];
    for _ in 0..deletions {
        let mut again = filter.clone();
        with_cells!(&mut again.memory, cells => cells.delete(1, &mut Draws::new(generator.bits())));
        let after = values(&again);
        let picked = (0..before.len()).find(|&position| after[position] < before[position]);
        picked.into_iter().for_each(|position| counts[position] += 1);
    }
    (filter, counts)
}

#[test]
fn random_deletions_pick_with_the_probabilities_they_promise() {
    let total = |filter: &Ibf, position: u64| match &filter.memory {
        Memory::Probabilistic(cells) => f64::from(cells.cell(position).total()),
        Memory::ProbabilisticP(cells) => f64::from(cells.cell(position).total()),
        _ => 1.0,
    };
    for (deletion, num_cells, decrements, crowded) in [
        (Deletion::Random, 90, 2, None),
        (Deletion::Probabilistic, 90, 2, None),
        (Deletion::ProbabilisticP, 90, 2, None),
        (Deletion::ProbabilisticVal, 90, 2, Some(true)),
        (Deletion::ProbabilisticVal, 90, 5, Some(false)),
    ] {
        let wasteful = matches!(deletion, Deletion::Random | Deletion::Probabilistic);
        let parameters = by_hand(Insertion::Importance, deletion, [num_cells, 3, decrements, 5]);
        let deletions = 200_000;
        let (filter, counts) = first_picks(parameters, deletions);
        let values = values(&filter);
        let weight = |position: usize| match deletion {
            Deletion::ProbabilisticVal => 1.0 / f64::from(values[position]),
            _ => 1.0 / total(&filter, position as u64),
        };
        let positions = 0..num_cells as usize;
        let lowered: Vec<f64> =
            positions.clone().map(|position| if values[position] > 0 { weight(position) } else { 0.0 }).collect();
        let zeros = values.iter().filter(|value| **value == 0).count();
        assert!(positions.len() > zeros + 5 && zeros > 5, "{deletion:?}: {zeros} zero cells are too few or too many");
        if let Memory::ByValue(cells) = &filter.memory {
            assert_eq!(Some(cells.is_crowded()), crowded, "{zeros} are zero");
        }
        // With 50 degrees of freedom, 4.5 standard deviations are passed once in 30,000; with 8, once in 1,000.
        let deviation = chi_square_deviation(&counts, &lowered);
        assert!(deviation < 4.5, "{deletion:?}: χ² lies {deviation} deviations above its mean");
        // Wasted picks are as frequent as the weight of zero cells says.
        let inverse = |total: f64| if total > 0.0 { 1.0 / total } else { 0.0 };
        let all: f64 = positions.map(|position| inverse(total(&filter, position as u64))).sum();
        let expected = if wasteful { lowered.iter().sum::<f64>() / all } else { 1.0 };
        let share = counts.iter().sum::<u64>() as f64 / deletions as f64;
        let sigma = (expected * (1.0 - expected) / deletions as f64).sqrt();
        assert!(
            (share - expected).abs() <= 4.0 * sigma,
            "{deletion:?}: {share} lowered, {expected} ± {sigma} expected"
        );
    }
}

#[test]
fn compulsory_deletions_lower_exactly_as_many_as_asked() {
    for deletion in [Deletion::ProbabilisticP, Deletion::ProbabilisticVal, Deletion::MinImp] {
        let parameters = by_hand(Insertion::Importance, deletion, [200, 4, 9, 4]);
        let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
        let mut generator = Generator::seeded(5);
        let mut short = 0;
        for _ in 0..3000 {
            let (hash, importance) = arrival(&mut generator, 150);
            let before = values(&filter);
            with_cells!(&mut filter.memory, cells => cells.delete(9, &mut Draws::new(generator.bits())));
            let (units, lowered) =
                (before.iter().sum::<u32>(), before.iter().sum::<u32>() - values(&filter).iter().sum::<u32>());
            // MinImp lowers different cells, the others may lower one several times.
            let most = match deletion {
                Deletion::MinImp => before.iter().filter(|value| **value > 0).count() as u32,
                _ => units,
            };
            assert_eq!(lowered, most.min(9), "{deletion:?}");
            short += u32::from(most < 9);
            for position in filter.policy.probes(hash) {
                let (value, weight) = (importance.share_of(4), importance.share_of(FULL_WEIGHT).max(1));
                with_cells!(&mut filter.memory, cells => cells.insert(position, value, weight));
            }
        }
        assert!(short > 0, "{deletion:?}: the case of too few cells must arise");
    }
}

fn every_pair() -> impl Iterator<Item = Parameters> {
    let pairs =
        INSERTIONS.iter().flat_map(|(_, insertion)| DELETIONS.iter().map(move |(_, deletion)| (*insertion, *deletion)));
    pairs
        .filter(|pair| *pair != (Insertion::Max, Deletion::ProbabilisticVal))
        .map(|(insertion, deletion)| by_hand(insertion, deletion, [333, 4, 7, 4]))
}

#[test]
fn every_pair_continues_after_a_round_trip_with_the_same_verdicts() {
    let reinsertions = [None, Some(Choice::Fifo), Some(Choice::Random)]
        .map(|choice| choice.map(|choice| Reinsertion { choice, above: 0.5, slots: 20, every: 3, below: 0.3 }));
    for parameters in every_pair() {
        for (reinsertion, cell_importance) in reinsertions.into_iter().zip(CELL_IMPORTANCES) {
            let parameters = Parameters { reinsertion, cell_importance, fill_limit: Some(150), ..parameters };
            let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
            let mut generator = Generator::seeded(2);
            for _ in 0..700 {
                let (hash, importance) = arrival(&mut generator, 400);
                filter.observe_hash(hash, importance);
            }
            let mut restored = crate::TESTED
                .decoder()
                .decode(&encode(&filter))
                .unwrap_or_else(|error| panic!("{parameters:?}: {error}"));
            for _ in 0..700 {
                let (hash, importance) = arrival(&mut generator, 400);
                assert_eq!(filter.observe_hash(hash, importance), restored.observe_hash(hash, importance));
            }
            assert_eq!(encode(&filter), encode(&*restored), "{parameters:?}");
        }
    }
}

#[test]
fn the_fill_limit_holds_at_every_arrival() {
    for parameters in every_pair() {
        let parameters = Parameters { fill_limit: Some(60), decrements: 1, ..parameters };
        let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
        for key in 0..3000u64 {
            filter.observe(key, Importance::FULL);
            let in_use = values(&filter).iter().filter(|value| **value > 0).count() as u64;
            assert_eq!(in_use, 333 - filter.zeros(), "{parameters:?}");
            assert!(in_use <= 60, "{parameters:?}: {in_use}");
        }
    }
}

#[test]
fn priorities_and_totals_saturate_instead_of_overflowing() {
    let parameters = by_hand(Insertion::Max, Deletion::MinImpPriority, [4, 2, 60_000, 255]);
    let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
    for key in 0..40u64 {
        filter.observe(key % 3, Importance::FULL);
    }
    assert!(crate::TESTED.decoder().decode(&encode(&filter)).is_ok());
}

#[test]
fn reinsertion_brings_important_keys_back() {
    let without = by_hand(Insertion::Max, Deletion::Random, [2000, 3, 12, 3]);
    let reinsertion = Reinsertion { choice: Choice::Fifo, above: 0.9, slots: 50, every: 2, below: 0.0 };
    let remembered = |reinsertion: Option<Reinsertion>| {
        let parameters = Parameters { reinsertion, ..without };
        let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
        let low = Importance::new(1, 10).expect("in range");
        (0..50u64).for_each(|key| {
            filter.observe(key, Importance::FULL);
        });
        (1000..6000u64).for_each(|key| {
            filter.observe(key, low);
        });
        (0..50u64).filter(|key| filter.contains(key)).count()
    };
    let (alone, helped) = (remembered(None), remembered(Some(reinsertion)));
    assert!(helped > 45 && alone < 15, "{alone} without, {helped} with reinsertion");
}

#[test]
fn plans_say_when_importances_do_not_tell_keys_apart() {
    let constant = ImportanceMix::of([Importance::new(30, 50).expect("in range")]);
    let goal = Goal::new().memory_bits(1 << 20).fpr(0.01);
    let notes = |goal: Goal, spec: &str| goal.plan_among(crate::TESTED, spec).expect("plans").notes;
    assert!(notes(goal.clone().importance_mix(constant), "ibf5")[0].contains("the value 1 of 3"));
    assert!(notes(goal.clone().importance_mix(constant), "ibf3").is_empty());
    assert!(notes(goal.clone().importance_mix(ImportanceMix::uniform()), "ibf5").is_empty());
    assert!(notes(goal.clone().with_importance(), "ibf5").is_empty());
    assert!(notes(goal.clone(), "ibf5")[0].starts_with("without importances"), "every arrival counts as full");
    assert!(notes(goal, "ibf3").is_empty());
}

#[test]
fn values_without_importance_are_refused_with_the_reason() {
    let error = Goal::new().plan_among(
        crate::TESTED,
        "ibf:insertion=m,deletion=probabilistic_val,num_cells=9,num_hashes=1,decrements=1,cell_max=1",
    );
    assert!(error.expect_err("meaningless").to_string().contains("writes the same value for all"));
}

/// Large enough to look ahead, with so few arrivals that groups are raised all the time, and with so many on
/// few keys that they are settled.
#[test]
fn looking_ahead_changes_no_verdict_and_no_byte() {
    for deletion in [Deletion::Random, Deletion::Probabilistic, Deletion::ProbabilisticP, Deletion::MinImp] {
        for universe in [300, 1 << 30] {
            let cells = if deletion == Deletion::Random { 1 << 22 } else { 300_000 };
            let parameters = by_hand(Insertion::Max, deletion, [cells, 4, 7, 4]);
            let mut one_by_one = Ibf::new(parameters, Hashing::seeded(3)).expect("fits");
            assert!(one_by_one.policy.distance() > 0, "{deletion:?}: lies in the cache");
            let mut at_once = one_by_one.clone();
            let mut generator = Generator::seeded(6);
            let arrivals: Vec<_> = (0..3000).map(|_| arrival(&mut generator, universe)).collect();
            let (hashes, importances): (Vec<_>, Vec<_>) = arrivals.iter().copied().unzip();
            let mut verdicts = vec![Verdict::Distinct; arrivals.len()];
            at_once.observe_hashes(&hashes, Importances::Each(&importances), &mut verdicts).expect("one each");
            for ((hash, importance), verdict) in arrivals.into_iter().zip(verdicts) {
                assert_eq!(one_by_one.observe_hash(hash, importance), verdict, "{deletion:?}");
            }
            assert_eq!(encode(&at_once), encode(&one_by_one), "{deletion:?}");
        }
    }
}

/// Importances that bring the filter from few cells in use to many and back.
#[test]
fn cells_are_drawn_from_a_list_while_they_are_few() {
    let parameters = by_hand(Insertion::Importance, Deletion::ProbabilisticVal, [600, 4, 9, 4]);
    let mut filter = Ibf::new(parameters, Hashing::seeded(3)).expect("small");
    let mut generator = Generator::seeded(8);
    let mut found = [0; 2];
    for round in 0..4000 {
        let (hash, importance) = arrival(&mut generator, 2000);
        // Important arrivals bring more than is lowered, others less.
        let importance = if round % 400 < 100 { Importance::FULL } else { importance };
        filter.observe_hash(hash, importance);
        let Memory::ByValue(cells) = &filter.memory else { panic!("deletes by value") };
        let in_use = values(&filter).iter().filter(|value| **value > 0).count() as u64;
        assert_eq!(in_use, cells.nonzero());
        found[usize::from(cells.is_crowded())] += 1;
        if round % 97 == 0 {
            let restored = crate::TESTED.decoder().decode(&encode(&filter)).expect("its own bytes");
            assert_eq!(encode(&*restored), encode(&filter));
        }
    }
    assert!(found.iter().all(|arrivals| *arrivals > 400), "{found:?} by list, from all");
}

#[test]
fn cells_that_no_list_could_number_are_refused() {
    let refusal = |result: Result<Plan>| result.expect_err("too many cells").to_string();
    let by_hand = |cells: u64| format!("num_cells={cells},num_hashes=4,decrements=7,cell_max=4");
    assert!(Goal::new().plan_among(crate::TESTED, &format!("ibf6:{}", by_hand(1 << 32))).is_ok());
    assert!(
        refusal(Goal::new().plan_among(crate::TESTED, &format!("ibf6:{}", by_hand((1 << 32) + 1))))
            .contains("4294967296")
    );
    assert!(Goal::new().plan_among(crate::TESTED, &format!("ibf1:{}", by_hand((1 << 32) + 1))).is_ok());
    // 8 bytes for each of the most cells there may be.
    let large = Goal::new().fpr(0.01).memory_bits(64 << 32);
    assert!(
        refusal(large.plan_among(crate::TESTED, "ibf6")).contains("shards")
            && large.plan_among(crate::TESTED, "ibf1").is_ok()
    );
}
