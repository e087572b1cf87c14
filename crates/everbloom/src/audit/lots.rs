//! Which arrivals are drawn, for two purposes: each with a probability of 1/32, whatever the others are.
//!
//! Of 64 arrivals, those are drawn whose bits are set in all of five random words. That is a draw for each arrival, and takes
//! one look at the next set bit for all that were not drawn.

use crate::key::finalise;

/// One arrival in so many is drawn.
pub(super) const ONE_IN: u64 = 1 << WORDS;
const WORDS: u64 = 5;

/// What an arrival was drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lot {
    /// It is a vote for its key.
    pub(super) is_vote: bool,
    /// The next arrival of its key is to be counted.
    pub(super) is_wait: bool,
}

/// The draws that lie ahead.
#[derive(Debug, Clone)]
pub(super) struct Lots {
    seed: u64,
    /// The number of the block of 64 arrivals.
    block: u64,
    votes: u64,
    waits: u64,
}

impl Lots {
    /// The draws after so many arrivals, of an audit with this seed.
    pub(super) fn after(arrivals: u64, seed: u64) -> Self {
        let mut lots = Lots { seed, block: (arrivals + 1) >> 6, votes: 0, waits: 0 };
        lots.draw();
        let ahead = u64::MAX << ((arrivals + 1) & 63);
        (lots.votes, lots.waits) = (lots.votes & ahead, lots.waits & ahead);
        lots.find();
        lots
    }

    /// The next arrival that is drawn, counted from one.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.block << 6 | u64::from((self.votes | self.waits).trailing_zeros())
    }

    /// What that one is drawn for; the next one is then another.
    pub(super) fn take(&mut self) -> Lot {
        let bit = 1 << (self.votes | self.waits).trailing_zeros();
        let lot = Lot { is_vote: self.votes & bit != 0, is_wait: self.waits & bit != 0 };
        (self.votes, self.waits) = (self.votes & !bit, self.waits & !bit);
        self.find();
        lot
    }

    /// Goes on to a block in which an arrival is drawn.
    fn find(&mut self) {
        while self.votes | self.waits == 0 {
            self.block += 1;
            self.draw();
        }
    }

    fn draw(&mut self) {
        let word = |number: u64| finalise(self.seed ^ (self.block * 16 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.votes = (0..WORDS).fold(u64::MAX, |bits, number| bits & word(number));
        self.waits = (8..8 + WORDS).fold(u64::MAX, |bits, number| bits & word(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_the_same_wherever_one_begins_and_as_frequent_as_said() {
        const ARRIVALS: u64 = 1 << 18;
        let mut lots = Lots::after(0, 9);
        let (mut votes, mut waits, mut both) = (0u64, 0u64, 0u64);
        while lots.next() <= ARRIVALS {
            let at = lots.next();
            let again = Lots::after(at - 1, 9).take();
            let lot = lots.take();
            assert_eq!(lot, again, "arrival {at}");
            assert!(lots.next() > at);
            votes += u64::from(lot.is_vote);
            waits += u64::from(lot.is_wait);
            both += u64::from(lot.is_vote && lot.is_wait);
        }
        // Four standard deviations of binomial numbers.
        let near = |count: u64, one_in: u64| {
            let (expected, p) = (ARRIVALS as f64 / one_in as f64, 1.0 / one_in as f64);
            assert!((count as f64 - expected).abs() < 4.0 * (expected * (1.0 - p)).sqrt(), "{count} of {expected}");
        };
        near(votes, ONE_IN);
        near(waits, ONE_IN);
        near(both, ONE_IN * ONE_IN);
    }
}
