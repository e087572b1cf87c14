//! Arrivals at their words.

use super::Hit;
use crate::cells::lanes::{Forms, MOST_MOVED, Shape, Wide, Words, lesser};
use crate::cells::table::stored;
use crate::key::KeyHash;
use crate::promise::Verdict;
use crate::simd::{Kernel, SimdOps};
use std::hint::select_unpredictable;

/// What an arrival does to its word.
pub(super) trait Visit: Copy {
    /// What a word keeps of a key, by the half of its hash that does not choose the word.
    fn print(self, low: u64) -> u64;

    /// The word after an arrival, and whether it was there.
    fn observe(self, word: u64, print: u64) -> (u64, bool);
}

/// Arrivals at words that are always divided by lanes.
#[derive(Clone, Copy)]
pub(super) struct AtLanes {
    pub(super) shape: Shape,
    pub(super) hit: Hit,
    /// Where new keys go in.
    pub(super) rank: u32,
}

impl Visit for AtLanes {
    #[inline(always)]
    fn print(self, low: u64) -> u64 {
        1 + ((u128::from(low) * u128::from(self.shape.max_fingerprint())) >> 64) as u64
    }

    /// A hit moves the lane forward, a miss makes room at the rank: both put the fingerprint at one shift
    /// and take a lane out at another, so only the two shifts depend on the verdict.
    #[inline(always)]
    fn observe(self, word: u64, fingerprint: u64) -> (u64, bool) {
        let AtLanes { shape, hit, rank } = self;
        let found = shape.find(word, fingerprint);
        let free = shape.free(word);
        let from = select_unpredictable(found.is_some(), found.unwrap_or_default(), free);
        let promoted = match hit {
            Hit::Front => 0,
            Hit::Bubble => from.saturating_sub(shape.lane_bits()),
            Hit::Still => from,
        };
        let to = select_unpredictable(found.is_some(), promoted, lesser(rank * shape.lane_bits(), free));
        (shape.place(word, fingerprint, to, from), found.is_some())
    }
}

/// Arrivals at wide words, most of which are full if `FULL`; `MOVED` is [`Wide::moved`] or more.
#[derive(Clone, Copy)]
pub(super) struct AtWide<'w, const MOVED: usize, const FULL: bool> {
    wide: &'w Wide,
    forms: &'w Forms,
    hit: Hit,
}

impl<'w> AtWide<'w, MOST_MOVED, true> {
    /// One arrival, whatever the words are like.
    pub(super) fn new(wide: &'w Wide, hit: Hit, rank: u32) -> Self {
        AtWide { wide, forms: wide.forms(rank), hit }
    }
}

impl<const MOVED: usize, const FULL: bool> Visit for AtWide<'_, MOVED, FULL> {
    #[inline(always)]
    fn print(self, low: u64) -> u64 {
        self.wide.print(low)
    }

    #[inline(always)]
    fn observe(self, word: u64, print: u64) -> (u64, bool) {
        let before = |upto: u64, bits: u32| match self.hit {
            Hit::Front => 0,
            Hit::Bubble => upto >> bits >> bits,
            Hit::Still => upto >> bits,
        };
        match FULL {
            true => self.wide.observe_full::<MOVED>(self.forms, word, print, before),
            false => self.wide.observe::<MOVED>(self.forms, word, print, before),
        }
    }
}

/// A hash made of the 64 bits that are kept. The last bits of it are the first of the low half, which choose the
/// fingerprint, as the first ones choose the word.
#[inline(always)]
pub(super) fn kept(bits: u64) -> KeyHash {
    let bits = stored(bits);
    KeyHash { high: bits, low: bits.swap_bytes() }
}

/// Arrivals of one rank at their words, with no gate before them; if `KEPT`, only the first 64 bits of their hashes count.
pub(super) struct ObserveWords<'a, const KEPT: bool> {
    pub(super) words: &'a mut Words,
    pub(super) hit: Hit,
    pub(super) rank: u32,
    pub(super) distance: usize,
    pub(super) hashes: &'a [KeyHash],
    pub(super) verdicts: &'a mut [Verdict],
}

/// Arrivals at wide words that are treated alike.
pub(super) const TOGETHER: usize = 256;

/// So many words of those are looked at, and if all but one are full, most are taken to be.
const SAMPLED: usize = 8;

impl<const KEPT: bool> Kernel for ObserveWords<'_, KEPT> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: impl SimdOps) {
        match self.words.wide() {
            None => {
                let visit = AtLanes { shape: self.words.shape(), hit: self.hit, rank: self.rank };
                let mut next = self.ask_first();
                each::<KEPT>(visit, self.words, self.hashes, &mut next, self.verdicts);
            }
            Some(wide) if wide.moved() <= 3 => self.at_wide::<3>(wide),
            Some(wide) => self.at_wide::<MOST_MOVED>(wide),
        }
    }
}

impl<'a, const KEPT: bool> ObserveWords<'a, KEPT> {
    /// Asks for the first words and gives the hashes whose words are to be asked for next.
    #[inline(always)]
    fn ask_first(&self) -> std::slice::Iter<'a, KeyHash> {
        let (hashes, distance) = (self.hashes, self.distance);
        // Batches no longer than the distance have been asked for: see `Filter::prefetch_distance`.
        let asks = distance > 0 && hashes.len() > distance;
        let (first, rest) = hashes.split_at(if asks { distance } else { hashes.len() });
        if asks {
            first.iter().for_each(|hash| self.words.prefetch(hash.index(self.words.len())));
        }
        rest.iter()
    }

    /// Whether a word is full can be predicted where most are, and then a branch is faster than the table of forms.
    #[inline(always)]
    fn at_wide<const MOVED: usize>(self, wide: &Wide) {
        let mut next = self.ask_first();
        let ObserveWords { words, hit, rank, hashes, verdicts, .. } = self;
        let forms = wide.forms(rank);
        for (hashes, verdicts) in hashes.chunks(TOGETHER).zip(verdicts.chunks_mut(TOGETHER)) {
            let is_full = |hash: &&KeyHash| wide.is_full(words.get(hash.index(words.len())));
            let sampled = hashes.len().min(SAMPLED);
            if hashes[..sampled].iter().filter(is_full).count() + 1 >= sampled {
                each::<KEPT>(AtWide::<MOVED, true> { wide, forms, hit }, words, hashes, &mut next, verdicts);
            } else {
                each::<KEPT>(AtWide::<MOVED, false> { wide, forms, hit }, words, hashes, &mut next, verdicts);
            }
        }
    }
}

#[inline(always)]
fn each<const KEPT: bool>(
    visit: impl Visit,
    words: &mut Words,
    hashes: &[KeyHash],
    next: &mut std::slice::Iter<'_, KeyHash>,
    verdicts: &mut [Verdict],
) {
    let count = words.len();
    for (hash, verdict) in hashes.iter().zip(verdicts) {
        if let Some(hash) = next.next() {
            words.prefetch(hash.index(count));
        }
        let hash = if KEPT { kept(hash.high) } else { *hash };
        let place = words.place(hash.index(count));
        // Not by a closure, which would stay a function of its own and not be compiled for this machine.
        let (word, is_there) = visit.observe(words.word_at(place), visit.print(hash.low));
        words.put_at(place, word);
        *verdict = Verdict::from_seen(is_there);
    }
}
