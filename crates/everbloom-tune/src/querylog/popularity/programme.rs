//! The paper's (2 + ε)-approximation: a knapsack over rounded values by dynamic programming (section 4.4).
//!
//! With the classes in order of score and B = ½, a solution is one boundary per step, and what step i gains is
//! 2^−(k_min + i) times the negative queries beyond its boundary (eq. 25). The gains are rounded down to multiples of
//! u = (ε/2)·2^−k_max/(k_max − 1), and for every total gain the least load is kept.
//!
//! **Errata.** The last line of eq. 24 should read ½ − Σ 2^−(i+1)·Q_{l_i}, and the first term of eq. 23
//! k_max·P_{l_{k_max − 1}}. Eq. 26 lets boundaries start at 1, which would deny the first class its hashes; they start
//! at 0. The recurrence is a running minimum over the classes, so the programme takes N·k_max²·2^k_max/ε steps, not
//! N².

use super::ranked::{Boundaries, Ranked};
use super::{Allocation, MAX_HASHES, Solution};
use everbloom::{Error, Result};
use libm::exp2;

/// Table updates beyond which the programme is refused: about a minute.
const MOST_UPDATES: f64 = 3e10;

/// Boundaries in its tables beyond which it is refused: half a gigabyte.
const MOST_BOUNDARIES: f64 = 1.3e8;

/// The boundary of a step that is not placed yet.
const NONE: u32 = u32::MAX;

impl Allocation {
    /// The best rounded solution at half fill that follows the order of scores; refused where the tables would be
    /// too large. Scored at the fill it causes.
    pub fn dynamic_programme(&self, epsilon: f64) -> Result<Solution> {
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(Error::parameter("epsilon", epsilon, "above 0", "1 gives a 3-approximation"));
        }
        let ranked = Ranked::new(self.classes());
        let unit = epsilon / 2.0 / self.steps().max(1) as f64 * exp2(-f64::from(self.max_hashes));
        let values = exp2(-f64::from(self.min_hashes)) / unit + 1.0;
        self.check_size(values, ranked.len())?;
        let budget = self.half_fill_load() - f64::from(self.min_hashes) * ranked.all_members();
        let mut tables = Tables::new(self.steps(), values as usize);
        for boundary in 0..=ranked.len() {
            tables.place(&ranked, boundary, self.min_hashes, unit);
        }
        let taken = tables.best_within(budget).unwrap_or(Boundaries([0; MAX_HASHES as usize]));
        Ok(self.scored(ranked.hashes(&taken, self.min_hashes, self.max_hashes, self.classes().len())))
    }

    fn check_size(&self, values: f64, classes: usize) -> Result<()> {
        let entries = values * self.steps() as f64;
        let updates = entries * (classes + 1) as f64;
        if entries * self.steps() as f64 <= MOST_BOUNDARIES && updates <= MOST_UPDATES {
            return Ok(());
        }
        Err(Error::Infeasible {
            wanted: format!("the dynamic programme over {classes} classes and {} hashes", self.max_hashes),
            reason: format!("its tables have {entries:.1e} entries, updated {updates:.1e} times"),
            remedy: "lower max_hashes (10 is the paper's), raise epsilon, or take the default solver".into(),
        })
    }
}

/// For every step and every rounded gain of the steps up to it: the least load, and the boundaries that have it.
struct Tables {
    loads: Vec<Vec<f64>>,
    boundaries: Vec<Vec<u32>>,
}

impl Tables {
    fn new(steps: usize, values: usize) -> Self {
        let loads = vec![vec![f64::INFINITY; values]; steps];
        let boundaries = (1..=steps).map(|placed| vec![NONE; placed * values]).collect();
        Tables { loads, boundaries }
    }

    /// Lets every step end at this boundary.
    ///
    /// Boundaries count from the best score here, and more classes take an earlier step than a later one. So the
    /// last step is placed first, and an earlier one at the same boundary or beyond.
    fn place(&mut self, ranked: &Ranked, boundary: usize, min_hashes: u8, unit: f64) {
        let (load, misses) = (ranked.members_of(boundary), ranked.misses_of(boundary));
        let steps = self.loads.len();
        for placed in 0..steps {
            let step = steps - 1 - placed;
            let value = (misses * exp2(-f64::from(min_hashes) - (step + 1) as f64) / unit) as usize;
            match placed {
                0 => self.start(value, load, boundary),
                _ => self.extend(placed, value, load, boundary),
            }
        }
    }

    fn start(&mut self, value: usize, load: f64, boundary: usize) {
        if self.loads[0].get(value).is_some_and(|&known| load < known) {
            self.loads[0][value] = load;
            self.boundaries[0][value] = boundary as u32;
        }
    }

    fn extend(&mut self, placed: usize, value: usize, load: f64, boundary: usize) {
        let (before, after) = self.loads.split_at_mut(placed);
        let (shorter, longer) = self.boundaries.split_at_mut(placed);
        let (before, shorter) = (&before[placed - 1], &shorter[placed - 1]);
        let (after, longer) = (&mut after[0], &mut longer[0]);
        for total in value..after.len() {
            let sum = load + before[total - value];
            if sum < after[total] {
                after[total] = sum;
                let (start, from) = (total * (placed + 1), (total - value) * placed);
                longer[start..start + placed].copy_from_slice(&shorter[from..from + placed]);
                longer[start + placed] = boundary as u32;
            }
        }
    }

    /// The boundaries of the greatest gain whose load is within a budget.
    fn best_within(&self, budget: f64) -> Option<Boundaries> {
        let loads = self.loads.last()?;
        let best = loads.iter().rposition(|load| *load <= budget)?;
        let steps = self.loads.len();
        let mut taken = Boundaries([0; MAX_HASHES as usize]);
        for (placed, &boundary) in self.boundaries[steps - 1][best * steps..(best + 1) * steps].iter().enumerate() {
            taken.0[steps - 1 - placed] = boundary;
        }
        Some(taken)
    }
}
