//! `everbloom.Filter`: any filter of the library, set-like and safe from any thread.
//!
//! The filter is behind a lock. Whoever waits for it, or works on it for long, lets other Python threads run meanwhile,
//! and no Python code ever runs while it is held.

mod audit;
mod bytes;
mod guarded;
mod many;
mod note;
mod sets;
mod state;

pub(crate) use audit::{Audit, Interval, LagInterval};
pub(crate) use bytes::buffer_bytes;
use everbloom::kind::standing;
use everbloom_all::KINDS;
pub(crate) use many::{Given, Room, ask_many, importances};
pub(crate) use state::hashed;

use crate::errors::{OrRaise, parameter};
use crate::goal::{Besides, Wanted};
use crate::hashes::Hashes;
use crate::plan::{PyPromise, parameters_of};
use crate::{html, keys};
use everbloom::kind::{Standing, Windowed, size_text};
use everbloom::{AnyFilter, Filter, Hashing, Importance, ImportanceScale, Importances, Plan, Verdict};
use everbloom_forecast::Audits;
use everbloom_tune::Scheme;
use guarded::{Guarded, Reading, Writing};
use note::Note;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use state::{Arrivals, State};
use std::sync::Arc;
use std::time::Duration;

/// A set of keys in fixed memory that errs at a known rate.
///
/// A filter answers whether a key has been here. It may take a new key for an old one, at most as often as it promises;
/// filters for endless streams also forget what is long ago.
///
/// >>> import everbloom
/// >>> seen = everbloom.Filter(memory="1MiB", fpr="0.1%")
/// >>> seen.add("alice"), seen.add("alice")
/// (True, False)
/// >>> "alice" in seen, "bob" in seen
/// (True, False)
///
/// `spec` names a kind of filter (`everbloom.kinds()`) and as many of its parameters as are settled; the keywords say what
/// is wanted, as for `everbloom.plan`. A filter may be used from several threads at once.
#[pyclass(frozen, weakref, module = "everbloom", name = "Filter")]
pub(crate) struct PyFilter {
    hashing: Hashing,
    /// Whether a key can be inserted without looking at anything but the filter.
    plain: bool,
    scale: ImportanceScale,
    importance_max: Option<f64>,
    scheme: Option<Arc<Scheme>>,
    note: Note,
    state: Guarded,
}

impl PyFilter {
    /// A filter as planned, or as decoded.
    pub(crate) fn new(py: Python<'_>, filter: AnyFilter, window: Option<Duration>) -> PyResult<Self> {
        let hashing = *filter.hashing();
        let state = State::new(filter, window).or_raise(py)?;
        Ok(PyFilter {
            hashing,
            plain: state.is_plain(),
            scale: ImportanceScale::linear(1.0).or_raise(py)?,
            importance_max: None,
            scheme: None,
            note: Note::default(),
            state: Guarded::new(state),
        })
    }

    /// Allocates what was planned.
    pub(crate) fn planned(py: Python<'_>, plan: &Plan, besides: Besides) -> PyResult<Self> {
        let filter = py.detach(|| besides.build(plan)).or_raise(py)?;
        Self::new(py, filter, besides.window)?.with_importance(py, besides.importance_max)
    }

    pub(crate) fn with_importance(mut self, py: Python<'_>, max: Option<f64>) -> PyResult<Self> {
        self.scale = ImportanceScale::linear(max.unwrap_or(1.0)).or_raise(py)?;
        self.importance_max = max;
        Ok(self)
    }

    pub(crate) fn with_scheme(mut self, scheme: Option<Arc<Scheme>>) -> Self {
        self.scheme = scheme;
        self
    }

    fn read(&self, py: Python<'_>) -> Reading<'_> {
        self.state.read(py)
    }

    fn write(&self, py: Python<'_>) -> Writing<'_> {
        self.state.write(py)
    }

    fn looking<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&State) -> T + Send) -> T {
        self.state.looking(py, look)
    }

    fn changing<T: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut State) -> T + Send) -> T {
        self.state.changing(py, change)
    }

    /// A copy of the filter, and the length of its window if that is one of time.
    pub(crate) fn for_servers(&self, py: Python<'_>) -> (AnyFilter, Option<Duration>) {
        self.looking(py, |state| (state.filter.clone(), state.timeline.as_ref().map(|timeline| timeline.window())))
    }

    /// The largest importance that was given, if one was.
    pub(crate) fn largest_importance(&self) -> Option<f64> {
        self.importance_max
    }

    /// A copy of everything but the lock.
    fn cloned(&self, py: Python<'_>) -> Self {
        let state = self.looking(py, State::clone);
        PyFilter { scheme: self.scheme.clone(), note: self.note.clone(), state: Guarded::new(state), ..*self }
    }

    /// How much an arrival matters.
    fn importance(&self, py: Python<'_>, value: Option<&Bound<'_, PyAny>>) -> PyResult<Importance> {
        match value {
            None => Ok(Importance::FULL),
            Some(value) => self.scale.of(value.extract()?).or_raise(py),
        }
    }

    /// Refuses times where nobody asked for a window of time.
    fn check_timed(&self, py: Python<'_>) -> PyResult<()> {
        if self.read(py).timeline.is_some() {
            return Ok(());
        }
        let remedy = "ask for one, as Filter(window='24h', memory='64MiB')";
        Err(parameter(py, "at", "given", "left out: this filter has no window of time", remedy))
    }

    /// Does what [`PyFilter::add`] does for a filter that grows or has a clock, or with more to say of the key.
    #[inline(never)]
    fn add_with_care(
        &self,
        py: Python<'_>,
        hash: everbloom::KeyHash,
        importance: Option<&Bound<'_, PyAny>>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let importance = self.importance(py, importance)?;
        let time = at.map(many::to_micros).transpose()?.map(|time| [time]);
        if time.is_some() {
            self.check_timed(py)?;
        }
        let mut verdict = [Verdict::Distinct];
        let arrivals = time.as_ref().map_or(Arrivals::Now, |time| Arrivals::At(time));
        let keys = crate::batch::Keys::Hashes(std::slice::from_ref(&hash));
        let judged = self.write(py).observe(keys, &self.hashing, Importances::All(importance), arrivals, &mut verdict);
        judged.or_raise(py)?;
        Ok(verdict[0].is_distinct())
    }
}

/// The kind of a filter, as the registry has it.
fn kind_of(filter: &dyn Filter) -> everbloom::Result<&'static everbloom::kind::Kind> {
    KINDS.of(filter.spec())
}

#[pymethods]
impl PyFilter {
    #[new]
    #[pyo3(
        signature = (spec = "auto", **goal),
        text_signature = "(spec='auto', *, memory=None, fpr=None, expect=None, fnr=None, window=None, stream=None, \
                          importance=False, cost_fp=None, cost_fn=None, memory_cost=None, audit=False, \
                          compressed=False, transmit=None, seed=0, secret=None)"
    )]
    fn build(py: Python<'_>, spec: &str, goal: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let wanted = Wanted::new(spec, goal, py)?;
        let plan = wanted.plan(py)?;
        Self::planned(py, &plan, wanted.besides)
    }

    /// Remembers a key; True if it seems new.
    ///
    /// importance is a number from 0 to importance_max: the more, the longer a key is remembered, if the kind can. at is
    /// the time of the arrival, in seconds since 1970 or as a datetime, for a filter with a window of time. Such a window
    /// moves on as arrivals come: until the next one, `in` still finds a key that is too old.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter(memory="64KiB")
    /// >>> seen.add("alice"), seen.add(7), seen.add(("user", 7)), seen.add("alice")
    /// (True, True, True, False)
    #[pyo3(signature = (key, /, *, importance = None, at = None))]
    fn add(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        importance: Option<&Bound<'_, PyAny>>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let hash = keys::hash(key, &self.hashing)?;
        if self.plain && importance.is_none() && at.is_none() {
            return Ok(self.state.insert(py, hash));
        }
        self.add_with_care(py, hash, importance, at)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = keys::hash(key, &self.hashing)?;
        Ok(self.state.contains(py, hash))
    }

    /// Takes one insertion of a key back; KeyError if it is not there. For kinds that can remove, such as "counting".
    ///
    /// Only keys that were added may be removed: another one may share its cells with keys that are inside.
    ///
    /// >>> import everbloom
    /// >>> cached = everbloom.Filter("counting", expect=1000)
    /// >>> cached.add("page")
    /// True
    /// >>> cached.remove("page")
    /// >>> "page" in cached
    /// False
    #[pyo3(signature = (key, /))]
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.discard(py, key)? {
            true => Ok(()),
            false => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Takes one insertion of a key back, if it is there; says whether it was.
    ///
    /// >>> import everbloom
    /// >>> cached = everbloom.Filter("counting", expect=1000)
    /// >>> cached.add("page"), cached.discard("page"), cached.discard("page")
    /// (True, True, False)
    #[pyo3(signature = (key, /))]
    fn discard(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = keys::hash(key, &self.hashing)?;
        let removed = self.write(py).filter.removal().map(|removal| removal.remove_hash(hash));
        removed.or_raise(py)
    }

    /// How often a key came, or seems to have. For kinds that count, such as "spectral".
    ///
    /// >>> import everbloom
    /// >>> words = everbloom.Filter("spectral", expect=1000)
    /// >>> words.update("to be or not to be".split())
    /// >>> words.count("be"), words.count("question")
    /// (2, 0)
    #[pyo3(signature = (key, /))]
    fn count(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = keys::hash(key, &self.hashing)?;
        let counted = many::counts(&self.read(py).filter).map(|counts| counts.count_hash(hash));
        counted.or_raise(py)
    }

    /// The items that the filter has not seen yet, one by one as they come; it remembers every one.
    ///
    /// key says what of an item is its key; importance and at are values, or functions of an item.
    ///
    /// >>> import everbloom
    /// >>> list(everbloom.Filter(memory="64KiB").unseen("to be or not to be".split()))
    /// ['to', 'be', 'or', 'not']
    #[pyo3(signature = (items, *, key = None, importance = None, at = None))]
    fn unseen<'py>(
        slf: &Bound<'py, Self>,
        items: &Bound<'py, PyAny>,
        key: Option<&Bound<'py, PyAny>>,
        importance: Option<&Bound<'py, PyAny>>,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("everbloom._unseen")?.call_method1("unseen_by", (slf, items, key, importance, at))
    }

    /// Hashes keys once, for this filter and every other one with the same seed or secret.
    ///
    /// >>> import everbloom
    /// >>> first, second = everbloom.Filter("bloom", expect=1000), everbloom.Filter("blocked", expect=1000)
    /// >>> hashes = first.hashes(["a", "b"])
    /// >>> first.update(hashes)
    /// >>> first.contains_many(hashes), second.contains_many(hashes)
    /// (array([ True,  True]), array([False, False]))
    fn hashes(&self, keys: &Bound<'_, PyAny>) -> PyResult<Hashes> {
        Hashes::new(keys, &self.hashing)
    }

    /// Begins new generations: what is older than the window is forgotten, counts fade.
    ///
    /// >>> import everbloom
    /// >>> recent = everbloom.Filter(window=1000, fpr=0.01)
    /// >>> recent.add("key")
    /// True
    /// >>> recent.advance(100)
    /// >>> "key" in recent
    /// False
    #[pyo3(signature = (generations = 1))]
    fn advance(&self, py: Python<'_>, generations: u64) -> PyResult<()> {
        let advanced = self.changing(py, |state| match generations {
            0 => Ok(()),
            _ => {
                state.filter.advance()?;
                let windowed: Option<&mut dyn Windowed> = state.filter.as_windowed();
                if let Some(windowed) = windowed {
                    windowed.advance_by(generations - 1);
                }
                Ok(())
            }
        });
        advanced.or_raise(py)
    }

    /// Forgets everything, as if just built.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("bloom", expect=1000)
    /// >>> seen.add("key")
    /// True
    /// >>> seen.clear()
    /// >>> "key" in seen, seen.arrivals
    /// (False, 0)
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.changing(py, State::clear).or_raise(py)
    }

    /// A filter of its own with the same contents.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("bloom", expect=1000)
    /// >>> later = seen.copy()
    /// >>> later.add("key"), "key" in seen
    /// (True, False)
    fn copy(&self, py: Python<'_>) -> Self {
        self.cloned(py)
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.cloned(py)
    }

    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
        self.cloned(py)
    }

    /// What the filter looks like now. Passes over its cells: 10 to 25 ms at 60 MiB.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("bloom", expect=1000, fpr=0.01)
    /// >>> seen.update(range(500))
    /// >>> status = seen.status()
    /// >>> status.arrivals, round(status.fill, 1), 450 < status.estimated_items < 550, status.promise
    /// (500, 0.3, True, 'kept')
    fn status(&self, py: Python<'_>) -> Status {
        let (status, standing) = self.looking(py, |state| {
            let status = state.filter.status();
            (status, standing(state.filter.as_ref(), &status))
        });
        Status::new(&status, standing)
    }

    /// How often the filter really erred so far, with intervals that hold the truth 19 times in 20; None if it was built without
    /// audit=True.
    ///
    /// >>> import everbloom
    /// >>> seen = everbloom.Filter("stable", memory="16KiB", fpr="1%", audit="64KiB")
    /// >>> seen.update(key * key % 50_021 for key in range(100_000))
    /// >>> found = seen.audit()
    /// >>> found.fnr.low < found.fnr.rate < found.fnr.high
    /// True
    /// >>> found.arrivals, found.breach
    /// (100000, None)
    fn audit(&self, py: Python<'_>) -> Option<Audit> {
        self.looking(py, |state| Some(Audit::new(&state.filter.audit_report()?, state.filter.breach())))
    }

    /// The kind and every parameter, as specs are written.
    #[getter]
    fn spec(&self, py: Python<'_>) -> String {
        self.read(py).filter.spec().to_string()
    }

    /// The kind of filter.
    #[getter]
    fn kind(&self, py: Python<'_>) -> String {
        self.read(py).filter.spec().kind().to_string()
    }

    /// Every parameter and its value.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let spec = self.read(py).filter.spec().clone();
        parameters_of(py, &spec)
    }

    /// The seed of hashing and of every random choice; None where keys are hashed with a secret.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.hashing.seed()
    }

    /// All of the memory that the filter takes now, in bits.
    #[getter]
    fn memory_bits(&self, py: Python<'_>) -> u64 {
        self.read(py).filter.memory_bits()
    }

    /// All of the memory that the filter takes now, in bytes.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> u64 {
        self.memory_bits(py).div_ceil(8)
    }

    /// What was promised when the filter was planned.
    #[getter]
    fn promise(&self, py: Python<'_>) -> PyPromise {
        PyPromise::from(&self.read(py).filter.promise())
    }

    /// How many keys were added or arrivals judged, repeats included.
    #[getter]
    fn arrivals(&self, py: Python<'_>) -> u64 {
        self.read(py).filter.arrivals()
    }

    /// Whether a key that was added is found for ever.
    #[getter]
    fn never_forgets(&self, py: Python<'_>) -> PyResult<bool> {
        let spec = self.read(py).filter.spec().clone();
        Ok(!KINDS.of(&spec).or_raise(py)?.forgets(&spec))
    }

    /// The largest importance that add takes.
    #[getter]
    fn importance_max(&self) -> f64 {
        self.importance_max.unwrap_or(1.0)
    }

    /// What became of the filter's window, if it keeps one. Passes over its cells where that is one of time.
    #[getter]
    fn window(&self, py: Python<'_>) -> Option<WindowStats> {
        self.changing(py, |state| {
            let arrivals = state.filter.as_windowed().map(|windowed| windowed.window()).filter(|window| *window > 0)?;
            let status = state.timeline.as_mut().map(|timeline| timeline.status(state.filter.as_ref()));
            Some(WindowStats {
                seconds: state.timeline.as_ref().map(|timeline| timeline.window().as_secs_f64()),
                planned_arrivals: arrivals,
                most_arrivals: status.map(|status| status.most_arrivals),
                highest_fpr: status.map(|status| status.highest_fpr),
                late: status.map(|status| status.late),
            })
        })
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.arrivals(py) > 0
    }

    fn __sizeof__(&self, py: Python<'_>) -> usize {
        size_of::<Self>() + self.memory_bytes(py) as usize
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = self.read(py);
        let promise = PyPromise::from(&state.filter.promise());
        let size = size_text(state.filter.memory_bits());
        format!(
            "<everbloom.Filter '{}', {size}, {}, {} arrivals>",
            state.filter.spec(),
            promise.in_words(),
            state.filter.arrivals()
        )
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        html(slf, "filter")
    }

    #[classmethod]
    #[pyo3(signature = (_item, /))]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, _item: &Bound<'py, PyAny>) -> Bound<'py, PyType> {
        class.clone()
    }
}

/// What a filter looks like now.
#[pyclass(frozen, get_all, module = "everbloom", name = "Status")]
pub(crate) struct Status {
    /// Arrivals judged or keys added so far.
    arrivals: u64,
    /// The share of cells in use.
    fill: f64,
    /// The rate of false positives to expect of the next key, from the present contents.
    estimated_fpr: f64,
    /// How many distinct keys are inside, as far as the filter can tell.
    estimated_items: Option<f64>,
    /// Keys for which memory to grow was refused.
    refused: u64,
    /// Counters at their largest value, which may stand for more.
    full_counters: u64,
    /// Whether the promise still holds: "kept", "broken" or "none".
    promise: &'static str,
}

impl Status {
    pub(crate) fn new(status: &everbloom::Status, standing: Standing) -> Self {
        Status {
            arrivals: status.arrivals,
            fill: status.fill,
            estimated_fpr: status.estimated_fpr,
            estimated_items: status.estimated_items,
            refused: status.refused,
            full_counters: status.full_counters,
            promise: standing.name(),
        }
    }
}

#[pymethods]
impl Status {
    fn __repr__(&self) -> String {
        let items = self.estimated_items.map_or("None".to_string(), |items| format!("{items:.0}"));
        format!(
            "Status(arrivals={}, fill={:.4}, estimated_fpr={:.3e}, estimated_items={items}, promise='{}')",
            self.arrivals, self.fill, self.estimated_fpr, self.promise
        )
    }
}

/// What became of a window.
#[pyclass(frozen, get_all, module = "everbloom", name = "WindowStats")]
pub(crate) struct WindowStats {
    /// The length of a window of time; None where it is counted in arrivals.
    seconds: Option<f64>,
    /// The arrivals of a window that the filter was planned for.
    planned_arrivals: u64,
    /// The most that came, of a window of time.
    most_arrivals: Option<u64>,
    /// The highest rate of false positives that was seen, of a window of time.
    highest_fpr: Option<f64>,
    /// Arrivals with a time before that of an earlier one.
    late: Option<u64>,
}

#[pymethods]
impl WindowStats {
    fn __repr__(&self) -> String {
        match self.seconds {
            Some(seconds) => format!(
                "WindowStats(seconds={seconds}, planned_arrivals={}, most_arrivals={}, late={})",
                self.planned_arrivals,
                self.most_arrivals.unwrap_or(0),
                self.late.unwrap_or(0)
            ),
            None => format!("WindowStats(planned_arrivals={})", self.planned_arrivals),
        }
    }
}
