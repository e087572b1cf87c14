//! A plan that a page asks for: the words, the answer and the errors of the command line.

use super::importance::Importances;
use super::stream::Repeats;
use super::{Document, Plan, text};
use crate::args::KeyArgs;
use crate::failure::{Failure, Result, from_usage};
use clap::{CommandFactory as _, Parser};
use everbloom::planning::AUTO;
use everbloom_all::KINDS;
use everbloom_forecast::{Question, Recommendation, Stream};
use serde::Serialize;

/// The options of `plan`, without its name before them.
#[derive(Debug, Parser)]
#[command(name = "plan", no_binary_name = true)]
struct Words {
    #[command(flatten)]
    plan: Plan,
}

/// A stream that was learned from a file, the file's name, and where its keys are.
#[derive(Clone)]
pub(crate) struct Sampled {
    pub(crate) name: String,
    pub(crate) stream: Stream,
    pub(crate) keys: KeyArgs,
}

/// What was asked.
pub(crate) struct Asked {
    plan: Plan,
    pub(crate) question: Question,
    importances: Option<Importances>,
}

/// What `plan` would print, for a page.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    /// Names and values, as they stand in its table.
    rows: Vec<(&'static str, String)>,
    document: Document,
}

impl Asked {
    /// What these options ask, of a sample if one is given.
    pub(crate) fn new(words: &[String], sample: Option<Sampled>) -> Result<Self> {
        let words = Words::try_parse_from(words).map_err(|error| from_usage(&error, &Words::command()))?;
        let mut plan = words.plan;
        if sample.is_some() && plan.importance.is_some() {
            return Err(Failure::new(
                "the importances of a sample are in its records, of which this page reads the keys alone; leave importance out, \
                 or ask everbloom plan --stream FILE --importance FIELD --importance-max NUMBER",
            ));
        }
        let importances = Importances::of(&plan)?;
        let learned = sample.map(|sample| {
            plan.stream = Some(Repeats::Sample(sample.name.into()));
            plan.keys = sample.keys;
            sample.stream
        });
        if let Some(spec) = plan.filter.as_ref().filter(|spec| spec.kind() != AUTO) {
            KINDS.of(spec)?;
        }
        let question = plan.question(importances.as_ref(), learned)?;
        Ok(Asked { plan, question, importances })
    }

    /// An answer as `plan` tells it.
    pub(crate) fn told(&self, answer: &Recommendation) -> Told {
        let document = self.plan.document(&self.question, answer, self.importances.as_ref());
        Told { rows: text::rows(&document), document }
    }
}
