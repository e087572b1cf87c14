//! From what was typed to an extractor: which fields, by number or by name.

use super::fields::{self, Fields, Separation};
use super::{Fault, json, time};
use crate::args::{ImportanceArgs, KeyArgs, Scale};
use crate::failure::{Failure, Result};
use everbloom::internal::key::composite_key;
use everbloom::{Importance, ImportanceScale};
use std::borrow::Cow;

/// Where keys are, as typed; names are not resolved yet.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    keys: Vec<String>,
    importance: Option<(String, ImportanceScale)>,
    time: Vec<String>,
    kind: Kind,
    ignore_case: bool,
    /// Whether each input starts with a line of names.
    pub(crate) has_header: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fields(Separation),
    Json,
}

impl Layout {
    /// Checks what was typed as far as that is possible before the first record.
    pub(crate) fn new(key: &KeyArgs, importance: &ImportanceArgs) -> Result<Self> {
        let kind = match (key.json, key.csv) {
            (true, _) => Kind::Json,
            (_, quoted) => {
                let default = if quoted { b',' } else { b'\t' };
                Kind::Fields(Separation { delimiter: key.delimiter.unwrap_or(default), quoted })
            }
        };
        let keys = match (&key.key, kind) {
            (None, _) => Vec::new(),
            (Some(text), _) => text.split(',').map(str::to_string).collect(),
        };
        let scale = |max: f64| match importance.importance_scale {
            Scale::Linear => ImportanceScale::linear(max),
            Scale::Log => ImportanceScale::logarithmic(max),
        };
        let importance = match (&importance.importance, importance.importance_max) {
            (Some(field), Some(max)) => Some((field.clone(), scale(max)?)),
            _ => None,
        };
        let (ignore_case, has_header) = (key.ignore_case, key.header);
        let layout = Layout { keys, importance, time: Vec::new(), kind, ignore_case, has_header };
        if !layout.has_header {
            layout.resolve(&[])?;
        }
        Ok(layout)
    }

    /// Records carry a time, too: in one field, or in several that are read as one.
    pub(crate) fn with_time(mut self, fields: Option<&str>) -> Result<Self> {
        self.time = fields.map_or(Vec::new(), |fields| fields.split(',').map(str::to_string).collect());
        if !self.has_header {
            self.resolve(&[])?;
        }
        Ok(self)
    }

    /// Whether records carry importances.
    pub(crate) fn has_importance(&self) -> bool {
        self.importance.is_some()
    }

    /// How importances are made of values.
    pub(crate) fn importance_scale(&self) -> Option<ImportanceScale> {
        self.importance.as_ref().map(|(_, scale)| *scale)
    }

    /// Turns names into numbers, with the header line where there is one.
    pub(crate) fn resolve(&self, header: &[u8]) -> Result<Extractor> {
        let parts = self.keys.iter().map(|key| self.place(key, header)).collect::<Result<Vec<_>>>()?;
        let importance = match &self.importance {
            Some((field, scale)) => Some((self.place(field, header)?, *scale)),
            None => None,
        };
        let time = self.time.iter().map(|field| self.place(field, header)).collect::<Result<Vec<_>>>()?;
        let lookup = match self.kind {
            _ if parts.is_empty() && importance.is_none() && time.is_empty() => Lookup::Whole,
            Kind::Fields(separation) => Lookup::Fields(separation),
            Kind::Json => Lookup::Json,
        };
        Ok(Extractor { lookup, parts, importance, time, ignore_case: self.ignore_case })
    }

    fn place(&self, name: &str, header: &[u8]) -> Result<Place> {
        let Kind::Fields(separation) = self.kind else { return pointer(name) };
        match name.parse::<usize>() {
            Ok(0) => Err(Failure::new("fields are counted from 1, so there is no field 0")),
            Ok(number) => Ok(Place::Field(number - 1)),
            Err(_) if !self.has_header => Err(Failure::new(format!(
                "field '{name}' is not a number; count fields from 1, or add --header to use names"
            ))),
            Err(_) => {
                let names = Fields::new(trim_return(header), separation).collect::<Result<Vec<_>, Fault>>();
                let names = names.map_err(|fault| Failure::new(format!("the header cannot be read: {fault}")))?;
                let found = names.iter().position(|field| &**field == name.as_bytes());
                found.map(Place::Field).ok_or_else(|| {
                    let known: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
                    Failure::new(format!("the header has no field '{name}'; it has {}", known.join(", ")))
                })
            }
        }
    }
}

fn pointer(text: &str) -> Result<Place> {
    if text.is_empty() || text.starts_with('/') {
        return Ok(Place::Pointer(text.to_string()));
    }
    Err(Failure::new(format!("'{text}' is not a JSON pointer; write /{text}, or /outer/inner for a nested value")))
}

/// Where in a record a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Field(usize),
    Pointer(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    Whole,
    Fields(Separation),
    Json,
}

/// Finds keys and importances in records.
#[derive(Debug, Clone)]
pub(crate) struct Extractor {
    lookup: Lookup,
    parts: Vec<Place>,
    importance: Option<(Place, ImportanceScale)>,
    time: Vec<Place>,
    ignore_case: bool,
}

/// What a record comes to.
pub(crate) struct Extract<'r> {
    pub(crate) key: Cow<'r, [u8]>,
    pub(crate) importance: Importance,
    /// Microseconds since 1970, if records have a time.
    pub(crate) time: Option<i64>,
}

impl Extractor {
    /// Whether a record, without its ending, is its own key.
    pub(crate) fn is_whole_line(&self) -> bool {
        self.lookup == Lookup::Whole && !self.ignore_case
    }

    /// Whether records carry importances.
    pub(crate) fn has_importance(&self) -> bool {
        self.importance.is_some()
    }

    /// Whether records carry times.
    pub(crate) fn has_time(&self) -> bool {
        !self.time.is_empty()
    }

    /// What is in a record that comes without its ending, and is no later than `latest`.
    pub(crate) fn extract<'r>(&self, record: &'r [u8], latest: i64) -> Result<Extract<'r>, Fault> {
        let line = trim_return(record);
        let parsed = match self.lookup {
            Lookup::Whole => {
                let key = self.fold(Cow::Borrowed(record));
                return Ok(Extract { key, importance: Importance::FULL, time: None });
            }
            Lookup::Fields(separation) => Parsed::Line(line, separation),
            Lookup::Json => Parsed::Document(json::parse(line)?),
        };
        let key = match self.parts.as_slice() {
            [] => Cow::Borrowed(record),
            [place] => parsed.value(place)?,
            places => {
                let parts = places.iter().map(|place| parsed.value(place)).collect::<Result<Vec<_>, Fault>>()?;
                Cow::Owned(composite_key(parts.iter().map(|part| &**part)))
            }
        };
        let importance = match &self.importance {
            None => Importance::FULL,
            Some((place, scale)) => number(&parsed.value(place)?, scale)?,
        };
        let time = match self.time.as_slice() {
            [] => None,
            [place] => Some(time::parse(&parsed.value(place)?, latest)?),
            places => {
                let parts = places.iter().map(|place| parsed.value(place)).collect::<Result<Vec<_>, Fault>>()?;
                Some(time::parse(&parts.join(&b' '), latest)?)
            }
        };
        Ok(Extract { key: self.fold(key), importance, time })
    }

    /// The key in lower case, if case is to be ignored: letters as Unicode knows them in valid
    /// UTF-8, ASCII ones elsewhere.
    fn fold<'r>(&self, key: Cow<'r, [u8]>) -> Cow<'r, [u8]> {
        if !self.ignore_case {
            return key;
        }
        match std::str::from_utf8(&key) {
            Ok(text) if !text.is_ascii() => Cow::Owned(text.to_lowercase().into_bytes()),
            _ => Cow::Owned(key.to_ascii_lowercase()),
        }
    }
}

/// A record in which values can be looked up.
enum Parsed<'r> {
    Line(&'r [u8], Separation),
    Document(serde_json::Value),
}

impl<'r> Parsed<'r> {
    fn value(&self, place: &Place) -> Result<Cow<'r, [u8]>, Fault> {
        match (self, place) {
            (Parsed::Line(line, separation), Place::Field(number)) => fields::field(line, *separation, *number),
            (Parsed::Document(document), Place::Pointer(pointer)) => json::text_at(document, pointer).map(Cow::Owned),
            // `Layout::place` makes fields for lines and pointers for documents.
            (_, Place::Field(number)) => Err(Fault::MissingField(number + 1)),
            (_, Place::Pointer(pointer)) => Err(Fault::MissingPointer(pointer.clone())),
        }
    }
}

/// The line without the carriage return that a CRLF file leaves behind.
fn trim_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn number(text: &[u8], scale: &ImportanceScale) -> Result<Importance, Fault> {
    let text = String::from_utf8_lossy(text);
    let value: f64 =
        text.trim().parse().map_err(|_| Fault::Importance(format!("its importance '{text}' is not a number")))?;
    scale.of(value).map_err(|error| Fault::Importance(error.to_string()))
}
