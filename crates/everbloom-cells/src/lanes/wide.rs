//! Words that keep longer prints as long as they hold fewer keys than lanes.
//!
//! ```text
//! 5 × 9 bits      bit 44           36   34 33                                   0
//!                     ┌──────────────┬────┬─────────────────────────────────────┐
//! no key              │                          zero                           │
//! 1 key               │      0       │ 0  │                a, 34 bits           │
//! 2 keys              │      0       │ 1  │     b, 17 bits   │     a, 17 bits   │
//! 3 keys              │      0       │ 2  │ - │ c, 11 bits │ b, 11  │ a, 11     │
//!                     ├──────────────┼────┴───────┬──────────┬─────────┬────────┤
//! 4 keys              │    marker    │    d, 9    │   c, 9   │  b, 9   │  a, 9  │
//! 5 keys              │     e, 9     │    d, 9    │   c, 9   │  b, 9   │  a, 9  │
//!                     └──────────────┴────────────┴──────────┴─────────┴────────┘
//! ```
//!
//! A zero in the top lane says that the word is wide, and the bits below it how many keys it has, less one. The marker is
//! the largest value of a lane, which is no fingerprint. It behaves like a last key that falls off when the next one comes,
//! so that the last two rows are one case, *full*, and today's operations on lanes do it.
//!
//! Prints are nested: shortening one gives the print that its key would have got at first, so nobody needs the key again.
//! With F = 2^w − 2 fingerprints, those that are s bits longer than a lane are F·2^s, all equally likely, from 1 on; d bits
//! are taken off by dividing by 2^d and rounding up. Two prints may become equal on the way: both stay, and the first is
//! found.
//!
//! Everything that depends on the number of keys is read from a table, not branched on: in a filter that grows, the next
//! word's number cannot be predicted.

use super::Shape;
use crate::{Error, Result};
use std::hint::select_unpredictable;
use std::sync::OnceLock;

/// The fewest and the most lanes of words that can be wide. With two lanes there would be no room for a longer print.
const FEWEST_LANES: u32 = 3;
const MOST_LANES: u32 = 7;

/// The longest print: longer ones would tell nothing more apart.
const LONGEST_PRINT: u32 = 48;

/// Prints that are moved when a word gets another key and is still not full, at most.
pub const MOST_MOVED: usize = MOST_LANES as usize - 2;

/// Room for one form more than there are, so that three bits are always a number of one.
const FORMS: usize = 8;

/// How a word with some number of keys is divided, and what it becomes when a key comes in at some rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(align(128))]
struct Form {
    /// The lowest and the highest bit of every print.
    low: u64,
    high: u64,
    /// What makes the division that shortens prints round up.
    round: u64,
    /// Where each shortened print goes, side by side.
    kept: [u64; MOST_MOVED],
    /// What lies before the new print.
    before: u64,
    /// What tells the number of keys, with the new one.
    tag: u64,
    /// Bits of a print, and how many it lacks of the longest.
    bits: u8,
    cut: u8,
    /// Bits of a print with the new key, and how many it lacks then.
    next_bits: u8,
    next_cut: u8,
    /// Bits that a print loses.
    lost: u8,
    /// Where the new print goes.
    to: u8,
}

/// The forms of a word by the number of its keys, for arrivals of one rank. The last one is of full words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forms([Form; FORMS]);

/// How wide words are divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wide {
    shape: Shape,
    /// Below it lie the prints of a wide word, from it on the number of keys less one.
    count_shift: u32,
    /// How many longest prints there are.
    prints: u64,
    /// By rank.
    forms: [Forms; MOST_LANES as usize],
}

/// Each is made when it is first needed, and stays: a filter of a thousand shards needs it once.
static ALL: [OnceLock<Box<Wide>>; (MOST_LANES as usize + 1) * 32] = [const { OnceLock::new() }; _];

impl Wide {
    /// Whether words of this shape can be wide.
    pub fn suits(shape: Shape) -> bool {
        let (lanes, lane_bits) = (shape.lanes(), shape.lane_bits());
        (FEWEST_LANES..=MOST_LANES).contains(&lanes) && lane_bits >= count_bits(lanes).max(2)
    }

    /// The wide words of this shape.
    pub fn of(shape: Shape) -> Result<&'static Wide> {
        if !Self::suits(shape) {
            let needed = format!("from {FEWEST_LANES} to {MOST_LANES}, of 3 bits or more, with words=wide");
            return Err(Error::parameter(
                "lanes",
                shape.lanes(),
                needed,
                "leave words=wide out, or take 5 lanes of 9 bits",
            ));
        }
        let at = (shape.lanes() * 32 + shape.lane_bits() - 1) as usize;
        Ok(ALL[at].get_or_init(|| Box::new(Wide::new(shape))))
    }

    fn new(shape: Shape) -> Self {
        let (lanes, lane_bits) = (shape.lanes(), shape.lane_bits());
        let count_shift = shape.last() - count_bits(lanes);
        let longest = count_shift.min(LONGEST_PRINT);
        let prints = (shape.max_fingerprint() - 1) << (longest - lane_bits);
        let mut wide = Wide { shape, count_shift, prints, forms: Default::default() };
        for rank in 0..lanes {
            for keys in 0..lanes {
                wide.forms[rank as usize].0[keys as usize] = wide.form(keys, rank);
            }
        }
        wide
    }

    /// Bits of a print in a word with so many keys.
    fn print_bits(&self, keys: u32) -> u32 {
        match keys + 1 < self.shape.lanes() {
            true => (self.count_shift / keys.max(1)).min(LONGEST_PRINT),
            false => self.shape.lane_bits(),
        }
    }

    fn form(&self, keys: u32, rank: u32) -> Form {
        let (lanes, longest) = (self.shape.lanes(), self.print_bits(1));
        let (bits, next_bits) = (self.print_bits(keys), self.print_bits(keys + 1));
        let is_full = keys + 1 == lanes;
        let (low, mut kept) = (ones(if is_full { lanes } else { keys }, bits), [0; MOST_MOVED]);
        if is_full {
            // They keep their bits and their places; the last falls off.
            kept[0] = self.shape.mask >> bits;
        } else {
            (0..keys).for_each(|key| kept[key as usize] = mask(next_bits) << (key * next_bits));
        }
        let tag = match lanes - keys {
            1 => 0,
            2 => self.shape.max_fingerprint() << self.shape.last(),
            _ => u64::from(keys) << self.count_shift,
        };
        let to = rank.min(keys) * next_bits;
        Form {
            low,
            high: low << (bits - 1),
            round: low.wrapping_mul(mask(bits - next_bits)),
            kept,
            before: mask(to),
            tag,
            bits: bits as u8,
            cut: (longest - bits) as u8,
            next_bits: next_bits as u8,
            next_cut: (longest - next_bits) as u8,
            lost: (bits - next_bits) as u8,
            to: to as u8,
        }
    }

    /// The longest print of a key less one, by 64 bits of its hash.
    #[inline(always)]
    pub fn print(&self, bits: u64) -> u64 {
        ((u128::from(bits) * u128::from(self.prints)) >> 64) as u64
    }

    /// The forms for arrivals of a rank.
    #[inline(always)]
    pub fn forms(&self, rank: u32) -> &Forms {
        &self.forms[rank as usize]
    }

    /// How many prints are moved at most, when a word gets another key and is still not full.
    #[inline]
    pub fn moved(&self) -> usize {
        self.shape.lanes() as usize - 2
    }

    /// Whether a word has as many keys as lanes, or one less.
    #[inline(always)]
    pub fn is_full(&self, word: u64) -> bool {
        word >> self.shape.last() != 0
    }

    /// Which form a word has.
    #[inline(always)]
    fn form_of(&self, word: u64) -> usize {
        let (keys, full) = ((word >> self.count_shift) + u64::from(word != 0), u64::from(self.shape.lanes() - 1));
        select_unpredictable(keys < full, keys, full) as usize % FORMS
    }

    /// Whether a print is in a word.
    #[inline(always)]
    pub fn contains(&self, word: u64, print: u64) -> bool {
        let form = &self.forms[0].0[self.form_of(word)];
        form.found(word, form.own(print)) != 0
    }

    /// The word after an arrival, and whether it was there: one that was moves forward as far as `before` says, given all
    /// bits up to the end of its print, and the length of a print.
    ///
    /// `MOVED` is at least [`Wide::moved`]; fewer are faster.
    #[inline(always)]
    pub fn observe<const MOVED: usize>(
        &self,
        forms: &Forms,
        word: u64,
        print: u64,
        before: impl FnOnce(u64, u32) -> u64,
    ) -> (u64, bool) {
        forms.0[self.form_of(word)].observe::<MOVED>(word, print, before)
    }

    /// Observes a key, faster where nearly all words are full and much slower where it is one or the other.
    #[inline(always)]
    pub fn observe_full<const MOVED: usize>(
        &self,
        forms: &Forms,
        word: u64,
        print: u64,
        before: impl FnOnce(u64, u32) -> u64,
    ) -> (u64, bool) {
        if self.is_full(word) {
            return forms.0[(self.shape.lanes() - 1) as usize % FORMS].observe::<1>(word, print, before);
        }
        self.observe::<MOVED>(forms, word, print, before)
    }

    /// How many keys a word has.
    #[inline]
    pub fn keys(&self, word: u64) -> u32 {
        let is_whole = self.is_full(word) && word >> self.shape.last() != self.shape.max_fingerprint();
        self.form_of(word) as u32 + u32::from(is_whole)
    }

    /// How many prints there are that a word with so many keys could hold.
    #[inline]
    pub fn prints(&self, keys: u32) -> u64 {
        self.prints >> (self.print_bits(1) - self.print_bits(keys))
    }

    /// The rate of false positives of a word with so many keys, at most: some of its prints may have become equal.
    pub fn rate(&self, keys: u32) -> f64 {
        (f64::from(keys) / self.prints(keys) as f64).min(1.0)
    }

    /// How many different prints a word has.
    #[inline]
    pub fn different(&self, word: u64) -> u32 {
        let form = &self.forms[0].0[self.form_of(word)];
        let bits = u32::from(form.bits);
        let is_first = |key: &u32| {
            let print = word >> (key * bits) & mask(bits);
            form.found(word, print).trailing_zeros() == (key + 1) * bits - 1
        };
        (0..self.keys(word)).filter(is_first).count() as u32
    }

    /// Whether arrivals could have left this word.
    #[inline]
    pub fn is_possible(&self, word: u64) -> bool {
        let (keys, form) = (self.keys(word), &self.forms[0].0[self.form_of(word)]);
        let (bits, most) = (u32::from(form.bits), self.prints >> form.cut);
        let tag = match self.shape.lanes() - keys {
            0 => 0,
            1 => self.shape.max_fingerprint() << self.shape.last(),
            _ => u64::from(keys.saturating_sub(1)) << self.count_shift,
        };
        let held = mask(keys * bits);
        word & !held == tag && (0..keys).all(|key| (1..=most).contains(&(word >> (key * bits) & mask(bits))))
    }
}

impl Form {
    /// The print of a key in such a word.
    #[inline(always)]
    fn own(&self, print: u64) -> u64 {
        1 + (print >> (self.cut % 64))
    }

    /// The highest bit of the first print that is this one, and perhaps more behind it; 0 if there is none.
    #[inline(always)]
    fn found(&self, word: u64, own: u64) -> u64 {
        // A borrow can flag prints behind a right one wrongly, never the first.
        let differs = word ^ own.wrapping_mul(self.low);
        differs.wrapping_sub(self.low) & !differs & self.high
    }

    /// A hit keeps the form, a miss takes the next one. Both are worked out, since which it is cannot be predicted.
    #[inline(always)]
    fn observe<const MOVED: usize>(&self, word: u64, print: u64, before: impl FnOnce(u64, u32) -> u64) -> (u64, bool) {
        let own = self.own(print);
        let found = self.found(word, own);
        let upto = found ^ found.wrapping_sub(1);
        let before = before(upto, self.bits.into());
        let bits = self.bits % 64;
        let promoted = word & before | (word & !before) << bits & upto | word & !upto | own.wrapping_mul(before + 1);
        (select_unpredictable(found != 0, promoted, self.with::<MOVED>(word, print)), found != 0)
    }

    /// The word with one key more.
    #[inline(always)]
    fn with<const MOVED: usize>(&self, word: u64, print: u64) -> u64 {
        let lost = self.lost % 64;
        let mut rest = word.wrapping_add(self.round) >> lost;
        let mut prints = rest & self.kept[0];
        for kept in &self.kept[1..MOVED] {
            rest >>= lost;
            prints |= rest & kept;
        }
        let behind = (prints & !self.before) << (self.next_bits % 64);
        let own = (1 + (print >> (self.next_cut % 64))) << (self.to % 64);
        prints & self.before | behind | own | self.tag
    }
}

/// The lowest bit of each of so many fields.
fn ones(fields: u32, bits: u32) -> u64 {
    (0..fields).fold(0, |ones, field| ones | 1 << (field * bits))
}

/// The lowest bits; all 64 at most.
fn mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits) }
}

/// Bits that tell how many keys a wide word has: from one to two less than lanes.
fn count_bits(lanes: u32) -> u32 {
    u32::BITS - (lanes.saturating_sub(3)).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The obviously right twin: a vector of prints from 0 on, best first, all as long as their number allows.
    #[derive(Debug, Clone)]
    struct PlainWord {
        lanes: usize,
        lane_bits: u32,
        prints: Vec<u64>,
    }

    impl PlainWord {
        fn new(shape: Shape) -> Self {
            PlainWord { lanes: shape.lanes() as usize, lane_bits: shape.lane_bits(), prints: Vec::new() }
        }

        /// Bits below the top lane that tell the number of keys.
        fn count_bits(&self) -> u32 {
            [0, 0, 0, 0, 1, 2, 2, 3][self.lanes]
        }

        fn room(&self) -> u32 {
            (self.lanes as u32 - 1) * self.lane_bits - self.count_bits()
        }

        fn bits(&self, keys: usize) -> u32 {
            if keys + 1 >= self.lanes { self.lane_bits } else { (self.room() / keys.max(1) as u32).min(48) }
        }

        fn longest(&self) -> u32 {
            self.bits(1)
        }

        /// The print of a key where there are so many.
        fn print(&self, hash: u64, keys: usize) -> u64 {
            let prints = ((1u128 << self.lane_bits) - 2) << (self.longest() - self.lane_bits);
            ((u128::from(hash) * prints) >> 64) as u64 >> (self.longest() - self.bits(keys))
        }

        fn observe(&mut self, hash: u64, rank: usize, promoted: impl Fn(usize) -> usize) -> bool {
            let keys = self.prints.len();
            if let Some(at) = self.prints.iter().position(|print| *print == self.print(hash, keys)) {
                let print = self.prints.remove(at);
                self.prints.insert(promoted(at), print);
                return true;
            }
            let more = (keys + 1).min(self.lanes);
            let lost = self.bits(keys) - self.bits(more);
            if keys > 0 {
                self.prints.iter_mut().for_each(|print| *print >>= lost);
            }
            self.prints.insert(rank.min(keys).min(self.lanes - 1), self.print(hash, more));
            self.prints.truncate(self.lanes);
            false
        }

        fn packed(&self) -> u64 {
            let (keys, bits) = (self.prints.len(), self.bits(self.prints.len()));
            let prints = self.prints.iter().zip(0..).fold(0, |word, (print, lane)| word | (print + 1) << (lane * bits));
            let top = (self.lanes as u32 - 1) * self.lane_bits;
            match self.lanes - keys {
                0 => prints,
                1 => prints | ((1 << self.lane_bits) - 1) << top,
                _ => prints | (keys as u64).saturating_sub(1) << self.room(),
            }
        }
    }

    fn suited(lanes: u32, lane_bits: u32) -> Option<Shape> {
        Shape::new(lanes, lane_bits).ok().filter(|shape| Wide::suits(*shape))
    }

    fn shapes() -> Vec<Shape> {
        (1..=32).flat_map(|lanes| (1..=32).filter_map(move |lane_bits| suited(lanes, lane_bits))).collect()
    }

    /// What comes of one arrival, in every way to ask for it.
    fn observed(wide: &Wide, word: u64, hash: u64, rank: u32, hit: u8) -> (u64, bool) {
        let before = |upto: u64, bits: u32| [0, upto >> bits >> bits, upto >> bits][usize::from(hit)];
        let (forms, print) = (wide.forms(rank), wide.print(hash));
        let outcome = wide.observe::<MOST_MOVED>(forms, word, print, before);
        assert_eq!(outcome, wide.observe_full::<MOST_MOVED>(forms, word, print, before));
        if wide.moved() <= 3 {
            assert_eq!(outcome, wide.observe::<3>(forms, word, print, before));
        }
        assert_eq!(outcome.1, wide.contains(word, print));
        assert!(wide.contains(outcome.0, print), "what came is there");
        outcome
    }

    proptest! {
        #[test]
        fn wide_words_behave_like_vectors_of_prints(
            shape in prop::sample::select(shapes()),
            steps in prop::collection::vec((any::<u64>(), 0u32..7, 0u8..3, any::<bool>()), 1..60),
            spread in prop_oneof![Just(3u64), Just(12), Just(1000)],
        ) {
            let (wide, mut plain, mut word) = (Wide::of(shape).expect("suits"), PlainWord::new(shape), 0);
            for (bits, rank, hit, near) in steps {
                // Some keys differ in their last bits only, so that prints become equal when they are shortened.
                let hash = crate::key::finalise(bits % spread) ^ if near { (bits % 7) << 28 } else { 0 };
                let rank = rank.min(shape.lanes() - 1);
                let (after, seen) = observed(wide, word, hash, rank, hit);
                let promoted = |at: usize| [0, at.saturating_sub(1), at][usize::from(hit)];
                prop_assert_eq!(seen, plain.observe(hash, rank as usize, promoted));
                prop_assert_eq!(after, plain.packed(), "{:?}", plain);
                prop_assert_eq!(wide.keys(after) as usize, plain.prints.len());
                prop_assert!(wide.is_possible(after));
                let different: std::collections::BTreeSet<u64> = plain.prints.iter().copied().collect();
                prop_assert_eq!(wide.different(after) as usize, different.len());
                word = after;
            }
        }
    }

    #[test]
    fn a_possible_word_stays_one_and_no_other_can_come() {
        // Every word of small shapes: none that is possible becomes one that is not, whatever comes.
        for shape in [suited(3, 3), suited(4, 2), suited(5, 2)].map(|shape| shape.expect("suits")) {
            let wide = Wide::of(shape).expect("suits");
            let possible: Vec<u64> = (0..1 << shape.word_bits()).filter(|word| wide.is_possible(*word)).collect();
            assert!(possible.len() > 20 && possible.len() < (1 << shape.word_bits()) * 9 / 10, "{}", possible.len());
            for word in possible {
                for print in 0..wide.prints {
                    let hash = (u128::from(print) << 64).div_ceil(u128::from(wide.prints)) as u64;
                    assert_eq!(wide.print(hash), print);
                    for rank in 0..shape.lanes() {
                        let (after, seen) = observed(wide, word, hash, rank, (print % 3) as u8);
                        let more = if seen { 0 } else { 1 };
                        assert!(wide.is_possible(after), "{word:b} became {after:b}");
                        assert_eq!(wide.keys(after), (wide.keys(word) + more).min(shape.lanes()));
                    }
                }
            }
        }
    }

    #[test]
    fn impossible_words_are_noticed() {
        let wide = Wide::of(suited(5, 9).expect("suits")).expect("suits");
        let (marker, two) = (511 << 36, 1u64 << 34);
        for good in [0, 1, (130_560 << 17), two | 130_560 << 17 | 1, marker | 1 << 27 | 1 << 18 | 1 << 9 | 510] {
            assert!(wide.is_possible(good), "{good:b}");
        }
        let too_large = [
            (130_560 << 17) + 1,
            two | 130_561 << 17 | 1,
            2u64 << 34 | 2_041,
            marker | 1 << 27 | 1 << 18 | 1 << 9 | 511,
        ];
        let missing = [two, two | 1, 2u64 << 34 | 1, marker | 1, 1 << 36, 510 << 36 | 1 << 27 | 1 << 18 | 1 << 9];
        for bad in too_large.into_iter().chain(missing).chain([3 << 34, 3 << 34 | 1 << 22 | 1 << 11 | 1, 1 << 45]) {
            assert!(!wide.is_possible(bad), "{bad:b}");
        }
    }

    #[test]
    fn prints_are_as_long_as_there_is_room() {
        let lengths = |lanes, lane_bits| -> Vec<u32> {
            let wide = Wide::of(suited(lanes, lane_bits).expect("suits")).expect("suits");
            (1..=lanes).map(|keys| wide.print_bits(keys)).collect()
        };
        assert_eq!(lengths(5, 9), [34, 17, 11, 9, 9]);
        assert_eq!(lengths(3, 5), [10, 5, 5]);
        assert_eq!(lengths(4, 12), [35, 17, 12, 12]);
        assert_eq!(lengths(4, 16), [47, 23, 16, 16]);
        assert_eq!(lengths(7, 9), [48, 25, 17, 12, 10, 9, 9]);
        let wide = Wide::of(suited(5, 9).expect("suits")).expect("suits");
        let rates: Vec<f64> =
            [1.0 / (130_560u64 << 17) as f64, 2.0 / 130_560.0, 3.0 / 2_040.0, 4.0 / 510.0, 5.0 / 510.0].into();
        assert_eq!((1..=5).map(|keys| wide.rate(keys)).collect::<Vec<_>>(), rates);
        assert_eq!(wide.rate(0), 0.0);
    }

    #[test]
    fn what_has_no_room_is_refused_with_what_has() {
        for (lanes, lane_bits) in [(1, 9), (2, 20), (8, 8), (4, 1), (7, 2)] {
            let error = Wide::of(Shape::new(lanes, lane_bits).expect("fits")).expect_err("no room").to_string();
            assert!(error.contains("leave words=wide out"), "{error}");
        }
    }
}
