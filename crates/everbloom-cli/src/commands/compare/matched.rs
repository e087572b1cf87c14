//! `--matched`: every filter at the same rate of false positives.

use super::{Contest, Omitted, Row};
use crate::failure::{Failure, Result};
use everbloom::{Goal, Spec};
use everbloom_lab::evaluate::Report;
use everbloom_lab::matched::{at_fpr, grid};
use serde::Serialize;

/// All filters of all grids exist at once; more than this is refused rather than swapped.
const MOST_BITS: u64 = 64 << 30;

/// The filter against which benefit is counted.
const BASELINE: &str = "stable";

/// A filter of the comparison.
pub(super) struct Tuned {
    spec: Spec,
    grid_size: usize,
    /// Whether it gets a row, or is there only for others to be compared with.
    shown: bool,
}

/// What tuning found.
#[derive(Debug, Serialize)]
pub(super) struct Matched {
    /// The rate of false positives at which filters are compared.
    matched_fpr: f64,
    /// The rate of false negatives there; missing if every filter of the grid has more false positives.
    pub(super) matched_fnr: Option<f64>,
    /// Whether it lies between two filters of the grid.
    interpolated: bool,
    /// How many filters were tried.
    pub(super) grid_size: usize,
    /// The share of the stream's whole cost that is saved against the stable filter at equal memory
    /// and FPR, if a false negative costs its importance.
    pub(super) benefit: Option<f64>,
}

impl Contest {
    /// The grids of all specs, and of the baseline. What cannot be had is refused if it was named, else
    /// left out.
    pub(super) fn tuned(specs: &[Spec], named: bool, goal: &Goal) -> Result<Self> {
        let mut contest = Contest::default();
        for spec in specs {
            if let Err(error) = contest.add(spec, goal, true) {
                if named {
                    return Err(error.into());
                }
                contest.omitted.push(Omitted { filter: spec.to_string(), reason: error.to_string() });
            }
        }
        let baseline = Spec::new(BASELINE);
        if !specs.contains(&baseline) {
            // Without a baseline there is no benefit to tell, and all else stands.
            let _ = contest.add(&baseline, goal, false);
        }
        let bits = contest.plans.iter().map(|plan| plan.memory_bits).fold(0, u64::saturating_add);
        if bits > MOST_BITS {
            return Err(Failure::new(format!(
                "{} filters would take {} GiB together; give less --memory or fewer --filter",
                contest.plans.len(),
                bits >> 33
            )));
        }
        contest.checked()
    }

    fn add(&mut self, spec: &Spec, goal: &Goal, shown: bool) -> Result<(), everbloom::Error> {
        let plans = grid(spec, goal)?;
        self.tuned.push(Tuned { spec: spec.clone(), grid_size: plans.len(), shown });
        self.plans.extend(plans);
        Ok(())
    }

    /// A row per filter: the grid point nearest to the asked rate, and what the envelope says there.
    pub(super) fn matched_rows(&self, reports: Vec<Report>, fpr: f64) -> Vec<Row> {
        let mut reports = reports.into_iter();
        let grids: Vec<Vec<Report>> =
            self.tuned.iter().map(|tuned| reports.by_ref().take(tuned.grid_size).collect()).collect();
        let wfn = |grid: &[Report]| at_fpr(grid, fpr, |report| report.wfn).map(|found| found.value);
        let baseline = self.tuned.iter().position(|tuned| tuned.spec == Spec::new(BASELINE));
        let baseline_wfn = baseline.and_then(|index| wfn(&grids[index]));
        let shown = self.tuned.iter().zip(&grids).filter(|(tuned, _)| tuned.shown);
        shown
            .filter_map(|(tuned, grid)| {
                let found = at_fpr(grid, fpr, |report| report.measured_fnr);
                let report = found.map_or_else(|| least_wrong(grid), |found| grid.get(found.nearest))?.clone();
                let matched = Matched {
                    matched_fpr: fpr,
                    matched_fnr: found.map(|found| found.value),
                    interpolated: found.is_some_and(|found| found.interpolated),
                    grid_size: tuned.grid_size,
                    benefit: baseline_wfn.zip(wfn(grid)).map(|(theirs, mine)| theirs - mine),
                };
                Some(self.row(&tuned.spec, report, Some(matched)))
            })
            .collect()
    }
}

/// Where all err more than asked: the one that errs least.
fn least_wrong(grid: &[Report]) -> Option<&Report> {
    let rate = |report: &Report| report.measured_fpr.unwrap_or(f64::INFINITY);
    grid.iter().min_by(|a, b| rate(a).total_cmp(&rate(b)))
}
