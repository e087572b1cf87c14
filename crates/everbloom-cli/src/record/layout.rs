//! From what was typed to an extractor: which fields, by number or by name.

use super::fields::{self, Fields, Separation};
use super::json::{Found, Key, Pointers, Values};
use super::places::{self, Place};
use super::reader::{Before, different_headers, first_record, names_of};
use super::{Fault, Problem, time};
use crate::args::{ImportanceArgs, KeyArgs};
use crate::failure::{Failure, Result};
use crate::input::Framing;
use everbloom::kind::suggestion;
use everbloom::{Importance, ImportanceScale};
use everbloom_cells::key::composite_key;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Where keys are, as typed; names are not resolved yet.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    key: Option<String>,
    importance: Option<(String, ImportanceScale, f64)>,
    time: Vec<String>,
    options: Options,
    kind: Kind,
    ignore_case: bool,
    ends_by_line: bool,
    /// Whether each input starts with a line of names.
    pub(crate) has_header: bool,
}

/// What was typed, for messages.
#[derive(Debug, Clone)]
struct Options {
    key: Arc<str>,
    importance: Arc<str>,
    time: Arc<str>,
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
        if key.csv && key.delimiter.is_some_and(|byte| byte == b'"' || byte == key.ending()) {
            return Err(Failure::new("--delimiter must be neither the quote nor the end of a record; try ',' or ';'"));
        }
        let importance = match (&importance.importance, importance.importance_max) {
            (Some(field), Some(max)) => Some((field.clone(), importance.importance_scale.up_to(max)?, max)),
            _ => None,
        };
        let options = Options {
            key: key.key.as_ref().map_or("the key".into(), |key| format!("--key {key}").into()),
            importance: importance
                .as_ref()
                .map_or("".into(), |(field, _, max)| format!("--importance {field} --importance-max {max}").into()),
            time: "".into(),
        };
        let (ignore_case, has_header) = (key.ignore_case, key.header);
        let layout = Layout {
            key: key.key.clone(),
            importance,
            time: Vec::new(),
            options,
            kind,
            ignore_case,
            ends_by_line: !key.null,
            has_header,
        };
        if !layout.has_header {
            layout.resolve(&[])?;
        }
        Ok(layout)
    }

    /// Records carry a time, too: in one field, or in several that are read as one.
    pub(crate) fn with_time(mut self, fields: Option<&str>) -> Result<Self> {
        self.time = fields.map_or(Vec::new(), |fields| fields.split(',').map(str::to_string).collect());
        self.options.time = fields.map_or("".into(), |fields| format!("--time {fields}").into());
        if !self.has_header {
            self.resolve(&[])?;
        }
        Ok(self)
    }

    /// What to say of records none of which has the byte between fields, so that the first field is all of each, if that
    /// is probably another one.
    pub(crate) fn undivided(&self, records: &[u8]) -> Option<String> {
        let (Kind::Fields(Separation { delimiter, quoted }), Some(key)) = (self.kind, &self.key) else { return None };
        if key != "1" || memchr::memchr(delimiter, records).is_some() {
            return None;
        }
        // One column of names has spaces in it, and is CSV all the same.
        let is_there = |other: u8| !(quoted && other == b' ') && memchr::memchr(other, records).is_some();
        let (other, option) = OTHERS.into_iter().find(|(other, _)| is_there(*other))?;
        let [delimiter, other] = [delimiter, other].map(|byte| match byte {
            b'\t' => "a tab".to_string(),
            b' ' => "a space".to_string(),
            byte => format!("a '{}'", char::from(byte).escape_default()),
        });
        Some(format!(
            "no line so far has {delimiter}, so the whole line is the key; where {other} is between fields, {option}"
        ))
    }

    /// Whether records carry importances.
    pub(crate) fn has_importance(&self) -> bool {
        self.importance.is_some()
    }

    /// How importances are made of values.
    pub(crate) fn importance_scale(&self) -> Option<ImportanceScale> {
        self.importance.as_ref().map(|(_, scale, _)| *scale)
    }

    /// Refuses names that the header of a file does not have, and files whose headers differ, also from those of
    /// earlier runs.
    pub(crate) fn check_headers(&self, paths: &[&PathBuf], framing: Framing, before: &Before) -> Result<()> {
        let mut first: Option<(Vec<u8>, &PathBuf)> = None;
        for path in paths {
            let line = first_record(path, framing)?;
            let names = names_of(&line, framing);
            match &first {
                _ if line.is_empty() => {}
                None => {
                    before.check(names, &self.resolve(names)?, &path.display().to_string())?;
                    first = Some((names.to_vec(), path));
                }
                Some((header, _)) if header == names => {}
                Some((_, first)) => {
                    return Err(different_headers(&first.display().to_string(), &path.display().to_string()));
                }
            }
        }
        Ok(())
    }

    /// Turns names into numbers, with the header line where there is one.
    pub(crate) fn resolve(&self, header: &[u8]) -> Result<Extractor> {
        let names = match self.kind {
            Kind::Fields(separation) if self.has_header => names(header, separation),
            _ => Ok(Vec::new()),
        };
        let mut pointers = Pointers::default();
        let mut place = |name: &String| match self.kind {
            Kind::Json => pointers.add(name),
            Kind::Fields(separation) => self.field(name, &names, header, separation),
        };
        let is_name = |name: &str| names.iter().flatten().any(|field| **field == *name.as_bytes());
        let text = self.key.as_deref();
        let keys = text.map_or(Ok(Vec::new()), |text| places::parse(text, self.kind == Kind::Json, is_name))?;
        let part = |key: &Place| match key {
            Place::One(name) => place(name).map(Part::One),
            Place::From(first) => Ok(Part::From(first - 1)),
        };
        let parts = keys.iter().map(part).collect::<Result<Vec<_>>>()?;
        let importance = match &self.importance {
            Some((field, scale, max)) => Some((place(field)?, *scale, *max)),
            None => None,
        };
        let time = self.time.iter().map(&mut place).collect::<Result<Vec<_>>>()?;
        let lookup = match self.kind {
            _ if parts.is_empty() && importance.is_none() && time.is_empty() => Lookup::Whole,
            Kind::Fields(separation) => Lookup::Fields(separation),
            Kind::Json => Lookup::Json(pointers),
        };
        let (options, ignore_case, ends_by_line) = (self.options.clone(), self.ignore_case, self.ends_by_line);
        let columns = columns(header, &names, &parts);
        Ok(Extractor { lookup, parts, importance, time, options, ignore_case, ends_by_line, columns })
    }

    /// The number of a field, counted from 0.
    fn field(&self, name: &str, names: &Names<'_>, header: &[u8], separation: Separation) -> Result<usize> {
        let number = name.parse::<usize>().ok();
        if number == Some(0) {
            return Err(Failure::new("fields are counted from 1, so there is no field 0"));
        }
        if !self.has_header {
            return number.map(|number| number - 1).ok_or_else(|| Failure::new(not_a_number(name)));
        }
        let names = match (names, number) {
            (Ok(names), _) => names,
            (Err(_), Some(number)) => return Ok(number - 1),
            (Err(problem), None) => return Err(Failure::new(format!("the header cannot be read: {problem}"))),
        };
        // A column can be called 2019, and need not be the 2019th.
        if let Some(number) = number.filter(|number| *number <= names.len()) {
            return Ok(number - 1);
        }
        let numbers: Vec<usize> =
            names.iter().enumerate().filter(|(_, field)| ***field == *name.as_bytes()).map(|(at, _)| at).collect();
        match (numbers.as_slice(), number) {
            ([at], _) => Ok(*at),
            ([first, second, ..], _) => Err(Failure::new(format!(
                "the header has {} fields '{name}'; give the number of the one that is meant, such as {} or {}",
                numbers.len(),
                first + 1,
                second + 1
            ))),
            ([], Some(number)) => Ok(number - 1),
            ([], None) => {
                let known: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
                // A space behind a comma belongs to the name.
                let is_spaced = known.iter().any(|known| known.trim() == name);
                let remedy = other_delimiter(name, header, separation)
                    .filter(|_| !is_spaced)
                    .unwrap_or_else(|| suggestion(name, known.iter().map(|name| &**name), "it has"));
                Err(Failure::new(format!("the header has no field '{name}'; {remedy}")))
            }
        }
    }
}

/// The names in a header, or why it cannot be read.
type Names<'h> = Result<Vec<Cow<'h, [u8]>>, Problem>;

fn names(header: &[u8], separation: Separation) -> Names<'_> {
    Fields::new(header, separation).collect()
}

/// A hash of what the columns of keys are called; of all of a header where lines are keys, or it cannot be read.
fn columns(header: &[u8], names: &Names<'_>, parts: &[Part]) -> u64 {
    let mut hash = Xxh3::new();
    let mut add = |name: &[u8]| {
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name);
    };
    match names {
        Ok(names) if !parts.is_empty() => parts.iter().for_each(|part| match part {
            Part::One(at) => add(names.get(*at).map_or(&[][..], |name| name)),
            Part::From(at) => names.iter().skip(*at).for_each(|name| add(name)),
        }),
        _ => add(header),
    }
    hash.digest()
}

/// What to do about a field that is called by a name where there are none.
fn not_a_number(name: &str) -> String {
    let remedy = match name.starts_with(['.', '/']) {
        true => "add --json if it is a value of JSON lines",
        false => "count fields from 1 (1-3 is a range), or add --header to use names",
    };
    format!("field '{name}' is not a number; {remedy}")
}

/// What else separates fields, and how that is said.
const OTHERS: [(u8, &str); 5] =
    [(b'\t', "add -d '\\t'"), (b',', "add --csv"), (b';', "add -d ';'"), (b'|', "add -d '|'"), (b' ', "add -d ' '")];

/// How fields would be told apart so that the header had this one.
fn other_delimiter(name: &str, header: &[u8], separation: Separation) -> Option<String> {
    let others = OTHERS.into_iter().filter(|(delimiter, _)| *delimiter != separation.delimiter);
    let has_it = |delimiter| {
        let names = names(header, Separation { delimiter, quoted: true });
        names.is_ok_and(|names| names.iter().any(|field| **field == *name.as_bytes()))
    };
    others.into_iter().find(|(delimiter, _)| has_it(*delimiter)).map(|(delimiter, remedy)| {
        let delimiter = char::from(delimiter).escape_default();
        format!("it has one if fields are separated by '{delimiter}': {remedy}")
    })
}

/// How values are found: fields by number, values of documents by the number of their pointer.
#[derive(Debug, Clone)]
enum Lookup {
    Whole,
    Fields(Separation),
    Json(Pointers),
}

/// A part of a key, as a number.
#[derive(Debug, Clone, Copy)]
enum Part {
    One(usize),
    /// This field and all behind it.
    From(usize),
}

/// Finds keys and importances in records.
#[derive(Debug, Clone)]
pub(crate) struct Extractor {
    lookup: Lookup,
    parts: Vec<Part>,
    importance: Option<(usize, ImportanceScale, f64)>,
    time: Vec<usize>,
    options: Options,
    ignore_case: bool,
    /// Whether records end with a newline, which may have a carriage return before it.
    ends_by_line: bool,
    columns: u64,
}

/// What a record comes to.
pub(crate) struct Extract<'r> {
    pub(crate) key: KeyBytes<'r>,
    pub(crate) importance: Importance,
    /// Microseconds since 1970, if records have a time.
    pub(crate) time: Option<i64>,
}

/// The bytes of a key, without an allocation for those of a whole number.
pub(crate) enum KeyBytes<'r> {
    Bytes(Cow<'r, [u8]>),
    Whole([u8; 8]),
}

impl std::ops::Deref for KeyBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            KeyBytes::Bytes(bytes) => bytes,
            KeyBytes::Whole(bytes) => bytes,
        }
    }
}

/// Room that is used again from record to record.
#[derive(Debug, Default)]
pub(crate) struct Scratch<'r>(Found<'r>);

impl Extractor {
    /// Whether a record, without its ending, is its own key.
    pub(crate) fn is_whole_line(&self) -> bool {
        matches!(self.lookup, Lookup::Whole) && !self.ignore_case
    }

    /// A hash of what the columns of keys are called.
    pub(super) fn columns(&self) -> u64 {
        self.columns
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
    pub(crate) fn extract<'r>(
        &self,
        record: &'r [u8],
        latest: i64,
        scratch: &mut Scratch<'r>,
    ) -> Result<Extract<'r>, Fault> {
        // Nothing is counted up for records that have what they should.
        fn fault(option: &Arc<str>) -> impl FnOnce(Problem) -> Fault {
            move |problem| Fault { problem, option: Arc::clone(option) }
        }
        let line = if self.ends_by_line { trim_return(record) } else { record };
        let parsed = match &self.lookup {
            Lookup::Whole => {
                let key = KeyBytes::Bytes(self.fold(Cow::Borrowed(record)));
                return Ok(Extract { key, importance: Importance::FULL, time: None });
            }
            Lookup::Fields(separation) => Parsed::Line(line, *separation),
            Lookup::Json(pointers) => {
                Parsed::Values(pointers.find(line, &mut scratch.0).map_err(fault(&self.options.key))?)
            }
        };
        let key = self.key(record, &parsed).map_err(fault(&self.options.key))?;
        let importance = match &self.importance {
            None => Importance::FULL,
            Some((place, scale, max)) => {
                let value = parsed.text(*place).and_then(|value| importance(&value, scale, *max));
                value.map_err(fault(&self.options.importance))?
            }
        };
        let time = match self.time.as_slice() {
            [] => None,
            places => Some(time_of(&parsed, places, latest).map_err(fault(&self.options.time))?),
        };
        Ok(Extract { key, importance, time })
    }

    fn key<'r>(&self, record: &'r [u8], parsed: &Parsed<'r, '_>) -> Result<KeyBytes<'r>, Problem> {
        let part = |place: &usize| match parsed {
            Parsed::Line(line, separation) => {
                fields::field(line, *separation, *place).map(|key| KeyBytes::Bytes(self.fold(key)))
            }
            Parsed::Values(values) => values.key(*place).map(|key| match key {
                Key::Text(text) => KeyBytes::Bytes(self.fold(text)),
                Key::Whole(bytes) => KeyBytes::Whole(bytes),
                Key::Other(bytes) => KeyBytes::Bytes(Cow::Owned(bytes)),
            }),
        };
        match self.parts.as_slice() {
            [] => Ok(KeyBytes::Bytes(self.fold(Cow::Borrowed(record)))),
            [Part::One(place)] => part(place),
            places => {
                let mut parts = Vec::with_capacity(places.len());
                for place in places {
                    match (place, parsed) {
                        (Part::One(place), _) => parts.push(part(place)?),
                        (Part::From(first), Parsed::Line(line, separation)) => {
                            fields::from(line, *separation, *first, |field| {
                                parts.push(KeyBytes::Bytes(self.fold(field)))
                            })?;
                        }
                        // Only fields have ranges.
                        (Part::From(_), Parsed::Values(_)) => {}
                    }
                }
                Ok(KeyBytes::Bytes(Cow::Owned(composite_key(parts.iter().map(|part| &**part)))))
            }
        }
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
enum Parsed<'r, 'p> {
    Line(&'r [u8], Separation),
    Values(Values<'r, 'p>),
}

impl<'r> Parsed<'r, '_> {
    fn text(&self, place: usize) -> Result<Cow<'r, [u8]>, Problem> {
        match self {
            Parsed::Line(line, separation) => fields::field(line, *separation, place),
            Parsed::Values(values) => values.text(place),
        }
    }
}

fn time_of(parsed: &Parsed<'_, '_>, places: &[usize], latest: i64) -> Result<i64, Problem> {
    if let [place] = places {
        return time::parse(&parsed.text(*place)?, latest);
    }
    let parts = places.iter().map(|place| parsed.text(*place)).collect::<Result<Vec<_>, Problem>>()?;
    time::parse(&parts.join(&b' '), latest)
}

/// The line without the carriage return that a CRLF file leaves behind.
fn trim_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn importance(text: &[u8], scale: &ImportanceScale, max: f64) -> Result<Importance, Problem> {
    let text = String::from_utf8_lossy(text);
    let value = text.trim().parse::<f64>();
    let value = value.map_err(|_| Problem::Importance(format!("its importance '{text}' is not a number")))?;
    scale.of(value).map_err(|_| Problem::Importance(format!("its importance {value} is not between 0 and {max}")))
}
