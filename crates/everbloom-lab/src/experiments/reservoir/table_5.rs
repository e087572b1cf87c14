//! Table 5: a billion arrivals, 10 % distinct; one part in 64 unless asked for all.

use super::{
    PrintedTable, SOURCE, TWO_ARRAYS, entry, misprint, of_two_arrays, operating_point, row, sample, up_to_twice,
};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-table-5",
    source: SOURCE,
    figure: "Table 5",
    shows: "FNR and FPR of SBF and RSBF, a billion arrivals, 10 % distinct (1/64 by default)",
    expected: Seconds { quick: 1.5, default: 55.0, full: Some(1100.0) },
    seeds: 4,
    revision: 2,
    ..Experiment::of(|scope| TABLE.cells(scope), conclude)
};

static TABLE: PrintedTable = PrintedTable {
    place: "Table 5",
    items: 1_000_000_000,
    distinct: 0.10,
    divisors: [4096, 64, 1],
    rows: &[
        row(
            67_108_864,
            [entry(82.58, 2), entry(67.66, 2)],
            [entry(8.262, 3), misprint(10.262, 3, 16.262, "a digit is wrong; 2 arrays")],
        ),
        row(1_073_741_824, [entry(38.17, 2), entry(23.47, 2)], [entry(0.7, 1), entry(0.83, 2)]),
        row(4_294_967_296, [entry(13.163, 3), entry(7.53, 2)], [entry(0.0634, 4), entry(0.0664, 4)]),
    ],
};

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    let findings =
        TABLE.rows.iter().map(|row| operating_point(table, &TABLE, row.memory_bits)).collect::<Result<Vec<_>>>()?;
    let conclusion = TABLE.conclude(table, scope)?.verdict(of_two_arrays(table, &TABLE)?);
    let conclusion = conclusion.verdict(up_to_twice(table, &TABLE)?).verdicts(prose(table)?);
    Ok(conclusion.verdicts(findings.into_iter().flatten()))
}

/// What section 6.2 says about the table.
fn prose(table: &Table) -> Result<Vec<Verdict>> {
    let two = sample(table, "fnr", 67_108_864, TWO_ARRAYS)?;
    let (said, tabulated) = (Printed::new(58.0, 0), Printed::new(67.66, 2));
    let outcome = said.outcome_if_mended(tabulated, &two);
    let claim = "at around 67M bits RSBF has an FNR of 58 %";
    Ok(vec![
        outcome
            .on("prose-58", "section 6.2", claim)
            .numbers([("section 6.2", 58.0), ("the table", 67.66)])
            .mean("measured, 2 arrays", &two)
            .remark("the text repeats Table 4's 58.28, which matches no reading either"),
    ])
}
