//! The filter of least expected cost, where somebody said what errors cost.
//!
//! The cost of an arrival is what its errors and its part of the memory cost: with a share *d* of new keys,
//! d·FPR·(cost of a false positive) + (1 − d)·FNR·(cost of a false negative) + (cost of a MiB)·MiB/arrivals, where costs may
//! depend on the importance. The thesis asks for this in its discussion: "the developer must be able to give a function of
//! FP, FN and importance, and the Bloom Filter should minimize the cost, given a set of constraints".

mod curve;
mod explore;
mod search;

use super::{AUTO, Candidate, Question, RUNNERS_UP, Recommendation, times};
use crate::stream::scaled::ScaledStream;
use crate::{Cost, Forecast, Stream};
pub use curve::{CostCurve, CostPoint};
use everbloom::kind::{LEAST_RATE, rate_text, size_text};
use everbloom::{Error, Rate, Result};
pub use explore::CostSoFar;
use search::{Search, Tried};

/// The expected cost of an arrival, in the unit in which costs were given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct ExpectedCost {
    /// Of new keys that are dropped.
    pub false_positives: f64,
    /// Of repeats that are let through.
    pub false_negatives: f64,
    /// Of its part of the memory.
    pub memory: f64,
}

const MIB: f64 = (8u64 << 20) as f64;

impl ExpectedCost {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.false_positives + self.false_negatives + self.memory
    }

    pub(super) fn of(cost: &Cost, forecast: &Forecast, memory_bits: u64, stream: &Stream) -> Self {
        let rows = &forecast.errors_by_importance;
        ExpectedCost {
            false_positives: forecast.mean_fpr
                * rows.iter().map(|row| row.distinct * cost.false_positive.at(row.importance)).sum::<f64>(),
            false_negatives: rows.iter().map(|row| row.missed * cost.false_negative.at(row.importance)).sum(),
            memory: cost.memory_per_mib * memory_bits as f64 / MIB / stream.arrivals().max(1) as f64,
        }
    }
}

/// What an arrival costs where there is no filter.
#[derive(Debug, Clone, Copy, Default)]
struct Idle {
    /// Every repeat is let through.
    let_through: f64,
    /// Every new key is dropped.
    drop: f64,
}

impl Idle {
    fn of(cost: &Cost, scaled: &ScaledStream) -> Self {
        let mut idle = Idle::default();
        for (index, lag) in scaled.lags.iter().enumerate().skip(scaled.warm_up) {
            let importance = scaled.importances.get(index).map_or(1.0, |importance| importance.share());
            match lag {
                0 => idle.drop += cost.false_positive.at(importance),
                _ => idle.let_through += cost.false_negative.at(importance),
            }
        }
        let arrivals = scaled.judged_lags().len().max(1) as f64;
        Idle { let_through: idle.let_through / arrivals, drop: idle.drop / arrivals }
    }

    /// The cheaper of the two.
    fn least(self) -> f64 {
        self.let_through.min(self.drop)
    }

    /// What to know about a filter that is hardly worth having.
    fn note(self, best: &Candidate) -> Option<String> {
        let total = best.cost.map_or(0.0, |cost| cost.total());
        let what = if self.drop < self.let_through { "to drop every arrival" } else { "to let every arrival through" };
        let least = self.least();
        if total >= least {
            return Some(format!("at these costs no filter is worth having: {what} costs no more than it"));
        }
        // What is saved, as a part of what a filter costs: below a ninth it is hardly worth the while.
        let more = 100.0 * (least / total - 1.0);
        (total > 0.9 * least).then(|| {
            format!(
                "at these costs and this memory a filter saves little: {what} would cost only {more:.0} % more than it"
            )
        })
    }
}

impl Question {
    /// The filter of least expected cost, within the limits.
    pub(super) fn cheapest(&self, cost: &Cost) -> Result<Recommendation> {
        if let Some(spec) = self.filter.as_ref().filter(|spec| spec.kind() != AUTO) {
            self.kinds.of(spec)?;
        }
        let stream = self.stream_for_cost(cost)?;
        let search = Search::new(self, cost, stream);
        let most = self.goal.most_memory_bits().filter(|_| !self.goal.has_default_memory());
        // Where the memory is given and costs nothing, all of it is taken; a curve is for people.
        let curve = match (most, self.best_only && cost.memory_per_mib == 0.0) {
            (Some(_), true) => None,
            _ => Some(CostCurve::drawn(&search, self.goal.most_memory_bits())?),
        };
        let memory_bits = match (&curve, most) {
            (Some(curve), most) if most.is_none() || cost.memory_per_mib > 0.0 => curve
                .chosen(&search, self.goal.most_memory_bits())
                .ok_or_else(|| self.contradiction(&search, Some(curve)))?,
            (_, most) => most.unwrap_or_default(),
        };
        let (glanced, refusal) = search.glance(memory_bits, true);
        if let (true, Some(error)) = (glanced.is_empty(), refusal) {
            return Err(error);
        }
        let kept = search.closely(&glanced, memory_bits)?;
        let notes = self.price_of_limits(&search, &glanced);
        let Some(cheapest) = kept.first() else { return Err(self.contradiction(&search, curve.as_ref())) };
        // What is taken costs what is said of it. Where the bend settled how much that is, it stays where it was.
        let found = CostPoint::of(memory_bits, cheapest);
        let curve = curve.map(|curve| match most {
            Some(_) => curve.with_found(found).with_bend(search.idle),
            None => curve.with_found(found),
        });
        let mut candidates: Vec<Candidate> = kept.into_iter().take(RUNNERS_UP + 1).map(Tried::candidate).collect();
        let best = &mut candidates[0];
        best.reason = because(best);
        best.plan.notes.extend(notes.into_iter().chain(search.idle.note(best)));
        let without_filter = Some(search.idle.let_through);
        let found = self.recommended(candidates, search.stream)?;
        Ok(Recommendation { without_filter, curve, ..found })
    }

    fn stream_for_cost(&self, cost: &Cost) -> Result<Stream> {
        if self.window.is_some() {
            let remedy = "say what errors cost, or within which window none may happen, not both";
            return Err(Error::parameter("cost", "given with a window", "given alone", remedy));
        }
        let stream = self.stream()?;
        if cost.is_by_importance() && stream.importance().is_none() {
            let remedy = "say how importances are spread, or let every error cost the same";
            return Err(Error::parameter("importance", "not given", "given where costs depend on it", remedy));
        }
        if self.stream.is_none() && self.goal.most_memory_bits().or(self.goal.known_items()).is_none() {
            let remedy = "describe the stream, or say how many distinct keys will come or how much memory there is";
            return Err(Error::parameter("stream", "not given", "given, or expected_items, or memory", remedy));
        }
        Ok(stream)
    }

    /// What the limits cost, if something cheaper breaks them.
    fn price_of_limits(&self, search: &Search<'_>, glanced: &[Tried]) -> Option<String> {
        // Those of the glance are compared with each other: on another simulation everything costs a little more or less.
        let least =
            glanced.iter().filter(|one| search.keeps_limits(one, 1.0)).map(Tried::total).fold(f64::NAN, f64::min);
        let (fpr, fnr) = (self.goal.target_fpr(), self.target_fnr);
        let cheapest = glanced.first().filter(|one| one.total() < 0.97 * least)?;
        let broken = match (search.keeps_fpr(cheapest), search.keeps_fnr(cheapest, 1.0)) {
            (true, _) => format!("false negatives of {}", rate_text(fnr?)),
            (false, true) => format!("false positives of {}", rate_text(fpr?)),
            (false, false) => "both rates".to_string(),
        };
        Some(format!(
            "the limit on {broken} binds: without it errors would cost about {:.0} % less, with {} ({} false positives, {} \
             false negatives)",
            100.0 * (1.0 - cheapest.total() / least),
            cheapest.plan.spec.kind(),
            rate_text(cheapest.forecast.mean_fpr),
            rate_text(cheapest.forecast.predicted_fnr),
        ))
    }

    /// Which limit stands against the others, and what it would take.
    fn contradiction(&self, search: &Search<'_>, curve: Option<&CostCurve>) -> Error {
        let most = self.goal.most_memory_bits().filter(|_| !self.goal.has_default_memory());
        let memory_bits = most.or_else(|| curve.map(CostCurve::largest)).unwrap_or_default();
        let (fpr, fnr) = (self.goal.target_fpr(), self.target_fnr);
        let tried = search.glance(memory_bits, true).0;
        let least_fnr = fnr.and_then(|_| self.least_fnr(search, &tried, memory_bits));
        let least_fpr = fpr.and_then(|_| self.least_fpr(search, &tried, memory_bits));
        let within = most.map_or(String::new(), |bits| format!(" within {}", size_text(bits)));
        let positives = fpr.map(|rate| format!("at most {} false positives", rate_text(rate)));
        let negatives = fnr.map(|rate| format!("at most {} false negatives", rate_text(rate)));
        let reason = match (&least_fnr, &least_fpr) {
            (Some(least), _) => format!(
                "{}the best forecast is {} false negatives",
                match (&positives, most) {
                    (Some(positives), _) => format!("with {positives}{within} "),
                    (None, Some(bits)) => format!("within {} ", size_text(bits)),
                    (None, None) => String::new(),
                },
                rate_text(least.found)
            ),
            (None, Some(least)) => {
                format!("the lowest rate of false positives that can be promised is {}", rate_text(least.found))
            }
            (None, None) => "no filter can be planned for it".into(),
        };
        let enough = most.and_then(|most| curve::least_memory(search, most));
        let accept = |least: Option<Least>, errors: &str| {
            least.and_then(|least| least.kept).map(|rate| format!("accept {} {errors}", rate_text(rate)))
        };
        let remedies = [
            enough.map(|bits| format!("give about {} of memory", size_text(bits))),
            accept(least_fnr, "false negatives"),
            accept(least_fpr, "false positives"),
        ];
        let remedies: Vec<_> = remedies.into_iter().flatten().collect();
        let rates: Vec<_> = [positives, negatives].into_iter().flatten().collect();
        Error::Infeasible {
            wanted: match rates.is_empty() {
                true => format!("a filter{within}"),
                false => format!("{}{within}", rates.join(" and ")),
            },
            reason,
            remedy: if remedies.is_empty() {
                "give more memory or accept more errors".into()
            } else {
                remedies.join(", or ")
            },
        }
    }

    /// The least rate of false negatives within the other limits. A closer look finds less than a glance does, so it is asked
    /// for what was found until nothing less is.
    fn least_fnr(&self, search: &Search<'_>, tried: &[Tried], memory_bits: u64) -> Option<Least> {
        let fnr = |one: &Tried| one.forecast.predicted_fnr;
        let glanced = tried.iter().filter(|one| search.keeps_fpr(one)).map(fnr).min_by(f64::total_cmp)?;
        let kept_at = |rate: f64| {
            let asked = Question { target_fnr: Some(rate), ..self.clone() };
            let kept = search.asking(&asked).closely(tried, memory_bits).ok()?;
            kept.iter().map(fnr).min_by(f64::total_cmp)
        };
        let mut least = Least { found: glanced, kept: None };
        let first = MARGINS.iter().filter_map(|margin| typed(glanced * margin));
        let Some((mut rate, mut found)) = first.filter_map(|rate| Some((rate, kept_at(rate)?))).next() else {
            return Some(least);
        };
        for _ in 0..ASKED_AGAIN {
            least = Least { found, kept: Some(rate) };
            let Some(lower) = typed(found).filter(|lower| *lower < rate) else { break };
            let Some(again) = kept_at(lower) else { break };
            (rate, found) = (lower, again);
        }
        Some(least)
    }

    /// The lowest rate of false positives that is promised within the other limits.
    fn least_fpr(&self, search: &Search<'_>, tried: &[Tried], memory_bits: u64) -> Option<Least> {
        let kept = tried.iter().filter(|one| search.keeps_fnr(one, 1.0));
        let found = kept.map(|one| one.plan.promise.fpr_bound).min_by(f64::total_cmp)?;
        let is_kept = |rate: f64| {
            let asked = Question { goal: self.goal.clone().fpr(rate), ..self.clone() };
            let search = search.asking(&asked);
            search.closely(&search.glance(memory_bits, true).0, memory_bits).is_ok_and(|kept| !kept.is_empty())
        };
        Some(Least { found, kept: typed(found).filter(|rate| *rate < WORTH_ACCEPTING && is_kept(*rate)) })
    }
}

/// The least rate of an error that can be had.
struct Least {
    /// The least that was forecast or promised.
    found: f64,
    /// A limit that is kept, if there is one that is worth naming.
    kept: Option<f64>,
}

/// How far above what a glance finds a limit is tried first.
const MARGINS: [f64; 3] = [1.0, 1.05, 1.2];

/// How often less is asked for.
const ASKED_AGAIN: usize = 3;

/// A filter that drops every second new key is not what somebody wants who sets a limit.
const WORTH_ACCEPTING: f64 = 0.5;

/// A rate as a message has it, if it can be asked for.
fn typed(rate: f64) -> Option<f64> {
    Rate::from(rate_text(rate).as_str()).get().ok().filter(|rate| *rate < 1.0)
}

/// Why the cheapest is taken.
fn because(best: &Candidate) -> String {
    let cost = best.cost.unwrap_or_default();
    let errors = cost.false_positives + cost.false_negatives;
    let share = if errors > 0.0 { 100.0 * cost.false_negatives / errors } else { 0.0 };
    match errors > 0.0 {
        true => format!("its errors cost least; {share:.0} % of what they cost is for repeats let through"),
        false => "it is forecast to make no error that costs anything".into(),
    }
}

impl Candidate {
    /// Why another is cheaper.
    pub(super) fn costs_more_than(&self, best: &Candidate) -> Option<String> {
        let (mine, theirs) = (self.cost?, best.cost?);
        let (more, parts) = (
            mine.total() / theirs.total().max(1e-300) - 1.0,
            [
                (
                    mine.false_negatives - theirs.false_negatives,
                    format!(
                        "lets through {} of the repeats, not {}",
                        forecast_text(self.forecast.predicted_fnr),
                        forecast_text(best.forecast.predicted_fnr)
                    ),
                ),
                (
                    mine.false_positives - theirs.false_positives,
                    format!(
                        "drops {} of the new keys, not {}",
                        forecast_text(self.forecast.mean_fpr),
                        forecast_text(best.forecast.mean_fpr)
                    ),
                ),
                (mine.memory - theirs.memory, "takes more memory".to_string()),
            ],
        );
        let most =
            parts.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).map_or(String::new(), |(_, text)| text);
        Some(match more {
            more if theirs.total() == 0.0 || more >= 1.0 => {
                format!("costs {} times as much: it {most}", times(more + 1.0))
            }
            more if more < 0.005 => "costs as much, as far as a forecast tells".to_string(),
            more => format!("costs {:.0} % more: it {most}", 100.0 * more),
        })
    }
}

/// A rate that was forecast: no hash justifies one below the least that is promised.
fn forecast_text(rate: f64) -> String {
    if rate > 0.0 && rate < LEAST_RATE { format!("less than {LEAST_RATE:e}") } else { rate_text(rate) }
}
