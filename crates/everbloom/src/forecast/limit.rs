//! The false negatives that no filter of a given memory can avoid.
//!
//! A filter that answers "seen" for a share 1 − β of the D keys it should know and for a share α of
//! all others tells them apart with D · d(1 − β ‖ α) bits at least, where d is the binary relative
//! entropy in bits:
//!
//! M/D ≥ (1−β)·log2((1−β)/α) + β·log2(β/(1−α))
//!
//! [`uniform_fnr`] solves this for β along a growing stream whose repeats fall evenly on the keys
//! seen so far. Where some keys are repeated more than others, a filter does better by knowing
//! those; [`static_fnr`] gives the best such choice for a set of keys that does not change. Streams
//! with locality do better than that, because they need not know all keys at once.

use libm::{exp2, log2};

use crate::stream::Stream;

/// A bound and what it is a bound of.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Limit {
    /// The smallest rate of false negatives.
    pub limit_fnr: f64,
    /// For which streams.
    pub limit_kind: &'static str,
}

/// The label of [`uniform_fnr`].
pub const UNIFORM: &str = "uniform repeats";
/// The label of [`static_fnr`].
pub const STATIC: &str = "static bound; streams with locality do better";

impl Limit {
    /// The limit for even repeats.
    pub fn uniform(limit_fnr: f64) -> Self {
        Limit { limit_fnr, limit_kind: UNIFORM }
    }

    /// The limit for a fixed set of keys.
    pub fn of_fixed_keys(limit_fnr: f64) -> Self {
        Limit { limit_fnr, limit_kind: STATIC }
    }
}

/// Slices in which a stream's growth is followed.
const SLICES: u32 = 400;

/// What no filter of this memory can avoid on a described stream: for even repeats as the stream grows, for Zipf's as if
/// the keys were fixed. None where only lags are known.
pub fn of(stream: &Stream, memory_bits: f64, fpr: f64) -> Option<Limit> {
    let (footprint, arrivals) = (stream.footprint(), stream.arrivals() as f64);
    if stream.is_even() {
        let step = arrivals / f64::from(SLICES);
        let growth = (0..SLICES).map(|index| {
            let came = footprint.distinct(step * f64::from(index + 1)) - footprint.distinct(step * f64::from(index));
            (came, step - came)
        });
        return uniform_fnr(memory_bits, fpr, growth).map(Limit::uniform);
    }
    let repeats_of = |rate: f64, seen: f64| (arrivals * rate / seen.max(1e-300) - 1.0).max(0.0);
    let keys: Vec<_> = footprint
        .classes()?
        .iter()
        .map(|band| {
            let seen = 1.0 - band.absent(arrivals);
            (repeats_of(band.rate, seen), band.keys * seen)
        })
        .collect();
    static_fnr(memory_bits, fpr, &keys).map(Limit::of_fixed_keys)
}

/// The bits per key that rates (α, β) need at least.
fn bits_per_key(fpr: f64, fnr: f64) -> f64 {
    let term = |share: f64, of: f64| if share > 0.0 { share * log2(share / of) } else { 0.0 };
    term(1.0 - fnr, fpr) + term(fnr, 1.0 - fpr)
}

/// The smallest rate of false negatives with so many bits per key.
pub fn fnr(bits: f64, fpr: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0 - fpr);
    if bits_per_key(fpr, 0.0) <= bits {
        return 0.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if bits_per_key(fpr, middle) > bits { low = middle } else { high = middle }
    }
    high
}

/// The bound for even repeats: `growth` gives, slice by slice, how many arrivals were distinct and
/// how many duplicates.
pub fn uniform_fnr(memory_bits: f64, fpr: f64, growth: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut keys, mut repeats, mut missed) = (0.0, 0.0, 0.0);
    for (distinct, duplicates) in growth {
        let midway: f64 = keys + 0.5 * distinct;
        if duplicates > 0.0 {
            missed += duplicates * fnr(memory_bits / midway.max(1.0), fpr);
        }
        keys += distinct;
        repeats += duplicates;
    }
    (repeats > 0.0).then(|| missed / repeats)
}

/// The bound for a fixed set of keys: Σ w·β is minimised subject to Σ bits ≤ memory, where w is a
/// key's share of the repeats. `keys` lists (repeats of a key, number of such keys).
///
/// By Lagrange, w = λ·log2((1−β)(1−α)/(αβ)), so every β has a closed form, and λ is found by
/// bisection.
pub fn static_fnr(memory_bits: f64, fpr: f64, keys: &[(f64, f64)]) -> Option<f64> {
    let repeats: f64 = keys.iter().map(|(repeats, count)| repeats * count).sum();
    if repeats <= 0.0 {
        return None;
    }
    let forgotten = |weight: f64, price: f64| 1.0 / (1.0 + fpr / (1.0 - fpr) * exp2(weight / price));
    let cost = |price: f64| -> f64 {
        keys.iter().map(|(weight, count)| count * bits_per_key(fpr, forgotten(*weight, price))).sum()
    };
    let (mut low, mut high) = (-40.0, 80.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if cost(exp2(middle)) > memory_bits { low = middle } else { high = middle }
    }
    let missed: f64 = keys.iter().map(|(weight, count)| weight * count * forgotten(*weight, exp2(high))).sum();
    Some(missed / repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform draws over a universe, as (distinct, duplicates) per slice, in expectation.
    fn uniform_growth(items: f64, distinct_share: f64) -> Vec<(f64, f64)> {
        let stream = Stream::uniform(items as u64, (items * distinct_share) as u64).expect("a share");
        let footprint = stream.footprint();
        let slice = items / 1000.0;
        (0..1000)
            .map(|i| {
                let distinct = footprint.distinct(f64::from(i + 1) * slice) - footprint.distinct(f64::from(i) * slice);
                (distinct, slice - distinct)
            })
            .collect()
    }

    #[test]
    fn the_specification_s_figures_at_one_bit_per_key() {
        // "49 %" stands for anything from 48.5 to 49.5 %, and the figures are rounded to 0.1 point.
        let at = |share: f64, fpr| uniform_fnr(share * 1e6, fpr, uniform_growth(1e6, share)).expect("repeats");
        for (fpr, expected) in [(0.01, 0.637), (0.1, 0.321)] {
            let (low, high) = (at(0.495, fpr) - 0.0005, at(0.485, fpr) + 0.0005);
            assert!((low..=high).contains(&expected), "between {low} and {high} at {fpr}, not {expected}");
        }
    }

    #[test]
    fn enough_memory_leaves_no_false_negatives_and_none_leaves_all() {
        assert_eq!(fnr(6.65, 0.01), 0.0);
        assert!(fnr(6.6, 0.01) > 0.0);
        assert!((fnr(0.0, 0.01) - 0.99).abs() < 1e-6);
        assert_eq!(uniform_fnr(1e3, 0.01, [(10.0, 0.0)]), None);
        assert_eq!(static_fnr(1e3, 0.01, &[(0.0, 10.0)]), None);
    }

    #[test]
    fn the_static_bound_equals_the_formula_when_all_keys_are_alike() {
        for bits in [0.5, 1.0, 4.0] {
            let bound = static_fnr(bits * 1000.0, 0.01, &[(3.0, 1000.0)]).expect("repeats");
            assert!((bound - fnr(bits, 0.01)).abs() < 1e-6, "{bound} at {bits} bits");
        }
    }

    #[test]
    fn skew_lowers_the_static_bound() {
        let even = static_fnr(1000.0, 0.01, &[(2.0, 1000.0)]).expect("repeats");
        let skewed = static_fnr(1000.0, 0.01, &[(1.0, 900.0), (11.0, 100.0)]).expect("repeats");
        assert!(skewed < even, "{skewed} with skew, {even} without");
    }
}
