//! The least that memory asks of a filter: one random 64-byte line per key, and hashing alone.

use super::keys::BenchKey;
use everbloom::{Hashing, KeyHash};
use everbloom_cells::buffer::{Buffer, Line};
use everbloom_cells::simd::prefetch;
use std::hint::black_box;

/// How far ahead lines are asked for.
const DISTANCE: usize = 32;

/// Lines to be read and written at random.
pub struct Floor {
    lines: Buffer,
    places: Vec<u64>,
}

fn at(place: u64, lines: &[Line]) -> usize {
    ((u128::from(place) * lines.len() as u128) >> 64) as usize
}

impl Floor {
    /// `bytes` of lines, on the pages that a filter would get.
    pub fn new(bytes: u64) -> Self {
        let mut lines = Buffer::with_lines(bytes / 64).expect("memory for the floor");
        lines.bytes_mut().fill(0x5a);
        Floor { lines, places: Vec::new() }
    }

    /// Chooses the places for the next run from the hashes of these keys: random, and not yet cached.
    pub fn aim<K: BenchKey>(&mut self, keys: &[K]) {
        let hashing = Hashing::seeded(1);
        self.places = keys.iter().map(|key| key.hash_with(&hashing).high).collect();
    }

    /// Reads the lines at all places; asks ahead only where that helps.
    pub fn read(&self) {
        let (lines, places) = (self.lines.lines(), &self.places[..]);
        let distance = distance(lines);
        let mut all = [0u64; 8];
        for (index, place) in places.iter().enumerate() {
            if let (1.., Some(next)) = (distance, places.get(index + distance)) {
                prefetch(lines, at(*next, lines));
            }
            let line = &lines[at(*place, lines)].0;
            all.iter_mut().zip(line).for_each(|(all, word)| *all |= word);
        }
        black_box(all);
    }

    /// Changes the lines at all places.
    pub fn change(&mut self) {
        let places = &self.places[..];
        let lines = self.lines.lines_mut();
        let distance = distance(lines);
        for (index, place) in places.iter().enumerate() {
            if let (1.., Some(next)) = (distance, places.get(index + distance)) {
                prefetch(lines, at(*next, lines));
            }
            let index = at(*place, lines);
            lines[index].0.iter_mut().for_each(|word| *word ^= *place);
        }
        black_box(lines);
    }
}

/// Prefetch does not help inside the second-level cache.
fn distance(lines: &[Line]) -> usize {
    if size_of_val(lines) <= 1 << 20 { 0 } else { DISTANCE }
}

/// Hashes all keys as a batch does, into a small buffer.
pub fn hash_all<K: BenchKey>(keys: &[K], hashing: &Hashing) {
    let mut hashes = [KeyHash::default(); 256];
    for keys in keys.chunks(hashes.len()) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = key.hash_with(hashing);
        }
        black_box(&hashes);
    }
}
