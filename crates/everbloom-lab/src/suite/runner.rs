//! Runs the cells of experiments on all cores, keeping each one that is finished.

use super::store::{Found, Place};
use super::table::csv;
use super::{Cell, Conclusion, Context, Experiment, Row, Scale, Scope, Store, Table, report};
use crate::charts;
use everbloom::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Cells that run together allocate no more than this, unless a single one does.
const MEMORY_BUDGET: u64 = 2560 << 20;

/// Who wants to know how far a run is. Seconds are expected ones, of one core.
pub trait Progress: Sync {
    /// So much is to do in all.
    fn start(&self, _seconds: f64) {}
    /// So much more is done.
    fn advance(&self, _seconds: f64) {}
    /// Something to tell.
    fn note(&self, _text: &str) {}
}

/// Nobody wants to know.
pub struct Silent;

impl Progress for Silent {}

/// What is to be run, and where results go.
#[derive(Debug, Clone)]
pub struct Request {
    /// How much work.
    pub scale: Scale,
    /// Number of seeds; each experiment's own choice if not given.
    pub num_seeds: Option<u64>,
    /// The folder of recordings, if there is one.
    pub data: Option<PathBuf>,
    /// How many cells run at a time.
    pub threads: usize,
}

impl Request {
    /// What an experiment is asked for.
    pub fn scope(&self, experiment: &Experiment) -> Scope {
        // One run of a paper's own size says more than several smaller ones.
        let whole = if experiment.expected.full.is_some() { 1 } else { experiment.seeds };
        let own = self.scale.pick(experiment.seeds.min(2), experiment.seeds, whole);
        Scope { scale: self.scale, num_seeds: self.num_seeds.unwrap_or(own), data: self.data.clone() }
    }
}

/// What came of an experiment.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its name.
    pub name: &'static str,
    /// Why it was not run, if it was not.
    pub skipped: Option<String>,
    /// How many cells it has.
    pub cells: usize,
    /// How many of them were there from an earlier run.
    pub reused: usize,
    /// How many were there, but damaged, and were run again.
    pub damaged: usize,
    /// How long its cells took, one after another.
    pub seconds: f64,
    /// Its verdicts and charts, by their names.
    pub conclusion: Conclusion,
}

/// An experiment being run.
struct Running {
    experiment: &'static Experiment,
    scope: Scope,
    cells: Vec<Cell>,
    rows: Vec<Option<Vec<Row>>>,
    left: usize,
    ran: Ran,
}

/// The state that the workers share.
struct Shared {
    running: Vec<Running>,
    /// Cells to run, the longest last.
    queue: Vec<(usize, usize)>,
    allocated: u64,
    failure: Option<Error>,
}

/// Runs experiments and writes their results. An error leaves what is finished.
pub fn run(
    experiments: &[&'static Experiment],
    request: &Request,
    store: &Store,
    progress: &dyn Progress,
) -> Result<Vec<Ran>> {
    let mut skipped = Vec::new();
    let mut running = Vec::new();
    for experiment in experiments {
        let scope = request.scope(experiment);
        match scope.lacks(experiment) {
            Some(why) => skipped.push((experiment.name, why)),
            None => running.push(prepare(experiment, scope, store)?),
        }
    }
    progress.start(running.iter().map(Running::to_do).sum());
    let plain = queue(&running, false);
    let running = work(running, plain, request.threads, store, progress)?;
    let timed = queue(&running, true);
    let running = work(running, timed, 1, store, progress)?;
    let mut done = Vec::new();
    for mut running in running {
        running.conclude(store)?;
        done.push(running.ran);
    }
    done.extend(skipped.into_iter().map(|(name, why)| Ran { skipped: Some(why), ..Ran::nothing(name) }));
    let place = |ran: &Ran| experiments.iter().position(|experiment| experiment.name == ran.name);
    done.sort_by_key(place);
    Ok(done)
}

/// The cells of an experiment, and what is there of them.
fn prepare(experiment: &'static Experiment, scope: Scope, store: &Store) -> Result<Running> {
    let cells = (experiment.cells)(&scope).map_err(|error| within(experiment.name, "its cells", error))?;
    let mut running = Running {
        experiment,
        scope,
        rows: Vec::new(),
        left: 0,
        ran: Ran { cells: cells.len(), ..Ran::nothing(experiment.name) },
        cells,
    };
    for index in 0..running.cells.len() {
        let found = store.load(&running.place(index))?;
        running.ran.reused += usize::from(matches!(found, Found::Rows(_)));
        running.ran.damaged += usize::from(matches!(found, Found::Damaged));
        running.rows.push(if let Found::Rows(rows) = found { Some(rows) } else { None });
    }
    running.left = running.cells.len() - running.ran.reused;
    Ok(running)
}

impl Ran {
    fn nothing(name: &'static str) -> Self {
        let conclusion = Conclusion::new();
        Ran { name, skipped: None, cells: 0, reused: 0, damaged: 0, seconds: 0.0, conclusion }
    }
}

impl Running {
    fn place(&self, cell: usize) -> Place<'_> {
        let (experiment, cell) = (self.experiment, &self.cells[cell]);
        Place {
            experiment: experiment.name,
            revision: experiment.revision,
            scale: self.scope.scale.name(),
            cell: &cell.name,
            seed: cell.seed,
        }
    }

    fn open(&self) -> impl Iterator<Item = usize> {
        (0..self.cells.len()).filter(|index| self.rows[*index].is_none())
    }

    fn to_do(&self) -> f64 {
        self.open().map(|index| self.cells[index].seconds).sum()
    }

    /// Writes tables, charts and verdicts.
    fn conclude(&mut self, store: &Store) -> Result<()> {
        if self.left > 0 || !self.ran.conclusion.verdicts.is_empty() {
            return Ok(());
        }
        let name = self.experiment.name;
        let mut table = Table::default();
        for (cell, rows) in self.cells.iter().zip(&self.rows) {
            table.extend(cell.seed, rows.iter().flatten().cloned());
        }
        let mut conclusion =
            (self.experiment.conclude)(&table, &self.scope).map_err(|error| within(name, "its conclusion", error))?;
        if self.experiment.source == super::OURS {
            conclusion.verdicts.iter_mut().for_each(|verdict| verdict.ours = true);
        }
        check(&conclusion).map_err(|problem| within(name, "its conclusion", problem))?;
        for table_name in table.names() {
            store.write(&Path::new(name).join(format!("{table_name}.csv")), csv(&table, table_name).as_bytes())?;
        }
        for figure in &conclusion.figures {
            let drawn = charts::svg(figure).map_err(|error| within(name, &figure.name, error))?;
            store.write(&Path::new(name).join(format!("{}.svg", figure.name)), drawn.as_bytes())?;
            store.write(&Path::new(name).join(report::points_file(&figure.name)), figure.points().as_bytes())?;
        }
        let result = report::Results::of(self.experiment, &self.scope, &table, &conclusion);
        store.write_json(&Path::new(name).join(report::FILE), &result)?;
        self.ran.conclusion = conclusion;
        Ok(())
    }
}

/// Every verdict has a name of its own and a number.
fn check(conclusion: &Conclusion) -> Result<()> {
    let mut known = BTreeSet::new();
    for verdict in &conclusion.verdicts {
        let problem = match verdict.numbers.iter().find(|number| !number.value.is_finite()) {
            _ if !known.insert(&verdict.id) => "a name that another one has",
            _ if verdict.numbers.is_empty() => "no number",
            Some(_) => "a number that is none",
            None => continue,
        };
        return Err(Error::Infeasible {
            wanted: format!("the verdict '{}'", verdict.id),
            reason: format!("it has {problem}"),
            remedy: "mend the experiment".into(),
        });
    }
    Ok(())
}

/// The open cells of timed experiments or of the others, the longest last.
fn queue(running: &[Running], timed: bool) -> Vec<(usize, usize)> {
    let mut queue: Vec<_> = running
        .iter()
        .enumerate()
        .filter(|(_, running)| running.experiment.timed == timed)
        .flat_map(|(place, running)| running.open().map(move |cell| (place, cell)).collect::<Vec<_>>())
        .collect();
    let seconds = |(place, cell): &(usize, usize)| running[*place].cells[*cell].seconds;
    queue.reverse();
    queue.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    queue
}

fn work(
    running: Vec<Running>,
    queue: Vec<(usize, usize)>,
    threads: usize,
    store: &Store,
    progress: &dyn Progress,
) -> Result<Vec<Running>> {
    let shared = Mutex::new(Shared { running, queue, allocated: 0, failure: None });
    let freed = Condvar::new();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| while one_cell(&shared, &freed, store, progress) {});
        }
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    match shared.failure {
        None => Ok(shared.running),
        Some(error) => Err(error),
    }
}

fn lock<'a>(shared: &'a Mutex<Shared>) -> MutexGuard<'a, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the next cell; false if there is none.
fn one_cell(shared: &Mutex<Shared>, freed: &Condvar, store: &Store, progress: &dyn Progress) -> bool {
    let Some((place, index, cell)) = take(shared, freed) else { return false };
    let context = Context { progress, seconds: cell.seconds, told: std::cell::Cell::new(0.0) };
    let start = Instant::now();
    let outcome = (cell.work)(&context);
    let seconds = start.elapsed().as_secs_f64();
    context.done(1.0);
    let mut guard = lock(shared);
    guard.allocated -= cell.memory_bytes;
    if let Err(error) = finish(&mut guard, (place, index), cell, outcome, seconds, store) {
        guard.failure.get_or_insert(error);
    }
    freed.notify_all();
    true
}

/// The longest cell whose memory is to be had; waits for memory if there is none.
fn take(shared: &Mutex<Shared>, freed: &Condvar) -> Option<(usize, usize, Cell)> {
    let mut guard = lock(shared);
    loop {
        if guard.failure.is_some() || guard.queue.is_empty() {
            return None;
        }
        let fits = |(place, cell): &(usize, usize)| {
            let bytes = guard.running[*place].cells[*cell].memory_bytes;
            guard.allocated == 0 || bytes == 0 || guard.allocated + bytes <= MEMORY_BUDGET
        };
        if let Some(found) = guard.queue.iter().rposition(fits) {
            let (place, index) = guard.queue.remove(found);
            // The work moves out, so that it runs without the lock.
            let cell = &mut guard.running[place].cells[index];
            let taken = std::mem::replace(
                cell,
                Cell { name: cell.name.clone(), ..Cell::new("", cell.seed, |_| Ok(Vec::new())) },
            );
            guard.allocated += taken.memory_bytes;
            return Some((place, index, taken));
        }
        guard = freed.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
}

fn finish(
    shared: &mut Shared,
    (place, index): (usize, usize),
    cell: Cell,
    outcome: Result<Vec<Row>>,
    seconds: f64,
    store: &Store,
) -> Result<()> {
    let running = &mut shared.running[place];
    let rows = outcome.map_err(|error| within(running.experiment.name, &cell.name, error))?;
    store.save(&running.place(index), &rows, seconds)?;
    running.rows[index] = Some(rows);
    running.ran.seconds += seconds;
    running.left -= 1;
    running.conclude(store)
}

fn within(experiment: &str, what: &str, error: Error) -> Error {
    Error::io(format!("{experiment}, {what}: {error}"))
}
