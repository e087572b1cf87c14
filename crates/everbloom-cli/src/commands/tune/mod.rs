//! `everbloom tune`: what a query log teaches about building filters.

mod known;
mod log;

use crate::args::Format;
use crate::failure::{Ending, Result};
use clap::{ArgGroup, Args};
use everbloom::querylog::popularity::MAX_HASHES;

/// Finds what to build for skewed queries: from key lists and a query log, or from known popularities.
///
/// From a log, three filters compete at equal total bytes: the standard one, one with hashes per class of keys,
/// and one that knows hot negatives by heart. The first half of the log teaches, the second judges.
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
