//! Cells that know how much importance was mapped to them.
//!
//! ```text
//! one cell, 32 bits                     one group: 16 cells, one cache line
//!  31 30                 8 7        0   ┌──┬──┬──┬── … ──┬──┐
//! ┌──┬────────────────────┬──────────┐  │ 0│ 1│ 2│       │15│
//! │ 0│ total importance   │ value    │  └──┴──┴──┴── … ──┴──┘
//! └──┴────────────────────┴──────────┘
//! ```
//!
//! Value and total lie together, so that an arrival touches one line for each of its cells. A full
//! importance counts [`FULL_WEIGHT`]; totals stop at [`MAX_TOTAL`] rather than overflow.

use super::parameters::CellImportance;
use bytemuck::{cast_slice, cast_slice_mut};
use everbloom::{Error, Result};
use everbloom_cells::buffer::Buffer;
use everbloom_cells::simd::prefetch;

/// Cells of a group, the unit of the sampling index and of the queue.
pub(super) const GROUP: usize = 16;

/// What an arrival of the greatest importance adds to a cell: a multiple of the thesis's 50, so that
/// its importances stay whole.
pub(super) const FULL_WEIGHT: u32 = 1000;

/// The largest total: 23 bits, which a float holds exactly.
pub(super) const MAX_TOTAL: u32 = (1 << 23) - 1;

const VALUE_BITS: u32 = 8;

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell(pub(super) u32);

impl Cell {
    #[inline(always)]
    pub(super) fn new(total: u32, value: u32) -> Self {
        Cell(total << VALUE_BITS | value)
    }

    #[inline(always)]
    pub(super) fn total(self) -> u32 {
        self.0 >> VALUE_BITS
    }

    #[inline(always)]
    pub(super) fn value(self) -> u32 {
        self.0 & 0xff
    }

    /// The cell after an arrival wrote `value` with this weight.
    #[inline(always)]
    pub(super) fn raised(self, value: u32, weight: u32, importance: CellImportance) -> Self {
        let total = match importance {
            CellImportance::Last => weight,
            CellImportance::Sum | CellImportance::Decayed => (self.total() + weight).min(MAX_TOTAL),
        };
        Cell::new(total, self.value().max(value))
    }

    /// The cell with half its total; a cell that was touched stays so.
    #[inline(always)]
    fn decayed(self) -> Self {
        let total = self.total();
        Cell::new((total >> 1).max(total.min(1)), self.value())
    }
}

/// The cells of one group.
pub(super) type Group = [u32; GROUP];

/// All cells of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WeighedCells {
    buffer: Buffer,
    num_cells: u64,
    nonzero: u64,
}

impl WeighedCells {
    pub(super) fn new(num_cells: u64) -> Result<Self> {
        Ok(WeighedCells { buffer: Buffer::with_lines(Self::groups_for(num_cells))?, num_cells, nonzero: 0 })
    }

    pub(super) fn groups_for(num_cells: u64) -> u64 {
        num_cells.div_ceil(GROUP as u64)
    }

    pub(super) fn byte_length(num_cells: u64) -> u64 {
        Self::groups_for(num_cells).saturating_mul(64)
    }

    #[inline(always)]
    pub(super) fn nonzero(&self) -> u64 {
        self.nonzero
    }

    #[inline(always)]
    fn cells(&self) -> &[u32] {
        cast_slice(self.buffer.lines())
    }

    #[inline(always)]
    pub(super) fn groups(&self) -> &[Group] {
        cast_slice(self.buffer.lines())
    }

    #[inline(always)]
    pub(super) fn get(&self, position: u64) -> Cell {
        Cell(self.cells()[position as usize])
    }

    #[inline(always)]
    pub(super) fn set(&mut self, position: u64, new: Cell) {
        let cells: &mut [u32] = cast_slice_mut(self.buffer.lines_mut());
        let old = Cell(std::mem::replace(&mut cells[position as usize], new.0));
        self.nonzero = self.nonzero + u64::from(new.value() > 0) - u64::from(old.value() > 0);
    }

    /// Lowers a cell unless it is zero; the cell as it then is.
    #[inline(always)]
    pub(super) fn lower(&mut self, position: u64) -> Cell {
        let cells: &mut [u32] = cast_slice_mut(self.buffer.lines_mut());
        let cell = &mut cells[position as usize];
        let value = *cell & 0xff;
        *cell -= u32::from(value > 0);
        self.nonzero -= u64::from(value == 1);
        Cell(*cell)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, position: u64) {
        prefetch(self.cells(), position as usize);
    }

    /// The cells of a group that exist: all but in the last group.
    #[inline(always)]
    pub(super) fn cells_in(&self, group: usize) -> usize {
        (self.num_cells - (group * GROUP) as u64).min(GROUP as u64) as usize
    }

    /// Halves every total: one pass, once in many arrivals.
    pub(super) fn decay(&mut self) {
        let cells: &mut [u32] = cast_slice_mut(self.buffer.lines_mut());
        cells.iter_mut().for_each(|cell| *cell = Cell(*cell).decayed().0);
    }

    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.nonzero = 0;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// The bytes, to be filled by a decoder, which then calls [`WeighedCells::check`].
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    /// Counts the cells and refuses what no filter writes: values beyond `cell_max`, values without
    /// importance, cells beyond the end.
    pub(super) fn check(&mut self, cell_max: u32) -> Result<()> {
        let (inside, beyond) = self.cells().split_at(self.num_cells as usize);
        let wrong = |cell: &u32| {
            let cell = Cell(*cell);
            cell.total() > MAX_TOTAL || cell.value() > cell_max || (cell.value() > 0 && cell.total() == 0)
        };
        if inside.iter().any(wrong) || beyond.iter().any(|cell| *cell != 0) {
            return Err(Error::corrupt("the filter has a cell that no arrival could have written"));
        }
        self.nonzero = inside.iter().filter(|cell| Cell(**cell).value() > 0).count() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_stop_at_their_maximum() {
        let mut cell = Cell::new(MAX_TOTAL - 1, 3);
        for _ in 0..3 {
            cell = cell.raised(2, FULL_WEIGHT, CellImportance::Sum);
        }
        assert_eq!((cell.total(), cell.value()), (MAX_TOTAL, 3));
    }

    #[test]
    fn decay_halves_and_never_untouches() {
        for (total, halved) in [(0, 0), (1, 1), (2, 1), (3, 1), (1001, 500), (MAX_TOTAL, MAX_TOTAL / 2)] {
            assert_eq!(Cell::new(total, 7).decayed(), Cell::new(halved, 7));
        }
    }

    #[test]
    fn the_count_of_cells_in_use_follows_every_change() {
        let mut cells = WeighedCells::new(40).expect("small");
        cells.set(39, Cell::new(5, 2));
        cells.set(3, Cell::new(5, 0));
        assert_eq!((cells.nonzero(), cells.lower(39).value(), cells.lower(39).value()), (1, 1, 0));
        assert_eq!((cells.lower(39).value(), cells.nonzero()), (0, 0));
    }
}
