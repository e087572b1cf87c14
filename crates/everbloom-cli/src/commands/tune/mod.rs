//! `everbloom tune`: what a query log teaches about building filters.

mod known;
mod log;

use crate::args::Format;
use crate::failure::{Ending, Result};
use clap::{ArgGroup, Args};
use everbloom::querylog::popularity::MAX_HASHES;

/// Finds the best filter for skewed queries: from key lists and a query log, or from known popularities.
///
/// From a log, three filters are compared at equal total size: the standard one, one with a number of hashes for
/// each class of keys, and one that stores the most frequent negative queries exactly. They learn from the first
/// half of the log and are measured on the second.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["popularity", "keys"]))]
pub(crate) struct Tune {
    #[command(flatten)]
    log: log::Log,
    #[command(flatten)]
    known: known::Known,
    #[command(flatten)]
    hashes: Range,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// The hashes that a key may have.
#[derive(Debug, Clone, Copy, Args)]
struct Range {
    /// The fewest hashes that a key may get
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    min_hashes: u8,
    /// The most hashes that a key may get
    #[arg(long, value_name = "COUNT", default_value_t = MAX_HASHES)]
    max_hashes: u8,
}

impl Tune {
    pub(crate) fn run(self) -> Result<Ending> {
        match &self.known.popularity {
            Some(popularity) => self.known.run(popularity, self.hashes, self.format),
            None => self.log.run(self.hashes, self.format),
        }
    }
}
