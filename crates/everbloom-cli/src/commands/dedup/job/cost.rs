//! The plan where somebody said what errors cost: by the files themselves, or by an assumed stream, and it is said by which.

use super::Job;
use crate::args::{DEFAULT_MEMORY_BITS, OnError, limited};
use crate::commands::learn;
use crate::commands::plan::cost::saved;
use crate::failure::{Failure, Result};
use crate::progress::{Screen, Working};
use crate::record::Layout;
use crate::report::{percent, short_size, thousands, words};
use everbloom::{Goal, Plan};
use everbloom_all::KINDS;
use everbloom_forecast::{Cost, Question, Recommendation, Stream};

/// Lines of the files that are read twice, the first time to learn what they are like.
const READ_AHEAD: u64 = 1 << 20;

/// An input with fewer lines than this is planned for like one of so many.
const FEWEST_KEYS: u64 = 1000;

/// What is known of the stream, in words and as it is.
struct Known {
    from: String,
    stream: Option<Stream>,
    /// The most keys that can come, if all of the input was read.
    most_keys: Option<u64>,
    /// Whether more comes than was read.
    goes_on: bool,
}

impl Job {
    /// Refuses costs where something else settles which errors are made.
    pub(crate) fn refuse_idle_costs(&self) -> Result<()> {
        if self.rules.cost.cost_fp.is_some() && self.servers.redis.is_some() {
            let problem = "--cost-fp plans by the lines of one machine, and a filter on servers gets those of all";
            let remedy =
                "plan with `everbloom plan`, and give --redis the --filter, --memory or --expect that comes out";
            return Err(Failure::new(format_args!("{problem}; {remedy}")));
        }
        let settled =
            [(self.rules.exact, "--exact"), (self.counts, "--counts"), (self.rules.window.is_some(), "--window")];
        match settled.into_iter().find(|(given, _)| *given && self.rules.cost.cost_fp.is_some()) {
            Some((_, what)) => Err(Failure::new(format_args!(
                "{what} settles which errors are made, whatever they cost; leave out {what}, or --cost-fp and --cost-fn"
            ))),
            None => Ok(()),
        }
    }

    /// The cheapest filter for these files.
    pub(crate) fn plan_by_cost(&self, cost: Cost, layout: &Layout) -> Result<Plan> {
        let known = self.known()?;
        let wanted = &self.rules.goal.wanted;
        let expect = wanted.expect.or(known.most_keys);
        let usual = (known.stream.is_none() && expect.is_none()).then_some(DEFAULT_MEMORY_BITS);
        let goal = Goal::new().hashing(self.rules.goal.hashing());
        let mut goal = limited(goal, wanted.memory.or(usual), wanted.fpr, expect);
        if layout.has_importance() {
            goal = goal.with_importance();
        }
        if known.goes_on {
            goal = goal.open_ended();
        }
        let mut question = Question::among(KINDS, goal).cost(cost);
        question.filter = Some(self.rules.goal.filter.clone());
        question.best_only = true;
        question.stream = known.stream;
        let answer = {
            let screen = if self.promise.quiet { Screen::of(true, true) } else { Screen::Free };
            let _working = Working::on("trying filters", screen);
            question.answer()?
        };
        if !self.promise.quiet {
            words::note(&said(&known.from, &answer));
        }
        Ok(answer.best.plan)
    }

    /// What the files say of the stream, if they can be read twice.
    fn known(&self) -> Result<Known> {
        let assumed = |from: &str| Known { from: from.into(), stream: None, most_keys: None, goes_on: true };
        if self.follow || self.files.is_empty() || !self.reads_only_files()? {
            return Ok(assumed("an assumed stream, since this input can be read only once"));
        }
        let layout = Layout::new(&self.rules.keys, &self.rules.importance)?;
        let screen = if self.promise.quiet { Screen::of(true, true) } else { Screen::Free };
        let (sample, lines, is_all) =
            learn::from_files(&self.files, layout, &self.rules.keys, OnError::Keep, Some(READ_AHEAD), screen)?;
        Ok(match sample.finish() {
            Ok(stream) => Known {
                from: if is_all { "the input".into() } else { format!("the first {} lines", thousands(lines)) },
                stream: Some(stream),
                most_keys: None,
                // What is saved goes on with other input.
                goes_on: !is_all || self.state.is_some(),
            },
            Err(_) => Known {
                most_keys: (is_all && self.state.is_none()).then_some(lines.max(FEWEST_KEYS)),
                ..assumed("an assumed stream, since the input has too few repeats to learn from")
            },
        })
    }
}

fn said(from: &str, answer: &Recommendation) -> String {
    let plan = &answer.best.plan;
    format!(
        "planned by cost from {from}: with {} {}; {} drops at most {} of the new lines and lets about {} of the repeats through",
        short_size(plan.memory_bits),
        saved(answer.best.cost.unwrap_or_default(), answer),
        plan.spec.kind(),
        percent(plan.promise.fpr_bound),
        percent(answer.best.forecast.predicted_fnr),
    )
}
