//! Every registered filter can be forecast on every kind of stream.

use crate::common::mean_and_error;
use everbloom::{Goal, ImportanceMix, Plan};
use everbloom_all::KINDS;
use everbloom_forecast::stream::scaled::ScaledStream;
use everbloom_forecast::stream::{Method, RatesAt};
use everbloom_forecast::{Forecast, Stream, forecast};
use std::sync::LazyLock;

fn streams() -> Vec<Stream> {
    let told = [
        Stream::uniform(20_000, 8_000),
        Stream::zipf(20_000, 5_000, 1.0),
        Stream::by_lag(20_000, 9_000, &[(10.0, 1.0), (10_000.0, 2.0)]),
        Stream::uniform(20_000, 8_000).map(|stream| stream.with_importance(ImportanceMix::uniform())),
    ];
    told.map(|stream| stream.expect("a stream")).into()
}

/// The kinds that can be planned from memory, keys and a rate.
fn plans() -> Vec<Plan> {
    let goal = Goal::new().memory_bits(1 << 17).expected_items(9_000).fpr(0.02);
    let plans: Vec<Plan> = KINDS.iter().filter_map(|kind| goal.plan_among(KINDS, kind.name).ok()).collect();
    assert!(plans.len() >= 17, "only {} kinds can be planned", plans.len());
    plans
}

/// Every plan with its forecast on every stream, which several laws look at.
static FORECASTS: LazyLock<Vec<(Plan, Stream, Forecast)>> = LazyLock::new(|| {
    let (plans, streams) = (plans(), streams());
    let pairs = plans.iter().flat_map(|plan| streams.iter().map(move |stream| (plan, stream)));
    pairs.map(|(plan, stream)| (plan.clone(), stream.clone(), forecast_on(plan, stream))).collect()
});

/// The forecasts on one of the streams.
fn forecasts_on(number: usize) -> impl Iterator<Item = &'static (Plan, Stream, Forecast)> {
    FORECASTS.iter().skip(number).step_by(streams().len())
}

fn forecast_on(plan: &Plan, stream: &Stream) -> Forecast {
    forecast::forecast(plan, stream).unwrap_or_else(|error| panic!("{}: {error}", plan.spec))
}

#[test]
fn rates_are_rates_and_lags_are_all_of_them() {
    for (plan, _, forecast) in FORECASTS.iter() {
        let &Forecast {
            predicted_fpr,
            predicted_fnr,
            late_fpr,
            late_fnr,
            weighted_fpr: wfp,
            weighted_fnr: wfn,
            zero_share: zeros,
            ..
        } = forecast;
        for rate in [predicted_fpr, predicted_fnr, late_fpr, late_fnr, wfp, wfn, zeros] {
            assert!((0.0..=1.0).contains(&rate), "{}: {forecast:?}", plan.spec);
        }
        let shares: f64 = forecast.by_lag.iter().map(|row| row.share).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{}: lags of {shares}", plan.spec);
        let missed: f64 = forecast.by_lag.iter().map(|row| row.share * row.predicted_fnr).sum();
        // The chain of a filter whose rates change knows its lags at the end of the stream only.
        let slack = if ["reservoir", "ranked"].contains(&plan.spec.kind()) { 0.1 } else { 1e-6 };
        assert!((missed - predicted_fnr).abs() <= slack, "{}: {missed} by lag, {predicted_fnr}", plan.spec);
        assert_eq!(forecast.promise.predicted_fnr, Some(predicted_fnr), "{}", plan.spec);
    }
}

#[test]
fn rates_over_time_come_to_the_rates_of_the_whole() {
    for (plan, stream, forecast) in FORECASTS.iter() {
        let rows = &forecast.over_time;
        assert!(rows.len() >= 4 && rows.is_sorted_by(|one, other| one.arrivals < other.arrivals), "{}", plan.spec);
        assert!(rows.iter().all(|row| (0.0..=20_000.0).contains(&row.arrivals)), "{}: {rows:?}", plan.spec);
        let mean = |rate: fn(&RatesAt) -> f64, weight: fn(&RatesAt) -> f64| {
            let weights: f64 = rows.iter().map(weight).sum();
            rows.iter().map(|row| rate(row) * weight(row)).sum::<f64>() / weights
        };
        // A rate that rises or falls is off by at most its change within a part; those of a chain come in steps of their own.
        let slack = |rate: fn(&RatesAt) -> f64| {
            let rates = || rows.iter().map(rate);
            let steps = if forecast.method == Method::Chain { 4.0 } else { 2.0 };
            steps * (rates().fold(0.0, f64::max) - rates().fold(1.0, f64::min)) / rows.len() as f64 + 1e-9
        };
        let fpr = mean(|row| row.predicted_fpr, |row| row.distinct);
        let off = (fpr - forecast.mean_fpr).abs();
        assert!(off <= slack(|row| row.predicted_fpr), "{}: {fpr}, not {}", plan.spec, forecast.mean_fpr);
        let fnr = mean(|row| row.predicted_fnr, |row| 1.0 - row.distinct);
        let off = (fnr - forecast.predicted_fnr).abs();
        assert!(off <= slack(|row| row.predicted_fnr), "{}: {fnr}, not {}", plan.spec, forecast.predicted_fnr);
        let distinct = rows.iter().map(|row| row.distinct).sum::<f64>() / rows.len() as f64 * 20_000.0;
        assert!((distinct / stream.distinct() as f64 - 1.0).abs() < 0.03, "{}: {distinct}", plan.spec);
    }
}

#[test]
fn filters_that_never_forget_are_forecast_to_miss_nothing_and_others_to_miss_the_old_first() {
    for (plan, _, forecast) in forecasts_on(2) {
        if plan.promise.predicted_fnr == Some(0.0) {
            assert_eq!(forecast.predicted_fnr, 0.0, "{}", plan.spec);
            continue;
        }
        let (first, last) = (forecast.by_lag.first().expect("a lag"), forecast.by_lag.last().expect("a lag"));
        assert!(first.predicted_fnr <= last.predicted_fnr, "{}: {:?}", plan.spec, forecast.by_lag);
    }
}

#[test]
fn the_same_question_is_answered_alike() {
    for (plan, stream, forecast) in forecasts_on(1) {
        assert_eq!(forecast_on(plan, stream), *forecast, "{}", plan.spec);
    }
}

#[test]
fn formulas_and_chains_agree_with_a_simulation() {
    // What a formula predicts is simulated, too, with the real filter; σ from the counts of 6 · 20,000 arrivals.
    for (plan, stream, forecast) in FORECASTS.iter().filter(|(_, _, forecast)| forecast.method != Method::Simulation) {
        // A filter made of unlike parts cannot be made smaller.
        let Ok(simulated) = forecast::simulated(plan, stream) else { continue };
        let near = |one: f64, other: f64| {
            let sigma = (one.max(1e-4) * (1.0 - one) / 48_000.0).sqrt();
            (one - other).abs() < 0.05 * other + 5.0 * sigma
        };
        assert!(near(forecast.predicted_fpr, simulated.predicted_fpr), "{}: {forecast:?} {simulated:?}", plan.spec);
        assert!(near(forecast.predicted_fnr, simulated.predicted_fnr), "{}: {forecast:?} {simulated:?}", plan.spec);
    }
}

/// The ± of the difference of two forecasts, four standard errors.
fn apart(one: &Forecast, other: &Forecast) -> f64 {
    4.0 * one.fnr_standard_error.hypot(other.fnr_standard_error)
}

#[test]
fn less_memory_is_never_forecast_to_miss_less_however_long_the_stream() {
    for expected in [1_000_000u64, 10_000_000, 1_000_000_000] {
        let mut larger: Option<Forecast> = None;
        for bytes in [256, 64, 16, 4, 1].map(|kilobytes| kilobytes << 10) {
            let goal = Goal::new().memory_bits(8 * bytes).expected_items(expected).fpr(0.001);
            let best = everbloom_forecast::Question::among(KINDS, goal).answer().expect("an answer").best;
            let what = format!("{} of {bytes} bytes for {expected} keys: {:?}", best.plan.spec, best.forecast);
            if let Some(larger) = &larger {
                // A quarter of the memory is remembered for two doublings of the lag less, one in about 20 to 30 of them.
                let slack = apart(&best.forecast, larger);
                assert!(best.forecast.predicted_fnr > larger.predicted_fnr + 0.02 - slack, "{what}, but {larger:?}");
            }
            // What is chosen is forecast as it is when it is asked for.
            let stream = Stream::assumed(expected).expect("a stream");
            let alone = forecast_on(&best.plan, &stream);
            let off = (best.forecast.predicted_fnr - alone.predicted_fnr).abs();
            assert!(off <= apart(&best.forecast, &alone), "{what}, but alone {alone:?}");
            larger = Some(best.forecast);
        }
    }
}

#[test]
fn a_small_filter_is_forecast_on_a_long_stream_as_it_is_measured() {
    // By a filter of that size on all of the stream, which is played from several seeds; a section of it is what the
    // forecast has.
    for stream in [Stream::assumed(600_000), Stream::uniform(1_200_000, 600_000)] {
        let stream = stream.expect("a stream");
        let played: Vec<_> = (77..81).map(|seed| ScaledStream::new(&stream, 1.0, seed, 0)).collect();
        for kind in ["ranked", "graceful", "stable", "age_partitioned"] {
            let plan = Goal::new().memory_bits(8 << 10).fpr(0.01).plan_among(KINDS, kind).expect(kind);
            let forecast = forecast::simulated(&plan, &stream).expect(kind);
            let rates: Vec<f64> = played.iter().map(|played| missed(&plan, played)).collect();
            let (measured, error) = mean_and_error(&rates);
            let off = (measured - forecast.predicted_fnr).abs();
            let slack = 4.0 * forecast.fnr_standard_error.hypot(error);
            assert!(off <= slack, "{kind} on {}: {measured} ± {error} and {forecast:?}", stream.describe());
        }
    }
}

/// The share of repeats that a planned filter calls new.
fn missed(plan: &Plan, played: &ScaledStream) -> f64 {
    let mut filter = plan.build().expect("a filter");
    let repeats = played.hashes.iter().zip(&played.lags).map(|(hash, lag)| {
        let is_new = filter.observe(hash.low, everbloom::Importance::default()).is_distinct();
        (*lag > 0).then_some(is_new)
    });
    let (missed, all) =
        repeats.flatten().fold((0.0, 0.0), |(missed, all), is_new| (missed + f64::from(u8::from(is_new)), all + 1.0));
    missed / all
}
