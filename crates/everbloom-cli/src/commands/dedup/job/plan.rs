//! The filter that a job asks for, on paper.

use super::{Job, Rules};
use crate::args::{self, DEFAULT_MEMORY_BITS, DEFAULT_SHARDS, Refresh};
use crate::failure::Result;
use crate::record::Layout;
use everbloom::internal::forecast;
use everbloom::{Goal, Plan, Spec, Window, filters};

impl Job {
    /// The memory asked for, on paper.
    pub(crate) fn plan(&self, layout: &Layout) -> Result<Plan> {
        let rules = &self.rules;
        if let Some(cost) = rules.cost.cost(layout.importance_scale())? {
            return self.plan_by_cost(cost, layout);
        }
        if rules.exact {
            let exact = filters::KINDS.iter().find(|kind| kind.can.be_exact);
            let spec = self.in_shards(&Spec::new(exact.map_or(forecast::AUTO, |kind| kind.name)))?;
            return Ok(forecast::plan(&spec, &Goal::new().hashing(rules.goal.hashing()))?);
        }
        let mut goal = rules.goal.goal();
        goal.importance = layout.has_importance();
        // How many lines a window of time is expected to have, if that is known.
        let timed_arrivals = rules.window_time().and(rules.goal.wanted.expect);
        if !matches!(rules.window, Some(Window::Arrivals(_))) && timed_arrivals.is_none() {
            goal = goal.default_memory_bits(DEFAULT_MEMORY_BITS);
        }
        if let Some(window) = &rules.window {
            let refresh = rules.refresh == Refresh::Yes;
            let spec = match &self.servers.redis {
                Some(_) => {
                    let shards = rules.shards.unwrap_or(DEFAULT_SHARDS);
                    forecast::windowed_in_shards(window, timed_arrivals, refresh, shards)?
                }
                None => forecast::windowed(window, timed_arrivals, refresh)?,
            };
            return Ok(forecast::plan(&spec, &goal)?);
        }
        Ok(forecast::for_stream(&self.in_shards(&rules.goal.filter)?, &goal)?)
    }

    /// The spec in shards, if it goes to servers.
    fn in_shards(&self, spec: &Spec) -> Result<Spec> {
        match self.servers.redis {
            Some(_) => args::in_shards(spec, self.rules.shards),
            None => Ok(spec.clone()),
        }
    }
}

impl Rules {
    /// Whether anything was said of what the filter should be.
    #[cfg(feature = "redis")]
    pub(crate) fn describe_filter(&self) -> bool {
        let wanted = &self.goal.wanted;
        let is_wanted = wanted.memory.or(wanted.expect).is_some() || wanted.fpr.is_some() || wanted.seed != 0;
        let is_shaped = self.exact || self.window.is_some() || self.shards.is_some();
        is_wanted || is_shaped || self.goal.filter != Spec::new(forecast::AUTO)
    }
}
