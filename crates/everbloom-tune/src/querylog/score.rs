//! The second half of the log as the judge of real filters.

use super::Options;
use super::evidence::{Evidence, Object};
use super::fit::Candidate;
use crate::Scheme;
use crate::scheme::{Classes, HotNegatives, Recipe};
use everbloom::{AnyFilter, Error, Hashing, KeyHash, Result};
use everbloom_cells::key::finalise;
use std::sync::Arc;

/// What a filter did on the second half of the log.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Score {
    /// The rate of false positives among negative queries, over filters with different hashes.
    pub fpr: f64,
    /// Its standard error.
    pub error: f64,
    /// Negative queries that the filters with the scheme's own hashes took for members.
    pub false_positives: u64,
}

/// Lookups to spend on all trials together.
const LOOKUPS: usize = 8_000_000;
/// Trials at most.
const MAX_TRIALS: usize = 24;

/// The score of every candidate on the same queries; `None` for one that does not fit into its memory.
pub(super) fn all(evidence: &Evidence, candidates: &[Candidate], options: &Options) -> Result<Vec<Option<Score>>> {
    let asked: Vec<&Object> = evidence.objects.iter().filter(|object| object.holdout > 0).collect();
    let members: usize = evidence.sets.iter().map(Vec::len).sum();
    let trials = (LOOKUPS / (members + asked.len() * evidence.sets.len()).max(1)).clamp(2, MAX_TRIALS);
    let judge = Judge { evidence, asked, trials, memory_bits: options.memory_bits };
    let score = |candidate| match judge.score(candidate) {
        Err(Error::Infeasible { .. }) => Ok(None),
        score => score.map(Some),
    };
    candidates.iter().map(score).collect()
}

/// Keys that are alike to a filter.
#[derive(Debug, Clone, Copy, Default)]
struct Stratum {
    distinct: f64,
    wrong: f64,
    /// Their queries.
    weight: f64,
}

struct Judge<'e> {
    evidence: &'e Evidence,
    asked: Vec<&'e Object>,
    trials: usize,
    memory_bits: u64,
}

impl Judge<'_> {
    fn score(&self, candidate: &Candidate) -> Result<Score> {
        let mut strata = vec![Stratum::default(); candidate.classes.len().max(1)];
        let mut false_positives = 0;
        for trial in 0..self.trials {
            let contest = Contest::new(self, candidate, trial)?;
            for set in 0..self.evidence.sets.len() {
                let wrong = self.judge_set(&contest, set, &mut strata)?;
                false_positives += if trial == 0 { wrong } else { 0 };
            }
        }
        let weight: f64 = strata.iter().map(|stratum| stratum.weight).sum();
        let (mut fpr, mut variance) = (0.0, 0.0);
        for stratum in strata.iter().filter(|stratum| stratum.distinct > 0.0) {
            let (share, rate) = (stratum.weight / weight, stratum.wrong / stratum.distinct);
            // Laplace's rule, so that a stratum without an error is not taken for one that cannot err.
            let cautious = (stratum.wrong + 1.0) / (stratum.distinct + 2.0);
            fpr += share * rate;
            variance += share * share * cautious * (1.0 - cautious) / stratum.distinct;
        }
        Ok(Score { fpr, error: variance.sqrt(), false_positives })
    }

    /// Asks the filter of one set for every key of the second half that is not its member.
    fn judge_set(&self, contest: &Contest<'_>, set: usize, strata: &mut [Stratum]) -> Result<u64> {
        let members = &self.evidence.sets[set];
        let hashes: Vec<KeyHash> =
            members.iter().map(|member| contest.hash(self.evidence.objects[*member as usize].hash)).collect();
        let filter = contest.build(&hashes, self.bits_of(contest.candidate, hashes.len()))?;
        let is_member = self.members_among_asked(members);
        let mut wrong = 0;
        for (object, _) in self.asked.iter().zip(is_member).filter(|(_, is_member)| !is_member) {
            let hash = contest.hash(object.hash);
            let found = filter.contains_hash(hash);
            let stratum = &mut strata[contest.stratum(object.hash, hash)];
            stratum.distinct += 1.0;
            stratum.weight += f64::from(object.holdout);
            stratum.wrong += f64::from(u8::from(found));
            wrong += u64::from(object.holdout) * u64::from(found);
        }
        Ok(wrong)
    }

    /// The bits of a set's filter: the average set's, in proportion to its members.
    fn bits_of(&self, candidate: &Candidate, members: usize) -> u64 {
        let bits = candidate.filter_bits.min(self.memory_bits) as f64;
        ((bits * members as f64 / self.evidence.mean_set_size()) as u64).max(512)
    }

    fn members_among_asked(&self, members: &[u32]) -> Vec<bool> {
        let mut is_member = vec![false; self.evidence.objects.len()];
        members.iter().for_each(|member| is_member[*member as usize] = true);
        let asked = self.evidence.objects.iter().zip(is_member).filter(|(object, _)| object.holdout > 0);
        asked.map(|(_, is_member)| is_member).collect()
    }
}

/// A candidate with hashes of one trial: the first trial's are the scheme's own.
struct Contest<'c> {
    candidate: &'c Candidate,
    trial: u64,
    scheme: Arc<Scheme>,
    hot: Vec<KeyHash>,
}

impl<'c> Contest<'c> {
    fn new(judge: &Judge<'_>, candidate: &'c Candidate, trial: usize) -> Result<Self> {
        let mut contest = Contest { candidate, trial: trial as u64, scheme: candidate.scheme.clone(), hot: Vec::new() };
        let scheme = &candidate.scheme;
        let recipe = match scheme.recipe() {
            Recipe::Stacked(negatives) => {
                contest.hot = negatives.keys().to_vec();
                let keys = negatives.keys().iter().map(|hash| contest.hash(*hash)).collect();
                Recipe::Stacked(HotNegatives::new(keys, negatives.design().clone(), negatives.query_share())?)
            }
            Recipe::Popularity(classes) => Recipe::Popularity(contest.remapped(judge, classes)?),
            Recipe::Standard => Recipe::Standard,
        };
        if trial > 0 {
            contest.scheme = Arc::new(Scheme::new(*scheme.hashing(), scheme.bits_per_key(), recipe)?);
        }
        Ok(contest)
    }

    /// The map of exceptions for this trial's hashes.
    fn remapped(&self, judge: &Judge<'_>, classes: &Classes) -> Result<Classes> {
        let Some(width) = classes.map_width() else { return Ok(classes.clone()) };
        if self.trial == 0 {
            return Ok(classes.clone());
        }
        let exceptions: Vec<(KeyHash, u8)> = judge
            .evidence
            .objects
            .iter()
            .filter_map(|object| {
                self.candidate.exception_class(object.count).map(|class| (self.hash(object.hash), class))
            })
            .collect();
        classes.clone().with_exceptions(&exceptions, width)
    }

    /// The key's hash in this trial.
    fn hash(&self, hash: KeyHash) -> KeyHash {
        if self.trial == 0 {
            return hash;
        }
        let salt = finalise(self.trial);
        let low = finalise(hash.low ^ salt.rotate_left(32));
        let low = match self.candidate.scheme.hashing() {
            Hashing::Measured { .. } => low & !255 | u64::from(hash.key_length()),
            _ => low,
        };
        KeyHash { high: finalise(hash.high ^ salt), low }
    }

    fn build(&self, members: &[KeyHash], bits: u64) -> Result<AnyFilter> {
        super::build(&self.scheme, members, bits)
    }

    /// Which keys are alike: those of a class, those that a stacked filter stores exactly.
    fn stratum(&self, original: KeyHash, hash: KeyHash) -> usize {
        match self.scheme.recipe() {
            Recipe::Standard => 0,
            Recipe::Popularity(classes) => classes.class_of(hash),
            Recipe::Stacked(_) => {
                let known = self.hot.binary_search_by_key(&(original.high, original.low), |hash| (hash.high, hash.low));
                usize::from(known.is_ok())
            }
        }
    }
}
