//! Probabilistic deletion: a cell is picked with probability ∝ 1/(importance mapped to it).
//!
//! *Plain*: the picks fall on every cell that was ever touched, and one that finds a zero cell is
//! wasted. *Compulsory* (the thesis's Probabilistic-delete-p): they fall on cells that are not zero, so
//! exactly `decrements` values are lowered, or as many as there are. Picks are independent; one cell
//! may be lowered twice.
//!
//! A pick draws a group of 16 cells from the [`SamplingIndex`] and a cell in it, both in proportion to
//! whole numbers a little above 2^22/total, then takes the cell with the probability that makes up for
//! the difference. So the picks are exact, in integers. A pick takes about 1.4 draws, because weights
//! that spread evenly over a doubling fill 1/(2 ln 2) = 72 % of their bound; each draw reads two cache
//! lines, an entry of the index and the group.

use super::Cells;
use super::draws::Draws;
use super::parameters::{CellImportance, Parameters};
use super::sampling::{Drawn, SamplingIndex};
use super::weighed::{Cell, GROUP, Group, WeighedCells};
use everbloom::kind::{Restore, StateWriter};
use everbloom::{Error, Result};

/// A cell of total 1 weighs 2^22, one of the largest total a little over 1/2.
const SCALE_BITS: u32 = 22;

/// The most draws that are made at once.
const ROUND: usize = 16;

/// How many draws are made at once for so many picks: a half to spare, because not every draw is taken.
#[inline(always)]
fn round_for(picks: u32) -> usize {
    ROUND.min(picks as usize * 3 / 2 + 1)
}

/// Cells and their index. `COMPULSORY` leaves zero cells out.
#[derive(Debug, Clone)]
pub(super) struct Probabilistic<const COMPULSORY: bool> {
    cells: WeighedCells,
    index: SamplingIndex,
    importance: CellImportance,
}

/// Whether a cell is not left out.
#[inline(always)]
fn counts<const COMPULSORY: bool>(cell: Cell) -> bool {
    cell.total() > 0 && (!COMPULSORY || cell.value() > 0)
}

/// A whole number above 2^22/total, by no more than 1.5; 0 for a cell left out.
#[inline(always)]
fn bound<const COMPULSORY: bool>(cell: Cell) -> u32 {
    // Without a branch, so that the compiler divides four or eight at once. A float holds every total exactly. What
    // is added rounds the quotient and leaves it, and 1, in the low bits; for a total of 0, those of infinity are 0.
    let quotient = (1 << SCALE_BITS) as f32 / cell.total() as f32;
    let bound = (quotient + ((1 << 23) + 1) as f32).to_bits() & 0x7f_ffff;
    if COMPULSORY { bound * u32::from(cell.value() > 0) } else { bound }
}

/// The bounds of a group's cells. A function of its own: where it is inlined, the compiler divides one by one.
#[inline(never)]
fn bounds<const COMPULSORY: bool>(group: &Group) -> Group {
    let mut bounds = [0; GROUP];
    for (bound, cell) in bounds.iter_mut().zip(group) {
        *bound = self::bound::<COMPULSORY>(Cell(*cell));
    }
    bounds
}

/// Whether a cell's weight is greater than it was.
#[inline(always)]
fn has_grown<const COMPULSORY: bool>(old: Cell, new: Cell) -> bool {
    counts::<COMPULSORY>(new) && (!counts::<COMPULSORY>(old) || new.total() < old.total())
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

    /// Lowers a cell of the group that was drawn, unless it is zero; false if everything must be drawn again.
    #[inline(always)]
    fn pick(&mut self, drawn: &Drawn) -> bool {
        // The cell whose part of the weight spans the offset.
        let (mut rest, first) = (drawn.offset, (drawn.group * GROUP) as u64);
        for (position, bound) in (first..).zip(bounds::<COMPULSORY>(&self.cells.groups()[drawn.group])) {
            if rest < bound {
                // rest/2^22 < 1/total, with 16 more bits for the largest totals.
                let exact = u64::from(rest) << 16 | u64::from(drawn.fraction);
                let fits = exact * u64::from(self.cells.get(position).total()) < 1 << (SCALE_BITS + 16);
                if fits {
                    self.cells.lower(position);
                }
                return fits;
            }
            rest -= bound;
        }
        self.index.settle(drawn, drawn.offset - rest);
        false
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
    fn prefetch_delete(&self, decrements: u32, mut draws: Draws) {
        if !self.index.is_empty() {
            (0..round_for(decrements)).for_each(|_| self.index.prefetch_draw(&mut draws));
        }
    }

    #[inline(always)]
    fn delete(&mut self, decrements: u32, draws: &mut Draws) {
        let mut left = decrements;
        while left > 0 && !self.index.is_empty() {
            // Weights only fall while cells are lowered, so draws stay exact when they are made before the first
            // of them is used. Then their groups can be fetched all at once.
            let round = &mut [Drawn::default(); ROUND][..round_for(left)];
            for drawn in &mut *round {
                *drawn = self.index.draw(draws);
                self.cells.prefetch((drawn.group * GROUP) as u64);
            }
            for drawn in round {
                if left > 0 {
                    left -= u32::from(self.pick(drawn));
                }
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
            self.index.update(group, Self::weight(&self.cells, group));
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
        let index = SamplingIndex::memory_bits_for(groups);
        WeighedCells::byte_length(parameters.num_cells).saturating_mul(8).saturating_add(index)
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
        self.index.starts().iter().fold(state, |state, start| state.u64(u64::from(*start)))
    }

    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()> {
        let wrong = |_| Error::corrupt("the filter's sampling index does not fit its cells");
        let mut start = |_| u32::try_from(from.state.u64()?).map_err(wrong);
        let starts: Vec<u32> = (0..self.index.starts().len()).map(&mut start).collect::<Result<_>>()?;
        from.body.fill(self.cells.bytes_mut())?;
        from.body.fill(self.index.order_bytes_mut())?;
        self.cells.check(parameters.cell_max)?;
        let cells = &self.cells;
        self.index.restore(&starts, |group| Self::weight(cells, group))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sampling::HEAVIEST;
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
        cells.delete(7, &mut Draws::new(1));
        assert!(cells.index.is_empty());
        cells.index.rebuild(|_| 1 << 26);
        cells.insert(77, 4, 1000);
        for seed in 0..4 {
            cells.delete(1, &mut Draws::new(seed));
        }
        assert_eq!((cells.nonzero(), cells.cell(77).value()), (0, 0));
    }

    #[test]
    fn bounds_are_just_above_the_reciprocals() {
        let totals = [0, 1, 2, 3, 4, 5, 1000, 1023, 1024, 1025, 65_535, 1 << 20, (1 << 22) - 1, 1 << 22, 1, MAX_TOTAL];
        for value in [0, 4] {
            let group = totals.map(|total| Cell::new(total, value).0);
            let [plain, compulsory] = [bound::<false>, bound::<true>].map(|bound| group.map(Cell).map(bound));
            for (at, total) in totals.into_iter().enumerate() {
                let exact = f64::from(1 << SCALE_BITS) / f64::from(total);
                let above = f64::from(plain[at]) - exact;
                assert!(if total == 0 { plain[at] == 0 } else { above > 0.0 && above <= 1.5 }, "{total}: {above}");
                // A value without a total does not occur.
                assert!(compulsory[at] == if value == 0 { 0 } else { plain[at] } || total == 0);
            }
            assert!(plain.iter().sum::<u32>() <= HEAVIEST);
        }
        const { assert!(16 * ((1 << SCALE_BITS) + 1) <= HEAVIEST) };
    }
}
