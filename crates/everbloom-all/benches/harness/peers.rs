//! The contenders: our filters, and other people's behind the same few calls.

use super::keys::{BenchKey, Long};
use everbloom::filters::{Blocked, Bloom, Counting, blocked, bloom, counting};
use everbloom::{Filter, FilterExt, Hashing};
use everbloom_cells::buffer::Line;
use foldhash::fast::FixedState;
use sbbf_rs::FilterFn;
use std::hash::BuildHasher;
use xorf::Filter as _;

/// What is timed, for one kind of key.
pub trait Timed<K> {
    fn insert(&mut self, keys: &[K]);

    /// Inserts keys that are already inside, so that lines and predictors are warm.
    fn warm_up(&mut self, keys: &[K]) {
        self.insert(keys);
    }

    /// How many of the keys are found.
    fn find(&self, keys: &[K]) -> usize;
}

/// A filter in the race.
pub trait Contender: Timed<u64> + Timed<Long> {
    fn name(&self) -> String;

    fn memory_bits(&self) -> u64;

    /// The rate of false positives that theory gives for so many keys, if we know it.
    fn predicted_fpr(&self, _items: u64) -> Option<f64> {
        None
    }

    /// What must be done between the last insertion and the first query.
    fn seal(&mut self) {}
}

/// One of ours, through its batch calls.
pub struct Batched<F>(pub F);

/// One of ours, key by key.
pub struct Single<F>(pub F);

impl<F: Filter, K: BenchKey> Timed<K> for Batched<F> {
    fn insert(&mut self, keys: &[K]) {
        self.0.insert_batch(keys);
    }

    fn find(&self, keys: &[K]) -> usize {
        count_found(&self.0, keys)
    }
}

/// How many of the keys a filter says are inside, asked in batches.
pub fn count_found<F: Filter + ?Sized, K: BenchKey>(filter: &F, keys: &[K]) -> usize {
    let mut found = [false; 4096];
    let mut count = 0;
    for keys in keys.chunks(found.len()) {
        let found = &mut found[..keys.len()];
        filter.contains_batch(keys, found);
        count += found.iter().filter(|found| **found).count();
    }
    count
}

impl<F: Filter, K: BenchKey> Timed<K> for Single<F> {
    fn insert(&mut self, keys: &[K]) {
        for key in keys {
            self.0.insert(key);
        }
    }

    fn find(&self, keys: &[K]) -> usize {
        keys.iter().filter(|key| self.0.contains(*key)).count()
    }
}

/// The rate that a filter of ours predicts.
pub trait Predicts: Filter {
    fn predicted(&self, items: u64) -> f64;
}

impl Predicts for Blocked {
    fn predicted(&self, items: u64) -> f64 {
        self.parameters().predicted_fpr(items)
    }
}

impl Predicts for Bloom {
    fn predicted(&self, items: u64) -> f64 {
        self.size().predicted_fpr(items)
    }
}

impl Predicts for Counting {
    fn predicted(&self, items: u64) -> f64 {
        self.parameters().size.predicted_fpr(items)
    }
}

macro_rules! contender {
    ($form:ident, $suffix:literal) => {
        impl<F: Predicts> Contender for $form<F> {
            fn name(&self) -> String {
                format!("{}{}", self.0.spec().kind(), $suffix)
            }

            fn memory_bits(&self) -> u64 {
                self.0.memory_bits()
            }

            fn predicted_fpr(&self, items: u64) -> Option<f64> {
                Some(self.0.predicted(items))
            }
        }
    };
}
contender!(Batched, ", batched");
contender!(Single, ", one by one");

/// `fastbloom` with foldhash.
pub struct FastBloom(fastbloom::BloomFilter<FixedState>);

impl<K: BenchKey> Timed<K> for FastBloom {
    fn insert(&mut self, keys: &[K]) {
        for key in keys {
            self.0.insert(key);
        }
    }

    fn find(&self, keys: &[K]) -> usize {
        keys.iter().filter(|key| self.0.contains(*key)).count()
    }
}

impl Contender for FastBloom {
    fn name(&self) -> String {
        "fastbloom + foldhash".into()
    }

    fn memory_bits(&self) -> u64 {
        self.0.num_bits() as u64
    }
}

/// A 64-bit hash for filters that want one.
pub trait Hash64: 'static {
    const NAME: &'static str;

    fn hash<K: BenchKey>(key: &K) -> u64;
}

/// foldhash, the fastest of the general ones.
pub struct Fold;

impl Hash64 for Fold {
    const NAME: &'static str = "foldhash";

    #[inline]
    fn hash<K: BenchKey>(key: &K) -> u64 {
        FixedState::with_seed(0).hash_one(key)
    }
}

/// XXH3-64: the function that we use, half as wide.
pub struct Xxh3;

impl Hash64 for Xxh3 {
    const NAME: &'static str = "xxh3";

    #[inline]
    fn hash<K: BenchKey>(key: &K) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(key.bytes(), 0)
    }
}

/// Half of the hash that we use.
pub struct Ours;

impl Hash64 for Ours {
    const NAME: &'static str = "our hash";

    #[inline]
    fn hash<K: BenchKey>(key: &K) -> u64 {
        key.hash_with(&Hashing::default()).low
    }
}

/// `sbbf-rs`, a split-block filter.
pub struct SplitBlock<H> {
    filter: FilterFn,
    buckets: usize,
    buffer: Vec<Line>,
    hash: std::marker::PhantomData<H>,
}

impl<H> SplitBlock<H> {
    pub fn new(bytes: u64) -> Self {
        // It leaves the memory to its user: here the allocator's, as most would do.
        let buffer = vec![Line([0; 8]); bytes as usize / 64];
        let buckets = bytes as usize / sbbf_rs::BUCKET_SIZE;
        SplitBlock { filter: FilterFn::new(), buckets, buffer, hash: std::marker::PhantomData }
    }
}

#[allow(unsafe_code, reason = "sbbf-rs has no safe calls")]
impl<K: BenchKey, H: Hash64> Timed<K> for SplitBlock<H> {
    fn insert(&mut self, keys: &[K]) {
        let start = self.buffer.as_mut_ptr().cast();
        for key in keys {
            // SAFETY: lines are 64-byte aligned, `buckets` is as many as there are and not zero.
            unsafe { self.filter.insert(start, self.buckets, H::hash(key)) };
        }
    }

    fn find(&self, keys: &[K]) -> usize {
        let start = self.buffer.as_ptr().cast();
        // SAFETY: as in `insert`.
        keys.iter().filter(|key| unsafe { self.filter.contains(start, self.buckets, H::hash(*key)) }).count()
    }
}

impl<H: Hash64> Contender for SplitBlock<H> {
    fn name(&self) -> String {
        format!("sbbf-rs + {}", H::NAME)
    }

    fn memory_bits(&self) -> u64 {
        self.buffer.len() as u64 * 512
    }
}

/// `xorf`'s BinaryFuse8, which is built in one go and then fixed.
#[derive(Default)]
pub struct Fuse {
    waiting: Vec<u64>,
    filter: Option<xorf::BinaryFuse8>,
}

impl<K: BenchKey> Timed<K> for Fuse {
    fn insert(&mut self, keys: &[K]) {
        self.waiting.extend(keys.iter().map(Fold::hash));
    }

    fn warm_up(&mut self, _keys: &[K]) {}

    fn find(&self, keys: &[K]) -> usize {
        let filter = self.filter.as_ref().expect("sealed");
        keys.iter().filter(|key| filter.contains(&Fold::hash(*key))).count()
    }
}

impl Contender for Fuse {
    fn name(&self) -> String {
        "xorf BinaryFuse8 + foldhash (static)".into()
    }

    fn memory_bits(&self) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.fingerprints.len() as u64 * 8)
    }

    fn seal(&mut self) {
        let keys = std::mem::take(&mut self.waiting);
        self.filter = Some(xorf::BinaryFuse8::try_from(keys).expect("distinct keys"));
    }
}

/// The names by which bars refer to contenders.
pub const BLOCKED: &str = "blocked, batched";
pub const BLOCKED_SINGLE: &str = "blocked, one by one";
pub const FASTBLOOM: &str = "fastbloom + foldhash";
pub const SBBF_FOLD: &str = "sbbf-rs + foldhash";
pub const SBBF_OURS: &str = "sbbf-rs + our hash";
pub const BLOOM: &str = "bloom, batched";
pub const BLOOM_SINGLE: &str = "bloom, one by one";
pub const COUNTING: &str = "counting, batched";

/// A blocked filter of this many bytes.
pub fn blocked_of(bytes: u64) -> Blocked {
    let parameters = blocked::Parameters::new(bytes * 8).expect("whole lines");
    Blocked::new(parameters, Hashing::default()).expect("memory for blocked")
}

/// A classic filter of this many bytes, with the best number of hashes.
pub fn bloom_of(bytes: u64, items: u64) -> Bloom {
    let size = bloom::Size::for_cells(bytes * 8, items).expect("a size");
    Bloom::new(size, Hashing::default()).expect("memory for bloom")
}

/// Everyone who can take part at this size.
pub fn contenders(bytes: u64, items: u64) -> Vec<Box<dyn Contender>> {
    let quarter = bloom::Size::for_cells(bytes * 2, items).expect("a size");
    let counting = counting::Parameters::new(quarter, 4).expect("a size");
    let fast = fastbloom::BloomFilter::with_num_bits(bytes as usize * 8).hasher(FixedState::with_seed(0));
    let mut all: Vec<Box<dyn Contender>> = vec![
        Box::new(Batched(blocked_of(bytes))),
        Box::new(Single(blocked_of(bytes))),
        Box::new(Batched(bloom_of(bytes, items))),
        Box::new(Single(bloom_of(bytes, items))),
        Box::new(Batched(Counting::new(counting, Hashing::default()).expect("memory for counting"))),
        Box::new(SplitBlock::<Fold>::new(bytes)),
        Box::new(SplitBlock::<Xxh3>::new(bytes)),
        Box::new(SplitBlock::<Ours>::new(bytes)),
        Box::new(FastBloom(fast.expected_items(items as usize))),
    ];
    // Its construction needs some twenty times the filter's memory.
    if bytes <= 32 << 20 {
        all.push(Box::new(Fuse::default()));
    }
    all
}
