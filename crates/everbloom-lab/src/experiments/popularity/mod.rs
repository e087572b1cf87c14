//! What the experiments of the popularity paper share.

pub(super) mod figure_1;
pub(super) mod figure_2;
pub(super) mod figure_4;

use crate::experiments::common::Verdict;

/// The paper, as PAPERS.md lists it.
pub(super) const SOURCE: &str = "[Zhong et al. 2008]";

/// The least and the greatest, with their names.
fn ends(mut found: Vec<(&'static str, f64)>) -> [(&'static str, f64); 2] {
    found.sort_by(|one, other| one.1.total_cmp(&other.1));
    [found[0], found[found.len() - 1]]
}

/// Adds both ends of a range to a verdict.
fn with_range(verdict: Verdict, [low, high]: [(&str, f64); 2]) -> Verdict {
    verdict.number(&format!("least ({})", low.0), low.1).number(&format!("greatest ({})", high.0), high.1)
}
