//! Experiments of our own: references, frontiers, cost.

pub(super) mod cost;
pub(super) mod frontier;
mod frontier_grid;
pub(super) mod frontier_weighted;
pub(super) mod reference_history;
