//! The experiments, by the paper they come from, and the registry that everything else iterates.
//!
//! To add one: write a file with a `static` [`Experiment`] in the folder of its paper, and add its line to [`ALL`]. What
//! several experiments of a paper share is in the folder's `mod.rs`.

mod common;
mod lectures;
mod ours;
mod popularity;
mod reservoir;
mod thesis;

use crate::suite::Experiment;

/// Every experiment, in the order in which results are shown.
pub static ALL: &[&Experiment] = &[
    &lectures::hashes::EXPERIMENT,
    &lectures::sizing::EXPERIMENT,
    &lectures::counting::EXPERIMENT,
    &lectures::less_hashing::EXPERIMENT,
    &lectures::compressed::EXPERIMENT,
    &thesis::datasets::EXPERIMENT,
    &thesis::tables::EXPERIMENT,
    &thesis::varying_items::EXPERIMENT,
    &thesis::parameters::EXPERIMENT,
    &thesis::figure_3::EXPERIMENT,
    &thesis::figure_4::EXPERIMENT,
    &thesis::figure_5::EXPERIMENT,
    &thesis::figure_6::EXPERIMENT,
    &thesis::figure_7::EXPERIMENT,
    &thesis::other_sets::EXPERIMENT,
    &thesis::reinsertion::EXPERIMENT,
    &thesis::min_imp::EXPERIMENT,
    &thesis::equal_state::EXPERIMENT,
    &thesis::file_sizes::EXPERIMENT,
    &thesis::endless::EXPERIMENT,
    &reservoir::table_2::EXPERIMENT,
    &reservoir::table_3::EXPERIMENT,
    &reservoir::table_4::EXPERIMENT,
    &reservoir::table_5::EXPERIMENT,
    &reservoir::real::EXPERIMENT,
    &reservoir::synthetic::EXPERIMENT,
    &reservoir::closed_forms::EXPERIMENT,
    &reservoir::settings::EXPERIMENT,
    &reservoir::floor::EXPERIMENT,
    &reservoir::drift::EXPERIMENT,
    &reservoir::bias::EXPERIMENT,
    &reservoir::parallel::EXPERIMENT,
    &popularity::figure_1::EXPERIMENT,
    &popularity::figure_2::EXPERIMENT,
    &popularity::figure_4::EXPERIMENT,
    &ours::reference_history::EXPERIMENT,
    &ours::frontier::EXPERIMENT,
    &ours::frontier_weighted::EXPERIMENT,
    &ours::cost::EXPERIMENT,
];
