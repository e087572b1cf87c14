//! The Markov chain of one cell that arrivals raise and random deletions lower.
//!
//! An arrival of importance class v raises its cells to at least v; deletions lower a cell by one, at a rate
//! that is the same for all cells. A cell's value then is the greatest of (what an arrival wrote − how often
//! the cell was lowered since), so it is zero if and only if every class-v arrival of the past lies before
//! the v-th last lowering. Going back in time from now, with n lowerings met so far:
//!
//! ```text
//!   n = 0 ──lower──► 1 ──lower──► 2 ── … ──► cell_max: zero, whatever came before
//!     │ an arrival     │ an arrival
//!     ▼ writes > 0     ▼ writes > 1
//!   not zero         not zero
//! ```
//!
//! Arrivals of the same key write to the same cells, so what counts is not arrivals but the distinct keys
//! among the last τ of them, the footprint D(τ): between ages τ and τ + dτ the path in state n ends with
//! probability (hashes/cells)·Pr(v > n)·dD(τ). The chain is inhomogeneous because D is.

use crate::stream::Footprint;
use libm::{exp, pow};

/// A filter of such cells.
pub struct CellChain {
    /// Ages, from 0.
    ages: Vec<f64>,
    /// At each age: the probability of a path that has not ended, by lowerings met.
    open: Vec<Vec<f64>>,
    /// At each age: the probability that a path with so many lowerings never ends.
    safe: Vec<Vec<f64>>,
    num_hashes: f64,
}

/// What happens to a cell.
pub struct CellRates<'a> {
    /// Cells in all.
    pub num_cells: f64,
    /// Cells that a key sets.
    pub num_hashes: f64,
    /// Lowerings of all cells together at each arrival.
    pub decrements: f64,
    /// The share of arrivals that write more than 0, 1, … up to the greatest value.
    pub above: &'a [f64],
}

/// Steps in which the chain is followed: small compared with the time between two events of a cell.
const STEP: f64 = 0.1;

/// What is left of the paths when the chain has settled.
const NEGLIGIBLE: f64 = 1e-7;

impl CellChain {
    /// Follows a cell back through a stream of so many arrivals.
    pub fn new(rates: &CellRates<'_>, footprint: &Footprint, arrivals: f64) -> Self {
        let lower = rates.decrements / rates.num_cells;
        let touch = rates.num_hashes / rates.num_cells;
        let step = STEP / lower.max(touch).max(1e-300);
        let top = rates.above.len();
        let mut paths = vec![0.0; top + 1];
        paths[0] = 1.0;
        let mut chain =
            CellChain { ages: vec![0.0], open: vec![paths.clone()], safe: Vec::new(), num_hashes: rates.num_hashes };
        let (mut age, mut ends) = (0.0, Vec::new());
        while age < arrivals && paths[..top].iter().sum::<f64>() > NEGLIGIBLE {
            // Finer at first, where lags are short, and wider where little is left to happen.
            let width = (0.05 * age + 0.02 * step).min(step).max(1.0).min(arrivals - age);
            let keys = touch * (footprint.distinct(age + width) - footprint.distinct(age));
            let end: Vec<f64> = rates.above.iter().map(|above| exp(-0.5 * keys * above)).collect();
            advance(&mut paths, &end, lower * width);
            age += width;
            ends.push((end, lower * width));
            chain.ages.push(age);
            chain.open.push(paths.clone());
        }
        chain.safe = safe_paths(&ends, top);
        chain
    }

    /// The place of an age among the steps, and how far it is to the next.
    fn place(&self, age: f64) -> (usize, f64) {
        let after = self.ages.partition_point(|step| *step <= age);
        if after >= self.ages.len() {
            return (self.ages.len() - 1, 0.0);
        }
        let (start, end) = (self.ages[after - 1], self.ages[after]);
        (after - 1, (age - start) / (end - start))
    }

    fn between(&self, age: f64, value: impl Fn(usize) -> f64) -> f64 {
        let (place, share) = self.place(age);
        match share {
            0.0 => value(place),
            _ => value(place) * (1.0 - share) + value(place + 1) * share,
        }
    }

    /// The probability that a cell is zero after so many arrivals.
    pub fn zeros(&self, arrivals: f64) -> f64 {
        self.between(arrivals, |place| self.open[place].iter().sum())
    }

    /// The rate of false positives after so many arrivals.
    pub fn fpr(&self, arrivals: f64) -> f64 {
        pow(1.0 - self.zeros(arrivals), self.num_hashes)
    }

    /// The rate of false negatives of keys that wrote `value` so many arrivals ago: no cell of theirs may be
    /// zero.
    pub fn fnr(&self, lag: f64, value: usize) -> f64 {
        let zero = self.between(lag, |place| {
            self.open[place].iter().zip(&self.safe[place]).skip(value).map(|(open, safe)| open * safe).sum()
        });
        1.0 - pow(1.0 - zero, self.num_hashes)
    }
}

/// One step back: half of the endings, the lowerings, the other half.
fn advance(paths: &mut [f64], end: &[f64], lowered: f64) {
    paths.iter_mut().zip(end).for_each(|(path, end)| *path *= end);
    let top = paths.len() - 1;
    // From the top down, so that what arrives is not moved again.
    for from in (0..top).rev() {
        let (mass, mut chance) = (paths[from], exp(-lowered));
        let mut rest = mass;
        paths[from] = 0.0;
        for (met, to) in (from..top).enumerate() {
            paths[to] += mass * chance;
            rest -= mass * chance;
            chance *= lowered / (met as f64 + 1.0);
        }
        paths[top] += rest.max(0.0);
    }
    paths.iter_mut().zip(end).for_each(|(path, end)| *path *= end);
}

/// At each age, by lowerings met: the probability that a path does not end before the beginning.
fn safe_paths(ends: &[(Vec<f64>, f64)], top: usize) -> Vec<Vec<f64>> {
    let mut safe = vec![vec![1.0; top + 1]];
    for (end, lowered) in ends.iter().rev() {
        let later = &safe[safe.len() - 1];
        let after: Vec<f64> = (0..=top).map(|met| later[met] * end.get(met).copied().unwrap_or(1.0)).collect();
        let before = |met: usize| {
            let (mut chance, mut sum, mut left) = (exp(-*lowered), 0.0, 1.0);
            for (count, to) in (met..top).enumerate() {
                sum += chance * after[to];
                left -= chance;
                chance *= lowered / (count as f64 + 1.0);
            }
            (sum + left.max(0.0) * after[top]) * end.get(met).copied().unwrap_or(1.0)
        };
        let earlier = (0..=top).map(before).collect();
        safe.push(earlier);
    }
    safe.reverse();
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    fn endless() -> Stream {
        // Practically all distinct: very few of the first 10^9 arrivals repeat.
        Stream::uniform(1 << 40, (1 << 40) - (1 << 30)).expect("a stream")
    }

    #[test]
    fn distinct_arrivals_settle_at_the_stable_point() {
        // Deng and Rafiei, theorem 3: Pr0 = (1/(1 + K/P))^Max, but for 1/m.
        for (cell_max, decrements) in [(1, 4.0), (3, 10.0), (7, 26.0)] {
            let rates = CellRates { num_cells: 65_536.0, num_hashes: 3.0, decrements, above: &vec![1.0; cell_max] };
            let chain = CellChain::new(&rates, &endless().footprint(), 1e9);
            let stable = pow(1.0 / (1.0 + 3.0 / decrements), cell_max as f64);
            assert!((chain.zeros(1e9) / stable - 1.0).abs() < 2e-3, "{} of {stable}", chain.zeros(1e9));
            assert_eq!(chain.zeros(0.0), 1.0);
        }
    }

    #[test]
    fn classes_settle_at_the_product_over_values() {
        // p·(F_{j+1} − F_j) = k·Pr(v > j)·F_j for every value j.
        let (above, decrements, hashes) = ([0.75, 0.5, 0.25], 5.0, 4.0);
        let rates = CellRates { num_cells: 32_768.0, num_hashes: hashes, decrements, above: &above };
        let chain = CellChain::new(&rates, &endless().footprint(), 1e9);
        let product: f64 = above.iter().map(|above| 1.0 / (1.0 + hashes * above / decrements)).product();
        assert!((chain.zeros(1e9) / product - 1.0).abs() < 2e-3, "{} of {product}", chain.zeros(1e9));
        // A key that wrote nothing is a key that never came.
        assert!((chain.fnr(5e3, 0) - (1.0 - chain.fpr(1e9))).abs() < 1e-3);
    }

    #[test]
    fn what_mattered_more_is_missed_less_and_what_is_older_more() {
        let rates = CellRates { num_cells: 8192.0, num_hashes: 4.0, decrements: 7.0, above: &[0.75, 0.5, 0.25] };
        let chain = CellChain::new(&rates, &endless().footprint(), 1e9);
        for lag in [100.0, 1000.0, 4000.0] {
            assert!((0..3).all(|value| chain.fnr(lag, value) > chain.fnr(lag, value + 1)), "{lag}");
            assert!(chain.fnr(lag, 2) < chain.fnr(2.0 * lag, 2), "{lag}");
        }
    }
}
