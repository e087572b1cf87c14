//! The shipped solver: steps in order of their gain, at the best fill.

use super::polish;
use super::ranked::{Boundaries, PerStep, Ranked};
use super::{Allocation, MAX_HASHES, Solution, powers};
use libm::{exp, log};

/// Loads tried on a logarithmic grid before the best is narrowed down.
const GRID: usize = 64;

/// Steps of the golden section: the bracket shrinks by 0.618 each, to a part in 10^5 of the grid's.
const NARROWINGS: usize = 24;

/// At this many times the bits per key, all bits are set.
const SATURATED: f64 = 40.0;

/// Up to so many classes the candidates of the whole grid are polished, not only the best.
const FEW_CLASSES: usize = 16;

/// A candidate and its rate at its own fill.
#[derive(Clone, Copy)]
struct Candidate {
    taken: Boundaries,
    fpr: f64,
}

pub(super) fn solve(problem: &Allocation, ranked: &Ranked) -> Solution {
    let search = Search { problem, ranked };
    let grid = search.grid();
    let mut candidates: Vec<Candidate> = grid.iter().map(|load| search.at_load(*load)).collect();
    let best = (0..candidates.len()).min_by(|one, other| candidates[*one].fpr.total_cmp(&candidates[*other].fpr));
    if let Some(best) = best {
        let neighbours = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
        candidates.push(search.narrow(neighbours));
    }
    candidates.extend((0..=problem.steps()).map(|level| search.scored(Boundaries::level(ranked, level))));
    search.best_of(candidates)
}

struct Search<'a> {
    problem: &'a Allocation,
    ranked: &'a Ranked,
}

impl Search<'_> {
    /// From the least load to the most that can be of use, evenly in the logarithm.
    fn grid(&self) -> Vec<f64> {
        let members = self.ranked.all_members();
        let least = (f64::from(self.problem.min_hashes) * members).max(self.ranked.least_load());
        let saturated = SATURATED * self.problem.bits_per_key;
        let most = (f64::from(self.problem.max_hashes) * members).min(saturated).max(least);
        let ratio = log(most / least) / (GRID - 1) as f64;
        (0..GRID).map(|point| least * exp(ratio * point as f64)).collect()
    }

    /// The better neighbour of a load, each scored at the fill that it causes.
    fn at_load(&self, load: f64) -> Candidate {
        let steps = self.problem.steps();
        let gains = gains(&powers(self.problem.fill(load))[usize::from(self.problem.min_hashes)..]);
        let added = load - f64::from(self.problem.min_hashes) * self.ranked.all_members();
        let bracket = self.ranked.bracket(&gains[..steps], added);
        let within = self.scored(self.ranked.fill_tie(&bracket, steps, added));
        let beyond = self.scored(bracket.beyond);
        if within.fpr <= beyond.fpr { within } else { beyond }
    }

    fn scored(&self, taken: Boundaries) -> Candidate {
        let steps = self.problem.steps();
        let least = f64::from(self.problem.min_hashes) * self.ranked.all_members();
        let fill = self.problem.fill(least + self.ranked.added_load(&taken, steps));
        let values = &powers(fill)[usize::from(self.problem.min_hashes)..=usize::from(self.problem.max_hashes)];
        Candidate { taken, fpr: self.ranked.total(&taken, values) }
    }

    /// Golden section over the logarithm of the load; the best candidate met on the way.
    fn narrow(&self, (low, high): (f64, f64)) -> Candidate {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let (mut low, mut high) = (log(low), log(high));
        let at = |log_load: f64| self.at_load(exp(log_load));
        let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_left, mut at_right) = (at(left), at(right));
        let mut best = if at_left.fpr <= at_right.fpr { at_left } else { at_right };
        for _ in 0..NARROWINGS {
            if at_left.fpr <= at_right.fpr {
                (high, right, at_right) = (right, left, at_left);
                left = high - GOLDEN * (high - low);
                at_left = at(left);
                best = if at_left.fpr < best.fpr { at_left } else { best };
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = low + GOLDEN * (high - low);
                at_right = at(right);
                best = if at_right.fpr < best.fpr { at_right } else { best };
            }
        }
        best
    }

    /// The best candidate after polishing; of few classes, of all candidates polished.
    fn best_of(&self, mut candidates: Vec<Candidate>) -> Solution {
        candidates.sort_by(|one, other| one.fpr.total_cmp(&other.fpr));
        candidates.dedup_by_key(|candidate| candidate.taken);
        let several = self.problem.classes().len() <= FEW_CLASSES;
        candidates.truncate(if several { candidates.len() } else { 1 });
        let polished = candidates.iter().map(|candidate| polish::polished(self.problem, self.solution(candidate)));
        polished.min_by(|one, other| one.fpr.total_cmp(&other.fpr)).unwrap_or_else(|| self.least())
    }

    fn solution(&self, candidate: &Candidate) -> Solution {
        let (min_hashes, max_hashes) = (self.problem.min_hashes, self.problem.max_hashes);
        let hashes = self.ranked.hashes(&candidate.taken, min_hashes, max_hashes, self.problem.classes().len());
        self.problem.scored(hashes)
    }

    fn least(&self) -> Solution {
        self.problem.scored(vec![self.problem.min_hashes; self.problem.classes().len()])
    }
}

/// What each step lowers a rate by, from the rates before and after it.
pub(super) fn gains(values: &[f64]) -> PerStep<f64> {
    let mut gains = [0.0; MAX_HASHES as usize];
    for (gain, pair) in gains.iter_mut().zip(values.windows(2)) {
        *gain = pair[0] - pair[1];
    }
    gains
}
