//! Table 2: 100,000 arrivals, 76 % distinct.

use super::reservoir::{
    PrintedRow, PrintedTable, SOURCE, cells as table_cells, conclude as table_verdicts, entry, misprint,
};
use crate::suite::{Cell, Conclusion, Experiment, Scope, Seconds, Table};
use everbloom::Result;

/// See the module.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-2",
    source: SOURCE,
    figure: "Table 2",
    shows: "FNR and FPR of SBF and RSBF, 100,000 arrivals, 76 % distinct",
    expected: Seconds { quick: 0.5, default: 3.0, full: None },
    seeds: 16,
    revision: 1,
    timed: false,
    needs: &[],
    cells,
    conclude,
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 2",
    items: 100_000,
    distinct: 0.76,
    rows: &[
        PrintedRow {
            memory_bits: 16_384,
            sbf_fnr: entry(85.06, 2),
            rsbf_fnr: entry(84.49, 2),
            sbf_fpr: entry(10.05, 2),
            rsbf_fpr: entry(11.22, 2),
        },
        PrintedRow {
            memory_bits: 65_536,
            sbf_fnr: entry(74.37, 2),
            rsbf_fnr: entry(74.85, 2),
            sbf_fpr: entry(8.093, 3),
            rsbf_fpr: entry(8.384, 3),
        },
        PrintedRow {
            memory_bits: 4_194_304,
            sbf_fnr: entry(5.51, 2),
            rsbf_fnr: entry(6.29, 2),
            sbf_fpr: misprint(0.00382, 5, 0.0382, "a digit is missing"),
            rsbf_fpr: entry(0.00263, 5),
        },
    ],
};

/// Small enough to be run whole.
fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    table_cells(scope, &TABLE, 1)
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    table_verdicts(table, &TABLE, 1)
}
