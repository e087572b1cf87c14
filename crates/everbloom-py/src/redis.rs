//! `everbloom.redis.Filter`: a filter on Redis or Valkey servers that many processes share.
//!
//! Keys are hashed here, and go to the servers in batches that count once, however often a connection breaks. Whoever waits
//! for a server lets other Python threads run, and looks at Python's signals between two attempts.

use crate::batch::{self, CHUNK, Keys};
use crate::errors::{OrRaise, server_error};
use crate::filter::{Given, PyFilter, Room, Status, ask_many, hashed, importances};
use crate::goal::{Wanted, to_span};
use crate::hashes::Hashes;
use crate::keys;
use crate::plan::{PyPromise, parameters_of};
use everbloom::{AnyFilter, Hashing, ImportanceScale, Importances, Promise, Spec, Verdict};
use everbloom_all::KINDS;
use everbloom_redis_client::{Call, Error, Filter, Options, Watcher, Writer, new_name};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A filter on Redis or Valkey servers with everbloom's module, shared by everybody who names it.
///
/// url is redis://USER:PASSWORD@HOST:PORT, several with commas between: any nodes of a cluster, or a server and its replicas;
/// without one, the variable EVERBLOOM_REDIS or redis://127.0.0.1:6379. The keywords say what is wanted, as for
/// everbloom.Filter: whoever is first makes the filter, and it must be the same for all. Without them, it must be there.
///
/// shards is how many keys of the servers it is split into (a window of arrivals is one), replicas how many of a server's replicas must have a batch before it
/// counts, patience how long a failover is waited for, in seconds or as "60s". from_replicas lets replicas answer, which
/// may lag behind.
///
/// A call for one key is a round trip to a server; add_many and contains_many take many at once.
#[pyclass(frozen, weakref, module = "everbloom.redis", name = "Filter")]
pub(crate) struct PyRedisFilter {
    name: String,
    spec: Spec,
    hashing: Hashing,
    promise: Promise,
    window: Option<Duration>,
    scale: ImportanceScale,
    importance_max: Option<f64>,
    writer: Mutex<Writer>,
    signals: Arc<Signals>,
    /// The process that opened it.
    process: u32,
}

/// Looks at Python's signals between two attempts.
#[derive(Debug, Default)]
struct Signals {
    /// What a handler raised.
    raised: Mutex<Option<PyErr>>,
}

impl Signals {
    /// What a handler raised, or what a server did not do.
    fn error(&self, py: Python<'_>, error: Error) -> PyErr {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| server_error(py, error))
    }
}

impl Watcher for Signals {
    fn should_stop(&self) -> bool {
        let Err(raised) = Python::attach(|py| py.check_signals()) else { return false };
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
        true
    }
}

/// Where a filter is, from what was given.
fn options(
    url: Option<&str>,
    replicas: u32,
    from_replicas: bool,
    patience: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Options, Arc<Signals>)> {
    let mut options = Options::named(url.map(str::to_string));
    options.replicas = replicas;
    options.from_replicas = from_replicas;
    if let Some(patience) = patience {
        options.patience = to_span(patience, "patience")?;
    }
    let signals = Arc::new(Signals::default());
    options.watcher = signals.clone();
    Ok((options, signals))
}

impl PyRedisFilter {
    /// Opened: from here on this process writes to it under a name of its own.
    fn opened(py: Python<'_>, filter: Filter, signals: Arc<Signals>, importance_max: Option<f64>) -> PyResult<Self> {
        let (name, spec, hashing) = (filter.name().to_string(), filter.spec().clone(), *filter.hashing());
        let (promise, window) = (filter.promise(), filter.window().map(|(window, _)| window));
        let process = std::process::id();
        let writer = py.detach(|| Writer::new(filter, &new_name()));
        let writer = Mutex::new(writer.map_err(|error| signals.error(py, error))?);
        let scale = ImportanceScale::linear(importance_max.unwrap_or(1.0)).or_raise(py)?;
        Ok(PyRedisFilter { name, spec, hashing, promise, window, scale, importance_max, writer, signals, process })
    }

    /// Does something on the servers, while other threads run.
    fn ask<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut Writer) -> Result<T, Error> + Send) -> PyResult<T> {
        if std::process::id() != self.process {
            let problem = "the filter was opened before this process was forked, and would take its parent's answers";
            return Err(server_error(py, Error::Usage(format!("{problem}; open it in each process"))));
        }
        let answer = py.detach(|| ask(&mut self.writer.lock().unwrap_or_else(PoisonError::into_inner)));
        answer.map_err(|error| self.signals.error(py, error))
    }

    fn observe(
        &self,
        py: Python<'_>,
        keys: Keys<'_>,
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> PyResult<()> {
        self.ask(py, |writer| writer.observe(&hashed(keys, &self.hashing), importances, verdicts))
    }
}

#[pymethods]
impl PyRedisFilter {
    #[new]
    #[pyo3(
        signature = (name, url = None, spec = "auto", *, shards = None, replicas = 0, from_replicas = false, patience = None, **goal),
        text_signature = "(name, url=None, spec='auto', *, shards=None, replicas=0, from_replicas=False, patience=None, \
                          memory=None, fpr=None, expect=None, window=None, importance=False, seed=0)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn build(
        py: Python<'_>,
        name: &str,
        url: Option<&str>,
        spec: &str,
        shards: Option<u32>,
        replicas: u32,
        from_replicas: bool,
        patience: Option<&Bound<'_, PyAny>>,
        goal: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (options, signals) = options(url, replicas, from_replicas, patience)?;
        let wanted = Wanted::new(spec, goal, py)?;
        let described = goal.map_or(Ok(false), |goal| {
            goal.iter()
                .try_fold(false, |any, (key, value)| Ok::<_, PyErr>(any || key.ne("importance")? && !value.is_none()))
        })?;
        let filter = match described || spec != "auto" || shards.is_some() {
            true => {
                let plan = wanted.plan_in_shards(py, shards)?;
                py.detach(|| Filter::open_or_create(&options, name, &plan, wanted.besides.window))
            }
            false => py.detach(|| Filter::open(&options, name)).map_err(|error| match error {
                Error::NotFound(_) => {
                    let problem = format!("there is no filter '{name}' on these servers");
                    Error::NotFound(format!("{problem}; say what it is to be, as memory='64MiB', and it is made"))
                }
                other => other,
            }),
        };
        let filter = filter.map_err(|error| signals.error(py, error))?;
        if wanted.besides.importance_max.is_some() {
            filter.check_importance().map_err(|error| server_error(py, error))?;
        }
        Self::opened(py, filter, signals, wanted.besides.importance_max)
    }

    /// Remembers a key; True if it seems new. A round trip to a server.
    #[pyo3(signature = (key, /, *, importance = None))]
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>, importance: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let hash = [keys::hash(key, &self.hashing)?];
        let importances = match importance {
            None => Importances::default(),
            Some(value) => Importances::All(self.scale.of(value.extract()?).or_raise(py)?),
        };
        let mut verdict = [Verdict::Distinct];
        self.observe(py, Keys::Hashes(&hash), importances, &mut verdict)?;
        Ok(verdict[0].is_distinct())
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (hash, mut found) = ([keys::hash(key, &self.hashing)?], [false]);
        self.ask(py, |writer| writer.filter().contains(&hash, &mut found))?;
        Ok(found[0])
    }

    /// Remembers many keys: lists, generators, NumPy arrays, Arrow columns, Series.
    #[pyo3(signature = (*keys))]
    fn update(&self, py: Python<'_>, keys: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut verdicts = vec![Verdict::Distinct; CHUNK];
        for keys in keys {
            batch::for_each(&keys, &self.hashing, &mut |_, part| {
                self.observe(py, part.keys, Importances::default(), &mut verdicts[..part.keys.len()])
            })?;
        }
        Ok(())
    }

    /// Remembers many keys, and says of each whether it seems new: an array of bool, in order, repeats within the batch
    /// included. A null in an Arrow column is new, and not remembered.
    ///
    /// After an error nobody knows which of the keys counted. The same call again gets the answers that it should have had.
    #[pyo3(signature = (keys, *, importance = None, out = None))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        importance: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let room = Room::new(keys, out)?;
        let given: Given<_> = importances(&self.scale, importance, keys.len().ok())?;
        given.check("importance", keys)?;
        let (mut all, mut start, mut verdicts, mut call) = (Vec::new(), 0, Vec::new(), Call::default());
        let done = batch::for_each(keys, &self.hashing, &mut |py, part| {
            let weights = given.of(py, "importance", start, &part)?;
            let weights = weights.as_deref().map_or(Importances::default(), Importances::Each);
            verdicts.clear();
            verdicts.resize(part.keys.len(), Verdict::Distinct);
            let hashes = || hashed(part.keys, &self.hashing);
            self.ask(py, |writer| writer.observe_part(&mut call, &hashes(), weights, &mut verdicts))?;
            let new: Vec<u8> = verdicts.iter().map(|verdict| u8::from(verdict.is_distinct())).collect();
            part.append(&new, 1, &mut all);
            start += part.rows();
            Ok(())
        });
        let done = done.and_then(|()| given.check_rows(keys.py(), "importance", start));
        let ended = self.ask(keys.py(), |writer| {
            writer.end(&call, done.is_ok());
            Ok(())
        });
        room.filled(&all, done.and(ended))
    }

    /// Whether many keys seem to have been here: an array of bool, in order. A null in an Arrow column has not.
    #[pyo3(signature = (keys, *, out = None))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask_many(keys, out, &self.hashing, &|py, keys, found| {
            self.ask(py, |writer| writer.filter().contains(&hashed(keys, &self.hashing), found))
        })
    }

    /// The items that nobody has seen yet, one by one as they come, a round trip for each; all are remembered.
    #[pyo3(signature = (items, *, key = None, importance = None))]
    fn unseen<'py>(
        slf: &Bound<'py, Self>,
        items: &Bound<'py, PyAny>,
        key: Option<&Bound<'py, PyAny>>,
        importance: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("everbloom._unseen")?.call_method1("unseen_on_servers", (slf, items, key, importance))
    }

    /// Hashes keys once, for this filter and every other one with the same seed.
    fn hashes(&self, keys: &Bound<'_, PyAny>) -> PyResult<Hashes> {
        Hashes::new(keys, &self.hashing)
    }

    /// What the filter looks like now. Servers pass over its cells, shard by shard.
    fn status(&self, py: Python<'_>) -> PyResult<Status> {
        let (status, standing) = self.ask(py, |writer| {
            let status = writer.filter().status()?;
            Ok((status, writer.filter_ref().standing(&status)))
        })?;
        Ok(Status::new(&status, standing))
    }

    /// What servers count, at once: arrivals, those called new, memory, and the nodes with the number of shards on each.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = self.ask(py, |writer| writer.filter().info())?;
        let all = PyDict::new(py);
        all.set_item("name", &self.name)?;
        all.set_item("spec", info.spec.to_string())?;
        all.set_item("shards", info.shards)?;
        all.set_item("memory_bytes", info.memory_bytes)?;
        all.set_item("observed", info.observed)?;
        all.set_item("distinct", info.distinct)?;
        all.set_item("window_seconds", self.window.map(|window| window.as_secs_f64()))?;
        all.set_item("forgotten", self.forgotten(py)?)?;
        all.set_item("nodes", info.nodes.into_iter().collect::<std::collections::BTreeMap<_, _>>())?;
        Ok(all)
    }

    /// All of it as a filter of this process, each shard as it is when its turn comes.
    fn copy(&self, py: Python<'_>) -> PyResult<PyFilter> {
        let filter = self.ask(py, |writer| writer.filter().save())?;
        PyFilter::new(py, filter, self.window)?.with_importance(py, self.importance_max)
    }

    /// Takes a filter away from servers, even a half-made one.
    #[staticmethod]
    #[pyo3(signature = (name, url = None, *, patience = None))]
    fn delete(py: Python<'_>, name: &str, url: Option<&str>, patience: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (options, signals) = options(url, 0, false, patience)?;
        py.detach(|| Filter::delete_named(&options, name)).map_err(|error| signals.error(py, error))
    }

    /// Puts a filter of this process on servers, as it is now, but without its audit; with replace, in the place of what has
    /// the name, which stays until all of the new one is there.
    #[staticmethod]
    #[pyo3(signature = (name, filter, url = None, *, replace = false, replicas = 0, patience = None))]
    fn load(
        py: Python<'_>,
        name: &str,
        filter: &Bound<'_, PyFilter>,
        url: Option<&str>,
        replace: bool,
        replicas: u32,
        patience: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (options, signals) = options(url, replicas, false, patience)?;
        let (own, window): (AnyFilter, _) = filter.get().for_servers(py);
        let importance_max = filter.get().largest_importance();
        let loaded = py.detach(|| Filter::load(&options, name, own, window, replace));
        Self::opened(py, loaded.map_err(|error| signals.error(py, error))?, signals, importance_max)
    }

    /// The filter's name on the servers.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The kind and every parameter, as specs are written.
    #[getter]
    fn spec(&self) -> String {
        self.spec.to_string()
    }

    /// The kind of filter.
    #[getter]
    fn kind(&self) -> &str {
        self.spec.kind()
    }

    /// Every parameter and its value.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters_of(py, &self.spec)
    }

    /// The seed of hashing and of every random choice.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.hashing.seed()
    }

    /// What was promised when the filter was planned.
    #[getter]
    fn promise(&self) -> PyPromise {
        PyPromise::from(&self.promise)
    }

    /// Whether a key that was added is found for ever.
    #[getter]
    fn never_forgets(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!KINDS.of(&self.spec).or_raise(py)?.forgets(&self.spec))
    }

    /// The largest importance that add takes.
    #[getter]
    fn importance_max(&self) -> f64 {
        self.importance_max.unwrap_or(1.0)
    }

    /// How many keys that this process added were lost in a failover; replicas=1 waits until a replica has them.
    #[getter]
    fn forgotten(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |writer| Ok(writer.forgotten().keys))
    }

    fn __repr__(&self) -> String {
        let promise = PyPromise::from(&self.promise);
        format!("<everbloom.redis.Filter '{}', '{}', {}>", self.name, self.spec, promise.in_words())
    }
}
