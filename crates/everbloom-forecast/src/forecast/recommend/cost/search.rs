//! The cheapest filters of one memory: every kind, at every rate of false positives that is worth trying.
//!
//! A filter that forgets is planned from its memory and a rate, and buys one error with the other: so the rate is what is
//! searched for. First every kind is tried at rates far apart on a short simulation; then the kinds that are near the best
//! at rates close to their own best, in every variant that the plan leaves open; at last the best of them on a longer one.

use super::super::super::simulate::{Extent, Patience, Shared};
use super::super::super::{SIMULATED, forecast};
use super::super::contest::SCREENED;
use super::super::{AUTO, Candidate, Question, RUNNERS_UP, form_of};
use super::{ExpectedCost, Idle};
use crate::{Cost, Forecast, Stream};
use everbloom::kind::Kind;
use everbloom::{Error, Holds, Plan, Result, Spec};
use std::collections::HashSet;

/// How far the rates beside the best are from it, when kinds are looked at again.
const NEARBY: [f64; 7] = [0.4, 0.55, 0.75, 1.0, 1.35, 1.8, 2.5];

/// How far the rates are from the best for each variant of a kind.
const NEARBY_IN_VARIANTS: [f64; 3] = [0.6, 1.0, 1.6];

/// Rates above this are not planned for.
const HIGHEST_RATE: f64 = 0.95;

/// A kind is looked at again if its errors cost at most this many times as much as the cheapest,
const SHORTLIST: f64 = 1.4;

/// and is not behind so many others.
const MOST_SHORTLISTED: usize = 5;

/// How many filters are tried on the longer simulation.
const FINALISTS: usize = 12;

/// Filters that forget, and others, with which a curve is drawn at a glance.
const LEADERS: usize = 2;

/// Bits for each key in which those that never forget are compared for that.
const BITS_OF_SETS: f64 = 16.0;

/// How far a rate of false negatives may be above its limit on a short simulation.
const SLACK: f64 = 1.1;

/// A filter that was tried.
#[derive(Debug, Clone)]
pub(super) struct Tried {
    pub(super) plan: Plan,
    pub(super) forecast: Forecast,
    pub(super) cost: ExpectedCost,
    /// The rate that it was planned for, if it was.
    rate: Option<f64>,
    /// The spec that was planned, without what the plan filled in, and whether by importance.
    spec: Spec,
    by_importance: bool,
}

impl Tried {
    /// As a candidate, with nothing said about it yet.
    pub(super) fn candidate(self) -> Candidate {
        Candidate { plan: self.plan, forecast: self.forecast, reason: String::new(), cost: Some(self.cost) }
    }

    /// What is compared.
    pub(super) fn total(&self) -> f64 {
        self.cost.total()
    }

    /// What a search compares at one memory: a filter that takes a little less of it is no better for that.
    fn errors(&self) -> f64 {
        self.cost.false_positives + self.cost.false_negatives
    }
}

/// A filter that takes part in a curve, at whatever memory.
pub(super) struct Leader {
    spec: Spec,
    by_importance: bool,
    by_rate: bool,
}

/// A search for the cheapest filter on a stream.
pub(super) struct Search<'q> {
    pub(super) question: &'q Question,
    pub(super) cost: &'q Cost,
    pub(super) stream: Stream,
    /// What there is to save.
    pub(super) idle: Idle,
}

/// Filters of one memory on one simulation.
struct Trials<'s> {
    search: &'s Search<'s>,
    memory_bits: u64,
    shared: Shared,
    tried: Vec<Tried>,
    known: HashSet<String>,
    refusal: Option<Error>,
}

impl<'q> Search<'q> {
    pub(super) fn new(question: &'q Question, cost: &'q Cost, stream: Stream) -> Self {
        let idle = Idle::of(cost, &Shared::new(&stream, 1 << 20, question.pace().counted).scaled);
        Search { question, cost, stream, idle }
    }

    /// This search for another question about the same stream.
    pub(super) fn asking<'a>(&self, question: &'a Question) -> Search<'a>
    where
        'q: 'a,
    {
        Search { question, cost: self.cost, stream: self.stream.clone(), idle: self.idle }
    }

    /// Every kind as its plan makes it, on the shortest simulation; and why one could not be planned. Kinds that take long to
    /// simulate take part among `all` alone, and beyond the rate of the best only if they are near it; so do rates above the
    /// limit. At a glance every kind after the first is tried beyond that rate only if it is near.
    pub(super) fn glance(&self, memory_bits: u64, all: bool) -> (Vec<Tried>, Option<Error>) {
        self.glanced(memory_bits, all).sorted()
    }

    fn glanced(&self, memory_bits: u64, all: bool) -> Trials<'_> {
        let mut trials = self.trials(memory_bits, self.question.pace().glanced);
        let (slow, quick): (Vec<_>, Vec<_>) = self.kinds().partition(|(kind, _)| is_slow(kind));
        let slow = if all || quick.is_empty() { slow } else { Vec::new() };
        for (kind, by_importance) in quick.into_iter().chain(slow) {
            for spec in self.question.basic_specs(kind) {
                match (self.is_planned_by_rate(kind), trials.cheapest()) {
                    (true, Some(best)) if is_slow(kind) || self.question.quick => {
                        let from = trials.tried.len();
                        trials.add(&spec, by_importance, Some(best.rate.unwrap_or(best.forecast.mean_fpr).max(1e-6)));
                        if trials.tried[from..].iter().any(|one| one.errors() <= SHORTLIST * best.errors()) {
                            self.rates(all).for_each(|rate| trials.add(&spec, by_importance, Some(rate)));
                        }
                    }
                    (true, _) => self.rates(all).for_each(|rate| trials.add(&spec, by_importance, Some(rate))),
                    (false, _) => trials.add(&spec, by_importance, None),
                }
            }
        }
        trials
    }

    /// What is tried for a curve of many memories: at a glance only the `leaders` take part, and otherwise the cheapest in its
    /// variants, too. Without those the curve would lie above what a search at its memory finds, and by as much as the usual
    /// parameters of a kind cost more than its best.
    pub(super) fn glance_for_curve(&self, memory_bits: u64, leaders: &[Leader]) -> Vec<Tried> {
        if !self.question.quick {
            let mut trials = self.glanced(memory_bits, false);
            if let Some(best) = trials.cheapest() {
                trials.around(&best, &NEARBY, std::slice::from_ref(&best.spec));
                let best = trials.best_like(&best).unwrap_or(best);
                trials.around(&best, self.nearby_in_variants(&best), &self.variants_of(&best));
            }
            return trials.sorted().0;
        }
        let mut trials = self.trials(memory_bits, self.question.pace().glanced);
        for Leader { spec, by_importance, by_rate } in leaders {
            match by_rate {
                false => trials.add(spec, *by_importance, None),
                true => self.rates(false).for_each(|rate| trials.add(spec, *by_importance, Some(rate))),
            }
        }
        trials.sorted().0
    }

    /// The filters that a curve is drawn with at a glance: the best of those that forget, in this memory, and of the others, where
    /// they have room. Nobody leads where there is time for all.
    pub(super) fn leaders(&self, memory_bits: u64) -> Vec<Leader> {
        if !self.question.quick {
            return Vec::new();
        }
        let glanced = self.glance(memory_bits, false).0;
        let forgets = |one: &&Tried| one.rate.is_some();
        let (kept, others): (Vec<&Tried>, Vec<&Tried>) =
            glanced.iter().filter(forgets).partition(|one| self.keeps_limits(one, SLACK));
        let best = first_of_each(kept.into_iter().chain(others)).take(LEADERS);
        let leader = |one: &Tried| {
            let (spec, by_importance) = (one.spec.clone(), one.by_importance);
            Leader { spec, by_importance, by_rate: one.rate.is_some() }
        };
        let mut sets = self.trials((BITS_OF_SETS * self.stream.distinct() as f64) as u64, self.question.pace().glanced);
        for (kind, by_importance) in self.kinds().filter(|(kind, _)| !self.is_planned_by_rate(kind)) {
            self.question.basic_specs(kind).iter().for_each(|spec| sets.add(spec, by_importance, None));
        }
        let sets = sets.sorted().0;
        let mut leaders: Vec<Leader> = best.map(leader).collect();
        leaders.extend(first_of_each(sets.iter()).take(LEADERS).map(leader));
        leaders
    }

    /// What a closer look at those of a first glance finds within the limits, the best of each kind and form.
    pub(super) fn closely(&self, glanced: &[Tried], memory_bits: u64) -> Result<Vec<Tried>> {
        // On a stream that is only assumed, a closer look would tell no more.
        let is_close = self.question.stream.is_some() && !self.question.quick;
        let found = match self.question.quick {
            true => glanced.to_vec(),
            false => self.screen(glanced, memory_bits, is_close),
        };
        let found = if is_close { self.finish(found, memory_bits)? } else { found };
        let kept = found.iter().filter(|one| self.keeps_limits(one, 1.0));
        Ok(first_of_each(kept).cloned().collect())
    }

    /// The filters that are near the best of a first glance, with their neighbours and variants.
    fn screen(&self, glanced: &[Tried], memory_bits: u64, variants: bool) -> Vec<Tried> {
        let mut trials = self.trials(memory_bits, SCREENED);
        let is_within = |one: &&Tried| self.keeps_limits(one, SLACK);
        let least = glanced.iter().filter(is_within).map(Tried::errors).fold(f64::INFINITY, f64::min);
        let near = |one: &&Tried| one.errors() <= SHORTLIST * least;
        // The best of each kind and form, within the limits or, should none turn out to be, without.
        let shortlisted = first_of_each(glanced.iter().filter(is_within)).filter(near).take(MOST_SHORTLISTED);
        let mut shortlisted: Vec<&Tried> = shortlisted.collect();
        if shortlisted.is_empty() {
            // None keeps the limits as its plan makes it; a variant of those that miss least may.
            let mut least_missing: Vec<&Tried> = glanced.iter().filter(|one| self.keeps_fpr(one)).collect();
            least_missing.sort_by(|one, other| one.forecast.predicted_fnr.total_cmp(&other.forecast.predicted_fnr));
            shortlisted = first_of_each(least_missing.into_iter()).take(MOST_SHORTLISTED).collect();
        }
        for one in shortlisted {
            let slow = is_slow(one.plan.kind);
            trials.around(one, if slow { &NEARBY_IN_VARIANTS } else { &NEARBY }, std::slice::from_ref(&one.spec));
            if variants {
                let best = trials.best_like(one).unwrap_or_else(|| one.clone());
                trials.around(&best, self.nearby_in_variants(&best), &self.variants_of(&best));
            }
        }
        for one in first_of_each(glanced.iter()).take(RUNNERS_UP + 1) {
            trials.around(one, &[1.0], std::slice::from_ref(&one.spec));
        }
        trials.sorted().0
    }

    /// The best of them on a longer simulation, and on all that is known of a learned stream.
    fn finish(&self, screened: Vec<Tried>, memory_bits: u64) -> Result<Vec<Tried>> {
        let long = Shared::new(&self.stream, memory_bits, Extent::of(SIMULATED));
        let again = |one: Tried| -> Result<Tried> {
            let forecast = self.forecast(&one.plan, &long)?;
            Ok(self.with_forecast(one, forecast))
        };
        let within: Vec<_> = screened.iter().filter(|one| self.keeps_limits(one, SLACK)).cloned().collect();
        let mut least_missing = within.clone();
        least_missing.sort_by(|one, other| one.forecast.predicted_fnr.total_cmp(&other.forecast.predicted_fnr));
        least_missing.truncate(if self.question.target_fnr.is_some() { 3 } else { 0 });
        let of_each: Vec<_> = first_of_each(within.iter()).take(RUNNERS_UP + 1).cloned().collect();
        let mut known = HashSet::new();
        let finalists = within.into_iter().take(FINALISTS).chain(of_each).chain(least_missing);
        let finalists = finalists.filter(|one| known.insert(one.plan.spec.to_string()));
        let mut finalists = finalists.map(again).collect::<Result<Vec<_>>>()?;
        self.sort_kept_first(&mut finalists);
        if self.stream.is_learned() {
            // Two of the best kind: what was chosen on a part of the stream is to be best on the whole.
            let mut closest: Vec<_> = finalists.iter().take(2).cloned().collect();
            closest.extend(first_of_each(finalists.iter()).skip(1).take(RUNNERS_UP).cloned());
            closest.dedup_by(|one, other| one.plan.spec == other.plan.spec);
            finalists = Vec::new();
            for one in closest {
                self.question.go_on()?;
                let forecast = forecast(&one.plan, &self.stream)?;
                finalists.push(self.with_forecast(one, forecast));
            }
            self.sort_kept_first(&mut finalists);
        }
        Ok(first_of_each(finalists.iter()).cloned().collect())
    }

    /// By a simulation that all share. What never forgets must see all of the stream, which the shared one may be a part
    /// of, and has a formula.
    fn forecast(&self, plan: &Plan, shared: &Shared) -> Result<Forecast> {
        let by_formula = match plan.promise.predicted_fnr {
            Some(0.0) => crate::forecast::models::by_formula(plan, &self.stream)?,
            _ => None,
        };
        match by_formula {
            Some(forecast) => Ok(forecast),
            None => self.question.forecast_on(plan, &self.stream, shared, Patience::ENDLESS),
        }
    }

    fn with_forecast(&self, one: Tried, forecast: Forecast) -> Tried {
        Tried { cost: self.cost_of(&one.plan, &forecast), forecast, ..one }
    }

    /// What a filter costs. If more keys are to come than are known of the stream, its errors on new keys are those that it
    /// promises: nobody has seen it with as many.
    fn cost_of(&self, plan: &Plan, forecast: &Forecast) -> ExpectedCost {
        let cost = ExpectedCost::of(self.cost, forecast, plan.memory_bits, &self.stream);
        let known = self.stream.distinct();
        let more_come = self.question.expected().is_some_and(|expected| expected > known.saturating_add(known / 100));
        let promised = if more_come { self.idle.drop * plan.promise.fpr_bound } else { 0.0 };
        ExpectedCost { false_positives: cost.false_positives.max(promised), ..cost }
    }

    fn trials(&self, memory_bits: u64, extent: Extent) -> Trials<'_> {
        let shared = Shared::new(&self.stream, memory_bits, extent);
        Trials { search: self, memory_bits, shared, tried: Vec::new(), known: HashSet::new(), refusal: None }
    }

    /// The kinds that take part, each by importance, without, or both.
    fn kinds(&self) -> impl Iterator<Item = (&'static Kind, bool)> {
        let has_importance = self.stream.importance().is_some();
        let takes_part = |kind: &&Kind| {
            let Question { filter, goal, .. } = self.question;
            // A goal names no scheme, and what grows stays within no memory.
            let suits = kind.can.follow_scheme.is_none()
                && !kind.can.grow
                && !(goal.has_bounded_latency() && kind.can.exact_first);
            let lasts = kind.can.run_forever || self.question.expected().is_some();
            let is_meant = filter.as_ref().is_none_or(|spec| spec.kind() == AUTO) && suits;
            let forgets = !goal.never_forgets() || !kind.can.forget;
            lasts && forgets && (is_meant || filter.as_ref().is_some_and(|spec| spec.kind() == kind.name))
        };
        let each = move |kind: &'static Kind| {
            let weighs = has_importance && kind.can.weigh_importance;
            let without = !weighs || kind.model.choices_by_importance.is_some();
            [weighs.then_some((kind, true)), without.then_some((kind, false))]
        };
        self.question.kinds.iter().filter(takes_part).flat_map(each).flatten()
    }

    /// Sets fill the memory, and their rate is what comes of it.
    fn is_planned_by_rate(&self, kind: &Kind) -> bool {
        kind.can.forget
    }

    /// The rates to try, that of the limit among them, and those above it if all are asked for. At a glance few pay that are
    /// far below it.
    fn rates(&self, all: bool) -> impl Iterator<Item = f64> + use<> {
        let (limit, rates) = (self.question.goal.target_fpr(), self.question.pace().rates);
        let most = if self.question.quick && !all && limit.is_some() { 1 } else { rates.len() };
        let rates = rates.iter().copied().filter(move |rate| all || limit.is_none_or(|limit| *rate < limit));
        rates.take(most).chain(limit)
    }

    /// How far from its rate the variants of a filter are tried: of one that takes long to simulate, at that rate alone.
    fn nearby_in_variants(&self, one: &Tried) -> &'static [f64] {
        if is_slow(one.plan.kind) { &[1.0] } else { &NEARBY_IN_VARIANTS }
    }

    fn variants_of(&self, one: &Tried) -> Vec<Spec> {
        let kind = one.plan.kind;
        kind.model.variants_by_cost(&self.question.spec_of(kind), one.by_importance)
    }

    /// Whether a filter keeps the limits, a rate of false negatives with some slack.
    pub(super) fn keeps_limits(&self, one: &Tried, slack: f64) -> bool {
        self.keeps_fpr(one) && self.keeps_fnr(one, slack)
    }

    pub(super) fn keeps_fpr(&self, one: &Tried) -> bool {
        self.question.is_kept(&one.plan, &one.forecast, 1.0)
    }

    pub(super) fn keeps_fnr(&self, one: &Tried, slack: f64) -> bool {
        self.question.target_fnr.is_none_or(|most| one.forecast.predicted_fnr <= most * slack)
    }

    pub(super) fn sort(&self, tried: &mut [Tried]) {
        tried.sort_by(|one, other| one.total().total_cmp(&other.total()));
    }

    /// Those that keep the limits before others: the cheapest of a kind may break them where a dearer one does not.
    fn sort_kept_first(&self, tried: &mut [Tried]) {
        self.sort(tried);
        tried.sort_by_key(|one| !self.keeps_limits(one, 1.0));
    }
}

impl Trials<'_> {
    /// Tries a filter, if it can be planned and its promise lasts as long as the stream.
    fn add(&mut self, spec: &Spec, by_importance: bool, rate: Option<f64>) {
        if let Err(error) = self.attempt(spec, by_importance, rate) {
            self.refusal.get_or_insert(error);
        }
    }

    fn attempt(&mut self, spec: &Spec, by_importance: bool, rate: Option<f64>) -> Result<()> {
        let Search { question, stream, .. } = self.search;
        question.go_on()?;
        let mix = question.goal.known_importance_mix().or(stream.importance().copied());
        let goal = question.goal().without_importance().memory_bits(self.memory_bits);
        let goal = rate.map_or(goal.clone().without_fpr(), |rate| goal.fpr(rate));
        let goal = match (by_importance, mix) {
            (true, Some(mix)) => goal.importance_mix(mix),
            (true, None) => goal.with_importance(),
            (false, _) => goal,
        };
        let plan = question.kinds.complete(spec, &goal)?;
        let lasts = match plan.promise.holds {
            Holds::UntilItems(items) => question.expected().is_some_and(|expected| items >= expected),
            _ => true,
        };
        if !lasts || plan.memory_bits > self.memory_bits || !self.known.insert(plan.spec.to_string()) {
            return Ok(());
        }
        let forecast = self.search.forecast(&plan, &self.shared)?;
        let cost = self.search.cost_of(&plan, &forecast);
        self.tried.push(Tried { plan, forecast, cost, rate, spec: spec.clone(), by_importance });
        Ok(())
    }

    /// Tries specs at rates near that of one that is known.
    fn around(&mut self, one: &Tried, factors: &[f64], specs: &[Spec]) {
        let Some(rate) = one.rate else {
            specs.iter().for_each(|spec| self.add(spec, one.by_importance, None));
            return;
        };
        for spec in specs {
            for rate in factors.iter().map(|factor| rate * factor).filter(|rate| *rate < HIGHEST_RATE) {
                self.add(spec, one.by_importance, Some(rate));
            }
        }
    }

    /// The cheapest so far that keeps the limits.
    fn cheapest(&self) -> Option<Tried> {
        let kept = self.tried.iter().filter(|one| self.search.keeps_limits(one, SLACK));
        kept.min_by(|one, other| one.errors().total_cmp(&other.errors())).cloned()
    }

    /// The best so far that was planned from the same spec.
    fn best_like(&self, one: &Tried) -> Option<Tried> {
        let alike = |other: &&Tried| other.spec == one.spec && other.by_importance == one.by_importance;
        let kept = self.tried.iter().filter(alike).filter(|other| self.search.keeps_limits(other, SLACK));
        kept.min_by(|one, other| one.errors().total_cmp(&other.errors())).cloned()
    }

    fn sorted(mut self) -> (Vec<Tried>, Option<Error>) {
        self.search.sort(&mut self.tried);
        (self.tried, self.refusal)
    }
}

/// Whether a kind takes long to simulate: a search by cost has more to try of it than its plan leaves open.
fn is_slow(kind: &Kind) -> bool {
    !kind.model.choices_by_cost.is_empty()
}

/// The first of each kind and form.
fn first_of_each<'t>(tried: impl Iterator<Item = &'t Tried>) -> impl Iterator<Item = &'t Tried> {
    let mut known = HashSet::new();
    tried.filter(move |one| known.insert(form_of(&one.plan)))
}
