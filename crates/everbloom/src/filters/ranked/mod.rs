//! `ranked`: fingerprints in priority order, for streams without end.
//!
//! **Answers** "has this key been here?" in fixed memory, for ever. What matters most is forgotten last:
//! keys that came back, keys that came lately, or keys that carry importance. The rate of false
//! positives has a hard bound at every moment, whatever the stream. At equal memory and rate it
//! remembers more than every other filter here, until memory suffices for a plain Bloom filter.
//!
//! # How it works
//!
//! A key hashes to one word of `lanes` lanes and to a fingerprint of `lane_bits` bits. The order of the
//! lanes **is** the priority; there are no counters and no clock.
//!
//! ```text
//!                    best ──────────────► worst
//! word before         a    b    c    d    e
//! d comes back        d    a    b    c    e        hit=front: to the front
//! f is new            d    a    f    b    c        insert=middle: into the middle; e falls off
//! ```
//!
//! A new key must prove itself in the lower half before it can displace what came back, which is what
//! keeps a flood of one-time keys from washing everything out.
//!
//! **Wide words.** Until a word is full its bits would be unused. So it keeps longer fingerprints as long as there is room, and
//! shortens them as keys come; a key that was never here then matches one of a few long ones hardly ever.
//!
//! ```text
//! 5 × 9 bits     0 │ 1 │ a of 34 bits
//!                0 │ 2 │ b of 17 bits   │ a of 17 bits
//!                0 │ 3 │ c of 11   │ b of 11   │ a of 11
//!           marker │ d │ c │ b │ a                           9 bits each: as before
//!                e │ d │ c │ b │ a
//! ```
//!
//! The rank of a key is the same in both, and so is what is forgotten. A long fingerprint is one of a multiple of
//! 2^w − 2, evenly spread, so that shortening takes bits off (`everbloom-cells, lanes/wide.rs` has the encoding). Words of 3 to 7
//! lanes can be wide, and are where a plan chooses their shape. A spec that gives `num_words`, `lanes` and `lane_bits`, as
//! those of filters do that were written before there were wide words, means `words=plain` unless it says `words=wide`.
//!
//! | parameter | choices |
//! |---|---|
//! | `words=` | `wide`; `plain`: lanes that are not in use are empty |
//! | `insert=` | `middle`; `front`; `rank1`: second from the front; `tail`; `importance`: the more important, the further to the front |
//! | `hit=` | `front`; `bubble`: one lane forward; `still` |
//! | `gate=` | `off`; `importance`: abandon arrivals below a moving threshold; `clamped`: one lane only, keeps `gate_fpr` with shorter fingerprints by abandoning a fixed share of keys |
//! | `packing=` | `packed`: words follow each other bit by bit; `padded`: in 8, 16, 32 or 64 bits |
//!
//! # Theory
//!
//! A key that is not inside matches one of the N fingerprints of its word with a probability of at most N/F_N, if there are F_N
//! of that length: FPR = E[min(N, b)/F_min(N, b)] with b lanes of w bits, N Poisson with mean distinct keys per word. Plain
//! words have F = 2^w − 1 throughout; full wide ones have 2^w − 2 and a marker, so the bound is b/(2^w − 2), and with fewer
//! keys F_N is 2^w − 2 times a power of two. The plan takes the smallest w
//! for which some b from b_min to 7 keeps the target, then the largest such b (b_min is 3 for targets
//! of 3 % and more, else 4): 5 × 9 bits at 1 %, 3 × 5 at 10 %. Nothing is rounded against the promise.
//!
//! One lane is the direct table: the best choice for repeats spread evenly in scarce memory, and the
//! worst for skewed ones.
//!
//! **On a described stream** of independent draws the occupancy and lane model (in everbloom-forecast) follows a
//! key's way through its word: within 3 % of the FNR for four lanes or more, and not used for fewer. Everything
//! else is simulated: words are independent of each other, so a filter of fewer words on a part of the keys has
//! the same rates as the large one. On the history below, 17.9 % predicted and 18.0 % measured.
//!
//! # Measured
//!
//! FNR on a project's history of 1.4 M file paths, 178 K distinct, at an FPR of at most 1 % and 0.74
//! bits per distinct key, all as planned: 18.0 % (stable 39.6 %, reservoir 57.5 %). The README has the
//! command.
//!
//! New keys that were dropped by mistake in 64 MiB at 1 %, half of the arrivals repeats: with plain words 2,139 of 5 M,
//! 32,560 of 20 M, 271,400 of 60 M; with wide ones 25, 5,446 and 169,668. On the history above with 4, 12 and 40 bits per
//! distinct key, FPR 0.73, 0.37 and 0.114 % with plain words, 0.64, 0.18 and 0.009 % with wide ones; FNR equal to 0.01 points.
//!
//! # Cost
//!
//! One cache line an arrival (one packed word in nine touches two), asked for ahead in batches, and a
//! few dozen instructions without a branch on the verdict. While a filter grows, a wide word costs 9 to 14 % more time than a
//! plain one; once it is full, nothing (0.93 to 1.00 of it, at 1 and 64 MiB).
//!
//! # When to choose it
//!
//! Whenever memory is too small to remember every key. From about 6.4 bits per distinct key at 1 % a
//! plain Bloom filter forgets nothing and wins.
//!
//! # Example
//!
//! ```
//! use everbloom::FilterExt;
//! use everbloom::{Goal, Importance};
//!
//! let mut seen = Goal::new().memory_bits(1 << 16).fpr(0.01).plan("ranked")?.build()?;
//! for round in 0..20u64 {
//!     seen.observe("comes back", Importance::FULL);
//!     for key in 0..1_000u64 {
//!         seen.observe(&(round * 1_000 + key), Importance::FULL);
//!     }
//! }
//! assert!(seen.contains("comes back"), "20,000 one-time keys later, in memory for 7,300");
//! # Ok::<(), everbloom::Error>(())
//! ```

mod gate;
mod graceful;
mod observe;
mod plan;

use crate::cells::lanes::Words;
use crate::filter::{Abilities, Base, Body, Filter, Kind, Model, Plan, Restore, shows_base};
use crate::format::StateWriter;
use crate::key::{Hashing, KeyHash};
use crate::promise::{Importance, Importances, Promise, Result, Status, Verdict};
use crate::simd::{CACHED_BYTES, PREFETCH_DISTANCE, pipelined, run};
use gate::ImportanceGate;
use observe::{AtLanes, AtWide, ObserveWords, TOGETHER, Visit};

pub use graceful::Graceful;
pub use graceful::KIND as GRACEFUL;
pub use plan::{Gate, Hit, Insert, Packing, Parameters, WordLayout};

/// The kind, for sets of kinds.
pub static KIND: Kind = Kind {
    id: 12,
    retired: &[],
    name: "ranked",
    summary: "fingerprints in priority order: fixed memory for ever, forgets what matters least first",
    parameters: &plan::PARAMETERS,
    can: Abilities { weigh_importance: true, ..Abilities::STREAM },
    model: Model {
        choices: &[("lanes", &["1", "2", "3", "4", "5", "6", "7"]), ("insert", &["middle", "front", "rank1", "tail"])],
        choices_by_importance: Some(&[
            ("lanes", &["1", "2", "3", "4", "5", "6", "7"]),
            ("insert", &["importance", "middle", "front"]),
        ]),
        // One lane is another filter, the direct table.
        forms: &[("lanes", "1")],
        ..Model::sized(&["num_words", "gate_items"])
    },
    extension: None,
    plan: plan::planned,
    build: |plan| Ok(Box::new(Ranked::from_plan(plan)?)),
    restore: |from| Ok(Box::new(Ranked::restore(from)?)),
    map: None,
};

/// The filter of fingerprints in priority order. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Ranked {
    parameters: Parameters,
    base: Base,
    words: Words,
    gate: ImportanceGate,
    /// Lanes in use; kept only for the clamped gate, whose threshold depends on it.
    occupied: u64,
}

impl Ranked {
    /// A filter with these parameters.
    pub fn new(parameters: Parameters, hashing: Hashing) -> Result<Self> {
        let parameters = parameters.checked()?;
        let promise = Promise::always(parameters.predicted_fpr());
        Self::with_base(parameters, Base::new(&KIND, parameters.spec(), hashing, promise)?)
    }

    fn with_base(parameters: Parameters, base: Base) -> Result<Self> {
        let (shape, wide) = parameters.division()?;
        Ok(Self::of(parameters, base, Words::new(parameters.num_words, shape, wide, parameters.stride())?))
    }

    fn of(parameters: Parameters, base: Base, words: Words) -> Self {
        let gate = ImportanceGate::new(parameters.capacity(), parameters.gate_items);
        Ranked { parameters, base, words, gate, occupied: 0 }
    }

    fn from_plan(plan: &Plan) -> Result<Self> {
        Self::with_base(Parameters::from_spec(&plan.spec)?, Base::planned(plan)?)
    }

    fn restore(mut from: Restore<'_, '_>) -> Result<Self> {
        let parameters = Parameters::from_spec(from.spec)?;
        let base = Base::restored(parameters.spec(), &mut from)?;
        Self::restored(parameters, base, from)
    }

    /// What is left to read behind the arrivals.
    fn restored(parameters: Parameters, base: Base, mut from: Restore<'_, '_>) -> Result<Self> {
        from.body.expect_bytes(Words::bits(parameters.num_words, parameters.stride()) / 8)?;
        let mut filter = Self::with_base(parameters, base)?;
        if parameters.gate == Gate::Importance {
            filter.gate.restore(&mut from.state)?;
        }
        from.state.finish()?;
        from.body.fill(filter.words.bytes_mut())?;
        filter.words.check()?;
        if parameters.gate == Gate::Clamped {
            filter.occupied = filter.words.count_occupied();
        }
        Ok(filter)
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// How far from the front a new arrival goes in.
    #[inline]
    fn rank(&self, importance: Importance) -> u32 {
        let Parameters { lanes, insert, .. } = self.parameters;
        let rank = match insert {
            Insert::Front => 0,
            Insert::Rank1 => 1,
            Insert::Middle => lanes / 2,
            Insert::Tail => lanes - 1,
            Insert::Importance => importance.distance_from_top(lanes),
        };
        rank.min(lanes - 1)
    }

    #[inline]
    fn observe_ungated(&mut self, hash: KeyHash, rank: u32) -> Verdict {
        let (hit, shape) = (self.parameters.hit, self.words.shape());
        match self.words.wide() {
            None => self.visited(hash, AtLanes { shape, hit, rank }),
            Some(wide) => self.visited(hash, AtWide::new(wide, hit, rank)),
        }
    }

    #[inline(always)]
    fn visited(&mut self, hash: KeyHash, visit: impl Visit) -> Verdict {
        let (index, print) = (hash.index(self.words.len()), visit.print(hash.low));
        Verdict::from_seen(self.words.update(index, |word| visit.observe(word, print)))
    }

    fn observe_gated(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        match self.parameters.gate {
            Gate::Off => self.observe_ungated(hash, self.rank(importance)),
            Gate::Importance => {
                let admitted = self.gate.admits(importance);
                let verdict = match admitted {
                    true => self.observe_ungated(hash, self.rank(importance)),
                    false => Verdict::Distinct,
                };
                if verdict.is_distinct() {
                    self.gate.count(importance);
                }
                verdict
            }
            Gate::Clamped => {
                if !self.clamp_admits(hash) {
                    return Verdict::Distinct;
                }
                let before = self.words.get(hash.index(self.words.len()));
                self.occupied += u64::from(before == 0);
                self.observe_ungated(hash, self.rank(importance))
            }
        }
    }

    /// Whether the key is among the share that keeps the rate: admitted keys err with
    /// occupied/(cells·V), so a share of α·V·cells/occupied of them errs with α.
    #[inline]
    fn clamp_admits(&self, hash: KeyHash) -> bool {
        let (cells, fingerprints) = (self.words.len() as f64, self.words.shape().max_fingerprint());
        // Uniform in 0..1, and independent of word and fingerprint.
        let product = u128::from(hash.low) * u128::from(fingerprints);
        let gate_value = (product as u64 >> 32) as f64 * (1.0 / (1u64 << 32) as f64);
        gate_value * (self.occupied as f64) < self.parameters.gate_fpr * fingerprints as f64 * cells
    }
}

crate::typed_filter!(Ranked: KIND);

impl Filter for Ranked {
    shows_base!();

    fn memory_bits(&self) -> u64 {
        self.words.memory_bits() + self.parameters.gate_bits()
    }

    fn status(&self) -> Status {
        let (keys, matches) = self.words.keys_and_rate();
        let occupied = keys as f64;
        let bound = if self.parameters.gate == Gate::Clamped { self.parameters.gate_fpr } else { 1.0 };
        Status {
            arrivals: self.base.arrivals,
            fill: occupied / self.parameters.capacity() as f64,
            estimated_fpr: matches.min(bound),
            estimated_items: Some(occupied),
            ..Status::default()
        }
    }

    #[inline]
    fn contains_hash(&self, hash: KeyHash) -> bool {
        let word = self.words.get(hash.index(self.words.len()));
        if let Some(wide) = self.words.wide() {
            return wide.contains(word, wide.print(hash.low));
        }
        let (shape, hit) = (self.words.shape(), self.parameters.hit);
        let admitted = self.parameters.gate != Gate::Clamped || self.clamp_admits(hash);
        admitted && shape.find(word, AtLanes { shape, hit, rank: 0 }.print(hash.low)).is_some()
    }

    fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        pipelined(
            &mut (),
            hashes.len().min(found.len()),
            self.distance(),
            |(), index| self.words.prefetch(hashes[index].index(self.words.len())),
            |(), index| found[index] = self.contains_hash(hashes[index]),
        );
    }

    fn observe_hash(&mut self, hash: KeyHash, importance: Importance) -> Verdict {
        self.base.count(1);
        self.observe_gated(hash, importance)
    }

    fn observe_checked(&mut self, hashes: &[KeyHash], importances: Importances<'_>, verdicts: &mut [Verdict]) {
        let (count, distance) = (hashes.len().min(verdicts.len()), self.distance());
        let (hashes, verdicts) = (&hashes[..count], &mut verdicts[..count]);
        self.base.count(count);
        let ask = |filter: &Self, index: usize| filter.words.prefetch(hashes[index].index(filter.words.len()));
        let all_alike = matches!(importances, Importances::All(_)) || self.parameters.insert != Insert::Importance;
        if self.parameters.gate == Gate::Off && all_alike {
            let (rank, hit) = (self.rank(importances.at(0)), self.parameters.hit);
            run(ObserveWords::<false> { words: &mut self.words, hit, rank, distance, hashes, verdicts });
        } else {
            pipelined(self, count, distance, ask, |filter, index| {
                verdicts[index] = filter.observe_gated(hashes[index], importances.at(index));
            });
        }
    }

    fn prefetch_distance(&self) -> usize {
        self.distance()
    }

    fn prefetch_hashes(&self, hashes: &[KeyHash]) {
        hashes.iter().for_each(|hash| self.words.prefetch(hash.index(self.words.len())));
    }

    fn clear(&mut self) {
        self.words.clear();
        self.base.arrivals = 0;
        self.occupied = 0;
        self.gate = ImportanceGate::new(self.parameters.capacity(), self.parameters.gate_items);
    }

    fn save(&self, state: StateWriter) -> StateWriter {
        match self.parameters.gate {
            Gate::Importance => self.gate.save(state),
            Gate::Off | Gate::Clamped => state,
        }
    }

    fn body(&self) -> Body<'_> {
        Body::Bytes(vec![self.words.bytes()])
    }
}

impl Ranked {
    /// Arrivals of which only the first 64 bits of the hash count, at a filter without a gate.
    fn observe_kept(&mut self, hashes: &[KeyHash], verdicts: &mut [Verdict]) {
        let (rank, hit, distance) = (self.rank(Importance::FULL), self.parameters.hit, self.distance());
        self.base.count(hashes.len());
        run(ObserveWords::<true> { words: &mut self.words, hit, rank, distance, hashes, verdicts });
    }

    /// Arrivals of [`TOGETHER`] keys at most, which were counted when they came.
    fn take_kept(&mut self, hashes: &[KeyHash]) {
        let (rank, hit) = (self.rank(Importance::FULL), self.parameters.hit);
        let verdicts = &mut [Verdict::Distinct; TOGETHER][..hashes.len()];
        run(ObserveWords::<true> { words: &mut self.words, hit, rank, distance: 0, hashes, verdicts });
    }

    fn distance(&self) -> usize {
        if self.words.bytes().len() <= CACHED_BYTES { 0 } else { PREFETCH_DISTANCE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FilterExt;
    use crate::promise::Goal;

    fn built(spec: &str) -> Ranked {
        Ranked::from_plan(&Goal::new().memory_bits(1 << 17).default_fpr(0.01).plan(spec).expect("plans"))
            .expect("memory")
    }

    #[test]
    fn the_estimated_rate_is_that_of_new_keys_at_every_fill() {
        for spec in ["ranked", "ranked:words=plain", "ranked:lanes=3,lane_bits=5", "ranked:lanes=7,lane_bits=4"] {
            let mut filter = built(spec);
            let mut next = 0u64;
            for keys in [2_000, 6_000, 20_000] {
                while next < keys {
                    filter.observe(next, Importance::FULL);
                    next += 1;
                }
                let (trials, estimated) = (2_000_000u64, filter.status().estimated_fpr);
                let found = (1 << 40..(1 << 40) + trials).filter(|key| filter.contains(key)).count() as f64;
                let (expected, sigma) = (estimated * trials as f64, (estimated * trials as f64).sqrt());
                assert!((found - expected).abs() <= 4.0 * sigma.max(1.0), "{spec}: {found}, {expected} expected");
                // At most what is planned for so many keys, but for how they happen to be dealt out: four deviations of the
                // words' mean.
                let planned = filter.parameters().predicted_fpr_at(keys);
                let spread = filter.parameters().predicted_fpr() / (filter.words.len() as f64).sqrt();
                assert!(estimated - planned <= 4.0 * spread, "{spec}: {estimated}, {planned} planned");
            }
        }
    }

    #[test]
    fn ranks_are_counted_from_the_front_and_stay_within_the_word() {
        let rank = |spec: &str| built(spec).rank(Importance::FULL);
        assert_eq!(
            ["front", "rank1", "middle", "tail"].map(|name| rank(&format!("ranked:insert={name}"))),
            [0, 1, 2, 4]
        );
        assert_eq!(rank("ranked:lanes=1,insert=rank1"), 0);
    }

    #[test]
    fn batches_of_wide_words_are_made_of_single_arrivals_at_every_fill() {
        for spec in ["ranked", "ranked:lanes=7,lane_bits=8,hit=bubble,insert=rank1", "ranked:lanes=3,hit=still"] {
            let (mut single, mut batched) = (built(spec), built(spec));
            for round in 0..60u64 {
                let hashes: Vec<KeyHash> = (0..700u64)
                    .map(|index| Hashing::default().hash_u64(if index % 3 == 0 { index } else { round * 700 + index }))
                    .collect();
                let mut verdicts = vec![Verdict::Distinct; hashes.len()];
                batched.observe_checked(&hashes, Importances::default(), &mut verdicts);
                for (hash, verdict) in hashes.iter().zip(verdicts) {
                    assert_eq!(single.observe_hash(*hash, Importance::FULL), verdict, "{spec}, round {round}");
                }
            }
            assert_eq!(single.words, batched.words, "{spec}");
            assert!(batched.status().fill > 0.7, "{spec}: most words are full at the end");
        }
    }
}
