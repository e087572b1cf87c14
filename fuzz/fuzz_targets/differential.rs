//! A filter beside a model: a set of keys with their counts, and twins of the filter itself.
#![no_main]

use everbloom::{AnyFilter, Goal, Hashing, Importance, Importances, Key, Verdict};
use everbloom::codec::encode;
use everbloom_all::KINDS;
use libfuzzer_sys::fuzz_target;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use std::collections::HashMap;

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u16),
    Observe(u16, u8),
    ObserveBatch(Vec<u16>),
    Contains(u16),
    Remove(u16),
    Restart,
    Clear,
}

#[derive(Arbitrary, Debug)]
struct Input {
    kind: u8,
    seed: u64,
    steps: Vec<Step>,
}

/// The filter, its twin that is only ever called one by one, and the truth.
struct Trial {
    filter: AnyFilter,
    twin: AnyFilter,
    inside: HashMap<u16, u32>,
    never_forgets: bool,
}

impl Trial {
    /// What an answer must be: yes for a key inside, where the kind never forgets.
    fn check(&self, key: u16, seen: bool) {
        if self.never_forgets && self.inside.contains_key(&key) {
            assert!(seen, "{key} was forgotten by {}", self.filter.spec());
        }
    }

    fn observe(&mut self, key: u16, importance: Importance) -> Verdict {
        let verdict = self.twin.observe(&key, importance);
        self.check(key, verdict == Verdict::Duplicate);
        // Observing a key that seems to be inside may leave it uncounted: one removal takes it out.
        if verdict == Verdict::Distinct {
            *self.inside.entry(key).or_default() += 1;
        }
        verdict
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Insert(key) => {
                let new = self.filter.insert(key);
                assert_eq!(self.twin.insert(key), new);
                self.check(*key, !new);
                *self.inside.entry(*key).or_default() += 1;
            }
            Step::Observe(key, weight) => {
                let importance = Importance::new(u32::from(*weight), 255).expect("at most 255");
                let verdict = self.observe(*key, importance);
                assert_eq!(self.filter.observe(key, importance), verdict);
            }
            Step::ObserveBatch(keys) => {
                let mut verdicts = vec![Verdict::Distinct; keys.len()];
                self.filter.observe_batch(keys, Importances::default(), &mut verdicts).expect("one importance for each");
                for (key, verdict) in keys.iter().zip(verdicts) {
                    assert_eq!(self.observe(*key, Importance::FULL), verdict);
                }
            }
            Step::Contains(key) => {
                let seen = self.filter.contains(key);
                assert_eq!(self.twin.contains(key), seen);
                self.check(*key, seen);
            }
            Step::Remove(key) => self.remove(*key),
            Step::Restart => self.filter = KINDS.decoder().decode(&encode(&*self.filter)).expect("its own bytes").into(),
            Step::Clear => {
                self.filter.clear();
                self.twin.clear();
                self.inside.clear();
            }
        }
    }

    /// Takes a key out, if the kind can and the key is inside.
    fn remove(&mut self, key: u16) {
        if !self.inside.contains_key(&key) {
            return;
        }
        let hash = key.hash_with(self.filter.hashing());
        for filter in [&mut self.filter, &mut self.twin] {
            let Some(removal) = filter.as_removal() else { return };
            assert!(removal.remove_hash(hash), "{key} is inside but cannot be removed");
        }
        let count = self.inside.get_mut(&key).expect("inside");
        *count -= 1;
        if *count == 0 {
            self.inside.remove(&key);
        }
    }
}

fuzz_target!(|input: Input| {
    let kinds: Vec<_> = KINDS.iter().collect();
    let kind = kinds[usize::from(input.kind) % kinds.len()];
    let goal = Goal::new().memory_bits(16_384).expected_items(200).fpr(0.1);
    let Ok(plan) = goal.hashing(Hashing::seeded(input.seed)).plan_among(KINDS, kind.name) else { return };
    let build = || plan.build().expect("2 KiB");
    let mut trial = Trial { filter: build(), twin: build(), inside: HashMap::new(), never_forgets: !kind.can.forget };
    for step in &input.steps {
        trial.step(step);
    }
    assert_eq!(encode(&*trial.filter), encode(&*trial.twin));
});
