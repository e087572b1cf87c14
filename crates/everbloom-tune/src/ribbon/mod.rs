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
//!
//! The columns lie side by side, 64 slots at a time, so that all that a key reads lies together, however wide
//! the values are: in three blocks at most, which are as many cache lines at a width of 8.
//!
//! ```text
//! words    │ 0 1 2 │ 3 4 5 │ 6 7 8 │ …      (at a width of 3)
//! columns  │ 0 1 2 │ 0 1 2 │ 0 1 2 │ …
//! slots    │ 0–63  │64–127 │128–191│ …
//! key "a"   └─── slots 2 to 129 ──┘
//! ```

mod lookups;

use everbloom::{Error, KeyHash, Result};
use everbloom_cells::bits::Bits;
use everbloom_cells::buffer::LINE_BITS;
use everbloom_cells::key::{finalise, scale};
use everbloom_cells::simd::{Plain, SimdOps, run, spread_distance_for};
use lookups::{Lookup, Lookups};

/// The slots that an equation may reach.
const BAND: u64 = 128;
/// The slots of a block: a word of every column.
const BLOCK: u64 = 64;
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
        Bits::byte_length(self.table_bits()) * 8
    }

    /// The bits of all blocks; those of slots after the last are zero.
    fn table_bits(self) -> u64 {
        (self.slots.div_ceil(BLOCK) * BLOCK).saturating_mul(u64::from(self.width))
    }

    /// The shape, if it is possible.
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

    /// The bits that say where a key's equation starts, by the high ones, and its mask, by the low ones.
    #[inline]
    fn first(hash: KeyHash, seed: u64) -> u64 {
        finalise(hash.high ^ Self::salt(seed))
    }

    /// What tells seeds apart.
    #[inline]
    fn salt(seed: u64) -> u64 {
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The slot where a key's equation starts.
    #[inline]
    fn start(self, first: u64) -> u64 {
        scale(first, self.slots - self.band() + 1)
    }

    /// Where a key's equation starts, its coefficients (the first is always 1), and the mask of its value.
    #[inline]
    fn equation(self, hash: KeyHash, seed: u64) -> (u64, u128, u32) {
        let first = Self::first(hash, seed);
        let second = finalise(hash.low.wrapping_add(first));
        let third = finalise(first ^ second.rotate_left(23));
        let all = u128::MAX >> (BAND - self.band());
        let coefficients = (u128::from(second) << 64 | u128::from(third)) & all | 1;
        (self.start(first), coefficients, first as u32 & self.values())
    }

    /// The value of a key in the words of a table, if it is below a limit; otherwise some number that is not.
    #[inline(always)]
    fn value(self, ops: impl SimdOps, words: &[u64], hash: KeyHash, seed: u64, limit: u32) -> u32 {
        let (start, coefficients, mask) = self.equation(hash, seed);
        let selections = selected(coefficients as u64, (coefficients >> 64) as u64, start % BLOCK);
        let at = self.word(start);
        let value = (self.sum(ops, words, at, selections) ^ mask) & self.values();
        match self.is_open(value, limit) {
            false => value,
            true => self.completed(ops, words, at, selections, value),
        }
    }

    /// The first word of the block that a slot is in: there are fewer than 2^32 of them.
    #[inline(always)]
    fn word(self, slot: u64) -> u32 {
        (slot / BLOCK) as u32 * self.width
    }

    /// Whether a value of which only the first columns are known could still be below a limit.
    #[inline(always)]
    fn is_open(self, value: u32, limit: u32) -> bool {
        self.width as usize > COLUMNS && value & FIRST_COLUMNS < limit
    }

    /// A value of which only the first columns are known, the others being the mask's, with all of them.
    #[inline(always)]
    fn completed(self, ops: impl SimdOps, words: &[u64], at: u32, selections: [u64; 3], value: u32) -> u32 {
        // The last columns, some of which are among the first as well.
        let others = self.width - COLUMNS as u32;
        let sum = self.sum(ops, words, at + others, selections);
        value ^ sum << others & !FIRST_COLUMNS
    }

    /// The sum of what an equation selects from a word on, a bit for each of the next eight columns; those beyond the
    /// width mean nothing.
    #[inline(always)]
    fn sum(self, ops: impl SimdOps, words: &[u64], at: u32, selections: [u64; 3]) -> u32 {
        match self.sum_within(ops, words, at, selections) {
            Some(sum) => sum,
            None => self.sum_at_end(words, at, selections),
        }
    }

    /// The sum, or `None` where what is read would go beyond the words.
    #[inline(always)]
    fn sum_within(self, ops: impl SimdOps, words: &[u64], at: u32, selections: [u64; 3]) -> Option<u32> {
        let (at, width) = (at as usize, self.width as usize);
        // Asked once for all that is read: in cache, a lookup feels every question.
        let near = words.get(at..at + 2 * width + COLUMNS)?;
        let block = |at: usize| near.get(at..)?.first_chunk();
        Some(ops.odd_columns([block(0)?, block(width)?, block(2 * width)?], selections))
    }

    /// The sum near the end, after which come zeros, where no equation selects anything.
    #[cold]
    #[inline(never)]
    fn sum_at_end(self, words: &[u64], at: u32, selections: [u64; 3]) -> u32 {
        let mut near = [0; 2 * MAX_WIDTH as usize + COLUMNS];
        let rest = words.get(at as usize..).unwrap_or_default();
        near.iter_mut().zip(rest).for_each(|(near, word)| *near = *word);
        // There is always enough of it.
        self.sum_within(Plain, &near, 0, selections).unwrap_or_default()
    }

    /// The largest value: all bits of the width.
    fn values(self) -> u32 {
        (1 << self.width) - 1
    }
}

/// The bits that coefficients, in two halves, select in three words of a column, if they start so far into the first.
#[inline(always)]
fn selected(low: u64, high: u64, shift: u64) -> [u64; 3] {
    // In two steps, since a word cannot be shifted by all of its bits.
    let carried = |half: u64| half >> 1 >> (BLOCK - 1 - shift);
    [low << shift, high << shift | carried(low), carried(high)]
}

/// The map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ribbon {
    shape: Shape,
    seed: u64,
    /// Block after block, and in each a word of every column.
    table: Bits,
}

impl Ribbon {
    /// A table of zeros, in which no key is.
    pub fn empty(shape: Shape, seed: u64) -> Result<Self> {
        let shape = shape.checked()?;
        Ok(Ribbon { shape, seed, table: Bits::new(shape.table_bits())? })
    }

    /// The map of these keys to the low `width` bits of their values. A key that is listed twice
    /// must have the same value both times.
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

    /// Back-substitution: from the last slot to the first, each value is what its equation leaves open.
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
            ribbon.set(at as u64, value);
        }
        Ok(ribbon)
    }

    /// Gives a slot its value.
    fn set(&mut self, slot: u64, value: u32) {
        let width = u64::from(self.shape.width);
        let word = slot / BLOCK * width;
        for column in (0..width).filter(|column| value >> column & 1 == 1) {
            self.table.set((word + column) * BLOCK + slot % BLOCK);
        }
    }

    /// The value of a key if it is below the limit, otherwise some number that is not below it. Keys that are not in the map have
    /// values, too, as good as random.
    #[inline]
    pub fn get_below(&self, limit: u32, hash: KeyHash) -> u32 {
        run(Lookup { ribbon: self, limit, hash })
    }

    /// [`Ribbon::get_below`] for a batch; `values` is as long as `hashes`.
    pub fn get_batch_below(&self, limit: u32, hashes: &[KeyHash], values: &mut [u32]) {
        run(Lookups { ribbon: self, limit, hashes, values });
    }

    /// How many keys ahead to ask for what they read; 0 if all is in cache.
    pub fn prefetch_distance(&self) -> usize {
        spread_distance_for(self.table.bytes())
    }

    /// Asks for what a key reads to be brought near.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.prefetch_from(self.shape.word(self.shape.start(Shape::first(hash, self.seed))));
    }

    /// Asks for what an equation reads from a word on.
    #[inline(always)]
    fn prefetch_from(&self, word: u32) {
        let (word, width) = (u64::from(word), u64::from(self.shape.width));
        for line in word * BLOCK / LINE_BITS..=(word + 3 * width - 1) * BLOCK / LINE_BITS {
            self.table.prefetch(line * LINE_BITS);
        }
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The seed under which the equations could be solved.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The table, as formats store it.
    pub fn bytes(&self) -> &[u8] {
        self.table.bytes()
    }

    /// The table, to be filled by a decoder, which then calls [`Ribbon::check`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.table.bytes_mut()
    }

    /// Refuses a table with bits set after its last slot: they would be the same map in other bytes.
    pub fn check(&self) -> Result<()> {
        self.table.check()?;
        let (whole, rest) = ((self.shape.slots / BLOCK) as usize, self.shape.slots % BLOCK);
        let last = self.table.words().iter().skip(whole * self.shape.width as usize);
        if last.into_iter().any(|word| word >> rest != 0) {
            return Err(Error::corrupt("the map has bits set beyond its end"));
        }
        Ok(())
    }
}

/// The columns that are read together. Where there are fewer, the rest of what is read is ignored.
const COLUMNS: usize = 8;
/// The bits of a value that are read first, and the only ones unless they leave it open whether the value is below a limit.
const FIRST_COLUMNS: u32 = (1 << COLUMNS) - 1;

/// An equation whose first coefficient belongs to its own slot; no coefficients, no equation.
#[derive(Clone, Copy, Default)]
struct Row {
    coefficients: u128,
    value: u32,
}

/// Gaussian elimination, key by key; `None` if two equations contradict each other.
fn eliminate(shape: Shape, seed: u64, entries: &[(KeyHash, u32)]) -> Option<Vec<Row>> {
    let mut rows = vec![Row::default(); shape.slots as usize];
    for (hash, value) in entries {
        let (start, mut coefficients, mask) = shape.equation(*hash, seed);
        let (mut at, mut value) = (start as usize, value & shape.values() ^ mask);
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
    use everbloom::{Hashing, Key};
    use everbloom_cells::simd::{Kernel, run_on_each};
    use proptest::prelude::*;

    fn hash(key: u64) -> KeyHash {
        key.hash_with(&Hashing::default())
    }

    /// The value by the definition: slot by slot, and in each column by column.
    fn naive_get(ribbon: &Ribbon, hash: KeyHash) -> u32 {
        let (start, coefficients, mut value) = ribbon.shape.equation(hash, ribbon.seed);
        let width = u64::from(ribbon.shape.width);
        for slot in (0..BAND).filter(|slot| coefficients >> slot & 1 == 1).map(|slot| start + slot) {
            assert!(slot < ribbon.shape.slots);
            for column in 0..width {
                let word = ribbon.table.words()[(slot / 64 * width + column) as usize];
                value ^= ((word >> (slot % 64) & 1) as u32) << column;
            }
        }
        value
    }

    proptest! {
        #[test]
        fn every_key_reads_its_value(count in 0u64..3000, width in 1u32..=16, salt in any::<u64>()) {
            let entries: Vec<_> = (0..count).map(|key| (hash(key ^ salt), finalise(key) as u32)).collect();
            let ribbon = Ribbon::build(&entries, width).expect("solvable");
            for (hash, value) in entries {
                prop_assert_eq!(ribbon.get_below(u32::MAX, hash), value & ((1 << width) - 1));
            }
        }

        #[test]
        fn one_by_one_and_in_batches_keys_read_what_the_definition_says(
            slots in prop_oneof![1u64..400, 60_000u64..200_000], width in 1u32..=16, seed in any::<u64>(), count in 0u64..300,
        ) {
            let mut ribbon = Ribbon::empty(Shape { slots, width }, seed).expect("small");
            (0..slots).for_each(|slot| ribbon.set(slot, finalise(slot ^ seed) as u32));
            prop_assert!(ribbon.check().is_ok());
            let hashes: Vec<KeyHash> = (0..count).map(|key| hash(key ^ seed)).collect();
            for limit in [u32::MAX, 1, 3, 1 << (width - 1), 1 << width] {
                read_as_defined(&ribbon, limit, &hashes)?;
            }
        }
    }

    #[test]
    fn keys_read_the_same_of_a_map_that_is_asked_for_ahead() {
        let mut ribbon = Ribbon::empty(Shape { slots: 1 << 20, width: 16 }, 5).expect("2 MiB");
        (0..1 << 20).for_each(|slot| ribbon.set(slot, finalise(slot) as u32));
        assert!(ribbon.prefetch_distance() > 0);
        let hashes: Vec<KeyHash> = (0..300).map(hash).collect();
        for count in [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 300] {
            read_as_defined(&ribbon, 1 << 12, &hashes[..count]).expect("as defined");
        }
    }

    fn read_as_defined(ribbon: &Ribbon, limit: u32, hashes: &[KeyHash]) -> Result<(), TestCaseError> {
        let (plain, wider) = run_on_each(|| Reading { ribbon, limit, hashes });
        for readings in wider.iter().map(|(_, readings)| readings).chain([&plain]) {
            prop_assert_eq!(readings.len(), hashes.len());
            for (hash, (one, in_batch)) in hashes.iter().zip(readings) {
                let expected = naive_get(ribbon, *hash);
                for value in [*one, *in_batch] {
                    prop_assert!(value == expected || expected >= limit && value >= limit, "{value}, {expected}");
                }
            }
        }
        Ok(())
    }

    /// What keys read one by one and in a batch.
    struct Reading<'r> {
        ribbon: &'r Ribbon,
        limit: u32,
        hashes: &'r [KeyHash],
    }

    impl Kernel for Reading<'_> {
        type Output = Vec<(u32, u32)>;

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> Self::Output {
            let Reading { ribbon, limit, hashes } = self;
            let mut values = vec![0; hashes.len()];
            Lookups { ribbon, limit, hashes, values: &mut values }.run(ops);
            hashes
                .iter()
                .zip(values)
                .map(|(hash, value)| (Lookup { ribbon, limit, hash: *hash }.run(ops), value))
                .collect()
        }
    }

    #[test]
    fn other_keys_read_every_value_alike() {
        for count in [0, 1, 50, 20_000] {
            let entries: Vec<_> = (0..count).map(|key| (hash(key), 0)).collect();
            let ribbon = Ribbon::build(&entries, 3).expect("solvable");
            let mut counts = [0.0; 8];
            for key in 0..80_000u64 {
                counts[ribbon.get_below(u32::MAX, hash(key + (1 << 40))) as usize] += 1.0;
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
        assert_eq!((twice.get_below(u32::MAX, hash(1)), twice.get_below(u32::MAX, hash(2))), (3, 5));
    }

    #[test]
    fn bits_behind_the_last_slot_are_noticed() {
        for (slots, width) in [(1, 1), (63, 3), (64, 8), (65, 5), (200, 16)] {
            let shape = Shape { slots, width };
            let mut ribbon = Ribbon::empty(shape, 0).expect("small");
            (0..slots).for_each(|slot| ribbon.set(slot, shape.values()));
            assert!(ribbon.check().is_ok());
            for place in 0..ribbon.bytes().len() * 8 {
                let mut damaged = ribbon.clone();
                damaged.bytes_mut()[place / 8] ^= 1 << (place % 8);
                let slot = place as u64 / (BLOCK * u64::from(width)) * BLOCK + place as u64 % BLOCK;
                assert_eq!(damaged.check().is_ok(), slot < slots, "bit {place} of {slots} slots");
            }
        }
    }

    #[test]
    fn shapes_out_of_range_are_refused() {
        for (slots, width) in [(0, 3), (MAX_SLOTS + 1, 3), (8, 0), (8, 17)] {
            assert!(Ribbon::empty(Shape { slots, width }, 0).is_err(), "{slots} of {width}");
        }
    }
}
