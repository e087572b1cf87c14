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
//! those; [`static_fnr`] gives the best such choice for a set of keys that does not change, and
//! [`drawn_fnr`] that choice at every time of a stream of independent draws.
//!
//! On a stream with locality, where keys come back soon or never, none of them is a limit: a filter
//! need not know all keys at once.

use libm::{exp2, log2};

use crate::Stream;
use crate::stream::RateBand;

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
/// The label of [`drawn_fnr`].
pub const DRAWN: &str = "of a stream of independent draws";

impl Limit {
    /// The limit for even repeats.
    pub fn uniform(limit_fnr: f64) -> Self {
        Limit { limit_fnr, limit_kind: UNIFORM }
    }

    /// The limit for independent draws.
    pub fn drawn(limit_fnr: f64) -> Self {
        Limit { limit_fnr, limit_kind: DRAWN }
    }
}

/// Slices in which a stream's growth is followed.
const SLICES: u32 = 400;

/// What no filter of this memory can avoid on a described stream of independent draws, even or by Zipf's law, as the stream
/// grows. None where only lags are known.
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
    drawn_fnr(memory_bits, fpr, footprint.classes()?, arrivals).map(Limit::drawn)
}

/// Slices in which the growth of a stream of uneven draws is followed, each at equal ratios of time: most keys come early.
const SLICES_OF_DRAWN: i32 = 64;

/// The bound for independent draws: at every time, the best choice among the keys that have come, by how often they come.
pub fn drawn_fnr(memory_bits: f64, fpr: f64, bands: &[RateBand], arrivals: f64) -> Option<f64> {
    let repeats = arrivals - bands.iter().map(|band| band.keys * (1.0 - band.absent(arrivals))).sum::<f64>();
    let (mut missed, mut start) = (0.0, 0.0);
    for slice in 1..=SLICES_OF_DRAWN {
        let end = arrivals * exp2(f64::from(slice - SLICES_OF_DRAWN) / 6.0);
        // At the start of a slice there are fewest keys and repeats, so that the bound is not too high.
        let keys: Vec<_> = bands.iter().map(|band| (band.rate, band.keys * (1.0 - band.absent(start)))).collect();
        let share: f64 = keys.iter().map(|(rate, count)| rate * count).sum();
        missed += share * (end - start) * static_fnr(memory_bits, fpr, &keys).unwrap_or(0.0);
        start = end;
    }
    (repeats > 0.0).then(|| missed / repeats)
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

/// Whether keys come as if they were drawn evenly from a universe, and not so that each comes back soon or never: with
/// locality, new ones come as fast in the second half as in the first.
pub fn grows_as_drawn(growth: impl IntoIterator<Item = (f64, f64)>) -> bool {
    let growth: Vec<(f64, f64)> = growth.into_iter().collect();
    let sums =
        |part: &[(f64, f64)]| part.iter().fold((0.0, 0.0), |sum, slice| (sum.0 + slice.0, sum.1 + slice.0 + slice.1));
    let (half, whole) = (sums(&growth[..growth.len() / 2]), sums(&growth));
    let Ok(stream) = Stream::uniform(whole.1 as u64, whole.0 as u64) else { return false };
    let wanted = stream.footprint().distinct(half.1);
    // New keys vary by less than their root; that is compared with what locality would make of them.
    let local = whole.0 * half.1 / whole.1.max(1.0);
    (half.0 - wanted).abs() <= (4.0 * whole.0.sqrt()).max(0.1 * (wanted - local).abs())
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
    fn the_bound_of_even_draws_is_that_of_even_repeats() {
        let stream = Stream::uniform(100_000, 50_000).expect("a stream");
        for bits in [2e4, 1e5] {
            let even = of(&stream, bits, 0.01).expect("a limit").limit_fnr;
            let footprint = stream.footprint();
            let drawn = drawn_fnr(bits, 0.01, footprint.classes().expect("draws"), 1e5).expect("a limit");
            // A slice is an eighth of the time so far, with the keys of its start: of them and of the repeats there are up
            // to an eighth fewer, and misses are both together.
            assert!(drawn <= even && drawn > 0.875 * 0.875 * even, "{drawn} and {even} at {bits} bits");
        }
    }

    #[test]
    fn a_filter_that_knows_the_hottest_keys_of_a_zipf_stream_does_not_beat_the_bound() {
        // Told which keys are hottest, it keeps as many as have room at the fewest bits that the rate allows.
        let (stream, fpr, bits) = (Stream::zipf_of(100_000, 1.0).expect("a stream"), 0.01, 2e5);
        let limit = of(&stream, bits, fpr).expect("a limit");
        assert_eq!(limit.limit_kind, DRAWN);
        let (footprint, arrivals) = (stream.footprint(), stream.arrivals() as f64);
        let (mut room, mut repeats, mut missed) = (bits / -log2(fpr), 0.0, 0.0);
        for band in footprint.classes().expect("draws") {
            let kept = room.min(band.keys);
            room -= kept;
            let each = arrivals * band.rate - (1.0 - band.absent(arrivals));
            (repeats, missed) = (repeats + band.keys * each, missed + (band.keys - kept) * each * (1.0 - fpr));
        }
        let found = missed / repeats;
        assert!(limit.limit_fnr <= found && limit.limit_fnr > 0.0, "{limit:?}, but {found} can be had");
    }

    #[test]
    fn repeats_that_come_at_once_are_not_called_even() {
        assert!(grows_as_drawn(uniform_growth(1e6, 0.5)));
        assert!(!grows_as_drawn((0..1000).map(|_| (500.0, 500.0))), "every key twice in succession");
        assert!(!grows_as_drawn([]));
    }

    #[test]
    fn skew_lowers_the_static_bound() {
        let even = static_fnr(1000.0, 0.01, &[(2.0, 1000.0)]).expect("repeats");
        let skewed = static_fnr(1000.0, 0.01, &[(1.0, 900.0), (11.0, 100.0)]).expect("repeats");
        assert!(skewed < even, "{skewed} with skew, {even} without");
    }
}
