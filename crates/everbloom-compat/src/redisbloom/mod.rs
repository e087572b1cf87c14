//! `redisbloom`: what RedisBloom keeps, bit for bit.
//!
//! **Answers** what RedisBloom's `BF.EXISTS` answers, false positives included: for filters that move between Redis or Valkey and
//! everything else. Never a false negative. It grows as keys come, or refuses them where it was made not to.
//!
//! # How it works
//!
//! A row of Bloom filters, as in [`Scalable`](everbloom::Scalable), with another hash and other sizes. A stage for n keys at a rate ε
//! has b = −ln ε / ln² 2 bits a key, ⌊n·b⌋ bits rounded up to whole words, and ⌈b·ln 2⌉ hashes. The first stage has half of the
//! asked rate, each next one half of the rate before and `expansion` times as many keys. A key is asked for in the newest stage
//! first, and goes into the newest if none has it.
//!
//! ```text
//! MurmurHash64A, twice:   a = murmur(key, seed)   b = murmur(key, a)
//! position i of a key:    (a + i·b mod 2^64) mod bits
//!
//! stage     0          1           2                     asked rate 1 %, 100 keys, expansion 2
//! keys      100        200         400
//! rate      0.5 %      0.25 %      0.125 %               together at most 1 %, or so the rule means
//! bits      1152       2496        5568
//! ```
//!
//! # What is promised
//!
//! RedisBloom's rule does not keep its rate: hashes are rounded up, and positions in equal steps are not independent. A step
//! that shares a factor with the bits visits few of them (with 256 bits, one key in 256 visits only one), and a key whose
//! step is that of a key inside may follow in its steps. Both cost about 1/bits for each stage, which is nothing in a
//! large stage and everything in small ones: 20 keys at 1 %, expansion 1, measured 2.3 % after 300 keys. So the rate that is
//! promised is not the asked one: it is the sum over all stages, those to come included, of the usual form and of
//!
//! ```text
//! ( Σ f^d · max(1, d − 1)  over the d < hashes that divide the bits  +  8 · keys / bits ) / bits
//! ```
//!
//! where f is the share of set bits. The first term is what short cycles cost. The second is what equal steps cost where the bits
//! are a power of two, by counting the ways in which two keys' steps can be equal, opposite or double. Elsewhere a position that
//! passes 2^64 leaves the row, so that steps are never equal for long and cycles end early: the first term alone is
//! more than both cost (measured: 0.5 to 0.7 of 1/bits, where it says 0.9 to 1.4). A plan takes a lower `error_rate` than the target
//! until that sum keeps it. Filters whose stages are not by these rules promise nothing.
//!
//! # Where we differ
//!
//! Keys for which memory is refused, or that come to a full filter which may not grow, are refused by
//! [`RedisBloom::add_hash`], as RedisBloom does. Insertion by [`Filter`] has no way to refuse a key: it goes into the last stage all
//! the same and is counted ([`Status::refused`](everbloom::Status::refused)), so that no key is missed.
//!
//! # Cost
//!
//! As many cache lines as hashes, in the newest stage, and a few in every other. Memory: 11.04 bits a key at 1 % for a filter that
//! never grows; 4.84 times that of the right size after growing 10,000-fold.
//!
//! # When to choose it
//!
//! To read, write or equal what RedisBloom has. For anything else [`Scalable`](everbloom::Scalable) keeps its rate, takes less
//! memory when it grows, and has a seed: whoever knows RedisBloom's hash, which has none, can make keys that collide.
//!
//! # Example
//!
//! ```
//! use everbloom_compat::redisbloom::{Header, Parameters, RedisBloom};
//!
//! let mut filter = RedisBloom::new(Parameters::new(100, 0.01))?;       // BF.RESERVE key 0.01 100
//! for key in 0..1000 {
//!     filter.insert(format!("item{key}"));                              // BF.ADD key item…
//! }
//! assert!((0..1000).all(|key| filter.contains(format!("item{key}"))));
//! assert_eq!(filter.header().stages.len(), 4);
//! let header = filter.header().encode();                               // BF.SCANDUMP key 0
//! let mut copy = RedisBloom::from_header(&Header::decode(&header)?)?;  // BF.LOADCHUNK copy 1 …
//! for stage in 0..4 {
//!     copy.stage_bytes_mut(stage).unwrap().copy_from_slice(filter.stage_bytes(stage).unwrap());
//! }
//! assert!((0..1000).all(|key| copy.contains(format!("item{key}"))));
//! # Ok::<(), everbloom::Error>(())
//! ```

mod plan;
mod stage;
mod wire;

pub use plan::Parameters;
pub use stage::StageHeader;
pub use wire::{Assembly, ChunkError, Header, MAX_CHUNK_BYTES};

use everbloom::kind::{Abilities, Base, Body, Kind, Model, Restore, StateWriter, shows_base};
use everbloom::{Error, Filter, Hashing, Importance, Importances, KeyHash, Plan, Result, Status, Verdict};
use everbloom_cells::simd::PREFETCH_DISTANCE;
use plan::{fill_at, likely_excess, planned};
use stage::Stage;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 34,
    retired: &[],
    name: "redisbloom",
    summary: "RedisBloom's filter, bit for bit: to read, write or equal what BF.* commands have",
    parameters: &plan::PARAMETERS,
    can: Abilities { grow: true, own_hash: Some(Hashing::Murmur), ..Abilities::SET },
    model: Model { fill_at, ..Model::sized(&["capacity"]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(RedisBloom::from_plan(plan)?)),
    restore: |from| Ok(Box::new(RedisBloom::restore(from)?)),
    map: None,
};

/// RedisBloom's option bits.
pub mod options {
    /// Bits are not rounded up to a power of two.
    pub const NO_ROUND: u32 = 1;
    /// The number of keys was given as a number of bits.
    pub const ENTRIES_ARE_BITS: u32 = 2;
    /// Keys are hashed to 64 bits; filters without it are from before RedisBloom 2.0 and are not read.
    pub const HASH_64: u32 = 4;
    /// The filter does not grow.
    pub const NO_SCALING: u32 = 8;
    pub(super) const ALL: u32 = 15;
}

/// Every stage halves the rate, so that there are fewer than 1,100; more have no room in a filter's bytes.
const MAX_STAGES: usize = 1200;

/// Bits of an older stage whose lines are asked for ahead: most keys that it does not have lack one of them.
const OLD_BITS_ASKED: u32 = 2;

/// Why a key was not inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The filter is full and was made not to grow.
    Full,
    /// Another stage would take more bytes than the caller allows.
    TooLarge,
    /// There is no memory for another stage, or none can follow.
    NoRoom(Error),
}

/// RedisBloom's filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct RedisBloom {
    parameters: Parameters,
    base: Base,
    stages: Vec<Stage>,
    /// Stages that were made ahead of the keys they are for.
    spare: Vec<Stage>,
    /// Keys that went into a full stage, because there was no other.
    refused: u64,
}

impl RedisBloom {
    /// An empty filter with these parameters.
    pub fn new(parameters: Parameters) -> Result<Self> {
        let parameters = parameters.checked()?;
        let base = Base::of_any_hash(&KIND, parameters.spec(), Hashing::Murmur, parameters.promise());
        Self::with_base(parameters, base)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        let stages = vec![Stage::new(parameters.first_stage()?)?];
        Ok(RedisBloom { parameters, base, stages, spare: Vec::new(), refused: 0 })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        let base = Base::of_any_hash(&KIND, plan.spec.clone(), plan.hashing, plan.promise);
        Self::with_base(Parameters::from_spec(&plan.spec)?, base)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let arrivals = from.state.u64()?;
        let header = Header::decode(from.state.rest())?;
        if header.spec() != *from.spec {
            return Err(Error::corrupt("the filter's spec is not that of its stages"));
        }
        let lines = |stage: &StageHeader| everbloom_cells::bits::Bits::byte_length(stage.bits);
        from.body.expect_bytes(header.stages.iter().fold(0u64, |sum, stage| sum.saturating_add(lines(stage))))?;
        let mut filter = Self::from_header(&header)?;
        filter.base =
            Base { arrivals, ..Base::of_any_hash(&KIND, filter.base.spec.clone(), from.hashing, from.promise) };
        for stage in &mut filter.stages {
            from.body.fill(stage.allocated_mut())?;
            stage.check()?;
        }
        Ok(filter)
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// The keys inside: those that were new when they came.
    pub fn size(&self) -> u64 {
        self.stages.iter().fold(0, |size, stage| size.saturating_add(stage.header().size))
    }

    /// The keys that its stages take.
    pub fn capacity(&self) -> u64 {
        self.stages.iter().fold(0, |entries, stage| entries.saturating_add(stage.header().entries))
    }

    /// The stages, oldest first.
    pub fn stages(&self) -> impl ExactSizeIterator<Item = StageHeader> + '_ {
        self.stages.iter().map(Stage::header)
    }

    /// The bytes that RedisBloom says it takes: its own records' and the bits'.
    pub fn reported_bytes(&self) -> u64 {
        let of = |stage: &Stage| 64 + stage.header().bytes();
        self.stages.iter().fold(32, |bytes, stage| bytes + of(stage))
    }

    /// The bytes that the next new key would allocate: 0 if the last stage takes it, or nothing does.
    pub fn next_growth_bytes(&self) -> u64 {
        let has_room = self.last().is_none_or(|stage| !stage.is_full()) || !self.spare.is_empty();
        if has_room || !self.parameters.scales() {
            return 0;
        }
        self.next_header(&[]).map_or(0, |header| header.bytes())
    }

    /// Inserts a key as RedisBloom does: true if it is new, or why it was refused, and then nothing changed.
    #[inline]
    pub fn add_hash(&mut self, hash: KeyHash) -> Result<bool, Refusal> {
        self.add_hash_within(hash, u64::MAX)
    }

    /// Inserts a key where the bits of all stages may take so many bytes.
    #[inline]
    pub fn add_hash_within(&mut self, hash: KeyHash, most_bytes: u64) -> Result<bool, Refusal> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        self.grow(most_bytes)?;
        self.base.count(1);
        if let Some(stage) = self.stages.last_mut() {
            stage.insert(hash);
        }
        Ok(true)
    }

    /// A copy, or an error if there is no memory for it.
    pub fn try_clone(&self) -> Result<Self> {
        let copies = |stages: &[Stage]| stages.iter().map(Stage::try_clone).collect::<Result<Vec<_>>>();
        let (stages, spare) = (copies(&self.stages)?, copies(&self.spare)?);
        Ok(RedisBloom { parameters: self.parameters, base: self.base.clone(), stages, spare, refused: self.refused })
    }

    fn last(&self) -> Option<&Stage> {
        self.stages.last()
    }

    /// Sees to it that the last stage has room for a key.
    #[inline]
    fn grow(&mut self, most_bytes: u64) -> Result<(), Refusal> {
        match self.last() {
            Some(stage) if stage.is_full() => self.add_stage(most_bytes),
            _ => Ok(()),
        }
    }

    #[cold]
    fn add_stage(&mut self, most_bytes: u64) -> Result<(), Refusal> {
        if !self.parameters.scales() {
            return Err(Refusal::Full);
        }
        let bytes = self.stages.iter().fold(0u64, |bytes, stage| bytes.saturating_add(stage.header().bytes()));
        if self.next_growth_bytes().saturating_add(bytes) > most_bytes {
            return Err(Refusal::TooLarge);
        }
        let next = match self.spare.is_empty() {
            true => self.next_header(&[]).and_then(Stage::new).map_err(Refusal::NoRoom)?,
            false => self.spare.remove(0),
        };
        self.stages.push(next);
        Ok(())
    }

    /// The sizes of the stage that follows those that there are and these.
    fn next_header(&self, more: &[StageHeader]) -> Result<StageHeader> {
        let count = self.stages.len() + self.spare.len() + more.len();
        let own = || self.spare.last().or(self.stages.last()).map(Stage::header);
        match more.last().copied().or_else(own) {
            Some(last) if count < MAX_STAGES => last.next(self.parameters.expansion),
            _ => Err(Error::Infeasible {
                wanted: format!("more than {MAX_STAGES} stages"),
                reason: "a query would ask every one of them".into(),
                remedy: "begin with more keys, or let stages grow".into(),
            }),
        }
    }

    /// The sizes of the stages that these keys need beyond those that there are.
    fn missing_stages(&self, hashes: &[KeyHash]) -> Result<Vec<StageHeader>> {
        let mut room = self.spare.iter().chain(self.last()).fold(0u64, |room, stage| room.saturating_add(stage.room()));
        if room >= hashes.len() as u64 {
            return Ok(Vec::new());
        }
        let new = hashes.iter().filter(|hash| !self.contains_hash(**hash)).count() as u64;
        let mut missing = Vec::new();
        while room < new {
            if !self.parameters.scales() {
                return Err(Error::Infeasible {
                    wanted: format!("another key in a filter for {}", self.capacity()),
                    reason: "it is full, and was made not to grow".into(),
                    remedy: "make one for more keys, or one that grows".into(),
                });
            }
            let next = self.next_header(&missing)?;
            room = room.saturating_add(next.entries);
            missing.push(next);
        }
        Ok(missing)
    }

    /// Asks for what inserting these keys will touch.
    fn ask_ahead(&self, hashes: &[KeyHash], of_newest: u32) {
        for (age, stage) in self.stages.iter().rev().enumerate().filter(|(_, stage)| stage.is_large()) {
            let count = if age == 0 { of_newest } else { OLD_BITS_ASKED };
            hashes.iter().for_each(|hash| stage.ask(*hash, count));
        }
    }

    /// Asks for what adding these keys will touch to be brought near: some dozens of keys at a time. A hint.
    pub fn prepare_to_add(&self, hashes: &[KeyHash]) {
        self.ask_ahead(hashes, u32::MAX);
    }

    /// Inserts a key that cannot be refused.
    #[inline]
    fn insert_anyway(&mut self, hash: KeyHash) -> bool {
        self.base.count(1);
        let is_new = !self.contains_hash(hash);
        if is_new {
            self.refused = self.refused.saturating_add(u64::from(self.grow(u64::MAX).is_err()));
            if let Some(stage) = self.stages.last_mut() {
                stage.insert(hash);
            }
        }
        is_new
    }
}

everbloom::typed_filter!(RedisBloom: KIND);

impl Filter for RedisBloom {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.stages.iter().chain(&self.spare).map(|stage| stage.allocated().len() as u64 * 8).sum()
    }

    fn status(&self) -> Status {
        let (mut ones, mut bits, mut right, mut items) = (0, 0, 1.0, Some(0.0));
        for stage in &self.stages {
            let (header, set) = (stage.header(), stage.count_ones());
            let fill = set as f64 / header.bits as f64;
            let found = plan::size_of(&header).items_at_fill(fill);
            // A key that an earlier stage took for one of its own was not inserted again.
            items = items.zip(found).map(|(items, found)| items + found / f64::max(right, f64::MIN_POSITIVE));
            let rate = libm::pow(fill, f64::from(header.hashes)) + likely_excess(&header, header.size as f64, fill);
            right *= 1.0 - rate.min(1.0);
            (ones, bits) = (ones + set, bits + header.bits);
        }
        Status {
            arrivals: self.base.arrivals,
            fill: ones as f64 / bits as f64,
            estimated_fpr: 1.0 - right,
            estimated_items: items.filter(|items| items.is_finite()),
            refused: self.refused,
            ..Status::default()
        }
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    #[inline]
    fn contains_hash(&self, hash: KeyHash) -> bool {
        self.stages.iter().rev().any(|stage| stage.contains(hash))
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        for (hashes, found) in hashes.chunks(PREFETCH_DISTANCE).zip(found.chunks_mut(PREFETCH_DISTANCE)) {
            self.ask_ahead(hashes, OLD_BITS_ASKED);
            for (hash, found) in hashes.iter().zip(found) {
                *found = self.contains_hash(*hash);
            }
        }
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        Verdict::from_seen(!self.insert_anyway(hash))
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        for (hashes, verdicts) in hashes.chunks(PREFETCH_DISTANCE).zip(verdicts.chunks_mut(PREFETCH_DISTANCE)) {
            self.ask_ahead(hashes, u32::MAX);
            for (hash, verdict) in hashes.iter().zip(verdicts) {
                *verdict = Verdict::from_seen(!self.insert_anyway(*hash));
            }
        }
    }

    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.insert_anyway(hash)
    }

    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        everbloom::kind::insert_by_batches(self, hashes);
    }

    fn make_room(&mut self, hashes: &[KeyHash]) -> Result<()> {
        let missing = self.missing_stages(hashes)?;
        let stages = missing.into_iter().map(Stage::new).collect::<Result<Vec<_>>>()?;
        self.spare.extend(stages);
        Ok(())
    }

    fn growth_bits(&self, hashes: &[KeyHash]) -> u64 {
        let missing = self.missing_stages(hashes).unwrap_or_default();
        missing.iter().fold(0u64, |bits, stage| bits.saturating_add(stage.bits.next_multiple_of(512)))
    }

    fn clear(&mut self) {
        (self.refused, self.spare) = (0, Vec::new());
        self.stages.truncate(1);
        self.stages.iter_mut().for_each(Stage::clear);
        self.base.arrivals = 0;
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        state.bytes(&self.header().encode())
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(self.stages.iter().map(Stage::allocated).collect())
    }
}
