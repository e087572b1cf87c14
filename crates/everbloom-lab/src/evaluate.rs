//! Several filters over one stream, in one pass, judged against the exact truth.
//!
//! A caller with a stream of its own pushes [`Batch`]es into an [`Evaluation`]; [`run`] does so for
//! a [`Source`]. However many filters there are, the stream is read, hashed and judged once.
//!
//! **Time** is measured around `observe_hashes` alone, batch by batch: `ns_per_item` is what the
//! filter costs on keys that are hashed already, without reading, hashing and the oracle. It is the time
//! that the processor worked for it: on a short stream, what another program takes meanwhile would
//! be most of it. The filters take turns, so each finds its caches partly cold; small filters look a
//! little slower than alone.

use crate::curve;
use crate::metrics::{ByImportance, Judged, Slices, Tally};
use crate::oracle::Truth;
use crate::spread::{Errors, Groups};
use everbloom::kind::Watch;
use everbloom::kind::watch;
use everbloom::{AnyFilter, Error, Hashing, Importance, ImportanceScale, Importances, KeyHash, Result, Verdict};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::time::Duration;

/// Arrivals, hashed and judged.
#[derive(Debug, Default)]
pub struct Batch {
    /// The keys' hashes.
    pub hashes: Vec<KeyHash>,
    /// Their importances.
    pub importances: Vec<Importance>,
    /// The truth about them.
    pub truths: Vec<Truth>,
}

impl Batch {
    /// How many arrivals go together: enough to amortise the clock and cold caches.
    pub const SIZE: usize = 4096;

    /// Empties the batch, keeping its memory.
    pub fn clear(&mut self) {
        self.hashes.clear();
        self.importances.clear();
        self.truths.clear();
    }
}

/// A stream that knows the truth about itself.
pub trait Source {
    /// Puts the next arrivals into an empty batch; none at the end of the stream.
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()>;
}

/// What to record besides the rates.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record {
    /// Rates by importance.
    pub by_importance: bool,
    /// How importances were made, to label them as the user knows them.
    pub scale: Option<ImportanceScale>,
    /// The share of cells that are not zero, after every so many arrivals; costs a look at every cell.
    pub fill_every: Option<u64>,
    /// The share of the keys whose truth is known, if that is not all: rates then have a ±.
    pub sample: Option<f64>,
}

struct Contender {
    filter: AnyFilter,
    watch: Watch,
    judged: Judged,
    groups: Option<Groups>,
    time: Duration,
    fill: Vec<(u64, f64)>,
}

/// Filters on a stream.
pub struct Evaluation {
    contenders: Vec<Contender>,
    record: Record,
    items: u64,
    truth: Slices,
    verdicts: Vec<Verdict>,
}

impl Evaluation {
    /// Filters about to see a stream; all must hash alike.
    pub fn new(filters: Vec<AnyFilter>, record: Record) -> Result<Self> {
        if let Some(pair) = filters.windows(2).find(|pair| pair[0].hashing() != pair[1].hashing()) {
            return Err(Error::Mismatch {
                what: "how they hash",
                left: pair[0].spec().to_string(),
                right: pair[1].spec().to_string(),
                remedy: "build all filters with the same seed",
            });
        }
        let contender = |filter: AnyFilter| {
            let watch = watch(filter.as_ref());
            let by_importance = record.by_importance.then(ByImportance::default);
            let judged = Judged { by_importance, ..Judged::default() };
            let groups = record.sample.filter(|share| *share < 1.0).map(Groups::of_sample);
            Contender { filter, watch, judged, groups, time: Duration::ZERO, fill: Vec::new() }
        };
        Ok(Evaluation {
            contenders: filters.into_iter().map(contender).collect(),
            record,
            items: 0,
            truth: Slices::default(),
            verdicts: Vec::new(),
        })
    }

    /// Shows every filter some arrivals and counts its errors; there are as many truths as hashes. An error if a filter that
    /// grows is refused the memory: what it would say without it is not its rate.
    pub fn observe(&mut self, hashes: &[KeyHash], importances: Importances<'_>, truths: &[Truth]) -> Result<()> {
        self.verdicts.resize(hashes.len(), Verdict::Distinct);
        for &truth in truths {
            self.truth.record(truth, truth == Truth::Duplicate);
        }
        for contender in &mut self.contenders {
            contender.observe(self.items, hashes, importances, truths, &mut self.verdicts)?;
        }
        let (before, after) = (self.items, self.items + hashes.len() as u64);
        self.items = after;
        if let Some(every) = self.record.fill_every
            && before / every != after / every
        {
            self.contenders.iter_mut().for_each(|contender| contender.look(after));
        }
        Ok(())
    }

    /// What came of it.
    pub fn finish(self) -> Outcome {
        let total = self.truth.total();
        let curves: Vec<_> = self.contenders.iter().map(|contender| contender.judged.by_importance.clone()).collect();
        let first = curves.first().cloned().flatten();
        let items = self.items;
        let reports =
            self.contenders.into_iter().map(|contender| contender.report(items, first.as_ref(), self.record.scale));
        Outcome {
            items,
            distinct: total.distinct,
            duplicates: total.duplicates,
            reports: reports.collect(),
            truth: self.truth,
        }
    }
}

impl Contender {
    fn observe(
        &mut self,
        before: u64,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        truths: &[Truth],
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        let start = worked();
        self.filter.make_room(hashes)?;
        self.filter.observe_hashes(hashes, importances, verdicts)?;
        self.time += worked().saturating_sub(start);
        if let Some(place) = self.watch.note(verdicts) {
            self.watch.break_at(before + place as u64 + 1);
        }
        for (index, (truth, verdict)) in truths.iter().zip(verdicts.iter()).enumerate() {
            self.judged.record(importances.at(index), *truth, *verdict);
            if let Some(groups) = &mut self.groups
                && *truth != Truth::Unknown
            {
                groups.record(hashes[index], *truth == Truth::Duplicate, !verdict.is_distinct());
            }
        }
        Ok(())
    }

    fn look(&mut self, arrivals: u64) {
        self.fill.push((arrivals, self.filter.status().fill));
    }

    fn report(mut self, items: u64, first: Option<&ByImportance>, scale: Option<ImportanceScale>) -> Report {
        let (total, late, weights) = (self.judged.slices.total(), self.judged.slices.last_tenth(), self.judged.weights);
        if self.watch.wants_look(items, true) && self.watch.is_broken_by(&self.filter.status()) {
            self.watch.break_at(items);
        }
        let curve = self.judged.by_importance.as_ref();
        let label = |curve: &ByImportance, share: f64| match scale {
            Some(scale) => scale.value_at(share),
            None => share * curve.max(),
        };
        let crossover =
            curve.zip(first).and_then(|(mine, first)| Some(label(mine, curve::crossover(mine, first)? / mine.max())));
        Report {
            filter: self.filter.spec().to_string(),
            memory_bits: self.filter.memory_bits(),
            predicted_fpr: self.filter.promise().fpr_bound,
            promise: self.watch.standing().name(),
            broken_at: self.watch.broken_at(),
            measured_fpr: total.fpr(),
            measured_fnr: total.fnr(),
            late_fpr: late.fpr(),
            late_fnr: late.fnr(),
            wfp: weights.wfp(),
            wfn: weights.wfn(),
            weighted_precision: weights.precision(),
            weighted_recall: weights.recall(),
            ns_per_item: (items > 0).then(|| self.time.as_nanos() as f64 / items as f64),
            by_importance: curve.map(|curve| rows(curve, label)),
            fn_share_slope: curve.and_then(curve::fn_share_line).map(|line| line.slope),
            crossover_importance: crossover,
            errors: self.groups.as_ref().map(Groups::errors),
            total,
            late,
            slices: self.judged.slices,
            fill: self.fill,
        }
    }
}

fn rows(curve: &ByImportance, label: impl Fn(&ByImportance, f64) -> f64) -> Vec<ImportanceRow> {
    // Without the last digits, which are those of the division.
    let rounded = |importance: f64| (importance * 1e9).round() / 1e9;
    let row = |(share, range, tally): (f64, [f64; 2], &Tally)| ImportanceRow {
        from: rounded(label(curve, range[0])),
        to: rounded(label(curve, range[1])),
        ..ImportanceRow::new(rounded(label(curve, share)), tally)
    };
    curve.ranges().map(row).collect()
}

/// The time that the processor has worked for this thread.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// What came of an evaluation.
pub struct Outcome {
    /// Arrivals.
    pub items: u64,
    /// Arrivals known to be distinct.
    pub distinct: u64,
    /// Arrivals known to be duplicates.
    pub duplicates: u64,
    /// A report per filter, in the order given.
    pub reports: Vec<Report>,
    /// How distinct and duplicate arrivals came, slice by slice.
    pub truth: Slices,
}

/// How a filter did. Rates without a denominator are missing.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The full spec.
    pub filter: String,
    /// All of its state.
    pub memory_bits: u64,
    /// What it promised, or what its parameters predict.
    pub predicted_fpr: f64,
    /// Whether it kept what it promised: kept, broken or none.
    pub promise: &'static str,
    /// The arrival that broke the promise.
    pub broken_at: Option<u64>,
    /// False positives among the distinct.
    pub measured_fpr: Option<f64>,
    /// False negatives among the duplicates.
    pub measured_fnr: Option<f64>,
    /// False positives over the last tenth of the arrivals.
    pub late_fpr: Option<f64>,
    /// False negatives over the last tenth of the arrivals.
    pub late_fnr: Option<f64>,
    /// Importance of the false positives / importance of all arrivals.
    pub wfp: Option<f64>,
    /// Importance of the false negatives / importance of all arrivals.
    pub wfn: Option<f64>,
    /// Share, by importance, of arrivals called duplicates that are.
    pub weighted_precision: Option<f64>,
    /// Share, by importance, of duplicates that were called so.
    pub weighted_recall: Option<f64>,
    /// Time to observe a hashed key.
    pub ns_per_item: Option<f64>,
    /// Rates by importance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_importance: Option<Vec<ImportanceRow>>,
    /// Slope of `fn_share` on importance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fn_share_slope: Option<f64>,
    /// The importance from which on it has fewer false negatives than the first filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossover_importance: Option<f64>,
    /// The ± of the rates, where seeds or a sample make one.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// The counts behind the rates.
    #[serde(skip)]
    pub total: Tally,
    /// The counts behind the late rates.
    #[serde(skip)]
    pub late: Tally,
    /// The counts slice by slice, in the order of arrival.
    #[serde(skip)]
    pub slices: Slices,
    /// Share of cells that are not zero, after so many arrivals.
    #[serde(skip)]
    pub fill: Vec<(u64, f64)>,
}

/// The rates of one importance.
#[derive(Debug, Clone, Serialize)]
pub struct ImportanceRow {
    /// The importance, or the mean of those that are taken together.
    pub importance: f64,
    /// The least of those that are taken together.
    #[serde(skip)]
    pub from: f64,
    /// The greatest of them.
    #[serde(skip)]
    pub to: f64,
    /// Its distinct arrivals.
    pub distinct: u64,
    /// Its duplicates.
    pub duplicates: u64,
    /// False positives among the distinct.
    pub measured_fpr: Option<f64>,
    /// False negatives among the duplicates.
    pub measured_fnr: Option<f64>,
    /// False positives among all.
    pub fp_share: Option<f64>,
    /// False negatives among all.
    pub fn_share: Option<f64>,
    /// The counts behind the rates.
    #[serde(skip)]
    pub tally: Tally,
}

impl ImportanceRow {
    /// The rates of these counts.
    pub fn new(importance: f64, tally: &Tally) -> Self {
        ImportanceRow {
            importance,
            from: importance,
            to: importance,
            distinct: tally.distinct,
            duplicates: tally.duplicates,
            measured_fpr: tally.fpr(),
            measured_fnr: tally.fnr(),
            fp_share: tally.fp_share(),
            fn_share: tally.fn_share(),
            tally: *tally,
        }
    }
}

/// Runs filters over a whole source.
pub fn run(source: &mut dyn Source, hashing: Hashing, filters: Vec<AnyFilter>) -> Result<Outcome> {
    run_recording(source, hashing, filters, Record::default())
}

/// [`run`], recording more.
pub fn run_recording(
    source: &mut dyn Source,
    hashing: Hashing,
    filters: Vec<AnyFilter>,
    record: Record,
) -> Result<Outcome> {
    let mut evaluation = Evaluation::new(filters, record)?;
    let mut batch = Batch::default();
    loop {
        batch.clear();
        source.fill(&hashing, &mut batch)?;
        if batch.hashes.is_empty() {
            return Ok(evaluation.finish());
        }
        evaluation.observe(&batch.hashes, Importances::Each(&batch.importances), &batch.truths)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::{self, Request};
    use everbloom::Goal;
    use everbloom_all::KINDS;

    fn bloom(seed: u64) -> AnyFilter {
        let goal = Goal::new().memory_bits(8192).fpr(0.01).hashing(Hashing::seeded(seed));
        goal.plan_among(KINDS, "bloom").and_then(|plan| plan.build()).expect("a filter")
    }

    fn uniform() -> datasets::Set {
        let request = Request { items: Some(10_000), distinct: Some(0.5), ..Default::default() };
        datasets::open("uniform", &request).expect("a set")
    }

    #[test]
    fn filters_that_hash_differently_are_refused() {
        assert!(Evaluation::new(vec![bloom(1), bloom(2)], Record::default()).is_err());
    }

    #[test]
    fn a_filter_that_fills_up_errs_late() {
        let outcome = run(&mut uniform(), Hashing::seeded(1), vec![bloom(1)]).expect("a run");
        let report = &outcome.reports[0];
        assert!(report.late_fpr > report.measured_fpr && report.measured_fpr > Some(0.01), "{report:?}");
        assert_eq!((outcome.items, report.total.arrivals()), (10_000, 10_000));
        assert_eq!((report.total.distinct, report.total.duplicates), (outcome.distinct, outcome.duplicates));
        assert_eq!((report.late_fnr, report.wfn, report.weighted_recall), (Some(0.0), Some(0.0), Some(1.0)));
    }

    #[test]
    fn the_share_of_set_cells_is_recorded_over_time() {
        let record = Record { fill_every: Some(Batch::SIZE as u64), ..Record::default() };
        let outcome = run_recording(&mut uniform(), Hashing::seeded(1), vec![bloom(1)], record).expect("a run");
        let fill = &outcome.reports[0].fill;
        assert_eq!(fill.iter().map(|(arrivals, _)| *arrivals).collect::<Vec<_>>(), [4096, 8192]);
        assert!(0.0 < fill[0].1 && fill[0].1 < fill[1].1 && fill[1].1 <= 1.0, "{fill:?}");
    }
}
