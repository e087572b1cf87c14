//! The library's errors as Python exceptions, each with its remedy and its fields.

use everbloom::Error;
use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// What the library answered, for Python.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception that says why there is none.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for everbloom::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, error))
    }
}

/// The exception of an error.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    let error = in_keywords(error);
    let message = error.to_string();
    match error {
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        Error::Io { .. } => PyOSError::new_err(message),
        error => exception(py, &error, &message).unwrap_or_else(|problem| problem),
    }
}

fn exception(py: Python<'_>, error: &Error, message: &str) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    let set = |pairs: &[(&str, &str)]| pairs.iter().try_for_each(|(name, value)| fields.set_item(name, value));
    let (class, remedy) = match error {
        Error::Parameter { name, given, needed, remedy } => {
            set(&[("name", name), ("given", given), ("needed", needed)])?;
            ("ParameterError", remedy.as_str())
        }
        Error::Infeasible { wanted, reason, remedy } => {
            set(&[("wanted", wanted), ("reason", reason)])?;
            ("InfeasibleError", remedy.as_str())
        }
        Error::Spec { spec, problem, remedy } => {
            set(&[("spec", spec), ("problem", problem)])?;
            ("SpecError", remedy.as_str())
        }
        Error::Mismatch { what, left, right, remedy } => {
            set(&[("what", what), ("left", left), ("right", right)])?;
            ("MismatchError", *remedy)
        }
        Error::Unsupported { kind, operation, remedy } => {
            set(&[("kind", kind), ("operation", operation)])?;
            ("UnsupportedError", remedy.as_str())
        }
        Error::Corrupt { problem, remedy } => {
            set(&[("problem", problem)])?;
            ("CorruptError", *remedy)
        }
        Error::Version { found, supported } => {
            fields.set_item("found", found)?;
            fields.set_item("supported", supported)?;
            ("VersionError", "upgrade everbloom")
        }
        Error::SecretKey { remedy, .. } => ("SecretKeyError", *remedy),
        Error::Scheme { needed, given, remedy } => {
            set(&[("needed", needed), ("given", given)])?;
            ("SchemeError", *remedy)
        }
        _ => ("Error", ""),
    };
    let value = errors(py)?.getattr(class)?.call((message, remedy), Some(&fields))?;
    Ok(PyErr::from_value(value))
}

/// The exception of what servers did not do.
pub(crate) fn server_error(py: Python<'_>, error: everbloom_redis_client::Error) -> PyErr {
    use everbloom_redis_client::Error as ServerError;
    let class = match error {
        ServerError::Filter(error) => return raised(py, error),
        ServerError::Usage(_) => "UsageError",
        ServerError::NotFound(_) => "NotFoundError",
        ServerError::Exists(_) => "ExistsError",
        _ => "ServerError",
    };
    let made = errors(py).and_then(|errors| errors.getattr(class)?.call1((error.to_string(), error.remedy())));
    made.map_or_else(|problem| problem, PyErr::from_value)
}

/// The Python half of this file.
fn errors(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    Ok(ERRORS.get_or_try_init(py, || py.import("everbloom._errors").map(Bound::unbind))?.bind(py))
}

/// A value that a caller gave and that cannot be used.
pub(crate) fn parameter(py: Python<'_>, name: &'static str, given: impl ToString, needed: &str, remedy: &str) -> PyErr {
    let error =
        Error::Parameter { name, given: given.to_string(), needed: needed.to_string(), remedy: remedy.to_string() };
    raised(py, error)
}

/// The library's names of what is asked for, as the keywords that Python callers typed.
const KEYWORDS: [(&str, &str); 4] =
    [("target_fpr", "fpr"), ("target_fnr", "fnr"), ("expected_items", "expect"), ("transmitted_bytes", "transmit")];

fn in_keywords(error: Error) -> Error {
    let keyword = |text: &str| KEYWORDS.iter().fold(text.to_string(), |text, (name, typed)| text.replace(name, typed));
    match error {
        Error::Parameter { name, given, needed, remedy } => {
            let name = KEYWORDS.iter().find(|(own, _)| *own == name).map_or(name, |(_, typed)| typed);
            let remedy = keyword(&remedy).replace("mend the record", "give less");
            Error::Parameter { name, given, needed: keyword(&needed), remedy }
        }
        Error::Infeasible { wanted, reason, remedy } => {
            Error::Infeasible { wanted: keyword(&wanted), reason: keyword(&reason), remedy: keyword(&remedy) }
        }
        // The decoder is called by other names here.
        Error::SecretKey { needed, remedy: _ } => {
            Error::SecretKey { needed, remedy: "give the 16 bytes that it was built with as secret=" }
        }
        Error::Scheme { needed, given, remedy: _ } => {
            Error::Scheme { needed, given, remedy: "give that one as scheme=" }
        }
        Error::Corrupt { problem, remedy: "build one with `everbloom build`" } => {
            Error::Corrupt { problem, remedy: "give what save or to_bytes wrote" }
        }
        error => error,
    }
}

/// An error of the system about a file.
pub(crate) fn io_error(py: Python<'_>, path: &std::path::Path, error: &std::io::Error) -> PyErr {
    let kind = |number: i32| (number, error_text(py, number), path.as_os_str().to_os_string());
    match error.raw_os_error().or_else(|| number_of(error.kind())) {
        Some(number) => PyOSError::new_err(kind(number)),
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// The system's number of an error that lost it on its way: what writes files aside adds where, and keeps only the kind.
fn number_of(kind: std::io::ErrorKind) -> Option<i32> {
    use std::io::ErrorKind;
    match kind {
        ErrorKind::NotFound => Some(2),
        ErrorKind::PermissionDenied => Some(13),
        ErrorKind::NotADirectory => Some(20),
        ErrorKind::IsADirectory => Some(21),
        ErrorKind::StorageFull => Some(28),
        ErrorKind::ReadOnlyFilesystem => Some(30),
        _ => None,
    }
}

/// What the system calls an error number.
fn error_text(py: Python<'_>, number: i32) -> String {
    let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,))?.extract());
    text.unwrap_or_else(|_| format!("error {number}"))
}
