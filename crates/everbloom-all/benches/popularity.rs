//! The popularity solver beside the sort that it starts with, and the filters that schemes give beside `bloom`.
//!
//! `cargo bench -p everbloom-all --bench popularity [-- --quick | --rounds N]`
//!
//! Members uniform, missing queries Zipf, the keys in random order; k in 0..32, 8 bits a key. What is timed is
//! everything from the classes to the numbers of hashes and their certificate. Beside it, what one could call sorting
//! the problem: the bare scores, which is the least it can mean, and the classes by their scores. The answers are
//! checked: the certificate must hold the solution to a part in 500.
//!
//! The filters have 8 bits a key each, and a fifth as many hot negatives as members. `popularity` has 12 hashes for
//! those and 5 for all other keys, told apart by a map of 8 bits a hot negative, which is the scheme's and not counted;
//! `stacked` has the layers that suit them. Their answers are checked: no key is lost, and hot negatives err less
//! often than in `bloom`, whose own rate is held to theory.

mod harness;

use everbloom::filters::Bloom;
use everbloom::sizing::Size;
use everbloom::{AnyFilter, Hashing, Key, KeyHash};
use everbloom_cells::key::Generator;
use everbloom_tune::querylog::popularity::{Allocation, Share};
use everbloom_tune::querylog::stacking::Demand;
use everbloom_tune::scheme::{self, Classes, Design, HotNegatives, Recipe};
use everbloom_tune::{Scheme, Stacked};
use harness::keys::keys;
use harness::peers::count_found;
use harness::table::{self, Bar, Bound};
use harness::{Options, Samples, Spread, per_item, turn};
use std::hint::black_box;
use std::sync::Arc;

fn main() {
    // Sizes are numbers of keys here; ten million take a while.
    let mut options = Options::from_arguments(&[1_000_000, 10_000_000], &[100_000]);
    options.rounds = options.rounds.min(11);
    println!("# Popularity: {} rounds, ns per key of CPU time", options.rounds);
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for keys in &options.sizes {
        for exponent in [1.0, 1.5] {
            run(*keys, exponent, &options, &mut rows, &mut bars);
        }
    }
    table::print("Solving", &["keys", "Zipf", "sort scores", "sort classes", "solve and certify"], &rows);
    table::print_bars(&bars);
    options.sizes.iter().for_each(|keys| run_filters(*keys, &options));
}

/// The classes of a Zipf distribution in random order.
fn classes(keys: u64, exponent: f64) -> Vec<Share> {
    let mut classes: Vec<Share> = (1..=keys).map(|rank| Share::new(1.0, libm::pow(rank as f64, -exponent))).collect();
    let mut generator = Generator::seeded(1);
    for last in (1..classes.len()).rev() {
        classes.swap(last, generator.below(last as u64 + 1) as usize);
    }
    classes
}

fn run(keys: u64, exponent: f64, options: &Options, rows: &mut Vec<Vec<String>>, bars: &mut Vec<Bar>) {
    let problem = Allocation::new(classes(keys, exponent), 8.0, 0..=32).expect("a problem");
    let mut samples = [const { Samples(Vec::new()) }; 3];
    for round in 0..options.rounds {
        for contender in turn(round, samples.len()) {
            let time = match contender {
                0 => sort_scores(&problem),
                1 => sort_classes(&problem),
                _ => solve(&problem),
            };
            samples[contender].0.push(time);
        }
    }
    let [scores, sorted, solved] = &samples;
    let mut row = vec![keys.to_string(), exponent.to_string()];
    row.extend(samples.iter().map(|samples| format!("{:.1}", samples.median())));
    rows.push(row);
    for (name, beside) in [("sorting the scores", scores), ("sorting the classes", sorted)] {
        bars.push(Bar {
            name: format!("{keys} keys, Zipf {exponent}: solve and certify / {name}"),
            measured: solved.over(beside),
            bound: Bound::AtMost(4.0),
        });
    }
}

fn score(class: &Share) -> f64 {
    class.misses / class.members
}

fn sort_scores(problem: &Allocation) -> f64 {
    let mut scores: Vec<f64> = problem.classes().iter().map(score).collect();
    per_item(scores.len(), || {
        scores.sort_unstable_by(|one, other| other.total_cmp(one));
        black_box(&scores);
    })
}

fn sort_classes(problem: &Allocation) -> f64 {
    let mut classes = problem.classes().to_vec();
    per_item(classes.len(), || {
        classes.sort_unstable_by(|one, other| score(other).total_cmp(&score(one)));
        black_box(&classes);
    })
}

fn solve(problem: &Allocation) -> f64 {
    per_item(problem.classes().len(), || {
        let certified = black_box(problem.solve());
        assert!((0.0..0.002).contains(&certified.gap()), "a gap of {}", certified.gap());
    })
}

const BITS_PER_KEY: u64 = 8;

/// Numbers of keys that are asked for in vain all day, and of those that nobody ever asked for.
const HOT: u64 = 1 << 40;
const COLD: u64 = 2 << 40;

/// A filter, and what each round measured of it.
struct Contender {
    name: &'static str,
    filter: AnyFilter,
    build: f64,
    adds: Samples,
    /// Cold keys, hot negatives, members.
    finds: [Samples; 3],
    wrong: [usize; 2],
}

/// One size: filters are built from most of the members, get the others in rounds, and are asked in rounds.
fn run_filters(members: u64, options: &Options) {
    // Few are added later: hot negatives that pass because of them are not in the maps of `stacked`.
    let chunk = (members as usize / (40 * options.rounds)).clamp(1, 1 << 13);
    let bulk = members - (options.rounds * chunk) as u64;
    let mut contenders = contenders(members, bulk);
    for round in 0..options.rounds {
        let added: Vec<u64> = keys(bulk + (round * chunk) as u64, chunk);
        for index in turn(round, contenders.len()) {
            let one = &mut contenders[index];
            one.adds.0.push(per_item(chunk, || one.filter.insert_batch(&added)));
        }
    }
    for round in 0..options.rounds {
        let hot_start = (round * chunk) as u64 % (members / 5 - chunk as u64);
        let asked: [Vec<u64>; 3] = [
            keys(COLD + (round * chunk) as u64, chunk),
            keys(HOT + hot_start, chunk),
            keys(bulk + (round * chunk) as u64, chunk),
        ];
        for index in turn(round, contenders.len()) {
            let one = &mut contenders[index];
            let mut found = [0; 3];
            for ((keys, samples), found) in asked.iter().zip(&mut one.finds).zip(&mut found) {
                samples.0.push(per_item(chunk, || *found = count_found(&*one.filter, keys)));
            }
            assert_eq!(found[2], chunk, "{} lost keys", one.name);
            (one.wrong[0], one.wrong[1]) = (one.wrong[0] + found[0], one.wrong[1] + found[1]);
        }
    }
    report_filters(members, options.rounds * chunk, &contenders);
}

fn contenders(members: u64, bulk: u64) -> Vec<Contender> {
    let (hashing, bits) = (Hashing::default(), members * BITS_PER_KEY);
    let hashes = |start: u64, count: u64| -> Vec<KeyHash> {
        keys::<u64>(start, count as usize).iter().map(|key| key.hash_with(&hashing)).collect()
    };
    let (inside, hot) = (hashes(0, bulk), hashes(HOT, members / 5));
    let contender = |name, make: &dyn Fn() -> AnyFilter| {
        let mut filter = None;
        let build = per_item(inside.len(), || filter = Some(make()));
        let filter = filter.expect("built");
        Contender { name, filter, build, adds: Samples::default(), finds: Default::default(), wrong: [0; 2] }
    };
    let filled = |mut filter: AnyFilter| {
        filter.insert_hashes(&inside);
        filter
    };
    let size = Size::for_cells(bits, members).expect("a size");
    let exceptions: Vec<(KeyHash, u8)> = hot.iter().map(|hash| (*hash, 1)).collect();
    let classes = Classes::new(vec![scheme::KeyClass::of(5), scheme::KeyClass::of(12)])
        .and_then(|classes| classes.with_exceptions(&exceptions, 8))
        .expect("classes");
    let scheme = Arc::new(Scheme::new(hashing, BITS_PER_KEY as f64, Recipe::Popularity(classes)).expect("a scheme"));
    let demand =
        Demand { members: members as f64, hot_negatives: hot.len() as f64, query_share: 0.8, memory_bits: bits as f64 };
    let design = Design::best(&demand).expect("room enough").design;
    let negatives = HotNegatives::new(hot, design, demand.query_share).expect("hot negatives");
    vec![
        contender("bloom", &|| filled(Bloom::new(size, hashing).expect("fits").into())),
        contender("popularity", &|| {
            filled(everbloom_tune::Popularity::with_scheme(&scheme, bits).expect("fits").into())
        }),
        contender("stacked", &|| Stacked::build(hashing, bits, &inside, &negatives, None).expect("fits").into()),
    ]
}

fn report_filters(members: u64, asked: usize, contenders: &[Contender]) {
    let bloom = &contenders[0];
    let predicted = Size::for_cells(members * BITS_PER_KEY, members).expect("a size").predicted_fpr(members);
    let sigma = (predicted * (1.0 - predicted) / asked as f64).sqrt();
    let measured = bloom.wrong[0] as f64 / asked as f64;
    assert!((measured - predicted).abs() <= 5.0 * sigma, "bloom errs in {measured}, not {predicted}");
    let mut rows = Vec::new();
    for one in contenders {
        assert!(one.name == bloom.name || one.wrong[1] < bloom.wrong[1], "{} does not know hot negatives", one.name);
        let mut row = vec![one.name.to_string(), format!("{:.0}", one.build), beside(&one.adds, &bloom.adds)];
        row.extend(one.finds.iter().zip(&bloom.finds).map(|(finds, others)| beside(finds, others)));
        row.extend(one.wrong.map(|wrong| format!("{:.3}", 100.0 * wrong as f64 / asked as f64)));
        row.push(format!("{:.2}", one.filter.memory_bits() as f64 / members as f64));
        rows.push(row);
    }
    let heading = format!("{members} members, {} hot negatives: ns a key, and how many times bloom's", members / 5);
    let columns =
        ["filter", "build", "add", "find cold", "find hot", "find members", "cold error %", "hot error %", "bits/item"];
    table::print(&heading, &columns, &rows);
    table::print_bars(&contenders[1..].iter().flat_map(|one| bars_of(one, bloom, members)).collect::<Vec<_>>());
}

/// What a filter may cost beside `bloom` of the same memory: building three times as much, asking half as much again.
fn bars_of(one: &Contender, bloom: &Contender, members: u64) -> Vec<Bar> {
    let build = one.build / bloom.build;
    let once = Spread { low: build, median: build, high: build };
    let mut ratios = vec![("build", once, 3.0), ("add", one.adds.over(&bloom.adds), 3.0)];
    let asked = ["find cold", "find hot", "find members"].into_iter().zip(one.finds.iter().zip(&bloom.finds));
    ratios.extend(asked.map(|(what, (finds, others))| (what, finds.over(others), 1.5)));
    let bar = |(what, measured, most): (&str, Spread, f64)| Bar {
        name: format!("{members} members: {what}, {} / bloom", one.name),
        measured,
        bound: Bound::AtMost(most),
    };
    ratios.into_iter().map(bar).collect()
}

/// Nanoseconds, and the ratio to others with its quartiles.
fn beside(samples: &Samples, others: &Samples) -> String {
    format!("{:.1} × {}", samples.median(), samples.over(others))
}
