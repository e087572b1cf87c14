use super::*;
use crate::rng::Generator;

/// Members uniform, missing queries Zipf: the paper's synthetic workload (section 5.1).
fn zipf(keys: u32, exponent: f64) -> Vec<Class> {
    (1..=keys).map(|rank| Class::new(1.0, libm::pow(f64::from(rank), -exponent))).collect()
}

fn problem(classes: Vec<Class>, hashes: RangeInclusive<u8>) -> Popularity {
    Popularity::new(classes, 8.0, hashes).expect("a problem")
}

/// Shares over many powers of ten, some of them 0, some classes alike.
fn random_classes(generator: &mut Generator, count: usize) -> Vec<Class> {
    let share = |generator: &mut Generator| match generator.below(8) {
        0 => 0.0,
        1 => 1.0,
        _ => libm::exp(-generator.unit() * 12.0),
    };
    let mut classes: Vec<Class> = (0..count).map(|_| Class::new(share(generator), share(generator))).collect();
    // Some of each, so that both sums are positive.
    classes[0].members += 0.1;
    classes[count - 1].misses += 0.1;
    classes
}

/// The best of all numbers of hashes, one after another.
fn exhaustive(problem: &Popularity) -> f64 {
    let (least, most) = (*problem.hashes().start(), *problem.hashes().end());
    let mut hashes = vec![least; problem.classes().len()];
    let mut best = f64::INFINITY;
    loop {
        best = best.min(problem.scored(hashes.clone()).fpr);
        match hashes.iter().position(|&count| count < most) {
            Some(place) => {
                hashes[..place].fill(least);
                hashes[place] += 1;
            }
            None => return best,
        }
    }
}

#[test]
fn small_problems_are_within_their_certificate_of_the_best() {
    let mut generator = Generator::seeded(7);
    let mut worst: f64 = 1.0;
    let (mut solved, mut exact) = (0, 0);
    for (count, most, rounds) in [(1, 32, 40), (2, 32, 60), (3, 12, 60), (4, 8, 60), (5, 6, 40), (6, 5, 30), (7, 4, 30)]
    {
        for round in 0..rounds {
            let classes = random_classes(&mut generator, count);
            let bits = libm::exp(generator.unit() * 4.0 - 0.5);
            let problem = Popularity::new(classes, bits, (round % 2) as u8..=most).expect("a problem");
            let (best, certified) = (exhaustive(&problem), problem.solve());
            let fpr = certified.solution.fpr;
            assert!(certified.lower_bound <= best, "{count}: bound {} above {best}", certified.lower_bound);
            assert!(fpr >= best * (1.0 - 1e-12), "{count}: {fpr} is below the best {best}");
            assert!(fpr <= best * (1.0 + certified.gap()) * (1.0 + 1e-12));
            worst = worst.max(fpr / best);
            solved += 1;
            exact += u32::from(fpr <= best * (1.0 + 1e-9));
        }
    }
    assert!(exact == solved, "{exact} of {solved} are the optimum, the worst is {worst} times it");
}

#[test]
fn the_reference_figures_come_out() {
    // popularity.md: optimal+, rounding, half fill, free fill in 1..10, free fill in 0..32; 8 bits a key.
    for (keys, exponent, expected) in [
        (10_000, 1.5, [3.70e-4, 1.19e-3, 1.28e-3, 4.95e-4, 3.78e-4]),
        (1_000_000, 1.0, [4.05e-3, 4.65e-3, 4.69e-3, 4.42e-3, 4.13e-3]),
    ] {
        let (ten, all) = (problem(zipf(keys, exponent), 1..=10), problem(zipf(keys, exponent), 0..=32));
        let free = [&ten, &all].map(|problem| problem.solve_uncertified().fpr);
        let found = [ten.real_optimum().fpr, ten.rounding().fpr, ten.fixed_fill().fpr, free[0], free[1]];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.02, "{keys}, {exponent}: {found}, not {expected}");
        }
        assert!((ten.standard().fpr / 2.17e-2 - 1.0).abs() < 0.02);
    }
    let steep = problem(zipf(10_000, 2.0), 1..=10);
    for (found, expected) in
        [(steep.fixed_fill().fpr, 9.8e-4), (steep.solve_uncertified().fpr, 2.0e-5), (steep.real_optimum().fpr, 9.6e-6)]
    {
        assert!((found / expected - 1.0).abs() < 0.02, "{found}, not {expected}");
    }
}
