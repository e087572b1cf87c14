//! The page's charts, drawn by the code that draws the lab's.

use crate::failure::{Failure, Result};
use crate::report::thousands;
use everbloom::Holds;
use everbloom_forecast::stream::{Method, RateAt, RatesAt};
use everbloom_forecast::{Candidate, CostCurve, CostSoFar, Question, Recommendation};
use everbloom_lab::charts::{self, Axis, Figure, Look, Panel, Point, Series};
use everbloom_lab::spread::STATED_ERRORS;
use serde::Serialize;

/// A chart for the page.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    name: String,
    title: String,
    caption: String,
    svg: String,
    /// Its points.
    csv: String,
    /// How they were found.
    how: String,
}

impl Chart {
    fn of(figure: &Figure, how: &str) -> Result<Self> {
        // The page has the title above it.
        let svg = charts::svg(&Figure { title: String::new(), ..figure.clone() }).map_err(Failure::new)?;
        Ok(Chart {
            name: figure.name.clone(),
            title: figure.title.clone(),
            caption: figure.caption.clone(),
            svg,
            csv: figure.points(),
            how: how.into(),
        })
    }
}

/// How a simulation is called, short or long.
pub(super) const GLANCE: &str = "first glance";
pub(super) const SIMULATION: &str = "by simulation";

/// How a forecast was made, in the words of people: chains are formulas to them.
pub(super) fn how(candidate: &Candidate, is_glance: bool) -> String {
    let forecast = &candidate.forecast;
    match (forecast.method, is_glance) {
        (Method::Simulation, true) if forecast.fnr_standard_error > 0.0 => {
            format!("{GLANCE}, ± {} points", digits(100.0 * STATED_ERRORS * forecast.fnr_standard_error))
        }
        (Method::Simulation, true) => GLANCE.into(),
        (Method::Simulation, false) => SIMULATION.into(),
        _ => "by formula".into(),
    }
}

/// Two digits.
fn digits(number: f64) -> String {
    let places = (1 - number.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{number:.places$}")
}

/// Filters beside the best.
const BESIDE: usize = 3;

/// Lags and importances that hold a smaller share of the repeats tell little.
const LEAST_SHARE: f64 = 0.001;

/// Rates below this are drawn there, in %: a logarithm knows no zero.
const LEAST_PERCENT: f64 = 1e-5;

fn kind(candidate: &Candidate) -> &str {
    candidate.plan.spec.kind()
}

fn points(rows: &[RateAt], unit: f64) -> Vec<Point> {
    let told = rows.iter().filter(|row| row.share >= LEAST_SHARE);
    told.map(|row| Point::new(row.at * unit, 100.0 * row.predicted_fnr)).collect()
}

/// The errors of the best filters by lag, by importance and over time.
pub(super) fn of_answer(answer: &Recommendation, question: &Question, is_glance: bool) -> Result<Vec<Chart>> {
    let best = &answer.best;
    let how = how(best, is_glance);
    let shown = || std::iter::once(best).chain(&answer.runners_up).take(1 + BESIDE);
    let mut all = Vec::new();
    if shown().any(|one| one.forecast.predicted_fnr > 0.0) {
        let x = Axis::log("lines since the key was last seen");
        let mut panel = Panel::new("", x, Axis::linear("repeats missed, %"));
        for one in shown() {
            panel = panel.series(Series::new(kind(one), Look::LineAndMarks, points(&one.forecast.by_lag, 1.0)));
        }
        let caption = "A repeat that comes soon is found; one that comes late may be forgotten. New lines have no lag: how many \
                       of them are dropped does not depend on it.";
        let figure = Figure::new("by_lag", "Repeats missed, by how long ago the key came", caption).panel(panel);
        all.push(Chart::of(&figure, &how)?);
    }
    if question.goal.has_importance() && best.forecast.by_importance.len() > 1 {
        let x = Axis::linear("importance, % of the greatest");
        let mut panel = Panel::new("", x, Axis::linear("errors, %"));
        for one in shown().filter(|one| one.forecast.by_importance.len() > 1) {
            let series = Series::new(kind(one), Look::LineAndMarks, points(&one.forecast.by_importance, 100.0));
            panel = panel.series(series);
        }
        let fpr = 100.0 * best.forecast.mean_fpr;
        let ends = [Point::new(0.0, fpr), Point::new(100.0, fpr)];
        panel = panel.series(Series::new(format!("new lines dropped ({})", kind(best)), Look::Reference, ends));
        let caption = "Marks are repeats missed: a filter that weighs importance keeps what matters longest. The dashed line is \
                       the new lines that are dropped, which is the same for all.";
        let figure = Figure::new("by_importance", "Errors by importance", caption).panel(panel);
        all.push(Chart::of(&figure, &how)?);
    }
    all.extend(over_time(answer, &how)?);
    all.extend(cost_over_time(answer, &how)?);
    Ok(all)
}

/// All filters at this memory: one error against the other.
pub(super) fn frontier(tried: &[Candidate], best: &Candidate, how: &str) -> Result<Chart> {
    let at = |one: &Candidate| {
        let fpr = 100.0 * one.forecast.mean_fpr;
        Point::new(fpr.max(LEAST_PERCENT), 100.0 * one.forecast.predicted_fnr)
    };
    let mut kinds: Vec<&str> = Vec::new();
    for one in tried {
        if !kinds.contains(&kind(one)) {
            kinds.push(kind(one));
        }
    }
    let mut panel = Panel::new("", Axis::log("new lines dropped, %"), Axis::linear("repeats missed, %"));
    for name in kinds {
        let of = tried.iter().filter(|one| kind(one) == name).map(at);
        panel = panel.series(Series::new(name, Look::Marks, of));
    }
    panel = panel.series(Series::new("recommended", Look::ReferenceMarks, [at(best)]));
    let caption = "Each mark is a filter of this memory. The lower left corner is best; along the lower edge of the cloud, less of \
                   one error is bought with more of the other.";
    let figure = Figure::new("frontier", "All filters at this memory", caption).panel(panel);
    Chart::of(&figure, how)
}

const KIB: f64 = 8192.0;

/// A dashed line at a memory.
fn upright(name: &str, bits: u64, height: f64) -> Series {
    let x = bits as f64 / KIB;
    Series::new(name, Look::Reference, [Point::new(x, 0.0), Point::new(x, height)])
}

/// What more memory gains.
pub(super) fn by_memory(curve: &CostCurve, costs: bool, how: &str) -> Result<Option<Chart>> {
    if curve.points.len() < 2 {
        return Ok(None);
    }
    let x = Axis::log2("memory, KiB");
    let at = |of: &dyn Fn(usize) -> f64| -> Vec<Point> {
        let points = curve.points.iter().enumerate();
        points.map(|(index, point)| Point::new(point.memory_bits as f64 / KIB, of(index))).collect()
    };
    let (title, mut panel, values) = if costs {
        let total = at(&|index| curve.points[index].cost.total());
        let panel = Panel::new("", x, Axis::linear("cost of a line")).series(Series::new(
            "cost of the cheapest filter",
            Look::LineAndMarks,
            total.clone(),
        ));
        ("Cost against memory", panel, total)
    } else {
        let missed = at(&|index| 100.0 * curve.points[index].predicted_fnr);
        let dropped = at(&|index| 100.0 * curve.points[index].predicted_fpr);
        let panel = Panel::new("", x, Axis::linear("errors, %"))
            .series(Series::new("repeats missed", Look::LineAndMarks, missed.clone()))
            .series(Series::new("new lines dropped", Look::LineAndMarks, dropped.clone()));
        ("Errors against memory", panel, [missed, dropped].concat())
    };
    let height = values.iter().map(|point| point.y).fold(0.0, f64::max);
    if let Some(bits) = curve.bend_bits {
        panel = panel.series(upright("from here on, more saves little", bits, height));
    }
    let caption = "The best filter of each memory. Beyond the dashed line every doubling of the memory saves less than a hundredth \
                   of what it costs to have no filter.";
    Ok(Some(Chart::of(&Figure::new("by_memory", title, caption).panel(panel), how)?))
}

/// The errors of the best filter as lines come.
fn over_time(answer: &Recommendation, how: &str) -> Result<Option<Chart>> {
    let best = &answer.best;
    let (rows, promise) = (&best.forecast.over_time, best.plan.promise);
    if rows.len() < 2 {
        return Ok(None);
    }
    let at = |of: fn(&RatesAt) -> f64| rows.iter().map(move |row| Point::new(row.arrivals, 100.0 * of(row)));
    let panel = |name: &str, of: fn(&RatesAt) -> f64| {
        let panel = Panel::new(name, Axis::linear("lines so far"), Axis::linear("%"));
        panel.series(Series::new(kind(best), Look::Line, at(of)))
    };
    let mut dropped = panel("new lines dropped", |row| row.predicted_fpr);
    // One that promises far more than it needs would be a line at the bottom.
    let highest = rows.iter().map(|row| row.predicted_fpr).fold(0.0, f64::max);
    if promise.holds != Holds::Never && promise.fpr_bound <= 4.0 * highest {
        let ends = [0.0, answer.stream.arrivals() as f64].map(|at| Point::new(at, 100.0 * promise.fpr_bound));
        dropped = dropped.series(Series::new("promised at most", Look::Reference, ends));
    }
    let forgets = best.forecast.predicted_fnr > 0.0;
    let caption = match (forgets, best.forecast.converged_after) {
        (true, Some(lines)) => format!(
            "A filter that forgets comes to a balance between new keys and old ones: here after about {} lines.",
            thousands(lines.round() as u64)
        ),
        (true, None) => {
            "A filter that forgets fills up at first, and then comes to a balance between new keys and old ones. \
                         This stream ends before it does."
                .into()
        }
        (false, _) => {
            "What never forgets fills up as new keys come, and errs more and more until the last of them.".into()
        }
    };
    let mut figure = Figure::new("over_time", "Errors over time", caption).panel(dropped);
    if forgets {
        figure = figure.panel(panel("repeats missed", |row| row.predicted_fnr));
    }
    Chart::of(&figure, how).map(Some)
}

/// What errors add up to while lines come.
fn cost_over_time(answer: &Recommendation, how: &str) -> Result<Option<Chart>> {
    let rows = answer.cost_over_time();
    if rows.len() < 2 {
        return Ok(None);
    }
    let line = |of: fn(&CostSoFar) -> f64| rows.iter().map(move |row| Point::new(row.arrivals, of(row)));
    let panel = Panel::new("", Axis::linear("lines so far"), Axis::linear("cost so far"))
        .series(Series::new(kind(&answer.best), Look::Line, line(|row| row.cost)))
        .series(Series::new("without a filter", Look::Reference, line(|row| row.without_filter)));
    let caption = "What is lost to errors and memory as lines come, beside letting every repeat through.";
    let figure = Figure::new("cost_over_time", "Cost over time", caption).panel(panel);
    Chart::of(&figure, how).map(Some)
}
