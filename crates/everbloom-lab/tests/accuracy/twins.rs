//! Filters so plain that they are obviously right: a byte per cell, a hash per probe, nothing packed.
//! The fast filters must err as often as these do.

use everbloom::{Hashing, Key as _};
use everbloom_cells::key::Generator;
use everbloom_lab::datasets::Set;
use everbloom_lab::metrics::Tally;
use everbloom_lab::oracle::{IdOracle, Truth};

/// Says whether a key has been here, then remembers it.
pub(crate) trait Twin {
    fn observe(&mut self, key: u64) -> bool;
}

/// Where the `index`-th hash function sends a key.
fn position(key: u64, index: usize, range: usize, seed: u64) -> usize {
    let hash = key.hash_with(&Hashing::seeded(seed.wrapping_mul(1000).wrapping_add(index as u64)));
    (hash.low % range as u64) as usize
}

/// The Stable Bloom filter as its paper prints it.
pub(crate) struct NaiveStable {
    cells: Vec<u8>,
    cell_max: u8,
    num_hashes: usize,
    decrements: usize,
    on_distinct: bool,
    seed: u64,
    generator: Generator,
}

impl NaiveStable {
    pub(crate) fn new(num_cells: usize, cell_max: u8, num_hashes: usize, decrements: usize, seed: u64) -> Self {
        let generator = Generator::seeded(!seed);
        NaiveStable { cells: vec![0; num_cells], cell_max, num_hashes, decrements, on_distinct: false, seed, generator }
    }

    pub(crate) fn on_distinct(mut self) -> Self {
        self.on_distinct = true;
        self
    }
}

impl Twin for NaiveStable {
    fn observe(&mut self, key: u64) -> bool {
        let cells: Vec<_> =
            (0..self.num_hashes).map(|index| position(key, index, self.cells.len(), self.seed)).collect();
        let seen = cells.iter().all(|&cell| self.cells[cell] > 0);
        if seen && self.on_distinct {
            return seen;
        }
        for _ in 0..self.decrements {
            let cell = self.generator.below(self.cells.len() as u64) as usize;
            self.cells[cell] = self.cells[cell].saturating_sub(1);
        }
        cells.iter().for_each(|&cell| self.cells[cell] = self.cell_max);
        seen
    }
}

/// The reservoir-sampling Bloom filter, read as the specification reads it.
pub(crate) struct NaiveReservoir {
    arrays: Vec<Vec<bool>>,
    ones: Vec<usize>,
    insert_floor: f64,
    arrivals: u64,
    seed: u64,
    generator: Generator,
}

impl NaiveReservoir {
    pub(crate) fn new(memory_bits: usize, num_filters: usize, insert_floor: f64, seed: u64) -> Self {
        let arrays = vec![vec![false; memory_bits / num_filters]; num_filters];
        let generator = Generator::seeded(!seed);
        NaiveReservoir { arrays, ones: vec![0; num_filters], insert_floor, arrivals: 0, seed, generator }
    }

    fn write(&mut self, array: usize, bit: usize, value: bool) {
        self.ones[array] += usize::from(value);
        self.ones[array] -= usize::from(self.arrays[array][bit]);
        self.arrays[array][bit] = value;
    }

    fn random_bit(&mut self) -> usize {
        self.generator.below(self.arrays[0].len() as u64) as usize
    }

    fn clear_a_set_bit(&mut self, array: usize) {
        while self.ones[array] > 0 {
            let bit = self.random_bit();
            if self.arrays[array][bit] {
                return self.write(array, bit, false);
            }
        }
    }
}

impl Twin for NaiveReservoir {
    fn observe(&mut self, key: u64) -> bool {
        self.arrivals += 1;
        let size = self.arrays[0].len();
        let bits: Vec<_> = (0..self.arrays.len()).map(|array| position(key, array, size, self.seed)).collect();
        let seen = bits.iter().enumerate().all(|(array, &bit)| self.arrays[array][bit]);
        let draw = self.generator.unit();
        if self.arrivals <= size as u64 || draw <= size as f64 / self.arrivals as f64 {
            for (array, &bit) in bits.iter().enumerate() {
                let reset = self.random_bit();
                self.write(array, reset, false);
                self.write(array, bit, true);
            }
        } else if !seen && draw > self.insert_floor {
            for (array, &bit) in bits.iter().enumerate() {
                if !self.arrays[array][bit] {
                    self.clear_a_set_bit(array);
                    self.write(array, bit, true);
                }
            }
        }
        seen
    }
}

/// What a hit does in [`NaiveRanked`].
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Hit {
    Front,
    Still,
}

/// Fingerprints in priority order, a list per word.
pub(crate) struct NaiveRanked {
    words: Vec<Vec<u64>>,
    lanes: usize,
    /// How many fingerprints there are in a word with 0, 1, … keys.
    fingerprints: Vec<u64>,
    hit: Hit,
    seed: u64,
}

impl NaiveRanked {
    pub(crate) fn new(words: usize, lanes: usize, lane_bits: u32, hit: Hit, seed: u64) -> Self {
        let fingerprints = vec![(1 << lane_bits) - 1; lanes + 1];
        NaiveRanked { words: vec![Vec::new(); words], lanes, fingerprints, hit, seed }
    }

    /// One whose words are wide: with fewer keys there are so many times more fingerprints, each a multiple of the next.
    pub(crate) fn wide(words: usize, longer: &[u32], lane_bits: u32, hit: Hit, seed: u64) -> Self {
        let fingerprints = longer.iter().map(|bits| ((1 << lane_bits) - 2) << bits).collect();
        NaiveRanked { words: vec![Vec::new(); words], lanes: longer.len() - 1, fingerprints, hit, seed }
    }
}

impl Twin for NaiveRanked {
    fn observe(&mut self, key: u64) -> bool {
        let word = position(key, 0, self.words.len(), self.seed);
        let longest = position(key, 1, self.fingerprints[0] as usize, self.seed) as u64;
        let word = &mut self.words[word];
        let (now, more) = (self.fingerprints[word.len()], self.fingerprints[(word.len() + 1).min(self.lanes)]);
        let fingerprint = longest / (self.fingerprints[0] / now);
        if let Some(lane) = word.iter().position(|&lane| lane == fingerprint) {
            if self.hit == Hit::Front {
                word.remove(lane);
                word.insert(0, fingerprint);
            }
            return true;
        }
        word.iter_mut().for_each(|print| *print /= now / more);
        word.insert((self.lanes / 2).min(word.len()), fingerprint / (now / more));
        word.truncate(self.lanes);
        false
    }
}

/// The twin's errors on a data set.
pub(crate) fn judge(twin: &mut dyn Twin, set: Set) -> Tally {
    let (mut oracle, mut tally) = (IdOracle::default(), Tally::default());
    for arrival in set {
        tally.record(oracle.judge(arrival.key) == Truth::Duplicate, twin.observe(arrival.key));
    }
    tally
}
