//! Which filter for a window in which nothing may be missed.

use super::{Candidate, Question, Recommendation, apart};
use crate::Stream;
use everbloom::kind::{Kind, MAX_ITEMS, size_text};
use everbloom::planning::{self, AUTO};
use everbloom::{Error, Result, Spec, Window};

impl Question {
    /// The specs of the kinds that can keep a window, as they keep this one, each with its twin that turns its window by
    /// arrivals: nobody turns it in a simulation.
    fn windowed_specs(&self, window: &Window) -> Vec<(Spec, Spec)> {
        let of = |kind: &Kind| {
            let (takes, mut spec) = (kind.can.window?, self.spec_of(kind));
            if self.keep_age {
                spec = spec.with(takes.refresh?, "no");
            }
            let arrivals = match window {
                Window::Arrivals(arrivals) => Some(*arrivals),
                Window::Time(_) => self.goal.known_items(),
            };
            let twin = arrivals.iter().fold(spec, |spec, arrivals| spec.with(takes.parameter, arrivals));
            Some(match window {
                Window::Arrivals(_) => (twin.clone(), twin),
                Window::Time(_) => (takes.by_caller.map(|(name, value)| twin.clone().with(name, value))?, twin),
            })
        };
        let wanted =
            |kind: &&Kind| self.filter.as_ref().is_none_or(|spec| spec.kind() == kind.name || spec.kind() == AUTO);
        self.kinds.iter().filter(wanted).filter_map(of).collect()
    }

    pub(super) fn for_window(&self, window: &Window) -> Result<Recommendation> {
        if self.goal.most_memory_bits().or(self.goal.known_items()).is_none() && matches!(window, Window::Time(_)) {
            let remedy = "say how many arrivals a window of that time has, or how much memory there is";
            return Err(Error::parameter("expected_items", "not given", "given, or memory", remedy));
        }
        // Windows count arrivals, so the number of keys that will ever come does not matter.
        let goal = self.goal.clone().without_expected_items();
        let specs = self.windowed_specs(window);
        let plans: Vec<_> = specs
            .iter()
            .map(|(spec, twin)| Ok((self.kinds.complete(spec, &goal)?, self.kinds.complete(twin, &goal)?)))
            .collect();
        if plans.is_empty() {
            let problem = "it has no window";
            let spec = self.filter.clone().unwrap_or_else(|| Spec::new(AUTO));
            let able = self.kinds.names(|kind| kind.can.window.is_some());
            return Err(spec.error(problem, format!("take one of {able}, or name no filter")));
        }
        let mut candidates = Vec::new();
        let mut streams = Vec::new();
        for (plan, twin) in plans.iter().flatten() {
            let parameter = plan.kind.can.window.map_or("", |takes| takes.parameter);
            let arrivals: u64 = plan.spec.number(parameter)?.unwrap_or(1);
            let assumed = match (&self.stream, window) {
                (Some(stream), _) => stream.clone(),
                (None, Window::Arrivals(_)) => {
                    Stream::assumed(self.goal.known_items().unwrap_or(arrivals.saturating_mul(4)).min(MAX_ITEMS / 2))?
                }
                (None, Window::Time(_)) => Stream::assumed(arrivals.saturating_mul(4).min(MAX_ITEMS / 2))?,
            };
            let forecast = self.forecast_alone(twin, &assumed)?;
            let within = match window {
                Window::Arrivals(arrivals) => format!("{} arrivals", apart(*arrivals)),
                Window::Time(_) => format!("the window, of up to {} arrivals", apart(arrivals)),
            };
            let reason = format!("misses nothing within {within}, in {}", size_text(plan.memory_bits));
            candidates.push(Candidate { plan: plan.clone(), forecast, reason, cost: None });
            streams.push(assumed);
        }
        let stream = match streams.into_iter().next() {
            Some(stream) => stream,
            None => self.stream()?,
        };
        candidates.sort_by_key(|candidate| candidate.plan.memory_bits);
        if self.shape().kind() == AUTO {
            let taken = planning::for_window(window, &self.goal, !self.keep_age, None)?;
            candidates.sort_by_key(|candidate| candidate.plan.spec.kind() != taken.spec.kind());
        }
        match plans.into_iter().find_map(Result::err) {
            Some(error) if candidates.is_empty() => Err(error),
            _ => self.recommended(candidates, stream),
        }
    }
}
