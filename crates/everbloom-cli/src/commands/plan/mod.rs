//! `everbloom plan`: which filter, how large, and what errors it will make.

#[cfg(feature = "web")]
mod asked;
mod chart;
mod command;
pub(crate) mod cost;
mod importance;
mod sentence;
mod stream;
mod surfaces;
mod text;

#[cfg(feature = "web")]
pub(crate) use asked::{Asked, Sampled};

use crate::args::{CostArgs, DEFAULT_FPR, Format, KeyArgs, Refresh, Scale, limited, quantity};
use crate::failure::{Ending, Failure, Result};
#[cfg(feature = "lab")]
use crate::output;
use crate::progress::{Screen, Working};
use crate::report::paper::Paper;
use crate::{filter_file, report, state_file};
use clap::Args;
use everbloom::{Goal, Hashing, Holds, Spec, Window};
use everbloom_all::KINDS;
use everbloom_forecast::forecast::limit::{self, Limit};
use everbloom_forecast::stream::Method;
use everbloom_forecast::{Candidate, Question, Recommendation, Stream};
use everbloom_lab::spread::STATED_ERRORS;
use importance::Importances;
use serde::Serialize;
use std::path::PathBuf;
use stream::Repeats;

/// Says which filter to choose, how large it is and which errors to expect.
///
/// Without --stream the answer holds for any stream with --expect distinct keys. How many repeats a filter
/// misses depends on the stream: describe it, or give a sample of it.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The most memory the filter may use, such as 64MiB [default: what --expect keys at --fpr take]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    memory: Option<u64>,
    /// The highest rate of false positives [default: 0.1%; with costs, any that pays]
    #[arg(long, visible_alias = "max-fpr", value_name = "RATE", value_parser = quantity::rate)]
    fpr: Option<f64>,
    /// The highest rate of false negatives on the stream [default: any]
    #[arg(long, visible_alias = "max-fnr", value_name = "RATE", value_parser = quantity::rate_or_none)]
    fnr: Option<f64>,
    /// How many distinct keys to expect, such as 1e6
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    expect: Option<u64>,
    /// How many lines to expect [default: twice the distinct keys, or what the sample has]
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    arrivals: Option<u64>,
    /// The last lines (1000000) or the time (24h) within which no repeat may be missed, as for dedup; a time takes
    /// --expect, the lines of a window, or --memory
    #[arg(long, value_name = "COUNT|TIME", value_parser = quantity::window)]
    window: Option<Window>,
    /// Whether a repeat renews a key's age in the window
    #[arg(long, value_name = "WHETHER", default_value = "yes", requires = "window")]
    refresh: Refresh,
    /// The seed of hashing and of every random choice [default: 0]
    #[arg(long, value_name = "NUMBER", value_parser = quantity::seed)]
    seed: Option<u64>,
    /// How keys come back: uniform, zipf:EXPONENT, phases:COUNT (uniform, from other keys in each), lag:FILE (per line a lag, and the weight of the repeats up to it and
    /// beyond the lag of the line before), or a sample of the stream, .gz, .zst, .xz, .bz2 and .lz4 too
    #[arg(long, value_name = "HOW")]
    stream: Option<Repeats>,
    /// A state of dedup --audit: plans anew for a stream like the one that the audit saw
    #[arg(long, value_name = "FILE", conflicts_with = "stream")]
    from_state: Option<PathBuf>,
    /// Of a sample, the field or JSON pointer with the importance of a record, as for dedup; of other streams how importances
    /// are spread: linear, exponential (both up to 50), or a file of them, one per line
    #[arg(long, value_name = "FIELD|HOW")]
    importance: Option<String>,
    /// The largest importance that a record of the sample can have
    #[arg(long, value_name = "NUMBER", value_parser = quantity::number, requires = "importance")]
    importance_max: Option<f64>,
    /// How the importances of a sample are scaled [default: linear]
    #[arg(long, value_name = "SCALE", requires = "importance_max")]
    importance_scale: Option<Scale>,
    /// The filter, if it is chosen already: kind or kind:parameter=value,… [default: auto]
    #[arg(long, value_name = "SPEC")]
    filter: Option<Spec>,
    /// Print errors on stderr, and nothing else
    #[arg(short, long)]
    quiet: bool,
    /// How to print
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Also draw what errors cost against the memory, as SVG
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FILE", requires = "cost_fp")]
    chart: Option<PathBuf>,
    #[command(flatten)]
    cost: CostArgs,
    #[command(flatten)]
    keys: KeyArgs,
}

impl Plan {
    pub(crate) fn run(mut self) -> Result<Ending> {
        // What was learned there is of keys that were found so.
        if let Some(state) = &self.from_state {
            self.keys = match state_file::keys_of(state)? {
                Some(keys) => keys,
                None => KeyArgs { on_error: self.keys.on_error, ..filter_file::key_options(state)? },
            };
        }
        #[cfg(feature = "lab")]
        self.chart.as_deref().map_or(Ok(()), |chart| output::check_beside(chart, &self.files()))?;
        let importances = Importances::of(&self)?;
        let question = self.question(importances.as_ref(), None)?;
        let answer = {
            let _working = Working::on("trying filters", Screen::of(false, self.quiet));
            question.answer()?
        };
        #[cfg(feature = "lab")]
        self.chart.as_deref().map_or(Ok(()), |path| report::figures::cost(path, &answer))?;
        let document = self.document(&question, &answer, importances.as_ref());
        report::print(self.format, &document, || text::render(&document, &answer, &Paper::of_stdout()))?;
        Ok(Ending::Done)
    }

    /// What is read.
    #[cfg(feature = "lab")]
    fn files(&self) -> Vec<PathBuf> {
        let mut files = self.cost.tables();
        files.extend(self.from_state.clone());
        files.extend(self.stream.as_ref().and_then(Repeats::file).cloned());
        // Of a sample, importances are a field.
        let is_sample = matches!(self.stream, Some(Repeats::Sample(_)));
        files.extend(self.importance.as_ref().filter(|_| !is_sample).map(PathBuf::from));
        files
    }

    fn document(&self, question: &Question, answer: &Recommendation, importances: Option<&Importances>) -> Document {
        let command = command::to_use(self, answer, importances);
        let mut document = Document::new(question, answer, command);
        document.summary = sentence::of(self, answer);
        document.commands = surfaces::lines(self, answer, importances, &document.command);
        document
    }

    /// What is asked; of a stream that was `learned` already, if there is one.
    fn question(&self, importances: Option<&Importances>, learned: Option<Stream>) -> Result<Question> {
        let is_known =
            learned.is_some() || self.from_state.is_some() || matches!(self.stream, Some(Repeats::Sample(_)));
        if is_known && self.arrivals.is_some() {
            return Err(Failure::new(
                "--arrivals is for streams that are described; a sample or a state has its own, so leave it out",
            ));
        }
        if !is_known && self.arrivals.is_some() && self.stream.is_none() {
            return Err(Failure::new(
                "--arrivals is the length of a stream that --stream describes; add --stream uniform or zipf:1, or leave it out",
            ));
        }
        let cost = self.cost.cost(importances.map(Importances::scale).transpose()?)?;
        let mut stream = match (learned, &self.from_state, &self.stream) {
            (Some(learned), ..) => Some(learned),
            (None, Some(path), _) => Some(stream::of_state(path)?),
            (None, None, described) => described.as_ref().map(|repeats| repeats.load(self, importances)).transpose()?,
        };
        let mut mix = importances.and_then(Importances::mix);
        match (&mut stream, mix) {
            (Some(stream), Some(mix)) => *stream = stream.clone().with_importance(mix),
            (Some(stream), None) => mix = stream.importance().copied(),
            (None, _) => {}
        }
        let expect = match (&stream, &self.from_state) {
            // So many keys came already.
            (Some(stream), Some(_)) => self.expect.map(|expected| expected.max(stream.distinct())),
            _ => self.expect,
        };
        let goal = Goal::new().hashing(Hashing::seeded(self.seed.unwrap_or_default()));
        let mut goal = limited(goal, self.memory, self.fpr, expect);
        // With costs, any rate that pays will do.
        if cost.is_none() {
            goal = goal.default_fpr(DEFAULT_FPR);
        }
        if let Some(mix) = mix {
            goal = goal.importance_mix(mix);
        }
        let mut question = Question::among(KINDS, goal);
        question.cost = cost;
        (question.target_fnr, question.window) = (self.fnr, self.window);
        question.keep_age = self.refresh == Refresh::No;
        (question.filter, question.stream) = (self.filter.clone(), stream);
        Ok(question)
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Document {
    #[serde(flatten)]
    best: Row,
    promise: &'static str,
    promised_items: Option<u64>,
    /// The lines of a window of time for which the promise is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    promised_window: Option<u64>,
    bits_per_key: Option<f64>,
    stream: StreamRow,
    late_fpr: f64,
    late_fnr: f64,
    wfp: f64,
    wfn: f64,
    zeros: f64,
    stable_after: Option<f64>,
    fnr_by_lag: Vec<LagRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fnr_by_importance: Vec<ImportanceRow>,
    limit_fnr: Option<f64>,
    limit_kind: Option<&'static str>,
    #[serde(flatten)]
    cost: Option<cost::CostRow>,
    command: String,
    /// The plan for every surface that exists, ready to paste.
    commands: Vec<surfaces::Lines>,
    /// What one gets, in a sentence.
    summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    runners_up: Vec<Row>,
}

/// A filter and what is predicted of it.
#[derive(Debug, Serialize)]
struct Row {
    filter: String,
    memory_bits: u64,
    /// The bound that is promised.
    predicted_fpr: f64,
    /// The average on the stream.
    stream_fpr: f64,
    /// The ± of it, where it was counted in a simulation.
    stream_fpr_error: Option<f64>,
    predicted_fnr: f64,
    /// The ± of it, where it was counted in a simulation.
    predicted_fnr_error: Option<f64>,
    method: &'static str,
    /// What an arrival costs, if somebody said what errors cost.
    #[serde(rename = "cost_per_arrival", skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    reason: String,
}

#[derive(Debug, Serialize)]
struct StreamRow {
    repeats: String,
    /// Whether nothing was said of it.
    assumed: bool,
    arrivals: u64,
    distinct: u64,
}

#[derive(Debug, Serialize)]
struct LagRow {
    lag: f64,
    predicted_fnr: f64,
    /// The share of repeats that come after about this lag.
    share: f64,
}

#[derive(Debug, Serialize)]
struct ImportanceRow {
    importance: f64,
    predicted_fnr: f64,
    share: f64,
}

impl Row {
    fn new(candidate: &Candidate) -> Self {
        let is_counted = candidate.forecast.method == Method::Simulation;
        let counted = |error: f64| (is_counted && error > 0.0).then_some(STATED_ERRORS * error);
        Row {
            filter: candidate.plan.spec.to_string(),
            memory_bits: candidate.plan.memory_bits,
            predicted_fpr: candidate.plan.promise.fpr_bound,
            stream_fpr: candidate.forecast.predicted_fpr,
            // What is bounded is off by no more than its bound.
            stream_fpr_error: counted(candidate.forecast.standard_error).map(|error| {
                match candidate.plan.promise.holds {
                    Holds::Always => error.min(candidate.plan.promise.fpr_bound),
                    _ => error,
                }
            }),
            predicted_fnr: candidate.forecast.predicted_fnr,
            predicted_fnr_error: counted(candidate.forecast.fnr_standard_error),
            method: candidate.forecast.method.name(),
            cost: candidate.cost.map(|cost| cost.total()),
            reason: candidate.reason.clone(),
        }
    }
}

impl Document {
    fn new(question: &Question, answer: &Recommendation, command: String) -> Self {
        let (plan, forecast) = (&answer.best.plan, &answer.best.forecast);
        let (promise, promised_items) = match plan.promise.holds {
            Holds::Always => ("always", None),
            Holds::UntilItems(items) => ("until_items", Some(items)),
            Holds::Never => ("none", None),
        };
        let limit = limit_of(question, answer);
        let by_importance = forecast.by_importance.iter().map(|row| ImportanceRow {
            importance: row.at,
            predicted_fnr: row.predicted_fnr,
            share: row.share,
        });
        Document {
            best: Row::new(&answer.best),
            promise,
            promised_items,
            promised_window: match question.window {
                Some(Window::Time(_)) => sentence::window_of(answer),
                _ => None,
            },
            bits_per_key: promised_items.map(|items| plan.memory_bits as f64 / items as f64),
            stream: StreamRow {
                repeats: answer.stream.describe(),
                assumed: answer.assumed,
                arrivals: answer.stream.arrivals(),
                distinct: answer.stream.distinct(),
            },
            late_fpr: forecast.late_fpr,
            late_fnr: forecast.late_fnr,
            wfp: forecast.weighted_fpr,
            wfn: forecast.weighted_fnr,
            zeros: forecast.zero_share,
            stable_after: forecast.converged_after,
            fnr_by_lag: forecast
                .by_lag
                .iter()
                .map(|row| LagRow { lag: row.at, predicted_fnr: row.predicted_fnr, share: row.share })
                .collect(),
            fnr_by_importance: if question.goal.has_importance() { by_importance.collect() } else { Vec::new() },
            limit_fnr: limit.map(|limit| limit.limit_fnr),
            limit_kind: limit.map(|limit| limit.limit_kind),
            cost: cost::CostRow::of(answer),
            command,
            commands: Vec::new(),
            summary: String::new(),
            notes: plan.notes.clone(),
            runners_up: answer.runners_up.iter().map(Row::new).collect(),
        }
    }
}

/// What no filter of this memory can avoid, on a stream of independent draws.
fn limit_of(question: &Question, answer: &Recommendation) -> Option<Limit> {
    let (memory_bits, fpr) = (question.goal.most_memory_bits()? as f64, question.goal.target_fpr()?);
    if question.window.is_some() || answer.assumed || question.cost.is_some() {
        return None;
    }
    limit::of(&answer.stream, memory_bits, fpr)
}
