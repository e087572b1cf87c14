//! A table that is still small: one run of lines, which doubles.

use super::load::uneven;
use super::{EMPTY, FARTHEST_SPILL, SLOTS, look, put, reserve};
use crate::key::scale;
use crate::promise::Result;
use crate::simd;

/// The hashes of a table that is still small, in lines of their own order; the last spills into the first.
#[derive(Debug, Clone, Default)]
pub(super) struct First {
    pub(super) words: Vec<u64>,
    pub(super) len: u64,
}

impl First {
    pub(super) fn limit(&self) -> u64 {
        self.words.len() as u64 * 11 / 16
    }

    pub(super) fn is_full(&self) -> bool {
        self.len >= self.limit()
    }

    /// Whether one empty slot is left, at which a search for what is not there ends.
    pub(super) fn is_crammed(&self) -> bool {
        self.len + 1 >= self.words.len() as u64
    }

    /// The lines from a hash's own on, once round.
    fn places(&self, bits: u64) -> impl Iterator<Item = usize> + use<> {
        let lines = self.words.len() as u64 / SLOTS;
        let home = scale(bits, lines);
        (home..lines).chain(0..home).map(|line| (line * SLOTS) as usize)
    }

    pub(super) fn contains(&self, bits: u64) -> bool {
        for place in self.places(bits) {
            let (found, has_room) = look(&self.words[place..place + SLOTS as usize], bits);
            if found || has_room {
                return found;
            }
        }
        false
    }

    /// Puts a hash where there is room, which there is; false if it is there.
    pub(super) fn insert(&mut self, bits: u64) -> bool {
        for place in self.places(bits) {
            let (lines, _) = self.words[place..].as_chunks_mut();
            if let Some(is_new) = put(simd::Plain, &mut lines[0], bits) {
                self.len += u64::from(is_new);
                return is_new;
            }
        }
        false
    }

    /// The same for one of some ascending hashes; an error if it spills as no hash does.
    pub(super) fn load(&mut self, bits: u64) -> Result<()> {
        for place in self.places(bits).take(FARTHEST_SPILL as usize / 4) {
            let (lines, _) = self.words[place..].as_chunks_mut();
            if let Some(is_new) = put(simd::Plain, &mut lines[0], bits) {
                self.len += u64::from(is_new);
                return Ok(());
            }
        }
        Err(uneven())
    }

    pub(super) fn double(&mut self) -> Result<()> {
        let count = (self.words.len() * 2).max(SLOTS as usize);
        let mut doubled = First::default();
        reserve(&mut doubled.words, count)?;
        doubled.words.resize(count, EMPTY);
        self.words.iter().filter(|bits| **bits != EMPTY).for_each(|bits| {
            doubled.insert(*bits);
        });
        *self = doubled;
        Ok(())
    }
}
