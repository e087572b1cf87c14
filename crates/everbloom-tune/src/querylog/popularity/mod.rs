//! How many hashes each key deserves, where both the members of a set and the negative queries are skewed.
//!
//! A class is a key, or a bucket of keys, with its share of the members and its share of the negative queries.
//! Share i gets its own number of hashes k_i, the same at insertion and at query, and a negative query for it is
//! wrong with probability B^k_i, B being the share of set bits. So the rate of false positives is
//!
//! ```text
//! Σ misses_i · B^k_i,     B = 1 − e^(−load / bits_per_key),     load = Σ members_i · k_i
//! ```
//!
//! (\[Zhong et al. 2008\], eqs. 5 and 6, for large filters), to be minimised over whole k_i in a range.
//!
//! # The solver
//!
//! [`Allocation::solve`]. At a fixed fill B this is a knapsack: raising a class from k to k + 1 takes `members_i` of
//! the load and gains `misses_i·B^k·(1 − B)`, so per unit of load it gains `score_i·B^k·(1 − B)` with score =
//! misses / members. That falls with k, so taking steps in order of gain is the optimum of the linear relaxation, and
//! all but one step of it are whole. The classes are sorted by score once; a fill and a threshold of gain then
//! describe a solution by one boundary per level, found by bisection, and its rate follows from prefix sums. The fill
//! is searched as well, each candidate scored at the fill that it really causes.
//!
//! **Where we differ from the paper.** It fixes B = ½, which is right for real-valued k alone. With k in a range it is
//! the costly mistake: for Zipf 2 over 10^4 keys at 8 bits a key and k in 1..10 the rate is 9.8e-4 at B = ½ and 2.0e-5
//! at the best fill. Its programme takes time in N·2^k_max; this one takes a sort.
//!
//! # The certificate
//!
//! [`Allocation::lower_bound`] is a rate that no choice of whole numbers in the range can beat, from the
//! Lagrangian dual. It shares the sorted classes with the solver, but neither its search nor its formula;
//! the rate of a solution is summed over the classes as they were given.
//!
//! # The rivals
//!
//! The paper's algorithms, each scored at its own fill: [`standard`](Allocation::standard), the real-number optimum
//! ([`real_optimum`](Allocation::real_optimum), eqs. 14 and 15), its [`rounding`](Allocation::rounding), the
//! knapsack at half fill ([`fixed_fill`](Allocation::fixed_fill)), the 2-approximation by
//! [`exhaustive_partition`](Allocation::exhaustive_partition), the (2 + ε)
//! [`dynamic_programme`](Allocation::dynamic_programme) and [`limited`](Allocation::limited) optimisation. A [`Solver`] names
//! the three that answer the whole problem; [`Allocation::for_rate`] turns it round and finds the smallest filter for a rate.
//!
//! ```
//! use everbloom_tune::querylog::popularity::{Allocation, Share};
//!
//! // Half of the negative queries ask for keys that are hardly ever members.
//! let classes = vec![Share::new(0.01, 0.5), Share::new(0.99, 0.5)];
//! let problem = Allocation::new(classes, 8.0, 1..=32)?;
//! let best = problem.solve();
//! assert!(best.solution.hashes[0] > best.solution.hashes[1]);
//! assert!(best.lower_bound <= best.solution.fpr);
//! assert!(best.solution.fpr < 0.6 * problem.standard().fpr);
//! # Ok::<(), everbloom::Error>(())
//! ```

mod bound;
mod free_fill;
mod partition;
mod polish;
mod programme;
mod ranked;
mod real;
mod rivals;
mod solver;

use everbloom::sizing::closed_forms::one_minus_exp;
use everbloom::{Error, Result};
use libm::exp;
use ranked::Ranked;
pub use real::RealOptimum;
pub use solver::Solver;
use std::ops::RangeInclusive;

/// More hashes than this for one key are not offered: at half fill they would err once in four billion.
pub const MAX_HASHES: u8 = 32;

/// A key or a bucket of keys: how likely it is in a set, how likely a negative query asks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Its share of the members (the paper's p).
    pub members: f64,
    /// Its share of the queries for keys that are not members (the paper's q′).
    pub misses: f64,
}

impl Share {
    /// A class with these shares, or weights: they are divided by their sums.
    pub fn new(members: f64, misses: f64) -> Self {
        Share { members, misses }
    }
}

/// Numbers of hashes for every class, and what follows from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The number of hashes of each class, in the order the classes were given.
    pub hashes: Vec<u8>,
    /// Hashes per member on average.
    pub load: f64,
    /// The share of bits that are set.
    pub fill: f64,
    /// The rate of false positives among negative queries, at that fill.
    pub fpr: f64,
}

/// A solution, and a bound that no solution can beat.
#[derive(Debug, Clone, PartialEq)]
pub struct Certified {
    /// The numbers of hashes.
    pub solution: Solution,
    /// A rate that no whole numbers of hashes in the range can beat.
    pub lower_bound: f64,
}

impl Certified {
    /// How much worse than the best the solution can be at most: 0.01 for one per cent.
    pub fn gap(&self) -> f64 {
        if self.solution.fpr == 0.0 { 0.0 } else { self.solution.fpr / self.lower_bound - 1.0 }
    }
}

/// What is to be solved: classes, memory, and the range of hashes.
#[derive(Debug, Clone)]
pub struct Allocation {
    classes: Vec<Share>,
    bits_per_key: f64,
    min_hashes: u8,
    max_hashes: u8,
}

impl Allocation {
    /// The problem of choosing hashes within `hashes` for a filter of `bits_per_key` bits per member.
    ///
    /// The shares need not sum to 1; they are divided by their sums.
    pub fn new(classes: Vec<Share>, bits_per_key: f64, hashes: RangeInclusive<u8>) -> Result<Self> {
        let (min_hashes, max_hashes) = (*hashes.start(), *hashes.end());
        check_range(min_hashes, max_hashes)?;
        if !(bits_per_key > 0.0 && bits_per_key.is_finite()) {
            return Err(Error::parameter("bits_per_key", bits_per_key, "above 0", "8 is a usual choice"));
        }
        let classes = normalised(classes)?;
        Ok(Allocation { classes, bits_per_key, min_hashes, max_hashes })
    }

    /// The classes, their shares summing to 1.
    pub fn classes(&self) -> &[Share] {
        &self.classes
    }

    /// Bits of the filter per member.
    pub fn bits_per_key(&self) -> f64 {
        self.bits_per_key
    }

    /// The numbers of hashes that a class may have.
    pub fn hashes(&self) -> RangeInclusive<u8> {
        self.min_hashes..=self.max_hashes
    }

    /// The best numbers of hashes that we know how to find, and how far from the optimum they can be at most.
    pub fn solve(&self) -> Certified {
        let ranked = Ranked::new(&self.classes);
        let solution = free_fill::solve(self, &ranked);
        let lower_bound = bound::lower_bound(self, &ranked, solution.fpr);
        Certified { solution, lower_bound }
    }

    /// The best numbers of hashes without the certificate.
    pub fn solve_uncertified(&self) -> Solution {
        free_fill::solve(self, &Ranked::new(&self.classes))
    }

    /// The share of set bits when members have so many hashes on average.
    pub fn fill(&self, load: f64) -> f64 {
        one_minus_exp(load / self.bits_per_key)
    }

    /// What follows from these numbers of hashes, class by class.
    ///
    /// # Panics
    ///
    /// When there are not as many numbers as classes.
    pub fn scored(&self, hashes: Vec<u8>) -> Solution {
        assert_eq!(hashes.len(), self.classes.len(), "one number of hashes per class");
        let load: f64 = self.classes.iter().zip(&hashes).map(|(class, &count)| class.members * f64::from(count)).sum();
        let fill = self.fill(load);
        let rates = powers(fill);
        let fpr = self.classes.iter().zip(&hashes).map(|(class, &count)| class.misses * rates[usize::from(count)]);
        let fpr = fpr.sum();
        Solution { hashes, load, fill, fpr }
    }

    /// d fill / d load.
    fn fill_slope(&self, load: f64) -> f64 {
        exp(-load / self.bits_per_key) / self.bits_per_key
    }

    /// How many times a class can be raised by one hash.
    fn steps(&self) -> usize {
        usize::from(self.max_hashes - self.min_hashes)
    }
}

/// The most hashes that a small filter of this many bits should give a key.
///
/// The rate B^k takes the share of set bits for constant. It varies, and a power of it is larger on average than the
/// power of the average: at half fill by about e^(0.31·k·(k − 1)/(2m)), which is 1.06 for 20 hashes in 1,024 bits and
/// 1.8 for 32 in 256. Up to the number returned it is at most a twentieth.
pub fn hashes_within(num_bits: u64) -> u8 {
    // Var(fill) / fill² = e^(−2c)·(e^c − 1 − c)/(m·B²) with c = ln 2 and B = ½.
    let spread = (1.0 - std::f64::consts::LN_2) / num_bits.max(1) as f64;
    let excess = |hashes: u8| f64::from(hashes) * (f64::from(hashes) - 1.0) / 2.0 * spread;
    (1..=MAX_HASHES).rev().find(|&hashes| excess(hashes) <= libm::log(1.05)).unwrap_or(1)
}

/// B^k for every k up to the most; B^0 is 1 even in an empty filter.
fn powers(fill: f64) -> [f64; MAX_HASHES as usize + 1] {
    let mut powers = [1.0; MAX_HASHES as usize + 1];
    for count in 1..powers.len() {
        powers[count] = powers[count - 1] * fill;
    }
    powers
}

fn check_range(min_hashes: u8, max_hashes: u8) -> Result<()> {
    if !(1..=MAX_HASHES).contains(&max_hashes) {
        let needed = format!("between 1 and {MAX_HASHES}");
        return Err(Error::parameter("max_hashes", max_hashes, needed, "try 32"));
    }
    if min_hashes > max_hashes {
        let needed = format!("at most max_hashes, which is {max_hashes}");
        return Err(Error::parameter("min_hashes", min_hashes, needed, "1 is a usual choice"));
    }
    Ok(())
}

fn normalised(mut classes: Vec<Share>) -> Result<Vec<Share>> {
    if classes.len() > u32::MAX as usize {
        return Err(Error::parameter("classes", classes.len(), format!("at most {}", u32::MAX), "bucket the keys"));
    }
    let members = checked_sum("member shares", classes.iter().map(|class| class.members))?;
    let misses = checked_sum("miss shares", classes.iter().map(|class| class.misses))?;
    for class in &mut classes {
        class.members /= members;
        class.misses /= misses;
    }
    Ok(classes)
}

fn checked_sum(name: &'static str, shares: impl Iterator<Item = f64>) -> Result<f64> {
    let mut sum = 0.0;
    for (index, share) in shares.enumerate() {
        if !(share >= 0.0 && share.is_finite()) {
            let given = format!("{share} for class {}", index + 1);
            return Err(Error::parameter(name, given, "0 or above", "give shares or counts"));
        }
        sum += share;
    }
    match sum {
        // Anything smaller could not be divided by without losing its digits.
        sum if sum >= f64::MIN_POSITIVE && sum.is_finite() => Ok(sum),
        sum => Err(Error::parameter(name, format!("{sum} in all"), "a positive sum", "give shares or counts")),
    }
}

#[cfg(test)]
mod tests;
