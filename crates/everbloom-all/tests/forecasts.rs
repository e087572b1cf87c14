//! Forecasts of every kind, from formulas, chains and simulations, held to what filters do.

use everbloom::kind::SHARDS;
use everbloom::{Goal, Hashing, Importances, KeyHash, Plan, Spec, Verdict};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use everbloom_forecast::forecast::forecast;
use everbloom_forecast::{Question, Stream};

/// Hot keys for half of the arrivals, bursts of new ones, and old ones that come back.
fn with_hot_keys(arrivals: u64, seed: u64) -> Vec<KeyHash> {
    let (hashing, mut generator) = (Hashing::seeded(seed), Generator::seeded(seed));
    let mut keys: Vec<u64> = Vec::new();
    for arrival in 0..arrivals {
        let known = keys.len() as u64;
        let key = match generator.below(100) {
            0..25 => generator.below(3),
            // Zipf, more or less: every doubling of the rank as often.
            25..60 => libm::exp2(generator.unit() * 14.0) as u64,
            60..75 if known > 1000 => keys[(known - 1 - generator.below(1000)) as usize],
            75..85 if known > 1000 => keys[generator.below(known) as usize],
            _ => 1_000_000 + arrival,
        };
        keys.push(key);
    }
    keys.into_iter().map(|key| hashing.hash_u64(key)).collect()
}

#[test]
fn what_is_forecast_from_a_part_of_a_stream_with_hot_keys_is_what_is_measured_on_all_of_it() {
    // A smaller part would be for a filter with too few cells to be like the whole.
    for (arrivals, most_kept) in [(100_000, 1 << 22), (250_000, 1 << 16)] {
        let hashes = with_hot_keys(arrivals, 3);
        let mut seen = std::collections::HashSet::new();
        let is_new: Vec<bool> = hashes.iter().map(|hash| seen.insert((hash.high, hash.low))).collect();
        let mut sample = everbloom_forecast::stream::Sample::keeping(most_kept);
        hashes.chunks(4096).for_each(|part| sample.observe(part, Importances::default()));
        let stream = sample.finish().expect("many repeats");
        let goal = Goal::new().memory_bits(arrivals * 4 / 5).fpr(0.02).hashing(Hashing::seeded(77));
        for kind in KINDS.iter().filter(|kind| kind.can.run_forever && !kind.can.grow) {
            let Ok(plan) = KINDS.plan(&Spec::new(kind.name), &goal) else { continue };
            // Whom such a filter deletes depends on what each hot key brings to its cells, which no smaller one has.
            if most_kept < hashes.len() && plan.spec.parameters().any(|name| name == "cell_importance") {
                continue;
            }
            let Ok(forecast) = forecast(&plan, &stream) else { continue };
            let mut filter = plan.filter().expect(kind.name);
            let mut verdicts = vec![Verdict::Distinct; hashes.len()];
            filter.observe_checked(&hashes, Importances::default(), &mut verdicts);
            let rate = |new: bool| {
                let of = is_new.iter().zip(&verdicts).filter(|(is_new, _)| **is_new == new);
                let (wrong, all) = of.fold((0.0, 0.0), |(wrong, all), (_, verdict)| {
                    (wrong + f64::from(u8::from(verdict.is_distinct() != new)), all + 1.0)
                });
                wrong / all
            };
            let (fpr, fnr) = (rate(true), rate(false));
            let what = format!("{} of {most_kept}: {fpr} and {fnr}, not {forecast:?}", plan.spec);
            assert!((forecast.predicted_fnr - fnr).abs() <= 4.0 * forecast.fnr_standard_error, "{what}");
            assert!((forecast.predicted_fpr - fpr).abs() <= 4.0 * forecast.standard_error, "{what}");
            // The errors are small enough to be of use.
            assert!(forecast.fnr_standard_error < 0.08 * fnr + 1e-3, "{what}");
        }
    }
}

#[test]
fn what_a_part_of_a_stream_does_not_tell_is_said() {
    let hashes = with_hot_keys(100_000, 5);
    let notes = |most_kept: usize, kind: &str| {
        let mut sample = everbloom_forecast::stream::Sample::keeping(most_kept);
        hashes.chunks(4096).for_each(|part| sample.observe(part, Importances::default()));
        let goal = Goal::new().memory_bits(1 << 16).fpr(0.02);
        let mut question = Question::among(KINDS, goal.filter(kind));
        question.stream = Some(sample.finish().expect("many repeats"));
        question.answer().expect(kind).best.plan.notes.join(" ")
    };
    for kind in ["ibf3", "ibf4"] {
        assert!(notes(1 << 15, kind).contains("off by more than its ±"), "{kind}");
        assert!(!notes(1 << 22, kind).contains("off by more"), "{kind}");
    }
    assert!(!notes(1 << 15, "ranked").contains("off by more"));
}

#[test]
fn shards_are_forecast_as_the_whole_they_make_up() {
    let stream = Stream::uniform(200_000, 100_000).expect("a stream");
    let goal = Goal::new().memory_bits(1 << 20).expected_items(100_000).fpr(0.05);
    for parts in ["exact", "stacked"] {
        let plan = KINDS.plan(&Spec::new(parts).with(SHARDS, 8), &goal).expect(parts);
        let found = forecast(&plan, &stream).expect(parts);
        assert!(found.predicted_fpr <= 0.05 && found.predicted_fnr == 0.0, "{parts}: {found:?}");
    }
    let able = KINDS.iter().filter(|kind| kind.can.shard && !kind.can.grow);
    for kind in able {
        let ample = if kind.can.forget { goal.clone() } else { goal.clone().memory_bits(1 << 24) };
        let whole = KINDS.plan(&Spec::new(kind.name), &ample).expect(kind.name);
        let Some((part, share)) = kind.model.scaled(&whole.spec, 8.0).expect("a full spec") else { continue };
        let memory_bits = (whole.memory_bits as f64 * share * 8.0) as u64;
        let mut shards = whole.clone();
        (shards.spec, shards.memory_bits) = (part.with(SHARDS, 8), memory_bits);
        let rates = |plan: &Plan| forecast(plan, &stream).map(|found| (found.predicted_fpr, found.predicted_fnr));
        let (of_whole, of_shards) = (rates(&whole).expect("a forecast"), rates(&shards).expect("a forecast"));
        let near = |one: f64, other: f64| (one - other).abs() <= 0.05 * one.max(other) + 1e-4;
        let close = near(of_whole.0, of_shards.0) && near(of_whole.1, of_shards.1);
        assert!(close, "{}: {of_shards:?}, not {of_whole:?}", shards.spec);
    }
}
