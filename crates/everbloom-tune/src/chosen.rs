//! Some keys of a batch, for filters that ask further about a part of it.

use everbloom::KeyHash;

/// The keys of a batch that are chosen from at a time.
pub(crate) const CHUNK: usize = 256;

/// Keys that were chosen from a batch of at most [`CHUNK`], and their places in it.
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

    /// Takes all keys of a batch.
    pub(crate) fn take_all(&mut self, hashes: &[KeyHash]) {
        self.count = hashes.len();
        self.hashes[..hashes.len()].copy_from_slice(hashes);
        self.places = std::array::from_fn(|at| at as u8);
    }

    /// Takes those keys of a batch of which something wanted was told; `told` is as long as `hashes`.
    pub(crate) fn take<T: Copy>(&mut self, hashes: &[KeyHash], told: &[T], wanted: impl Fn(T) -> bool) {
        // Members are often asked for together. Whether all are wanted is known far sooner than which.
        if told.iter().fold(true, |all, told| all & wanted(*told)) {
            return self.take_all(hashes);
        }
        // Each is written, and the next goes to the same place if it was not wanted: no branch, since it could not be predicted. A
        // count of its own stays in a register, and is below the size of a batch whenever something is written.
        let mut count = 0;
        for ((at, hash), told) in hashes.iter().enumerate().zip(told) {
            (self.hashes[count % CHUNK], self.places[count % CHUNK]) = (*hash, at as u8);
            count += usize::from(wanted(*told));
        }
        self.count = count;
    }

    /// Keeps those of which something wanted was told, and numbers them anew; what was told of them comes to the front, in
    /// their order. `told` is at least as long as they are many.
    pub(crate) fn retain<T: Copy>(&mut self, told: &mut [T], wanted: impl Fn(T) -> bool) {
        // Which first, in bytes: the rest is moved only if it stays, and few keys do.
        let (mut kept, mut count) = ([0u8; CHUNK], 0);
        for (at, told) in told[..self.count].iter().enumerate() {
            kept[count % CHUNK] = at as u8;
            count += usize::from(wanted(*told));
        }
        for (to, at) in kept.iter().take(count).enumerate() {
            let at = usize::from(*at);
            (self.hashes[to], self.places[to], told[to]) = (self.hashes[at], self.places[at], told[at]);
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
            let told: Vec<usize> = (0..CHUNK).collect();
            chosen.take(&hashes, &told, |at| (at + 1) % step == 0);
            let expected: Vec<usize> = (0..CHUNK).filter(|at| (at + 1) % step == 0).collect();
            assert_eq!(chosen.places().collect::<Vec<_>>(), expected);
            let mut told: Vec<usize> = (0..chosen.len()).collect();
            chosen.retain(&mut told, |at| at % 2 == 1);
            assert!(told[..chosen.len()].iter().copied().eq((1..).step_by(2).take(chosen.len())));
            let expected: Vec<usize> = expected.into_iter().skip(1).step_by(2).collect();
            assert_eq!((chosen.len(), chosen.places().collect::<Vec<_>>()), (expected.len(), expected.clone()));
            assert!(chosen.hashes().iter().map(|hash| hash.high as usize).eq(expected));
        }
    }
}
