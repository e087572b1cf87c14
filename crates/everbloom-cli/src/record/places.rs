//! The list of fields or JSON values that make a key, as it is typed: `1-3,5`, `id,name`, `/user/id`, `.user.id`.

use super::json;
use crate::failure::{Failure, Result};

/// More fields than this are a mistake.
const MOST_FIELDS: usize = 1000;

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A field by number or name, or a JSON value.
    One(String),
    /// This field, counted from 1, and all behind it.
    From(usize),
}

/// The places that a list names; ranges are taken apart, unless a field has such a name.
pub(super) fn parse(text: &str, is_json: bool, is_name: impl Fn(&str) -> bool) -> Result<Vec<Place>> {
    if is_json {
        let parts = json::split(text);
        if parts.len() > 1 && parts.contains(&"") {
            return Err(Failure::new("a JSON key is empty; leave out the comma, or write . for the whole record"));
        }
        return Ok(parts.into_iter().map(|part| Place::One(part.to_string())).collect());
    }
    let mut places = Vec::new();
    for part in text.split(',') {
        match range(part).filter(|_| !is_name(part)) {
            None => places.push(Place::One(part.to_string())),
            Some((0, _) | (_, Some(0))) => return Err(Failure::new(format!("'{part}' names field 0; count from 1"))),
            Some((from, None)) => places.push(Place::From(from)),
            Some((from, Some(to))) if from > to => {
                return Err(Failure::new(format!("'{part}' runs backwards; write {to}-{from}")));
            }
            Some((from, Some(to))) if to - from >= MOST_FIELDS => {
                return Err(Failure::new(format!("'{part}' is more than {MOST_FIELDS} fields; write {from}- for all")));
            }
            Some((from, Some(to))) => places.extend((from..=to).map(|field| Place::One(field.to_string()))),
        }
    }
    Ok(places)
}

/// The first and last field of `1-3`, `2-` or `-3`; a name with a dash is none.
fn range(part: &str) -> Option<(usize, Option<usize>)> {
    let (from, to) = part.split_once('-')?;
    // A number that is too large for any record is as good as the largest.
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(usize::MAX))
    };
    match (from, to) {
        ("", "") => None,
        ("", to) => Some((1, Some(number(to)?))),
        (from, "") => Some((number(from)?, None)),
        (from, to) => Some((number(from)?, Some(number(to)?))),
    }
}

/// The list in the one way in which filter files and states keep it: what names the same values is the same text. With a
/// header it stays as it was typed: whether `1-2` is a range or a name is known when the header is.
pub(super) fn canonical(text: &str, is_json: bool, has_header: bool) -> String {
    if has_header {
        return text.to_string();
    }
    let Ok(places) = parse(text, is_json, |_| false) else { return text.to_string() };
    let written = places.into_iter().map(|place| match place {
        Place::One(value) if is_json => json::canonical(&value),
        Place::One(field) => field,
        Place::From(field) => format!("{field}-"),
    });
    written.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_kept_in_one_way() {
        for (typed, is_json, kept) in [
            ("1-3,5", false, "1,2,3,5"),
            ("-2", false, "1,2"),
            ("2-2", false, "2"),
            ("2-", false, "2-"),
            ("user-id,x", false, "user-id,x"),
            ("1-x,-,a-", false, "1-x,-,a-"),
            (".user.id", true, "/user/id"),
            ("/user/id", true, "/user/id"),
            (r#".["a b"].items[0],.c"#, true, "/a b/items/0,/c"),
            (r#".["a,b"]"#, true, r#".["a,b"]"#),
            (r#"."a/b".c~d"#, true, "/a~1b/c~0d"),
            (".", true, "."),
        ] {
            assert_eq!(canonical(typed, is_json, false), kept, "{typed}");
        }
        assert_eq!(canonical("1-3,5", false, true), "1-3,5", "a header may have such a name");
        for typed in ["0-3", "3-0", "3-1", "1-9999", "1-99999999999999999999", "99999999999999999999-3"] {
            assert!(parse(typed, false, |_| false).is_err(), "{typed}");
        }
    }

    #[test]
    fn what_a_field_is_called_is_no_range() {
        let one = |field: &str| Place::One(field.into());
        let places = |typed| parse(typed, false, |name| name == "2019-2020").expect("a list");
        assert_eq!(places("2019-2020,1-2"), [one("2019-2020"), one("1"), one("2")]);
    }
}
