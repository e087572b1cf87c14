//! What the thesis's experiments share: its eight filters, its sets.

mod by_importance;
pub(super) mod datasets;
pub(super) mod endless;
pub(super) mod equal_state;
pub(super) mod figure_3;
pub(super) mod figure_4;
pub(super) mod figure_5;
pub(super) mod figure_6;
pub(super) mod figure_7;
pub(super) mod file_sizes;
pub(super) mod min_imp;
pub(super) mod other_sets;
pub(super) mod parameters;
pub(super) mod reinsertion;
pub(super) mod tables;
pub(super) mod varying_items;

use crate::experiments::common::*;

/// The citation.
pub(super) const SOURCE: &str = "[Boraskar 2010]";

/// The size of a filter, in the thesis's letters: n, k, p, M.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub(super) num_cells: u64,
    pub(super) num_hashes: u32,
    pub(super) decrements: u32,
    pub(super) cell_max: u32,
}

/// n = 65536, k = 4, p = 7, M = 4: where the thesis is when it says nothing else.
pub(super) const USUAL: Size = Size { num_cells: 65_536, num_hashes: 4, decrements: 7, cell_max: 4 };

impl Size {
    /// The words of a spec.
    pub(super) fn words(&self) -> String {
        let Size { num_cells, num_hashes, decrements, cell_max } = self;
        format!("num_cells={num_cells},num_hashes={num_hashes},decrements={decrements},cell_max={cell_max}")
    }
}

/// The thesis's names for its filters.
pub(super) const NAMES: [&str; 8] = ["BF", "SBF", "IBF1", "IBF2", "IBF3", "IBF4", "IBF5", "IBF6"];

/// All eight filters of a size.
pub(super) fn family(size: Size) -> Vec<Named> {
    let words = size.words();
    let spec = |name: &'static str| match name {
        "BF" => format!("bloom:num_bits={},num_hashes={}", size.num_cells, size.num_hashes),
        "SBF" => format!("stable:{words}"),
        other => format!("{}:{words}", other.to_lowercase()),
    };
    NAMES.into_iter().map(|name| (name, spec(name))).collect()
}

/// Some of the eight filters of a size.
pub(super) fn some(size: Size, names: &[&str]) -> Vec<Named> {
    family(size).into_iter().filter(|(name, _)| names.contains(name)).collect()
}

/// The arrivals of the thesis's sets, fewer at quick scale.
pub(super) fn items(scope: &Scope) -> u64 {
    scope.pick(20_000, 100_000, 100_000)
}

/// A size for fewer arrivals: as many cells per arrival as the thesis has.
pub(super) fn scaled(size: Size, items: u64) -> Size {
    Size { num_cells: size.num_cells * items / 100_000, ..size }
}

/// Runs filters on a set: a row of rates each.
pub(super) fn rates(
    set: &str,
    items: u64,
    filters: &[Named],
    seed: u64,
    label: impl Fn(Row) -> Row,
) -> Result<Vec<Row>> {
    let request = Request { items: Some(items), seed, ..Default::default() };
    let record = Record { by_importance: true, ..Record::default() };
    let outcome = judge_set(set, request, filters, record)?;
    let row = |((name, _), report): (&Named, &Report)| {
        with_rates(label(Row::new("rates")).label("filter", *name), report)
            .value("fn_share_slope", report.fn_share_slope)
    };
    Ok(filters.iter().zip(&outcome.reports).map(row).collect())
}

/// The filters that the figures by importance show.
pub(super) const SHOWN: [&str; 5] = ["BF", "SBF", "IBF1", "IBF3", "IBF5"];

/// A verdict on a figure that the prose rounds, or that was read off a chart: printed, measured, and whether it tends as said.
pub(super) fn about(printed: f64, sample: &Sample, tendency: bool) -> About<'_> {
    About(printed, sample, tendency)
}

pub(super) struct About<'a>(f64, &'a Sample, bool);

impl About<'_> {
    pub(super) fn on(self, id: impl Into<String>, place: &str, claim: impl Into<String>) -> Verdict {
        let About(printed, sample, tendency) = self;
        // As many digits as the prose has: 0.8 has one, 40 none.
        let digits = if printed.fract() == 0.0 { 0 } else { 1 };
        let outcome = Printed::new(printed, digits).outcome_about(sample, tendency);
        outcome.on(id, place, claim).number("printed", printed).mean("measured", sample)
    }
}
