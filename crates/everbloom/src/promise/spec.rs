//! Filter specs: `kind` or `kind:word=value,word=value`.
//!
//! A spec names a filter in one line, the same on the command line, in JSON, in a filter's bytes and
//! in the papers' re-runs. A full spec gives every parameter; what a partial one leaves out is
//! planned from a [`Goal`](crate::Goal).

use super::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Longer specs are not names but mistakes.
const MAX_LENGTH: usize = 4096;

/// A filter kind and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    kind: String,
    words: Vec<(String, String)>,
}

impl Spec {
    /// A spec that leaves everything to the planner.
    pub fn new(kind: impl Into<String>) -> Self {
        Spec { kind: kind.into(), words: Vec::new() }
    }

    /// The spec with one more word.
    pub fn with(mut self, word: &str, value: impl ToString) -> Self {
        self.words.push((word.to_string(), value.to_string()));
        self
    }

    /// Reads `kind:word=value,…`. Kinds and words are checked by the registry, not here.
    pub fn parse(text: &str) -> Result<Self> {
        let fail = |problem: String| Error::Spec {
            spec: text.chars().take(80).collect(),
            problem,
            remedy: "write kind or kind:word=value,word=value".into(),
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
            let (word, value) = part.split_once('=').ok_or_else(|| fail(format!("'{part}' has no value")))?;
            let (word, value) = (word.trim(), value.trim());
            if spec.get(word).is_some() {
                return Err(fail(format!("'{word}' is given twice")));
            }
            spec.words.push((word.to_string(), value.to_string()));
        }
        Ok(spec)
    }

    /// The filter kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Whether no parameter is given.
    pub fn is_bare(&self) -> bool {
        self.words.is_empty()
    }

    /// The words that are given, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|(word, _)| word.as_str())
    }

    /// The value of a word, if given.
    pub fn get(&self, word: &str) -> Option<&str> {
        self.words.iter().find(|(name, _)| name == word).map(|(_, value)| value.as_str())
    }

    /// The same words for another kind.
    pub(crate) fn renamed(&self, kind: &str) -> Self {
        Spec { kind: kind.to_string(), words: self.words.clone() }
    }

    /// The spec without one word.
    pub(crate) fn without(&self, word: &str) -> Self {
        let words = self.words.iter().filter(|(name, _)| name != word).cloned().collect();
        Spec { kind: self.kind.clone(), words }
    }

    /// An error about this spec.
    pub fn error(&self, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Spec { spec: self.to_string(), problem: problem.into(), remedy: remedy.into() }
    }

    /// The value of a word as a number or one of a few names; `None` if not given.
    pub fn value<T: FromStr>(&self, word: &str, expected: &str) -> Result<Option<T>> {
        self.get(word)
            .map(|text| {
                text.parse().map_err(|_| self.error(format!("{word} is '{text}'"), format!("{word} takes {expected}")))
            })
            .transpose()
    }

    /// A whole number; `None` if not given.
    pub fn number<T: FromStr>(&self, word: &str) -> Result<Option<T>> {
        self.value(word, "a whole number")
    }

    /// The value of a word that must be there.
    pub fn required<T: FromStr>(&self, word: &str) -> Result<T> {
        self.number(word)?.ok_or_else(|| self.error(format!("{word} is missing"), format!("add {word}=…")))
    }

    /// One of a few named choices, or the default.
    pub fn choice<T: Copy>(&self, word: &str, choices: &[(&str, T)], default: T) -> Result<T> {
        let Some(text) = self.get(word) else { return Ok(default) };
        choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            self.error(format!("{word} is '{text}'"), format!("{word} is one of {}", names.join(", ")))
        })
    }
}

/// The name under which a choice is listed.
pub(crate) fn choice_name<T: PartialEq>(choices: &'static [(&'static str, T)], choice: T) -> &'static str {
    choices.iter().find(|(_, value)| *value == choice).map_or("", |(name, _)| name)
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        for (index, (word, value)) in self.words.iter().enumerate() {
            write!(f, "{}{word}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
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
