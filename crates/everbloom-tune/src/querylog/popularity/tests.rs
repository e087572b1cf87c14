use super::*;
use everbloom_cells::key::Generator;

/// Members uniform, negative queries Zipf: the paper's synthetic workload (section 5.1).
fn zipf(keys: u32, exponent: f64) -> Vec<Share> {
    (1..=keys).map(|rank| Share::new(1.0, libm::pow(f64::from(rank), -exponent))).collect()
}

fn problem(classes: Vec<Share>, hashes: RangeInclusive<u8>) -> Allocation {
    Allocation::new(classes, 8.0, hashes).expect("a problem")
}

/// Shares over many powers of ten, some of them 0, some classes alike.
fn random_classes(generator: &mut Generator, count: usize) -> Vec<Share> {
    let share = |generator: &mut Generator| match generator.below(8) {
        0 => 0.0,
        1 => 1.0,
        _ => libm::exp(-generator.unit() * 12.0),
    };
    let mut classes: Vec<Share> = (0..count).map(|_| Share::new(share(generator), share(generator))).collect();
    // Some of each, so that both sums are positive.
    classes[0].members += 0.1;
    classes[count - 1].misses += 0.1;
    classes
}

/// The best of all numbers of hashes, one after another.
fn exhaustive(problem: &Allocation) -> f64 {
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
            let problem = Allocation::new(classes, bits, (round % 2) as u8..=most).expect("a problem");
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

/// The solution of every algorithm that gives one, by name.
fn ladder(problem: &Allocation) -> Vec<(&'static str, Solution)> {
    let mut ladder = vec![
        ("standard", problem.standard()),
        ("rounding", problem.rounding()),
        ("half fill", problem.fixed_fill()),
        ("limited", problem.limited(problem.classes().len() / 2)),
    ];
    ladder.extend(problem.exhaustive_partition().map(|solution| ("partition", solution)));
    ladder.extend(problem.dynamic_programme(0.5).map(|solution| ("programme", solution)));
    let in_range = |count: &u8| problem.hashes().contains(count);
    ladder.retain(|(_, solution)| solution.hashes.iter().all(in_range));
    ladder
}

#[test]
fn no_rival_is_better_and_none_is_below_the_bound() {
    let mut generator = Generator::seeded(11);
    let mut met = std::collections::BTreeMap::new();
    for round in 0..300usize {
        let classes = random_classes(&mut generator, 2 + round % 17);
        let bits = libm::exp(generator.unit() * 2.5 + 0.5);
        let problem = Allocation::new(classes, bits, (round % 2) as u8..=[4, 6, 8][round % 3]).expect("a problem");
        let certified = problem.solve();
        for (name, rival) in ladder(&problem) {
            *met.entry(name).or_insert(0) += 1;
            assert!(certified.solution.fpr <= rival.fpr * (1.0 + 1e-9), "{name} is better: {problem:?}");
            assert!(certified.lower_bound <= rival.fpr, "{name} is below the bound: {problem:?}");
        }
        assert!(problem.real_optimum().fpr <= certified.solution.fpr * (1.0 + 1e-9));
    }
    assert!(met.len() == 6 && met.values().all(|&count| count > 50), "rivals too rarely met: {met:?}");
}

#[test]
fn many_small_classes_are_certified_to_a_part_in_a_thousand() {
    let mut generator = Generator::seeded(3);
    for round in 0..20u32 {
        // Shares over a factor of e^6, so that no class is more than a part in a hundred.
        let mut share = || libm::exp(-generator.unit() * 6.0);
        let classes = (0..5000).map(|_| Share::new(share(), share())).collect();
        let problem = Allocation::new(classes, f64::from(2 + round), (round % 2) as u8..=32).expect("a problem");
        let gap = problem.solve().gap();
        // What the bound is driven to, and one step of one class.
        assert!((0.0..0.0015).contains(&gap), "{round}: a gap of {gap}");
    }
}

#[test]
fn a_solution_made_worse_falls_out_of_its_certificate() {
    let problem = problem(zipf(10_000, 1.5), 1..=10);
    let certified = problem.solve();
    let (hashes, allowed) = (&certified.solution.hashes, 0.0015);
    let is_certified = |solution: Solution| {
        let certified = Certified { solution, lower_bound: certified.lower_bound };
        (0.0..allowed).contains(&certified.gap())
    };
    assert!(is_certified(certified.solution.clone()));
    let worse = |change: &dyn Fn(usize, u8) -> u8| {
        let changed = hashes.iter().enumerate().map(|(class, &count)| change(class, count).clamp(1, 10));
        problem.scored(changed.collect())
    };
    assert!(!is_certified(worse(&|_, count| count + 1)), "one hash more for all");
    assert!(!is_certified(worse(&|_, count| count - 1)), "one hash fewer for all");
    assert!(!is_certified(worse(&|class, count| if class == 0 { count - 1 } else { count })), "the hottest one fewer");
    assert!(!is_certified(worse(&|class, count| count + u8::from(class % 20 == 0))), "a twentieth one more");
    assert!(!is_certified(problem.fixed_fill()) && !is_certified(problem.rounding()));
}

#[test]
fn the_programme_keeps_its_ratio_to_the_best_partition() {
    let mut generator = Generator::seeded(5);
    for _ in 0..60 {
        let problem = Allocation::new(random_classes(&mut generator, 12), 8.0, 1..=5).expect("a problem");
        // At half fill, as both count.
        let at_half = |hashes: &[u8]| -> f64 {
            let rate = |(class, &count): (&Share, &u8)| class.misses * libm::exp2(-f64::from(count));
            problem.classes().iter().zip(hashes).map(rate).sum()
        };
        let partition = problem.exhaustive_partition().expect("12 classes are few");
        for epsilon in [0.01, 0.5, 2.0] {
            let programme = problem.dynamic_programme(epsilon).expect("small tables");
            let (found, best) = (at_half(&programme.hashes), at_half(&partition.hashes));
            assert!(found <= best * (1.0 + epsilon / 2.0) * (1.0 + 1e-12), "ε {epsilon}: {found}, best {best}");
            assert!(found >= best * (1.0 - 1e-12), "ε {epsilon}: {found} is below the best {best}");
            assert!(programme.load <= 8.0 * std::f64::consts::LN_2 + 1e-12);
        }
    }
}

#[test]
fn searches_that_would_not_end_are_refused() {
    let large = problem(zipf(10_000, 1.0), 1..=10);
    let refusal = large.exhaustive_partition().expect_err("far too many partitions").to_string();
    assert!(refusal.contains("10000 classes"), "{refusal}");
    assert!(problem(zipf(100, 1.0), 1..=32).dynamic_programme(1.0).is_err());
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        assert!(large.dynamic_programme(epsilon).is_err(), "{epsilon}");
    }
}

#[test]
fn problems_that_make_no_sense_are_refused() {
    let one = || vec![Share::new(1.0, 1.0)];
    for classes in [
        vec![],
        vec![Share::new(0.0, 1.0)],
        vec![Share::new(1.0, 0.0)],
        vec![Share::new(-1.0, 1.0), Share::new(2.0, 1.0)],
        vec![Share::new(f64::NAN, 1.0)],
        vec![Share::new(1.0, f64::INFINITY)],
        vec![Share::new(f64::MAX, 1.0), Share::new(f64::MAX, 1.0)],
    ] {
        assert!(Allocation::new(classes.clone(), 8.0, 1..=10).is_err(), "{classes:?}");
    }
    for bits in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Allocation::new(one(), bits, 1..=10).is_err(), "{bits}");
    }
    for (least, most) in [(0, 0), (1, 33), (5, 4)] {
        assert!(Allocation::new(one(), 8.0, least..=most).is_err(), "{least}..={most}");
    }
}

#[test]
fn extreme_problems_are_solved_all_the_same() {
    let tiny = f64::MIN_POSITIVE;
    for classes in [
        vec![Share::new(1.0, 1.0)],
        vec![Share::new(1.0, 0.0), Share::new(0.0, 1.0)],
        vec![Share::new(1.0, tiny), Share::new(tiny, 1.0)],
        vec![Share::new(1e-300, 1.0), Share::new(1.0, 1e-300), Share::new(1e-9, 1e-9)],
        vec![Share::new(1.0, 1.0); 1000],
    ] {
        for bits in [1e-9, 0.5, 8.0, 1e9] {
            for (least, most) in [(0, 1), (0, 32), (1, 32), (7, 7), (32, 32)] {
                let problem = Allocation::new(classes.clone(), bits, least..=most).expect("a problem");
                let Certified { solution, lower_bound } = problem.solve();
                assert!((0.0..=1.0 + 1e-12).contains(&solution.fpr), "{classes:?} {bits} {least}: {}", solution.fpr);
                assert!(lower_bound.is_finite() && lower_bound <= solution.fpr, "{classes:?} {bits} {least} {most}");
                assert!(solution.hashes.iter().all(|count| (least..=most).contains(count)));
                assert_eq!(solution, problem.scored(solution.hashes.clone()));
                assert!(ladder(&problem).iter().all(|(_, rival)| rival.fpr.is_finite()));
            }
        }
    }
}

#[test]
fn equal_distributions_get_the_standard_filter() {
    let classes = (1..=100).map(|rank| Share::new(1.0 / f64::from(rank), 1.0 / f64::from(rank))).collect();
    let problem = problem(classes, 1..=32);
    let (certified, standard) = (problem.solve(), problem.standard());
    assert!(certified.solution.fpr <= standard.fpr && certified.solution.fpr > 0.98 * standard.fpr);
}

#[test]
fn real_filters_err_as_predicted() {
    use everbloom::{Hashing, Key as _};
    use everbloom_cells::bits::Bits;
    // Two members of every key's class, so that the load is as expected; queries for other keys of the classes.
    let (keys, copies, filters, queries) = (10_000u32, 2u32, 8u64, 400_000u64);
    let num_bits = u64::from(keys * copies) * 8;
    let shares = zipf(keys, 1.5);
    let misses: Vec<f64> = shares
        .iter()
        .scan(0.0, |sum, class| {
            *sum += class.misses;
            Some(*sum)
        })
        .collect();
    for range in [1..=10, 0..=32] {
        let problem = problem(shares.clone(), range);
        let solution = problem.solve_uncertified();
        let mut generator = Generator::seeded(17);
        let mut wrong = 0;
        for seed in 0..filters {
            let hashing = Hashing::seeded(seed);
            let probes = |class: u32, number: u64| {
                let hash = (u64::from(class) << 32 | number).hash_with(&hashing);
                hash.probes(num_bits).take(usize::from(solution.hashes[class as usize]))
            };
            let mut bits = Bits::new(num_bits).expect("memory");
            for (class, copy) in (0..keys).flat_map(|class| (0..copies).map(move |copy| (class, copy))) {
                probes(class, u64::from(copy)).for_each(|position| {
                    bits.set(position);
                });
            }
            for query in 0..queries {
                let at = generator.unit() * misses[misses.len() - 1];
                let class = misses.partition_point(|sum| *sum < at) as u32;
                wrong += u64::from(probes(class, 1000 + query).all(|position| bits.get(position)));
            }
        }
        let asked = (filters * queries) as f64;
        let measured = wrong as f64 / asked;
        let sigma = (solution.fpr / asked + fill_variance(&problem, &solution, num_bits) / filters as f64).sqrt();
        assert!((measured - solution.fpr).abs() < 4.0 * sigma, "{measured}, not {} ± {sigma}", solution.fpr);
    }
}

/// How much the rate varies because the share of set bits does.
fn fill_variance(problem: &Allocation, solution: &Solution, num_bits: u64) -> f64 {
    let load = solution.load / problem.bits_per_key();
    let variance = exp(-2.0 * load) * (libm::expm1(load) - load) / num_bits as f64;
    let rates = powers(solution.fill);
    let slope = |(class, &count): (&Share, &u8)| match count {
        0 => 0.0,
        count => class.misses * f64::from(count) * rates[usize::from(count) - 1],
    };
    let slope: f64 = problem.classes().iter().zip(&solution.hashes).map(slope).sum();
    slope * slope * variance
}

#[test]
fn tiny_filters_get_fewer_hashes() {
    use everbloom_cells::bits::Bits;
    assert_eq!((hashes_within(0), hashes_within(1), hashes_within(u64::MAX)), (1, 1, MAX_HASHES));
    // Half-full filters of 1,024 bits, the rate of their average fill beside the average of their rates.
    let (num_bits, hashes) = (1024u64, u32::from(hashes_within(1024)));
    assert!((15..20).contains(&hashes), "{hashes}");
    let mut generator = Generator::seeded(1);
    let fills: Vec<f64> = (0..20_000)
        .map(|_| {
            let mut bits = Bits::new(num_bits).expect("memory");
            (0..710).for_each(|_| {
                bits.set(generator.below(num_bits));
            });
            bits.fill()
        })
        .collect();
    let mean = |power: u32| fills.iter().map(|fill| fill.powi(power as i32)).sum::<f64>() / fills.len() as f64;
    let excess = mean(hashes) / mean(1).powi(hashes as i32);
    assert!((1.03..1.06).contains(&excess), "{excess}");
}
