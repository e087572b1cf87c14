//! A static map from keys to a few bits each, without the keys: a ribbon.
//!
//! Solves one linear equation over GF(2) for each key: the bits of the table that the key selects, within a
//! band of 128 slots, sum to its value. So a table for n keys takes about 1.03·n slots of `width` bits
//! \[Dillinger & Walzer 2021\], where a table of fingerprints or a Bloom filter takes a third to a half more.
//! A key that was not in the map reads a value as good as random, always the same one.
//!
//! ```text
//! slots    0 1 1 0 1 0 0 1 1 0 1 …          (one column of bits for every bit of the value)
//! key "a"      └─ band ───┘                 from slot 2: coefficients 1 0 1 1 0 1
//!              1 0 1 1 0 1  ·  1 0 1 0 0 1  = 1 ⊕ 1 ⊕ 1 = 1, the value's bit
//! ```
//!
//! What is read is masked by bits of the key's hash, so that even a table of zeros gives every value to its
//! share of the keys.

use crate::cells::bits::Bits;
use crate::error::{Error, Result};
use crate::hash::{KeyHash, finalise, scale};

/// The slots that an equation may reach.
const BAND: u64 = 128;
/// The widest value.
pub const MAX_WIDTH: u32 = 16;
/// The most slots: a quarter of a billion keys.
pub const MAX_SLOTS: u64 = 1 << 28;
/// Seeds to try before the table is made longer.
const SEEDS: u64 = 4;

/// The shape of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Slots: about one for every key.
    pub slots: u64,
    /// Bits of a value.
    pub width: u32,
}

impl Shape {
    /// The shape that holds this many keys, nearly always at the first try.
    pub fn for_keys(keys: u64, width: u32) -> Self {
        // Small systems are dense: a few slots more than keys, and nothing is lost at the end. Large ones
        // lose half a band at the end and some slots all along.
        let slots = if keys + 6 <= BAND { keys + 6 } else { keys + keys / 32 + 72 };
        Shape { slots, width }
    }

    /// The bits that the table takes.
    pub fn bits(self) -> u64 {
        Bits::byte_length(self.slots.saturating_mul(u64::from(self.width))) * 8
    }

    /// The shape, if it can be had at all.
    pub fn checked(self) -> Result<Self> {
        if !(1..=MAX_SLOTS).contains(&self.slots) {
            let needed = format!("between 1 and {MAX_SLOTS}");
            return Err(Error::parameter("slots", self.slots, needed, "a map takes about one slot a key"));
        }
        if !(1..=MAX_WIDTH).contains(&self.width) {
            let needed = format!("between 1 and {MAX_WIDTH}");
            return Err(Error::parameter("width", self.width, needed, "7 bits tell 99 % of other keys apart"));
        }
        Ok(self)
    }

    fn band(self) -> u64 {
        self.slots.min(BAND)
    }

    /// Where a key's equation starts, its coefficients (the first is always 1), and the mask of its value.
    fn equation(self, hash: KeyHash, seed: u64) -> (u64, u128, u32) {
        let first = finalise(hash.high ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let second = finalise(hash.low.wrapping_add(first));
        let third = finalise(first ^ second.rotate_left(23));
        let all = u128::MAX >> (BAND - self.band());
        let coefficients = (u128::from(second) << 64 | u128::from(third)) & all | 1;
        let mask = (finalise(third.wrapping_add(hash.high)) >> 40) as u32 & ((1 << self.width) - 1);
        (scale(first, self.slots - self.band() + 1), coefficients, mask)
    }
}

/// The map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ribbon {
    shape: Shape,
    seed: u64,
    /// Column after column, `shape.slots` bits each.
    columns: Bits,
}

impl Ribbon {
    /// A table of zeros, in which no key is.
    pub fn empty(shape: Shape, seed: u64) -> Result<Self> {
        let shape = shape.checked()?;
        Ok(Ribbon { shape, seed, columns: Bits::new(shape.slots * u64::from(shape.width))? })
    }

    /// The map of these keys to the low `width` bits of their values. Of a key that comes twice, both values
    /// must be the same.
    pub fn build(entries: &[(KeyHash, u32)], width: u32) -> Result<Self> {
        let mut shape = Shape::for_keys(entries.len() as u64, width).checked()?;
        loop {
            for seed in 0..SEEDS {
                if let Some(rows) = eliminate(shape, seed, entries) {
                    return Self::solved(shape, seed, &rows);
                }
            }
            // Rare, unless two keys share all of their hash or a key has two values.
            let longer = Shape { slots: shape.slots + shape.slots / 32 + 4, ..shape };
            if longer.slots > 4 * Shape::for_keys(entries.len() as u64, width).slots {
                let given = "different values for one key";
                return Err(Error::parameter("entries", given, "one value for each key", "leave one of them out"));
            }
            shape = longer.checked()?;
        }
    }

    /// Back-substitution: from the last slot to the first, each value is what its equation leaves.
    fn solved(shape: Shape, seed: u64, rows: &[Row]) -> Result<Self> {
        let mut ribbon = Self::empty(shape, seed)?;
        let mut solution = vec![0u32; rows.len()];
        for at in (0..rows.len()).rev() {
            let mut value = rows[at].value;
            let mut rest = rows[at].coefficients & !1;
            while rest != 0 {
                value ^= solution[at + rest.trailing_zeros() as usize];
                rest &= rest - 1;
            }
            solution[at] = value;
            for column in (0..shape.width).filter(|column| value >> column & 1 == 1) {
                ribbon.columns.set(u64::from(column) * shape.slots + at as u64);
            }
        }
        Ok(ribbon)
    }

    /// The value of a key that is in the map; of any other, a value as good as random.
    #[inline]
    pub fn get(&self, hash: KeyHash) -> u32 {
        let (start, coefficients, mask) = self.shape.equation(hash, self.seed);
        let mut value = mask;
        for column in 0..self.shape.width {
            let window = self.window(u64::from(column) * self.shape.slots + start);
            value ^= ((window & coefficients).count_ones() & 1) << column;
        }
        value
    }

    /// 128 bits from `position` on; zeros behind the end.
    #[inline]
    fn window(&self, position: u64) -> u128 {
        let words = self.columns.words();
        let at = (position / 64) as usize;
        let word = |index: usize| u128::from(words.get(index).copied().unwrap_or(0));
        let shift = position % 64;
        let low = word(at) | word(at + 1) << 64;
        if shift == 0 { low } else { low >> shift | word(at + 2) << (128 - shift) }
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seed under which the equations could be solved.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The bits of the table.
    pub fn columns(&self) -> &Bits {
        &self.columns
    }

    /// The bits of the table, to be filled by a decoder.
    pub fn columns_mut(&mut self) -> &mut Bits {
        &mut self.columns
    }
}

/// An equation whose first coefficient belongs to its own slot; no coefficients, no equation.
#[derive(Clone, Copy, Default)]
struct Row {
    coefficients: u128,
    value: u32,
}

/// Gaussian elimination, key by key; nothing if two equations contradict each other.
fn eliminate(shape: Shape, seed: u64, entries: &[(KeyHash, u32)]) -> Option<Vec<Row>> {
    let mut rows = vec![Row::default(); shape.slots as usize];
    let all = (1u32 << shape.width) - 1;
    for (hash, value) in entries {
        let (start, mut coefficients, mask) = shape.equation(*hash, seed);
        let (mut at, mut value) = (start as usize, value & all ^ mask);
        while rows[at].coefficients != 0 {
            coefficients ^= rows[at].coefficients;
            value ^= rows[at].value;
            if coefficients == 0 {
                break;
            }
            let step = coefficients.trailing_zeros();
            coefficients >>= step;
            at += step as usize;
        }
        match (coefficients, value) {
            (0, 0) => {}
            (0, _) => return None,
            _ => rows[at] = Row { coefficients, value },
        }
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Hashing, Key};
    use proptest::prelude::*;

    fn hash(key: u64) -> KeyHash {
        key.hash_with(&Hashing::default())
    }

    proptest! {
        #[test]
        fn every_key_reads_its_value(count in 0u64..3000, width in 1u32..=16, salt in any::<u64>()) {
            let entries: Vec<_> = (0..count).map(|key| (hash(key ^ salt), finalise(key) as u32)).collect();
            let ribbon = Ribbon::build(&entries, width).expect("solvable");
            for (hash, value) in entries {
                prop_assert_eq!(ribbon.get(hash), value & ((1 << width) - 1));
            }
        }
    }

    #[test]
    fn other_keys_read_every_value_alike() {
        for count in [0, 1, 50, 20_000] {
            let entries: Vec<_> = (0..count).map(|key| (hash(key), 0)).collect();
            let ribbon = Ribbon::build(&entries, 3).expect("solvable");
            let mut counts = [0.0; 8];
            for key in 0..80_000u64 {
                counts[ribbon.get(hash(key + (1 << 40))) as usize] += 1.0;
            }
            // 10,000 expected of each, σ = √(80,000 · ⅛ · ⅞) = 94.
            assert!(counts.iter().all(|count: &f64| (count - 10_000.0).abs() < 4.0 * 94.0), "{count}: {counts:?}");
        }
    }

    #[test]
    fn the_planned_shape_is_enough_at_every_size() {
        for count in [1u64, 7, 100, 121, 123, 130, 500, 5_000, 100_000, 400_000] {
            let entries: Vec<_> = (0..count).map(|key| (hash(key), 1)).collect();
            let ribbon = Ribbon::build(&entries, 1).expect("solvable");
            assert_eq!(ribbon.shape(), Shape::for_keys(count, 1), "{count} keys needed more");
        }
    }

    #[test]
    fn a_key_with_two_values_is_refused_and_one_that_comes_twice_is_not() {
        assert!(Ribbon::build(&[(hash(1), 0), (hash(1), 1)], 4).is_err());
        let twice = Ribbon::build(&[(hash(1), 3), (hash(2), 5), (hash(1), 3)], 4).expect("solvable");
        assert_eq!((twice.get(hash(1)), twice.get(hash(2))), (3, 5));
    }

    #[test]
    fn shapes_out_of_range_are_refused() {
        for (slots, width) in [(0, 3), (MAX_SLOTS + 1, 3), (8, 0), (8, 17)] {
            assert!(Ribbon::empty(Shape { slots, width }, 0).is_err(), "{slots} of {width}");
        }
    }
}
