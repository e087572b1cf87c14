//! Lines through rates by importance: slopes and crossovers.

use crate::metrics::ByImportance;

/// A straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Change per unit.
    pub slope: f64,
    /// Value at 0.
    pub intercept: f64,
}

/// The line nearest to weighted points (x, y, weight) by least squares; `None` if all x are equal.
pub fn fit(points: impl IntoIterator<Item = (f64, f64, f64)> + Clone) -> Option<Line> {
    let (mut weights, mut mean_x, mut mean_y) = (0.0, 0.0, 0.0);
    for (x, y, weight) in points.clone() {
        weights += weight;
        mean_x += weight * x;
        mean_y += weight * y;
    }
    (mean_x, mean_y) = (mean_x / weights, mean_y / weights);
    let (mut variance, mut covariance) = (0.0, 0.0);
    for (x, y, weight) in points {
        variance += weight * (x - mean_x).powi(2);
        covariance += weight * (x - mean_x) * (y - mean_y);
    }
    let slope = covariance / variance;
    slope.is_finite().then_some(Line { slope, intercept: mean_y - slope * mean_x })
}

/// The line through `fn_share` on importance, each importance weighted by its arrivals: flat for a
/// filter that is blind to importance, falling for one that is not.
pub fn fn_share_line(by_importance: &ByImportance) -> Option<Line> {
    let points = by_importance
        .iter()
        .filter_map(|(share, tally)| Some((share * by_importance.max(), tally.fn_share()?, tally.arrivals() as f64)));
    fit(points.collect::<Vec<_>>())
}

/// The importance from which on `filter` has fewer false negatives than `other`.
///
/// The thesis takes the first importance at which one curve is below the other (eq. 11), which noise
/// decides. Here the difference of the two `fn_share` curves, weighted by arrivals, is split where it
/// best falls apart into a positive and a negative part; a line through its points around the split,
/// a tenth of all importances to either side, gives the crossing. (One line through the whole
/// difference is biased: the curves are not straight, and IBF3's crossing moves from 17 to 23.)
pub fn crossover(filter: &ByImportance, other: &ByImportance) -> Option<f64> {
    let points = |curve: &ByImportance| -> Vec<_> {
        let point = |(share, tally): (f64, &crate::metrics::Tally)| {
            (share * filter.max(), tally.fn_share().unwrap_or(f64::NAN), tally.arrivals() as f64)
        };
        curve.iter().map(point).collect()
    };
    crossing(&points(filter), &points(other))
}

/// [`crossover`] of two curves given as (importance, `fn_share`, arrivals), point by point.
pub fn crossing(filter: &[(f64, f64, f64)], other: &[(f64, f64, f64)]) -> Option<f64> {
    let both = filter.iter().zip(other).map(|((at, mine, weight), (_, theirs, _))| (*at, mine - theirs, *weight));
    let difference: Vec<_> = both.filter(|(_, difference, _)| difference.is_finite()).collect();
    let split = best_split(&difference)?;
    let reach = (difference.len() / 10).max(2);
    let around = difference.get(split.saturating_sub(reach)..(split + reach).min(difference.len()))?;
    let line = fit(around.iter().copied()).filter(|line| line.slope < 0.0)?;
    let zero = -line.intercept / line.slope;
    Some(zero.clamp(around.first()?.0, around.last()?.0))
}

/// How many points lie before the place that best parts positive from negative ones; `None` if that
/// is an end.
fn best_split(points: &[(f64, f64, f64)]) -> Option<usize> {
    let (mut sum, mut best, mut split) = (0.0, 0.0, 0);
    for (index, (_, difference, weight)) in points.iter().enumerate() {
        sum += difference * weight;
        if sum > best {
            (best, split) = (sum, index + 1);
        }
    }
    (split > 0 && split < points.len()).then_some(split)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::Importance;

    /// Errors among the duplicates of importance i: `errors(i)` of 1000.
    fn curve(errors: impl Fn(u32) -> u32) -> ByImportance {
        let mut by_importance = ByImportance::default();
        for value in 1..=50 {
            for arrival in 0..1000 {
                let importance = Importance::new(value, 50).expect("in range");
                by_importance.record(importance, true, arrival >= errors(value));
            }
        }
        by_importance
    }

    #[test]
    fn a_line_is_found_again() {
        let line = fit([(0.0, 5.0, 1.0), (1.0, 7.0, 9.0), (2.0, 9.0, 4.0)]).expect("a line");
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 5.0).abs() < 1e-12);
        assert_eq!(fit([(1.0, 5.0, 1.0), (1.0, 6.0, 1.0)]), None);
    }

    #[test]
    fn a_falling_curve_crosses_a_flat_one_where_they_meet() {
        let (flat, falling) = (curve(|_| 300), curve(|importance| 500 - 8 * importance));
        let slope = fn_share_line(&falling).expect("a line").slope;
        assert!((slope + 0.008).abs() < 1e-12, "{slope}");
        assert!(crossover(&falling, &flat).is_some_and(|at| (at - 25.0).abs() < 1e-9));
    }

    #[test]
    fn a_bent_curve_crosses_where_it_is_low_enough_and_not_where_a_line_through_it_is() {
        let bent = curve(|importance| 100 + 400 * 10 / (9 + importance));
        let flat = curve(|_| 300);
        // 100 + 4000/(9 + x) = 300 at x = 11.
        assert!(crossover(&bent, &flat).is_some_and(|at| (at - 11.0).abs() < 1.0), "{:?}", crossover(&bent, &flat));
    }

    #[test]
    fn curves_that_do_not_cross_have_no_crossover() {
        let (low, high) = (curve(|_| 100), curve(|importance| 900 - importance));
        assert_eq!(crossover(&high, &low), None);
        assert_eq!(crossover(&low, &high), None);
        assert_eq!(crossover(&low, &low), None);
    }
}
