//! `everbloom.plan` and what it answers: plans, promises, forecasts, streams.

use crate::errors::OrRaise;
use crate::filter::PyFilter;
use crate::goal::{Besides, Wanted, learn, to_count};
use crate::html;
use everbloom::kind::{rate_text, size_text};
use everbloom::{Holds, Plan, Promise, Spec};
use everbloom_all::KINDS;
use everbloom_forecast::stream::RateAt as CoreRateAt;
use everbloom_forecast::{Candidate, Forecast, Recommendation, Stream};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// Which filter to take for what is wanted, how large it is, what it promises and what to expect of it.
///
/// memory, transmit: "64MiB" or a number of bytes. fpr, fnr: 0.01 or "1%". expect: the distinct keys to come, 10**6 or
/// "1e6". window: so many arrivals, "24h" or a timedelta. stream: "uniform", "zipf:1.1", a Stream, or a sample of keys.
/// importance: True if arrivals have importances from 0 to 1, the largest of them, or a sample of them. secret: 16 bytes,
/// for keys that an adversary may choose. Where no fpr is asked for, 0.1 % is planned for.
///
/// cost_fp, cost_fn: what a new key costs that is taken for a repeat, and a repeat that is taken for new, in any unit; the
/// filter of least expected cost is taken, and fpr and fnr are limits. memory_cost: what a MiB costs for as long as the stream
/// takes, so that the memory is chosen, too. audit: True, or a size, if the filter is to measure how often it errs.
///
/// >>> import everbloom
/// >>> plan = everbloom.plan("bloom", expect=1_000_000, fpr="1%")
/// >>> plan.spec
/// 'bloom:num_bits=9592964,num_hashes=7'
/// >>> plan.promise
/// Promise(fpr=0.01, until_items=1000000)
/// >>> clicks = everbloom.plan(memory="16KiB", stream="zipf:0.9", expect=50_000, cost_fp=1, cost_fn=5)
/// >>> 0 < clicks.cost < clicks.cost_without_filter
/// True
#[pyfunction]
#[pyo3(
    signature = (spec = "auto", **goal),
    text_signature = "(spec='auto', *, memory=None, fpr=None, expect=None, fnr=None, window=None, stream=None, \
                      importance=False, cost_fp=None, cost_fn=None, memory_cost=None, audit=False, \
                      compressed=False, transmit=None, seed=0, secret=None)"
)]
pub(crate) fn plan(py: Python<'_>, spec: &str, goal: Option<&Bound<'_, PyDict>>) -> PyResult<PyPlan> {
    let wanted = Wanted::new(spec, goal, py)?;
    let answer = wanted.answer(py)?;
    Ok(PyPlan::new(answer, wanted.besides))
}

/// A filter on paper: every parameter fixed, nothing allocated.
#[pyclass(frozen, module = "everbloom", name = "Plan")]
pub(crate) struct PyPlan {
    candidate: Candidate,
    runners_up: Vec<Candidate>,
    stream: Stream,
    assumed: bool,
    without_filter: Option<f64>,
    curve: Vec<(u64, f64)>,
    besides: Besides,
}

impl PyPlan {
    fn new(answer: Recommendation, besides: Besides) -> Self {
        let Recommendation { best, runners_up, stream, assumed, without_filter, curve, .. } = answer;
        let points = curve.iter().flat_map(|curve| &curve.points);
        let curve = points.map(|point| (point.memory_bits.div_ceil(8), point.cost.total())).collect();
        PyPlan { candidate: best, runners_up, stream, assumed, without_filter, curve, besides }
    }

    fn plan(&self) -> &Plan {
        &self.candidate.plan
    }
}

/// The parameters of a spec, numbers as numbers.
pub(crate) fn parameters_of<'py>(py: Python<'py>, spec: &Spec) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for name in spec.parameters() {
        let text = spec.get(name).unwrap_or_default();
        match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => all.set_item(name, number)?,
            (_, Ok(number)) => all.set_item(name, number)?,
            _ => all.set_item(name, text)?,
        }
    }
    Ok(all)
}

/// Attributes of an object, by their names.
fn attributes<'py>(object: &Bound<'py, PyAny>, names: &str) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(object.py());
    names.split(' ').try_for_each(|name| all.set_item(name, object.getattr(name)?))?;
    Ok(all)
}

#[pymethods]
impl PyPlan {
    /// The kind and every parameter, as specs are written.
    #[getter]
    fn spec(&self) -> String {
        self.plan().spec.to_string()
    }

    /// The kind of filter.
    #[getter]
    fn kind(&self) -> &str {
        self.plan().spec.kind()
    }

    /// Every parameter and its value.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters_of(py, &self.plan().spec)
    }

    /// All of the memory that the filter will take, in bits.
    #[getter]
    fn memory_bits(&self) -> u64 {
        self.plan().memory_bits
    }

    /// All of the memory that the filter will take, in bytes.
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.plan().memory_bits.div_ceil(8)
    }

    /// The seed of hashing and of every random choice; None where keys are hashed with a secret.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.plan().hashing.seed()
    }

    /// What the filter keeps, whatever comes.
    #[getter]
    fn promise(&self) -> PyPromise {
        PyPromise::from(&self.plan().promise)
    }

    /// What to expect on the stream.
    #[getter]
    fn forecast(&self) -> PyForecast {
        PyForecast::new(&self.candidate.forecast)
    }

    /// The stream that the forecast is for.
    #[getter]
    fn stream(&self) -> PyStream {
        PyStream { stream: self.stream.clone() }
    }

    /// What an arrival is expected to cost, where cost_fp and cost_fn were given.
    #[getter]
    fn cost(&self) -> Option<f64> {
        self.candidate.cost.map(|cost| cost.total())
    }

    /// What it would cost to let every repeat through.
    #[getter]
    fn cost_without_filter(&self) -> Option<f64> {
        self.without_filter
    }

    /// Sizes in bytes, each with the cost of an arrival at the cheapest filter of that size.
    #[getter]
    fn cost_curve(&self) -> Vec<(u64, f64)> {
        self.curve.clone()
    }

    /// Why this filter is recommended.
    #[getter]
    fn reason(&self) -> &str {
        &self.candidate.reason
    }

    /// The filters that come next, the best first.
    #[getter]
    fn runners_up(&self) -> Vec<PyPlan> {
        let of = |candidate: &Candidate| PyPlan {
            candidate: candidate.clone(),
            runners_up: Vec::new(),
            stream: self.stream.clone(),
            assumed: self.assumed,
            without_filter: self.without_filter,
            curve: Vec::new(),
            besides: self.besides,
        };
        self.runners_up.iter().map(of).collect()
    }

    /// What else there is to know, a sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.plan().notes.clone()
    }

    /// Allocates the filter.
    ///
    /// >>> import everbloom
    /// >>> everbloom.plan("bloom", expect=1000).build().add("key")
    /// True
    fn build(&self, py: Python<'_>) -> PyResult<PyFilter> {
        PyFilter::planned(py, self.plan(), self.besides)
    }

    /// All of it as plain values.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, own) = (slf.py(), slf.get());
        let all = attributes(slf, "spec kind parameters memory_bits memory_bytes seed")?;
        all.set_item("promise", attributes(&slf.getattr("promise")?, "fpr fnr always until_items exact_until")?)?;
        all.set_item("forecast", PyForecast::to_dict(&Bound::new(py, own.forecast())?)?)?;
        let stream = PyDict::new(py);
        stream.set_item("repeats", own.stream.describe())?;
        stream.set_item("arrivals", own.stream.arrivals())?;
        stream.set_item("distinct", own.stream.distinct())?;
        stream.set_item("assumed", own.assumed)?;
        all.set_item("stream", stream)?;
        if own.cost().is_some() {
            all.update(attributes(slf, "cost cost_without_filter cost_curve")?.as_mapping())?;
        }
        all.update(attributes(slf, "reason notes")?.as_mapping())?;
        let others = own.runners_up().into_iter().map(|plan| Self::to_dict(&Bound::new(py, plan)?));
        all.set_item("runners_up", others.collect::<PyResult<Vec<_>>>()?)?;
        Ok(all)
    }

    fn __repr__(&self) -> String {
        let size = size_text(self.memory_bits());
        format!("<everbloom.Plan '{}', {size}, {}>", self.plan().spec, self.promise().in_words())
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        html(slf, "plan")
    }
}

/// A bound on the errors of a filter, kept whatever comes.
#[pyclass(frozen, module = "everbloom", name = "Promise")]
pub(crate) struct PyPromise {
    /// The rate of false positives among new keys.
    #[pyo3(get)]
    fpr: f64,
    /// The rate of false negatives among repeats: 0.0 for filters that never forget, None where it depends on the stream.
    #[pyo3(get)]
    fnr: Option<f64>,
    /// Whether it holds at every moment, however long the stream.
    #[pyo3(get)]
    always: bool,
    /// The distinct keys until which it holds, if it ends.
    #[pyo3(get)]
    until_items: Option<u64>,
    /// The distinct keys until which nothing errs at all.
    #[pyo3(get)]
    exact_until: Option<u64>,
}

impl From<&Promise> for PyPromise {
    fn from(promise: &Promise) -> Self {
        PyPromise {
            fpr: promise.fpr_bound,
            fnr: promise.predicted_fnr,
            always: promise.holds == Holds::Always,
            until_items: match promise.holds {
                Holds::UntilItems(items) => Some(items),
                _ => None,
            },
            exact_until: promise.exact_until,
        }
    }
}

impl PyPromise {
    /// A few words for a line.
    pub(crate) fn in_words(&self) -> String {
        let rate = rate_text(self.fpr);
        match (self.always, self.until_items) {
            (true, _) => format!("at most {rate} false positives"),
            (_, Some(items)) => format!("at most {rate} false positives until {items} items"),
            _ => "no promise".into(),
        }
    }
}

#[pymethods]
impl PyPromise {
    fn __repr__(&self) -> String {
        let rate = everbloom_rate(self.fpr);
        match (self.always, self.until_items) {
            (true, _) => format!("Promise(fpr={rate}, always=True)"),
            (_, Some(items)) => format!("Promise(fpr={rate}, until_items={items})"),
            _ => format!("Promise(fpr={rate}, always=False)"),
        }
    }
}

/// A rate as Python writes it, with as many digits as a bound needs, rounded up.
fn everbloom_rate(rate: f64) -> String {
    let text = rate_text(rate);
    let percent: f64 = text.trim_end_matches('%').parse().unwrap_or(100.0 * rate);
    // Twelve digits hide what a division by 100 leaves behind.
    format!("{}", format!("{:.11e}", percent / 100.0).parse::<f64>().unwrap_or(rate))
}

/// A rate at a lag, or at an importance.
#[pyclass(frozen, get_all, module = "everbloom", name = "RateAt")]
#[derive(Clone)]
pub(crate) struct RateAt {
    /// Arrivals since the key was last seen, or the share of the largest importance.
    at: f64,
    /// The rate of false negatives there.
    predicted_fnr: f64,
    /// The share of all repeats that are there.
    share: f64,
}

#[pymethods]
impl RateAt {
    fn __repr__(&self) -> String {
        format!("RateAt(at={}, predicted_fnr={:.4}, share={:.4})", self.at, self.predicted_fnr, self.share)
    }
}

fn rates(all: &[CoreRateAt]) -> Vec<RateAt> {
    all.iter().map(|rate| RateAt { at: rate.at, predicted_fnr: rate.predicted_fnr, share: rate.share }).collect()
}

/// Which errors to expect on a stream that was described. It is no bound.
#[pyclass(frozen, get_all, module = "everbloom", name = "Forecast")]
pub(crate) struct PyForecast {
    /// False positives among the new keys of the stream.
    predicted_fpr: f64,
    /// False negatives among its repeats.
    predicted_fnr: f64,
    /// False positives among the new keys of its last tenth.
    late_fpr: f64,
    /// False negatives among the repeats of its last tenth.
    late_fnr: f64,
    /// The importance of false positives as a share of all importance.
    wfp: f64,
    /// The importance of false negatives as a share of all importance.
    wfn: f64,
    /// The standard error of predicted_fpr, where it was counted.
    standard_error: f64,
    /// The standard error of predicted_fnr, where it was counted.
    fnr_standard_error: f64,
    /// How it was made: "closed form", "chain" or "simulation".
    method: &'static str,
    /// The rate of false negatives by lag.
    by_lag: Vec<RateAt>,
    /// The rate of false negatives by importance.
    by_importance: Vec<RateAt>,
    /// Arrivals until the filter's fill no longer changes.
    stable_after: Option<f64>,
}

impl PyForecast {
    fn new(forecast: &Forecast) -> Self {
        PyForecast {
            predicted_fpr: forecast.predicted_fpr,
            predicted_fnr: forecast.predicted_fnr,
            late_fpr: forecast.late_fpr,
            late_fnr: forecast.late_fnr,
            wfp: forecast.weighted_fpr,
            wfn: forecast.weighted_fnr,
            standard_error: forecast.standard_error,
            fnr_standard_error: forecast.fnr_standard_error,
            method: forecast.method.name(),
            by_lag: rates(&forecast.by_lag),
            by_importance: rates(&forecast.by_importance),
            stable_after: forecast.converged_after,
        }
    }

    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let names = "predicted_fpr predicted_fnr late_fpr late_fnr wfp wfn standard_error fnr_standard_error method stable_after";
        let all = attributes(slf, names)?;
        for (name, rates) in [("by_lag", &slf.get().by_lag), ("by_importance", &slf.get().by_importance)] {
            let rows: Vec<_> = rates.iter().map(|rate| (rate.at, rate.predicted_fnr, rate.share)).collect();
            all.set_item(name, rows)?;
        }
        Ok(all)
    }
}

#[pymethods]
impl PyForecast {
    fn __repr__(&self) -> String {
        format!(
            "Forecast(predicted_fpr={:.3e}, predicted_fnr={:.3e}, method='{}')",
            self.predicted_fpr, self.predicted_fnr, self.method
        )
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        html(slf, "forecast")
    }
}

/// What a stream is like: described, or learned from a sample.
///
/// >>> import everbloom
/// >>> stream = everbloom.Stream.zipf(100_000, 1.0)
/// >>> stream.distinct
/// 100000
#[pyclass(frozen, module = "everbloom", name = "Stream")]
pub(crate) struct PyStream {
    pub(crate) stream: Stream,
}

fn count(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<u64> {
    to_count(value, name)?.named(name).get().or_raise(value.py())
}

#[pymethods]
impl PyStream {
    /// Draws from equally popular keys, so many of them that distinct of the arrivals are new.
    ///
    /// >>> import everbloom
    /// >>> everbloom.Stream.uniform("1M", 10_000).arrivals
    /// 1000000
    #[staticmethod]
    fn uniform(arrivals: &Bound<'_, PyAny>, distinct: &Bound<'_, PyAny>) -> PyResult<Self> {
        let stream = Stream::uniform(count(arrivals, "arrivals")?, count(distinct, "distinct")?);
        Ok(PyStream { stream: stream.or_raise(arrivals.py())? })
    }

    /// Draws by popularity, rank to the power of minus exponent, until distinct keys have come; or so many arrivals.
    ///
    /// >>> import everbloom
    /// >>> everbloom.Stream.zipf(100_000, 1.2, arrivals=1_000_000).arrivals
    /// 1000000
    #[staticmethod]
    #[pyo3(signature = (distinct, exponent = 1.0, *, arrivals = None))]
    fn zipf(distinct: &Bound<'_, PyAny>, exponent: f64, arrivals: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let keys = count(distinct, "distinct")?;
        let stream = match arrivals {
            Some(arrivals) => Stream::zipf(count(arrivals, "arrivals")?, keys, exponent),
            None => Stream::zipf_of(keys, exponent),
        };
        Ok(PyStream { stream: stream.or_raise(distinct.py())? })
    }

    /// Repeats by lag: pairs of a lag (arrivals since the key was last seen) and the weight of the repeats up to it.
    #[staticmethod]
    fn by_lag(arrivals: &Bound<'_, PyAny>, distinct: &Bound<'_, PyAny>, lags: Vec<(f64, f64)>) -> PyResult<Self> {
        let stream = Stream::by_lag(count(arrivals, "arrivals")?, count(distinct, "distinct")?, &lags);
        Ok(PyStream { stream: stream.or_raise(arrivals.py())? })
    }

    /// What is assumed where only the number of distinct keys is known: every second arrival is new.
    ///
    /// >>> import everbloom
    /// >>> everbloom.Stream.assumed(1000).distinct
    /// 1000
    #[staticmethod]
    fn assumed(distinct: &Bound<'_, PyAny>) -> PyResult<Self> {
        let stream = Stream::assumed(count(distinct, "distinct")?);
        Ok(PyStream { stream: stream.or_raise(distinct.py())? })
    }

    /// Learns from a sample of keys, in the order in which they came.
    ///
    /// >>> import everbloom
    /// >>> everbloom.Stream.learn([time * time % 307 for time in range(20_000)]).distinct
    /// 154
    #[staticmethod]
    fn learn(sample: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(PyStream { stream: learn(sample, None)? })
    }

    /// Arrivals in all.
    #[getter]
    fn arrivals(&self) -> u64 {
        self.stream.arrivals()
    }

    /// Distinct keys in all.
    #[getter]
    fn distinct(&self) -> u64 {
        self.stream.distinct()
    }

    fn __repr__(&self) -> String {
        let Self { stream } = self;
        format!(
            "<everbloom.Stream {}: {} arrivals, {} distinct>",
            stream.describe(),
            stream.arrivals(),
            stream.distinct()
        )
    }
}

/// A kind of filter, as the registry describes it.
#[pyclass(frozen, get_all, module = "everbloom", name = "Kind")]
pub(crate) struct PyKind {
    /// The name in specs.
    name: &'static str,
    /// One line about it.
    summary: &'static str,
    /// The parameters that a spec may give, and what each means.
    parameters: std::collections::BTreeMap<&'static str, &'static str>,
    /// What it can do, in a word or two each.
    abilities: Vec<&'static str>,
    /// What it never does.
    never: Vec<&'static str>,
    /// Whether a key that was added is found for ever.
    never_forgets: bool,
    /// Whether it works for ever in fixed memory.
    endless: bool,
}

#[pymethods]
impl PyKind {
    fn __repr__(&self) -> String {
        format!("<everbloom.Kind {}: {}>", self.name, self.summary)
    }
}

/// Every kind of filter that there is, by name.
///
/// >>> import everbloom
/// >>> kind = everbloom.kinds()["counting"]
/// >>> kind.never_forgets, "remove keys" in kind.abilities
/// (True, True)
#[pyfunction]
pub(crate) fn kinds(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for kind in KINDS {
        let described = PyKind {
            name: kind.name,
            summary: kind.summary,
            parameters: kind.all_parameters().map(|parameter| (parameter.name, parameter.meaning)).collect(),
            abilities: kind.abilities(),
            never: kind.never(),
            never_forgets: !kind.can.forget,
            endless: kind.can.run_forever,
        };
        all.set_item(kind.name, Bound::new(py, described)?)?;
    }
    Ok(all)
}
