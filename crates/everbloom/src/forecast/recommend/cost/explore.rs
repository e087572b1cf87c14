//! What a memory can do, and what more of it would: filters side by side for people who look at curves first.

use super::super::{Candidate, Question};
use super::curve::CostCurve;
use super::search::{Search, Tried};
use crate::promise::{Cost, Error, Result};

impl Question {
    /// Filters of the goal's memory at every rate of false positives that is worth trying, each as a short simulation finds
    /// it: what less of one error takes of the other. The limits of the question do not bind here.
    pub fn frontier(&self) -> Result<Vec<Candidate>> {
        self.checked()?;
        let Some(memory_bits) = self.goal.memory_bits else {
            let remedy = "say how much memory there is";
            return Err(Error::parameter("memory", "not given", "given", remedy));
        };
        let cost = self.cost_or_alike();
        let search = Search::new(self, &cost, self.stream_for_cost(&cost)?);
        let (tried, refusal) = search.glance(memory_bits, true);
        match refusal {
            Some(error) if tried.is_empty() => Err(error),
            _ => Ok(tried.into_iter().map(Tried::candidate).collect()),
        }
    }

    /// The best filter of each memory, from little to so much that no error is left, within the limits of the question; where
    /// nobody said what errors cost, all of them cost the same.
    pub fn curve(&self) -> Result<CostCurve> {
        self.checked()?;
        let cost = self.cost_or_alike();
        CostCurve::drawn(&Search::new(self, &cost, self.stream_for_cost(&cost)?), self.goal.memory_bits)
    }

    fn cost_or_alike(&self) -> Cost {
        self.goal.cost.clone().unwrap_or_else(|| Cost::of(1.0, 1.0))
    }
}
