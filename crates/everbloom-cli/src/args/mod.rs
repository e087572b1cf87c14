//! What can be typed, shared by all subcommands.

mod cost;
mod goal;
mod keys;
mod promise;
pub(crate) mod quantity;
mod servers;

pub(crate) use cost::CostArgs;
pub(crate) use goal::{DEFAULT_FPR, DEFAULT_MEMORY_BITS, GoalArgs, WantedArgs, limited};
pub(crate) use keys::{ImportanceArgs, KeyArgs, OnError, Scale};
pub(crate) use promise::{PromiseArgs, with_exit_codes};
pub(crate) use servers::{DEFAULT_SHARDS, ServersArgs, in_shards, refuse_split_window};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Whether a repeat counts as a fresh arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Refresh {
    /// A key stays while it keeps coming
    #[default]
    Yes,
    /// A key goes when the line that was written leaves the window
    No,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
}
