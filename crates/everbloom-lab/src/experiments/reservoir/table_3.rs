//! Table 3: 10 million arrivals, 49 % distinct.

use super::{PrintedTable, SOURCE, entry, row};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-3",
    source: SOURCE,
    figure: "Table 3",
    shows: "FNR and FPR of SBF and RSBF, 10 million arrivals, 49 % distinct",
    expected: Seconds { quick: 1.5, default: 40.0, full: None },
    seeds: 4,
    ..Experiment::of(|scope| TABLE.cells(scope), |table, scope| TABLE.conclude(table, scope))
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 3",
    items: 10_000_000,
    distinct: 0.49,
    divisors: [64, 1, 1],
    rows: &[
        row(16_384, [entry(88.83, 2), entry(87.52, 2)], [entry(11.08, 2), entry(12.464, 3)]),
        row(262_144, [entry(88.11, 2), entry(86.89, 2)], [entry(10.86, 2), entry(12.12, 2)]),
        row(4_194_304, [entry(77.33, 2), entry(77.73, 2)], [entry(7.822, 3), entry(7.914, 3)]),
    ],
};
