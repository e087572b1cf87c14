//! Probabilistic deletion by value: a cell that is not zero is picked with probability ∝ 1/value.
//!
//! The importance is in the values themselves, so no totals are kept. A pick draws one of the cells that
//! are not zero and takes it with probability 1/value; if not, it draws again. While up to one cell in 16 is
//! not zero, those are [listed](Listing) and drawn from the list. When there are more, the list is dropped,
//! and cells are drawn from all there are, until one is not zero: few draws, and nothing to keep. When half
//! as many are left as could be listed, they are listed again: a pass over the cells, but the list is half
//! empty then, and a 32nd of the cells must be added to it before it is dropped once more.

use super::Cells;
use super::draws::Draws;
use super::listing::Listing;
use super::parameters::Parameters;
use super::random::check_values;
use everbloom::kind::{Restore, StateWriter};
use everbloom::{Error, Result};
use everbloom_cells::counters::{Counters, low_bits, nonzero_lanes};

/// Packed values, and a list of those that are not zero.
#[derive(Debug, Clone)]
pub(super) struct ByValue {
    cells: Counters,
    cell_bits: u32,
    listing: Listing,
    /// Whether cells are drawn from all there are; the list is empty then.
    crowded: bool,
    nonzero: u64,
    /// The sum of all values.
    units: u64,
}

/// Whether a cell that was drawn with a number below 2^16 is taken. Do not branch on it: the branch would be
/// mispredicted about every other time.
#[inline(always)]
fn is_taken(value: u32, fraction: u32) -> bool {
    (value > 0) & (fraction * value < 1 << 16)
}

impl ByValue {
    pub(super) fn new(parameters: &Parameters) -> Result<Self> {
        let cell_bits = parameters.cell_bits();
        Ok(ByValue {
            cells: Counters::new(parameters.num_cells, cell_bits)?,
            cell_bits,
            listing: Listing::new(parameters.num_cells)?,
            crowded: false,
            nonzero: 0,
            units: 0,
        })
    }

    #[cfg(test)]
    pub(super) fn value(&self, position: u64) -> u32 {
        self.cells.get(position).into()
    }

    #[cfg(test)]
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Every cell to zero: what happens, whatever is drawn, when no more than `decrements` units are left.
    fn lower_all(&mut self) {
        let cells = &mut self.cells;
        match self.crowded {
            // There are no more than 32 cells for each of the few units.
            true => cells.clear(),
            false => self.listing.positions().for_each(|position| cells.set(position, 0)),
        }
        self.listing.clear();
        self.crowded = false;
        (self.nonzero, self.units) = (0, 0);
    }

    /// Lists all cells that are not zero; there is room for them.
    #[cold]
    fn list(&mut self) {
        let (cell_bits, low) = (self.cell_bits, low_bits(self.cell_bits));
        let per_word = u64::from(64 / cell_bits);
        for (word, values) in self.cells.words().iter().enumerate() {
            let mut lanes = nonzero_lanes(*values, cell_bits, low);
            while lanes != 0 {
                self.listing.add(word as u64 * per_word + u64::from(lanes.trailing_zeros() / cell_bits));
                lanes &= lanes - 1;
            }
        }
        self.crowded = false;
    }

    /// The list is full: leaves out what it need not have, or does without it.
    #[cold]
    fn make_room(&mut self, position: u64) {
        if self.is_for_the_list() {
            let cells = &self.cells;
            self.listing.tidy(|position| cells.get(position) > 0);
            self.listing.add(position);
        } else {
            self.listing.clear();
            self.crowded = true;
        }
    }

    /// Whether so few cells are not zero that the list would be half empty.
    #[inline(always)]
    fn is_for_the_list(&self) -> bool {
        self.nonzero <= Listing::room_for(self.cells.len()) / 2
    }

    /// Lowers so many of the cells that are drawn from the list.
    #[inline(always)]
    fn lower_listed(&mut self, decrements: u32, draws: &mut Draws) {
        let mut left = decrements;
        while left > 0 {
            let (place, fraction) = self.listing.draw(draws);
            let position = self.listing.at(place);
            let value = u32::from(self.cells.get(position));
            let taken = is_taken(value, fraction);
            self.cells.lower_by(position, taken.into());
            left -= u32::from(taken);
            if value == u32::from(taken) {
                self.nonzero -= u64::from(taken);
                self.listing.leave_out(place);
            }
        }
    }

    /// Lowers so many of the cells that are drawn from all there are.
    #[inline(always)]
    fn lower_crowded(&mut self, decrements: u32, draws: &mut Draws) {
        let (per_word, max) = (64 / self.cell_bits, u64::from(self.cells.max()));
        let num_words = self.cells.len().div_ceil(per_word.into());
        let words = &mut self.cells.words_mut()[..num_words as usize];
        let (mut left, mut emptied) = (decrements, 0);
        while left > 0 {
            let (at, lane, fraction) = draws.below_twice(num_words, per_word);
            let (word, shift) = (&mut words[at as usize], lane * self.cell_bits);
            let value = (*word >> shift & max) as u32;
            let taken = is_taken(value, fraction);
            *word -= u64::from(taken) << shift;
            emptied += u64::from(taken & (value == 1));
            left -= u32::from(taken);
        }
        self.nonzero -= emptied;
    }
}

impl Cells for ByValue {
    #[inline(always)]
    fn is_set(&self, position: u64) -> bool {
        self.cells.get(position) > 0
    }

    #[inline(always)]
    fn nonzero(&self) -> u64 {
        self.nonzero
    }

    #[inline(always)]
    fn prefetch(&self, position: u64) {
        self.cells.prefetch(position);
    }

    #[inline(always)]
    fn prefetch_insert(&self, position: u64) {
        self.cells.prefetch(position);
        if !self.crowded {
            self.listing.prefetch(position);
        }
    }

    #[inline(always)]
    fn delete(&mut self, decrements: u32, draws: &mut Draws) {
        if self.crowded && self.is_for_the_list() {
            self.list();
        }
        if self.units <= u64::from(decrements) {
            return self.lower_all();
        }
        match self.crowded {
            true => self.lower_crowded(decrements, draws),
            false => self.lower_listed(decrements, draws),
        }
        self.units -= u64::from(decrements);
    }

    #[inline(always)]
    fn lower(&mut self, position: u64) {
        let value = self.cells.lower_from(position);
        self.units -= u64::from(value > 0);
        self.nonzero -= u64::from(value == 1);
    }

    #[inline(always)]
    fn insert(&mut self, position: u64, value: u32, _weight: u32) {
        let old = self.cells.raise_to(position, value as u16);
        self.units += u64::from((value as u16).saturating_sub(old));
        if old == 0 && value > 0 {
            self.nonzero += 1;
            if !self.crowded && !self.listing.add(position) {
                self.make_room(position);
            }
        }
    }

    fn decay(&mut self) {}

    fn clear(&mut self) {
        self.cells.clear();
        self.listing.clear();
        self.crowded = false;
        (self.nonzero, self.units) = (0, 0);
    }

    fn memory_bits(parameters: &Parameters) -> u64 {
        let cells = Counters::byte_length(parameters.num_cells, parameters.cell_bits());
        cells.saturating_mul(8).saturating_add(Listing::memory_bits_for(parameters.num_cells))
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        let cells = Counters::byte_length(parameters.num_cells, parameters.cell_bits());
        cells.saturating_add(Listing::byte_length(parameters.num_cells))
    }

    fn bytes(&self) -> Vec<&[u8]> {
        vec![self.cells.bytes(), self.listing.bytes()]
    }

    fn write_state(&self, state: StateWriter) -> StateWriter {
        state.u64(self.crowded.into()).u64(self.listing.len())
    }

    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()> {
        let (crowded, listed) = (from.state.u64()?, from.state.u64()?);
        if crowded > 1 || (crowded == 1 && listed > 0) {
            return Err(Error::corrupt("the filter's list of cells is neither in use nor empty"));
        }
        from.body.fill(self.cells.bytes_mut())?;
        from.body.fill(self.listing.bytes_mut())?;
        check_values(&self.cells, parameters.cell_max)?;
        self.crowded = crowded == 1;
        self.nonzero = self.cells.count_nonzero();
        self.units = (0..self.cells.len()).map(|position| u64::from(self.cells.get(position))).sum();
        let (cells, to_be_listed) = (&self.cells, if self.crowded { 0 } else { self.nonzero });
        self.listing.restore(listed, to_be_listed, |position| cells.get(position) > 0)
    }
}
