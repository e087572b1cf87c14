//! Errors by importance for three numbers of hashes.

use super::by_importance::Varied;
use super::{SOURCE, Size, USUAL, about};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-figure-5",
    source: SOURCE,
    figure: "Figure 5",
    shows: "errors by importance for 4, 8 and 16 hashes, with crossovers",
    printed: "The same two charts for 4, 8 and 16 hashes. More hashes raise false positives and lower false negatives; IBF3's crossover moves from importance 18 to 27.",
    expected: Seconds { quick: 1.5, default: 14.0, full: None },
    seeds: 8,
    ..Experiment::of(|scope| VARIED.cells(scope), conclude)
};

static VARIED: Varied = Varied {
    set: "linear_70",
    parameter: "num_hashes",
    words: "hashes:",
    values: [4, 8, 16],
    size: |num_hashes| Size { num_hashes: num_hashes as u32, ..USUAL },
    title: "Errors by importance, varying the number of hashes (Figure 5)",
    caption: "More hashes fill the filter: more false positives. Whether false negatives fall depends on the filter.",
};

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let share = |measure: &str, at, filter| VARIED.percent(table, measure, at, filter);
    let (few, more) = (share("fp_share", 4, "IBF5")?, share("fp_share", 8, "IBF5")?);
    let rises = clearly_below(&few, &more);
    let (missed_few, missed_many) = (share("fn_share", 4, "IBF1")?, share("fn_share", 16, "IBF1")?);
    let missed_more = share("fn_share", 8, "IBF1")?;
    let falls = clearly_below(&missed_many, &missed_few);
    let off = |sample: &Sample| (sample.mean() - 40.0).abs();
    let nearest = if off(&missed_more) < off(&missed_many) { &missed_more } else { &missed_many };
    let crossover = |at| VARIED.measured(table, "crossover", at, "IBF3");
    let (early, late) = (crossover(4)?, crossover(16)?);
    let later = clearly_below(&early, &late);
    let (sbf_few, sbf_many) = (share("fn_share", 4, "SBF")?, share("fn_share", 16, "SBF")?);
    Ok(Conclusion::new().figure(VARIED.figure(table)).verdicts([
        about(0.8, &few, rises).on("fp-few", "6.4.3", "IBF5 has false positives of around 0.8 % with 4 hashes …"),
        about(2.0, &more, rises).on("fp-more", "6.4.3", "… and 2 % with 8"),
        about(60.0, &missed_few, falls).on(
            "fn-few",
            "6.4.3",
            "with more hashes IBF1's false negatives fall from 60 % …",
        ),
        about(40.0, nearest, falls)
            .on("fn-many", "6.4.3", "… to 40 %")
            .means([("with 4 hashes, %", &missed_few), ("8, %", &missed_more), ("16, %", &missed_many)])
            .remark("the text does not say for how many hashes; the nearest is judged"),
        Outcome::of(clearly_below(&sbf_many, &sbf_few))
            .on("stable-fn", "6.4.3, 6.5", "more hashes give fewer false negatives")
            .means([("SBF, 4 hashes, %", &sbf_few), ("16 hashes, %", &sbf_many)]),
        about(18.0, &early, later).on(
            "crossover-few",
            "6.4.3",
            "the crossover goes from importance 18 with 4 hashes …",
        ),
        about(27.0, &late, later).on("crossover-many", "6.4.3", "… to 27 with 16"),
    ]))
}
