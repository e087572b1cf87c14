//! `everbloom compare`: filters on a stream of one's own, against the exact truth.

mod matched;
mod table;

use crate::args::{Format, ImportanceArgs, KeyArgs, OnError, WantedArgs, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::input::BlockReader;
use crate::progress::Bar;
use crate::record::{FaultWatch, Layout, Part, RecordReader, for_each_batch};
use crate::report;
use clap::Args;
use everbloom::internal::forecast::limit::{self, Limit};
use everbloom::{AnyFilter, Goal, Plan, Spec, filters};
use everbloom_lab::evaluate::{Evaluation, Outcome, Record, Report};
use everbloom_lab::oracle::Oracle;
use serde::Serialize;
use std::path::PathBuf;

/// Runs filters over a stream and counts how often each was wrong.
///
/// The stream is read once, however many filters there are. Rates: FPR = false positives among
/// arrivals that are truly distinct, FNR = false negatives among true duplicates; "late" is the last
/// tenth of the arrivals. wfp and wfn are the importance of the errors as a share of all importance.
/// ns_per_item is the time to observe a key that is hashed already.
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
    /// Measure errors on this share of the keys only, such as 10%, to save memory
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    truth_sample: Option<f64>,
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
        let layout = Layout::new(&self.keys, &self.importance)?;
        // What a spec gives itself is compared as it is, whatever the others get.
        let goal = self.wanted.goal().only_defaults();
        let goal = if layout.has_importance() { goal.with_importance() } else { goal };
        let contest = match self.matched {
            true => Contest::tuned(&self.specs(), !self.filters.is_empty(), &goal)?,
            false => self.contest(&goal)?,
        };
        let record = Record { by_importance: self.by_importance, scale: layout.importance_scale(), fill_every: None };
        let mut reader = RecordReader::new(BlockReader::new(self.files.clone(), self.keys.framing()), layout)?;
        let stream = self.observe(&mut reader, Evaluation::new(contest.build()?, record)?)?;
        let document = self.document(&goal, contest, stream);
        report::print(self.format, &document, || table::render(&document, self.importance.importance.is_some()))?;
        Ok(Ending::Done)
    }

    /// The filters asked for, or all that make sense on a stream.
    fn specs(&self) -> Vec<Spec> {
        if !self.filters.is_empty() {
            return self.filters.clone();
        }
        let endless = filters::KINDS.iter().filter(|kind| kind.can.run_forever).map(|kind| kind.name);
        // And, for comparison, the plainest filter that forgets nothing.
        let plainest = filters::KINDS.iter().find(|kind| !kind.can.forget).map(|kind| kind.name);
        endless.chain(plainest).map(Spec::new).collect()
    }

    /// One plan for every filter. Of those that nobody named, the ones that cannot be had are left out.
    fn contest(&self, goal: &Goal) -> Result<Contest> {
        if self.filters.is_empty() && self.wanted.memory.is_none() {
            return Err(Failure::new("say how much memory the filters may use, such as --memory 64KiB"));
        }
        let mut contest = Contest::default();
        for spec in self.specs() {
            match goal.plan(&spec.to_string()) {
                Ok(plan) => contest.plans.push(plan),
                Err(error) if self.filters.is_empty() => {
                    contest.omitted.push(Omitted { filter: spec.to_string(), reason: error.to_string() });
                }
                Err(error) => return Err(error.into()),
            }
        }
        contest.checked()
    }

    fn observe(&self, reader: &mut RecordReader, mut evaluation: Evaluation) -> Result<Stream> {
        let mut oracle = Oracle::sampling(self.truth_sample.unwrap_or(1.0))?;
        let (mut truths, mut records, mut skipped) = (Vec::new(), 0, 0);
        let mut watch = FaultWatch::new(self.keys.on_error, OnError::Fail);
        // The table comes at the end, so stdout is free until then.
        let mut bar = Bar::for_terminal(reader.blocks().consumed(), &self.files, true);
        for_each_batch(reader, &self.wanted.hashing(), |part| {
            if let Part::Records(bytes, batch) = part {
                watch.check(bytes, batch)?;
                records += batch.len() as u64;
                skipped += batch.faults().len() as u64;
                oracle.judge_all(batch.hashes(), &mut truths);
                evaluation.observe(batch.hashes(), batch.importances(), &truths)?;
                if let Some(bar) = &mut bar {
                    bar.show(|seconds| {
                        let (lines, rate) = (report::thousands(records), records as f64 / seconds);
                        format!("{lines} lines, {} lines/s", report::thousands(rate as u64))
                    });
                }
            }
            Ok(())
        })?;
        Ok(Stream { outcome: evaluation.finish(), oracle, skipped })
    }

    fn document(&self, goal: &Goal, contest: Contest, stream: Stream) -> Document {
        let target_fpr = goal.target_fpr.unwrap_or_default();
        let limit = goal.memory_bits.and_then(|memory_bits| stream.limit(memory_bits as f64, target_fpr));
        let Stream { outcome, skipped, .. } = stream;
        let sample = self.truth_sample.unwrap_or(1.0);
        // Of a sample, the number of distinct keys is known up to its share.
        let distinct = ((outcome.distinct as f64 / sample).round() as u64).min(outcome.items);
        Document {
            items: outcome.items,
            distinct,
            duplicates: outcome.items - distinct,
            truth_sample: self.truth_sample,
            skipped,
            target_fpr,
            limit_fnr: limit.map(|limit| limit.limit_fnr),
            limit_kind: limit.map(|limit| limit.limit_kind),
            filters: if contest.tuned.is_empty() {
                outcome.reports.into_iter().map(|report| contest.row(report, None)).collect()
            } else {
                contest.matched_rows(outcome.reports, target_fpr)
            },
            omitted: contest.omitted,
        }
    }
}

/// The filters of a comparison, on paper.
#[derive(Default)]
struct Contest {
    plans: Vec<Plan>,
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
    fn row(&self, report: Report, matched: Option<matched::Matched>) -> Row {
        let plan = self.plans.iter().find(|plan| plan.spec.to_string() == report.filter);
        Row { notes: plan.map(|plan| plan.notes.clone()).unwrap_or_default(), report, matched }
    }

    fn build(&self) -> Result<Vec<AnyFilter>> {
        self.plans.iter().map(|plan| plan.build().map_err(Failure::from)).collect()
    }
}

/// What the stream turned out to be.
struct Stream {
    outcome: Outcome,
    oracle: Oracle,
    skipped: u64,
}

impl Stream {
    /// What no filter of this memory can avoid: for even repeats as the stream grew, otherwise for the
    /// keys as they are at the end.
    fn limit(&self, memory_bits: f64, fpr: f64) -> Option<Limit> {
        let repeats = self.oracle.repeats();
        let bits = memory_bits * self.oracle.sample();
        if repeats.even() {
            let growth = self.outcome.truth.iter().map(|slice| (slice.distinct as f64, slice.duplicates as f64));
            let limit_fnr = limit::uniform_fnr(bits, fpr, growth)?;
            return Some(Limit::uniform(limit_fnr));
        }
        let keys: Vec<_> =
            repeats.keys_by_repeats.iter().map(|(&repeats, &keys)| (f64::from(repeats), keys as f64)).collect();
        Some(Limit::of_fixed_keys(limit::static_fnr(bits, fpr, &keys)?))
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
    #[serde(skip_serializing_if = "is_zero")]
    skipped: u64,
    target_fpr: f64,
    limit_fnr: Option<f64>,
    limit_kind: Option<&'static str>,
    filters: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omitted: Vec<Omitted>,
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
    #[serde(flatten)]
    report: Report,
    #[serde(flatten)]
    matched: Option<matched::Matched>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}
