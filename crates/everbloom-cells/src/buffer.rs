//! The one allocation that a filter makes for its cells.

use crate::simd::{self, Zeroed};
use crate::{Error, Result};
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut, try_cast_slice};
use std::alloc::{Layout, handle_alloc_error};

/// The eight 64-bit words of a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line(pub [u64; 8]);

/// The bits of a line.
pub const LINE_BITS: u64 = 512;

/// A zeroed run of cache lines, which take no memory before they are written.
pub struct Buffer {
    lines: Zeroed<Line>,
}

impl std::fmt::Debug for Buffer {
    /// How much there is, not all that it holds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} lines)", self.lines.len())
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.lines() == other.lines()
    }
}

impl Eq for Buffer {}

impl Clone for Buffer {
    /// A copy on large pages of its own, which takes memory where there is something to copy.
    fn clone(&self) -> Self {
        // As a Vec does where there is no memory for a copy.
        self.try_clone().unwrap_or_else(|_| handle_alloc_error(Layout::for_value::<[Line]>(&self.lines)))
    }
}

/// The lines of a page of memory.
const PAGE_LINES: usize = 64;

impl Buffer {
    /// At least `bits` zero bits.
    pub fn with_bits(bits: u64) -> Result<Self> {
        Self::with_lines(bits.div_ceil(LINE_BITS))
    }

    /// `count` zero lines, or an error if there is no room for them.
    pub fn with_lines(count: u64) -> Result<Self> {
        let refused = || Error::OutOfMemory { bytes: count.saturating_mul(64) };
        let mut lines = usize::try_from(count).ok().and_then(Zeroed::new).ok_or_else(refused)?;
        simd::advise_huge_pages(&mut lines);
        Ok(Buffer { lines })
    }

    /// A copy, as `clone` makes it, or an error if there is no room for it.
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = Self::with_lines(self.lines.len() as u64)?;
        for (to, from) in copy.lines.chunks_mut(PAGE_LINES).zip(self.lines.chunks(PAGE_LINES)) {
            if from.iter().any(|line| *line != Line([0; 8])) {
                to.copy_from_slice(from);
            }
        }
        Ok(copy)
    }

    /// Makes it `count` lines long, with zero lines behind those it has; an error, and nothing changed, if there is no room.
    pub fn grow(&mut self, count: u64) -> Result<()> {
        let grown = usize::try_from(count).is_ok_and(|count| self.lines.grow(count));
        if grown { Ok(()) } else { Err(Error::OutOfMemory { bytes: count.saturating_mul(64) }) }
    }

    /// The lines.
    #[inline]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lines, to change.
    #[inline]
    pub fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.lines
    }

    /// The lines as 64-bit words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        cast_slice(&self.lines)
    }

    /// The lines as 64-bit words, to change.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        cast_slice_mut(&mut self.lines)
    }

    /// The lines as bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        cast_slice(&self.lines)
    }

    /// The lines as bytes, to change.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        cast_slice_mut(&mut self.lines)
    }

    /// Sets every bit to zero.
    pub fn clear(&mut self) {
        self.lines.fill(Line([0; 8]));
    }

    /// How many bits are set.
    pub fn count_ones(&self) -> u64 {
        self.words().iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// How many bits were allocated.
    pub fn allocated_bits(&self) -> u64 {
        self.lines.len() as u64 * LINE_BITS
    }

    /// Asks for the line that holds word `index` to be brought near.
    #[inline]
    pub fn prefetch_word(&self, index: u64) {
        simd::prefetch(self.words(), index as usize);
    }
}

/// The lines of a body that the caller holds, which must have `needed` bytes.
pub fn lines_of(body: &[u8], needed: u64) -> Result<&[Line]> {
    let given = body.len();
    if given as u64 != needed {
        return Err(Error::corrupt(format!("the filter's body has {given} bytes where its spec needs {needed}")));
    }
    try_cast_slice(body).map_err(|_| {
        Error::parameter("the bytes' address", "not aligned", "a multiple of 64", "map the file from its start")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_gives_an_error() {
        assert!(matches!(Buffer::with_lines(1 << 50), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Buffer::with_lines(u64::MAX), Err(Error::OutOfMemory { .. })));
    }

    #[test]
    fn lines_are_aligned_and_zero() {
        let buffer = Buffer::with_bits(100_000).expect("a small buffer");
        assert_eq!(buffer.bytes().as_ptr() as usize % 64, 0);
        assert_eq!(buffer.count_ones(), 0);
        assert_eq!(buffer.allocated_bits(), 100_352);
    }
}
