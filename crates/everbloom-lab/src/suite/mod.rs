//! What an experiment is, and how experiments are run, kept, drawn and judged.
//!
//! An [`Experiment`] names its [`Cell`]s: units of work that know their seed and depend on nothing
//! else. The [`runner`] spreads the cells of all experiments over all cores and keeps each one that
//! is finished in a [`Store`], so that a run that was interrupted goes on where it was. From the rows
//! that the cells measured (a [`Table`]) the experiment draws its conclusion: [`Figure`]s, and a
//! [`Verdict`] on every claim. The same seeds give the same results, whatever the number of cores.
//!
//! Tidy rows in, so that an experiment is short to write:
//!
//! ```
//! use everbloom::Result;
//! use everbloom_lab::suite::{Cell, Conclusion, Experiment, Outcome, Row, Scope, Seconds, Table};
//!
//! static DICE: Experiment = Experiment {
//!     name: "dice",
//!     source: "[Nobody 1970]",
//!     figure: "Figure 0",
//!     shows: "a die shows 3.5 on average",
//!     expected: Seconds { quick: 0.1, default: 0.1, full: None },
//!     seeds: 4,
//!     ..Experiment::of(cells, conclude)
//! };
//!
//! fn cells(scope: &Scope) -> Result<Vec<Cell>> {
//!     let cell = |seed| Cell::new("throws", seed, move |_| {
//!         let mut die = everbloom_cells::key::Generator::seeded(seed);
//!         let sum: u64 = (0..1000).map(|_| 1 + die.below(6)).sum();
//!         Ok(vec![Row::new("throws").label("dice", 1u64).value("mean", sum as f64 / 1000.0)])
//!     });
//!     Ok(scope.seeds().map(cell).collect())
//! }
//!
//! fn conclude(table: &Table, _: &Scope) -> Result<Conclusion> {
//!     let mean = table.need("throws", "mean", &[])?;
//!     let holds = (mean.mean() - 3.5).abs() < 4.0 * mean.error();
//!     Ok(Conclusion::new().verdict(Outcome::of(holds).on("mean", "Figure 0", "3.5").mean("measured", &mean)))
//! }
//! ```

mod plotted;
pub mod report;
pub mod runner;
mod store;
mod table;
mod verdict;

pub use crate::charts::{Axis, Figure, Look, Panel, Point, Series, svg};
pub use runner::{Progress, Ran, Request, run};
pub use store::{Store, write_whole};
pub use table::{Label, Row, Sample, Summary, Table};
pub use verdict::{Number, Outcome, Printed, Verdict, clearly_below, short};

use crate::bad;
use crate::datasets::real::{self, Recording};
use everbloom::kind::did_you_mean;
use everbloom::{Error, Result};
use std::ops::Range;
use std::path::PathBuf;

/// How much work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Enough to see that everything works: all experiments in a minute.
    Quick,
    /// All experiments in a quarter of an hour on two cores.
    #[default]
    Default,
    /// The papers' own sizes, however long that takes.
    Full,
}

impl Scale {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Default => "default",
            Scale::Full => "full",
        }
    }

    /// What fits the scale.
    pub fn pick<T>(self, quick: T, default: T, full: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Default => default,
            Scale::Full => full,
        }
    }
}

/// What an experiment is asked for.
#[derive(Debug, Clone)]
pub struct Scope {
    /// How much work is done.
    pub scale: Scale,
    /// Number of seeds.
    pub num_seeds: u64,
    /// The folder of recordings, if there is one.
    pub data: Option<PathBuf>,
}

impl Scope {
    /// The seeds to run.
    pub fn seeds(&self) -> Range<u64> {
        0..self.num_seeds
    }

    /// What fits the scale.
    pub fn pick<T>(&self, quick: T, default: T, full: T) -> T {
        self.scale.pick(quick, default, full)
    }

    /// A recorded stream, which must be there.
    pub fn recording(&self, name: &str) -> Result<Recording> {
        let found = self.data.as_deref().map(|folder| real::open(folder, name)).transpose()?.flatten();
        found.ok_or_else(|| Error::Infeasible {
            wanted: format!("an experiment on the recorded stream '{name}'"),
            reason: "the recording is not there".into(),
            remedy: "point EVERBLOOM_DATA at the folder that holds it".into(),
        })
    }

    /// Why an experiment cannot run here, if it cannot.
    pub fn lacks(&self, experiment: &Experiment) -> Option<String> {
        let missing = experiment.needs.iter().find(|name| !self.has(name))?;
        let file = real::KINDS.iter().find(|kind| kind.name == *missing).map_or("", |kind| kind.file);
        Some(match &self.data {
            None => format!("needs the recorded stream '{missing}' ({file}); point EVERBLOOM_DATA at its folder"),
            Some(folder) => format!("needs the recorded stream '{missing}': {} has no {file}", folder.display()),
        })
    }

    fn has(&self, name: &str) -> bool {
        let kind = real::KINDS.iter().find(|kind| kind.name == name);
        self.data.as_ref().zip(kind).is_some_and(|(folder, kind)| folder.join(kind.file).exists())
    }
}

/// Where a cell says how far it is.
pub struct Context<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) seconds: f64,
    pub(crate) told: std::cell::Cell<f64>,
}

impl Context<'_> {
    /// Says which share of the cell is done; never less than before.
    pub fn done(&self, share: f64) {
        let more = share.min(1.0) - self.told.get();
        if more > 0.0 {
            self.told.set(self.told.get() + more);
            self.progress.advance(more * self.seconds);
        }
    }
}

type Work = Box<dyn Fn(&Context<'_>) -> Result<Vec<Row>> + Send + Sync>;

/// A unit of work: everything it does follows from its seed and what it was made for.
pub struct Cell {
    /// What it does, with all of its parameters; no two cells of an experiment with the same seed have the same name.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// How long it takes, about; for the estimate of the time left.
    pub seconds: f64,
    /// What it allocates, if that is much.
    pub memory_bytes: u64,
    work: Work,
}

impl Cell {
    /// A cell of about a second.
    pub fn new(
        name: impl Into<String>,
        seed: u64,
        work: impl Fn(&Context<'_>) -> Result<Vec<Row>> + Send + Sync + 'static,
    ) -> Self {
        Cell { name: name.into(), seed, seconds: 1.0, memory_bytes: 0, work: Box::new(work) }
    }

    /// Says how long it takes, about.
    #[must_use]
    pub fn seconds(mut self, seconds: f64) -> Self {
        self.seconds = seconds.max(1e-3);
        self
    }

    /// Says how much it allocates.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }
}

/// How long an experiment takes on two cores, about.
#[derive(Debug, Clone, Copy)]
pub struct Seconds {
    /// At quick scale.
    pub quick: f64,
    /// As it is.
    pub default: f64,
    /// At the paper's own size, where that differs.
    pub full: Option<f64>,
}

impl Seconds {
    /// At a scale.
    pub fn at(&self, scale: Scale) -> f64 {
        scale.pick(self.quick, self.default, self.full.unwrap_or(self.default))
    }
}

/// What an experiment comes to.
#[derive(Debug, Clone, Default)]
pub struct Conclusion {
    /// Its charts.
    pub figures: Vec<Figure>,
    /// What came of every claim.
    pub verdicts: Vec<Verdict>,
}

impl Conclusion {
    /// Nothing yet.
    pub fn new() -> Self {
        Conclusion::default()
    }

    /// Adds a chart.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.figures.push(figure);
        self
    }

    /// Adds a verdict.
    #[must_use]
    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.verdicts.push(verdict);
        self
    }

    /// Adds verdicts.
    #[must_use]
    pub fn verdicts(mut self, verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        self.verdicts.extend(verdicts);
        self
    }
}

/// The source of experiments whose claims are all ours.
pub const OURS: &str = "everbloom";

/// An experiment: what the registry knows about it, its work and its conclusion.
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// Whose claims it checks, as PAPERS.md lists them; ours are "everbloom".
    pub source: &'static str,
    /// Which table, figure or section.
    pub figure: &'static str,
    /// One line for listings.
    pub shows: &'static str,
    /// What the paper's own figure or table shows, for the page to put beside ours; empty where it has none.
    pub printed: &'static str,
    /// How long it takes.
    pub expected: Seconds,
    /// How many seeds unless asked otherwise.
    pub seeds: u64,
    /// Raised when the work changes, so that cells of an earlier form are not taken for the present one.
    pub revision: u32,
    /// Whether it measures time, so that its cells must run one at a time.
    pub timed: bool,
    /// The recordings it cannot do without.
    pub needs: &'static [&'static str],
    /// Its cells.
    pub cells: fn(&Scope) -> Result<Vec<Cell>>,
    /// What they come to.
    pub conclude: fn(&Table, &Scope) -> Result<Conclusion>,
}

impl Experiment {
    /// An experiment of one seed in its first form that measures no time and needs no recording; its name and what
    /// it shows are still to be said.
    pub const fn of(
        cells: fn(&Scope) -> Result<Vec<Cell>>,
        conclude: fn(&Table, &Scope) -> Result<Conclusion>,
    ) -> Self {
        Experiment {
            name: "",
            source: "",
            figure: "",
            shows: "",
            printed: "",
            expected: Seconds { quick: 0.0, default: 0.0, full: None },
            seeds: 1,
            revision: 1,
            timed: false,
            needs: &[],
            cells,
            conclude,
        }
    }
}

/// The experiment of this name, or an error that suggests the nearest.
pub fn find(experiments: &[&'static Experiment], name: &str) -> Result<&'static Experiment> {
    experiments.iter().find(|experiment| experiment.name == name).copied().ok_or_else(|| {
        let names = experiments.iter().map(|experiment| experiment.name);
        let remedy = did_you_mean(name, names)
            .map_or("`everbloom lab list` shows all".to_string(), |name| format!("did you mean '{name}'?"));
        bad("experiment", name, "one of the lab's", &remedy)
    })
}
