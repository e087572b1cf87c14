//! For people who write kinds of filters of their own, and for programs that serve any kind.
//!
//! To write one: a type with a field `base`, a [`Base`]; `impl Filter` for it; a static [`Kind`]; `typed_filter!`, which gives the type its
//! methods; and `everbloom_laws::hold!`, which tests it. `examples/stranger` in the repository is all of that in 93 lines.
//!
//! A kind is a static [`Kind`]: its name and id, the parameters that its specs have, what it can do, and the functions that
//! plan, build and restore it. Its filters implement [`Filter`](crate::Filter) over a [`Base`], which carries what all filters
//! answer alike. [`Kinds`] is a set of them: what a spec may name, what a [`Decoder`](crate::Decoder) reads. The laws that
//! every kind is held to are in the crate `everbloom-laws`.
//!
//! Before 1.0 this module may change in a minor version.

pub use crate::filter::sharded::{
    MAX_SHARDS, SHARDS_PARAMETER, Sharded, build_shard, in_shards, is_sharded, is_turned_by_caller, join, shard_plan,
    shard_spec, shards_of, split, window_in_shards,
};
pub use crate::filter::{
    Abilities, Annex, Base, Body, Choices, Combine, Effort, FillAt, Kind, Kinds, MOST_CHANGED, Mapped, Merge, Model,
    Multiplicity, OpenMapped, Parameter, ReadAnnex, Removal, Restore, SHARDS, Takes, Timeline, Times, Unset, Watch,
    Watched, WindowParameters, WindowStatus, Windowed, alone, insert_by_batches, names, observe_one, one_of,
    same_shape, shows_base, standing, standing_of, watch, watch_of,
};
pub use crate::format::{BodyReader, StateReader, StateWriter, stored_hashing};
pub use crate::front::{build_typed, typed_filter, typed_from_bytes};
pub use crate::promise::{
    LEAST_RATE, MAX_ITEMS, MAX_MEMORY_BITS, Standing, choice_name, did_you_mean, harmless, rate_text, refuse_murmur,
    size_text, size_typed, span_text, suggestion,
};
pub use everbloom_cells::key::{Keys, Offset, Packed};
