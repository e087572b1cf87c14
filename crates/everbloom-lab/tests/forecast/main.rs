//! Forecasts held to what filters do: settings drawn from a seed, every kind of the registry among them.

mod choice;
mod cost;
mod learned;
mod papers;
mod readme;
mod settings;
mod stages;

use settings::{Judgement, Setting, draw};

/// How many of the settings may lie outside the tolerance: 2 of 40.
const OUTSIDE: usize = 2;

fn judge_all(settings: &[Setting]) -> Vec<Judgement> {
    let judgements: Vec<_> = settings.iter().map(Setting::judge).collect();
    judgements.iter().for_each(|judgement| println!("{judgement}"));
    judgements
}

fn hold(judgements: &[Judgement]) {
    let outside: Vec<_> = judgements.iter().filter(|judgement| !judgement.within()).map(ToString::to_string).collect();
    assert!(outside.len() * 40 <= OUTSIDE * judgements.len(), "outside the tolerance:\n{}", outside.join("\n"));
    let optimistic: Vec<_> =
        judgements.iter().filter(|judgement| judgement.optimism() > 4.0).map(ToString::to_string).collect();
    assert!(optimistic.is_empty(), "more false positives than forecast:\n{}", optimistic.join("\n"));
}

#[test]
fn rates_are_as_forecast_on_forty_settings() {
    hold(&judge_all(&draw(40, 1, 60_000)));
}

#[test]
#[ignore = "minutes: longer streams, several seeds"]
fn rates_are_as_forecast_on_longer_streams() {
    for seed in 2..5 {
        hold(&judge_all(&draw(40, seed, 1_000_000)));
    }
}
