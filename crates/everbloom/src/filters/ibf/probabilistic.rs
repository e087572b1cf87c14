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

use super::Cells;
use super::draws::Draws;
use super::parameters::{CellImportance, Parameters};
use super::sampling::{Halves, Proposal, SamplingIndex};
use super::weighed::{Cell, GROUP, Group, WeighedCells};
use crate::error::Result;
use crate::filters::Restore;
use crate::wire::StateWriter;

/// A cell of total 1 weighs 2^22, one of the largest total a little over 1/2.
const SCALE_BITS: u32 = 22;

/// Picks that are drawn, and whose lines are asked for, at once.
const ROUND: u32 = 8;

/// Cells and their index. `COMPULSORY` leaves zero cells out.
#[derive(Debug, Clone)]
pub(super) struct Probabilistic<const COMPULSORY: bool> {
    cells: WeighedCells,
    index: SamplingIndex<Halves>,
    importance: CellImportance,
}

/// A whole number a little above 2^22/total, per cell; 0 for cells left out.
#[inline(always)]
fn bounds<const COMPULSORY: bool>(group: &Group) -> Group {
    const SCALE: f32 = (1 << SCALE_BITS) as f32;
    const WHOLE: f32 = (1 << 23) as f32;
    let mut bounds = [0; GROUP];
    for (bound, cell) in bounds.iter_mut().zip(group) {
        // Adding 2^23 to a float rounds it, and leaves the whole number in its low bits; one more is
        // above the quotient whichever way it was rounded. No branches: it vectorises.
        let total = (cell >> 8) as i32;
        let whole = ((SCALE / total as f32 + WHOLE).to_bits() & 0x7f_ffff) + 1;
        let mut counts = total.wrapping_neg() >> 31;
        if COMPULSORY {
            counts &= ((cell & 0xff) as i32).wrapping_neg() >> 31;
        }
        *bound = whole & counts as u32;
    }
    bounds
}

/// Whether a cell's weight is greater than it was.
#[inline]
fn has_grown<const COMPULSORY: bool>(old: Cell, new: Cell) -> bool {
    let counts = |cell: Cell| cell.total() > 0 && (!COMPULSORY || cell.value() > 0);
    counts(new) && (!counts(old) || new.total() < old.total())
}

/// Where in consecutive parts of these lengths an offset below their sum falls: part and rest.
#[inline]
fn part_of(parts: [u32; 4], offset: u32) -> (usize, u32) {
    let ends = [parts[0], parts[0] + parts[1], parts[0] + parts[1] + parts[2]];
    let part = ends.iter().filter(|end| offset >= **end).count();
    (part, offset - [0, ends[0], ends[1], ends[2]][part])
}

/// The draws that this many picks usually take: five for four, and one to spare.
#[inline]
fn draws_ahead(decrements: u32) -> u32 {
    decrements + decrements / 4 + 1
}

impl<const COMPULSORY: bool> Probabilistic<COMPULSORY> {
    pub(super) fn new(parameters: &Parameters) -> Result<Self> {
        Ok(Probabilistic {
            cells: WeighedCells::new(parameters.num_cells)?,
            index: SamplingIndex::new(WeighedCells::groups_for(parameters.num_cells))?,
            importance: parameters.cell_importance,
        })
    }

    #[cfg(test)]
    pub(super) fn cell(&self, position: u64) -> Cell {
        self.cells.get(position)
    }

    fn weight(cells: &WeighedCells, group: usize) -> u32 {
        bounds::<COMPULSORY>(&cells.groups()[group]).iter().sum()
    }

    /// Lowers the proposed cell, if it is taken.
    #[inline(always)]
    fn take(&mut self, proposal: Proposal) -> bool {
        let group = proposal.group as usize;
        let bounds = bounds::<COMPULSORY>(&self.cells.groups()[group]);
        let mut columns = [0; 4];
        for row in bounds.as_chunks::<4>().0 {
            columns.iter_mut().zip(row).for_each(|(column, bound)| *column += bound);
        }
        let weight = columns.iter().sum::<u32>();
        if weight <= proposal.floor {
            self.index.settle(group, weight);
        }
        if proposal.offset >= weight {
            return false;
        }
        let (column, rest) = part_of(columns, proposal.offset);
        let rows = [bounds[column], bounds[column + 4], bounds[column + 8], bounds[column + 12]];
        let (row, rest) = part_of(rows, rest);
        let position = (group * GROUP + row * 4 + column) as u64;
        let total = u64::from(self.cells.get(position).total());
        // rest/2^22 < 1/total, with 16 more bits for the largest totals.
        let taken = (u64::from(rest) << 16 | u64::from(proposal.fraction)) * total < 1 << (SCALE_BITS + 16);
        if taken {
            self.cells.lower(position);
        }
        taken
    }
}

impl<const COMPULSORY: bool> Cells for Probabilistic<COMPULSORY> {
    #[inline]
    fn is_set(&self, position: u64) -> bool {
        self.cells.get(position).value() > 0
    }

    #[inline]
    fn nonzero(&self) -> u64 {
        self.cells.nonzero()
    }

    #[inline]
    fn prefetch(&self, position: u64) {
        self.cells.prefetch(position);
    }

    #[inline]
    fn prefetch_picks(&self, decrements: u32, draws: &mut Draws) {
        self.index.prefetch_order(draws_ahead(decrements), draws);
    }

    #[inline]
    fn prefetch_picked(&self, decrements: u32, draws: &mut Draws) {
        for group in self.index.likely_groups(draws_ahead(decrements), draws) {
            self.cells.prefetch((group * GROUP) as u64);
        }
    }

    #[inline]
    fn delete(&mut self, decrements: u32, draws: &mut Draws) {
        let mut left = decrements;
        while left > 0 {
            let mut proposals = [Proposal::default(); ROUND as usize];
            let round = &mut proposals[..left.min(ROUND) as usize];
            for proposal in &mut *round {
                if self.index.is_empty() {
                    return;
                }
                *proposal = self.index.propose(draws);
                self.cells.prefetch(u64::from(proposal.group) * GROUP as u64);
            }
            // Bounds and proposals are of the moment before the round. A weight can only fall while
            // it lasts, so they are exact for every pick of it.
            left -= round.iter().filter(|proposal| self.take(**proposal)).count() as u32;
        }
    }

    #[inline]
    fn lower(&mut self, position: u64) {
        self.cells.lower(position);
    }

    #[inline]
    fn insert(&mut self, position: u64, value: u32, weight: u32) {
        let old = self.cells.get(position);
        let new = old.raised(value, weight, self.importance);
        self.cells.set(position, new);
        if has_grown::<COMPULSORY>(old, new) {
            let group = position as usize / GROUP;
            self.index.raise(group, Self::weight(&self.cells, group));
        }
    }

    fn decay(&mut self) {
        self.cells.decay();
        let cells = &self.cells;
        self.index.rebuild(|group| Self::weight(cells, group));
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.index.rebuild(|_| 0);
    }

    fn memory_bits(parameters: &Parameters) -> u64 {
        let groups = WeighedCells::groups_for(parameters.num_cells);
        let index = SamplingIndex::<Halves>::memory_bits_for(groups);
        WeighedCells::byte_length(parameters.num_cells).saturating_mul(8).saturating_add(index)
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        let groups = WeighedCells::groups_for(parameters.num_cells);
        let order = SamplingIndex::<Halves>::byte_length(groups);
        WeighedCells::byte_length(parameters.num_cells).saturating_add(order)
    }

    fn bytes(&self) -> Vec<&[u8]> {
        vec![self.cells.bytes(), self.index.order_bytes()]
    }

    fn write_state(&self, state: StateWriter) -> StateWriter {
        self.index.starts().iter().fold(state, |state, start| state.u64(u64::from(*start)))
    }

    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()> {
        let starts = super::read_starts(&mut from.state, self.index.starts().len())?;
        from.body.fill(self.cells.bytes_mut())?;
        from.body.fill(self.index.order_bytes_mut())?;
        self.cells.check(parameters.cell_max)?;
        let cells = &self.cells;
        self.index.restore(&starts, |group| Self::weight(cells, group))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sampling::Classes;
    use super::super::weighed::MAX_TOTAL;
    use super::*;

    #[test]
    fn bounds_are_just_above_the_reciprocals() {
        let totals = [0, 1, 2, 3, 4, 5, 1000, 1023, 1024, 1025, 65_535, 1 << 20, (1 << 22) - 1, 1 << 22, 1, MAX_TOTAL];
        for value in [0, 4] {
            let group = totals.map(|total| Cell::new(total, value).0);
            let (plain, compulsory) = (bounds::<false>(&group), bounds::<true>(&group));
            for (at, total) in totals.into_iter().enumerate() {
                let exact = f64::from(1 << SCALE_BITS) / f64::from(total);
                let above = f64::from(plain[at]) - exact;
                assert!(if total == 0 { plain[at] == 0 } else { above > 0.0 && above <= 1.5 }, "{total}: {above}");
                assert_eq!(compulsory[at], if value == 0 { 0 } else { plain[at] });
            }
            assert!(plain.iter().sum::<u32>() <= *Halves::BOUNDS.last().expect("54 classes"));
        }
        assert!(16 * ((1 << SCALE_BITS) + 1) <= Halves::BOUNDS[Halves::COUNT - 1]);
    }
}
