//! What a filter got wrong on a simulated stream, and the forecast that follows from it.

use super::{Looks, Patience, variance};
use crate::stream::integrate::by_octave;
use crate::stream::scaled::ScaledStream;
use crate::stream::{ErrorsAt, Method, PARTS_OF_STREAM, RateAt, RatesAt};
use crate::{Forecast, Stream};
use everbloom::{Filter, Holds, Importances, KeyHash, Promise, Verdict};
use everbloom_cells::key::finalise;

/// Rows of the curve by importance.
const LEVELS: usize = 16;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) wrong: f64,
    pub(super) of: f64,
}

impl Tally {
    fn add(&mut self, wrong: bool) {
        self.wrong += f64::from(u8::from(wrong));
        self.of += 1.0;
    }

    /// One that is wrong with this probability.
    fn add_part(&mut self, probability: f64) {
        self.wrong += probability;
        self.of += 1.0;
    }

    pub(super) fn since(self, before: Self) -> Self {
        Tally { wrong: self.wrong - before.wrong, of: self.of - before.of }
    }

    pub(super) fn rate(self) -> f64 {
        if self.of > 0.0 { self.wrong / self.of } else { 0.0 }
    }

    /// Never 0, for what did not happen among so few may happen: as if one more had been wrong and one right.
    pub(super) fn standard_error(self) -> f64 {
        let rate = (self.wrong + 1.0) / (self.of + 2.0);
        if self.of > 0.0 { (rate * (1.0 - rate) / (self.of + 2.0)).sqrt() } else { 0.0 }
    }
}

/// A tally for every doubling of the lag.
struct Octaves([Tally; 33]);

impl Default for Octaves {
    fn default() -> Self {
        Octaves([Tally::default(); 33])
    }
}

/// One of the equal parts of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    expected: Tally,
    negatives: Tally,
}

/// What a filter got wrong.
#[derive(Default)]
pub(super) struct Counts {
    positives: Tally,
    pub(super) negatives: Tally,
    /// False positives to be expected by what the cells looked like.
    pub(super) expected: Tally,
    pub(super) late_expected: Tally,
    pub(super) expected_importance: f64,
    late_positives: Tally,
    late_negatives: Tally,
    /// By octave of the lag.
    by_lag: Octaves,
    by_importance: [Tally; LEVELS + 1],
    pub(super) importance: f64,
    importance_wrong: (f64, f64),
    /// Counts, and the sum of their importances, by importance.
    errors: [ErrorsAt; LEVELS + 1],
    fills: Vec<f64>,
    /// The arrivals of the section that was played, if it was not the whole stream.
    section: Option<f64>,
    /// Equal parts of the stream between the two arrivals that those judged stand for.
    parts: [Part; PARTS_OF_STREAM],
    judged: (f64, f64),
    /// Whether what is missed is counted by groups of keys, too.
    pub(super) watches_keys: bool,
    pub(super) repeats_of_a_round: f64,
    groups: [Tally; GROUPS],
}

/// Arrivals that tell enough of a part of a stream, and how many parts may be told as one for their sake.
const ENOUGH_OF_A_PART: f64 = 400.0;
const MOST_AS_ONE: usize = PARTS_OF_STREAM / 4;

/// Groups of keys whose differences tell how much depends on which keys are in a sample.
const GROUPS: usize = 32;

/// By bits that neither filters nor the choice of keys for a sample look at.
fn group_of(hash: KeyHash) -> usize {
    finalise(hash.low ^ hash.high.rotate_left(17)) as usize % GROUPS
}

impl Counts {
    pub(super) fn watching_keys() -> Self {
        Counts { watches_keys: true, ..Counts::default() }
    }

    pub(super) fn run(
        &mut self,
        filter: &mut dyn Filter,
        scaled: &ScaledStream,
        patience: Patience,
        (looks, seed): (Looks, u64),
    ) {
        self.fills = vec![0.0];
        self.judged = scaled.judged();
        self.section = scaled.is_section.then_some(scaled.hashes.len() as f64 * scaled.divisor);
        let (most_missed, all) = (patience.most_missed(scaled), scaled.judged_lags().len());
        let mut verdicts = Vec::new();
        let (mut start, mut rate_before) = (0, filter.status().estimated_fpr);
        let (late_from, mut part, mut next_part) = ((all * 9).div_ceil(10), 0, 0);
        for end in looks.ends(scaled.hashes.len(), filter.memory_bits(), seed) {
            let hashes = &scaled.hashes[start..end];
            let importances = match scaled.importances.get(start..end) {
                Some(each) if !each.is_empty() => Importances::Each(each),
                _ => Importances::default(),
            };
            verdicts.resize(hashes.len(), Verdict::Distinct);
            filter.observe_checked(hashes, importances, &mut verdicts);
            let status = filter.status();
            // A filter that began to err in between did so at once: before that new keys met nothing.
            let exact_until = usize::try_from(filter.exact_arrivals()).unwrap_or(usize::MAX);
            let began = (start..end).contains(&exact_until) && exact_until > 0;
            let rate = if began { status.estimated_fpr } else { 0.5 * (rate_before + status.estimated_fpr) };
            for (place, verdict) in verdicts.iter().enumerate() {
                let place_in_all = start + place;
                let Some(judged) = place_in_all.checked_sub(scaled.warm_up) else { continue };
                let late = judged >= late_from;
                if judged >= next_part {
                    // Worked out where a part begins: a division for every arrival would be felt.
                    part = judged * PARTS_OF_STREAM / all;
                    next_part = ((part + 1) * all).div_ceil(PARTS_OF_STREAM);
                }
                let (lag, importance) = (scaled.lags[place_in_all], importances.at(place).share());
                self.judge(lag, late, importance, *verdict);
                let part = &mut self.parts[part];
                if lag == 0 {
                    let rate = if began && place_in_all < exact_until { 0.0 } else { rate };
                    part.expected.add_part(rate);
                    self.expect(rate, late, importance);
                } else {
                    part.negatives.add(verdict.is_distinct());
                }
                let is_one_of_many = self.watches_keys && scaled.is_hot.get(place_in_all) == Some(&false);
                if is_one_of_many && lag > 0 {
                    self.groups[group_of(hashes[place])].add(verdict.is_distinct());
                }
            }
            self.fills.push(status.fill);
            (start, rate_before) = (end, status.estimated_fpr);
            let missed = if patience.by_importance { self.importance_wrong.1 } else { self.negatives.wrong };
            if missed > most_missed {
                return;
            }
        }
    }

    /// A new key at a filter with this rate of false positives.
    fn expect(&mut self, rate: f64, late: bool, importance: f64) {
        self.expected.add_part(rate);
        self.expected_importance += rate * importance;
        if late {
            self.late_expected.add_part(rate);
        }
    }

    fn judge(&mut self, lag: u32, late: bool, importance: f64, verdict: Verdict) {
        self.importance += importance;
        let errors = &mut self.errors[(importance * LEVELS as f64) as usize];
        errors.importance += importance;
        if lag == 0 {
            errors.distinct += 1.0;
            let wrong = !verdict.is_distinct();
            self.positives.add(wrong);
            self.importance_wrong.0 += if wrong { importance } else { 0.0 };
            if late {
                self.late_positives.add(wrong);
            }
            return;
        }
        let wrong = verdict.is_distinct();
        errors.duplicates += 1.0;
        errors.missed += f64::from(u8::from(wrong));
        self.negatives.add(wrong);
        self.importance_wrong.1 += if wrong { importance } else { 0.0 };
        self.by_lag.0[lag.ilog2() as usize].add(wrong);
        self.by_importance[(importance * LEVELS as f64) as usize].add(wrong);
        if late {
            self.late_negatives.add(wrong);
        }
    }

    /// The variance of the rate of false negatives that comes from which keys are in the sample: hot ones always are.
    pub(super) fn variance_by_keys(&self) -> f64 {
        let rate = self.negatives.rate();
        let off: Vec<f64> = self.groups.iter().map(|group| group.wrong - rate * group.of).collect();
        let hits = self.groups.iter().map(|group| group.of).sum::<f64>();
        // The groups were counted in one round, all repeats in every round.
        if hits == 0.0 {
            0.0
        } else {
            GROUPS as f64 * variance(&off) / (self.repeats_of_a_round * self.repeats_of_a_round)
        }
    }

    fn errors_by_importance(&self) -> Vec<ErrorsAt> {
        let all = self.positives.of + self.negatives.of;
        let counted = self.errors.iter().filter(|errors| errors.distinct + errors.duplicates > 0.0);
        counted
            .map(|errors| ErrorsAt {
                importance: errors.importance / (errors.distinct + errors.duplicates),
                distinct: errors.distinct / all,
                duplicates: errors.duplicates / all,
                missed: errors.missed / all,
            })
            .collect()
    }

    /// Of a short simulation fewer parts, so that each has enough to tell something. Those in which nothing came, because
    /// it ended early, are left out.
    fn over_time(&self) -> Vec<RatesAt> {
        let (start, end) = self.judged;
        let enough = PARTS_OF_STREAM as f64 * ENOUGH_OF_A_PART / (self.expected.of + self.negatives.of).max(1.0);
        let each = (enough.ceil() as usize).next_power_of_two().min(MOST_AS_ONE);
        let width = (end - start) * each as f64 / PARTS_OF_STREAM as f64;
        let row = |(number, parts): (usize, &[Part])| {
            let sum = |of: fn(&Part) -> Tally| {
                parts
                    .iter()
                    .map(of)
                    .fold(Tally::default(), |sum, part| Tally { wrong: sum.wrong + part.wrong, of: sum.of + part.of })
            };
            let (expected, negatives) = (sum(|part| part.expected), sum(|part| part.negatives));
            (expected.of + negatives.of > 0.0).then(|| RatesAt {
                arrivals: start + (number as f64 + 0.5) * width,
                distinct: expected.of / (expected.of + negatives.of),
                predicted_fpr: expected.rate(),
                predicted_fnr: negatives.rate(),
            })
        };
        self.parts.chunks(each).enumerate().filter_map(row).collect()
    }

    pub(super) fn forecast(&self, promise: Promise, stream: &Stream, zeros: f64, divisor: f64) -> Forecast {
        let last = self.fills.last().copied().unwrap_or(0.0);
        let settled = self.fills.iter().rposition(|fill| (fill - last).abs() > 0.01 * last).map_or(0, |at| at + 1);
        let played = self.section.unwrap_or(stream.arrivals() as f64);
        let stable_after = played * settled as f64 / (self.fills.len().max(2) - 1) as f64;
        let octave = |(octave, tally): (usize, &Tally)| (libm::exp2(octave as f64) * divisor, tally.wrong, tally.of);
        let octaves: Vec<_> = self.by_lag.0.iter().enumerate().map(octave).collect();
        let share = |tally: &Tally| if self.negatives.of > 0.0 { tally.of / self.negatives.of } else { 0.0 };
        let levels = self.by_importance.iter().enumerate().filter(|(_, tally)| tally.of > 0.0);
        let middle = |level: usize| ((level as f64 + 0.5) / LEVELS as f64).min(1.0);
        // A promise is kept whatever comes, so what was counted above it is chance.
        let bound = match promise.holds {
            Holds::Always => promise.fpr_bound,
            Holds::UntilItems(items) if items >= stream.distinct() => promise.fpr_bound,
            _ => 1.0,
        };
        Forecast {
            promise: promise.missing(self.negatives.rate()),
            method: Method::Simulation,
            predicted_fpr: (self.positives.rate() + self.positives.standard_error()).min(bound),
            standard_error: self.positives.standard_error(),
            predicted_fnr: self.negatives.rate(),
            fnr_standard_error: self.negatives.standard_error(),
            late_fpr: self.late_positives.rate(),
            late_fnr: self.late_negatives.rate(),
            weighted_fpr: self.importance_wrong.0 / self.importance.max(1e-300),
            weighted_fnr: self.importance_wrong.1 / self.importance.max(1e-300),
            by_lag: by_octave(&octaves, self.negatives.of),
            by_importance: levels
                .map(|(level, tally)| RateAt { at: middle(level), predicted_fnr: tally.rate(), share: share(tally) })
                .collect(),
            mean_fpr: self.expected.rate().min(bound),
            errors_by_importance: self.errors_by_importance(),
            over_time: self.over_time(),
            zero_share: zeros,
            converged_after: (settled + 1 < self.fills.len()).then_some(stable_after),
        }
    }
}
