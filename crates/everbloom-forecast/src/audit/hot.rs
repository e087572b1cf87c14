//! The hottest keys, one by one.
//!
//! A key has one place in the table, found by bits that the sample does not use. One arrival in 128, by a lot that
//! knows nothing of the sample either, is a vote for its key: it adds to the key that has the place, or takes away from it, and a key
//! without votes gives way (the majority vote of Boyer and Moore, by places; Misra and Gries, 1982, is the same with more
//! keys in one place). A key with more than half of the votes of its place is in it before long and stays.
//!
//! An arrival of a hot key is counted only if the one before it was drawn by a second lot, which waits for it. All other arrivals
//! cost one load and one comparison with the key that is waited for, which is hardly ever the right one.

use super::Seen;
use everbloom::KeyHash;

/// Votes beyond this are not counted, so that a key which was hot once gives way to one that is.
pub(super) const MOST_VOTES: u8 = 64;
/// What a place takes.
const PLACE_BYTES: u64 = 2 * 8 + 24;
/// More keys than this are not hot.
const MOST_PLACES: u64 = 1024;

/// The table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hot {
    /// The key of each place; 0 if it has none.
    pub(super) ids: Vec<u64>,
    /// The key of each place whose next arrival is to be counted, 0 elsewhere.
    pub(super) awaited: Vec<u64>,
    pub(super) places: Vec<Place>,
}

/// What is known of a key in the table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Place {
    /// Its last arrival, if the next one is awaited.
    pub(super) seen: Seen,
    pub(super) votes: u8,
}

impl Hot {
    /// A table of no more than so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let places = 1usize << (bytes / PLACE_BYTES).clamp(1, MOST_PLACES).ilog2();
        Hot { ids: vec![0; places], awaited: vec![0; places], places: vec![Place::default(); places] }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.ids.len() as u64 * PLACE_BYTES
    }

    /// The last bit is always set, and the first ones are the sample's.
    #[inline(always)]
    fn place(&self, id: u64) -> usize {
        (id >> 1) as usize & (self.ids.len() - 1)
    }

    pub(super) fn has(&self, id: u64) -> bool {
        self.ids[self.place(id)] == id
    }

    /// The first of these keys with an id that is no more than a limit, or awaited; how many there are if none is.
    #[inline(always)]
    pub(super) fn first(&self, hashes: &[KeyHash], limit: u64, id_of: impl Fn(KeyHash) -> u64) -> usize {
        let awaited = &self.awaited[..];
        let mask = awaited.len() - 1;
        let is_wanted = |hash: &KeyHash| {
            let id = id_of(*hash);
            id <= limit || awaited[(id >> 1) as usize & mask] == id
        };
        // Four in a turn, so that less goes to the loop itself.
        let (fours, rest) = hashes.as_chunks::<4>();
        for (index, four) in fours.iter().enumerate() {
            if let Some(within) = four.iter().position(is_wanted) {
                return 4 * index + within;
            }
        }
        4 * fours.len() + rest.iter().position(is_wanted).unwrap_or(rest.len())
    }

    /// When a key that is awaited was last seen. It is awaited no longer.
    pub(super) fn take(&mut self, id: u64) -> Option<Seen> {
        let at = self.place(id);
        (self.awaited[at] == id).then(|| {
            self.awaited[at] = 0;
            self.places[at].seen
        })
    }

    /// Waits for the next arrival of a key, if it is here.
    pub(super) fn wait(&mut self, id: u64, seen: Seen) {
        let at = self.place(id);
        if self.ids[at] == id {
            self.awaited[at] = id;
            self.places[at].seen = seen;
        }
    }

    /// Counts a vote. A key that takes the place of another `may_enter`; whether it did.
    pub(super) fn vote(&mut self, id: u64, may_enter: bool) -> bool {
        let at = self.place(id);
        let votes = &mut self.places[at].votes;
        if self.ids[at] == id {
            *votes = (*votes + 1).min(MOST_VOTES);
        } else if *votes > 0 {
            *votes -= 1;
        } else if may_enter {
            (self.ids[at], self.awaited[at], *votes) = (id, 0, 1);
            return true;
        }
        false
    }

    /// Begins anew.
    pub(super) fn forget(&mut self) {
        self.ids.fill(0);
        self.awaited.fill(0);
        self.places.fill(Place::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_matters_is_found_wherever_it_is() {
        let mut hot = Hot::new(4096);
        let awaited = 77 << 32 | 5;
        assert!(hot.vote(awaited, true));
        hot.wait(awaited, Seen::default());
        let (id_of, limit) = (|hash: KeyHash| hash.high, 1000);
        for length in 0..14 {
            // One that shares its place with the awaited one does not matter.
            let mut hashes = vec![KeyHash { high: 78 << 32 | 5, low: 0 }; length];
            assert_eq!(hot.first(&hashes, limit, id_of), length);
            for at in (0..length).rev() {
                hashes[at].high = if at % 2 == 0 { awaited } else { limit };
                assert_eq!(hot.first(&hashes, limit, id_of), at, "of {length}");
            }
        }
    }
}
