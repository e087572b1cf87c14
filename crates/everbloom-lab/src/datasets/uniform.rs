//! Uniform draws, and no draws at all: the two ends of repetition.

use super::{Arrival, Arrivals, Request, unreachable_share};
use everbloom::Result;
use everbloom_cells::key::Generator;
use libm::{expm1, log1p};

/// The share of distinct arrivals of the reference stream.
const DEFAULT_SHARE: f64 = 0.49;

/// Expected number of distinct keys among `items` uniform draws from `universe`.
fn expected_distinct(items: f64, universe: f64) -> f64 {
    universe * -expm1(items * log1p(-1.0 / universe))
}

/// The universe from which `items` uniform draws have a share of `share` distinct ones.
pub fn universe_for(items: u64, share: f64) -> Result<u64> {
    let (items, wanted) = (items as f64, items as f64 * share);
    if wanted < 2.0 {
        return Ok(1);
    }
    let (mut low, mut high) = (1.0f64, 1e18);
    if share >= 1.0 || expected_distinct(items, high) < wanted {
        return Err(unreachable_share(share, "draws repeat now and then", "ask for less, or take all_distinct"));
    }
    // A relative width of 2^-60 is beyond what doubles tell apart, from any start.
    for _ in 0..120 {
        let middle = 0.5 * (low + high);
        if expected_distinct(items, middle) < wanted { low = middle } else { high = middle }
    }
    Ok(high.round() as u64)
}

/// Uniform draws from `0..universe`, all of importance 1.
pub(super) fn draws(items: u64, universe: u64, seed: u64) -> impl Iterator<Item = u64> + Send {
    let mut generator = Generator::seeded(seed);
    (0..items).map(move |_| generator.below(universe))
}

pub(super) fn open(request: &Request) -> Result<Arrivals> {
    request.without_exponent()?;
    let universe = universe_for(request.items(), request.distinct.unwrap_or(DEFAULT_SHARE))?;
    Ok(Box::new(draws(request.items(), universe, request.seed).map(|key| Arrival { key, importance: 1 })))
}

pub(super) fn open_all_distinct(request: &Request) -> Result<Arrivals> {
    request.without_exponent()?;
    if request.distinct.is_some_and(|share| share < 1.0) {
        return Err(unreachable_share(request.distinct.unwrap_or(1.0), "no key comes twice", "take uniform"));
    }
    Ok(Box::new((0..request.items()).map(|key| Arrival { key, importance: 1 })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_universe_gives_the_share() {
        for (items, share) in [(100_000, 0.76), (10_000_000, 0.49), (1_000_000_000, 0.1), (1000, 0.001)] {
            let universe = universe_for(items, share).expect("a share");
            let expected = expected_distinct(items as f64, universe as f64) / items as f64;
            assert!((expected - share).abs() < 1.0 / items as f64 + 1e-9, "{expected} from {universe}, not {share}");
        }
    }
}
