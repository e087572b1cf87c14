//! `everbloom tune`: how many hashes each key deserves.

mod known;

use crate::args::Format;
use crate::failure::{Ending, Result};
use clap::Args;

/// Finds how many hashes each key deserves, from how popular keys are among members and among missing queries.
#[derive(Debug, Args)]
pub(crate) struct Tune {
    #[command(flatten)]
    known: known::Known,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

impl Tune {
    pub(crate) fn run(self) -> Result<Ending> {
        self.known.run(self.format)
    }
}
