//! The words that everybody shares: what a user wants, what a filter promises, how an arrival is judged, what can go
//! wrong, and quantities as people write them.

mod goal;
mod harmless;
mod importance;
mod plan;
mod quantity;
mod spec;
mod standing;
mod suggest;
mod verdict;

pub use everbloom_cells::{Error, IoError, Result, Verdict, size_text, size_typed};
pub(crate) use goal::LEAST_RATE_OF_A_PART;
pub use goal::MAX_MEMORY_BITS;
pub use goal::{Goal, LEAST_RATE, MAX_ITEMS};
pub use harmless::harmless;
pub use importance::{Importance, ImportanceMix, ImportanceScale, Importances};
pub use plan::refuse_murmur;
pub use plan::{Holds, Promise};
pub use quantity::{Count, Rate, Size, Span, Window, rate_text, span_text};
pub use spec::Spec;
pub use spec::choice_name;
pub use standing::Standing;
pub use suggest::{did_you_mean, suggestion};
pub use verdict::Status;
