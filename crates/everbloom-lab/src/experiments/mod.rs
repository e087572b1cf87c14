//! The experiments, one file each, and the registry that everything else iterates.
//!
//! To add one: write a file with a `pub static` [`Experiment`], and add its line to [`ALL`].

mod lecture_hashes;

use crate::suite::Experiment;

/// Every experiment, in the order in which results are shown.
pub static ALL: &[&Experiment] = &[&lecture_hashes::EXPERIMENT];
