//! Many records of one block at once: where each ends, and what it hashes to.
//!
//! With a filter that takes ten nanoseconds a key, finding the ends of lines and hashing them is half of the
//! work. Both are done here with few branches that depend on how long a record is.
//!
//! ```
//! use everbloom_cells::key::{Hashing, KeyHash};
//! use everbloom_cells::key::records;
//!
//! let bytes = b"alice\nbob\ncarol";
//! let mut ends = [0; 64];
//! assert_eq!(records::split(bytes, 0, b'\n', &mut ends), 3);
//! assert_eq!(ends[..3], [6, 10, 15]);
//! let mut hashes = [KeyHash::default(); 3];
//! records::hash(bytes, 0, &ends[..3], b'\n', &Hashing::default(), &mut hashes);
//! assert_eq!(hashes[1], Hashing::default().hash(b"bob"));
//! ```

pub use super::quoted::{Looked, Separators};
pub use super::quotes::{Quoted, quotes};

use super::xxh3::{SHORT_KEYS, xxh3_of_short};
use crate::key::{Hashing, KeyHash};
use crate::simd;

/// The bytes looked at together.
pub(super) const CHUNK: usize = 64;

/// Writes down where the records of `bytes` from `start` on end, each after its delimiter, and says how many
/// there are. The last may lack its delimiter. It stops early, between two records, when fewer than 64 places
/// are left in `ends`.
///
/// # Panics
///
/// If `start` lies beyond the bytes.
#[inline]
pub fn split(bytes: &[u8], start: usize, delimiter: u8, ends: &mut [usize]) -> usize {
    simd::run(Splitting { bytes, start, delimiter, ends })
}

struct Splitting<'b> {
    bytes: &'b [u8],
    start: usize,
    delimiter: u8,
    ends: &'b mut [usize],
}

impl simd::Kernel for Splitting<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) -> usize {
        let Splitting { bytes, start, delimiter, ends } = self;
        let (chunks, rest) = bytes[start..].as_chunks::<CHUNK>();
        // The last bytes are followed by others that no delimiter is among.
        let mut last = [!delimiter; CHUNK];
        last[..rest.len()].copy_from_slice(rest);
        let (mut count, mut behind) = (0, start + 1);
        for chunk in chunks.iter().chain([&last]) {
            let Some(places) = ends[count..].first_chunk_mut::<CHUNK>() else { return count };
            count += write_down(ops.equal_bytes(chunk, delimiter), behind, places);
            behind += CHUNK;
        }
        let end = if count == 0 { start } else { ends[count - 1] };
        match ends.get_mut(count) {
            Some(place) if end < bytes.len() => {
                *place = bytes.len();
                count + 1
            }
            _ => count,
        }
    }
}

/// Writes down where each bit of a chunk is that was found, counted from `behind`, and says how many there are.
#[inline(always)]
pub(super) fn write_down(mut found: u64, behind: usize, places: &mut [usize; CHUNK]) -> usize {
    let count = found.count_ones() as usize;
    for four in places.as_chunks_mut::<4>().0 {
        if found == 0 {
            break;
        }
        // What is written in excess is written over, or not looked at.
        for place in four {
            *place = behind + found.trailing_zeros() as usize;
            found &= found.wrapping_sub(1);
        }
    }
    count
}

/// Hashes the records that end at `ends`, the first of which starts at `start`, without their delimiters, which
/// all have but perhaps the last. `hashes` is as long as `ends`.
///
/// # Panics
///
/// If the ends are not what [`split`] finds: if they do not rise from `start` on, or lie beyond the bytes.
#[inline]
pub fn hash(bytes: &[u8], start: usize, ends: &[usize], delimiter: u8, hashing: &Hashing, hashes: &mut [KeyHash]) {
    simd::run(HashingRecords { bytes, start, ends, delimiter, hashing, hashes })
}

struct HashingRecords<'b> {
    bytes: &'b [u8],
    start: usize,
    ends: &'b [usize],
    delimiter: u8,
    hashing: &'b Hashing,
    hashes: &'b mut [KeyHash],
}

impl simd::Kernel for HashingRecords<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) {
        let HashingRecords { bytes, mut start, ends, delimiter, hashing, hashes } = self;
        for (ends, hashes) in ends.chunks(SHORT_KEYS).zip(hashes.chunks_mut(SHORT_KEYS)) {
            let done = match (hashing, ends.first_chunk(), hashes.first_chunk_mut()) {
                (Hashing::Xxh3 { seed }, Some(ends), Some(hashes)) if ops.has_wide_registers() => {
                    let ends: &[usize; SHORT_KEYS] = ends;
                    hash_short(bytes, start, 1, |index| ends[index], *seed, hashes)
                }
                _ => false,
            };
            if !done {
                hash_any(bytes, start, ends, delimiter, hashing, hashes);
            }
            start = ends.last().copied().unwrap_or(start);
        }
    }
}

#[inline(always)]
fn hash_any(bytes: &[u8], start: usize, ends: &[usize], delimiter: u8, hashing: &Hashing, hashes: &mut [KeyHash]) {
    let mut start = start;
    for (end, hash) in ends.iter().zip(hashes) {
        let record = &bytes[start..*end];
        *hash = hashing.hash(record.strip_suffix(&[delimiter]).unwrap_or(record));
        start = *end;
    }
}

/// Hashes keys that are all of one to eight bytes, with others after them; false if they are not. The first begins
/// at `start`, each ends at its `end`, of which the last `behind` bytes are no part of it.
#[inline(always)]
pub(super) fn hash_short(
    bytes: &[u8],
    start: usize,
    behind: usize,
    end: impl Fn(usize) -> usize,
    seed: u64,
    hashes: &mut [KeyHash; SHORT_KEYS],
) -> bool {
    let last = end(SHORT_KEYS - 1);
    if !(SHORT_KEYS * (1 + behind)..=SHORT_KEYS * (8 + behind)).contains(&(last - start)) || last + 8 > bytes.len() {
        return false;
    }
    let (mut words, mut lengths) = ([0; SHORT_KEYS], [0; SHORT_KEYS]);
    let mut from = start;
    for index in 0..SHORT_KEYS {
        let Some(word) = bytes[from..].first_chunk() else { return false };
        words[index] = u64::from_le_bytes(*word);
        lengths[index] = (end(index) - from - behind) as u64;
        from = end(index);
    }
    let all_short = lengths.iter().fold(true, |all, length| all & (length.wrapping_sub(1) < 8));
    if all_short {
        *hashes = xxh3_of_short(&words, &lengths, seed);
    }
    all_short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Generator;

    fn plain_ends(bytes: &[u8], start: usize) -> Vec<usize> {
        let delimiters = (start..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1);
        let unfinished = (start < bytes.len() && bytes.last() != Some(&b'\n')).then_some(bytes.len());
        delimiters.chain(unfinished).collect()
    }

    #[test]
    fn records_end_behind_each_delimiter_and_with_the_bytes() {
        let mut generator = Generator::seeded(7);
        for (length, rarity) in (0..300).chain([9_000]).flat_map(|length| [2, 12, 100].map(|rarity| (length, rarity))) {
            let others = [b'\n' | 0x80, 11, b'x', 0, !b'\n', b'\n' - 1];
            let byte = |_| match generator.below(rarity) {
                0 => b'\n',
                other => others[other as usize % others.len()],
            };
            let bytes: Vec<u8> = (0..length).map(byte).collect();
            let start = length.min(3);
            let mut ends = vec![0; length + 64];
            let count = split(&bytes, start, b'\n', &mut ends);
            assert_eq!(ends[..count], plain_ends(&bytes, start), "{length} bytes");
        }
    }

    #[test]
    fn splitting_goes_on_where_it_stopped_for_want_of_room() {
        let bytes = [b"\nab\n".repeat(1000), b"z".to_vec()].concat();
        let (mut all, mut start, mut ends) = (Vec::new(), 0, [0; 200]);
        while start < bytes.len() {
            let count = split(&bytes, start, b'\n', &mut ends);
            assert!(count > 0);
            all.extend_from_slice(&ends[..count]);
            start = ends[count - 1];
        }
        assert_eq!(all, plain_ends(&bytes, 0));
    }

    #[test]
    fn records_are_hashed_without_their_delimiter() {
        let some = b"\na\nbc\n0123456\n01234567\n012345678\nhttps://example.org/a/longer/record\n";
        let short: Vec<u8> = (0..200u32).flat_map(|key| format!("{}\n", key * key * key).into_bytes()).collect();
        let bytes = [&short[..], some, &short, b"\n\n", &short, b"no end"].concat();
        for hashing in [Hashing::seeded(9), Hashing::measured(9), Hashing::Murmur] {
            for start in [0, 1, 3, short.len()] {
                let ends = plain_ends(&bytes, start);
                let mut hashes = vec![KeyHash::default(); ends.len()];
                hash(&bytes, start, &ends, b'\n', &hashing, &mut hashes);
                let records = bytes[start..].split(|byte| *byte == b'\n');
                assert_eq!(hashes, records.map(|record| hashing.hash(record)).collect::<Vec<_>>());
            }
        }
    }
}
