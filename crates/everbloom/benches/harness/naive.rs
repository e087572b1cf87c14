//! Stream filters as one would first write them: a byte for each cell, one call at a time.

use everbloom::rng::Generator;
use everbloom::{Hashing, Key};

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
