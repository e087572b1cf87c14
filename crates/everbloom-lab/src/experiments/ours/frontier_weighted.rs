//! The frontier, errors weighted by importance.

use super::frontier_grid::{Setting, Stream, cells as grid_cells, figure, ranked_and_next};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "frontier-weighted",
    source: "everbloom",
    figure: "the frontier, weighted by importance",
    shows: "importance-weighted FNR against FPR of every endless filter at its best, in 2 bits per distinct key, on six streams",
    expected: Seconds { quick: 5.0, default: 100.0, full: Some(250.0) },
    seeds: 2,
    ..Experiment::of(cells, conclude)
};

const STREAMS: [Stream; 6] = [
    Stream { name: "linear", recorded: false },
    Stream { name: "exponential", recorded: false },
    Stream { name: "crawl", recorded: false },
    Stream { name: "history", recorded: true },
    Stream { name: "clients", recorded: true },
    Stream { name: "urls", recorded: true },
];
const SETTING: Setting = Setting { bits_per_key: 2.0, weighted: true };

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    Ok(grid_cells(scope, &STREAMS, SETTING))
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let caption = "As the plain frontier, but each missed duplicate counts as much as it matters. History: shallow paths matter more; clients and urls: bytes sent.";
    let figure = figure(
        table,
        SETTING,
        "weighted",
        "Weighted false negatives against false positives, 2 bits per distinct key",
        caption,
    );
    let mut verdicts = Vec::new();
    for stream in table.labels("points", "stream") {
        let stream = stream.to_string();
        for rate in [0.01, 0.1] {
            let Some((mine, next, best)) = ranked_and_next(table, SETTING, &stream, rate) else { continue };
            let claim =
                format!("{stream}, 2 bits per key, FPR {} %: ranked forgets the least importance", rate * 100.0);
            verdicts.push(
                Outcome::of(mine <= best)
                    .on(format!("winner-{stream}-{rate}"), "everbloom", claim)
                    .number("ranked, weighted FNR %", 100.0 * mine)
                    .number(&format!("next best, {next}, %"), 100.0 * best),
            );
        }
    }
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
