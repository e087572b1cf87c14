//! What errors to expect of a filter on a stream that was described.
//!
//! A [`Promise`] is a bound that a filter keeps whatever comes; a [`Forecast`] adds what to expect on the
//! stream: how much is missed, after which lag, at which importance.

use everbloom::Promise;

/// How a forecast was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A formula.
    ClosedForm,
    /// A Markov chain of cells or keys, followed through the stream.
    Chain,
    /// A seeded run of a smaller filter on a shorter stream.
    Simulation,
}

impl Method {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::ClosedForm => "closed form",
            Method::Chain => "chain",
            Method::Simulation => "simulation",
        }
    }
}

/// A rate at a lag or an importance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateAt {
    /// Arrivals since the key was last seen, or the share of the greatest importance.
    pub at: f64,
    /// The predicted rate of false negatives there.
    pub predicted_fnr: f64,
    /// The share of all repeats that are there.
    pub share: f64,
}

/// The errors among arrivals of about one importance, each number a share of all arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ErrorsAt {
    /// Their mean importance, as a share of the greatest.
    pub importance: f64,
    /// Those whose key is new.
    pub distinct: f64,
    /// Repeats.
    pub duplicates: f64,
    /// Repeats that are missed.
    pub missed: f64,
}

/// The errors in one of several equal parts of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatesAt {
    /// Arrivals up to its middle.
    pub arrivals: f64,
    /// The share of its arrivals whose key is new.
    pub distinct: f64,
    /// The rate of false positives among those.
    pub predicted_fpr: f64,
    /// The rate of false negatives among the others.
    pub predicted_fnr: f64,
}

/// Equal parts in which errors are told as a stream goes on.
pub(crate) const PARTS_OF_STREAM: usize = 32;

impl Forecast {
    /// Where lags are known by classes that double, less is known: the rate rises within a class by half of what it rises between
    /// its neighbours, and wherever in its class a repeat is, half of that is what it may be off.
    pub(crate) fn widen_for_coarse_lags(&mut self) {
        let at = |row: usize| self.by_lag[row.min(self.by_lag.len() - 1)].predicted_fnr;
        let off = |row: usize| self.by_lag[row].share * (at(row + 1) - at(row.saturating_sub(1))).abs() / 4.0;
        let most: f64 = (0..self.by_lag.len()).map(off).sum();
        // Twice the standard error is what is stated.
        self.fnr_standard_error = libm::hypot(self.fnr_standard_error, most / 2.0);
    }
}

/// Which errors to expect on a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Forecast {
    /// What is promised whatever the stream, with the rate of false negatives on this one.
    pub promise: Promise,
    /// How it was made.
    pub method: Method,
    /// False positives among the distinct arrivals of this stream.
    pub predicted_fpr: f64,
    /// The standard error of that, where it was counted; included in it, so that forecasts err upwards.
    pub standard_error: f64,
    /// False negatives among its repeats.
    pub predicted_fnr: f64,
    /// The standard error of that, where it was counted; not included in it.
    pub fnr_standard_error: f64,
    /// False positives among the distinct keys of the last tenth of the arrivals.
    pub late_fpr: f64,
    /// False negatives among the repeats of the last tenth of the arrivals.
    pub late_fnr: f64,
    /// Importance of false positives as a share of all importance.
    pub weighted_fpr: f64,
    /// Importance of false negatives as a share of all importance.
    pub weighted_fnr: f64,
    /// The rate of false negatives by lag.
    pub by_lag: Vec<RateAt>,
    /// The rate of false negatives by importance; one row if all arrivals matter alike.
    pub by_importance: Vec<RateAt>,
    /// The mean rate of false positives as the filter's contents tell it, without a standard error: it does not depend on a
    /// new key's importance.
    pub mean_fpr: f64,
    /// Repeats and misses by importance; one row if all arrivals matter alike.
    pub errors_by_importance: Vec<ErrorsAt>,
    /// The rates as the stream goes on, first part first.
    pub over_time: Vec<RatesAt>,
    /// The share of cells that are zero at the end.
    pub zero_share: f64,
    /// Arrivals until the share of cells in use no longer changes by more than a hundredth of it; `None` if
    /// it still does at the end.
    pub converged_after: Option<f64>,
}
