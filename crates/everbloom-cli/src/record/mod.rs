//! Records to keys: which bytes of a record stand for it, and how much it matters.
//!
//! [`Batch`] finds where records end and hashes their keys, many at a time; [`Extractor`] finds the
//! key within one record. A whole line is its own key, which costs nothing; everything else is
//! looked up by [`fields`] or [`json`].

mod batch;
mod collect;
mod fields;
mod json;
mod layout;
mod reader;
pub(crate) mod time;

pub(crate) use batch::Batch;
pub(crate) use collect::{all_hashes, check_faults};
pub(crate) use layout::{Extractor, Layout};
pub(crate) use reader::{Header, Part, RecordReader, for_each_batch};

/// Why a record has no key or no importance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// It has fewer fields.
    MissingField(usize),
    /// A quote is opened and never closed, or followed by something else.
    Quoting,
    /// It is not JSON.
    Json,
    /// It has no such value.
    MissingPointer(String),
    /// The importance is not a number, or outside its range.
    Importance(String),
    /// The time cannot be read, or cannot be.
    Time(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::MissingField(number) => write!(f, "there is no field {number}"),
            Fault::Quoting => write!(f, "a quote is not closed, or not followed by the delimiter"),
            Fault::Json => write!(f, "it is not JSON"),
            Fault::MissingPointer(pointer) => write!(f, "it has no value at {pointer}"),
            Fault::Importance(problem) | Fault::Time(problem) => write!(f, "{problem}"),
        }
    }
}
