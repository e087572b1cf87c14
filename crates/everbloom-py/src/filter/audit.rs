//! What an audit found, for Python.

use everbloom_forecast::{AuditReport, Breach, Measured};
use pyo3::prelude::*;

/// A rate that was measured, and the interval in which the true one is 19 times in 20.
#[pyclass(frozen, get_all, module = "everbloom", name = "Interval")]
#[derive(Clone, Copy)]
pub(crate) struct Interval {
    /// The rate.
    rate: f64,
    /// The lower end of the interval.
    low: f64,
    /// The upper end.
    high: f64,
    /// Arrivals of which it is a rate, about.
    of: f64,
}

impl From<Measured> for Interval {
    fn from(measured: Measured) -> Self {
        Interval { rate: measured.rate, low: measured.low, high: measured.high, of: measured.of }
    }
}

#[pymethods]
impl Interval {
    fn __repr__(&self) -> String {
        format!("Interval(rate={:.3e}, low={:.3e}, high={:.3e}, of={:.0})", self.rate, self.low, self.high, self.of)
    }
}

/// Missed repeats whose keys were last seen at least lag arrivals ago, and less than twice as many; or those of an importance.
#[pyclass(frozen, get_all, module = "everbloom", name = "LagInterval")]
#[derive(Clone, Copy)]
pub(crate) struct LagInterval {
    /// Arrivals since the key was last seen, at least.
    lag: u64,
    /// The rate of false negatives there.
    fnr: Interval,
}

#[pymethods]
impl LagInterval {
    fn __repr__(&self) -> String {
        format!("LagInterval(lag={}, fnr={})", self.lag, self.fnr.__repr__())
    }
}

/// How often a filter really erred, measured on some of its keys, which were followed exactly.
#[pyclass(frozen, get_all, module = "everbloom", name = "Audit")]
pub(crate) struct Audit {
    /// Arrivals that were seen.
    arrivals: u64,
    /// Keys that are followed.
    followed_keys: u64,
    /// One key in so many is followed; with 1 the rates are exact.
    one_in: u64,
    /// New keys that were taken for repeats; None if no key was new.
    fpr: Option<Interval>,
    /// Repeats that were taken for new; None if there were none.
    fnr: Option<Interval>,
    /// New keys that were taken for repeats, among the last 29 to 50 % of the arrivals.
    recent_fpr: Option<Interval>,
    recent_fnr: Option<Interval>,
    /// Repeats that were taken for new, by how long ago their keys were last seen.
    by_lag: Vec<LagInterval>,
    /// What of the promise is broken beyond chance, in words; None if nothing is.
    breach: Option<String>,
}

impl Audit {
    pub(super) fn new(report: &AuditReport, breach: Option<Breach>) -> Self {
        let lags = report.by_lag.iter().map(|lag| LagInterval { lag: lag.from, fnr: lag.measured_fnr.into() });
        Audit {
            arrivals: report.arrivals,
            followed_keys: report.followed_keys,
            one_in: report.one_in,
            fpr: report.measured_fpr.map(Interval::from),
            fnr: report.measured_fnr.map(Interval::from),
            recent_fpr: report.last.measured_fpr.map(Interval::from),
            recent_fnr: report.last.measured_fnr.map(Interval::from),
            by_lag: lags.collect(),
            breach: breach.map(|breach| breach.to_string()),
        }
    }
}

#[pymethods]
impl Audit {
    fn __repr__(&self) -> String {
        let rate = |interval: &Option<Interval>| interval.map_or("None".into(), |interval| interval.__repr__());
        format!(
            "Audit(arrivals={}, one_in={}, fpr={}, fnr={})",
            self.arrivals,
            self.one_in,
            rate(&self.fpr),
            rate(&self.fnr)
        )
    }
}
