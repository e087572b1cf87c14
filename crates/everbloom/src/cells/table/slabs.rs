//! The memory behind a table: large allocations, cut into pages of one size.

use super::{HUGE_WORDS, MAX_SLAB_PAGES, PAGE_WORDS, PART_BITS, SLOTS, reserve};
use crate::promise::{Error, Result};
use crate::simd;

/// Where a page or a line starts: a word of a slab.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) slab: u32,
    pub(super) word: u32,
}

/// The allocations that pages are cut from.
#[derive(Debug, Clone, Default)]
pub(super) struct Slabs {
    pub(super) slabs: Vec<Vec<u64>>,
    /// Pages handed out, and pages there are.
    pub(super) used: u64,
    pages: u64,
    pub(super) last_start: u64,
    /// The word at which the last slab's first page starts.
    last_word: u64,
}

impl Slabs {
    pub(super) fn page(&mut self) -> Result<Place> {
        if self.used == self.pages {
            self.add_slab()?;
        }
        let first_word = self.last_word + (self.used - self.last_start) * PAGE_WORDS;
        self.used += 1;
        Ok(Place { slab: self.slabs.len() as u32 - 1, word: first_word as u32 })
    }

    /// Pages of a slab that are not used yet take no memory, and neither does what lies before its
    /// first huge page; so the next slab can be as large as all before.
    fn add_slab(&mut self) -> Result<()> {
        let more = self.pages.clamp(1 << PART_BITS, MAX_SLAB_PAGES);
        let aligned = if more * PAGE_WORDS >= 2 * HUGE_WORDS { HUGE_WORDS } else { 0 };
        let words = more * PAGE_WORDS + aligned;
        // Words rather than lines: only what has no alignment of its own comes zeroed from the system
        // without being touched.
        let mut slab: Vec<u64> = bytemuck::allocation::try_zeroed_vec(words as usize)
            .map_err(|()| Error::OutOfMemory { bytes: 8 * words })?;
        reserve(&mut self.slabs, 1)?;
        simd::advise_huge_pages(&mut slab);
        let start = slab.as_ptr() as u64 / 8;
        self.last_word = if aligned > 0 { start.next_multiple_of(HUGE_WORDS) - start } else { 0 };
        self.last_start = self.pages;
        self.pages += more;
        self.slabs.push(slab);
        Ok(())
    }

    pub(super) fn words(&self, page: Place) -> &[u64] {
        &self.slabs[page.slab as usize][page.word as usize..][..PAGE_WORDS as usize]
    }

    /// The eight slots that start at a word of a slab; a page always has all of them.
    #[inline(always)]
    pub(super) fn line_mut(&mut self, Place { slab, word }: Place) -> &mut [u64; SLOTS as usize] {
        let (lines, _) = self.slabs[slab as usize][word as usize..].as_chunks_mut();
        &mut lines[0]
    }
}
