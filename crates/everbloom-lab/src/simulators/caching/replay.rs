//! The second half of a trace on real counters and bits.

use super::events::{Events, Miss};
use super::training::Hashes;
use crate::simulators::summary::{Summary, may_hold};
use everbloom::{Hashing, KeyHash, Result};
use everbloom_cells::bits::Bits;

/// What came of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Outcome {
    /// Requests of the second half.
    pub requests: u64,
    /// Lookups in summaries that do not hold the object.
    pub missing_queries: u64,
    /// Those that were answered with yes.
    pub false_hits: u64,
    /// Lookups answered rightly by a summary whose proxy has lost the object since.
    pub stale_hits: u64,
    /// Lookups in summaries that hold the object and said no: never.
    pub false_negatives: u64,
    /// Bytes of summaries sent, to every other proxy.
    pub broadcast_bytes: u64,
    /// Bits set in a summary when it is sent, on average, as a share.
    pub fill: f64,
}

impl Outcome {
    /// The share of missing queries that are false hits.
    pub fn measured_fpr(&self) -> f64 {
        self.false_hits as f64 / self.missing_queries.max(1) as f64
    }

    /// False hits per request.
    pub fn false_hits_per_request(&self) -> f64 {
        self.false_hits as f64 / self.requests.max(1) as f64
    }
}

/// The caches' misses with summaries of `num_bits` bits; hits are counted in the second half.
pub fn replay(events: &Events, hashes: &Hashes, num_bits: u64, seed: u64) -> Result<Outcome> {
    let mut replay = Replay {
        events,
        hashes,
        hashing: Hashing::seeded(seed),
        home: (0..events.proxies).map(|_| Summary::new(num_bits)).collect::<Result<_>>()?,
        sent: vec![Bits::new(num_bits)?; events.proxies],
        outcome: Outcome { requests: events.requests - events.half(), ..Outcome::default() },
        broadcasts: 0,
    };
    for miss in &events.misses {
        if miss.time >= events.half() {
            replay.look_up(miss);
        }
        replay.change(miss);
    }
    replay.outcome.fill /= replay.broadcasts.max(1) as f64;
    Ok(replay.outcome)
}

struct Replay<'a> {
    events: &'a Events,
    hashes: &'a Hashes,
    hashing: Hashing,
    home: Vec<Summary>,
    sent: Vec<Bits>,
    outcome: Outcome,
    broadcasts: u64,
}

impl Replay<'_> {
    fn key(&self, object: u32) -> (KeyHash, u32) {
        (self.hashing.hash_u64(object.into()), self.hashes.of(object))
    }

    /// Asks every summary but the proxy's own.
    fn look_up(&mut self, miss: &Miss) {
        let (hash, num_hashes) = self.key(miss.request.object);
        for (peer, bits) in self.sent.iter().enumerate() {
            if peer == usize::from(miss.request.proxy) {
                continue;
            }
            let (holds, has) = (miss.summarised >> peer & 1 == 1, miss.cached >> peer & 1 == 1);
            let says = may_hold(bits, hash, num_hashes);
            self.outcome.missing_queries += u64::from(!holds);
            self.outcome.false_hits += u64::from(says && !holds);
            self.outcome.stale_hits += u64::from(says && holds && !has);
            self.outcome.false_negatives += u64::from(!says && holds);
        }
    }

    fn change(&mut self, miss: &Miss) {
        let proxy = usize::from(miss.request.proxy);
        let (hash, num_hashes) = self.key(miss.request.object);
        self.home[proxy].insert(hash, num_hashes);
        if let Some(old) = miss.evicted {
            let (hash, num_hashes) = self.key(old);
            self.home[proxy].remove(hash, num_hashes);
        }
        if miss.broadcasts {
            self.sent[proxy].clone_from(self.home[proxy].bits());
            if miss.time >= self.events.half() {
                self.broadcasts += 1;
                self.outcome.fill += self.sent[proxy].fill();
                self.outcome.broadcast_bytes += self.sent[proxy].len().div_ceil(8) * (self.events.proxies as u64 - 1);
            }
        }
    }
}
