//! The blocked layout: every cache line is a small reservoir filter of its own.
//!
//! A key's bits lie in one line, in different words, and so do the bits that are cleared for it: one memory
//! access where the paper's layout has two for every array. Arrays are not kept apart within a line, so a
//! bit to clear is chosen among those that are not the key's own; otherwise an insertion could clear what it
//! sets and the share of set bits would creep up.

use super::parameters::{Bias, Floor, Insert};
use everbloom::{KeyHash, Verdict};
use everbloom_cells::buffer::Line;
use everbloom_cells::key::finalise;
use everbloom_cells::simd::{Plain, SimdOps};
use std::hint::select_unpredictable;

const WORDS: usize = 8;

/// What every arrival needs to know.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) num_filters: u32,
    pub(super) filter_bits: u64,
    pub(super) insert_floor: f64,
    pub(super) floor: Floor,
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
fn missing(ops: impl SimdOps, line: &Line, own: &[u64; WORDS], num_filters: u32) -> u32 {
    if num_filters <= WORDS as u32 {
        // There is no more than one in a word.
        return ops.missing_bits(&line.0, own).count_ones();
    }
    line.0.iter().zip(own).map(|(word, own)| (own & !word).count_ones()).sum()
}

/// Whether all of the key's bits are set.
#[inline(always)]
pub(super) fn contains(line: &Line, hash: KeyHash, num_filters: u32) -> bool {
    missing(Plain, line, &own_bits(hash, num_filters), num_filters) == 0
}

/// An arrival at its line: its hash, its random draw and its number.
#[inline(always)]
pub(super) fn observe(
    ops: impl SimdOps,
    rule: &Rule,
    line: &mut Line,
    (hash, draw, arrival): (KeyHash, u64, u64),
) -> Verdict {
    let own = own_bits(hash, rule.num_filters);
    let missing = missing(ops, line, &own, rule.num_filters);
    let unit = (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
    let sampled = rule.bias.insert_prob(rule.filter_bits, arrival);
    let insert = rule.floor.insert(unit, sampled, rule.insert_floor);
    if insert == Insert::Sampled {
        // Random bits as a key's are: in different words, anywhere in them.
        let clear = own_bits(KeyHash { high: draw, low: finalise(draw) }, rule.num_filters);
        line.0 = std::array::from_fn(|word| line.0[word] & !clear[word] | own[word]);
    } else {
        // No branch on whether anything is missing: it would be mispredicted half the time.
        let count = select_unpredictable(insert == Insert::IfDistinct, missing, 0);
        let due = select_unpredictable(count > 0, u64::MAX, 0);
        exchange(ops, line, &own.map(|own| own & due), (finalise(draw) >> 55, count));
    }
    Verdict::from_seen(missing == 0)
}

/// Sets the key's own bits, and clears `count` others that are set, from `place` on, cyclically: a start drawn
/// at random makes them random ones.
#[inline(always)]
fn exchange(ops: impl SimdOps, line: &mut Line, own: &[u64; WORDS], (place, count): (u64, u32)) {
    let (start, turn) = ((place / 64) as usize, (place % 64) as u32);
    let chosen = |line: &Line, at: usize, count: u32| {
        ops.lowest_set((line.0[at] & !own[at]).rotate_right(turn), count).rotate_left(turn)
    };
    let first = chosen(line, start, count);
    // One write for all: a word written by itself would hold up the reading of the whole line.
    line.0 = std::array::from_fn(|word| line.0[word] & !(if word == start { first } else { 0 }) | own[word]);
    let mut left = count - first.count_ones();
    // One word has them all, nearly always.
    for step in 1..WORDS {
        if left == 0 {
            return;
        }
        let at = (start + step) % WORDS;
        let unset = chosen(line, at, left);
        line.0[at] &= !unset;
        left -= unset.count_ones();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::{Hashing, Key};
    use everbloom_cells::key::Generator;

    #[test]
    fn forced_insertions_keep_the_number_of_set_bits() {
        let rule = Rule {
            num_filters: 7,
            filter_bits: 73,
            insert_floor: 0.0,
            floor: Floor::Algorithm,
            bias: Bias::Constant { insert_prob: 0.1 },
        };
        let mut generator = Generator::seeded(5);
        let mut line = Line([0xaaaa_5555_f0f0_0f0f; 8]);
        let ones = |line: &Line| line.0.iter().map(|word| word.count_ones()).sum::<u32>();
        let before = ones(&line);
        for key in 0..5_000u64 {
            // Draws above the constant probability, so that none is a reservoir insertion.
            let draw = generator.bits() | 1 << 63;
            let hash = key.hash_with(&Hashing::default());
            let seen = contains(&line, hash, 7);
            assert_eq!(observe(Plain, &rule, &mut line, (hash, draw, 1 << 40)), Verdict::from_seen(seen));
            assert!(contains(&line, hash, 7));
            assert_eq!(ones(&line), before);
        }
    }
}
