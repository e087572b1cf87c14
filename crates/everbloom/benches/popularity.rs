//! The popularity solver beside the sort that it starts with.
//!
//! `cargo bench -p everbloom --bench popularity [-- --quick | --rounds N]`
//!
//! Members uniform, missing queries Zipf, the keys in random order; k in 0..32, 8 bits a key. What is timed is
//! everything from the classes to the numbers of hashes and their certificate. Beside it, what one could call sorting
//! the problem: the bare scores, which is the least it can mean, and the classes by their scores. The answers are
//! checked: the certificate must hold the solution to a part in 500.

mod harness;

use everbloom::rng::Generator;
use everbloom::solve::popularity::{Class, Popularity};
use harness::table::{self, Bar, Bound};
use harness::{Options, Samples, per_item, turn};
use std::hint::black_box;

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
}

/// The classes of a Zipf distribution in random order.
fn classes(keys: u64, exponent: f64) -> Vec<Class> {
    let mut classes: Vec<Class> = (1..=keys).map(|rank| Class::new(1.0, libm::pow(rank as f64, -exponent))).collect();
    let mut generator = Generator::seeded(1);
    for last in (1..classes.len()).rev() {
        classes.swap(last, generator.below(last as u64 + 1) as usize);
    }
    classes
}

fn run(keys: u64, exponent: f64, options: &Options, rows: &mut Vec<Vec<String>>, bars: &mut Vec<Bar>) {
    let problem = Popularity::new(classes(keys, exponent), 8.0, 0..=32).expect("a problem");
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

fn score(class: &Class) -> f64 {
    class.misses / class.members
}

fn sort_scores(problem: &Popularity) -> f64 {
    let mut scores: Vec<f64> = problem.classes().iter().map(score).collect();
    per_item(scores.len(), || {
        scores.sort_unstable_by(|one, other| other.total_cmp(one));
        black_box(&scores);
    })
}

fn sort_classes(problem: &Popularity) -> f64 {
    let mut classes = problem.classes().to_vec();
    per_item(classes.len(), || {
        classes.sort_unstable_by(|one, other| score(other).total_cmp(&score(one)));
        black_box(&classes);
    })
}

fn solve(problem: &Popularity) -> f64 {
    per_item(problem.classes().len(), || {
        let certified = black_box(problem.solve());
        assert!((0.0..0.002).contains(&certified.gap()), "a gap of {}", certified.gap());
    })
}
