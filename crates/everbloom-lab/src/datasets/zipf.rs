//! Zipf: the key of rank r is drawn with probability ∝ r^−exponent.
//!
//! Rejection-inversion (Hörmann and Derflinger 1996): the discrete distribution under a continuous
//! hat whose integral has a closed inverse. Exact, no tables, about 1.1 trials a draw, for every
//! exponent ≥ 0 and any universe.

use super::{Arrival, Arrivals, Request, unreachable_share};
use crate::bad;
use everbloom::Result;
use everbloom_cells::key::Generator;
use libm::{exp, expm1, log, log1p, round};

const DEFAULT_EXPONENT: f64 = 1.0;

/// Larger universes are not needed to be told apart from infinite ones.
const MOST_KEYS: f64 = 1e15;

/// A sampler of ranks 1..=universe.
#[derive(Debug, Clone)]
pub struct Zipf {
    exponent: f64,
    universe: f64,
    integral_first: f64,
    integral_last: f64,
    always_below: f64,
}

impl Zipf {
    /// A sampler; `exponent` 0 is uniform.
    pub fn new(universe: u64, exponent: f64) -> Result<Self> {
        if !(0.0..=100.0).contains(&exponent) {
            return Err(bad("exponent", exponent, "between 0 and 100", "natural streams have about 1"));
        }
        if universe == 0 {
            return Err(bad("universe", universe, "at least 1", "ask for some keys"));
        }
        let mut zipf =
            Zipf { exponent, universe: universe as f64, integral_first: 0.0, integral_last: 0.0, always_below: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.universe + 0.5);
        zipf.always_below = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.hat(2.0));
        Ok(zipf)
    }

    /// x^−exponent.
    fn hat(&self, x: f64) -> f64 {
        exp(-self.exponent * log(x))
    }

    /// ∫ x^−exponent from 1, in a form that is smooth at exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let log_x = log(x);
        log_x * expm1_over(log_x * (1.0 - self.exponent))
    }

    /// Where the integral has this value.
    fn inverse(&self, value: f64) -> f64 {
        exp(value * log1p_over((value * (1.0 - self.exponent)).max(-1.0)))
    }

    /// A rank.
    pub fn rank(&self, generator: &mut Generator) -> u64 {
        loop {
            let area = self.integral_last + generator.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(area);
            let rank = round(x).clamp(1.0, self.universe);
            if rank - x <= self.always_below || area >= self.integral(rank + 0.5) - self.hat(rank) {
                return rank as u64;
            }
        }
    }

    /// Expected number of distinct ranks among so many draws.
    fn expected_distinct(&self, items: f64) -> f64 {
        let mass = self.mass();
        let seen = |rank: f64| -expm1(-items * self.hat(rank) / mass);
        self.sum(seen)
    }

    fn mass(&self) -> f64 {
        self.sum(|rank| self.hat(rank))
    }

    /// Σ over the ranks: the first thousand one by one, then bins that grow by 0.2 %, each counted at
    /// its middle.
    fn sum(&self, value: impl Fn(f64) -> f64) -> f64 {
        let (mut total, mut rank, mut width) = (0.0, 1.0, 1.0);
        while rank <= self.universe {
            let counted = f64::min(width, self.universe - rank + 1.0);
            total += counted * value(rank + 0.5 * (counted - 1.0));
            rank += width;
            width = (rank / 500.0).floor().max(1.0);
        }
        total
    }
}

/// expm1(x)/x, 1 at 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { expm1(x) / x } else { 1.0 + 0.5 * x }
}

/// log1p(x)/x, 1 at 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { log1p(x) / x } else { 1.0 - 0.5 * x }
}

/// The universe that gives the wanted share of distinct arrivals.
fn universe_for(items: u64, share: f64, exponent: f64) -> Result<u64> {
    let wanted = share * items as f64;
    let distinct =
        |universe: f64| Zipf::new(universe as u64, exponent).map(|zipf| zipf.expected_distinct(items as f64));
    if distinct(MOST_KEYS)? < wanted {
        return Err(unreachable_share(
            share,
            "the exponent makes the first keys repeat too often",
            "lower the share or the exponent",
        ));
    }
    let (mut low, mut high) = (1.0, MOST_KEYS);
    while high / low > 1.0 + 1e-6 && high - low > 1.0 {
        let middle = (low * high).sqrt();
        if distinct(middle)? < wanted { low = middle } else { high = middle }
    }
    Ok(high as u64)
}

pub(super) fn open(request: &Request) -> Result<Arrivals> {
    let (items, exponent) = (request.items(), request.exponent.unwrap_or(DEFAULT_EXPONENT));
    Zipf::new(1, exponent)?;
    let universe = match request.distinct {
        Some(share) => universe_for(items, share, exponent)?,
        None => items.max(1),
    };
    let (zipf, mut generator) = (Zipf::new(universe, exponent)?, Generator::seeded(request.seed));
    Ok(Box::new((0..items).map(move |_| Arrival { key: zipf.rank(&mut generator) - 1, importance: 1 })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_their_probabilities() {
        for exponent in [0.0, 0.5, 1.0, 1.5, 3.0] {
            let (universe, draws) = (50u64, 200_000);
            let zipf = Zipf::new(universe, exponent).expect("a sampler");
            let mut generator = Generator::seeded(9);
            let mut counts = vec![0.0; universe as usize];
            (0..draws).for_each(|_| counts[zipf.rank(&mut generator) as usize - 1] += 1.0);
            let mass: f64 = (1..=universe).map(|rank| (rank as f64).powf(-exponent)).sum();
            let misfit: f64 = (1..=universe)
                .zip(&counts)
                .map(|(rank, count)| {
                    let expected = f64::from(draws) * (rank as f64).powf(-exponent) / mass;
                    (count - expected).powi(2) / expected
                })
                .sum();
            // χ² with 49 degrees of freedom: mean 49, standard deviation √98.
            assert!(misfit < 49.0 + 4.0 * 98f64.sqrt(), "χ² of {misfit} at exponent {exponent}");
        }
    }

    #[test]
    fn sums_over_bins_are_near_exact() {
        let zipf = Zipf::new(100_000, 1.0).expect("a sampler");
        let exact: f64 = (1..=100_000).map(|rank| 1.0 / f64::from(rank)).sum();
        assert!((zipf.mass() / exact - 1.0).abs() < 1e-5);
    }
}
