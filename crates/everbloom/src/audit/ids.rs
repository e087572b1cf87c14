//! What keys are called here, and which arrivals need a look, found eight at a time.
//!
//! Hardly any arrival is of a key that is followed or awaited. Each costs its id, which is one product; a comparison of it with
//! the sample's limit; and a bit of a small table, in which a few are set for the keys that are awaited.

use super::hot::Awaited;
use crate::key::KeyHash;
use crate::simd::{Kernel, SimdOps, run};

/// How many arrivals are looked at together: one for each bit of a number.
pub(super) const CHUNK: usize = 64;
/// How many of them are told apart only if one of them needs a look.
const GROUP: usize = 8;

/// How ids are made of hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    /// The low half of a product. Wide registers have it, and its bits from the 20th on depend on more of a key's bits than
    /// anybody can choose.
    Low,
    /// Both halves: so did audits that were begun earlier, and they go on with it.
    Both,
}

impl Ids {
    /// What a key is called here: 64 bits of which the first decide whether it is in the sample, and others where it would be
    /// in the table of hot keys. Never 0.
    #[inline(always)]
    pub(super) fn of(self, hash: KeyHash, seed: u64) -> u64 {
        let [one, other] = factors(hash, seed);
        match self {
            Ids::Low => low(one, other),
            Ids::Both => {
                let product = u128::from(one) * u128::from(other);
                ((product >> 64) as u64 ^ product as u64) | 1
            }
        }
    }

    /// The bits that say where a key would be in the table of hot keys: none of those that the sample uses.
    #[inline(always)]
    pub(super) fn shift(self) -> u32 {
        match self {
            Ids::Low => 20,
            Ids::Both => 1,
        }
    }
}

#[inline(always)]
fn factors(hash: KeyHash, seed: u64) -> [u64; 2] {
    [hash.high ^ seed, hash.low ^ seed.rotate_left(29) ^ 0xd6e8_feb8_6659_fd93]
}

/// An odd factor loses nothing of the other: ids are as uniform as the high halves of hashes.
#[inline(always)]
fn low(one: u64, other: u64) -> u64 {
    one.wrapping_mul(other | 1) | 1
}

/// Up to [`CHUNK`] arrivals, their ids, and which of them need a look, as bits.
pub(super) struct Chunk {
    pub(super) ids: [u64; CHUNK],
    pub(super) marked: u64,
}

impl Chunk {
    pub(super) fn new() -> Self {
        Chunk { ids: [0; CHUNK], marked: 0 }
    }

    /// Marks the arrivals whose keys are in the sample, or may be awaited.
    #[inline(always)]
    pub(super) fn fill(&mut self, hashes: &[KeyHash], ids: Ids, seed: u64, limit: u64, awaited: &Awaited) {
        match ids {
            Ids::Low => run(Look { chunk: self, hashes, seed, limit, awaited }),
            Ids::Both => self.fill_plainly(hashes, ids, seed, limit, awaited),
        }
    }

    fn fill_plainly(&mut self, hashes: &[KeyHash], ids: Ids, seed: u64, limit: u64, awaited: &Awaited) {
        self.marked = 0;
        for (place, hash) in hashes.iter().enumerate().take(CHUNK) {
            self.ids[place] = ids.of(*hash, seed);
            self.mark(place, limit, awaited);
        }
    }

    #[inline(always)]
    fn mark(&mut self, place: usize, limit: u64, awaited: &Awaited) {
        let id = self.ids[place];
        self.marked |= u64::from(id <= limit || awaited.may_have(id)) << place;
    }

    /// Marks what may be awaited now, from one of so many arrivals on.
    #[cold]
    pub(super) fn mark_awaited(&mut self, from: usize, count: usize, awaited: &Awaited) {
        for place in from..count.min(CHUNK) {
            self.marked |= u64::from(awaited.may_have(self.ids[place])) << place;
        }
    }
}

/// [`Chunk::fill_plainly`], for newer machines as well.
struct Look<'a> {
    chunk: &'a mut Chunk,
    hashes: &'a [KeyHash],
    seed: u64,
    limit: u64,
    awaited: &'a Awaited,
}

impl Kernel for Look<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: impl SimdOps) {
        let Look { chunk, hashes, seed, limit, awaited } = self;
        chunk.marked = 0;
        let (groups, rest) = hashes[..hashes.len().min(CHUNK)].as_chunks::<GROUP>();
        for (group, hashes) in groups.iter().enumerate() {
            let Some(ids) = chunk.ids[group * GROUP..].first_chunk_mut::<GROUP>() else { return };
            let mut sampled = 0;
            for place in 0..GROUP {
                let [one, other] = factors(hashes[place], seed);
                ids[place] = low(one, other);
                // The limit has no zero below its first bit.
                sampled |= u64::from(ids[place] & !limit == 0);
            }
            let mut may_wait = 0;
            for id in ids {
                may_wait |= awaited.look(*id);
            }
            if (sampled | may_wait) & 1 != 0 {
                (0..GROUP).for_each(|place| chunk.mark(group * GROUP + place, limit, awaited));
            }
        }
        for (place, hash) in rest.iter().enumerate() {
            let place = groups.len() * GROUP + place;
            chunk.ids[place] = Ids::Low.of(*hash, seed);
            chunk.mark(place, limit, awaited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::finalise;
    use crate::simd::run_on_each;

    fn hashes(count: u64, seed: u64) -> Vec<KeyHash> {
        let half = |number: u64| finalise(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed);
        (0..count).map(|key| KeyHash { high: half(2 * key), low: half(2 * key + 1) }).collect()
    }

    #[test]
    fn arrivals_are_marked_as_plain_code_marks_them() {
        for (round, halvings) in [0, 1, 3, 6, 9, 63].into_iter().enumerate() {
            let (limit, seed) = (u64::MAX >> halvings, finalise(round as u64));
            for count in [0, 1, 7, 8, 63, 64, 70] {
                let hashes = hashes(count, seed);
                let mut awaited = Awaited::new(Ids::Low);
                hashes.iter().step_by(11).for_each(|hash| awaited.set(Ids::Low.of(*hash, seed), true));
                let mut plain = Chunk::new();
                plain.fill_plainly(&hashes, Ids::Low, seed, limit, &awaited);
                let look = || {
                    let mut chunk = Chunk::new();
                    run(Look { chunk: &mut chunk, hashes: &hashes, seed, limit, awaited: &awaited });
                    chunk
                };
                let chunk = look();
                assert!(chunk.ids == plain.ids && chunk.marked == plain.marked, "{count} arrivals");
                for awaited_one in hashes.iter().step_by(11).take(CHUNK / 11 + 1) {
                    let at = hashes.iter().position(|hash| hash == awaited_one).expect("it is one of them");
                    assert!(at >= CHUNK || plain.marked >> at & 1 == 1, "an awaited key was passed over");
                }
            }
        }
    }

    struct Fill<'a>(&'a [KeyHash], &'a Awaited);

    impl Kernel for Fill<'_> {
        type Output = ([u64; CHUNK], u64);

        #[inline(always)]
        fn run(self, ops: impl SimdOps) -> Self::Output {
            let mut chunk = Chunk::new();
            Look { chunk: &mut chunk, hashes: self.0, seed: 9, limit: u64::MAX >> 4, awaited: self.1 }.run(ops);
            (chunk.ids, chunk.marked)
        }
    }

    #[test]
    fn every_instruction_set_finds_the_same() {
        let (hashes, awaited) = (hashes(61, 3), Awaited::new(Ids::Low));
        let (plain, wider) = run_on_each(|| Fill(&hashes, &awaited));
        wider.into_iter().for_each(|(name, found)| assert!(found == plain, "{name} differs"));
        assert!(plain.1 != 0 && plain.1.count_ones() < 61);
    }

    #[test]
    fn ids_are_uniform_in_the_bits_that_decide() {
        const KEYS: u64 = 1 << 16;
        for (ids, shift) in [(Ids::Low, 58), (Ids::Low, Ids::Low.shift()), (Ids::Both, 58)] {
            let mut parts = [0u32; 64];
            for hash in hashes(KEYS, 5) {
                parts[(ids.of(hash, 77) >> shift & 63) as usize] += 1;
            }
            // Five standard deviations of binomial numbers.
            let mean = KEYS as f64 / 64.0;
            assert!(parts.iter().all(|part| (f64::from(*part) - mean).abs() < 5.0 * mean.sqrt()), "{ids:?} {parts:?}");
        }
    }
}
