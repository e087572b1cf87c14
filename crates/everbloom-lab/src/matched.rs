//! Filters at the same rate of false positives.
//!
//! Two filters with different FPRs cannot be compared by their FNRs: each can buy one with the
//! other. So every kind is tuned over a stated grid, all of the grid runs in the same pass, and the
//! FNR at the asked FPR is read off the lower envelope of what was measured.
//!
//! **The grid** is every variant of the kind (the choices that its plan leaves open, all
//! combinations) times the [`FACTORS`]: what the planner makes of the variant for the asked FPR times
//! a factor. The factors go beyond 1 because a filter often errs less than it promises.
//!
//! **The envelope** is made of the grid points that no other beats in both rates. Between its two
//! points on either side of the asked FPR the measure is interpolated, linearly in ln(FPR). (The
//! convex hull would be lower, but FNR over ln(FPR) is concave, and a line between distant points
//! promises what no filter of the kind does.)

use crate::evaluate::Report;
use everbloom::{Goal, Plan, Result, Spec};
use everbloom_all::KINDS;
use libm::log;
use std::collections::BTreeSet;

/// The asked FPR is planned for times each of these.
pub const FACTORS: [f64; 8] = [0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0];

/// Rates above this are not planned for.
const HIGHEST_RATE: f64 = 0.9;

/// The spec with every combination of the choices it leaves open, and as it is.
fn variants(spec: &Spec, with_importance: bool) -> Vec<Spec> {
    let mut variants = KINDS.of(spec).map_or(Vec::new(), |kind| kind.model.variants(spec, with_importance));
    variants.push(spec.clone());
    variants
}

/// The grid of a spec, without what cannot be planned and without repetitions. An error only if
/// nothing can be planned.
pub fn grid(spec: &Spec, goal: &Goal) -> Result<Vec<Plan>> {
    let asked = goal.plan_among(KINDS, &spec.to_string());
    let mut known = BTreeSet::new();
    let mut plans = Vec::new();
    for variant in variants(spec, goal.has_importance()) {
        let rates = FACTORS.iter().filter_map(|factor| Some(goal.target_fpr()? * factor));
        for rate in rates.filter(|rate| *rate < HIGHEST_RATE) {
            let goal = goal.clone().fpr(rate);
            if let Ok(plan) = goal.plan_among(KINDS, &variant.to_string())
                && known.insert(plan.spec.to_string())
            {
                plans.push(plan);
            }
        }
    }
    if plans.is_empty() { asked.map(|plan| vec![plan]) } else { Ok(plans) }
}

/// A measure at the asked rate of false positives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// The measure.
    pub value: f64,
    /// The grid point that comes nearest from below.
    pub nearest: usize,
    /// Whether the value lies between two measured points rather than on one.
    pub interpolated: bool,
}

/// Reads a measure off the envelope of what a grid measured. `None` if every point has more false
/// positives than asked.
pub fn at_fpr(reports: &[Report], fpr: f64, measure: impl Fn(&Report) -> Option<f64>) -> Option<Match> {
    let points = reports.iter().enumerate();
    let mut points: Vec<_> =
        points.filter_map(|(place, report)| Some((report.measured_fpr?, measure(report)?, place))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let below = *points.iter().filter(|point| point.0 <= fpr).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (low, at_low, nearest) = below;
    // The first point beyond the asked rate that is better at all is the next one of the envelope.
    Some(match points.iter().find(|point| point.0 > fpr && point.1 < at_low) {
        Some((high, at_high, _)) if low > 0.0 && low < fpr => {
            let share = log(fpr / low) / log(high / low);
            Match { value: at_low + share * (at_high - at_low), nearest, interpolated: true }
        }
        _ => Match { value: at_low, nearest, interpolated: false },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(fpr: f64, fnr: f64) -> Report {
        Report { measured_fpr: Some(fpr), measured_fnr: Some(fnr), ..Report::default() }
    }

    #[test]
    fn the_envelope_is_interpolated_in_the_logarithm() {
        let points = [report(0.1, 0.2), report(0.001, 0.8), report(0.005, 0.9), report(0.2, 0.15), report(0.05, 0.85)];
        let found = at_fpr(&points, 0.01, |report| report.measured_fnr).expect("a match");
        assert!((found.value - 0.5).abs() < 1e-12 && found.interpolated && found.nearest == 1, "{found:?}");
    }

    #[test]
    fn a_point_below_the_rate_that_nothing_beats_counts_as_it_is() {
        let points = [report(0.001, 0.8), report(0.1, 0.7), report(0.008, 0.3)];
        let found = at_fpr(&points, 0.01, |report| report.measured_fnr).expect("a match");
        assert_eq!(found, Match { value: 0.3, nearest: 2, interpolated: false });
        assert_eq!(at_fpr(&points, 0.0005, |report| report.measured_fnr), None);
    }

    #[test]
    fn a_grid_keeps_what_the_spec_says() {
        let goal = Goal::new().memory_bits(1 << 16).fpr(0.01);
        let spec = Spec::parse("stable:num_hashes=3").expect("a spec");
        let plans = grid(&spec, &goal).expect("a grid");
        assert!(plans.len() > 10, "{} plans", plans.len());
        assert!(plans.iter().all(|plan| plan.spec.get("num_hashes") == Some("3")));
        assert!(plans.iter().all(|plan| plan.memory_bits <= 1 << 16));
        let specs: BTreeSet<_> = plans.iter().map(|plan| plan.spec.to_string()).collect();
        assert_eq!(specs.len(), plans.len());
    }

    #[test]
    fn an_unknown_filter_has_no_grid() {
        assert!(grid(&Spec::new("stabel"), &Goal::new().memory_bits(1 << 16).fpr(0.01)).is_err());
    }
}
