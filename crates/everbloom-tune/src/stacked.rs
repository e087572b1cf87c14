//! `stacked`: has the keys of frequent negative queries stored exactly.
//!
//! **Answers** "was this key inserted?" Never says no to a key that was. Hot negatives, the keys of frequent negative
//! queries that were named when the filter was built, are nearly always refused; any other key errs a little more often
//! than in a Bloom filter of the same size. It does not forget and does not grow.
//!
//! # How it works
//!
//! Layers, each asked only about what the one before lets through:
//!
//! ```text
//! 1  a Bloom filter of the members            no → not a member
//! 2  a map of the hot negatives that pass 1   no → a member (or a false positive of 1)
//! 3  a Bloom filter of the members that pass 2    no → not a member: a hot negative
//! 4  a map of the hot negatives that pass 3 …
//! ```
//!
//! Inserting a key sets its bits in layer 1, and goes on to the next filter of members for as long as the map in
//! between takes it for a hot negative. So keys can be added at any time and are never lost; the maps are built once,
//! and hot negatives that pass layer 1 only because of later keys are not in them.
//!
//! # Theory
//!
//! \[Deeds et al. 2020\]; the forms are in [`querylog::stacking`](crate::querylog::stacking), with the search for the
//! layers' sizes. For 100,000 members at 8 bits a key and queries with Zipf's law over a million keys, a million of them
//! to learn from and another million to judge by: 3.8e-3, against 2.2e-2 for a Bloom filter; nearly all of it comes from
//! queries for keys that the log did not show. At Zipf 1.5, 1.9e-4 against 2.2e-2.
//!
//! **Where we differ.** The negative layers are ribbons, not Bloom filters: they are built once, and take 1.03 bits a
//! key and bit of rate in place of 1.44. That matters where hot negatives outnumber members.
//!
//! # Cost
//!
//! A key that is not a member mostly ends in layer 1, after two or three cache lines; a member takes all of layer 1 and
//! the width of layer 2.
//!
//! # When to choose it
//!
//! For one large set whose queries are logged and repeat themselves. Not when many sets share the hot negatives
//! ([`Popularity`](super::Popularity)), nor when queries hardly repeat ([`Bloom`](everbloom::Bloom)). `everbloom tune`
//! tries all three. Without hot negatives it is the classic filter: one layer.
//!
//! # Example
//!
//! ```
//! use everbloom_tune::Stacked;
//! use everbloom_tune::scheme::{Design, HotNegatives};
//! use everbloom_tune::querylog::stacking::Demand;
//! use everbloom::FilterExt;
//! use everbloom::{Hashing, Key};
//!
//! let hashing = Hashing::seeded(0);
//! let hash = |key: u64| key.hash_with(&hashing);
//! let members: Vec<_> = (0..10_000).map(hash).collect();
//! let hot: Vec<_> = (10_000..15_000).map(hash).collect();
//! let demand = Demand { members: 1e4, hot_negatives: 5e3, query_share: 0.9, memory_bits: 8e4 };
//! let design = Design::best(&demand).expect("room enough").design;
//!
//! let filter = Stacked::build(hashing, 80_000, &members, &HotNegatives::new(hot, design, 0.9)?, None)?;
//! assert!((0..10_000u64).all(|key| filter.contains(&key)));
//! let wrong = (10_000..15_000u64).filter(|key| filter.contains(key)).count();
//! assert!(wrong < 5, "{wrong} of 5,000 hot negatives, where a Bloom filter has 108");
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::chosen::{CHUNK, Chosen};
use crate::ribbon::{MAX_SLOTS, MAX_WIDTH, Ribbon, Shape};
use crate::scheme::{HotNegatives, MAX_PAIRS, SchemeId};
use everbloom::kind::{
    Abilities, Base, Body, FillAt, Kind, MAX_MEMORY_BITS, Model, Parameter, Restore, StateWriter, Takes, Unset,
    shows_base, size_text,
};
use everbloom::sizing::{MAX_HASHES, Size};
use everbloom::{
    Error, Filter, Goal, Hashing, Holds, Importance, Importances, KeyHash, Plan, Promise, Result, Spec, Status, Verdict,
};
use everbloom_cells::bits::Bits;
use everbloom_cells::probed::{self, Hashes};
use libm::{exp2, pow};
use std::borrow::Cow;

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 43,
    retired: &[41],
    name: "stacked",
    summary: "Bloom filter with frequent negative queries stored exactly, from a scheme made by `everbloom tune`",
    parameters: &PARAMETERS,
    can: Abilities { follow_scheme: Some("scheme"), ..Abilities::SET },
    model: Model { fill_at, ..Model::sized(&[]) },
    extension: None,
    plan: planned,
    build: |plan| Ok(Box::new(Stacked::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Stacked::restore(from)?)),
    map: None,
};

const PARAMETERS: [Parameter; 5] = [
    Parameter::planned("num_bits", "bits of each filter of members", Takes::Layers(1, MAX_MEMORY_BITS)),
    Parameter::planned("num_hashes", "bits that a key sets in each", Takes::Layers(1, MAX_HASHES as u64)),
    Parameter::planned(
        "map_slots",
        "slots of each map between them; one map fewer than filters",
        Takes::Layers(1, MAX_SLOTS),
    )
    .or(Unset::Without),
    Parameter::planned("map_width", "bits of a slot of each map", Takes::Layers(1, MAX_WIDTH as u64))
        .or(Unset::Without),
    Parameter::planned("scheme", "the scheme it was built with, which build --scheme fills in", Takes::SchemeId)
        .or(Unset::Without),
];

/// A Bloom filter of members.
#[derive(Debug, Clone)]
struct Layer {
    num_hashes: u32,
    bits: Bits,
}

impl Layer {
    fn new(size: Size) -> Result<Self> {
        let size = size.checked()?;
        Ok(Layer { num_hashes: size.num_hashes, bits: Bits::new(size.num_cells)? })
    }

    #[inline]
    fn contains(&self, hash: KeyHash) -> bool {
        probed::contains(self.bits.words(), self.bits.len(), hash, 0..self.num_hashes)
    }

    fn insert(&mut self, hash: KeyHash) -> bool {
        let range = self.bits.len();
        probed::insert(self.bits.words_mut(), range, hash, self.num_hashes)
    }

    fn contains_batch(&self, hashes: &[KeyHash], found: &mut [bool]) {
        probed::contains_batch(self.bits.words(), self.bits.len(), hashes, Hashes::all(self.num_hashes), found);
    }

    fn insert_batch(&mut self, hashes: &[KeyHash], verdicts: Option<&mut [Verdict]>) {
        let range = self.bits.len();
        probed::insert_batch(self.bits.words_mut(), range, hashes, Hashes::all(self.num_hashes), verdicts);
    }

    fn rate(&self) -> f64 {
        pow(self.bits.fill(), f64::from(self.num_hashes))
    }
}

/// The shape of all layers, as the spec writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shapes {
    layers: Vec<Size>,
    maps: Vec<Shape>,
    scheme: Option<SchemeId>,
}

/// The numbers of a parameter, `8192/512/64`.
fn numbers<T: std::str::FromStr>(spec: &Spec, word: &str) -> Result<Vec<T>> {
    let Some(text) = spec.get(word) else { return Ok(Vec::new()) };
    let wrong = || spec.error(format!("{word} is '{text}'"), format!("{word} takes whole numbers, such as 8192/512"));
    text.split('/').map(|number| number.parse().map_err(|_| wrong())).collect()
}

impl Shapes {
    fn from_spec(spec: &Spec) -> Result<Self> {
        let (bits, hashes) = (numbers(spec, "num_bits")?, numbers(spec, "num_hashes")?);
        let (slots, widths) = (numbers(spec, "map_slots")?, numbers(spec, "map_width")?);
        let fits = bits.len() == hashes.len() && slots.len() == widths.len() && bits.len() == slots.len() + 1;
        if !fits || slots.len() > MAX_PAIRS {
            let problem = format!("it has {} filters of members and {} maps between them", bits.len(), slots.len());
            let remedy = format!("give one map fewer than filters, and at most {MAX_PAIRS}");
            return Err(spec.error(problem, remedy));
        }
        let layers =
            bits.into_iter().zip(hashes).map(|(num_cells, num_hashes)| Size { num_cells, num_hashes }.checked());
        let maps = slots.into_iter().zip(widths).map(|(slots, width)| Shape { slots, width }.checked());
        let scheme = spec.value("scheme", "the id of a scheme")?;
        Ok(Shapes { layers: layers.collect::<Result<_>>()?, maps: maps.collect::<Result<_>>()?, scheme })
    }

    fn spec(&self) -> Spec {
        let join = |numbers: Vec<String>| numbers.join("/");
        let spec = Spec::new(KIND.name)
            .with("num_bits", join(self.layers.iter().map(|size| size.num_cells.to_string()).collect()))
            .with("num_hashes", join(self.layers.iter().map(|size| size.num_hashes.to_string()).collect()));
        let spec = match self.maps.is_empty() {
            true => spec,
            false => spec
                .with("map_slots", join(self.maps.iter().map(|shape| shape.slots.to_string()).collect()))
                .with("map_width", join(self.maps.iter().map(|shape| shape.width.to_string()).collect())),
        };
        self.scheme.iter().fold(spec, |spec, id| spec.with("scheme", id))
    }

    fn memory_bits(&self) -> u64 {
        let layers = self.layers.iter().map(|size| Bits::byte_length(size.num_cells) * 8);
        layers.chain(self.maps.iter().map(|shape| shape.bits())).fold(0, u64::saturating_add)
    }
}

/// A spec with maps gives every size itself; anything else is planned as one layer.
fn planned(spec: &Spec, goal: &Goal) -> Result<Plan> {
    if spec.get("map_slots").is_some() || spec.get("map_width").is_some() {
        let shapes = Shapes::from_spec(spec)?;
        let promise = shapes.layers[0].promise(goal.known_items(), goal.target_fpr());
        return Ok(Plan::new(&KIND, shapes.spec(), shapes.memory_bits(), promise, goal.key_hashing()));
    }
    let (size, items) = Size::planned(spec, goal, ["num_bits", "num_hashes"], 1)?;
    let scheme = spec.value("scheme", "the id of a scheme")?;
    let shapes = Shapes { layers: vec![size], maps: Vec::new(), scheme };
    Ok(Plan::new(
        &KIND,
        shapes.spec(),
        shapes.memory_bits(),
        size.promise(items, goal.target_fpr()),
        goal.key_hashing(),
    ))
}

/// On a stream no negatives are stored: what passes the first layer passes.
fn fill_at(spec: &Spec) -> Result<Option<FillAt>> {
    let first = Shapes::from_spec(spec)?.layers[0];
    Ok(Some(Box::new(move |items| first.state(items))))
}

/// A stacked filter. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Stacked {
    base: Base,
    /// Filters of members; `maps[i]` lies between `layers[i]` and `layers[i + 1]`.
    layers: Vec<Layer>,
    maps: Vec<Ribbon>,
    scheme: Option<SchemeId>,
}

/// Attempts to fit the layers to the memory: each starts where the last one missed.
const FITTINGS: u32 = 6;

/// Memory up to here is used to the last line. In more of it some may stay unused, because every attempt inserts all members
/// again.
const FITTED_BITS: u64 = 1 << 19;

/// What the layers are planned to leave unused in more memory than that, so that they nearly always fit; twice as much is
/// accepted. Two lines, in little memory, are twice what chance adds to the rear layers or takes from them.
fn unused_bits(memory_bits: u64) -> u64 {
    (memory_bits / 2048).max(1024)
}

impl Stacked {
    /// A filter of these members within `memory_bits`, with these negatives stored exactly; `scheme` is the scheme
    /// they come from, for those who want to check.
    ///
    /// A key that is in both lists counts as a member.
    pub fn build(
        hashing: Hashing,
        memory_bits: u64,
        members: &[KeyHash],
        negatives: &HotNegatives,
        scheme: Option<SchemeId>,
    ) -> Result<Self> {
        let too_small = || Error::Infeasible {
            wanted: format!("{} frequent negative queries within {}", negatives.keys().len(), size_text(memory_bits)),
            reason: "the layers that store them leave no room for the members".into(),
            remedy: "give more memory, or tune again for this much".into(),
        };
        // What the rear layers take is only known once they are built; the first then gets the rest.
        let (mut first_bits, unused) = match memory_bits {
            0..=FITTED_BITS => (memory_bits / 512 * 512, 0),
            _ => (expected_first_bits(memory_bits, members.len(), negatives)?, 2 * unused_bits(memory_bits)),
        };
        let mut best: Option<Stacked> = None;
        for _ in 0..FITTINGS {
            if first_bits == 0 {
                break;
            }
            let built = Self::stack(hashing, first_bits, members, negatives, scheme)?;
            let total = built.memory_bits();
            let fits = total <= memory_bits;
            let missed = (memory_bits / 512).abs_diff(total / 512) * 512;
            if fits && best.as_ref().is_none_or(|best| best.memory_bits() < total) {
                best = Some(built);
            }
            if fits && missed <= unused {
                break;
            }
            first_bits = if fits { first_bits + missed } else { first_bits.saturating_sub(missed.max(512)) };
        }
        best.ok_or_else(too_small)
    }

    /// The layers, given the size of the first.
    fn stack(
        hashing: Hashing,
        first_bits: u64,
        members: &[KeyHash],
        negatives: &HotNegatives,
        scheme: Option<SchemeId>,
    ) -> Result<Self> {
        let inserted = members.len();
        let count = (inserted as u64).max(1);
        let first = Size::for_cells(first_bits, count)?;
        let mut layers = vec![filled(first, members)?];
        let mut maps = Vec::new();
        // A hot negative that is a member passes, so only those that do need be looked for among the members.
        let mut hot = without(passing(&layers[0], negatives.keys()), members);
        let mut members = Cow::Borrowed(members);
        for pair in negatives.design().pairs() {
            let map = Ribbon::build(&hot.iter().map(|hash| (*hash, KNOWN)).collect::<Vec<_>>(), pair.width)?;
            members = Cow::Owned(known(&map, &members));
            let layer = filled(Size::for_rate(members.len().max(1) as u64, pair.target_fpr)?, &members)?;
            hot = passing(&layer, &hot);
            maps.push(map);
            layers.push(layer);
        }
        let (hot_rate, other_rate) = negatives.design().rates(first.predicted_fpr(count));
        let predicted_fpr = negatives.query_share() * hot_rate + (1.0 - negatives.query_share()) * other_rate;
        // It holds for queries like those of the log, which cannot be promised.
        let promise = Promise::until(0, predicted_fpr).held(Holds::Never);
        let spec = shapes_of(&layers, &maps, scheme).spec();
        let base = Base { arrivals: inserted as u64, ..Base::new(&KIND, spec, hashing, promise)? };
        Ok(Stacked { base, layers, maps, scheme })
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::empty(&Shapes::from_spec(&plan.spec)?, Base::planned(plan)?, &[0; MAX_PAIRS])
    }

    fn empty(shapes: &Shapes, base: Base, seeds: &[u64]) -> Result<Self> {
        let layers = shapes.layers.iter().map(|size| Layer::new(*size)).collect::<Result<_>>()?;
        let maps = shapes.maps.iter().zip(seeds).map(|(shape, seed)| Ribbon::empty(*shape, *seed));
        let maps = maps.collect::<Result<_>>()?;
        Ok(Stacked { base, layers, maps, scheme: shapes.scheme })
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let shapes = Shapes::from_spec(from.spec)?;
        from.body.expect_bytes(shapes.memory_bits() / 8)?;
        let base = Base::restored(shapes.spec(), &mut from)?;
        let seeds = shapes.maps.iter().map(|_| from.state.u64()).collect::<Result<Vec<_>>>()?;
        from.state.finish()?;
        let mut filter = Self::empty(&shapes, base, &seeds)?;
        for layer in &mut filter.layers {
            from.body.fill(layer.bits.bytes_mut())?;
            layer.bits.check()?;
        }
        for map in &mut filter.maps {
            from.body.fill(map.bytes_mut())?;
            map.check()?;
        }
        Ok(filter)
    }

    /// The scheme that its hot negatives come from, if any.
    pub fn scheme(&self) -> Option<SchemeId> {
        self.scheme
    }

    /// The rate of false positives for keys that are not stored exactly, from the present contents.
    fn rate_of_unknown(&self) -> f64 {
        let mut rate = 1.0;
        for (layer, map) in self.layers[1..].iter().zip(&self.maps).rev() {
            let known = exp2(-f64::from(map.shape().width));
            rate = (1.0 - known) + known * layer.rate() * rate;
        }
        (self.layers[0].rate() * rate).min(1.0)
    }
}

fn shapes_of(layers: &[Layer], maps: &[Ribbon], scheme: Option<SchemeId>) -> Shapes {
    let size = |layer: &Layer| Size { num_cells: layer.bits.len(), num_hashes: layer.num_hashes };
    Shapes { layers: layers.iter().map(size).collect(), maps: maps.iter().map(Ribbon::shape).collect(), scheme }
}

/// The keys that are not among the members, in their order.
fn without(mut keys: Vec<KeyHash>, members: &[KeyHash]) -> Vec<KeyHash> {
    // A bit for each key first, which most members do not have.
    let places = (keys.len() as u64 * 64).max(1);
    let mut marks = vec![0u64; keys.len() + 1];
    for key in &keys {
        let place = key.index(places);
        marks[(place / 64) as usize] |= 1 << (place % 64);
    }
    let marked = |key: &&KeyHash| {
        let place = key.index(places);
        marks[(place / 64) as usize] >> (place % 64) & 1 == 1
    };
    let order = |key: &KeyHash| (key.high, key.low);
    let mut both: Vec<(u64, u64)> = members.iter().filter(marked).map(order).collect();
    both.sort_unstable();
    keys.retain(|key| both.binary_search(&order(key)).is_err());
    keys
}

/// The bits of the first layer if everything comes as expected, a little less so that nearly all filters fit.
fn expected_first_bits(memory_bits: u64, members: usize, negatives: &HotNegatives) -> Result<u64> {
    let goal = memory_bits - unused_bits(memory_bits);
    let mut first_bits = goal / 512 * 512;
    for _ in 0..FITTINGS {
        let first = Size::for_cells(first_bits.max(512), (members as u64).max(1))?;
        let mut inside = members as f64;
        let mut hot = negatives.keys().len() as f64 * first.predicted_fpr((members as u64).max(1));
        let mut rear = 0;
        for pair in negatives.design().pairs() {
            inside *= exp2(-f64::from(pair.width));
            let layer = Size::for_rate(inside.max(1.0) as u64, pair.target_fpr)?;
            rear += Shape::for_keys(hot as u64, pair.width).bits() + Bits::byte_length(layer.num_cells) * 8;
            hot *= pair.target_fpr;
        }
        first_bits = goal.saturating_sub(rear) / 512 * 512;
    }
    Ok(first_bits.max(512))
}

/// The value of hot negatives in a map.
const KNOWN: u32 = 0;

fn filled(size: Size, keys: &[KeyHash]) -> Result<Layer> {
    let mut layer = Layer::new(size)?;
    layer.insert_batch(keys, None);
    Ok(layer)
}

fn passing(layer: &Layer, keys: &[KeyHash]) -> Vec<KeyHash> {
    let mut found = vec![false; keys.len()];
    layer.contains_batch(keys, &mut found);
    keys.iter().zip(found).filter(|(_, found)| *found).map(|(hash, _)| *hash).collect()
}

/// The keys that the map takes for hot negatives.
fn known(map: &Ribbon, keys: &[KeyHash]) -> Vec<KeyHash> {
    let (mut values, mut chosen) = ([0; CHUNK], Chosen::none());
    let mut known = Vec::new();
    for keys in keys.chunks(CHUNK) {
        map.get_batch_below(KNOWN + 1, keys, &mut values[..keys.len()]);
        chosen.take(keys, &values[..keys.len()], |value| value == KNOWN);
        known.extend_from_slice(chosen.hashes());
    }
    known
}

/// Keeps the keys that the map takes for hot negatives.
fn retain_known(going: &mut Chosen, map: &Ribbon) {
    let mut values = [0; CHUNK];
    map.get_batch_below(KNOWN + 1, going.hashes(), &mut values[..going.len()]);
    going.retain(&mut values, |value| value == KNOWN);
}

everbloom::typed_filter!(Stacked: KIND);

impl Filter for Stacked {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        shapes_of(&self.layers, &self.maps, self.scheme).memory_bits()
    }

    fn status(&self) -> Status {
        let (first, fill) = (&self.layers[0], self.layers[0].bits.fill());
        let size = Size { num_cells: first.bits.len(), num_hashes: first.num_hashes };
        Status {
            arrivals: self.base.arrivals,
            fill,
            estimated_fpr: self.rate_of_unknown(),
            estimated_items: size.items_at_fill(fill),
            ..Status::default()
        }
    }

    #[inline]
    fn contains_hash(&self, hash: KeyHash) -> bool {
        for (layer, map) in self.layers.iter().zip(&self.maps) {
            if !layer.contains(hash) {
                return false;
            }
            if map.get_below(KNOWN + 1, hash) != KNOWN {
                return true;
            }
        }
        self.layers.last().is_some_and(|layer| layer.contains(hash))
    }

    /// Each layer is asked about all keys that the last one and its map let pass.
    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        let count = hashes.len().min(found.len());
        let (mut going, mut passed) = (Chosen::none(), [false; CHUNK]);
        for (hashes, found) in hashes[..count].chunks(CHUNK).zip(found[..count].chunks_mut(CHUNK)) {
            self.layers[0].contains_batch(hashes, found);
            going.take(hashes, found, |found| found);
            for (layer, map) in self.layers[1..].iter().zip(&self.maps) {
                retain_known(&mut going, map);
                layer.contains_batch(going.hashes(), &mut passed[..going.len()]);
                going.places().zip(passed).for_each(|(place, passed)| found[place] = passed);
                going.retain(&mut passed, |passed| passed);
            }
        }
    }

    fn observe_hash(&mut self, hash: KeyHash, _importance: Importance) -> Verdict {
        Verdict::from_seen(!self.insert_hash(hash))
    }

    /// A key is new if it is new to one of the layers that it goes through, and maps alone decide which these are: so each
    /// layer takes all its keys at once, in their order.
    fn observe_checked(&mut self, hashes: &[KeyHash], _importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let count = hashes.len().min(verdicts.len());
        self.base.count(count);
        let (mut going, mut told) = (Chosen::none(), [Verdict::Distinct; CHUNK]);
        for (hashes, verdicts) in hashes[..count].chunks(CHUNK).zip(verdicts[..count].chunks_mut(CHUNK)) {
            self.layers[0].insert_batch(hashes, Some(verdicts));
            going.take_all(hashes);
            for (layer, map) in self.layers[1..].iter_mut().zip(&self.maps) {
                retain_known(&mut going, map);
                layer.insert_batch(going.hashes(), Some(&mut told[..going.len()]));
                for (place, told) in going.places().zip(told) {
                    if told.is_distinct() {
                        verdicts[place] = told;
                    }
                }
            }
        }
    }

    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        self.base.count(hashes.len());
        self.layers[0].insert_batch(hashes, None);
        if self.maps.is_empty() {
            return;
        }
        let mut going = Chosen::none();
        for hashes in hashes.chunks(CHUNK) {
            going.take_all(hashes);
            for (layer, map) in self.layers[1..].iter_mut().zip(&self.maps) {
                retain_known(&mut going, map);
                layer.insert_batch(going.hashes(), None);
            }
        }
    }

    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.base.count(1);
        let mut new = false;
        for at in 0..self.layers.len() {
            new |= self.layers[at].insert(hash);
            if self.maps.get(at).is_none_or(|map| map.get_below(KNOWN + 1, hash) != KNOWN) {
                break;
            }
        }
        new
    }

    /// Forgets the members, not the hot negatives.
    fn clear(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.bits.clear());
        self.base.arrivals = 0;
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        self.maps.iter().fold(state, |state, map| state.u64(map.seed()))
    }

    fn body(&self) -> Body<'_> {
        let layers = self.layers.iter().map(|layer| layer.bits.bytes());
        Body::Bytes(layers.chain(self.maps.iter().map(|map| map.bytes())).collect())
    }
}
