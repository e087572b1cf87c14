//! A running sum of importances evens out on an endless stream.

use super::{SOURCE, USUAL};
use crate::curve::fn_share_line;
use crate::experiments::common::*;
use crate::metrics::ByImportance;
use everbloom_cells::key::Generator;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-endless",
    source: SOURCE,
    figure: "sections 1 and 8, unbounded streams",
    shows: "IBF3's sense of importance over five million arrivals: sums lose it, decayed sums keep it",
    expected: Seconds { quick: 1.5, default: 12.0, full: None },
    seeds: 2,
    ..Experiment::of(cells, conclude)
};

const KINDS: [&str; 3] = ["sum", "decayed", "last"];
/// Keys in use at a time; they are replaced as the stream goes, so that 70 % of arrivals repeat.
const KEYS_IN_USE: u64 = 31_250;

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let part = scope.pick(50_000, 1_000_000, 1_000_000);
    let cell = |kind: &'static str, seed| {
        Cell::new(format!("{kind}, 5 parts of {part} arrivals"), seed, move |_| slopes(kind, part, seed))
            .seconds(part as f64 * 4e-6)
    };
    Ok(scope.seeds().flat_map(|seed| KINDS.map(|kind| cell(kind, seed))).collect())
}

fn slopes(kind: &'static str, part: u64, seed: u64) -> Result<Vec<Row>> {
    let mut filter = build(&format!("ibf3:{},cell_importance={kind}", USUAL.words()), seed)?;
    let mut generator = Generator::seeded(9 + seed);
    let mut seen = vec![false; (5 * part * 3 / 10 + KEYS_IN_USE + 1) as usize];
    let mut rows = Vec::new();
    for number in 0..5u64 {
        let mut by_importance = ByImportance::default();
        for index in number * part..(number + 1) * part {
            let key = index * 3 / 10 + generator.below(KEYS_IN_USE);
            let value = 1 + (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % 50;
            let importance = Importance::new(value, 50)?;
            let duplicate = std::mem::replace(&mut seen[key as usize], true);
            by_importance.record(importance, duplicate, !filter.observe(key, importance).is_distinct());
        }
        let slope = fn_share_line(&by_importance).map(|line| line.slope);
        rows.push(
            Row::new("slopes")
                .label("cell_importance", kind)
                .label("arrivals", (number + 1) * part)
                .value("fn_share_slope", slope),
        );
    }
    Ok(rows)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let panel = Panel::new("", Axis::linear("arrivals"), Axis::linear("slope, points per unit of importance")).each(
        Look::LineAndMarks,
        (table, "slopes"),
        ("arrivals", "fn_share_slope", 100.0),
        ("cell_importance", KINDS),
        &[],
    );
    let figure = Figure::new("slope", "How much importance counts, over time", "Slope of false negatives on importance; the further below zero, the more important keys are favoured. Sums even out: every cell has seen everything.").panel(panel);
    let ends = table.labels("slopes", "arrivals");
    let at = |kind: &str, place: usize| {
        let arrivals = ends.get(place).cloned().unwrap_or_else(|| 0u64.into());
        table.percent("slopes", "fn_share_slope", &[("cell_importance", kind.into()), ("arrivals", arrivals)])
    };
    let (first, last) = (at("sum", 0)?, at("sum", 4)?);
    let (decayed_first, decayed_last) = (at("decayed", 0)?, at("decayed", 4)?);
    let kept = last.mean() / first.mean();
    let decayed_kept = decayed_last.mean() / decayed_first.mean();
    Ok(Conclusion::new().figure(figure).verdicts([
        Outcome::graded(kept > 0.7, kept > 0.3)
            .on("unbounded", "8", "the filter can be employed for an unbounded stream")
            .means([("slope in the first fifth", &first), ("in the last fifth", &last)])
            .remark("as the thesis sums importances, it is a plain stable filter after a few million arrivals"),
        Outcome::of((decayed_kept - 1.0).abs() < 0.3)
            .on("decayed", "everbloom", "with decayed sums the slope stays")
            .ours()
            .means([("slope in the first fifth", &decayed_first), ("in the last fifth", &decayed_last)]),
    ]))
}
