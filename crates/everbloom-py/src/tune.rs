//! `everbloom.tune`: from key lists and a query log to a scheme, and from that to filters.

use crate::errors::{OrRaise, io_error};
use crate::files::{Name, contents, replace};
use crate::filter::{PyFilter, buffer_bytes};
use crate::goal::{to_count, to_seed, to_size};
use crate::{batch, html};
use everbloom::kind::rate_text;
use everbloom::{Hashing, KeyHash};
use everbloom_tune::Scheme;
use everbloom_tune::querylog::{self, Contender, Options, Sample, Tuned};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::io::Write;
use std::sync::Arc;

/// Learns from a log of queries how to build a filter that errs less often on such queries.
///
/// members are the keys of the set, or several lists of them for several sets that share what is learned; log are the keys
/// that were asked for, in order of time. Learned from the first half of the log, judged on the second.
///
/// >>> import everbloom
/// >>> members = range(1000)
/// >>> log = [5000 + time * time % 307 for time in range(20_000)]
/// >>> tuned = everbloom.tune(members, log, memory=1024)
/// >>> tuned.winner.fpr < 0.1 * tuned.standard.fpr
/// True
/// >>> 999 in tuned.scheme.build(members)
/// True
#[pyfunction]
#[pyo3(signature = (members, log, *, memory, sets_sharing = None, by_length = false, min_hashes = 1, max_hashes = 32, seed = None),
       text_signature = "(members, log, *, memory, sets_sharing=None, by_length=False, min_hashes=1, max_hashes=32, seed=0)")]
#[allow(clippy::too_many_arguments)]
pub(crate) fn tune(
    py: Python<'_>,
    members: &Bound<'_, PyAny>,
    log: &Bound<'_, PyAny>,
    memory: &Bound<'_, PyAny>,
    sets_sharing: Option<&Bound<'_, PyAny>>,
    by_length: bool,
    min_hashes: u32,
    max_hashes: u32,
    seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTuned> {
    let seed = seed.map_or(Ok(0), to_seed)?;
    let hashing = if by_length { Hashing::measured(seed) } else { Hashing::seeded(seed) };
    let sets = member_lists(members, &hashing)?;
    let log = batch::hashes_of(log, &hashing)?;
    let mut options = Options::new(to_size(memory, "memory")?.named("memory").get().or_raise(py)?);
    if let Some(sets) = sets_sharing {
        options.sets_sharing = Some(to_count(sets, "sets_sharing")?.named("sets_sharing").get().or_raise(py)?);
    }
    (options.min_hashes, options.max_hashes) = (min_hashes, max_hashes);
    let tuned = py.detach(|| querylog::tune(&Sample::new(hashing, sets, log)?, &options)).or_raise(py)?;
    Ok(PyTuned { tuned, memory_bits: options.memory_bits })
}

/// One list of keys, or a list of such lists.
fn member_lists(members: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<Vec<Vec<KeyHash>>> {
    let is_several = |first: &Bound<'_, PyAny>| {
        let is_key = first.is_instance_of::<PyTuple>() || !first.hasattr("__iter__").unwrap_or(false);
        !is_key && !first.is_instance_of::<PyString>() && !first.is_instance_of::<PyBytes>()
    };
    if let Ok(list) = members.cast::<PyList>()
        && list.iter().next().is_some_and(|first| is_several(&first))
    {
        return list.iter().map(|set| batch::hashes_of(&set, hashing)).collect();
    }
    Ok(vec![batch::hashes_of(members, hashing)?])
}

/// What tuning came to.
#[pyclass(frozen, module = "everbloom", name = "Tuned")]
pub(crate) struct PyTuned {
    tuned: Tuned,
    memory_bits: u64,
}

#[pymethods]
impl PyTuned {
    /// The filter that won.
    #[getter]
    fn winner(&self) -> PyContender {
        PyContender::from(&self.tuned.winner)
    }

    /// The ordinary filter of the same size.
    #[getter]
    fn standard(&self) -> PyContender {
        PyContender::from(&self.tuned.standard)
    }

    /// All that competed.
    #[getter]
    fn contenders(&self) -> Vec<PyContender> {
        self.tuned.contenders.iter().map(PyContender::from).collect()
    }

    /// A rate below which no hashes per class can go.
    #[getter]
    fn lower_bound(&self) -> f64 {
        self.tuned.lower_bound
    }

    /// The share of the second half's negative queries that ask for keys which the first half never showed.
    #[getter]
    fn unseen_share(&self) -> f64 {
        self.tuned.unseen_share
    }

    /// Negative queries in the second half of the log.
    #[getter]
    fn holdout_queries(&self) -> u64 {
        self.tuned.holdout_queries
    }

    /// The rate of false positives at which it is time to tune again.
    #[getter]
    fn retune_fpr(&self) -> f64 {
        self.tuned.retune_fpr
    }

    /// What else there is to know, a sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.tuned.notes.clone()
    }

    /// What to build filters with.
    #[getter]
    fn scheme(&self) -> PyScheme {
        PyScheme { scheme: self.tuned.scheme.clone(), memory_bits: Some(self.memory_bits) }
    }

    fn __repr__(&self) -> String {
        let (winner, standard) = (&self.tuned.winner, &self.tuned.standard);
        let (own, usual) = (rate_text(winner.score.fpr), rate_text(standard.score.fpr));
        format!("<everbloom.Tuned {}: {own} false positives, {usual} with a standard filter>", winner.kind)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        html(slf, "tuned")
    }
}

/// One of the competing filters.
#[pyclass(frozen, get_all, module = "everbloom", name = "Contender")]
pub(crate) struct PyContender {
    /// "standard", "popularity" or "stacked".
    kind: &'static str,
    /// The rate of false positives on the second half of the log.
    fpr: f64,
    /// Its standard error.
    error: f64,
    /// Negative queries of the second half that the filter took for members.
    false_positives: u64,
    /// The rate that the first half predicts.
    predicted_fpr: f64,
    /// Bits of the average set's filter.
    filter_bits: u64,
    /// Bits of the scheme that a query needs, shared by all sets.
    table_bits: u64,
}

impl From<&Contender> for PyContender {
    fn from(contender: &Contender) -> Self {
        PyContender {
            kind: contender.kind,
            fpr: contender.score.fpr,
            error: contender.score.error,
            false_positives: contender.score.false_positives,
            predicted_fpr: contender.predicted_fpr,
            filter_bits: contender.filter_bits,
            table_bits: contender.table_bits,
        }
    }
}

#[pymethods]
impl PyContender {
    fn __repr__(&self) -> String {
        format!("Contender(kind='{}', fpr={:.3e}, error={:.1e})", self.kind, self.fpr, self.error)
    }
}

/// What a query log taught, to build filters with.
#[pyclass(frozen, eq, module = "everbloom", name = "Scheme")]
pub(crate) struct PyScheme {
    pub(crate) scheme: Arc<Scheme>,
    /// The memory that it was tuned for, if that is known.
    memory_bits: Option<u64>,
}

impl PartialEq for PyScheme {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme
    }
}

impl PyScheme {
    fn decoded(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let scheme = Scheme::decode(bytes).or_raise(py)?;
        Ok(PyScheme { scheme: Arc::new(scheme), memory_bits: None })
    }
}

#[pymethods]
impl PyScheme {
    /// The name by which filters know it.
    #[getter]
    fn id(&self) -> String {
        self.scheme.id().to_string()
    }

    /// The filter of these members: in the memory that was tuned for, or in as many bits for each key.
    ///
    /// >>> import everbloom
    /// >>> log = [5000 + time * time % 307 for time in range(20_000)]
    /// >>> scheme = everbloom.tune(range(1000), log, memory=1024).scheme
    /// >>> bool(scheme.build(range(1000)).contains_many(range(1000)).all())
    /// True
    #[pyo3(signature = (members, *, memory = None))]
    fn build(&self, members: &Bound<'_, PyAny>, memory: Option<&Bound<'_, PyAny>>) -> PyResult<PyFilter> {
        let py = members.py();
        let hashes = batch::hashes_of(members, self.scheme.hashing())?;
        let usual = self.scheme.bits_per_key() * hashes.len() as f64;
        let bits = match (memory, self.memory_bits) {
            (Some(memory), _) => to_size(memory, "memory")?.named("memory").get().or_raise(py)?,
            (None, Some(bits)) => bits,
            // Rounded up: no less than was tuned for.
            (None, None) => usual.ceil() as u64,
        };
        let filter = py.detach(|| querylog::build(&self.scheme, &hashes, bits)).or_raise(py)?;
        Ok(PyFilter::new(py, filter, None)?.with_scheme(Some(self.scheme.clone())))
    }

    /// The scheme as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.scheme.encode())
    }

    /// The scheme in these bytes.
    #[staticmethod]
    fn from_bytes(buffer: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::decoded(buffer.py(), buffer_bytes(buffer)?.as_bytes())
    }

    /// Writes the scheme to a file, which the command line reads as well.
    fn save(&self, py: Python<'_>, path: Name) -> PyResult<()> {
        let path = path.0;
        let bytes = self.scheme.encode();
        let saved = py.detach(|| replace(&path, |out: &mut dyn Write| out.write_all(&bytes)));
        saved.map_err(|error| io_error(py, &path, &error))
    }

    /// Reads a scheme from a file that save or the command line wrote.
    #[staticmethod]
    fn load(py: Python<'_>, path: Name) -> PyResult<Self> {
        Self::decoded(py, &contents(py, &path.0)?)
    }

    fn __hash__(&self) -> u64 {
        self.scheme.id().0
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        (slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(py),)).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        format!("<everbloom.Scheme {}>", self.scheme.id())
    }
}
