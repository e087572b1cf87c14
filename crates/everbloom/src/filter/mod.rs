//! What a filter can do.
//!
//! [`Filter`] is the object-safe heart: every filter answers `contains`, and every one observes a stream. [`FilterExt`] puts keys in front of it, and the rest are abilities that only
//! some filters have: [`Removal`], [`Merge`], [`Windowed`], [`Multiplicity`].
//!
//! All work is defined on [`KeyHash`]es, so that a key is hashed once however many filters are
//! asked, and all of it has a batch form, because a batch can hash, prefetch and only then act.

mod base;
mod info;
mod keys;
mod kind;
mod kinds;
mod merge;
mod model;
mod parameter;
mod plan;
pub(crate) mod sharded;
mod timeline;
mod watch;

use crate::cells::buffer::Buffer;
use crate::format::StateWriter;
use crate::key::{Hashing, KeyHash};
use crate::promise::{Importance, Importances, Promise, Result, Spec, Status, Verdict};
use crate::simd::pipelined;
use std::any::Any;

pub use base::Base;
pub use base::shows_base;
pub use info::Info;
pub use keys::{FilterExt, Unseen};
pub use kind::{Abilities, Kind, OpenMapped, ReadAnnex, Restore, WindowParameters};
pub use kinds::Kinds;
pub(crate) use kinds::{broken_rate, id_of, restore};
pub use merge::same_shape;
pub use merge::{Combine, Merge};
pub use model::{Choices, Effort, FillAt, MOST_CHANGED, Model};
pub use parameter::one_of;
pub use parameter::{Parameter, Takes, Unset, names};
pub use plan::Plan;
pub use sharded::SHARDS;
pub(crate) use sharded::Sharded;
pub use timeline::{Timeline, Times, WindowStatus};
pub use watch::{Watch, Watched, standing, standing_of, watch, watch_of};

/// The bytes behind a filter, as the format stores them.
pub enum Body<'a> {
    /// Raw little-endian cells, one slice after another.
    Bytes(Vec<&'a [u8]>),
    /// So many 64-bit words, written as they come: for cells that are not stored as they lie.
    Words(u64, Box<dyn Iterator<Item = u64> + 'a>),
    /// Whole filters, one after another.
    Filters(Vec<&'a dyn Filter>),
}

/// A filter in bytes that somebody else holds.
pub trait Mapped: std::fmt::Debug + Send + Sync {
    /// Whether each key seems to have been inserted; `found` is as long as `hashes`.
    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]);

    /// Checks what the header does not tell.
    fn verify(&self) -> Result<()>;
}

/// What every filter can do, on hashes made by [`Filter::hashing`]; [`FilterExt`] takes keys and does the hashing.
///
/// A type of filter has a field `base`, a [`Base`]; `shows_base!()` writes [`Filter::base`] and [`Filter::base_mut`] for it. Six
/// methods are to be written: `memory_bits`, `status`, `contains_hash`, `observe_hash` (which counts the arrival, `base.count(1)`),
/// `clear` (which sets `base.arrivals` to 0) and `body`, the cells that are saved. What else must be saved goes into `save`; a filter
/// that grows also has `make_room`, `growth_bits` and `refused`; for each ability in [`Kind::can`], there is an `as_…` to override. The
/// rest is made of these.
pub trait Filter: Any + CloneBoxed + std::fmt::Debug + Send + Sync {
    /// What it carries besides its cells.
    fn base(&self) -> &Base;

    /// What it carries besides its cells, to change.
    fn base_mut(&mut self) -> &mut Base;

    /// What kind of filter it is.
    fn kind(&self) -> &'static Kind {
        self.base().kind
    }

    /// The full spec: kind and every parameter, as [`Spec::parse`] reads it.
    fn spec(&self) -> &Spec {
        &self.base().spec
    }

    /// How keys must be hashed for this filter.
    #[inline]
    fn hashing(&self) -> &Hashing {
        &self.base().hashing
    }

    /// What was promised when the filter was planned.
    fn promise(&self) -> Promise {
        self.base().promise
    }

    /// All of the state: cells, side tables, indexes.
    fn memory_bits(&self) -> u64;

    /// What the filter looks like now. Counts its cells, which takes a while in a large one; [`Filter::arrivals`] and
    /// [`Filter::refused`] are known at once.
    fn status(&self) -> Status;

    /// Arrivals observed or keys inserted so far, as [`Status::arrivals`] has them. Known at once, whatever the size.
    fn arrivals(&self) -> u64 {
        self.base().arrivals
    }

    /// Keys for which memory to grow was refused, as [`Status::refused`] has them. Known at once, whatever the size.
    fn refused(&self) -> u64 {
        0
    }

    /// Whether the key seems to have been here. Changes nothing.
    fn contains_hash(&self, hash: KeyHash) -> bool;

    /// [`Filter::contains_hash`] for a batch; `found` is as long as `hashes`.
    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        pipelined(
            &mut (),
            hashes.len().min(found.len()),
            self.prefetch_distance(),
            |(), index| self.prefetch_hashes(&hashes[index..=index]),
            |(), index| found[index] = self.contains_hash(hashes[index]),
        );
    }

    /// Says whether the key has been here, then remembers it.
    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict;

    /// [`Filter::observe_hash`] for a batch, with the same verdicts; `verdicts` is as long as `hashes`. An error, and nothing
    /// observed, if there are fewer importances than hashes.
    fn observe_hashes(
        &mut self,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        importances.check(hashes.len())?;
        self.observe_checked(hashes, importances, verdicts);
        Ok(())
    }

    /// Observes a batch where it is known that there are importances for all.
    fn observe_checked(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let (count, distance) = (hashes.len().min(verdicts.len()), self.prefetch_distance());
        pipelined(
            self,
            count,
            distance,
            |filter, index| filter.prefetch_hashes(&hashes[index..=index]),
            |filter, index| verdicts[index] = filter.observe_hash(hashes[index], importances.at(index)),
        );
    }

    /// Remembers a key; true if it seems new, as for `HashSet`.
    fn insert_hash(&mut self, hash: KeyHash) -> bool {
        self.observe_hash(hash, Importance::FULL).is_distinct()
    }

    /// Remembers a batch of keys.
    fn insert_hashes(&mut self, hashes: &[KeyHash]) {
        let distance = self.prefetch_distance();
        pipelined(
            self,
            hashes.len(),
            distance,
            |filter, index| filter.prefetch_hashes(&hashes[index..=index]),
            |filter, index| {
                filter.insert_hash(hashes[index]);
            },
        );
    }

    /// How many keys' cells should be asked for together, ahead of their turn; 0 if asking does not
    /// pay, because everything is in cache. A batch no longer than this is worked on at once: whoever
    /// sends it has called [`Filter::prefetch_hashes`], or gains little from it.
    fn prefetch_distance(&self) -> usize {
        0
    }

    /// Asks for what these keys will touch to be brought near. A hint: it changes nothing.
    fn prefetch_hashes(&self, _hashes: &[KeyHash]) {}

    /// Forgets everything, as if just built.
    fn clear(&mut self);

    /// The filter as one that can merge, if it can.
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        None
    }

    /// The filter as one that can remove, if it can.
    fn as_removal(&mut self) -> Option<&mut dyn Removal> {
        None
    }

    /// The filter as one with a window, if it has one.
    fn as_windowed(&mut self) -> Option<&mut dyn Windowed> {
        None
    }

    /// The filter as one that counts, if it does.
    fn as_multiplicity(&self) -> Option<&dyn Multiplicity> {
        None
    }

    /// What is kept beside the filter and saved behind it, if anything is: its audit.
    fn annex(&self) -> Option<&dyn Annex> {
        None
    }

    /// The filter alone, if something is kept beside it.
    fn inner(&self) -> Option<&dyn Filter> {
        None
    }

    /// How many of the arrivals were judged without error, but for two keys that share a 64-bit hash: all of them, or those
    /// before the filter had to begin to forget. Known at once, whatever the size.
    fn exact_arrivals(&self) -> u64 {
        0
    }

    /// Makes room for these keys, if the filter grows: after this, observing them allocates nothing. An error if the
    /// memory is refused; the filter is then as it was.
    ///
    /// Whoever observes without asking first still gets an answer for every key. What could not be kept is counted in
    /// [`Status::refused`].
    fn make_room(&mut self, _hashes: &[KeyHash]) -> Result<()> {
        Ok(())
    }

    /// By how many bits [`Filter::memory_bits`] would grow if [`Filter::make_room`] made room for these keys, so that a caller
    /// with a limit can refuse before anything is asked for. 0 for filters that do not grow, or have room.
    fn growth_bits(&self, _hashes: &[KeyHash]) -> u64 {
        0
    }
    /// What besides spec, hashing and body must be saved: the arrivals, and whatever [`Filter::save`] adds.
    fn state(&self) -> Vec<u8> {
        self.save(StateWriter::new().u64(self.base().arrivals)).finish()
    }
    /// Adds counters and generator to the state.
    fn save(&self, state: StateWriter) -> StateWriter {
        state
    }
    /// The cells.
    fn body(&self) -> Body<'_>;
}

/// What is kept beside a filter, sees what it sees, and is saved behind it.
pub trait Annex {
    /// As bytes.
    fn to_bytes(&self) -> Vec<u8>;

    /// How many bytes that makes.
    fn encoded_bytes(&self) -> u64;

    /// Whether it shows that the filter's promise is broken.
    fn shows_breach(&self, promise: &Promise) -> bool;
}

/// The filter alone, without what is kept beside it.
pub fn alone(filter: &dyn Filter) -> &dyn Filter {
    filter.inner().unwrap_or(filter)
}

/// Keys that [`insert_by_batches`] hands on together.
const TOGETHER: usize = 256;

/// One arrival at a filter that works by batches.
pub fn observe_one(filter: &mut impl Filter, hash: KeyHash, importance: Importance) -> Verdict {
    let mut verdicts = [Verdict::Distinct];
    filter.observe_checked(&[hash], Importances::All(importance), &mut verdicts);
    verdicts[0]
}

/// Insertion into a filter that works by batches.
pub fn insert_by_batches(filter: &mut impl Filter, hashes: &[KeyHash]) {
    let mut verdicts = [Verdict::Distinct; TOGETHER];
    for hashes in hashes.chunks(TOGETHER) {
        filter.observe_checked(hashes, Importances::default(), &mut verdicts[..hashes.len()]);
    }
}

/// A copy behind a pointer, for types that are known only as filters.
pub trait CloneBoxed {
    /// The copy. Like `Clone`, it ends the program where memory is refused.
    fn clone_boxed(&self) -> Box<dyn Filter>;

    /// The copy, or an error if the memory for it is refused: as much is asked for in one piece and given back before the copy
    /// takes it in its own pieces.
    fn try_clone_boxed(&self) -> Result<Box<dyn Filter>>;
}

impl<F: Filter + Clone> CloneBoxed for F {
    fn clone_boxed(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }

    fn try_clone_boxed(&self) -> Result<Box<dyn Filter>> {
        drop(Buffer::with_bits(self.memory_bits())?);
        Ok(self.clone_boxed())
    }
}

impl Clone for Box<dyn Filter> {
    fn clone(&self) -> Self {
        (**self).clone_boxed()
    }
}

/// Filters from which keys can be taken out again.
pub trait Removal {
    /// Takes one insertion of the key back; false, and nothing changed, if the key is not there.
    ///
    /// Only keys that were inserted may be removed: removing one that is merely a false positive
    /// takes cells away from other keys.
    fn remove_hash(&mut self, hash: KeyHash) -> bool;

    /// Counters that are at their maximum, and stay there: how many keys they stand for is no longer known, so that what
    /// is removed may still be found in them.
    fn stuck_counters(&mut self) -> u64;
}

/// Filters that remember a window of the stream, in generations.
pub trait Windowed {
    /// Generations that a key survives in full.
    fn generations(&self) -> u32;

    /// Generations more in which some of its traces are left, by which a key that comes again may be taken for known far
    /// more often than one that never came.
    fn partial_generations(&self) -> u32 {
        1
    }

    /// The arrivals of a window that it was planned for; 0 if it has no window, and only fades.
    fn window(&self) -> u64;

    /// Begins a new generation: what is older than [`Windowed::generations`] is forgotten.
    fn advance(&mut self);

    /// Begins so many generations, one after another.
    fn advance_by(&mut self, generations: u64) {
        // No filter remembers anything for longer.
        (0..generations.min(64)).for_each(|_| self.advance());
    }
}

/// Filters that know how often a key came.
pub trait Multiplicity {
    /// How often the key came, or seems to have; never less than it did, unless counts decay or are full.
    fn count_hash(&self, hash: KeyHash) -> u64;

    /// The highest count: a key that has it came so often, or more.
    fn max_count(&self) -> u64;
}
