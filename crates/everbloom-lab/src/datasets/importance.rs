//! The thesis's artificial sets: uniform draws whose keys matter differently.
//!
//! Its "70 % duplicates" is two sets. T (Tables 3–4, Figure 3) is 100,000 draws from 75,600 keys,
//! 44.5 % repeats; D (Figures 4–6) is 100,000 draws from 31,250 keys, 70 % repeats. Other lengths
//! keep the ratio of draws to keys. Importance is uniform in 1..50 in the linear sets; in the
//! exponential ones, importance over the index is an exponential curve, that is, log-uniform.

use super::uniform::{draws, universe_for};
use super::{Arrival, Arrivals, Request};
use everbloom::{Hashing, Key as _, Result};
use libm::{exp, floor, log};

/// The largest importance.
pub(super) const MAX: u32 = 50;

const KEYS_PER_ITEM_T: f64 = 0.756;
const KEYS_PER_ITEM_D: f64 = 0.3125;

/// A uniform number in 0..1 that belongs to a key.
fn unit_of(hashing: &Hashing, key: u64) -> f64 {
    (key.hash_with(hashing).high >> 11) as f64 / (1u64 << 53) as f64
}

fn linear(unit: f64) -> u32 {
    1 + (unit * f64::from(MAX)) as u32
}

/// ⌊51^unit⌋: 1 to 50, each as often as the logarithm's steps are wide.
fn exponential(unit: f64) -> u32 {
    floor(exp(unit * log(f64::from(MAX + 1)))).clamp(1.0, f64::from(MAX)) as u32
}

fn open(request: &Request, keys_per_item: f64, importance: fn(f64) -> u32) -> Result<Arrivals> {
    request.without_exponent()?;
    let items = request.items();
    let universe = match request.distinct {
        Some(share) => universe_for(items, share)?,
        None => ((items as f64 * keys_per_item).round() as u64).max(1),
    };
    let hashing = Hashing::seeded(request.seed);
    let arrival = move |key| Arrival { key, importance: importance(unit_of(&hashing, key)) };
    Ok(Box::new(draws(items, universe, request.seed).map(arrival)))
}

pub(super) fn open_linear(request: &Request) -> Result<Arrivals> {
    open(request, KEYS_PER_ITEM_T, linear)
}

pub(super) fn open_linear_70(request: &Request) -> Result<Arrivals> {
    open(request, KEYS_PER_ITEM_D, linear)
}

pub(super) fn open_exponential(request: &Request) -> Result<Arrivals> {
    open(request, KEYS_PER_ITEM_T, exponential)
}

pub(super) fn open_exponential_70(request: &Request) -> Result<Arrivals> {
    open(request, KEYS_PER_ITEM_D, exponential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importances_are_spread_as_their_names_say() {
        let hashing = Hashing::seeded(0);
        let keys = 100_000u64;
        let share = |importance: fn(f64) -> u32, most: u32| {
            (0..keys).filter(|&key| importance(unit_of(&hashing, key)) <= most).count() as f64 / keys as f64
        };
        let (low, expected) = (share(exponential, 5), (6.0f64).ln() / (51.0f64).ln());
        let sigma = (0.25 / keys as f64).sqrt();
        assert!((share(linear, 5) - 0.1).abs() < 4.0 * sigma);
        assert!((low - expected).abs() < 4.0 * sigma, "{low}, not {expected}");
    }
}
