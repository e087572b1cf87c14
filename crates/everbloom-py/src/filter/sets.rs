//! Filters as sets: union, intersection, comparison.

use super::PyFilter;
use crate::errors::OrRaise;
use everbloom::kind::Combine;
use everbloom::{AnyFilter, Result, codec};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyNotImplemented, PyTuple};

fn combine(filter: &mut AnyFilter, other: &AnyFilter, how: Combine) -> Result<()> {
    match how {
        Combine::Union => filter.merge(other),
        Combine::Intersection => filter.intersect(other),
    }
}

impl PyFilter {
    /// Takes another filter into this one.
    pub(super) fn merge(&self, py: Python<'_>, other: &PyFilter, how: Combine) -> PyResult<()> {
        if std::ptr::eq(self, other) {
            // A filter with itself: a kind that cannot be merged still says so.
            let mut probe = self.looking(py, |state| state.filter.clone());
            let twin = probe.clone();
            return py.detach(|| combine(&mut probe, &twin, how)).or_raise(py);
        }
        let merged =
            self.state.changing_by(py, &other.state, |this, that| combine(&mut this.filter, &that.filter, how));
        merged.or_raise(py)
    }

    fn combined(&self, py: Python<'_>, others: &Bound<'_, PyTuple>, how: Combine) -> PyResult<Self> {
        let all = self.cloned(py);
        for other in others {
            all.merge(py, as_filter(&other)?, how)?;
        }
        Ok(all)
    }

    /// Whether both have the same spec, hash alike and have the same cells.
    fn same(&self, py: Python<'_>, other: &PyFilter) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        // A copy, so that one lock is held at a time.
        let other = other.looking(py, |state| state.filter.clone());
        self.looking(py, |state| codec::same_cells(state.filter.as_ref(), other.as_ref()))
    }

    /// Whether every cell of this filter is in the other one: all that can be known of their keys.
    fn is_within(&self, py: Python<'_>, other: &PyFilter) -> PyResult<bool> {
        let both = self.cloned(py);
        both.merge(py, other, Combine::Intersection)?;
        Ok(both.same(py, self))
    }
}

fn as_filter<'a>(other: &'a Bound<'_, PyAny>) -> PyResult<&'a PyFilter> {
    let name = || other.get_type().name().map_or_else(|_| "this".to_string(), |name| name.to_string());
    let filter = other
        .cast::<PyFilter>()
        .map_err(|_| PyTypeError::new_err(format!("this takes filters, not {}; for keys call update", name())))?;
    Ok(filter.get())
}

type Answer<'py> = PyResult<Bound<'py, PyAny>>;

#[pymethods]
impl PyFilter {
    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        operator(slf, other, Combine::Union)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        operator(slf, other, Combine::Intersection)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().merge(slf.py(), as_filter(other)?, Combine::Union)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().merge(slf.py(), as_filter(other)?, Combine::Intersection)
    }

    /// A filter with the keys of all, which must have the same spec and seed.
    ///
    /// >>> import everbloom
    /// >>> monday, tuesday = everbloom.Filter("bloom", expect=1000), everbloom.Filter("bloom", expect=1000)
    /// >>> monday.update(["alice", "bob"])
    /// >>> tuesday.update(["bob", "carol"])
    /// >>> "alice" in monday.union(tuesday), "carol" in (monday | tuesday)
    /// (True, True)
    #[pyo3(signature = (*others))]
    fn union(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> PyResult<Self> {
        self.combined(py, others, Combine::Union)
    }

    /// A filter with the keys that are in all of them, and false positives: no more than the filter with fewest has.
    ///
    /// >>> import everbloom
    /// >>> monday, tuesday = everbloom.Filter("bloom", expect=1000), everbloom.Filter("bloom", expect=1000)
    /// >>> monday.update(["alice", "bob"])
    /// >>> tuesday.update(["bob", "carol"])
    /// >>> both = monday.intersection(tuesday)
    /// >>> "bob" in both, "alice" in both
    /// (True, False)
    #[pyo3(signature = (*others))]
    fn intersection(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> PyResult<Self> {
        self.combined(py, others, Combine::Intersection)
    }

    /// Keeps the keys that are in all of them.
    ///
    /// >>> import everbloom
    /// >>> monday, tuesday = everbloom.Filter("bloom", expect=1000), everbloom.Filter("bloom", expect=1000)
    /// >>> monday.update(["alice", "bob"])
    /// >>> tuesday.update(["bob", "carol"])
    /// >>> monday.intersection_update(tuesday)
    /// >>> "bob" in monday, "alice" in monday
    /// (True, False)
    #[pyo3(signature = (*others))]
    fn intersection_update(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        others.iter().try_for_each(|other| self.merge(py, as_filter(&other)?, Combine::Intersection))
    }

    /// Whether every key of this filter is in the other one, as far as their cells tell.
    ///
    /// >>> import everbloom
    /// >>> monday, tuesday = everbloom.Filter("bloom", expect=1000), everbloom.Filter("bloom", expect=1000)
    /// >>> monday.update(["alice", "bob"])
    /// >>> tuesday.update(["bob", "carol"])
    /// >>> monday.issubset(monday | tuesday), monday.issubset(tuesday)
    /// (True, False)
    #[pyo3(signature = (other, /))]
    fn issubset(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.is_within(py, as_filter(other)?)
    }

    /// Whether every key of the other filter is in this one, as far as their cells tell.
    ///
    /// >>> import everbloom
    /// >>> monday, tuesday = everbloom.Filter("bloom", expect=1000), everbloom.Filter("bloom", expect=1000)
    /// >>> monday.update(["alice", "bob"])
    /// >>> tuesday.update(["bob", "carol"])
    /// >>> (monday | tuesday).issuperset(tuesday), monday >= tuesday
    /// (True, False)
    #[pyo3(signature = (other, /))]
    fn issuperset(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        as_filter(other)?.is_within(py, self)
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, how: CompareOp) -> Answer<'py> {
        let py = slf.py();
        let Ok(other) = other.cast::<PyFilter>() else { return Ok(not_implemented(py)) };
        let (one, other) = (slf.get(), other.get());
        let answer = match how {
            CompareOp::Eq => one.same(py, other),
            CompareOp::Ne => !one.same(py, other),
            CompareOp::Le => one.is_within(py, other)?,
            CompareOp::Lt => one.is_within(py, other)? && !one.same(py, other),
            CompareOp::Ge => other.is_within(py, one)?,
            CompareOp::Gt => other.is_within(py, one)? && !one.same(py, other),
        };
        Ok(pyo3::types::PyBool::new(py, answer).to_owned().into_any())
    }
}

fn not_implemented(py: Python<'_>) -> Bound<'_, PyAny> {
    PyNotImplemented::get(py).to_owned().into_any()
}

fn operator<'py>(slf: &Bound<'py, PyFilter>, other: &Bound<'py, PyAny>, how: Combine) -> Answer<'py> {
    let py = slf.py();
    let Ok(other) = other.cast::<PyFilter>() else { return Ok(not_implemented(py)) };
    let all = slf.get().cloned(py);
    all.merge(py, other.get(), how)?;
    Ok(Bound::new(py, all)?.into_any())
}
