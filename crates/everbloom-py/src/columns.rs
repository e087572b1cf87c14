//! Arrow columns: whatever has `__arrow_c_array__` or `__arrow_c_stream__`, of pyarrow, pandas, polars, DuckDB and others.

use crate::batch::{Act, CHUNK, Keys, Part};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, Int8Type, Int16Type, Int32Type, Int64Type,
    LargeBinaryType, LargeUtf8Type, StringViewType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;
use everbloom::{Hashing, KeyHash};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyArray;

/// Takes a column apart, if it is one.
pub(crate) fn for_each(
    batch: &Bound<'_, PyAny>,
    hashing: &Hashing,
    act: &mut Act<'_>,
) -> PyResult<Option<PyResult<()>>> {
    let py = batch.py();
    let is_column =
        batch.hasattr(intern!(py, "__arrow_c_array__"))? || batch.hasattr(intern!(py, "__arrow_c_stream__"))?;
    if !is_column {
        return Ok(None);
    }
    let column = match batch.extract::<AnyArray>() {
        Ok(column) => column,
        // A column of objects that Arrow has no type for is taken as objects.
        Err(_) if batch.hasattr(intern!(py, "__array__"))? => return Ok(None),
        Err(error) => return Err(error),
    };
    let reader = column.into_reader()?;
    for array in reader {
        let array = array.map_err(|error| PyValueError::new_err(format!("the column cannot be read: {error}")))?;
        chunks(py, &array, hashing, act)?;
    }
    Ok(Some(Ok(())))
}

fn chunks(py: Python<'_>, array: &ArrayRef, hashing: &Hashing, act: &mut Act<'_>) -> PyResult<()> {
    let values = match array.as_any_dictionary_opt() {
        Some(dictionary) => Some(dictionary_hashes(py, dictionary.values(), hashing)?),
        None => None,
    };
    for start in (0..array.len()).step_by(CHUNK) {
        let part = array.slice(start, CHUNK.min(array.len() - start));
        match &values {
            Some(values) => dictionary_part(py, &part, values, act)?,
            None => plain_part(py, &part, act)?,
        }
        py.check_signals()?;
    }
    Ok(())
}

/// Which rows have a value, where not all have.
fn present(array: &dyn Array) -> Option<Vec<bool>> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.iter().collect())
}

/// The hashes of a dictionary's values; `None` for a null among them.
fn dictionary_hashes(py: Python<'_>, values: &ArrayRef, hashing: &Hashing) -> PyResult<Vec<Option<KeyHash>>> {
    let mut all = Vec::with_capacity(values.len());
    let mut collect = |py: Python<'_>, part: Part<'_>| {
        let mut hashes = Vec::with_capacity(part.rows());
        py.detach(|| part.keys.hash(hashing, &mut hashes));
        let hashes: Vec<_> = hashes.into_iter().map(Some).collect();
        part.append(&hashes, None, &mut all);
        Ok(())
    };
    for start in (0..values.len()).step_by(CHUNK) {
        plain_part(py, &values.slice(start, CHUNK.min(values.len() - start)), &mut collect)?;
    }
    Ok(all)
}

fn dictionary_part(py: Python<'_>, part: &ArrayRef, values: &[Option<KeyHash>], act: &mut Act<'_>) -> PyResult<()> {
    let Some(dictionary) = part.as_any_dictionary_opt() else { return Ok(()) };
    let nulls = dictionary.nulls();
    let hash = |(row, place): (usize, usize)| {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) { None } else { values.get(place).copied().flatten() }
    };
    let hashes: Vec<Option<KeyHash>> = if values.is_empty() {
        vec![None; part.len()]
    } else {
        dictionary.normalized_keys().into_iter().enumerate().map(hash).collect()
    };
    let present: Vec<bool> = hashes.iter().map(Option::is_some).collect();
    let known: Vec<KeyHash> = hashes.into_iter().flatten().collect();
    act(py, Part { keys: Keys::Hashes(&known), present: Some(&present) })
}

fn plain_part(py: Python<'_>, part: &ArrayRef, act: &mut Act<'_>) -> PyResult<()> {
    match part.data_type() {
        DataType::Int64 => {
            let values = part.as_primitive::<Int64Type>();
            match present(part) {
                None => act(py, Keys::Signed(values.values()).into()),
                some => act(
                    py,
                    Part { keys: Keys::Signed(&values.iter().flatten().collect::<Vec<_>>()), present: some.as_deref() },
                ),
            }
        }
        DataType::UInt64 => {
            let values = part.as_primitive::<UInt64Type>();
            match present(part) {
                None => act(py, Keys::Unsigned(values.values()).into()),
                some => act(
                    py,
                    Part {
                        keys: Keys::Unsigned(&values.iter().flatten().collect::<Vec<_>>()),
                        present: some.as_deref(),
                    },
                ),
            }
        }
        DataType::Int32 => signed::<Int32Type>(py, part, act),
        DataType::Int16 => signed::<Int16Type>(py, part, act),
        DataType::Int8 => signed::<Int8Type>(py, part, act),
        DataType::UInt32 => signed::<UInt32Type>(py, part, act),
        DataType::UInt16 => signed::<UInt16Type>(py, part, act),
        DataType::UInt8 => signed::<UInt8Type>(py, part, act),
        DataType::Boolean => {
            let values: Vec<u64> = part.as_boolean().iter().flatten().map(u64::from).collect();
            act(py, Part { keys: Keys::Unsigned(&values), present: present(part).as_deref() })
        }
        DataType::Utf8 => bytes::<Utf8Type>(py, part, act),
        DataType::LargeUtf8 => bytes::<LargeUtf8Type>(py, part, act),
        DataType::Binary => bytes::<BinaryType>(py, part, act),
        DataType::LargeBinary => bytes::<LargeBinaryType>(py, part, act),
        DataType::Utf8View => views::<StringViewType>(py, part, act),
        DataType::BinaryView => views::<BinaryViewType>(py, part, act),
        DataType::FixedSizeBinary(_) => {
            let rows: Vec<&[u8]> = part.as_fixed_size_binary().iter().flatten().collect();
            act(py, Part { keys: Keys::Bytes(&rows), present: present(part).as_deref() })
        }
        DataType::Null => act(py, Part { keys: Keys::Hashes(&[]), present: Some(&vec![false; part.len()]) }),
        DataType::Struct(_) => Err(PyTypeError::new_err(
            "keys must be one column, not a table; name one of its columns, or join several into one of text",
        )),
        other => Err(PyTypeError::new_err(format!(
            "keys must be a column of text, bytes or integers, not {other}; cast it to text, or to int64 if its bits are the key"
        ))),
    }
}

/// Integers that fit into 63 bits, with their sign or without one.
fn signed<T: ArrowPrimitiveType<Native: Into<i64>>>(
    py: Python<'_>,
    part: &ArrayRef,
    act: &mut Act<'_>,
) -> PyResult<()> {
    let values: Vec<i64> = part.as_primitive::<T>().iter().flatten().map(Into::into).collect();
    act(py, Part { keys: Keys::Signed(&values), present: present(part).as_deref() })
}

fn bytes<T: ByteArrayType<Native: AsRef<[u8]>>>(py: Python<'_>, part: &ArrayRef, act: &mut Act<'_>) -> PyResult<()> {
    let array = part.as_bytes::<T>();
    match present(part) {
        None => {
            let rows: Vec<&[u8]> = (0..array.len()).map(|index| array.value(index).as_ref()).collect();
            act(py, Keys::Bytes(&rows).into())
        }
        some => {
            let rows: Vec<&[u8]> = array.iter().flatten().map(AsRef::as_ref).collect();
            act(py, Part { keys: Keys::Bytes(&rows), present: some.as_deref() })
        }
    }
}

fn views<T: ByteViewType<Native: AsRef<[u8]>>>(py: Python<'_>, part: &ArrayRef, act: &mut Act<'_>) -> PyResult<()> {
    let rows: Vec<&[u8]> = part.as_byte_view::<T>().iter().flatten().map(AsRef::as_ref).collect();
    act(py, Part { keys: Keys::Bytes(&rows), present: present(part).as_deref() })
}
