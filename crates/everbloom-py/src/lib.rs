//! The Python package `everbloom`: the library's filters as Python objects.
//!
//! Nothing is decided here. What Python gives is turned into what the library takes (`keys`, `batch`, `goal`), the library
//! answers, and what it answers is turned back. Kinds of filters are not named: the registry has them.

// Names of Python's side begin with `Py` where the library has the same.
#![allow(missing_docs)]

mod arrow;
mod batch;
mod errors;
mod files;
mod filter;
mod goal;
mod hashes;
mod keys;
mod mapped;
mod plan;
mod redis;
mod tune;
mod view;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// What a notebook shows of an object.
fn html<'py, T>(object: &Bound<'py, T>, what: &str) -> PyResult<Bound<'py, PyString>> {
    let html = object.py().import("everbloom._html")?.call_method1(what, (object.as_any(),))?;
    Ok(html.cast_into::<PyString>()?)
}

#[pymodule]
mod _everbloom {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::filter::{Audit, Interval, LagInterval, PyFilter, Status, WindowStats};
    #[pymodule_export]
    use crate::hashes::Hashes;
    #[pymodule_export]
    use crate::plan::{PyForecast, PyKind, PyPlan, PyPromise, PyStream, RateAt, kinds, plan};
    #[pymodule_export]
    use crate::tune::{PyContender, PyScheme, PyTuned, tune};
    #[pymodule_export]
    use crate::view::PyView;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // `everbloom.redis` calls it Filter.
        module.add("RedisFilter", module.py().get_type::<crate::redis::PyRedisFilter>())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
