//! False positives against the skew of the missing queries, by every solver.

use super::SOURCE;
use crate::experiments::common::*;
use everbloom_tune::querylog::popularity::{Allocation, Share};

/// See the module.
pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "popularity-figure-1",
    source: SOURCE,
    figure: "Figure 1",
    shows: "false positives against the skew of missing queries, by every solver, at 8 bits a key",
    printed: "False positives against the exponent of the missing queries' popularity, 1 to 2, at 8 bits per key. The real optimum is lowest; rounding it is 2 to 400 times worse, more with more skew; the paper's whole-number programme stays within about twice.",
    expected: Seconds { quick: 2.0, default: 25.0, full: None },
    seeds: 1,
    revision: 2,
    ..Experiment::of(cells, conclude)
};

const BITS_PER_KEY: f64 = 8.0;
const EXPONENTS: [f64; 5] = [1.0, 1.25, 1.5, 1.75, 2.0];
/// Twice the standard filter's number, as in the paper.
const MOST_HASHES: u8 = 10;
/// How many keys limited optimisation gives a number of their own.
const LIMIT: usize = 1000;
const EPSILON: f64 = 1.0;

const STANDARD: &str = "standard";
const REAL: &str = "real optimum (optimal+)";
const ROUNDING: &str = "rounding";
const PROGRAMME: &str = "dynamic programme (paper)";
const FIXED: &str = "greedy at half fill";
const LIMITED: &str = "limited to 1,000 keys";
const FREE: &str = "free fill, 1 to 10 hashes";
const OURS: &str = "free fill, 0 to 32 hashes";
const BOUND: &str = "lower bound, 0 to 32 hashes";
const RANGED: &str = "ranged real optimum (17)";
const FLOORS: &str = "its floors (Lemma 2)";
const BY_SCORE: &str = "limited to the 1,000 highest and lowest scores";

/// Members uniform, missing queries Zipf.
fn classes(keys: u64, exponent: f64) -> Vec<Share> {
    (1..=keys).map(|rank| Share::new(1.0, libm::pow(rank as f64, -exponent))).collect()
}

fn cells(scope: &Scope) -> Result<Vec<Cell>> {
    let keys: &[u64] = scope.pick(&[1000][..], &[1000, 10_000, 1_000_000], &[1000, 10_000, 1_000_000]);
    let all = keys.iter().flat_map(|&keys| EXPONENTS.map(|exponent| (keys, exponent)));
    let cell = |(keys, exponent)| {
        Cell::new(format!("{keys} keys, exponent {exponent}"), 0, move |_| solve(keys, exponent)).seconds(3.0)
    };
    Ok(all.map(cell).collect())
}

fn solve(keys: u64, exponent: f64) -> Result<Vec<Row>> {
    let ten = Allocation::new(classes(keys, exponent), BITS_PER_KEY, 1..=MOST_HASHES)?;
    let all = Allocation::new(classes(keys, exponent), BITS_PER_KEY, 0..=32)?.solve();
    let mut rates = vec![
        (STANDARD, ten.standard().fpr),
        (REAL, ten.real_optimum().fpr),
        (ROUNDING, ten.rounding().fpr),
        (FIXED, ten.fixed_fill().fpr),
        (LIMITED, ten.limited(LIMIT).fpr),
        (FREE, ten.solve_uncertified().fpr),
        (OURS, all.solution.fpr),
        (BOUND, all.lower_bound),
    ];
    let (ranged, floors) = ranged(&ten);
    rates.extend([(RANGED, ranged), (FLOORS, floors), (BY_SCORE, by_score(&ten, LIMIT)?)]);
    // Beyond that the programme takes minutes.
    if keys <= 10_000 {
        rates.push((PROGRAMME, ten.dynamic_programme(EPSILON)?.fpr));
    }
    let row = |(solver, fpr): (&str, f64)| {
        Row::new("rates").label("keys", keys).label("exponent", exponent).label("solver", solver).value("fpr", fpr)
    };
    Ok(rates.into_iter().map(row).collect())
}

/// Problem (17), the best real numbers of hashes within the range at half fill, and Lemma 2's floors of them, at the fill
/// that they cause. By Lagrange the numbers are c + log2(q'/p), cut off at the ends of the range; c uses up the load.
fn ranged(problem: &Allocation) -> (f64, f64) {
    let (least, most) = (f64::from(*problem.hashes().start()), f64::from(*problem.hashes().end()));
    let scores: Vec<f64> = problem.classes().iter().map(|class| libm::log2(class.misses / class.members)).collect();
    let number = |offset: f64, score: f64| (offset + score).clamp(least, most);
    let load = |offset: f64| -> f64 {
        problem.classes().iter().zip(&scores).map(|(class, score)| class.members * number(offset, *score)).sum()
    };
    let budget = problem.bits_per_key() * std::f64::consts::LN_2;
    let (mut low, mut high) = (-200.0, 200.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        (low, high) = if load(middle) <= budget { (middle, high) } else { (low, middle) };
    }
    let numbers: Vec<f64> = scores.iter().map(|score| number(low, *score)).collect();
    let optimum =
        problem.classes().iter().zip(&numbers).map(|(class, number)| class.misses * libm::exp2(-number)).sum();
    (optimum, problem.scored(numbers.iter().map(|number| number.floor() as u8).collect()).fpr)
}

/// Limited optimisation as section 6 selects: the highest and the lowest scores; all others share a number.
fn by_score(problem: &Allocation, limit: usize) -> Result<f64> {
    let classes = problem.classes();
    // Members are uniform here, so the order of scores is that of the classes, highest first.
    let (highest, rest) = classes.split_at((limit / 2).min(classes.len()));
    let (middle, lowest) = rest.split_at(rest.len().saturating_sub(limit / 2));
    let sum = |of: fn(&Share) -> f64| middle.iter().map(of).sum::<f64>();
    let mut few: Vec<Share> = highest.iter().chain(lowest).copied().collect();
    if !middle.is_empty() {
        few.push(Share::new(sum(|class| class.members), sum(|class| class.misses)));
    }
    Ok(Allocation::new(few, problem.bits_per_key(), problem.hashes())?.solve_uncertified().fpr)
}

/// The rate that a solver comes to.
fn rate(table: &Table, keys: Label, solver: &str, exponent: f64) -> Result<f64> {
    Ok(table.need("rates", "fpr", &labels![keys = keys, exponent = exponent, solver = solver])?.mean())
}

/// Lemma 2: floors at most double the rate of the ranged real optimum.
fn lemma(table: &Table) -> Result<Verdict> {
    let mut worst: f64 = 0.0;
    for keys in table.labels("rates", "keys") {
        for exponent in EXPONENTS {
            let rate = |solver: &str| rate(table, keys.clone(), solver, exponent);
            worst = worst.max(rate(FLOORS)? / rate(RANGED)?);
        }
    }
    let claim = "floors of the ranged real optimum have at most twice its rate";
    Ok(Outcome::of(worst <= 2.0).on("lemma-2", "Lemma 2, problem 17", claim).number("greatest ratio", worst))
}

/// Section 6: optimising few keys still pays, and which.
fn few_keys(table: &Table, keys: f64) -> Result<[Verdict; 2]> {
    let rate = |solver: &str, exponent: f64| rate(table, keys.into(), solver, exponent);
    let gain = |solver: &str, exponent: f64| Ok::<f64, Error>(rate(STANDARD, exponent)? / rate(solver, exponent)?);
    let claim = "limited optimisation of 1,000 objects still improves a highly skewed workload significantly";
    let pays = gain(BY_SCORE, 1.0)? >= 2.0 && gain(BY_SCORE, 2.0)? >= 2.0;
    let benefit = Outcome::graded(pays, gain(BY_SCORE, 2.0)? > 1.05)
        .on("limited-benefit", "section 6", claim)
        .number("times fewer at exponent 1", gain(BY_SCORE, 1.0)?)
        .number("at exponent 2", gain(BY_SCORE, 2.0)?)
        .number("all objects, free fill, at exponent 1", gain(FREE, 1.0)?)
        .number("at exponent 2", gain(FREE, 2.0)?)
        .remark(format!("{keys} objects; significant: half the rate or less"));
    let claim = "the objects to optimise are those of the highest and the lowest scores";
    let as_good = rate(BY_SCORE, 1.0)? <= 1.1 * rate(LIMITED, 1.0)?;
    let rule = Outcome::graded(as_good, rate(BY_SCORE, 1.0)? < rate(STANDARD, 1.0)?)
        .on("limited-rule", "section 6", claim)
        .number("FPR by highest and lowest scores, exponent 1", rate(BY_SCORE, 1.0)?)
        .number("by the most popular", rate(LIMITED, 1.0)?)
        .remark("the lowest scores of a uniform membership are objects that hardly anybody asks for");
    Ok([benefit, rule])
}

fn conclude(table: &Table, scope: &Scope) -> Result<Conclusion> {
    let caption = "Members are uniform. With ten hashes at most and half the bits set, no rate is below 2^-10; with the fill free \
                   and up to 32 hashes it comes within a tenth of what real numbers of hashes would give.";
    let mut figure = Figure::new("skew", "False positives against the skew of missing queries", caption);
    let sizes = table.labels("rates", "keys");
    for keys in &sizes {
        let mut panel = Panel::new(
            format!("{keys} keys"),
            Axis::linear("Zipf exponent of missing queries").from(0.9, 2.1),
            Axis::log("false positives, % of missing queries"),
        );
        for solver in [STANDARD, ROUNDING, PROGRAMME, LIMITED, FREE, OURS, REAL] {
            let look = if solver == REAL { Look::Reference } else { Look::LineAndMarks };
            let labels = labels![keys = keys.clone(), solver = solver];
            let series = Series::from_table(solver, look, (table, "rates"), ("exponent", "fpr", 100.0), &labels);
            panel = if series.points.is_empty() { panel } else { panel.series(series) };
        }
        figure = figure.panel(panel);
    }
    let (keys, most) = scope.pick((1000.0, 1000.0), (10_000.0, 1e6), (10_000.0, 1e6));
    let verdicts =
        [rounding(table, most)?, integers(table, keys)?, free_fill(table, keys)?, half_popularity(), errata()?];
    let conclusion = Conclusion::new().figure(figure).verdicts(verdicts).verdict(lemma(table)?);
    Ok(conclusion.verdicts(few_keys(table, most)?))
}

/// How many times the rate of a solver is that of the real optimum, at the least and the greatest skew.
fn over_real(table: &Table, keys: f64, solver: &str) -> Result<[f64; 2]> {
    let rate = |solver: &str, exponent: f64| rate(table, keys.into(), solver, exponent);
    Ok([rate(solver, 1.0)? / rate(REAL, 1.0)?, rate(solver, 2.0)? / rate(REAL, 2.0)?])
}

fn rounding(table: &Table, keys: f64) -> Result<Verdict> {
    let [least, greatest] = over_real(table, keys, ROUNDING)?;
    let claim = "rounding the real optimum raises the rate 2 to 400 times, more with more skew";
    let near = (1.8..=2.2).contains(&least) && (360.0..=440.0).contains(&greatest);
    Ok(Outcome::loosely(false, near, greatest > 10.0 * least)
        .on("rounding", "section 5.1", claim)
        .number("times at exponent 1", least)
        .number("times at exponent 2", greatest)
        .number("times at exponent 2 for 1,000 keys", over_real(table, 1000.0, ROUNDING)?[1])
        .remark(format!("{keys} keys; the paper does not say how many it has")))
}

fn integers(table: &Table, keys: f64) -> Result<Verdict> {
    let [least, greatest] = over_real(table, keys, PROGRAMME)?;
    let [_, few] = over_real(table, 1000.0, PROGRAMME)?;
    let [_, half_fill] = over_real(table, keys, FIXED)?;
    let claim = "the dynamic programme is around two times or less above the real optimum in all cases";
    let outcome = Outcome::loosely(greatest.max(least) <= 2.0, greatest.max(least) <= 2.2, few <= 2.2 && least <= 2.2);
    let remark = "with ten hashes and half the bits set no rate is below 2^-10, far above the real optimum at high skew; \
                  the programme is better than that only because its rounding leaves bits unset";
    Ok(outcome
        .on("programme", "section 5.1", claim)
        .number("times at exponent 1", least)
        .number("times at exponent 2", greatest)
        .number("times at exponent 2 for 1,000 keys", few)
        .number("times at exponent 2 if the load is used up", half_fill)
        .remark(remark))
}

fn free_fill(table: &Table, keys: f64) -> Result<Verdict> {
    let [least, greatest] = over_real(table, keys, OURS)?;
    let ten = over_real(table, keys, FREE)?[1];
    let claim = "with the fill free and 0 to 32 hashes, whole numbers come within a tenth of the real optimum";
    Ok(Outcome::of(least <= 1.1 && greatest <= 1.1)
        .on("free-fill", "section 5.1", claim)
        .ours()
        .number("times at exponent 1", least)
        .number("times at exponent 2", greatest)
        .number("times at exponent 2 with 1 to 10 hashes", ten))
}

fn half_popularity() -> Verdict {
    let harmonic = |count: u64| (1..=count).map(|rank| 1.0 / rank as f64).sum::<f64>();
    let share = harmonic(1000) / harmonic(1_000_000);
    let claim = "with Zipf's law over 10^6 objects, the 10^3 most popular have half of the popularity";
    Outcome::of((0.45..0.55).contains(&share)).on("limited", "section 6", claim).number("share", share)
}

/// Eqs. 23 and 24 beside sums done by hand, for a set of boundaries.
fn errata() -> Result<Verdict> {
    // Four objects, importance rising; l_1 = 1, l_2 = 2, l_3 = 3 of k_max = 4: object j has j hashes.
    let misses = [0.1, 0.2, 0.3, 0.4];
    let by_hand: f64 = (1..).zip(misses).map(|(hashes, share)| share * libm::exp2(-f64::from(hashes))).sum();
    let beyond = |boundary: usize| misses[boundary..].iter().sum::<f64>();
    let printed = libm::exp2(-3.0) * beyond(1);
    let mended = 0.5 - (1..=3).map(|step| libm::exp2(-(step as f64 + 1.0)) * beyond(step)).sum::<f64>();
    let outcome = if (mended - by_hand).abs() < 1e-12 { Outcome::Misprint } else { Outcome::DoesNotHold };
    Ok(outcome
        .on("equation-24", "eq. 24", "the rate is 2^-(k_max - 1) times Q of l_1")
        .numbers([("by hand", by_hand), ("as printed", printed), ("as ½ − Σ 2^−(i+1)·Q of l_i", mended)])
        .remark("the first term of eq. 23 lacks an index likewise: k_max·P of l_(k_max − 1)"))
}
