//! From a spec, whole or partial, and a goal to a filter; and the choice of filter where the spec is `auto`.

mod simulate;

use crate::error::{Error, Result};
use crate::filters;
use crate::goal::{Goal, Plan};
use crate::outlook::Outlook;
use crate::spec::Spec;
use crate::stream::Stream;
use crate::traits::Filter;

/// The kind that leaves the choice to the planner.
pub const AUTO: &str = "auto";

/// A blocked filter is chosen while it takes at most this much more memory than a classic one.
const BLOCKED_PREMIUM: f64 = 1.15;

/// Fills in what the spec leaves out, so that the goal is kept; `auto` also chooses the kind.
pub fn plan(spec: &Spec, goal: &Goal) -> Result<Plan> {
    if spec.kind() == AUTO { choose(spec, goal) } else { filters::plan(spec, goal) }
}

/// Allocates what a plan describes.
pub fn build(plan: &Plan) -> Result<Box<dyn Filter>> {
    filters::build(plan)
}

/// Arrivals of a rehearsal: enough for a rate of 15 % to be known to 0.1 points.
const REHEARSED: f64 = 262_144.0;

/// Which errors to expect of a planned filter on a stream: by formula or chain where there is one, else by a
/// seeded simulation.
pub fn outlook(plan: &Plan, stream: &Stream) -> Result<Outlook> {
    if let Some(outlook) = filters::outlook(plan, stream)? {
        return Ok(outlook);
    }
    simulated(plan, stream)
}

/// The same by simulation, whatever formulas there are.
pub fn simulated(plan: &Plan, stream: &Stream) -> Result<Outlook> {
    let rehearsal = simulate::rehearsal(stream, plan.memory_bits, REHEARSED);
    simulate::simulated(plan, stream, &rehearsal)?.ok_or_else(|| Error::Unsupported {
        kind: "filter of this kind",
        operation: "be foretold",
        remedy: "run it on a stream with compare",
    })
}

/// While memory suffices to remember every key, a filter that never forgets wins; below that, the one
/// that forgets what matters least.
fn choose(spec: &Spec, goal: &Goal) -> Result<Plan> {
    if let Some(word) = spec.words().find(|word| *word != "shards") {
        return Err(spec.error(format!("auto has no '{word}'"), "name a filter to set its words"));
    }
    let named = |kind: &str| filters::plan(&spec.renamed(kind), goal);
    if goal.compressed && goal.expected_items.is_some() {
        return named("bloom");
    }
    if goal.expected_items.is_some() {
        match lasting(named("blocked"), named("bloom")) {
            Err(Error::Infeasible { .. }) if goal.memory_bits.is_some() => {}
            plan => return plan,
        }
    }
    named("ranked")
}

/// The faster of two filters that never forget, unless it is much larger.
fn lasting(blocked: Result<Plan>, bloom: Result<Plan>) -> Result<Plan> {
    match (blocked, bloom) {
        (Ok(blocked), Ok(bloom)) => {
            let close = blocked.memory_bits as f64 <= (bloom.memory_bits as f64 * BLOCKED_PREMIUM).max(4096.0);
            Ok(if close { blocked } else { bloom })
        }
        (blocked, bloom) => bloom.or(blocked),
    }
}
