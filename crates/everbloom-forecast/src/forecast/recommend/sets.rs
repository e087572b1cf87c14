//! Filters that never forget, with what to expect of them on the stream.

use super::{Candidate, Question, RUNNERS_UP, Recommendation, apart};
use crate::Stream;
use everbloom::planning::Sets;
use everbloom::{Error, Holds, Plan, Result};

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
                None => Err(Sets { kinds: self.kinds, shape: &self.shape(), goal: &self.goal() }.refusal()),
            },
        }
    }

    /// The filters that never forget and keep the rate for all expected keys, the one to take first.
    pub(super) fn non_forgetting(&self) -> Result<Option<Recommendation>> {
        let stream = self.stream()?;
        let mut candidates = self.sets(&stream)?;
        candidates.truncate(RUNNERS_UP + 1);
        self.look_closely(&mut candidates, &stream)?;
        if candidates.is_empty() { Ok(None) } else { self.recommended(candidates, stream).map(Some) }
    }

    /// All of them, as far as a first look tells.
    pub(super) fn sets(&self, stream: &Stream) -> Result<Vec<Candidate>> {
        let Some(items) = self.expected() else { return Ok(Vec::new()) };
        let (shape, goal) = (self.shape(), self.goal());
        let plans = Sets { kinds: self.kinds, shape: &shape, goal: &goal }
            .fitting(items, &mut |plan| self.is_kept_by_set(plan, stream));
        let reason = format!("misses nothing and keeps its rate for {} keys", apart(items));
        let candidate = |plan: Plan| {
            let forecast = self.forecast_of_set(&plan, stream)?;
            Ok(Candidate { plan, forecast, reason: reason.clone(), cost: None })
        };
        plans.into_iter().map(candidate).collect()
    }

    /// Whether a set whose bound is low enough may be taken: one that promises nothing, if it keeps the rate on the stream.
    fn is_kept_by_set(&self, plan: &Plan, stream: &Stream) -> bool {
        let is_kept = || self.forecast_of_set(plan, stream).is_ok_and(|forecast| self.is_kept(plan, &forecast, 1.0));
        plan.promise.holds != Holds::Never || self.fits(plan, stream) && is_kept()
    }
}
