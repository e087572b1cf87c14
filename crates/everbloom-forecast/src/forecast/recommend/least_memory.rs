//! The memory that it takes to miss no more than was asked.

use super::super::forecast;
use super::contest::one_of_each;
use super::{Question, RUNNERS_UP, Recommendation};
use everbloom::kind::{rate_text, size_text};
use everbloom::{Error, Result};

impl Question {
    /// The recommendation, if it misses no more than asked.
    pub(super) fn check_target(&self, found: Recommendation) -> Result<Recommendation> {
        let forecast = &found.best.forecast;
        // What may be kept after a closer look is not refused at a glance.
        let slack = if self.quick { 2.0 * forecast.fnr_standard_error } else { 0.0 };
        match self.target_fnr {
            Some(wanted) if forecast.predicted_fnr > wanted + slack => Err(self.too_little(wanted, &found)),
            _ => Ok(found),
        }
    }

    fn too_little(&self, wanted: f64, found: &Recommendation) -> Error {
        let best = &found.best;
        let enough = Question { goal: self.goal.clone().without_memory(), ..self.clone() };
        let bits = match enough.without_memory() {
            Ok(enough) => Some(format!("give about {}", size_text(enough.best.plan.memory_bits))),
            Err(_) => None,
        };
        // To miss everything is not what one can ask for.
        let accepted = Some(rate_text(best.forecast.predicted_fnr)).filter(|rate| rate != "100%");
        let accepted = accepted.map(|rate| format!("accept {rate}"));
        Error::Infeasible {
            wanted: format!("missing at most {} of the repeats", rate_text(wanted)),
            reason: format!(
                "the best forecast for {} is {}, of {}",
                size_text(self.goal.most_memory_bits().unwrap_or_default()),
                rate_text(best.forecast.predicted_fnr),
                best.plan.spec
            ),
            remedy: match [bits, accepted].into_iter().flatten().collect::<Vec<_>>() {
                none if none.is_empty() => "describe another stream, or accept more false positives".into(),
                some => some.join(", or "),
            },
        }
    }

    /// The smallest memory for which the forecast is good enough.
    pub(super) fn least_memory(&self, wanted: f64) -> Result<Recommendation> {
        let non_forgetting = self.non_forgetting()?;
        let most = non_forgetting.as_ref().map_or(1 << 40, |found| found.best.plan.memory_bits);
        let with = |bits: u64| Question { goal: self.goal.clone().memory_bits(bits), target_fnr: None, ..self.clone() };
        let highest = libm::log2(most as f64);
        let (mut low, mut high, mut best) = ((highest - 10.0).max(9.0), highest, non_forgetting.clone());
        while high - low > self.pace().nearness {
            let middle = 0.5 * (low + high);
            match with(libm::exp2(middle) as u64).screened() {
                Ok(found) if found.best.forecast.predicted_fnr <= wanted => {
                    (high, best) = (middle, Some(found));
                }
                _ => low = middle,
            }
        }
        // These were short simulations. A longer one has the last word.
        while high < highest && !self.quick {
            self.go_on()?;
            let question = with(libm::exp2(high) as u64);
            let stream = question.stream()?;
            let mut candidates = one_of_each(question.screen(&stream, false)?.0);
            candidates.truncate(RUNNERS_UP + 1);
            // The best first: where that is not enough, nobody asks for the others.
            for index in 0..candidates.len() {
                candidates[index].forecast = forecast(&candidates[index].plan, &stream)?;
                if candidates[0].forecast.predicted_fnr > wanted {
                    break;
                }
            }
            if candidates.first().is_some_and(|best| best.forecast.predicted_fnr <= wanted) {
                question.sort(&mut candidates);
                return question.recommended(candidates, stream);
            }
            (high, best) = (high + 0.05, non_forgetting.clone());
        }
        best.ok_or_else(|| self.nothing_fits())
    }

    /// The best as planned, on a short simulation.
    fn screened(&self) -> Result<Recommendation> {
        let stream = self.stream()?;
        let candidates = one_of_each(self.screen(&stream, false)?.0);
        self.recommended(candidates, stream)
    }
}
