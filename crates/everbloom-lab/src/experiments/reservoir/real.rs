//! Figures 2, 4 and 6, with a real history in place of the paper's clickstream.

use super::along::{Head, figure, rows, settled};
use super::{SOURCE, reservoir, stable};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-real",
    source: SOURCE,
    figure: "Figures 2, 4 and 6",
    shows: "FPR, FNR and ones against records on a real stream, 2 and 4 KB; a project's history in place of the clickstream",
    printed: "Three pairs of charts over 3 million clicks, 2 and 4 KB. False positives: RSBF 0.001 at first, then level with SBF's 0.0025. False negatives: RSBF settles at 10 and 12 %, SBF at 15 and 22 %. Change in the number of ones: RSBF reaches zero at 0.5 and 1.5 million records, SBF does not.",
    expected: Seconds { quick: 8.0, default: 20.0, full: None },
    seeds: 4,
    revision: 3,
    needs: &["history"],
    ..Experiment::of(cells, conclude)
};

const MEMORIES: [u64; 3] = [16_384, 32_768, 262_144];
const RECORDS: u64 = 1_427_181;

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let cell = |memory_bits: u64, seed| {
        let scope = scope.clone();
        Cell::new(format!("history, {memory_bits} bits"), seed, move |_| {
            let filters = [stable(memory_bits), reservoir(memory_bits)];
            let mut rows = rows(&mut scope.recording("history")?, RECORDS, &filters, memory_bits, seed)?;
            // The first s arrivals, up to the paper's threshold.
            let threshold = memory_bits / 3;
            let mut first = Head { source: scope.recording("history")?, left: threshold as usize };
            let outcome = judge(&mut first, &filters, seed, Record::default())?;
            for ((name, _), report) in filters.iter().zip(&outcome.reports) {
                let row = Row::new("first").label("memory_bits", memory_bits).label("filter", *name);
                rows.push(row.value("fpr", report.measured_fpr).value("fnr", report.measured_fnr));
            }
            Ok(rows)
        })
    };
    Ok(scope.seeds().flat_map(|seed| MEMORIES.map(|memory_bits| cell(memory_bits, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let fpr = figure(
        table,
        ("along", "fpr", 100.0),
        || Axis::linear("false positives, % of distinct"),
        ("fpr", "False positives along a real stream (Figure 2)", "Of all records so far, as the paper draws it."),
    );
    let fnr = figure(
        table,
        ("along", "fnr", 100.0),
        || Axis::linear("false negatives, % of duplicates"),
        ("fnr", "False negatives along a real stream (Figure 4)", "Of all records so far, as the paper draws it."),
    );
    let ones = figure(
        table,
        ("ones", "change", 1.0),
        || Axis::linear("change in the number of ones"),
        (
            "ones",
            "How the number of ones changes (Figure 6)",
            "Absolute change from one fiftieth of the stream to the next: both filters settle early; what is left is chance.",
        ),
    );
    let at = |measure: &str, bits: u64, filter: &str| {
        table.percent("rates", measure, &labels![memory_bits = bits, filter = filter])
    };
    let mut conclusion = Conclusion::new().figure(fpr).figure(fnr).figure(ones);
    for (bits, claimed) in [(16_384, 1.5), (32_768, 1.83)] {
        let (sbf, rsbf) = (at("fnr", bits, "SBF")?, at("fnr", bits, "RSBF")?);
        let ratio = sbf.with(&rsbf, |sbf, rsbf| sbf / rsbf);
        let outcome = Printed::new(claimed, 2).outcome_about(&ratio, clearly_below(&rsbf, &sbf));
        conclusion = conclusion.verdict(
            outcome
                .on(
                    format!("fnr-{bits}"),
                    "Figure 4",
                    format!("with {} KB RSBF has a {claimed} times lower FNR", bits / 8192),
                )
                .number("claimed", claimed)
                .means([("SBF / RSBF", &ratio), ("SBF, %", &sbf), ("RSBF, %", &rsbf)])
                .remark("another stream than the paper's"),
        );
        let (sbf, rsbf) = (at("fpr", bits, "SBF")?, at("fpr", bits, "RSBF")?);
        let factor = rsbf.mean() / sbf.mean();
        conclusion = conclusion.verdict(
            Outcome::loosely(
                (0.9..=1.1).contains(&factor),
                (0.8..1.25).contains(&factor),
                (0.5..2.0).contains(&factor),
            )
            .on(
                format!("fpr-{bits}"),
                "Figure 2",
                format!("with {} KB the FPRs of RSBF and SBF are comparable", bits / 8192),
            )
            .means([("SBF, %", &sbf), ("RSBF, %", &rsbf)])
            .number("RSBF / SBF", factor),
        );
    }
    Ok(conclusion.verdicts(settling(table)?).verdicts(at_first(table)?))
}

/// Section 6.1 on the first s arrivals, and Figure 4's way with memory.
fn at_first(table: &Table) -> Result<Vec<Verdict>> {
    let of = |rows: &str, measure: &str, bits: u64, filter: &str| {
        table.percent(rows, measure, &labels![memory_bits = bits, filter = filter])
    };
    let bits = MEMORIES[0];
    let (sbf, rsbf) = (of("first", "fpr", bits, "SBF")?, of("first", "fpr", bits, "RSBF")?);
    let (near_sbf, near_rsbf) = (Printed::new(0.25, 2).is_near(&sbf), Printed::new(0.1, 1).is_near(&rsbf));
    let missed = of("first", "fnr", bits, "RSBF")?;
    let (small, large) = (of("rates", "fnr", bits, "RSBF")?, of("rates", "fnr", MEMORIES[1], "RSBF")?);
    Ok(vec![
        Outcome::loosely(false, near_sbf && near_rsbf, clearly_below(&rsbf, &sbf))
            .on(
                "first-fpr",
                "section 6.1, Figure 2",
                "with 2 KB, up to the threshold, the FPR is 0.001 for RSBF and around 0.0025 for SBF",
            )
            .means([("RSBF, first s arrivals, %", &rsbf), ("SBF, %", &sbf)])
            .remark("another stream than the paper's"),
        Outcome::of(missed.mean() == 0.0)
            .on("first-fnr", "section 6.1", "up to the threshold, the first s arrivals, RSBF has no false negatives")
            .mean("FNR of the first s arrivals, 2 KB, %", &missed),
        Outcome::of(clearly_below(&small, &large))
            .on("fnr-rises", "Figure 4", "with twice the memory the FNR is higher: 12 % with 4 KB, 10 % with 2 KB")
            .means([("RSBF with 2 KB, %", &small), ("4 KB, %", &large)])
            .remark("an error of the paper, or of the figure: more memory cannot cost accuracy"),
    ])
}

/// When the number of ones has settled.
fn settling(table: &Table) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for (bits, printed) in MEMORIES.into_iter().zip([Some("500 K"), Some("1.5 M"), None]) {
        let (sbf, rsbf) = (settled(table, bits, "SBF"), settled(table, bits, "RSBF"));
        let claim = match printed {
            Some(records) => {
                format!("with {} KB RSBF's ones settle at {records} records, SBF's not within 3 M", bits / 8192)
            }
            None => format!("with {} KB RSBF's ones settle much earlier than SBF's", bits / 8192),
        };
        let outcome = Outcome::graded(rsbf < 0.7 * sbf && printed.is_none(), rsbf < sbf);
        let verdict = outcome
            .on(format!("settles-{bits}"), "Figure 6", claim)
            .numbers([("within 2 % of the last value from record, SBF", sbf), ("RSBF", rsbf)])
            .remark("of 1.4 M records; both settle within the first of fifty parts where the filter is small");
        // The paper has no figure for 32 KB.
        verdicts.push(if printed.is_none() { verdict.ours() } else { verdict });
    }
    Ok(verdicts)
}
