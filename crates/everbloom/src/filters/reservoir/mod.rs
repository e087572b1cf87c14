//! `reservoir`: the Reservoir-Sampling Bloom filter (RSBF), for streams without end.
//!
//! **Answers** "has this key been here?" in fixed memory, for ever, with both kinds of error. Unlike the
//! stable filter it does not let keys fade by themselves: a bit is cleared only to make room for
//! another, so half of the bits end up set and stay so.
//!
//! # How it works
//!
//! `num_filters` bit arrays of `filter_bits` bits, one probe in each. Arrival number i is inserted as
//! reservoir sampling would: always while i ≤ `filter_bits`, then with probability `filter_bits`/i.
//! Late in the stream hardly anything would get in, so a distinct arrival is inserted anyway
//! (unless its draw falls below `insert_floor`).
//!
//! ```text
//! array 0   0 1 1 0 0 1 0 0      reservoir insertion: clear one bit anywhere (here 4, it was 0),
//!             ^     *   ^        then set the probe (6)
//! after     0 1 1 0 0 1 1 0
//!
//! array 0   0 1 1 0 0 1 0 0      forced insertion of a distinct arrival: where the probe (6) is 0,
//!             *         ^        clear a **set** bit (1), then set the probe
//! after     0 0 1 0 0 1 1 0
//! ```
//!
//! # Readings
//!
//! The printed Algorithm 1 (\[Dutta et al. 2012\]) taken literally does not reset a bit on a reservoir insertion
//! and saturates: FPR 75 % where the paper prints 11 %. The reading above, with the reset also during
//! the first `filter_bits` arrivals, gives the paper's tables to within their spread (PAPERS.md).
//!
//! # Theory
//!
//! A reservoir insertion moves the share of set bits towards ½ and a forced one leaves it, so from below
//! FPR → 2^−k for k arrays. The paper's own closed forms (eqs. 5.13–5.17) rest on a bound that does not
//! hold (γ ≤ 1 in eq. 5.12, where γ ≈ s) and predict 1e-7 where 87 % is measured; they are not used.
//!
//! **On a described stream** the spread layout is predicted by its chain over time (`reservoir/forecast.rs`): FNR
//! 74.9 and 86.8 % where the reference has 74.76 and 86.80. Its FNR comes out 1 to 2 % too high, relatively,
//! where keys repeat often (70 % repeats: 72.5 for 71.5), and 13 % too high on a Zipf stream with exponent 1.05 and
//! 1 bit an arrival (14.2 for 12.6). The blocked layout is simulated small.
//!
//! The paper picks k as the mean of 1 and ln(FPR)/ln(1 − 1/e): `setting=balanced`; `low_fnr` is k = 1
//! and `low_fpr` the full formula. **These settings promise nothing** (k = 6 for 1 % measures 1.3–1.5 %).
//! A goal takes the smallest k with 2^−k within the target.
//!
//! The paper leaves other bias functions to future work: `bias=constant` inserts with a fixed
//! probability, `bias=exponential` with one that halves every `filter_bits` arrivals.
//!
//! # Layout
//!
//! `layout=spread` is the paper's. `layout=blocked`, which a planned filter takes, puts an arrival's bits
//! and those that are cleared for it into one cache line; arrivals fall on lines evenly, so each line is a
//! small filter with the same share of set bits. A spec with numbers of its own means the paper's layout.
//!
//! # Cost
//!
//! One cache line an arrival (blocked), or two per array (spread), asked for ahead in batches.
//!
//! # When to choose it
//!
//! To compare with the paper. At equal memory and FPR it is no better than a stable filter with two
//! decrements, and [`Ranked`](super::Ranked) remembers more than either.
//!
//! # Example
//!
//! ```
//! use everbloom::internal::FilterExt;
//! use everbloom::{Goal, Importance};
//!
//! let mut seen = Goal::new().memory_bits(1 << 20).fpr(0.01).plan("reservoir")?.build()?;
//! for key in 0..20_000u64 {
//!     seen.observe(&key, Importance::FULL);
//! }
//! // Seven bits, each of which outlives t later arrivals with e^(−t/149,796): 65 % on average.
//! let remembered = (0..20_000u64).filter(|key| seen.contains(key)).count();
//! assert!((12_600..13_600).contains(&remembered), "{remembered} of 20,000");
//! # Ok::<(), everbloom::Error>(())
//! ```

mod forecast;
mod line;

use crate::cells::buffer::{Buffer, LINE_BITS, Line};
use crate::filter::{Abilities, Base, Body, Filter, Kind, Model, Restore, observe_one, shows_base};
use crate::format::StateWriter;
use crate::key::{Generator, Hashing, KeyHash, finalise};
use crate::promise::{
    Error, Goal, Holds, Importance, Importances, MAX_MEMORY_BITS, Plan, Promise, Result, Spec, Status, Verdict,
    choice_name,
};
use crate::simd::{CACHED_BYTES, Kernel, SimdOps, distance_for, prefetch, run};
use libm::{log, pow};
use line::Rule;

pub(crate) const KIND: Kind = Kind {
    id: 11,
    name: "reservoir",
    summary: "reservoir-sampling Bloom filter: fixed memory for ever, keeps half of its bits set",
    parameters: &["memory_bits", "num_filters", "insert_floor", "setting", "bias", "layout"],
    can: Abilities::STREAM,
    model: Model {
        unit: |spec| Ok(if spec.get("layout") == Some("blocked") { LINE_BITS } else { 1 }),
        choices: &[
            ("num_filters", &["1", "2", "3", "4", "5", "6", "7", "8"]),
            ("insert_floor", &["0.01", "0.03", "0.1"]),
        ],
        forecast: forecast::forecast,
        ..Model::sized(&["memory_bits"])
    },
    plan: planned,
    build: |plan| Ok(Box::new(Reservoir::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Reservoir::restore(from)?)),
    map: None,
};

/// How the probability of insertion depends on the number of arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bias {
    /// `filter_bits`/i, as in the paper.
    Reservoir,
    /// Always one in ten.
    Constant,
    /// Halving every `filter_bits` arrivals.
    Exponential,
}

/// Where an arrival's bits lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// One in each array, anywhere, as in the paper.
    Spread,
    /// All in one cache line, those that are cleared for it, too.
    Blocked,
}

/// The paper's three ways to pick the number of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Balanced,
    LowFnr,
    LowFpr,
}

const BIASES: &[(&str, Bias)] =
    &[("reservoir", Bias::Reservoir), ("constant", Bias::Constant), ("exponential", Bias::Exponential)];
const LAYOUTS: &[(&str, Layout)] = &[("spread", Layout::Spread), ("blocked", Layout::Blocked)];
const SETTINGS: &[(&str, Option<Setting>)] =
    &[("balanced", Some(Setting::Balanced)), ("low_fnr", Some(Setting::LowFnr)), ("low_fpr", Some(Setting::LowFpr))];

/// The paper's p*.
pub const DEFAULT_INSERT_FLOOR: f64 = 0.03;
const CONSTANT_PROBABILITY: f64 = 0.1;
const MAX_FILTERS: u32 = 64;

/// The parameters of a reservoir filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Bits in all.
    pub memory_bits: u64,
    /// Bit arrays, and so probes.
    pub num_filters: u32,
    /// Distinct arrivals whose draw is below this are not forced in.
    pub insert_floor: f64,
    /// How the probability of insertion falls.
    pub bias: Bias,
    /// Where an arrival's bits lie.
    pub layout: Layout,
}

impl Parameters {
    /// Bits of one array.
    pub fn filter_bits(&self) -> u64 {
        self.memory_bits / u64::from(self.num_filters)
    }

    /// Arrays begin at a word, so that a set bit can be found by words.
    fn words_per_filter(&self) -> u64 {
        self.filter_bits().div_ceil(64)
    }

    fn body_bytes(&self) -> u64 {
        if self.layout == Layout::Blocked {
            return self.memory_bits / 8;
        }
        (self.words_per_filter() * u64::from(self.num_filters)).div_ceil(8) * 64
    }

    fn checked(self) -> Result<Self> {
        if !(1..=MAX_FILTERS).contains(&self.num_filters) {
            let needed = format!("between 1 and {MAX_FILTERS}");
            return Err(Error::parameter("num_filters", self.num_filters, needed, "7 arrays keep 1 %"));
        }
        if self.filter_bits() == 0 || self.memory_bits > MAX_MEMORY_BITS {
            let needed = format!("between {} and {MAX_MEMORY_BITS}: a bit for each array", self.num_filters);
            return Err(Error::parameter("memory_bits", self.memory_bits, needed, "give more memory or fewer arrays"));
        }
        if self.layout == Layout::Blocked && !self.memory_bits.is_multiple_of(LINE_BITS) {
            let remedy = format!("take {}, or layout=spread", self.memory_bits.next_multiple_of(LINE_BITS));
            let needed = "a multiple of 512, the bits of a cache line, in the blocked layout";
            return Err(Error::parameter("memory_bits", self.memory_bits, needed, remedy));
        }
        if !(0.0..=1.0).contains(&self.insert_floor) {
            return Err(Error::parameter("insert_floor", self.insert_floor, "between 0 and 1", "the paper takes 0.03"));
        }
        Ok(self)
    }

    fn from_spec(spec: &Spec) -> Result<Self> {
        Parameters {
            memory_bits: spec.required("memory_bits")?,
            num_filters: spec.required("num_filters")?,
            insert_floor: spec.value("insert_floor", "a probability")?.unwrap_or(DEFAULT_INSERT_FLOOR),
            bias: spec.choice("bias", BIASES, Bias::Reservoir)?,
            layout: spec.choice("layout", LAYOUTS, Layout::Spread)?,
        }
        .checked()
    }

    fn spec(&self) -> Spec {
        Spec::new(KIND.name)
            .with("memory_bits", self.memory_bits)
            .with("num_filters", self.num_filters)
            .with("insert_floor", self.insert_floor)
            .with("bias", choice_name(BIASES, self.bias))
            .with("layout", choice_name(LAYOUTS, self.layout))
    }

    /// The rate of false positives once half of the bits are set, and never before.
    ///
    /// The share of set bits varies by ±√(1/8s), which lifts its k-th power a little; in the blocked
    /// layout s is the line, and where a key has more than eight bits, two may fall on the same bit of a word.
    pub fn predicted_fpr(&self) -> f64 {
        let k = f64::from(self.num_filters);
        let (s, shared) = match self.layout {
            Layout::Spread => (self.filter_bits() as f64, 0.0),
            Layout::Blocked => (LINE_BITS as f64, pairs_in_words(self.num_filters)),
        };
        (pow(0.5, k) * (1.0 + k * (k - 1.0) / (4.0 * s)) * pow(1.0 + 1.0 / 64.0, shared)).min(1.0)
    }
}

impl Bias {
    /// The probability that arrival number `arrival` (from 1) is inserted by sampling, where an array
    /// has `filter_bits`.
    #[inline]
    fn insert_prob(self, filter_bits: u64, arrival: u64) -> f64 {
        if arrival <= filter_bits {
            return 1.0;
        }
        match self {
            Bias::Reservoir => filter_bits as f64 / arrival as f64,
            Bias::Constant => CONSTANT_PROBABILITY,
            Bias::Exponential => pow(0.5, (arrival - filter_bits) as f64 / filter_bits as f64),
        }
    }
}

/// How many pairs of a key's bits share a word, dealt out over eight of them.
fn pairs_in_words(num_filters: u32) -> f64 {
    let in_word = |word: u32| f64::from((num_filters + 7 - word) / 8);
    (0..8).map(|word| in_word(word) * (in_word(word) - 1.0) / 2.0).sum()
}

/// The paper's number of arrays for a target rate.
fn paper_filters(setting: Setting, target: f64) -> u32 {
    let full = log(target) / log(1.0 - 1.0 / std::f64::consts::E);
    let filters = match setting {
        Setting::LowFnr => 1.0,
        Setting::LowFpr => full.round(),
        Setting::Balanced => ((1.0 + full) / 2.0).round(),
    };
    (filters as u32).clamp(1, MAX_FILTERS)
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    let setting = spec.choice("setting", SETTINGS, None)?;
    let given_memory = spec.number("memory_bits")?;
    // Numbers given by hand or by a setting of the paper's mean the paper's filter.
    let by_hand = given_memory.is_some() || spec.get("num_filters").is_some() || setting.is_some();
    let layout = spec.choice("layout", LAYOUTS, if by_hand { Layout::Spread } else { Layout::Blocked })?;
    let with_filters = |num_filters: u32, goal: &Goal| -> Result<Parameters> {
        let memory_bits = match given_memory {
            Some(given) => given,
            None if layout == Layout::Blocked => goal.required_memory()? / LINE_BITS * LINE_BITS,
            // Whole lines in all and whole words in each array, so that nothing is lost to padding.
            None => {
                goal.required_memory()? / 512 * 512 / u64::from(num_filters.max(1)) / 64 * 64 * u64::from(num_filters)
            }
        };
        Parameters {
            memory_bits,
            num_filters,
            insert_floor: spec.value("insert_floor", "a probability")?.unwrap_or(DEFAULT_INSERT_FLOOR),
            bias: spec.choice("bias", BIASES, Bias::Reservoir)?,
            layout,
        }
        .checked()
    };
    let (parameters, holds) = match (spec.number("num_filters")?, setting) {
        (Some(num_filters), None) => (with_filters(num_filters, goal)?, Holds::Never),
        (Some(_), Some(_)) => {
            return Err(spec.error("both num_filters and setting are given", "give one of them"));
        }
        (None, Some(setting)) => (with_filters(paper_filters(setting, goal.required_fpr()?), goal)?, Holds::Never),
        (None, None) => (keeping(goal.required_fpr()?, |filters| with_filters(filters, goal))?, Holds::Always),
    };
    let promise = Promise { holds, ..Promise::always(parameters.predicted_fpr()) };
    let memory_bits = parameters.body_bytes() * 8;
    Ok(Plan::new(parameters.spec(), memory_bits, promise, goal.hashing))
}

/// The fewest arrays that keep the target.
fn keeping(target: f64, with_filters: impl Fn(u32) -> Result<Parameters>) -> Result<Parameters> {
    for num_filters in 1..=MAX_FILTERS {
        let parameters = with_filters(num_filters)?;
        if parameters.predicted_fpr() <= target {
            return Ok(parameters);
        }
    }
    Err(Error::Infeasible {
        wanted: format!("a rate of {target}"),
        reason: format!("{MAX_FILTERS} arrays do not reach it"),
        remedy: "accept a higher rate".into(),
    })
}

/// The reservoir-sampling Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Reservoir {
    parameters: Parameters,
    base: Base,
    bits: Buffer,
    generator: Generator,
    /// As the parameters give them; kept, since each takes a division.
    filter_bits: u64,
    words_per_filter: u64,
}

impl Reservoir {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        let promise = Promise { holds: Holds::Never, ..Promise::always(parameters.predicted_fpr()) };
        Self::with_base(parameters, Base::new(parameters.spec(), hashing, promise))
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        Ok(Reservoir {
            parameters,
            bits: Buffer::with_lines(parameters.body_bytes() / 64)?,
            generator: Generator::for_filter(&base.hashing),
            base,
            filter_bits: parameters.filter_bits(),
            words_per_filter: parameters.words_per_filter(),
        })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan))
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        from.body.expect_bytes(parameters.body_bytes())?;
        let mut filter = Self::with_base(parameters, Base::restored(parameters.spec(), &mut from)?)?;
        filter.generator = from.state.generator()?;
        from.state.finish()?;
        from.body.fill(filter.bits.bytes_mut())?;
        filter.check()?;
        Ok(filter)
    }

    /// Refuses bits outside the arrays, and arrays without a bit to clear.
    fn check(&self) -> Result<()> {
        if self.parameters.layout == Layout::Blocked {
            // Every bit is in use, and a line that no key has chosen is rightly empty.
            return Ok(());
        }
        let (per_filter, rest) = (self.parameters.words_per_filter() as usize, self.parameters.filter_bits() % 64);
        let inside = if rest == 0 { u64::MAX } else { (1 << rest) - 1 };
        let (arrays, padding) = self.bits.words().split_at(per_filter * self.parameters.num_filters as usize);
        let stray = padding.iter().any(|word| *word != 0)
            || arrays.chunks(per_filter).any(|array| array[per_filter - 1] & !inside != 0);
        let empty =
            self.base.arrivals > 0 && arrays.chunks(per_filter).any(|array| array.iter().all(|word| *word == 0));
        match (stray, empty) {
            (true, _) => Err(Error::corrupt("the filter has bits set beyond its arrays")),
            (_, true) => Err(Error::corrupt("the filter has an empty array after arrivals")),
            _ => Ok(()),
        }
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// The share of bits that are set.
    pub fn ones(&self) -> f64 {
        let bits = match self.parameters.layout {
            Layout::Spread => self.parameters.filter_bits() * u64::from(self.parameters.num_filters),
            Layout::Blocked => self.parameters.memory_bits,
        };
        self.bits.count_ones() as f64 / bits as f64
    }

    /// The probed bit of each array, as positions in the whole.
    #[inline(always)]
    fn places(&self, hash: KeyHash) -> impl Iterator<Item = u64> + use<> {
        let start_step = self.words_per_filter * 64;
        let probes = hash.probes(self.filter_bits).take(self.parameters.num_filters as usize);
        probes.zip(0..).map(move |(probe, filter)| filter * start_step + probe)
    }

    #[inline]
    fn get(&self, place: u64) -> bool {
        self.bits.words()[(place / 64) as usize] >> (place % 64) & 1 == 1
    }

    #[inline(always)]
    fn set(&mut self, place: u64) {
        self.bits.words_mut()[(place / 64) as usize] |= 1 << (place % 64);
    }

    #[inline(always)]
    fn unset(&mut self, place: u64) {
        self.bits.words_mut()[(place / 64) as usize] &= !(1 << (place % 64));
    }

    /// Clears the first set bit of an array at or after `place` in its word, cyclically, or else in
    /// the next word that has one. A start drawn at random makes it a random set bit in O(1).
    #[inline]
    fn unset_from(&mut self, place: u64, filter: u64) {
        let per_filter = self.words_per_filter;
        let (first, turn) = (filter * per_filter, (place % 64) as u32);
        let array = &mut self.bits.words_mut()[first as usize..(first + per_filter) as usize];
        let start = (place / 64 - first) as usize;
        for step in 0..array.len() {
            let at = if start + step < array.len() { start + step } else { start + step - array.len() };
            let turned = array[at].rotate_right(turn);
            if turned != 0 {
                array[at] = (turned & (turned - 1)).rotate_left(turn);
                return;
            }
        }
    }

    /// Fills in where an arrival's bits lie, and asks for them if that pays.
    #[inline(always)]
    fn locate(&self, asks: bool, hash: KeyHash, draw: u64, probed: &mut [u64], random: &mut [u64]) {
        probed.iter_mut().zip(self.places(hash)).for_each(|(to, place)| *to = place);
        // The random bit of each array that goes with a draw.
        let drawn = KeyHash { high: finalise(draw), low: draw.rotate_left(23) };
        random.iter_mut().zip(self.places(drawn)).for_each(|(to, place)| *to = place);
        if asks {
            probed.iter().chain(random.iter()).for_each(|place| self.bits.prefetch_word(place / 64));
        }
    }

    /// One arrival at its bits.
    #[inline(always)]
    fn observe_at(&mut self, draw: u64, probed: &[u64], random: &[u64]) -> Verdict {
        self.base.count(1);
        // All of them: which is the first to be missing cannot be predicted, so stopping early does not pay.
        let seen = probed.iter().fold(true, |seen, place| seen & self.get(*place));
        let unit = (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        if unit <= self.parameters.bias.insert_prob(self.filter_bits, self.base.arrivals) {
            random.iter().for_each(|place| self.unset(*place));
            probed.iter().for_each(|place| self.set(*place));
        } else if !seen && unit > self.parameters.insert_floor {
            for (filter, (place, random)) in probed.iter().zip(random).enumerate() {
                if !self.get(*place) {
                    self.unset_from(*random, filter as u64);
                    self.set(*place);
                }
            }
        }
        Verdict::from_seen(seen)
    }
}

impl Reservoir {
    fn observe_chunk(&mut self, hashes: &[KeyHash], draws: &[u64], verdicts: &mut [Verdict]) {
        let filter = self;
        if filter.parameters.layout == Layout::Blocked {
            return run(ObserveLines { filter, hashes, draws, verdicts });
        }
        match filter.parameters.num_filters {
            0..=4 => run(ObserveArrays::<4> { filter, hashes, draws, verdicts }),
            5..=8 => run(ObserveArrays::<8> { filter, hashes, draws, verdicts }),
            9..=16 => run(ObserveArrays::<16> { filter, hashes, draws, verdicts }),
            _ => run(ObserveArrays::<{ MAX_FILTERS as usize }> { filter, hashes, draws, verdicts }),
        }
    }
}

impl Reservoir {
    #[inline]
    fn rule(&self) -> Rule {
        let Parameters { num_filters, insert_floor, bias, .. } = self.parameters;
        Rule { num_filters, filter_bits: self.filter_bits, insert_floor, bias }
    }

    fn line(&self, hash: KeyHash) -> &Line {
        let lines = self.bits.lines();
        &lines[hash.index(lines.len() as u64) as usize]
    }
}

/// Arrivals at a filter of the blocked layout.
struct ObserveLines<'a> {
    filter: &'a mut Reservoir,
    hashes: &'a [KeyHash],
    draws: &'a [u64],
    verdicts: &'a mut [Verdict],
}

impl Kernel for ObserveLines<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ops: impl SimdOps) {
        let ObserveLines { filter, hashes, draws, verdicts } = self;
        let (rule, before) = (filter.rule(), filter.base.arrivals);
        filter.base.count(hashes.len());
        let lines = filter.bits.lines_mut();
        let (count, distance) = (lines.len() as u64, distance_for(lines));
        for (index, ((hash, draw), verdict)) in hashes.iter().zip(draws).zip(verdicts).enumerate() {
            if let Some(ahead) = hashes.get(index + distance).filter(|_| distance > 0) {
                prefetch(lines, ahead.index(count) as usize);
            }
            let line = &mut lines[hash.index(count) as usize];
            let arrival = before.saturating_add(index as u64 + 1);
            *verdict = line::observe(ops, &rule, line, (*hash, *draw, arrival));
        }
    }
}

/// Arrivals whose bits are asked for together.
const PART: usize = 8;

/// Arrivals at a filter of at most `K` arrays: where a part's bits lie is found, and they are asked
/// for, before the part ahead of it is worked on.
struct ObserveArrays<'a, const K: usize> {
    filter: &'a mut Reservoir,
    hashes: &'a [KeyHash],
    draws: &'a [u64],
    verdicts: &'a mut [Verdict],
}

impl<const K: usize> Kernel for ObserveArrays<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: impl SimdOps) {
        let ObserveArrays { filter, hashes, draws, verdicts } = self;
        let arrays = filter.parameters.num_filters as usize;
        let asks = filter.bits.bytes().len() > CACHED_BYTES;
        let mut places = [[[[0; K]; 2]; PART]; 2];
        let mut parts = hashes.chunks(PART).zip(draws.chunks(PART));
        let mut ahead = hashes.chunks(PART).zip(draws.chunks(PART));
        for (turn, verdicts) in (0..).zip(std::iter::once(None).chain(verdicts.chunks_mut(PART).map(Some))) {
            if let Some((hashes, draws)) = ahead.next() {
                for ((hash, draw), [probed, random]) in hashes.iter().zip(draws).zip(&mut places[turn % 2]) {
                    filter.locate(asks, *hash, *draw, &mut probed[..arrays], &mut random[..arrays]);
                }
            }
            let (Some(verdicts), Some((_, draws))) = (verdicts, (turn > 0).then(|| parts.next()).flatten()) else {
                continue;
            };
            for ((verdict, draw), [probed, random]) in verdicts.iter_mut().zip(draws).zip(&places[(turn + 1) % 2]) {
                *verdict = filter.observe_at(*draw, &probed[..arrays], &random[..arrays]);
            }
        }
    }
}

/// Arrivals whose random draws are made at once.
const CHUNK: usize = 256;

impl Filter for Reservoir {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.bits.allocated_bits()
    }

    fn status(&self) -> Status {
        if self.parameters.layout == Layout::Blocked {
            let rate = |line: &Line| {
                let ones: u32 = line.0.iter().map(|word| word.count_ones()).sum();
                pow(f64::from(ones) / LINE_BITS as f64, f64::from(self.parameters.num_filters))
            };
            let lines = self.bits.lines();
            let estimated_fpr = lines.iter().map(rate).sum::<f64>() / lines.len() as f64;
            return Status { arrivals: self.base.arrivals, fill: self.ones(), estimated_fpr, ..Status::default() };
        }
        let per_filter = self.parameters.words_per_filter() as usize;
        let arrays = self.bits.words().chunks(per_filter).take(self.parameters.num_filters as usize);
        let ones = arrays.map(|array| array.iter().map(|word| u64::from(word.count_ones())).sum::<u64>());
        Status {
            arrivals: self.base.arrivals,
            fill: self.ones(),
            estimated_fpr: ones.map(|ones| ones as f64 / self.parameters.filter_bits() as f64).product(),
            estimated_items: None,
            ..Status::default()
        }
    }

    fn contains_hash(&self, hash: KeyHash) -> bool {
        if self.parameters.layout == Layout::Blocked {
            return line::contains(self.line(hash), hash, self.parameters.num_filters);
        }
        self.places(hash).all(|place| self.get(place))
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        observe_one(self, hash, importance)
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        let mut draws = [0; CHUNK];
        for (hashes, verdicts) in hashes[..count].chunks(CHUNK).zip(verdicts.chunks_mut(CHUNK)) {
            let draws = &mut draws[..hashes.len()];
            draws.fill_with(|| self.generator.bits());
            self.observe_chunk(hashes, draws, verdicts);
        }
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.generator = Generator::for_filter(&self.base.hashing);
        self.base.arrivals = 0;
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        state.generator(&self.generator)
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.bits.bytes()])
    }
}
