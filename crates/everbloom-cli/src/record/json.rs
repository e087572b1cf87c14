//! Values of a JSON line, by pointer, without a tree of the whole line.
//!
//! The text is walked down the pointers and everything beside them is passed over. Of members with the same name
//! the last one counts, as in jq. Nearly every line is left to one pass by [`scan`]; what that cannot tell is
//! parsed with serde_json, and so is what is refused.

use super::number::{self, Number};
use super::{Problem, scan};
use crate::failure::{Failure, Result};
use everbloom::kind::did_you_mean;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Values nested more deeply are not JSON that anybody writes; serde_json refuses them, too.
const MOST_STEPS: usize = 128;
/// What stands before the key of a value that is neither text nor a whole number. No text in UTF-8 has this byte, so that
/// `"true"` is not `true`.
const NO_TEXT: u8 = 0xff;

/// Places in a document, to be looked up together.
#[derive(Debug, Clone, Default)]
pub(super) struct Pointers {
    typed: Vec<String>,
    root: Node,
}

/// A value that is wanted, or on the way to one.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) wanted_as: Vec<usize>,
    pub(super) members: Vec<(String, Node)>,
    /// The element that it is in an array, if its name is a number.
    pub(super) index: Option<usize>,
}

impl Pointers {
    /// Adds a pointer as it was typed, `/user/id` or jq's `.user.id`, and says its number.
    pub(super) fn add(&mut self, typed: &str) -> Result<usize> {
        let steps = steps(typed)?;
        if steps.len() > MOST_STEPS {
            return Err(Failure::new(format!("the pointer '{typed}' has more than {MOST_STEPS} steps; take fewer")));
        }
        let mut node = &mut self.root;
        for step in steps {
            let at = node.members.iter().position(|(name, _)| *name == step).unwrap_or_else(|| {
                let index = step.parse().ok().filter(|_| is_index(&step));
                node.members.push((step, Node { index, ..Node::default() }));
                node.members.len() - 1
            });
            node = &mut node.members[at].1;
        }
        node.wanted_as.push(self.typed.len());
        self.typed.push(typed.to_string());
        Ok(self.typed.len() - 1)
    }

    /// What is at the pointers of a line; `found` is room for it, from line to line.
    pub(super) fn find<'r, 'p>(&'p self, line: &'r [u8], found: &'p mut Found<'r>) -> Result<Values<'r, 'p>, Problem> {
        let Found { values, quotes } = found;
        values.clear();
        values.resize(self.typed.len(), None);
        if !scan::find(&self.root, line, values, quotes) {
            values.fill(None);
            let text = std::str::from_utf8(line).map_err(|_| Problem::Json)?;
            self.parse(text, values)?;
        }
        Ok(Values { found: values, pointers: self })
    }

    #[cfg(test)]
    pub(super) fn root(&self) -> &Node {
        &self.root
    }

    /// Finds the values by parsing: slower, and for all lines.
    pub(super) fn parse<'r>(&self, text: &'r str, found: &mut [Option<&'r str>]) -> Result<(), Problem> {
        let document: &RawValue = serde_json::from_str(text).map_err(|_| Problem::Json)?;
        self.root.take(document, found)
    }
}

/// Room for what is found in a line.
#[derive(Debug, Default)]
pub(super) struct Found<'r> {
    /// The text of the value at each pointer, if there is one.
    values: Vec<Option<&'r str>>,
    quotes: Vec<u64>,
}

impl Node {
    fn take<'r>(&self, value: &'r RawValue, found: &mut [Option<&'r str>]) -> Result<(), Problem> {
        for &index in &self.wanted_as {
            found[index] = Some(value.get());
        }
        if self.members.is_empty() {
            return Ok(());
        }
        let mut parser = serde_json::Deserializer::from_str(value.get());
        // The text is known to be JSON; what has no members has none that is wanted.
        let members = match value.get().as_bytes().first() {
            Some(b'{') => serde::Deserializer::deserialize_map(&mut parser, Members(self)),
            Some(b'[') => serde::Deserializer::deserialize_seq(&mut parser, Members(self)),
            _ => return Ok(()),
        };
        for (at, value) in members.map_err(|_| Problem::Json)?.into_iter().enumerate() {
            if let Some(value) = value {
                self.members[at].1.take(value, found)?;
            }
        }
        Ok(())
    }
}

/// Finds the wanted members of an object or array.
struct Members<'n>(&'n Node);

impl<'r> Visitor<'r> for Members<'_> {
    type Value = Vec<Option<&'r RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or array")
    }

    fn visit_map<A: MapAccess<'r>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = vec![None; self.0.members.len()];
        while let Some(member) = map.next_key_seed(Name(self.0))? {
            match member {
                Some(at) => values[at] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(values)
    }

    fn visit_seq<A: SeqAccess<'r>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let members = &self.0.members;
        let mut values = vec![None; members.len()];
        for index in 0.. {
            match members.iter().position(|(_, member)| member.index == Some(index)) {
                Some(at) => match array.next_element()? {
                    Some(value) => values[at] = Some(value),
                    None => break,
                },
                None if array.next_element::<IgnoredAny>()?.is_none() => break,
                None => {}
            }
        }
        Ok(values)
    }
}

/// Which of the wanted members has the name that comes.
struct Name<'n>(&'n Node);

impl<'r> DeserializeSeed<'r> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'r>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.members.iter().position(|(wanted, _)| wanted == name))
    }
}

/// The values of a line.
pub(super) struct Values<'r, 'p> {
    found: &'p [Option<&'r str>],
    pointers: &'p Pointers,
}

impl<'r> Values<'r, '_> {
    fn at(&self, pointer: usize) -> Result<&'r str, Problem> {
        self.found[pointer].ok_or_else(|| Problem::MissingPointer(self.pointers.typed[pointer].clone()))
    }

    /// A text's letters, and anything else as it is written.
    pub(super) fn text(&self, pointer: usize) -> Result<Cow<'r, [u8]>, Problem> {
        let value = self.at(pointer)?;
        if value.starts_with('"') { letters(value) } else { Ok(Cow::Borrowed(value.as_bytes())) }
    }

    /// The bytes that stand for a value: a text's own, a whole number's 8, anything else's value in one way of writing it.
    pub(super) fn key(&self, pointer: usize) -> Result<Key<'r>, Problem> {
        let value = self.at(pointer)?;
        if value.starts_with('"') {
            return letters(value).map(Key::Text);
        }
        if is_number(value)
            && let Number::Whole(whole) = number::value(value)
        {
            return Ok(Key::Whole(whole.to_le_bytes()));
        }
        let mut bytes = vec![NO_TEXT];
        write_value(value, 0, &mut bytes)?;
        Ok(Key::Other(bytes))
    }
}

/// The bytes of a key, and whether they are text, in which case may be ignored.
pub(super) enum Key<'r> {
    Text(Cow<'r, [u8]>),
    Whole([u8; 8]),
    Other(Vec<u8>),
}

fn is_number(value: &str) -> bool {
    value.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// What is between quotes.
fn letters(value: &str) -> Result<Cow<'_, [u8]>, Problem> {
    match value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain.as_bytes())),
        _ => {
            let text: String = serde_json::from_str(value).map_err(|_| Problem::Json)?;
            Ok(Cow::Owned(text.into_bytes()))
        }
    }
}

/// Writes a value so that equal ones are equal bytes: numbers by value, members in order of their names, no spaces.
fn write_value(value: &str, depth: usize, bytes: &mut Vec<u8>) -> Result<(), Problem> {
    if depth > MOST_STEPS {
        return Err(Problem::Json);
    }
    let refused = |_| Problem::Json;
    match value.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(value).map_err(refused)?;
            bytes.push(b'{');
            for (name, member) in &members {
                serde_json::to_writer(&mut *bytes, name).map_err(refused)?;
                bytes.push(b':');
                write_value(member.get(), depth + 1, bytes)?;
                bytes.push(b',');
            }
            bytes.push(b'}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value).map_err(refused)?;
            bytes.push(b'[');
            for element in elements {
                write_value(element.get(), depth + 1, bytes)?;
                bytes.push(b',');
            }
            bytes.push(b']');
        }
        Some(b'"') => {
            let text: Cow<'_, str> = serde_json::from_str(value).map_err(refused)?;
            serde_json::to_writer(bytes, &text).map_err(refused)?;
        }
        _ if is_number(value) => match number::value(value) {
            Number::Whole(whole) => bytes.extend_from_slice(whole.to_string().as_bytes()),
            Number::Decimal(decimal) => bytes.extend_from_slice(decimal.as_bytes()),
        },
        _ => bytes.extend_from_slice(value.as_bytes()),
    }
    Ok(())
}

/// The names and indexes that a pointer goes through.
fn steps(typed: &str) -> Result<Vec<String>> {
    if typed.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(pointer) = typed.strip_prefix('/') {
        return Ok(pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect());
    }
    let path = typed.strip_prefix('.');
    path.and_then(jq_steps).ok_or_else(|| {
        if let Some(remedy) = jq_remedy(typed) {
            return Failure::new(format!("'{typed}' does not name one value; {remedy}"));
        }
        let names = path.unwrap_or(typed).replace(['.', '[', '"'], "/").replace(']', "");
        let names: Vec<&str> = names.split('/').filter(|name| !name.is_empty()).collect();
        Failure::new(format!("'{typed}' is not a JSON pointer; write /{}", names.join("/")))
    })
}

/// A document beyond this is not searched for what was meant.
const MOST_SEARCHED: usize = 1 << 20;

/// The value that a pointer probably means which leads to none: with the name that is nearest, at the step that goes wrong.
pub(super) fn meant(typed: &str, record: &[u8]) -> Option<String> {
    let record = record.strip_suffix(b"\0").unwrap_or(record);
    let document: Value = serde_json::from_slice(record).ok().filter(|_| record.len() <= MOST_SEARCHED)?;
    let mut steps = steps(typed).ok()?;
    let mut value = &document;
    for step in &mut steps {
        let next = match value {
            Value::Object(members) if !members.contains_key(step) => {
                let near = did_you_mean(step, members.keys().map(String::as_str))?.to_string();
                *step = near;
                members.get(step)
            }
            Value::Object(members) => members.get(step),
            Value::Array(elements) => step.parse::<usize>().ok().and_then(|index| elements.get(index)),
            _ => None,
        };
        value = next?;
    }
    let is_plain =
        |step: &String| !step.is_empty() && step.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    match typed.starts_with('.') && steps.iter().all(is_plain) {
        true => Some(format!(".{}", steps.join("."))),
        false => Some(steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()),
    }
}

/// What to write instead of what other tools understand.
fn jq_remedy(typed: &str) -> Option<String> {
    let path = typed.strip_prefix('$').unwrap_or(typed);
    if path.contains("[]") || path.contains("[*]") {
        let one = path.replace("[]", "[0]").replace("[*]", "[0]");
        return Some(format!("of a list one element is to be named, such as {one}"));
    }
    if path != typed && path.strip_prefix('.').is_some_and(|path| jq_steps(path).is_some()) {
        return Some(format!("write {path}"));
    }
    let brackets = path.split('[').skip(1).filter_map(|step| step.split_once(']'));
    let mut steps = brackets.map(|(step, _)| step).filter(|step| step.parse::<i128>().is_ok());
    let step = steps.find(|step| !is_index(step))?;
    Some(format!("the elements of a list are [0], [1], [2] and so on, and [{step}] is none of them"))
}

/// Whether a step is written as the numbers of elements are.
fn is_index(step: &str) -> bool {
    step.parse::<usize>().is_ok_and(|index| index.to_string() == step)
}

/// The entries of a list of pointers, apart by commas; one within a quoted name of jq's style belongs to the name.
pub(super) fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = list;
    loop {
        let (mut is_quoted, mut is_escaped) = (false, false);
        let ends_part = |(_, letter): &(usize, char)| {
            let is_end = *letter == ',' && !is_quoted;
            is_quoted ^= *letter == '"' && !is_escaped && rest.starts_with('.');
            is_escaped = *letter == '\\' && is_quoted && !is_escaped;
            is_end
        };
        let Some((end, _)) = rest.char_indices().find(ends_part) else {
            parts.push(rest);
            return parts;
        };
        parts.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
}

/// A pointer in the one way in which it is kept: as `/user/id`, or in jq's style where a list could not be told apart
/// otherwise.
pub(super) fn canonical(typed: &str) -> String {
    match steps(typed) {
        Ok(steps) if steps.is_empty() => ".".into(),
        Ok(steps) if steps.iter().any(|step| step.contains(',')) => {
            let quoted = steps.iter().map(|step| format!("[{}]", serde_json::Value::from(step.as_str())));
            format!(".{}", quoted.collect::<String>())
        }
        Ok(steps) => steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect(),
        Err(_) => typed.to_string(),
    }
}

/// The name in quotes at the start, and what is behind them.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut is_escaped = false;
    let closes = |(_, letter): &(usize, char)| {
        let closes = *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        closes
    };
    let (end, _) = text.char_indices().skip(1).find(closes)?;
    Some((serde_json::from_str(&text[..=end]).ok()?, &text[end + 1..]))
}

/// The steps of `user.id`, `items[0].id`, `"a name".id` or `["a name"].id`, what jq writes behind its first point.
fn jq_steps(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if rest.starts_with("[\"") {
            let (name, behind) = quoted_name(&rest[1..])?;
            steps.push(name);
            rest = behind.strip_prefix(']')?;
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, behind) = index.split_once(']')?;
            is_index(index).then_some(())?;
            steps.push(index.to_string());
            rest = behind;
        } else if rest.starts_with('"') {
            let (name, behind) = quoted_name(rest)?;
            steps.push(name);
            rest = behind;
        } else {
            let end = rest.find(['.', '[', '"', ']']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(name.to_string());
            rest = behind;
        }
        rest = match rest.strip_prefix('.') {
            Some("") => return None,
            Some(more) => more,
            None if rest.is_empty() || rest.starts_with('[') => rest,
            None => return None,
        };
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(pointer: &str, line: &str) -> Result<Vec<u8>, Problem> {
        let mut pointers = Pointers::default();
        let number = pointers.add(pointer).expect("a pointer");
        let mut found = Found::default();
        let values = pointers.find(line.as_bytes(), &mut found)?;
        values.key(number).map(|key| match key {
            Key::Text(text) => text.into_owned(),
            Key::Whole(bytes) => bytes.to_vec(),
            Key::Other(bytes) => bytes,
        })
    }

    #[test]
    fn numbers_are_their_values_and_texts_are_texts() {
        let one = key("/id", r#"{"id":1}"#);
        assert_eq!(one, Ok(1u64.to_le_bytes().to_vec()));
        assert_eq!(key("/id", r#"{"id": 1.0 }"#), one);
        assert_eq!(key("/id", r#"{"id":"1"}"#), Ok(b"1".to_vec()));
        for (value, text) in [("1.5", "1.5"), ("1.5", "15e-1"), ("true", "true"), ("null", "null"), ("[]", "[]")] {
            let (value, text) = (format!(r#"{{"id":{value}}}"#), format!(r#"{{"id":"{text}"}}"#));
            assert_ne!(key("/id", &value), key("/id", &text));
        }
        assert_ne!(key("/id", r#"{"id":-1}"#), key("/id", r#"{"id":18446744073709551615}"#));
    }

    #[test]
    fn equal_objects_are_one_key_however_they_are_written() {
        let one = key("/id", r#"{"id":{"b":[1,"x"],"a":2.50}}"#);
        assert_eq!(key("/id", r#"{"id": {"a": 25e-1, "b": [1.0, "\u0078"]}}"#), one);
        assert_ne!(key("/id", r#"{"id": {"a": 2.5, "b": ["1", "x"]}}"#), one);
        let deep = format!(r#"{{"id":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(key("/id", &deep), Err(Problem::Json));
        assert_eq!(key("/other", &deep.replace("id", "other")), Err(Problem::Json));
        assert!(key("/last", &format!(r#"{{"last":1,{}"#, &deep[1..])).is_ok(), "what is passed over may be deep");
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        assert_eq!(key("/k", r#"{"k":"a","k":"b"}"#), Ok(b"b".to_vec()));
        assert_eq!(key("/k/x", r#"{"k":{"x":"a"},"k":{"x":"b"}}"#), Ok(b"b".to_vec()));
        let missing = Err(Problem::MissingPointer("/k/x".into()));
        assert_eq!(key("/k/x", r#"{"k":{"x":"a"},"k":{"y":"b"}}"#), missing);
        assert_eq!(key("/k/x", r#"{"k":{"x":"a"},"k":7}"#), missing);
    }

    #[test]
    fn pointers_and_jq_paths_lead_to_the_same_place() {
        let line = r#"{"user":{"id":"u","a.b":["x",{"y/z":"deep"}],"~":"tilde"}}"#;
        for path in
            ["/user/id", ".user.id", r#"."user".id"#, r#".["user"].id"#, r#".user["id"]"#, r#".["\u0075ser"]["id"]"#]
        {
            assert_eq!(key(path, line), Ok(b"u".to_vec()), "{path}");
        }
        for path in ["/user/a.b/1/y~1z", r#".user."a.b"[1]."y/z""#] {
            assert_eq!(key(path, line), Ok(b"deep".to_vec()), "{path}");
        }
        assert_eq!(key("/user/~0", line), Ok(b"tilde".to_vec()));
        assert!(key("", line).is_ok() && key(".", line) == key("", line), "the whole document");
        for missing in ["/user/a.b/01", "/user/a.b/2", "/user/id/x", "/user/", "/USER"] {
            assert_eq!(key(missing, line), Err(Problem::MissingPointer(missing.into())));
        }
    }

    #[test]
    fn what_is_no_pointer_gets_one_suggested() {
        for (typed, suggested) in
            [("user.id", "/user/id"), ("user", "/user"), ("a[0].b", "/a/0/b"), (".a..b", "/a/b"), (".a.", "/a")]
        {
            let Err(Failure::Message(message)) = Pointers::default().add(typed) else { panic!("{typed} is a pointer") };
            assert!(message.ends_with(&format!("write {suggested}")), "{message}");
        }
        for (typed, ending) in [
            ("$.user.id", "write .user.id"),
            (".items[].id", "such as .items[0].id"),
            ("$.items[*].id", "such as .items[0].id"),
            (".a[01]", "[01] is none of them"),
            (".a[+0]", "[+0] is none of them"),
            (".a[-1]", "[-1] is none of them"),
            (".a[0][-2].b", "[-2] is none of them"),
        ] {
            let Err(Failure::Message(message)) = Pointers::default().add(typed) else { panic!("{typed} is a pointer") };
            assert!(message.ends_with(ending), "{message}");
        }
        assert!(Pointers::default().add(&"/a".repeat(1000)).is_err());
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for line in ["", "x", r#"{"k":1"#, r#"{"k":1} 2"#, r#"{"k":01}"#, "{\"k\":\"a\nb\"}"] {
            assert_eq!(key("/k", line), Err(Problem::Json), "{line}");
        }
        assert_eq!(Pointers::default().find(b"{\"k\":\"\xff\"}", &mut Found::default()).err(), Some(Problem::Json));
    }
}
