//! Some keys of a batch, for filters that ask further about a part of it.

use crate::key::KeyHash;

/// The keys of a batch that are chosen from at a time.
pub(crate) const CHUNK: usize = 256;

/// Keys that were chosen from a batch of at most [`CHUNK`], and their places in it.
// Whatever is written is written anyway, and the next goes to the same place if it was not wanted: no branch, since it
// could not be predicted.
pub(crate) struct Chosen {
    hashes: [KeyHash; CHUNK],
    places: [u8; CHUNK],
    count: usize,
}

impl Chosen {
    /// No keys.
    pub(crate) fn none() -> Self {
        Chosen { hashes: [KeyHash::default(); CHUNK], places: [0; CHUNK], count: 0 }
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The keys.
    pub(crate) fn hashes(&self) -> &[KeyHash] {
        &self.hashes[..self.count]
    }

    /// Where in the batch each of them was.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.places[..self.count].iter().map(|place| usize::from(*place))
    }

    /// Takes those keys of a batch for which this is true.
    pub(crate) fn take(&mut self, hashes: &[KeyHash], wanted: impl Fn(usize) -> bool) {
        self.count = 0;
        for (at, hash) in hashes.iter().enumerate() {
            (self.hashes[self.count], self.places[self.count]) = (*hash, at as u8);
            self.count += usize::from(wanted(at));
        }
    }

    /// Keeps those for whose number this is true, and numbers them anew.
    pub(crate) fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        let mut count = 0;
        for at in 0..self.count {
            (self.hashes[count], self.places[count]) = (self.hashes[at], self.places[at]);
            count += usize::from(wanted(at));
        }
        self.count = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_chosen_in_order_with_their_places() {
        let hashes: Vec<KeyHash> = (0..CHUNK as u64).map(|number| KeyHash { high: number, low: 7 }).collect();
        let mut chosen = Chosen::none();
        // Twice, so that what was there before would be noticed; all, none and some.
        for step in [1, CHUNK + 1, 3, 1] {
            chosen.take(&hashes, |at| (at + 1) % step == 0);
            let expected: Vec<usize> = (0..CHUNK).filter(|at| (at + 1) % step == 0).collect();
            assert_eq!(chosen.places().collect::<Vec<_>>(), expected);
            chosen.retain(|at| at % 2 == 1);
            let expected: Vec<usize> = expected.into_iter().skip(1).step_by(2).collect();
            assert_eq!((chosen.len(), chosen.places().collect::<Vec<_>>()), (expected.len(), expected.clone()));
            assert!(chosen.hashes().iter().map(|hash| hash.high as usize).eq(expected));
        }
    }
}
