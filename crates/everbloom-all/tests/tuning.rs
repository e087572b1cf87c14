//! From key lists and a log to a scheme: what is promised holds on queries that the fit never saw.

use everbloom::{Error, Hashing, Key, KeyHash};
use everbloom_cells::key::Generator;
use everbloom_tune::Scheme;
use everbloom_tune::querylog::{Options, Sample, Tuned, build, tune};
use everbloom_tune::scheme::Recipe;
use std::sync::Arc;

const HASHING: Hashing = Hashing::Xxh3 { seed: 7 };

fn hash(key: u64) -> KeyHash {
    key.hash_with(&HASHING)
}

/// Draws ranks 0..count with Zipf's law.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, exponent: f64) -> Self {
        let weights = (0..count).map(|rank| (rank as f64 + 1.0).powf(-exponent));
        let running = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Zipf(running.collect())
    }

    fn draw(&self, generator: &mut Generator) -> u64 {
        let total = self.0[self.0.len() - 1];
        let target = generator.bits() as f64 / 2f64.powi(64) * total;
        self.0.partition_point(|sum| *sum <= target).min(self.0.len() - 1) as u64
    }
}

/// Numbers 0..count in an order of their own.
fn shuffled(count: u64, generator: &mut Generator) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, generator.below(place as u64 + 1) as usize);
    }
    order
}

/// One set of a tenth of the objects, chosen evenly, and queries that miss it, with Zipf's law.
fn one_set(objects: u64, queries: usize, exponent: f64, seed: u64) -> Sample {
    let mut generator = Generator::seeded(seed);
    let order = shuffled(objects, &mut generator);
    let (members, others) = order.split_at(objects as usize / 10);
    let zipf = Zipf::new(others.len(), exponent);
    let log = (0..queries).map(|_| hash(others[zipf.draw(&mut generator) as usize])).collect();
    Sample::new(HASHING, vec![members.iter().map(|key| hash(*key)).collect()], log).expect("a sample")
}

fn ratio(tuned: &Tuned) -> f64 {
    tuned.winner.score.fpr / tuned.standard.score.fpr
}

fn show(tuned: &Tuned) {
    for contender in &tuned.contenders {
        println!("{contender:?}");
    }
    println!("lower bound {}, unseen {}, notes {:?}", tuned.lower_bound, tuned.unseen_share, tuned.notes);
}

/// The winner's memory, its share of the scheme included.
fn total_bits(tuned: &Tuned, sets_sharing: u64) -> u64 {
    tuned.winner.filter_bits + tuned.winner.table_bits.div_ceil(sets_sharing)
}

#[test]
#[ignore = "a minute in debug builds; the bars of the full size"]
fn a_million_objects_and_two_million_queries() {
    for (exponent, bar) in [(1.0, 0.2), (1.5, 0.01)] {
        for seed in [1, 2] {
            let sample = one_set(1_000_000, 2_000_000, exponent, seed);
            let tuned = tune(&sample, &Options::new(800_000)).expect("tunes");
            show(&tuned);
            println!("{exponent}: {:.4} of the standard filter's false positives", ratio(&tuned));
            assert!(ratio(&tuned) <= bar, "{} at {exponent}", ratio(&tuned));
            assert!(total_bits(&tuned, 1) <= 800_000);
        }
    }
}

#[test]
fn stacked_filter_keeps_its_gain_on_later_queries() {
    let sample = one_set(20_000, 100_000, 1.2, 3);
    let tuned = tune(&sample, &Options::new(16_000)).expect("tunes");
    assert_eq!(tuned.winner.kind, "stacked");
    assert!(ratio(&tuned) < 0.3, "{}: {:?}", ratio(&tuned), tuned.winner);
    assert!(total_bits(&tuned, 1) <= 16_000);
    assert!(tuned.winner.score.fpr < tuned.retune_fpr && tuned.retune_fpr < tuned.standard.score.fpr);
    // What the first half predicts is what the second half shows, or better: it has seen more by then.
    // σ of the unseen share as measured on 25,000 queries, and as it is among the other 50,000.
    let unseen = tuned.unseen_share;
    let share_error = (unseen * (1.0 - unseen) * (1.0 / 25_000.0 + 1.0 / 50_000.0)).sqrt();
    let first_rate = tuned.winner.predicted_fpr / tuned.winner.classes[0].query_share;
    let most = tuned.winner.predicted_fpr + 4.0 * tuned.winner.score.error.hypot(share_error * first_rate);
    assert!(tuned.winner.score.fpr <= most, "{} of at most {most}", tuned.winner.score.fpr);
}

#[test]
fn standard_filters_score_as_their_formula_says() {
    for (exponent, seed) in [(0.8, 1), (1.5, 2)] {
        let tuned = tune(&one_set(20_000, 60_000, exponent, seed), &Options::new(16_384)).expect("tunes");
        let standard = &tuned.standard;
        let off = (standard.score.fpr - standard.predicted_fpr).abs();
        // Filters of one trial share their fill; σ of the rate from it is k/fill · √(e^−c·(1 − (1 + c)·e^−c)/m) · rate.
        let (k, c) =
            (f64::from(standard.classes[0].num_hashes), f64::from(standard.classes[0].num_hashes) * 2000.0 / 16_384.0);
        let fill = 1.0 - (-c).exp();
        let spread =
            k / fill * ((-c).exp() * (1.0 - (1.0 + c) * (-c).exp()) / 16_384.0).sqrt() * standard.predicted_fpr;
        let error = standard.score.error.hypot(spread / (24f64).sqrt());
        assert!(off <= 4.0 * error, "{} predicted, {} ± {error} measured", standard.predicted_fpr, standard.score.fpr);
    }
}

/// `sets` sets of `size` objects, and queries with Zipf's law over all objects, popular or not.
fn many_sets(sets: usize, size: usize, exponent: f64, seed: u64) -> Sample {
    let mut generator = Generator::seeded(seed);
    let objects = 20_000;
    let lists =
        (0..sets).map(|_| shuffled(objects, &mut generator)[..size].iter().map(|key| hash(*key)).collect()).collect();
    let zipf = Zipf::new(objects as usize, exponent);
    let log = (0..60_000).map(|_| hash(zipf.draw(&mut generator))).collect();
    Sample::new(HASHING, lists, log).expect("a sample")
}

#[test]
fn many_sets_share_classes_and_the_bytes_of_their_map() {
    let sample = many_sets(4, 300, 1.1, 5);
    let options = |sets_sharing| {
        let mut options = Options::new(2400);
        options.sets_sharing = Some(sets_sharing);
        options
    };
    let shared = tune(&sample, &options(5000)).expect("tunes");
    assert_eq!(shared.winner.kind, "popularity", "{:?}", shared.contenders);
    assert!(ratio(&shared) < 0.4, "{}", ratio(&shared));
    assert!(shared.winner.table_bits > 0 && total_bits(&shared, 5000) <= 2400);
    assert!(shared.lower_bound <= shared.winner.predicted_fpr, "{shared:?}");
    // Alone with the same map, the bytes of the map are not worth it.
    let alone = tune(&sample, &options(4)).expect("tunes");
    assert_ne!(alone.winner.table_bits, shared.winner.table_bits);
}

#[test]
fn lengths_that_tell_hot_from_cold_need_no_map() {
    let hashing = Hashing::measured(0);
    let mut generator = Generator::seeded(8);
    let long = |key: u64| hashing.hash(format!("a key that is stored, {key:09}").as_bytes());
    let short = |key: u64| hashing.hash(format!("{key:05}").as_bytes());
    let members = (0..2000).map(long).collect();
    // Every query is for a new key, so that storing keys exactly cannot help.
    let log = (0..40_000).map(|time| if generator.below(10) == 0 { long(9000 + time) } else { short(time) }).collect();
    let tuned =
        tune(&Sample::new(hashing, vec![members], log).expect("a sample"), &Options::new(20_000)).expect("tunes");
    assert_eq!(tuned.winner.kind, "popularity");
    assert!(ratio(&tuned) < 0.25, "{}", ratio(&tuned));
    assert!(tuned.winner.table_bits < 4000, "{}", tuned.winner.table_bits);
    assert_eq!(tuned.scheme.classes().and_then(everbloom_tune::scheme::Classes::map_width), None);
}

#[test]
fn log_without_repeats_gains_nothing() {
    let log = (0..40_000).map(|time| hash(1_000_000 + time)).collect();
    let sample = Sample::new(HASHING, vec![(0..2000).map(hash).collect()], log).expect("a sample");
    let tuned = tune(&sample, &Options::new(16_384)).expect("tunes");
    assert_eq!((tuned.winner.kind, tuned.scheme.recipe()), ("standard", &Recipe::Standard));
    assert!(tuned.notes.iter().any(|note| note.contains("standard filter is returned")), "{:?}", tuned.notes);
    assert_eq!(tuned.winner.score, tuned.standard.score);
}

#[test]
fn sets_and_queries_of_one_distribution_leave_nothing_for_classes_to_gain() {
    // Members and queries are alike drawn evenly: every class would get the same number of hashes.
    let mut sample_options = Options::new(2400);
    sample_options.sets_sharing = Some(5000);
    let tuned = tune(&many_sets(4, 300, 0.0, 6), &sample_options).expect("tunes");
    let popularity = tuned.contenders.iter().find(|contender| contender.kind == "popularity").expect("it competes");
    let error = popularity.score.error.hypot(tuned.standard.score.error);
    assert!(popularity.score.fpr > 0.95 * tuned.standard.score.fpr - 4.0 * error, "{popularity:?}");
    assert_ne!(tuned.winner.kind, "popularity");
}

#[test]
fn the_gain_fades_as_the_log_drifts() {
    // From the middle of the log on, this share of the keys asked for is others.
    let drifting = |percent: u64| {
        let mut generator = Generator::seeded(4);
        let zipf = Zipf::new(9000, 1.2);
        let log = (0..40_000u64).map(|time| {
            let rank = zipf.draw(&mut generator);
            let moved = time >= 20_000 && rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < percent * (1 << 32) / 100;
            hash(rank + if moved { 50_000 } else { 10_000 })
        });
        let sample = Sample::new(HASHING, vec![(0..2000).map(hash).collect()], log.collect()).expect("a sample");
        tune(&sample, &Options::new(16_384)).expect("tunes")
    };
    let ratios: Vec<f64> = [0, 30, 60].map(|percent| ratio(&drifting(percent))).to_vec();
    assert!(ratios[0] < 0.5 * ratios[1] && ratios[1] < ratios[2] && ratios[2] <= 1.0, "{ratios:?}");
    assert!(drifting(30).notes.iter().any(|note| note.contains("tune often")), "{:?}", drifting(30).notes);
}

#[test]
fn full_drift_gives_the_standard_filter_and_says_why() {
    let mut generator = Generator::seeded(4);
    let zipf = Zipf::new(9000, 1.2);
    let log = (0..40_000u64).map(|time| hash(zipf.draw(&mut generator) + if time < 20_000 { 10_000 } else { 50_000 }));
    let sample = Sample::new(HASHING, vec![(0..2000).map(hash).collect()], log.collect()).expect("a sample");
    let tuned = tune(&sample, &Options::new(16_384)).expect("tunes");
    assert_eq!(tuned.winner.kind, "standard");
    assert!(tuned.unseen_share > 0.99);
    assert!(tuned.notes.iter().any(|note| note.contains("asks for other keys")), "{:?}", tuned.notes);
}

#[test]
fn no_member_is_lost_whatever_wins() {
    let samples = [one_set(20_000, 60_000, 1.2, 3), many_sets(1, 2000, 1.1, 5)];
    for (sample, sets_sharing) in samples.iter().zip([1, 5000]) {
        let mut options = Options::new(16_384);
        options.sets_sharing = Some(sets_sharing);
        let tuned = tune(sample, &options).expect("tunes");
        let members: Vec<KeyHash> = (0..2000).map(|key| hash(key * 7)).collect();
        let scheme = Arc::new(Scheme::decode(&tuned.scheme.encode()).expect("its own bytes"));
        let filter = build(&scheme, &members, 16_384).expect("builds");
        assert!(filter.memory_bits() <= 16_384);
        assert!(members.iter().all(|member| filter.contains_hash(*member)), "{}", tuned.winner.kind);
    }
}

#[test]
fn the_same_sample_gives_the_same_scheme() {
    let scheme = || tune(&one_set(5000, 20_000, 1.2, 3), &Options::new(8192)).expect("tunes").scheme.encode();
    assert_eq!(scheme(), scheme());
}

#[test]
fn samples_without_sense_are_refused() {
    let keys = || (0..100).map(hash).collect::<Vec<_>>();
    let refused = |sets: Vec<Vec<KeyHash>>, log: Vec<KeyHash>, word: &str| {
        let sample = Sample::new(HASHING, sets, log);
        let error = sample.and_then(|sample| tune(&sample, &Options::new(8192))).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(vec![], keys(), "empty in list 1");
    refused(vec![keys(), vec![]], keys(), "empty in list 2");
    refused(vec![keys()], vec![], "0 queries");
    refused(vec![keys()], keys()[..1].to_vec(), "1 queries");
    // Only members: nothing can be a false positive.
    refused(vec![keys()], keys(), "not members");
    let second_half = keys().into_iter().chain((1000..1100).map(hash)).collect();
    refused(vec![keys()], second_half, "first half");
}

#[test]
fn options_without_sense_are_refused() {
    let sample = one_set(1000, 4000, 1.0, 1);
    type Change = fn(&mut Options);
    let wrong: [(&str, Change); 6] = [
        ("memory", |options| options.memory_bits = 0),
        ("memory", |options| options.memory_bits = u64::MAX),
        ("sets_sharing", |options| options.sets_sharing = Some(0)),
        ("max_hashes", |options| options.max_hashes = 0),
        ("max_hashes", |options| options.max_hashes = 33),
        ("min_hashes", |options| (options.min_hashes, options.max_hashes) = (9, 8)),
    ];
    for (name, change) in wrong {
        let mut options = Options::new(8192);
        change(&mut options);
        let error = tune(&sample, &options).expect_err(name);
        assert!(matches!(error, Error::Parameter { name: given, .. } if given == name), "{error}");
    }
}

#[test]
fn keys_listed_twice_count_once() {
    let keys: Vec<_> = (0..500).map(hash).collect();
    let log: Vec<_> = (0..4000u64).map(|time| hash(9000 + time % 37)).collect();
    let tuned = |keys: Vec<KeyHash>| {
        let sample = Sample::new(HASHING, vec![keys], log.clone()).expect("a sample");
        tune(&sample, &Options::new(4096)).expect("tunes").scheme.encode()
    };
    assert_eq!(tuned(keys.clone()), tuned([keys.clone(), keys].concat()));
}

#[test]
fn memory_too_small_for_a_map_leaves_it_out() {
    let tuned = tune(&many_sets(2, 300, 1.1, 5), &Options::new(1024)).expect("tunes");
    assert!(tuned.winner.filter_bits <= 1024);
    assert!(tuned.notes.iter().any(|note| note.contains("does not fit")), "{:?}", tuned.notes);
}
