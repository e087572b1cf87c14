//! The paper's 2-approximation: every way to cut the ranked classes into runs of equal hashes (Theorem 1).

use super::ranked::{Boundaries, Ranked};
use super::rivals::HALF;
use super::{Allocation, MAX_HASHES, Solution, powers};
use everbloom::{Error, Result};

/// More partitions than this take too long.
const MOST_PARTITIONS: f64 = 2e7;

impl Allocation {
    /// The best partition at half fill (eq. 22), by trying all of them; refused where they are too many.
    ///
    /// Among solutions that follow the order of scores it is the best for B = ½ and a load of at most (m/n)·ln 2,
    /// and so at most twice the optimum there (Lemma 2). Scored at the fill it causes. If not even the least hashes
    /// fit into that load, they are the answer.
    pub fn exhaustive_partition(&self) -> Result<Solution> {
        let ranked = Ranked::new(self.classes());
        let partitions = binomial(ranked.len() + self.steps(), self.steps());
        if partitions > MOST_PARTITIONS {
            return Err(Error::Infeasible {
                wanted: format!("an exhaustive search over {} classes", ranked.len()),
                reason: format!("{} steps of hashes can be placed in {partitions:.1e} ways", self.steps()),
                remedy: format!("take fewer classes or hashes, up to {MOST_PARTITIONS:.0e} ways, or the other solvers"),
            });
        }
        let rates = powers(HALF);
        let budget = self.half_fill_load() - f64::from(self.min_hashes) * ranked.all_members();
        let mut search = Partitions {
            ranked: &ranked,
            rates: &rates[usize::from(self.min_hashes)..=usize::from(self.max_hashes)],
            taken: Boundaries([0; MAX_HASHES as usize]),
            best: (f64::INFINITY, Boundaries([0; MAX_HASHES as usize])),
        };
        search.place(0, ranked.len(), budget);
        let taken = search.best.1;
        Ok(self.scored(ranked.hashes(&taken, self.min_hashes, self.max_hashes, self.classes().len())))
    }
}

struct Partitions<'a> {
    ranked: &'a Ranked,
    rates: &'a [f64],
    taken: Boundaries,
    best: (f64, Boundaries),
}

impl Partitions<'_> {
    /// Tries every boundary of a step that is not beyond the one before, and all later ones.
    fn place(&mut self, step: usize, most: usize, budget: f64) {
        if step + 1 == self.rates.len() {
            let rate = self.ranked.total(&self.taken, self.rates);
            if rate < self.best.0 {
                self.best = (rate, self.taken);
            }
            return;
        }
        for count in 0..=most {
            let left = budget - self.ranked.members_of(count);
            if left < 0.0 && count > 0 {
                break;
            }
            self.taken.0[step] = count as u32;
            self.place(step + 1, count, left);
        }
        self.taken.0[step] = 0;
    }
}

/// n over k, as a double: only its size matters.
fn binomial(n: usize, k: usize) -> f64 {
    (0..k).map(|index| (n - index) as f64 / (index + 1) as f64).product()
}
