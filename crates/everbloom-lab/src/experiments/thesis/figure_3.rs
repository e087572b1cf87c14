//! Errors by importance for three numbers of cells.

use super::by_importance::Varied;
use super::{SOURCE, Size, USUAL, about};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-figure-3",
    source: SOURCE,
    figure: "Figure 3",
    shows: "errors by importance for 16384, 65536 and 262144 cells",
    printed: "False positives and false negatives by importance for 16,384, 65,536 and 262,144 cells. False positives of importance-aware filters stay near 5 %, those of the Bloom filter are 3 to 5 times as many; false negatives fall with importance, from 40 % to 5 % in the middle size.",
    expected: Seconds { quick: 1.0, default: 10.0, full: None },
    seeds: 8,
    ..Experiment::of(|scope| VARIED.cells(scope), conclude)
};

static VARIED: Varied = Varied {
    set: "linear",
    parameter: "num_cells",
    words: "cells:",
    values: [16_384, 65_536, 262_144],
    size: |num_cells| Size { num_cells, ..USUAL },
    title: "Errors by importance, varying the number of cells (Figure 3)",
    caption: "False negatives of filters that know importance fall with it; the more cells, the more sharply. The stable filter's are flat.",
};

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let share = |measure: &str, at, filter| VARIED.percent(table, measure, at, filter);
    let (bloom, ibf5) = (share("fp_share", 65_536, "BF")?, share("fp_share", 65_536, "IBF5")?);
    let ratio = bloom.with(&ibf5, |bloom, ibf5| bloom / ibf5);
    let fall = |at, range| VARIED.missed(table, at, "IBF5", range);
    let (low, high) = (fall(65_536, 1..=5)?, fall(65_536, 46..=50)?);
    let falls = high.mean() < low.mean();
    let (small, large) = (fall(16_384, 46..=50)?, fall(262_144, 46..=50)?);
    let slope = share("fn_share_slope", 65_536, "SBF")?;
    let flat = slope.mean().abs() <= 4.0 * slope.error() + 0.02;
    Ok(Conclusion::new().figure(VARIED.figure(table)).verdicts([
        Outcome::loosely((3.0..=5.0).contains(&ratio.mean()), (2.7..=5.5).contains(&ratio.mean()), ratio.mean() > 1.0)
            .on("bloom", "6.4.1", "the Bloom filter has 3–5 times the false positives of the importance-aware filters")
            .mean("BF / IBF5, 65536 cells", &ratio),
        about(5.0, &ibf5, true).on(
            "fp-level",
            "6.4.1",
            "false positives of importance-aware filters stay around 5 % at 65536 cells",
        ),
        about(40.0, &low, falls).on(
            "fn-low",
            "6.4.1",
            "at 65536 cells false negatives fall from 40 % for the least important …",
        ),
        about(5.0, &high, falls).on("fn-high", "6.4.1", "… to 5 % for the most important"),
        about(30.0, &small, true).on("fn-small", "6.4.1", "at 16384 cells they fall to 30 %"),
        about(2.0, &large, large.mean() < high.mean()).on(
            "fn-large",
            "6.4.1",
            "at 262144 cells they fall to around 2 %",
        ),
        Outcome::of(flat)
            .on("stable-flat", "4.3", "the stable filter is blind to importance: a line parallel to the axis")
            .mean("slope, points per unit", &slope),
    ]))
}
