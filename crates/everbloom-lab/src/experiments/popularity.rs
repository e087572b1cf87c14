//! What the experiments of the popularity paper share.

/// The paper, as PAPERS.md lists it.
pub(super) const SOURCE: &str = "[Zhong et al. 2008]";
