//! Table 4: 695 million arrivals, 15 % distinct; one part in 64 unless asked for all.

use super::{PrintedTable, SOURCE, entry, misprint, of_two_arrays, operating_point, row};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-4",
    source: SOURCE,
    figure: "Table 4",
    shows: "FNR and FPR of SBF and RSBF, 695 million arrivals, 15 % distinct (1/64 by default)",
    expected: Seconds { quick: 1.5, default: 45.0, full: Some(900.0) },
    seeds: 4,
    revision: 2,
    ..Experiment::of(|scope| TABLE.cells(scope), conclude)
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 4",
    items: 695_000_000,
    distinct: 0.15,
    divisors: [4096, 64, 1],
    rows: &[
        row(
            262_144,
            [entry(88.86, 2), entry(87.47, 2)],
            [misprint(12.51, 2, 11.1, "swapped with RSBF's"), misprint(11.1, 1, 12.51, "swapped with SBF's")],
        ),
        row(67_108_864, [entry(82.48, 2), entry(58.2818, 4)], [entry(8.3, 1), entry(8.4, 1)]),
        row(1_073_741_824, [entry(37.79, 2), entry(23.12, 2)], [entry(0.742, 3), entry(0.89, 2)]),
        row(4_294_967_296, [entry(12.94, 2), entry(7.37, 2)], [entry(0.069, 3), entry(0.072, 3)]),
    ],
};

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    // The first row is of 3 arrays.
    let rows = TABLE.rows[1..].iter().map(|row| operating_point(table, &TABLE, row.memory_bits));
    let findings = rows.collect::<Result<Vec<_>>>()?;
    let conclusion = TABLE.conclude(table, scope)?.verdict(of_two_arrays(table, &TABLE)?);
    Ok(conclusion.verdicts(findings.into_iter().flatten()))
}
