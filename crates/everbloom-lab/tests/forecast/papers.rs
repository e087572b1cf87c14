//! The papers' tables as settings: what is forecast beside the reference figures of the lab.

use crate::settings::{linear_mix, near};
use everbloom::Goal;
use everbloom_all::KINDS;
use everbloom_forecast::{Forecast, Stream, forecast};

fn forecast_on(spec: &str, memory_bits: u64, stream: &Stream) -> Forecast {
    let plan = Goal::new().memory_bits(memory_bits).fpr(0.1).defaults_only().plan_among(KINDS, spec).expect(spec);
    forecast::forecast(&plan, stream).expect(spec)
}

/// Rates in per cent, with their standard deviation from seed to seed.
fn assert_near(what: &str, forecast_on: f64, percent: f64, deviation: f64) {
    println!("{what}: {:.2} forecast, {percent} reference", 100.0 * forecast_on);
    let slack = 4.0 * deviation / 100.0;
    let (low, high) = (percent / 100.0 - slack, percent / 100.0 + slack);
    assert!(near(forecast_on, forecast_on.clamp(low, high)), "{what}: {forecast_on}, not {percent} %");
}

#[test]
fn the_reservoir_paper_s_tables_are_forecast() {
    let small = Stream::uniform(100_000, 76_000).expect("a stream");
    let large = Stream::uniform(10_000_000, 4_900_000).expect("a stream");
    let stable = |bits: u64| format!("stable:num_cells={bits},cell_max=1,num_hashes=2,decrements=4");
    let reservoir = |bits: u64| format!("reservoir:memory_bits={bits},num_filters=3");
    for (spec, bits, stream, fnr, fpr) in [
        (stable(65_536), 65_536, &small, (74.37, 0.30), (8.18, 0.11)),
        (reservoir(65_536), 65_536, &small, (74.76, 0.20), (8.37, 0.06)),
        (stable(262_144), 262_144, &large, (88.05, 0.05), (10.85, 0.05)),
        (reservoir(262_144), 262_144, &large, (86.80, 0.05), (12.14, 0.05)),
    ] {
        let forecast = forecast_on(&spec, bits, stream);
        assert_near(&format!("FNR of {spec}"), forecast.predicted_fnr, fnr.0, fnr.1);
        assert_near(&format!("FPR of {spec}"), forecast.predicted_fpr, fpr.0, fpr.1);
    }
}

#[test]
fn the_thesis_s_tables_are_forecast() {
    // Set T: 100,000 draws from 75,600 keys, 4 hashes, 7 decrements, values up to 4; wfp and wfn.
    let distinct = 75_600.0 * (1.0 - (-100_000.0f64 / 75_600.0).exp());
    let stream = Stream::uniform(100_000, distinct as u64).expect("a stream").with_importance(linear_mix());
    let words = "num_cells=65536,num_hashes=4,decrements=7,cell_max=4";
    for (spec, wfp, wfn) in [
        ("bloom:num_bits=65536,num_hashes=4".to_string(), (23.59, 0.10), (0.0, 0.0)),
        (format!("stable:{words}"), (13.50, 0.11), (13.49, 0.09)),
        (format!("ibf1:{words}"), (2.12, 0.08), (30.68, 0.10)),
        (format!("ibf2:{words}"), (0.0, 0.0), (44.47, 0.0)),
        (format!("ibf3:{words}"), (13.70, 0.13), (6.42, 0.08)),
        (format!("ibf4:{words}"), (1.45, 0.04), (29.11, 0.07)),
        (format!("ibf5:{words}"), (5.01, 0.13), (18.86, 0.13)),
    ] {
        let forecast = forecast_on(&spec, 1 << 24, &stream);
        assert_near(&format!("wfp of {spec} by {}", forecast.method.name()), forecast.weighted_fpr, wfp.0, wfp.1);
        assert_near(&format!("wfn of {spec} by {}", forecast.method.name()), forecast.weighted_fnr, wfn.0, wfn.1);
    }
}

#[test]
fn important_keys_are_forecast_to_be_missed_less() {
    // Set D, the thesis's figures: flat for the stable filter, falling for the others.
    let distinct = 31_250.0 * (1.0 - (-100_000.0f64 / 31_250.0).exp());
    let stream = Stream::uniform(100_000, distinct as u64).expect("a stream").with_importance(linear_mix());
    let words = "num_cells=65536,num_hashes=4,decrements=7,cell_max=4";
    for (kind, slope) in [("ibf3", -0.70), ("ibf5", -1.32)] {
        let forecast = forecast_on(&format!("{kind}:{words}"), 1 << 24, &stream);
        let rows = &forecast.by_importance;
        let ends = (&rows[1], &rows[rows.len() - 2]);
        // The thesis's slopes are in points of all arrivals, 70 % of which are repeats, per unit of 50.
        let fell = 70.0 * (ends.1.predicted_fnr - ends.0.predicted_fnr) / (50.0 * (ends.1.at - ends.0.at));
        println!("{kind}: {fell:.2} points a unit forecast, {slope} reference");
        assert!(fell < 0.5 * slope, "{kind} falls by {fell}, not {slope}");
    }
}
