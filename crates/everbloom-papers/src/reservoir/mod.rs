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
//! Late in the stream hardly anything would get in, so a distinct arrival is inserted anyway: by `floor=algorithm`
//! unless its draw falls below `insert_floor`, by `floor=text` once `filter_bits`/i has fallen to `insert_floor`.
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
//! The paper gives the floor p* (`insert_floor`) two meanings. Its Algorithm 1 forces a distinct arrival in if its
//! draw exceeds p* (`floor=algorithm`, the default); its text (§4, 5.2, 6.1) inserts every distinct arrival once the
//! insertion probability has fallen to p*, and none before (`floor=text`). The printed tables cannot tell them
//! apart. Streams whose keys come back soon can: the text's reading forgets whatever comes between the first
//! `filter_bits` arrivals and the `filter_bits`/p*-th, most of a short stream (lab, reservoir-floor).
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
//! 1 bit an arrival (14.2 for 12.6). The blocked layout and `floor=text` are simulated small.
//!
//! The paper picks k as the mean of 1 and ln(FPR)/ln(1 − 1/e): `setting=balanced`; `low_fnr` is k = 1
//! and `low_fpr` the full formula. **These settings promise nothing** (k = 6 for 1 % measures 1.3–1.5 %).
//! A goal takes the smallest k with 2^−k within the target.
//!
//! The paper leaves other bias functions to future work. After the first `filter_bits` arrivals, `bias=constant` inserts with
//! a fixed probability (`insert_prob=0.1`), `bias=exponential` with one that halves every `half_life` arrivals (as many as
//! `filter_bits`). The higher the probability, the sooner old keys make room for new ones; the rate of false positives is the
//! same, since every insertion moves the share of set bits towards ½.
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
//! decrements, and [`Ranked`](everbloom::Ranked) remembers more than either.
//!
//! # Example
//!
//! ```
//! use everbloom_all::KINDS;
//! use everbloom::FilterExt;
//! use everbloom::{Goal, Importance};
//!
//! let mut seen = Goal::new().memory_bits(1 << 20).fpr(0.01).plan_among(KINDS, "reservoir")?.build()?;
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
mod parameters;

pub use parameters::{Bias, DEFAULT_INSERT_FLOOR, DEFAULT_INSERT_PROB, Floor, Layout, Parameters};

use everbloom::kind::{Abilities, Base, Body, Kind, Model, Restore, StateWriter, observe_one, shows_base};
use everbloom::sizing::closed_forms::rate_of_neighbours;
use everbloom::{
    Error, Filter, Hashing, Holds, Importance, Importances, KeyHash, Plan, Promise, Result, Status, Verdict,
};
use everbloom_cells::buffer::{Buffer, LINE_BITS, Line};
use everbloom_cells::key::{Generator, finalise};
use everbloom_cells::simd::{CACHED_BYTES, Kernel, SimdOps, distance_for, prefetch, run};
use everbloom_forecast::forecast::StreamModel;
use line::Rule;
use parameters::{Insert, MAX_FILTERS, planned};

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 11,
    retired: &[],
    name: "reservoir",
    summary: "reservoir-sampling Bloom filter: fixed memory for ever, keeps half of its bits set",
    parameters: &parameters::PARAMETERS,
    can: Abilities::STREAM,
    model: Model {
        unit: |spec| Ok(if spec.get("layout") == Some("blocked") { LINE_BITS } else { 1 }),
        choices: &[
            ("num_filters", &["1", "2", "3", "4", "5", "6", "7", "8"]),
            ("insert_floor", &["0.01", "0.03", "0.1"]),
        ],
        ..Model::sized(&["memory_bits", "half_life"])
    },
    extension: Some(&StreamModel(forecast::forecast)),
    plan: planned,
    build: |plan| Ok(Box::new(Reservoir::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Reservoir::restore(from)?)),
    map: None,
};

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
        let promise = Promise::always(parameters.predicted_fpr()).held(Holds::Never);
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, promise)?)
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
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
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
        let sampled = self.parameters.bias.insert_prob(self.filter_bits, self.base.arrivals);
        match self.parameters.floor.insert(unit, sampled, self.parameters.insert_floor) {
            Insert::Sampled => {
                random.iter().for_each(|place| self.unset(*place));
                probed.iter().for_each(|place| self.set(*place));
            }
            Insert::IfDistinct if !seen => {
                for (filter, (place, random)) in probed.iter().zip(random).enumerate() {
                    if !self.get(*place) {
                        self.unset_from(*random, filter as u64);
                        self.set(*place);
                    }
                }
            }
            _ => {}
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
        let Parameters { num_filters, insert_floor, floor, bias, .. } = self.parameters;
        Rule { num_filters, filter_bits: self.filter_bits, insert_floor, floor, bias }
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

everbloom::typed_filter!(Reservoir: KIND);

impl Filter for Reservoir {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.bits.allocated_bits()
    }

    fn status(&self) -> Status {
        if self.parameters.layout == Layout::Blocked {
            let fills = |line: &Line| line.0.map(|word| f64::from(word.count_ones()) / 64.0);
            let rate = |line: &Line| rate_of_neighbours(&fills(line), self.parameters.num_filters);
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
