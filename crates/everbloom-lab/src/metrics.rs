//! Every rate, defined once.
//!
//! - `fpr` = false positives / arrivals that are truly distinct; `fnr` = false negatives / arrivals
//!   that are truly duplicates.
//! - `wfp`, `wfn` = importance of the false positives (negatives) / importance of **all** arrivals.
//! - `fp_share`, `fn_share` = errors of an importance / all arrivals of that importance
//!   (thesis eqs. 9–10).
//! - weighted precision and recall: thesis eqs. 7–8, [`Weights::precision`] and [`Weights::recall`].
//!
//! A rate without a denominator is `None`, not 0: a stream without repeats has no `fnr`.

use crate::oracle::Truth;
use everbloom::{Importance, Verdict};

/// `part / whole`, if there is a whole.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// How verdicts and truth met, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Arrivals that are truly distinct.
    pub distinct: u64,
    /// Arrivals that are truly duplicates.
    pub duplicates: u64,
    /// Distinct arrivals called duplicates.
    pub false_positives: u64,
    /// Duplicates called distinct.
    pub false_negatives: u64,
}

impl Tally {
    /// Counts one arrival.
    #[inline]
    pub fn record(&mut self, duplicate: bool, called_duplicate: bool) {
        self.distinct += u64::from(!duplicate);
        self.duplicates += u64::from(duplicate);
        self.false_positives += u64::from(!duplicate & called_duplicate);
        self.false_negatives += u64::from(duplicate & !called_duplicate);
    }

    /// Takes another tally's counts into this one.
    pub fn add(&mut self, other: &Tally) {
        self.distinct += other.distinct;
        self.duplicates += other.duplicates;
        self.false_positives += other.false_positives;
        self.false_negatives += other.false_negatives;
    }

    /// Arrivals counted.
    pub fn arrivals(&self) -> u64 {
        self.distinct + self.duplicates
    }

    /// False positives among the distinct.
    pub fn fpr(&self) -> Option<f64> {
        ratio(self.false_positives, self.distinct)
    }

    /// False negatives among the duplicates.
    pub fn fnr(&self) -> Option<f64> {
        ratio(self.false_negatives, self.duplicates)
    }

    /// False positives among all.
    pub fn fp_share(&self) -> Option<f64> {
        ratio(self.false_positives, self.arrivals())
    }

    /// False negatives among all.
    pub fn fn_share(&self) -> Option<f64> {
        ratio(self.false_negatives, self.arrivals())
    }
}

/// How verdicts and truth met, weighted by importance.
///
/// The unit is the largest importance there is, so importances of one scale add up however each is
/// written as a fraction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Weights {
    /// Importance of all arrivals.
    pub total: f64,
    /// Importance of the arrivals called duplicates (the thesis's wTotal).
    pub called_duplicate: f64,
    /// Importance of the false positives.
    pub false_positives: f64,
    /// Importance of the false negatives.
    pub false_negatives: f64,
}

impl Weights {
    /// Adds one arrival.
    #[inline]
    pub fn record(&mut self, importance: Importance, duplicate: bool, called_duplicate: bool) {
        let weight = share_of(importance);
        let weight_if = |condition: bool| if condition { weight } else { 0.0 };
        self.total += weight;
        self.called_duplicate += weight_if(called_duplicate);
        self.false_positives += weight_if(!duplicate & called_duplicate);
        self.false_negatives += weight_if(duplicate & !called_duplicate);
    }

    /// Importance of the false positives, as a share of all importance.
    pub fn wfp(&self) -> Option<f64> {
        share(self.false_positives, self.total)
    }

    /// Importance of the false negatives, as a share of all importance.
    pub fn wfn(&self) -> Option<f64> {
        share(self.false_negatives, self.total)
    }

    /// (wTotal − wFP) / wTotal, eq. 7: how much of what was called a duplicate is one.
    pub fn precision(&self) -> Option<f64> {
        share(self.called_duplicate - self.false_positives, self.called_duplicate)
    }

    /// (wTotal − wFP) / (wTotal − wFP + wFN), eq. 8: how much of the duplicates was found. One minus
    /// it is the false negative rate weighted by importance.
    pub fn recall(&self) -> Option<f64> {
        let found = self.called_duplicate - self.false_positives;
        share(found, found + self.false_negatives)
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn share_of(importance: Importance) -> f64 {
    f64::from(importance.value()) / f64::from(importance.max())
}

/// Tallies of consecutive slices of a stream whose length is not known beforehand.
///
/// All slices are equally wide. When there are too many, neighbours merge and the width doubles, so
/// memory stays bounded, and a slice is never wider than one 1,024th of the stream.
#[derive(Debug, Clone)]
pub struct Slices {
    width: u64,
    full: Vec<Tally>,
    current: Tally,
    in_current: u64,
}

/// Slices merge when there are this many.
const MOST_SLICES: usize = 2048;

impl Default for Slices {
    fn default() -> Self {
        Slices { width: 1, full: Vec::new(), current: Tally::default(), in_current: 0 }
    }
}

impl Slices {
    /// Counts one arrival, or, where the truth is unknown, only its place in the stream.
    #[inline]
    pub fn record(&mut self, truth: Truth, called_duplicate: bool) {
        if truth != Truth::Unknown {
            self.current.record(truth == Truth::Duplicate, called_duplicate);
        }
        self.in_current += 1;
        if self.in_current == self.width {
            self.close();
        }
    }

    fn close(&mut self) {
        self.full.push(std::mem::take(&mut self.current));
        self.in_current = 0;
        if self.full.len() == MOST_SLICES {
            self.full = self.full.chunks(2).map(sum).collect();
            self.width *= 2;
        }
    }

    /// Arrivals so far.
    pub fn arrivals(&self) -> u64 {
        self.full.len() as u64 * self.width + self.in_current
    }

    /// The slices in order, the unfinished last one included.
    pub fn iter(&self) -> impl Iterator<Item = &Tally> {
        self.full.iter().chain((self.in_current > 0).then_some(&self.current))
    }

    /// The whole stream.
    pub fn total(&self) -> Tally {
        sum_of(self.iter())
    }

    /// The last tenth of the arrivals, rounded up to whole slices.
    pub fn last_tenth(&self) -> Tally {
        let before = self.arrivals() - self.arrivals().div_ceil(10);
        sum_of(self.iter().skip((before / self.width) as usize))
    }
}

fn sum(tallies: &[Tally]) -> Tally {
    sum_of(tallies.iter())
}

fn sum_of<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Tally {
    let mut total = Tally::default();
    tallies.for_each(|tally| total.add(tally));
    total
}

/// Tallies by importance.
///
/// Importances with up to 256 values are told apart exactly; finer ones are grouped into 64 classes
/// of equal width, each labelled with the mean importance of its arrivals.
#[derive(Debug, Clone, Default)]
pub struct ByImportance {
    /// The largest importance of the first arrival.
    max: Option<u32>,
    classes: Vec<Class>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Class {
    tally: Tally,
    shares: f64,
    /// The least share and the greatest.
    range: [f64; 2],
}

const EXACT_VALUES: u32 = 256;
const GROUPS: u32 = 64;

/// Where an importance falls when the first one was out of `max`.
fn class_of(importance: Importance, max: u32) -> usize {
    if importance.max() == max && max <= EXACT_VALUES {
        importance.value() as usize
    } else if max <= EXACT_VALUES {
        (share_of(importance) * f64::from(max)).round() as usize
    } else {
        importance.share_of(GROUPS).min(GROUPS - 1) as usize
    }
}

impl ByImportance {
    /// Counts one arrival.
    pub fn record(&mut self, importance: Importance, duplicate: bool, called_duplicate: bool) {
        let index = class_of(importance, *self.max.get_or_insert(importance.max()));
        if index >= self.classes.len() {
            self.classes.resize(index + 1, Class::default());
        }
        let (class, share) = (&mut self.classes[index], share_of(importance));
        let is_first = class.tally.arrivals() == 0;
        class.range = if is_first { [share; 2] } else { [class.range[0].min(share), class.range[1].max(share)] };
        class.tally.record(duplicate, called_duplicate);
        class.shares += share;
    }

    /// What importances are out of.
    pub fn max(&self) -> f64 {
        self.max.map_or(1.0, f64::from)
    }

    /// Mean importance, as a share of the largest, and tally of every class that has arrivals, in order.
    pub fn iter(&self) -> impl Iterator<Item = (f64, &Tally)> {
        self.ranges().map(|(mean, _, tally)| (mean, tally))
    }

    /// Mean importance with the least and the greatest, and tally of every class.
    pub fn ranges(&self) -> impl Iterator<Item = (f64, [f64; 2], &Tally)> {
        let mean = |class: &Class| share(class.shares, class.tally.arrivals() as f64);
        self.classes.iter().filter_map(move |class| Some((mean(class)?, class.range, &class.tally)))
    }
}

/// Everything counted about one filter's verdicts.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// Through the stream.
    pub slices: Slices,
    /// Weighted by importance.
    pub weights: Weights,
    /// Told apart by importance, where that was asked for.
    pub by_importance: Option<ByImportance>,
}

impl Judged {
    /// Counts one arrival.
    #[inline]
    pub fn record(&mut self, importance: Importance, truth: Truth, verdict: Verdict) {
        let called_duplicate = !verdict.is_distinct();
        self.slices.record(truth, called_duplicate);
        if truth == Truth::Unknown {
            return;
        }
        let duplicate = truth == Truth::Duplicate;
        self.weights.record(importance, duplicate, called_duplicate);
        if let Some(by_importance) = &mut self.by_importance {
            by_importance.record(importance, duplicate, called_duplicate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn importance(value: u32) -> Importance {
        Importance::new(value, 50).expect("in range")
    }

    #[test]
    fn rates_follow_their_definitions() {
        let mut judged = Judged::default();
        let arrivals = [
            (10, Truth::Distinct, Verdict::Distinct),
            (20, Truth::Distinct, Verdict::Duplicate),
            (30, Truth::Duplicate, Verdict::Distinct),
            (40, Truth::Duplicate, Verdict::Duplicate),
            (50, Truth::Duplicate, Verdict::Duplicate),
            (50, Truth::Unknown, Verdict::Duplicate),
        ];
        for (value, truth, verdict) in arrivals {
            judged.record(importance(value), truth, verdict);
        }
        let (tally, weights) = (judged.slices.total(), judged.weights);
        assert_eq!((tally.fpr(), tally.fnr()), (Some(0.5), Some(1.0 / 3.0)));
        assert_eq!((tally.fp_share(), tally.fn_share()), (Some(0.2), Some(0.2)));
        let weighted = [weights.wfp(), weights.wfn(), weights.precision(), weights.recall()];
        for (measured, expected) in weighted.into_iter().zip([20.0 / 150.0, 30.0 / 150.0, 90.0 / 110.0, 90.0 / 120.0]) {
            assert!(
                measured.is_some_and(|measured| (measured - expected).abs() < 1e-12),
                "{measured:?}, not {expected}"
            );
        }
    }

    #[test]
    fn rates_without_a_denominator_are_none() {
        assert_eq!(Tally::default().fpr(), None);
        assert_eq!(Slices::default().last_tenth().fnr(), None);
        assert_eq!(Weights::default().precision(), None);
    }

    #[test]
    fn the_last_tenth_is_the_last_tenth_however_long_the_stream() {
        for length in [1u64, 9, 10, 11, 1000, 2047, 2048, 2049, 100_000, 1_234_567] {
            let mut slices = Slices::default();
            (0..length).for_each(|_| slices.record(Truth::Distinct, false));
            let (tenth, late) = (length.div_ceil(10), slices.last_tenth().arrivals());
            assert!(late >= tenth && late - tenth <= length / 1024, "{late} of {length}");
            assert_eq!((slices.arrivals(), slices.total().arrivals()), (length, length));
        }
    }

    #[test]
    fn errors_at_the_end_are_late_errors() {
        let mut slices = Slices::default();
        (0..100_000).for_each(|i| slices.record(Truth::Distinct, i >= 95_000));
        let late = slices.last_tenth();
        assert_eq!(late.false_positives, 5_000);
        assert!(late.fpr().is_some_and(|rate| (0.49..=0.5).contains(&rate)));
    }

    #[test]
    fn fractions_of_one_scale_weigh_and_group_alike_however_written() {
        let (mut weights, mut by_importance) = (Weights::default(), ByImportance::default());
        for importance in [importance(25), Importance::new(1 << 19, 1 << 20).expect("a half")] {
            weights.record(importance, true, false);
            by_importance.record(importance, true, false);
        }
        assert_eq!((weights.total, weights.false_negatives), (1.0, 1.0));
        assert_eq!(
            by_importance.iter().map(|(share, tally)| (share, tally.arrivals())).collect::<Vec<_>>(),
            [(0.5, 2)]
        );
    }

    #[test]
    fn fine_importances_are_grouped_and_labelled_by_their_mean() {
        let mut by_importance = ByImportance::default();
        for value in 0..=1000 {
            by_importance.record(Importance::new(value, 1000).expect("in range"), false, false);
        }
        let rows: Vec<_> = by_importance.iter().collect();
        assert_eq!(rows.len(), 64);
        assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(rows.iter().map(|row| row.1.arrivals()).sum::<u64>(), 1001);
    }
}
