//! Stream filters as one would first write them: a byte for each cell, one call at a time.

use everbloom::{Hashing, Key, KeyHash};
use everbloom_cells::key::Generator;

/// A stable filter with a byte for each cell, lowering neighbours.
pub struct NaiveStable {
    cells: Vec<u8>,
    generator: Generator,
    num_hashes: usize,
    decrements: usize,
    cell_max: u8,
}

impl NaiveStable {
    /// One cell for each of `bytes`.
    pub fn new(bytes: u64, num_hashes: usize, decrements: usize, cell_max: u8) -> Self {
        NaiveStable {
            cells: vec![0; bytes as usize],
            generator: Generator::seeded(1),
            num_hashes,
            decrements,
            cell_max,
        }
    }

    /// Whether the key seems to have been here; then it is remembered.
    pub fn observe<K: Key>(&mut self, key: &K, hashing: &Hashing) -> bool {
        let count = self.cells.len();
        let probes = key.hash_with(hashing).probes(count as u64).take(self.num_hashes);
        let seen = probes.clone().all(|cell| self.cells[cell as usize] > 0);
        let start = self.generator.below(count as u64) as usize;
        for step in 0..self.decrements {
            let cell = &mut self.cells[(start + step) % count];
            *cell = cell.saturating_sub(1);
        }
        probes.for_each(|cell| self.cells[cell as usize] = self.cell_max);
        seen
    }
}

/// A reservoir filter that looks for a set bit by drawing until it finds one.
pub struct NaiveReservoir {
    filters: Vec<Vec<u64>>,
    filter_bits: u64,
    generator: Generator,
    arrivals: u64,
    insert_floor: f64,
}

impl NaiveReservoir {
    /// `num_filters` arrays in all of `bytes`.
    pub fn new(bytes: u64, num_filters: u64) -> Self {
        let words = (bytes / 8 / num_filters) as usize;
        NaiveReservoir {
            filters: (0..num_filters).map(|_| vec![0; words]).collect(),
            filter_bits: words as u64 * 64,
            generator: Generator::seeded(1),
            arrivals: 0,
            insert_floor: 0.03,
        }
    }

    fn get(&self, filter: usize, place: u64) -> bool {
        self.filters[filter][(place / 64) as usize] >> (place % 64) & 1 == 1
    }

    fn put(&mut self, filter: usize, place: u64, bit: bool) {
        let word = &mut self.filters[filter][(place / 64) as usize];
        *word = *word & !(1 << (place % 64)) | u64::from(bit) << (place % 64);
    }

    /// Whether the key seems to have been here; then it may be remembered.
    pub fn observe<K: Key>(&mut self, key: &K, hashing: &Hashing) -> bool {
        self.arrivals += 1;
        let places: Vec<u64> = key.hash_with(hashing).probes(self.filter_bits).take(self.filters.len()).collect();
        let seen = places.iter().enumerate().all(|(filter, place)| self.get(filter, *place));
        let draw = self.generator.unit();
        if draw <= self.filter_bits as f64 / self.arrivals as f64 {
            for (filter, place) in places.into_iter().enumerate() {
                let random = self.generator.below(self.filter_bits);
                self.put(filter, random, false);
                self.put(filter, place, true);
            }
        } else if !seen && draw > self.insert_floor {
            for (filter, place) in places.into_iter().enumerate() {
                if !self.get(filter, place) {
                    let mut random = self.generator.below(self.filter_bits);
                    while !self.get(filter, random) {
                        random = self.generator.below(self.filter_bits);
                    }
                    self.put(filter, random, false);
                    self.put(filter, place, true);
                }
            }
        }
        seen
    }
}

/// An age-partitioned filter as the paper has it: every slice an array of its own, a probe in each, and
/// its query, which skips from the oldest slices to the youngest.
pub struct NaiveWindow {
    slices: Vec<Vec<u64>>,
    slice_bits: u64,
    num_hashes: usize,
    generation: u64,
    arrivals: u64,
    /// The youngest slice; older ones follow.
    youngest: usize,
}

impl NaiveWindow {
    /// `num_slices` slices in all of `bits`, of which an insertion sets a bit in `num_hashes`.
    pub fn new(bits: u64, num_slices: usize, num_hashes: usize, window: u64) -> Self {
        let words = (bits / num_slices as u64).div_ceil(64);
        NaiveWindow {
            slices: (0..num_slices).map(|_| vec![0; words as usize]).collect(),
            slice_bits: words * 64,
            num_hashes,
            generation: window.div_ceil((num_slices - num_hashes) as u64),
            arrivals: 0,
            youngest: 0,
        }
    }

    /// The slice of an age, and the key's place in it: double hashing, one probe a slice.
    fn place(&self, hash: KeyHash, age: usize) -> (usize, u64) {
        let slice = (self.youngest + age) % self.slices.len();
        let bits = hash.high.wrapping_add(hash.low.wrapping_mul(slice as u64 + 1));
        (slice, ((u128::from(bits) * u128::from(self.slice_bits)) >> 64) as u64)
    }

    fn is_set(&self, hash: KeyHash, age: usize) -> bool {
        let (slice, place) = self.place(hash, age);
        self.slices[slice][(place / 64) as usize] >> (place % 64) & 1 == 1
    }

    fn contains(&self, hash: KeyHash) -> bool {
        let (mut age, mut before, mut run) = ((self.slices.len() - self.num_hashes) as i64, 0, 0);
        while age >= 0 {
            if self.is_set(hash, age as usize) {
                (run, age) = (run + 1, age + 1);
                if before + run == self.num_hashes {
                    return true;
                }
            } else {
                age -= self.num_hashes as i64;
                (before, run) = (run, 0);
            }
        }
        false
    }

    /// Whether the key seems to be in the window; then it is remembered.
    pub fn observe<K: Key>(&mut self, key: &K, hashing: &Hashing) -> bool {
        let hash = key.hash_with(hashing);
        let seen = self.contains(hash);
        for age in 0..self.num_hashes {
            let (slice, place) = self.place(hash, age);
            self.slices[slice][(place / 64) as usize] |= 1 << (place % 64);
        }
        self.arrivals += 1;
        if self.arrivals.is_multiple_of(self.generation) {
            self.youngest = (self.youngest + self.slices.len() - 1) % self.slices.len();
            self.slices[self.youngest].fill(0);
        }
        seen
    }
}
