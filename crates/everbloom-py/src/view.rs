//! `everbloom.View`: a filter that is asked where its bytes lie.

use crate::batch::Keys;
use crate::errors::{OrRaise, io_error};
use crate::files::{self, Name};
use crate::filter::{ask_many, hashed};
use crate::goal::to_secret;
use crate::keys;
use crate::mapped::Held;
use crate::plan::PyPromise;
use everbloom::View;
use everbloom_all::KINDS;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use self_cell::self_cell;

self_cell!(
    /// A view and the bytes that it looks at.
    struct Seen {
        owner: Held,
        #[covariant]
        dependent: View,
    }
);

/// A filter that is asked where its bytes lie, in a mapped file or in shared memory: nothing is read before it is needed,
/// and all processes share the same memory. For kinds that can be mapped, such as "bloom" and "blocked".
///
/// Replace a file that is in use by saving a new one over it, as save does; one that is cut short ends its readers.
///
/// >>> import everbloom, tempfile, os
/// >>> seen = everbloom.Filter("blocked", expect=1000)
/// >>> seen.update(["a", "b"])
/// >>> path = os.path.join(tempfile.mkdtemp(), "seen.ebf")
/// >>> seen.save(path)
/// >>> view = everbloom.View.open(path)
/// >>> "a" in view, "c" in view
/// (True, False)
#[pyclass(frozen, weakref, module = "everbloom", name = "View")]
pub(crate) struct PyView {
    seen: Seen,
}

impl PyView {
    fn new(py: Python<'_>, held: Held, secret: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let secret = secret.map(to_secret).transpose()?;
        let seen = Seen::try_new(held, |held| View::open_among(KINDS, held.bytes(), secret)).or_raise(py)?;
        Ok(PyView { seen })
    }

    fn view(&self) -> &View<'_> {
        self.seen.borrow_dependent()
    }
}

#[pymethods]
impl PyView {
    /// Looks at a filter in a buffer, such as shared memory or bytes. A buffer that does not begin at a multiple of 64
    /// bytes is copied.
    #[new]
    #[pyo3(signature = (buffer, *, secret = None))]
    fn of_buffer(py: Python<'_>, buffer: &Bound<'_, PyAny>, secret: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::new(py, Held::buffer(buffer)?, secret)
    }

    /// Maps a file.
    ///
    /// >>> import everbloom, os, tempfile
    /// >>> path = os.path.join(tempfile.mkdtemp(), "seen.ebf")
    /// >>> everbloom.Filter("blocked", expect=1000).save(path)
    /// >>> everbloom.View.open(path).kind
    /// 'blocked'
    #[staticmethod]
    #[pyo3(signature = (path, *, secret = None))]
    fn open(py: Python<'_>, path: Name, secret: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let file = files::open(py, &path.0)?;
        let held = Held::map(&path.0, file).map_err(|error| io_error(py, &path.0, &error))?;
        Self::new(py, held, secret)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let view = self.view();
        Ok(view.contains_hash(keys::hash(key, view.hashing())?))
    }

    /// Whether many keys seem to be inside: an array of bool, in order. A null in an Arrow column is not.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("blocked", expect=1000)
    /// >>> seen.update(["a", "b"])
    /// >>> view = everbloom.View(seen.to_bytes())
    /// >>> view.contains_many(["a", "c"])
    /// array([ True, False])
    #[pyo3(signature = (keys, *, out = None))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let hashing = *self.view().hashing();
        ask_many(keys, out, &hashing, &|py, keys, found| {
            self.seen.borrow_owner().check()?;
            py.detach(|| match keys {
                Keys::Hashes(hashes) => self.view().contains_hashes(hashes, found),
                keys => self.view().contains_hashes(&hashed(keys, &hashing), found),
            });
            Ok(())
        })
    }

    /// Reads all bytes, and compares them with their checksum; CorruptError if they are damaged.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("blocked", expect=1000)
    /// >>> seen.update(["a", "b"])
    /// >>> view = everbloom.View(seen.to_bytes())
    /// >>> view.verify()
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.seen.borrow_owner().check()?;
        py.detach(|| self.view().verify()).or_raise(py)
    }

    /// The kind and every parameter, as specs are written.
    #[getter]
    fn spec(&self) -> String {
        self.view().spec().to_string()
    }

    /// The kind of filter.
    #[getter]
    fn kind(&self) -> &str {
        self.view().spec().kind()
    }

    /// The seed of hashing; None where keys are hashed with a secret.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.view().hashing().seed()
    }

    /// What was promised when the filter was planned.
    #[getter]
    fn promise(&self) -> PyPromise {
        PyPromise::from(&self.view().promise())
    }

    /// A view of a file is pickled as its path.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let path =
            self.seen.borrow_owner().path().filter(|_| self.view().hashing().seed().is_some()).ok_or_else(|| {
                PyTypeError::new_err(
                    "only a view of a file, without a secret, can be pickled; send its bytes or its name",
                )
            })?;
        let path = std::path::absolute(path)?;
        let reopen = py.import("everbloom._pickle")?.getattr("reopened")?;
        (reopen, (path.into_os_string(),)).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        match self.seen.borrow_owner().path() {
            Some(path) => format!("<everbloom.View '{}' of {}>", self.spec(), path.display()),
            None => format!("<everbloom.View '{}'>", self.spec()),
        }
    }
}
