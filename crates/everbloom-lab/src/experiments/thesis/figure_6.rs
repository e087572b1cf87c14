//! Errors by importance for three largest cell values.

use super::by_importance::Varied;
use super::{SOURCE, Size, USUAL, about};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-figure-6",
    source: SOURCE,
    figure: "Figure 6",
    shows: "errors by importance for largest cell values of 4, 8 and 16, with crossovers",
    printed: "The same two charts for largest cell values of 4, 8 and 16. The stable filter's false positives rise from 3 % to 5 % and its false negatives fall from 20 % to almost none; IBF3's crossover moves from 18 to almost 40.",
    expected: Seconds { quick: 1.0, default: 10.0, full: None },
    seeds: 8,
    ..Experiment::of(|scope| VARIED.cells(scope), conclude)
};

static VARIED: Varied = Varied {
    set: "linear_70",
    parameter: "cell_max",
    words: "largest cell value:",
    values: [4, 8, 16],
    size: |cell_max| Size { cell_max: cell_max as u32, ..USUAL },
    title: "Errors by importance, varying the largest cell value (Figure 6)",
    caption: "Larger cell values take longer to fall to zero: fewer false negatives, more false positives. At 16 the stable filter is nearly a Bloom filter.",
};

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let share = |measure: &str, at, filter| VARIED.percent(table, measure, at, filter);
    let (fp_low, fp_high) = (share("fp_share", 4, "SBF")?, share("fp_share", 16, "SBF")?);
    let (fn_low, fn_high) = (share("fn_share", 4, "SBF")?, share("fn_share", 16, "SBF")?);
    let (aware_low, aware_high) = (share("fn_share", 4, "IBF3")?, share("fn_share", 16, "IBF3")?);
    let least = |at| VARIED.missed(table, at, "IBF3", 1..=3);
    let (least_low, least_high) = (least(4)?, least(16)?);
    let (rises, falls) = (clearly_below(&fp_low, &fp_high), clearly_below(&fn_high, &fn_low));
    let crossover = |at| VARIED.measured(table, "crossover", at, "IBF3");
    let crossovers = [crossover(4)?, crossover(8)?, crossover(16)?];
    let later = crossovers[0].mean() < crossovers[1].mean() && crossovers[1].mean() < crossovers[2].mean();
    let mut conclusion = Conclusion::new().figure(VARIED.figure(table)).verdicts([
        about(3.0, &fp_low, rises).on("fp-low", "6.4.4", "the stable filter's false positives rise from 3 % at 4 …"),
        about(5.0, &fp_high, rises).on("fp-high", "6.4.4", "… to 5 % at 16"),
        about(20.0, &fn_low, falls).on("fn-low", "6.4.4", "its false negatives fall from 20 % at 4 …"),
        about(0.0, &fn_high, falls).on("fn-high", "6.4.4", "… to almost none at 16"),
        Outcome::loosely(
            Printed::new(50.0, 0).agrees(&least_low) && Printed::new(30.0, 0).agrees(&least_high),
            Printed::new(50.0, 0).is_near(&least_low) && Printed::new(30.0, 0).is_near(&least_high),
            clearly_below(&aware_high, &aware_low),
        )
        .on("ibf3", "6.4.4", "IBF3's fall less: from 50 % to 30 %")
        .mean("all importances, 4, %", &aware_low)
        .mean("16, %", &aware_high)
        .mean("least important, 4, %", &least_low)
        .mean("16, %", &least_high),
    ]);
    for ((at, claimed), sample) in [(4, 18.0), (8, 30.0), (16, 40.0)].into_iter().zip(&crossovers) {
        let claim = format!("IBF3 meets the stable filter at importance {claimed} when the largest value is {at}");
        conclusion = conclusion.verdict(about(claimed, sample, later).on(format!("crossover-{at}"), "6.4.4", claim));
    }
    Ok(conclusion)
}
