//! What a running filter gets wrong, measured on the stream it works on.
//!
//! An audit sees every arrival with the filter's verdict and changes nothing. It follows some of the keys exactly, so that it
//! knows of each of their arrivals whether the verdict was right, and estimates the rates of all keys from them.
//!
//! # What is followed
//!
//! - **A sample of the keys.** A key's 128 bits and the audit's own random seed make a number `u`; keys with `u` below a
//!   threshold θ are followed from their first arrival on. When the memory is full θ is halved and the keys above it are
//!   dropped with all their tallies, so that what remains has its whole history.
//! - **The hottest keys**, whatever their `u`, in a small table ([`hot`]). Of a key that enters it late nothing is known of
//!   before, so arrivals are counted there and not keys: an arrival is *covered* if its key was in the table when it came. It is
//!   then known to be a repeat, with its lag, because the table saw the arrival before it. All other arrivals are the
//!   sample's. Each arrival counts in one of the two ways, and which one does not depend on `u`.
//!
//! # The estimates
//!
//! Let y be what is counted of a key's uncovered arrivals (say, repeats that were called new). The sum over all keys is
//! estimated without bias by the sum over the sampled ones divided by θ (Horvitz and Thompson, 1952), though θ depends on the
//! stream and on all `u`. *Proof.* θ is the largest 2^−d with which the followed keys never filled the memory, and what
//! memory a set of keys takes depends on that set alone. For a key k let θ_k be the θ that would have come about with u_k = 0.
//! If u_k < θ_k, every set of keys below a threshold of at least θ_k is the same as with u_k = 0, so θ = θ_k and k is
//! sampled. If k is sampled, u_k < θ, the same argument gives θ_k = θ. So k is sampled exactly if u_k < θ_k, where θ_k does not
//! depend on u_k, and the expectation of \[k sampled\]/θ is P(u_k < θ_k)/θ_k = 1. ∎ (Thresholds of this kind are the
//! *substitutable* ones of Ting, 2022.) The same argument for two keys shows that their terms are uncorrelated, and that
//! Σ (1 − θ)/θ² y² over the sample estimates the variance without bias. Covered arrivals are counted, which has no variance.
//!
//! A rate is a ratio of two such sums, with the bias of all ratio estimators, of the order of 1/(sampled keys). How its interval
//! is found from the variance between keys is told in [`estimate`].
//!
//! # The last part
//!
//! The stream is divided at arrivals 2^(i/2). The last part are the present division and the one before it: the last 29 to 50 %
//! of the arrivals. Older divisions are added up, so that a key has at most two tallies for it.

mod bytes;
mod estimate;
mod hot;
mod report;
mod tallies;

use crate::key::{KeyHash, finalise};
use crate::promise::{Error, Importance, Importances, Result, Verdict};
use hot::Hot;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use tallies::{Class, NONE, Tallies, Totals};

pub use estimate::Measured;
pub use report::{AuditReport, Breach, ByImportance, ByLag, LastPart};

/// The least memory of an audit, in bytes.
pub const LEAST_BYTES: u64 = 4096;
/// The most: more keys would tell nothing more.
const MOST_BYTES: u64 = 1 << 32;
/// Parts into which importances are divided.
pub(crate) const IMPORTANCE_CLASSES: u32 = 8;
/// Where the age of a key counts from that no window remembers.
const NEVER: i64 = i64::MIN;
/// What a key takes in the map: its id, what is known of it, a byte of the map's own.
const KEY_BYTES: u64 = 33;

/// Follows some keys of a stream exactly, and knows from them what a filter gets wrong.
///
/// ```
/// use everbloom::internal::audit::Audit;
/// use everbloom::{Hashing, Importances, Verdict};
///
/// let hashes = [1u64, 2, 1, 2].map(|key| Hashing::default().hash_u64(key));
/// let mut audit = Audit::new(1 << 16, 7)?;
/// audit.observe(&hashes, Importances::default(), &[Verdict::Distinct, Verdict::Distinct, Verdict::Distinct, Verdict::Duplicate]);
/// let report = audit.report();
/// assert_eq!(report.measured_fpr.map(|fpr| fpr.rate), Some(0.0));
/// assert_eq!(report.measured_fnr.map(|fnr| fnr.rate), Some(0.5), "one of two repeats was called new");
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Audit {
    /// What it may take.
    memory_bytes: u64,
    seed: u64,
    horizon: Option<Horizon>,
    arrivals: u64,
    /// The newest time, of arrivals that have one.
    newest: i64,
    /// θ is 2^−halvings.
    halvings: u32,
    /// Whether importances were given.
    weighted: bool,
    keys: HashMap<u64, Followed, BuildHasherDefault<ById>>,
    most_keys: usize,
    tallies: Tallies,
    hot: Hot,
    /// What the covered arrivals came to.
    covered: Totals,
    division: u8,
    /// The arrival that begins the next division.
    next_division: u64,
}

/// For a filter with a window: which arrivals are repeats to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// An arrival no farther from the last one of its key than this is a repeat.
    pub within: u64,
    /// One farther than this is new. What lies between, a window that forgets in steps may call either.
    pub beyond: u64,
    /// Whether this is microseconds; arrivals otherwise.
    pub timed: bool,
    /// Whether every arrival renews a key's age; only those called new otherwise.
    pub renews: bool,
}

/// What is known of a key in the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Followed {
    seen: Seen,
    /// The first of its tallies.
    head: u32,
    /// Where its first arrival was.
    division: u8,
    importance: u8,
    /// Whether that was called a repeat.
    wrong: bool,
}

/// When a key was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Seen {
    arrival: u64,
    /// Where its age in a window counts from: an arrival or a time.
    anchor: i64,
}

/// One arrival.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: u64,
    /// Its place in a window: arrival or time.
    place: i64,
    importance: u8,
    verdict: Verdict,
}

/// What an arrival was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    New,
    Repeat,
    /// A window may call it either.
    Either,
}

/// Ids are uniform but for their first bits, which are zero.
#[derive(Default)]
struct ById(u64);

impl Hasher for ById {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The division of a stream that an arrival belongs to, counted from one: ⌊2 log2 n⌋ + 1.
fn division_of(arrival: u64) -> u8 {
    let n = arrival.max(1);
    let whole = n.ilog2();
    // n² ≥ 2^(2 whole + 1) is exact, and a logarithm is not.
    let half = u32::from(u128::from(n) * u128::from(n) >= 1u128 << (2 * whole + 1));
    (2 * whole + half + 1) as u8
}

/// The first arrival of a division.
fn start_of(division: u8) -> u64 {
    if division > 128 {
        return u64::MAX;
    }
    let power = u32::from(division.max(1)) - 1;
    let root = (1u128 << power).isqrt();
    // Rounded up: the first whole number that is not below it.
    (if root * root == 1u128 << power { root } else { root + 1 }) as u64
}

impl Audit {
    /// An audit that takes no more than this, and follows the keys that this seed chooses. A seed that whoever makes the
    /// stream does not know keeps the stream from avoiding the sample.
    pub fn new(memory_bytes: u64, seed: u64) -> Result<Self> {
        if !(LEAST_BYTES..=MOST_BYTES).contains(&memory_bytes) {
            let needed = format!("from {LEAST_BYTES} bytes to 4 GiB");
            return Err(Error::parameter("audit", memory_bytes, needed, "give 2 % of the filter's memory"));
        }
        let hot = Hot::new(memory_bytes / 16);
        // A map has a power of two of places, and uses seven in eight of them.
        let places = 1u64 << (memory_bytes * 11 / 20 / KEY_BYTES).ilog2();
        let most_tallies = (memory_bytes - hot.bytes() - places * KEY_BYTES) / tallies::TALLY_BYTES;
        Ok(Audit {
            memory_bytes,
            seed,
            horizon: None,
            arrivals: 0,
            newest: i64::MIN,
            halvings: 0,
            weighted: false,
            keys: HashMap::default(),
            most_keys: (places / 8 * 7) as usize,
            tallies: Tallies::new(most_tallies as usize),
            hot,
            covered: Totals::default(),
            division: 1,
            next_division: start_of(2),
        })
    }

    /// For a filter with a window, to which old keys are new again. To be said before anything comes.
    pub fn with_horizon(self, horizon: Horizon) -> Self {
        Audit { horizon: Some(horizon), ..self }
    }

    /// The most it takes.
    pub fn memory_bits(&self) -> u64 {
        self.memory_bytes * 8
    }

    /// Arrivals so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Takes note of arrivals and the verdicts on them.
    pub fn observe(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &[Verdict]) {
        self.observe_timed(hashes, importances, verdicts, |_| 0);
    }

    /// The same with the time of each arrival, in microseconds; one before an earlier one counts as that.
    pub fn observe_timed(
        &mut self,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &[Verdict],
        time: impl Fn(usize) -> i64,
    ) {
        self.weighted |= matches!(importances, Importances::Each(_));
        let timed = self.horizon.is_some_and(|horizon| horizon.timed);
        let count = hashes.len().min(verdicts.len());
        let mut done = 0;
        while done < count {
            // Up to the next arrival at which a key may enter the table of hot ones.
            let lot = usize::try_from(self.hot.next_lot.saturating_sub(self.arrivals)).unwrap_or(usize::MAX);
            let end = count.min(lot.saturating_add(1));
            for index in done..end {
                if timed {
                    self.newest = self.newest.max(time(index));
                }
                let id = id_of(hashes[index], self.seed);
                if self.is_sampled(id) || self.hot.has(id) || index == lot {
                    let at = self.arrivals + index as u64 + 1;
                    let place = if timed { self.newest } else { at as i64 };
                    let importance = class_of(importances.at(index));
                    self.follow(id, Arrival { at, place, importance, verdict: verdicts[index] });
                }
            }
            done = end;
        }
        self.arrivals += count as u64;
        if self.arrivals >= self.next_division {
            self.begin_division(self.arrivals);
        }
    }

    /// Whether the key with this hash is among those that are followed by their hash.
    pub fn follows(&self, hash: KeyHash) -> bool {
        self.is_sampled(id_of(hash, self.seed))
    }

    #[inline(always)]
    fn is_sampled(&self, id: u64) -> bool {
        id <= u64::MAX >> self.halvings
    }

    /// What an arrival was, of a key that was last seen so.
    fn truth(&self, seen: &Seen, arrival: &Arrival) -> Truth {
        let Some(horizon) = self.horizon else { return Truth::Repeat };
        let age = arrival.place.saturating_sub(seen.anchor).max(0) as u64;
        match age {
            age if age <= horizon.within => Truth::Repeat,
            age if age > horizon.beyond => Truth::New,
            _ => Truth::Either,
        }
    }

    /// A key as it is known after this arrival.
    fn renewed(&self, seen: Seen, arrival: &Arrival) -> Seen {
        // Where repeats do not renew a key, what was taken for one by mistake is not remembered either.
        let is_renewed = self.horizon.is_none_or(|horizon| horizon.renews) || arrival.verdict.is_distinct();
        Seen { arrival: arrival.at, anchor: if is_renewed { arrival.place } else { seen.anchor } }
    }

    /// An arrival of a key that is in the table or in the sample, or that is a vote.
    #[inline(never)]
    fn follow(&mut self, id: u64, arrival: Arrival) {
        if arrival.at >= self.next_division {
            self.begin_division(arrival.at);
        }
        let covered = self.hot.seen(id);
        if let Some(seen) = covered {
            let truth = self.truth(&seen, &arrival);
            self.covered.arrivals += 1;
            for class in self.classes(truth, arrival.at - seen.arrival, arrival.importance) {
                self.covered.add(class, truth.is_wrong(arrival.verdict));
            }
            let renewed = self.renewed(seen, &arrival);
            self.hot.renew(id, renewed);
        }
        if self.is_sampled(id) {
            self.follow_sampled(id, arrival, covered.is_some());
        }
        if arrival.at > self.hot.next_lot {
            self.vote(id, arrival);
        }
    }

    fn follow_sampled(&mut self, id: u64, arrival: Arrival, is_covered: bool) {
        let Some(followed) = self.keys.get(&id) else {
            self.begin_following(id, arrival);
            return;
        };
        let seen = followed.seen;
        let truth = self.truth(&seen, &arrival);
        let renewed = self.renewed(seen, &arrival);
        if let Some(followed) = self.keys.get_mut(&id) {
            followed.seen = renewed;
        }
        if is_covered {
            return;
        }
        for class in self.classes(truth, arrival.at - seen.arrival, arrival.importance) {
            // A key that had to be dropped to make room has no tallies any more.
            while let Some(followed) = self.keys.get_mut(&id)
                && !self.tallies.add(&mut followed.head, class, truth.is_wrong(arrival.verdict))
            {
                self.halve();
            }
        }
    }

    fn begin_following(&mut self, id: u64, arrival: Arrival) {
        while self.keys.len() >= self.most_keys {
            self.halve();
        }
        // Memory that is refused is as if there was less of it.
        while self.keys.try_reserve(1).is_err() && !self.keys.is_empty() {
            self.most_keys = (self.keys.len() / 2).max(1);
            self.halve();
        }
        if !self.is_sampled(id) {
            return;
        }
        let seen = self.renewed(Seen { arrival: 0, anchor: NEVER }, &arrival);
        let (division, importance) = (self.division, arrival.importance);
        let wrong = Truth::New.is_wrong(arrival.verdict);
        self.keys.insert(id, Followed { seen, head: NONE, division, importance, wrong });
    }

    /// What an arrival counts for.
    fn classes(&self, truth: Truth, lag: u64, importance: u8) -> impl Iterator<Item = Class> + use<> {
        let (division, weighted) = (self.division, self.weighted);
        let classes = match truth {
            Truth::Repeat => [Some(Class::lag(lag)), Some(Class::Repeats(division))],
            Truth::New => [Some(Class::NewAgain), Some(Class::New(division))],
            Truth::Either => [None, None],
        };
        let by_importance = match truth {
            Truth::Repeat => Some(Class::RepeatsOf(importance)),
            Truth::New => Some(Class::NewOf(importance)),
            Truth::Either => None,
        };
        classes.into_iter().flatten().chain(by_importance.filter(|_| weighted))
    }

    /// Drops every second key with all that is known of it.
    fn halve(&mut self) {
        self.halvings = (self.halvings + 1).min(63);
        let (limit, tallies) = (u64::MAX >> self.halvings, &mut self.tallies);
        self.keys.retain(|id, followed| {
            if *id > limit {
                tallies.free_all(followed.head);
            }
            *id <= limit
        });
        // A map does not use again the places of what was taken out, and would grow.
        let mut kept = HashMap::default();
        if kept.try_reserve(self.keys.len()).is_ok() {
            kept.extend(self.keys.drain());
            self.keys = kept;
        }
        if self.halvings == 63 {
            // Nobody has 2^63 keys: the sample is empty, and tallies cannot be the reason.
            self.keys.clear();
            self.tallies.clear();
        }
    }

    /// Forgets what only the last part of the stream needed.
    fn begin_division(&mut self, arrival: u64) {
        self.division = division_of(arrival);
        self.next_division = start_of(self.division + 1);
        let (oldest, tallies) = (self.division.saturating_sub(1), &mut self.tallies);
        self.keys.values_mut().for_each(|followed| tallies.keep_since(&mut followed.head, oldest));
    }

    /// Lets a key into the table of hot ones, or speaks for the one that is there.
    fn vote(&mut self, id: u64, arrival: Arrival) {
        // How old a key is that was called a repeat is not known where repeats do not renew it.
        let is_known = self.horizon.is_none_or(|horizon| horizon.renews) || arrival.verdict.is_distinct();
        self.hot.vote(id, Seen { arrival: arrival.at, anchor: arrival.place }, is_known);
        self.hot.next_lot = arrival.at + (finalise(arrival.at ^ self.seed) & (2 * hot::BETWEEN_LOTS - 1));
    }

    /// Takes in the audit of other arrivals, with the same seed, such as another shard's. Rates are then those of all
    /// verdicts, each as it was given; lags are those within a shard.
    pub fn merge(&mut self, other: &Audit) -> Result<()> {
        if (self.seed, self.horizon) != (other.seed, other.horizon) {
            let told = |audit: &Audit| format!("seed {:x}, window {:?}", audit.seed, audit.horizon);
            return Err(Error::Mismatch {
                what: "the keys that their audits follow",
                left: told(self),
                right: told(other),
                remedy: "start the audits of all shards with one seed and one window",
            });
        }
        while self.halvings < other.halvings {
            self.halve();
        }
        let total = self.arrivals + other.arrivals;
        // The last parts of both are the last part of the whole.
        let division = division_of(total);
        if division != self.division {
            self.shift_divisions(division);
        }
        let shift = i16::from(self.division) - i16::from(other.division);
        self.next_division = start_of(division + 1);
        self.covered.merge(&other.covered, shift);
        let mut theirs: Vec<_> = other.keys.iter().collect();
        theirs.sort_unstable_by_key(|(id, _)| **id);
        for (id, their) in theirs {
            if self.is_sampled(*id) {
                self.take_in(*id, their, &other.tallies, shift);
            }
        }
        (self.arrivals, self.newest) = (total, self.newest.max(other.newest));
        self.weighted |= other.weighted;
        self.hot.forget();
        self.hot.next_lot = self.arrivals;
        Ok(())
    }

    /// Takes in a key of another audit.
    fn take_in(&mut self, id: u64, their: &Followed, tallies: &Tallies, shift: i16) {
        let first = tallies::shifted(their.division, shift);
        if self.keys.contains_key(&id) {
            // New to both: what is new once more is counted apart.
            let classes = [Class::NewAgain, Class::New(first), Class::NewOf(their.importance)];
            let count = if self.weighted { 3 } else { 2 };
            classes[..count].iter().for_each(|class| self.add_many(id, *class, (1, u64::from(their.wrong))));
        } else {
            while self.keys.len() >= self.most_keys {
                self.halve();
            }
            if !self.is_sampled(id) {
                return;
            }
            self.keys.insert(id, Followed { head: NONE, division: first, ..*their });
        }
        for (class, counts) in tallies.of(their.head) {
            self.add_many(id, class.shifted(shift), counts);
        }
        if let Some(mine) = self.keys.get_mut(&id) {
            mine.seen.arrival = mine.seen.arrival.max(their.seen.arrival);
            mine.seen.anchor = mine.seen.anchor.max(their.seen.anchor);
        }
    }

    fn add_many(&mut self, id: u64, class: Class, counts: (u64, u64)) {
        while let Some(followed) = self.keys.get_mut(&id)
            && !self.tallies.add_many(&mut followed.head, class, counts)
        {
            self.halve();
        }
    }

    /// Moves the divisions of the last part.
    fn shift_divisions(&mut self, division: u8) {
        let shift = i16::from(division) - i16::from(self.division);
        self.division = division;
        self.covered.shift(shift);
        let tallies = &mut self.tallies;
        for followed in self.keys.values_mut() {
            followed.division = tallies::shifted(followed.division, shift);
            tallies.shift(followed.head, shift);
        }
    }
}

impl Truth {
    fn is_wrong(self, verdict: Verdict) -> bool {
        match self {
            Truth::New => !verdict.is_distinct(),
            Truth::Repeat => verdict.is_distinct(),
            Truth::Either => false,
        }
    }
}

/// What a key is called here: 64 bits of which the first decide whether it is in the sample and the last where it would be
/// in the table of hot keys. Never 0.
#[inline(always)]
fn id_of(hash: KeyHash, seed: u64) -> u64 {
    let product = u128::from(hash.high ^ seed) * u128::from(hash.low ^ seed.rotate_left(29) ^ 0xd6e8_feb8_6659_fd93);
    ((product >> 64) as u64 ^ product as u64) | 1
}

/// Which part of the scale an importance belongs to.
fn class_of(importance: Importance) -> u8 {
    importance.share_of(IMPORTANCE_CLASSES).min(IMPORTANCE_CLASSES - 1) as u8
}
