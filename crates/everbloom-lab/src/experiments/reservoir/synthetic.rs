//! Figures 3, 5, 7 and 8: rates and ones along a synthetic stream of a billion records.

use super::along::{figure, rows, settled};
use super::{SOURCE, reservoir, reservoir_spec, stable};
use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reservoir-synthetic",
    source: SOURCE,
    figure: "Figures 3, 5, 7 and 8",
    shows: "FPR, FNR and ones against records, a billion uniform ones (1/64 by default), 512 KB, 128 MB and 512 MB",
    printed: "Charts over a billion uniform records. False positives settle near 0.8 % (RSBF) and 0.7 % (SBF) in 128 MB, 0.06 % in 512 MB; false negatives at 22 against 38 % and 7 against 13 %; ones stop changing after 50 million records for RSBF and not within 455 million for SBF.",
    expected: Seconds { quick: 1.5, default: 40.0, full: Some(2000.0) },
    seeds: 2,
    revision: 2,
    ..Experiment::of(cells, conclude)
};

const MEMORIES: [u64; 3] = [1 << 22, 1 << 30, 1 << 32];
const RECORDS: u64 = 1_000_000_000;
const TWO: &str = "RSBF, 2 arrays";

fn divisor(scope: &Scope) -> u64 {
    scope.pick(4096, 64, 1)
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let (divisor, mut cells) = (divisor(scope), Vec::new());
    let items = RECORDS / divisor;
    for seed in scope.seeds() {
        for printed in MEMORIES {
            let memory_bits = printed / divisor;
            for filter in [stable(memory_bits), reservoir(memory_bits), (TWO, reservoir_spec(memory_bits, 2))] {
                let name = filter.0;
                let work = move |context: &Context<'_>| {
                    let request =
                        Request { items: Some(items), distinct: Some(0.1), seed: 1000 + seed, ..Default::default() };
                    rows(
                        &mut Watched::new(datasets::open("uniform", &request)?, context, items),
                        items,
                        std::slice::from_ref(&filter),
                        memory_bits,
                        seed,
                    )
                };
                let cell = Cell::new(format!("uniform, {items} records, {memory_bits} bits, {name}"), seed, work);
                cells.push(cell.seconds(items as f64 * 80e-9).memory_bytes(memory_bits / 8 + items / 8));
            }
        }
    }
    Ok(cells)
}

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    let divisor = divisor(scope);
    let note =
        if divisor == 1 { String::new() } else { format!(" One part in {divisor} of the paper's records and memory.") };
    let caption = format!("Of all records so far, as the paper draws it.{note}");
    let fpr = figure(
        table,
        ("along", "fpr", 100.0),
        || Axis::linear("false positives, % of distinct"),
        ("fpr", "False positives along a synthetic stream (Figure 3)", &caption),
    );
    let fnr = figure(
        table,
        ("along", "fnr", 100.0),
        || Axis::linear("false negatives, % of duplicates"),
        ("fnr", "False negatives along a synthetic stream (Figures 5 and 8)", &caption),
    );
    let ones = figure(
        table,
        ("ones", "change", 1.0),
        || Axis::log("change in the number of ones"),
        ("ones", "How the number of ones changes (Figure 7)", &caption),
    );
    let at = |measure: &str, printed: u64, filter: &str| {
        table.percent("rates", measure, &labels![memory_bits = printed / divisor, filter = filter])
    };
    let mut verdicts = Vec::new();
    for (printed, name, sbf_claim, rsbf_claim, ratio_claim) in
        [(1 << 30, "128 MB", 38.0, 22.0, 1.73), (1 << 32, "512 MB", 13.0, 7.0, 1.86)]
    {
        let (sbf, rsbf, two) = (at("fnr", printed, "SBF")?, at("fnr", printed, "RSBF")?, at("fnr", printed, TWO)?);
        let ratio = sbf.with(&rsbf, |sbf, rsbf| sbf / rsbf);
        let with_two = sbf.with(&two, |sbf, rsbf| sbf / rsbf);
        verdicts.push(
            claimed(&ratio, &with_two, ratio_claim).on(format!("fnr-{printed}"), "Figure 5", format!("with {name} the FNR settles at {rsbf_claim} % for RSBF and {sbf_claim} % for SBF: {ratio_claim} times better"))
                .mean("FNR of SBF, %", &sbf).mean("RSBF, 3 arrays, %", &rsbf).mean("RSBF, 2 arrays, %", &two).mean("SBF / RSBF, 3 arrays", &ratio).mean("2 arrays", &with_two)
                .remark("with 2 arrays; the threshold of 0.1 that the figure states gives 3"),
        );
    }
    for (printed, name, sbf_claim, rsbf_claim) in [(1 << 30, "128 MB", 0.7, 0.8), (1 << 32, "512 MB", 0.06, 0.06)] {
        let (sbf, rsbf) = (at("fpr", printed, "SBF")?, at("fpr", printed, "RSBF")?);
        let two = at("fpr", printed, TWO)?;
        let near = |sample: &Sample, claim: f64, digits| Printed::new(claim, digits).is_near(sample);
        let digits = if printed == 1 << 30 { 1 } else { 2 };
        verdicts.push(
            Outcome::loosely(
                false,
                near(&sbf, sbf_claim, digits) && (near(&rsbf, rsbf_claim, digits) || near(&two, rsbf_claim, digits)),
                near(&sbf, sbf_claim, digits),
            )
            .on(
                format!("fpr-{printed}"),
                "Figure 3",
                format!("with {name} the FPR is {rsbf_claim} % for RSBF and {sbf_claim} % for SBF"),
            )
            .means([("SBF, %", &sbf), ("RSBF, 3 arrays, %", &rsbf), ("RSBF, 2 arrays, %", &two)]),
        );
    }
    verdicts.extend(convergence(table, MEMORIES[0] / divisor)?);
    verdicts.push(records(table, MEMORIES[0] / divisor, divisor));
    Ok(Conclusion::new().figure(fpr).figure(fnr).figure(ones).verdicts(verdicts))
}

/// How a printed ratio fared: with the 3 arrays that the figure's threshold gives, or with 2.
fn claimed(three: &Sample, two: &Sample, ratio: f64) -> Outcome {
    let printed = Printed::new(ratio, 2);
    match (printed.outcome(three), printed.outcome_about(two, two.mean() > 1.0)) {
        (Outcome::Holds, _) => Outcome::Holds,
        (_, with_two) => with_two,
    }
}

/// Figure 7's counts of records.
fn records(table: &Table, bits: u64, divisor: u64) -> Verdict {
    let (sbf, rsbf) = (settled(table, bits, "SBF") * divisor as f64, settled(table, bits, "RSBF") * divisor as f64);
    let claim = "with 512 KB RSBF's ones settle shortly after 50 million records, SBF's not within 455 million";
    let (early, late) = (rsbf <= 60e6, sbf > 455e6);
    Outcome::graded(early && late, early || rsbf < sbf).on("records", "Figure 7", claim)
        .numbers([("within 2 % of the last value from record, RSBF", rsbf), ("SBF", sbf)])
        .remark("a fiftieth of the stream is the finest that is looked at; records as in the paper, also where fewer were run")
}

/// Whether RSBF's ones and FNR change less than SBF's, with the smallest memory.
fn convergence(table: &Table, bits: u64) -> Result<Vec<Verdict>> {
    let late = |rows: &str, value: &str, filter: &str, least: f64| -> Sample {
        let labels = labels![memory_bits = bits, filter = filter];
        let is_late =
            |summary: &Summary| summary.label("part").and_then(Label::number).is_some_and(|part| part > least);
        let here = table.summary(rows).into_iter().filter(|summary| summary.has(&labels) && is_late(summary));
        Sample(here.filter_map(|summary| Some(summary.sample(value)?.0.clone())).flatten().collect())
    };
    let (sbf, rsbf) = (late("ones", "change", "SBF", 2.0), late("ones", "change", "RSBF", 2.0));
    let (sbf_fnr, rsbf_fnr) = (late("along", "fnr", "SBF", 25.0), late("along", "fnr", "RSBF", 25.0));
    let spread = |sample: &Sample| 100.0 * sample.deviation();
    Ok(vec![
        Outcome::of(clearly_below(&rsbf, &sbf))
            .on("ones", "Figure 7, eq. 5.22", "the number of ones changes less in RSBF than in SBF")
            .means([("mean change after the first part, SBF", &sbf), ("RSBF", &rsbf)]),
        Outcome::loosely(
            false,
            (spread(&rsbf_fnr) / spread(&sbf_fnr) * 3.0 - 1.0).abs() <= 0.1,
            spread(&rsbf_fnr) < spread(&sbf_fnr),
        )
        .on(
            "fnr-stability",
            "Figure 8",
            "RSBF's FNR is stable earlier: it moves by 0.1 points over 0.35 million records, SBF's by 0.3",
        )
        .number("deviation of the FNR over the second half, SBF, points", spread(&sbf_fnr))
        .number("RSBF, points", spread(&rsbf_fnr)),
    ])
}
