//! Charts: what errors cost against the memory, and what an audit measured.

use crate::failure::{Failure, Result};
use crate::output;
use everbloom_forecast::{AuditReport, ByLag, Recommendation};
use everbloom_lab::suite::{Axis, Figure, Look, Panel, Point, Series, svg};
use std::path::Path;

const KIB: f64 = 8192.0;

/// Writes the cost of the cheapest filter of each memory.
pub(crate) fn cost(path: &Path, answer: &Recommendation) -> Result<()> {
    let (Some(curve), Some(chosen)) = (&answer.curve, answer.best.cost) else {
        return Err(Failure::new("--chart shows what errors cost; say so with --cost-fp and --cost-fn"));
    };
    let points: Vec<Point> =
        curve.points.iter().map(|point| Point::new(point.memory_bits as f64 / KIB, point.cost.total())).collect();
    let x = Axis::log2("memory, KiB");
    let mut panel = Panel::new("", x, Axis::linear("cost of a line"));
    panel = panel.series(Series::new("the cheapest filter of each memory", Look::LineAndMarks, points.clone()));
    if let (Some(first), Some(last), Some(without)) = (points.first(), points.last(), answer.without_filter) {
        let ends = [first, last].map(|end| Point::new(end.x, without));
        // Far above all others, it would hide them.
        if points.iter().any(|point| point.y > without / 20.0) {
            panel = panel.series(Series::new("no filter: every repeat is let through", Look::Reference, ends));
        }
    }
    let bits = answer.best.plan.memory_bits;
    let bend = curve.bend_bits.and_then(|bits| points.iter().find(|point| point.x == bits as f64 / KIB));
    let mut taken = format!("taken: {}", answer.best.plan.spec.kind());
    match bend {
        Some(_) if curve.bend_bits == Some(bits) => taken += "; from here on a doubling saves little",
        Some(bend) => panel = panel.series(Series::new("from here on a doubling saves little", Look::Marks, [*bend])),
        None => {}
    }
    let at = Point::new(bits as f64 / KIB, chosen.total());
    panel = panel.series(Series::new(taken, Look::Marks, [at]));
    let stream = format!("{} lines with {} keys", answer.stream.arrivals(), answer.stream.distinct());
    write(path, Figure::new("cost", "What errors cost, by memory", format!("Forecast for {stream}.")).panel(panel))
}

/// Writes the rate of false negatives by lag that an audit measured, with its intervals.
pub(crate) fn audit(path: &Path, report: Option<&AuditReport>) -> Result<()> {
    let Some(report) = report else {
        return Err(Failure::new("--chart shows what an audit measured, and the filter has none; use dedup --audit"));
    };
    if report.by_lag.is_empty() {
        return Err(Failure::new("--chart shows repeats by lag, and there were none yet"));
    }
    let series = |name: &str, look, value: fn(&ByLag) -> f64| {
        // In the middle of each class, whose lags double.
        let at = |lag: &ByLag| Point::new(lag.from as f64 * std::f64::consts::SQRT_2, 100.0 * value(lag));
        Series::new(name, look, report.by_lag.iter().map(at))
    };
    let x = Axis::log2("lines since the key was last seen");
    let mut panel = Panel::new("", x, Axis::linear("repeats taken for new, %"));
    panel = panel.series(series("measured", Look::LineAndMarks, |lag| lag.measured_fnr.rate));
    if report.one_in > 1 {
        panel = panel.series(series("95 % interval", Look::Reference, |lag| lag.measured_fnr.low));
        panel = panel.series(series("95 % interval", Look::Reference, |lag| lag.measured_fnr.high));
    }
    let (arrivals, keys) = (report.arrivals, report.followed_keys);
    let caption = format!("{arrivals} lines, measured on {keys} keys, 1 in {}.", report.one_in);
    write(path, Figure::new("audit", "What was missed, by how long ago it came", caption).panel(panel))
}

fn write(path: &Path, figure: Figure) -> Result<()> {
    output::replace_text(path, &svg(&figure)?)
}
