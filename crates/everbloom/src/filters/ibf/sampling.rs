//! Choosing a group of cells with probability proportional to its weight, in constant expected time.
//!
//! Groups are sorted into classes by an upper bound of their weight. A class is drawn with
//! probability ∝ groups · bound, a group within it uniformly, and the group is taken if a uniform
//! number below the bound falls below its weight; otherwise everything is drawn again. Every draw is
//! exact whatever the bounds, so they may be **late**: a weight that falls leaves its group where it is,
//! until a draw has come across it and it is moved down. Only a weight that rises must move its group at
//! once. An arrival that adds importance to cells (their weight, 1/importance, falls) therefore
//! touches no index at all.
//!
//! ```text
//! order   │ 7 2 │ 0 9 4 │ │ 5 1 3 8 6 │      groups, sorted by class
//! starts  0     2       5 5           10     class c is order[starts[c]..starts[c + 1]]
//! ```
//!
//! Moving a group by one class swaps it to the edge of its segment, shifts the edge, and adds to the sums
//! of the classes above. One number drawn below the sum of all gives class, group and offset: what it
//! exceeds the class's sum by, divided by the bound. The class is looked for from where a guide says that
//! each 256th of all mass began some moves ago; a guide that is behind costs steps, no errors.

use super::draws::Draws;
use crate::key::scale;
use crate::promise::{Error, Result};
use crate::simd::prefetch;
use bytemuck::{cast_slice, cast_slice_mut};

/// No fewer than there are classes, and a power of two, so that no class needs to be checked.
const MOST: usize = 128;

/// The groups whose weights have one upper bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// The largest weight: a small number times a power of two.
    pub(super) bound: u32,
    power: u32,
    /// 2^63 divided by the small number, rounded up.
    reciprocal: u64,
}

impl Class {
    const fn new(number: u32, power: u32) -> Self {
        let reciprocal = if number == 0 { 0 } else { (1u64 << 63).div_ceil(number as u64) };
        Class { bound: number << power, power, reciprocal }
    }

    /// A mass of no more than 2^32 groups divided by the bound: the quotient and the remainder. Exact, because
    /// the reciprocal is less than 1 too large, which comes to less than 2^-24 in the quotient.
    #[inline(always)]
    fn divide(self, mass: u64) -> (u32, u32) {
        let quotient = scale(mass >> self.power << 1, self.reciprocal) as u32;
        (quotient, (mass - u64::from(quotient) * u64::from(self.bound)) as u32)
    }
}

/// How many classes there are: four to each doubling, a little beyond 2^26, so a group is taken 9 times of 10.
/// Class 0 holds the groups of weight 0.
const CLASSES: usize = 102;

static EACH: [Class; MOST] = {
    let mut classes = [Class::new(0, 0); MOST];
    let mut class = 0;
    while class < CLASSES {
        let above = class.saturating_sub(5) as u32;
        classes[class] = if class < 5 { Class::new(class as u32, 0) } else { Class::new(5 + above % 4, above / 4) };
        class += 1;
    }
    classes
};

/// The largest weight that a group may have.
#[cfg(test)]
pub(super) fn heaviest() -> u32 {
    EACH[CLASSES - 1].bound
}

/// The class of a weight: the first whose bound is not below it.
#[inline(always)]
fn class_of(weight: u32) -> usize {
    if weight <= 4 {
        return weight as usize;
    }
    let below = weight - 1;
    let octave = below.ilog2();
    (4 * (octave - 2) + (below >> (octave - 2) & 3) + 5) as usize
}

/// A group that was drawn, to be taken if `offset` is below its weight.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Drawn {
    /// Where the group is [at](SamplingIndex::at).
    pub(super) slot: u32,
    /// Uniform below the bound of the group's class.
    pub(super) offset: u32,
    /// Uniform in 0..2^16: where between two offsets the draw fell.
    pub(super) fraction: u32,
    /// A weight at or below this belongs to a lower class.
    pub(super) floor: u32,
}

/// What is kept of the classes.
#[derive(Debug, Clone)]
struct Tables {
    /// Where each class begins, and the end.
    starts: [u32; MOST],
    /// Σ groups · bound over the classes up to each one; kept up to the top one.
    masses: [u64; MOST],
}

/// How many parts of the mass the guide tells apart.
const PARTS: usize = 256;

/// The groups, sorted by class.
#[derive(Debug, Clone)]
pub(super) struct SamplingIndex {
    order: Vec<u32>,
    place: Vec<u32>,
    tables: Box<Tables>,
    /// The class in which each 256th of the mass began when the guide was written,
    guide: Box<[u8; PARTS]>,
    /// No class above this one has groups.
    top: usize,
    /// How many groups have moved since the guide was written.
    moves: u32,
    /// How often anything has changed; not part of the state.
    changes: u64,
}

/// How many groups move until the guide is written anew.
const GUIDED_MOVES: u32 = 64;

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
        let mut index = SamplingIndex {
            order: zeros(groups)?,
            place: zeros(groups)?,
            tables: Box::new(Tables { starts: [0; MOST], masses: [0; MOST] }),
            guide: Box::new([1; PARTS]),
            top: 1,
            moves: 0,
            changes: 0,
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
        groups.saturating_mul(64).saturating_add((size_of::<Tables>() + PARTS) as u64 * 8)
    }

    /// Sorts all groups anew by their weights: in order of their number within a class.
    pub(super) fn rebuild(&mut self, weight_of: impl Fn(usize) -> u32) {
        let mut counts = vec![0u32; CLASSES + 1];
        (0..self.place.len()).for_each(|group| counts[class_of(weight_of(group)) + 1] += 1);
        for class in 0..CLASSES {
            counts[class + 1] += counts[class];
        }
        self.tables.starts[..=CLASSES].copy_from_slice(&counts);
        for group in 0..self.place.len() {
            let next = &mut counts[class_of(weight_of(group))];
            self.order[*next as usize] = group as u32;
            self.place[group] = *next;
            *next += 1;
        }
        self.weigh();
    }

    /// Finds the top class and sums up the masses.
    fn weigh(&mut self) {
        self.changes += 1;
        let Tables { starts, masses } = &mut *self.tables;
        let groups = starts[CLASSES];
        self.top = starts[..CLASSES].partition_point(|start| *start < groups).clamp(2, CLASSES) - 1;
        let mut mass = 0;
        for class in 0..=self.top {
            mass += u64::from(starts[class + 1] - starts[class]) * u64::from(EACH[class].bound);
            masses[class] = mass;
        }
        self.write_guide();
    }

    /// Writes the guide anew, up to the class that is the top one by now.
    fn write_guide(&mut self) {
        let Tables { starts, masses } = &*self.tables;
        while self.top > 1 && starts[self.top] == starts[self.top + 1] {
            self.top -= 1;
        }
        self.moves = 0;
        let mut class = 1;
        for (part, guided) in self.guide.iter_mut().enumerate() {
            while class < self.top && masses[class] <= scale((part as u64) << 56, masses[self.top]) {
                class += 1;
            }
            *guided = class as u8;
        }
    }

    /// Σ groups · bound over all of them.
    #[inline(always)]
    fn mass(&self) -> u64 {
        self.tables.masses[self.top % MOST]
    }

    /// Whether every group has weight 0, or was found to have.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.mass() == 0
    }

    /// Draws a group. Not to be called when empty.
    #[inline(always)]
    pub(super) fn draw(&self, draws: &mut Draws) -> Drawn {
        let Tables { starts, masses } = &*self.tables;
        let bits = draws.bits();
        let product = u128::from(bits) * u128::from(self.mass());
        let drawn = (product >> 64) as u64;
        let mut class = usize::from(self.guide[(bits >> 56) as usize]);
        // A part of the guide spans one class or two, as a rule, and no predictor knows which it will be.
        class += usize::from(masses[class % MOST] <= drawn);
        while masses[class % MOST] <= drawn {
            class += 1;
        }
        while masses[(class - 1) % MOST] > drawn {
            class -= 1;
        }
        let (slot, offset) = EACH[class % MOST].divide(drawn - masses[(class - 1) % MOST]);
        Drawn {
            slot: starts[class % MOST] + slot,
            offset,
            fraction: (product as u64 >> 48) as u32,
            floor: EACH[(class - 1) % MOST].bound,
        }
    }

    /// A number that changes with the outcome of draws.
    #[inline(always)]
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Asks for the slot that a draw chooses.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, slot: u32) {
        prefetch(&self.order, slot as usize);
    }

    /// The group in a slot.
    #[inline(always)]
    pub(super) fn at(&self, slot: u32) -> u32 {
        self.order[slot as usize]
    }

    /// Moves a group up if its weight has grown out of its class.
    #[inline(always)]
    pub(super) fn raise(&mut self, group: usize, weight: u32) {
        let class = class_of(weight);
        let slot = self.place[group];
        if slot < self.tables.starts[class] {
            self.move_up(group, slot, class);
        }
    }

    /// Moves a group, found to be lighter than its class, down to where it belongs.
    #[inline(always)]
    pub(super) fn settle(&mut self, group: usize, weight: u32) {
        let class = class_of(weight);
        let slot = self.place[group];
        if slot >= self.tables.starts[class + 1] {
            self.move_down(group, slot, class);
        }
    }

    fn move_up(&mut self, group: usize, mut slot: u32, class: usize) {
        if class > self.top {
            let all = self.mass();
            self.tables.masses[self.top + 1..=class].fill(all);
            self.top = class;
        }
        let mut old = class - 1;
        while slot < self.tables.starts[old] {
            self.prefetch_place(self.tables.starts[old] - 1);
            old -= 1;
        }
        for entered in old + 1..=class {
            let edge = self.tables.starts[entered] - 1;
            self.tables.starts[entered] = edge;
            slot = self.exchange(group, slot, edge);
        }
        let (bound, left) = (u64::from(EACH[class].bound), u64::from(EACH[old].bound));
        self.tables.masses[old..class].iter_mut().for_each(|mass| *mass -= left);
        self.tables.masses[class..=self.top].iter_mut().for_each(|mass| *mass += bound - left);
        self.moved(group, slot);
    }

    fn move_down(&mut self, group: usize, mut slot: u32, class: usize) {
        let mut old = class + 1;
        while slot >= self.tables.starts[old + 1] {
            self.prefetch_place(self.tables.starts[old + 1]);
            old += 1;
        }
        for entered in (class..old).rev() {
            let edge = self.tables.starts[entered + 1];
            self.tables.starts[entered + 1] = edge + 1;
            slot = self.exchange(group, slot, edge);
        }
        let (bound, left) = (u64::from(EACH[class].bound), u64::from(EACH[old].bound));
        self.tables.masses[class..old].iter_mut().for_each(|mass| *mass += bound);
        self.tables.masses[old..=self.top].iter_mut().for_each(|mass| *mass -= left - bound);
        self.moved(group, slot);
    }

    /// Asks for the place of a group that may be about to move.
    #[inline(always)]
    pub(super) fn prefetch_move(&self, group: usize) {
        prefetch(&self.place, group);
    }

    /// Asks for where the place of the group in a slot is kept. All at once take as long as one, and a place
    /// that is written before it is there holds up every write behind it.
    #[inline(always)]
    fn prefetch_place(&self, slot: u32) {
        prefetch(&self.place, self.order[slot as usize] as usize);
    }

    #[inline(always)]
    fn moved(&mut self, group: usize, slot: u32) {
        self.place[group] = slot;
        self.changes += 1;
        self.moves += 1;
        if self.moves == GUIDED_MOVES {
            self.write_guide();
        }
    }

    /// Moves a group from its slot to another, and what was there to its slot; the slot that it now has.
    #[inline(always)]
    fn exchange(&mut self, group: usize, slot: u32, edge: u32) -> u32 {
        let other = self.order[edge as usize];
        self.order[edge as usize] = group as u32;
        self.order[slot as usize] = other;
        self.place[other as usize] = slot;
        edge
    }

    /// What the format stores besides the order: where the classes begin.
    pub(super) fn starts(&self) -> &[u32] {
        &self.tables.starts[..=CLASSES]
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
        if starts.len() != CLASSES + 1 || !ends_right || !starts.is_sorted() {
            return Err(wrong());
        }
        self.tables.starts[..=CLASSES].copy_from_slice(starts);
        self.place.fill(u32::MAX);
        for (class, Class { bound, .. }) in EACH.iter().enumerate().take(CLASSES) {
            for slot in self.tables.starts[class]..self.tables.starts[class + 1] {
                let group = self.order[slot as usize] as usize;
                let fits = self.place.get(group) == Some(&u32::MAX) && weight_of(group) <= *bound;
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

    fn check(index: &SamplingIndex, weights: &[u32]) {
        let mut mass = 0;
        for (group, weight) in weights.iter().enumerate() {
            let class = index.tables.starts[1..=CLASSES].partition_point(|end| *end <= index.place[group]);
            assert_eq!(index.order[index.place[group] as usize] as usize, group);
            assert!(*weight <= EACH[class].bound, "weight {weight} in class {class}");
            mass += u64::from(EACH[class].bound);
        }
        let mut again = index.clone();
        again.weigh();
        assert_eq!((again.mass(), index.mass()), (mass, mass));
        // Equal draws, however old the guide.
        for seed in 0..if mass > 0 { 64 } else { 0 } {
            assert_eq!(again.draw(&mut Draws::new(seed)), index.draw(&mut Draws::new(seed)));
        }
    }

    /// Raises what grew at once, and settles some of what fell.
    fn change(changes: Vec<(usize, u32)>) {
        let mut weights = vec![0; 20];
        let mut index = SamplingIndex::new(20).expect("small");
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
        let mut again = SamplingIndex::new(20).expect("small");
        again.order_bytes_mut().copy_from_slice(index.order_bytes());
        again.restore(index.starts(), |group| weights[group]).expect("its own bytes");
        assert_eq!((&again.place, again.starts()), (&index.place, index.starts()));
        check(&again, &weights);
        again.rebuild(|group| weights[group]);
        check(&again, &weights);
    }

    #[test]
    fn a_class_holds_the_weights_up_to_its_bound() {
        for weight in (0..100_000).chain((1 << 26) - 1000..=1 << 26) {
            let class = class_of(weight);
            assert!(class < CLASSES && weight <= EACH[class].bound, "{weight}");
            assert!(class == 0 || weight > EACH[class - 1].bound, "{weight}");
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
        unsorted.swap(1, 60);
        assert!(refused(&order, &unsorted));
    }
}
