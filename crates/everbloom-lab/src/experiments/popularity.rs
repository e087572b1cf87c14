//! What the experiments of the popularity paper share.

use crate::suite::{Label, Look, Series, Summary, Table};

/// The paper, as PAPERS.md lists it.
pub(super) const SOURCE: &str = "[Zhong et al. 2008]";

/// Whether a measurement has all of these labels.
pub(super) fn has(summary: &Summary, labels: &[(&str, Label)]) -> bool {
    labels.iter().all(|(name, label)| summary.label(name) == Some(label))
}

/// The line of a scheme in a panel.
pub(super) fn line(
    table: (&Table, &str),
    axes: (&str, &str, f64),
    name: &str,
    look: Look,
    labels: &[(&str, Label)],
) -> Series {
    Series::from_table(name, look, table, axes, |summary| has(summary, labels))
}
