//! Probabilistic deletion by value: a cell that is not zero is picked with probability ∝ 1/value.
//!
//! The importance is in the values themselves, so no totals are kept. Values are packed; the words
//! they are packed in are the groups of the [`SamplingIndex`], weighed by their cells that are not
//! zero. A pick draws a word, one of those cells, and takes it with probability 1/value. While there are
//! only a [few](Few) such cells, they are listed, the index is empty, and a pick draws one of the list.

use super::Cells;
use super::draws::Draws;
use super::few::{Few, MOST_FEW};
use super::parameters::Parameters;
use super::random::check_values;
use super::sampling::{Drawn, Exact, SamplingIndex};
use crate::cells::counters::{Counters, low_bits, nonzero_lanes};
use crate::cells::simd::Machine;
use crate::error::{Error, Result};
use crate::filters::Restore;
use crate::wire::StateWriter;

/// Packed values and the index over their words.
#[derive(Debug, Clone)]
pub(super) struct ByValue {
    cells: Counters,
    cell_bits: u32,
    /// The lowest bit of every cell of a word.
    low: u64,
    index: SamplingIndex<Exact>,
    few: Box<Few>,
    /// Whether all cells that are not zero are in the list, and none in the index; otherwise it is the other
    /// way round.
    listed: bool,
    nonzero: u64,
    /// The sum of all values.
    units: u64,
}

fn words_for(parameters: &Parameters) -> u64 {
    parameters.num_cells.div_ceil(u64::from(64 / parameters.cell_bits()))
}

impl ByValue {
    pub(super) fn new(parameters: &Parameters) -> Result<Self> {
        let cell_bits = parameters.cell_bits();
        Ok(ByValue {
            cells: Counters::new(parameters.num_cells, cell_bits)?,
            cell_bits,
            low: low_bits(cell_bits),
            index: SamplingIndex::new(words_for(parameters))?,
            few: Box::new(Few::new()),
            listed: true,
            nonzero: 0,
            units: 0,
        })
    }

    #[cfg(test)]
    pub(super) fn value(&self, position: u64) -> u32 {
        self.cells.get(position).into()
    }

    #[cfg(test)]
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    #[inline(always)]
    fn lanes(&self, word: usize) -> u64 {
        nonzero_lanes(self.cells.words()[word], self.cell_bits, self.low)
    }

    /// Every cell to zero: what happens, whatever is drawn, when no more than `decrements` units are left.
    fn lower_all(&mut self) {
        let cells = &mut self.cells;
        self.few.positions().iter().for_each(|position| cells.set(*position, 0));
        self.few.clear();
        self.index.empty(|word| cells.words_mut()[word] = 0);
        self.listed = true;
        (self.nonzero, self.units) = (0, 0);
    }

    /// Puts the cells that are left, a few, from the index into the list.
    #[cold]
    fn list(&mut self) {
        let (words, few, cell_bits, low) = (self.cells.words(), &mut self.few, self.cell_bits, self.low);
        self.index.empty(|word| {
            let mut lanes = nonzero_lanes(words[word], cell_bits, low);
            while lanes != 0 {
                let cell = u64::from(lanes.trailing_zeros() / cell_bits);
                few.add(word as u64 * u64::from(64 / cell_bits) + cell);
                lanes &= lanes - 1;
            }
        });
        self.listed = true;
    }

    /// Puts the cells of the list into the index.
    #[cold]
    fn index_all(&mut self) {
        for position in self.few.positions() {
            let word = self.cells.word_of(*position);
            let lanes = nonzero_lanes(self.cells.words()[word], self.cell_bits, self.low);
            self.index.raise(word, lanes.count_ones());
        }
        self.few.clear();
        self.listed = false;
    }

    /// Lowers a cell drawn from the list, if it is taken.
    #[inline(always)]
    fn take_listed(&mut self, draws: &mut Draws) -> bool {
        let (place, fraction) = self.few.draw(draws);
        let position = self.few.at(place);
        let value = self.cells.get(position);
        let taken = fraction * u32::from(value) < 1 << 16;
        let emptied = taken & (value == 1);
        self.cells.lower_by(position, taken.into());
        self.few.leave_out_if(emptied, place);
        self.units -= u64::from(taken);
        self.nonzero -= u64::from(emptied);
        taken
    }

    /// Lowers a cell drawn from the index, if it is taken.
    #[inline(always)]
    fn take(&mut self, machine: impl Machine, drawn: Drawn) -> bool {
        let at = self.index.at(drawn.slot) as usize;
        let lanes = self.lanes(at);
        let mut weight = lanes.count_ones();
        let mut taken = false;
        if drawn.offset < weight {
            let shift = machine.nth_set(lanes, drawn.offset);
            let word = &mut self.cells.words_mut()[at];
            let value = (*word >> shift) as u32 & ((1 << self.cell_bits) - 1);
            taken = drawn.fraction * value < 1 << 16;
            *word -= u64::from(taken) << shift;
            self.units -= u64::from(taken);
            let emptied = u32::from(taken && value == 1);
            self.nonzero -= u64::from(emptied);
            weight -= emptied;
        }
        if weight <= drawn.floor {
            self.index.settle(at, weight);
        }
        taken
    }
}

impl Cells for ByValue {
    type Foresight = ();

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
    fn delete(&mut self, machine: impl Machine, decrements: u32, draws: &mut Draws, _foresight: &mut ()) {
        if self.units <= u64::from(decrements) {
            self.lower_all();
            return;
        }
        if !self.listed && self.nonzero <= MOST_FEW as u64 / 2 {
            self.list();
        }
        let mut left = decrements;
        while self.listed && left > 0 {
            left -= u32::from(self.take_listed(draws));
        }
        while left > 0 {
            let drawn = self.index.draw(draws);
            left -= u32::from(self.take(machine, drawn));
        }
    }

    #[inline(always)]
    fn lower(&mut self, position: u64) {
        let value = self.cells.lower_from(position);
        self.units -= u64::from(value > 0);
        if value == 1 {
            self.nonzero -= 1;
            self.few.leave_out(position);
        }
    }

    #[inline(always)]
    fn insert(&mut self, _: impl Machine, position: u64, value: u32, _weight: u32) {
        let old = self.cells.raise_to(position, value as u16);
        self.units += u64::from((value as u16).saturating_sub(old));
        if old == 0 && value > 0 {
            self.nonzero += 1;
            if self.listed {
                if self.few.add(position) {
                    return;
                }
                self.index_all();
            }
            let word = self.cells.word_of(position);
            self.index.raise(word, self.lanes(word).count_ones());
        }
    }

    fn decay(&mut self) {}

    fn clear(&mut self) {
        self.cells.clear();
        self.index.rebuild(|_| 0);
        self.few.clear();
        self.listed = true;
        (self.nonzero, self.units) = (0, 0);
    }

    fn memory_bits(parameters: &Parameters) -> u64 {
        let cells = Counters::byte_length(parameters.num_cells, parameters.cell_bits());
        let index = SamplingIndex::<Exact>::memory_bits_for(words_for(parameters));
        cells.saturating_mul(8).saturating_add(index).saturating_add(size_of::<Few>() as u64 * 8)
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        let cells = Counters::byte_length(parameters.num_cells, parameters.cell_bits());
        cells.saturating_add(SamplingIndex::<Exact>::byte_length(words_for(parameters)))
    }

    fn bytes(&self) -> Vec<&[u8]> {
        vec![self.cells.bytes(), self.index.order_bytes()]
    }

    fn write_state(&self, state: StateWriter) -> StateWriter {
        let state = self.index.starts().iter().fold(state, |state, start| state.u64(u64::from(*start)));
        self.few.write_state(state.u64(self.listed.into()))
    }

    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()> {
        let starts = super::read_starts(&mut from.state, self.index.starts().len())?;
        from.body.fill(self.cells.bytes_mut())?;
        from.body.fill(self.index.order_bytes_mut())?;
        check_values(&self.cells, parameters.cell_max)?;
        self.nonzero = self.cells.count_nonzero();
        self.units = (0..self.cells.len()).map(|position| u64::from(self.cells.get(position))).sum();
        let cells = &self.cells;
        let is_set = |position| position < cells.len() && cells.get(position) > 0;
        self.listed = match from.state.u64()? {
            listed @ 0..=1 => listed == 1,
            _ => return Err(Error::corrupt("whether the filter lists its cells is neither yes nor no")),
        };
        self.few.restore(&mut from.state, if self.listed { self.nonzero } else { 0 }, is_set)?;
        if self.listed {
            return self.index.restore(&starts, |_| 0);
        }
        let (words, cell_bits, low) = (self.cells.words(), self.cell_bits, self.low);
        self.index.restore(&starts, |word| nonzero_lanes(words[word], cell_bits, low).count_ones())
    }
}
