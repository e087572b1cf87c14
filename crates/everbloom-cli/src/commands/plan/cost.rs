//! What a plan costs, for people and for programs: a line, and the cost against the memory as bars.

use super::chart::bar;
use crate::report::{percent, practically_none, short_size, thousands};
use everbloom::kind::LEAST_RATE;
use everbloom_forecast::{CostPoint, ExpectedCost, Recommendation};
use serde::Serialize;

/// What an arrival costs, in the unit that was given.
#[derive(Debug, Serialize)]
pub(super) struct CostRow {
    #[serde(skip)]
    cost_per_arrival: f64,
    cost_of_false_positives: f64,
    cost_of_false_negatives: f64,
    cost_of_memory: f64,
    /// What it costs to let every repeat through.
    cost_without_filter: f64,
    /// From where on every doubling of the memory saves little.
    #[serde(skip_serializing_if = "Option::is_none")]
    bend_bits: Option<u64>,
    curve: Vec<PointRow>,
}

/// The cheapest filter of a memory.
#[derive(Debug, Serialize)]
struct PointRow {
    memory_bits: u64,
    filter: String,
    cost_per_arrival: f64,
    predicted_fpr: f64,
    predicted_fnr: f64,
}

impl CostRow {
    pub(super) fn of(answer: &Recommendation) -> Option<Self> {
        let cost = answer.best.cost?;
        let points = answer.curve.iter().flat_map(|curve| &curve.points).map(PointRow::new);
        Some(CostRow {
            cost_per_arrival: cost.total(),
            cost_of_false_positives: cost.false_positives,
            cost_of_false_negatives: cost.false_negatives,
            cost_of_memory: cost.memory,
            cost_without_filter: answer.without_filter.unwrap_or_default(),
            bend_bits: answer.curve.as_ref().and_then(|curve| curve.bend_bits),
            curve: points.collect(),
        })
    }

    /// What it comes to, and what for.
    pub(super) fn line(&self) -> String {
        let parts = [
            (self.cost_of_false_positives, "for new lines that are dropped"),
            (self.cost_of_false_negatives, "for repeats that are let through"),
            (self.cost_of_memory, "for the memory"),
        ];
        let parts: Vec<_> = parts
            .iter()
            .filter(|(cost, _)| *cost > 0.0)
            .map(|(cost, what)| format!("{} {what}", amount(*cost)))
            .collect();
        let parts = if parts.len() > 1 { format!(": {}", parts.join(", ")) } else { String::new() };
        format!(
            "{} a line{parts}; {} if every repeat were let through",
            amount(self.cost_per_arrival),
            amount(self.cost_without_filter)
        )
    }

    /// The cost against the memory, a bar for each doubling; the largest cost is the longest bar.
    pub(super) fn chart(&self, taken_bits: u64, columns: usize) -> String {
        let width = columns.saturating_sub(60).clamp(10, 40);
        let most = self.curve.iter().map(|point| point.cost_per_arrival).fold(0.0, f64::max);
        if self.curve.len() < 2 || most <= 0.0 {
            return String::new();
        }
        let mut text = String::from("\ncost of a line, by memory (the cheapest filter of each)\n");
        let nearest = self.curve.iter().map(|point| point.memory_bits).find(|bits| *bits >= taken_bits);
        for point in &self.curve {
            let bar = bar(point.cost_per_arrival / most, width);
            let marks = match (nearest == Some(point.memory_bits), self.bend_bits == Some(point.memory_bits)) {
                (true, true) => "  < taken; more saves little",
                (true, false) => "  < taken",
                (false, true) => "  < more saves little",
                (false, false) => "",
            };
            let kind = point.filter.split(':').next().unwrap_or_default();
            let row = format!(
                "{:>9}  {bar:width$}  {:>8}  {kind:15}{marks}",
                size(point.memory_bits),
                amount(point.cost_per_arrival)
            );
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }
}

impl PointRow {
    fn new(point: &CostPoint) -> Self {
        PointRow {
            memory_bits: point.memory_bits,
            filter: point.filter.to_string(),
            cost_per_arrival: point.cost.total(),
            predicted_fpr: point.predicted_fpr,
            predicted_fnr: point.predicted_fnr,
        }
    }
}

/// A size as short as can be.
fn size(bits: u64) -> String {
    if bits < 8 << 10 { format!("{} B", bits / 8) } else { short_size(bits) }
}

/// What is saved, as the beginning of a sentence.
pub(crate) fn saved(cost: ExpectedCost, answer: &Recommendation) -> String {
    let (total, arrivals) = (cost.total(), answer.stream.arrivals());
    let without = answer.without_filter.unwrap_or_default();
    let all = amount(total * arrivals as f64);
    let share = match total / without {
        ratio if without <= 0.0 || ratio >= 1.0 => "no less".to_string(),
        ratio => format!("{} less", percent(1.0 - ratio)),
    };
    format!(
        "errors cost about {} a line ({all} for {} lines), {share} than without a filter",
        amount(total),
        thousands(arrivals)
    )
}

/// A cost with three digits that count.
pub(super) fn amount(cost: f64) -> String {
    match cost {
        0.0 => "0".into(),
        // No hash justifies rates of which so little would come.
        cost if cost < LEAST_RATE => practically_none(),
        cost if cost >= 1000.0 => thousands(cost.round() as u64),
        cost if cost < 1e-4 => format!("{cost:.2e}"),
        cost => {
            let digits = (2.0 - cost.log10().floor()).clamp(0.0, 7.0) as usize;
            let text = format!("{cost:.digits$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits() {
        let texts = [0.0, 3e-49, 0.000_012_34, 0.012_345, 0.5, 1.0, 12.345, 999.9, 12_345.6].map(amount);
        assert_eq!(texts, ["0", "< 1e-15", "1.23e-5", "0.0123", "0.5", "1", "12.3", "1000", "12,346"]);
    }
}
