//! The experiments, one file each, and the registry that everything else iterates.
//!
//! To add one: write a file with a `pub(super) static` [`Experiment`], and add its line to [`ALL`]. What
//! several experiments of a paper share is in a file with the paper's name.

mod common;
mod cost;
mod frontier;
mod frontier_grid;
mod frontier_weighted;
mod lecture_compressed;
mod lecture_counting;
mod lecture_hashes;
mod lecture_less_hashing;
mod lecture_sizing;
mod popularity;
mod popularity_figure_1;
mod popularity_figure_2;
mod popularity_figure_4;
mod reference_history;
mod reservoir;
mod reservoir_along;
mod reservoir_bias;
mod reservoir_closed_forms;
mod reservoir_drift;
mod reservoir_floor;
mod reservoir_real;
mod reservoir_settings;
mod reservoir_sweep;
mod reservoir_synthetic;
mod reservoir_table_2;
mod reservoir_table_3;
mod reservoir_table_4;
mod reservoir_table_5;
mod thesis;
mod thesis_by_importance;
mod thesis_datasets;
mod thesis_endless;
mod thesis_equal_state;
mod thesis_figure_3;
mod thesis_figure_4;
mod thesis_figure_5;
mod thesis_figure_6;
mod thesis_figure_7;
mod thesis_file_sizes;
mod thesis_min_imp;
mod thesis_other_sets;
mod thesis_reinsertion;
mod thesis_tables;
mod thesis_varying_items;

use crate::suite::Experiment;

/// Every experiment, in the order in which results are shown.
pub static ALL: &[&Experiment] = &[
    &lecture_hashes::EXPERIMENT,
    &lecture_sizing::EXPERIMENT,
    &lecture_counting::EXPERIMENT,
    &lecture_less_hashing::EXPERIMENT,
    &lecture_compressed::EXPERIMENT,
    &thesis_datasets::EXPERIMENT,
    &thesis_tables::EXPERIMENT,
    &thesis_varying_items::EXPERIMENT,
    &thesis_figure_3::EXPERIMENT,
    &thesis_figure_4::EXPERIMENT,
    &thesis_figure_5::EXPERIMENT,
    &thesis_figure_6::EXPERIMENT,
    &thesis_figure_7::EXPERIMENT,
    &thesis_other_sets::EXPERIMENT,
    &thesis_reinsertion::EXPERIMENT,
    &thesis_min_imp::EXPERIMENT,
    &thesis_equal_state::EXPERIMENT,
    &thesis_file_sizes::EXPERIMENT,
    &thesis_endless::EXPERIMENT,
    &reservoir_table_2::EXPERIMENT,
    &reservoir_table_3::EXPERIMENT,
    &reservoir_table_4::EXPERIMENT,
    &reservoir_table_5::EXPERIMENT,
    &reservoir_real::EXPERIMENT,
    &reservoir_synthetic::EXPERIMENT,
    &reservoir_closed_forms::EXPERIMENT,
    &reservoir_settings::EXPERIMENT,
    &reservoir_floor::EXPERIMENT,
    &reservoir_drift::EXPERIMENT,
    &reservoir_bias::EXPERIMENT,
    &popularity_figure_1::EXPERIMENT,
    &popularity_figure_2::EXPERIMENT,
    &popularity_figure_4::EXPERIMENT,
    &reference_history::EXPERIMENT,
    &frontier::EXPERIMENT,
    &frontier_weighted::EXPERIMENT,
    &cost::EXPERIMENT,
];
