//! The hottest keys, one by one.
//!
//! A key has one place in the table, found by bits that the sample does not use. One arrival in 128, by a lot that
//! knows nothing of the sample either, is a vote for its key: it adds to the key that has the place, or takes away from it, and a key
//! without votes gives way (the majority vote of Boyer and Moore, by places; Misra and Gries, 1982, is the same with more
//! keys in one place). A key with more than half of the votes of its place is in it before long and stays.
//!
//! An arrival of a hot key is counted only if the one before it was drawn by a second lot, which waits for it. All other arrivals
//! cost a look at one bit of a small table.

use super::Seen;
use super::ids::Ids;

/// Votes beyond this are not counted, so that a key which was hot once gives way to one that is.
pub(super) const MOST_VOTES: u8 = 64;
/// What a place takes, and what it took as there are so many of them.
const PLACE_BYTES: u64 = 8 + 24;
const ONCE_PLACE_BYTES: u64 = PLACE_BYTES + 8;
/// More keys than this are not hot.
const MOST_PLACES: u64 = 1024;

/// Words of the bits that tell who may be awaited: a power of two, and no fewer bits than places, so that of all keys that share
/// a bit no more than one is in the table.
const WORDS: usize = 64;

/// The table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hot {
    /// The key of each place; 0 if it has none.
    pub(super) ids: Vec<u64>,
    pub(super) places: Vec<Place>,
    awaited: Awaited,
    /// How far the bits that say a key's place lie from the last.
    shift: u32,
}

/// Which keys may be awaited: none that is, is left out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Awaited {
    bits: Box<[u64; WORDS]>,
    shift: u32,
}

impl Awaited {
    pub(super) fn new(ids: Ids) -> Self {
        Awaited { bits: Box::new([0; WORDS]), shift: ids.shift() }
    }

    /// The last bit is set if a key may be awaited; the others mean nothing.
    #[inline(always)]
    pub(super) fn look(&self, id: u64) -> u64 {
        let part = id >> self.shift;
        self.bits[part as usize / 64 % WORDS] >> (part % 64)
    }

    #[inline(always)]
    pub(super) fn may_have(&self, id: u64) -> bool {
        self.look(id) & 1 != 0
    }

    pub(super) fn set(&mut self, id: u64, is_awaited: bool) {
        let part = id >> self.shift;
        let (word, bit) = (part as usize / 64 % WORDS, part % 64);
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(is_awaited) << bit;
    }
}

/// What is known of a key in the table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Place {
    /// Its last arrival, if the next one is awaited.
    pub(super) seen: Seen,
    pub(super) votes: u8,
    /// Whether its next arrival is to be counted.
    pub(super) is_awaited: bool,
}

impl Hot {
    /// A table of no more than so many bytes.
    pub(super) fn new(bytes: u64, ids: Ids) -> Self {
        let places = 1usize << (bytes / ONCE_PLACE_BYTES).clamp(1, MOST_PLACES).ilog2();
        Hot {
            ids: vec![0; places],
            places: vec![Place::default(); places],
            awaited: Awaited::new(ids),
            shift: ids.shift(),
        }
    }

    /// What it takes, with ids as they are made now. Audits that were begun earlier have as much room for tallies as they had.
    pub(super) fn bytes(&self, ids: Ids) -> u64 {
        let places = self.ids.len() as u64;
        match ids {
            Ids::Low => places * PLACE_BYTES + 8 * WORDS as u64,
            Ids::Both => places * ONCE_PLACE_BYTES,
        }
    }

    #[inline(always)]
    fn place(&self, id: u64) -> usize {
        (id >> self.shift) as usize & (self.ids.len() - 1)
    }

    #[inline]
    pub(super) fn has(&self, id: u64) -> bool {
        self.ids[self.place(id)] == id
    }

    pub(super) fn awaited(&self) -> &Awaited {
        &self.awaited
    }

    /// When a key that is awaited was last seen. It is awaited no longer.
    #[inline]
    pub(super) fn take(&mut self, id: u64) -> Option<Seen> {
        if !self.awaited.may_have(id) || !self.has(id) {
            return None;
        }
        let at = self.place(id);
        let place = &mut self.places[at];
        let seen = place.is_awaited.then_some(place.seen);
        place.is_awaited = false;
        self.awaited.set(id, false);
        seen
    }

    /// Waits for the next arrival of a key, if it is here.
    pub(super) fn wait(&mut self, id: u64, seen: Seen) {
        let at = self.place(id);
        if self.ids[at] == id {
            (self.places[at].is_awaited, self.places[at].seen) = (true, seen);
            self.awaited.set(id, true);
        }
    }

    /// Counts a vote. A key that takes the place of another `may_enter`; whether it did.
    pub(super) fn vote(&mut self, id: u64, may_enter: bool) -> bool {
        let at = self.place(id);
        let place = &mut self.places[at];
        if self.ids[at] == id {
            place.votes = (place.votes + 1).min(MOST_VOTES);
        } else if place.votes > 0 {
            place.votes -= 1;
        } else if may_enter {
            if place.is_awaited {
                self.awaited.set(self.ids[at], false);
            }
            (self.ids[at], place.is_awaited, place.votes) = (id, false, 1);
            return true;
        }
        false
    }

    /// Puts a key into a place, as it was saved; false if that is not its own.
    pub(super) fn restore(&mut self, at: usize, id: u64, place: Place) -> bool {
        if place.is_awaited {
            self.awaited.set(id, true);
        }
        (self.ids[at], self.places[at]) = (id, place);
        id == 0 || self.place(id) == at
    }

    /// Begins anew.
    pub(super) fn forget(&mut self) {
        self.ids.fill(0);
        self.places.fill(Place::default());
        self.awaited.bits.fill(0);
    }
}
