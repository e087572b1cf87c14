//! The blocked layout: every cache line is a small reservoir filter of its own.
//!
//! A key's bits lie in one line, in different words, and so do the bits that are cleared for it: one memory
//! access where the paper's layout has two for every array. Arrays are not kept apart within a line, so a
//! bit to clear is chosen among those that are not the key's own; otherwise an insertion could clear what it
//! sets and the share of set bits would creep up.

use super::Bias;
use crate::cells::buffer::Line;
use crate::hash::{KeyHash, finalise};
use crate::traits::Verdict;

const WORDS: usize = 8;

/// What every arrival needs to know.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) num_filters: u32,
    pub(super) filter_bits: u64,
    pub(super) insert_floor: f64,
    pub(super) bias: Bias,
}

/// The key's bits in each word of its line: eight at a time, six hash bits for each, in words that follow
/// each other from one that the key chooses.
#[inline(always)]
fn own_bits(hash: KeyHash, num_filters: u32) -> [u64; WORDS] {
    // The high half chose the line, so the low half begins; its top bits are not needed for places.
    let first = (hash.low >> 61) as u32;
    let mut own = [0; WORDS];
    let (mut places, mut left) = (hash.low, num_filters);
    loop {
        let bits: [u64; WORDS] = std::array::from_fn(|word| {
            let turn = (word as u32).wrapping_sub(first) % WORDS as u32;
            u64::from(turn < left) << (places >> (6 * word) & 63)
        });
        own = std::array::from_fn(|word| own[word] | bits[word]);
        if left <= WORDS as u32 {
            return own;
        }
        left -= WORDS as u32;
        places = finalise(places ^ hash.high);
    }
}

/// How many of these bits are not set.
#[inline(always)]
fn missing(line: &Line, own: &[u64; WORDS]) -> u32 {
    line.0.iter().zip(own).map(|(word, own)| (own & !word).count_ones()).sum()
}

/// Whether all of the key's bits are set.
#[inline(always)]
pub(super) fn contains(line: &Line, hash: KeyHash, num_filters: u32) -> bool {
    missing(line, &own_bits(hash, num_filters)) == 0
}

/// Arrival number `arrival` at its line.
#[inline(always)]
pub(super) fn observe(rule: &Rule, line: &mut Line, hash: KeyHash, draw: u64, arrival: u64) -> Verdict {
    let own = own_bits(hash, rule.num_filters);
    let missing = missing(line, &own);
    let unit = (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
    if unit <= rule.bias.insert_prob(rule.filter_bits, arrival) {
        // Random bits as a key's are: in different words, anywhere in them.
        let clear = own_bits(KeyHash { high: draw, low: finalise(draw) }, rule.num_filters);
        line.0 = std::array::from_fn(|word| line.0[word] & !clear[word] | own[word]);
    } else if missing > 0 && unit > rule.insert_floor {
        unset_run(line, &own, finalise(draw) >> 55, missing);
        line.0 = std::array::from_fn(|word| line.0[word] | own[word]);
    }
    Verdict::from_seen(missing == 0)
}

/// Clears `count` set bits from `place` on, cyclically, that are not the key's own; a start drawn at random
/// makes them random ones. One word has them all, nearly always.
#[inline(always)]
fn unset_run(line: &mut Line, own: &[u64; WORDS], place: u64, mut count: u32) {
    let (start, turn) = ((place / 64) as usize, (place % 64) as u32);
    for step in 0..WORDS {
        let at = (start + step) % WORDS;
        let candidates = (line.0[at] & !own[at]).rotate_right(turn);
        let mut left = candidates;
        for _ in 0..count {
            left &= left.wrapping_sub(1);
        }
        line.0[at] &= !(candidates & !left).rotate_left(turn);
        count -= (candidates & !left).count_ones();
        if count == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Hashing, Key};
    use crate::rng::Generator;

    #[test]
    fn forced_insertions_keep_the_number_of_set_bits() {
        let rule = Rule { num_filters: 7, filter_bits: 73, insert_floor: 0.0, bias: Bias::Constant };
        let mut generator = Generator::seeded(5);
        let mut line = Line([0xaaaa_5555_f0f0_0f0f; 8]);
        let ones = |line: &Line| line.0.iter().map(|word| word.count_ones()).sum::<u32>();
        let before = ones(&line);
        for key in 0..5_000u64 {
            // Draws above the constant probability, so that none is a reservoir insertion.
            let draw = generator.bits() | 1 << 63;
            let hash = key.hash_with(&Hashing::default());
            let seen = contains(&line, hash, 7);
            assert_eq!(observe(&rule, &mut line, hash, draw, 1 << 40), Verdict::from_seen(seen));
            assert!(contains(&line, hash, 7));
            assert_eq!(ones(&line), before);
        }
    }
}
