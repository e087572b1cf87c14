//! Parameters, and what they really keep.

use super::stage::StageHeader;
use super::{KIND, MAX_STAGES, options};
use everbloom::kind::{FillAt, Parameter, Takes, Unset};
use everbloom::sizing::Size;
use everbloom::sizing::closed_forms::{bloom_fill, bloom_fpr, largest};
use everbloom::{Error, Goal, Hashing, Holds, Plan, Promise, Result, Spec};
use everbloom_cells::bits::Bits;

pub(super) const PARAMETERS: [Parameter; 4] = [
    Parameter::planned("capacity", "keys that the first stage takes", Takes::Whole(1, MAX_CAPACITY)),
    Parameter::planned("error_rate", "the rate that RedisBloom is asked to keep", Takes::Within(0.0, 1.0)),
    Parameter::planned(
        "expansion",
        "how many times as many keys the next stage takes; 0 if there is none",
        Takes::Whole(0, u32::MAX as u64),
    )
    .or(Unset::Value("2")),
    Parameter::planned("options", "RedisBloom's option bits: 5, or 13 if it does not grow", Takes::Whole(4, 15))
        .or(Unset::Derived("5, or 13 if expansion is 0")),
];

/// Keys of the first stage where nothing is said, as RedisBloom has it.
const DEFAULT_CAPACITY: u64 = 100;
const DEFAULT_EXPANSION: u32 = 2;
const DEFAULT_OPTIONS: u32 = options::NO_ROUND | options::HASH_64;
const MAX_CAPACITY: u64 = 1 << 56;
/// What counting the ways in which two keys' steps can be equal, opposite or double comes to, rounded up.
const EQUAL_STEPS: f64 = 8.0;

/// By what a filter of RedisBloom's begins.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Keys that the first stage takes.
    pub capacity: u64,
    /// The rate that RedisBloom is asked to keep: the first stage has half of it if there may be others.
    pub error_rate: f64,
    /// How many times as many keys the next stage takes.
    pub expansion: u32,
    /// See [`options`].
    pub options: u32,
}

impl Parameters {
    /// A filter that grows, each stage twice as large as the one before.
    pub fn new(capacity: u64, error_rate: f64) -> Self {
        Parameters { capacity, error_rate, expansion: DEFAULT_EXPANSION, options: DEFAULT_OPTIONS }
    }

    /// Sets how much larger each stage is than the one before.
    pub fn expansion(self, expansion: u32) -> Self {
        Parameters { expansion, ..self }
    }

    /// Refuses what goes beyond its first stage.
    pub fn nonscaling(self) -> Self {
        Parameters { options: self.options | options::NO_SCALING, ..self }
    }

    /// Whether stages follow the first.
    pub fn scales(&self) -> bool {
        self.options & options::NO_SCALING == 0
    }

    /// The sizes of the first stage.
    pub fn first_stage(&self) -> Result<StageHeader> {
        StageHeader::new(self.capacity, if self.scales() { self.error_rate * 0.5 } else { self.error_rate })
    }

    pub(super) fn checked(self) -> Result<Self> {
        if !(1..=MAX_CAPACITY).contains(&self.capacity) {
            let remedy = "start with about as many keys as there will be at least";
            return Err(Error::parameter("capacity", self.capacity, "between 1 and 2^56", remedy));
        }
        if !(self.error_rate > 0.0 && self.error_rate < 1.0) {
            return Err(Error::parameter("error_rate", self.error_rate, "above 0 and below 1", "0.01 is usual"));
        }
        if self.options & !options::ALL != 0 || self.options & options::HASH_64 == 0 {
            let remedy = "5 is usual, and 13 for a filter that does not grow";
            return Err(Error::parameter("options", self.options, "4 to 7 or 12 to 15", remedy));
        }
        if self.expansion == 0 && self.scales() {
            let remedy = "2 doubles every stage; options 13 make a filter that does not grow";
            return Err(Error::parameter("expansion", self.expansion, "at least 1 for a filter that grows", remedy));
        }
        self.first_stage()?;
        Ok(self)
    }

    pub(super) fn from_spec(spec: &Spec) -> Result<Self> {
        Self::read(spec, &Goal::new())
    }

    fn read(spec: &Spec, goal: &Goal) -> Result<Self> {
        let expansion = spec.number("expansion")?.unwrap_or(DEFAULT_EXPANSION);
        let usual = if expansion == 0 { DEFAULT_OPTIONS | options::NO_SCALING } else { DEFAULT_OPTIONS };
        let options = spec.number("options")?.unwrap_or(usual);
        let draft = Parameters { capacity: 1, error_rate: 0.5, expansion, options }.checked()?;
        let capacity = spec.number("capacity")?.or(goal.known_items());
        match (spec.value("error_rate", "a rate")?, goal.target_fpr()) {
            (Some(error_rate), _) => Parameters { error_rate, ..draft }.for_keys(capacity, goal),
            (None, Some(target)) => draft.keeping(target, capacity, goal),
            (None, None) => Err(spec.error("error_rate is missing", "add error_rate=…")),
        }
    }

    /// For so many keys, or as many as the memory takes.
    fn for_keys(self, capacity: Option<u64>, goal: &Goal) -> Result<Self> {
        let capacity = match (capacity, goal.most_memory_bits()) {
            (Some(capacity), _) => capacity,
            (None, Some(memory_bits)) => self.checked()?.fitting(memory_bits),
            (None, None) => DEFAULT_CAPACITY,
        };
        Parameters { capacity, ..self }.checked()
    }

    /// The keys of a first stage that fills this memory.
    fn fitting(&self, memory_bits: u64) -> u64 {
        let bits =
            |capacity| Parameters { capacity, ..*self }.first_stage().map_or(u64::MAX, |stage| allocated(&stage));
        largest(MAX_CAPACITY, |capacity| bits(capacity.max(1)) <= memory_bits).max(1)
    }

    /// With the highest rate, of three digits, at which the target is kept; rounded down, which keeps it better.
    fn keeping(self, target: f64, capacity: Option<u64>, goal: &Goal) -> Result<Self> {
        let with = |thousandths: u64| {
            let error_rate = three_digits(target * thousandths as f64 / 1000.0);
            Parameters { error_rate, ..self }.for_keys(capacity, goal)
        };
        let keeps = |tried: &Parameters| tried.promise().fpr_bound <= target;
        let best = largest(1000, |thousandths| with(thousandths.max(1)).is_ok_and(|tried| keeps(&tried)));
        let small = with(best.max(1))?;
        if keeps(&small) {
            return Ok(small);
        }
        Err(Error::Infeasible {
            wanted: format!("a rate of {}", everbloom::kind::rate_text(target)),
            reason: format!("RedisBloom's positions err more often than that in a stage of {} keys", small.capacity),
            remedy: "begin with more keys, or take scalable, which keeps its rate at every size".into(),
        })
    }

    /// The stages that follow one another, as far as they go.
    fn stages(&self) -> impl Iterator<Item = StageHeader> + use<> {
        let (expansion, scales) = (self.expansion, self.scales());
        let next = move |stage: &StageHeader| stage.next(expansion).ok().filter(|_| scales);
        std::iter::successors(self.first_stage().ok(), next).take(MAX_STAGES)
    }

    /// Whether stages are those that these parameters give.
    pub(super) fn gives(&self, stages: &[StageHeader]) -> bool {
        let own = self.stages().take(stages.len());
        own.eq(stages.iter().map(|stage| StageHeader { size: 0, ..*stage }))
    }

    /// Kept for as many keys as all stages take; see the [module](super) for what it is.
    pub fn promise(&self) -> Promise {
        let (mut rate, mut room) = (0.0, 0u64);
        for stage in self.stages() {
            let own = full_rate(&stage);
            (rate, room) = (rate + own, room.saturating_add(stage.entries));
            // Where stages grow, each is at most half of the one before: the rest is no more than the last.
            if self.expansion > 1 && self.scales() && own < rate * 1e-3 {
                (rate, room) = (rate + own, u64::MAX);
                break;
            }
        }
        let holds = if room >= MAX_CAPACITY { Holds::Always } else { Holds::UntilItems(room) };
        Promise::always(rate.min(1.0)).held(holds).missing(0.0)
    }

    /// What is said of filters whose stages came about otherwise.
    pub(super) fn no_promise(&self) -> Promise {
        self.promise().held(Holds::Never)
    }

    pub(super) fn spec(&self) -> Spec {
        Spec::new(KIND.name)
            .with("capacity", self.capacity)
            .with("error_rate", self.error_rate)
            .with("expansion", self.expansion)
            .with("options", self.options)
    }
}

/// A rate with three digits, not above the given one.
fn three_digits(rate: f64) -> f64 {
    let text = format!("{rate:.2e}");
    let rounded: f64 = text.parse().unwrap_or(rate);
    if rounded <= rate { rounded } else { rate }
}

/// The bits that a stage takes in memory.
fn allocated(stage: &StageHeader) -> u64 {
    Bits::byte_length(stage.bits) * 8
}

/// The stage as a Bloom filter.
pub(super) fn size_of(stage: &StageHeader) -> Size {
    Size { num_cells: stage.bits, num_hashes: stage.hashes }
}

/// The rate of a stage with so many keys.
fn rate_at(stage: &StageHeader, items: f64) -> f64 {
    let fill = bloom_fill(stage.bits, items, stage.hashes).0;
    (bloom_fpr(stage.bits, items, stage.hashes) + excess(stage, items, fill)).min(1.0)
}

fn full_rate(stage: &StageHeader) -> f64 {
    rate_at(stage, stage.entries as f64)
}

/// What equal steps cost a stage: see the [module](super).
fn excess(stage: &StageHeader, items: f64, fill: f64) -> f64 {
    let bits = stage.bits as f64;
    let (mut cycles, mut power) = (0.0, 1.0);
    for length in 1..u64::from(stage.hashes) {
        power *= fill;
        if stage.bits.is_multiple_of(length) {
            cycles += power * length.saturating_sub(1).max(1) as f64;
        }
        if power < 1e-9 {
            break;
        }
    }
    let equal_steps = if stage.bits.is_power_of_two() { EQUAL_STEPS * items / bits } else { 0.0 };
    (cycles + equal_steps) / bits
}

/// What they cost as far as was measured: where the bits are no power of two, half of what is promised for.
pub(super) fn likely_excess(stage: &StageHeader, items: f64, fill: f64) -> f64 {
    let bound = excess(stage, items, fill);
    if stage.bits.is_power_of_two() { bound } else { bound / 2.0 }
}

pub(super) fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    if goal.key_hashing().secret_key().is_some() {
        return Err(Error::unsupported(
            KIND.name,
            "take a secret key",
            "its hash is RedisBloom's; take scalable, or leave the key out".into(),
        ));
    }
    let parameters = Parameters::read(spec, goal)?;
    let memory_bits = allocated(&parameters.first_stage()?);
    let mut plan = Plan::new(&KIND, parameters.spec(), memory_bits, parameters.promise(), Hashing::Murmur);
    if goal.key_hashing().seed().is_some_and(|seed| seed != 0) {
        plan.notes.push("it hashes as RedisBloom does, without a seed".into());
    }
    Ok(plan)
}

pub(super) fn fill_at(spec: &Spec) -> Result<Option<FillAt>> {
    let parameters = Parameters::from_spec(spec)?;
    let stages: Vec<StageHeader> = parameters.stages().collect();
    // With so many keys inside: the rate, and the share of bits that are not set.
    let state = move |mut items: f64| {
        let (mut right, mut empty, mut bits) = (1.0, 0.0, 0.0);
        for (at, stage) in stages.iter().enumerate() {
            let is_last = at + 1 == stages.len();
            let inside = if is_last { items } else { items.min(stage.entries as f64) };
            right *= 1.0 - rate_at(stage, inside);
            empty += stage.bits as f64 * (1.0 - bloom_fill(stage.bits, inside, stage.hashes).0);
            bits += stage.bits as f64;
            items -= inside;
            if items <= 0.0 {
                break;
            }
        }
        (1.0 - right, empty / bits)
    };
    Ok(Some(Box::new(state)))
}
