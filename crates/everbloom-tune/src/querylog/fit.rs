//! The best of each kind of filter, by what the first half of the log shows.

use super::Options;
use super::evidence::{Bucket, Evidence, LEVELS, Object, level};
use crate::Scheme;
use crate::querylog::popularity::{self, Allocation};
use crate::querylog::stacking::{Demand, Planned};
use crate::ribbon::Shape;
use crate::scheme::{Classes, Design, HotNegatives, KeyClass, Recipe};
use everbloom::sizing::Size;
use everbloom::{KeyHash, Result};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A filter to be judged.
pub(super) struct Candidate {
    pub(super) scheme: Arc<Scheme>,
    pub(super) predicted_fpr: f64,
    /// Bits of the average set's filter.
    pub(super) filter_bits: u64,
    pub(super) classes: Vec<KeyClass>,
    /// The solver's certificate for these classes.
    pub(super) lower_bound: Option<f64>,
    /// The first bucket of every class of exceptions.
    starts: Vec<usize>,
}

impl Candidate {
    /// The class of a key that was asked for this often, if it is an exception.
    pub(super) fn exception_class(&self, count: u32) -> Option<u8> {
        exception_class(&self.starts, count)
    }
}

fn exception_class(starts: &[usize], count: u32) -> Option<u8> {
    let class = starts.iter().filter(|start| **start <= level(count)).count();
    (class > 0).then_some(class as u8)
}

pub(super) fn range(options: &Options) -> RangeInclusive<u8> {
    options.min_hashes as u8..=options.max_hashes as u8
}

/// The ordinary filter, with all the memory.
pub(super) fn standard(evidence: &Evidence, options: &Options) -> Result<Candidate> {
    let (bits, keys) = (options.memory_bits / 512 * 512, evidence.mean_set_size());
    let size = Size::for_cells(bits, keys.round().max(1.0) as u64)?;
    Ok(Candidate {
        scheme: Arc::new(Scheme::new(evidence.hashing, bits as f64 / keys, Recipe::Standard)?),
        predicted_fpr: size.predicted_fpr(keys.round() as u64),
        filter_bits: bits,
        classes: vec![KeyClass { num_hashes: size.num_hashes, key_share: 1.0, query_share: 1.0 }],
        lower_bound: None,
        starts: Vec::new(),
    })
}

/// A stacked filter with the keys of the best buckets stored exactly, if there is room for one.
pub(super) fn stacked(evidence: &Evidence, options: &Options) -> Result<Option<Candidate>> {
    let all: f64 = evidence.buckets.iter().map(|bucket| bucket.misses).sum();
    let demand = |from: usize| {
        let hot = &evidence.buckets[from..];
        let sets = evidence.sets.len() as f64;
        // Of several sets, each has its own members among the hot keys.
        let hot_negatives = hot.iter().map(|bucket| bucket.keys - bucket.members / sets).sum();
        let query_share = hot.iter().map(|bucket| bucket.misses).sum::<f64>() / all;
        // Memory comes in whole cache lines.
        let memory_bits = (options.memory_bits / 512 * 512) as f64;
        Demand { members: evidence.mean_set_size(), hot_negatives, query_share, memory_bits }
    };
    let plans = (1..LEVELS).map(|from| (from, demand(from))).filter(|(_, demand)| demand.query_share > 0.0);
    let plans = plans.filter_map(|(from, demand)| Design::best(&demand).map(|planned| (from, demand, planned)));
    let rate = |(_, _, planned): &(usize, Demand, Planned)| planned.predicted_fpr;
    let Some((from, demand, planned)) = plans.min_by(|one, other| rate(one).total_cmp(&rate(other))) else {
        return Ok(None);
    };
    let hot = evidence.objects.iter().filter(|object| level(object.count) >= from && evidence.misses(object) > 0);
    let negatives = HotNegatives::new(hot.map(|object| object.hash).collect(), planned.design, demand.query_share)?;
    let num_hashes = Size::for_cells(planned.first_bits as u64, demand.members.max(1.0) as u64)?.num_hashes;
    let class = |key_share, query_share| KeyClass { num_hashes, key_share, query_share };
    let bits_per_key = options.memory_bits as f64 / evidence.mean_set_size();
    Ok(Some(Candidate {
        scheme: Arc::new(Scheme::new(evidence.hashing, bits_per_key, Recipe::Stacked(negatives))?),
        predicted_fpr: planned.predicted_fpr,
        filter_bits: options.memory_bits,
        classes: vec![class(1.0, 1.0 - demand.query_share), class(0.0, demand.query_share)],
        lower_bound: None,
        starts: Vec::new(),
    }))
}

/// The filters with classes that are possible: told apart by a map, and by length where hashes carry it.
pub(super) fn popularity(evidence: &Evidence, options: &Options, notes: &mut Vec<String>) -> Result<Vec<Candidate>> {
    let fit = Fit { evidence, options };
    let mapped = fit.mapped()?;
    if mapped.is_none() {
        notes.push(format!(
            "a map of hot keys does not fit into {} bits beside the filter of a set; shared by more sets, it would \
             cost each less",
            options.memory_bits
        ));
    }
    Ok(mapped.into_iter().chain(fit.by_length()?).collect())
}

/// The widths that maps are tried with.
const WIDTHS: RangeInclusive<u32> = 1..=10;
/// The most classes of exceptions: two classes in all get nearly what four do.
const MAX_CODES: usize = 3;
/// Bits of a scheme besides its map: header, classes.
const OVERHEAD_BITS: u64 = 1600;
/// Lengths with fewer members and negative queries than this belong to the default class.
const LEAST_SEEN: f64 = 50.0;

/// Which buckets are exceptions, and of which class each is.
struct Grouping {
    /// The first bucket of every class of exceptions, ascending.
    starts: Vec<usize>,
    width: u32,
    solution: popularity::Solution,
    shares: Vec<popularity::Share>,
}

struct Fit<'e> {
    evidence: &'e Evidence,
    options: &'e Options,
}

impl Fit<'_> {
    /// Bits a key that are left for a set's filter beside its share of the scheme.
    fn bits_per_key(&self, table_bits: u64) -> Option<f64> {
        let share = table_bits as f64 / self.evidence.sets_sharing as f64;
        let left = self.options.memory_bits as f64 - share;
        (left >= 512.0).then(|| left / self.evidence.mean_set_size())
    }

    fn solve(&self, classes: Vec<popularity::Share>, bits_per_key: f64) -> Result<popularity::Solution> {
        Allocation::new(classes, bits_per_key, range(self.options))?.solve_with(self.options.solver)
    }

    /// Buckets of at least `from` in a map of `width` bits, the others in the default class.
    fn grouping(&self, from: usize, width: u32) -> Result<Option<Grouping>> {
        let buckets = &self.evidence.buckets;
        let keys: f64 = buckets[from..].iter().map(|bucket| bucket.keys).sum();
        let table = Shape::for_keys(keys as u64, width).bits() + OVERHEAD_BITS;
        let Some(bits_per_key) = self.bits_per_key(table).filter(|_| keys > 0.0) else { return Ok(None) };
        // First every bucket is a class of its own; then buckets with the same number of hashes become one.
        let alone = [&[from][..], &(from + 1..LEVELS).collect::<Vec<_>>()].concat();
        let apart = self.solve(self.shares(&alone, 0.0), bits_per_key)?;
        let starts = merged(&alone, &apart.hashes[1..]);
        if starts.len() >= 1 << width {
            return Ok(None);
        }
        let shares = self.shares(&starts, libm::exp2(-f64::from(width)));
        let solution = self.solve(shares.clone(), bits_per_key)?;
        Ok(Some(Grouping { starts, width, solution, shares }))
    }

    /// The shares of the default class and of the exceptions that start at these buckets. Each class of exceptions
    /// takes a share `misread` of the default's keys for its own.
    fn shares(&self, starts: &[usize], misread: f64) -> Vec<popularity::Share> {
        let smoothing = if self.evidence.stands_alone() { 0.0 } else { 0.5 };
        let sum = |buckets: &[Bucket]| {
            let members: f64 = buckets.iter().map(|bucket| bucket.members).sum();
            (members + smoothing, buckets.iter().map(|bucket| bucket.misses).sum::<f64>())
        };
        let default = sum(&self.evidence.buckets[..starts[0]]);
        let kept = 1.0 - misread * starts.len() as f64;
        let mut shares = vec![popularity::Share::new(default.0 * kept, default.1 * kept)];
        for (place, start) in starts.iter().enumerate() {
            let end = starts.get(place + 1).copied().unwrap_or(LEVELS);
            let own = sum(&self.evidence.buckets[*start..end]);
            shares.push(popularity::Share::new(own.0 + misread * default.0, own.1 + misread * default.1));
        }
        shares
    }

    fn mapped(&self) -> Result<Option<Candidate>> {
        let mut best: Option<Grouping> = None;
        for from in 1..LEVELS {
            for width in WIDTHS {
                let Some(grouping) = self.grouping(from, width)? else { continue };
                if best.as_ref().is_none_or(|best| grouping.solution.fpr < best.solution.fpr) {
                    best = Some(grouping);
                }
            }
        }
        best.map(|grouping| self.candidate(&grouping)).transpose()
    }

    fn candidate(&self, grouping: &Grouping) -> Result<Candidate> {
        let class_of = |object: &Object| exception_class(&grouping.starts, object.count);
        let exceptions: Vec<(KeyHash, u8)> =
            self.evidence.objects.iter().filter_map(|object| Some((object.hash, class_of(object)?))).collect();
        let classes =
            self.classes(&grouping.shares, &grouping.solution)?.with_exceptions(&exceptions, grouping.width)?;
        self.finished(classes, &grouping.shares, grouping.starts.clone())
    }

    fn classes(&self, shares: &[popularity::Share], solution: &popularity::Solution) -> Result<Classes> {
        let members: f64 = shares.iter().map(|share| share.members).sum();
        let misses: f64 = shares.iter().map(|share| share.misses).sum();
        let class = |(share, hashes): (&popularity::Share, &u8)| KeyClass {
            num_hashes: u32::from(*hashes),
            key_share: share.members / members,
            query_share: share.misses / misses,
        };
        Classes::new(shares.iter().zip(&solution.hashes).map(class).collect())
    }

    /// The candidate, at the memory that its scheme really leaves.
    fn finished(&self, classes: Classes, shares: &[popularity::Share], starts: Vec<usize>) -> Result<Candidate> {
        let (evidence, memory) = (self.evidence, self.options.memory_bits);
        let draft = Scheme::new(evidence.hashing, 1.0, Recipe::Popularity(classes.clone()))?;
        let table_share = draft.table_bits().div_ceil(evidence.sets_sharing);
        let filter_bits = memory.saturating_sub(table_share).max(1);
        let bits_per_key = filter_bits as f64 / evidence.mean_set_size();
        let certified = Allocation::new(shares.to_vec(), bits_per_key, range(self.options))?.solve();
        Ok(Candidate {
            predicted_fpr: classes.predicted_fpr(filter_bits, evidence.mean_set_size()),
            classes: classes.all().to_vec(),
            filter_bits,
            scheme: Arc::new(Scheme::new(evidence.hashing, bits_per_key, Recipe::Popularity(classes))?),
            lower_bound: Some(certified.lower_bound),
            starts,
        })
    }

    /// Classes by the length of keys: no map at all.
    fn by_length(&self) -> Result<Option<Candidate>> {
        let Some(lengths) = &self.evidence.lengths else { return Ok(None) };
        let Some(bits_per_key) = self.bits_per_key(256 * 8 + OVERHEAD_BITS) else { return Ok(None) };
        let (places, shares) = common_lengths(lengths);
        let solution = self.solve(shares.clone(), bits_per_key)?;
        // One class for every number of hashes that occurs.
        let mut hashes = solution.hashes.clone();
        hashes.sort_unstable();
        hashes.dedup();
        let class_of = |place: usize| hashes.partition_point(|count| *count < solution.hashes[place]);
        let mut grouped = vec![popularity::Share::new(0.0, 0.0); hashes.len()];
        for (place, share) in shares.iter().enumerate() {
            grouped[class_of(place)].members += share.members;
            grouped[class_of(place)].misses += share.misses;
        }
        let by_length = std::array::from_fn(|length| class_of(places[length]) as u8);
        let solution = popularity::Solution { hashes: hashes.clone(), ..solution.clone() };
        let classes = self.classes(&grouped, &solution)?.by_length(by_length)?;
        self.finished(classes, &grouped, Vec::new()).map(Some)
    }
}

/// The place of every length among those that are common enough to be told apart, and what each place got. Place 0 is
/// all rare lengths together. Half a member and half a query are added everywhere, so that nothing counts as impossible.
fn common_lengths(lengths: &[Bucket]) -> (Vec<usize>, Vec<popularity::Share>) {
    let mut shares = vec![popularity::Share::new(0.5, 0.5)];
    let mut places = Vec::with_capacity(lengths.len());
    for bucket in lengths {
        let place = if bucket.members + bucket.misses < LEAST_SEEN { 0 } else { shares.len() };
        if place == shares.len() {
            shares.push(popularity::Share::new(0.5, 0.5));
        }
        shares[place].members += bucket.members;
        shares[place].misses += bucket.misses;
        places.push(place);
    }
    (places, shares)
}

/// The starts of runs of equal numbers of hashes, at most [`MAX_CODES`] of them: the closest are joined.
fn merged(starts: &[usize], hashes: &[u8]) -> Vec<usize> {
    let mut runs: Vec<(usize, u8)> = Vec::new();
    for (start, hashes) in starts.iter().zip(hashes) {
        if runs.last().is_none_or(|(_, last)| last != hashes) {
            runs.push((*start, *hashes));
        }
    }
    while runs.len() > MAX_CODES {
        let gap = |place: usize| runs[place].1.abs_diff(runs[place - 1].1);
        let closest = (1..runs.len()).min_by_key(|place| gap(*place)).unwrap_or(1);
        runs.remove(closest);
    }
    runs.into_iter().map(|(start, _)| start).collect()
}
