//! The simple rivals: one number of hashes for all, the knapsack at half fill, and few keys optimised.

use super::free_fill::gains;
use super::ranked::Ranked;
use super::{Allocation, Share, Solution, powers};
use everbloom::sizing;
use std::f64::consts::LN_2;

/// The fill that the paper fixes.
pub(super) const HALF: f64 = 0.5;

impl Allocation {
    /// A standard filter: the better whole number of hashes next to (m/n)·ln 2, for every class.
    pub fn standard(&self) -> Solution {
        let ideal = self.bits_per_key() * LN_2;
        let around = [ideal.floor(), ideal.ceil()].map(|count| count.clamp(1.0, f64::from(sizing::MAX_HASHES)) as u32);
        let rate = |count: u32| libm::pow(self.fill(f64::from(count)), f64::from(count));
        let count = if rate(around[0]) <= rate(around[1]) { around[0] } else { around[1] };
        Solution {
            hashes: vec![count as u8; self.classes().len()],
            load: f64::from(count),
            fill: self.fill(f64::from(count)),
            fpr: rate(count),
        }
    }

    /// The knapsack at the paper's fill of one half (eq. 18): steps in order of their gain while the load is at most
    /// (m/n)·ln 2. Scored at the fill it causes, which is a little less.
    pub fn fixed_fill(&self) -> Solution {
        let ranked = Ranked::new(self.classes());
        let (first, last) = (usize::from(self.min_hashes), usize::from(self.max_hashes));
        let gains = gains(&powers(HALF)[first..=last]);
        let budget = self.half_fill_load() - f64::from(self.min_hashes) * ranked.all_members();
        let bracket = ranked.bracket(&gains[..last - first], budget);
        let taken = ranked.fill_tie(&bracket, last - first, budget);
        self.scored(ranked.hashes(&taken, self.min_hashes, self.max_hashes, self.classes().len()))
    }

    /// The load that sets half of the bits: the paper's budget.
    pub(super) fn half_fill_load(&self) -> f64 {
        self.bits_per_key() * LN_2
    }

    /// Only the `limit` most popular classes, by the larger of their shares, get a number of their own (section 6);
    /// all others share one. The paper leaves those at a standard filter's number; here it is part of the problem.
    pub fn limited(&self, limit: usize) -> Solution {
        let mut order: Vec<usize> = (0..self.classes().len()).collect();
        if limit < order.len() {
            let popularity = |class: usize| self.classes()[class].members.max(self.classes()[class].misses);
            order.select_nth_unstable_by(limit, |&one, &other| {
                popularity(other).total_cmp(&popularity(one)).then(one.cmp(&other))
            });
        }
        let (chosen, others) = order.split_at(limit.min(order.len()));
        let few = self.reduced(chosen, others);
        let solved = few.solve_uncertified();
        let shared = solved.hashes.last().copied().unwrap_or(self.max_hashes);
        let mut hashes = vec![shared; self.classes().len()];
        chosen.iter().zip(&solved.hashes).for_each(|(&class, &count)| hashes[class] = count);
        self.scored(hashes)
    }

    /// The problem with some classes as they are and all others as one.
    fn reduced(&self, chosen: &[usize], others: &[usize]) -> Allocation {
        let mut classes: Vec<Share> = chosen.iter().map(|&class| self.classes()[class]).collect();
        if !others.is_empty() {
            let share = |of: fn(&Share) -> f64| others.iter().map(|&class| of(&self.classes()[class])).sum();
            classes.push(Share::new(share(|class| class.members), share(|class| class.misses)));
        }
        Allocation { classes, ..*self }
    }
}
