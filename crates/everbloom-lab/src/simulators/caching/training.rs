//! What the first half of a trace teaches: how many hashes each object deserves.
//!
//! Rounding and the paper's scheme are fitted object by object to the whole first half, as in the paper. It has no rule
//! for objects that the first half does not show; they get a standard filter's number.
//!
//! Ours is fitted to classes. An object's class is what a window of time says about it: how much of the time it was in
//! caches, and how often it was asked for in vain. What the classes then do is counted in the next window, so that a
//! class's shares are those of objects of which only the past is known; objects never seen are a class like any other.
//! The first quarter of the first half only fills the caches; the rest is two windows. The classes of the first are
//! judged in the second, and the classes of the second are used in the test. If the classes promise no gain, everything
//! has a standard filter's number.

use super::events::Events;
use crate::simulators::{Scheme, programme};
use everbloom::Result;
use everbloom_tune::querylog::popularity::{Allocation, MAX_HASHES, Share};
use std::collections::BTreeMap;

/// The number of hashes of every object.
#[derive(Debug, Clone)]
pub struct Hashes {
    per_object: Vec<u8>,
    /// The rate of false positives that the training promises.
    pub predicted_fpr: f64,
    /// The share of missing queries that an ordinary filter gets wrong.
    pub standard_fpr: f64,
    /// How many objects have another number than those never seen: what a table would have to hold.
    pub exceptions: usize,
}

impl Hashes {
    /// The hashes of an object.
    pub fn of(&self, object: u32) -> u32 {
        self.per_object[object as usize].into()
    }

    fn uniform(objects: usize, count: u8, fpr: f64) -> Self {
        Hashes { per_object: vec![count; objects], predicted_fpr: fpr, standard_fpr: fpr, exceptions: 0 }
    }
}

/// What a window of time shows of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Shown {
    /// Requests during which it was in a cache, summed over the caches.
    resident: f64,
    /// Lookups of it in summaries that do not hold it.
    misses: f64,
}

/// What the first half shows.
pub(super) struct Training {
    whole: Vec<Shown>,
    /// The two windows after caches have filled.
    windows: [Vec<Shown>; 2],
    /// Requests times proxies in a window: a resident object could not have more.
    most_resident: f64,
}

/// Gains below this are chance.
const LEAST_GAIN: f64 = 0.05;

impl Training {
    pub(super) fn new(events: &Events) -> Self {
        let (half, window) = (events.half(), events.half() * 3 / 8);
        let windows = [(half - 2 * window, half - window), (half - window, half)];
        Training {
            whole: shown(events, 0, half),
            windows: windows.map(|(from, to)| shown(events, from, to)),
            most_resident: (window * events.proxies as u64).max(1) as f64,
        }
    }

    pub(super) fn hashes(&self, scheme: Scheme, bits: f64) -> Result<Hashes> {
        let standard = Allocation::new(vec![Share::new(1.0, 1.0)], bits, 1..=1)?.standard();
        let usual = standard.hashes[0].min(MAX_HASHES);
        let uniform = Hashes::uniform(self.windows[0].len(), usual, standard.fpr);
        match scheme {
            Scheme::Standard => Ok(uniform),
            // The paper's k_max is twice a standard filter's number.
            Scheme::Rounding => self.per_object(bits, usual, |problem| Ok(problem.rounding().hashes)),
            Scheme::Programme => self.per_object(bits, usual, programme),
            Scheme::HalfFill => self.per_object(bits, usual, |problem| Ok(problem.fixed_fill().hashes)),
            Scheme::Ours => {
                let ours = self.by_class(bits)?;
                Ok(if ours.predicted_fpr < (1.0 - LEAST_GAIN) * standard.fpr { ours } else { uniform })
            }
        }
    }

    pub(super) fn optimal_fpr(&self, bits: f64) -> Result<f64> {
        let shares = self.whole.iter().map(|shown| Share::new(shown.resident, shown.misses)).collect();
        Ok(Allocation::new(shares, bits, 1..=MAX_HASHES)?.real_optimum().fpr)
    }

    /// A number for each object that the first half shows, the usual one for the others.
    fn per_object(&self, bits: f64, usual: u8, solve: impl Fn(&Allocation) -> Result<Vec<u8>>) -> Result<Hashes> {
        let shares: Vec<Share> = self.whole.iter().map(|shown| Share::new(shown.resident, shown.misses)).collect();
        let seen = |class: &Share| class.members > 0.0 || class.misses > 0.0;
        let classes: Vec<Share> = shares.iter().copied().filter(seen).collect();
        if !classes.iter().any(|class| class.members > 0.0) || !classes.iter().any(|class| class.misses > 0.0) {
            return Ok(Hashes::uniform(shares.len(), usual, 1.0));
        }
        let problem = Allocation::new(classes, bits, 1..=usual.saturating_mul(2).min(MAX_HASHES))?;
        let solved = solve(&problem)?;
        let predicted_fpr = problem.scored(solved.clone()).fpr;
        let mut numbers = solved.into_iter();
        let per_object: Vec<u8> =
            shares.iter().map(|class| if seen(class) { numbers.next().unwrap_or(usual) } else { usual }).collect();
        let exceptions = per_object.iter().filter(|count| **count != usual).count();
        Ok(Hashes { per_object, predicted_fpr, standard_fpr: problem.standard().fpr, exceptions })
    }

    /// A number for each class: what the first window says of its objects, judged in the second.
    fn by_class(&self, bits: f64) -> Result<Hashes> {
        let mut classes: BTreeMap<Bucket, Share> = BTreeMap::new();
        for (past, future) in self.windows[0].iter().zip(&self.windows[1]) {
            // A class of which nothing is seen could be of any kind: each starts with a trace of both.
            let class = classes.entry(self.bucket(past)).or_insert(Share::new(1.0, 1.0));
            class.members += future.resident;
            class.misses += future.misses;
        }
        let problem = Allocation::new(classes.values().copied().collect(), bits, 0..=MAX_HASHES)?;
        let solution = problem.solve_uncertified();
        let numbers: BTreeMap<Bucket, u8> = classes.keys().copied().zip(solution.hashes.iter().copied()).collect();
        let unseen = numbers.get(&Bucket::default()).copied().unwrap_or(MAX_HASHES);
        let number = |shown: &Shown| self.bucket(shown).nearest(&numbers).unwrap_or(unseen);
        let per_object: Vec<u8> = self.windows[1].iter().map(number).collect();
        let exceptions = per_object.iter().filter(|count| **count != unseen).count();
        Ok(Hashes { per_object, predicted_fpr: solution.fpr, standard_fpr: problem.standard().fpr, exceptions })
    }

    fn bucket(&self, shown: &Shown) -> Bucket {
        Bucket { resident: octave(shown.resident / self.most_resident, 12), misses: octave(shown.misses / 4096.0, 12) }
    }
}

/// A class: octaves of the time in caches and of the misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Bucket {
    resident: u8,
    misses: u8,
}

impl Bucket {
    /// The number of this class, or of the nearest that there is.
    fn nearest(self, numbers: &BTreeMap<Bucket, u8>) -> Option<u8> {
        let distance = |other: &Bucket| {
            u32::from(self.resident.abs_diff(other.resident)) + u32::from(self.misses.abs_diff(other.misses))
        };
        match numbers.get(&self) {
            Some(number) => Some(*number),
            None => numbers.iter().min_by_key(|(bucket, _)| distance(bucket)).map(|(_, number)| *number),
        }
    }
}

/// 0 for nothing, then 1 for 2^−most and less, and one more for each doubling up to 1.
fn octave(share: f64, most: u8) -> u8 {
    if share <= 0.0 { 0 } else { (libm::log2(share).floor() + f64::from(most)).clamp(1.0, f64::from(most) + 1.0) as u8 }
}

/// What the requests from one number to another show of every object.
fn shown(events: &Events, from: u64, to: u64) -> Vec<Shown> {
    let mut shown = vec![Shown::default(); events.objects];
    let mut since = BTreeMap::new();
    for miss in events.misses.iter().take_while(|miss| miss.time < to) {
        let proxy = miss.request.proxy;
        since.insert((proxy, miss.request.object), miss.time);
        if let Some(old) = miss.evicted {
            let start = since.remove(&(proxy, old)).unwrap_or(miss.time);
            shown[old as usize].resident += miss.time.saturating_sub(start.max(from)) as f64;
        }
        if miss.time >= from {
            let others = events.proxies as u32 - 1;
            let holders = (miss.summarised & !(1 << proxy)).count_ones();
            shown[miss.request.object as usize].misses += f64::from(others - holders);
        }
    }
    for ((_, object), start) in since {
        shown[object as usize].resident += to.saturating_sub(start.max(from)) as f64;
    }
    shown
}
