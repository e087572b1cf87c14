//! Closed forms and small searches that several filters share.
//!
//! Logarithms and powers come from `libm`, not from the platform, because they reach parameters:
//! the same goal must give the same filter on every machine.

use libm::{exp, expm1, log, log1p, pow};

/// The expected rate of false positives of a Bloom filter of `bits` bits and `hashes` probes that
/// holds `items` keys.
///
/// The textbook form (1 − (1 − 1/m)^kn)^k takes the share of set bits for constant; it varies, and
/// a power of it is larger on average than the power of the average. The second-order term of that
/// (Var ≈ e^−2c·(e^c − 1 − c)/m with c = kn/m) is included, so that tiny filters keep their
/// promise, too.
pub fn bloom_fpr(bits: u64, items: f64, hashes: u32) -> f64 {
    let k = f64::from(hashes);
    if items <= 0.0 {
        return 0.0;
    }
    let (fill, variance) = bloom_fill(bits, items, hashes);
    (pow(fill, k) * (1.0 + k * (k - 1.0) / 2.0 * variance / (fill * fill))).min(1.0)
}

/// The share of set bits to expect with `items` keys inside, and its variance.
pub fn bloom_fill(bits: u64, items: f64, hashes: u32) -> (f64, f64) {
    let (m, k) = (bits as f64, f64::from(hashes));
    let load = k * items / m;
    // 1 − (1 − 1/m)^kn, without cancellation where the filter is nearly empty.
    let fill = one_minus_exp(-k * items * log1p(-1.0 / m));
    (fill, (exp(-2.0 * load) * (expm1(load) - load) / m).max(0.0))
}

/// The expected rate of false positives of `lines` 512-bit blocks with one bit in each of eight words per
/// key, holding `items` keys: Σ_N Poisson(N; items/lines)·(1 − (63/64)^N)^8.
///
/// Exact but for Poisson in place of binomial, which errs upwards.
pub fn blocked_fpr(lines: u64, items: f64) -> f64 {
    poisson_mean(items / lines as f64, |keys| pow(-expm1(keys as f64 * log1p(-1.0 / 64.0)), 8.0))
}

/// The smallest number of bits at which `hashes` probes keep `target` for `items` keys, by the
/// textbook form; the caller checks it against [`bloom_fpr`].
pub fn bloom_bits(items: f64, target: f64, hashes: u32) -> f64 {
    let k = f64::from(hashes);
    // δ = (1 − e^(−kn/m))^k  ⇒  m = −kn / ln(1 − δ^(1/k))
    -k * items / log1p(-pow(target, 1.0 / k))
}

/// The load, in keys, at which a filter of `bits` bits and `hashes` probes reaches `rate`.
pub(crate) fn bloom_capacity(bits: u64, rate: f64, hashes: u32) -> u64 {
    largest(bits.saturating_mul(64), |items| bloom_fpr(bits, items as f64, hashes) <= rate)
}

/// The largest value in 0..=`most` for which a predicate, true up to some point, holds; 0 if none.
pub fn largest(most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// The largest number up to `most` at which a rate that rises is at most `target`; 0 if there is none.
pub(crate) fn largest_within(most: u64, target: f64, rate: impl Fn(u64) -> f64) -> u64 {
    let at = |number: u64| {
        let rate = rate(number);
        (rate <= target, log(rate / target))
    };
    if most == 0 || at(most).0 { most } else { edge(0, most, at).0 }
}

/// The smallest number from 1 to `most` at which a rate that falls is at most `target`.
pub(crate) fn smallest_within(most: u64, target: f64, rate: impl Fn(u64) -> f64) -> Option<u64> {
    let at = |number: u64| {
        let rate = rate(number);
        (rate > target, log(target / rate))
    };
    if most == 0 || at(most).0 { None } else { Some(edge(0, most, at).1) }
}

/// So often a straight line is followed before halves are taken, which always end.
const MOST_LINES: u32 = 24;

/// Where numbers cease to be on the low side, on which `low` is and `high` is not: the last on it and the first behind. `at`
/// tells the side and how far it is to the edge. Rates are nearly powers of sizes: a straight line between the logarithms
/// of two numbers (regula falsi, Illinois) meets the edge in about half as many steps as halving takes.
fn edge(low: u64, high: u64, at: impl Fn(u64) -> (bool, f64)) -> (u64, u64) {
    let (mut low, mut high) = ((low, f64::NEG_INFINITY), (high, f64::INFINITY));
    let mut was_low = None;
    for line in 0.. {
        if high.0 - low.0 <= 1 {
            break;
        }
        let share = low.1 / (low.1 - high.1);
        let middle = match share.is_finite() && low.0 > 0 && line < MOST_LINES {
            true => exp(log(low.0 as f64) + share * (log(high.0 as f64) - log(low.0 as f64))) as u64,
            false if line < MOST_LINES => libm::sqrt((low.0 + 1) as f64 * high.0 as f64) as u64,
            false => low.0 + (high.0 - low.0) / 2,
        };
        let middle = middle.clamp(low.0 + 1, high.0 - 1);
        let (is_low, far) = at(middle);
        // An end that stays where it is pulls the line towards itself.
        match is_low {
            true => {
                low = (middle, far);
                high.1 *= if was_low == Some(true) { 0.5 } else { 1.0 };
            }
            false => {
                high = (middle, far);
                low.1 *= if was_low == Some(false) { 0.5 } else { 1.0 };
            }
        }
        was_low = Some(is_low);
    }
    (low.0, high.0)
}

/// The smallest value in `least`..=`most` for which a predicate, true from some point on, holds.
pub fn smallest(least: u64, most: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    holds(low).then_some(low)
}

/// Beyond this mean a Poisson number is its mean to a part in a thousand, and the sum over it long.
const POISSON_LIMIT: f64 = 1e6;

/// Σ_j Poisson(j; mean) · value(j), summed outwards from the mode until the rest is negligible.
pub(crate) fn poisson_mean(mean: f64, value: impl Fn(u64) -> f64) -> f64 {
    if mean <= 0.0 || mean > POISSON_LIMIT {
        return value(mean as u64);
    }
    // Weights relative to the mode's: the sum is divided by their mass.
    let (mode, at_mode) = (mean.floor(), 1.0);
    let (mut sum, mut mass) = (0.0, 0.0);
    let mut add = |count: f64, weight: f64| {
        sum += weight * value(count as u64);
        mass += weight;
    };
    let (mut count, mut weight) = (mode, at_mode);
    while weight > at_mode * 1e-18 {
        add(count, weight);
        count += 1.0;
        weight *= mean / count;
    }
    let (mut count, mut weight) = (mode, at_mode);
    while count >= 1.0 && weight > at_mode * 1e-18 {
        weight *= count / mean;
        count -= 1.0;
        add(count, weight);
    }
    sum / mass
}

/// 1 − e^−x without cancellation.
pub fn one_minus_exp(x: f64) -> f64 {
    -expm1(-x)
}

/// The rate of false positives in a line of words with these shares of set cells, where a key has one cell in each of so many
/// neighbouring words, from one that it chooses on. A line's mean share would say too much: words are filled one cell a
/// key, so that full ones come with emptier ones.
pub fn rate_of_neighbours(fills: &[f64; 8], num_hashes: u32) -> f64 {
    let hashes = num_hashes as usize;
    let from = |start: usize| (start..start + hashes).map(|word| fills[word % fills.len()]).product::<f64>();
    (0..fills.len()).map(from).sum::<f64>() / fills.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_mean_of_known_functions() {
        for mean in [0.1, 1.0, 33.3, 5000.0] {
            assert!((poisson_mean(mean, |_| 1.0) - 1.0).abs() < 1e-12);
            assert!((poisson_mean(mean, |count| count as f64) / mean - 1.0).abs() < 1e-9, "{mean}");
            // E[x^N] = e^(mean·(x − 1)), for x close enough to 1 that the weight stays near the mode.
            let generating = poisson_mean(mean, |count| pow(0.999, count as f64));
            assert!((generating / exp(-0.001 * mean) - 1.0).abs() < 1e-6, "{mean}");
        }
    }

    #[test]
    fn poisson_mean_ends_whatever_the_mean() {
        for mean in [1e6, 1e7, 1e15, 1.8e19, f64::INFINITY] {
            assert_eq!(poisson_mean(mean, |count| if count > 1000 { 1.0 } else { 0.0 }), 1.0, "{mean}");
        }
    }

    #[test]
    fn the_rate_of_a_nearly_empty_filter_is_not_zero() {
        assert!((bloom_fpr(1 << 60, 1.0, 1) * (1u64 << 60) as f64 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn searches_find_the_edge() {
        assert_eq!(largest(100, |value| value <= 37), 37);
        assert_eq!(largest(100, |_| false), 0);
        assert_eq!(smallest(1, 100, |value| value >= 37), Some(37));
        assert_eq!(smallest(1, 100, |_| false), None);
    }

    #[test]
    fn rates_are_searched_for_in_few_steps_and_found_where_halving_finds_them() {
        let (mut taken, mut halvings) = (0, 0);
        for power in [0.3, 1.0, 3.7, 12.0] {
            for most in [1u64, 7, 1000, 1 << 40, u64::MAX >> 1] {
                for target in [1e-12, 0.01, 0.5, 3.0] {
                    let steps = std::cell::Cell::new(0);
                    // Not quite a power, as rates are not.
                    let rise = |number: u64| {
                        steps.set(steps.get() + 1);
                        let share = number as f64 / 5e7;
                        pow(share, power) / (1.0 + pow(share, power)) + 1e-9 * share
                    };
                    let found = largest_within(most, target, rise);
                    taken += steps.replace(0);
                    assert_eq!(found, largest(most, |number| rise(number) <= target), "{power} {most} {target}");
                    halvings += steps.replace(0);
                    let fall = |number: u64| 1.0 / rise(number);
                    let found = smallest_within(most, target, fall);
                    assert_eq!(found, smallest(1, most, |number| fall(number) <= target), "{power} {most} {target}");
                }
            }
        }
        assert!(3 * taken < 2 * halvings, "{taken} steps instead of {halvings}");
    }

    #[test]
    fn textbook_rates() {
        // The lectures: 8 bits and 5 or 6 hashes give about 2 %, 10 bits and 7 hashes under 1 %.
        assert!((bloom_fpr(8_000_000, 1e6, 5) - 0.0217).abs() < 1e-4);
        assert!((bloom_fpr(10_000_000, 1e6, 7) - 0.00819).abs() < 1e-5);
    }
}
