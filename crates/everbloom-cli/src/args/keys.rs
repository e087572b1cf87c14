//! Which part of a record is its key, and how much it matters.

use super::quantity;
use crate::failure::Result;
use crate::input::Framing;
use clap::{Args, ValueEnum};
use everbloom::ImportanceScale;
use serde::{Deserialize, Serialize};

/// How records are told apart and where their keys are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Args)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeyArgs {
    /// The key: fields counted from 1 (or named, with --header), several with commas and ranges such as 1-3,5 or 2-;
    /// with --json, values as /user/id or in jq's style .user.id [default: the whole line]
    ///
    /// Of several fields all must be equal. 2- is the second and all behind it. A JSON name with spaces is
    /// .["a name"], an element of a list .items[0].id; .user.id and /user/id are the same key.
    ///
    /// The whole line is all before its newline, a carriage return included: where only some lines end with CR LF, take
    /// those out first, as with tr -d '\r'. Fields do not have it.
    ///
    /// JSON numbers are compared by value (1, 1.0 and 1e0 are one key), texts as they are ("1" is not 1); of
    /// members with the same name the last counts
    #[arg(short, long, value_name = "FIELDS", allow_hyphen_values = true, help_heading = "Records")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// What separates fields [default: tab; comma with --csv]
    #[arg(short, long, value_name = "BYTE", value_parser = quantity::delimiter, help_heading = "Records")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delimiter: Option<u8>,
    /// Fields may be quoted as in CSV, and then have delimiters and line breaks inside
    #[arg(long, help_heading = "Records")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) csv: bool,
    /// The first record of each input names the fields; it is passed on once and not counted
    #[arg(short = 'H', long, help_heading = "Records")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) header: bool,
    /// Every line is a JSON document
    #[arg(long, conflicts_with_all = ["csv", "header", "delimiter"], requires = "key", help_heading = "Records")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) json: bool,
    /// Keys that differ only in case are one key
    #[arg(long, help_heading = "Records")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) ignore_case: bool,
    /// Records end with a NUL byte instead of a newline
    #[arg(short = 'z', long, help_heading = "Records")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) null: bool,
    /// What to do with a record whose key, importance or time cannot be read [default: keep for dedup, fail
    /// elsewhere]
    ///
    /// By default dedup keeps such a record, so that nothing is lost, and says at the end how many there were; but if they
    /// are more than half of the first 1,000 records, or of all, it stops, since the option is mistaken then. Other
    /// commands stop at the first. What is set here holds without exception; dedup says how many it skipped
    #[arg(long, value_name = "HOW", help_heading = "Records")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_error: Option<OnError>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl KeyArgs {
    /// The byte that ends a record.
    pub(crate) fn ending(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// How records are told apart.
    pub(crate) fn framing(&self) -> Framing {
        Framing { ending: self.ending(), quoted_fields: self.csv.then(|| self.delimiter.unwrap_or(b',')) }
    }
}

/// What to do with a record that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnError {
    /// Leave it out and count it
    Skip,
    /// Treat it as new and count it
    #[default]
    Keep,
    /// Stop with an error
    Fail,
}

/// Where the importance of a record is, and what it can be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args)]
pub(crate) struct ImportanceArgs {
    /// The importance: a field or JSON pointer, as for --key
    #[arg(long, value_name = "FIELD", requires = "importance_max", help_heading = "Records")]
    pub(crate) importance: Option<String>,
    /// The largest importance that a record can have
    #[arg(long, value_name = "NUMBER", value_parser = quantity::number, requires = "importance", help_heading = "Records")]
    pub(crate) importance_max: Option<f64>,
    /// How importances are scaled
    #[arg(long, value_name = "SCALE", default_value = "linear", help_heading = "Records")]
    pub(crate) importance_scale: Scale,
}

/// How importances are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scale {
    /// As given
    #[default]
    Linear,
    /// By magnitude, for sizes and counts
    Log,
}

impl Scale {
    /// How importances up to the largest are made of values.
    pub(crate) fn up_to(self, max: f64) -> Result<ImportanceScale> {
        Ok(match self {
            Scale::Linear => ImportanceScale::linear(max)?,
            Scale::Log => ImportanceScale::logarithmic(max)?,
        })
    }
}
