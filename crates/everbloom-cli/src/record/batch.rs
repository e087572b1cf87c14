//! Many records at once: where each ends, and what its key hashes to.

use super::layout::{Extract, Scratch};
use super::{Extractor, Fault, time};
use crate::input::Framing;
use everbloom::{Hashing, Importance, Importances, KeyHash};
use everbloom_cells::key::records;

/// The most records taken at once, so that a block of empty lines needs no more memory than any other.
pub(crate) const BATCH_RECORDS: usize = 32 << 10;

/// Some consecutive records of a block.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    start: usize,
    len: usize,
    /// Room for as many ends as there may be, of which `len` are in use.
    ends: Vec<usize>,
    hashes: Vec<KeyHash>,
    importances: Vec<Importance>,
    times: Vec<i64>,
    faults: Vec<(usize, Fault)>,
}

impl Batch {
    /// No records yet, and room for as many as there may be.
    pub(crate) fn with_room() -> Self {
        Batch { ends: vec![0; BATCH_RECORDS], hashes: Vec::with_capacity(BATCH_RECORDS), ..Batch::default() }
    }

    /// A key without its record, as [`Batch::first_key`] gave it.
    pub(crate) fn of_key((hash, importance, time): (KeyHash, Option<Importance>, Option<i64>)) -> Self {
        let (importances, times) = (importance.into_iter().collect(), time.into_iter().collect());
        Batch { len: 1, ends: vec![0], hashes: vec![hash], importances, times, ..Batch::default() }
    }

    /// The first key, with its importance and time if it has them.
    pub(crate) fn first_key(&self) -> Option<(KeyHash, Option<Importance>, Option<i64>)> {
        Some((*self.hashes.first()?, self.importances.first().copied(), self.times.first().copied()))
    }

    /// Takes the records of `bytes` from `start` on, as many as fit, and hashes their keys.
    /// The bytes are whole records, though the last may lack its delimiter.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        start: usize,
        framing: Framing,
        extractor: &Extractor,
        hashing: &Hashing,
    ) {
        self.ends.resize(BATCH_RECORDS, 0);
        self.start = start;
        self.len = framing.split(bytes, start, &mut self.ends);
        self.importances.clear();
        self.times.clear();
        self.faults.clear();
        if extractor.is_whole_line() {
            self.hashes.resize(self.len, KeyHash::default());
            records::hash(bytes, start, &self.ends[..self.len], framing.ending, hashing, &mut self.hashes);
        } else {
            self.hashes.clear();
            self.hash_keys(bytes, framing.ending, extractor, hashing);
        }
    }

    fn hash_keys(&mut self, bytes: &[u8], ending: u8, extractor: &Extractor, hashing: &Hashing) {
        let latest = if extractor.has_time() { time::latest_plausible() } else { i64::MAX };
        let mut scratch = Scratch::default();
        for index in 0..self.len {
            match extractor.extract(without_ending(self.record(bytes, index), ending), latest, &mut scratch) {
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

    /// Lets go of the records from `index` on.
    pub(crate) fn truncate(&mut self, index: usize) {
        let faults = self.faults.partition_point(|(at, _)| *at < index);
        let keys = index - faults;
        self.len = self.len.min(index);
        self.hashes.truncate(keys);
        self.importances.truncate(keys);
        self.times.truncate(keys);
        self.faults.truncate(faults);
    }

    /// The record that a key of [`Batch::hashes`] belongs to.
    pub(crate) fn record_of_key(&self, key: usize) -> usize {
        self.faults.iter().fold(key, |record, (fault, _)| if *fault <= record { record + 1 } else { record })
    }

    /// Where the first record starts.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Where each record ends.
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends[..self.len]
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the last record ends.
    pub(crate) fn end(&self) -> usize {
        self.ends().last().copied().unwrap_or(self.start)
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

#[inline]
fn without_ending(record: &[u8], ending: u8) -> &[u8] {
    match record {
        [rest @ .., last] if *last == ending => rest,
        _ => record,
    }
}
