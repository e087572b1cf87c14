//! Looking up many keys.
//!
//! The equations of some keys are found together, in wide registers, while what the keys before them read is on its way;
//! then all of them are summed up. A key by itself would wait for its three hashes first and for its lines afterwards.

use super::{BAND, BLOCK, Ribbon, Shape, selected};
use crate::key::{KeyHash, finalise};
use crate::simd::{Kernel, SimdOps};

/// Keys whose equations are found together.
const TOGETHER: usize = 16;

/// Looks up a batch of keys; `values` is as long as `hashes`.
pub(super) struct Lookups<'r> {
    pub(super) ribbon: &'r Ribbon,
    pub(super) hashes: &'r [KeyHash],
    pub(super) values: &'r mut [u32],
}

impl Kernel for Lookups<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let Lookups { ribbon, hashes, values } = self;
        let (shape, seed, words) = (ribbon.shape, ribbon.seed, ribbon.table.words());
        let is_far = ribbon.keys_ahead() > 0;
        let (groups, few) = hashes.as_chunks::<TOGETHER>();
        let (values, few_values) = values.as_chunks_mut::<TOGETHER>();
        if is_far {
            few.iter().for_each(|hash| ribbon.prefetch(*hash));
        }
        let mut both = [const { Equations::NONE }; 2];
        for at in 0..=groups.len() {
            if let Some(group) = groups.get(at) {
                let next = &mut both[at % 2];
                next.find(shape, seed, group);
                if is_far {
                    next.starts.iter().for_each(|start| ribbon.prefetch_from(*start));
                }
            }
            if at > 0 {
                both[(at + 1) % 2].sum(ops, shape, words, &mut values[at - 1]);
            }
        }
        for (hash, value) in few.iter().zip(few_values) {
            *value = shape.value(ops, words, *hash, seed);
        }
    }
}

/// The equations of some keys: where each starts, what it selects in three words of a column, and the mask of its value.
struct Equations {
    starts: [u64; TOGETHER],
    selections: [[u64; TOGETHER]; 3],
    masks: [u64; TOGETHER],
}

impl Equations {
    const NONE: Equations = Equations { starts: [0; TOGETHER], selections: [[0; TOGETHER]; 3], masks: [0; TOGETHER] };

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
            self.starts[key] = start;
            self.selections[0][key] = selected[0];
            self.selections[1][key] = selected[1];
            self.selections[2][key] = selected[2];
            self.masks[key] = first;
        }
    }

    /// The value of each key.
    #[inline(always)]
    fn sum(&self, ops: impl SimdOps, shape: Shape, words: &[u64], values: &mut [u32; TOGETHER]) {
        for (key, value) in values.iter_mut().enumerate() {
            let selections = [self.selections[0][key], self.selections[1][key], self.selections[2][key]];
            let mask = self.masks[key] as u32 & shape.values();
            *value = shape.sum(ops, words, self.starts[key], selections) ^ mask;
        }
    }
}
