//! Filters as bytes, files and pickles.

use super::PyFilter;
use super::note::Note;
use super::state::State;
use crate::errors::{OrRaise, io_error};
use crate::goal::{to_secret, to_size};
use crate::tune::PyScheme;
use everbloom::internal::codec;
use everbloom::internal::filter::Timeline;
use everbloom::{AnyFilter, Decoder, Error, Hashing, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

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
        let decoder = Decoder::new().limit(limit).secret_key(secret.map(to_secret).transpose()?);
        let read = py.detach(|| -> Result<(AnyFilter, Note)> {
            let filter = match &scheme {
                Some(scheme) => decoder.scheme(scheme).decode(bytes),
                None => decoder.decode(bytes),
            };
            let note = codec::summarise(&mut &*bytes, bytes.len() as u64)?.note;
            Ok((filter.map_err(unpacked)?.into(), Note::read(&note)?))
        });
        let (filter, note) = read.or_raise(py)?;
        let read = Self::new(py, filter, note.window.as_ref().map(|(window, _)| *window))?;
        if let Some((_, clock)) = &note.window {
            let mut state = read.write(py);
            let resumed = state.timeline.as_mut().map_or(Ok(()), |timeline: &mut Timeline| timeline.resume(clock));
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

/// Writes a file aside and puts it in its place once it is whole and on disk.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
    // A link stays one: what it points to is replaced.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".everbloom");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).map_or(0o666, |data| data.permissions().mode() & 0o777);
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let mut file = builder.tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(1 << 16, file.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    // The name is on disk with its folder; where a folder cannot be synced, it is when the system does it.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// All bytes of a file.
pub(crate) fn contents(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    let read = py.detach(|| {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX)).map_err(std::io::Error::other)?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    read.map_err(|error: std::io::Error| io_error(py, path, &error))
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
    #[pyo3(signature = (path, compress = false))]
    fn save(&self, py: Python<'_>, path: PathBuf, compress: bool) -> PyResult<()> {
        let saved = self.looking(py, |state| replace(&path, |out| self.encode(state, compress, out)));
        saved.map_err(|error| io_error(py, &path, &error))
    }

    /// Reads a filter from a file that save, the command line or the library wrote.
    ///
    /// scheme is the one that it was built with, secret its 16 bytes. A compressed filter unpacks to at most limit.
    #[staticmethod]
    #[pyo3(signature = (path, *, scheme = None, secret = None, limit = None),
           text_signature = "(path, *, scheme=None, secret=None, limit='1GiB')")]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        scheme: Option<&Bound<'_, PyScheme>>,
        secret: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bytes = contents(py, &path)?;
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
