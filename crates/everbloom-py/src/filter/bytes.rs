//! Filters as bytes, files and pickles.

use super::PyFilter;
use super::note::Note;
use super::state::State;
use crate::errors::{OrRaise, io_error};
use crate::files::{Name, contents, replace};
use crate::goal::{to_secret, to_size};
use crate::tune::PyScheme;
use everbloom::kind::Timeline;
use everbloom::{AnyFilter, Error, Hashing, Result, codec};
use everbloom_all::KINDS;
use everbloom_tune::WithScheme;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::io::Write;

impl PyFilter {
    /// Writes the filter and its note.
    fn encode(&self, state: &State, compress: bool, out: &mut dyn Write) -> std::io::Result<()> {
        let mut note = self.note.clone();
        note.window = state.timeline.as_ref().map(|timeline| (timeline.window(), timeline.state()));
        note.importance_max = self.importance_max;
        match compress {
            true => codec::encode_compressed_to(state.filter.as_ref(), &note.text(), out),
            false => codec::encode_noted_to(state.filter.as_ref(), &note.text(), out),
        }
    }

    fn encoded(&self, py: Python<'_>, compress: bool) -> PyResult<Vec<u8>> {
        let encoded: Result<Vec<u8>> = self.looking(py, |state| {
            let mut bytes = Vec::new();
            self.encode(state, compress, &mut bytes)?;
            Ok(bytes)
        });
        encoded.or_raise(py)
    }

    fn decoded(
        py: Python<'_>,
        bytes: &[u8],
        scheme: Option<&Bound<'_, PyScheme>>,
        secret: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let limit = match limit {
            Some(limit) => to_size(limit, "limit")?.named("limit").get().or_raise(py)? / 8,
            None => 1 << 30,
        };
        let scheme = scheme.map(|scheme| scheme.get().scheme.clone());
        let decoder = KINDS.decoder().limit(limit).secret_key(secret.map(to_secret).transpose()?);
        let read = py.detach(|| -> Result<(AnyFilter, Note)> {
            let filter = match &scheme {
                Some(scheme) => decoder.scheme(scheme).decode(bytes),
                None => decoder.decode(bytes),
            };
            let note = KINDS.decoder().summarise(&mut &*bytes, bytes.len() as u64)?.note;
            Ok((filter.map_err(unpacked)?.into(), Note::read(&note)?))
        });
        let (filter, note) = read.or_raise(py)?;
        let read = Self::new(py, filter, note.window.as_ref().map(|(window, _)| *window))?;
        if let Some((_, clock)) = &note.window {
            let resume = |timeline: &mut Timeline| timeline.resume(clock);
            let resumed = read.write(py).timeline.as_mut().map_or(Ok(()), resume);
            resumed.or_raise(py)?;
        }
        let mut read = read.with_importance(py, note.importance_max)?.with_scheme(scheme);
        read.note = note;
        Ok(read)
    }
}

/// What is compressed may be larger than was allowed.
fn unpacked(error: Error) -> Error {
    match error {
        Error::Parameter { name: "unpacked size", given, needed, .. } => Error::Parameter {
            name: "limit",
            given: format!("too little for a filter that unpacks to {given}"),
            needed,
            remedy: "allow that much, as limit='4GiB'".into(),
        },
        error => error,
    }
}

/// The bytes of `bytes`, or of anything else with a buffer.
pub(crate) fn buffer_bytes<'py>(buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = buffer.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let view = buffer.py().import("builtins")?.call_method1("memoryview", (buffer,))?;
    Ok(view.call_method0("tobytes")?.cast_into::<PyBytes>()?)
}

#[pymethods]
impl PyFilter {
    /// Writes the filter to a file, which the command line and the library read as well. The file is replaced only once
    /// all is written and on disk.
    ///
    /// >>> import everbloom, os, tempfile
    /// >>> seen = everbloom.Filter("bloom", expect=1000)
    /// >>> path = os.path.join(tempfile.mkdtemp(), "seen.ebf")
    /// >>> seen.save(path)
    /// >>> everbloom.Filter.load(path) == seen
    /// True
    #[pyo3(signature = (path, compress = false))]
    fn save(&self, py: Python<'_>, path: Name, compress: bool) -> PyResult<()> {
        let path = path.0;
        let saved = self.looking(py, |state| replace(&path, |out| self.encode(state, compress, out)));
        saved.map_err(|error| io_error(py, &path, &error))
    }

    /// Reads a filter from a file that save, the command line or the library wrote.
    ///
    /// scheme is the one that it was built with, secret its 16 bytes. A compressed filter unpacks to at most limit.
    ///
    /// >>> import everbloom, os, tempfile
    /// >>> path = os.path.join(tempfile.mkdtemp(), "seen.ebf")
    /// >>> everbloom.Filter("bloom", expect=1000, secret=b"sixteen secrets.").save(path)
    /// >>> everbloom.Filter.load(path, secret=b"sixteen secrets.").kind
    /// 'bloom'
    #[staticmethod]
    #[pyo3(signature = (path, *, scheme = None, secret = None, limit = None),
           text_signature = "(path, *, scheme=None, secret=None, limit='1GiB')")]
    fn load(
        py: Python<'_>,
        path: Name,
        scheme: Option<&Bound<'_, PyScheme>>,
        secret: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bytes = contents(py, &path.0)?;
        Self::decoded(py, &bytes, scheme, secret, limit)
    }

    /// The filter as bytes, which are the same on every machine.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("bloom", expect=1000)
    /// >>> seen.add("key")
    /// True
    /// >>> "key" in everbloom.Filter.from_bytes(seen.to_bytes())
    /// True
    #[pyo3(signature = (compress = false))]
    fn to_bytes<'py>(&self, py: Python<'py>, compress: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.encoded(py, compress).map(|bytes| PyBytes::new(py, &bytes))
    }

    /// The filter in these bytes, which are trusted with nothing. The keywords are those of load.
    ///
    /// >>> import everbloom
    /// >>> try:
    /// ...     everbloom.Filter.from_bytes(b"something else")
    /// ... except everbloom.CorruptError as error:
    /// ...     print(error)
    /// this is not an everbloom filter; give what save or to_bytes wrote
    #[staticmethod]
    #[pyo3(signature = (buffer, *, scheme = None, secret = None, limit = None),
           text_signature = "(buffer, *, scheme=None, secret=None, limit='1GiB')")]
    fn from_bytes(
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        scheme: Option<&Bound<'_, PyScheme>>,
        secret: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bytes = buffer_bytes(buffer)?;
        Self::decoded(py, bytes.as_bytes(), scheme, secret, limit)
    }

    /// Pickles are the filter's bytes, out of band from protocol 5 on.
    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyTuple>> {
        let (py, filter) = (slf.py(), slf.get());
        if matches!(filter.hashing, Hashing::SipHash { .. }) {
            return Err(PyTypeError::new_err(
                "a filter with a secret cannot be pickled, since the secret would be; send to_bytes(), and give secret= to from_bytes",
            ));
        }
        let scheme = filter.scheme.as_ref().map(|scheme| PyBytes::new(py, &scheme.encode()));
        let mut bytes = filter.to_bytes(py, false)?.into_any();
        if protocol >= 5 {
            bytes = py.import("pickle")?.getattr("PickleBuffer")?.call1((bytes,))?;
        }
        let restore = py.import("everbloom._pickle")?.getattr("restored")?;
        (restore, (slf.get_type(), bytes, scheme)).into_pyobject(py)
    }
}
