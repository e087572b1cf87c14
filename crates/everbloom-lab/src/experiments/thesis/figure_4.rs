//! Errors by importance for three numbers of cells lowered per arrival.

use super::by_importance::Varied;
use super::{SOURCE, Size, USUAL, about};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "thesis-figure-4",
    source: SOURCE,
    figure: "Figure 4",
    shows: "errors by importance for 3, 5 and 7 decrements, with crossovers",
    printed: "The same two charts for 3, 5 and 7 decrements. False negatives rise with the decrements; IBF3's curve crosses the stable filter's at importance 30 with 3 decrements, at 15 with 7. The shapes stay alike.",
    expected: Seconds { quick: 1.0, default: 10.0, full: None },
    seeds: 8,
    ..Experiment::of(|scope| VARIED.cells(scope), conclude)
};

static VARIED: Varied = Varied {
    set: "linear_70",
    parameter: "decrements",
    words: "decrements:",
    values: [3, 5, 7],
    size: |decrements| Size { decrements: decrements as u32, ..USUAL },
    title: "Errors by importance, varying the decrements (Figure 4)",
    caption: "More decrements: more false negatives, fewer false positives, a stronger slope. Where a curve meets the stable filter's is its crossover.",
};

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let share = |measure: &str, at, filter| VARIED.percent(table, measure, at, filter);
    let crossover = |at| VARIED.measured(table, "crossover", at, "IBF3");
    let (few, many) = (share("fn_share", 3, "IBF1")?, share("fn_share", 7, "IBF1")?);
    let rises = clearly_below(&few, &many);
    let (late, early) = (crossover(3)?, crossover(7)?);
    let nearer = clearly_below(&early, &late);
    let gap = |at| -> Result<Sample> {
        let missed = |filter| VARIED.missed(table, at, filter, 41..=50);
        Ok(missed("SBF")?.with(&missed("IBF3")?, |sbf, ibf3| sbf - ibf3))
    };
    let (narrow, wide) = (gap(3)?, gap(7)?);
    let (fewer, more) = (share("fp_share", 3, "SBF")?, share("fp_share", 7, "SBF")?);
    Ok(Conclusion::new()
        .figure(VARIED.figure(table))
        .verdicts([
            about(40.0, &few, rises).on(
                "ibf1-few",
                "6.4.2",
                "IBF1 has false negatives of around 40 % with 3 decrements …",
            ),
            about(50.0, &many, rises).on("ibf1-many", "6.4.2", "… and around 50 % with 7"),
            about(30.0, &late, nearer).on(
                "crossover-few",
                "6.4.2",
                "IBF3 meets the stable filter at importance 30 with 3 decrements …",
            ),
            about(15.0, &early, nearer).on("crossover-many", "6.4.2", "… and at 15 with 7"),
            about(2.0, &narrow, narrow.mean() < wide.mean()).on(
                "distance-few",
                "6.4.2",
                "IBF3 and SBF are about 2 points apart with 3 decrements …",
            ),
            about(12.0, &wide, narrow.mean() < wide.mean()).on("distance-many", "6.4.2", "… and 12 with 7"),
            Outcome::of(clearly_below(&more, &fewer))
                .on("fp-falls", "6.2", "more decrements give fewer false positives")
                .means([("SBF, 3 decrements, %", &fewer), ("7 decrements, %", &more)]),
            steps(table, "IBF1")?,
            steps(table, "IBF5")?,
        ])
        .verdicts(reference(table)?))
}

/// The ranges of importance that Imp-insert maps to the values 0 to 3; importance 50 alone gets 4.
const STEPS: [(u32, u32); 4] = [(1, 12), (13, 24), (25, 37), (38, 49)];

/// Section 7: false negatives fall in four steps.
fn steps(table: &Table, filter: &str) -> Result<Verdict> {
    let missed = |(from, to): (u32, u32)| VARIED.missed(table, 7, filter, from..=to);
    let levels = STEPS.into_iter().map(missed).collect::<Result<Vec<_>>>()?;
    let jumps: Vec<_> = levels.windows(2).map(|pair| pair[0].with(&pair[1], |left, right| left - right)).collect();
    let least = jumps.iter().map(Sample::mean).fold(f64::INFINITY, f64::min);
    let fall = |(from, to): (u32, u32)| {
        let middle = (from + to) / 2;
        Ok::<_, Error>(missed((from, middle))?.with(&missed((middle + 1, to))?, |left, right| left - right))
    };
    let within = STEPS.into_iter().map(fall).collect::<Result<Vec<_>>>()?;
    let most = within.iter().map(|fall| fall.mean().abs()).fold(0.0, f64::max);
    let apart = levels.windows(2).all(|pair| clearly_below(&pair[1], &pair[0]));
    let claim = format!("{filter}'s false negatives fall in four steps of importance");
    let mut verdict = Outcome::graded(apart && most < 0.5 * least, apart).on(format!("steps-{filter}"), "7", claim);
    for ((from, to), level) in STEPS.iter().zip(&levels) {
        verdict = verdict.mean(&format!("importance {from}–{to}, %"), level);
    }
    Ok(verdict
        .numbers([("least fall from step to step, points", least), ("greatest between the halves of a step", most)])
        .remark("7 decrements; a step if halves differ by less than half of the least fall between steps"))
}

/// Slopes and crossover of the specification, in points per unit of importance.
fn reference(table: &Table) -> Result<Vec<Verdict>> {
    let place = "everbloom's reference";
    let crossover = VARIED.measured(table, "crossover", 7, "IBF3")?;
    let mut verdicts = Vec::new();
    for (filter, figure, digits) in [("SBF", -0.004, 3), ("IBF3", -0.70, 2), ("IBF5", -1.32, 2)] {
        let sample = VARIED.percent(table, "fn_share_slope", 7, filter)?;
        let claim = format!("{filter}: false negatives change by {figure} points per unit of importance");
        let outcome = Outcome::of(Printed::new(figure, digits).agrees(&sample));
        verdicts.push(outcome.on(format!("slope-{filter}"), place, claim).ours().mean("measured", &sample));
    }
    let holds = Printed::new(17.5, 1).agrees(&crossover);
    verdicts.push(
        Outcome::of(holds)
            .on("crossover", place, "IBF3 meets the stable filter at importance 17.5 ± 0.6")
            .ours()
            .mean("measured", &crossover),
    );
    Ok(verdicts)
}
