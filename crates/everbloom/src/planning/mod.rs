//! Which filter a goal gets: rules that need neither a stream nor a simulation, so that every surface gives the same answer at
//! once. What a stream, costs or a rate of false negatives add is the business of a question (`everbloom_forecast::Question`).
//!
//! The first line that applies decides:
//!
//! | what is asked for | what is taken |
//! |---|---|
//! | a filter by its name | that one; its open parameters are planned |
//! | a window ([`for_window`]) | what keeps a window: `age_partitioned` |
//! | bytes on the wire, or a known number of keys compressed | what can be planned by bytes: `bloom` |
//! | a number of keys that is a guess ([`Goal::open_ended`]), without a bound of memory | what grows: `scalable` |
//! | a number of keys that is a guess, and all fit in exactly | what is exact until its memory is full: `graceful` |
//! | a number of keys that fit, at the rate | the smallest set, or a faster one up to 15 % larger: `blocked`, `bloom` |
//! | that no key is ever forgotten, or no bound of memory | an error that says what would do |
//! | importances, or that no arrival takes long | what weighs importances: `ranked` |
//! | nothing more | what is exact until its memory is full: `graceful`; where memory is too small for it, `ranked` |
//!
//! Kinds are found by what they can do, in the order of the set. The names are those of the kinds that are there today.

mod sets;
mod window;

use crate::filter::{Kind, Kinds, Plan};
use crate::promise::{Error, Goal, Holds, Result, Spec};

pub use sets::{Sets, accesses, apart};
pub use window::{for_window, windowed, windowed_in_shards};

/// The kind that leaves the choice to the planner.
pub const AUTO: &str = "auto";

impl Kinds {
    /// Fills in what the spec leaves out, so that the goal is kept; `auto` also chooses the kind, by the rules of the planner.
    pub fn plan(self, spec: &Spec, goal: &Goal) -> Result<Plan> {
        match &goal.filter {
            Some(named) if *spec == Spec::new(AUTO) => decide(self, named, goal),
            Some(named) if named != spec => Err(spec.error(
                format!("the goal has a filter already, '{named}'"),
                format!("plan it as {AUTO}, or leave the filter out of the goal"),
            )),
            _ => decide(self, spec, goal),
        }
        .map(|taken| taken.plan)
    }
}

/// The plan, unless it breaks the rate for keys whose number is known, be the rate asked for or only usual.
pub fn held_to_rate(plan: Plan, goal: &Goal) -> Result<Plan> {
    let broken = goal.expected_items.and_then(|_| crate::filter::broken_rate(&plan, goal));
    broken.map_or(Ok(plan), Err)
}

impl Goal {
    /// Plans a filter from a spec in text form: `bloom`, `stable:cell_max=3`, `auto`. A goal that names a filter already is
    /// planned as `auto`.
    pub fn plan(&self, spec: &str) -> Result<Plan> {
        self.plan_among(Kinds::default(), spec)
    }

    /// [`Goal::plan`] where the spec may name any of these kinds.
    pub fn plan_among(&self, kinds: Kinds, spec: &str) -> Result<Plan> {
        kinds.plan(&Spec::parse(spec)?, self)
    }
}

/// What the rules take.
pub struct Taken {
    /// The filter.
    pub plan: Plan,
    /// Why, in words.
    pub reason: String,
}

/// The filter by the first rule that applies.
pub fn decide(kinds: Kinds, shape: &Spec, goal: &Goal) -> Result<Taken> {
    goal.checked()?;
    if shape.kind() != AUTO {
        return Ok(Taken { plan: kinds.complete(shape, goal)?, reason: ASKED_FOR.into() });
    }
    if let Some(parameter) = shape.parameters().find(|parameter| *parameter != crate::filter::SHARDS) {
        return Err(shape.error(format!("{AUTO} has no '{parameter}'"), "name a filter to set its parameters"));
    }
    let choice = Choice { kinds, shape, goal };
    match (goal.transmitted_bytes, goal.expected_items) {
        (Some(_), _) => choice.fitting_bytes(),
        (None, Some(_)) if goal.compressed => choice.fitting_bytes(),
        (None, Some(items)) => choice.for_keys(items),
        (None, None) => choice.for_unknown_keys(),
    }
}

/// Why a filter that was named is taken.
pub const ASKED_FOR: &str = "it was asked for";

/// A choice that nobody made: `auto`, with shards or without.
struct Choice<'g> {
    kinds: Kinds,
    shape: &'g Spec,
    goal: &'g Goal,
}

impl Choice<'_> {
    fn fitting_bytes(&self) -> Result<Taken> {
        self.first(|kind| kind.can.fit_bytes, self.goal, "the smallest when it is sent")
    }

    fn for_keys(&self, items: u64) -> Result<Taken> {
        let goal = self.goal;
        if goal.open_ended && (goal.assumed_memory || goal.memory_bits.is_none()) {
            // Who says how many will come, and not how much memory there is, must not pay for having guessed too low.
            let goal = goal.clone().without_memory();
            return self.first(
                |kind| kind.can.grow && !kind.can.exact,
                &goal,
                "grows when more keys come than expected",
            );
        }
        if let Some(exact) = self.exact_first().filter(|_| goal.open_ended)
            && exact.plan.promise.exact_until.is_some_and(|until| until >= items)
        {
            return Ok(exact);
        }
        let sets = Sets { kinds: self.kinds, shape: self.shape, goal };
        match sets.fitting(items, &mut |plan| plan.promise.holds != Holds::Never).into_iter().next() {
            Some(plan) => Ok(Taken { plan, reason: sets::reason(items) }),
            None if goal.memory_bits.is_none() => Err(sets.refusal()),
            None => self.for_unknown_keys(),
        }
    }

    /// For more keys than fit, or nobody knows how many.
    fn for_unknown_keys(&self) -> Result<Taken> {
        if self.goal.memory_bits.is_none() {
            let remedy = "say how much memory there is, or how many distinct keys will come";
            return Err(Error::parameter("memory", "not given", "given, or expected_items", remedy));
        }
        if self.goal.never_forget {
            return Err(Sets { kinds: self.kinds, shape: self.shape, goal: self.goal }.too_small());
        }
        match self.exact_first() {
            Some(taken) => Ok(taken),
            None => self.first(
                |kind| kind.can.run_forever && kind.can.weigh_importance,
                self.goal,
                "keeps its rate for ever, and forgets what matters least first",
            ),
        }
    }

    /// What is exact until its memory is full. It knows no importances, and stops when it ceases to be exact.
    fn exact_first(&self) -> Option<Taken> {
        if self.goal.importance || self.goal.bounded_latency {
            return None;
        }
        let reason = "errs on nothing until its memory is full, and keeps its rate for ever";
        self.first(|kind| kind.can.exact_first, self.goal, reason).ok()
    }

    /// The first kind of the set that can this.
    fn first(&self, able: impl Fn(&Kind) -> bool, goal: &Goal, reason: &str) -> Result<Taken> {
        let Some(kind) = self.kinds.iter().find(|kind| able(kind)) else {
            let remedy = "name a filter, or plan among everbloom's own kinds".to_string();
            return Err(Error::unsupported(AUTO, "be chosen among these kinds", remedy));
        };
        Ok(Taken { plan: self.kinds.complete(&self.shape.renamed(kind.name), goal)?, reason: reason.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Abilities;

    fn taken(goal: &Goal) -> Abilities {
        let plan = goal.plan(AUTO).unwrap_or_else(|error| panic!("{goal:?}: {error}"));
        plan.kind.can
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        let goal = Goal::new().fpr(0.01);
        let known = goal.clone().expected_items(100_000);
        assert!(taken(&known.clone().compressed()).fit_bytes);
        assert!(taken(&known.clone().transmitted_bytes(200_000)).fit_bytes);
        assert!(taken(&known.clone().open_ended()).grow);
        assert!(taken(&known.clone().open_ended().default_memory_bits(1 << 24)).grow);
        assert!(taken(&known.clone().open_ended().memory("8MiB")).exact_first);
        let is_set = |goal: &Goal| !taken(goal).forget && !taken(goal).grow;
        assert!(is_set(&known) && is_set(&known.clone().memory("8MiB")));
        // Too little to be exact, and enough for all keys.
        assert!(is_set(&known.clone().open_ended().memory("128KiB")));
        assert!(is_set(&known.clone().with_importance().memory("128KiB")));
        let few = known.memory("64KiB");
        assert!(few.clone().never_forget().plan(AUTO).is_err());
        assert!(taken(&few).exact_first);
        let bounded = goal.memory("64KiB");
        assert!(taken(&bounded).exact_first);
        let ranked = [bounded.clone().with_importance(), bounded.clone().bounded_latency()];
        assert!(ranked.iter().all(|goal| taken(goal).weigh_importance));
        let error = bounded.memory("16B").plan(AUTO).expect_err("too little").to_string();
        assert!(error.contains("16B") && error.contains("give"), "{error}");
    }

    #[test]
    fn a_goal_that_names_a_filter_is_not_planned_as_another() {
        let mut kinds = Kinds::default().iter();
        let (Some(one), Some(other)) = (kinds.next(), kinds.next()) else { panic!("few kinds") };
        let goal = Goal::new().filter(one.name).expected_items(1000).fpr(0.01);
        assert_eq!(goal.plan(AUTO).expect("a plan").spec.kind(), one.name);
        assert!(goal.plan(one.name).is_ok());
        let error = goal.plan(other.name).expect_err("another filter").to_string();
        assert!(error.contains("has a filter already"), "{error}");
    }
}
