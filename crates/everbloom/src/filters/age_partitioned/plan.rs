//! The parameters of an age-partitioned filter and how a goal becomes them.

use super::KIND;
use super::touched::Touched;
use crate::filter::{Effort, Parameter, Plan, Takes, Unset, one_of};
use crate::promise::{Error, Goal, Holds, MAX_MEMORY_BITS, Promise, Result, Spec, choice_name, rate_text, size_text};
use crate::sizing::closed_forms::{largest, largest_within, poisson_mean, smallest_within};
use libm::{exp, log1p, pow};

/// Slices of a block, k + l of them.
pub(super) const SLICES: u32 = 32;
/// Bits of a slice in a block: a word.
pub(super) const SLICE_BITS: u32 = 64;
/// Bits of a block: four cache lines.
pub(super) const BLOCK_BITS: u64 = SLICES as u64 * SLICE_BITS as u64;

/// Whether a repeat renews a key's age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refresh {
    /// It does: a key stays while it keeps coming.
    Yes,
    /// It does not: a key goes when its first arrival leaves the window.
    No,
}

/// What begins a new generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advance {
    /// The number of arrivals.
    Arrivals,
    /// The caller, by [`AnyFilter::advance`](crate::AnyFilter::advance): for windows of time.
    Caller,
}

const REFRESHES: &[(&str, Refresh)] = &[("yes", Refresh::Yes), ("no", Refresh::No)];
const ADVANCES: &[(&str, Advance)] = &[("arrivals", Advance::Arrivals), ("caller", Advance::Caller)];

pub(super) const PARAMETERS: [Parameter; 5] = [
    Parameter::planned("window", "arrivals within which no repeat is missed", Takes::Whole(1, MAX_WINDOW)),
    Parameter::planned("num_blocks", "blocks of 2048 bits", Takes::Whole(1, MAX_MEMORY_BITS / BLOCK_BITS)),
    Parameter::planned("num_hashes", "slices that a key sets a bit in", Takes::Whole(1, SLICES as u64 - 1)),
    Parameter::planned("refresh", "whether a repeat renews a key's age", one_of!(REFRESHES)).or(Unset::Value("yes")),
    Parameter::planned(
        "advance",
        "what turns the window: the number of arrivals, or the caller, for windows of time",
        one_of!(ADVANCES),
    )
    .or(Unset::Value("arrivals")),
];

/// Longer windows are none.
const MAX_WINDOW: u64 = 1 << 56;

/// The parameters of an age-partitioned filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// Arrivals within which nothing is missed.
    pub window: u64,
    /// Blocks of four cache lines, each a small filter.
    pub num_blocks: u64,
    /// Slices that an insertion sets.
    pub num_hashes: u32,
    /// Whether a repeat renews a key's age.
    pub refresh: Refresh,
    /// What begins a new generation.
    pub advance: Advance,
}

impl Parameters {
    /// Generations that a key survives in full.
    pub fn generations(&self) -> u32 {
        SLICES - self.num_hashes
    }

    /// Arrivals of a generation.
    pub fn generation(&self) -> u64 {
        self.window.div_ceil(self.generations().into())
    }

    /// All the memory: the blocks, and notes of which changed where the caller turns the window.
    pub(super) fn memory_bits(&self) -> u64 {
        let notes = match self.advance {
            Advance::Arrivals => 0,
            Advance::Caller => Touched::memory_bits(self.num_blocks),
        };
        self.num_blocks * BLOCK_BITS + notes
    }

    /// What is promised: always, where arrivals turn the window; where the caller does, only while no
    /// more than a generation's keys come between two turns.
    pub(super) fn promise(&self) -> Promise {
        let holds = match self.advance {
            Advance::Arrivals => Holds::Always,
            Advance::Caller => Holds::UntilItems(self.generation().max(1)),
        };
        Promise { holds, ..Promise::always(self.predicted_fpr()) }
    }

    /// The rate of false positives once every slice is as full as it gets.
    pub fn predicted_fpr(&self) -> f64 {
        let k = f64::from(self.num_hashes);
        let load = k * self.generation() as f64 / self.num_blocks as f64;
        if load > f64::from(SLICE_BITS) * 4.0 {
            // 98 % of the bits are set: useless, and not worth the sum below.
            return 1.0;
        }
        // Neighbouring slices share all but one generation, distant ones none: of the variance that one
        // common load would have, a run of k sees Σ_ij (1 − |i − j|/k) / k².
        let shared = (k + (k - 1.0) * (2.0 * k - 1.0) / 3.0) / (k * k);
        let per_generation = shared / k * log1p(-1.0 / f64::from(SLICE_BITS));
        let rate = poisson_mean(load / shared, |keys| run_rate(exp(keys as f64 * per_generation), self.num_hashes));
        rate.min(1.0)
    }

    pub(super) fn checked(self) -> Result<Self> {
        let bounded = |name, given: u64, most: u64, remedy: &str| match (1..=most).contains(&given) {
            true => Ok(()),
            false => Err(Error::parameter(name, given, format!("between 1 and {most}"), remedy)),
        };
        bounded("window", self.window, MAX_WINDOW, "give the arrivals within which nothing may be missed")?;
        bounded("num_blocks", self.num_blocks, MAX_MEMORY_BITS / BLOCK_BITS, "give at least 2048 bits of memory")?;
        bounded("num_hashes", self.num_hashes.into(), u64::from(SLICES) - 1, "7 hashes suit a target of 1 %")?;
        Ok(self)
    }

    /// What a full spec says.
    pub fn from_spec(spec: &Spec) -> Result<Self> {
        let draft = Draft::new(spec)?;
        draft.with(spec.required("window")?, spec.required("num_blocks")?, spec.required("num_hashes")?).checked()
    }

    pub(super) fn spec(&self) -> Spec {
        Spec::new(KIND.name)
            .with("window", self.window)
            .with("num_blocks", self.num_blocks)
            .with("num_hashes", self.num_hashes)
            .with("refresh", choice_name(REFRESHES, self.refresh))
            .with("advance", choice_name(ADVANCES, self.advance))
    }
}

/// The chance of `length` set bits in a row, if a generation leaves a bit unset with probability `unset`:
/// a run at the youngest slices, or one that begins behind an unset bit. Slices fill up over their first
/// `length` generations.
fn run_rate(unset: f64, length: u32) -> f64 {
    let length = length as usize;
    let mut fills = [0.0; SLICES as usize];
    let mut empty = 1.0;
    for fill in &mut fills[..length] {
        empty *= unset;
        *fill = 1.0 - empty;
    }
    let full = fills[length - 1];
    // From the run that begins last among the young slices to the one that begins first: `rest` is the
    // product of the young slices it covers, `beyond` that of the settled ones.
    let (mut young, mut rest, mut beyond) = (0.0, 1.0, pow(full, length as f64 - 1.0));
    for start in (0..length).rev() {
        rest *= fills[start];
        let before = if start == 0 { 1.0 } else { 1.0 - fills[start - 1] };
        young += rest * beyond * before;
        beyond = if full > 0.0 { beyond / full } else { 0.0 };
    }
    let settled = (SLICES as usize + 1).saturating_sub(2 * length) as f64;
    young + settled * pow(full, length as f64) * (1.0 - full)
}

/// The parameters of a spec that are not sizes.
#[derive(Clone, Copy)]
struct Draft {
    refresh: Refresh,
    advance: Advance,
}

impl Draft {
    fn new(spec: &Spec) -> Result<Self> {
        Ok(Draft {
            refresh: spec.choice("refresh", REFRESHES, Refresh::Yes)?,
            advance: spec.choice("advance", ADVANCES, Advance::Arrivals)?,
        })
    }

    /// The most blocks in this memory, which has room for one at least.
    fn affordable(self, memory_bits: u64) -> u64 {
        largest(memory_bits / BLOCK_BITS, |blocks| self.with(1, blocks, 1).memory_bits() <= memory_bits)
    }

    fn with(self, window: u64, num_blocks: u64, num_hashes: u32) -> Parameters {
        let Draft { refresh, advance } = self;
        Parameters { window, num_blocks, num_hashes, refresh, advance }
    }
}

/// What the turns of the window cost: each empties a word of every block.
pub(super) fn effort(spec: &Spec) -> Result<Option<Effort>> {
    let parameters = Parameters::from_spec(spec)?;
    let changed = match parameters.advance {
        Advance::Arrivals => parameters.num_blocks as f64 / parameters.generation() as f64,
        Advance::Caller => 0.0,
    };
    Ok(Some(Effort { parameter: "window", given: parameters.window, changed, grows: false }))
}

pub(super) fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let draft = Draft::new(spec)?;
    let hashes: Option<u32> = spec.number("num_hashes")?;
    if let Some(num_hashes) = hashes {
        draft.with(1, 1, num_hashes).checked()?;
    }
    let choices = || hashes.map_or(1..=SLICES - 1, |given| given..=given);
    let blocks = spec.number("num_blocks")?;
    let affordable = match (blocks, goal.memory_bits) {
        (Some(blocks), _) => Some(blocks),
        (None, Some(bits)) if bits < BLOCK_BITS => {
            return Err(Error::memory(bits, "at least 256B, one block", "give that much"));
        }
        (None, bits) => bits.map(|bits| draft.affordable(bits)),
    };
    // Without a window of its own: as long as the memory allows, or as many keys as are expected.
    let window = match (spec.number("window")?, affordable) {
        (None, None) => goal.expected_items,
        (given, _) => given,
    };
    let parameters = match (window, affordable, goal.target_fpr) {
        (Some(window), None, Some(target)) => fewest_blocks(draft, window, target, choices())?,
        (Some(window), Some(blocks), target) => {
            let best = lowest_rate(draft, window, blocks, choices())?;
            match target {
                Some(target) if blocks_given(spec) || best.predicted_fpr() <= target => {
                    if blocks_given(spec) {
                        best
                    } else {
                        fewest_blocks(draft, window, target, choices())?
                    }
                }
                Some(target) => return Err(too_long(draft, window, blocks, target, choices())),
                None => best,
            }
        }
        (None, Some(blocks), Some(target)) => {
            longest_window(draft, blocks, target, choices()).ok_or_else(|| Error::Infeasible {
                wanted: format!("a rate of {}", rate_text(target)),
                reason: format!("{blocks} blocks cannot hold a window of one arrival at it"),
                remedy: "give more memory or accept a higher rate".into(),
            })?
        }
        _ => {
            let remedy = "give window= and a target rate, or the memory and one of them";
            return Err(spec.error("too little is known to size it", remedy));
        }
    };
    let parameters = parameters.checked()?;
    Ok(Plan::new(&KIND, parameters.spec(), parameters.memory_bits(), parameters.promise(), goal.hashing))
}

fn blocks_given(spec: &Spec) -> bool {
    spec.get("num_blocks").is_some()
}

type Hashes = std::ops::RangeInclusive<u32>;

/// The fewest blocks that keep the target for the window.
fn fewest_blocks(draft: Draft, window: u64, target: f64, hashes: Hashes) -> Result<Parameters> {
    draft.with(window, 1, *hashes.start()).checked()?;
    let most = (MAX_MEMORY_BITS / BLOCK_BITS).min(window.saturating_mul(1 << 12));
    let blocks_for = |num_hashes: u32| {
        let rate = |blocks| draft.with(window, blocks, num_hashes).predicted_fpr();
        smallest_within(most, target, rate).map(|blocks| draft.with(window, blocks, num_hashes))
    };
    best_by(hashes.map(blocks_for), |parameters| std::cmp::Reverse(parameters.num_blocks)).ok_or_else(|| {
        Error::Infeasible {
            wanted: format!("a rate of {} for a window of {window}", rate_text(target)),
            reason: "no size reaches it".into(),
            remedy: "accept a higher rate".into(),
        }
    })
}

/// The number of hashes with the lowest rate for the window in these blocks.
fn lowest_rate(draft: Draft, window: u64, blocks: u64, hashes: Hashes) -> Result<Parameters> {
    let first = draft.with(window, blocks, *hashes.start()).checked()?;
    let all = hashes.map(|num_hashes| draft.with(window, blocks, num_hashes));
    Ok(all.min_by(|one, other| one.predicted_fpr().total_cmp(&other.predicted_fpr())).unwrap_or(first))
}

/// The longest window that these blocks keep the target for.
fn longest_window(draft: Draft, blocks: u64, target: f64, hashes: Hashes) -> Option<Parameters> {
    let most = blocks.saturating_mul(BLOCK_BITS).min(1 << 56);
    let window_for = |num_hashes: u32| {
        // The rate depends on the generations alone, and a window fills its last one.
        let each = u64::from(SLICES - num_hashes);
        let rate = |generation: u64| draft.with(generation * each, blocks, num_hashes).predicted_fpr();
        let window = (largest_within(most.div_ceil(each), target, rate) * each).min(most);
        (window > 0).then(|| draft.with(window, blocks, num_hashes))
    };
    best_by(hashes.map(window_for), |parameters| parameters.window)
}

/// The parameters with the highest score; scores rise and then fall with the number of hashes, so the
/// search ends when the best is three behind.
fn best_by<S: Ord>(
    candidates: impl Iterator<Item = Option<Parameters>>,
    score: impl Fn(&Parameters) -> S,
) -> Option<Parameters> {
    let mut best: Option<Parameters> = None;
    for candidate in candidates.flatten() {
        match &best {
            Some(found) if score(found) >= score(&candidate) => {
                if candidate.num_hashes > found.num_hashes + 3 {
                    break;
                }
            }
            _ => best = Some(candidate),
        }
    }
    best
}

fn too_long(draft: Draft, window: u64, blocks: u64, target: f64, hashes: Hashes) -> Error {
    let needed = fewest_blocks(draft, window, target, hashes.clone()).map_or(0, |fits| fits.num_blocks * BLOCK_BITS);
    let fitting = longest_window(draft, blocks, target, hashes).map_or(0, |fits| fits.window);
    Error::Infeasible {
        wanted: format!("a window of {window} at a rate of {}", rate_text(target)),
        reason: format!("it needs {}, more than {}", size_text(needed), size_text(blocks * BLOCK_BITS)),
        remedy: format!("give that much memory, or a window of at most {fitting}"),
    }
}
