//! Batches of a filter.

use super::state::{Arrivals, State, hashed};
use super::{PyFilter, kind_of};
use crate::batch::{self, Keys, Part, arrays};
use crate::errors::{OrRaise, parameter};
use everbloom::kind::Multiplicity;
use everbloom::{AnyFilter, Error, Hashing, Importance, ImportanceScale, Importances, Result, Verdict};
use everbloom_all::KINDS;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// The filter as one that counts, or an error that names the kinds which do.
pub(super) fn counts(filter: &AnyFilter) -> Result<&dyn Multiplicity> {
    filter.as_multiplicity().ok_or_else(|| {
        let able: Vec<_> = KINDS.iter().filter(|kind| kind.can.count).map(|kind| kind.name).collect();
        let kind = kind_of(filter.as_ref()).map_or("these", |kind| kind.name).to_string();
        Error::Unsupported { kind, operation: "count", remedy: format!("these can: {}", able.join(", ")) }
    })
}

/// A time as microseconds since 1970: a number of seconds, or a `datetime`.
pub(super) fn to_micros(at: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = at.py();
    let seconds = match at.extract::<f64>() {
        Ok(seconds) => seconds,
        Err(_) if at.hasattr("timestamp")? => at.call_method0("timestamp")?.extract()?,
        Err(_) => {
            let times = arrays(py)?.call_method1("times", (at,))?;
            return match PyBuffer::<i64>::get(&times).and_then(|buffer| buffer.to_vec(py)) {
                Ok(times) if times.len() == 1 => Ok(times[0]),
                _ => Err(no_time(at)),
            };
        }
    };
    if TIMES.contains(&seconds) { Ok((seconds * 1e6).round() as i64) } else { Err(no_time(at)) }
}

/// The years 1 to 9999, as `datetime` has them. Milliseconds taken for seconds would be a year in the tens of thousands, and
/// the filter's clock would never come back from there.
const TIMES: std::ops::Range<f64> = -62_135_596_800.0..253_402_300_800.0;

fn no_time(at: &Bound<'_, PyAny>) -> PyErr {
    let given = at.repr().map_or_else(|_| "something".to_string(), |text| text.to_string());
    let remedy = "write time.time(), and divide milliseconds by 1000";
    parameter(at.py(), "at", given, "seconds since 1970, before the year 10000, or a datetime", remedy)
}

/// What every key of a batch has: one value for all, or one for each row.
pub(crate) enum Given<T> {
    Nothing,
    All(T),
    Each(Vec<T>),
}

impl<T: Copy> Given<T> {
    /// Refuses another number of values than of keys, where that is known before.
    pub(crate) fn check(&self, name: &'static str, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        keys.len().map_or(Ok(()), |rows| self.check_rows(keys.py(), name, rows))
    }

    /// Refuses another number of values than of keys, once all rows came.
    pub(crate) fn check_rows(&self, py: Python<'_>, name: &'static str, rows: usize) -> PyResult<()> {
        match self {
            Given::Each(values) if values.len() != rows => Err(wrong_count(py, name, values.len(), rows)),
            _ => Ok(()),
        }
    }

    /// The values of a part's keys, of which the first row is `start`.
    pub(crate) fn of(
        &self,
        py: Python<'_>,
        name: &'static str,
        start: usize,
        part: &Part<'_>,
    ) -> PyResult<Option<Vec<T>>> {
        match self {
            Given::Nothing => Ok(None),
            Given::All(value) => Ok(Some(vec![*value; part.keys.len()])),
            Given::Each(values) => {
                let end = start + part.rows();
                let rows = values.get(start..end).ok_or_else(|| wrong_count(py, name, values.len(), end))?;
                Ok(Some(match part.present {
                    None => rows.to_vec(),
                    Some(present) => {
                        rows.iter().zip(present).filter(|(_, row)| **row).map(|(value, _)| *value).collect()
                    }
                }))
            }
        }
    }
}

fn wrong_count(py: Python<'_>, name: &'static str, values: usize, rows: usize) -> PyErr {
    let needed = format!("one for each of {rows} keys");
    parameter(py, name, format!("{values} values long"), &needed, "give as many as there are keys, or one for all")
}

/// The importances of a batch.
pub(crate) fn importances(
    scale: &ImportanceScale,
    value: Option<&Bound<'_, PyAny>>,
    rows: Option<usize>,
) -> PyResult<Given<Importance>> {
    let Some(value) = value else { return Ok(Given::Nothing) };
    let py = value.py();
    if let Ok(number) = value.extract::<f64>() {
        return scale.of(number).map(Given::All).or_raise(py);
    }
    let numbers = batch::numbers(value, "importance", rows)?;
    let each: Result<Vec<_>> = numbers.iter().map(|number| scale.of(*number)).collect();
    each.map(Given::Each).or_raise(py)
}

impl PyFilter {
    fn times(&self, value: Option<&Bound<'_, PyAny>>, rows: Option<usize>) -> PyResult<Given<i64>> {
        let Some(value) = value else { return Ok(Given::Nothing) };
        let py = value.py();
        self.check_timed(py)?;
        if value.extract::<f64>().is_ok() || value.hasattr("timestamp")? {
            return to_micros(value).map(Given::All);
        }
        let times = arrays(py)?.call_method1("times", (value,))?;
        if let Ok(buffer) = PyBuffer::<i64>::get(&times) {
            let times = buffer.to_vec(py)?;
            return Ok(if value.hasattr("__len__")? { Given::Each(times) } else { Given::All(times[0]) });
        }
        batch::gathered(&times, rows, |_, time| to_micros(time)).map(Given::Each)
    }

    /// Takes the keys of a batch out again, or asks for each; the answers go to `all`.
    fn each_hash<T: Copy + Send>(
        &self,
        keys: &Bound<'_, PyAny>,
        otherwise: T,
        all: &mut Vec<T>,
        ask: impl Fn(&mut State, everbloom::KeyHash) -> Result<T> + Sync,
    ) -> PyResult<()> {
        batch::for_each(keys, &self.hashing, &mut |py, part| {
            let answers: Result<Vec<T>> = self.changing(py, |state| {
                hashed(part.keys, &self.hashing).into_iter().map(|hash| ask(state, hash)).collect()
            });
            part.append(&answers.or_raise(py)?, otherwise, all);
            Ok(())
        })
    }
}

#[pymethods]
impl PyFilter {
    /// Remembers many keys: lists, generators, NumPy arrays, Arrow columns, Series; and all keys of other filters.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("bloom", expect=1000)
    /// >>> seen.update(["a", "b"], range(3))
    /// >>> "b" in seen, 2 in seen, 3 in seen
    /// (True, True, False)
    #[pyo3(signature = (*keys_or_filters))]
    fn update(slf: &Bound<'_, Self>, keys_or_filters: &Bound<'_, PyTuple>) -> PyResult<()> {
        let filter = slf.get();
        for keys in keys_or_filters {
            if let Ok(other) = keys.cast::<PyFilter>() {
                filter.merge(slf.py(), other.get(), everbloom::kind::Combine::Union)?;
                continue;
            }
            batch::for_each(&keys, &filter.hashing, &mut |py, part| {
                filter.changing(py, |state| state.insert(part.keys, &filter.hashing)).or_raise(py)
            })?;
        }
        Ok(())
    }

    /// Remembers many keys, and says of each whether it seems new: an array of bool, in order, repeats within the batch
    /// included. A null in an Arrow column is new, and not remembered.
    ///
    /// importance and at are numbers, one for all or one for each key. out is an array of bool that takes the answers.
    ///
    /// >>> import everbloom
    /// >>> everbloom.Filter(memory="64KiB").add_many(["a", "b", "a"])
    /// array([ True,  True, False])
    #[pyo3(signature = (keys, *, importance = None, at = None, out = None))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        importance: Option<&Bound<'py, PyAny>>,
        at: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let room = Room::new(keys, out)?;
        let rows = keys.len().ok();
        let (importances, times) = (importances(&self.scale, importance, rows)?, self.times(at, rows)?);
        importances.check("importance", keys)?;
        times.check("at", keys)?;
        let (mut all, mut start) = (Vec::new(), 0);
        let mut verdicts = Vec::new();
        let done = batch::for_each(keys, &self.hashing, &mut |py, part| {
            let importances = importances.of(py, "importance", start, &part)?;
            let times = times.of(py, "at", start, &part)?;
            let importances = importances.as_deref().map_or(Importances::default(), Importances::Each);
            let arrivals = times.as_deref().map_or(Arrivals::Now, Arrivals::At);
            verdicts.clear();
            verdicts.resize(part.keys.len(), Verdict::Distinct);
            self.changing(py, |state| state.observe(part.keys, &self.hashing, importances, arrivals, &mut verdicts))
                .or_raise(py)?;
            let new: Vec<u8> = verdicts.iter().map(|verdict| u8::from(verdict.is_distinct())).collect();
            part.append(&new, 1, &mut all);
            start += part.rows();
            Ok(())
        });
        let done = done.and_then(|()| {
            importances.check_rows(keys.py(), "importance", start)?;
            times.check_rows(keys.py(), "at", start)
        });
        room.filled(&all, done)
    }

    /// Whether many keys seem to have been here: an array of bool, in order. A null in an Arrow column has not.
    ///
    /// >>> import everbloom
    /// >>> everbloom.Filter(memory="64KiB").contains_many([1, 2, 3])
    /// array([False, False, False])
    #[pyo3(signature = (keys, *, out = None))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask_many(keys, out, &self.hashing, &|py, keys, found| {
            self.looking(py, |state| state.contains(keys, found));
            Ok(())
        })
    }

    /// discard for many keys: an array of bool that says which were there.
    ///
    /// >>> import everbloom
    /// >>> cached = everbloom.Filter("counting", expect=1000)
    /// >>> cached.update(["a", "b"])
    /// >>> cached.remove_many(["a", "z"])
    /// array([ True, False])
    fn remove_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        arrays(py)?.call_method0("numpy")?;
        let mut all = Vec::new();
        self.each_hash(keys, 0u8, &mut all, |state, hash| {
            state.filter.removal().map(|removal| u8::from(removal.remove_hash(hash)))
        })?;
        arrays(py)?.call_method1("result", (PyBytes::new(py, &all), "?"))
    }

    /// count for many keys: an array of integers.
    ///
    /// >>> import everbloom
    /// >>> words = everbloom.Filter("spectral", expect=1000)
    /// >>> words.update("to be or not to be".split())
    /// >>> words.count_many(["to", "or", "nothing"])
    /// array([2, 1, 0], dtype=uint64)
    fn count_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        arrays(py)?.call_method0("numpy")?;
        let mut all = Vec::new();
        self.each_hash(keys, 0u64, &mut all, |state, hash| {
            counts(&state.filter).map(|counts| counts.count_hash(hash))
        })?;
        let bytes: Vec<u8> = all.into_iter().flat_map(u64::to_le_bytes).collect();
        arrays(py)?.call_method1("result", (PyBytes::new(py, &bytes), "<u8"))
    }
}

/// Answers a part of a batch.
type Ask<'a> = dyn Fn(Python<'_>, Keys<'_>, &mut [bool]) -> PyResult<()> + 'a;

/// Asks for many keys, some at a time: of a filter, or of one that is asked where it lies.
pub(crate) fn ask_many<'py>(
    keys: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    hashing: &Hashing,
    ask: &Ask<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let room = Room::new(keys, out)?;
    let (mut all, mut found) = (Vec::new(), Vec::new());
    let done = batch::for_each(keys, hashing, &mut |py, part| {
        found.clear();
        found.resize(part.keys.len(), false);
        ask(py, part.keys, &mut found)?;
        let found: Vec<u8> = found.iter().map(|found| u8::from(*found)).collect();
        part.append(&found, 0, &mut all);
        Ok(())
    });
    room.filled(&all, done)
}

/// Where verdicts go: an array that the caller gave, or a new one.
pub(crate) struct Room<'py> {
    given: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    py: Python<'py>,
}

impl<'py> Room<'py> {
    /// Looks at the room, and for NumPy, before a key is taken.
    pub(crate) fn new(keys: &Bound<'py, PyAny>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let py = keys.py();
        let given = match out {
            None => {
                arrays(py)?.call_method0("numpy")?;
                None
            }
            Some(out) => Some((out.clone(), arrays(py)?.call_method1("room", (out, keys.len().ok()))?)),
        };
        Ok(Room { given, py })
    }

    /// The array, with what was answered; the caller's own has it even if the batch failed half-way.
    pub(crate) fn filled(self, answers: &[u8], done: PyResult<()>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let Some((out, view)) = self.given else {
            done?;
            let numpy = arrays(py)?.call_method0("numpy")?;
            let array = numpy.call_method1("empty", (answers.len(), "?"))?;
            PyBuffer::<u8>::get(&array.call_method1("view", ("u1",))?)?.copy_from_slice(py, answers)?;
            return Ok(array);
        };
        let places = view.len()?;
        let fits = answers.len().min(places);
        let part = view.get_item(pyo3::types::PySlice::new(py, 0, fits as isize, 1))?;
        PyBuffer::<u8>::get(&part)?.copy_from_slice(py, &answers[..fits])?;
        done?;
        if answers.len() != places {
            return Err(parameter(
                py,
                "out",
                format!("{places} places long"),
                &format!("as long as the {} keys", answers.len()),
                "write numpy.empty(len(keys), bool)",
            ));
        }
        Ok(out)
    }
}
