//! The answer where neither a stream nor costs are known: the planner's rules decide, and forecasts stand beside.

use super::contest::one_of_each;
use super::{Candidate, Question, Recommendation};
use crate::Stream;
use everbloom::Result;
use everbloom::planning::{self, Taken};

impl Question {
    /// The filter of the rules first, then what else there is, by what it forgets on the stream that is assumed.
    pub(super) fn by_rule(&self) -> Result<Recommendation> {
        let taken = planning::decide(self.kinds, &self.shape(), &self.goal)?;
        let stream = self.stream()?;
        let mut others = if self.best_only { Vec::new() } else { self.others(&stream)? };
        let same = others.iter().position(|other| other.plan.spec == taken.plan.spec);
        let best = match same.map(|place| others.remove(place)) {
            Some(known) => Candidate { reason: taken.reason, ..known },
            None => self.expected_of(taken, &stream)?,
        };
        self.recommended(std::iter::once(best).chain(others).collect(), stream)
    }

    fn expected_of(&self, Taken { plan, reason }: Taken, stream: &Stream) -> Result<Candidate> {
        let forecast = self.forecast_of_set(&plan, stream)?;
        Ok(Candidate { plan, forecast, reason, cost: None })
    }

    /// Sets, where some fit; else the filters that forget.
    fn others(&self, stream: &Stream) -> Result<Vec<Candidate>> {
        let sets = self.sets(stream)?;
        match self.goal.most_memory_bits() {
            Some(_) if sets.is_empty() => Ok(self.screened_kinds(stream).unwrap_or_default()),
            _ => Ok(sets),
        }
    }

    /// The best of each kind that forgets, on a short simulation.
    pub(super) fn screened_kinds(&self, stream: &Stream) -> Result<Vec<Candidate>> {
        match self.screen(stream, false)? {
            (candidates, Some(error)) if candidates.is_empty() => Err(error),
            (candidates, _) => Ok(one_of_each(candidates)),
        }
    }
}
