//! Many keys at once: from whatever Python has them in to what the library takes, some at a time.
//!
//! Keys come in chunks of [`CHUNK`]. While a chunk is worked on, other Python threads run; between two chunks Python's
//! signals are looked at, so that a long batch can be interrupted. If a key cannot be used, or the caller's own iterator
//! raises, what came before it is handed on, and the exception says where it happened.

use crate::errors::parameter;
use crate::hashes::Hashes;
use crate::{arrow, keys};
use everbloom::{Hashing, Key, KeyHash};
use everbloom_cells::key;
use pyo3::buffer::{Element, ElementType, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PySlice, PyTuple};

/// Keys that are worked on together.
pub(crate) const CHUNK: usize = 1 << 16;

static ARRAYS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The Python half of this file.
pub(crate) fn arrays(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    Ok(ARRAYS.get_or_try_init(py, || py.import("everbloom._arrays").map(Bound::unbind))?.bind(py))
}

/// Some keys, as the library takes them.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'k> {
    /// To be hashed, wherever they lie.
    Raw(&'k (dyn key::Keys + Sync)),
    Hashes(&'k [KeyHash]),
}

impl Keys<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Keys::Raw(keys) => keys.len(),
            Keys::Hashes(keys) => keys.len(),
        }
    }

    /// Appends their hashes.
    pub(crate) fn hash(&self, hashing: &Hashing, hashes: &mut Vec<KeyHash>) {
        match self {
            Keys::Raw(keys) => {
                let start = hashes.len();
                hashes.resize(start + keys.len(), KeyHash::default());
                keys.hash(0, hashing, &mut hashes[start..]);
            }
            Keys::Hashes(keys) => hashes.extend_from_slice(keys),
        }
    }
}

/// A part of a batch: the keys of its rows, but for those that have none.
#[derive(Clone, Copy)]
pub(crate) struct Part<'p> {
    pub(crate) keys: Keys<'p>,
    /// Which rows have a key, where not all have.
    pub(crate) present: Option<&'p [bool]>,
}

impl<'p> From<Keys<'p>> for Part<'p> {
    fn from(keys: Keys<'p>) -> Self {
        Part { keys, present: None }
    }
}

impl Part<'_> {
    pub(crate) fn rows(&self) -> usize {
        self.present.map_or(self.keys.len(), <[bool]>::len)
    }

    /// Appends what was answered for its keys, and `otherwise` for rows without one.
    pub(crate) fn append<T: Copy>(&self, answers: &[T], otherwise: T, all: &mut Vec<T>) {
        match self.present {
            None => all.extend_from_slice(answers),
            Some(present) => {
                let mut answers = answers.iter().copied();
                let rows = present.iter();
                all.extend(rows.map(|row| if *row { answers.next().unwrap_or(otherwise) } else { otherwise }));
            }
        }
    }
}

/// What is done with each part of a batch.
pub(crate) type Act<'a> = dyn FnMut(Python<'_>, Part<'_>) -> PyResult<()> + 'a;

/// Takes a batch of any sort apart.
pub(crate) fn for_each(batch: &Bound<'_, PyAny>, hashing: &Hashing, act: &mut Act<'_>) -> PyResult<()> {
    let py = batch.py();
    if let Ok(hashes) = batch.cast::<Hashes>() {
        return hashes.get().for_each(py, hashing, act);
    }
    if let Ok(list) = batch.cast_exact::<PyList>() {
        return objects(list.iter().map(Ok), hashing, py, act);
    }
    if let Ok(tuple) = batch.cast_exact::<PyTuple>() {
        return objects(tuple.iter().map(Ok), hashing, py, act);
    }
    if let Some(result) = arrow::for_each(batch, hashing, act)? {
        return result;
    }
    let (sort, batch, width): (String, Bound<'_, PyAny>, usize) =
        arrays(py)?.call_method1("source", (batch,))?.extract()?;
    match sort.as_str() {
        "ints" => integers(&batch, act),
        "bytes" => fixed_bytes(&batch, width, act),
        "text" => fixed_text(&batch, width, act),
        _ => objects(batch.try_iter()?, hashing, py, act),
    }
}

/// The hashes of a batch, all of them.
pub(crate) fn hashes_of(batch: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<Vec<KeyHash>> {
    let mut hashes = Vec::new();
    for_each(batch, hashing, &mut |py, part| {
        py.detach(|| part.keys.hash(hashing, &mut hashes));
        Ok(())
    })?;
    Ok(hashes)
}

/// Objects one by one, each hashed as it comes.
fn objects<'py>(
    items: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    hashing: &Hashing,
    py: Python<'_>,
    act: &mut Act<'_>,
) -> PyResult<()> {
    let mut hashes = Vec::with_capacity(1024);
    let mut done = 0;
    for item in items {
        let hash = item.and_then(|key| keys::hash(&key, hashing));
        match hash {
            Ok(hash) => hashes.push(hash),
            Err(error) => {
                let index = done + hashes.len();
                act(py, Keys::Hashes(&hashes).into())?;
                return Err(at_index(py, error, index));
            }
        }
        if hashes.len() == CHUNK {
            act(py, Keys::Hashes(&hashes).into())?;
            done += hashes.len();
            hashes.clear();
            py.check_signals()?;
        }
    }
    act(py, Keys::Hashes(&hashes).into())
}

/// The exception with the place of the key in the batch.
fn at_index(py: Python<'_>, error: PyErr, index: usize) -> PyErr {
    if error.get_type(py).is(py.get_type::<PyTypeError>()) {
        return PyTypeError::new_err(format!("key {index}: {}", error.value(py)));
    }
    let note = format!("at key {index} of the batch; the keys before it were taken");
    // A note is a help; the exception is the caller's own.
    let _ = error.value(py).call_method1("add_note", (note,));
    error
}

/// A part of a buffer, as a view of its own.
fn part_of<'py>(view: &Bound<'py, PyAny>, start: usize, end: usize) -> PyResult<Bound<'py, PyAny>> {
    view.get_item(PySlice::new(view.py(), start as isize, end as isize, 1))
}

/// The elements of a part, copied: Python may change a buffer while other threads run.
fn copied<T: Element + Default>(view: &Bound<'_, PyAny>, start: usize, end: usize, room: &mut Vec<T>) -> PyResult<()> {
    let buffer = PyBuffer::<T>::get(&part_of(view, start, end)?)?;
    room.resize(buffer.item_count(), T::default());
    buffer.copy_to_slice(view.py(), room)
}

/// Calls `each` with the ends of every part of a column of so many rows.
fn in_parts(py: Python<'_>, rows: usize, mut each: impl FnMut(usize, usize) -> PyResult<()>) -> PyResult<()> {
    for start in (0..rows).step_by(CHUNK) {
        each(start, rows.min(start + CHUNK))?;
        py.check_signals()?;
    }
    Ok(())
}

fn integers(view: &Bound<'_, PyAny>, act: &mut Act<'_>) -> PyResult<()> {
    use ElementType::{SignedInteger, UnsignedInteger};
    let rows = view.len()?;
    let sort = ElementType::from_format(PyUntypedBuffer::get(view)?.format());
    /// Narrow integers are widened: they are the same keys.
    fn widened<T, W>(view: &Bound<'_, PyAny>, rows: usize, act: &mut Act<'_>) -> PyResult<()>
    where
        T: Element + Default + Into<W>,
        W: Key + Sync,
    {
        let mut room = Vec::<T>::new();
        in_parts(view.py(), rows, |start, end| {
            copied(view, start, end, &mut room)?;
            let wide: Vec<W> = room.iter().map(|number| (*number).into()).collect();
            act(view.py(), Keys::Raw(&&wide[..]).into())
        })
    }
    /// Those of 64 bits are taken as they are.
    fn whole<T: Element + Default + Key + Sync>(
        view: &Bound<'_, PyAny>,
        rows: usize,
        act: &mut Act<'_>,
    ) -> PyResult<()> {
        let mut room = Vec::<T>::new();
        in_parts(view.py(), rows, |start, end| {
            copied(view, start, end, &mut room)?;
            act(view.py(), Keys::Raw(&&room[..]).into())
        })
    }
    match sort {
        SignedInteger { bytes: 8 } => whole::<i64>(view, rows, act),
        UnsignedInteger { bytes: 8 } => whole::<u64>(view, rows, act),
        SignedInteger { bytes: 4 } => widened::<i32, i64>(view, rows, act),
        SignedInteger { bytes: 2 } => widened::<i16, i64>(view, rows, act),
        SignedInteger { bytes: 1 } => widened::<i8, i64>(view, rows, act),
        UnsignedInteger { bytes: 4 } => widened::<u32, u64>(view, rows, act),
        UnsignedInteger { bytes: 2 } => widened::<u16, u64>(view, rows, act),
        UnsignedInteger { bytes: 1 } => widened::<u8, u64>(view, rows, act),
        _ => Err(PyTypeError::new_err("the buffer has no integers of 8 to 64 bits; give a list of keys")),
    }
}

/// NumPy's `S`: so many bytes a row, of which the last that are zero are no part of it.
fn fixed_bytes(view: &Bound<'_, PyAny>, width: usize, act: &mut Act<'_>) -> PyResult<()> {
    let (py, rows) = (view.py(), view.len()? / width.max(1));
    let mut room = Vec::<u8>::new();
    in_parts(py, rows, |start, end| {
        copied(view, start * width, end * width, &mut room)?;
        let rows: Vec<&[u8]> = room.chunks_exact(width).map(|row| &row[..ends_at(row, &0)]).collect();
        act(py, Keys::Raw(&&rows[..]).into())
    })
}

/// NumPy's `U`: so many code points a row, likewise.
fn fixed_text(view: &Bound<'_, PyAny>, width: usize, act: &mut Act<'_>) -> PyResult<()> {
    let (py, rows) = (view.py(), view.len()? / width.max(1));
    let (mut room, mut text) = (Vec::<u32>::new(), String::new());
    in_parts(py, rows, |start, end| {
        copied(view, start * width, end * width, &mut room)?;
        text.clear();
        let mut ends = Vec::with_capacity(end - start + 1);
        ends.push(0);
        let mut wrong = None;
        for (index, row) in room.chunks_exact(width).enumerate() {
            let letters: Option<Vec<char>> =
                row[..ends_at(row, &0)].iter().map(|letter| char::from_u32(*letter)).collect();
            let Some(letters) = letters else {
                wrong = Some(start + index);
                break;
            };
            text.extend(letters);
            ends.push(text.len() as i64);
        }
        let rows = key::Packed::new(text.as_bytes(), &ends);
        act(py, rows.as_ref().map_or(Keys::Hashes(&[]), |rows| Keys::Raw(rows)).into())?;
        match wrong {
            Some(index) => Err(PyTypeError::new_err(format!(
                "key {index}: the text has surrogates, which have no UTF-8; give bytes"
            ))),
            None => Ok(()),
        }
    })
}

/// Where a row ends: behind its last element that is not `empty`.
fn ends_at<T: PartialEq>(row: &[T], empty: &T) -> usize {
    row.iter().rposition(|element| element != empty).map_or(0, |last| last + 1)
}

/// What an iterator gives, each thing converted. It may be endless: no more is taken than one beyond `rows`, where that is
/// known, and signals are looked at.
pub(crate) fn gathered<T>(
    values: &Bound<'_, PyAny>,
    rows: Option<usize>,
    convert: impl Fn(usize, &Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let mut all = Vec::new();
    for (index, value) in values.try_iter()?.take(rows.map_or(usize::MAX, |rows| rows.saturating_add(1))).enumerate() {
        if index % CHUNK == 0 {
            values.py().check_signals()?;
            // Other threads run, which an iterator in C would keep from it.
            values.py().detach(|| ());
            all.try_reserve(CHUNK).map_err(|_| PyMemoryError::new_err("there are too many values for the memory"))?;
        }
        all.push(convert(index, &value?)?);
    }
    Ok(all)
}

/// A column of doubles for so many rows, if that is known: of a buffer, or of anything that can be iterated.
pub(crate) fn numbers(values: &Bound<'_, PyAny>, name: &'static str, rows: Option<usize>) -> PyResult<Vec<f64>> {
    let py = values.py();
    let values = arrays(py)?.call_method1("numbers", (values,))?;
    if let Ok(buffer) = PyBuffer::<f64>::get(&values) {
        return buffer.to_vec(py);
    }
    gathered(&values, rows, |index, value| {
        value.extract::<f64>().map_err(|_| {
            let shown = value.repr().map_or_else(|_| "not a number".to_string(), |text| text.to_string());
            parameter(py, name, format!("{shown} for key {index}"), "a number", "give one number for each key")
        })
    })
}
