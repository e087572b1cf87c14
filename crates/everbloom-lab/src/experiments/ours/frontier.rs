//! FNR against FPR at equal total memory, for every filter: what can be had, and what cannot.

use super::frontier_grid::{STREAMS, Setting, at_rate, cells as grid_cells, figure, ranked_and_next};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "frontier",
    source: "everbloom",
    figure: "the frontier",
    shows: "FNR against FPR of every endless filter and Bloom, each at its best, in 1 and 4 bits per distinct key, on seven streams, with the limit",
    expected: Seconds { quick: 8.0, default: 150.0, full: Some(400.0) },
    seeds: 2,
    ..Experiment::of(cells, conclude)
};

const SETTINGS: [Setting; 2] =
    [Setting { bits_per_key: 1.0, weighted: false }, Setting { bits_per_key: 4.0, weighted: false }];

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    Ok(SETTINGS.iter().flat_map(|setting| grid_cells(scope, &STREAMS, *setting)).collect())
}

/// The specification's figures at 1 bit per key: stream, kind, FNR in percent at 1 %, and at 10 %.
const REFERENCE: [(&str, &str, f64, Option<f64>); 11] = [
    ("uniform", "ranked", 76.5, Some(49.8)),
    ("uniform", "age_partitioned", 91.1, Some(72.7)),
    ("uniform", "stable", 93.0, Some(68.0)),
    ("uniform", "reservoir", 93.5, Some(66.7)),
    ("zipf", "ranked", 14.1, None),
    ("zipf", "age_partitioned", 26.5, None),
    ("zipf", "stable", 32.9, None),
    ("zipf", "reservoir", 32.6, None),
    ("log_lag", "ranked", 10.0, None),
    ("log_lag", "stable", 21.9, None),
    ("log_lag", "reservoir", 60.0, None),
];

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut conclusion = Conclusion::new();
    for setting in SETTINGS {
        let name = format!("{}-bits", setting.bits_per_key);
        let title = format!(
            "False negatives against false positives, {} bit{} per distinct key",
            setting.bits_per_key,
            if setting.bits_per_key == 1.0 { "" } else { "s" }
        );
        let caption = "Each line is the best of a kind's grid, at equal total memory. Low and left is better. Dashed: no filter can be below (on skewed streams: a bound for fixed keys; streams with locality do better).";
        conclusion = conclusion.figure(figure(table, setting, &name, &title, caption));
    }
    let mut verdicts = Vec::new();
    for (stream, kind, at_one, at_ten) in REFERENCE {
        for (rate, figure) in [(0.01, Some(at_one)), (0.1, at_ten)] {
            let Some(figure) = figure else { continue };
            let Some(measured) = at_rate(table, SETTINGS[0], stream, kind, rate) else { continue };
            let off = (100.0 * measured - figure).abs();
            let claim = format!("{stream}, 1 bit per key, FPR {} %: {kind} misses {figure} %", rate * 100.0);
            verdicts.push(
                Outcome::graded(off <= 1.5, off <= 0.15 * figure)
                    .on(format!("reference-{stream}-{kind}-{rate}"), "everbloom's reference", claim)
                    .number("measured, best of the grid, %", 100.0 * measured),
            );
        }
    }
    for (stream, bits) in
        table.labels("points", "stream").iter().flat_map(|stream| SETTINGS.map(|setting| (stream.to_string(), setting)))
    {
        verdicts.extend(winner(table, bits, &stream, 0.01));
    }
    verdicts.extend(limit(table));
    Ok(conclusion.verdicts(verdicts))
}

/// Whether ranked forgets least at a rate.
fn winner(table: &Table, setting: Setting, stream: &str, rate: f64) -> Option<Verdict> {
    let (mine, next, best) = ranked_and_next(table, setting, stream, rate)?;
    let claim = format!(
        "{stream}, {} bits per key, FPR {} %: ranked forgets least of the filters that work for ever",
        setting.bits_per_key,
        rate * 100.0
    );
    Some(
        Outcome::of(mine <= best)
            .on(format!("winner-{stream}-{}-{rate}", setting.bits_per_key), "everbloom", claim)
            .numbers([("ranked, FNR %", 100.0 * mine), (&format!("next best, {next}, %"), 100.0 * best)]),
    )
}

/// The limit of the uniform stream, as the specification has it.
fn limit(table: &Table) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (rate, figure) in [(0.01, 63.7), (0.1, 32.1)] {
        let labels = labels![stream = "uniform", bits_per_key = 1.0, fpr = rate];
        let sample = table.sample("limit", "fnr", &labels).percent();
        if sample.count() == 0 {
            continue;
        }
        // "49 %" distinct is known to a percentage point only, which moves the limit by 0.4 points.
        let holds = (sample.mean() - figure).abs() <= 0.5 + 4.0 * sample.error();
        let claim =
            format!("uniform, 1 bit per key: no filter misses less than {figure} % at an FPR of {} %", rate * 100.0);
        verdicts.push(
            Outcome::of(holds)
                .on(format!("limit-{rate}"), "everbloom's reference", claim)
                .mean("limit of this stream, %", &sample),
        );
    }
    verdicts
}
