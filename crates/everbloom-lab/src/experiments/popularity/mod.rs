//! What the experiments of the popularity paper share.

pub(super) mod figure_1;
pub(super) mod figure_2;
pub(super) mod figure_4;

/// The paper, as PAPERS.md lists it.
pub(super) const SOURCE: &str = "[Zhong et al. 2008]";
