//! 512-bit blocks: a key touches one cache line, and in it one bit of each 64-bit word.
//!
//! ```text
//! word      0        1        2              7
//!      ┌────────┬────────┬────────┬─ … ─┬────────┐
//! line │···1····│1·······│······1·│     │··1·····│   the eight bits of one key
//!      └────────┴────────┴────────┴─ … ─┴────────┘
//! bits of `low`  0–5      6–11    12–17     42–47     choose the place in each word
//! ```
//!
//! This module is the plain form; [`simd`](crate::simd) holds the wide ones and chooses.

use crate::cells::buffer::Line;
use crate::key::KeyHash;

/// The words of a block, and so the bits that a key sets.
pub const LANES: u32 = 8;

/// The bit that the key owns in word `lane`.
#[inline]
pub fn lane_bit(low: u64, lane: u32) -> u64 {
    1 << (low >> (6 * lane) & 63)
}

/// Whether all eight bits of the key are set.
#[inline]
pub fn contains(line: &Line, low: u64) -> bool {
    // Two words decide most queries for absent keys; the rest is not read one by one for the sake
    // of a shorter loop.
    let missing = |lanes: std::ops::Range<u32>| {
        lanes.fold(0, |missing, lane| missing | !line.0[lane as usize] & lane_bit(low, lane))
    };
    missing(0..2) == 0 && missing(2..LANES) == 0
}

/// Sets the key's bits; true if one was missing.
#[inline]
pub fn insert(line: &mut Line, low: u64) -> bool {
    let mut missing = 0;
    for lane in 0..LANES {
        let bit = lane_bit(low, lane);
        missing |= !line.0[lane as usize] & bit;
        line.0[lane as usize] |= bit;
    }
    missing != 0
}

/// The line of a key among `lines`.
#[inline]
pub fn line_of(hash: KeyHash, lines: usize) -> usize {
    hash.index(lines as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_sets_one_bit_in_each_word() {
        let mut line = Line([0; 8]);
        assert!(!contains(&line, 0x0123_4567_89ab_cdef));
        assert!(insert(&mut line, 0x0123_4567_89ab_cdef));
        assert!(line.0.iter().all(|word| word.count_ones() == 1));
        assert!(contains(&line, 0x0123_4567_89ab_cdef));
        assert!(!insert(&mut line, 0x0123_4567_89ab_cdef));
        line.0[5] = 0;
        assert!(!contains(&line, 0x0123_4567_89ab_cdef));
    }
}
