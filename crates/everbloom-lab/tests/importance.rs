//! The thesis's figures, as the specification reads them, from the filters themselves.
//!
//! Tolerances are four standard errors, computed from the spread over seeds; a figure that was printed
//! for one run of the thesis, or for a mean of eight, brings its own spread.

use everbloom::{Goal, Hashing, Importance};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use everbloom_lab::curve::fn_share_line;
use everbloom_lab::datasets::{self, Request};
use everbloom_lab::evaluate::{self, Record, Report};
use everbloom_lab::metrics::ByImportance;

const SEEDS: u64 = 8;

fn size(num_cells: u64, num_hashes: u32) -> String {
    format!("num_cells={num_cells},num_hashes={num_hashes},decrements=7,cell_max=4")
}

/// Bloom, stable and the presets up to `ibf5`, by name.
fn family(num_cells: u64, num_hashes: u32) -> Vec<(&'static str, String)> {
    let size = size(num_cells, num_hashes);
    let mut family = vec![("BF", format!("bloom:num_bits={num_cells},num_hashes={num_hashes}"))];
    family.push(("SBF", format!("stable:{size}")));
    let presets = ["IBF1", "IBF2", "IBF3", "IBF4", "IBF5"].into_iter().zip(1..);
    family.extend(presets.map(|(name, number)| (name, format!("ibf{number}:{size}"))));
    family
}

/// A report of every filter for every seed.
fn reports(set: &str, family: &[(&'static str, String)]) -> Vec<Vec<Report>> {
    let run = |seed| {
        let hashing = Hashing::seeded(seed);
        let build = |spec: &String| {
            Goal::new().hashing(hashing).plan_among(KINDS, spec).and_then(|plan| plan.build()).expect(spec)
        };
        let filters = family.iter().map(|(_, spec)| build(spec)).collect();
        let mut set = datasets::open(set, &Request { seed, ..Default::default() }).expect("a set");
        let record = Record { by_importance: true, ..Default::default() };
        evaluate::run_recording(&mut set, hashing, filters, record).expect("runs").reports
    };
    (0..SEEDS).map(run).collect()
}

/// A figure of one filter, seed by seed, in percent.
fn percents(runs: &[Vec<Report>], filter: usize, figure: impl Fn(&Report) -> Option<f64>) -> Vec<f64> {
    runs.iter().map(|run| 100.0 * figure(&run[filter]).expect("a figure")).collect()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (values.len() as f64 - 1.0)).sqrt())
}

/// The mean over seeds is the printed figure, which is itself the mean of `printed_runs` runs and is
/// rounded to `digits`.
fn assert_near(what: &str, values: &[f64], printed: f64, printed_runs: f64, digits: i32) {
    let (mean, deviation) = mean_and_deviation(values);
    let error = deviation * (1.0 / values.len() as f64 + 1.0 / printed_runs).sqrt();
    let rounding = 0.5 * 10f64.powi(-digits);
    println!("{what}: {mean:.3} ± {deviation:.3}, printed {printed}");
    assert!((mean - printed).abs() <= 4.0 * error + rounding, "{what}: {mean} ± {error}, {printed} printed");
}

#[test]
fn set_t_gives_the_reference_weighted_rates() {
    let family = family(65_536, 4);
    let runs = reports("linear", &family);
    let references =
        [(23.59, 0.0), (13.50, 13.49), (2.12, 30.68), (0.0, 44.47), (13.70, 6.42), (1.45, 29.11), (5.01, 18.86)];
    for (filter, ((name, _), (wfp, wfn))) in family.iter().zip(references).enumerate() {
        let printed_runs = SEEDS as f64;
        assert_near(&format!("{name} wfp"), &percents(&runs, filter, |report| report.wfp), wfp, printed_runs, 2);
        assert_near(&format!("{name} wfn"), &percents(&runs, filter, |report| report.wfn), wfn, printed_runs, 2);
    }
}

#[test]
fn set_d_gives_the_reference_slopes_and_crossover() {
    let specs: Vec<_> =
        family(65_536, 4).into_iter().filter(|(name, _)| ["SBF", "IBF3", "IBF5"].contains(name)).collect();
    let runs = reports("linear_70", &specs);
    let slopes = |filter| percents(&runs, filter, |report| report.fn_share_slope);
    assert_near("SBF slope", &slopes(0), -0.004, SEEDS as f64, 3);
    assert_near("IBF3 slope", &slopes(1), -0.70, SEEDS as f64, 2);
    assert_near("IBF5 slope", &slopes(2), -1.32, SEEDS as f64, 2);
    let crossovers: Vec<f64> = runs.iter().filter_map(|run| run[1].crossover_importance).collect();
    assert_eq!(crossovers.len(), SEEDS as usize, "IBF3 crosses the stable filter in every run");
    assert_near("IBF3 crossover", &crossovers, 17.5, SEEDS as f64, 1);
}

/// Tables 3 and 4 of the thesis beyond the reference cell, misprints mended as the specification says:
/// (cells, hashes, [(filter, wfp, wfn)]). Left out: IBF3, whose rows are IBF5's; at 262,144 cells also
/// IBF5, which reproduces under no reading, and IBF4's wfn (17.0 and 9.5 printed, 17.6 and 10.2 measured);
/// and IBF5's wfp at 16,384 cells and 8 hashes (5.87 printed, 6.28 ± 0.08 in 16 runs).
type Row = (&'static str, Option<f64>, Option<f64>);
const TABLES: &[(u64, u32, &[Row])] = &[
    (
        16_384,
        4,
        &[
            ("BF", Some(46.93), Some(0.0)),
            ("SBF", Some(23.10), Some(20.04)),
            ("IBF1", Some(3.83), Some(37.89)),
            ("IBF2", Some(0.0), Some(44.53)),
            ("IBF4", Some(3.48), Some(35.72)),
            ("IBF5", Some(7.74), Some(33.50)),
        ],
    ),
    (
        16_384,
        8,
        &[
            ("BF", Some(49.90), Some(0.0)),
            ("SBF", Some(33.47), Some(13.42)),
            ("IBF1", Some(4.30), Some(38.15)),
            ("IBF2", Some(0.02), Some(44.27)),
            ("IBF4", Some(5.40), Some(33.92)),
            ("IBF5", None, Some(36.30)),
        ],
    ),
    (
        65_536,
        8,
        &[
            ("BF", Some(33.31), Some(0.0)),
            ("SBF", Some(21.93), Some(10.43)),
            ("IBF1", Some(2.25), Some(32.55)),
            ("IBF4", Some(2.75), Some(26.09)),
            ("IBF5", Some(5.15), Some(22.87)),
        ],
    ),
    (
        262_144,
        4,
        &[
            ("BF", Some(1.58), Some(0.0)),
            ("SBF", Some(1.45), Some(2.24)),
            ("IBF1", Some(0.27), Some(16.43)),
            ("IBF2", None, Some(44.53)),
            ("IBF4", Some(0.13), None),
        ],
    ),
    (
        262_144,
        8,
        &[
            ("BF", Some(2.34), Some(0.0)),
            ("SBF", Some(2.04), Some(2.67)),
            ("IBF1", Some(0.15), Some(19.99)),
            ("IBF2", None, Some(38.14)),
            ("IBF4", Some(0.22), None),
        ],
    ),
];

#[test]
fn the_thesis_tables_are_met() {
    for (num_cells, num_hashes, rows) in TABLES {
        let family: Vec<_> = family(*num_cells, *num_hashes)
            .into_iter()
            .filter(|(name, _)| rows.iter().any(|row| row.0 == *name))
            .collect();
        let runs = reports("linear", &family);
        for (filter, (name, wfp, wfn)) in rows.iter().enumerate() {
            let what = |rate: &str| format!("{name}, {num_cells} cells, {num_hashes} hashes, {rate}");
            // The thesis printed one run.
            if let Some(wfp) = wfp {
                assert_near(&what("wfp"), &percents(&runs, filter, |report| report.wfp), *wfp, 1.0, 2);
            }
            if let Some(wfn) = wfn {
                assert_near(&what("wfn"), &percents(&runs, filter, |report| report.wfn), *wfn, 1.0, 2);
            }
        }
    }
}

#[test]
fn zeros_settle_where_the_thesis_counts_them() {
    // Figure 7, which fits M = 4: about 50 zeros of 512 in the stable filter, 50 to 400 in the family,
    // nearly 400, and most restless, in IBF2.
    let zeros = |kind: &str| {
        let spec = format!("{kind}:num_cells=512,num_hashes=4,decrements=5,cell_max=4");
        let mut filter = Goal::new().plan_among(KINDS, &spec).and_then(|plan| plan.build()).expect("builds");
        let mut counts = Vec::new();
        for (index, arrival) in datasets::open("linear", &Request::default()).expect("a set").enumerate() {
            filter.observe(arrival.key, Importance::new(arrival.importance, 50).expect("in range"));
            if index >= 20_000 && index % 500 == 0 {
                counts.push(512.0 * (1.0 - filter.status().fill));
            }
        }
        mean_and_deviation(&counts)
    };
    // Theory: 512 · (1/(1 + 1/(5·(1/4 − 1/512))))^4. Samples 500 arrivals apart are nearly independent.
    let expected = 512.0 * (1.0f64 / (1.0 + 1.0 / (5.0 * (0.25 - 1.0 / 512.0)))).powi(4);
    let (mean, deviation) = zeros("stable");
    let error = deviation / 160f64.sqrt();
    assert!((mean - expected).abs() <= 4.0 * error, "{mean} ± {error}, not {expected}");
    let others = ["ibf1", "ibf2", "ibf3", "ibf4", "ibf5", "ibf6"].map(zeros);
    assert!(others.iter().all(|(mean, _)| (45.0..=420.0).contains(mean)), "{others:?}");
    let (ibf2, restless) = others[1];
    assert!((380.0..=420.0).contains(&ibf2), "IBF2: {ibf2}");
    assert!(others.iter().all(|(mean, _)| *mean <= ibf2) && restless > others[0].1, "{others:?}");
}

/// Slopes of `fn_share`, in points per unit of importance, in every `part` arrivals of a stream whose
/// keys are replaced as it goes: 70 % repeats, each at most about 100,000 arrivals after the first.
fn slopes(spec: &str, parts: u64, part: u64) -> Vec<f64> {
    const KEYS_IN_USE: u64 = 31_250;
    let mut filter = Goal::new().plan_among(KINDS, spec).and_then(|plan| plan.build()).expect("builds");
    let mut generator = Generator::seeded(9);
    let mut seen = vec![false; (parts * part * 3 / 10 + KEYS_IN_USE + 1) as usize];
    let mut observe = |index: u64, by_importance: &mut ByImportance| {
        let key = index * 3 / 10 + generator.below(KEYS_IN_USE);
        let importance = Importance::new(1 + (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % 50, 50);
        let importance = importance.expect("in range");
        let called_duplicate = !filter.observe(key, importance).is_distinct();
        by_importance.record(importance, std::mem::replace(&mut seen[key as usize], true), called_duplicate);
    };
    let slope = |number: u64| {
        let mut by_importance = ByImportance::default();
        (number * part..(number + 1) * part).for_each(|index| observe(index, &mut by_importance));
        100.0 * fn_share_line(&by_importance).expect("a line").slope
    };
    (0..parts).map(slope).collect()
}

fn assert_that_sums_lose_what_decay_keeps(parts: u64, part: u64) {
    let of =
        |cell_importance| slopes(&format!("ibf3:{},cell_importance={cell_importance}", size(65_536, 4)), parts, part);
    let (sum, decayed) = (of("sum"), of("decayed"));
    let last = parts as usize - 1;
    println!("sum {sum:.3?}, decayed {decayed:.3?}");
    assert!(sum[0] < -0.1 && sum[last].abs() < 0.3 * sum[0].abs(), "sum loses its slope: {sum:?}");
    assert!((decayed[last] / decayed[0] - 1.0).abs() < 0.3, "decayed keeps its slope: {decayed:?}");
}

#[test]
fn sums_lose_their_sense_of_importance_and_decayed_ones_keep_it() {
    assert_that_sums_lose_what_decay_keeps(3, 1_000_000);
}

#[test]
#[ignore = "ten million arrivals, twice"]
fn sums_lose_their_sense_of_importance_and_decayed_ones_keep_it_over_ten_million() {
    assert_that_sums_lose_what_decay_keeps(10, 1_000_000);
}
