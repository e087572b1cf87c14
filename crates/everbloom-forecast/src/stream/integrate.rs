//! Errors along a stream, where what is missed depends on the lag and on the importance alone.
//!
//! New keys come at the rate D′(t), so the rate of false positives is ∫ D′(t)·fpr(t) dt / D(N). Of the N − ℓ
//! places for a repeat of lag ℓ a share of −D″(ℓ) is one, so that of false negatives is
//! ∫ (N − ℓ)·−D″(ℓ)·fnr(ℓ) dℓ over the same without fnr.

use super::{Footprint, Stream};
use crate::Forecast;
use crate::stream::{ErrorsAt, Method, PARTS_OF_STREAM, RateAt, RatesAt};
use everbloom::{ImportanceMix, Promise};
use libm::{exp, log};

/// Arrivals that matter alike.
#[derive(Debug, Clone, Copy)]
pub struct Level {
    /// The share of the greatest importance.
    pub importance: f64,
    /// The share of the arrivals.
    pub share: f64,
}

/// All arrivals alike.
pub const ALL_ALIKE: &[Level] = &[Level { importance: 1.0, share: 1.0 }];

/// What a filter does as a stream goes on.
pub struct Integral<'f> {
    /// (rate of false positives, share of zero cells) after so many arrivals.
    pub state: &'f dyn Fn(f64) -> (f64, f64),
    /// The rate of false negatives at a lag, of the arrivals of a level.
    pub fnr: &'f dyn Fn(f64, usize) -> f64,
    /// Arrivals that matter alike.
    pub levels: &'f [Level],
}

/// Parts of the importances of a stream.
const PARTS: u32 = 16;

/// Points of time and lag at which a filter is looked at.
const POINTS: usize = 160;

/// How keys come along a stream, at the points where integrals look: for many filters on one stream.
#[derive(Debug)]
pub struct Course {
    footprint: Footprint,
    /// Times, which are lags, too: (time, distinct keys so far, share of new ones), in order.
    points: Vec<(f64, f64, f64)>,
    /// Times, distinct keys and shares at the middles and the ends of the parts of the stream.
    parts: Vec<(f64, f64, f64)>,
}

impl Course {
    pub(super) fn new(footprint: &Footprint, arrivals: f64) -> Self {
        let at = |time: f64| (time, footprint.distinct(time), footprint.new_share(time));
        let halves = 2 * PARTS_OF_STREAM;
        Course {
            points: grid(arrivals, POINTS).into_iter().map(at).collect(),
            parts: (1..=halves).map(|half| at(arrivals * half as f64 / halves as f64)).collect(),
            footprint: footprint.clone(),
        }
    }

    /// The distinct keys after so many arrivals, which are known at the points where integrals look.
    pub fn distinct(&self, time: f64) -> f64 {
        let known = [&self.points, &self.parts].into_iter().find_map(|points| {
            points.binary_search_by(|point| point.0.total_cmp(&time)).ok().map(|place| points[place].1)
        });
        known.unwrap_or_else(|| self.footprint.distinct(time))
    }
}

/// From 0 to `last`: every other point at equal distances, the others at equal ratios.
pub fn grid(last: f64, points: usize) -> Vec<f64> {
    let half = (points / 2).max(1) as f64;
    let mut grid: Vec<f64> = (0..=points / 2)
        .flat_map(|index| [last * index as f64 / half, exp(log(last.max(1.0)) * index as f64 / half)])
        .filter(|point| *point <= last)
        .collect();
    grid.sort_by(f64::total_cmp);
    grid.dedup_by(|one, other| *one - *other < last * 1e-9);
    grid
}

impl Integral<'_> {
    /// The forecast for a stream.
    pub fn forecast(&self, stream: &Stream, promise: Promise, method: Method) -> Forecast {
        let (course, arrivals) = (stream.course(), stream.arrivals() as f64);
        let states: Vec<_> = course.points.iter().map(|point| (self.state)(point.0)).collect();
        let (predicted_fpr, late_fpr) = self.false_positives(&course.points, &states);
        let missed = self.false_negatives(&course.points, arrivals);
        let distinct = course.distinct(arrivals);
        let over_time = self.over_time(&course.parts, &missed.up_to);
        let zeros = states.last().map_or(1.0, |state| state.1);
        let near = |state: &(f64, f64)| ((1.0 - state.1) - (1.0 - zeros)).abs() <= 0.01 * (1.0 - zeros);
        let settled = states.iter().rposition(|state| !near(state)).map_or(0, |last| last + 1);
        let mean: f64 = self.levels.iter().map(|level| level.importance * level.share).sum();
        let weighted: f64 =
            self.levels.iter().zip(&missed.by_level).map(|(level, fnr)| level.importance * level.share * fnr).sum();
        Forecast {
            promise: promise.missing(missed.all),
            method,
            predicted_fpr,
            standard_error: 0.0,
            predicted_fnr: missed.all,
            fnr_standard_error: 0.0,
            late_fpr,
            late_fnr: missed.late,
            weighted_fpr: predicted_fpr * distinct / arrivals,
            weighted_fnr: if mean > 0.0 { weighted / mean * (1.0 - distinct / arrivals) } else { 0.0 },
            by_lag: missed.by_lag,
            by_importance: self
                .levels
                .iter()
                .zip(&missed.by_level)
                .map(|(level, fnr)| RateAt { at: level.importance, predicted_fnr: *fnr, share: level.share })
                .collect(),
            mean_fpr: predicted_fpr,
            errors_by_importance: self.by_importance(&missed.by_level, distinct / arrivals, stream.importance()),
            over_time,
            zero_share: zeros,
            converged_after: course.points.get(settled).map(|point| point.0).filter(|time| *time < arrivals * 0.99),
        }
    }

    /// Misses by importance. Where a filter does not look at importances, arrivals may have them all the same.
    fn by_importance(&self, fnr: &[f64], distinct: f64, mix: Option<&ImportanceMix>) -> Vec<ErrorsAt> {
        let errors = |level: Level, fnr: f64| ErrorsAt {
            importance: level.importance,
            distinct: level.share * distinct,
            duplicates: level.share * (1.0 - distinct),
            missed: level.share * (1.0 - distinct) * fnr,
        };
        match (self.levels, mix, fnr) {
            ([_], Some(mix), [fnr]) => {
                mix.parts(PARTS).map(|(importance, share)| errors(Level { importance, share }, *fnr)).collect()
            }
            _ => self.levels.iter().zip(fnr).map(|(level, fnr)| errors(*level, *fnr)).collect(),
        }
    }

    /// The rates in equal parts of the stream. An arrival after so many has a lag of at most as many.
    fn over_time(&self, halves: &[(f64, f64, f64)], missed_up_to: &[(f64, f64)]) -> Vec<RatesAt> {
        let (mut before, mut rate_before) = ((0.0, 0.0, 0.0), (self.state)(0.0).0);
        let part = |part: &[(f64, f64, f64)]| {
            let (middle, end) = (part[0], part[1]);
            let rates = [middle, end].map(|point| (self.state)(point.0).0);
            let row = RatesAt {
                arrivals: middle.0,
                distinct: ratio(end.1 - before.1, end.0 - before.0),
                predicted_fpr: (rate_before + 4.0 * rates[0] + rates[1]) / 6.0,
                predicted_fnr: ratio(between(missed_up_to, middle.0), 1.0 - middle.2),
            };
            (before, rate_before) = (end, rates[1]);
            row
        };
        halves.chunks_exact(2).map(part).collect()
    }

    fn false_positives(&self, points: &[(f64, f64, f64)], states: &[(f64, f64)]) -> (f64, f64) {
        let late_from = 0.9 * points.last().map_or(0.0, |point| point.0);
        let (mut all, mut new, mut late, mut late_new) = (0.0, 0.0, 0.0, 0.0);
        for (ends, pair) in points.windows(2).zip(states.windows(2)) {
            let (start, came) = (ends[0].0, ends[1].1 - ends[0].1);
            let wrong = came * 0.5 * (pair[0].0 + pair[1].0);
            (all, new) = (all + wrong, new + came);
            if start >= late_from {
                (late, late_new) = (late + wrong, late_new + came);
            }
        }
        (ratio(all, new), ratio(late, late_new))
    }

    fn false_negatives(&self, lags: &[(f64, f64, f64)], arrivals: f64) -> Missed {
        let rates: Vec<Vec<f64>> =
            lags.iter().map(|lag| (0..self.levels.len()).map(|level| (self.fnr)(lag.0, level)).collect()).collect();
        let mut missed = Missed { by_level: vec![0.0; self.levels.len()], ..Missed::default() };
        let (mut repeats, mut late_repeats, mut late, mut up_to) = (0.0, 0.0, 0.0, 0.0);
        let mut rows: Vec<(f64, f64, f64)> = Vec::new();
        for (ends, pair) in lags.windows(2).zip(rates.windows(2)) {
            let ((start, _, before), (end, _, after)) = (ends[0], ends[1]);
            let share = (before - after).max(0.0);
            let middle = 0.5 * (start + end);
            let (places, late_places) = (arrivals - middle, arrivals - middle.max(0.9 * arrivals));
            let rate = |level: usize| 0.5 * (pair[0][level] + pair[1][level]);
            let mean: f64 = self.levels.iter().enumerate().map(|(at, level)| level.share * rate(at)).sum();
            repeats += share * places;
            up_to += share * mean;
            missed.up_to.push((end, up_to));
            late_repeats += share * late_places;
            missed.all += share * places * mean;
            late += share * late_places * mean;
            missed.by_level.iter_mut().enumerate().for_each(|(at, sum)| *sum += share * places * rate(at));
            rows.push((end, share * places * mean, share * places));
        }
        missed.by_lag = by_octave(&rows, repeats);
        missed.all = ratio(missed.all, repeats);
        missed.late = ratio(late, late_repeats);
        missed.by_level.iter_mut().for_each(|sum| *sum = ratio(*sum, repeats));
        missed
    }
}

#[derive(Default)]
struct Missed {
    all: f64,
    late: f64,
    by_level: Vec<f64>,
    by_lag: Vec<RateAt>,
    /// By lag: the share of arrivals that are missed repeats of at most that lag.
    up_to: Vec<(f64, f64)>,
}

/// The value at a place on a line through points from (0, 0) on.
fn between(points: &[(f64, f64)], at: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= at);
    let one = if after == 0 { (0.0, 0.0) } else { points[after - 1] };
    let Some(other) = points.get(after) else { return one.1 };
    one.1 + (other.1 - one.1) * ratio(at - one.0, other.0 - one.0)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// The rates of false negatives in equal parts of a stream, from (time, repeats, missed) of the steps up to those times.
pub fn miss_over_time(rows: &mut [RatesAt], arrivals: f64, steps: impl Iterator<Item = (f64, f64, f64)>) {
    let mut sums = vec![(0.0, 0.0); rows.len()];
    for (time, repeats, missed) in steps {
        let part = (time / arrivals * rows.len() as f64).ceil() as usize;
        if let Some(sum) = sums.get_mut(part.saturating_sub(1)) {
            *sum = (sum.0 + repeats, sum.1 + missed);
        }
    }
    // A part without a step of its own is as the one before.
    let mut last = 0.0;
    for (row, (repeats, missed)) in rows.iter_mut().zip(sums) {
        last = if repeats > 0.0 { ratio(missed, repeats) } else { last };
        row.predicted_fnr = last;
    }
}

/// Rows of (lag, missed, repeats) gathered by doublings of the lag.
pub fn by_octave(rows: &[(f64, f64, f64)], repeats: f64) -> Vec<RateAt> {
    let mut octaves: Vec<(f64, f64, f64)> = Vec::new();
    for (lag, missed, count) in rows {
        let octave = libm::floor(libm::log2(lag.max(1.0)));
        match octaves.last_mut() {
            Some(last) if last.0 == octave => (last.1, last.2) = (last.1 + missed, last.2 + count),
            _ => octaves.push((octave, *missed, *count)),
        }
    }
    octaves
        .into_iter()
        .filter(|(_, _, count)| *count > 0.0)
        .map(|(octave, missed, count)| RateAt {
            at: libm::exp2(octave + 0.5),
            predicted_fnr: ratio(missed, count),
            share: ratio(count, repeats),
        })
        .collect()
}
