//! A filter that many threads fill and ask at once.

use super::{AnyFilter, abilities};
use crate::codec;

use crate::filter::{Filter, Info, Kinds, SHARDS, Sharded};
use crate::key::{Hashing, Key, KeyHash};
use crate::planning::AUTO;
use crate::promise::{Goal, Importance, Result, Spec, Verdict};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A filter of any kind in shards, each behind a lock of its own: threads wait for each other only where their keys fall
/// into one shard.
///
/// Verdicts are those of the same filter with `shards=N` in one thread, if the keys of each shard come in the same order.
/// For [`Blocked`](crate::Blocked), [`AtomicBlocked`](crate::AtomicBlocked) needs no locks at all.
///
/// ```
/// use everbloom::{Goal, Shared};
///
/// let seen = Shared::new(&Goal::new().memory("1MiB").fpr("1%"), 16)?;
/// let new: usize = std::thread::scope(|scope| {
///     let count = |part: u64| (0..10_000).filter(|key| seen.insert(key * 4 + part)).count();
///     let threads: Vec<_> = (0..4).map(|part| scope.spawn(move || count(part))).collect();
///     threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
/// });
/// assert!((39_600..=40_000).contains(&new), "{new} of 40,000 at a promised 1 %");
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Shared {
    shards: Vec<Mutex<Box<dyn Filter>>>,
    whole: Sharded,
}

impl Shared {
    /// A filter for this goal in so many shards; a few for each thread are enough.
    pub fn new(goal: &Goal, shards: u32) -> Result<Self> {
        Self::new_among(Kinds::default(), goal, shards)
    }

    /// [`Shared::new`] where the goal may name any of these kinds.
    pub fn new_among(kinds: Kinds, goal: &Goal, shards: u32) -> Result<Self> {
        goal.checked()?;
        if let Some(spec) =
            goal.filter.as_ref().filter(|spec| kinds.of(spec).is_ok_and(|kind| kind.can.window.is_some()))
        {
            return Err(
                spec.error("the arrivals of a window do not fall evenly into shards", "share one filter behind a lock")
            );
        }
        let spec = goal.filter.clone().unwrap_or_else(|| Spec::new(AUTO));
        let spec = spec.without(SHARDS).with(SHARDS, shards);
        let plan = kinds.plan(&spec, &goal.clone().without_filter())?;
        Ok(Self::of(Sharded::from_plan(&plan)?))
    }

    fn of(mut whole: Sharded) -> Self {
        Shared { shards: whole.take_shards().into_iter().map(Mutex::new).collect(), whole }
    }

    /// The shard of a key. A thread that panicked while it held the lock left a filter that may have missed one key.
    fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Box<dyn Filter>> {
        let at = hash.shard(self.shards.len() as u64) as usize;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it hashes keys.
    pub fn hashing(&self) -> &Hashing {
        self.whole.hashing()
    }

    /// Whether the key seems to have been here. Changes nothing.
    pub fn contains(&self, key: impl Key) -> bool {
        let hash = key.hash_with(self.hashing());
        self.shard(hash).contains_hash(hash)
    }

    /// Remembers the key; true if it seems new.
    pub fn insert(&self, key: impl Key) -> bool {
        let hash = key.hash_with(self.hashing());
        self.shard(hash).insert_hash(hash)
    }

    /// Says whether the key has been here, then remembers it.
    pub fn observe(&self, key: impl Key, importance: Importance) -> Verdict {
        let hash = key.hash_with(self.hashing());
        self.shard(hash).observe_hash(hash, importance)
    }

    /// Takes one insertion of the key back, if the kind can; false if the key is not there.
    pub fn remove(&self, key: impl Key) -> Result<bool> {
        let hash = key.hash_with(self.hashing());
        abilities::remove(self.shard(hash).as_mut(), &key)
    }

    /// How often the key came, or seems to have, if the kind counts.
    pub fn count(&self, key: impl Key) -> Result<u64> {
        let hash = key.hash_with(self.hashing());
        abilities::count(self.shard(hash).as_ref(), &key)
    }

    /// A copy of all shards, taken one after another: keys that come meanwhile may be in it or not.
    pub fn snapshot(&self) -> AnyFilter {
        let copy = |shard: &Mutex<Box<dyn Filter>>| shard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self::joined(self.whole.clone(), self.shards.iter().map(copy).collect())
    }

    /// The filter, once no other thread has it.
    pub fn into_filter(self) -> AnyFilter {
        let inner = |shard: Mutex<Box<dyn Filter>>| shard.into_inner().unwrap_or_else(PoisonError::into_inner);
        Self::joined(self.whole, self.shards.into_iter().map(inner).collect())
    }

    fn joined(mut whole: Sharded, shards: Vec<Box<dyn Filter>>) -> AnyFilter {
        whole.put_shards(shards);
        AnyFilter::from(Box::new(whole) as Box<dyn Filter>)
    }

    /// What it is, promises and looks like now.
    pub fn info(&self) -> Info {
        self.snapshot().info()
    }

    /// The filter as bytes: those of [`Shared::snapshot`].
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self.snapshot().as_ref())
    }
}

impl TryFrom<AnyFilter> for Shared {
    type Error = crate::promise::Error;

    /// A filter in shards, as threads can share it.
    fn try_from(filter: AnyFilter) -> Result<Self> {
        let (spec, filter): (_, Box<dyn std::any::Any>) = (filter.spec().clone(), filter.into_dyn());
        match filter.downcast::<Sharded>() {
            Ok(whole) => Ok(Self::of(*whole)),
            Err(_) => Err(spec.error("it has no shards", format!("plan it with {SHARDS}=16"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::KINDS;

    #[test]
    fn threads_that_share_a_filter_lose_no_key_and_leave_what_one_would() {
        let threads = 4u64;
        for kind in KINDS.iter().filter(|kind| !kind.can.forget && kind.can.shard) {
            let goal = Goal::new().filter(kind.name).memory("256KiB").expected_items(8000).fpr(0.01);
            let shared = Shared::new(&goal, 8).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
            std::thread::scope(|scope| {
                for part in 0..threads {
                    let shared = &shared;
                    // Every key comes from two threads, at about the same time.
                    let keys = (0..8000u64).filter(move |key| key % threads == part || (key + 1) % threads == part);
                    scope.spawn(move || {
                        keys.for_each(|key| {
                            shared.insert(key);
                            assert!(shared.contains(key));
                        })
                    });
                }
            });
            assert!((0..8000u64).all(|key| shared.contains(key)), "{}", kind.name);
            let wrong = (8000..28_000u64).filter(|key| shared.contains(key)).count();
            // Four standard deviations above the promised 1 %.
            assert!(wrong as f64 <= 200.0 + 4.0 * 200f64.sqrt(), "{}: {wrong} of 20,000", kind.name);
            assert_eq!(shared.info().arrivals, 16_000, "{}", kind.name);
        }
    }

    #[test]
    fn one_thread_gets_the_verdicts_and_bytes_of_the_filter_in_shards() {
        for kind in KINDS.iter().filter(|kind| kind.can.shard && kind.can.window.is_none()) {
            let goal = Goal::new().memory("16KiB").expected_items(2000).fpr(0.05);
            let Ok(shared) = Shared::new(&goal.clone().filter(kind.name), 3) else { continue };
            let mut alone = goal.filter(&format!("{}:{SHARDS}=3", kind.name)).build().expect("plans");
            for key in (0..6000u64).map(|key| key * key % 2503) {
                assert_eq!(shared.insert(key), alone.insert(key), "{}", kind.name);
            }
            assert_eq!(shared.to_bytes(), alone.to_bytes(), "{}", kind.name);
            assert_eq!(shared.into_filter().to_bytes(), alone.to_bytes(), "{}", kind.name);
        }
    }
}
