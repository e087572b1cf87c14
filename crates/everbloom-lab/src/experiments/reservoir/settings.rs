//! One array, the paper's mean, and the full formula.

use super::sweep::{STREAMS, cell, items, row};
use super::{SOURCE, reservoir_spec};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-settings",
    source: SOURCE,
    figure: "section 5.4",
    shows: "FNR and FPR for 1 to 8 arrays: low FNR (1), balanced (3 for 10 %) and low FPR (5)",
    expected: Seconds { quick: 0.6, default: 8.0, full: None },
    seeds: 4,
    ..Experiment::of(cells, conclude)
};

const ARRAYS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let items = items(scope);
    let memory_bits = items / 8;
    let filter = |stream, arrays: u32| (row(stream).label("num_filters", arrays), reservoir_spec(memory_bits, arrays));
    let cell = |stream, seed| cell(stream, (items, memory_bits), ARRAYS.map(|arrays| filter(stream, arrays)), seed);
    Ok(scope.seeds().flat_map(|seed| STREAMS.map(|stream| cell(stream, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure = Figure::new(
        "arrays",
        "Errors against the number of arrays",
        "Dashed: 2 to the power of minus k, what k arrays half full come to.",
    );
    for (measure, name) in ERRORS {
        let y = if measure == "fpr" { Axis::log(name) } else { Axis::linear(name) };
        let axes = ("num_filters", measure, 100.0);
        let mut panel = Panel::new("", Axis::linear("arrays"), y);
        panel = panel.each(Look::LineAndMarks, (table, "rates"), axes, ("stream", STREAMS), &[]);
        if measure == "fpr" {
            let half = ARRAYS.map(|arrays| Point::new(f64::from(arrays), 100.0 * 0.5f64.powi(arrays as i32)));
            panel = panel.series(Series::new("half full", Look::Reference, half));
        }
        figure = figure.panel(panel);
    }
    let at = |measure: &str, stream: &str, arrays: u32| {
        table.percent("rates", measure, &labels![stream = stream, num_filters = arrays])
    };
    let mut verdicts = Vec::new();
    for stream in STREAMS {
        for (measure, claim) in
            [("fpr", "the FPR falls with the number of arrays"), ("fnr", "the FNR is lowest with one array")]
        {
            let (one, three, five) = (at(measure, stream, 1)?, at(measure, stream, 3)?, at(measure, stream, 5)?);
            let holds = match measure {
                "fpr" => clearly_below(&three, &one) && clearly_below(&five, &three),
                _ => clearly_below(&one, &three) && clearly_below(&one, &five),
            };
            let claim = format!("{stream}: {claim}");
            verdicts.push(Outcome::of(holds).on(format!("{measure}-{stream}"), "5.4", claim).means([
                ("1 array, %", &one),
                ("3, %", &three),
                ("5, %", &five),
            ]));
        }
    }
    let (three, four) = (at("late_fpr", "uniform", 3)?, at("late_fpr", "uniform", 4)?);
    let keeps = three.mean() > 10.0 && four.mean() <= 10.0;
    verdicts.push(
        Outcome::of(keeps)
            .on(
                "threshold",
                "everbloom's rule",
                "a target of 10 % takes 4 arrays, the least k with 2^-k below it, not 3",
            )
            .ours()
            .means([("late FPR of 3 arrays, uniform, %", &three), ("of 4, %", &four)]),
    );
    let five = at("late_fpr", "uniform", 5)?;
    verdicts.push(
        Outcome::of(five.mean() + 4.0 * five.error() <= 10.0)
            .on("low-fpr", "5.4, eq. 5.27", "with the full formula, 5 arrays, the FPR is within the threshold of 10 %")
            .mean("late FPR of 5 arrays, uniform, %", &five),
    );
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
