//! What the page's controls say, as the address carries it: the options of `plan`, but no files of this machine.

use super::Desk;
use crate::args::KeyArgs;
use crate::commands::plan::{Asked, Sampled};
use crate::failure::{Failure, Result, from_usage};
use clap::{CommandFactory as _, Parser};
use everbloom::kind::did_you_mean;
use std::sync::PoisonError;

/// The options that the page has as they are.
const PLAIN: [&str; 12] = [
    "memory",
    "fpr",
    "fnr",
    "expect",
    "arrivals",
    "window",
    "refresh",
    "seed",
    "filter",
    "cost-fp",
    "cost-fn",
    "memory-cost",
];

/// Those whose value could name a file, with the values that are none.
const CHOICES: [(&str, &[&str]); 3] = [
    ("importance", &["linear", "exponential"]),
    ("cost-fp-by-importance", &["constant", "linear"]),
    ("cost-fn-by-importance", &["constant", "linear"]),
];

/// What says how keys come back.
const OF_STREAM: [&str; 5] = ["stream", "exponent", "phases", "lags", "sample"];

/// What says where the keys of a file are that is sent.
const OF_KEYS: [&str; 4] = ["form", "key", "delimiter", "header"];

/// How the records of such a file may be written.
const FORMS: [&str; 4] = ["lines", "fields", "csv", "json"];

/// The options that say where keys are, without a command before them.
#[derive(Debug, Parser)]
#[command(name = "explore", no_binary_name = true)]
struct KeyWords {
    #[command(flatten)]
    keys: KeyArgs,
}

/// The longest value.
const LONGEST: usize = 10_000;

/// Names and values from an address.
pub(super) struct Settings<'a>(pub(super) &'a [(String, String)]);

impl Settings<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let given = self.0.iter().rev().find(|(given, value)| given == name && !value.trim().is_empty());
        given.map(|(_, value)| value.trim())
    }

    /// A value whose spaces count.
    fn get_as_it_is(&self, name: &str) -> Option<&str> {
        let given = self.0.iter().rev().find(|(given, value)| given == name && !value.is_empty());
        given.map(|(_, value)| value.as_str())
    }

    /// The page that asks, so that its newest question is answered.
    pub(super) fn page(&self) -> Option<&str> {
        self.get("page")
    }

    /// What is asked.
    pub(super) fn asked(&self, desk: &Desk) -> Result<Asked> {
        self.check_names()?;
        let mut words = Vec::new();
        let mut option = |name: &str, value: &str| words.push(format!("--{name}={value}"));
        PLAIN.iter().filter_map(|name| Some((name, self.get(name)?))).for_each(|(name, value)| option(name, value));
        for (name, choices) in CHOICES {
            let Some(value) = self.get(name).filter(|value| *value != "none") else { continue };
            if !choices.contains(&value) {
                return Err(Failure::new(format!("--{name} is '{value}' here; take one of {}", choices.join(", "))));
            }
            option(name, value);
        }
        let lags = self.get("lags").filter(|_| self.get("stream") == Some("lags"));
        // Read by the code that reads the file of --stream lag:FILE.
        let file = lags.map(|lags| lag_file(lags, desk)).transpose()?;
        match self.get("stream").unwrap_or("unknown") {
            "unknown" | "sample" => {}
            "uniform" => option("stream", "uniform"),
            "zipf" => option("stream", &format!("zipf:{}", self.get("exponent").unwrap_or("1"))),
            "phases" => option("stream", &format!("phases:{}", self.get("phases").unwrap_or("10"))),
            "lags" => match &file {
                Some(file) => option("stream", &format!("lag:{}", file.path().display())),
                None => {
                    return Err(Failure::new(
                        "say how far apart repeats are: a lag and a weight on each line, as '100 0.25'",
                    ));
                }
            },
            other => {
                let known = ["unknown", "uniform", "zipf", "phases", "lags", "sample"];
                return Err(unknown("stream", other, &known));
            }
        }
        let sample = if self.get("stream") == Some("sample") { Some(self.sample(desk)?) } else { None };
        let path = file.as_ref().map(|file| file.path().display().to_string());
        Asked::new(&words, sample).map_err(|failure| match (failure, path) {
            (Failure::Message(problem), Some(path)) => Failure::Message(problem.replace(&path, "lags")),
            (failure, _) => failure,
        })
    }

    fn check_names(&self) -> Result<()> {
        let choices = CHOICES.iter().map(|(name, _)| *name);
        let known: Vec<&str> = PLAIN.into_iter().chain(choices).chain(OF_STREAM).chain(["page"]).collect();
        self.check(&known)
    }

    fn check(&self, known: &[&str]) -> Result<()> {
        for (name, value) in self.0 {
            if !known.contains(&name.as_str()) {
                return Err(unknown("setting", name, known));
            }
            if value.len() > LONGEST {
                return Err(Failure::new(format!("{name} has {} bytes; give at most {LONGEST}", value.len())));
            }
        }
        Ok(())
    }

    /// Where the keys of a file are that is sent: as the page says, else as on the command line.
    pub(super) fn keys(&self, usual: &KeyArgs) -> Result<KeyArgs> {
        let known: Vec<&str> = OF_KEYS.into_iter().chain(["name"]).collect();
        self.check(&known)?;
        let Some(form) = self.get("form") else { return Ok(usual.clone()) };
        let given = |name: &str| self.get_as_it_is(name).map(|value| format!("--{name}={value}"));
        let flag = |name: &str| self.get(name).map(|_| format!("--{name}"));
        let words: Vec<String> = match form {
            "lines" => Vec::new(),
            "fields" => [given("key"), given("delimiter"), flag("header")].into_iter().flatten().collect(),
            "csv" => {
                [Some("--csv".into()), given("key"), given("delimiter"), flag("header")].into_iter().flatten().collect()
            }
            "json" => [Some("--json".into()), given("key")].into_iter().flatten().collect(),
            other => return Err(unknown("form", other, &FORMS)),
        };
        if form != "lines" && given("key").is_none() {
            let example = if form == "json" { "such as .user.id" } else { "such as 1, or its name" };
            return Err(Failure::new(format!("--key is missing; say which part of a record is its key, {example}")));
        }
        let parsed = KeyWords::try_parse_from(words).map_err(|error| from_usage(&error, &KeyWords::command()))?;
        Ok(KeyArgs { ignore_case: usual.ignore_case, null: usual.null, on_error: usual.on_error, ..parsed.keys })
    }

    /// The sample that is named, or the newest.
    fn sample(&self, desk: &Desk) -> Result<Sampled> {
        let samples = desk.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match self.get("sample") {
            Some(wanted) => samples.iter().rev().find(|sample| sample.name == wanted),
            None => samples.last(),
        };
        found.cloned().ok_or_else(|| match self.get("sample") {
            Some(wanted) => Failure::new(format!("the sample '{wanted}' is not here; drop it onto the page")),
            None => Failure::new("there is no sample yet; drop a file onto the page, or start everbloom explore FILE"),
        })
    }
}

fn lag_file(lags: &str, desk: &Desk) -> Result<tempfile::NamedTempFile> {
    let fail = |error: std::io::Error| Failure::io("a temporary file", &error);
    let file = tempfile::NamedTempFile::new_in(&desk.folder).map_err(fail)?;
    std::fs::write(file.path(), lags).map_err(fail)?;
    Ok(file)
}

fn unknown(what: &str, given: &str, known: &[&str]) -> Failure {
    let given: String = given.chars().take(60).collect();
    match did_you_mean(&given, known.to_vec()) {
        Some(near) => Failure::new(format!("there is no {what} '{given}'; did you mean '{near}'?")),
        None => Failure::new(format!("there is no {what} '{given}'; take one of {}", known.join(", "))),
    }
}
