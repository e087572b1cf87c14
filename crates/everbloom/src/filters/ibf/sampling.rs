//! Choosing a group of cells with probability proportional to its weight, in constant expected time.
//!
//! Groups are sorted into classes by an upper bound of their weight. A class is drawn with
//! probability ∝ groups · bound, a group within it uniformly, and the group is taken if a uniform
//! number below the bound falls below its weight; otherwise everything is drawn again. Every draw is
//! exact whatever the bounds, so they may be **late**: a weight that falls leaves its group where it is,
//! until a draw comes across it and moves it down. Only a weight that rises must move its group at
//! once. An arrival that adds importance to cells (their weight, 1/importance, falls) therefore
//! touches no index at all.
//!
//! ```text
//! order   │ 7 2 │ 0 9 4 │ │ 5 1 3 8 6 │      groups, sorted by class
//! starts  0     2       5 5           10     class c is order[starts[c]..starts[c + 1]]
//! ```
//!
//! Moving a group by one class swaps it to the edge of its segment and shifts the edge. Where moves
//! are rare, a guide says in which class each 256th of all mass begins, so that drawing one takes a
//! look instead of a search.

use super::draws::Draws;
use crate::cells::simd::prefetch;
use crate::error::{Error, Result};
use crate::hash::scale;
use bytemuck::{cast_slice, cast_slice_mut};
use std::marker::PhantomData;

/// No fewer classes than any grouping has, and a power of two, so that no class needs to be checked.
const MOST: usize = 128;

/// How weights are grouped into classes; class 0 holds the groups of weight 0.
pub(super) trait Classes {
    /// How many there are.
    const COUNT: usize;
    /// The largest weight of each class, in order.
    const BOUNDS: &'static [u32; MOST];
    /// Whether groups move rarely enough for a guide to the classes to pay.
    const GUIDED: bool;
    /// The class of a weight: the first whose bound is not below it.
    fn of(weight: u32) -> usize;
}

/// Four classes to each doubling, a little beyond 2^26: a group is taken 9 times of 10.
#[derive(Debug, Clone)]
pub(super) struct Quarters;

const QUARTERS: usize = 102;

static QUARTER_BOUNDS: [u32; MOST] = {
    let mut bounds = [0; MOST];
    let mut class = 0;
    while class < QUARTERS {
        let above = class.saturating_sub(5) as u32;
        bounds[class] = if class < 5 { class as u32 } else { (5 + above % 4) << (above / 4) };
        class += 1;
    }
    bounds
};

impl Classes for Quarters {
    const COUNT: usize = QUARTERS;
    const BOUNDS: &'static [u32; MOST] = &QUARTER_BOUNDS;
    const GUIDED: bool = true;

    #[inline(always)]
    fn of(weight: u32) -> usize {
        if weight <= 4 {
            return weight as usize;
        }
        let below = weight - 1;
        let octave = below.ilog2();
        (4 * (octave - 2) + (below >> (octave - 2) & 3) + 5) as usize
    }
}

/// A class for every weight up to 64.
#[derive(Debug, Clone)]
pub(super) struct Exact;

const EXACT: usize = 65;

static EXACT_BOUNDS: [u32; MOST] = {
    let mut bounds = [0; MOST];
    let mut class = 0;
    while class < EXACT {
        bounds[class] = class as u32;
        class += 1;
    }
    bounds
};

impl Classes for Exact {
    const COUNT: usize = EXACT;
    const BOUNDS: &'static [u32; MOST] = &EXACT_BOUNDS;
    const GUIDED: bool = false;

    #[inline(always)]
    fn of(weight: u32) -> usize {
        weight as usize
    }
}

/// A group that was drawn, to be taken if `offset` is below its weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Proposal {
    pub(super) group: u32,
    /// Uniform below the bound of the group's class.
    pub(super) offset: u32,
    /// Uniform in 0..2^16: where between two offsets the draw fell.
    pub(super) fraction: u32,
    /// A weight at or below this belongs to a lower class.
    pub(super) floor: u32,
}

/// The groups, sorted by class.
#[derive(Debug, Clone)]
pub(super) struct SamplingIndex<C> {
    order: Vec<u32>,
    place: Vec<u32>,
    /// Where each class begins, and the end.
    starts: Box<[u32; MOST]>,
    /// The first and last class above 0 that have groups; the first is beyond the last if none has.
    occupied: (usize, usize),
    /// Σ groups · bound over the classes up to each one; kept for the occupied ones.
    masses: Box<[u64; MOST]>,
    /// For each 256th of the mass, a class not above the one in which it begins.
    guide: Box<[u8; 256]>,
    classes: PhantomData<C>,
}

fn zeros(length: u64) -> Result<Vec<u32>> {
    let refused = || Error::OutOfMemory { bytes: length.saturating_mul(4) };
    let count = usize::try_from(length).map_err(|_| refused())?;
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| refused())?;
    items.resize(count, 0);
    Ok(items)
}

impl<C: Classes> SamplingIndex<C> {
    /// All groups with weight 0.
    pub(super) fn new(groups: u64) -> Result<Self> {
        let mut index = SamplingIndex {
            order: zeros(groups)?,
            place: zeros(groups)?,
            starts: Box::new([0; MOST]),
            occupied: (1, 0),
            masses: Box::new([0; MOST]),
            guide: Box::new([0; 256]),
            classes: PhantomData,
        };
        index.rebuild(|_| 0);
        Ok(index)
    }

    /// Bytes of the order, as the format stores it.
    pub(super) fn byte_length(groups: u64) -> u64 {
        groups.saturating_mul(4)
    }

    /// Bits of all of it.
    pub(super) fn memory_bits_for(groups: u64) -> u64 {
        groups.saturating_mul(64).saturating_add(MOST as u64 * (32 + 64) + 256 * 8)
    }

    /// Sorts all groups anew by their weights: in order of their number within a class.
    pub(super) fn rebuild(&mut self, weight_of: impl Fn(usize) -> u32) {
        let mut counts = vec![0u32; C::COUNT + 1];
        (0..self.place.len()).for_each(|group| counts[C::of(weight_of(group)) + 1] += 1);
        for class in 0..C::COUNT {
            counts[class + 1] += counts[class];
        }
        self.starts[..=C::COUNT].copy_from_slice(&counts);
        for group in 0..self.place.len() {
            let next = &mut counts[C::of(weight_of(group))];
            self.order[*next as usize] = group as u32;
            self.place[group] = *next;
            *next += 1;
        }
        self.weigh();
    }

    #[inline(always)]
    fn count(&self, class: usize) -> u32 {
        self.starts[class + 1] - self.starts[class]
    }

    /// Finds the occupied classes and sums up their masses.
    fn weigh(&mut self) {
        self.occupied = (1, C::COUNT - 1);
        self.shrink();
        self.sum_from(0);
    }

    /// Leaves out empty classes at either end.
    #[inline(always)]
    fn shrink(&mut self) {
        let (mut first, mut last) = self.occupied;
        while last >= first && self.count(last) == 0 {
            last -= 1;
        }
        while first < last && self.count(first) == 0 {
            first += 1;
        }
        self.occupied = if last < first { (1, 0) } else { (first, last) };
    }

    /// Sums up the masses of the occupied classes from this one on.
    #[inline(always)]
    fn sum_from(&mut self, class: usize) {
        let (first, last) = self.occupied;
        let from = class.max(first);
        let mut mass = if from > first { self.masses[from - 1] } else { 0 };
        for class in from..=last {
            mass += u64::from(self.count(class)) * u64::from(C::BOUNDS[class]);
            self.masses[class] = mass;
        }
        if C::GUIDED && mass > 0 {
            self.write_guide(mass);
        }
    }

    fn write_guide(&mut self, mass: u64) {
        let (first, last) = self.occupied;
        let parts = 256.0 / mass as f64;
        let mut begin = 0;
        for class in first..=last {
            // Rounded up: a class too low is corrected when drawing, one too high would not be.
            let end = (self.masses[class] as f64 * parts) as usize + 1;
            let end = end.clamp(begin, 256);
            self.guide[begin..end].fill(class as u8);
            begin = end;
        }
    }

    /// Whether every group has weight 0, or was found to have.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.occupied.0 > self.occupied.1
    }

    /// Draws a class, a slot in it, and what the draw left over. Not to be called when empty.
    #[inline(always)]
    fn draw(&self, draws: &mut Draws) -> (usize, u32, u64) {
        let (first, last) = self.occupied;
        let bits = draws.bits();
        let drawn = scale(bits, self.masses[last]);
        let class = if C::GUIDED {
            let mut class = usize::from(self.guide[(bits >> 56) as usize]);
            while self.masses[class % MOST] <= drawn {
                class += 1;
            }
            class % MOST
        } else {
            first + self.masses[first..last].partition_point(|mass| *mass <= drawn)
        };
        let start = self.starts[class % MOST];
        let product = u128::from(draws.more_bits()) * u128::from(self.starts[(class + 1) % MOST] - start);
        (class, start + (product >> 64) as u32, product as u64)
    }

    /// Draws a group. Not to be called when empty.
    #[inline(always)]
    pub(super) fn propose(&self, draws: &mut Draws) -> Proposal {
        // One draw gives slot, offset and fraction: each product's low half is what the last left over.
        let (class, slot, rest) = self.draw(draws);
        let product = u128::from(rest) * u128::from(C::BOUNDS[class % MOST]);
        Proposal {
            group: self.order[slot as usize],
            offset: (product >> 64) as u32,
            fraction: (product as u64 >> 48) as u32,
            floor: C::BOUNDS[(class - 1) % MOST],
        }
    }

    /// The slots that the next draws will choose, unless groups move before they are made: asks for them.
    #[inline(always)]
    pub(super) fn prefetch_order(&self, slots: &mut [u32], draws: &mut Draws) {
        if self.is_empty() {
            return;
        }
        for slot in slots {
            *slot = self.draw(draws).1;
            prefetch(&self.order, *slot as usize);
        }
    }

    /// The group in a slot.
    #[inline(always)]
    pub(super) fn at(&self, slot: u32) -> u32 {
        self.order[slot as usize]
    }

    /// Moves a group up if its weight has grown out of its class.
    #[inline(always)]
    pub(super) fn raise(&mut self, group: usize, weight: u32) {
        let class = C::of(weight);
        let slot = self.place[group];
        if slot < self.starts[class] {
            let one_below = slot >= self.starts[class - 1];
            if one_below && self.steps_within(class) {
                self.starts[class] -= 1;
                self.swap_to(group, self.starts[class]);
                self.add_above(class, true);
            } else {
                self.move_to(group, self.class_at(slot), class);
            }
        }
    }

    /// Moves a group, found to be lighter than its class, down to where it belongs.
    #[inline(always)]
    pub(super) fn settle(&mut self, group: usize, weight: u32) {
        let class = C::of(weight);
        let slot = self.place[group];
        if slot >= self.starts[class + 1] {
            let one_above = slot < self.starts[class + 2];
            if one_above && self.steps_within(class + 1) {
                self.swap_to(group, self.starts[class + 1]);
                self.starts[class + 1] += 1;
                self.add_above(class + 1, false);
            } else {
                self.move_to(group, self.class_at(slot), class);
            }
        }
    }

    /// Whether a group may step between this class and the one below with no more to do than to weigh
    /// them anew: no guide is kept, and both are among the occupied classes. (One that is left empty
    /// stays there, with no mass.)
    #[inline(always)]
    fn steps_within(&self, class: usize) -> bool {
        let (first, last) = self.occupied;
        !C::GUIDED && first < class.max(2) && class <= last
    }

    /// Weighs anew after a group stepped up into this class from the one below, or down out of it.
    #[inline(always)]
    fn add_above(&mut self, class: usize, up: bool) {
        let (above, below) = (u64::from(C::BOUNDS[class]), u64::from(C::BOUNDS[class - 1]));
        let signed = |mass: u64, change: u64| if up { mass + change } else { mass - change };
        if class > 1 {
            self.masses[class - 1] = if up { self.masses[class - 1] - below } else { self.masses[class - 1] + below };
        }
        for mass in &mut self.masses[class..=self.occupied.1] {
            *mass = signed(*mass, above - below);
        }
    }

    fn class_at(&self, slot: u32) -> usize {
        let (first, last) = self.occupied;
        if slot < self.starts[1] {
            0
        } else {
            first + self.starts[first + 1..=last].partition_point(|end| *end <= slot)
        }
    }

    #[cold]
    fn move_to(&mut self, group: usize, old: usize, class: usize) {
        for current in old..class {
            self.starts[current + 1] -= 1;
            self.swap_to(group, self.starts[current + 1]);
        }
        for current in (class..old).rev() {
            self.swap_to(group, self.starts[current + 1]);
            self.starts[current + 1] += 1;
        }
        let (first, last) = self.occupied;
        if class > 0 && !(first..=last).contains(&class) {
            self.occupied = if first > last { (class, class) } else { (first.min(class), last.max(class)) };
        }
        self.shrink();
        // Sums below the old first and above the old last class were not kept.
        self.sum_from(if self.occupied == (first, last) { old.min(class) } else { 0 });
    }

    /// Gives every group weight 0; `each` is called with those that had more.
    pub(super) fn empty(&mut self, mut each: impl FnMut(usize)) {
        self.order[self.starts[1] as usize..].iter().for_each(|group| each(*group as usize));
        let groups = self.order.len() as u32;
        self.starts[1..=C::COUNT].fill(groups);
        self.occupied = (1, 0);
    }

    #[inline(always)]
    fn swap_to(&mut self, group: usize, slot: u32) {
        let from = self.place[group];
        if from == slot {
            return;
        }
        let other = self.order[slot as usize];
        self.order[from as usize] = other;
        self.order[slot as usize] = group as u32;
        self.place[other as usize] = from;
        self.place[group] = slot;
    }

    /// What the format stores besides the order: where the classes begin.
    pub(super) fn starts(&self) -> &[u32] {
        &self.starts[..=C::COUNT]
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
        let groups = self.place.len() as u32;
        let ends_right = starts.first() == Some(&0) && starts.last() == Some(&groups);
        if starts.len() != C::COUNT + 1 || !ends_right || !starts.is_sorted() {
            return Err(wrong());
        }
        self.starts[..=C::COUNT].copy_from_slice(starts);
        self.place.fill(u32::MAX);
        for class in 0..C::COUNT {
            for slot in self.starts[class]..self.starts[class + 1] {
                let group = self.order[slot as usize] as usize;
                let fits = self.place.get(group) == Some(&u32::MAX) && weight_of(group) <= C::BOUNDS[class];
                if !fits {
                    return Err(wrong());
                }
                self.place[group] = slot;
            }
        }
        self.weigh();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<C: Classes + Clone>(index: &SamplingIndex<C>, weights: &[u32]) {
        let mut mass = 0;
        for (group, weight) in weights.iter().enumerate() {
            let class = index.starts[1..=C::COUNT].partition_point(|end| *end <= index.place[group]);
            assert_eq!(index.order[index.place[group] as usize] as usize, group);
            assert!(*weight <= C::BOUNDS[class], "weight {weight} in class {class}");
            mass += u64::from(C::BOUNDS[class]);
        }
        let mut again = index.clone();
        again.weigh();
        assert_eq!(if again.is_empty() { 0 } else { again.masses[again.occupied.1] }, mass);
        // Equal draws, whatever the two think of which classes are occupied.
        for seed in 0..if mass > 0 { 64 } else { 0 } {
            assert_eq!(again.draw(&mut Draws::new(seed)), index.draw(&mut Draws::new(seed)));
        }
    }

    /// Raises what grew at once, and settles some of what fell.
    fn change<C: Classes + Clone>(changes: Vec<(usize, u32)>) {
        let mut weights = vec![0; 20];
        let mut index = SamplingIndex::<C>::new(20).expect("small");
        for (group, weight) in changes {
            let grew = weight > weights[group];
            weights[group] = weight;
            if grew {
                index.raise(group, weight);
            } else if weight % 3 > 0 {
                index.settle(group, weight);
            }
            check(&index, &weights);
        }
        let mut again = SamplingIndex::<C>::new(20).expect("small");
        again.order_bytes_mut().copy_from_slice(index.order_bytes());
        again.restore(index.starts(), |group| weights[group]).expect("its own bytes");
        assert_eq!((&again.place, &again.starts), (&index.place, &index.starts));
        check(&again, &weights);
        again.rebuild(|group| weights[group]);
        check(&again, &weights);
    }

    #[test]
    fn a_class_holds_the_weights_up_to_its_bound() {
        for weight in (0..100_000).chain((1 << 26) - 1000..=1 << 26) {
            let class = Quarters::of(weight);
            assert!(class < Quarters::COUNT && weight <= QUARTER_BOUNDS[class], "{weight}");
            assert!(class == 0 || weight > QUARTER_BOUNDS[class - 1], "{weight}");
        }
    }

    proptest! {
        #[test]
        fn bounds_hold_however_weights_change(
            changes in prop::collection::vec((0usize..20, 0u32..1 << 26), 1..200),
        ) {
            change::<Quarters>(changes);
        }

        #[test]
        fn bounds_hold_however_small_weights_change(changes in prop::collection::vec((0usize..20, 0u32..5), 1..200)) {
            change::<Exact>(changes);
        }
    }

    #[test]
    fn orders_that_are_none_are_refused() {
        let weights = [3, 0, 900, 5];
        let mut index = SamplingIndex::<Quarters>::new(4).expect("small");
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
        unsorted.swap(1, 60);
        assert!(refused(&order, &unsorted));
    }
}
