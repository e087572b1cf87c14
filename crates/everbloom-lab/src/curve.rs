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
        .filter_map(|(importance, tally)| Some((importance, tally.fn_share()?, tally.arrivals() as f64)));
    fit(points.collect::<Vec<_>>())
}

/// The importance from which on `filter` has fewer false negatives than `other`.
///
/// The thesis takes the first importance at which one curve is below the other (eq. 11), which noise
/// decides. Here a line is fitted to the **difference** of the two `fn_share` curves, weighted by
/// arrivals, and its zero is returned if it lies within the importances seen and the difference falls.
pub fn crossover(filter: &ByImportance, other: &ByImportance) -> Option<f64> {
    let difference: Vec<_> = filter
        .iter()
        .zip(other.iter())
        .filter_map(|((importance, mine), (_, theirs))| {
            Some((importance, mine.fn_share()? - theirs.fn_share()?, mine.arrivals() as f64))
        })
        .collect();
    let (first, last) = (difference.first()?.0, difference.last()?.0);
    let line = fit(difference)?;
    let zero = -line.intercept / line.slope;
    (line.slope < 0.0 && (first..=last).contains(&zero)).then_some(zero)
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
    fn curves_that_do_not_cross_have_no_crossover() {
        let (low, high) = (curve(|_| 100), curve(|importance| 900 - importance));
        assert_eq!(crossover(&high, &low), None);
        assert_eq!(crossover(&low, &high), None);
        assert_eq!(crossover(&low, &low), None);
    }
}
