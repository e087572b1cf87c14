//! The hottest keys, one by one.
//!
//! A key has one place in the table, found by bits that the sample does not use. One arrival in 32, by a lot that knows
//! nothing of the sample either, is a vote for its key: it adds to the key that has the place, or takes away from it, and a key
//! without votes gives way (the majority vote of Boyer and Moore, by places; Misra and Gries, 1982, is the same with more
//! keys in one place). A key with more than half of the votes of its place is in it before long and stays. The table is one
//! place wide so that an arrival of another key costs one load and one comparison.

use super::Seen;

/// Arrivals between two votes, on average.
pub(super) const BETWEEN_LOTS: u64 = 32;
/// Votes beyond this are not counted, so that a key which was hot once gives way to one that is.
const MOST_VOTES: u8 = 64;
/// What a place takes.
const PLACE_BYTES: u64 = 8 + 24;
/// More keys than this are not hot.
const MOST_PLACES: u64 = 1024;

/// The table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hot {
    /// The key of each place; 0 if it has none.
    pub(super) ids: Vec<u64>,
    pub(super) places: Vec<Place>,
    /// Arrivals before the next vote.
    pub(super) next_lot: u64,
}

/// What is known of a key in the table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Place {
    pub(super) seen: Seen,
    pub(super) votes: u8,
}

impl Hot {
    /// A table of no more than so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let places = 1usize << (bytes / PLACE_BYTES).clamp(1, MOST_PLACES).ilog2();
        Hot { ids: vec![0; places], places: vec![Place::default(); places], next_lot: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.ids.len() as u64 * PLACE_BYTES
    }

    /// The last bit is always set, and the first ones are the sample's.
    #[inline(always)]
    fn place(&self, id: u64) -> usize {
        (id >> 1) as usize & (self.ids.len() - 1)
    }

    #[inline(always)]
    pub(super) fn has(&self, id: u64) -> bool {
        self.ids[self.place(id)] == id
    }

    /// When a key was last seen, if it is here.
    pub(super) fn seen(&self, id: u64) -> Option<Seen> {
        self.has(id).then(|| self.places[self.place(id)].seen)
    }

    pub(super) fn renew(&mut self, id: u64, seen: Seen) {
        let place = self.place(id);
        self.places[place].seen = seen;
    }

    /// Counts a vote; the key enters if its place is free and `is_known`.
    pub(super) fn vote(&mut self, id: u64, seen: Seen, is_known: bool) {
        let at = self.place(id);
        let place = &mut self.places[at];
        if self.ids[at] == id {
            place.votes = (place.votes + 1).min(MOST_VOTES);
        } else if place.votes > 0 {
            place.votes -= 1;
        } else if is_known {
            self.ids[at] = id;
            *place = Place { seen, votes: 1 };
        }
    }

    /// Begins anew.
    pub(super) fn forget(&mut self) {
        self.ids.fill(0);
        self.places.fill(Place::default());
    }
}
