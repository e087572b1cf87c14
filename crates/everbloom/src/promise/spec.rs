//! Filter specs: `kind` or `kind:parameter=value,parameter=value`.
//!
//! A spec names a filter in one line, the same on the command line, in JSON, in a filter's bytes and
//! in the papers' re-runs. A full spec gives every parameter; what a partial one leaves out is
//! planned from a [`Goal`](crate::Goal).

use super::{Error, Result, suggestion};
use std::fmt;
use std::str::FromStr;

/// Longer specs are not names but mistakes.
const MAX_LENGTH: usize = 4096;

/// A filter kind and its parameters: the text itself, which is short and looked into seldom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec(String);

impl Spec {
    /// A spec that leaves everything to the planner.
    pub fn new(kind: impl Into<String>) -> Self {
        Spec(kind.into())
    }

    /// The spec with one more parameter.
    pub fn with(mut self, parameter: &str, value: impl ToString) -> Self {
        let before = if self.is_bare() { ':' } else { ',' };
        self.0.extend([before]);
        self.0.extend([parameter, "=", &value.to_string()]);
        self
    }

    /// Reads `kind:parameter=value,…`. Kinds and parameters are checked by a set of kinds, not here.
    pub fn parse(text: &str) -> Result<Self> {
        let fail = |problem: String| Error::Spec {
            spec: text.chars().take(80).collect(),
            problem,
            remedy: "write kind or kind:parameter=value,parameter=value".into(),
        };
        if text.len() > MAX_LENGTH {
            return Err(fail(format!("longer than {MAX_LENGTH} bytes")));
        }
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        if kind.is_empty() {
            return Err(fail("no filter kind".into()));
        }
        let mut spec = Spec::new(kind);
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            let (parameter, value) = part.split_once('=').ok_or_else(|| fail(format!("'{part}' has no value")))?;
            let (parameter, value) = (parameter.trim(), value.trim());
            if spec.get(parameter).is_some() {
                return Err(fail(format!("'{parameter}' is given twice")));
            }
            spec = spec.with(parameter, value);
        }
        Ok(spec)
    }

    /// The filter kind.
    pub fn kind(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }

    /// Whether no parameter is given.
    pub fn is_bare(&self) -> bool {
        !self.0.contains(':')
    }

    /// The parameters that are given and their values, in order.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let (_, rest) = self.0.split_once(':').unwrap_or_default();
        rest.split(',').filter_map(|part| part.split_once('='))
    }

    /// The parameters that are given, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.pairs().map(|(parameter, _)| parameter)
    }

    /// The value of a parameter, if given.
    pub fn get(&self, parameter: &str) -> Option<&str> {
        self.pairs().find(|(name, _)| *name == parameter).map(|(_, value)| value)
    }

    /// These parameters for another kind.
    pub fn renamed(&self, kind: &str) -> Self {
        self.pairs().fold(Spec::new(kind), |spec, (parameter, value)| spec.with(parameter, value))
    }

    /// The spec without one parameter.
    pub fn without(&self, parameter: &str) -> Self {
        let others = self.pairs().filter(|(name, _)| *name != parameter);
        others.fold(Spec::new(self.kind()), |spec, (parameter, value)| spec.with(parameter, value))
    }

    /// An error about this spec.
    pub fn error(&self, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Spec { spec: self.to_string(), problem: problem.into(), remedy: remedy.into() }
    }

    /// The value of a parameter as a number or one of a few names; `None` if not given.
    pub fn value<T: FromStr>(&self, parameter: &str, expected: &str) -> Result<Option<T>> {
        self.get(parameter)
            .map(|text| {
                text.parse().map_err(|_| {
                    self.error(format!("{parameter} is '{text}'"), format!("{parameter} takes {expected}"))
                })
            })
            .transpose()
    }

    /// A whole number; `None` if not given.
    pub fn number<T: FromStr>(&self, parameter: &str) -> Result<Option<T>> {
        self.value(parameter, "a whole number")
    }

    /// The value of a parameter that must be there.
    pub fn required<T: FromStr>(&self, parameter: &str) -> Result<T> {
        self.number(parameter)?
            .ok_or_else(|| self.error(format!("{parameter} is missing"), format!("add {parameter}=…")))
    }

    /// One of a few named choices, or the default.
    pub fn choice<T: Copy>(&self, parameter: &str, choices: &[(&str, T)], default: T) -> Result<T> {
        let Some(text) = self.get(parameter) else { return Ok(default) };
        choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            let all = format!("{parameter} is one of");
            self.error(format!("{parameter} is '{text}'"), suggestion(text, names, &all))
        })
    }
}

/// The name under which a choice is listed.
pub fn choice_name<T: PartialEq>(choices: &'static [(&'static str, T)], choice: T) -> &'static str {
    choices.iter().find(|(_, value)| *value == choice).map_or("", |(name, _)| name)
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Spec::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parsed() {
        for text in ["bloom", "stable:num_cells=8,cell_max=3", "ranked:lanes=1"] {
            assert_eq!(Spec::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_no_spec() {
        for text in ["", ":a=1", "bloom:num_bits", "bloom:a=1,a=2", "bloom:a=1, a=2"] {
            assert!(Spec::parse(text).is_err(), "{text}");
        }
    }
}
