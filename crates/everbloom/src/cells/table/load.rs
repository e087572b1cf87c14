//! Ascending hashes, put into a table of the right size one behind the other.

use super::{FARTHEST_SPILL, HashTable, SLOTS, part_of};
use crate::promise::{Error, Result};

/// The error that what should be hashes are none.
pub(in crate::cells) fn uneven() -> Error {
    Error::corrupt("the filter's hashes are not spread as hashes are")
}

/// Where the last of some ascending hashes went: the next goes there or behind.
#[derive(Default)]
pub(super) struct Loading {
    part: usize,
    line: u64,
    used: usize,
}

impl Loading {
    pub(super) fn put(&mut self, table: &mut HashTable, bits: u64) -> Result<()> {
        if part_of(bits) != self.part {
            *self = Loading { part: part_of(bits), ..Loading::default() };
        }
        let part = &mut table.parts[self.part];
        if part.len >= part.limit {
            return Err(uneven());
        }
        let home = part.line_of(bits);
        if home > self.line {
            (self.line, self.used) = (home, 0);
        } else if self.used == SLOTS as usize {
            (self.line, self.used) = (self.line + 1, 0);
        }
        if self.line - home > FARTHEST_SPILL {
            return Err(uneven());
        }
        if self.line == part.lines() {
            // Behind the last line comes the first, which has room or is followed by one that has.
            self.used = SLOTS as usize;
            self.line -= 1;
            part.insert(&mut table.slabs, bits);
            return Ok(());
        }
        table.slabs.line_mut(part.place(self.line))[self.used] = bits;
        self.used += 1;
        part.len += 1;
        Ok(())
    }
}
