//! The key options that a filter was built with, as its file remembers them.

use super::places;
use crate::args::KeyArgs;
use crate::failure::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How the keys of a filter were found in records. All that decides it, and nothing that does not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeyOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delimiter: Option<u8>,
    #[serde(skip_serializing_if = "is_false")]
    csv: bool,
    #[serde(skip_serializing_if = "is_false")]
    header: bool,
    #[serde(skip_serializing_if = "is_false")]
    json: bool,
    #[serde(skip_serializing_if = "is_false")]
    ignore_case: bool,
    #[serde(skip_serializing_if = "is_false")]
    null: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl KeyOptions {
    /// The options that were typed.
    pub(crate) fn of(keys: &KeyArgs) -> Self {
        let usual = if keys.csv { b',' } else { b'\t' };
        KeyOptions {
            key: keys.key.as_ref().map(|key| places::canonical(key, keys.json, keys.header)),
            delimiter: keys.delimiter.filter(|delimiter| *delimiter != usual),
            csv: keys.csv,
            header: keys.header,
            json: keys.json,
            ignore_case: keys.ignore_case,
            null: keys.null,
        }
    }

    /// The same as arguments; what to do with records that cannot be used is taken from `keys`.
    pub(crate) fn arguments(&self, keys: &KeyArgs) -> KeyArgs {
        let KeyOptions { key, delimiter, csv, header, json, ignore_case, null } = self.clone();
        KeyArgs { key, delimiter, csv, header, json, ignore_case, null, on_error: keys.on_error }
    }

    /// Whether whole lines are the keys, as when nothing is said.
    pub(crate) fn is_whole_lines(&self) -> bool {
        *self == KeyOptions::default()
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
            return Ok(KeyOptions::default());
        }
        let stored: KeyOptions = serde_json::from_str(note).map_err(|_| {
            Failure::new("it was built with key options that this version does not know; take a newer one")
        })?;
        // Files that were written before there was one way to write a key have it as it was typed.
        let key = stored.key.as_ref().map(|key| places::canonical(key, stored.json, stored.header));
        Ok(KeyOptions { key, ..stored })
    }
}

/// As they are typed.
impl fmt::Display for KeyOptions {
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
        let options = KeyOptions::of(&keys);
        assert_eq!(options.to_string(), "--csv --header --delimiter ';' --key id,name");
        let read = KeyOptions::from_note(&options.to_note().expect("a note")).expect("options");
        assert_eq!(KeyOptions::of(&read.arguments(&keys)), options);
        assert_eq!(KeyOptions::of(&KeyArgs::default()).to_note().expect("a note"), "");
        assert_eq!(KeyOptions::of(&KeyArgs { delimiter: Some(b'\t'), ..KeyArgs::default() }), KeyOptions::default());
        // Files that were written before ranges were known have names that look like them.
        let old = KeyOptions::from_note(r#"{"key":"1-2","csv":true,"header":true}"#).expect("options");
        assert_eq!(old.to_string(), "--csv --header --key 1-2");
        let old = KeyOptions::from_note(r#"{"key":"1-2"}"#).expect("options");
        assert_eq!(old.to_string(), "--key 1,2");
        assert!(KeyOptions::from_note(r#"{"colour":"red"}"#).is_err() && KeyOptions::from_note("{").is_err());
    }
}
