//! Table 3: 10 million arrivals, 49 % distinct.

use super::reservoir::{PrintedRow, PrintedTable, SOURCE, cells as table_cells, conclude as table_verdicts, entry};
use crate::suite::{Cell, Conclusion, Experiment, Scope, Seconds, Table};
use everbloom::Result;

/// See the module.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-3",
    source: SOURCE,
    figure: "Table 3",
    shows: "FNR and FPR of SBF and RSBF, 10 million arrivals, 49 % distinct",
    expected: Seconds { quick: 1.5, default: 40.0, full: None },
    seeds: 4,
    revision: 1,
    timed: false,
    needs: &[],
    cells,
    conclude,
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 3",
    items: 10_000_000,
    distinct: 0.49,
    rows: &[
        PrintedRow {
            memory_bits: 16_384,
            sbf_fnr: entry(88.83, 2),
            rsbf_fnr: entry(87.52, 2),
            sbf_fpr: entry(11.08, 2),
            rsbf_fpr: entry(12.464, 3),
        },
        PrintedRow {
            memory_bits: 262_144,
            sbf_fnr: entry(88.11, 2),
            rsbf_fnr: entry(86.89, 2),
            sbf_fpr: entry(10.86, 2),
            rsbf_fpr: entry(12.12, 2),
        },
        PrintedRow {
            memory_bits: 4_194_304,
            sbf_fnr: entry(77.33, 2),
            rsbf_fnr: entry(77.73, 2),
            sbf_fpr: entry(7.822, 3),
            rsbf_fpr: entry(7.914, 3),
        },
    ],
};

fn divisor(scope: &Scope) -> u64 {
    scope.pick(64, 1, 1)
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    table_cells(scope, &TABLE, divisor(scope))
}

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    table_verdicts(table, &TABLE, divisor(scope))
}
