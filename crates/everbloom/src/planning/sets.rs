//! Filters that never forget: where one keeps its rate for all keys that will come, no other can miss less.

use super::AUTO;
use crate::filter::{Kind, Kinds, Plan};
use crate::promise::{Error, Goal, Holds, Rate, Result, Spec, rate_text, size_text};

/// A faster filter is taken while it takes at most this much more memory than the smallest,
const PREMIUM_FOR_SPEED: f64 = 1.15;

/// or so little in all.
const SMALL_ENOUGH_BITS: f64 = 4096.0;

/// The sets that a goal may get: of one kind if `shape` names one, of any if it is `auto`.
pub struct Sets<'g> {
    /// The kinds that may be taken.
    pub kinds: Kinds,
    /// The filter that is named, or `auto`.
    pub shape: &'g Spec,
    /// What is asked for.
    pub goal: &'g Goal,
}

impl Sets<'_> {
    /// Those that keep the rate for so many keys within the memory, the one to take first. `is_kept` says whether the rate
    /// is kept by a plan whose bound is low enough.
    pub fn fitting(&self, items: u64, is_kept: &mut dyn FnMut(&Plan) -> bool) -> Vec<Plan> {
        let plans = self.plans(self.goal);
        let mut plans: Vec<_> = plans.into_iter().filter(|plan| self.fits(plan, items) && is_kept(plan)).collect();
        plans.sort_by_key(|plan| plan.memory_bits);
        prefer_fewer_accesses(&mut plans);
        plans
    }

    fn fits(&self, plan: &Plan, items: u64) -> bool {
        let lasts = match plan.promise.holds {
            Holds::UntilItems(until) => until >= items,
            Holds::Always | Holds::Never => true,
        };
        let most = self.goal.memory_bits;
        let rate = self.goal.target_fpr;
        lasts
            && plan.promise.predicted_fnr == Some(0.0)
            && most.is_none_or(|most| plan.memory_bits <= most)
            && rate.is_none_or(|rate| plan.promise.fpr_bound <= rate)
    }

    /// What can be planned for the goal.
    fn plans(&self, goal: &Goal) -> Vec<Plan> {
        self.planned(goal).filter_map(Result::ok).collect()
    }

    fn planned<'a>(&'a self, goal: &'a Goal) -> impl Iterator<Item = Result<Plan>> + 'a {
        self.kinds().map(|kind| self.kinds.complete(&self.shape.renamed(kind.name), goal))
    }

    /// The kinds that never forget and may be the answer. One that grows does not stay within any memory, and is not needed
    /// where keys are counted; a goal names no scheme, and without one the filters that take one are plain ones.
    fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        let (any, name) = (self.shape.kind() == AUTO, self.shape.kind());
        let is_asked_for = move |kind: &Kind| kind.name == name || any && kind.can.follow_scheme.is_none();
        self.kinds.iter().filter(move |kind| !kind.can.forget && !kind.can.grow && is_asked_for(kind))
    }

    /// Why none can be planned: what the first of them, the plainest, misses.
    pub fn refusal(&self) -> Error {
        self.planned(self.goal).find_map(Result::err).unwrap_or_else(|| Error::Infeasible {
            wanted: "this goal".into(),
            reason: "no filter can be planned for it".into(),
            remedy: "give more memory or accept a higher rate".into(),
        })
    }

    /// Why none fits, with the memory and the rate that would do.
    pub fn too_small(&self) -> Error {
        let (Some(items), Some(most)) = (self.goal.expected_items, self.goal.memory_bits) else {
            let remedy = "say how many distinct keys will come";
            return Error::parameter("expected_items", "not given", "given", remedy);
        };
        let needed = self.plans(&self.goal.clone().without_memory()).iter().map(|plan| plan.memory_bits).min();
        let remedies = [
            needed.map(|bits| format!("give {} of memory", size_text(bits))),
            self.rate_that_fits().map(|rate| format!("accept a rate of {}", rate_text(rate))),
        ];
        let remedies: Vec<_> = remedies.into_iter().flatten().collect();
        let asked = self.goal.target_fpr.map_or(String::new(), |rate| format!("a rate of {} for ", rate_text(rate)));
        Error::Infeasible {
            wanted: format!("{asked}{items} keys, none of them forgotten,"),
            reason: match needed {
                Some(bits) => format!("that takes {}, more than {}", size_text(bits), size_text(most)),
                None => "no filter reaches it".into(),
            },
            remedy: if remedies.is_empty() { "expect fewer keys".into() } else { remedies.join(", or ") },
        }
    }

    /// The lowest rate, in a few digits, that the keys can have in the memory.
    fn rate_that_fits(&self) -> Option<f64> {
        let kept = self.plans(&self.goal.clone().without_fpr());
        let lowest = kept.iter().map(|plan| plan.promise.fpr_bound).fold(1.0, f64::min);
        // What a filter comes to is not always what one can be planned for.
        let rates = std::iter::successors(Some(lowest), |rate| Some(rate * 1.01)).take_while(|rate| *rate < 0.99);
        let mut written = rates.filter_map(|rate| Rate::from(rate_text(rate).as_str()).get().ok()).take(50);
        written.find(|rate| !self.plans(&self.goal.clone().fpr(*rate)).is_empty())
    }
}

/// Why a set is taken.
pub(super) fn reason(items: u64) -> String {
    format!("misses nothing and keeps its rate for {} keys", apart(items))
}

/// A count with its thousands apart.
pub fn apart(count: u64) -> String {
    let digits = count.to_string();
    let parts = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    parts.collect::<Vec<_>>().join(",")
}

/// Puts the filter with the fewest memory accesses first, of those that are little larger than the smallest.
fn prefer_fewer_accesses(plans: &mut Vec<Plan>) {
    let Some(least) = plans.first().map(|plan| plan.memory_bits as f64) else { return };
    let is_close = |plan: &&Plan| plan.memory_bits as f64 <= (least * PREMIUM_FOR_SPEED).max(SMALL_ENOUGH_BITS);
    let close = plans.iter().take_while(is_close).enumerate();
    if let Some((place, _)) = close.min_by_key(|(_, plan)| accesses(plan)) {
        let fastest = plans.remove(place);
        plans.insert(0, fastest);
    }
}

/// Cache lines that a key touches.
pub fn accesses(plan: &Plan) -> u64 {
    plan.kind.model.accesses(&plan.spec)
}
