//! The filter that a job asks for, on paper.

use super::{Job, Rules};
use crate::args::{self, DEFAULT_MEMORY_BITS, DEFAULT_SHARDS, Refresh};
use crate::failure::Result;
use crate::record::Layout;
use everbloom::planning::{self, AUTO};
use everbloom::{Goal, Plan, Spec};
use everbloom_all::KINDS;

impl Job {
    /// The memory asked for, on paper.
    pub(crate) fn plan(&self, layout: &Layout) -> Result<Plan> {
        let rules = &self.rules;
        if let Some(cost) = rules.cost.cost(layout.importance_scale())? {
            return self.plan_by_cost(cost, layout);
        }
        if rules.exact {
            let exact = KINDS.iter().find(|kind| kind.can.exact);
            let spec = self.in_shards(&Spec::new(exact.map_or(AUTO, |kind| kind.name)))?;
            return Ok(KINDS.plan(&spec, &Goal::new().hashing(rules.goal.hashing()))?);
        }
        let mut goal = rules.goal.goal().default_memory_bits(DEFAULT_MEMORY_BITS);
        if layout.has_importance() {
            goal = goal.with_importance();
        }
        if let Some(window) = &rules.window {
            let shards = self.servers.redis.as_ref().map(|_| rules.shards.unwrap_or(DEFAULT_SHARDS));
            return Ok(planning::for_window(window, &goal, rules.refresh == Refresh::Yes, shards)?);
        }
        let goal = goal.open_ended();
        Ok(planning::held_to_rate(KINDS.plan(&self.in_shards(&rules.goal.filter)?, &goal)?, &goal)?)
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
        is_wanted || is_shaped || self.goal.filter != Spec::new(AUTO)
    }
}
