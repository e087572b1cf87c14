//! Which filter, for a goal and a stream: whatever forecasts best.
//!
//! Filters that never forget are planned first: where one keeps its rate for all keys that will come, no
//! other can miss less. Where none fits, every kind for endless streams is tried in every variant that its
//! plan leaves open, first on a short simulation of the stream, then the best of them on a longer one.

mod contest;
mod cost;
mod least_memory;
mod pace;
mod rule;
mod sets;
mod window;

use crate::{Cost, Forecast, Stream};
use contest::one_of_each;
pub use cost::{CostCurve, CostPoint, CostSoFar, ExpectedCost};
use everbloom::kind::{Kind, Kinds, rate_text};
use everbloom::planning::{ASKED_FOR, AUTO, Sets, accesses, apart};
use everbloom::{Error, Goal, Holds, Plan, Result, Spec, Window};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How many runners-up are named.
const RUNNERS_UP: usize = 4;

/// What is asked of the planner beyond a goal.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Question {
    /// Memory, rate of false positives, distinct keys, importances.
    pub goal: Goal,
    /// The rate of false negatives to keep on the stream.
    pub target_fnr: Option<f64>,
    /// What errors cost, if the filter is to be the cheapest.
    pub cost: Option<Cost>,
    /// The window in which nothing may be missed; one of time is expected to have `expected_items` arrivals.
    pub window: Option<Window>,
    /// Whether a repeat leaves its key's age in the window as it is.
    pub keep_age: bool,
    /// The stream, if it is known.
    pub stream: Option<Stream>,
    /// The kinds that may be the answer.
    pub kinds: Kinds,
    /// The filter, if it is settled: only its parameters are open.
    pub filter: Option<Spec>,
    /// Whether an answer at once counts for more than a close one: every kind as its plan makes it, by formula or on the
    /// shortest of simulations. That takes about a tenth of a second, and its ± says how close it is.
    ///
    /// ```
    /// use everbloom::Goal;
    /// use everbloom_forecast::{Question, Stream};
    ///
    /// let mut question = Question::new(Goal::new().memory("16KiB").fpr("1%"));
    /// question.stream = Some(Stream::uniform(200_000, 100_000)?);
    /// question.quick = true;
    /// let best = question.answer()?.best;
    /// assert!(best.plan.memory_bits <= 131_072 && best.forecast.predicted_fnr > 0.5);
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub quick: bool,
    /// Ends a search early once another thread sets it: its answer is an error then.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Whether only the best filter is wanted, so that no time is spent on runners-up, nor on a curve of other memories where
    /// the memory is given and costs nothing. The best is the same, but where two filters are within a few per cent of each other.
    pub best_only: bool,
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
    /// What it costs per arrival, if somebody said what errors cost.
    pub cost: Option<ExpectedCost>,
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
    /// What it would cost per arrival to let every repeat through, if somebody said what errors cost.
    pub without_filter: Option<f64>,
    /// The cost of the cheapest filter against its memory, if somebody said what errors cost.
    pub curve: Option<CostCurve>,
}

impl Question {
    /// A question about a goal and nothing else.
    pub fn new(goal: Goal) -> Self {
        Question { filter: goal.named_filter().cloned(), goal, ..Question::default() }
    }

    /// Says what errors cost, and so asks for the filter and the parameters of least expected cost, on the stream that is
    /// described or on one that is assumed. Memory and rate are then limits: the cheapest filter within them is planned.
    pub fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// A question about a goal, to be answered by a filter of one of these kinds.
    pub fn among(kinds: Kinds, goal: Goal) -> Self {
        Question { kinds, ..Question::new(goal) }
    }

    /// The filter to take, and the runners-up with reasons.
    pub fn answer(&self) -> Result<Recommendation> {
        let mut answer = self.answered()?;
        // Contenders meet on the same arrivals; how near those are to the stream matters to what is told of them.
        if answer.stream.has_coarse_lags() {
            let told = std::iter::once(&mut answer.best).chain(&mut answer.runners_up);
            told.for_each(|candidate| candidate.forecast.widen_for_coarse_lags());
        }
        Ok(answer)
    }

    fn answered(&self) -> Result<Recommendation> {
        self.checked()?;
        let mut found = self.in_time().found()?;
        // What was found before a search was broken off is not all there is.
        self.go_on()?;
        if let Some(stream) = &self.stream {
            found.stream = stream.clone();
        }
        Ok(found)
    }

    fn found(&self) -> Result<Recommendation> {
        if let Some(cost) = &self.cost {
            return self.cheapest(cost);
        }
        if let Some(window) = &self.window {
            return self.for_window(window);
        }
        match &self.filter {
            Some(spec) if spec.kind() != AUTO => self.for_named(spec),
            _ if self.stream.is_none() && self.target_fnr.is_none() => self.by_rule(),
            _ if self.goal.most_memory_bits().is_none() => self.without_memory(),
            _ => self.within_memory(),
        }
    }

    /// What to expect of a filter that was named, in the best variant if the memory and the stream are known.
    fn for_named(&self, spec: &Spec) -> Result<Recommendation> {
        let plan = self.kinds.complete(spec, &self.goal())?;
        let stream = self.stream()?;
        let mut candidates = match (self.goal.most_memory_bits(), &self.stream, plan.kind.can.run_forever) {
            (Some(_), Some(_), true) if self.quick => one_of_each(self.screen(&stream, false)?.0),
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
        let forecast = self.forecast_alone(&plan, stream)?;
        if let (Holds::Never, Some(target)) = (plan.promise.holds, self.goal.target_fpr())
            && forecast.predicted_fpr > target
        {
            let (target, predicted) = (rate_text(target), rate_text(forecast.predicted_fpr));
            plan.notes.push(format!("its parameters do not keep a rate of {target} on this stream, but {predicted}"));
        }
        Ok(Candidate { forecast, plan, reason: ASKED_FOR.into(), cost: None })
    }

    fn checked(&self) -> Result<()> {
        self.goal.checked()?;
        self.cost.as_ref().map_or(Ok(()), Cost::checked)?;
        match self.target_fnr {
            Some(rate) if !(0.0..1.0).contains(&rate) => {
                Err(Error::parameter("target_fnr", rate, "at least 0 and below 1", "try 0.1, or 0 to miss nothing"))
            }
            _ => Ok(()),
        }
    }

    /// The stream that was described, or the one that is assumed.
    fn stream(&self) -> Result<Stream> {
        let stream = match (&self.stream, self.goal.known_items(), self.goal.most_memory_bits()) {
            (Some(stream), _, _) => return Ok(stream.clone()),
            (None, Some(items), _) => Stream::assumed(items)?,
            // An endless stream with unknown keys is assumed to have about one key for each bit.
            (None, None, bits) => Stream::assumed(bits.unwrap_or(1 << 20).max(1 << 10))?,
        };
        let mix =
            self.goal.known_importance_mix().or(self.goal.has_importance().then(everbloom::ImportanceMix::uniform));
        Ok(match mix {
            Some(mix) => stream.with_importance(mix),
            None => stream,
        })
    }

    /// The distinct keys that the filter must be planned for, if they are known: no fewer than a sample has.
    fn expected(&self) -> Option<u64> {
        match (self.goal.known_items(), &self.stream) {
            (Some(items), Some(stream)) if stream.is_learned() => Some(items.max(stream.distinct())),
            (Some(items), _) => Some(items),
            (None, _) if self.goal.is_open_ended() => None,
            (None, stream) => stream.as_ref().map(Stream::distinct),
        }
    }

    pub(super) fn goal(&self) -> Goal {
        match self.expected() {
            Some(items) => self.goal.clone().expected_items(items),
            None => self.goal.clone().without_expected_items(),
        }
    }

    fn recommended(&self, mut candidates: Vec<Candidate>, stream: Stream) -> Result<Recommendation> {
        candidates.truncate(RUNNERS_UP + 1);
        let mut rest = candidates.into_iter();
        let mut best = rest.next().ok_or_else(|| self.nothing_fits())?;
        if stream.is_learned() && stream.sampled_one_in() > 1.0 && best.plan.takes_whole_stream() {
            let kind = best.plan.spec.kind();
            best.plan.notes.push(format!(
                "the stream is too long for every arrival to be kept, and a part of its keys does not tell what {kind} does: the \
                 forecast may be off by more than its ±; run compare on the stream"
            ));
        }
        let runners_up = rest.map(|candidate| candidate.beside(&best)).collect();
        Ok(Recommendation {
            best,
            runners_up,
            stream,
            assumed: self.stream.is_none(),
            without_filter: None,
            curve: None,
        })
    }

    fn nothing_fits(&self) -> Error {
        Error::Infeasible {
            wanted: "this goal".into(),
            reason: "no filter can be planned for it".into(),
            remedy: "give more memory or accept a higher rate".into(),
        }
    }

    /// What is settled about the filter; `auto` if nothing is.
    fn shape(&self) -> Spec {
        self.filter.clone().unwrap_or_else(|| Spec::new(AUTO))
    }

    /// The spec of a kind, with what was settled about it.
    fn spec_of(&self, kind: &Kind) -> Spec {
        self.shape().renamed(kind.name)
    }

    /// A kind as its plan makes it, in each of its forms.
    fn basic_specs(&self, kind: &Kind) -> Vec<Spec> {
        kind.model.forms(&self.spec_of(kind))
    }

    /// Whether a kind may be the answer.
    fn is_asked_for(&self, kind: &Kind) -> bool {
        // A goal names no scheme, and without one the filters that take one are plain ones under another name.
        // One that is exact at first knows no ranks, and stops when it ceases to be.
        let suits = !kind.can.exact_first || !(self.goal.has_importance() || self.goal.has_bounded_latency());
        let by_itself = kind.can.follow_scheme.is_none() && suits;
        self.filter.as_ref().map_or(by_itself, |spec| spec.kind() == kind.name || (by_itself && spec.kind() == AUTO))
    }

    fn within_memory(&self) -> Result<Recommendation> {
        if let Some(found) = self.non_forgetting()? {
            return Ok(found);
        }
        if self.goal.never_forgets() {
            return Err(Sets { kinds: self.kinds, shape: &self.shape(), goal: &self.goal() }.too_small());
        }
        let stream = self.stream()?;
        let candidates = match self.stream {
            // On a stream that is only assumed, a short simulation tells as much as a long one.
            Some(_) if !self.quick => self.contenders(&stream)?,
            _ => self.screened_kinds(&stream)?,
        };
        let found = self.recommended(candidates, stream)?;
        self.check_target(found)
    }

    /// Whether the filter itself was asked for, whatever its rate.
    fn is_named(&self) -> bool {
        self.filter.as_ref().is_some_and(|spec| spec.kind() != AUTO)
    }
}

impl Candidate {
    /// The candidate with the reason why it is not the best.
    fn beside(mut self, best: &Candidate) -> Self {
        let (mine, theirs) = (&self.forecast, &best.forecast);
        let more_memory = self.plan.memory_bits as f64 / best.plan.memory_bits.max(1) as f64 - 1.0;
        if let Some(reason) = self.costs_more_than(best) {
            return Candidate { reason, ..self };
        }
        self.reason = if mine.predicted_fnr > theirs.predicted_fnr {
            format!(
                "misses {:.3} % of the repeats, not {:.3} %",
                100.0 * mine.predicted_fnr,
                100.0 * theirs.predicted_fnr
            )
        } else if mine.predicted_fnr < theirs.predicted_fnr && mine.predicted_fnr > 0.0 {
            format!(
                "misses {:.3} % of the repeats, not {:.3} %, and errs from the first key on",
                100.0 * mine.predicted_fnr,
                100.0 * theirs.predicted_fnr
            )
        } else if more_memory > 0.0 {
            more_memory_text(more_memory)
        } else if more_memory < 0.0 {
            format!(
                "takes {:.1} % less memory, and {} memory accesses a key",
                -100.0 * more_memory,
                accesses(&self.plan)
            )
        } else if mine.weighted_fnr <= theirs.weighted_fnr {
            "misses as much, and errs from the first key on".into()
        } else {
            format!(
                "misses more of what matters: wfn {:.3} %, not {:.3} %",
                100.0 * mine.weighted_fnr,
                100.0 * theirs.weighted_fnr
            )
        };
        self
    }
}

/// The kind of a full spec, and which form of it: forms are shown side by side.
fn form_of(plan: &Plan) -> (&'static str, Option<usize>) {
    (plan.kind.name, plan.kind.model.form_of(&plan.spec))
}

/// How much more memory one takes than another: as a share, or as so many times as much.
fn more_memory_text(more: f64) -> String {
    match more {
        more if more < 1.0 => format!("takes {:.1} % more memory", 100.0 * more),
        more => format!("takes {} times the memory", times(more + 1.0)),
    }
}

/// 2.4, 17, 1,000,000 and no more.
fn times(factor: f64) -> String {
    let factor = factor.min(1e6);
    if factor < 9.95 { format!("{factor:.1}") } else { apart(factor.round() as u64) }
}
