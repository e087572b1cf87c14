//! Looking up many keys.
//!
//! The equations of some keys are found together, in wide registers, while what the keys before them read is on its way;
//! then all of them are summed up. A key by itself would wait for its three hashes first and for its lines afterwards. Without
//! wide registers, and at the end of a batch, key goes after key, whose lines are asked for some keys ahead.
//!
//! Whoever asks knows a limit below which values mean something to them. Of most keys that are in no map, the first eight
//! columns tell already that the value is not below it, and the others are not read.

use super::{BAND, BLOCK, Ribbon, Shape, selected};
use everbloom::KeyHash;
use everbloom_cells::key::finalise;
use everbloom_cells::simd::{Kernel, SimdOps};

/// Keys whose equations are found together.
const TOGETHER: usize = 16;

/// Looks up a key.
pub(super) struct Lookup<'r> {
    pub(super) ribbon: &'r Ribbon,
    pub(super) limit: u32,
    pub(super) hash: KeyHash,
}

impl Kernel for Lookup<'_> {
    type Output = u32;

    #[inline(always)]
    fn run(self, ops: impl SimdOps) -> u32 {
        let Lookup { ribbon, limit, hash } = self;
        ribbon.shape.value(ops, ribbon.table.words(), hash, ribbon.seed, limit)
    }
}

/// Looks up a batch of keys; `values` is as long as `hashes`.
pub(super) struct Lookups<'r> {
    pub(super) ribbon: &'r Ribbon,
    pub(super) limit: u32,
    pub(super) hashes: &'r [KeyHash],
    pub(super) values: &'r mut [u32],
}

impl Kernel for Lookups<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Lookups { ribbon, limit, hashes, values } = self;
        // Two keys in a register, whose products are made of parts, take longer than one after the other.
        let (together, rest) = match ops.has_wide_registers() {
            true => hashes.as_chunks(),
            false => (&[][..], hashes),
        };
        let (values, rest_values) = values.split_at_mut(TOGETHER * together.len());
        look_up_together(ops, ribbon, limit, together, values.as_chunks_mut().0);
        look_up_each(ops, ribbon, limit, rest, rest_values);
    }
}

/// Looks up some keys after some keys.
#[inline(always)]
fn look_up_together(
    ops: impl SimdOps,
    ribbon: &Ribbon,
    limit: u32,
    groups: &[[KeyHash; TOGETHER]],
    values: &mut [[u32; TOGETHER]],
) {
    let (shape, words) = (ribbon.shape, ribbon.table.words());
    let is_far = ribbon.prefetch_distance() > 0;
    let mut both = [const { Equations::NONE }; 2];
    for at in 0..=groups.len() {
        if let Some(group) = groups.get(at) {
            let next = &mut both[at % 2];
            next.find(shape, ribbon.seed, group);
            if is_far {
                next.words.iter().for_each(|word| ribbon.prefetch_from(*word));
            }
        }
        if at > 0 {
            both[(at + 1) % 2].sum(ops, shape, words, limit, &mut values[at - 1]);
        }
    }
}

/// Looks up key after key.
#[inline(always)]
fn look_up_each(ops: impl SimdOps, ribbon: &Ribbon, limit: u32, hashes: &[KeyHash], values: &mut [u32]) {
    let (words, ahead) = (ribbon.table.words(), ribbon.prefetch_distance());
    hashes.iter().take(ahead).for_each(|hash| ribbon.prefetch(*hash));
    for (at, (hash, value)) in hashes.iter().zip(values).enumerate() {
        if ahead > 0
            && let Some(hash) = hashes.get(at + ahead)
        {
            ribbon.prefetch(*hash);
        }
        *value = ribbon.shape.value(ops, words, *hash, ribbon.seed, limit);
    }
}

/// In place of the sum of a key that reads near the end of the words; a sum has one bit for each of eight columns.
const AT_END: u32 = u32::MAX;

/// The equations of some keys: the first word that each reads, what it selects in three words of a column, and the mask of
/// its value.
struct Equations {
    words: [u32; TOGETHER],
    selections: [[u64; TOGETHER]; 3],
    masks: [u32; TOGETHER],
}

impl Equations {
    const NONE: Equations = Equations { words: [0; TOGETHER], selections: [[0; TOGETHER]; 3], masks: [0; TOGETHER] };

    /// What [`Shape::equation`] finds for each key, without a branch and without products of more than 64 bits: so it
    /// is compiled for registers that hold several keys.
    #[inline(always)]
    fn find(&mut self, shape: Shape, seed: u64, hashes: &[KeyHash; TOGETHER]) {
        let salt = Shape::salt(seed);
        let places = shape.slots - shape.band() + 1;
        let all = u128::MAX >> (BAND - shape.band());
        let (all_low, all_high) = (all as u64, (all >> 64) as u64);
        for (key, hash) in hashes.iter().enumerate() {
            let first = finalise(hash.high ^ salt);
            let second = finalise(hash.low.wrapping_add(first));
            let third = finalise(first ^ second.rotate_left(23));
            // There are fewer than 2^32 places, so two short products make up the long one.
            let start = ((first >> 32) * places + (((first & 0xffff_ffff) * places) >> 32)) >> 32;
            let selected = selected(third & all_low | 1, second & all_high, start % BLOCK);
            self.words[key] = shape.word(start);
            self.selections[0][key] = selected[0];
            self.selections[1][key] = selected[1];
            self.selections[2][key] = selected[2];
            self.masks[key] = first as u32;
        }
    }

    /// The value of each key, if it is below a limit; otherwise some number that is not.
    #[inline(always)]
    fn sum(&self, ops: impl SimdOps, shape: Shape, words: &[u64], limit: u32, values: &mut [u32; TOGETHER]) {
        for (key, value) in values.iter_mut().enumerate() {
            *value = shape.sum_within(ops, words, self.words[key], self.selections_of(key)).unwrap_or(AT_END);
        }
        // Afterwards, since the loop is faster without a call in it.
        if values.contains(&AT_END) {
            self.sum_at_end(shape, words, values);
        }
        for (value, mask) in values.iter_mut().zip(self.masks) {
            *value = (*value ^ mask) & shape.values();
        }
        // Seldom, unless the limit is high; that none is open is known far sooner than which.
        if values.iter().fold(false, |any, value| any | shape.is_open(*value, limit)) {
            self.complete(ops, shape, words, limit, values);
        }
    }

    /// Completes the values that could still be below a limit.
    #[inline(always)]
    fn complete(&self, ops: impl SimdOps, shape: Shape, words: &[u64], limit: u32, values: &mut [u32; TOGETHER]) {
        for (key, value) in values.iter_mut().enumerate() {
            if shape.is_open(*value, limit) {
                *value = shape.completed(ops, words, self.words[key], self.selections_of(key), *value);
            }
        }
    }

    /// The sums of the keys that read near the end of the words.
    #[cold]
    #[inline(never)]
    fn sum_at_end(&self, shape: Shape, words: &[u64], values: &mut [u32; TOGETHER]) {
        for (key, value) in values.iter_mut().enumerate().filter(|(_, value)| **value == AT_END) {
            *value = shape.sum_at_end(words, self.words[key], self.selections_of(key));
        }
    }

    #[inline(always)]
    fn selections_of(&self, key: usize) -> [u64; 3] {
        [self.selections[0][key], self.selections[1][key], self.selections[2][key]]
    }
}
