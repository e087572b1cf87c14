//! What a caller wants of a filter, from Python's keywords to the library's question.

use crate::batch;
use crate::errors::{OrRaise, parameter};
use crate::plan::PyStream;
use everbloom::kind::{in_shards, shards_of};
use everbloom::planning::{self, AUTO};
use everbloom::{
    AnyFilter, Count, Goal, Hashing, Importance, ImportanceMix, ImportanceScale, Importances, Plan, Rate, SecretKey,
    Size, Span, Spec, Window,
};
use everbloom_all::KINDS;
use everbloom_forecast::audit::usual_bytes;
use everbloom_forecast::stream::Sample;
use everbloom_forecast::{Auditing, Cost, Question, Recommendation, Stream};
use everbloom_redis_client::DEFAULT_SHARDS;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDelta, PyDict, PyFloat, PyInt, PyString};
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

/// The rate that is planned for where nobody asked for one, as on the command line.
const USUAL_FPR: f64 = 0.001;

/// The memory of a filter on servers where nobody gave one, as on the command line: 64 MiB.
const USUAL_MEMORY_BITS: u64 = 64 << 23;

/// Everything that `plan` and `Filter` take, but the spec.
pub(crate) const KEYWORDS: &str = "memory fpr expect fnr window stream importance cost_fp cost_fn memory_cost audit compressed \
                                   transmit seed secret";

/// What was asked for.
pub(crate) struct Wanted {
    question: Question,
    pub(crate) besides: Besides,
}

/// What belongs to a filter besides its plan.
#[derive(Clone, Copy, Default)]
pub(crate) struct Besides {
    /// The length of the window, if it is one of time.
    pub(crate) window: Option<Duration>,
    /// The largest importance, where arrivals have any.
    pub(crate) importance_max: Option<f64>,
    /// The bits of its audit, or whatever is usual, if it is to be audited.
    pub(crate) audit: Option<Option<u64>>,
}

impl Besides {
    /// A filter that was planned, audited if that is wanted.
    pub(crate) fn build(&self, plan: &Plan) -> everbloom::Result<AnyFilter> {
        let filter = plan.build()?;
        let Some(asked) = self.audit else { return Ok(filter) };
        let bytes = asked.map_or(usual_bytes(plan.memory_bits), |bits| bits / 8);
        // Random, so that no stream can avoid the keys that are followed.
        let seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
        filter.audited(bytes, seed)
    }
}

impl Wanted {
    /// Reads a spec and the keywords.
    pub(crate) fn new(spec: &str, keywords: Option<&Bound<'_, PyDict>>, py: Python<'_>) -> PyResult<Self> {
        let given = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let value = keywords.map_or(Ok(None), |keywords| keywords.get_item(name))?;
            Ok(value.filter(|value| !value.is_none()))
        };
        refuse_unknown(keywords)?;
        let hashing = hashing(py, given("seed")?, given("secret")?)?;
        let mut goal = Goal::new().hashing(hashing);
        if let Some(size) = given("memory")? {
            goal = goal.memory(to_size(&size, "memory")?);
        }
        if let Some(rate) = given("fpr")? {
            goal = goal.fpr(to_rate(&rate, "fpr")?);
        }
        if let Some(count) = given("expect")? {
            goal = goal.expected_items(to_count(&count, "expect")?.named("expect"));
        }
        let flag = |name: &str| given(name)?.map_or(Ok(false), |value| value.is_truthy());
        if flag("compressed")? {
            goal = goal.compressed();
        }
        let cost = cost(py, given("cost_fp")?, given("cost_fn")?, given("memory_cost")?)?;
        match given("transmit")? {
            Some(size) => {
                let bits = to_size(&size, "transmit")?.named("transmit").get().or_raise(py)?;
                goal = goal.transmitted_bytes(bits / 8);
            }
            // Where errors have a cost, that decides.
            None if cost.is_some() => {}
            None => goal = goal.default_fpr(USUAL_FPR),
        }
        let importances = given("importance")?.map_or(Ok(None), |value| Importanced::new(&value))?;
        if let Some(importances) = &importances {
            goal = match importances.mix() {
                Some(mix) => goal.importance_mix(mix),
                None => goal.with_importance(),
            };
        }
        let expected = goal.known_items();
        let mut question = Question::among(KINDS, goal);
        question.filter = Some(Spec::parse(spec).or_raise(py)?).filter(|spec| *spec != Spec::new(AUTO));
        question.cost = cost;
        question.target_fnr = given("fnr")?.map_or(Ok(None), |rate| rate_or_none(&rate).map(Some))?;
        question.window = given("window")?.map_or(Ok(None), |window| to_window(&window).map(Some))?;
        if let Some(described) = given("stream")? {
            let stream = to_stream(&described, expected, importances.as_ref())?;
            question.stream = Some(match question.goal.known_importance_mix() {
                Some(mix) if stream.importance().is_none() => stream.with_importance(mix),
                _ => stream,
            });
        }
        let audit = given("audit")?.map_or(Ok(None), |audit| to_audit(&audit))?;
        let window = match question.window {
            Some(Window::Time(time)) => Some(time),
            _ => None,
        };
        let importance_max = importances.map(|importances| importances.max);
        Ok(Wanted { question, besides: Besides { window, importance_max, audit } })
    }

    /// The filter to take, with what else could have been.
    pub(crate) fn answer(&self, py: Python<'_>) -> PyResult<Recommendation> {
        let question = &self.question;
        py.detach(|| question.answer()).or_raise(py)
    }

    /// The filter to take and nothing else, which is the same one.
    pub(crate) fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        let Question { goal, filter, window, stream, target_fnr, cost, .. } = &self.question;
        if window.is_some() || stream.is_some() || target_fnr.is_some() || cost.is_some() {
            return self.answer(py).map(|answer| answer.best.plan);
        }
        let spec = filter.clone().unwrap_or_else(|| Spec::new(AUTO));
        py.detach(|| KINDS.plan(&spec, goal)).or_raise(py)
    }

    /// A filter for servers, in so many shards.
    pub(crate) fn plan_in_shards(&self, py: Python<'_>, shards: Option<u32>) -> PyResult<Plan> {
        let Question { goal, filter, window, stream, target_fnr, cost, .. } = &self.question;
        if let (Some(Window::Arrivals(_)), Some(given @ 2..)) = (window, shards) {
            let needed =
                "left out for a window of arrivals, which would be shorter in a shard that gets a frequent key";
            let remedy = "it is one key on one server; or give a window of time";
            return Err(parameter(py, "shards", given, needed, remedy));
        }
        let shards = shards.unwrap_or(DEFAULT_SHARDS);
        let spec_first = "plan without servers, and give the spec that comes out";
        let of_one = "audit a filter of one process, or reserve it with EB.RESERVE … AUDIT";
        let given = [
            ("stream", stream.is_some(), spec_first),
            ("fnr", target_fnr.is_some(), spec_first),
            ("cost_fp", cost.is_some(), spec_first),
            ("audit", self.besides.audit.is_some(), of_one),
        ];
        if let Some((name, _, remedy)) = given.into_iter().find(|(_, is_given, _)| *is_given) {
            return Err(parameter(py, name, "given", "left out for a filter on servers", remedy));
        }
        let goal = goal.clone().default_memory_bits(USUAL_MEMORY_BITS);
        let planned = py.detach(|| match window {
            Some(window) => planning::for_window(window, &goal, true, Some(shards)),
            None => {
                let (spec, goal) = (filter.clone().unwrap_or_else(|| Spec::new(AUTO)), goal.open_ended());
                let is_whole = shards_of(&spec)? == 1;
                let spec = if is_whole { in_shards(&spec, shards) } else { spec };
                planning::held_to_rate(KINDS.plan(&spec, &goal)?, &goal)
            }
        });
        planned.or_raise(py)
    }
}

/// What errors cost, if both are given.
fn cost(
    py: Python<'_>,
    cost_fp: Option<Bound<'_, PyAny>>,
    cost_fn: Option<Bound<'_, PyAny>>,
    memory_cost: Option<Bound<'_, PyAny>>,
) -> PyResult<Option<Cost>> {
    let number = |value: Bound<'_, PyAny>, name: &str| match value.extract::<f64>() {
        Ok(number) if is_number(&value) => Ok(number),
        _ => Err(wrong(&value, name, "a number, in any unit that is the same for all costs")),
    };
    let missing =
        |name| Err(parameter(py, name, "not given", "given, too", "say what both errors cost, such as 1 and 5"));
    match (cost_fp, cost_fn, memory_cost) {
        (Some(one), Some(other), memory) => {
            let cost = Cost::of(number(one, "cost_fp")?, number(other, "cost_fn")?);
            Ok(Some(match memory {
                Some(memory) => cost.memory_per_mib(number(memory, "memory_cost")?),
                None => cost,
            }))
        }
        (None, None, None) => Ok(None),
        (Some(_), None, _) => missing("cost_fn"),
        _ => missing("cost_fp"),
    }
}

/// `True`: as large as is usual. Anything else is a size.
fn to_audit(value: &Bound<'_, PyAny>) -> PyResult<Option<Option<u64>>> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().then_some(None));
    }
    Ok(Some(Some(to_size(value, "audit")?.named("audit").get().or_raise(value.py())?)))
}

fn refuse_unknown(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for name in keywords.into_iter().flat_map(|keywords| keywords.keys()) {
        let name: String = name.extract()?;
        if !KEYWORDS.split(' ').any(|known| known == name) {
            let remedy = everbloom::kind::suggestion(&name, KEYWORDS.split(' '), "there are");
            return Err(PyTypeError::new_err(format!("there is no keyword '{name}'; {remedy}")));
        }
    }
    Ok(())
}

fn hashing(py: Python<'_>, seed: Option<Bound<'_, PyAny>>, secret: Option<Bound<'_, PyAny>>) -> PyResult<Hashing> {
    match (seed, secret) {
        (Some(seed), Some(_)) if seed.extract::<u64>().unwrap_or(1) != 0 => {
            Err(parameter(py, "seed", seed.str()?, "left out where there is a secret", "give one of them"))
        }
        (_, Some(secret)) => Ok(Hashing::keyed(to_secret(&secret)?)),
        (Some(seed), None) => to_seed(&seed).map(Hashing::seeded),
        (None, None) => Ok(Hashing::default()),
    }
}

pub(crate) fn to_seed(seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    seed.extract().map_err(|_| {
        let given = seed.str().map_or_else(|_| "not a number".to_string(), |text| text.to_string());
        parameter(seed.py(), "seed", given, "a whole number from 0 to 2^64 - 1", "try 0")
    })
}

/// A secret of 16 bytes, and no other number of them.
pub(crate) fn to_secret(secret: &Bound<'_, PyAny>) -> PyResult<SecretKey> {
    let bytes = secret
        .cast::<PyBytes>()
        .map_err(|_| PyTypeError::new_err("secret must be 16 bytes: secrets.token_bytes(16)"))?;
    let key: Result<[u8; 16], _> = bytes.as_bytes().try_into();
    key.map(SecretKey::new).map_err(|_| {
        let given = format!("{} bytes long", bytes.as_bytes().len());
        parameter(secret.py(), "secret", given, "16 bytes", "call secrets.token_bytes(16) once, and keep what it gives")
    })
}

fn wrong(value: &Bound<'_, PyAny>, name: &str, wanted: &str) -> PyErr {
    let kind = value.get_type().name().map_or_else(|_| "this".to_string(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} must be {wanted}, not {kind}"))
}

fn is_number(value: &Bound<'_, PyAny>) -> bool {
    !value.is_instance_of::<PyBool>() && !value.is_instance_of::<PyString>()
}

pub(crate) fn to_size(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Size> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Size::from(text.to_str()?));
    }
    match value.extract::<i64>() {
        Ok(bytes) if is_number(value) => Ok(Size::from(bytes)),
        _ if value.is_instance_of::<PyInt>() && is_number(value) => {
            Err(parameter(value.py(), name, value.str()?, "at least one byte and at most 128 PiB", "try '64MiB'"))
        }
        _ => Err(wrong(value, name, "a text such as '64MiB' or a number of bytes")),
    }
}

pub(crate) fn to_rate(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Rate> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Rate::from(text.to_str()?));
    }
    match value.extract::<f64>() {
        Ok(rate) if is_number(value) => Ok(Rate::from(rate)),
        _ => Err(wrong(value, name, "a number such as 0.01 or a text such as '1%'")),
    }
}

/// A rate of misses, which may be 0.
fn rate_or_none(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if is_number(value) && value.extract::<f64>().is_ok_and(|rate| rate == 0.0) {
        return Ok(0.0);
    }
    to_rate(value, "fnr")?.named("fnr").get().or_raise(value.py())
}

pub(crate) fn to_count(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Count> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Count::from(text.to_str()?));
    }
    if let Ok(number) = value.extract::<i64>()
        && is_number(value)
    {
        return Ok(Count::from(number));
    }
    if value.is_instance_of::<PyFloat>() || (value.is_instance_of::<PyInt>() && is_number(value)) {
        // As it is written: 1e6 is a whole number, 0.5 is none.
        return Ok(Count::from(value.str()?.to_str()?));
    }
    Err(wrong(value, name, "a number such as 10**6 or a text such as '1e6'"))
}

/// A time: a number of seconds, a text such as `60s`, or a `timedelta`.
pub(crate) fn to_span(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Duration> {
    let text = match value.cast::<PyString>() {
        Ok(text) => text.to_str()?.to_string(),
        Err(_) if value.is_instance_of::<PyDelta>() => {
            format!("{}s", value.call_method0("total_seconds")?.extract::<f64>()?)
        }
        Err(_) => match value.extract::<f64>() {
            Ok(seconds) if is_number(value) => format!("{seconds}s"),
            _ => return Err(wrong(value, name, "a number of seconds or a text such as '60s'")),
        },
    };
    Span::from(text.as_str()).named(name).get().or_raise(value.py())
}

fn to_window(value: &Bound<'_, PyAny>) -> PyResult<Window> {
    let py = value.py();
    if value.is_instance_of::<PyDelta>() {
        let span = to_span(value, "window")?;
        return match span >= Duration::from_millis(1) {
            true => Ok(Window::Time(span)),
            false => Err(parameter(py, "window", value.str()?, "at least 1ms", "try '24h'")),
        };
    }
    if let Ok(text) = value.cast::<PyString>() {
        return text.to_str()?.parse().or_raise(py);
    }
    to_count(value, "window")?.named("window").get().map(Window::Arrivals).or_raise(py)
}

/// A description, or what a sample teaches.
fn to_stream(value: &Bound<'_, PyAny>, expected: Option<u64>, importances: Option<&Importanced>) -> PyResult<Stream> {
    let py = value.py();
    if let Ok(stream) = value.cast::<PyStream>() {
        return Ok(stream.get().stream.clone());
    }
    if let Ok(text) = value.cast::<PyString>() {
        let Some(distinct) = expected else {
            let (needed, remedy) = ("given with a stream in words", "say how many distinct keys come");
            return Err(parameter(py, "expect", "not given", needed, remedy));
        };
        return Stream::named(text.to_str()?, distinct).or_raise(py);
    }
    let sample = importances.and_then(|importances| importances.sample.as_deref());
    learn(value, sample)
}

/// Learns a stream from a sample of its keys.
pub(crate) fn learn(keys: &Bound<'_, PyAny>, importances: Option<&[Importance]>) -> PyResult<Stream> {
    let py = keys.py();
    let hashes = batch::hashes_of(keys, &Hashing::default())?;
    let importances = match importances {
        Some(each) if each.len() == hashes.len() => Importances::Each(each),
        _ => Importances::default(),
    };
    let learned = py.detach(|| {
        let mut sample = Sample::default();
        for (part, hashes) in hashes.chunks(batch::CHUNK).enumerate() {
            sample.observe(hashes, importances.skip(part * batch::CHUNK));
        }
        sample.finish()
    });
    learned.or_raise(py)
}

/// What was said of importances.
struct Importanced {
    max: f64,
    sample: Option<Vec<Importance>>,
}

impl Importanced {
    /// `True`: from 0 to 1. A number: up to that. Anything else: a sample of them.
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(flag) = value.cast::<PyBool>() {
            return Ok(flag.is_true().then_some(Importanced { max: 1.0, sample: None }));
        }
        if let Ok(max) = value.extract::<f64>() {
            ImportanceScale::linear(max).or_raise(value.py())?;
            return Ok(Some(Importanced { max, sample: None }));
        }
        let values = batch::numbers(value, "importance", None)?;
        let max = values.iter().copied().fold(0.0, f64::max);
        let scale = ImportanceScale::linear(max).or_raise(value.py())?;
        let sample: everbloom::Result<Vec<_>> = values.iter().map(|value| scale.of(*value)).collect();
        Ok(Some(Importanced { max, sample: Some(sample.or_raise(value.py())?) }))
    }

    fn mix(&self) -> Option<ImportanceMix> {
        self.sample.as_ref().map(|sample| ImportanceMix::of(sample.iter().copied()))
    }
}
