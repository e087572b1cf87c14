//! From a spec, whole or partial, and a goal to a filter.

use crate::error::Result;
use crate::filters;
use crate::goal::{Goal, Plan};
use crate::spec::Spec;
use crate::traits::Filter;

/// Fills in what the spec leaves out, so that the goal is kept.
pub fn plan(spec: &Spec, goal: &Goal) -> Result<Plan> {
    filters::plan(spec, goal)
}

/// Allocates what a plan describes.
pub fn build(plan: &Plan) -> Result<Box<dyn Filter>> {
    filters::build(plan)
}
