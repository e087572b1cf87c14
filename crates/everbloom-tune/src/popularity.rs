//! `popularity`: more hashes for the keys of frequent negative queries.
//!
//! **Answers** "was this key inserted?" Never says no to a key that was. How often it says yes to one that was not
//! depends on the key: on its class, which a [`Scheme`] fixed before the filter was built. It does not forget and does
//! not grow.
//!
//! # How it works
//!
//! A Bloom filter in which each key has a number of hashes of its own, found from its hash by the scheme.
//!
//! ```text
//!                 a common member: 3 hashes      a key asked for all day, hardly ever a member: 7
//!                    │     │  │                   │ │   │  │ │    │ │
//! before  0 0 0 1 0 [0] 0 [1][0] 0 1 …    cheap to insert      sure to be refused
//! after   0 0 0 1 0  1  0  1  1  0 1 …
//! ```
//!
//! The number of hashes must be the same when a key is inserted and when it is asked for. So a filter holds the id
//! of its scheme, and it is read with that scheme or not at all ([`Decoder::scheme`](crate::WithScheme::scheme)). Without a scheme it
//! is the classic filter: every key has `num_hashes`.
//!
//! # Theory
//!
//! With q′_c the share of negative queries for class c, k_c its hashes, p_c its share of the members, and B the share
//! of set bits, the rate of false positives is Σ q′_c·B^k_c, where B = 1 − e^(−n·Σ p_c·k_c / m)
//! (\[Zhong et al. 2008\], eqs. 5 and 6). [`querylog::popularity`](crate::querylog::popularity) finds the k_c, and
//! [`querylog::tune`](crate::querylog::tune) the classes.
//!
//! **Where we differ.** The paper has a number of hashes for every object and no rule for an object it has not seen.
//! Fitted per object to a log, that loses to a classic filter; here keys are in a few classes, one of them "unseen".
//! The fill is free, not one half. Places are turned and added, not plain double hashing, which at 20 hashes costs a factor of 80.
//!
//! # Cost
//!
//! As many cache lines as the key has hashes, and a lookup in the scheme's map, if it has one: two to four neighbouring
//! lines up to a width of 8. A query looks first at the hashes that keys of all classes have. Most keys that are not
//! inside fail there, and the map is not asked about them; members and insertions always ask it, once.
//!
//! # When to choose it
//!
//! When one scheme serves many sets, or when a key's length tells hot from cold:
//! then the map costs little or nothing. For one large set with a log take [`Stacked`](super::Stacked); with no log,
//! [`Bloom`](everbloom::Bloom). `everbloom tune` tries all three.
//!
//! Four sets of 2,000 of 100,000 keys at 8 bits a key, and a log of 500,000 queries with Zipf's law (`everbloom tune`,
//! rates on its second half; the standard filter has 2.24 %):
//!
//! | sets sharing the scheme | Zipf 1: popularity | stacked | Zipf 1.2: popularity | stacked |
//! |---|---|---|---|---|
//! | 4 | 1.45 % | **0.95 %** | 0.66 % | **0.35 %** |
//! | 30 | 0.99 % | **0.95 %** | 0.37 % | **0.35 %** |
//! | 100 | **0.85 %** | 0.95 % | **0.31 %** | 0.35 % |
//! | 1,000 | **0.68 %** | 0.95 % | **0.25 %** | 0.35 % |
//!
//!
//! # Example
//!
//! ```
//! use everbloom_tune::scheme::{Classes, KeyClass, Recipe};
//! use everbloom::{Filter, Hashing};
//! use everbloom_tune::Scheme;
//! use everbloom::FilterExt;
//! use everbloom_tune::Popularity;
//! use std::sync::Arc;
//!
//! // Short keys are asked for, long ones are stored: 14 hashes and 4.
//! let classes = Classes::new(vec![KeyClass::of(4), KeyClass::of(14)])?;
//! let classes = classes.by_length(std::array::from_fn(|length| u8::from(length < 9)))?;
//! let scheme = Arc::new(Scheme::new(Hashing::measured(0), 8.0, Recipe::Popularity(classes))?);
//!
//! let mut filter = Popularity::with_scheme(&scheme, 80_000)?;
//! for number in 0..10_000 {
//!     filter.insert(format!("a long key, number {number}").as_str());
//! }
//! assert!((0..10_000).all(|number| filter.contains(format!("a long key, number {number}").as_str())));
//! let wrong = (0..10_000).filter(|number| filter.contains(format!("{number}").as_str())).count();
//! assert!(wrong < 5, "{wrong} of 10,000 short keys, where a filter with 5 hashes for all has 217");
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::Scheme;
use crate::chosen::{CHUNK, Chosen};
use crate::scheme::{Classes, MAX_HASHES, Recipe, SchemeId};
use everbloom::kind::{
    Abilities, Base, Body, Combine, FillAt, Kind, MAX_MEMORY_BITS, Merge, Model, Parameter, Restore, Takes, Unset,
    same_shape, shows_base,
};
use everbloom::sizing::Size;
use everbloom::{
    Error, Filter, Goal, Hashing, Holds, Importance, Importances, KeyHash, Plan, Promise, Result, Spec, Status, Verdict,
};
use everbloom_cells::bits::Bits;
use everbloom_cells::probed::{self, Hashes};
use libm::log1p;
use std::ops::Range;
use std::sync::Arc;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 42,
    retired: &[40],
    name: "popularity",
    summary: "Bloom filter with hashes per class of keys, from a scheme made by `everbloom tune`",
    parameters: &PARAMETERS,
    can: Abilities { merge: true, follow_scheme: Some("scheme"), ..Abilities::SET },
    model: Model { fill_at, accesses: Some("num_hashes"), ..Model::sized(&["num_bits"]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Popularity::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Popularity::restore(from)?)),
    map: None,
};

const PARAMETERS: [Parameter; 3] = [
    Parameter::planned("num_bits", "bits in all", Takes::Whole(1, MAX_MEMORY_BITS)),
    Parameter::planned("num_hashes", "bits that a key sets, without a scheme", Takes::Whole(1, MAX_HASHES as u64)),
    Parameter::planned("scheme", "the scheme it was built with, which build --scheme fills in", Takes::SchemeId)
        .or(Unset::Without),
];

/// Without a scheme, as for a classic filter; with one, the scheme itself is needed.
fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    if spec.get("scheme").is_some() {
        return Err(spec.error(
            "it names a scheme, which was not given",
            "build with Popularity::with_scheme, or `everbloom build --scheme FILE`",
        ));
    }
    let (size, items) = Size::planned(spec, goal, ["num_bits", "num_hashes"], 1)?;
    if size.num_hashes > MAX_HASHES {
        let needed = format!("at most {MAX_HASHES}");
        return Err(Error::parameter("num_hashes", size.num_hashes, needed, "take a bloom filter, or a higher rate"));
    }
    let memory_bits = Bits::byte_length(size.num_cells) * 8;
    let spec = Spec::new(KIND.name).with("num_bits", size.num_cells).with("num_hashes", size.num_hashes);
    Ok(Plan::new(&KIND, spec, memory_bits, size.promise(items, goal.target_fpr()), goal.key_hashing()))
}

fn fill_at(spec: &Spec) -> Result<Option<FillAt>> {
    let size = Size { num_cells: spec.required("num_bits")?, num_hashes: spec.required("num_hashes")? }.checked()?;
    Ok(Some(Box::new(move |items| size.state(items))))
}

/// A filter with hashes per class. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Popularity {
    scheme: Arc<Scheme>,
    base: Base,
    bits: Bits,
}

impl Popularity {
    /// A filter of so many bits, whose keys have as many hashes as the scheme says.
    pub fn with_scheme(scheme: &Arc<Scheme>, num_bits: u64) -> Result<Self> {
        let Some(classes) = scheme.classes() else {
            let needed = "one with classes of keys";
            return Err(Error::parameter("scheme", scheme.id(), needed, "build what its recipe says"));
        };
        let items = (num_bits as f64 / scheme.bits_per_key()).max(1.0);
        // The predicted rate holds for queries like those of the log, which cannot be promised.
        let predicted_fpr = classes.predicted_fpr(num_bits, items);
        let promise = Promise::until(0, predicted_fpr).held(Holds::Never);
        Self::with_promise(scheme.clone(), num_bits, promise)
    }

    fn with_promise(scheme: Arc<Scheme>, num_bits: u64, promise: Promise) -> Result<Self> {
        Size { num_cells: num_bits, num_hashes: 1 }.checked()?;
        let base = Base::new(&KIND, spec_of(&scheme, num_bits), *scheme.hashing(), promise)?;
        Ok(Popularity { scheme, base, bits: Bits::new(num_bits)? })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        let scheme = uniform(&plan.spec, plan.hashing)?;
        Self::with_promise(scheme, plan.spec.required("num_bits")?, plan.promise)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let num_bits: u64 = from.spec.required("num_bits")?;
        let scheme = match from.spec.value::<SchemeId>("scheme", "the id of a scheme")? {
            None => uniform(from.spec, from.hashing)?,
            Some(id) => own_scheme(id, from.attachment.and_then(|attached| attached.downcast_ref()), &from.hashing)?,
        };
        Size { num_cells: num_bits, num_hashes: 1 }.checked()?;
        from.body.expect_bytes(Bits::byte_length(num_bits))?;
        let mut filter = Self::with_promise(scheme, num_bits, from.promise)?;
        if filter.spec() != from.spec {
            return Err(Error::corrupt(format!("the filter's spec should read '{}'", filter.spec())));
        }
        filter.base.arrivals = from.state.u64()?;
        from.state.finish()?;
        from.body.fill(filter.bits.bytes_mut())?;
        filter.bits.check()?;
        Ok(filter)
    }

    /// The scheme that says how many hashes a key has.
    pub fn scheme(&self) -> &Arc<Scheme> {
        &self.scheme
    }

    /// The number of hashes of a key.
    #[inline]
    pub fn hashes_for(&self, hash: KeyHash) -> u32 {
        // A filter has no scheme without classes.
        self.scheme.classes().map_or(0, |classes| classes.hashes_for(hash))
    }

    /// The hashes that every key has, whatever its class.
    #[inline]
    fn least_hashes(&self) -> u32 {
        self.scheme.classes().map_or(0, Classes::least_hashes)
    }

    /// Whether the bits of these hashes of a key are all set.
    #[inline]
    fn passes(&self, hash: KeyHash, hashes: Range<u32>) -> bool {
        probed::contains(self.bits.words(), self.bits.len(), hash, hashes)
    }

    /// Asks about at most [`CHUNK`] keys. Most of those that are not inside fail at the hashes that all classes share;
    /// the map is asked about the others only, and few of those have more hashes.
    fn contains_chunk(&self, hashes: &[KeyHash], found: &mut [bool], open: &mut Chosen) {
        let (words, range, least) = (self.bits.words(), self.bits.len(), self.least_hashes());
        probed::contains_batch(words, range, hashes, Hashes::all(least), found);
        open.take(hashes, found, |found| found);
        let mut num_hashes = [0; CHUNK];
        self.keep_longer(open, &mut num_hashes);
        let mut passed = [false; CHUNK];
        let more = Hashes::each(least, &num_hashes);
        probed::contains_batch(words, range, open.hashes(), more, &mut passed[..open.len()]);
        open.places().zip(passed).for_each(|(place, passed)| found[place] = passed);
    }

    /// Keeps the keys that have more hashes than every key has, and tells the number of each.
    fn keep_longer(&self, open: &mut Chosen, num_hashes: &mut [u32; CHUNK]) {
        let least = self.least_hashes();
        let own = &mut num_hashes[..open.len()];
        self.hashes_for_batch(open.hashes(), own);
        open.retain(own, |number| number > least);
    }

    fn hashes_for_batch(&self, hashes: &[KeyHash], num_hashes: &mut [u32]) {
        if let Some(classes) = self.scheme.classes() {
            classes.hashes_for_batch(hashes, num_hashes);
        }
    }

    /// Inserts keys, and says of each whether it has been here.
    fn observe_all(&mut self, hashes: &[KeyHash], verdicts: &mut [Verdict]) {
        self.base.count(hashes.len());
        let range = self.bits.len();
        let mut num_hashes = [0; CHUNK];
        for (hashes, verdicts) in hashes.chunks(CHUNK).zip(verdicts.chunks_mut(CHUNK)) {
            let num_hashes = &mut num_hashes[..hashes.len()];
            self.hashes_for_batch(hashes, num_hashes);
            probed::insert_batch(self.bits.words_mut(), range, hashes, Hashes::each(0, num_hashes), Some(verdicts));
        }
    }

    /// Inserts keys. Where nobody wants to know which are new, their order does not matter: all get the hashes that every
    /// key has, then some get more.
    fn insert_all(&mut self, hashes: &[KeyHash]) {
        self.base.count(hashes.len());
        let (range, least) = (self.bits.len(), self.least_hashes());
        probed::insert_batch(self.bits.words_mut(), range, hashes, Hashes::all(least), None);
        let (mut open, mut num_hashes) = (Chosen::none(), [0; CHUNK]);
        for hashes in hashes.chunks(CHUNK) {
            let own = &mut num_hashes[..hashes.len()];
            self.hashes_for_batch(hashes, own);
            open.take(hashes, own, |number| number > least);
            open.places().enumerate().for_each(|(to, place)| own[to] = own[place]);
            let more = Hashes::each(least, own);
            probed::insert_batch(self.bits.words_mut(), range, open.hashes(), more, None);
        }
    }

    /// How many distinct keys leave this share of the bits set: −(m/load)·ln(1 − fill).
    fn items_at_fill(&self, fill: f64) -> Option<f64> {
        let load = self.scheme.classes().map_or(0.0, Classes::load);
        let items = -(self.bits.len() as f64) / load * log1p(-fill);
        (load > 0.0 && items.is_finite()).then_some(items)
    }
}

/// How a filter of so many bits is named: by its hashes, if all keys have the same, else by its scheme.
fn spec_of(scheme: &Scheme, num_bits: u64) -> Spec {
    let spec = Spec::new(KIND.name).with("num_bits", num_bits);
    match scheme.classes().and_then(Classes::uniform_hashes) {
        // Only a scheme may give keys no hashes: no spec may ask for none.
        Some(num_hashes) if num_hashes > 0 => spec.with("num_hashes", num_hashes),
        _ => spec.with("scheme", scheme.id()),
    }
}

/// The scheme of a filter that has none of its own.
fn uniform(spec: &Spec, hashing: Hashing) -> Result<Arc<Scheme>> {
    let size = Size { num_cells: spec.required("num_bits")?, num_hashes: spec.required("num_hashes")? }.checked()?;
    let bits_per_key = size.num_cells as f64 / size.ideal_items() as f64;
    let classes = Classes::uniform(size.num_hashes)?;
    Ok(Arc::new(Scheme::new(hashing, bits_per_key.min(1e6), Recipe::Popularity(classes))?))
}

/// The scheme that was given, if it is the one that is needed.
fn own_scheme(id: SchemeId, given: Option<&Arc<Scheme>>, hashing: &Hashing) -> Result<Arc<Scheme>> {
    let wrong = |given: String| Error::Scheme {
        needed: id.to_string(),
        given,
        remedy: "give the scheme file that it was built with, as --scheme",
    };
    match given {
        Some(scheme) if scheme.id() == id && scheme.classes().is_some() && scheme.hashing() == hashing => {
            Ok(scheme.clone())
        }
        Some(scheme) => Err(wrong(format!("not {}", scheme.id()))),
        None => Err(wrong("which was not given".into())),
    }
}

everbloom::typed_filter!(Popularity: KIND; merge intersect);

impl Filter for Popularity {
    shows_base!();

    /// The filter's own bits; the scheme, which others share, takes [`Scheme::table_bits`].
    fn memory_bits(&self) -> u64 {
        self.bits.bytes().len() as u64 * 8
    }

    fn status(&self) -> Status {
        let fill = self.bits.fill();
        Status {
            arrivals: self.base.arrivals,
            fill,
            estimated_fpr: self.scheme.classes().map_or(1.0, |classes| classes.fpr_at_fill(fill)),
            estimated_items: self.items_at_fill(fill),
            ..Status::default()
        }
    }

    #[inline]
    fn contains_hash(&self, hash: KeyHash) -> bool {
        let least = self.least_hashes();
        self.passes(hash, 0..least) && self.passes(hash, least..self.hashes_for(hash))
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        let count = hashes.len().min(found.len());
        let mut open = Chosen::none();
        for (hashes, found) in hashes[..count].chunks(CHUNK).zip(found[..count].chunks_mut(CHUNK)) {
            self.contains_chunk(hashes, found, &mut open);
        }
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        Verdict::from_seen(!self.insert_hash(hash))
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        self.observe_all(&hashes[..count], &mut verdicts[..count]);
    }

    #[inline]
    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.base.count(1);
        let hashes = self.hashes_for(hash);
        let range = self.bits.len();
        probed::insert(self.bits.words_mut(), range, hash, hashes)
    }

    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        self.insert_all(hashes);
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

impl Merge for Popularity {
    fn merge(&mut self, other: &dyn Filter, how: Combine) -> Result<()> {
        let other = same_shape(self, other)?;
        how.words(self.bits.words_mut(), other.bits.words());
        self.base.arrivals = how.inserted(self.base.arrivals, other.base.arrivals);
        Ok(())
    }
}
