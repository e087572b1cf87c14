//! Seven filters on the real history stream, against the figures of the specification.

use crate::experiments::common::*;

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "reference-history",
    source: "everbloom",
    figure: "reference on the history stream",
    shows: "FNR and FPR of seven filters in 2^17, 2^18 and 2^19 bits on a project's history, against independent figures",
    expected: Seconds { quick: 6.0, default: 10.0, full: None },
    seeds: 4,
    needs: &["history"],
    ..Experiment::of(cells, conclude)
};

const MEMORIES: [u64; 3] = [1 << 17, 1 << 18, 1 << 19];

/// FNR, its deviation, and FPR, in percent.
type Rates = (f64, f64, f64);

/// Name, and rates for each memory.
const FIGURES: [(&str, [Rates; 3]); 7] = [
    ("ranked 6 × 10, front", [(19.85, 0.02, 0.571), (12.19, 0.03, 0.554), (5.71, 0.02, 0.498)]),
    ("ranked 6 × 10, still", [(31.75, 0.04, 0.569), (21.70, 0.02, 0.551), (12.00, 0.03, 0.496)]),
    ("ranked 3 × 5, front", [(11.67, 0.03, 8.80), (5.64, 0.02, 7.87), (1.99, 0.01, 6.19)]),
    ("direct, 7 bits", [(22.14, 0.10, 0.712), (14.37, 0.06, 0.616), (8.49, 0.02, 0.486)]),
    ("stable, always", [(48.57, 0.02, 0.361), (40.12, 0.04, 0.254), (31.88, 0.02, 0.140)]),
    ("stable, on distinct", [(36.98, 0.03, 0.812), (27.40, 0.03, 0.674), (18.37, 0.02, 0.519)]),
    ("reservoir, 3 arrays", [(36.96, 0.08, 1.29), (29.17, 0.04, 0.798), (21.40, 0.03, 0.426)]),
];

fn filters(memory_bits: u64) -> Vec<Named> {
    let ranked = |words: u64, rest: &str| format!("ranked:num_words={words},{rest}");
    let stable =
        |update: &str| format!("stable:num_cells={memory_bits},cell_max=1,num_hashes=3,decrements=10,update={update}");
    let specs = [
        ranked(memory_bits / 64, "lanes=6,lane_bits=10,packing=padded,insert=middle,hit=front"),
        ranked(memory_bits / 64, "lanes=6,lane_bits=10,packing=padded,insert=middle,hit=still"),
        ranked(memory_bits / 16, "lanes=3,lane_bits=5,packing=padded,insert=middle,hit=front"),
        ranked(memory_bits / 7, "lanes=1,lane_bits=7"),
        stable("always"),
        stable("distinct"),
        format!("reservoir:memory_bits={memory_bits},num_filters=3,insert_floor=0.03,layout=spread"),
    ];
    FIGURES.iter().map(|(name, _)| *name).zip(specs).collect()
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let cell = |memory_bits: u64, seed| {
        let scope = scope.clone();
        Cell::new(format!("history, {memory_bits} bits"), seed, move |_| {
            let filters = filters(memory_bits);
            let outcome = judge(&mut scope.recording("history")?, &filters, seed, Record::default())?;
            let row = |((name, _), report): (&Named, _)| {
                with_rates(Row::new("rates").label("memory", memory_bits).label("filter", *name), report)
            };
            Ok(filters.iter().zip(&outcome.reports).map(row).collect())
        })
        .seconds(1.5)
    };
    Ok(scope.seeds().flat_map(|seed| MEMORIES.map(|memory_bits| cell(memory_bits, seed))).collect())
}

fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
    let mut figure =
        Figure::new("history", "Seven filters on a project's history", "1.43 million paths, 178,252 of them distinct.");
    for (measure, name) in ERRORS {
        let filters = FIGURES.map(|(filter, _)| filter);
        let panel = Panel::new("", Axis::log2("memory, bits"), Axis::linear(name));
        let panel =
            panel.each(Look::LineAndMarks, (table, "rates"), ("memory", measure, 100.0), ("filter", filters), &[]);
        figure = figure.panel(panel);
    }
    let mut verdicts = Vec::new();
    for (filter, figures) in FIGURES {
        for (memory, (fnr, deviation, fpr)) in MEMORIES.into_iter().zip(figures) {
            let at = |measure: &str| table.percent("rates", measure, &labels![memory = memory, filter = filter]);
            let (measured_fnr, measured_fpr) = (at("fnr")?, at("fpr")?);
            // The specification grants a few tenths of a point; one is enough.
            let near = |mean: f64, figure: f64, deviation: f64| (mean - figure).abs() <= 0.1 + 4.0 * deviation;
            let holds = near(measured_fnr.mean(), fnr, measured_fnr.deviation().max(deviation))
                && near(measured_fpr.mean(), fpr, measured_fpr.deviation());
            let claim = format!("{filter} in {memory} bits: FNR {fnr} %, FPR {fpr} %");
            verdicts.push(
                Outcome::of(holds)
                    .on(format!("{filter}-{memory}"), "everbloom's reference", claim)
                    .means([("FNR, %", &measured_fnr), ("FPR, %", &measured_fpr)]),
            );
        }
    }
    Ok(Conclusion::new().figure(figure).verdicts(verdicts))
}
