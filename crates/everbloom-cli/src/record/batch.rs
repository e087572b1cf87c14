//! Many records at once: where each ends, and what its key hashes to.

use super::layout::Extract;
use super::{Extractor, Fault, time};
use everbloom::{Hashing, Importance, Importances, KeyHash};
use memchr::memchr_iter;

/// The most records taken at once, so that a block of empty lines needs no more memory than any other.
pub(crate) const BATCH_RECORDS: usize = 32 << 10;

/// Records that are shorter on average are split word by word.
const SHORT_RECORD: usize = 16;

/// Some consecutive records of a block.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    start: usize,
    ends: Vec<usize>,
    hashes: Vec<KeyHash>,
    importances: Vec<Importance>,
    times: Vec<i64>,
    faults: Vec<(usize, Fault)>,
}

impl Batch {
    /// Takes the records of `bytes` from `start` on, as many as fit, and hashes their keys.
    /// The bytes are whole records, though the last may lack its delimiter.
    pub(crate) fn take(&mut self, bytes: &[u8], start: usize, delimiter: u8, extractor: &Extractor, hashing: &Hashing) {
        self.split(bytes, start, delimiter);
        self.hashes.clear();
        self.importances.clear();
        self.times.clear();
        self.faults.clear();
        if extractor.is_whole_line() {
            self.hash_lines(bytes, delimiter, hashing);
        } else {
            self.hash_keys(bytes, delimiter, extractor, hashing);
        }
    }

    fn split(&mut self, bytes: &[u8], start: usize, delimiter: u8) {
        let usual_length = (self.end() - self.start).checked_div(self.ends.len()).unwrap_or(usize::MAX);
        self.start = start;
        self.ends.clear();
        if usual_length < SHORT_RECORD {
            self.split_short(bytes, delimiter);
        } else {
            self.ends.extend(memchr_iter(delimiter, &bytes[start..]).take(BATCH_RECORDS).map(|at| start + at + 1));
        }
        if self.ends.len() < BATCH_RECORDS && self.end() < bytes.len() {
            self.ends.push(bytes.len());
        }
    }

    /// Finds delimiters eight bytes at a time: where there is one in most words, a search that starts
    /// anew after each costs more than it skips.
    fn split_short(&mut self, bytes: &[u8], delimiter: u8) {
        let wanted = u64::from_ne_bytes([delimiter; 8]);
        let (words, rest) = bytes[self.start..].as_chunks::<8>();
        let mut from = self.start + 1;
        for word in words {
            if self.ends.len() >= BATCH_RECORDS {
                break;
            }
            let mut flags = zero_bytes(u64::from_le_bytes(*word) ^ wanted);
            while flags != 0 {
                self.ends.push(from + flags.trailing_zeros() as usize / 8);
                flags &= flags - 1;
            }
            from += 8;
        }
        if self.ends.len() < BATCH_RECORDS {
            self.ends.extend(memchr_iter(delimiter, rest).map(|at| from + at));
        }
        self.ends.truncate(BATCH_RECORDS);
    }

    fn hash_lines(&mut self, bytes: &[u8], delimiter: u8, hashing: &Hashing) {
        let Batch { start, ends, hashes, .. } = self;
        let mut from = *start;
        hashes.extend(ends.iter().map(|end| {
            let record = &bytes[from..*end];
            from = *end;
            hashing.hash(without_ending(record, delimiter))
        }));
    }

    fn hash_keys(&mut self, bytes: &[u8], delimiter: u8, extractor: &Extractor, hashing: &Hashing) {
        let latest = if extractor.has_time() { time::latest_plausible() } else { i64::MAX };
        for index in 0..self.ends.len() {
            match extractor.extract(without_ending(self.record(bytes, index), delimiter), latest) {
                Ok(Extract { key, importance, time }) => {
                    self.hashes.push(hashing.hash(&key));
                    self.times.extend(time);
                    if extractor.has_importance() {
                        self.importances.push(importance);
                    }
                }
                Err(fault) => self.faults.push((index, fault)),
            }
        }
    }

    /// Lets go of all records.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.truncate(0);
    }

    /// Lets go of the records from `index` on, before which none may be faulty.
    pub(crate) fn truncate(&mut self, index: usize) {
        self.ends.truncate(index);
        self.hashes.truncate(index);
        self.importances.truncate(index);
        self.times.truncate(index);
        self.faults.clear();
    }

    /// Where the first record starts.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Where each record ends.
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where the last record ends.
    pub(crate) fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(self.start)
    }

    /// Record `index` with its ending.
    pub(crate) fn record<'b>(&self, bytes: &'b [u8], index: usize) -> &'b [u8] {
        &bytes[self.range(index)]
    }

    /// Where record `index` is.
    pub(crate) fn range(&self, index: usize) -> std::ops::Range<usize> {
        let from = if index == 0 { self.start } else { self.ends[index - 1] };
        from..self.ends[index]
    }

    /// The hashes of the keys, in order, without the faulty records.
    pub(crate) fn hashes(&self) -> &[KeyHash] {
        &self.hashes
    }

    /// The importances that belong to [`Batch::hashes`].
    pub(crate) fn importances(&self) -> Importances<'_> {
        if self.importances.is_empty() { Importances::default() } else { Importances::Each(&self.importances) }
    }

    /// The times that belong to [`Batch::hashes`]; none if records have no time.
    pub(crate) fn times(&self) -> &[i64] {
        &self.times
    }

    /// The records without a key, by index.
    pub(crate) fn faults(&self) -> &[(usize, Fault)] {
        &self.faults
    }
}

/// The high bit of every byte that is zero, and no other bit.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    !(((word & LOW) + LOW) | word | LOW)
}

#[inline]
fn without_ending(record: &[u8], delimiter: u8) -> &[u8] {
    match record {
        [rest @ .., last] if *last == delimiter => rest,
        _ => record,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_of(batch: &mut Batch, bytes: &[u8], start: usize) -> Vec<usize> {
        batch.split(bytes, start, b'\n');
        batch.ends.clone()
    }

    #[test]
    fn both_ways_of_splitting_agree() {
        let mut state = 7u64;
        for length in (0..200).chain([9_000, 300_000]) {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    [b'\n', b'\n' | 0x80, 11, b'x', 0, 255, b'\n' - 1, b'\n'][(state >> 61) as usize]
                })
                .collect();
            let start = bytes.len().min(3);
            let plain = ends_of(&mut Batch::default(), &bytes, start);
            let mut short = Batch { ends: vec![1, 2], ..Batch::default() };
            assert_eq!(ends_of(&mut short, &bytes, start), plain, "{length} bytes");
            assert!(plain.len() <= BATCH_RECORDS);
        }
    }
}
