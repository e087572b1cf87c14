//! The laws that every kind of filter is held to, as functions: for everbloom's own kinds and for a stranger's.
//!
//! ```no_run
//! use everbloom::kind::{Kind, Kinds};
//! # use everbloom::filters::bloom::KIND;
//!
//! const OWN: &[&[&Kind]] = &[&[&KIND]];
//! everbloom_laws::hold!(Kinds::new(OWN));
//! ```
//!
//! makes a test of each law, in which the kinds are planned, built, filled, asked, saved, merged and refused what they cannot do.
//! The laws name no filter: what a kind can do, it says itself ([`Abilities`](everbloom::kind::Abilities)), and is held to that.

// A law's name is its sentence, and it fails by panicking.
#![allow(missing_docs)]

pub mod abilities;
pub mod common;
pub mod growth;
pub mod parameters;
pub mod planning;
pub mod rates;
pub mod refusals;
pub mod verdicts;

use everbloom::kind::Kinds;

/// A set of kinds under test.
pub trait Set {
    /// The kinds.
    const KINDS: Kinds;
    /// Whether each ability is some kind's, so that a law fails which finds none to test.
    const CAN_EVERYTHING: bool = false;
}

/// Makes a test of every law for a set of kinds, once in a module. Laws about abilities that no kind of the set has then test nothing;
/// with `true` behind the set, they fail.
#[macro_export]
macro_rules! hold {
    ($kinds:expr) => {
        $crate::hold!($kinds, false);
    };
    ($kinds:expr, $can_everything:expr) => {
        struct Tested;

        impl $crate::Set for Tested {
            const KINDS: ::everbloom::kind::Kinds = $kinds;
            const CAN_EVERYTHING: bool = $can_everything;
        }

        $crate::hold! { @each
            abilities:
                a_union_is_what_inserting_both_gives union_is_commutative union_is_idempotent_in_its_answers
                an_intersection_keeps_what_both_hold_or_is_refused unlike_filters_are_refused_and_the_left_one_stays_as_it_was
                what_was_not_removed_stays_and_what_was_removed_goes removing_all_leaves_nothing
                removing_what_is_not_there_changes_nothing no_key_inside_is_lost_however_full_the_filter
                kinds_can_do_what_they_say_in_shards_too abilities_that_a_kind_lacks_are_errors_that_name_kinds_which_have_them
                importance_counts_where_a_kind_says_so_and_nowhere_else shards_count_and_advance_as_one_filter_does;
            growth:
                growth_is_foretold_to_the_bit_and_room_that_was_made_suffices
                what_is_known_at_once_is_what_a_look_at_all_cells_says copies_that_may_be_refused_are_copies;
            parameters:
                every_parameter_is_described_once_and_in_words ranges_end_where_they_say defaults_are_what_holds_without_them;
            planning:
                the_predicted_rate_keeps_the_target_after_rounding a_promise_covers_the_expected_items
                plans_stay_within_the_memory memory_is_used_where_nothing_else_bounds_it plans_become_the_filters_they_describe
                specs_print_what_they_parse a_full_spec_needs_no_goal_and_plans_itself
                a_filter_built_from_a_printed_spec_gives_the_same_verdicts the_words_of_a_full_spec_are_the_kinds_own_in_order
                a_spec_larger_than_the_memory_is_refused_with_both_sizes
                the_asked_rate_is_promised_for_as_many_keys_as_it_is_kept_for
                parameters_that_break_an_asked_rate_are_refused_and_an_assumed_one_is_noted
                no_rate_is_promised_that_hashes_cannot_keep;
            rates:
                filters_that_fill_up_keep_their_rate_until_the_promised_number_of_keys
                uneven_shards_keep_their_rate_until_the_promised_number_of_keys tiny_filters_keep_their_rate
                filters_for_endless_streams_keep_their_rate_at_every_moment every_variant_that_promises_a_rate_keeps_it
                filters_for_endless_streams_keep_their_rate_for_awkward_keys
                the_estimated_rate_is_the_one_measured_on_the_present_contents the_estimated_number_of_keys_is_right_on_average;
            refusals:
                odd_specs_and_goals_give_errors_or_working_filters goals_without_sense_are_refused_by_every_kind
                unknown_kinds_and_parameters_say_what_was_probably_meant_or_what_there_is
                random_text_is_refused_or_printed_as_it_was_read more_memory_than_there_can_be_gives_an_error
                fewer_importances_than_keys_are_an_error_and_nothing_is_observed;
            verdicts:
                the_same_seed_gives_the_same_verdicts_and_bytes another_seed_gives_other_verdicts
                batches_give_the_verdicts_and_bytes_of_single_calls every_instruction_set_gives_the_same_verdicts_and_bytes
                batched_insertions_and_queries_equal_single_ones queries_change_nothing
                insertion_says_whether_the_key_seemed_new a_cleared_filter_is_as_if_just_built
                encoding_and_decoding_preserves_every_future_verdict streams_of_bytes_hold_what_slices_hold
                kinds_that_never_forget_never_do kinds_and_promises_agree_on_who_forgets
                what_a_filter_says_of_itself_is_a_number_however_full_it_is ids_and_names_are_unique
                shards_that_were_apart_are_the_filter_again;
        }
    };
    (@each $($room:ident: $($law:ident)*;)*) => {
        $(mod $room {
            $(#[test]
            fn $law() {
                $crate::$room::$law::<super::Tested>();
            })*
        })*
    };
}
