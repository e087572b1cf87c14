//! What the frontiers share: every kind's grid on a stream, its lower envelope, the limit.

use crate::experiments::common::*;
use crate::matched;
use crate::metrics::Slices;
use everbloom::Spec;
use everbloom_forecast::forecast::limit;

/// A stream: synthetic or recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) name: &'static str,
    pub(super) recorded: bool,
}

/// The streams of the plain frontier.
pub(super) const STREAMS: [Stream; 7] = [
    Stream { name: "uniform", recorded: false },
    Stream { name: "zipf", recorded: false },
    Stream { name: "log_lag", recorded: false },
    Stream { name: "crawl", recorded: false },
    Stream { name: "history", recorded: true },
    Stream { name: "clients", recorded: true },
    Stream { name: "urls", recorded: true },
];

/// How much memory, and whether importance counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) bits_per_key: f64,
    pub(super) weighted: bool,
}

/// The middle of the grid; it reaches a quarter of it and sixteen times it.
const TARGET: f64 = 0.01;
/// Rates at which the limit is computed.
const LIMIT_RATES: [f64; 9] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2];

/// Rates that are drawn.
const SHOWN: std::ops::RangeInclusive<f64> = 0.001..=0.2;

/// The first so many arrivals of a stream.
struct Limited {
    source: Box<dyn Source>,
    left: u64,
}

impl Source for Limited {
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()> {
        if self.left > 0 {
            self.source.fill(hashing, batch)?;
        }
        let keep = (batch.hashes.len() as u64).min(self.left);
        batch.hashes.truncate(keep as usize);
        batch.importances.truncate(keep as usize);
        batch.truths.truncate(keep as usize);
        self.left -= keep;
        Ok(())
    }
}

/// A stream of at most so many arrivals; recordings do not depend on the seed.
fn open(scope: &Scope, stream: Stream, items: u64, seed: u64) -> Result<Limited> {
    let source: Box<dyn Source> = if stream.recorded {
        Box::new(scope.recording(stream.name)?)
    } else {
        Box::new(datasets::open(stream.name, &Request { items: Some(items), seed: 1000 + seed, ..Default::default() })?)
    };
    Ok(Limited { source, left: items })
}

/// A cell per stream, kind and seed; streams whose recording is not there are left out.
pub(super) fn cells(scope: &Scope, streams: &[Stream], setting: Setting) -> Vec<Cell> {
    let there = |stream: &&Stream| !stream.recorded || scope.recording(stream.name).is_ok();
    // The specification's figures are for a million arrivals and a bit per key.
    let reference = ["uniform", "zipf", "log_lag"];
    let items = |stream: &Stream| match stream {
        stream if stream.recorded => scope.pick(5_000, 200_000, 10_000_000),
        stream if reference.contains(&stream.name) && setting.bits_per_key == 1.0 => {
            scope.pick(5_000, 1_000_000, 1_000_000)
        }
        _ => scope.pick(5_000, 100_000, 1_000_000),
    };
    let kinds: Vec<_> =
        KINDS.iter().filter(|kind| kind.can.run_forever || kind.name == "bloom").map(|kind| kind.name).collect();
    let mut cells = Vec::new();
    for seed in scope.seeds() {
        for stream in streams.iter().filter(there).copied() {
            let items = items(&stream);
            let name = |what: &str| {
                format!("{}, {items} arrivals, {} bits per key, {what}", stream.name, setting.bits_per_key)
            };
            // Where everything matters alike, importance has nothing to say.
            let indifferent = ["uniform", "zipf", "log_lag"].contains(&stream.name);
            for kind in kinds.iter().copied().filter(|kind| !(indifferent && kind.starts_with("ibf"))) {
                let scope = scope.clone();
                let work = move |_: &Context<'_>| {
                    grid(&open_all(&scope, stream, items, seed), setting, stream.name, kind, seed)
                };
                let factor = if ["stable", "reservoir", "ranked"].contains(&kind) { 160.0 } else { 12.0 };
                cells.push(Cell::new(name(kind), seed, work).seconds(items as f64 * factor * 30e-9));
            }
            if !setting.weighted {
                let scope = scope.clone();
                let work =
                    move |_: &Context<'_>| bound(&open_all(&scope, stream, items, seed), setting, stream.name, seed);
                cells.push(Cell::new(name("limit"), seed, work).seconds(items as f64 * 200e-9));
            }
        }
    }
    cells
}

/// How a stream is opened, as often as needed.
type Opener<'a> = Box<dyn Fn() -> Result<Limited> + 'a>;

fn open_all(scope: &Scope, stream: Stream, items: u64, seed: u64) -> Opener<'_> {
    Box::new(move || open(scope, stream, items, seed))
}

/// What the stream itself is like.
fn survey(open: &Opener<'_>, seed: u64) -> Result<(Slices, Repeats)> {
    let (mut stream, hashing) = (open()?, Hashing::seeded(seed));
    let (mut oracle, mut slices, mut batch) = (Oracle::default(), Slices::default(), Batch::default());
    loop {
        batch.clear();
        stream.fill(&hashing, &mut batch)?;
        if batch.hashes.is_empty() {
            return Ok((slices, oracle.repeats()));
        }
        for hash in &batch.hashes {
            let truth = oracle.judge(*hash);
            slices.record(truth, truth == Truth::Duplicate);
        }
    }
}

fn memory_bits(slices: &Slices, setting: Setting) -> u64 {
    ((slices.total().distinct as f64 * setting.bits_per_key) as u64).max(1024)
}

/// Every point of a kind's grid.
fn grid(open: &Opener<'_>, setting: Setting, stream: &str, kind: &'static str, seed: u64) -> Result<Vec<Row>> {
    let (slices, _) = survey(open, seed)?;
    let mut goal = Goal::new().memory_bits(memory_bits(&slices, setting)).fpr(TARGET).hashing(Hashing::seeded(seed));
    if setting.weighted {
        goal = goal.with_importance();
    }
    // A kind that cannot be planned in so little memory has no points.
    let Ok(plans) = matched::grid(&Spec::new(kind), &goal) else { return Ok(Vec::new()) };
    let built = plans.iter().map(|plan| plan.build()).collect::<Result<Vec<_>>>()?;
    let outcome = evaluate::run(&mut open()?, Hashing::seeded(seed), built)?;
    let row = |report: &evaluate::Report| {
        Row::new("points")
            .label("stream", stream)
            .label("bits_per_key", setting.bits_per_key)
            .label("kind", kind)
            .label("spec", report.filter.as_str())
            .value("fpr", report.measured_fpr)
            .value("fnr", report.measured_fnr)
            .value("weighted_fnr", report.weighted_recall.map(|recall| 1.0 - recall))
            .value("memory_bits", report.memory_bits as f64)
    };
    Ok(outcome.reports.iter().map(row).collect())
}

/// The limit at several rates.
fn bound(open: &Opener<'_>, setting: Setting, stream: &str, seed: u64) -> Result<Vec<Row>> {
    let (slices, repeats) = survey(open, seed)?;
    let memory = memory_bits(&slices, setting) as f64;
    let growth: Vec<_> = slices.iter().map(|tally| (tally.distinct as f64, tally.duplicates as f64)).collect();
    let keys: Vec<_> =
        repeats.keys_by_repeats.iter().map(|(repeats, keys)| (f64::from(*repeats), *keys as f64)).collect();
    let row = |rate: f64| {
        let fnr = if stream == "uniform" {
            limit::uniform_fnr(memory, rate, growth.iter().copied())
        } else {
            limit::static_fnr(memory, rate, &keys)
        };
        let start = Row::new("limit").label("stream", stream).label("bits_per_key", setting.bits_per_key);
        start.label("fpr", rate).value("fnr", fnr)
    };
    Ok(LIMIT_RATES.map(row).to_vec())
}

/// The name under which a kind is drawn.
fn group(kind: &str) -> String {
    if kind.starts_with("ibf") { "ibf family".into() } else { kind.into() }
}

/// The points of a kind that no other of its points beats in both rates: (fpr, fnr, error).
fn envelope(table: &Table, setting: Setting, stream: &str, kind: &str) -> Vec<(f64, f64, f64)> {
    let measure = if setting.weighted { "weighted_fnr" } else { "fnr" };
    let summaries = table.summary("points");
    let here = |summary: &&Summary| {
        summary.label("stream") == Some(&stream.into())
            && summary.label("bits_per_key") == Some(&setting.bits_per_key.into())
            && summary.label("kind").is_some_and(|label: &Label| group(&label.to_string()) == kind)
    };
    let point = |summary: &Summary| {
        let fnr = summary.sample(measure)?;
        Some((summary.sample("fpr")?.mean(), fnr.mean(), fnr.error()))
    };
    let mut points: Vec<_> = summaries.iter().filter(here).filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut best = f64::INFINITY;
    points.retain(|point| {
        let better = point.1 < best;
        best = best.min(point.1);
        better
    });
    points
}

/// The FNR of a kind at a rate of false positives, between its two nearest points; `None` if every
/// point has more.
pub(super) fn at_rate(table: &Table, setting: Setting, stream: &str, kind: &str, rate: f64) -> Option<f64> {
    let points = envelope(table, setting, stream, kind);
    let below = points.iter().rfind(|point| point.0 <= rate)?;
    match points.iter().find(|point| point.0 > rate) {
        Some(above) if below.0 > 0.0 => {
            let share = (rate / below.0).ln() / (above.0 / below.0).ln();
            Some(below.1 + share * (above.1 - below.1))
        }
        _ => Some(below.1),
    }
}

/// What ranked misses at a rate; and which of the other filters that work for ever misses least, and how much.
pub(super) fn ranked_and_next(
    table: &Table,
    setting: Setting,
    stream: &str,
    rate: f64,
) -> Option<(f64, &'static str, f64)> {
    let missed = |kind| at_rate(table, setting, stream, kind, rate);
    let others = ["stable", "reservoir", "age_partitioned", "aging", "ibf family"];
    let found = others.into_iter().filter_map(|kind| Some((kind, missed(kind)?)));
    let (next, best) = found.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((missed("ranked")?, next, best))
}

/// A panel per stream.
pub(super) fn figure(table: &Table, setting: Setting, name: &str, title: &str, caption: &str) -> Figure {
    let mut figure = Figure::new(name, title, caption);
    let mut kinds: Vec<String> = Vec::new();
    for kind in table.labels("points", "kind") {
        let kind = group(&kind.to_string());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let y = if setting.weighted { "weighted false negatives, %" } else { "false negatives, % of duplicates" };
    for stream in table.labels("points", "stream") {
        let stream = stream.to_string();
        let x = Axis::log("false positives, % of distinct").from(0.1, 20.0);
        let mut panel = Panel::new(stream.clone(), x, Axis::linear(y));
        for kind in &kinds {
            let mut points = envelope(table, setting, &stream, kind);
            points.retain(|point| SHOWN.contains(&point.0));
            let point =
                |(fpr, fnr, error): &(f64, f64, f64)| Point { x: 100.0 * fpr, y: 100.0 * fnr, error: 100.0 * error };
            panel = panel.series(Series::new(kind.clone(), Look::LineAndMarks, points.iter().map(point)));
        }
        let here = labels![stream = stream.as_str(), bits_per_key = setting.bits_per_key];
        let mut limit = Series::from_table("limit", Look::Reference, (table, "limit"), ("fpr", "fnr", 100.0), &here);
        limit.points.iter_mut().for_each(|point| (point.x, point.error) = (100.0 * point.x, 0.0));
        if !limit.points.is_empty() {
            panel = panel.series(limit);
        }
        figure = figure.panel(panel);
    }
    figure
}
