//! A set of 64-bit hashes that grows as long as memory is given.
//!
//! Cache lines of eight slots, in which a hash is looked for and put as [`in_place`](super::in_place) says; here such a table has no
//! end. It begins with one line and grows by a half or a third at a time.
//!
//! **It grows where it lies.** A table that is copied into a larger one needs both at the worst moment, three times its
//! contents. Here hashes lie in their own order, so in a longer table each moves towards the end or stays, and no second
//! table is needed. Where the system can move pages (Linux), making the memory longer copies nothing either.
//!
//! **Memory may be refused.** [`HashTable::make_room`] asks for it ahead and says so. A hash that comes without that is
//! still put into whatever room is left; once there is none it is not kept, and [`HashTable::refused`] counts it.

use super::buffer::Buffer;
pub use super::in_place::stored;
use super::in_place::{InPlace, Outcome, SLOTS};
use crate::key::KeyHash;
use crate::{Result, Verdict};

/// Lines there may ever be: 64 TiB.
const MOST_LINES: u64 = 1 << 40;

/// What an empty table takes: a line.
pub const FIRST_BITS: u64 = SLOTS * 64;

/// The table.
///
/// ```
/// use everbloom_cells::table::HashTable;
/// use everbloom_cells::key::{Hashing, Key};
///
/// let hashing = Hashing::default();
/// let mut seen = HashTable::new()?;
/// assert!(seen.insert("alice".hash_with(&hashing).high));
/// assert!(!seen.insert("alice".hash_with(&hashing).high));
/// assert!(seen.contains("alice".hash_with(&hashing).high) && seen.len() == 1);
/// # Ok::<(), everbloom_cells::Error>(())
/// ```
#[derive(Clone)]
pub struct HashTable {
    table: InPlace,
    buffer: Buffer,
    /// Whether memory was refused. It is asked for by [`HashTable::make_room`] alone then: asking again for every hash
    /// would take for ever.
    is_refused: bool,
    refused: u64,
}

impl std::fmt::Debug for HashTable {
    /// How much there is, not all that it holds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HashTable({} of {} slots)", self.len(), self.slots())
    }
}

impl HashTable {
    /// An empty table of one line.
    pub fn new() -> Result<Self> {
        Ok(Self::empty(Buffer::with_lines(1)?))
    }

    fn empty(buffer: Buffer) -> Self {
        HashTable { table: InPlace::new(MOST_LINES).within(&buffer), buffer, is_refused: false, refused: 0 }
    }

    /// The table of at most `count` hashes that come in ascending order. They are as evenly spread as hashes are, or refused:
    /// what crowds a few lines is no set of hashes, and would make every search a long one.
    pub fn from_sorted(hashes: impl Iterator<Item = Result<u64>>, count: u64) -> Result<Self> {
        let (table, buffer) = InPlace::from_sorted_as_grown(hashes, count, MOST_LINES)?;
        Ok(HashTable { table, buffer, is_refused: false, refused: 0 })
    }

    /// How many hashes are inside.
    #[inline]
    pub fn len(&self) -> u64 {
        self.table.len()
    }

    /// Whether nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Slots for hashes, taken and empty.
    #[inline]
    pub fn slots(&self) -> u64 {
        self.table.lines() * SLOTS
    }

    /// Hashes that were not kept, because memory to grow was refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// All the memory it takes now.
    pub fn memory_bits(&self) -> u64 {
        self.buffer.lines().len() as u64 * FIRST_BITS
    }

    /// Whether a hash is inside.
    #[inline]
    pub fn contains(&self, bits: u64) -> bool {
        self.table.contains(&self.buffer, bits)
    }

    /// Puts a hash in; true if it is new.
    #[inline]
    pub fn insert(&mut self, bits: u64) -> bool {
        let mut verdict = [Verdict::Distinct];
        self.observe(&[KeyHash { high: bits, low: 0 }], &mut verdict);
        verdict[0].is_distinct()
    }

    /// Puts the high halves of these hashes in, and says of each whether it was there; `verdicts` is as long.
    #[inline]
    pub fn observe(&mut self, hashes: &[KeyHash], verdicts: &mut [Verdict]) {
        let done = match self.is_refused {
            true => 0,
            false => match self.table.observe(&mut self.buffer, hashes, verdicts) {
                Outcome::Done => return,
                Outcome::Full(done) | Outcome::Refused(done) => done,
            },
        };
        self.is_refused = true;
        for (hash, verdict) in hashes.iter().zip(verdicts).skip(done) {
            let is_new = self.table.insert_overfull(&mut self.buffer, hash.high);
            self.refused += u64::from(is_new.is_none());
            *verdict = Verdict::from_seen(is_new == Some(false));
        }
    }

    /// Makes room for so many hashes more, as they are: putting these in allocates nothing then.
    pub fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        self.table.make_room(&mut self.buffer, hashes.len() as u64)?;
        self.is_refused = false;
        Ok(())
    }

    /// The bits that room for so many hashes more takes beyond those that there are.
    pub fn growth_bits(&self, more: u64) -> u64 {
        self.table.lines_for(more).saturating_mul(FIRST_BITS).saturating_sub(self.memory_bits())
    }

    /// Takes every hash out, and gives back all memory but a line.
    pub fn clear(&mut self) {
        match Buffer::with_lines(1) {
            Ok(line) => *self = Self::empty(line),
            // Where not even a line is to be had, what there is stays.
            Err(_) => {
                self.buffer.clear();
                (self.table, self.is_refused, self.refused) = (InPlace::new(MOST_LINES).within(&self.buffer), false, 0);
            }
        }
    }

    /// Every hash inside, in ascending order.
    pub fn sorted(&self) -> impl Iterator<Item = u64> {
        self.table.sorted(&self.buffer)
    }
}

#[cfg(test)]
mod tests {
    //! The table against sets of the standard library, while it grows and while it is loaded.

    use super::*;
    use crate::key::{Hashing, Key, finalise};
    use std::collections::BTreeSet;

    fn hash(key: u64) -> KeyHash {
        key.hash_with(&Hashing::default())
    }

    #[test]
    fn agrees_with_a_set_while_it_grows_whatever_the_batches() {
        let keys: Vec<KeyHash> = (0..600_000u64).map(|key| hash(key * key % 400_009)).collect();
        for (batch, asks) in [(1000, false), (1000, true), (7777, true)] {
            let (mut ours, mut theirs) = (HashTable::new().expect("memory"), BTreeSet::new());
            for hashes in keys.chunks(batch) {
                let mut verdicts = vec![Verdict::Distinct; hashes.len()];
                if asks {
                    ours.make_room(hashes).expect("memory");
                }
                ours.observe(hashes, &mut verdicts);
                for (hash, verdict) in hashes.iter().zip(verdicts) {
                    assert_eq!(verdict.is_distinct(), theirs.insert(hash.high));
                }
            }
            assert_eq!((ours.len(), ours.refused()), (theirs.len() as u64, 0));
            assert!(ours.sorted().eq(theirs.iter().copied()));
            assert!(theirs.iter().all(|bits| ours.contains(*bits)));
            assert!(!(1_000_000..1_010_000).any(|key| ours.contains(hash(key).high)));
        }
    }

    #[test]
    fn hashes_that_crowd_one_line_all_fit() {
        for (count, what) in [(300, "a small table"), (50_000, "a larger one")] {
            let mut table = HashTable::new().expect("memory");
            assert!((0..count).all(|low| table.insert(u64::MAX - low)), "{what}");
            assert!((0..count).all(|low| !table.insert(u64::MAX - low)), "{what}");
            assert!((0..count).all(|low| table.contains(u64::MAX - low)), "{what}");
        }
    }

    #[test]
    fn hashes_in_full_lines_are_found_again_however_often_it_grows() {
        let mut table = HashTable::new().expect("memory");
        // Runs of neighbours, 30 to a line: nearly all of them spill.
        let bits = |key: u64| (finalise(key / 30) & !31) + key % 30 + 1;
        for key in 0..60_000 {
            assert!(table.insert(bits(key)), "{key}");
            if key % 1000 == 0 {
                assert!((0..=key).all(|key| !table.insert(bits(key))), "at {key}");
            }
        }
        assert_eq!(table.len(), 60_000);
    }

    #[test]
    fn memory_stays_within_sixteen_bytes_a_key_beyond_the_first_pages() {
        let mut table = HashTable::new().expect("memory");
        for key in 0..3_000_000u64 {
            table.insert(hash(key).high);
            if key > 500_000 && key % 10_007 == 0 {
                let bytes_per_key = table.memory_bits() as f64 / 8.0 / table.len() as f64;
                assert!(bytes_per_key < 16.0, "{bytes_per_key} at {key}");
            }
        }
    }

    #[test]
    fn sorted_hashes_are_loaded_as_if_they_had_come_one_by_one() {
        for count in [0, 1, 700, 90_112, 90_113, 300_000] {
            let mut one_by_one = HashTable::new().expect("memory");
            (0..count).for_each(|key| {
                one_by_one.insert(hash(key).high);
            });
            let mut loaded = HashTable::from_sorted(one_by_one.sorted().map(Ok), count).expect("spread as hashes are");
            assert!(loaded.sorted().eq(one_by_one.sorted()), "{count}");
            assert!((0..count).all(|key| loaded.contains(hash(key).high)), "{count}");
            assert!((count..2 * count + 9).all(|key| loaded.insert(hash(key).high)), "{count} goes on");
            assert!((0..2 * count + 9).all(|key| !loaded.insert(hash(key).high)), "{count} has all");
        }
    }

    #[test]
    fn what_is_no_set_of_hashes_is_not_loaded() {
        for count in [20_000, 100_000, 2_000_000] {
            assert!(HashTable::from_sorted((1..=count).map(Ok), count).is_err(), "{count}");
        }
        // Sixty-four places have their share, all of it in one line.
        let crowded = (0..64u64).flat_map(|part| (1..=20_000).map(move |low| Ok(part << 58 | low)));
        assert!(HashTable::from_sorted(crowded, 1_280_000).is_err());
    }

    #[test]
    fn a_few_keys_take_a_few_lines() {
        let mut table = HashTable::new().expect("memory");
        assert_eq!(table.memory_bits(), FIRST_BITS);
        (0..100).for_each(|key| {
            table.insert(hash(key).high);
        });
        assert!(table.memory_bits() <= 8 * 4096, "{} bits", table.memory_bits());
    }
}
