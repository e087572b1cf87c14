//! `everbloom compare`: filters on a stream of one's own, against the exact truth.

mod matched;
mod table;

use crate::args::{DEFAULT_MEMORY_BITS, Format, ImportanceArgs, KeyArgs, OnError, WantedArgs, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::input::BlockReader;
use crate::progress::Screen;
use crate::record::{FaultWatch, Layout, Part, RecordReader, for_each_batch_hashed};
use crate::report::paper::Paper;
use crate::{output, report};
use clap::{Args, ValueEnum};
use everbloom::{AnyFilter, Error, Goal, Hashing, Plan, Spec, planning};
use everbloom_all::KINDS;
use everbloom_forecast::forecast::limit::{self, Limit};
use everbloom_lab::evaluate::{Evaluation, Outcome, Record, Report};
use everbloom_lab::oracle::Oracle;
use everbloom_lab::spread;
use serde::Serialize;
use std::path::PathBuf;

/// Runs filters over a stream and counts how often each was wrong.
///
/// The stream is read once, however many filters there are. Rates: FPR = false positives among
/// lines that are truly distinct, FNR = false negatives among true duplicates; "late" is the last
/// tenth of the lines. wfp and wfn are the importance of the errors as a share of all importance.
/// ns_per_item is the processor's time to observe a key that is hashed already.
///
/// Filters that are named keep their order, unless --sort says otherwise; the others are shown by FNR, those that broke
/// their promise last. In JSON they keep their order. A ± holds 19 times of 20 what more seeds, or all keys,
/// would come to.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Streams, .gz, .zst, .xz, .bz2 and .lz4 too, one after another [default: stdin]
    files: Vec<PathBuf>,
    /// A filter to try, as kind or kind:parameter=value,…; repeatable [default: every filter for endless
    /// streams, and bloom]
    #[arg(long = "filter", value_name = "SPEC", help_heading = "Filter")]
    filters: Vec<Spec>,
    #[command(flatten)]
    wanted: WantedArgs,
    /// Tune every filter over a grid and compare them at the same rate of false positives
    #[arg(long, requires = "memory", conflicts_with = "by_importance")]
    matched: bool,
    /// Show errors by importance
    #[arg(long, requires = "importance")]
    by_importance: bool,
    /// What the table is sorted by, best first [default: the order of --filter; without it, fnr]
    #[arg(long, value_name = "COLUMN")]
    sort: Option<Sort>,
    /// Run every filter with so many seeds at once, a copy in memory for each, and show the mean and its ±; five or more
    /// tell it well
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = seeds)]
    seeds: u64,
    /// Show the whole spec of every filter, and why others are left out
    #[arg(short, long)]
    verbose: bool,
    /// Measure errors on this share of the keys only, such as 10%, to save memory [default: all]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    truth_sample: Option<f64>,
    /// Print errors on stderr, and nothing else
    #[arg(short, long)]
    quiet: bool,
    /// How to print
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    importance: ImportanceArgs,
}

impl Compare {
    pub(crate) fn run(self) -> Result<Ending> {
        output::refuse_stdout(&self.files, &[])?;
        self.filters.iter().try_for_each(refuse_list)?;
        let layout = Layout::new(&self.keys, &self.importance)?;
        let goal = self.wanted.goal();
        let goal = if layout.has_importance() { goal.with_importance() } else { goal };
        let contest = match self.matched {
            true => Contest::tuned(&self.specs(), !self.filters.is_empty(), &goal.clone().defaults_only())?,
            false => self.contest(&goal)?,
        };
        let record = Record {
            by_importance: self.by_importance,
            scale: layout.importance_scale(),
            fill_every: None,
            sample: self.truth_sample,
        };
        let evaluations: Result<Vec<_>> =
            self.hashings().into_iter().map(|hashing| Ok(Evaluation::new(contest.build(hashing)?, record)?)).collect();
        let reader = RecordReader::new(BlockReader::new(self.files.clone(), self.keys.framing()), layout)?;
        // The table comes at the end, so stdout is free until then.
        let stream = self.observe(&mut reader.watched(&self.files, Screen::of(false, self.quiet)), evaluations?)?;
        let document = self.document(&goal, contest, stream);
        report::print(self.format, &document, || {
            let shown = table::Shown {
                weighted: self.importance.importance.is_some(),
                verbose: self.verbose,
                sort: self.sort.or(self.filters.is_empty().then_some(Sort::Fnr)),
            };
            table::render(&document, shown, &Paper::of_stdout())
        })?;
        Ok(Ending::Done)
    }

    /// How keys are hashed in each run: with the seed given, and those that follow.
    fn hashings(&self) -> Vec<Hashing> {
        (0..self.seeds).map(|run| Hashing::seeded(self.wanted.seed.wrapping_add(run))).collect()
    }

    /// The filters asked for, or all that make sense on a stream.
    fn specs(&self) -> Vec<Spec> {
        if !self.filters.is_empty() {
            return self.filters.clone();
        }
        let endless = KINDS.iter().filter(|kind| kind.can.run_forever).map(|kind| kind.name);
        // And, for comparison, the plainest filter that forgets nothing.
        let plainest = KINDS.iter().find(|kind| !kind.can.forget).map(|kind| kind.name);
        endless.chain(plainest).map(Spec::new).collect()
    }

    /// One plan for every filter. Of those that nobody named, the ones that cannot be had are left out.
    fn contest(&self, goal: &Goal) -> Result<Contest> {
        if self.filters.is_empty() && self.wanted.memory.is_none() {
            return Err(Failure::new("say how much memory the filters may use, such as --memory 64KiB"));
        }
        // What a spec gives itself is compared as it is, whatever the others get. What is left to the planner is what
        // dedup takes.
        let (given, open) =
            (goal.clone().defaults_only(), goal.clone().default_memory_bits(DEFAULT_MEMORY_BITS).open_ended());
        let mut contest = Contest::default();
        for spec in self.specs() {
            let planned = match spec.kind() {
                planning::AUTO => KINDS.plan(&spec, &open).and_then(|plan| planning::held_to_rate(plan, &open)),
                _ => given.plan_among(KINDS, &spec.to_string()),
            };
            match planned {
                Ok(plan) => {
                    contest.plans.push(plan);
                    contest.asked.push(spec);
                }
                Err(error) if self.filters.is_empty() => {
                    contest.omitted.push(Omitted { filter: spec.to_string(), reason: error.to_string() });
                }
                Err(error) => return Err(error.into()),
            }
        }
        contest.checked()
    }

    fn observe(&self, reader: &mut RecordReader, mut evaluations: Vec<Evaluation>) -> Result<Stream> {
        let mut oracle = Oracle::sampling(self.truth_sample.unwrap_or(1.0))?;
        let (mut truths, mut skipped) = (Vec::new(), 0);
        let mut watch = FaultWatch::new(self.keys.on_error, OnError::Fail);
        for_each_batch_hashed(reader, &self.hashings(), |part| {
            let Part::Records(bytes, batches @ [batch, ..]) = part else { return Ok(()) };
            watch.check(bytes, batch)?;
            skipped += batch.faults().len() as u64;
            oracle.judge_all(batch.hashes(), &mut truths).map_err(|error| self.too_many_keys(&error))?;
            for (evaluation, batch) in evaluations.iter_mut().zip(batches) {
                evaluation.observe(batch.hashes(), batch.importances(), &truths)?;
            }
            Ok(())
        })?;
        let outcome = spread::mean(evaluations.into_iter().map(Evaluation::finish).collect());
        let outcome = outcome.ok_or_else(|| Failure::new("--seeds must be 1 or more; leave it out"))?;
        Ok(Stream { outcome, oracle, skipped })
    }

    /// What to do where the memory does not hold the truth.
    fn too_many_keys(&self, error: &Error) -> Failure {
        let share = match self.truth_sample {
            Some(share) => format!("--truth-sample {}", share / 10.0),
            None => "--truth-sample 10%".into(),
        };
        match error {
            Error::OutOfMemory { bytes } => Failure::new(format!(
                "the exact answer keeps every key, and {} for it could not be allocated; give {share}",
                report::short_size(bytes.saturating_mul(8))
            )),
            error => Failure::new(error),
        }
    }

    fn document(&self, goal: &Goal, contest: Contest, stream: Stream) -> Document {
        let target_fpr = goal.target_fpr().unwrap_or_default();
        let limit = goal.most_memory_bits().and_then(|memory_bits| stream.limit(memory_bits as f64, target_fpr));
        let Stream { outcome, skipped, .. } = stream;
        let sample = self.truth_sample.unwrap_or(1.0);
        // Of a sample, the number of distinct keys is known up to its share.
        let distinct = ((outcome.distinct as f64 / sample).round() as u64).min(outcome.items);
        Document {
            items: outcome.items,
            distinct,
            duplicates: outcome.items - distinct,
            truth_sample: self.truth_sample,
            seeds: (self.seeds > 1).then_some(self.seeds),
            skipped,
            target_fpr,
            limit_fnr: limit.map(|limit| limit.limit_fnr),
            limit_kind: limit.map(|limit| limit.limit_kind),
            filters: if contest.tuned.is_empty() {
                contest.rows(outcome.reports)
            } else {
                contest.matched_rows(outcome.reports, target_fpr)
            },
            omitted: contest.omitted,
        }
        .with_names()
    }
}

/// Refuses several kinds in one spec, where a comma is between parameters.
fn refuse_list(spec: &Spec) -> Result<()> {
    let is_kind = |name: &str| name == planning::AUTO || KINDS.iter().any(|kind| kind.name == name);
    let names: Vec<&str> = spec.kind().split(',').collect();
    if names.len() < 2 || !names.iter().all(|name| is_kind(name)) {
        return Ok(());
    }
    let repeated: Vec<String> = names.iter().map(|name| format!("--filter {name}")).collect();
    Err(Failure::new(format!("--filter takes one filter, and can be repeated: {}", repeated.join(" "))))
}

/// What a table is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Fewest repeats missed
    Fnr,
    /// Fewest new lines lost
    Fpr,
    /// Smallest
    Memory,
    /// Fastest
    #[value(alias = "speed")]
    Time,
}

/// The most seeds: every filter is there once for each.
const MOST_SEEDS: u64 = 1000;

fn seeds(text: &str) -> Result<u64, String> {
    match quantity::count(text) {
        Ok(seeds) if seeds <= MOST_SEEDS => Ok(seeds),
        _ => Err(format!("must be a whole number from 1 to {MOST_SEEDS}; try 5")),
    }
}

/// The filters of a comparison, on paper.
#[derive(Default)]
struct Contest {
    plans: Vec<Plan>,
    /// The specs as they were typed, or the kinds that were tried.
    asked: Vec<Spec>,
    /// For matched comparisons, whose grids the plans are.
    tuned: Vec<matched::Tuned>,
    omitted: Vec<Omitted>,
}

impl Contest {
    /// Refuses a contest without contenders, with the first reason.
    fn checked(self) -> Result<Self> {
        match self.omitted.first() {
            Some(omitted) if self.plans.is_empty() => Err(Failure::new(&omitted.reason)),
            _ => Ok(self),
        }
    }

    /// The row of a contender, with what its plan has to say.
    fn row(&self, asked: &Spec, report: Report, matched: Option<matched::Matched>) -> Row {
        let plan = self.plans.iter().find(|plan| plan.spec.to_string() == report.filter);
        let notes = plan.map(|plan| plan.notes.clone()).unwrap_or_default();
        Row { asked: asked.clone(), is_first: false, name: String::new(), notes, report, matched }
    }

    fn rows(&self, reports: Vec<Report>) -> Vec<Row> {
        self.asked.iter().zip(reports).map(|(asked, report)| self.row(asked, report, None)).collect()
    }

    fn build(&self, hashing: Hashing) -> Result<Vec<AnyFilter>> {
        let built = |plan: &Plan| {
            let mut plan = plan.clone();
            plan.hashing = hashing;
            plan.build().map_err(Failure::from)
        };
        self.plans.iter().map(built).collect()
    }
}

/// What the stream turned out to be.
struct Stream {
    outcome: Outcome,
    oracle: Oracle,
    skipped: u64,
}

impl Stream {
    /// What no filter of this memory can avoid, where repeats fall evenly on the keys that have come. Where they do not, a
    /// filter can do better by knowing which keys come back, and nobody knows how much.
    fn limit(&self, memory_bits: f64, fpr: f64) -> Option<Limit> {
        let growth = || self.outcome.truth.iter().map(|slice| (slice.distinct as f64, slice.duplicates as f64));
        if !self.oracle.repeats().even() || !limit::grows_as_drawn(growth()) {
            return None;
        }
        limit::uniform_fnr(memory_bits * self.oracle.sample(), fpr, growth()).map(Limit::uniform)
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Document {
    items: u64,
    distinct: u64,
    duplicates: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    truth_sample: Option<f64>,
    /// How many seeds the rates are means of.
    #[serde(skip_serializing_if = "Option::is_none")]
    seeds: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    skipped: u64,
    target_fpr: f64,
    limit_fnr: Option<f64>,
    limit_kind: Option<&'static str>,
    filters: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omitted: Vec<Omitted>,
}

impl Document {
    fn with_names(mut self) -> Self {
        self.filters.iter_mut().take(1).for_each(|row| row.is_first = true);
        let names: Vec<String> = self.filters.iter().map(|row| table::name(row, &self.filters)).collect();
        self.filters.iter_mut().zip(names).for_each(|(row, name)| row.name = name);
        self
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A filter that was not asked for by name and cannot be had.
#[derive(Debug, Serialize)]
struct Omitted {
    filter: String,
    reason: String,
}

/// A filter's row.
#[derive(Debug, Serialize)]
struct Row {
    /// The spec as it was typed.
    #[serde(skip)]
    asked: Spec,
    /// Whether it is the first, with which importances are compared.
    #[serde(skip)]
    is_first: bool,
    /// What it is called in tables.
    #[serde(skip)]
    name: String,
    #[serde(flatten)]
    report: Report,
    #[serde(flatten)]
    matched: Option<matched::Matched>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}
