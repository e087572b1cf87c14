//! Records to keys: which bytes of a record stand for it, and how much it matters.
//!
//! [`Batch`] finds where records end and hashes their keys, many at a time; [`Extractor`] finds the
//! key within one record. A whole line is its own key, which costs nothing; everything else is
//! looked up by [`fields`] or [`json`]. [`FaultWatch`] decides what becomes of records without one.

mod batch;
mod collect;
mod fields;
mod json;
mod layout;
mod number;
mod options;
mod places;
mod reader;
mod scan;
pub(crate) mod time;
mod watch;

pub(crate) use batch::Batch;
pub(crate) use collect::all_hashes;
#[cfg(test)]
pub(crate) use fields::{Fields, Separation};
pub(crate) use layout::{Extractor, Layout};
pub(crate) use reader::{
    Before, Columns, Header, MARK_COLUMN, Part, RecordReader, for_each_batch, for_each_batch_hashed,
};
pub(crate) use watch::{FaultWatch, shown};

use std::sync::Arc;

/// Why a record has no key, time or importance, and where that was looked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    problem: Problem,
    /// The option as it was typed.
    option: Arc<str>,
}

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Problem {
    /// It has fewer fields.
    MissingField(usize),
    /// A quote is opened and never closed.
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

impl Fault {
    /// What was probably meant, by what the record has.
    fn meant(&self, record: &[u8]) -> Option<String> {
        match &self.problem {
            Problem::MissingPointer(pointer) => json::meant(pointer, record),
            _ => None,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.problem, self.option)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::MissingField(number) => write!(f, "there is no field {number}"),
            Problem::Quoting => write!(f, "a quote is not closed"),
            Problem::Json => write!(f, "it is not JSON"),
            Problem::MissingPointer(pointer) => write!(f, "it has no value at {pointer}"),
            Problem::Importance(problem) | Problem::Time(problem) => write!(f, "{problem}"),
        }
    }
}
