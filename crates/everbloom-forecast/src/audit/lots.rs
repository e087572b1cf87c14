//! Which arrivals are drawn, for two purposes: of each block of arrivals one for each, by a lot that knows nothing of the stream.

use everbloom_cells::key::finalise;

/// Arrivals of a block; and of audits that were begun when it was another.
pub(super) const ONE_IN: u64 = 128;
pub(super) const ONCE_ONE_IN: u64 = 32;

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
pub(super) struct SamplingSchedule {
    pub(super) one_in: u64,
    seed: u64,
    vote: u64,
    wait: u64,
}

impl SamplingSchedule {
    /// The draws after so many arrivals, one in so many, of an audit with this seed.
    pub(super) fn after(arrivals: u64, one_in: u64, seed: u64) -> Self {
        let first = |seed| {
            let here = drawn(arrivals / one_in, one_in, seed);
            if here > arrivals { here } else { drawn(arrivals / one_in + 1, one_in, seed) }
        };
        SamplingSchedule { one_in, seed, vote: first(seed), wait: first(!seed) }
    }

    /// The next arrival that is drawn, counted from one.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.vote.min(self.wait)
    }

    /// What that one is drawn for; the next one is then another.
    pub(super) fn take(&mut self) -> Lot {
        let (at, next) = (self.next(), (self.next() >> self.one_in.trailing_zeros()) + 1);
        let lot = Lot { is_vote: self.vote == at, is_wait: self.wait == at };
        if lot.is_vote {
            self.vote = drawn(next, self.one_in, self.seed);
        }
        if lot.is_wait {
            self.wait = drawn(next, self.one_in, !self.seed);
        }
        lot
    }
}

/// The arrival that is drawn of a block, whose length is a power of two, so that nothing need be divided.
fn drawn(block: u64, one_in: u64, seed: u64) -> u64 {
    debug_assert!(one_in.is_power_of_two());
    block * one_in + (finalise(seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & (one_in - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_block_one_is_drawn_for_each_purpose_wherever_one_begins() {
        const BLOCKS: u64 = 1 << 13;
        let (mut votes, mut waits, mut places) = (0, 0, [0u64; ONE_IN as usize]);
        let mut lots = SamplingSchedule::after(ONE_IN - 1, ONE_IN, 9);
        while lots.next() < (BLOCKS + 1) * ONE_IN {
            let at = lots.next();
            let again = SamplingSchedule::after(at - 1, ONE_IN, 9).take();
            let lot = lots.take();
            assert_eq!(lot, again, "arrival {at}");
            assert!(lots.next() > at);
            votes += u64::from(lot.is_vote);
            waits += u64::from(lot.is_wait);
            places[(at % ONE_IN) as usize] += u64::from(lot.is_vote) + u64::from(lot.is_wait);
        }
        assert_eq!((votes, waits), (BLOCKS, BLOCKS));
        // Each place as often as any other: five standard deviations of binomial numbers.
        let expected = (2 * BLOCKS) as f64 / ONE_IN as f64;
        assert!(places.iter().all(|count| (*count as f64 - expected).abs() < 5.0 * expected.sqrt()), "{places:?}");
    }
}
