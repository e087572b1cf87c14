//! Which filter, for a goal and a stream: whatever forecasts best.
//!
//! Filters that never forget are planned first: where one keeps its rate for all keys that will come, no
//! other can miss less. Where none fits, every kind for endless streams is tried in every variant that its
//! plan leaves open, first on a short simulation of the stream, then the best of them on a longer one.

use super::simulate::{Patience, scaled, simulated};
use super::{SIMULATED, at_a_glance, forecast};
use crate::filter::Kind;
use crate::filters::{self, KINDS};
use crate::promise::{Error, Goal, Holds, MAX_ITEMS, Plan, Rate, Result, Spec, Window, rate_text, size_text};
use crate::stream::scaled::ScaledStream;
use crate::stream::{Forecast, Stream};

/// Arrivals of the first, short simulation.
const SCREENED: f64 = 40_000.0;

/// Arrivals of a first glance at every kind.
const GLANCED: f64 = 10_000.0;

/// The variants of a kind are tried if, as planned, it misses at most this many times as much as the best.
const SHORTLIST: f64 = 1.5;

/// How many kinds are looked at again, at most.
const MOST_SHORTLISTED: usize = 5;

/// How many variants are tried on the longer one.
const FINALISTS: usize = 10;

/// How many runners-up are named.
const RUNNERS_UP: usize = 4;

/// A filter that errs not at all at first is taken while it misses at most this many times as much as the best.
const WORTH_BEING_EXACT: f64 = 1.02;

/// A faster filter is taken while it takes at most this much more memory than the smallest,
const PREMIUM_FOR_SPEED: f64 = 1.15;

/// or so little in all.
const SMALL_ENOUGH_BITS: f64 = 4096.0;

/// Why a filter that was named is recommended.
const ASKED_FOR: &str = "it was asked for";

/// What is asked of the planner beyond a goal.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Question {
    /// Memory, rate of false positives, distinct keys, importances.
    pub goal: Goal,
    /// The rate of false negatives to keep on the stream.
    pub target_fnr: Option<f64>,
    /// The window in which nothing may be missed; one of time is expected to have `expected_items` arrivals.
    pub window: Option<Window>,
    /// Whether a repeat leaves its key's age in the window as it is.
    pub keep_age: bool,
    /// The stream, if it is known.
    pub stream: Option<Stream>,
    /// The filter, if it is settled: only its parameters are open.
    pub filter: Option<Spec>,
    /// Whether only the best filter is wanted, so that no time is spent on the runners-up.
    pub(super) best_only: bool,
}

/// A filter that answers a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Candidate {
    /// The filter.
    pub plan: Plan,
    /// What to expect of it on the stream.
    pub forecast: Forecast,
    /// Why it is recommended, or not.
    pub reason: String,
}

/// The answer to a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recommendation {
    /// The filter to take.
    pub best: Candidate,
    /// The runners-up, the best first.
    pub runners_up: Vec<Candidate>,
    /// The stream that the forecasts are for.
    pub stream: Stream,
    /// Whether that stream was assumed, because nothing was said of it.
    pub assumed: bool,
}

impl Question {
    /// A question about a goal and nothing else.
    pub fn new(goal: Goal) -> Self {
        Question { filter: goal.filter.clone(), goal, ..Question::default() }
    }

    /// The filter to take, and the runners-up with reasons.
    pub fn answer(&self) -> Result<Recommendation> {
        self.checked()?;
        if let Some(window) = &self.window {
            return self.for_window(window);
        }
        match &self.filter {
            Some(spec) if spec.kind() != super::AUTO => self.for_named(spec),
            _ if self.goal.memory_bits.is_none() => self.without_memory(),
            _ => self.within_memory(),
        }
    }

    /// What to expect of a filter that was named, in the best variant if the memory and the stream are known.
    fn for_named(&self, spec: &Spec) -> Result<Recommendation> {
        let plan = filters::plan(spec, &self.goal())?;
        let stream = self.stream()?;
        let mut candidates = match (self.goal.memory_bits, &self.stream, filters::kind(spec)?.can.run_forever) {
            (Some(_), Some(_), true) => self.contenders(&stream)?,
            _ => Vec::new(),
        };
        let plan_is_open = !candidates.is_empty() && plan.spec != *spec;
        if candidates.is_empty() {
            candidates.push(self.as_named(plan, &stream)?);
        }
        for candidate in &mut candidates {
            candidate.reason = match plan_is_open {
                true => "it was asked for; its open parameters are those that forget least on this stream".into(),
                false => ASKED_FOR.into(),
            };
        }
        let found = self.recommended(candidates, stream)?;
        self.check_target(found)
    }

    /// What was named, as it is planned. Where that promises nothing, what it comes to on the stream is said.
    fn as_named(&self, mut plan: Plan, stream: &Stream) -> Result<Candidate> {
        let forecast = forecast(&plan, stream)?;
        if let (Holds::Never, Some(target)) = (plan.promise.holds, self.goal.target_fpr)
            && forecast.predicted_fpr > target
        {
            let (target, predicted) = (rate_text(target), rate_text(forecast.predicted_fpr));
            plan.notes.push(format!("its parameters do not keep a rate of {target} on this stream, but {predicted}"));
        }
        Ok(Candidate { forecast, plan, reason: ASKED_FOR.into() })
    }

    fn checked(&self) -> Result<()> {
        self.goal.checked()?;
        match self.target_fnr {
            Some(rate) if !(0.0..1.0).contains(&rate) => {
                Err(Error::parameter("target_fnr", rate, "at least 0 and below 1", "try 0.1, or 0 to miss nothing"))
            }
            _ => Ok(()),
        }
    }

    /// The stream that was described, or the one that is assumed.
    fn stream(&self) -> Result<Stream> {
        let stream = match (&self.stream, self.goal.expected_items, self.goal.memory_bits) {
            (Some(stream), _, _) => return Ok(stream.clone()),
            (None, Some(items), _) => Stream::assumed(items)?,
            // An endless stream with unknown keys is assumed to have about one key for each bit.
            (None, None, bits) => Stream::assumed(bits.unwrap_or(1 << 20).max(1 << 10))?,
        };
        let mix = self.goal.importance_mix.or(self.goal.importance.then(crate::promise::ImportanceMix::uniform));
        Ok(match mix {
            Some(mix) => stream.with_importance(mix),
            None => stream,
        })
    }

    /// The distinct keys that the filter must be planned for, if they are known: no fewer than a sample has.
    fn expected(&self) -> Option<u64> {
        match (self.goal.expected_items, &self.stream) {
            (Some(items), Some(stream)) if stream.is_learned() => Some(items.max(stream.distinct())),
            (Some(items), _) => Some(items),
            (None, stream) => stream.as_ref().map(Stream::distinct),
        }
    }

    fn goal(&self) -> Goal {
        Goal { expected_items: self.expected(), ..self.goal.clone() }
    }

    fn recommended(&self, mut candidates: Vec<Candidate>, stream: Stream) -> Result<Recommendation> {
        candidates.truncate(RUNNERS_UP + 1);
        let mut rest = candidates.into_iter();
        let mut best = rest.next().ok_or_else(|| self.nothing_fits())?;
        if stream.is_learned() && stream.sampled_one_in() > 1.0 && filters::takes_whole_stream(&best.plan) {
            let kind = best.plan.spec.kind();
            best.plan.notes.push(format!(
                "the stream is too long for every arrival to be kept, and a part of its keys does not tell what {kind} does: the \
                 forecast may be off by more than its ±; run compare on the stream"
            ));
        }
        let runners_up = rest.map(|candidate| candidate.beside(&best)).collect();
        Ok(Recommendation { best, runners_up, stream, assumed: self.stream.is_none() })
    }

    fn nothing_fits(&self) -> Error {
        Error::Infeasible {
            wanted: "this goal".into(),
            reason: "no filter can be planned for it".into(),
            remedy: "give more memory or accept a higher rate".into(),
        }
    }

    /// The specs of the kinds that can keep a window, as they keep this one, each with its twin that turns its window by
    /// arrivals: nobody turns it in a simulation.
    fn windowed_specs(&self, window: &Window) -> Vec<(Spec, Spec)> {
        let of = |kind: &Kind| {
            let (takes, mut spec) = (kind.can.window?, self.spec_of(kind));
            if self.keep_age {
                spec = spec.with(takes.refresh?, "no");
            }
            let arrivals = match window {
                Window::Arrivals(arrivals) => Some(*arrivals),
                Window::Time(_) => self.goal.expected_items,
            };
            let twin = arrivals.iter().fold(spec, |spec, arrivals| spec.with(takes.parameter, arrivals));
            Some(match window {
                Window::Arrivals(_) => (twin.clone(), twin),
                Window::Time(_) => (takes.by_caller.map(|(name, value)| twin.clone().with(name, value))?, twin),
            })
        };
        let wanted = |kind: &&Kind| {
            self.filter.as_ref().is_none_or(|spec| spec.kind() == kind.name || spec.kind() == super::AUTO)
        };
        KINDS.iter().filter(wanted).filter_map(of).collect()
    }

    fn for_window(&self, window: &Window) -> Result<Recommendation> {
        if self.goal.memory_bits.or(self.goal.expected_items).is_none() && matches!(window, Window::Time(_)) {
            let remedy = "say how many arrivals a window of that time has, or how much memory there is";
            return Err(Error::parameter("expected_items", "not given", "given, or memory", remedy));
        }
        // Windows count arrivals, so the number of keys that will ever come does not matter.
        let goal = Goal { expected_items: None, ..self.goal.clone() };
        let specs = self.windowed_specs(window);
        let plans: Vec<_> =
            specs.iter().map(|(spec, twin)| Ok((filters::plan(spec, &goal)?, filters::plan(twin, &goal)?))).collect();
        if plans.is_empty() {
            let problem = "it has no window";
            let spec = self.filter.clone().unwrap_or_else(|| Spec::new(super::AUTO));
            let able = filters::names(|kind| kind.can.window.is_some());
            return Err(spec.error(problem, format!("take one of {able}, or name no filter")));
        }
        let mut candidates = Vec::new();
        let mut streams = Vec::new();
        for (plan, twin) in plans.iter().flatten() {
            let parameter = filters::kind(&plan.spec)?.can.window.map_or("", |takes| takes.parameter);
            let arrivals: u64 = plan.spec.number(parameter)?.unwrap_or(1);
            let assumed = match (&self.stream, window) {
                (Some(stream), _) => stream.clone(),
                (None, Window::Arrivals(_)) => {
                    Stream::assumed(self.goal.expected_items.unwrap_or(arrivals.saturating_mul(4)).min(MAX_ITEMS / 2))?
                }
                (None, Window::Time(_)) => Stream::assumed(arrivals.saturating_mul(4).min(MAX_ITEMS / 2))?,
            };
            let forecast = forecast(twin, &assumed)?;
            let within = match window {
                Window::Arrivals(arrivals) => format!("{} arrivals", apart(*arrivals)),
                Window::Time(_) => format!("the window, of up to {} arrivals", apart(arrivals)),
            };
            let reason = format!("misses nothing within {within}, in {}", size_text(plan.memory_bits));
            candidates.push(Candidate { plan: plan.clone(), forecast, reason });
            streams.push(assumed);
        }
        let stream = match streams.into_iter().next() {
            Some(stream) => stream,
            None => self.stream()?,
        };
        candidates.sort_by_key(|candidate| candidate.plan.memory_bits);
        match plans.into_iter().find_map(Result::err) {
            Some(error) if candidates.is_empty() => Err(error),
            _ => self.recommended(candidates, stream),
        }
    }

    fn without_memory(&self) -> Result<Recommendation> {
        if self.expected().is_none() {
            let remedy = "say how much memory there is, or how many distinct keys will come";
            return Err(Error::parameter("memory", "not given", "given, or expected_items", remedy));
        }
        match self.target_fnr {
            Some(rate) if rate > 0.0 => self.least_memory(rate),
            _ => match self.non_forgetting()? {
                Some(found) => Ok(found),
                // The first of them, the plainest, says what is missing.
                None => {
                    let refusal = self.sets().find_map(|kind| filters::plan(&self.spec_of(kind), &self.goal()).err());
                    Err(refusal.unwrap_or_else(|| self.nothing_fits()))
                }
            },
        }
    }

    /// The filters that never forget and keep the rate for all expected keys, the one to take first.
    fn non_forgetting(&self) -> Result<Option<Recommendation>> {
        let Some(expected) = self.expected() else { return Ok(None) };
        let stream = self.stream()?;
        let mut candidates = Vec::new();
        for kind in self.sets() {
            let Ok(plan) = filters::plan(&self.spec_of(kind), &self.goal()) else { continue };
            if !self.fits(&plan, &stream) || plan.promise.predicted_fnr != Some(0.0) {
                continue;
            }
            let forecast = at_a_glance(&plan, &stream)?;
            if self.is_kept(&plan, &forecast, 1.0) {
                let reason = format!("misses nothing and keeps its rate for {} keys", apart(expected));
                candidates.push(Candidate { plan, forecast, reason });
            }
        }
        candidates.sort_by_key(|candidate| candidate.plan.memory_bits);
        prefer_fewer_accesses(&mut candidates);
        candidates.truncate(RUNNERS_UP + 1);
        self.look_closely(&mut candidates, &stream)?;
        if candidates.is_empty() { Ok(None) } else { self.recommended(candidates, stream).map(Some) }
    }

    /// The kinds that never forget and may be the answer. One that grows does not stay within any memory, and is not
    /// needed where keys are counted.
    fn sets(&self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| !kind.can.forget && !kind.can.grow && self.is_asked_for(kind))
    }

    /// The spec of a kind, with what was settled about it.
    fn spec_of(&self, kind: &Kind) -> Spec {
        match &self.filter {
            Some(spec) => spec.renamed(kind.name),
            None => Spec::new(kind.name),
        }
    }

    /// A kind as its plan makes it, in each of its forms.
    fn basic_specs(&self, kind: &Kind) -> Vec<Spec> {
        kind.model.forms(&self.spec_of(kind))
    }

    /// Whether a kind may be the answer.
    fn is_asked_for(&self, kind: &Kind) -> bool {
        // A goal names no scheme, and without one the filters that take one are plain ones under another name.
        // One that is exact at first knows no ranks, and stops when it ceases to be.
        let suits = !kind.can.exact_first || !(self.goal.importance || self.goal.evenly);
        let by_itself = kind.can.follow_scheme.is_none() && suits;
        self.filter
            .as_ref()
            .map_or(by_itself, |spec| spec.kind() == kind.name || (by_itself && spec.kind() == super::AUTO))
    }

    fn within_memory(&self) -> Result<Recommendation> {
        if let Some(found) = self.non_forgetting()? {
            return Ok(found);
        }
        if self.goal.never_forget {
            return Err(self.too_small());
        }
        let stream = self.stream()?;
        // On a stream that is only assumed, a short simulation tells as much as a long one.
        let candidates = match self.stream {
            Some(_) => self.contenders(&stream)?,
            None => match self.screen(&stream, false)? {
                (candidates, Some(error)) if candidates.is_empty() => return Err(error),
                (candidates, _) => one_of_each(candidates),
            },
        };
        let found = self.recommended(candidates, stream)?;
        self.check_target(found)
    }

    /// Why no filter that never forgets fits, with the memory and the rate that would do.
    fn too_small(&self) -> Error {
        let goal = self.goal();
        let (Some(items), Some(most)) = (goal.expected_items, goal.memory_bits) else {
            let remedy = "say how many distinct keys will come";
            return Error::parameter("expected_items", "not given", "given", remedy);
        };
        let plans = |goal: &Goal| -> Vec<Plan> {
            self.sets().filter_map(|kind| filters::plan(&self.spec_of(kind), goal).ok()).collect()
        };
        let needed = plans(&Goal { memory_bits: None, ..goal.clone() }).iter().map(|plan| plan.memory_bits).min();
        let kept = plans(&Goal { target_fpr: None, ..goal.clone() });
        let lowest = kept.iter().map(|plan| plan.promise.predicted_fpr).fold(1.0, f64::min);
        // What a filter comes to is not always what one can be planned for.
        let rates = std::iter::successors(Some(lowest), |rate| Some(rate * 1.01)).take_while(|rate| *rate < 0.99);
        let written = rates.filter_map(|rate| Rate::from(rate_text(rate).as_str()).get().ok()).take(50);
        let rate = written.map(|rate| Goal { target_fpr: Some(rate), ..goal.clone() }).find(|at| !plans(at).is_empty());
        let remedies = [
            needed.map(|bits| format!("give {} of memory", size_text(bits))),
            rate.and_then(|goal| goal.target_fpr).map(|rate| format!("accept a rate of {}", rate_text(rate))),
        ];
        let remedies: Vec<_> = remedies.into_iter().flatten().collect();
        let asked = goal.target_fpr.map_or(String::new(), |rate| format!("a rate of {} for ", rate_text(rate)));
        Error::Infeasible {
            wanted: format!("{asked}{items} keys, none of them forgotten,"),
            reason: match needed {
                Some(bits) => format!("that takes {}, more than {}", size_text(bits), size_text(most)),
                None => "no filter reaches it".into(),
            },
            remedy: if remedies.is_empty() { "expect fewer keys".into() } else { remedies.join(", or ") },
        }
    }

    /// The recommendation, if it misses no more than asked.
    fn check_target(&self, found: Recommendation) -> Result<Recommendation> {
        match self.target_fnr {
            Some(wanted) if found.best.forecast.predicted_fnr > wanted => Err(self.too_little(wanted, &found)),
            _ => Ok(found),
        }
    }

    fn too_little(&self, wanted: f64, found: &Recommendation) -> Error {
        let best = &found.best;
        let enough = Question { goal: Goal { memory_bits: None, ..self.goal.clone() }, ..self.clone() };
        let bits = match enough.without_memory() {
            Ok(enough) => format!("give about {}, or ", size_text(enough.best.plan.memory_bits)),
            Err(_) => String::new(),
        };
        Error::Infeasible {
            wanted: format!("missing at most {} of the repeats", rate_text(wanted)),
            reason: format!(
                "the best forecast for {} is {}, of {}",
                size_text(self.goal.memory_bits.unwrap_or_default()),
                rate_text(best.forecast.predicted_fnr),
                best.plan.spec
            ),
            remedy: format!("{bits}accept {}", rate_text(best.forecast.predicted_fnr)),
        }
    }

    /// The smallest memory for which the forecast is good enough.
    fn least_memory(&self, wanted: f64) -> Result<Recommendation> {
        let non_forgetting = self.non_forgetting()?;
        let most = non_forgetting.as_ref().map_or(1 << 40, |found| found.best.plan.memory_bits);
        let with = |bits: u64| Question { goal: self.goal.clone().memory_bits(bits), target_fnr: None, ..self.clone() };
        let highest = libm::log2(most as f64);
        let (mut low, mut high, mut best) = ((highest - 10.0).max(9.0), highest, non_forgetting.clone());
        while high - low > 0.04 {
            let middle = 0.5 * (low + high);
            match with(libm::exp2(middle) as u64).screened() {
                Ok(found) if found.best.forecast.predicted_fnr <= wanted => {
                    (high, best) = (middle, Some(found));
                }
                _ => low = middle,
            }
        }
        // These were short simulations. A longer one has the last word.
        while high < highest {
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

    /// All filters that are possible, by what they do in a simulation.
    fn contenders(&self, stream: &Stream) -> Result<Vec<Candidate>> {
        let (screened, refusal) = self.screen(stream, true)?;
        let memory_bits = self.goal.memory_bits.unwrap_or_default();
        let long = scaled(stream, memory_bits, SIMULATED);
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
    fn look_closely(&self, candidates: &mut [Candidate], stream: &Stream) -> Result<()> {
        if stream.is_learned() {
            for candidate in candidates {
                candidate.forecast = forecast(&candidate.plan, stream)?;
            }
        }
        Ok(())
    }

    /// Every kind on a short simulation, with its variants if asked for, the best first; and why others could
    /// not be planned.
    fn screen(&self, stream: &Stream, variants: bool) -> Result<(Vec<Candidate>, Option<Error>)> {
        let memory_bits = self.goal.memory_bits.unwrap_or_default();
        let shortest = scaled(stream, memory_bits, GLANCED);
        let mut trial =
            Trial { question: self, stream, scaled: shortest, slack: 1.3, candidates: Vec::new(), refusal: None };
        let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| kind.can.run_forever && self.is_asked_for(kind)).collect();
        for spec in kinds.iter().flat_map(|kind| self.basic_specs(kind)) {
            trial.add(&spec);
        }
        if self.stream.is_none() {
            // The stream is only assumed: a closer look would tell no more.
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
        (trial.scaled, trial.slack) = (scaled(stream, memory_bits, SCREENED), 1.1);
        let is_behind = |kind: &&Kind| behind.iter().any(|one| one.plan.spec.kind() == kind.name);
        let is_shortlisted = |kind: &&Kind| shortlisted.iter().any(|one| one.plan.spec.kind() == kind.name);
        for kind in kinds.iter().filter(|kind| is_shortlisted(kind) || !is_behind(kind)) {
            let variants =
                if variants { kind.model.variants(&self.spec_of(kind), self.goal.importance) } else { vec![] };
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
    fn fits(&self, plan: &Plan, stream: &Stream) -> bool {
        let lasts = match plan.promise.holds {
            Holds::Always => true,
            Holds::UntilItems(items) => items >= self.expected().unwrap_or_else(|| stream.distinct()),
            Holds::Never => self.stream.is_some() || self.is_named(),
        };
        lasts && self.goal.memory_bits.is_none_or(|most| plan.memory_bits <= most)
    }

    /// Whether the filter itself was asked for, whatever its rate.
    fn is_named(&self) -> bool {
        self.filter.as_ref().is_some_and(|spec| spec.kind() != super::AUTO)
    }

    /// Whether the asked rate is promised; where a filter promises nothing, whether it comes to no more and keeps it on
    /// the stream that was described, with some slack for what a short simulation does not know.
    fn is_kept(&self, plan: &Plan, forecast: &Forecast, slack: f64) -> bool {
        let Some(target) = self.goal.target_fpr else { return true };
        let on_stream = || self.stream.is_some() && forecast.predicted_fpr <= target * slack;
        plan.promise.predicted_fpr <= target && (plan.promise.holds != Holds::Never || on_stream())
    }

    fn forecast_on(&self, plan: &Plan, stream: &Stream, scaled: &ScaledStream, patience: Patience) -> Result<Forecast> {
        // Chains are near, but a simulation that all contenders share tells them apart without bias.
        match simulated(plan, stream, scaled, patience)? {
            Some(forecast) => Ok(forecast),
            None => forecast(plan, stream),
        }
    }

    /// What is to be small: missed repeats, by importance where there is any.
    fn missed(&self, candidate: &Candidate) -> f64 {
        if self.goal.importance { candidate.forecast.wfn } else { candidate.forecast.predicted_fnr }
    }

    fn sort(&self, candidates: &mut [Candidate]) {
        let missed = |one: &Candidate| match filters::kind(&one.plan.spec).is_ok_and(|kind| kind.can.exact_first) {
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
    scaled: ScaledStream,
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
        Patience { missed, by_importance: question.goal.importance }
    }

    fn tried(&mut self, spec: &Spec) -> Result<()> {
        let plan = filters::plan(spec, &self.question.goal())?;
        if known(&self.candidates, &plan) || !self.question.fits(&plan, self.stream) {
            return Ok(());
        }
        let forecast = self.question.forecast_on(&plan, self.stream, &self.scaled, self.patience())?;
        if self.question.is_kept(&plan, &forecast, self.slack) {
            self.candidates.push(Candidate { plan, forecast, reason: "forgets least on this stream".into() });
        }
        Ok(())
    }
}

impl Candidate {
    /// The candidate with the reason why it is not the best.
    fn beside(mut self, best: &Candidate) -> Self {
        let (mine, theirs) = (&self.forecast, &best.forecast);
        let more_memory = self.plan.memory_bits as f64 / best.plan.memory_bits.max(1) as f64 - 1.0;
        self.reason = if mine.predicted_fnr > theirs.predicted_fnr {
            format!(
                "misses {:.3} % of the repeats, not {:.3} %",
                100.0 * mine.predicted_fnr,
                100.0 * theirs.predicted_fnr
            )
        } else if more_memory > 0.0 {
            format!("takes {:.1} % more memory", 100.0 * more_memory)
        } else if more_memory < 0.0 {
            format!(
                "takes {:.1} % less memory, and {} memory accesses a key",
                -100.0 * more_memory,
                accesses(&self.plan)
            )
        } else if mine.wfn <= theirs.wfn {
            "misses as much, and errs from the first key on".into()
        } else {
            format!("misses more of what matters: wfn {:.3} %, not {:.3} %", 100.0 * mine.wfn, 100.0 * theirs.wfn)
        };
        self
    }
}

/// A count with its thousands apart.
fn apart(count: u64) -> String {
    let digits = count.to_string();
    let parts = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    parts.collect::<Vec<_>>().join(",")
}

/// Cache lines that a key touches.
fn accesses(plan: &Plan) -> u64 {
    filters::kind(&plan.spec).map_or(1, |kind| kind.model.accesses(&plan.spec))
}

fn known(candidates: &[Candidate], plan: &Plan) -> bool {
    candidates.iter().any(|candidate| candidate.plan.spec == plan.spec)
}

/// The best of each kind and form.
fn one_of_each(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let form = |candidate: &Candidate| {
        let spec = &candidate.plan.spec;
        (spec.kind().to_string(), filters::kind(spec).ok().and_then(|kind| kind.model.form_of(spec)))
    };
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if kept.iter().all(|other| form(other) != form(&candidate)) {
            kept.push(candidate);
        }
    }
    kept
}

/// Puts the filter with the fewest memory accesses first, of those that are little larger than the smallest.
fn prefer_fewer_accesses(candidates: &mut Vec<Candidate>) {
    let Some(least) = candidates.first().map(|candidate| candidate.plan.memory_bits as f64) else { return };
    let is_close = |candidate: &&Candidate| {
        candidate.plan.memory_bits as f64 <= (least * PREMIUM_FOR_SPEED).max(SMALL_ENOUGH_BITS)
    };
    let close = candidates.iter().take_while(is_close).enumerate();
    if let Some((place, _)) = close.min_by_key(|(_, candidate)| accesses(&candidate.plan)) {
        let fastest = candidates.remove(place);
        candidates.insert(0, fastest);
    }
}
