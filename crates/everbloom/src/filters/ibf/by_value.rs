//! Probabilistic deletion by value: a cell that is not zero is picked with probability ∝ 1/value.
//!
//! The importance is in the values themselves, so no totals are kept. Values are packed; the words
//! they are packed in are the groups of the [`SamplingIndex`], weighed by their cells that are not
//! zero. A pick draws a word, one of those cells, and takes it with probability 1/value.

use super::Cells;
use super::draws::Draws;
use super::parameters::Parameters;
use super::random::check_values;
use super::sampling::{Exact, Proposal, SamplingIndex};
use crate::cells::counters::{Counters, low_bits, nonzero_lanes};
use crate::cells::simd::Machine;
use crate::error::Result;
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
            nonzero: 0,
            units: 0,
        })
    }

    #[cfg(test)]
    pub(super) fn value(&self, position: u64) -> u32 {
        self.cells.get(position).into()
    }

    #[inline(always)]
    fn lanes(&self, word: usize) -> u64 {
        nonzero_lanes(self.cells.words()[word], self.cell_bits, self.low)
    }

    /// Every cell to zero: what happens, whatever is drawn, when no more than `decrements` units are left.
    fn lower_all(&mut self) {
        let words = self.cells.words_mut();
        self.index.empty(|word| words[word] = 0);
        (self.nonzero, self.units) = (0, 0);
    }

    /// Lowers the proposed cell, if it is taken.
    #[inline(always)]
    fn take(&mut self, machine: impl Machine, proposal: Proposal) -> bool {
        let at = proposal.group as usize;
        let lanes = self.lanes(at);
        let mut weight = lanes.count_ones();
        let mut taken = false;
        if proposal.offset < weight {
            let shift = machine.nth_set(lanes, proposal.offset);
            let word = &mut self.cells.words_mut()[at];
            let value = (*word >> shift) as u32 & ((1 << self.cell_bits) - 1);
            taken = proposal.fraction * value < 1 << 16;
            *word -= u64::from(taken) << shift;
            self.units -= u64::from(taken);
            let emptied = u32::from(taken && value == 1);
            self.nonzero -= u64::from(emptied);
            weight -= emptied;
        }
        if weight <= proposal.floor {
            self.index.settle(at, weight);
        }
        taken
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
    fn delete(&mut self, machine: impl Machine, decrements: u32, draws: &mut Draws) {
        if self.units <= u64::from(decrements) {
            self.lower_all();
            return;
        }
        let mut left = decrements;
        while left > 0 {
            let proposal = self.index.propose(draws);
            left -= u32::from(self.take(machine, proposal));
        }
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
            let word = self.cells.word_of(position);
            self.index.raise(word, self.lanes(word).count_ones());
        }
    }

    fn decay(&mut self) {}

    fn clear(&mut self) {
        self.cells.clear();
        self.index.rebuild(|_| 0);
        (self.nonzero, self.units) = (0, 0);
    }

    fn memory_bits(parameters: &Parameters) -> u64 {
        let cells = Counters::byte_length(parameters.num_cells, parameters.cell_bits());
        let index = SamplingIndex::<Exact>::memory_bits_for(words_for(parameters));
        cells.saturating_mul(8).saturating_add(index)
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        let cells = Counters::byte_length(parameters.num_cells, parameters.cell_bits());
        cells.saturating_add(SamplingIndex::<Exact>::byte_length(words_for(parameters)))
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
        check_values(&self.cells, parameters.cell_max)?;
        self.nonzero = self.cells.count_nonzero();
        self.units = (0..self.cells.len()).map(|position| u64::from(self.cells.get(position))).sum();
        let (words, cell_bits, low) = (self.cells.words(), self.cell_bits, self.low);
        self.index.restore(&starts, |word| nonzero_lanes(words[word], cell_bits, low).count_ones())
    }
}
