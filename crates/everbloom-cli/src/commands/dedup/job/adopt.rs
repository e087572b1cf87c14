//! A run that goes on with a state: it takes the rules that the state was saved with, and refuses others.

use super::{Job, Rules};
use crate::Cli;
use crate::args::quantity;
use crate::failure::{Failure, Result};
use clap::CommandFactory as _;
use clap::parser::ValueSource;
use everbloom::kind::size_typed;
use everbloom::planning;
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::path::Path;

impl Job {
    /// The job with the rules that a state was saved with. An option that was typed and means something else is refused.
    pub(crate) fn adopt(&mut self, path: &Path, saved: &Rules) -> Result<()> {
        let (now, before) = (fields(&self.rules)?, fields(saved)?);
        for (name, typed) in typed() {
            let mut others = before.clone();
            let Some(value) = now.get(&name) else { continue };
            others.insert(name.clone(), value.clone());
            let others: Rules = serde_json::from_value(others.into()).map_err(Failure::new)?;
            if others.meaning() != saved.meaning() {
                return Err(Failure::at(path, contradiction(&name, &typed, before.get(&name), value)));
            }
        }
        let on_error = self.rules.keys.on_error;
        self.rules = saved.clone();
        self.rules.keys.on_error = on_error;
        Ok(())
    }
}

impl Rules {
    /// Whether what was written down, by a later build perhaps, has no rules besides.
    pub(crate) fn are_all_in(&self, written: &Value) -> bool {
        let (known, written) = (fields(self).unwrap_or_default(), written["rules"].as_object());
        written.is_some_and(|rules| rules.keys().all(|name| known.contains_key(name)))
    }
}

/// The values of rules, by the options that set them.
fn fields(rules: &Rules) -> Result<Map<String, Value>> {
    match serde_json::to_value(rules).map_err(Failure::new)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(Failure::new("rules are an object")),
    }
}

/// The options that were typed, as fields are called, with their values.
fn typed() -> Vec<(String, String)> {
    let matches = Cli::command().get_matches();
    let Some((_, matches)) = matches.subcommand() else { return Vec::new() };
    let ids = matches.ids().map(|id| id.as_str());
    let ids = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    let value = |id: &str| matches.get_raw(id).and_then(Iterator::last).map(OsStr::to_string_lossy).unwrap_or_default();
    ids.map(|id| (id.to_string(), value(id).into_owned())).collect()
}

fn contradiction(name: &str, typed: &str, before: Option<&Value>, now: &Value) -> String {
    let option = format!("--{}", name.replace('_', "-"));
    let is_flag = now.is_boolean() || typed.is_empty();
    let now = if is_flag { option.clone() } else { format!("{option} {typed}") };
    let saved = match before.and_then(|value| shown(name, value)) {
        Some(before) => format!("the state was saved with {}, not {now}", format!("{option} {before}").trim_end()),
        None if is_flag => format!("the state was saved without {now}"),
        None => format!("the state was saved without {option}, not with {now}"),
    };
    format!("{saved}; leave {option} out to go on with it, or name another state file")
}

/// A value as it is typed; nothing if it is what holds where nothing is typed.
fn shown(name: &str, value: &Value) -> Option<String> {
    let number = value.as_f64().unwrap_or_default();
    Some(match (name, value) {
        (_, Value::Null | Value::Bool(false)) => return None,
        (_, Value::Bool(true)) => String::new(),
        ("seed", _) if number == 0.0 => return None,
        ("audit", Value::String(_)) => String::new(),
        (_, Value::String(text)) if [planning::AUTO, "yes", "linear"].contains(&text.as_str()) => return None,
        ("memory", Value::Number(bits)) => size_typed(bits.as_u64().unwrap_or_default()),
        ("fpr", _) => quantity::exact_rate(number),
        ("delimiter", _) => quantity::delimiter_typed(number as u8),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Number(number)) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        ("audit", Value::Object(sized)) => sized["bits"].as_u64().map(size_typed).unwrap_or_default(),
        (_, Value::Object(table)) => table.values().find_map(Value::as_str).unwrap_or_default().into(),
        (_, other) => other.to_string(),
    })
}
