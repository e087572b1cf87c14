//! What a running filter gets wrong, measured on the stream it works on.
//!
//! An audit sees every arrival with the filter's verdict and changes nothing. It follows some of the keys exactly, so that it
//! knows of each of their arrivals whether the verdict was right, and estimates the rates of all keys from them.
//!
//! # What is followed
//!
//! - **A sample of the keys.** A key's 128 bits and the audit's own random seed make a number `u`; keys with `u` below a
//!   threshold θ are followed from their first arrival on. When the memory is full θ is halved and the keys above it are
//!   dropped with all their tallies, so that what remains has its whole history. So it is when more arrivals have come than
//!   8,192 or one for each 128 bytes of memory, twice as many, and so on down to one key in 256: an audit is to cost little
//!   time, too.
//! - **The hottest keys**, whatever their `u`, in a small table ([`hot`]), from the first halving on: until then every key is
//!   followed. Of a key that enters the table late nothing is known of before, so arrivals are counted there and not keys: an
//!   arrival is *covered* if its key is in the table when it comes. It is then known to be a repeat. To look at each of them
//!   would cost a fifth of the time of a whole deduplication, so one in 128 is counted: those whose key's arrival before was
//!   drawn by a lot, from when the table waits for the next one, which gives its lag. All other arrivals are the sample's.
//!   Each arrival counts in one of the two ways, and which one does not depend on `u`: not on the sample, because the votes
//!   that let keys into the table are a lot of their own ([`lots`]), and not by the first halving, because until then the
//!   sample is all keys.
//!
//! # The estimates
//!
//! Let y be what is counted of a key's uncovered arrivals (say, repeats that were called new). The sum over all keys is
//! estimated without bias by the sum over the sampled ones divided by θ (Horvitz and Thompson, 1952), though θ depends on the
//! stream and on all `u`. *Proof.* Whether θ is halved at an arrival depends on its number and on the arrivals of the keys
//! below θ so far, and on nothing else of `u`. For a key k let θ_k be the θ that would have come about with u_k = 0.
//! If u_k < θ_k, every set of keys below a threshold of at least θ_k is the same as with u_k = 0, so θ = θ_k and k is
//! sampled. If k is sampled, u_k < θ, the same argument gives θ_k = θ. So k is sampled exactly if u_k < θ_k, where θ_k does not
//! depend on u_k, and the expectation of \[k sampled\]/θ is P(u_k < θ_k)/θ_k = 1. ∎ (Thresholds of this kind are the
//! *substitutable* ones of Ting, 2022.) The same argument for two keys shows that their terms are uncorrelated, and that
//! Σ (1 − θ)/θ² y² over the sample estimates the variance without bias.
//!
//! A covered arrival is counted if the arrival before it of its key was drawn: one of each 128 that follow each other, by a lot
//! that depends neither on the stream nor on the votes nor on `u`. So 128 times what was counted estimates the sum over the
//! covered arrivals without bias. Its variance is the sum over these blocks of 128 Σy² − (Σy)², where draws that are independent
//! of each other would have 127 Σy²: less for counts, and at most one part in 127 more whatever the signs of y are. So what was
//! counted is taken for so many independent arrivals.
//! (Where a window's keys are not renewed by repeats, the arrival before does not tell a key's age: there every covered arrival
//! is counted.)
//!
//! A rate is a ratio of two such sums, with the bias of all ratio estimators, of the order of 1/(sampled keys). How its interval
//! is found from the variance between keys is told in [`estimate`].
//!
//! # The last part
//!
//! The stream is divided at arrivals 2^(i/2). The last part are the present division and the one before it: the last 29 to 50 %
//! of the arrivals. Older divisions are added up, so that a key has at most two tallies for it.

mod audited;
mod bytes;
mod divisions;
mod estimate;
mod horizon;
mod hot;
mod lots;
mod merge;
mod report;
mod tallies;

use divisions::{division_of, start_of};
use everbloom::{Error, Importance, Importances, KeyHash, Result, Verdict};
use horizon::Truth;
use hot::Hot;
use lots::{Lot, SamplingSchedule};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use tallies::{Class, NONE, Tallies, Totals};

pub use audited::{Audited, Auditing, Audits, horizon, read_annex};
pub use estimate::Measured;
pub use horizon::Horizon;
pub use report::{AuditReport, Breach, ByImportance, ByLag, LastPart, Missed};

/// The least memory of an audit, in bytes.
pub const LEAST_BYTES: u64 = 4096;
/// The most: more keys would tell nothing more.
const MOST_BYTES: u64 = 1 << 32;
/// All keys are followed up to one arrival for so many bytes of memory, and so many arrivals at least; half of them until there
/// are twice as many, and so on until it is one key in 2^HALVINGS_IN_TIME.
const BYTES_OF_ARRIVAL: u64 = 128;
const FIRST_ARRIVALS: u64 = 8192;
const HALVINGS_IN_TIME: u32 = 8;
/// What is given where nobody says how much: one part of the filter's memory in so many, and no less than so many bytes.
const USUAL_PARTS: u64 = 50;
const USUAL_LEAST_BYTES: u64 = 256 << 10;
/// Parts into which importances are divided.
pub(crate) const IMPORTANCE_CLASSES: u32 = 8;
/// Where the age of a key counts from that no window remembers.
const NEVER: i64 = i64::MIN;
/// Nothing comes later than this.
const LATEST: u64 = 1 << 62;
/// What a key takes in the map: its id, what is known of it, a byte of the map's own.
const KEY_BYTES: u64 = 33;

/// The memory of an audit beside a filter of so many bits, where nobody says how much: 2 %, and at least 256 KiB, because fewer
/// keys would tell little.
pub fn usual_bytes(filter_bits: u64) -> u64 {
    (filter_bits / 8 / USUAL_PARTS).clamp(USUAL_LEAST_BYTES, MOST_BYTES)
}

/// Follows some keys of a stream exactly, and knows from them what a filter gets wrong.
///
/// ```
/// use everbloom_forecast::audit::Audit;
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
    /// How far turns have moved the window.
    turned: u64,
    /// θ is 2^−halvings.
    halvings: u32,
    /// Whether importances were given.
    weighted: bool,
    keys: HashMap<u64, Followed, BuildHasherDefault<ById>>,
    most_keys: usize,
    tallies: Tallies,
    hot: Hot,
    lots: SamplingSchedule,
    /// What was counted of the covered arrivals.
    covered: Totals,
    division: u8,
    /// The arrival that begins the next division.
    next_division: u64,
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
    /// The place in a window that its age counts from.
    anchor: i64,
}

/// One arrival.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: u64,
    /// Its place in a window.
    place: i64,
    importance: u8,
    verdict: Verdict,
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

impl Audit {
    /// An audit that takes no more than this, and follows the keys that this seed chooses. A seed that whoever makes the
    /// stream does not know keeps the stream from avoiding the sample.
    pub fn new(memory_bytes: u64, seed: u64) -> Result<Self> {
        if !(LEAST_BYTES..=MOST_BYTES).contains(&memory_bytes) {
            let given = everbloom::kind::size_text(memory_bytes.saturating_mul(8));
            return Err(Error::parameter("audit", given, "from 4KiB to 4GiB", "try 1MiB"));
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
            turned: 0,
            halvings: 0,
            weighted: false,
            keys: HashMap::default(),
            most_keys: (places / 8 * 7) as usize,
            tallies: Tallies::new(most_tallies as usize),
            hot,
            lots: SamplingSchedule::after(0, lots::ONE_IN, seed),
            covered: Totals::default(),
            division: 1,
            next_division: start_of(2),
        })
    }

    /// For a filter with a window, to which old keys are new again. To be said before anything comes.
    pub fn with_horizon(self, horizon: impl Into<Option<Horizon>>) -> Self {
        Audit { horizon: horizon.into(), ..self }
    }

    /// The most it takes.
    pub fn memory_bits(&self) -> u64 {
        self.memory_bytes * 8
    }

    /// Arrivals so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// The seed that chooses the keys which are followed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Begins anew, with the same seed.
    pub fn clear(&mut self) {
        // What was made once can be made again.
        if let Ok(new) = Audit::new(self.memory_bytes, self.seed) {
            *self = new.with_horizon(self.horizon);
        }
    }

    /// Takes note that the caller began so many generations of a window.
    pub fn turn(&mut self, generations: u64) {
        let turn = self.horizon.map_or(0, |horizon| horizon.turn);
        self.turned = self.turned.saturating_add(turn.saturating_mul(generations)).min(LATEST);
    }

    /// Takes note of arrivals and the verdicts on them.
    pub fn observe(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &[Verdict]) {
        self.weighted |= !matches!(importances, Importances::All(Importance::FULL));
        let count = hashes.len().min(verdicts.len());
        let mut done = 0;
        while done < count {
            // Most arrivals are none that is followed, awaited or drawn: this is all that they cost.
            let lot = usize::try_from(self.lots.next() - self.arrivals - 1).unwrap_or(usize::MAX);
            let (end, limit, seed) = (lot.min(count), self.limit(), self.seed);
            let next = done + self.hot.first(&hashes[done..end], limit, |hash| id_of(hash, seed));
            if next == count {
                break;
            }
            let at = self.arrivals + next as u64 + 1;
            let (place, importance) = (self.place_of(at), class_of(importances.at(next)));
            self.follow(id_of(hashes[next], seed), Arrival { at, place, importance, verdict: verdicts[next] });
            done = next + 1;
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

    /// The largest id of the sample.
    fn limit(&self) -> u64 {
        u64::MAX >> self.halvings
    }

    fn is_sampled(&self, id: u64) -> bool {
        id <= self.limit()
    }

    /// The place of an arrival in a window.
    fn place_of(&self, at: u64) -> i64 {
        let moved = if self.horizon.is_some_and(|horizon| horizon.counts_arrivals) { at } else { 0 };
        (self.turned + moved) as i64
    }

    /// Whether every covered arrival is counted, and not only those that were waited for.
    fn counts_each(&self) -> bool {
        self.horizon.is_some_and(|horizon| !horizon.renews)
    }

    /// An arrival of a key that is in the sample or awaited, or one that is drawn.
    #[inline(never)]
    fn follow(&mut self, id: u64, arrival: Arrival) {
        if arrival.at >= self.next_division {
            self.begin_division(arrival.at);
        }
        let uses_table = self.halvings > 0;
        let is_covered = uses_table && self.hot.has(id);
        if let Some(seen) = self.hot.take(id) {
            self.count_covered(id, seen, &arrival);
        }
        if self.is_sampled(id) {
            self.follow_sampled(id, arrival, is_covered);
        }
        if arrival.at == self.lots.next() {
            let lot = self.lots.take();
            if uses_table {
                self.draw(lot, id, &arrival);
            }
        }
    }

    /// An arrival of a hot key that was waited for.
    fn count_covered(&mut self, id: u64, seen: Seen, arrival: &Arrival) {
        let truth = truth(self.horizon, &seen, arrival);
        self.covered.arrivals += 1;
        for class in self.counted_by().classes(truth, arrival.at - seen.arrival, arrival.importance) {
            self.covered.add(class, (1, u64::from(truth.is_wrong(arrival.verdict))));
        }
        if self.counts_each() {
            self.hot.wait(id, renewed(self.horizon, seen, arrival));
        }
    }

    fn follow_sampled(&mut self, id: u64, arrival: Arrival, is_covered: bool) {
        let (horizon, by) = (self.horizon, self.counted_by());
        let Some(followed) = self.keys.get_mut(&id) else {
            self.begin_following(id, arrival);
            return;
        };
        let seen = followed.seen;
        let truth = truth(horizon, &seen, &arrival);
        followed.seen = renewed(horizon, seen, &arrival);
        if is_covered || truth == Truth::Either {
            return;
        }
        let counts = (1, u64::from(truth.is_wrong(arrival.verdict)));
        let mut classes = by.classes(truth, arrival.at - seen.arrival, arrival.importance);
        // The key is at hand as long as there is room.
        let without_room = classes.find(|class| !self.tallies.add(&mut followed.head, *class, counts));
        for class in without_room.into_iter().chain(classes) {
            self.count(id, class, counts);
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
        let seen = renewed(self.horizon, Seen { arrival: 0, anchor: NEVER }, &arrival);
        let (division, importance) = (self.division, arrival.importance);
        let wrong = Truth::New.is_wrong(arrival.verdict);
        self.keys.insert(id, Followed { seen, head: NONE, division, importance, wrong });
    }

    fn counted_by(&self) -> CountedBy {
        CountedBy { division: self.division, weighted: self.weighted }
    }

    /// Drops every second key with all that is known of it.
    fn halve(&mut self) {
        self.halvings = (self.halvings + 1).min(63);
        let (limit, tallies) = (self.limit(), &mut self.tallies);
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

    /// Counts for a key in the sample. One that had to be dropped to make room is none any more.
    fn count(&mut self, id: u64, class: Class, counts: (u64, u64)) {
        while let Some(followed) = self.keys.get_mut(&id)
            && !self.tallies.add(&mut followed.head, class, counts)
        {
            self.make_room();
        }
    }

    /// Makes room for a tally: what only the last part of the stream needed is forgotten, or every second key.
    fn make_room(&mut self) {
        let (oldest, tallies) = (self.last_from(), &mut self.tallies);
        let forgotten = self.keys.values_mut().map(|followed| tallies.keep_since(&mut followed.head, oldest));
        if !forgotten.fold(false, |any, some| any | some) {
            self.halve();
        }
    }

    /// The division that the last part begins with.
    fn last_from(&self) -> u8 {
        self.division.saturating_sub(1).max(1)
    }

    /// Goes on to the division of an arrival, and to the share of the keys that time allows for from there on.
    fn begin_division(&mut self, arrival: u64) {
        self.division = division_of(arrival);
        self.next_division = start_of(self.division + 1);
        let first = (self.memory_bytes / BYTES_OF_ARRIVAL).max(FIRST_ARRIVALS);
        let doublings = (start_of(self.division) / first).checked_ilog2().map_or(0, |doublings| doublings + 1);
        while self.halvings < doublings.min(HALVINGS_IN_TIME) {
            self.halve();
        }
    }

    /// An arrival that was drawn: it is a vote, or the next one of its key is waited for.
    fn draw(&mut self, lot: Lot, id: u64, arrival: &Arrival) {
        let seen = Seen { arrival: arrival.at, anchor: arrival.place };
        let is_known = renews(self.horizon, arrival.verdict);
        let has_entered = lot.is_vote && self.hot.vote(id, is_known);
        if if self.counts_each() { has_entered } else { lot.is_wait } {
            self.hot.wait(id, seen);
        }
    }
}

/// What is counted apart at present.
#[derive(Debug, Clone, Copy)]
struct CountedBy {
    division: u8,
    weighted: bool,
}

impl CountedBy {
    /// What an arrival counts for.
    fn classes(self, truth: Truth, lag: u64, importance: u8) -> impl Iterator<Item = Class> {
        let classes = match truth {
            Truth::Repeat => [Class::lag(lag), Class::Repeats(self.division), Class::RepeatsOf(importance)],
            Truth::New | Truth::Either => [Class::NewAgain, Class::New(self.division), Class::NewOf(importance)],
        };
        let count = match truth {
            Truth::Either => 0,
            _ if self.weighted => 3,
            _ => 2,
        };
        classes.into_iter().take(count)
    }
}

/// What an arrival was, of a key that was last seen so.
fn truth(horizon: Option<Horizon>, seen: &Seen, arrival: &Arrival) -> Truth {
    horizon.map_or(Truth::Repeat, |horizon| horizon.truth(arrival.place, seen.anchor))
}

/// Whether an arrival tells from where on its key's age counts, whatever came before. Where repeats do not renew a key, what
/// was taken for one by mistake is not remembered either.
fn renews(horizon: Option<Horizon>, verdict: Verdict) -> bool {
    horizon.is_none_or(|horizon| horizon.renews) || verdict.is_distinct()
}

/// A key as it is known after this arrival.
fn renewed(horizon: Option<Horizon>, seen: Seen, arrival: &Arrival) -> Seen {
    let anchor = if renews(horizon, arrival.verdict) { arrival.place } else { seen.anchor };
    Seen { arrival: arrival.at, anchor }
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
