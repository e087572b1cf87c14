//! What key lists and a log show.

use crate::querylog::popularity;
use everbloom::{Error, Hashing, KeyHash, Result};
use everbloom_cells::key::ByHash;

/// Key lists and a query log, hashed.
#[derive(Debug, Clone)]
pub struct Sample {
    hashing: Hashing,
    sets: Vec<Vec<KeyHash>>,
    log: Vec<KeyHash>,
}

impl Sample {
    /// The members of each set, and the queries in the order they came. A member that is listed twice counts once.
    pub fn new(hashing: Hashing, mut sets: Vec<Vec<KeyHash>>, log: Vec<KeyHash>) -> Result<Self> {
        if let Some(empty) = sets.iter().position(Vec::is_empty).or(sets.is_empty().then_some(0)) {
            let given = format!("empty in list {}", empty + 1);
            return Err(Error::parameter(
                "keys",
                given,
                "a list with at least one key for every set",
                "list the members of the set",
            ));
        }
        if log.len() < 2 {
            let given = format!("{} queries long", log.len());
            let remedy = "give the queries that were asked, in order of time";
            return Err(Error::parameter(
                "log",
                given,
                "at least two: one half to learn from, one to judge by",
                remedy,
            ));
        }
        if u32::try_from(log.len() + sets.iter().map(Vec::len).sum::<usize>()).is_err() {
            return Err(Error::parameter("log", log.len(), "fewer than 2^32 queries and keys", "take a part of it"));
        }
        for set in &mut sets {
            set.sort_unstable_by_key(|hash| (hash.high, hash.low));
            set.dedup();
        }
        Ok(Sample { hashing, sets, log })
    }
}

type Numbers = ByHash<KeyHash, u32>;

/// A key that is a member of some set or was asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Object {
    pub(super) hash: KeyHash,
    /// Sets that it is a member of.
    pub(super) member_of: u32,
    /// How often the first half asked for it; where there is only one set, in negative queries.
    pub(super) count: u32,
    /// How often the second half asked for it.
    pub(super) holdout: u32,
}

/// The number of buckets: unseen, and one for each power of two.
pub(super) const LEVELS: usize = 33;

/// The bucket of a key that was asked for this often: 0, 1, 2–3, 4–7, …
pub(super) fn level(count: u32) -> usize {
    (u32::BITS - count.leading_zeros()) as usize
}

/// What is known of a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bucket {
    /// Distinct keys.
    pub(super) keys: f64,
    /// Memberships.
    pub(super) members: f64,
    /// Negative queries of the later part of the first half, by the bucket that the key was in before.
    pub(super) misses: f64,
}

/// All that is learned from the first half, and the second half to judge by.
pub(super) struct Evidence {
    pub(super) hashing: Hashing,
    pub(super) objects: Vec<Object>,
    /// Members of each set, as numbers of objects.
    pub(super) sets: Vec<Vec<u32>>,
    pub(super) sets_sharing: u64,
    pub(super) buckets: [Bucket; LEVELS],
    /// Buckets by length of the key, where hashes carry it.
    pub(super) lengths: Option<Vec<Bucket>>,
}

impl Evidence {
    pub(super) fn gather(sample: &Sample, sets_sharing: Option<u64>) -> Result<Self> {
        let mut numbers = Numbers::default();
        let mut objects: Vec<Object> = Vec::new();
        let mut number = |hash: KeyHash| {
            *numbers.entry(hash).or_insert_with(|| {
                objects.push(Object { hash, ..Object::default() });
                objects.len() as u32 - 1
            })
        };
        let sets: Vec<Vec<u32>> =
            sample.sets.iter().map(|set| set.iter().map(|hash| number(*hash)).collect()).collect();
        let log: Vec<u32> = sample.log.iter().map(|hash| number(*hash)).collect();
        for member in sets.iter().flatten() {
            objects[*member as usize].member_of += 1;
        }
        let sets_sharing = sets_sharing.unwrap_or(sets.len() as u64);
        let mut evidence = Evidence {
            hashing: sample.hashing,
            objects,
            sets,
            sets_sharing,
            buckets: [Bucket::default(); LEVELS],
            lengths: matches!(sample.hashing, Hashing::Measured { .. }).then(|| vec![Bucket::default(); 256]),
        };
        let (first, second) = log.split_at(log.len() / 2);
        evidence.learn(first);
        second.iter().for_each(|number| evidence.objects[*number as usize].holdout += 1);
        evidence.checked()
    }

    /// Sets that a query for this object misses.
    pub(super) fn misses(&self, object: &Object) -> u32 {
        self.sets.len() as u32 - object.member_of
    }

    /// Whether there is one set that shares its scheme with no other: its members are known for good.
    pub(super) fn stands_alone(&self) -> bool {
        self.sets.len() == 1 && self.sets_sharing == 1
    }

    /// Counts the queries of the first half; those of its later part measure the buckets.
    fn learn(&mut self, queries: &[u32]) {
        let alone = self.stands_alone();
        for (time, number) in queries.iter().enumerate() {
            let object = self.objects[*number as usize];
            let misses = f64::from(self.misses(&object));
            if time >= queries.len() / 2 {
                self.buckets[level(object.count)].misses += misses;
            }
            if let Some(lengths) = &mut self.lengths {
                lengths[usize::from(object.hash.key_length())].misses += misses;
            }
            // Where there is only one set, a query for its member is never negative, however often it comes.
            self.objects[*number as usize].count += u32::from(!alone || misses > 0.0);
        }
        for object in &self.objects {
            let length = usize::from(object.hash.key_length());
            let by_length = self.lengths.as_mut().map(|lengths| &mut lengths[length]);
            for bucket in [Some(&mut self.buckets[level(object.count)]), by_length].into_iter().flatten() {
                bucket.keys += 1.0;
                bucket.members += f64::from(object.member_of);
            }
        }
    }

    fn checked(self) -> Result<Self> {
        let learnt: f64 = self.buckets.iter().map(|bucket| bucket.misses).sum();
        if learnt > 0.0 && self.holdout_misses() > 0 {
            return Ok(self);
        }
        let which = match (learnt > 0.0, self.holdout_misses() > 0) {
            (false, false) => "without queries for keys that are not members",
            (false, true) => "without queries for keys that are not members in its first half",
            _ => "without queries for keys that are not members in its second half",
        };
        let remedy = "only such queries can be false positives: give a log that has them";
        Err(Error::parameter("log", which, "with some, in both halves", remedy))
    }

    /// Negative queries of the second half, over all sets.
    pub(super) fn holdout_misses(&self) -> u64 {
        self.objects.iter().map(|object| u64::from(self.misses(object)) * u64::from(object.holdout)).sum()
    }

    /// The share of the second half's negative queries for which a condition holds.
    fn holdout_share(&self, holds: impl Fn(&Object) -> bool) -> f64 {
        let weight = |object: &Object| u64::from(self.misses(object)) * u64::from(object.holdout);
        let part: u64 = self.objects.iter().filter(|object| holds(object)).map(weight).sum();
        part as f64 / self.holdout_misses() as f64
    }

    pub(super) fn unseen_share(&self) -> f64 {
        self.holdout_share(|object| object.count == 0)
    }

    /// Whether the second half asks for unseen keys much more often than the first half did.
    pub(super) fn has_drifted(&self) -> bool {
        let before = self.buckets[0].misses / self.buckets.iter().map(|bucket| bucket.misses).sum::<f64>();
        self.unseen_share() > (1.5 * before).max(before + 0.1)
    }

    pub(super) fn mean_set_size(&self) -> f64 {
        self.sets.iter().map(Vec::len).sum::<usize>() as f64 / self.sets.len() as f64
    }

    /// The buckets as the solver takes them.
    pub(super) fn solver_classes(&self) -> Vec<popularity::Share> {
        self.buckets.iter().map(|bucket| popularity::Share::new(bucket.members, bucket.misses)).collect()
    }
}
