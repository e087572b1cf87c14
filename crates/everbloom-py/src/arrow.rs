//! Arrow columns: whatever has `__arrow_c_array__` or `__arrow_c_stream__`, of pyarrow, pandas, polars, DuckDB and others.

use crate::batch::{Act, CHUNK, Keys, Part};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, Int8Type, Int16Type, Int32Type, Int64Type,
    LargeBinaryType, LargeUtf8Type, StringViewType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, GenericByteViewArray};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use everbloom::{Hashing, Key, KeyHash};
use everbloom_cells::key::{self, Packed};
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

/// What a column says of itself and does not hold.
fn damaged(what: &str) -> PyErr {
    PyValueError::new_err(format!("the column is damaged: {what}; call its validate(full=True)"))
}

/// The places in a dictionary that rows name; those of nulls are of no account.
fn places(keys: &dyn Array) -> Vec<usize> {
    fn all<T: ArrowPrimitiveType<Native: TryInto<usize>>>(keys: &dyn Array) -> Vec<usize> {
        keys.as_primitive::<T>().values().iter().map(|key| (*key).try_into().unwrap_or(usize::MAX)).collect()
    }
    match keys.data_type() {
        DataType::Int8 => all::<Int8Type>(keys),
        DataType::Int16 => all::<Int16Type>(keys),
        DataType::Int32 => all::<Int32Type>(keys),
        DataType::Int64 => all::<Int64Type>(keys),
        DataType::UInt8 => all::<UInt8Type>(keys),
        DataType::UInt16 => all::<UInt16Type>(keys),
        DataType::UInt32 => all::<UInt32Type>(keys),
        DataType::UInt64 => all::<UInt64Type>(keys),
        _ => vec![usize::MAX; keys.len()],
    }
}

fn dictionary_part(py: Python<'_>, part: &ArrayRef, values: &[Option<KeyHash>], act: &mut Act<'_>) -> PyResult<()> {
    let Some(dictionary) = part.as_any_dictionary_opt() else { return Ok(()) };
    let nulls = dictionary.nulls();
    let hash = |(row, place): (usize, usize)| match nulls.is_some_and(|nulls| nulls.is_null(row)) {
        true => Ok(None),
        false => values.get(place).copied().ok_or_else(|| damaged("a row is beyond its dictionary")),
    };
    let hashes: PyResult<Vec<_>> = places(dictionary.keys()).into_iter().enumerate().map(hash).collect();
    let hashes = hashes?;
    let present: Vec<bool> = hashes.iter().map(Option::is_some).collect();
    let known: Vec<KeyHash> = hashes.into_iter().flatten().collect();
    act(py, Part { keys: Keys::Hashes(&known), present: Some(&present) })
}

/// Acts on the values as they lie, or on copies of those that are there.
fn taken<K: Key + Sync>(
    py: Python<'_>,
    part: &ArrayRef,
    all: Option<&(dyn key::Keys + Sync)>,
    some: impl FnOnce() -> Vec<K>,
    act: &mut Act<'_>,
) -> PyResult<()> {
    match (all, present(part)) {
        (Some(all), None) => act(py, Keys::Raw(all).into()),
        (_, present) => act(py, Part { keys: Keys::Raw(&&some()[..]), present: present.as_deref() }),
    }
}

fn plain_part(py: Python<'_>, part: &ArrayRef, act: &mut Act<'_>) -> PyResult<()> {
    match part.data_type() {
        DataType::Int64 => {
            let values = part.as_primitive::<Int64Type>();
            taken(py, part, Some(&&values.values()[..]), || values.iter().flatten().collect(), act)
        }
        DataType::UInt64 => {
            let values = part.as_primitive::<UInt64Type>();
            taken(py, part, Some(&&values.values()[..]), || values.iter().flatten().collect(), act)
        }
        DataType::Int32 => signed::<Int32Type>(py, part, act),
        DataType::Int16 => signed::<Int16Type>(py, part, act),
        DataType::Int8 => signed::<Int8Type>(py, part, act),
        DataType::UInt32 => signed::<UInt32Type>(py, part, act),
        DataType::UInt16 => signed::<UInt16Type>(py, part, act),
        DataType::UInt8 => signed::<UInt8Type>(py, part, act),
        DataType::Boolean => taken(py, part, None, || part.as_boolean().iter().flatten().map(u64::from).collect(), act),
        DataType::Utf8 => bytes::<Utf8Type>(py, part, act),
        DataType::LargeUtf8 => bytes::<LargeUtf8Type>(py, part, act),
        DataType::Binary => bytes::<BinaryType>(py, part, act),
        DataType::LargeBinary => bytes::<LargeBinaryType>(py, part, act),
        DataType::Utf8View => views::<StringViewType>(py, part, act),
        DataType::BinaryView => views::<BinaryViewType>(py, part, act),
        DataType::FixedSizeBinary(_) => {
            taken(py, part, None, || part.as_fixed_size_binary().iter().flatten().collect(), act)
        }
        DataType::Null => act(py, Part { keys: Keys::Hashes(&[]), present: Some(&vec![false; part.len()]) }),
        DataType::Struct(_) => Err(PyTypeError::new_err(
            "keys must be one column, not a table; name one of its columns, or join several into one of text",
        )),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Err(PyTypeError::new_err(
            "keys must be a column of text, bytes or integers, not of floats; whole numbers with gaps are \
             column.astype('Int64') in pandas, others must be cast to text",
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
    let values = part.as_primitive::<T>();
    taken::<i64>(py, part, None, || values.iter().flatten().map(Into::into).collect(), act)
}

fn bytes<T>(py: Python<'_>, part: &ArrayRef, act: &mut Act<'_>) -> PyResult<()>
where
    T: ByteArrayType<Native: AsRef<[u8]>, Offset: key::Offset + Sync>,
{
    let array = part.as_bytes::<T>();
    let Some(rows) = Packed::new(array.value_data(), array.offsets()) else {
        return Err(damaged("its offsets do not rise, or lie beyond its bytes"));
    };
    taken::<&[u8]>(py, part, Some(&rows), || array.iter().flatten().map(AsRef::as_ref).collect(), act)
}

/// Whether a view lies within its buffer: the length, and of more than 12 bytes the buffer's number and the place in it.
fn is_within(view: u128, buffers: &[Buffer]) -> bool {
    let [length, buffer, start] = [view as u32, (view >> 64) as u32, (view >> 96) as u32].map(|part| part as usize);
    length <= 12 || buffers.get(buffer).is_some_and(|buffer| start + length <= buffer.len())
}

/// Rows of which each says where its bytes lie.
struct Views<'a, T: ByteViewType>(&'a GenericByteViewArray<T>);

impl<T: ByteViewType<Native: AsRef<[u8]>>> key::Keys for Views<'_, T> {
    fn len(&self) -> usize {
        Array::len(self.0)
    }

    fn hash(&self, start: usize, hashing: &Hashing, hashes: &mut [KeyHash]) {
        for (row, hash) in (start..).zip(hashes) {
            *hash = hashing.hash(self.0.value(row).as_ref());
        }
    }
}

fn views<T: ByteViewType<Native: AsRef<[u8]>>>(py: Python<'_>, part: &ArrayRef, act: &mut Act<'_>) -> PyResult<()> {
    let array = part.as_byte_view::<T>();
    let mut rows = array.views().iter().enumerate();
    if !rows.all(|(row, view)| array.is_null(row) || is_within(*view, array.data_buffers())) {
        return Err(damaged("a row is beyond its buffer"));
    }
    taken::<&[u8]>(py, part, Some(&Views(array)), || array.iter().flatten().map(AsRef::as_ref).collect(), act)
}
