//! How much is tried for an answer: enough to be right, or as much as a tenth of a second has room for.

use super::super::simulate::{Extent, simulated_long};
use super::super::{SIMULATED, forecast, forecast_of_part};
use super::Question;
use crate::{Forecast, Stream};
use everbloom::{Error, Plan, Result};
use std::borrow::Cow;
use std::sync::atomic::Ordering;

/// What a search may take.
pub(super) struct Pace {
    /// The first simulation, which every kind sees.
    pub(super) glanced: Extent,
    /// The one by which it is told what there is to save.
    pub(super) counted: Extent,
    /// The rates of false positives at which every kind is tried first, where costs decide.
    pub(super) rates: &'static [f64],
    /// How near a search comes to the least memory, in doublings.
    pub(super) nearness: f64,
    /// The most memories of a curve.
    pub(super) memories: usize,
}

const FULL: Pace = Pace {
    glanced: Extent::of(10_000.0),
    counted: Extent::of(SIMULATED),
    rates: &[0.7, 0.4, 0.2, 0.08, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-6],
    nearness: 0.04,
    memories: usize::MAX,
};

const QUICK: Pace = Pace {
    glanced: Extent::QUICK,
    counted: Extent::QUICK,
    rates: &[0.3, 0.03, 1e-3, 1e-5],
    nearness: 0.25,
    memories: 7,
};

/// Arrivals of the simulation of one filter alone, at a glance.
const GLANCED_ALONE: f64 = 20_000.0;

impl Question {
    /// The question as it is looked into. At a glance a sample is a stream with its lags: to play the sample itself takes a look
    /// at every arrival that was kept.
    pub(super) fn in_time(&self) -> Cow<'_, Self> {
        match &self.stream {
            Some(stream) if self.quick && stream.is_learned() => {
                let mut question = self.clone();
                (question.goal, question.stream) = (self.goal(), Some(stream.by_its_lags()));
                Cow::Owned(question)
            }
            _ => Cow::Borrowed(self),
        }
    }

    pub(super) fn pace(&self) -> &'static Pace {
        if self.quick { &QUICK } else { &FULL }
    }

    /// An error once somebody has withdrawn the question.
    pub(super) fn go_on(&self) -> Result<()> {
        if !self.cancel.as_ref().is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
            return Ok(());
        }
        Err(Error::Infeasible {
            wanted: "an answer".into(),
            reason: "the question was withdrawn".into(),
            remedy: "ask it again".into(),
        })
    }

    /// What to expect of a filter that is compared with no other.
    pub(super) fn forecast_alone(&self, plan: &Plan, stream: &Stream) -> Result<Forecast> {
        self.go_on()?;
        if self.quick { quick(plan, stream) } else { forecast(plan, stream) }
    }

    /// What to expect of one that never forgets, of which there are several.
    pub(super) fn forecast_of_set(&self, plan: &Plan, stream: &Stream) -> Result<Forecast> {
        self.go_on()?;
        if self.quick { quick(plan, stream) } else { forecast_of_part(plan, stream) }
    }
}

/// What never forgets by formula, others by a short simulation: following the chain of a filter may take longer.
fn quick(plan: &Plan, stream: &Stream) -> Result<Forecast> {
    let by_formula = || super::super::models::by_formula(plan, stream);
    let found = match plan.promise.predicted_fnr {
        Some(0.0) => by_formula()?,
        _ => simulated_long(plan, stream, GLANCED_ALONE)?,
    };
    match found {
        Some(found) => Ok(found),
        None => forecast(plan, stream),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cost;
    use everbloom::{Goal, Hashing, Importances};
    use everbloom_cells::key::Generator;
    use std::sync::Arc;

    /// Half of its arrivals are new, the others come back sooner or later.
    fn sample() -> Stream {
        let (hashing, mut generator) = (Hashing::seeded(1), Generator::seeded(1));
        let keys = (0..20_000u64)
            .map(|now| if generator.below(2) == 0 { now } else { now - generator.below(now.min(8_000) + 1) });
        let hashes: Vec<_> = keys.map(|key| hashing.hash_u64(key)).collect();
        let mut sample = crate::stream::Sample::default();
        sample.observe(&hashes, Importances::default());
        sample.finish().expect("many repeats")
    }

    fn questions() -> Vec<Question> {
        let goal = Goal::new().memory("8KiB").fpr("2%");
        let mut all = vec![Question::new(goal.clone().expected_items(100_000))];
        let streams = [
            Stream::uniform(200_000, 100_000),
            Stream::zipf_of(100_000, 1.0),
            Stream::in_phases(200_000, 100_000, 10),
            Ok(sample()),
        ];
        for stream in streams {
            all.push(Question { stream: Some(stream.expect("a stream")), ..Question::new(goal.clone()) });
        }
        let stream = all[1].stream.clone();
        all.push(Question { stream: stream.clone(), ..Question::new(goal).cost(Cost::of(5.0, 1.0)) });
        let open = Goal::new().fpr("2%").expected_items(100_000);
        all.push(Question { stream, target_fnr: Some(0.3), ..Question::new(open) });
        all
    }

    #[test]
    fn a_glance_is_near_the_answer_of_a_closer_look() {
        for question in questions() {
            let close = question.answer().expect("an answer").best;
            let quick = Question { quick: true, ..question.clone() }.answer().expect("a glance").best;
            let (seen, found) = (&quick.forecast, &close.forecast);
            // A closer look also tries variants, which miss a little less.
            let error = 4.0 * (seen.fnr_standard_error + found.fnr_standard_error);
            let what = format!(
                "{}: {} ± {error}, not {} of {}",
                quick.plan.spec, seen.predicted_fnr, found.predicted_fnr, close.plan.spec
            );
            assert!(seen.predicted_fnr >= found.predicted_fnr - error - 0.02, "{what}");
            assert!(seen.predicted_fnr <= 1.25 * found.predicted_fnr + error + 0.02, "{what}");
            let ratio = quick.plan.memory_bits as f64 / close.plan.memory_bits as f64;
            assert!((0.8..1.25).contains(&ratio), "{ratio} times the memory: {what}");
        }
    }

    #[test]
    fn who_wants_the_best_alone_gets_the_same() {
        for question in questions() {
            let all = question.answer().expect("an answer");
            let best = Question { best_only: true, ..question.clone() }.answer().expect("an answer");
            assert_eq!(best.best.plan.spec.to_string(), all.best.plan.spec.to_string());
            // A curve that nothing is taken from is not drawn.
            assert!(best.curve.is_none(), "{}", best.best.plan.spec);
            assert_eq!(all.curve.is_some(), question.cost.is_some());
        }
    }

    #[test]
    fn what_was_withdrawn_is_an_error_and_no_half_answer() {
        for question in questions() {
            let question = Question { cancel: Some(Arc::new(true.into())), ..question };
            let errors = [question.answer().err(), question.curve().err(), question.frontier().err()];
            for error in errors {
                let error = error.expect("nobody wants to know").to_string();
                assert!(error.contains("withdrawn") || error.contains("memory"), "{error}");
            }
        }
    }
}
