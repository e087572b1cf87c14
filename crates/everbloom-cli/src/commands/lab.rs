//! `everbloom lab`: streams to try filters on.

mod generate;

use crate::failure::{Ending, Result};
use clap::Subcommand;

/// What to do in the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Write a synthetic stream, one key and importance a line
    Generate(generate::Generate),
}

impl Lab {
    pub(crate) fn run(self) -> Result<Ending> {
        match self {
            Lab::Generate(generate) => generate.run(),
        }
    }
}
