//! The solvers by name, and the question turned round: how small may a filter be for a rate?

use super::{Allocation, Share, Solution};
use everbloom::kind::rate_text;
use everbloom::{Error, Result};
use std::ops::RangeInclusive;

/// The rounding of the programme: a (2 + 1)-approximation, as in the lab.
const EPSILON: f64 = 1.0;

/// Bits per key between which the smallest filter for a rate is looked for.
const BITS_PER_KEY: (f64, f64) = (1.0 / 64.0, 1024.0);

/// How close to the smallest filter is close enough.
const PRECISION: f64 = 1e-3;

/// How the numbers of hashes are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Solver {
    /// Ours: steps in order of their gain, at the best fill.
    #[default]
    FreeFill,
    /// The paper's (2 + ε)-approximation by dynamic programming, at half fill, with ε = 1 (section 4.4).
    Programme,
    /// The paper's 2-approximation, at half fill, by trying every partition (Theorem 1); for few classes and hashes.
    Approximation,
}

impl Allocation {
    /// What a solver finds, scored at the fill it causes; the paper's refuse what would take too long.
    pub fn solve_with(&self, solver: Solver) -> Result<Solution> {
        match solver {
            Solver::FreeFill => Ok(self.solve_uncertified()),
            Solver::Programme => self.dynamic_programme(EPSILON),
            Solver::Approximation => self.exhaustive_partition(),
        }
    }

    /// The problem with the fewest bits per key, to a part in a thousand, for which a solver keeps `target_fpr`.
    ///
    /// ```
    /// use everbloom_tune::querylog::popularity::{Allocation, Share, Solver};
    ///
    /// let classes = vec![Share::new(0.01, 0.9), Share::new(0.99, 0.1)];
    /// let smallest = Allocation::for_rate(classes, 0.01, 1..=32, Solver::FreeFill)?;
    /// assert!(smallest.solve().solution.fpr <= 0.01);
    /// assert!(smallest.bits_per_key() < 6.0, "a standard filter takes 9.6");
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn for_rate(
        classes: Vec<Share>,
        target_fpr: f64,
        hashes: RangeInclusive<u8>,
        solver: Solver,
    ) -> Result<Allocation> {
        if !(target_fpr > 0.0 && target_fpr < 1.0) {
            return Err(Error::parameter("target_fpr", target_fpr, "above 0 and below 1", "1% is a usual choice"));
        }
        let (mut low, most) = BITS_PER_KEY;
        let mut best = Allocation::new(classes, low, hashes)?;
        let mut high = loop {
            if best.solve_with(solver)?.fpr <= target_fpr {
                break best.bits_per_key;
            }
            if best.bits_per_key >= most {
                return Err(Error::Infeasible {
                    wanted: format!("a rate of {}", rate_text(target_fpr)),
                    reason: format!("{most} bits per key and at most {} hashes do not reach it", best.max_hashes),
                    remedy: "allow more hashes, or a higher rate".into(),
                });
            }
            low = best.bits_per_key;
            best.bits_per_key *= 2.0;
        };
        // The upper end always keeps the rate, even where a solver does a little worse with a little more memory.
        while high > low * (1.0 + PRECISION) {
            best.bits_per_key = (low + high) / 2.0;
            match best.solve_with(solver)?.fpr <= target_fpr {
                true => high = best.bits_per_key,
                false => low = best.bits_per_key,
            }
        }
        best.bits_per_key = high;
        Ok(best)
    }

    /// The bits per key of a standard filter for a rate: the fewest of any one number of hashes.
    pub fn standard_bits(target_fpr: f64) -> f64 {
        // With k hashes a rate f needs a fill of f^(1/k) = 1 − e^(−k/bits).
        let bits = |hashes: u32| {
            let fill = libm::pow(target_fpr, 1.0 / f64::from(hashes));
            -f64::from(hashes) / libm::log1p(-fill)
        };
        (1..=128).map(bits).fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zipf(classes: u32, exponent: f64) -> Vec<Share> {
        (1..=classes).map(|rank| Share::new(1.0, libm::pow(f64::from(rank), -exponent))).collect()
    }

    #[test]
    fn the_smallest_filter_keeps_the_rate_and_a_smaller_one_does_not() {
        for (solver, classes, most) in
            [(Solver::FreeFill, 5000, 32), (Solver::Programme, 300, 8), (Solver::Approximation, 12, 6)]
        {
            for rate in [0.1, 0.01, 0.001] {
                let found = Allocation::for_rate(zipf(classes, 1.2), rate, 1..=most, solver).expect("reachable");
                assert!(found.solve_with(solver).expect("small").fpr <= rate, "{solver:?} at {rate}");
                let less = 0.98 * found.bits_per_key();
                let smaller = Allocation::new(zipf(classes, 1.2), less, 1..=most).expect("a problem");
                assert!(smaller.solve_with(solver).expect("small").fpr > rate, "{solver:?} at {rate}: {less} do");
            }
        }
    }

    #[test]
    fn no_solver_beats_the_bound_and_ours_needs_the_fewest_bits() {
        let at = |solver| Allocation::for_rate(zipf(14, 1.5), 0.002, 1..=6, solver).expect("reachable").bits_per_key();
        let (ours, programme, partition) = (at(Solver::FreeFill), at(Solver::Programme), at(Solver::Approximation));
        assert!(ours <= programme * (1.0 + PRECISION) && ours <= partition * (1.0 + PRECISION), "{ours}");
        assert!(ours < Allocation::standard_bits(0.002));
        // At its own size, the certificate holds for all of them.
        let problem = Allocation::new(zipf(14, 1.5), programme, 1..=6).expect("a problem");
        let bound = problem.solve().lower_bound;
        for solver in [Solver::FreeFill, Solver::Programme, Solver::Approximation] {
            assert!(problem.solve_with(solver).expect("small").fpr >= bound * (1.0 - 1e-9), "{solver:?}");
        }
    }

    #[test]
    fn a_standard_filter_needs_what_the_textbook_says() {
        // (1/ln 2)·log2(1/f) for the best real number of hashes; whole ones need a little more.
        for rate in [0.5, 0.1, 0.01, 1e-3, 1e-6] {
            let textbook = libm::log2(1.0 / rate) / std::f64::consts::LN_2;
            let bits = Allocation::standard_bits(rate);
            assert!((textbook..1.01 * textbook + 1e-9).contains(&bits), "{rate}: {bits} against {textbook}");
        }
    }

    #[test]
    fn rates_that_cannot_be_are_refused() {
        let ask = |rate| Allocation::for_rate(zipf(5, 1.0), rate, 1..=2, Solver::FreeFill);
        assert!(ask(0.0).is_err() && ask(1.0).is_err() && ask(f64::NAN).is_err());
        let error = ask(1e-12).expect_err("two hashes in 1,024 bits").to_string();
        assert!(error.contains("allow more hashes"), "{error}");
    }
}
