//! Classes in order of their score, and the boundaries that describe a solution which follows that order.

use super::{MAX_HASHES, Share};
use std::array;

/// One value per step of a hash more.
pub(super) type PerStep<T> = [T; MAX_HASHES as usize];

/// Classes that can be members, best score first, with running sums of their shares.
pub(super) struct Ranked {
    /// misses / members, falling.
    scores: Vec<f64>,
    /// The members of the first n classes, for n from 0.
    members: Vec<f64>,
    /// The negative queries of the first n classes.
    misses: Vec<f64>,
    /// Which class has which rank.
    order: Vec<u32>,
    /// The negative queries for classes that are never members: those always get the most hashes, which cost nothing.
    pub(super) never_members: f64,
}

/// How many of the best classes take each step from one number of hashes to the next. Never rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boundaries(pub(super) PerStep<u32>);

/// Neighbouring solutions around a load: the first within it, the second with at least one step more, unless
/// every useful step is in the first.
pub(super) struct Bracket {
    pub(super) within: Boundaries,
    pub(super) beyond: Boundaries,
    /// The gain per unit of load that separates them.
    pub(super) threshold: f64,
}

impl Ranked {
    pub(super) fn new(classes: &[Share]) -> Self {
        let mut keys: Vec<u128> = Vec::with_capacity(classes.len());
        let mut never_members = 0.0;
        for (index, class) in classes.iter().enumerate() {
            if class.members > 0.0 {
                keys.push(sort_key(class, index as u32));
            } else {
                never_members += class.misses;
            }
        }
        keys.sort_unstable();
        let mut ranked = Ranked::with_capacity(keys.len(), never_members);
        keys.iter().for_each(|key| ranked.push(*key as u32, classes));
        ranked
    }

    fn with_capacity(count: usize, never_members: f64) -> Self {
        let sums = || {
            let mut sums = Vec::with_capacity(count + 1);
            sums.push(0.0);
            sums
        };
        let (scores, order) = (Vec::with_capacity(count), Vec::with_capacity(count));
        Ranked { scores, members: sums(), misses: sums(), order, never_members }
    }

    fn push(&mut self, index: u32, classes: &[Share]) {
        let class = &classes[index as usize];
        self.members.push(self.members[self.order.len()] + class.members);
        self.misses.push(self.misses[self.order.len()] + class.misses);
        self.scores.push(score(class));
        self.order.push(index);
    }

    /// How many classes can be members.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The members of the best `count` classes.
    pub(super) fn members_of(&self, count: usize) -> f64 {
        self.members[count]
    }

    /// The negative queries of the best `count` classes.
    pub(super) fn misses_of(&self, count: usize) -> f64 {
        self.misses[count]
    }

    /// All the members there are: 1, but for rounding.
    pub(super) fn all_members(&self) -> f64 {
        self.members[self.order.len()]
    }

    /// The least load above zero: one hash for the class that deserves it most.
    pub(super) fn least_load(&self) -> f64 {
        self.members.get(1).copied().unwrap_or(1.0)
    }

    /// The load that the steps add to that of the least hashes.
    pub(super) fn added_load(&self, taken: &Boundaries, steps: usize) -> f64 {
        taken.0[..steps].iter().map(|&count| self.members[count as usize]).sum()
    }

    /// Σ misses·value(k) where `values[j]` is that of j hashes above the least: mass by mass, so that small rates
    /// are not differences of large ones.
    pub(super) fn total(&self, taken: &Boundaries, values: &[f64]) -> f64 {
        let Some((most, values)) = values.split_last() else { return 0.0 };
        let (mut above, mut total) = (self.misses[self.len()], 0.0);
        for (value, &count) in values.iter().zip(&taken.0) {
            let raised = self.misses[count as usize];
            total += value * (above - raised);
            above = raised;
        }
        total + most * (above + self.never_members)
    }

    /// The steps whose gain per unit of load is at least `threshold`, `gains[j]·score` being that of step j.
    pub(super) fn at_threshold(&self, gains: &[f64], threshold: f64) -> Boundaries {
        let none = Boundaries([0; MAX_HASHES as usize]);
        let all = Boundaries([self.order.len() as u32; MAX_HASHES as usize]);
        self.between(gains, threshold, &none, &all)
    }

    /// The steps at a threshold, where fewer and more steps are known.
    fn between(&self, gains: &[f64], threshold: f64, fewer: &Boundaries, more: &Boundaries) -> Boundaries {
        let mut taken = Boundaries([0; MAX_HASHES as usize]);
        for (step, gain) in gains.iter().enumerate() {
            let (low, high) = (fewer.0[step] as usize, more.0[step] as usize);
            let worth = self.scores[low..high].partition_point(|score| score * gain >= threshold);
            taken.0[step] = (low + worth) as u32;
        }
        taken
    }

    /// The solutions on both sides of an added load, by bisecting the threshold over the numbers themselves: positive
    /// doubles are in the order of their bits.
    pub(super) fn bracket(&self, gains: &[f64], added_load: f64) -> Bracket {
        let (mut low, mut high) = (1u64, f64::INFINITY.to_bits());
        let mut beyond = self.at_threshold(gains, f64::from_bits(low));
        if self.added_load(&beyond, gains.len()) <= added_load {
            return Bracket { within: beyond, beyond, threshold: f64::from_bits(low) };
        }
        let mut within = Boundaries([0; MAX_HASHES as usize]);
        while high - low > 1 && beyond.differ_by_several(&within) {
            let middle = low + (high - low) / 2;
            let taken = self.between(gains, f64::from_bits(middle), &within, &beyond);
            if self.added_load(&taken, gains.len()) <= added_load {
                (high, within) = (middle, taken);
            } else {
                (low, beyond) = (middle, taken);
            }
        }
        Bracket { within, beyond, threshold: f64::from_bits(low) }
    }

    /// Takes from a tie, in order, what still fits into an added load.
    pub(super) fn fill_tie(&self, bracket: &Bracket, steps: usize, added_load: f64) -> Boundaries {
        let mut taken = bracket.within;
        let mut left = added_load - self.added_load(&taken, steps);
        let mut most = self.order.len();
        for step in 0..steps {
            let from = taken.0[step] as usize;
            let until = (bracket.beyond.0[step] as usize).min(most).max(from);
            let fits = self.members[from..=until].partition_point(|sum| sum - self.members[from] <= left).max(1) - 1;
            taken.0[step] += fits as u32;
            left -= self.members[from + fits] - self.members[from];
            most = taken.0[step] as usize;
        }
        taken
    }

    /// The number of hashes of every class.
    pub(super) fn hashes(&self, taken: &Boundaries, min_hashes: u8, max_hashes: u8, classes: usize) -> Vec<u8> {
        // Classes that are never members are in no order and keep the most.
        let mut hashes = vec![max_hashes; classes];
        let mut rest = self.len();
        for (count, boundary) in (min_hashes..).zip(taken.0.iter().take(usize::from(max_hashes - min_hashes))) {
            let raised = *boundary as usize;
            self.order[raised..rest].iter().for_each(|&class| hashes[class as usize] = count);
            rest = raised;
        }
        hashes
    }
}

impl Boundaries {
    /// One number of classes for the first `level` steps: one number of hashes for all.
    pub(super) fn level(classes: &Ranked, level: usize) -> Self {
        Boundaries(array::from_fn(|step| if step < level { classes.order.len() as u32 } else { 0 }))
    }

    fn differ_by_several(&self, fewer: &Boundaries) -> bool {
        let differences = self.0.iter().zip(&fewer.0).map(|(more, fewer)| u64::from(more - fewer));
        differences.sum::<u64>() > 1
    }
}

/// misses / members, finite so that thresholds can be above it.
fn score(class: &Share) -> f64 {
    (class.misses / class.members).min(f64::MAX)
}

/// Sorts by falling score, then by index: scores are positive, so their bits are in their order.
fn sort_key(class: &Share, index: u32) -> u128 {
    (u128::from(!score(class).to_bits()) << 32) | u128::from(index)
}
