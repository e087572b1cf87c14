//! An answer at once, for people who turn knobs: formulas and chains alone, nothing is simulated.

use super::cost::ExpectedCost;
use super::{Candidate, Question, Recommendation};
use crate::filter::Kind;
use crate::filters::{self, KINDS};
use crate::promise::{Cost, Goal, Result};
use crate::stream::{ErrorsAt, Stream};

/// The rates at which filters are planned where costs decide: a search has more.
const RATES: [f64; 6] = [0.3, 0.1, 0.03, 0.01, 1e-3, 1e-5];

impl Question {
    /// What formulas and chains tell without a simulation: every filter that has one, as its plan makes it, the best first.
    /// `None` where only a simulation or a search tells: of windows, of a memory that is to be found, of kinds without a
    /// formula. [`answer`](Self::answer) takes longer and has the last word.
    ///
    /// ```
    /// use everbloom::{Goal, Question, Stream};
    ///
    /// let mut question = Question::new(Goal::new().memory("16KiB").fpr("1%"));
    /// question.stream = Some(Stream::uniform(200_000, 100_000)?);
    /// let answer = question.at_once()?.expect("a chain for one kind at least");
    /// assert!(answer.best.plan.memory_bits <= 131_072 && answer.best.forecast.predicted_fnr > 0.5);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn at_once(&self) -> Result<Option<Recommendation>> {
        self.checked()?;
        let is_learned = self.stream.as_ref().is_some_and(Stream::is_learned);
        let costs = self.goal.cost.is_some();
        if self.window.is_some() {
            return Ok(None);
        }
        if self.goal.memory_bits.is_none() {
            let is_set = !is_learned && !costs && self.target_fnr.is_none_or(|rate| rate == 0.0);
            return if is_set { self.without_memory().map(Some) } else { Ok(None) };
        }
        let stream = self.stream()?;
        let rates: Vec<f64> = match self.goal.target_fpr {
            Some(rate) => RATES.into_iter().filter(|tried| costs && *tried < rate).chain([rate]).collect(),
            None => RATES.to_vec(),
        };
        let takes_part = |kind: &&Kind| !kind.can.grow && (kind.can.run_forever || !kind.can.forget);
        let kinds = KINDS.iter().filter(takes_part).filter(|kind| self.is_asked_for(kind));
        let mut candidates: Vec<Candidate> = Vec::new();
        for candidate in kinds.flat_map(|kind| self.by_formula(kind, &rates, &stream)) {
            if !super::contest::known(&candidates, &candidate.plan) {
                candidates.push(candidate);
            }
        }
        candidates.retain(|one| self.target_fnr.is_none_or(|most| one.forecast.predicted_fnr <= most));
        candidates.sort_by_key(|one| one.plan.memory_bits);
        match costs {
            true => {
                let total = |one: &Candidate| one.cost.map_or(f64::INFINITY, |cost| cost.total());
                candidates.sort_by(|one, other| total(one).total_cmp(&total(other)));
            }
            false => self.sort(&mut candidates),
        }
        // Where nothing need be forgotten, an answer is by formula anyway.
        let kept = if costs || is_learned { None } else { self.non_forgetting()? };
        if let Some(found) = kept {
            candidates.retain(|one| one.plan.spec != found.best.plan.spec);
            candidates.insert(0, found.best);
        }
        let mut rest = candidates.into_iter();
        let Some(mut best) = rest.next() else { return Ok(None) };
        if best.reason.is_empty() {
            best.reason = if costs { "its errors cost least, by formula" } else { "misses least, by formula" }.into();
        }
        let runners_up = rest.map(|candidate| candidate.beside(&best)).collect();
        let let_through = |row: &ErrorsAt, cost: &Cost| row.duplicates * cost.false_negative.at(row.importance);
        let rows = &best.forecast.errors_by_importance;
        let without_filter =
            self.goal.cost.as_ref().map(|cost| rows.iter().map(|row| let_through(row, cost)).sum::<f64>());
        let assumed = self.stream.is_none();
        Ok(Some(Recommendation { best, runners_up, stream, assumed, without_filter, curve: None }))
    }

    /// A kind in each of its forms at these rates, as far as formulas tell.
    fn by_formula(&self, kind: &Kind, rates: &[f64], stream: &Stream) -> Vec<Candidate> {
        let mut found = Vec::new();
        for spec in self.basic_specs(kind) {
            for rate in rates {
                let goal = Goal { target_fpr: Some(*rate), cost: None, ..self.goal() };
                let Ok(plan) = filters::plan(&spec, &goal) else { continue };
                let Ok(Some(forecast)) = filters::forecast(&plan, stream) else { continue };
                if !self.fits(&plan, stream) || !self.is_kept(&plan, &forecast, 1.0) {
                    continue;
                }
                let cost = self.goal.cost.as_ref();
                let cost = cost.map(|cost| ExpectedCost::of(cost, &forecast, plan.memory_bits, stream));
                found.push(Candidate { plan, forecast, reason: String::new(), cost });
            }
        }
        found
    }
}
