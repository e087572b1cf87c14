//! What experiments share, the names that each of them needs included: filters by spec on a stream, and rows of what came out.

pub(super) use crate::datasets::{self, Request, universe_for};
pub(super) use crate::evaluate::{self, Batch, Record, Report, Source};
pub(super) use crate::metrics::Tally;
pub(super) use crate::oracle::{IdOracle, Oracle, Repeats, Truth};
pub(super) use crate::suite::{
    Axis, Cell, Conclusion, Context, Experiment, Figure, Label, Look, Outcome, Panel, Point, Printed, Row, Sample,
    Scope, Seconds, Series, Summary, Table, Verdict, clearly_below, short,
};
pub(super) use everbloom::{AnyFilter, Error, Goal, Hashing, Importance, Key as _, Result};
pub(super) use everbloom_all::KINDS;

/// What rows are about: each label's name, and its value.
macro_rules! labels {
    ($($name:ident = $value:expr),* $(,)?) => { [$((stringify!($name), Label::from($value))),*] };
}
pub(super) use labels;

/// A filter: the name it has in charts, and its spec.
pub(super) type Named = (&'static str, String);

/// The filter of a full spec.
pub(super) fn build(spec: &str, seed: u64) -> Result<AnyFilter> {
    Goal::new().hashing(Hashing::seeded(seed)).plan_among(KINDS, spec)?.build()
}

/// Runs filters over a stream, all with the same seed.
pub(super) fn judge(
    source: &mut dyn Source,
    filters: &[Named],
    seed: u64,
    record: Record,
) -> Result<evaluate::Outcome> {
    let built = filters.iter().map(|(_, spec)| build(spec, seed)).collect::<Result<Vec<_>>>()?;
    evaluate::run_recording(source, Hashing::seeded(seed), built, record)
}

/// Runs filters over a data set of so many arrivals; its seed is not the filters'.
pub(super) fn judge_set(set: &str, request: Request, filters: &[Named], record: Record) -> Result<evaluate::Outcome> {
    let mut stream = datasets::open(set, &Request { seed: 1000 + request.seed, ..request })?;
    judge(&mut stream, filters, request.seed, record)
}

/// Adds every rate of a report to a row.
pub(super) fn with_rates(row: Row, report: &Report) -> Row {
    row.value("fpr", report.measured_fpr)
        .value("fnr", report.measured_fnr)
        .value("late_fpr", report.late_fpr)
        .value("late_fnr", report.late_fnr)
        .value("wfp", report.wfp)
        .value("wfn", report.wfn)
        .value("weighted_precision", report.weighted_precision)
        .value("weighted_recall", report.weighted_recall)
        .value("memory_bits", report.memory_bits as f64)
}

/// The processor time that this thread has taken so far, in seconds, where the system tells (Linux).
pub(super) fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    // The name, in brackets, may have spaces; after it user and system time are the 12th and 13th field, in hundredths.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// The two errors, and what their axes say.
pub(super) const ERRORS: [(&str, &str); 2] =
    [("fnr", "false negatives, % of duplicates"), ("fpr", "false positives, % of distinct")];

/// Over what rates along a stream are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Each part by itself.
    Part,
    /// Everything so far.
    All,
}

/// Rates along the stream, after each of so many equal parts: (arrivals so far, fpr, fnr).
pub(super) fn integral(report: &Report, parts: usize, over: Over) -> Vec<(u64, Option<f64>, Option<f64>)> {
    let slices: Vec<_> = report.slices.iter().collect();
    let (mut seen, mut sum) = (0, Tally::default());
    let rates = |part: &[&Tally]| {
        if over == Over::Part {
            sum = Tally::default();
        }
        part.iter().for_each(|tally| sum.add(tally));
        seen += part.iter().map(|tally| tally.arrivals()).sum::<u64>();
        (seen, sum.fpr(), sum.fnr())
    };
    slices.chunks(slices.len().div_ceil(parts).max(1)).map(rates).collect()
}

/// Means of a value, times `unit`, against the arrivals so far, of the rows with these labels.
pub(super) fn along(
    name: &str,
    table: &Table,
    (rows, value, unit): (&str, &str, f64),
    labels: &[(&str, Label)],
) -> Series {
    let summaries = table.summary(rows);
    let point = |summary: &Summary| Some(Point::of(summary.sample("arrivals")?.mean(), summary.sample(value)?, unit));
    Series::new(name, Look::Line, summaries.iter().filter(|summary| summary.has(labels)).filter_map(point))
}

/// Where two measures lie, as one mark.
pub(super) fn mark(name: &str, x: &Sample, y: &Sample) -> Series {
    Series::new(name, Look::Marks, [Point::of(x.mean(), y, 1.0)])
}

/// A stream that says how far it is.
pub(super) struct Watched<'a, S> {
    source: S,
    context: &'a Context<'a>,
    items: u64,
    seen: u64,
}

impl<'a, S: Source> Watched<'a, S> {
    /// A stream of about `items` arrivals.
    pub(super) fn new(source: S, context: &'a Context<'a>, items: u64) -> Self {
        Watched { source, context, items, seen: 0 }
    }
}

impl<S: Source> Source for Watched<'_, S> {
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()> {
        self.source.fill(hashing, batch)?;
        let before = self.seen;
        self.seen += batch.hashes.len() as u64;
        // Now and then is enough.
        if before >> 20 != self.seen >> 20 {
            self.context.done(self.seen as f64 / self.items.max(1) as f64);
        }
        Ok(())
    }
}
