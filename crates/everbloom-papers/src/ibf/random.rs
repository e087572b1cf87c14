//! Random deletion: `decrements` cells anywhere, each lowered unless it is zero.
//!
//! As in the stable filter. What tells important keys from others is the insertion alone, so a cell is
//! its value and nothing else.

use super::Cells;
use super::draws::Draws;
use super::parameters::Parameters;
use everbloom::kind::{Restore, StateWriter};
use everbloom::{Error, Result};
use everbloom_cells::counters::Counters;

/// Packed values.
#[derive(Debug, Clone)]
pub(super) struct Random {
    cells: Counters,
    nonzero: u64,
}

/// Refuses packed values beyond `cell_max`.
pub(super) fn check_values(cells: &Counters, cell_max: u32) -> Result<()> {
    cells.check()?;
    let full = u32::from(cells.max()) == cell_max;
    if !full && (0..cells.len()).any(|position| u32::from(cells.get(position)) > cell_max) {
        return Err(Error::corrupt("the filter has a cell beyond cell_max"));
    }
    Ok(())
}

impl Random {
    #[cfg(test)]
    pub(super) fn value(&self, position: u64) -> u32 {
        self.cells.get(position).into()
    }

    pub(super) fn new(parameters: &Parameters) -> Result<Self> {
        Ok(Random { cells: Counters::new(parameters.num_cells, parameters.cell_bits())?, nonzero: 0 })
    }
}

impl Cells for Random {
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
    fn prefetch_delete(&self, decrements: u32, mut draws: Draws) {
        for position in draws.positions(self.cells.len()).take(decrements as usize) {
            self.cells.prefetch(position);
        }
    }

    #[inline(always)]
    fn delete(&mut self, decrements: u32, draws: &mut Draws) {
        for position in draws.positions(self.cells.len()).take(decrements as usize) {
            self.lower(position);
        }
    }

    #[inline(always)]
    fn lower(&mut self, position: u64) {
        self.nonzero -= u64::from(self.cells.lower_from(position) == 1);
    }

    #[inline(always)]
    fn insert(&mut self, position: u64, value: u32, _weight: u32) {
        self.nonzero += u64::from(self.cells.raise_to(position, value as u16) == 0 && value > 0);
    }

    fn decay(&mut self) {}

    fn clear(&mut self) {
        self.cells.clear();
        self.nonzero = 0;
    }

    fn memory_bits(parameters: &Parameters) -> u64 {
        Self::byte_length(parameters).saturating_mul(8)
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        Counters::byte_length(parameters.num_cells, parameters.cell_bits())
    }

    fn bytes(&self) -> Vec<&[u8]> {
        vec![self.cells.bytes()]
    }

    fn write_state(&self, state: StateWriter) -> StateWriter {
        state
    }

    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()> {
        from.body.fill(self.cells.bytes_mut())?;
        check_values(&self.cells, parameters.cell_max)?;
        self.nonzero = self.cells.count_nonzero();
        Ok(())
    }
}
