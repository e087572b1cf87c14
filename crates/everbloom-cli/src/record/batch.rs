//! Many records at once: where each ends, and what its key hashes to.

use super::{Extractor, Fault};
use everbloom::{Hashing, Importance, Importances, KeyHash};
use memchr::memchr_iter;

/// The most records taken at once, so that a block of empty lines needs no more memory than any other.
pub(crate) const BATCH_RECORDS: usize = 16 << 10;

/// Some consecutive records of a block.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    start: usize,
    ends: Vec<usize>,
    hashes: Vec<KeyHash>,
    importances: Vec<Importance>,
    faults: Vec<(usize, Fault)>,
}

impl Batch {
    /// Takes the records of `bytes` from `start` on, as many as fit, and hashes their keys.
    /// The bytes are whole records, though the last may lack its delimiter.
    pub(crate) fn take(&mut self, bytes: &[u8], start: usize, delimiter: u8, extractor: &Extractor, hashing: &Hashing) {
        self.split(bytes, start, delimiter);
        self.hashes.clear();
        self.importances.clear();
        self.faults.clear();
        if extractor.is_whole_line() {
            self.hash_lines(bytes, delimiter, hashing);
        } else {
            self.hash_keys(bytes, delimiter, extractor, hashing);
        }
    }

    fn split(&mut self, bytes: &[u8], start: usize, delimiter: u8) {
        self.start = start;
        self.ends.clear();
        self.ends.extend(memchr_iter(delimiter, &bytes[start..]).take(BATCH_RECORDS).map(|at| start + at + 1));
        if self.ends.len() < BATCH_RECORDS && self.end() < bytes.len() {
            self.ends.push(bytes.len());
        }
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
        for index in 0..self.ends.len() {
            match extractor.extract(without_ending(self.record(bytes, index), delimiter)) {
                Ok((key, importance)) => {
                    self.hashes.push(hashing.hash(&key));
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

    /// The records without a key, by index.
    pub(crate) fn faults(&self) -> &[(usize, Fault)] {
        &self.faults
    }
}

#[inline]
fn without_ending(record: &[u8], delimiter: u8) -> &[u8] {
    match record {
        [rest @ .., last] if *last == delimiter => rest,
        _ => record,
    }
}
