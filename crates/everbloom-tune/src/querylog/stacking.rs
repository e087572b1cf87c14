//! How a stacked filter divides its memory among its layers.
//!
//! Layers alternate: a filter of the members, a map of the hot negatives that pass it, a filter of the members
//! that pass that, and so on. With f the rates of the member filters, g = 2^−width those of the maps:
//!
//! ```text
//! a hot negative is in every map, so it must pass every member filter:      f1·f3·f5
//! any other key stops at the first map that does not know it:               f1·((1 − g2) + g2·f3·((1 − g4) + g4·f5))
//! bits: members·b(f1) + hot·f1·r(g2) + members·g2·b(f3) + hot·f1·f3·r(g4) + members·g2·g4·b(f5)
//! ```
//!
//! (\[Deeds et al. 2020\], with maps in place of the negative Bloom filters: these are built once, and a ribbon
//! takes 1.03 bits where a Bloom filter takes 1.44.) The first layer gets what the others leave.

use crate::ribbon::Shape;
use crate::scheme::{Design, Pair};
use everbloom::sizing::closed_forms::{bloom_bits, bloom_fpr};
use libm::{exp2, log2};
use std::f64::consts::LN_2;

/// The smallest first layer: a cache line.
const LEAST_FIRST_BITS: f64 = 512.0;
/// Steps towards the first layer's size; they shrink geometrically.
const MAX_STEPS: u32 = 60;

/// What a stacked filter is planned for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Members of the set.
    pub members: f64,
    /// Keys to be stored exactly.
    pub hot_negatives: f64,
    /// The share of negative queries that ask for them.
    pub query_share: f64,
    /// All memory.
    pub memory_bits: f64,
}

/// A design, and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The layers behind the first.
    pub design: Design,
    /// The bits that are left for the first layer.
    pub first_bits: f64,
    /// The rate of false positives among negative queries.
    pub predicted_fpr: f64,
}

impl Design {
    /// The bits of all layers but the first, given the rate of that.
    fn rear_bits(&self, demand: &Demand, first_rate: f64) -> f64 {
        let (mut members, mut negatives) = (demand.members, demand.hot_negatives * first_rate);
        let mut bits = 0.0;
        for pair in self.pairs() {
            members *= pair.map_rate();
            bits += map_bits(negatives, pair.width) + lines(members * bits_per_key(pair.target_fpr));
            negatives *= pair.target_fpr;
        }
        bits
    }

    /// What follows from the design; `None` if its rear layers leave no room for the first.
    pub fn planned(&self, demand: &Demand) -> Option<Planned> {
        let left = |first_rate: f64| demand.memory_bits - self.rear_bits(demand, first_rate);
        // More bits for the first layer let fewer negatives through, so that the rear needs less: started from
        // above, the bits that are left fall to the largest fixed point.
        let mut first_bits = left(0.0);
        for _ in 0..MAX_STEPS {
            let lower = left(rate_with(first_bits.max(1.0), demand.members));
            if lower.is_nan() || lower < LEAST_FIRST_BITS {
                return None;
            }
            if first_bits - lower < 1.0 {
                break;
            }
            first_bits = lower;
        }
        let first_rate = rate_with(first_bits, demand.members);
        let (hot, other) = self.rates(first_rate);
        let predicted_fpr = demand.query_share * hot + (1.0 - demand.query_share) * other;
        Some(Planned { design: self.clone(), first_bits, predicted_fpr })
    }

    /// The best design for the demand: coordinate descent over widths and rates, with one pair and with two.
    pub fn best(demand: &Demand) -> Option<Planned> {
        let one = descend(vec![Pair { width: 6, target_fpr: 0.01 }], demand);
        let two = descend(vec![Pair { width: 6, target_fpr: 0.1 }, Pair { width: 4, target_fpr: 0.02 }], demand);
        [one, two].into_iter().flatten().min_by(|one, other| one.predicted_fpr.total_cmp(&other.predicted_fpr))
    }
}

/// Rates that member filters are tried with: 2^−½ to 2^−14.
const RATE_STEPS: u32 = 28;

fn descend(pairs: Vec<Pair>, demand: &Demand) -> Option<Planned> {
    let mut best = Design::of(pairs).planned(demand);
    for _ in 0..6 {
        let before = best.as_ref().map(|planned| planned.predicted_fpr);
        let count = best.as_ref().map_or(0, |planned| planned.design.pairs().len());
        for at in 0..count {
            let widths = (1..=12).map(|width| (Some(width), None));
            let rates = (1..=RATE_STEPS).map(|step| (None, Some(exp2(-f64::from(step) / 2.0))));
            for (width, rate) in widths.chain(rates) {
                let mut pairs = best.as_ref().map_or(Vec::new(), |planned| planned.design.pairs().to_vec());
                pairs[at].width = width.unwrap_or(pairs[at].width);
                pairs[at].target_fpr = rate.unwrap_or(pairs[at].target_fpr);
                let tried = Design::of(pairs).planned(demand);
                best = [best, tried]
                    .into_iter()
                    .flatten()
                    .min_by(|one, other| one.predicted_fpr.total_cmp(&other.predicted_fpr));
            }
        }
        if best.as_ref().map(|planned| planned.predicted_fpr) == before {
            break;
        }
    }
    best
}

/// Whole cache lines, as they are allocated.
fn lines(bits: f64) -> f64 {
    (bits / 512.0).ceil().max(1.0) * 512.0
}

fn map_bits(keys: f64, width: u32) -> f64 {
    Shape::for_keys(keys.max(0.0) as u64, width).bits() as f64
}

/// The bits a key that keep a rate, with the better whole number of hashes.
fn bits_per_key(rate: f64) -> f64 {
    let ideal = -log2(rate);
    let bits = |hashes: f64| bloom_bits(1.0, rate, hashes.clamp(1.0, 64.0) as u32);
    bits(ideal.floor()).min(bits(ideal.ceil()))
}

/// The rate of `bits` bits for so many keys, with the better whole number of hashes.
fn rate_with(bits: f64, keys: f64) -> f64 {
    let ideal = bits / keys.max(1.0) * LN_2;
    let rate = |hashes: f64| bloom_fpr(bits as u64, keys, hashes.clamp(1.0, 64.0) as u32);
    rate(ideal.floor()).min(rate(ideal.ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand { members: 1e5, hot_negatives: 195_000.0, query_share: 0.85, memory_bits: 800_000.0 };

    #[test]
    fn a_set_with_a_log_gets_a_fifth_of_the_false_positives() {
        let planned = Design::best(&DEMAND).expect("room enough");
        let standard = rate_with(DEMAND.memory_bits, DEMAND.members);
        assert!(planned.predicted_fpr < 0.195 * standard, "{planned:?} against {standard}");
    }

    #[test]
    fn a_plan_spends_the_memory_and_no_more() {
        for (hot_negatives, query_share) in [(0.0, 0.0), (10.0, 0.5), (2e4, 0.9), (5e5, 0.99)] {
            let demand = Demand { hot_negatives, query_share, ..DEMAND };
            let planned = Design::best(&demand).expect("room enough");
            let total = planned.first_bits + planned.design.rear_bits(&demand, rate_with(planned.first_bits, 1e5));
            assert!((0.99 * 8e5..=8e5 + 1.0).contains(&total), "{total} bits of {planned:?}");
        }
    }

    #[test]
    fn where_nothing_is_asked_for_twice_a_stack_gains_nothing() {
        let demand = Demand { query_share: 0.0, ..DEMAND };
        let planned = Design::best(&demand).expect("room enough");
        assert!(planned.predicted_fpr >= rate_with(DEMAND.memory_bits, DEMAND.members), "{planned:?}");
    }

    #[test]
    fn too_little_memory_gives_no_plan() {
        assert_eq!(Design::best(&Demand { memory_bits: 600.0, ..DEMAND }), None);
        let wrong = [Pair { width: 0, target_fpr: 0.1 }, Pair { width: 17, target_fpr: 0.1 }];
        for pair in wrong.into_iter().chain([0.0, 1.0, f64::NAN].map(|target_fpr| Pair { width: 3, target_fpr })) {
            assert!(Design::new(vec![pair]).is_err(), "{pair:?}");
        }
    }
}
