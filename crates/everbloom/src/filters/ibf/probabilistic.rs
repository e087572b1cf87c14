//! Probabilistic deletion: a cell is picked with probability ∝ 1/(importance mapped to it).
//!
//! *Plain*: the picks fall on every cell that was ever touched, and one that finds a zero cell is
//! wasted. *Compulsory* (the thesis's Probabilistic-delete-p): they fall on cells that are not zero, so
//! exactly `decrements` values are lowered, or as many as there are. Picks are independent; one cell
//! may be lowered twice.
//!
//! A pick draws a group of 16 cells from the [`SamplingIndex`] and a cell in it, both in proportion to
//! whole numbers a little above 2^22/total, then takes the cell with the probability that makes up for
//! the difference. So the picks are exact, in integers. 1.1 draws a pick, two cache lines each: an
//! entry of the index and the group.

use super::draws::Draws;
use super::parameters::{CellImportance, Parameters};
use super::sampling::{Proposal, Quarters, SamplingIndex};
use super::weighed::{Cell, GROUP, Group, WeighedCells};
use super::{Cells, Leads};
use crate::cells::simd::{Found, Machine, Plain};
use crate::error::Result;
use crate::filters::Restore;
use crate::wire::StateWriter;

/// A cell of total 1 weighs 2^22, one of the largest total a little over 1/2.
const SCALE_BITS: u32 = 22;

/// The most draws that are made, and whose lines are asked for, at once.
const ROUND: u32 = 16;

/// Cells and their index. `COMPULSORY` leaves zero cells out.
#[derive(Debug, Clone)]
pub(super) struct Probabilistic<const COMPULSORY: bool> {
    cells: WeighedCells,
    index: SamplingIndex<Quarters>,
    importance: CellImportance,
}

/// The bits of a cell of which one must be set for it to count: of its total, or of its value.
const fn needed<const COMPULSORY: bool>() -> u32 {
    if COMPULSORY { 0xff } else { !0xff }
}

/// A whole number a little above 2^22/total, per cell; 0 for cells left out.
#[inline(always)]
fn bounds<const COMPULSORY: bool>(machine: impl Machine, group: &Group) -> Group {
    machine.quotients(group, const { needed::<COMPULSORY>() })
}

/// Whether a cell's weight is greater than it was.
#[inline(always)]
fn has_grown<const COMPULSORY: bool>(old: Cell, new: Cell) -> bool {
    let counts = |cell: Cell| cell.total() > 0 && (!COMPULSORY || cell.value() > 0);
    counts(new) && (!counts(old) || new.total() < old.total())
}

/// The draws that this many picks usually take: nine for eight, and one to spare. With fewer, another
/// round would often have to wait for the last one; with more, draws would be wasted.
#[inline(always)]
fn draws_ahead(decrements: u32) -> u32 {
    decrements + decrements / 8 + 1
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
        bounds::<COMPULSORY>(Plain, &cells.groups()[group]).iter().sum()
    }

    /// Lowers the proposed cell, if it is taken.
    #[inline(always)]
    fn take(&mut self, machine: impl Machine, proposal: Proposal, wanted: bool) -> bool {
        let group = proposal.group as usize;
        let bounds = bounds::<COMPULSORY>(machine, &self.cells.groups()[group]);
        let Found { total: weight, part: cell, rest } = machine.find(&bounds, proposal.offset);
        if weight <= proposal.floor {
            self.index.settle(group, weight);
        }
        // No branch on whether it is taken, which no predictor could foresee.
        let total = u64::from(self.cells.groups()[group][cell] >> 8);
        // rest/2^22 < 1/total, with 16 more bits for the largest totals.
        let fits = (u64::from(rest) << 16 | u64::from(proposal.fraction)) * total < 1 << (SCALE_BITS + 16);
        let taken = fits & (proposal.offset < weight) & wanted;
        self.cells.lower_if(taken, (group * GROUP + cell) as u64);
        taken
    }
}

impl<const COMPULSORY: bool> Cells for Probabilistic<COMPULSORY> {
    #[inline(always)]
    fn is_set(&self, position: u64) -> bool {
        self.cells.get(position).value() > 0
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
    fn prefetch_picks(&self, decrements: u32, draws: &mut Draws, leads: &mut Leads) {
        leads.count = (draws_ahead(decrements) as usize).min(leads.slots.len());
        self.index.prefetch_order(&mut leads.slots[..leads.count], draws);
    }

    #[inline(always)]
    fn prefetch_picked(&self, leads: &Leads) {
        for slot in &leads.slots[..leads.count.min(leads.slots.len())] {
            self.cells.prefetch(u64::from(self.index.at(*slot)) * GROUP as u64);
        }
    }

    #[inline(always)]
    fn delete(&mut self, machine: impl Machine, decrements: u32, draws: &mut Draws) {
        let mut left = decrements;
        while left > 0 {
            let mut proposals = [Proposal::default(); ROUND as usize];
            let round = &mut proposals[..draws_ahead(left).min(ROUND) as usize];
            for proposal in &mut *round {
                if self.index.is_empty() {
                    return;
                }
                *proposal = self.index.propose(draws);
                self.cells.prefetch(u64::from(proposal.group) * GROUP as u64);
            }
            // Bounds and proposals are of the moment before the round. A weight can only fall while
            // it lasts, so they are exact for every pick of it. Draws left over are dropped.
            for proposal in &*round {
                left -= u32::from(self.take(machine, *proposal, left > 0));
            }
        }
    }

    #[inline(always)]
    fn lower(&mut self, position: u64) {
        self.cells.lower(position);
    }

    #[inline(always)]
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
        let index = SamplingIndex::<Quarters>::memory_bits_for(groups);
        WeighedCells::byte_length(parameters.num_cells).saturating_mul(8).saturating_add(index)
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        let groups = WeighedCells::groups_for(parameters.num_cells);
        let order = SamplingIndex::<Quarters>::byte_length(groups);
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
            let (plain, compulsory) = (bounds::<false>(Plain, &group), bounds::<true>(Plain, &group));
            for (at, total) in totals.into_iter().enumerate() {
                let exact = f64::from(1 << SCALE_BITS) / f64::from(total);
                let above = f64::from(plain[at]) - exact;
                assert!(if total == 0 { plain[at] == 0 } else { above > 0.0 && above <= 1.5 }, "{total}: {above}");
                // A value without a total does not occur.
                assert!(compulsory[at] == if value == 0 { 0 } else { plain[at] } || total == 0);
            }
            assert!(plain.iter().sum::<u32>() <= Quarters::BOUNDS[Quarters::COUNT - 1]);
        }
        assert!(16 * ((1 << SCALE_BITS) + 1) <= Quarters::BOUNDS[Quarters::COUNT - 1]);
    }
}
