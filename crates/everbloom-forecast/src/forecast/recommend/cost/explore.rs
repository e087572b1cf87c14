//! What a memory can do, and what more of it would: filters side by side for people who look at curves first.

use super::super::{Candidate, Question, Recommendation};
use super::curve::CostCurve;
use super::search::{Search, Tried};
use crate::Cost;
use crate::stream::RatesAt;
use everbloom::{Error, Result};

/// What lines have cost up to one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CostSoFar {
    /// The lines.
    pub arrivals: f64,
    /// What errors and memory have cost with the filter.
    pub cost: f64,
    /// What repeats have cost without one.
    pub without_filter: f64,
}

impl Recommendation {
    /// What errors and memory cost as the stream goes on, if somebody said what errors cost. In every part of the stream an
    /// error costs what it costs on average.
    pub fn cost_over_time(&self) -> Vec<CostSoFar> {
        let (Some(cost), Some(without), rows) = (self.best.cost, self.without_filter, &self.best.forecast.over_time)
        else {
            return Vec::new();
        };
        let width = self.stream.arrivals() as f64 / rows.len().max(1) as f64;
        // How much more of an error a part has than the whole.
        let spread = |of: fn(&RatesAt) -> f64| -> Vec<f64> {
            let mean = rows.iter().map(of).sum::<f64>() / rows.len().max(1) as f64;
            rows.iter().map(|row| if mean > 0.0 { of(row) / mean } else { 1.0 }).collect()
        };
        let dropped = spread(|row| row.distinct * row.predicted_fpr);
        let missed = spread(|row| (1.0 - row.distinct) * row.predicted_fnr);
        let repeats = spread(|row| 1.0 - row.distinct);
        let mut so_far = CostSoFar { arrivals: 0.0, cost: 0.0, without_filter: 0.0 };
        let mut all = vec![so_far];
        for ((dropped, missed), repeats) in dropped.into_iter().zip(missed).zip(repeats) {
            let each = cost.false_positives * dropped + cost.false_negatives * missed + cost.memory;
            so_far = CostSoFar {
                arrivals: so_far.arrivals + width,
                cost: so_far.cost + width * each,
                without_filter: so_far.without_filter + width * without * repeats,
            };
            all.push(so_far);
        }
        all
    }
}

impl Question {
    /// Filters of the goal's memory at every rate of false positives that is worth trying, each as a short simulation finds
    /// it: what less of one error takes of the other. The limits of the question do not bind here.
    pub fn frontier(&self) -> Result<Vec<Candidate>> {
        self.checked()?;
        let Some(memory_bits) = self.goal.most_memory_bits() else {
            let remedy = "say how much memory there is";
            return Err(Error::parameter("memory", "not given", "given", remedy));
        };
        let (cost, question) = (self.cost_or_alike(), self.in_time());
        let search = Search::new(&question, &cost, question.stream_for_cost(&cost)?);
        let (tried, refusal) = search.glance(memory_bits, true);
        self.go_on()?;
        match refusal {
            Some(error) if tried.is_empty() => Err(error),
            _ => Ok(tried.into_iter().map(Tried::candidate).collect()),
        }
    }

    /// The best filter of each memory, from little to so much that no error is left, within the limits of the question; where
    /// nobody said what errors cost, all of them cost the same.
    pub fn curve(&self) -> Result<CostCurve> {
        self.checked()?;
        let (cost, question) = (self.cost_or_alike(), self.in_time());
        let search = Search::new(&question, &cost, question.stream_for_cost(&cost)?);
        let curve = CostCurve::drawn(&search, self.goal.most_memory_bits())?;
        self.go_on()?;
        Ok(curve)
    }

    fn cost_or_alike(&self) -> Cost {
        self.cost.clone().unwrap_or_else(|| Cost::of(1.0, 1.0))
    }
}
