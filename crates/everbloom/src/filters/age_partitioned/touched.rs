//! Which blocks a generation changed, as long as they are few.
//!
//! Ageing empties one word of every block. Where the caller turns the window and little arrives between
//! two turns, that is a pass over all of the memory for a handful of bits; so the blocks that were
//! touched are noted, up to one in 256 a generation, and only they are visited.

use super::plan::SLICES;

/// A generation that touched more than was noted.
const MANY: u32 = u32::MAX;
/// One block in so many is noted.
const BLOCKS_PER_NOTE: u64 = 256;

/// Notes of the last generations, each under the number of the slice that was then the youngest.
#[derive(Debug, Clone)]
pub(super) struct Touched {
    notes: Vec<u32>,
    counts: [u32; SLICES as usize],
    room: usize,
}

impl Touched {
    /// The notes that a generation has room for.
    fn room(num_blocks: u64) -> usize {
        if num_blocks > u64::from(u32::MAX) { 0 } else { (num_blocks / BLOCKS_PER_NOTE) as usize }
    }

    /// What the notes of so many blocks take.
    pub(super) fn memory_bits(num_blocks: u64) -> u64 {
        Self::room(num_blocks) as u64 * u64::from(SLICES) * 32
    }

    /// Of a filter in which nothing is set.
    pub(super) fn nothing(num_blocks: u64) -> Self {
        let room = Self::room(num_blocks);
        Touched { notes: vec![0; room * SLICES as usize], counts: [0; SLICES as usize], room }
    }

    /// Forgets what is known of the past, as after decoding.
    pub(super) fn forget(&mut self) {
        self.counts.fill(MANY);
    }

    /// Takes note of a block that the present generation changes.
    #[inline]
    pub(super) fn note(&mut self, youngest: u32, block: u64) {
        let count = &mut self.counts[youngest as usize];
        if (*count as usize) < self.room {
            self.notes[youngest as usize * self.room + *count as usize] = block as u32;
            *count += 1;
        } else {
            *count = MANY;
        }
    }

    /// Begins the generation in which `slice` is the youngest.
    pub(super) fn begin(&mut self, slice: u32) {
        self.counts[slice as usize] = 0;
    }

    /// The blocks with bits in this slice, if known: those of the `num_hashes` generations since it was
    /// the youngest.
    pub(super) fn blocks_of(&self, slice: u32, num_hashes: u32) -> Option<impl Iterator<Item = usize>> {
        let generations = (0..num_hashes).map(move |later| ((slice + SLICES - later) % SLICES) as usize);
        let known = generations.clone().all(|generation| self.counts[generation] != MANY);
        known.then(|| {
            generations.flat_map(|generation| {
                let start = generation * self.room;
                self.notes[start..start + self.counts[generation] as usize].iter().map(|block| *block as usize)
            })
        })
    }
}
