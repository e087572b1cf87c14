//! Table 5: a billion arrivals, 10 % distinct; one part in 64 unless asked for all.

use super::reservoir::{
    PrintedRow, PrintedTable, SOURCE, cells as table_cells, conclude as table_verdicts, entry, misprint,
    operating_point,
};
use crate::suite::{Cell, Conclusion, Experiment, Scope, Seconds, Table};
use everbloom::Result;

/// See the module.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-5",
    source: SOURCE,
    figure: "Table 5",
    shows: "FNR and FPR of SBF and RSBF, a billion arrivals, 10 % distinct (1/64 by default)",
    expected: Seconds { quick: 1.5, default: 55.0, full: Some(2000.0) },
    seeds: 4,
    revision: 1,
    timed: false,
    needs: &[],
    cells,
    conclude,
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 5",
    items: 1_000_000_000,
    distinct: 0.10,
    rows: &[
        PrintedRow {
            memory_bits: 67_108_864,
            sbf_fnr: entry(82.58, 2),
            rsbf_fnr: entry(67.66, 2),
            sbf_fpr: entry(8.262, 3),
            rsbf_fpr: misprint(10.262, 3, 16.262, "a digit is wrong; 2 arrays"),
        },
        PrintedRow {
            memory_bits: 1_073_741_824,
            sbf_fnr: entry(38.17, 2),
            rsbf_fnr: entry(23.47, 2),
            sbf_fpr: entry(0.7, 1),
            rsbf_fpr: entry(0.83, 2),
        },
        PrintedRow {
            memory_bits: 4_294_967_296,
            sbf_fnr: entry(13.163, 3),
            rsbf_fnr: entry(7.53, 2),
            sbf_fpr: entry(0.0634, 4),
            rsbf_fpr: entry(0.0664, 4),
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
    let findings =
        TABLE.rows.iter().map(|row| operating_point(table, &TABLE, row.memory_bits)).collect::<Result<Vec<_>>>()?;
    Ok(table_verdicts(table, &TABLE, divisor(scope))?.verdicts(findings.into_iter().flatten()))
}
