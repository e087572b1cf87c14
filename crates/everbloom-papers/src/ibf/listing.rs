//! The cells in use, where they are few.
//!
//! A list that has every cell in use, and may have others: a cell that falls to zero is left out when a draw
//! comes across it. A bit for each cell says whether it is listed, so none is listed twice.

use super::draws::Draws;
use bytemuck::{cast_slice, cast_slice_mut};
use everbloom::{Error, Result};
use everbloom_cells::bits::Bits;

/// One cell in so many may be listed.
const SHARE: u64 = 16;

/// So many may be listed whatever their share.
const LEAST: u64 = 32;

/// Positions of cells, in no order.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    /// Those listed, and zeros.
    positions: Vec<u32>,
    count: usize,
    listed: Bits,
}

impl Listing {
    /// An empty list for so many cells, no more than 2^32.
    pub(super) fn new(num_cells: u64) -> Result<Self> {
        let refused = |_| Error::OutOfMemory { bytes: Self::byte_length(num_cells) };
        let room = Self::room_for(num_cells) as usize;
        let mut positions = Vec::new();
        positions.try_reserve_exact(room).map_err(refused)?;
        positions.resize(room, 0);
        Ok(Listing { positions, count: 0, listed: Bits::new(num_cells)? })
    }

    /// How many cells may be listed.
    pub(super) fn room_for(num_cells: u64) -> u64 {
        (num_cells / SHARE).max(LEAST).min(num_cells)
    }

    /// Bytes of the list, as the format stores it.
    pub(super) fn byte_length(num_cells: u64) -> u64 {
        Self::room_for(num_cells) * 4
    }

    /// Bits of all of it.
    pub(super) fn memory_bits_for(num_cells: u64) -> u64 {
        (Self::byte_length(num_cells) + Bits::byte_length(num_cells)).saturating_mul(8)
    }

    pub(super) fn positions(&self) -> impl Iterator<Item = u64> {
        self.positions[..self.count].iter().map(|position| u64::from(*position))
    }

    pub(super) fn clear(&mut self) {
        let listed = &mut self.listed;
        self.positions[..self.count].iter().for_each(|position| listed.unset(u64::from(*position)));
        self.positions[..self.count].fill(0);
        self.count = 0;
    }

    /// Adds a cell unless it is listed; whether there was room.
    #[inline(always)]
    pub(super) fn add(&mut self, position: u64) -> bool {
        if self.listed.get(position) {
            return true;
        }
        let Some(free) = self.positions.get_mut(self.count) else { return false };
        *free = position as u32;
        self.count += 1;
        self.listed.set(position)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, position: u64) {
        self.listed.prefetch(position);
    }

    /// Draws a place in the list and a number below 2^16. Not to be called when empty.
    #[inline(always)]
    pub(super) fn draw(&self, draws: &mut Draws) -> (usize, u32) {
        let (place, fraction) = draws.below_with_fraction(self.count as u64);
        (place as usize, fraction)
    }

    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> u64 {
        u64::from(self.positions[place])
    }

    /// Leaves out what is at a place.
    #[inline(always)]
    pub(super) fn leave_out(&mut self, place: usize) {
        self.listed.unset(self.at(place));
        self.count -= 1;
        self.positions[place] = self.positions[self.count];
        self.positions[self.count] = 0;
    }

    /// Leaves out every cell that is not in use.
    pub(super) fn tidy(&mut self, is_set: impl Fn(u64) -> bool) {
        for place in (0..self.count).rev() {
            if !is_set(self.at(place)) {
                self.leave_out(place);
            }
        }
    }

    /// How many cells are listed: what the format stores besides the list.
    pub(super) fn len(&self) -> u64 {
        self.count as u64
    }

    /// The list, as the format stores it.
    pub(super) fn bytes(&self) -> &[u8] {
        cast_slice(&self.positions)
    }

    /// The list, to be filled by a decoder, which then calls [`Listing::restore`].
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        cast_slice_mut(&mut self.positions)
    }

    /// Takes over the list that was filled in; refuses one in which a cell stands twice, or that lacks one of
    /// the `in_use` cells that `is_set`.
    pub(super) fn restore(&mut self, count: u64, in_use: u64, is_set: impl Fn(u64) -> bool) -> Result<()> {
        let wrong = || Error::corrupt("the filter's list of cells in use does not fit its cells");
        if count > self.positions.len() as u64 {
            return Err(wrong());
        }
        let (listed, free) = self.positions.split_at(count as usize);
        let mut found = 0;
        for position in listed.iter().map(|position| u64::from(*position)) {
            if position >= self.listed.len() || !self.listed.set(position) {
                return Err(wrong());
            }
            found += u64::from(is_set(position));
        }
        if found != in_use || free.iter().any(|position| *position != 0) {
            return Err(wrong());
        }
        self.count = count as usize;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for 32, of which those listed here are in use if even.
    fn listing(positions: impl Iterator<Item = u64>) -> Listing {
        let mut listing = Listing::new(100).expect("small");
        positions.for_each(|position| assert!(listing.add(position)));
        listing
    }

    #[test]
    fn a_cell_is_listed_once_and_while_there_is_room() {
        let mut full = listing((0..32).chain(0..32));
        assert!(full.len() == 32 && full.add(31) && !full.add(32));
        full.leave_out(7);
        assert!(full.add(32) && !full.add(7));
        full.tidy(|position| position % 2 == 0);
        let mut left: Vec<u64> = full.positions().collect();
        left.sort_unstable();
        assert_eq!(left, (0..=32).step_by(2).collect::<Vec<_>>());
        full.clear();
        assert_eq!((full.len(), full.listed.count_ones()), (0, 0));
        assert!(full.bytes().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        let restored = |positions: &[u32], count: u64, in_use: u64| {
            let mut listing = Listing::new(100).expect("small");
            listing.positions[..positions.len()].copy_from_slice(positions);
            listing.restore(count, in_use, |position| position % 2 == 0).is_ok()
        };
        assert!(restored(&[4, 99, 7, 8], 4, 2));
        // One is missing, one stands twice, one does not exist, one is behind the end, more than there is room for.
        assert!(!restored(&[4, 99, 7, 8], 4, 3));
        assert!(!restored(&[4, 99, 4, 8], 4, 3));
        assert!(!restored(&[4, 100, 7, 8], 4, 3));
        assert!(!restored(&[4, 99, 7, 8], 3, 1));
        assert!(!restored(&[], 33, 17));
    }
}
