//! Which filter, how large, how often wrong.

use super::quantity;
use clap::Args;
use everbloom::planning::AUTO;
use everbloom::{Goal, Hashing, Spec};
use serde::{Deserialize, Serialize};

/// One filter and what is wanted of it; the planner fills in the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
pub(crate) struct GoalArgs {
    /// The filter: auto, a kind, or kind:parameter=value,…; `everbloom filters` lists kinds and parameters
    #[arg(long, value_name = "SPEC", default_value = "auto", value_parser = quantity::spec, help_heading = "Filter")]
    #[serde(with = "quantity::as_text")]
    pub(crate) filter: Spec,
    #[serde(flatten)]
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
}

/// What is wanted of any filter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args)]
pub(crate) struct WantedArgs {
    /// The most memory the filter may use, such as 64MiB; exact and scalable filters begin within it, and grow [default:
    /// 64MiB for dedup, or what --expect keys take; for build what --expect keys at --fpr take; compare needs it, unless every --filter has a size of
    /// its own]
    ///
    /// Sizes: k, M, G or KiB, MiB, GiB are times 1024, KB, MB, GB times 1000, B or nothing bytes, b bits
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits, allow_negative_numbers = true, help_heading = "Filter")]
    pub(crate) memory: Option<u64>,
    /// The highest rate of false positives [default: 0.1%]
    #[arg(long, alias = "max-fpr", value_name = "RATE", value_parser = quantity::rate, allow_negative_numbers = true, help_heading = "Filter")]
    pub(crate) fpr: Option<f64>,
    /// How many distinct keys to expect, such as 1000000, 1e6, 10k or 5M
    #[arg(long, value_name = "COUNT", value_parser = quantity::count, allow_negative_numbers = true, help_heading = "Filter")]
    pub(crate) expect: Option<u64>,
    /// The seed of hashing and of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = quantity::seed, allow_negative_numbers = true, help_heading = "Filter")]
    pub(crate) seed: u64,
}

/// Memory of a filter over a stream when none is asked for: 64 MiB.
pub(crate) const DEFAULT_MEMORY_BITS: u64 = 64 << 23;
/// The highest rate of false positives when none is given.
pub(crate) const DEFAULT_FPR: f64 = 0.001;

impl WantedArgs {
    /// The goal as typed.
    pub(crate) fn goal(&self) -> Goal {
        let goal = Goal::new().hashing(self.hashing());
        limited(goal, self.memory, self.fpr, self.expect).default_fpr(DEFAULT_FPR)
    }

    /// How keys are hashed.
    pub(crate) fn hashing(&self) -> Hashing {
        Hashing::seeded(self.seed)
    }
}

/// The goal with what was given.
pub(crate) fn limited(goal: Goal, memory: Option<u64>, fpr: Option<f64>, expect: Option<u64>) -> Goal {
    let goal = memory.into_iter().fold(goal, Goal::memory_bits);
    let goal = fpr.into_iter().fold(goal, Goal::fpr);
    expect.into_iter().fold(goal, Goal::expected_items)
}

impl Default for GoalArgs {
    fn default() -> Self {
        GoalArgs { filter: Spec::new(AUTO), wanted: WantedArgs::default() }
    }
}

impl GoalArgs {
    /// The goal as typed.
    pub(crate) fn goal(&self) -> Goal {
        self.wanted.goal()
    }

    /// How keys are hashed.
    pub(crate) fn hashing(&self) -> Hashing {
        self.wanted.hashing()
    }
}
