//! `everbloom tune`: what a query log teaches about building filters.

mod known;
mod log;

use crate::args::{Format, quantity};
use crate::failure::{Ending, Failure, Result};
use clap::{ArgGroup, Args, ValueEnum};
use everbloom_tune::querylog::popularity::{MAX_HASHES, Solver};

/// Tune a filter to a query log: find the best one for the queries that really come.
///
/// It learns from key lists and a log of queries, or from known popularities, and writes a scheme for build --scheme.
///
/// From a log, three filters are compared at equal total size: the standard one, one with a number of hashes for
/// each class of keys, and one that stores the most frequent negative queries exactly. They learn from the first
/// half of the log and are measured on the second.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  From the members of a set and the queries that came, then a filter that knows them:
    everbloom tune --keys members.txt --log queries.txt --memory 4KiB -o members.ebs
    everbloom build members.txt --scheme members.ebs -o members.ebf
    everbloom query members.ebf queries.txt --scheme members.ebs -c
  The smallest filter that is wrong for one negative query in a hundred:
    everbloom tune --keys members.txt --log queries.txt --target-rate 1% -o members.ebs
  From known popularities, by the paper's programme:
    everbloom tune --popularity shares.tsv --target-rate 1% --solver programme")]
#[command(group = ArgGroup::new("source").required(true).args(["popularity", "keys"]))]
#[command(group = ArgGroup::new("size").args(["memory", "target_rate"]))]
pub(crate) struct Tune {
    #[command(flatten)]
    log: log::Log,
    #[command(flatten)]
    known: known::Known,
    #[command(flatten)]
    hashes: Range,
    /// The smallest filter that errs for at most this share of negative queries, such as 0.1%: instead of --memory or
    /// --bits-per-key
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    target_rate: Option<f64>,
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
    /// The most hashes that a key may get [default: 32; 10 with the paper's solvers, whose time doubles with each]
    #[arg(long, value_name = "COUNT")]
    max_hashes: Option<u8>,
    /// How the numbers of hashes are found: by our solver, or by the paper's, to compare them
    #[arg(long, value_name = "SOLVER", default_value = "free-fill")]
    solver: SolverName,
}

/// The solvers that answer the whole problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SolverName {
    /// Ours: any number of keys, with the best share of set bits, and certified
    FreeFill,
    /// The paper's programme: half of the bits set, at most 3 times the best; thousands of keys
    Programme,
    /// The paper's 2-approximation: half of the bits set, every partition tried; a dozen keys
    Approximation,
}

impl Range {
    fn solver(&self) -> Solver {
        match self.solver {
            SolverName::FreeFill => Solver::FreeFill,
            SolverName::Programme => Solver::Programme,
            SolverName::Approximation => Solver::Approximation,
        }
    }

    fn max_hashes(&self) -> u8 {
        let usual =
            if self.solver == SolverName::FreeFill { MAX_HASHES } else { PAPERS_MAX_HASHES.max(self.min_hashes) };
        self.max_hashes.unwrap_or(usual)
    }
}

/// Refuses what takes more memory than the system gives, before it is begun: what is worked out meanwhile is not asked for
/// piece by piece.
fn check_room(bytes: usize, remedy: &str) -> Result<()> {
    let mut room: Vec<u8> = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| {
        let size = crate::report::short_size((bytes as u64).saturating_mul(8));
        Failure::new(format!("this may take {size} of memory, which could not be allocated; {remedy}"))
    })
}

/// The most hashes in the paper's experiments.
const PAPERS_MAX_HASHES: u8 = 10;

impl Tune {
    pub(crate) fn run(self) -> Result<Ending> {
        match &self.known.popularity {
            Some(popularity) => self.known.run(popularity, self.hashes, self.target_rate, self.format),
            None => self.log.run(self.hashes, self.target_rate, self.format),
        }
    }
}
