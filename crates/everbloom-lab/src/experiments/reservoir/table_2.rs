//! Table 2: 100,000 arrivals, 76 % distinct.

use super::{PrintedTable, SOURCE, entry, misprint, row};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-2",
    source: SOURCE,
    figure: "Table 2",
    shows: "FNR and FPR of SBF and RSBF, 100,000 arrivals, 76 % distinct",
    expected: Seconds { quick: 0.5, default: 3.0, full: None },
    seeds: 16,
    ..Experiment::of(|scope| TABLE.cells(scope), |table, scope| TABLE.conclude(table, scope))
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 2",
    items: 100_000,
    distinct: 0.76,
    // Small enough to be run whole.
    divisors: [1, 1, 1],
    rows: &[
        row(16_384, [entry(85.06, 2), entry(84.49, 2)], [entry(10.05, 2), entry(11.22, 2)]),
        row(65_536, [entry(74.37, 2), entry(74.85, 2)], [entry(8.093, 3), entry(8.384, 3)]),
        row(
            4_194_304,
            [entry(5.51, 2), entry(6.29, 2)],
            [misprint(0.00382, 5, 0.0382, "a digit is missing"), entry(0.00263, 5)],
        ),
    ],
};
