//! Filters that never forget: where one keeps its rate for all keys that will come, no other can miss less.

use super::{Candidate, Question, RUNNERS_UP, Recommendation, accesses, apart};
use crate::filter::{Kind, Plan};
use crate::filters::{self, KINDS};
use crate::promise::{Error, Goal, Rate, Result, rate_text, size_text};

/// A faster filter is taken while it takes at most this much more memory than the smallest,
const PREMIUM_FOR_SPEED: f64 = 1.15;

/// or so little in all.
const SMALL_ENOUGH_BITS: f64 = 4096.0;

impl Question {
    pub(super) fn without_memory(&self) -> Result<Recommendation> {
        if self.expected().is_none() {
            let remedy = "say how much memory there is, or how many distinct keys will come";
            return Err(Error::parameter("memory", "not given", "given, or expected_items", remedy));
        }
        match self.target_fnr {
            Some(rate) if rate > 0.0 => self.least_memory(rate),
            _ => match self.non_forgetting()? {
                Some(found) => Ok(found),
                // The first of them, the plainest, says what is missing.
                None => {
                    let refusal = self.sets().find_map(|kind| filters::plan(&self.spec_of(kind), &self.goal()).err());
                    Err(refusal.unwrap_or_else(|| self.nothing_fits()))
                }
            },
        }
    }

    /// The filters that never forget and keep the rate for all expected keys, the one to take first.
    pub(super) fn non_forgetting(&self) -> Result<Option<Recommendation>> {
        let Some(expected) = self.expected() else { return Ok(None) };
        let stream = self.stream()?;
        let mut candidates = Vec::new();
        for kind in self.sets() {
            let Ok(plan) = filters::plan(&self.spec_of(kind), &self.goal()) else { continue };
            if !self.fits(&plan, &stream) || plan.promise.predicted_fnr != Some(0.0) {
                continue;
            }
            let forecast = self.forecast_of_set(&plan, &stream)?;
            if self.is_kept(&plan, &forecast, 1.0) {
                let reason = format!("misses nothing and keeps its rate for {} keys", apart(expected));
                candidates.push(Candidate { plan, forecast, reason, cost: None });
            }
        }
        candidates.sort_by_key(|candidate| candidate.plan.memory_bits);
        prefer_fewer_accesses(&mut candidates);
        candidates.truncate(RUNNERS_UP + 1);
        self.look_closely(&mut candidates, &stream)?;
        if candidates.is_empty() { Ok(None) } else { self.recommended(candidates, stream).map(Some) }
    }

    /// The kinds that never forget and may be the answer. One that grows does not stay within any memory, and is not
    /// needed where keys are counted.
    pub(super) fn sets(&self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| !kind.can.forget && !kind.can.grow && self.is_asked_for(kind))
    }

    /// Why no filter that never forgets fits, with the memory and the rate that would do.
    pub(super) fn too_small(&self) -> Error {
        let goal = self.goal();
        let (Some(items), Some(most)) = (goal.expected_items, goal.memory_bits) else {
            let remedy = "say how many distinct keys will come";
            return Error::parameter("expected_items", "not given", "given", remedy);
        };
        let plans = |goal: &Goal| -> Vec<Plan> {
            self.sets().filter_map(|kind| filters::plan(&self.spec_of(kind), goal).ok()).collect()
        };
        let needed = plans(&Goal { memory_bits: None, ..goal.clone() }).iter().map(|plan| plan.memory_bits).min();
        let kept = plans(&Goal { target_fpr: None, ..goal.clone() });
        let lowest = kept.iter().map(|plan| plan.promise.predicted_fpr).fold(1.0, f64::min);
        // What a filter comes to is not always what one can be planned for.
        let rates = std::iter::successors(Some(lowest), |rate| Some(rate * 1.01)).take_while(|rate| *rate < 0.99);
        let written = rates.filter_map(|rate| Rate::from(rate_text(rate).as_str()).get().ok()).take(50);
        let rate = written.map(|rate| Goal { target_fpr: Some(rate), ..goal.clone() }).find(|at| !plans(at).is_empty());
        let remedies = [
            needed.map(|bits| format!("give {} of memory", size_text(bits))),
            rate.and_then(|goal| goal.target_fpr).map(|rate| format!("accept a rate of {}", rate_text(rate))),
        ];
        let remedies: Vec<_> = remedies.into_iter().flatten().collect();
        let asked = goal.target_fpr.map_or(String::new(), |rate| format!("a rate of {} for ", rate_text(rate)));
        Error::Infeasible {
            wanted: format!("{asked}{items} keys, none of them forgotten,"),
            reason: match needed {
                Some(bits) => format!("that takes {}, more than {}", size_text(bits), size_text(most)),
                None => "no filter reaches it".into(),
            },
            remedy: if remedies.is_empty() { "expect fewer keys".into() } else { remedies.join(", or ") },
        }
    }
}

/// Puts the filter with the fewest memory accesses first, of those that are little larger than the smallest.
fn prefer_fewer_accesses(candidates: &mut Vec<Candidate>) {
    let Some(least) = candidates.first().map(|candidate| candidate.plan.memory_bits as f64) else { return };
    let is_close = |candidate: &&Candidate| {
        candidate.plan.memory_bits as f64 <= (least * PREMIUM_FOR_SPEED).max(SMALL_ENOUGH_BITS)
    };
    let close = candidates.iter().take_while(is_close).enumerate();
    if let Some((place, _)) = close.min_by_key(|(_, candidate)| accesses(&candidate.plan)) {
        let fastest = candidates.remove(place);
        candidates.insert(0, fastest);
    }
}
