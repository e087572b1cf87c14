//! What a Python object is as a key.
//!
//! A `str` is its UTF-8, `bytes` and the like are their bytes, an `int` is its 8 bytes, a `UUID` its 16, and a tuple its
//! parts, each with its length before it: the same keys as those of the library and of the command line.

use everbloom::{Hashing, KeyHash};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyTuple, PyType};

static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Tuples within tuples; deeper ones are a mistake.
const MOST_NESTED: u32 = 32;

/// The hash of a key. The common types come first, and need no call into Python.
#[inline]
pub(crate) fn hash(key: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<KeyHash> {
    if let Ok(text) = key.cast_exact::<PyString>() {
        return Ok(hashing.hash(utf8(text)?.as_bytes()));
    }
    if let Ok(number) = key.cast_exact::<PyInt>() {
        return Ok(hashing.hash_u64(integer(number)?));
    }
    if let Ok(bytes) = key.cast_exact::<PyBytes>() {
        return Ok(hashing.hash(bytes.as_bytes()));
    }
    let mut bytes = Vec::new();
    append(key, &mut bytes, 0)?;
    Ok(hashing.hash(&bytes))
}

/// Appends the bytes of a key of any sort.
fn append(key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>, depth: u32) -> PyResult<()> {
    if let Ok(text) = key.cast::<PyString>() {
        bytes.extend_from_slice(utf8(text)?.as_bytes());
    } else if let Ok(own) = key.cast::<PyBytes>() {
        bytes.extend_from_slice(own.as_bytes());
    } else if let Ok(number) = key.cast::<PyInt>() {
        bytes.extend_from_slice(&integer(number)?.to_le_bytes());
    } else if let Ok(own) = key.cast::<PyByteArray>() {
        bytes.extend_from_slice(&own.to_vec());
    } else if key.is_instance_of::<PyMemoryView>() {
        let own = key.call_method0("tobytes")?;
        bytes.extend_from_slice(own.cast::<PyBytes>()?.as_bytes());
    } else if let Ok(parts) = key.cast::<PyTuple>() {
        if depth == MOST_NESTED {
            return Err(PyTypeError::new_err(format!("a key has tuples within tuples more than {MOST_NESTED} deep")));
        }
        for part in parts {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 8]);
            append(&part, bytes, depth + 1)?;
            let length = (bytes.len() - start - 8) as u64;
            bytes[start..start + 8].copy_from_slice(&length.to_le_bytes());
        }
    } else if is_uuid(key)? {
        let own = key.getattr("bytes")?;
        bytes.extend_from_slice(own.cast::<PyBytes>()?.as_bytes());
    } else {
        bytes.extend_from_slice(&index(key)?.to_le_bytes());
    }
    Ok(())
}

fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str().map_err(|_| {
        PyTypeError::new_err(
            "a str key has surrogates, which have no UTF-8; give bytes: os.fsencode(key) for file names",
        )
    })
}

/// The 64 bits of an integer: −1 is 2^64 − 1.
#[inline]
fn integer(number: &Bound<'_, PyInt>) -> PyResult<u64> {
    if let Ok(number) = number.extract::<i64>() {
        return Ok(number as u64);
    }
    number.extract::<u64>().map_err(|_| {
        PyTypeError::new_err("an int key must be at least -2**63 and below 2**64; give larger ones as str(key)")
    })
}

fn is_uuid(key: &Bound<'_, PyAny>) -> PyResult<bool> {
    key.is_instance(UUID.import(key.py(), "uuid", "UUID")?)
}

/// What has `__index__` is an integer.
fn index(key: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = key.py();
    match py.import("operator")?.call_method1("index", (key,)) {
        Ok(number) => integer(number.cast::<PyInt>()?),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Err(no_key(key)),
        Err(error) => Err(error),
    }
}

fn no_key(key: &Bound<'_, PyAny>) -> PyErr {
    let name = key.get_type().name().map_or_else(|_| "this".to_string(), |name| name.to_string());
    let remedy = match name.as_str() {
        "NoneType" => "leave it out, or write '' if it stands for a value",
        "float" => "write str(key), or int(key) if it is a whole number",
        "list" => "write tuple(key) for one key of several parts, or call add_many or update for many keys",
        "dict" | "set" => "say which part of it is the key",
        _ => "write str(key), or give key= to say which part of it is the key",
    };
    PyTypeError::new_err(format!("a key must be str, bytes, int, UUID or a tuple of those, not {name}; {remedy}"))
}
