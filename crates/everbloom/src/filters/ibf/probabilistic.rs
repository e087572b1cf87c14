//! Probabilistic deletion: a cell is picked with probability ∝ 1/(importance mapped to it).
//!
//! *Plain*: the picks fall on every cell that was ever touched, and one that finds a zero cell is
//! wasted. *Compulsory* (the thesis's Probabilistic-delete-p): they fall on cells that are not zero, so
//! exactly `decrements` values are lowered, or as many as there are. Picks are independent; one cell
//! may be lowered twice.
//!
//! A pick draws a group of 16 cells from the [`SamplingIndex`] and a cell in it, both in proportion to
//! whole numbers a little above 2^22/total, then takes the cell with the probability that makes up for
//! the difference. So the picks are exact, in integers. 1.2 draws a pick, two cache lines each: an
//! entry of the index and the group.
//!
//! Lowering a cell does not change its weight, so all draws of an arrival are made at once, each step for all
//! of them before the next. A group that a draw finds lighter than its class is **noted**, and moved with
//! others after some arrivals; until then the index stays as it is, unless a cell is touched for the first
//! time. So a batch can draw for arrivals to come, ask for their cells, and need not draw again.

use super::Cells;
use super::draws::Draws;
use super::parameters::{CellImportance, Parameters};
use super::sampling::{Drawn, SamplingIndex};
use super::weighed::{Cell, GROUP, Group, WeighedCells};
use crate::filter::Restore;
use crate::format::{StateReader, StateWriter};
use crate::promise::{Error, Result};
use crate::simd::{Machine, Plain, quotient};

/// A cell of total 1 weighs 2^22, one of the largest total a little over 1/2.
const SCALE_BITS: u32 = 22;

/// The most draws that are made, and whose lines are asked for, at once.
const ROUND: usize = 8;

/// Draws in vain, one after another, until noted groups are moved at once. With nine of ten taken it does not
/// happen; it does where groups have become much lighter than their class, or a file says that they are.
const PATIENCE: usize = 64;

/// Groups that were found lighter than their class, to be moved later.
#[derive(Debug, Clone)]
struct Lighter {
    noted: Vec<u32>,
    count: usize,
}

impl Lighter {
    /// How many groups are noted at most: more are found in larger filters.
    fn most_for(groups: u64) -> usize {
        (groups / 64).clamp(8, 64) as usize
    }

    fn new(groups: u64) -> Self {
        Lighter { noted: vec![0; Self::most_for(groups)], count: 0 }
    }

    fn memory_bits_for(groups: u64) -> u64 {
        Self::most_for(groups) as u64 * 32
    }

    /// Notes a group if there is room; if not, another draw will come across it.
    #[inline(always)]
    fn note(&mut self, group: u32) {
        if let Some(note) = self.noted.get_mut(self.count) {
            *note = group;
            self.count += 1;
        }
    }

    fn groups(&self) -> &[u32] {
        &self.noted[..self.count]
    }

    /// Reads notes back and refuses those of groups that do not exist.
    fn restore(&mut self, state: &mut StateReader<'_>, groups: u64) -> Result<()> {
        let wrong = || Error::corrupt("the filter's notes about its sampling index do not fit its cells");
        let count = state.u64()?;
        if count > self.noted.len() as u64 {
            return Err(wrong());
        }
        self.count = count as usize;
        for note in &mut self.noted[..count as usize] {
            let group = state.u64()?;
            if group >= groups {
                return Err(wrong());
            }
            *note = group as u32;
        }
        Ok(())
    }
}

/// No index has changed so often.
const NEVER: u64 = u64::MAX;

/// Draws that were made ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Foresight {
    drawn: [Drawn; ROUND],
    count: usize,
    /// What the index was when they were made.
    changes: u64,
}

impl Default for Foresight {
    fn default() -> Self {
        Foresight { drawn: [Drawn::default(); ROUND], count: 0, changes: NEVER }
    }
}

impl Foresight {
    #[inline(always)]
    fn slots(&self) -> impl Iterator<Item = u32> {
        self.drawn.iter().take(self.count).map(|drawn| drawn.slot)
    }
}

/// Cells and their index. `COMPULSORY` leaves zero cells out.
#[derive(Debug, Clone)]
pub(super) struct Probabilistic<const COMPULSORY: bool> {
    cells: WeighedCells,
    index: SamplingIndex,
    lighter: Lighter,
    importance: CellImportance,
}

/// A whole number a little above 2^22/total, per cell; 0 for cells left out.
#[inline(always)]
fn bounds<const COMPULSORY: bool>(machine: impl Machine, group: &Group) -> Group {
    let mut bounds = machine.quotients(group);
    if COMPULSORY {
        for (bound, cell) in bounds.iter_mut().zip(group) {
            *bound = if Cell(*cell).value() > 0 { *bound } else { 0 };
        }
    }
    bounds
}

/// Whether a cell is not left out.
#[inline(always)]
fn counts<const COMPULSORY: bool>(cell: Cell) -> bool {
    cell.total() > 0 && (!COMPULSORY || cell.value() > 0)
}

/// One of [`bounds`].
#[inline(always)]
fn bound<const COMPULSORY: bool>(cell: Cell) -> u32 {
    if counts::<COMPULSORY>(cell) { quotient(cell.0) } else { 0 }
}

/// Whether a cell's weight is greater than it was.
#[inline(always)]
fn has_grown<const COMPULSORY: bool>(old: Cell, new: Cell) -> bool {
    counts::<COMPULSORY>(new) && (!counts::<COMPULSORY>(old) || new.total() < old.total())
}

/// The draws that are made at once for this many picks: one to spare, for nine of ten are taken. With fewer,
/// another round would often have to wait for the last one; with more, draws would be wasted.
#[inline(always)]
fn draws_ahead(decrements: u32) -> usize {
    (decrements as usize + 1).min(ROUND)
}

impl<const COMPULSORY: bool> Probabilistic<COMPULSORY> {
    pub(super) fn new(parameters: &Parameters) -> Result<Self> {
        Ok(Probabilistic {
            cells: WeighedCells::new(parameters.num_cells)?,
            index: SamplingIndex::new(WeighedCells::groups_for(parameters.num_cells))?,
            lighter: Lighter::new(WeighedCells::groups_for(parameters.num_cells)),
            importance: parameters.cell_importance,
        })
    }

    #[cfg(test)]
    pub(super) fn cell(&self, position: u64) -> Cell {
        self.cells.get(position)
    }

    fn weight(cells: &WeighedCells, group: usize) -> u32 {
        bounds::<COMPULSORY>(Plain, &cells.groups()[group]).iter().sum()
    }

    #[inline(always)]
    fn draw(&self, count: usize, draws: &mut Draws, foresight: &mut Foresight) {
        for drawn in &mut foresight.drawn[..count] {
            *drawn = self.index.draw(draws);
        }
        (foresight.count, foresight.changes) = (count, self.index.changes());
    }
}

impl<const COMPULSORY: bool> Cells for Probabilistic<COMPULSORY> {
    type Foresight = Foresight;

    #[inline(always)]
    fn is_set(&self, position: u64) -> bool {
        self.cells.get(position).value() > 0
    }

    #[inline(always)]
    fn meets(&self, position: u64) -> bool {
        let cell = self.cells.get(position);
        if cell.total() == 0 {
            // Its group will have grown; by the time of the insertion its place is known.
            self.index.prefetch_move(position as usize / GROUP);
        }
        cell.value() > 0
    }

    #[inline(always)]
    fn nonzero(&self) -> u64 {
        self.cells.nonzero()
    }

    #[inline(always)]
    fn prefetch(&self, position: u64) {
        self.cells.prefetch(position);
    }

    #[inline(always)]
    fn foresee(&self, decrements: u32, mut draws: Draws, foresight: &mut Foresight) {
        // Where zero cells are left out, every arrival changes the index, and little of this would come true.
        if !COMPULSORY && !self.index.is_empty() {
            self.draw(draws_ahead(decrements), &mut draws, foresight);
            foresight.slots().for_each(|slot| self.index.prefetch_slot(slot));
        }
    }

    #[inline(always)]
    fn approach(&self, decrements: u32, mut draws: Draws, foresight: &mut Foresight) {
        if foresight.count > 0 && foresight.changes != self.index.changes() && !self.index.is_empty() {
            self.draw(draws_ahead(decrements), &mut draws, foresight);
        }
        for slot in foresight.slots() {
            self.cells.prefetch(u64::from(self.index.at(slot)) * GROUP as u64);
        }
    }

    #[inline(always)]
    fn delete(&mut self, machine: impl Machine, decrements: u32, draws: &mut Draws, foresight: &mut Foresight) {
        let mut foreseen = foresight.changes == self.index.changes();
        let (mut left, mut in_vain) = (decrements, 0);
        let mut before = [[0; GROUP]; ROUND];
        while left > 0 && !self.index.is_empty() {
            // All draws of a round are made before anything is changed. A weight can only fall while it
            // lasts, so they are exact for every pick of it; those left over are dropped.
            let round = draws_ahead(left);
            if foreseen {
                draws.skip(round as u64);
                foreseen = false;
            } else {
                self.draw(round, draws, foresight);
            }
            // One step after another, for all draws: in one loop, each would wait for the one before.
            let drawn = &foresight.drawn;
            let mut groups = [0; ROUND];
            for at in 0..round {
                groups[at] = self.index.at(drawn[at].slot);
            }
            let mut weights = [0; ROUND];
            for at in 0..round {
                let bounds = bounds::<COMPULSORY>(machine, &self.cells.groups()[groups[at] as usize]);
                weights[at] = machine.sums(&bounds, &mut before[at]);
            }
            let mut picks = [(0, false); ROUND];
            let mut lighter = 0;
            for at in 0..round {
                let (Drawn { offset, fraction, floor, .. }, weight) = (drawn[at], weights[at]);
                let cell = machine.find(&before[at], offset);
                let position = u64::from(groups[at]) * GROUP as u64 + cell as u64;
                let total = u64::from(self.cells.get(position).total());
                // rest/2^22 < 1/total, with 16 more bits for the largest totals.
                let rest = u64::from(offset - before[at][cell]) << 16 | u64::from(fraction);
                let fits = rest * total < 1 << (SCALE_BITS + 16);
                picks[at] = (position, fits & (offset < weight));
                lighter |= u32::from(weight <= floor) << at;
            }
            while lighter > 0 {
                self.lighter.note(groups[lighter.trailing_zeros() as usize % ROUND]);
                lighter &= lighter - 1;
            }
            let wanted = left;
            left -= self.cells.lower_picked::<COMPULSORY>(&picks[..round], left);
            foresight.changes = NEVER;
            in_vain = if left < wanted { 0 } else { in_vain + round };
            // Where zero cells are left out, groups of which nothing is left must go at once, or the last picks
            // would not find a cell.
            if COMPULSORY || in_vain >= PATIENCE {
                self.catch_up(machine);
                in_vain = 0;
            }
        }
    }

    #[inline(always)]
    fn catch_up(&mut self, machine: impl Machine) {
        for group in self.lighter.groups() {
            self.index.prefetch_move(*group as usize);
        }
        for group in self.lighter.groups() {
            let bounds = bounds::<COMPULSORY>(machine, &self.cells.groups()[*group as usize]);
            self.index.settle(*group as usize, bounds.iter().sum());
        }
        self.lighter.count = 0;
    }

    #[inline(always)]
    fn lower(&mut self, position: u64) {
        self.cells.lower(position);
    }

    #[inline(always)]
    fn insert(&mut self, machine: impl Machine, position: u64, value: u32, weight: u32) {
        let old = self.cells.get(position);
        let new = old.raised(value, weight, self.importance);
        if has_grown::<COMPULSORY>(old, new) {
            let group = position as usize / GROUP;
            // Before the cell is written: the whole group could not be read until the write has gone through.
            let before: u32 = bounds::<COMPULSORY>(machine, &self.cells.groups()[group]).iter().sum();
            self.index.raise(group, before - bound::<COMPULSORY>(old) + bound::<COMPULSORY>(new));
        }
        self.cells.set(position, new);
    }

    fn decay(&mut self) {
        self.cells.decay();
        let cells = &self.cells;
        self.index.rebuild(|group| Self::weight(cells, group));
    }

    fn clear(&mut self) {
        self.lighter.count = 0;
        self.cells.clear();
        self.index.rebuild(|_| 0);
    }

    fn memory_bits(parameters: &Parameters) -> u64 {
        let groups = WeighedCells::groups_for(parameters.num_cells);
        let index = SamplingIndex::memory_bits_for(groups);
        let notes = Lighter::memory_bits_for(groups);
        WeighedCells::byte_length(parameters.num_cells).saturating_mul(8).saturating_add(index).saturating_add(notes)
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        let groups = WeighedCells::groups_for(parameters.num_cells);
        let order = SamplingIndex::byte_length(groups);
        WeighedCells::byte_length(parameters.num_cells).saturating_add(order)
    }

    fn bytes(&self) -> Vec<&[u8]> {
        vec![self.cells.bytes(), self.index.order_bytes()]
    }

    fn write_state(&self, state: StateWriter) -> StateWriter {
        let state = self.index.starts().iter().fold(state, |state, start| state.u64(u64::from(*start)));
        let noted = self.lighter.groups();
        noted.iter().fold(state.u64(noted.len() as u64), |state, group| state.u64(u64::from(*group)))
    }

    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()> {
        let wrong = |_| Error::corrupt("the filter's sampling index does not fit its cells");
        let mut start = |_| u32::try_from(from.state.u64()?).map_err(wrong);
        let starts: Vec<u32> = (0..self.index.starts().len()).map(&mut start).collect::<Result<_>>()?;
        self.lighter.restore(&mut from.state, WeighedCells::groups_for(parameters.num_cells))?;
        from.body.fill(self.cells.bytes_mut())?;
        from.body.fill(self.index.order_bytes_mut())?;
        self.cells.check(parameters.cell_max)?;
        let cells = &self.cells;
        self.index.restore(&starts, |group| Self::weight(cells, group))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sampling::heaviest;
    use super::super::weighed::MAX_TOTAL;
    use super::*;

    /// As a file may say it: an index whose bounds hold, with next to nothing to be found below them.
    #[test]
    fn groups_that_weigh_nothing_do_not_hold_up_a_deletion() {
        let parameters = Parameters::from_spec(
            &"ibf:insertion=m,deletion=probabilistic,num_cells=5000,num_hashes=4,decrements=7,cell_max=4,\
              cell_importance=sum,reinsert=off"
                .parse()
                .expect("a spec"),
        );
        let mut cells = Probabilistic::<false>::new(&parameters.expect("parameters")).expect("small");
        cells.index.rebuild(|_| 1 << 26);
        cells.delete(Plain, 7, &mut Draws::new(1), &mut Foresight::default());
        assert!(cells.index.is_empty());
        cells.index.rebuild(|_| 1 << 26);
        cells.insert(Plain, 77, 4, 1000);
        for seed in 0..4 {
            cells.delete(Plain, 1, &mut Draws::new(seed), &mut Foresight::default());
        }
        assert_eq!((cells.nonzero(), cells.cell(77).value()), (0, 0));
    }

    #[test]
    fn bounds_are_just_above_the_reciprocals() {
        let totals = [0, 1, 2, 3, 4, 5, 1000, 1023, 1024, 1025, 65_535, 1 << 20, (1 << 22) - 1, 1 << 22, 1, MAX_TOTAL];
        for value in [0, 4] {
            let group = totals.map(|total| Cell::new(total, value).0);
            let (plain, compulsory) = (bounds::<false>(Plain, &group), bounds::<true>(Plain, &group));
            for (at, total) in totals.into_iter().enumerate() {
                let exact = f64::from(1 << SCALE_BITS) / f64::from(total);
                let above = f64::from(plain[at]) - exact;
                assert!(if total == 0 { plain[at] == 0 } else { above > 0.0 && above <= 1.5 }, "{total}: {above}");
                // A value without a total does not occur.
                assert!(compulsory[at] == if value == 0 { 0 } else { plain[at] } || total == 0);
            }
            assert!(plain.iter().sum::<u32>() <= heaviest());
        }
        assert!(16 * ((1 << SCALE_BITS) + 1) <= heaviest());
    }
}
