//! A plan that a page asks for: the words, the answer and the errors of the command line.

use super::stream::Repeats;
use super::{Document, Plan, stream::Mix, text};
use crate::args::KeyArgs;
use crate::failure::{Result, from_usage};
use clap::{CommandFactory as _, Parser};
use everbloom::internal::forecast::AUTO;
use everbloom::{Question, Recommendation, Stream, filters};
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
    importance_max: Option<f64>,
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
        let (mix, importance_max) = plan.importance.as_ref().map(Mix::load).transpose()?.unzip();
        let learned = sample.map(|sample| {
            plan.stream = Some(Repeats::Sample(sample.name.into()));
            plan.keys = sample.keys;
            sample.stream
        });
        if let Some(spec) = plan.filter.as_ref().filter(|spec| spec.kind() != AUTO) {
            filters::kind(spec)?;
        }
        let question = plan.question(mix, importance_max, learned)?;
        Ok(Asked { plan, question, importance_max })
    }

    /// An answer as `plan` tells it.
    pub(crate) fn told(&self, answer: &Recommendation) -> Told {
        let document = self.plan.document(&self.question, answer, self.importance_max);
        Told { rows: text::rows(&document), document }
    }
}
