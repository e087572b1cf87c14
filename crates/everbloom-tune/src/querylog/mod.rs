//! From key lists and a query log to a [`Scheme`]: does the log help, how, and by how much?
//!
//! Logs mislead. Fitted key by key, hashes follow the noise of the log and can lose to an ordinary filter; a key that
//! the log does not show has no number of hashes at all; and next week's queries ask for other keys. So:
//!
//! 1. **The log is split by time.** Everything is learned from the first half; the second half judges.
//! 2. **Keys are bucketed** by how often the log asked for them: never, once, 2–3 times, 4–7 times, … What share of
//!    queries a bucket gets is measured on the later part of the first half, where each query is counted for the bucket
//!    that its key was in *before*. Bucket 0 has the unseen keys, a fifth to a half of the negative queries in real logs.
//! 3. **Three filters compete** at equal total bytes, each built for real: the ordinary one; `popularity` with the best
//!    classes, its scheme's bytes counted and divided among the sets that share it; `stacked` with the best layers.
//! 4. **The winner** has the lowest rate on the second half. A winner that does not beat the ordinary filter by more than
//!    chance, and by at least a twentieth, is no winner: then the ordinary filter is returned, and that is the answer.
//!
//! # How the rate is measured
//!
//! Where a handful of keys make up half of the queries, the rate of one filter is a lottery: either the hottest key
//! happens to be a false positive or not. But keys of the same class are alike to a filter, so the share of false
//! positives among the *distinct* keys of each class, weighted with the class's share of queries, has the same mean and
//! a far smaller spread. That is [`Score::fpr`], over several filters with different hashes; [`Score::false_positives`]
//! is what the one filter with the scheme's own hashes did.
//!
//! ```
//! use everbloom_tune::querylog::{tune, Options, Sample};
//! use everbloom::{Hashing, Key};
//! use everbloom_tune::scheme::Recipe;
//!
//! // 1,000 members; the log asks for the same 300 other keys again and again.
//! let hashing = Hashing::seeded(0);
//! let hash = |key: u64| key.hash_with(&hashing);
//! let log = (0..20_000u64).map(|time| hash(5000 + time * time % 307)).collect();
//! let sample = Sample::new(hashing, vec![(0..1000).map(hash).collect()], log)?;
//!
//! let tuned = tune(&sample, &Options::new(8192))?;
//! assert_ne!(tuned.scheme.recipe(), &Recipe::Standard);
//! assert!(tuned.winner.score.fpr < 0.1 * tuned.standard.score.fpr);
//! # Ok::<(), everbloom::Error>(())
//! ```

mod build;
mod evidence;
mod fit;
pub mod popularity;
mod score;
pub mod stacking;

pub use build::build;
pub use evidence::Sample;
pub use score::Score;

use crate::Scheme;
use crate::querylog::popularity::{Allocation, Solver};
use crate::scheme::{KeyClass, MAX_HASHES, Recipe};
use everbloom::kind::{rate_text, size_text};
use everbloom::{Error, Result};
use evidence::Evidence;
use fit::Candidate;
use std::sync::Arc;

/// What to tune for.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Bits for a set's filter and its share of the scheme; for several sets, on average.
    pub memory_bits: u64,
    /// How many sets will share the scheme; by default, as many as there are key lists.
    pub sets_sharing: Option<u64>,
    /// The fewest hashes of a key. With 0, every key of a class that is never asked for may count as a member.
    pub min_hashes: u32,
    /// The most hashes of a key.
    pub max_hashes: u32,
    /// How the hashes of classes are found.
    pub solver: Solver,
}

impl Options {
    /// This much memory, and 1 to 32 hashes.
    pub fn new(memory_bits: u64) -> Self {
        Options { memory_bits, sets_sharing: None, min_hashes: 1, max_hashes: MAX_HASHES, solver: Solver::default() }
    }

    /// The options, if they make sense.
    pub fn checked(self) -> Result<Self> {
        if !(512..=1 << 50).contains(&self.memory_bits) {
            let needed = "at least 64B, one cache line, and at most 128TiB";
            return Err(Error::memory(self.memory_bits, needed, "a byte for each key is usual"));
        }
        if self.sets_sharing == Some(0) {
            return Err(Error::parameter("sets_sharing", 0, "at least 1", "count the sets that use the scheme"));
        }
        if !(1..=MAX_HASHES).contains(&self.max_hashes) {
            let needed = format!("between 1 and {MAX_HASHES}");
            return Err(Error::parameter("max_hashes", self.max_hashes, needed, "try 32"));
        }
        if self.min_hashes > self.max_hashes {
            let needed = format!("at most max_hashes, which is {}", self.max_hashes);
            return Err(Error::parameter("min_hashes", self.min_hashes, needed, "1 is usual"));
        }
        Ok(self)
    }
}

/// One of the competing filters.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Contender {
    /// `standard`, `popularity` or `stacked`.
    pub kind: &'static str,
    /// The rate of false positives that the fit predicts.
    pub predicted_fpr: f64,
    /// Bits of the scheme that a query needs, shared by all sets.
    pub table_bits: u64,
    /// Bits of the average set's filter.
    pub filter_bits: u64,
    /// The classes: share of keys, share of negative queries, hashes.
    pub classes: Vec<KeyClass>,
    /// What it did on the second half of the log.
    pub score: Score,
}

/// The result of tuning.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tuned {
    /// What to build filters with.
    pub scheme: Arc<Scheme>,
    /// The filter that won.
    pub winner: Contender,
    /// The ordinary filter, of the same total size.
    pub standard: Contender,
    /// All that competed.
    pub contenders: Vec<Contender>,
    /// A rate below which no hashes per class can go, for the buckets that the log shows.
    pub lower_bound: f64,
    /// The share of the second half's negative queries that ask for keys the first half never showed.
    pub unseen_share: f64,
    /// Negative queries in the second half.
    pub holdout_queries: u64,
    /// The rate of false positives at which half of the gain is lost: time to tune again.
    pub retune_fpr: f64,
    /// What else there is to know, a sentence each.
    pub notes: Vec<String>,
}

/// A gain below this share is not worth a scheme.
const LEAST_GAIN: f64 = 0.05;
/// Standard errors by which the winner must be ahead.
const CONFIDENCE: f64 = 3.0;

/// Learns from the first half of the log, judges on the second.
pub fn tune(sample: &Sample, options: &Options) -> Result<Tuned> {
    let options = options.checked()?;
    let evidence = Evidence::gather(sample, options.sets_sharing)?;
    let mut notes = Vec::new();
    let mut candidates = vec![fit::standard(&evidence, &options)?];
    candidates.extend(fit::popularity(&evidence, &options, &mut notes)?);
    candidates.extend(fit::stacked(&evidence, &options)?);
    let scores = score::all(&evidence, &candidates, &options)?;
    let scored = candidates.into_iter().zip(scores).filter_map(|(candidate, score)| Some((candidate, score?)));
    let (candidates, contenders): (Vec<Candidate>, Vec<Contender>) = scored
        .map(|(candidate, score)| {
            let judged = contender(&candidate, score);
            (candidate, judged)
        })
        .unzip();
    let place = winner(&contenders);
    let lower_bound = match candidates[place].lower_bound {
        Some(own) => own,
        None => buckets_bound(&evidence, &options)?,
    };
    let (winner, standard) = (contenders[place].clone(), contenders[0].clone());
    notes.extend(remarks(&evidence, &winner, &contenders));
    Ok(Tuned {
        scheme: candidates[place].scheme.clone(),
        lower_bound,
        unseen_share: evidence.unseen_share(),
        holdout_queries: evidence.holdout_misses(),
        retune_fpr: (winner.score.fpr + standard.score.fpr) / 2.0,
        winner,
        standard,
        contenders,
        notes,
    })
}

/// How close to the smallest memory for a rate is close enough.
const PRECISION: f64 = 0.01;
/// Where none of so many are wrong, a rate of three divided by their number is not yet refuted at 95 %.
const RULE_OF_THREE: f64 = 3.0;
/// The most memory that is tried for a rate, in bits per key of the average set.
const MOST_BITS_PER_KEY: f64 = 128.0;

/// [`tune`] with the least memory, to a part in a hundred, with which the winner's rate on the second half of the log is at
/// most `target_fpr`. The memory is that of [`Contender::filter_bits`] and the share of the scheme; `options.memory_bits` is
/// not used.
pub fn tune_for_rate(sample: &Sample, options: &Options, target_fpr: f64) -> Result<(Tuned, u64)> {
    if !(target_fpr > 0.0 && target_fpr < 1.0) {
        return Err(Error::parameter("target_fpr", target_fpr, "above 0 and below 1", "1% is a usual choice"));
    }
    let keys = Evidence::gather(sample, options.sets_sharing)?.mean_set_size();
    let lines = |bits: f64| (bits / 512.0).ceil().max(1.0) as u64 * 512;
    let try_with = |memory_bits: u64| tune(sample, &Options { memory_bits, ..*options });
    // A standard filter keeps the rate with so much, but for chance and whole lines.
    let mut high = lines(Allocation::standard_bits(target_fpr) * keys);
    let mut low = 0;
    let mut best = try_with(high)?;
    while best.winner.score.fpr > target_fpr {
        if high as f64 > MOST_BITS_PER_KEY * keys + 4096.0 {
            return Err(Error::Infeasible {
                wanted: format!("a rate of {}", rate_text(target_fpr)),
                reason: format!("{} do not reach it on the second half of the log", size_text(high)),
                remedy: "allow more hashes, or a higher rate".into(),
            });
        }
        low = high;
        high = lines(high as f64 * 1.25);
        best = try_with(high)?;
    }
    // What keeps the rate is kept, even where a little more memory does a little worse by chance.
    while high - low > lines(PRECISION * high as f64) {
        let middle = lines((low + high) as f64 / 2.0);
        match try_with(middle)? {
            tuned if tuned.winner.score.fpr <= target_fpr => (best, high) = (tuned, middle),
            _ => low = middle,
        }
    }
    if target_fpr * (best.holdout_queries as f64) < RULE_OF_THREE && best.winner.predicted_fpr > target_fpr {
        best.notes.push(format!(
            "{} negative queries cannot show a rate of {}; {} is to be expected: give the memory, or a longer log",
            best.holdout_queries,
            rate_text(target_fpr),
            rate_text(best.winner.predicted_fpr)
        ));
    }
    Ok((best, high))
}

/// The certificate for the buckets themselves, as if telling keys apart cost nothing.
fn buckets_bound(evidence: &Evidence, options: &Options) -> Result<f64> {
    let bits_per_key = options.memory_bits as f64 / evidence.mean_set_size();
    Ok(Allocation::new(evidence.solver_classes(), bits_per_key, fit::range(options))?.solve().lower_bound)
}

fn contender(candidate: &Candidate, score: Score) -> Contender {
    let kind = match candidate.scheme.recipe() {
        Recipe::Standard => "standard",
        Recipe::Popularity(_) => "popularity",
        Recipe::Stacked(_) => "stacked",
    };
    Contender {
        kind,
        predicted_fpr: candidate.predicted_fpr,
        table_bits: candidate.scheme.table_bits(),
        filter_bits: candidate.filter_bits,
        classes: candidate.classes.clone(),
        score,
    }
}

/// The place of the best contender; 0, the ordinary filter, unless another is clearly better.
fn winner(contenders: &[Contender]) -> usize {
    let standard = &contenders[0].score;
    let clearly = |contender: &Contender| {
        let error = libm::hypot(contender.score.error, standard.error);
        contender.score.fpr + CONFIDENCE * error < (1.0 - LEAST_GAIN) * standard.fpr
    };
    let better = contenders.iter().enumerate().filter(|(_, contender)| clearly(contender));
    better.min_by(|(_, one), (_, other)| one.score.fpr.total_cmp(&other.score.fpr)).map_or(0, |(place, _)| place)
}

/// What a user should know before trusting the result.
fn remarks(evidence: &Evidence, winner: &Contender, contenders: &[Contender]) -> Vec<String> {
    let mut remarks = Vec::new();
    let standard = &contenders[0];
    if winner.kind == standard.kind {
        let erred_less = |other: &Contender| other.score.fpr < (1.0 - LEAST_GAIN) * standard.score.fpr;
        remarks.push(match evidence.has_drifted() {
            false if contenders.iter().any(erred_less) => {
                "another filter erred less often, but on too few different keys to be no chance: the standard filter is \
                     returned; tune on a longer log"
                    .to_string()
            }
            true => {
                "the second half of the log asks for other keys than the first: nothing learned from the one helps \
                     with the other, so the standard filter is returned; tune on a later or longer log"
                    .to_string()
            }
            false => "neither classes of keys nor hot negatives help here; the standard filter is returned".to_string(),
        });
        return remarks;
    }
    if winner.score.fpr > 1.5 * winner.predicted_fpr + CONFIDENCE * winner.score.error {
        remarks.push(format!(
            "the second half errs {:.1} times as often as the first half predicts: the keys asked for are changing; \
             tune often",
            winner.score.fpr / winner.predicted_fpr
        ));
    }
    remarks
}
