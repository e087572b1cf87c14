//! What the benches share: options, the clock, interleaved rounds, ratios with their spread.
//!
//! Every contender runs once in every round, in an order that turns from round to round, so that a
//! busy neighbour or a changed clock rate hits all of them alike. A ratio is taken within each round
//! and only then summed up, as median and quartiles. Time is this thread's CPU time.
#![allow(dead_code, unreachable_pub, reason = "each bench uses its part")]

pub mod floor;
pub mod keys;
pub mod naive;
pub mod peers;
pub mod table;

use everbloom_cells::simd::InstructionSet;
use rustix::time::{ClockId, clock_gettime};

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct Options {
    /// A smoke run: small sizes, few rounds.
    pub quick: bool,
    /// How often every contender runs.
    pub rounds: usize,
    /// The sizes to run, in bytes.
    pub sizes: Vec<u64>,
}

impl Options {
    /// Reads the command line; `--bench` comes from cargo.
    pub fn from_arguments(sizes: &[u64], quick_sizes: &[u64]) -> Self {
        limit_instructions();
        let mut options = Options { quick: false, rounds: 25, sizes: sizes.to_vec() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number =
                || -> u64 { arguments.next().and_then(|text| text.parse().ok()).unwrap_or_else(|| usage()) };
            match argument.as_str() {
                "--bench" => {}
                "--quick" => (options.quick, options.rounds, options.sizes) = (true, 5, quick_sizes.to_vec()),
                "--rounds" => options.rounds = number() as usize,
                "--kib" => options.sizes = vec![number() << 10],
                "--help" | "-h" => {
                    println!("{USAGE}");
                    std::process::exit(0)
                }
                _ => usage(),
            }
        }
        options.rounds = options.rounds.max(1);
        options
    }
}

const USAGE: &str = "options: --quick (small sizes, few rounds), --rounds N, --kib N (one size)
EVERBLOOM_ISA=portable|avx2|avx512: no newer instructions than these";

/// Uses no newer instructions than `EVERBLOOM_ISA` names; without it, the newest.
fn limit_instructions() {
    let Ok(name) = std::env::var("EVERBLOOM_ISA") else { return };
    let Some(set) = InstructionSet::ALL.into_iter().find(|set| set.name() == name) else { usage() };
    let used = set.limit();
    if used != set {
        eprintln!("this machine has no {set}: {used} is used");
    }
}

fn usage() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2)
}

/// Nanoseconds of CPU time that this thread has used.
pub fn thread_nanoseconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Nanoseconds of CPU time that this process has used, on all its threads.
pub fn process_nanoseconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Nanoseconds per item of some work on `items`.
pub fn per_item(items: usize, work: impl FnOnce()) -> f64 {
    let start = thread_nanoseconds();
    work();
    (thread_nanoseconds() - start) / items as f64
}

/// One number per round.
#[derive(Debug, Clone, Default)]
pub struct Samples(pub Vec<f64>);

/// The middle of some samples and the quartiles around it.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Samples {
    /// Median and quartiles.
    pub fn spread(&self) -> Spread {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted.get(((sorted.len().max(1) - 1) as f64 * share).round() as usize).copied();
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| at(share).unwrap_or(f64::NAN));
        Spread { low, median, high }
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.spread().median
    }

    /// How these compare with others, round by round.
    pub fn over(&self, other: &Samples) -> Spread {
        Samples(self.0.iter().zip(&other.0).map(|(one, other)| one / other).collect()).spread()
    }

    /// The sum of both, round by round.
    pub fn plus(&self, other: &Samples) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(one, other)| one + other).collect())
    }
}

/// Which contenders run in what order in a round: all of them, starting from another one each time.
pub fn turn(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |step| (round + step) % contenders)
}
