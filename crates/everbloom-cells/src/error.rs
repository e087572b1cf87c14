//! What can go wrong, as values that say what was given, what is needed and what would work.

use crate::{size_text, size_typed};
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a filter could not be planned, built, merged or read.
///
/// Every message ends with a remedy: what the caller can do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside what the filter can work with.
    #[error("{name} is {given}, but must be {needed}; {remedy}")]
    Parameter {
        /// The parameter, in the words of the glossary.
        name: &'static str,
        /// What the caller gave.
        given: String,
        /// What would be accepted.
        needed: String,
        /// What to do.
        remedy: String,
    },
    /// A goal that no parameters of this filter can reach.
    #[error("{wanted} cannot be kept: {reason}; {remedy}")]
    Infeasible {
        /// The part of the goal that fails.
        wanted: String,
        /// Why it fails.
        reason: String,
        /// The nearest goal that can be kept.
        remedy: String,
    },
    /// The allocator refused.
    #[error("{} could not be allocated; ask for less memory", size_text(bytes.saturating_mul(8)))]
    OutOfMemory {
        /// How much was asked for.
        bytes: u64,
    },
    /// A filter spec that does not parse, or names something that does not exist.
    #[error("filter spec '{spec}': {problem}; {remedy}")]
    Spec {
        /// The spec as given.
        spec: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        remedy: String,
    },
    /// Two filters that do not belong together.
    #[error("the filters differ in {what} ({left} and {right}); {remedy}")]
    Mismatch {
        /// The property that differs.
        what: &'static str,
        /// Its value on the left.
        left: String,
        /// Its value on the right.
        right: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The filter has no such operation.
    #[error("{kind} filters cannot {operation}; {remedy}")]
    Unsupported {
        /// The filter kind.
        kind: String,
        /// What was asked of it.
        operation: &'static str,
        /// Which filter can.
        remedy: String,
    },
    /// Bytes that are not a whole, undamaged filter.
    #[error("{problem}; {remedy}")]
    Corrupt {
        /// What is wrong with the bytes.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A filter written by a later version.
    #[error("the filter has format version {found}, this build reads up to {supported}; upgrade everbloom")]
    Version {
        /// The version in the bytes.
        found: u16,
        /// The newest version this build reads.
        supported: u16,
    },
    /// The filter was built with a secret key that the caller did not give, or another one.
    #[error("the filter was built with {needed}; {remedy}")]
    SecretKey {
        /// What the bytes say about the key.
        needed: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// The filter was built with a scheme that the caller did not give, or another one.
    #[error("the filter was built with scheme {needed}, {given}; {remedy}")]
    Scheme {
        /// The id of the filter's own scheme.
        needed: String,
        /// What the caller gave.
        given: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The reader or writer that the caller passed in failed.
    #[error("{source}")]
    Io {
        /// What the reader or writer said.
        source: IoError,
    },
}

/// An error of a reader or writer, which many may hold. Two are equal if they are of one kind and say the same.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct IoError(Arc<io::Error>);

impl Deref for IoError {
    type Target = io::Error;

    fn deref(&self) -> &io::Error {
        &self.0
    }
}

impl PartialEq for IoError {
    fn eq(&self, other: &IoError) -> bool {
        self.kind() == other.kind() && self.to_string() == other.to_string()
    }
}

impl Eq for IoError {}

impl Error {
    /// A parameter outside its range.
    pub fn parameter(
        name: &'static str,
        given: impl ToString,
        needed: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Parameter { name, given: given.to_string(), needed: needed.into(), remedy: remedy.into() }
    }

    /// Too little or too much memory, in units that people type.
    pub fn memory(bits: u64, needed: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::parameter("memory", size_typed(bits), needed, remedy)
    }

    /// Something that this kind of filter cannot do.
    pub fn unsupported(kind: impl Into<String>, operation: &'static str, remedy: String) -> Self {
        Error::Unsupported { kind: kind.into(), operation, remedy }
    }

    /// What went wrong with a file or a stream, in words.
    pub fn io(message: impl Into<String>) -> Self {
        Error::from(io::Error::other(message.into()))
    }

    /// Damaged bytes, with the one remedy there is.
    pub fn corrupt(problem: impl Into<String>) -> Self {
        Error::Corrupt { problem: problem.into(), remedy: "restore it from a copy or build it again" }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        // What a reader of ours had to say went through the standard library's traits.
        if let Some(own) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            return own.clone();
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::corrupt("the filter ends before its header says it should"),
            _ => Error::Io { source: IoError(Arc::new(error)) },
        }
    }
}
