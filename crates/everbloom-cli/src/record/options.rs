//! The key options that a filter was built with, as its file remembers them.

use super::places;
use crate::args::KeyArgs;
use crate::failure::{Failure, Result};
use std::fmt;

/// How the keys of a filter were found in records: all that decides it, and nothing that does not.
impl KeyArgs {
    /// These keys, written in the one way in which files keep it.
    pub(crate) fn canonical(&self) -> Self {
        let usual = if self.csv { b',' } else { b'\t' };
        KeyArgs {
            key: self.key.as_ref().map(|key| places::canonical(key, self.json, self.header)),
            delimiter: self.delimiter.filter(|delimiter| *delimiter != usual),
            on_error: None,
            ..self.clone()
        }
    }

    /// Whether whole lines are the keys, as when nothing is said.
    pub(crate) fn is_whole_lines(&self) -> bool {
        *self == KeyArgs::default()
    }

    /// What a filter file keeps: nothing for whole lines, whose filter any record can be asked of.
    pub(crate) fn to_note(&self) -> Result<String> {
        if self.is_whole_lines() {
            return Ok(String::new());
        }
        serde_json::to_string(self).map_err(Failure::new)
    }

    /// What a filter file kept.
    pub(crate) fn from_note(note: &str) -> Result<Self> {
        if note.is_empty() {
            return Ok(KeyArgs::default());
        }
        let stored: KeyArgs = serde_json::from_str(note).map_err(|_| {
            Failure::new("it was built with key options that this version does not know; take a newer one")
        })?;
        // Files that were written before there was one way to write a key have it as it was typed.
        Ok(stored.canonical())
    }
}

/// As they are typed.
impl fmt::Display for KeyArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [
            (self.json, "--json"),
            (self.csv, "--csv"),
            (self.header, "--header"),
            (self.ignore_case, "--ignore-case"),
            (self.null, "--null"),
        ];
        let mut typed: Vec<String> =
            flags.iter().filter(|(given, _)| *given).map(|(_, flag)| flag.to_string()).collect();
        typed.extend(self.delimiter.map(|byte| format!("--delimiter '{}'", char::from(byte).escape_default())));
        typed.extend(self.key.as_ref().map(|key| format!("--key {key}")));
        f.write_str(if typed.is_empty() { "whole lines" } else { "" })?;
        f.write_str(&typed.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_a_filter_file() {
        let keys = KeyArgs {
            key: Some("id,name".into()),
            delimiter: Some(b';'),
            csv: true,
            header: true,
            ..KeyArgs::default()
        };
        let options = keys.canonical();
        assert_eq!(options.to_string(), "--csv --header --delimiter ';' --key id,name");
        let read = KeyArgs::from_note(&options.to_note().expect("a note")).expect("options");
        assert_eq!(read.canonical(), options);
        assert_eq!(KeyArgs::default().to_note().expect("a note"), "");
        assert_eq!(KeyArgs { delimiter: Some(b'\t'), ..KeyArgs::default() }.canonical(), KeyArgs::default());
        // Files that were written before ranges were known have names that look like them.
        let old = KeyArgs::from_note(r#"{"key":"1-2","csv":true,"header":true}"#).expect("options");
        assert_eq!(old.to_string(), "--csv --header --key 1-2");
        let old = KeyArgs::from_note(r#"{"key":"1-2"}"#).expect("options");
        assert_eq!(old.to_string(), "--key 1,2");
        assert!(KeyArgs::from_note(r#"{"colour":"red"}"#).is_err() && KeyArgs::from_note("{").is_err());
    }
}
