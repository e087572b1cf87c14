//! `bloom`: the classic Bloom filter.
//!
//! **Answers** "was this key inserted?" Never says no to a key that was; says yes to a key that was
//! not at a rate that is known beforehand and kept until the planned number of keys is inside. It
//! does not forget and does not grow: beyond that number the rate rises.
//!
//! # How it works
//!
//! `num_hashes` probes into `num_bits` bits. Inserting sets them, asking tests them.
//!
//! ```text
//!            probes of "a"        probes of "b"
//!              │    │   │           │   │    │
//! before  0 0 [0] 0 1 0 0 0 1 0 0   inserting "a" sets 2, 4, 7
//! after   0 0  1  0 1 0 0 1 1 0 0   "b" probes 4, 7, 9: 9 is 0, so "b" was never inserted
//! ```
//!
//! # Theory
//!
//! With n keys, m bits and k hashes the share of set bits is 1 − (1 − 1/m)^kn, and a key that is not
//! inside finds all its bits set with that share to the power k ([Bloom 1970], lecture notes
//! \[CS6931\] and \[SDS\]). The best k is (m/n)·ln 2, at which half of the bits are set; a target δ
//! then needs m = n·ln(1/δ)/ln² 2: 9.6 bits and 7 hashes for 1 %. Every form cited here is in
//! `sizing/closed_forms.rs`.
//!
//! **Rounding.** k is a whole number, so both neighbours of the real optimum are tried and m is
//! solved for the k that needs less, then rounded **up** and checked against the full form: the
//! promise holds after rounding.
//!
//! **Where we differ.** The textbook form is slightly optimistic for small filters (it ignores that
//! the fill varies); the plan uses a corrected one. Probes are not plain double hashing, which at 20
//! hashes costs a factor of 80 (see [`key`](crate::key)).
//!
//! # On the wire
//!
//! A filter that is sent is compressed ([`codec::encode_compressed`](crate::codec::encode_compressed)), but if
//! half of its bits are set, there is nothing to compress. Planned for it ([`Goal::compressed`]), it has fewer hashes and
//! more bits, of which few are set: at the same rate it takes more memory and fewer bytes
//! (\[Mitzenmacher 2001\]). Per key, codes as they come out (the entropy in brackets):
//!
//! | rate | usual | one hash, in memory | one hash, compressed | two hashes, in memory | compressed |
//! |---|---|---|---|---|---|
//! | 2.16 % | 8.00 bits, 6 hashes | 45.8 | 6.91 (6.89) | 12.6 | 7.63 (7.58) |
//! | 1 % | 9.59 bits, 7 hashes | 99.5 | 8.06 (8.04) | 19.0 | 8.97 (8.90) |
//! | 0.1 % | 14.38 bits, 10 hashes | 999.5 | 11.43 (11.40) | 62.2 | 12.66 (12.60) |
//!
//! Planned for so many bytes ([`Goal::transmitted_bytes`]), it has the lowest rate that they buy. How long the
//! codes come out varies with the keys; the plan keeps five standard deviations of it in reserve, some 0.04 % of
//! a megabyte and 1 % of a kilobyte, so one of 3.5 million builds is longer. If the limit must never be
//! exceeded, check the length before sending, as `everbloom build --transmit` does.
//!
//! # Cost
//!
//! `num_hashes` cache lines a key, fetched together in batches where the filter is too large for the near caches. Of a key that is not
//! inside, such a batch reads four first, which nearly always do; otherwise two or three are read. [`Blocked`](super::Blocked) needs one, for about 4 % more bits at 1 %.
//!
//! # When to choose it
//!
//! When the number of keys is known and every bit counts, or when the filter must be merged with
//! others built elsewhere. Not on an endless stream (it fills up), not when keys must be removed
//! ([`Counting`](super::Counting)).
//!
//! # Example
//!
//! ```
//! use everbloom::FilterExt;
//! use everbloom::filters::Bloom;
//!
//! let mut filter = Bloom::with_rate(10_000, 0.01)?;
//! for key in 0..10_000u64 {
//!     filter.insert(&key);
//! }
//! assert!((0..10_000u64).all(|key| filter.contains(&key)));
//! let wrong = (10_000..110_000u64).filter(|key| filter.contains(key)).count();
//! assert!((800..1200).contains(&wrong), "{wrong} of 100,000 at a promised 1 %");
//! # Ok::<(), everbloom::Error>(())
//! ```
//!
//! [Bloom 1970]: https://doi.org/10.1145/362686.362692

use crate::cells::bits::{Bits, check_end};
use crate::cells::buffer::{LINE_BITS, lines_of};
use crate::cells::probed::{self, Hashes};
use crate::filter::{
    Abilities, Base, Body, Combine, FillAt, Filter, Kind, Mapped, Merge, Model, Parameter, Plan, Restore, Takes,
    same_shape, shows_base,
};
use crate::format::{self, gaps};
use crate::key::{Hashing, KeyHash};
use crate::promise::{
    Error, Goal, Importance, Importances, MAX_MEMORY_BITS, Promise, Result, Spec, Status, Verdict, rate_text,
};
use crate::sizing::MAX_HASHES;
use bytemuck::cast_slice;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 5,
    retired: &[1],
    name: "bloom",
    summary: "classic Bloom filter: no false negatives, fills up at a known number of keys",
    parameters: &PARAMETERS,
    can: Abilities { merge: true, fit_bytes: true, map: true, ..Abilities::SET },
    model: Model { fill_at, accesses: Some("num_hashes"), ..Model::sized(&["num_bits"]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Bloom::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Bloom::restore(from)?)),
    map: Some(|spec, body| Ok(Box::new(MappedBloom::open(spec, body)?))),
};

const PARAMETERS: [Parameter; 2] = [
    Parameter::planned("num_bits", "bits in all", Takes::Whole(1, MAX_MEMORY_BITS)),
    Parameter::planned("num_hashes", "bits that a key sets", Takes::Whole(1, MAX_HASHES as u64)),
];

/// The size of a Bloom filter: its cells are bits.
pub use crate::sizing::Size;

fn size_from_spec(spec: &Spec) -> Result<Size> {
    Size { num_cells: spec.required("num_bits")?, num_hashes: spec.required("num_hashes")? }.checked()
}

fn spec_of(size: Size) -> Spec {
    Spec::new(KIND.name).with("num_bits", size.num_cells).with("num_hashes", size.num_hashes)
}

fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    if let Some(bytes) = goal.transmitted_bytes {
        let items = goal.required_items()?;
        return Ok(plan_of(sendable(spec, goal, items, bytes)?, Some(items), goal));
    }
    let (mut size, items) = Size::planned(spec, goal, ["num_bits", "num_hashes"], 1)?;
    if let (true, Some(items), Some(rate), None) = (goal.compressed, items, goal.target_fpr, spec.parameters().next()) {
        size = sparse(goal, items, rate)?;
    }
    Ok(plan_of(size, items, goal))
}

fn plan_of(size: Size, items: Option<u64>, goal: &Goal) -> Plan {
    let memory_bits = Bits::byte_length(size.num_cells) * 8;
    let plan = Plan::new(&KIND, spec_of(size), memory_bits, size.promise(items, goal.target_fpr), goal.hashing);
    match items {
        Some(items) if goal.compressed => Plan { notes: vec![sent_note(size, items)], ..plan },
        _ => plan,
    }
}

fn sent_note(size: Size, items: u64) -> String {
    let bits = size.compressed_bits(items) / items as f64;
    format!("compressed it takes about {bits:.2} bits a key, at most {} bytes with its header", sent_bytes(size, items))
}

/// How much more memory than usual a filter may take by default in order to be small on the wire.
const SPARSENESS: u64 = 16;

/// 2^−64. Filters with a lower rate are not given more memory for it.
const LEAST_FPR: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// The highest rate that a budget of bytes may give by default: a filter that says yes to half of all keys
/// is not worth sending.
const WORST_FPR: f64 = 0.5;

/// The bytes that the filter will take on the wire, but for one build in millions.
fn sent_bytes(size: Size, items: u64) -> u64 {
    let (fill, variance) = size.fill(items);
    // Bits that only fill the last line up are never set.
    let (plain_bytes, used) = (body_bytes(size), size.num_cells as f64 / (body_bytes(size) * 8) as f64);
    let body = gaps::likely_bytes(plain_bytes, fill * used, variance * used * used);
    format::document_bytes(spec_of(size).to_string().len(), STATE_BYTES, body)
}

/// The size with the lowest rate that can be sent within these bytes.
fn sendable(spec: &Spec, goal: &Goal, items: u64, bytes: u64) -> Result<Size> {
    if let Some(word) = spec.parameters().next() {
        let problem = format!("the bytes that may be sent decide its '{word}'");
        return Err(spec.error(problem, "leave it out, or give no bytes and compress what comes out"));
    }
    let allowed = |size: Size| {
        let rate = size.predicted_fpr(items).clamp(LEAST_FPR, WORST_FPR);
        most_cells(goal, items, rate).is_ok_and(|most| size.num_cells <= most)
    };
    let highest = goal.checked_fpr()?.unwrap_or(WORST_FPR);
    let best = Size::lowest_rate(items, |size| sent_bytes(size, items) <= bytes && allowed(size));
    match best.map(|size| (size, size.predicted_fpr(items))) {
        Some((size, rate)) if rate <= highest => size.checked(),
        best => Err(too_few_bytes(goal, items, highest, best.map(|(_, rate)| rate))),
    }
}

fn too_few_bytes(goal: &Goal, items: u64, highest: f64, best: Option<f64>) -> Error {
    let needed = |rate: &f64| {
        let size = sparse(goal, items, *rate).ok()?;
        let affordable = most_cells(goal, items, *rate).is_ok_and(|most| size.num_cells <= most);
        affordable.then(|| format!("{} bytes for a rate of {}", sent_bytes(size, items), rate_text(*rate)))
    };
    let mut remedies: Vec<String> = [highest, highest.min(0.01)].iter().filter_map(needed).collect();
    remedies.dedup();
    Error::Infeasible {
        wanted: format!("{} bytes on the wire for {items} keys", goal.transmitted_bytes.unwrap_or_default()),
        reason: match best {
            Some(rate) => format!("the best filter that fits has a rate of {}", rate_text(rate)),
            None => "not even an empty filter fits".into(),
        },
        remedy: match remedies.is_empty() {
            true => "give more memory, which the filter takes once it is unpacked".into(),
            false => format!("give {}", remedies.join(", or ")),
        },
    }
}

/// The size with the fewest bits on the wire.
fn sparse(goal: &Goal, items: u64, rate: f64) -> Result<Size> {
    Size::for_wire(items, rate, most_cells(goal, items, rate)?)
}

/// The most cells that a filter with this rate may have.
fn most_cells(goal: &Goal, items: u64, rate: f64) -> Result<u64> {
    match goal.memory_bits {
        Some(bits) => Ok(bits / LINE_BITS * LINE_BITS),
        None => Ok(Size::for_rate(items, rate)?.num_cells.saturating_mul(SPARSENESS)),
    }
}

fn fill_at(spec: &Spec) -> Result<Option<FillAt>> {
    let size = size_from_spec(spec)?;
    Ok(Some(Box::new(move |items| size.state(items))))
}

/// The bytes of a filter's bits.
fn body_bytes(size: Size) -> u64 {
    Bits::byte_length(size.num_cells)
}

/// Asks a filter whose bits are in these words.
fn contains_in(size: Size, words: &[u64], hashes: &[KeyHash], found: &mut [bool]) {
    probed::contains_batch(words, size.num_cells, hashes, Hashes::all(size.num_hashes), found);
}

/// The filter where its bytes lie.
#[derive(Debug)]
struct MappedBloom<'b> {
    size: Size,
    words: &'b [u64],
}

impl<'b> MappedBloom<'b> {
    fn open(spec: &Spec, body: &'b [u8]) -> Result<Self> {
        let size = size_from_spec(spec)?;
        Ok(MappedBloom { size, words: cast_slice(lines_of(body, body_bytes(size))?) })
    }
}

impl Mapped for MappedBloom<'_> {
    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        contains_in(self.size, self.words, hashes, found);
    }

    fn verify(&self) -> Result<()> {
        check_end(self.words, self.size.num_cells)
    }
}

/// What is kept beside the bits: how many keys were inserted.
const STATE_BYTES: usize = 8;

/// The classic Bloom filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Bloom {
    size: Size,
    base: Base,
    bits: Bits,
}

impl Bloom {
    /// A filter of this size.
    pub fn new(size: Size, hashing: Hashing) -> Result<Self> {
        Self::with_promise(size, hashing, size.promise(None, None))
    }

    /// The smallest filter that keeps `target_fpr` for `expected_items` keys.
    pub fn with_rate(expected_items: u64, target_fpr: f64) -> Result<Self> {
        let size = Size::for_rate(expected_items, target_fpr)?;
        Self::with_promise(size, Hashing::default(), size.promise(Some(expected_items), Some(target_fpr)))
    }

    /// A filter of this size that promises what its maker says.
    pub fn with_promise(size: Size, hashing: Hashing, promise: Promise) -> Result<Self> {
        Self::with_base(size.checked()?, Base::new(&KIND, spec_of(size), hashing, promise)?)
    }

    fn with_base(size: Size, base: Base) -> Result<Self> {
        Ok(Bloom { size, base, bits: Bits::new(size.num_cells)? })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(size_from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let size = size_from_spec(from.spec)?;
        from.body.expect_bytes(Bits::byte_length(size.num_cells))?;
        let mut filter = Self::with_base(size, Base::restored(spec_of(size), &mut from)?)?;
        from.state.finish()?;
        from.body.fill(filter.bits.bytes_mut())?;
        filter.bits.check()?;
        Ok(filter)
    }

    /// The size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// How many distinct keys are inside, from the share of set bits; `None` when every bit is set.
    pub fn estimated_items(&self) -> Option<f64> {
        self.size.items_at_fill(self.bits.fill())
    }

    /// The filter with these bits set: how other filters become a plain one. Hashing, promise and arrivals are the other's.
    pub(super) fn from_bits(size: Size, bits: Bits, other: Base) -> Self {
        let base = Base { kind: &KIND, spec: spec_of(size), ..other };
        Bloom { size, base, bits }
    }

    fn insert_all(&mut self, hashes: &[KeyHash], verdicts: Option<&mut [Verdict]>) {
        self.base.count(hashes.len());
        let Size { num_cells, num_hashes, .. } = self.size;
        probed::insert_batch(self.bits.words_mut(), num_cells, hashes, Hashes::all(num_hashes), verdicts);
    }
}

crate::typed_filter!(Bloom: KIND; merge intersect);

impl Filter for Bloom {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.bits.bytes().len() as u64 * 8
    }

    fn status(&self) -> Status {
        self.size.status(self.base.arrivals, self.bits.fill())
    }

    #[inline(always)]
    fn contains_hash(&self, hash: KeyHash) -> bool {
        probed::contains(self.bits.words(), self.size.num_cells, hash, 0..self.size.num_hashes)
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        let count = hashes.len().min(found.len());
        contains_in(self.size, self.bits.words(), &hashes[..count], &mut found[..count]);
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        Verdict::from_seen(!self.insert_hash(hash))
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.base.count(1);
        probed::insert(self.bits.words_mut(), self.size.num_cells, hash, self.size.num_hashes)
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        self.insert_all(&hashes[..count], Some(&mut verdicts[..count]));
    }

    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        self.insert_all(hashes, None);
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.base.arrivals = 0;
    }

    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.bits.bytes()])
    }
}

impl Merge for Bloom {
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()> {
        let other = same_shape(self, other)?;
        how.words(self.bits.words_mut(), other.bits.words());
        self.base.arrivals = how.inserted(self.base.arrivals, other.base.arrivals);
        Ok(())
    }
}
