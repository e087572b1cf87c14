//! MinImp deletion: the least important cells are lowered, ties from the lowest position.
//!
//! - *Compulsory*: exactly `decrements` different cells that are not zero, or all there are.
//! - *Optional*: the `decrements` least important cells of all, zero or not. The same cells are picked
//!   again and again, so little is deleted.
//! - *With priority*: one after another the cell of least importance + priority; each pick raises the
//!   cell's priority by `priority_step` (`cell_max` if not given) on the thesis's scale of 50. Importance and
//!   priority saturate.

use super::Cells;
use super::draws::Draws;
use super::parameters::{CellImportance, Deletion, Parameters};
use super::queue::{KEY_LIMIT, Keys, Queue};
use super::weighed::{Cell, FULL_WEIGHT, GROUP, WeighedCells};
use bytemuck::{cast_slice, cast_slice_mut};
use everbloom::kind::{Restore, StateWriter};
use everbloom::{Error, Result};

/// The thesis's importances go up to 50, and its priorities count in them.
const THESIS_SCALE: u32 = 50;

/// The largest priority: with the largest total it still is a key.
const MAX_PRIORITY: u32 = KEY_LIMIT - 1 - super::weighed::MAX_TOTAL;

/// Cells, their priorities if they have any, and the queue.
#[derive(Debug, Clone)]
pub(super) struct MinImp {
    ordered: Ordered,
    queue: Queue,
    importance: CellImportance,
    priority_step: u32,
}

/// The cells as the queue sees them.
#[derive(Debug, Clone)]
struct Ordered {
    cells: WeighedCells,
    deletion: Deletion,
    priorities: Vec<u32>,
}

impl Ordered {
    #[inline(always)]
    fn key_of(&self, position: u64, cell: Cell) -> Option<u32> {
        match self.deletion {
            Deletion::MinImpOptional => Some(cell.total()),
            Deletion::MinImpPriority => Some(cell.total() + self.priorities[position as usize]),
            _ => (cell.value() > 0).then(|| cell.total()),
        }
    }
}

impl Keys for Ordered {
    #[inline(always)]
    fn key(&self, position: u64) -> Option<u32> {
        self.key_of(position, self.cells.get(position))
    }

    #[inline(always)]
    fn group(&self, group: usize) -> std::ops::Range<u64> {
        let start = (group * GROUP) as u64;
        start..start + self.cells.cells_in(group) as u64
    }
}

fn priorities_for(parameters: &Parameters) -> u64 {
    if parameters.deletion == Deletion::MinImpPriority { parameters.num_cells } else { 0 }
}

impl MinImp {
    pub(super) fn new(parameters: &Parameters) -> Result<Self> {
        let count = priorities_for(parameters);
        let mut priorities = Vec::new();
        priorities
            .try_reserve_exact(count as usize)
            .map_err(|_| Error::OutOfMemory { bytes: count.saturating_mul(4) })?;
        priorities.resize(count as usize, 0);
        let cells = WeighedCells::new(parameters.num_cells)?;
        let groups = WeighedCells::groups_for(parameters.num_cells);
        let mut filter = MinImp {
            ordered: Ordered { cells, deletion: parameters.deletion, priorities },
            queue: Queue::new(groups, parameters.decrements)?,
            importance: parameters.cell_importance,
            priority_step: parameters.priority_step.unwrap_or(parameters.cell_max) * (FULL_WEIGHT / THESIS_SCALE),
        };
        filter.rebuild();
        Ok(filter)
    }

    #[cfg(test)]
    pub(super) fn cell(&self, position: u64) -> Cell {
        self.ordered.cells.get(position)
    }

    fn rebuild(&mut self) {
        self.queue.rebuild(self.ordered.cells.groups().len(), &self.ordered);
    }

    /// Lowers the cell of least importance + priority and raises its priority.
    fn pick_by_priority(&mut self) {
        if self.queue.lowest(1, &self.ordered) == 0 {
            return;
        }
        let position = self.queue.at(0);
        let old = self.ordered.key(position);
        self.ordered.cells.lower(position);
        let priority = &mut self.ordered.priorities[position as usize];
        *priority = (*priority + self.priority_step).min(MAX_PRIORITY);
        self.queue.change(position, old, self.ordered.key(position));
    }

    fn lower_lowest(&mut self, decrements: u32) {
        let count = self.queue.lowest(decrements as usize, &self.ordered);
        let cells = &mut self.ordered.cells;
        if self.ordered.deletion == Deletion::MinImpOptional {
            (0..count).for_each(|place| {
                cells.lower(self.queue.at(place));
            });
        } else {
            self.queue.retain_first(count, |position| cells.lower(position).value() > 0);
        }
    }
}

impl Cells for MinImp {
    #[inline(always)]
    fn is_set(&self, position: u64) -> bool {
        self.ordered.cells.get(position).value() > 0
    }

    #[inline(always)]
    fn nonzero(&self) -> u64 {
        self.ordered.cells.nonzero()
    }

    #[inline(always)]
    fn prefetch(&self, position: u64) {
        self.ordered.cells.prefetch(position);
    }

    #[inline(always)]
    fn prefetch_insert(&self, position: u64) {
        self.ordered.cells.prefetch(position);
        self.queue.prefetch(position);
    }

    #[inline(always)]
    fn delete(&mut self, decrements: u32, _draws: &mut Draws) {
        if self.ordered.deletion == Deletion::MinImpPriority {
            (0..decrements).for_each(|_| self.pick_by_priority());
        } else {
            self.lower_lowest(decrements);
        }
    }

    #[inline(always)]
    fn lower(&mut self, position: u64) {
        let old = self.ordered.key(position);
        self.ordered.cells.lower(position);
        self.queue.change(position, old, self.ordered.key(position));
    }

    #[inline(always)]
    fn insert(&mut self, position: u64, value: u32, weight: u32) {
        let old = self.ordered.cells.get(position);
        let new = old.raised(value, weight, self.importance);
        let keys = (self.ordered.key_of(position, old), self.ordered.key_of(position, new));
        self.ordered.cells.set(position, new);
        self.queue.change(position, keys.0, keys.1);
    }

    fn decay(&mut self) {
        self.ordered.cells.decay();
        self.ordered.priorities.iter_mut().for_each(|priority| *priority >>= 1);
        self.rebuild();
    }

    fn clear(&mut self) {
        self.ordered.cells.clear();
        self.ordered.priorities.fill(0);
        self.rebuild();
    }

    fn memory_bits(parameters: &Parameters) -> u64 {
        let groups = WeighedCells::groups_for(parameters.num_cells);
        Self::byte_length(parameters)
            .saturating_mul(8)
            .saturating_add(Queue::memory_bits_for(groups, parameters.decrements))
    }

    fn byte_length(parameters: &Parameters) -> u64 {
        let priorities = priorities_for(parameters).saturating_mul(4);
        WeighedCells::byte_length(parameters.num_cells).saturating_add(priorities)
    }

    fn bytes(&self) -> Vec<&[u8]> {
        vec![self.ordered.cells.bytes(), cast_slice(&self.ordered.priorities)]
    }

    fn write_state(&self, state: StateWriter) -> StateWriter {
        state
    }

    fn restore(&mut self, parameters: &Parameters, from: &mut Restore<'_, '_>) -> Result<()> {
        from.body.fill(self.ordered.cells.bytes_mut())?;
        from.body.fill(cast_slice_mut(&mut self.ordered.priorities))?;
        self.ordered.cells.check(parameters.cell_max)?;
        if self.ordered.priorities.iter().any(|priority| *priority > MAX_PRIORITY) {
            return Err(Error::corrupt("the filter has a priority beyond the largest"));
        }
        self.rebuild();
        Ok(())
    }
}
