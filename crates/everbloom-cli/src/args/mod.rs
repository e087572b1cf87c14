//! What can be typed, shared by all subcommands.

mod goal;
mod keys;
mod promise;
pub(crate) mod quantity;

pub(crate) use goal::{GoalArgs, WantedArgs};
pub(crate) use keys::{ImportanceArgs, KeyArgs, OnError, Scale};
pub(crate) use promise::{EXIT_CODES, PromiseArgs};

use clap::ValueEnum;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
}
