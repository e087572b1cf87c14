//! Filters at the same rate of false positives.
//!
//! Two filters with different FPRs cannot be compared by their FNRs: each can buy one with the
//! other. So every kind is tuned over a stated grid, all of the grid runs in the same pass, and the
//! FNR at the asked FPR is read off the lower envelope of what was measured.
//!
//! **The grid** is every variant of the kind ([`variants`]: the choices that its plan leaves open)
//! times the [`FACTORS`]: what the planner makes of this variant for the asked FPR times a factor.
//! The factors go beyond 1 because a filter often errs less than it promises.
//!
//! **The envelope**: the best of all grid points whose measured FPR is at most the asked one, and of
//! the interpolations, linear in ln(FPR), between neighbours of one variant on both sides of it.

use crate::evaluate::Report;
use everbloom::{Goal, Plan, Result, Spec};
use libm::log;
use std::collections::BTreeSet;

/// The asked FPR is planned for times each of these.
pub const FACTORS: [f64; 8] = [0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0];

/// The choices of a kind that are tried, as words of its spec: all combinations.
fn choices(kind: &str) -> &'static [(&'static str, &'static [&'static str])] {
    match kind {
        "stable" => &[
            ("update", &["always", "distinct"]),
            ("cell_max", &["1", "3"]),
            ("num_hashes", &["1", "2", "3", "4", "6"]),
        ],
        "reservoir" => {
            &[("num_filters", &["1", "2", "3", "4", "5", "6", "7", "8"]), ("insert_floor", &["0.01", "0.03", "0.1"])]
        }
        "ranked" => &[("lanes", &["1", "2", "3", "4", "5", "6", "7"]), ("insert", &["middle", "front", "tail"])],
        _ => &[],
    }
}

/// The spec with every combination of the choices it leaves open, and as it is.
pub fn variants(spec: &Spec) -> Vec<Spec> {
    let mut variants = vec![spec.clone()];
    for (word, values) in choices(spec.kind()) {
        if spec.get(word).is_none() {
            variants = variants
                .iter()
                .flat_map(|variant| values.iter().map(move |value| variant.clone().with(word, value)))
                .collect();
        }
    }
    variants.push(spec.clone());
    variants
}

/// A variant of a filter, planned for several rates.
pub struct Curve {
    /// The plans, for rising rates.
    pub plans: Vec<Plan>,
}

/// The grid of a spec: a curve per variant, without what cannot be planned and without repetitions.
pub fn grid(spec: &Spec, goal: &Goal) -> Result<Vec<Curve>> {
    let mut known = BTreeSet::new();
    let mut curves = Vec::new();
    for variant in variants(spec) {
        let plans: Vec<_> = FACTORS
            .iter()
            .filter_map(|factor| {
                let rate = goal.target_fpr? * factor;
                let goal = goal.target_fpr(rate);
                (rate < 0.9).then(|| goal.plan(&variant.to_string()).ok()).flatten()
            })
            .filter(|plan| known.insert(plan.spec.to_string()))
            .collect();
        if !plans.is_empty() {
            curves.push(Curve { plans });
        }
    }
    if curves.is_empty() {
        // Nothing could be planned: say why, for the spec as it was given.
        goal.plan(&spec.to_string())?;
    }
    Ok(curves)
}

/// A filter's errors at the asked rate of false positives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// FNR (or another measure) at the asked FPR.
    pub value: f64,
    /// The curve and the point of it that came nearest from below.
    pub nearest: (usize, usize),
    /// Whether it lies between two measured points rather than on one.
    pub interpolated: bool,
}

/// Reads a measure off the envelope of measured curves at an FPR. `None` if every point has more
/// false positives than asked.
pub fn at_fpr(curves: &[Vec<Report>], fpr: f64, measure: impl Fn(&Report) -> Option<f64>) -> Option<Match> {
    let mut best: Option<Match> = None;
    let mut offer = |value, nearest, interpolated| {
        if best.is_none_or(|best| value < best.value) {
            best = Some(Match { value, nearest, interpolated });
        }
    };
    for (index, curve) in curves.iter().enumerate() {
        let mut points: Vec<_> = curve
            .iter()
            .enumerate()
            .filter_map(|(place, report)| Some((report.measured_fpr?, measure(report)?, place)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (rate, value, place) in &points {
            if *rate <= fpr {
                offer(*value, (index, *place), false);
            }
        }
        for pair in points.windows(2) {
            let ((low, at_low, place), (high, at_high, _)) = (pair[0], pair[1]);
            if low > 0.0 && low < fpr && fpr < high {
                let share = log(fpr / low) / log(high / low);
                offer(at_low + share * (at_high - at_low), (index, place), true);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(fpr: f64, fnr: f64) -> Report {
        Report {
            filter: String::new(),
            memory_bits: 0,
            predicted_fpr: 0.0,
            measured_fpr: Some(fpr),
            measured_fnr: Some(fnr),
            late_fpr: None,
            late_fnr: None,
            wfp: None,
            wfn: None,
            weighted_precision: None,
            weighted_recall: None,
            ns_per_item: None,
            by_importance: None,
            fn_share_slope: None,
            crossover_importance: None,
            total: Default::default(),
            late: Default::default(),
            fill: Vec::new(),
        }
    }

    #[test]
    fn the_envelope_is_interpolated_in_the_logarithm() {
        let curves = [vec![report(0.001, 0.8), report(0.1, 0.2)], vec![report(0.02, 0.1)]];
        let found = at_fpr(&curves, 0.01, |report| report.measured_fnr).expect("a match");
        assert!((found.value - 0.5).abs() < 1e-12 && found.interpolated && found.nearest == (0, 0));
    }

    #[test]
    fn points_below_the_rate_count_as_they_are() {
        let curves = [vec![report(0.001, 0.8), report(0.1, 0.7)], vec![report(0.008, 0.3)]];
        let found = at_fpr(&curves, 0.01, |report| report.measured_fnr).expect("a match");
        assert_eq!(found, Match { value: 0.3, nearest: (1, 0), interpolated: false });
        assert_eq!(at_fpr(&curves, 0.0005, |report| report.measured_fnr), None);
    }

    #[test]
    fn a_grid_keeps_what_the_spec_says() {
        let goal = Goal::new().memory_bits(1 << 16).target_fpr(0.01);
        let spec = Spec::parse("stable:num_hashes=3").expect("a spec");
        let plans: Vec<_> = grid(&spec, &goal).expect("a grid").into_iter().flat_map(|curve| curve.plans).collect();
        assert!(plans.len() > 10, "{} plans", plans.len());
        assert!(plans.iter().all(|plan| plan.spec.get("num_hashes") == Some("3")));
        assert!(plans.iter().all(|plan| plan.memory_bits <= 1 << 16));
        let specs: BTreeSet<_> = plans.iter().map(|plan| plan.spec.to_string()).collect();
        assert_eq!(specs.len(), plans.len());
    }

    #[test]
    fn an_unknown_filter_has_no_grid() {
        assert!(grid(&Spec::new("stabel"), &Goal::new().memory_bits(1 << 16).target_fpr(0.01)).is_err());
    }
}
