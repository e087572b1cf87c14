//! How many cells and hashes a filter with Bloom's probing needs.
//!
//! Shared by every filter that sets `num_hashes` of `num_cells` cells per key and never clears them
//! unasked: the classic filter (a cell is a bit) and the counting one (a cell is a counter).

pub mod closed_forms;

use self::closed_forms::{bloom_bits, bloom_capacity, bloom_fill, bloom_fpr, largest, smallest};
use crate::cells::buffer::LINE_BITS;
use crate::format::golomb::code_bits;
use crate::key::KeyHash;
use crate::promise::{
    Error, Goal, LEAST_RATE_OF_A_PART, MAX_ITEMS, MAX_MEMORY_BITS, Promise, Result, Spec, Status, rate_text, size_text,
};
use libm::{log, log1p, pow};
use std::f64::consts::LN_2;

/// More probes than this never help: at 64 the rate is below 2^−64.
pub const MAX_HASHES: u32 = 64;

/// A number of cells and of probes into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Cells in all.
    pub num_cells: u64,
    /// Probes per key.
    pub num_hashes: u32,
}

/// What a filter that fills up promises, whose rate rises with the keys inside: the asked rate for as many keys as it is
/// kept for, if those that are expected are among them; otherwise what it comes to with these, or with as many as it is
/// made for if nothing is asked. `made_for_and_most` are these keys and the most to look at.
pub(crate) fn promise_until(
    items: Option<u64>,
    rate: Option<f64>,
    made_for_and_most: [u64; 2],
    rate_at: impl Fn(u64) -> f64,
) -> Promise {
    let [made_for, most] = made_for_and_most;
    let capacity = rate.map(|rate| (rate, largest(most.min(MAX_ITEMS), |items| rate_at(items) <= rate)));
    match (capacity, items) {
        (Some((rate, capacity)), items) if capacity >= items.unwrap_or(1) => Promise::until(capacity, rate),
        (_, items) => {
            let items = items.unwrap_or(made_for);
            Promise::until(items, rate_at(items))
        }
    }
}

/// The whole numbers of hashes next to the real optimum.
fn hashes_around(ideal: f64) -> [u32; 2] {
    [ideal.floor(), ideal.ceil()].map(|hashes| (hashes as u32).clamp(1, MAX_HASHES))
}

impl Size {
    /// So many cells and probes.
    pub fn new(num_cells: u64, num_hashes: u32) -> Result<Self> {
        Size { num_cells, num_hashes }.checked()
    }

    /// The fewest cells that keep `target_fpr` for `expected_items` keys.
    pub fn for_rate(expected_items: u64, target_fpr: f64) -> Result<Self> {
        Goal::new().expected_items(expected_items).checked()?;
        // It may be a part of a filter: what is asked of the whole was checked.
        if !(target_fpr > LEAST_RATE_OF_A_PART && target_fpr < 1.0) {
            let needed = format!("above {LEAST_RATE_OF_A_PART:e} and below 1");
            return Err(Error::parameter("target_fpr", target_fpr, needed, "try 1e-12"));
        }
        let [one, other] = hashes_around(-log(target_fpr) / LN_2)
            .map(|num_hashes| Self::for_rate_and_hashes(expected_items as f64, target_fpr, num_hashes));
        (if one.num_cells <= other.num_cells { one } else { other }).checked()
    }

    fn for_rate_and_hashes(items: f64, target_fpr: f64, num_hashes: u32) -> Self {
        let mut num_cells = bloom_bits(items, target_fpr, num_hashes).ceil().max(1.0) as u64;
        // The corrected form asks for a little more than the textbook's, most for tiny filters.
        while num_cells < MAX_MEMORY_BITS && bloom_fpr(num_cells, items, num_hashes) > target_fpr {
            num_cells += (num_cells / 1_000_000).max(1);
        }
        Size { num_cells, num_hashes }
    }

    /// The size that compresses best among those that keep `target_fpr` for `expected_items` keys in at
    /// most `most` cells.
    ///
    /// One hash and a sparse filter would always win \[Mitzenmacher 2001\]; the cells decide how far one
    /// can go there.
    pub(crate) fn for_wire(expected_items: u64, target_fpr: f64, most: u64) -> Result<Self> {
        let usual = Self::for_rate(expected_items, target_fpr)?;
        let sizes = (1..usual.num_hashes)
            .map(|num_hashes| Self::for_rate_and_hashes(expected_items as f64, target_fpr, num_hashes))
            .filter(|size| size.num_cells <= most.min(MAX_MEMORY_BITS));
        let by_size = |one: &Self, other: &Self| {
            one.compressed_bits(expected_items).total_cmp(&other.compressed_bits(expected_items))
        };
        Ok(sizes.chain([usual]).min_by(by_size).unwrap_or(usual))
    }

    /// The size with the lowest rate for `expected_items` keys among those that `fits` accepts; `None` if it does
    /// not even accept one cell.
    ///
    /// With a given number of hashes, more cells keep a lower rate and take more room, so the most cells that fit
    /// are the best.
    pub(crate) fn lowest_rate(expected_items: u64, fits: impl Fn(Self) -> bool) -> Option<Self> {
        let best = |num_hashes| Size {
            num_cells: largest(MAX_MEMORY_BITS, |num_cells| fits(Size { num_cells, num_hashes })),
            num_hashes,
        };
        let by_rate = |one: &Self, other: &Self| {
            one.predicted_fpr(expected_items).total_cmp(&other.predicted_fpr(expected_items))
        };
        (1..=MAX_HASHES).map(best).filter(|size| size.num_cells > 0).min_by(by_rate)
    }

    /// The compressed length of the bits once `items` keys are inside.
    pub(crate) fn compressed_bits(self, items: u64) -> f64 {
        self.num_cells as f64 * code_bits(self.fill(items).0)
    }

    /// The share of set cells to expect once `items` keys are inside, and its variance.
    pub fn fill(self, items: u64) -> (f64, f64) {
        bloom_fill(self.num_cells, items as f64, self.num_hashes)
    }

    /// The best number of hashes for `expected_items` keys in `num_cells` cells.
    pub fn for_cells(num_cells: u64, expected_items: u64) -> Result<Self> {
        let around = hashes_around(num_cells as f64 / expected_items.max(1) as f64 * LN_2);
        let [one, other] = around.map(|num_hashes| Size { num_cells, num_hashes });
        let better = one.predicted_fpr(expected_items) <= other.predicted_fpr(expected_items);
        (if better { one } else { other }).checked()
    }

    /// The number of hashes at which `num_cells` cells hold most keys before the rate exceeds `target_fpr`.
    pub(crate) fn for_cells_and_rate(num_cells: u64, target_fpr: f64) -> Result<Self> {
        let around = hashes_around(-log(target_fpr) / LN_2).map(|num_hashes| Size { num_cells, num_hashes });
        let [one, other] = around.map(|size| (size.capacity(target_fpr), size));
        let (capacity, size) = if one.0 >= other.0 { one } else { other };
        if capacity == 0 {
            return Err(Error::Infeasible {
                wanted: format!("a rate of {}", rate_text(target_fpr)),
                reason: format!("{num_cells} cells cannot hold a single key at it"),
                remedy: format!("give at least {} cells", Self::for_rate(1, target_fpr)?.num_cells),
            });
        }
        size.checked()
    }

    /// The size, if it is possible.
    pub fn checked(self) -> Result<Self> {
        if !(1..=MAX_MEMORY_BITS).contains(&self.num_cells) {
            return Err(Error::parameter(
                "num_cells",
                self.num_cells,
                format!("between 1 and {MAX_MEMORY_BITS}"),
                "about 10 cells a key keep 1 %",
            ));
        }
        if !(1..=MAX_HASHES).contains(&self.num_hashes) {
            return Err(Error::parameter(
                "num_hashes",
                self.num_hashes,
                format!("between 1 and {MAX_HASHES}"),
                "7 hashes and 10 cells a key keep 1 %",
            ));
        }
        Ok(self)
    }

    /// The rate to expect once `items` keys are inside.
    pub fn predicted_fpr(self, items: u64) -> f64 {
        bloom_fpr(self.num_cells, items as f64, self.num_hashes)
    }

    /// (rate of false positives, share of zero cells) with `items` keys inside.
    pub fn state(self, items: f64) -> (f64, f64) {
        let zeros = libm::exp(items * f64::from(self.num_hashes) * log1p(-1.0 / self.num_cells as f64));
        (bloom_fpr(self.num_cells, items, self.num_hashes), zeros)
    }

    /// The most keys at which the rate stays within `target_fpr`.
    pub fn capacity(self, target_fpr: f64) -> u64 {
        bloom_capacity(self.num_cells, target_fpr, self.num_hashes)
    }

    /// The number of keys at which the filter is best used: half of its cells set.
    pub fn ideal_items(self) -> u64 {
        (self.num_cells as f64 * LN_2 / f64::from(self.num_hashes)).max(1.0) as u64
    }

    /// The cells of a key.
    #[inline]
    pub fn probes(self, hash: KeyHash) -> impl Iterator<Item = u64> + use<> {
        hash.places(self.num_cells).take(self.num_hashes as usize)
    }

    /// What a filter of this size looks like with this share of its cells set.
    pub fn status(self, arrivals: u64, fill: f64) -> Status {
        let (estimated_fpr, estimated_items) = (pow(fill, f64::from(self.num_hashes)), self.items_at_fill(fill));
        Status { arrivals, fill, estimated_fpr, estimated_items, ..Status::default() }
    }

    /// How many distinct keys leave this share of the cells set: −(m/k)·ln(1 − fill). None if all are set.
    pub fn items_at_fill(self, fill: f64) -> Option<f64> {
        let items = -(self.num_cells as f64) / f64::from(self.num_hashes) * log1p(-fill);
        items.is_finite().then_some(items)
    }

    /// What is promised where this rate and this many keys are asked for, as far as they are.
    pub fn promise(self, items: Option<u64>, rate: Option<f64>) -> Promise {
        let most = self.num_cells.saturating_mul(64);
        promise_until(items, rate, [self.ideal_items(), most], |items| self.predicted_fpr(items))
    }

    /// The size for a spec and a goal, with the number of keys that the rate is promised for.
    ///
    /// `parameters` are the spec's names for cells and hashes; memory buys one cell for every `cell_bits`.
    pub fn planned(spec: &Spec, goal: &Goal, parameters: [&str; 2], cell_bits: u32) -> Result<(Self, Option<u64>)> {
        let (given, hashes) = (spec.number(parameters[0])?, spec.number(parameters[1])?);
        // Memory comes in whole cache lines, and no cell straddles two words of one.
        let affordable = goal.memory_bits.map(|bits| bits / LINE_BITS * 8 * u64::from(64 / cell_bits));
        let (items, rate) = (goal.expected_items, goal.target_fpr);
        if let (None, Some(0), Some(bits)) = (given, affordable, goal.memory_bits) {
            let needed = format!("at least {}, one cache line", size_text(LINE_BITS));
            return Err(Error::memory(bits, needed, "give that much"));
        }
        match (given.or(affordable), hashes, items, rate) {
            (Some(num_cells), Some(num_hashes), items, rate) => {
                let size = Size { num_cells, num_hashes }.checked()?;
                if given.is_none() {
                    size.keeps(items, rate)?;
                }
                let capacity = || rate.map(|rate| size.capacity(rate)).filter(|items| *items > 0);
                Ok((size, items.or_else(capacity)))
            }
            (Some(num_cells), None, Some(items), Some(rate)) if given.is_none() => {
                Ok((Self::within(num_cells, items, rate, cell_bits)?, Some(items)))
            }
            (Some(num_cells), None, Some(items), _) => Ok((Self::for_cells(num_cells, items)?, Some(items))),
            (Some(num_cells), None, None, Some(rate)) => {
                let size = Self::for_cells_and_rate(num_cells, rate)?;
                Ok((size, Some(size.capacity(rate))))
            }
            (None, Some(num_hashes), Some(items), Some(rate)) => {
                let kept = |num_cells| Size { num_cells, num_hashes }.predicted_fpr(items) <= rate;
                let num_cells = smallest(1, MAX_MEMORY_BITS, kept).unwrap_or(0);
                Ok((Size { num_cells, num_hashes }.checked()?, Some(items)))
            }
            (None, None, Some(items), Some(rate)) => Ok((Self::for_rate(items, rate)?, Some(items))),
            _ => Err(spec.error(
                "too little is known to size it",
                "give the expected number of keys and a target rate, or the memory and one of them",
            )),
        }
    }

    /// Refuses a size that breaks the rate for this many keys, where both are asked for.
    fn keeps(self, items: Option<u64>, rate: Option<f64>) -> Result<()> {
        let (Some(items), Some(rate)) = (items, rate) else { return Ok(()) };
        let predicted = self.predicted_fpr(items);
        if predicted <= rate {
            return Ok(());
        }
        Err(Error::Infeasible {
            wanted: format!("a rate of {} for {items} keys", rate_text(rate)),
            reason: format!("{} cells and {} hashes come to {}", self.num_cells, self.num_hashes, rate_text(predicted)),
            remedy: "give more memory, or leave num_hashes to the plan".into(),
        })
    }

    /// The fewest cells for the rate, if they fit.
    fn within(most: u64, items: u64, rate: f64, cell_bits: u32) -> Result<Self> {
        let needed = Self::for_rate(items, rate)?;
        if needed.num_cells <= most {
            return Ok(needed);
        }
        // Memory comes in whole cache lines, and no cell straddles two words of one.
        let lines = |cells: u64| cells.div_ceil(8 * u64::from(64 / cell_bits)).saturating_mul(LINE_BITS);
        let kept = Self::for_cells(most.max(1), items)?.predicted_fpr(items);
        Err(Error::Infeasible {
            wanted: format!("a rate of {} for {items} keys", rate_text(rate)),
            reason: format!("it needs {}, more than {}", size_text(lines(needed.num_cells)), size_text(lines(most))),
            remedy: match rate_text(kept).as_str() {
                "100%" => "give that much memory, or expect fewer keys".into(),
                kept => format!("give that much memory, or accept a rate of {kept}"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_after_rounding() {
        for items in [1, 2, 7, 100, 12_345, 10_000_000] {
            for rate in [0.5, 0.1, 0.01, 0.001, 1e-6, 1e-12] {
                let size = Size::for_rate(items, rate).expect("plans");
                assert!(size.predicted_fpr(items) <= rate, "{items} keys at {rate}: {size:?}");
            }
        }
    }

    #[test]
    fn the_lectures_sizes() {
        // 1 % takes 7 hashes and about 10 bits a key; 8 bits a key give 1 to 2 %, or a little over.
        let size = Size::for_rate(1_000_000, 0.01).expect("plans");
        assert_eq!(size.num_hashes, 7);
        assert!((9.58..9.60).contains(&(size.num_cells as f64 / 1e6)), "{size:?}");
        let eight = Size::for_cells(8_000_000, 1_000_000).expect("plans");
        assert!((0.01..0.022).contains(&eight.predicted_fpr(1_000_000)));
    }

    #[test]
    fn impossible_goals_say_what_would_work() {
        let goal = Goal::new().memory_bits(1000).expected_items(1000).fpr(0.01);
        let error = Size::planned(&Spec::new("bloom"), &goal, ["num_bits", "num_hashes"], 1).expect_err("1 bit a key");
        assert!(error.to_string().contains("it needs 2KiB, more than 64B"), "{error}");
    }
}
