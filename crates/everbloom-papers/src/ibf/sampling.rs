//! Choosing a group of cells with probability proportional to its weight, in constant expected time.
//!
//! Groups are sorted into tiers: tier t holds the weights of t bits, which are all below its bound 2^t. A tier is
//! drawn with probability ∝ groups · bound, a group within it uniformly, and the group is taken if a uniform number
//! below the bound falls below its weight; otherwise everything is drawn again. A weight is at least half its bound,
//! so most draws are taken.
//!
//! Every draw is exact whatever the bounds, so a group may stay in a tier that has become too high for it: a weight
//! that falls leaves its group where it is until a draw comes across it. Only a weight that rises must move its group
//! at once. An arrival that adds importance to cells, whose weight of 1/importance falls, touches no index at all.
//!
//! ```text
//! order   │ 7 2 │ 0 9 4 │ │ 5 1 3 8 6 │      groups, sorted by tier
//! starts  0     2       5 5           10     tier t is order[starts[t]..starts[t + 1]]
//! ```
//!
//! Moving a group by one tier swaps it to the edge of its segment and shifts the edge. One number drawn below the sum
//! of all bounds gives tier, group and offset.

use super::draws::Draws;
use bytemuck::{cast_slice, cast_slice_mut};
use everbloom::{Error, Result};
use everbloom_cells::simd::prefetch;

/// How many tiers there are. Tier 0 holds the groups of weight 0; the last one has weights up to [`HEAVIEST`].
const TIERS: usize = 28;

/// The largest weight that a group may have.
#[cfg(test)]
pub(super) const HEAVIEST: u32 = (1 << (TIERS - 1)) - 1;

/// The tier of a weight: how many bits it has.
#[inline(always)]
fn tier_of(weight: u32) -> usize {
    (u32::BITS - weight.leading_zeros()) as usize
}

/// A group that was drawn, to be taken if `offset` is below its weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drawn {
    pub(super) group: usize,
    /// Uniform below the bound of the tier.
    pub(super) offset: u32,
    /// Uniform in 0..2^16: where between two offsets the draw fell.
    pub(super) fraction: u32,
    tier: usize,
}

/// The groups, sorted by tier.
#[derive(Debug, Clone)]
pub(super) struct SamplingIndex {
    order: Vec<u32>,
    /// Where each group is in the order.
    place: Vec<u32>,
    /// Where each tier begins, and the end.
    starts: [u32; TIERS + 1],
    /// Σ groups · bound over the tiers up to each one.
    masses: [u64; TIERS],
}

fn zeros(length: u64) -> Result<Vec<u32>> {
    let refused = || Error::OutOfMemory { bytes: length.saturating_mul(4) };
    let count = usize::try_from(length).map_err(|_| refused())?;
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| refused())?;
    items.resize(count, 0);
    Ok(items)
}

impl SamplingIndex {
    /// All groups with weight 0.
    pub(super) fn new(groups: u64) -> Result<Self> {
        let (order, place) = (zeros(groups)?, zeros(groups)?);
        let mut index = SamplingIndex { order, place, starts: [0; TIERS + 1], masses: [0; TIERS] };
        index.rebuild(|_| 0);
        Ok(index)
    }

    /// Bytes of the order, as the format stores it.
    pub(super) fn byte_length(groups: u64) -> u64 {
        groups.saturating_mul(4)
    }

    /// Bits of all of it.
    pub(super) fn memory_bits_for(groups: u64) -> u64 {
        groups.saturating_mul(64).saturating_add(size_of::<([u32; TIERS + 1], [u64; TIERS])>() as u64 * 8)
    }

    /// Sorts all groups anew by their weights: in order of their number within a tier.
    pub(super) fn rebuild(&mut self, weight_of: impl Fn(usize) -> u32) {
        self.starts = [0; TIERS + 1];
        (0..self.place.len()).for_each(|group| self.starts[tier_of(weight_of(group)) + 1] += 1);
        for tier in 0..TIERS {
            self.starts[tier + 1] += self.starts[tier];
        }
        let mut next = self.starts;
        for group in 0..self.place.len() {
            let slot = &mut next[tier_of(weight_of(group))];
            self.order[*slot as usize] = group as u32;
            self.place[group] = *slot;
            *slot += 1;
        }
        self.sum_up();
    }

    /// Computes the masses from where the tiers begin.
    #[inline]
    fn sum_up(&mut self) {
        // Groups of weight 0 have no mass, though the bound of their tier is 1.
        let mut mass = 0;
        for tier in 1..TIERS {
            mass += u64::from(self.starts[tier + 1] - self.starts[tier]) << tier;
            self.masses[tier] = mass;
        }
    }

    /// Whether every group has weight 0, or was found to have.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.masses[TIERS - 1] == 0
    }

    /// Draws a group. Not to be called when empty.
    #[inline(always)]
    pub(super) fn draw(&self, draws: &mut Draws) -> Drawn {
        let (drawn, fraction) = draws.below_with_fraction(self.masses[TIERS - 1]);
        self.find(drawn, fraction)
    }

    /// Asks for the entry that a draw will read. It is the right line, or next to it, even if a few groups have moved
    /// until then. Not to be called when empty.
    #[inline(always)]
    pub(super) fn prefetch_draw(&self, draws: &mut Draws) {
        let (_, slot, _) = self.locate(draws.below(self.masses[TIERS - 1]));
        prefetch(&self.order, slot);
    }

    /// The tier, group and offset that a number below the sum of all bounds stands for.
    #[inline(always)]
    fn find(&self, drawn: u64, fraction: u32) -> Drawn {
        let (tier, slot, offset) = self.locate(drawn);
        Drawn { group: self.order[slot] as usize, offset, fraction, tier }
    }

    /// The tier, slot and offset of such a number.
    #[inline(always)]
    fn locate(&self, drawn: u64) -> (usize, usize, u32) {
        // From the top, where most of the mass is.
        let mut tier = TIERS - 1;
        while self.masses[tier - 1] > drawn {
            tier -= 1;
        }
        let within = drawn - self.masses[tier - 1];
        (tier, self.starts[tier] as usize + (within >> tier) as usize, within as u32 & ((1 << tier) - 1))
    }

    /// Moves a group that was drawn down to the tier of its weight, if that is a lower one.
    #[inline(always)]
    pub(super) fn settle(&mut self, drawn: &Drawn, weight: u32) {
        if tier_of(weight) < drawn.tier {
            self.update(drawn.group, weight);
        }
    }

    /// Moves a group to the tier of its weight.
    pub(super) fn update(&mut self, group: usize, weight: u32) {
        let mut slot = self.place[group];
        let (old, new) = (self.starts[1..].partition_point(|end| *end <= slot), tier_of(weight));
        for entered in old + 1..=new {
            self.starts[entered] -= 1;
            slot = self.swap(slot, self.starts[entered]);
        }
        for left in (new + 1..=old).rev() {
            slot = self.swap(slot, self.starts[left]);
            self.starts[left] += 1;
        }
        if old != new {
            self.sum_up();
        }
    }

    /// Exchanges what is in two slots; the second one.
    #[inline(always)]
    fn swap(&mut self, slot: u32, edge: u32) -> u32 {
        self.order.swap(slot as usize, edge as usize);
        for slot in [slot, edge] {
            self.place[self.order[slot as usize] as usize] = slot;
        }
        edge
    }

    /// What the format stores besides the order: where the tiers begin.
    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The order, as the format stores it.
    pub(super) fn order_bytes(&self) -> &[u8] {
        cast_slice(&self.order)
    }

    /// The order, to be filled by a decoder, which then calls [`SamplingIndex::restore`].
    pub(super) fn order_bytes_mut(&mut self) -> &mut [u8] {
        cast_slice_mut(&mut self.order)
    }

    /// Takes over the order that was filled in; refuses one that is not a permutation, or that bounds a
    /// group by less than its weight.
    pub(super) fn restore(&mut self, starts: &[u32], weight_of: impl Fn(usize) -> u32) -> Result<()> {
        let wrong = || Error::corrupt("the filter's sampling index does not fit its cells");
        self.starts = starts.try_into().map_err(|_| wrong())?;
        if self.starts[0] != 0 || self.starts[TIERS] as usize != self.place.len() || !self.starts.is_sorted() {
            return Err(wrong());
        }
        self.place.fill(u32::MAX);
        for tier in 0..TIERS {
            for slot in self.starts[tier]..self.starts[tier + 1] {
                let group = self.order[slot as usize] as usize;
                if self.place.get(group) != Some(&u32::MAX) || tier_of(weight_of(group)) > tier {
                    return Err(wrong());
                }
                self.place[group] = slot;
            }
        }
        self.sum_up();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(index: &SamplingIndex, weights: &[u32]) {
        let mut mass = 0;
        for (group, weight) in weights.iter().enumerate() {
            let tier = index.starts[1..].partition_point(|end| *end <= index.place[group]);
            assert_eq!(index.order[index.place[group] as usize] as usize, group);
            assert!(tier_of(*weight) <= tier, "weight {weight} in tier {tier}");
            mass += if tier > 0 { 1 << tier } else { 0 };
        }
        assert_eq!(index.masses[TIERS - 1], mass);
        for seed in 0..if mass > 0 { 64 } else { 0 } {
            let drawn = index.draw(&mut Draws::new(seed));
            let tier = index.starts[1..].partition_point(|end| *end <= index.place[drawn.group]);
            assert_eq!(drawn.tier, tier);
            assert!(tier > 0 && drawn.offset < 1 << tier);
        }
    }

    /// Moves what grew at once, and some of what fell.
    fn change(changes: Vec<(usize, u32)>) {
        let mut weights = vec![0; 20];
        let mut index = SamplingIndex::new(20).expect("small");
        for (group, weight) in changes {
            let grew = weight > weights[group];
            weights[group] = weight;
            if grew || weight % 3 > 0 {
                index.update(group, weight);
            }
            check(&index, &weights);
        }
        let mut again = SamplingIndex::new(20).expect("small");
        again.order_bytes_mut().copy_from_slice(index.order_bytes());
        again.restore(index.starts(), |group| weights[group]).expect("its own bytes");
        assert_eq!((&again.place, again.starts()), (&index.place, index.starts()));
        check(&again, &weights);
        again.rebuild(|group| weights[group]);
        check(&again, &weights);
    }

    /// Every outcome that a draw can have, once each: the draws of a number below the mass are uniform.
    #[test]
    fn groups_are_taken_in_proportion_to_their_weights() {
        let weights = [3, 0, 900, 5, 1, 64];
        let mut index = SamplingIndex::new(6).expect("small");
        index.rebuild(|group| weights[group]);
        let bound = |weight: u32| if weight == 0 { 0 } else { 1u64 << tier_of(weight) };
        assert_eq!(index.masses[TIERS - 1], weights.iter().map(|weight| bound(*weight)).sum::<u64>());
        let mut taken = [0; 6];
        for drawn in 0..index.masses[TIERS - 1] {
            let drawn = index.find(drawn, 0);
            taken[drawn.group] += u32::from(drawn.offset < weights[drawn.group]);
        }
        assert_eq!(taken, weights);
    }

    #[test]
    fn a_tier_holds_the_weights_below_its_bound() {
        for weight in (0..100_000).chain((1 << 26) - 1000..=1 << 26).chain([HEAVIEST]) {
            let tier = tier_of(weight);
            assert!(tier < TIERS && weight < 1 << tier, "{weight}");
            assert!(weight == 0 || 2 * weight >= 1 << tier, "{weight}");
        }
    }

    proptest! {
        #[test]
        fn bounds_hold_however_weights_change(
            changes in prop::collection::vec((0usize..20, 0u32..1 << 26), 1..200),
        ) {
            change(changes);
        }

        #[test]
        fn bounds_hold_however_small_weights_change(changes in prop::collection::vec((0usize..20, 0u32..5), 1..200)) {
            change(changes);
        }
    }

    #[test]
    fn orders_that_are_none_are_refused() {
        let weights = [3, 0, 900, 5];
        let mut index = SamplingIndex::new(4).expect("small");
        index.rebuild(|group| weights[group]);
        let (starts, order) = (index.starts().to_vec(), index.order.clone());
        let mut refused = |order: &[u32], starts: &[u32]| {
            index.order.copy_from_slice(order);
            index.restore(starts, |group| weights[group]).is_err()
        };
        assert!(!refused(&order, &starts));
        assert!(refused(&[0, 0, 1, 2], &starts));
        assert!(refused(&[4, 1, 2, 3], &starts));
        assert!(refused(&[2, 1, 0, 3], &starts));
        assert!(refused(&order, &starts[1..]));
        let mut unsorted = starts.clone();
        unsorted.swap(1, 20);
        assert!(refused(&order, &unsorted));
    }
}
