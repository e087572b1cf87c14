//! Filters that forget, tried side by side: every kind for endless streams in every variant that its plan leaves open,
//! first on a short simulation of the stream, then the best of them on a longer one.

use super::super::simulate::{Extent, Patience, Shared, simulated};
use super::super::{SIMULATED, forecast};
use super::{Candidate, Question, RUNNERS_UP, form_of};
use crate::{Forecast, Stream};
use everbloom::kind::Kind;
use everbloom::{Error, Holds, Plan, Result, Spec};

/// The simulation of those that are near the best at first.
pub(super) const SCREENED: Extent = Extent::of(40_000.0);

/// The variants of a kind are tried if, as planned, it misses at most this many times as much as the best.
const SHORTLIST: f64 = 1.5;

/// How many kinds are looked at again, at most.
const MOST_SHORTLISTED: usize = 5;

/// How many variants are tried on the longer one.
const FINALISTS: usize = 10;

/// A filter that errs not at all at first is taken while it misses at most this many times as much as the best.
const WORTH_BEING_EXACT: f64 = 1.02;

impl Question {
    /// All filters that are possible, by what they do in a simulation.
    pub(super) fn contenders(&self, stream: &Stream) -> Result<Vec<Candidate>> {
        let (screened, refusal) = self.screen(stream, true)?;
        let memory_bits = self.goal.most_memory_bits().unwrap_or_default();
        let long = Shared::new(stream, memory_bits, Extent::of(SIMULATED));
        if let (true, Some(error)) = (screened.is_empty(), refusal) {
            return Err(error);
        }
        let of_each: Vec<_> = one_of_each(screened.clone()).into_iter().take(RUNNERS_UP + 1).collect();
        // Those that promise the rate are among them, should the others turn out not to keep it.
        let promising = |one: &&Candidate| one.plan.promise.holds != Holds::Never;
        let promising: Vec<_> = screened.iter().filter(promising).take(2).cloned().collect();
        let mut finalists: Vec<Candidate> = Vec::new();
        for candidate in screened.into_iter().take(FINALISTS).chain(promising).chain(of_each) {
            if !known(&finalists, &candidate.plan) {
                let forecast = self.forecast_on(&candidate.plan, stream, &long, Patience::ENDLESS)?;
                if self.is_kept(&candidate.plan, &forecast, 1.0) {
                    finalists.push(Candidate { forecast, ..candidate });
                }
            }
        }
        self.sort(&mut finalists);
        let mut best: Vec<_> = one_of_each(finalists).into_iter().take(RUNNERS_UP + 1).collect();
        self.look_closely(&mut best, stream)?;
        self.sort(&mut best);
        Ok(best)
    }

    /// Forecasts the candidates on all that is known of a learned stream: what was chosen on a part of it is to be
    /// forecast on the whole.
    pub(super) fn look_closely(&self, candidates: &mut [Candidate], stream: &Stream) -> Result<()> {
        if stream.is_learned() && !self.quick {
            for candidate in candidates {
                self.go_on()?;
                candidate.forecast = forecast(&candidate.plan, stream)?;
            }
        }
        Ok(())
    }

    /// Every kind on a short simulation, with its variants if asked for, the best first; and why others could
    /// not be planned.
    pub(super) fn screen(&self, stream: &Stream, variants: bool) -> Result<(Vec<Candidate>, Option<Error>)> {
        let memory_bits = self.goal.most_memory_bits().unwrap_or_default();
        let shortest = Shared::new(stream, memory_bits, self.pace().glanced);
        let mut trial =
            Trial { question: self, stream, shared: shortest, slack: 1.3, candidates: Vec::new(), refusal: None };
        let kinds: Vec<&Kind> =
            self.kinds.iter().filter(|kind| kind.can.run_forever && self.is_asked_for(kind)).collect();
        for spec in kinds.iter().flat_map(|kind| self.basic_specs(kind)) {
            trial.add(&spec);
        }
        if self.stream.is_none() || self.quick {
            // On a stream that is only assumed, a closer look would tell no more.
            self.sort(&mut trial.candidates);
            return Ok((trial.candidates, trial.refusal));
        }
        // A kind that is far behind as planned will not win in a variant; one that could not be planned may be
        // possible in a variant.
        let least = trial.candidates.iter().map(|one| self.missed(one)).fold(f64::INFINITY, f64::min);
        let (mut shortlisted, behind) =
            std::mem::take(&mut trial.candidates).into_iter().partition::<Vec<_>, _>(|one| {
                let missed = self.missed(one);
                // Where every filter misses nearly everything, what is remembered decides.
                missed <= SHORTLIST * least && (1.0 - missed) * SHORTLIST >= 1.0 - least
            });
        shortlisted.truncate(MOST_SHORTLISTED);
        (trial.shared, trial.slack) = (Shared::new(stream, memory_bits, SCREENED), 1.1);
        let is_behind = |kind: &&Kind| behind.iter().any(|one| one.plan.spec.kind() == kind.name);
        let is_shortlisted = |kind: &&Kind| shortlisted.iter().any(|one| one.plan.spec.kind() == kind.name);
        for kind in kinds.iter().filter(|kind| is_shortlisted(kind) || !is_behind(kind)) {
            let variants =
                if variants { kind.model.variants(&self.spec_of(kind), self.goal.has_importance()) } else { vec![] };
            for spec in self.basic_specs(kind).into_iter().chain(variants) {
                trial.add(&spec);
            }
        }
        let unknown = |one: &Candidate| !known(&trial.candidates, &one.plan);
        let behind: Vec<_> = behind.into_iter().filter(unknown).collect();
        trial.candidates.extend(behind);
        self.sort(&mut trial.candidates);
        Ok((trial.candidates, trial.refusal))
    }

    /// Whether a plan keeps the asked rate throughout the stream, within the memory.
    pub(super) fn fits(&self, plan: &Plan, stream: &Stream) -> bool {
        let lasts = match plan.promise.holds {
            Holds::Always => true,
            Holds::UntilItems(items) => items >= self.expected().unwrap_or_else(|| stream.distinct()),
            Holds::Never => self.stream.is_some() || self.is_named(),
        };
        lasts && self.goal.most_memory_bits().is_none_or(|most| plan.memory_bits <= most)
    }

    /// Whether the asked rate is promised; where a filter promises nothing, whether it comes to no more and keeps it on
    /// the stream that was described, with some slack for what a short simulation does not know.
    pub(super) fn is_kept(&self, plan: &Plan, forecast: &Forecast, slack: f64) -> bool {
        let Some(target) = self.goal.target_fpr() else { return true };
        let on_stream = || self.stream.is_some() && forecast.predicted_fpr <= target * slack;
        plan.promise.fpr_bound <= target && (plan.promise.holds != Holds::Never || on_stream())
    }

    pub(super) fn forecast_on(
        &self,
        plan: &Plan,
        stream: &Stream,
        shared: &Shared,
        patience: Patience,
    ) -> Result<Forecast> {
        self.go_on()?;
        // Chains are near, but a simulation that all contenders share tells them apart without bias.
        match simulated(plan, stream, shared, patience)? {
            Some(forecast) => Ok(forecast),
            None => forecast(plan, stream),
        }
    }

    /// What is to be small: missed repeats, by importance where there is any.
    fn missed(&self, candidate: &Candidate) -> f64 {
        if self.goal.has_importance() { candidate.forecast.weighted_fnr } else { candidate.forecast.predicted_fnr }
    }

    pub(super) fn sort(&self, candidates: &mut [Candidate]) {
        let missed = |one: &Candidate| match one.plan.kind.can.exact_first {
            true => self.missed(one) / WORTH_BEING_EXACT,
            false => self.missed(one),
        };
        candidates.sort_by(|one, other| missed(one).total_cmp(&missed(other)));
    }
}

/// Filters on a simulation.
struct Trial<'q> {
    question: &'q Question,
    stream: &'q Stream,
    shared: Shared,
    /// How far a rate may be off on it.
    slack: f64,
    candidates: Vec<Candidate>,
    /// Why the first filter that could not be planned was refused.
    refusal: Option<Error>,
}

impl Trial<'_> {
    /// Tries a filter, if it can be planned and keeps the rate.
    fn add(&mut self, spec: &Spec) {
        if let Err(error) = self.tried(spec) {
            self.refusal = self.refusal.take().or(Some(error));
        }
    }

    /// As much as the best so far has missed, if only the best counts.
    fn patience(&self) -> Patience {
        let Trial { question, candidates, .. } = self;
        if !question.best_only {
            return Patience::ENDLESS;
        }
        let missed = candidates.iter().map(|one| question.missed(one)).fold(f64::INFINITY, f64::min);
        Patience { missed, by_importance: question.goal.has_importance() }
    }

    fn tried(&mut self, spec: &Spec) -> Result<()> {
        self.question.go_on()?;
        let plan = self.question.kinds.complete(spec, &self.question.goal())?;
        if known(&self.candidates, &plan) || !self.question.fits(&plan, self.stream) {
            return Ok(());
        }
        let forecast = self.question.forecast_on(&plan, self.stream, &self.shared, self.patience())?;
        if self.question.is_kept(&plan, &forecast, self.slack) {
            self.candidates.push(Candidate {
                plan,
                forecast,
                reason: match self.question.stream {
                    Some(_) => "forgets least on this stream".into(),
                    None => "forgets least on the stream that is assumed".into(),
                },
                cost: None,
            });
        }
        Ok(())
    }
}

pub(super) fn known(candidates: &[Candidate], plan: &Plan) -> bool {
    candidates.iter().any(|candidate| candidate.plan.spec == plan.spec)
}

/// The best of each kind and form.
pub(super) fn one_of_each(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if kept.iter().all(|other| form_of(&other.plan) != form_of(&candidate.plan)) {
            kept.push(candidate);
        }
    }
    kept
}
