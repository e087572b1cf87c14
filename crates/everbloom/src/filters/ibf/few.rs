//! The cells in use, where there are few.
//!
//! With the thesis's parameters, deletion by value lowers more than arrivals bring, and a filter of any
//! size has a dozen cells in use. A list of them is drawn from at once, with no index to keep.

use super::draws::Draws;
use crate::error::{Error, Result};
use crate::wire::{StateReader, StateWriter};

/// The most cells that are listed.
pub(super) const MOST_FEW: usize = 32;

/// Positions of cells, in no order.
#[derive(Debug, Clone)]
pub(super) struct Few {
    positions: [u64; MOST_FEW],
    count: usize,
}

impl Few {
    pub(super) fn new() -> Self {
        Few { positions: [0; MOST_FEW], count: 0 }
    }

    pub(super) fn positions(&self) -> &[u64] {
        &self.positions[..self.count]
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a cell; whether there was room.
    #[inline(always)]
    pub(super) fn add(&mut self, position: u64) -> bool {
        let room = self.count < MOST_FEW;
        if room {
            self.positions[self.count] = position;
            self.count += 1;
        }
        room
    }

    /// Draws a place in the list and 16 bits more. Not to be called when empty.
    #[inline(always)]
    pub(super) fn draw(&self, draws: &mut Draws) -> (usize, u32) {
        let product = u128::from(draws.bits()) * self.count as u128;
        ((product >> 64) as usize % MOST_FEW, (product as u64 >> 48) as u32)
    }

    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> u64 {
        self.positions[place % MOST_FEW]
    }

    /// Leaves out what is at a place, if told to. (No branch: whether a pick empties a cell is as good as
    /// random.)
    #[inline(always)]
    pub(super) fn leave_out_if(&mut self, told: bool, place: usize) {
        let last = self.positions[self.count.wrapping_sub(1) % MOST_FEW];
        let kept = &mut self.positions[place % MOST_FEW];
        *kept = if told { last } else { *kept };
        self.count -= usize::from(told);
    }

    /// Leaves out a position.
    pub(super) fn leave_out(&mut self, position: u64) {
        if let Some(place) = self.positions().iter().position(|listed| *listed == position) {
            self.leave_out_if(true, place);
        }
    }

    pub(super) fn write_state(&self, state: StateWriter) -> StateWriter {
        self.positions().iter().fold(state.u64(self.count as u64), |state, position| state.u64(*position))
    }

    /// Reads a list back and refuses one that is not the `nonzero` cells that `is_set`.
    pub(super) fn restore(
        &mut self,
        state: &mut StateReader<'_>,
        nonzero: u64,
        is_set: impl Fn(u64) -> bool,
    ) -> Result<()> {
        let wrong = || Error::corrupt("the filter's list of cells in use does not fit its cells");
        let count = state.u64()?;
        if count != nonzero || count > MOST_FEW as u64 {
            return Err(wrong());
        }
        self.clear();
        for _ in 0..count {
            let position = state.u64()?;
            if self.positions().contains(&position) || !is_set(position) {
                return Err(wrong());
            }
            self.add(position);
        }
        Ok(())
    }
}
