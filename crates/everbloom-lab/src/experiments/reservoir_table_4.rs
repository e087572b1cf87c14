//! Table 4: 695 million arrivals, 15 % distinct; one part in 64 unless asked for all.

use super::reservoir::{
    PrintedRow, PrintedTable, SOURCE, cells as table_cells, conclude as table_verdicts, entry, misprint,
    operating_point,
};
use crate::suite::{Cell, Conclusion, Experiment, Scope, Seconds, Table};
use everbloom::Result;

/// See the module.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-4",
    source: SOURCE,
    figure: "Table 4",
    shows: "FNR and FPR of SBF and RSBF, 695 million arrivals, 15 % distinct (1/64 by default)",
    expected: Seconds { quick: 1.5, default: 45.0, full: Some(1500.0) },
    seeds: 4,
    revision: 1,
    timed: false,
    needs: &[],
    cells,
    conclude,
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 4",
    items: 695_000_000,
    distinct: 0.15,
    rows: &[
        PrintedRow {
            memory_bits: 262_144,
            sbf_fnr: entry(88.86, 2),
            rsbf_fnr: entry(87.47, 2),
            sbf_fpr: misprint(12.51, 2, 11.1, "swapped with RSBF's"),
            rsbf_fpr: misprint(11.1, 1, 12.51, "swapped with SBF's"),
        },
        PrintedRow {
            memory_bits: 67_108_864,
            sbf_fnr: entry(82.48, 2),
            rsbf_fnr: entry(58.2818, 4),
            sbf_fpr: entry(8.3, 1),
            rsbf_fpr: entry(8.4, 1),
        },
        PrintedRow {
            memory_bits: 1_073_741_824,
            sbf_fnr: entry(37.79, 2),
            rsbf_fnr: entry(23.12, 2),
            sbf_fpr: entry(0.742, 3),
            rsbf_fpr: entry(0.89, 2),
        },
        PrintedRow {
            memory_bits: 4_294_967_296,
            sbf_fnr: entry(12.94, 2),
            rsbf_fnr: entry(7.37, 2),
            sbf_fpr: entry(0.069, 3),
            rsbf_fpr: entry(0.072, 3),
        },
    ],
};

fn divisor(scope: &Scope) -> u64 {
    scope.pick(4096, 64, 1)
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    table_cells(scope, &TABLE, divisor(scope))
}

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    let findings = operating_point(table, &TABLE, 1_073_741_824)?;
    Ok(table_verdicts(table, &TABLE, divisor(scope))?.verdicts(findings))
}
