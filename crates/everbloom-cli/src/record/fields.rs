//! Fields of a line, plain or quoted.

use super::Problem;
use memchr::memchr;
use std::borrow::Cow;

/// How fields are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Separation {
    /// The byte between two fields.
    pub(crate) delimiter: u8,
    /// Whether a field may be quoted, with quotes doubled inside.
    pub(crate) quoted: bool,
}

/// Field `number`, counted from 0.
pub(crate) fn field(line: &[u8], separation: Separation, number: usize) -> Result<Cow<'_, [u8]>, Problem> {
    let mut fields = Fields::new(line, separation);
    for _ in 0..number {
        fields.pass().ok_or(Problem::MissingField(number + 1))??;
    }
    fields.next().ok_or(Problem::MissingField(number + 1))?
}

/// Field `first`, counted from 0, and all behind it.
pub(crate) fn from<'l>(
    line: &'l [u8],
    separation: Separation,
    first: usize,
    mut take: impl FnMut(Cow<'l, [u8]>),
) -> Result<(), Problem> {
    let mut count = 0;
    for field in Fields::new(line, separation) {
        let field = field?;
        if count >= first {
            take(field);
        }
        count += 1;
    }
    if count > first { Ok(()) } else { Err(Problem::MissingField(first + 1)) }
}

/// All fields of a line.
pub(crate) struct Fields<'l> {
    rest: Option<&'l [u8]>,
    separation: Separation,
}

impl<'l> Fields<'l> {
    /// The fields of `line`.
    pub(crate) fn new(line: &'l [u8], separation: Separation) -> Self {
        Fields { rest: Some(line), separation }
    }

    /// Passes a field that nobody asked for.
    #[inline]
    fn pass(&mut self) -> Option<Result<(), Problem>> {
        let rest = self.rest.take()?;
        if self.separation.quoted && rest.first() == Some(&b'"') {
            return Some(self.quoted(&rest[1..]).map(drop));
        }
        self.plain(rest);
        Some(Ok(()))
    }

    #[inline]
    fn plain(&mut self, rest: &'l [u8]) -> Cow<'l, [u8]> {
        let end = memchr(self.separation.delimiter, rest);
        self.rest = end.map(|end| &rest[end + 1..]);
        Cow::Borrowed(&rest[..end.unwrap_or(rest.len())])
    }

    /// A field whose opening quote has been taken off. What stands between its closing quote and the next delimiter
    /// belongs to it, as csv-core has it.
    fn quoted(&mut self, rest: &'l [u8]) -> Result<Cow<'l, [u8]>, Problem> {
        let mut field = Cow::Borrowed(&rest[..0]);
        let mut rest = rest;
        loop {
            let quote = memchr(b'"', rest).ok_or(Problem::Quoting)?;
            let part = &rest[..quote];
            rest = &rest[quote + 1..];
            if field.is_empty() {
                field = Cow::Borrowed(part)
            } else {
                field.to_mut().extend_from_slice(part)
            }
            match rest.first() {
                Some(b'"') => {
                    field.to_mut().push(b'"');
                    rest = &rest[1..];
                }
                _ => {
                    let behind = self.plain(rest);
                    if !behind.is_empty() {
                        field.to_mut().extend_from_slice(&behind);
                    }
                    return Ok(field);
                }
            }
        }
    }
}

impl<'l> Iterator for Fields<'l> {
    type Item = Result<Cow<'l, [u8]>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        match rest.first() {
            Some(b'"') if self.separation.quoted => Some(self.quoted(&rest[1..])),
            _ => Some(Ok(self.plain(rest))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Separation = Separation { delimiter: b',', quoted: true };

    fn all(line: &str) -> Result<Vec<String>, Problem> {
        let text = |field: Cow<'_, [u8]>| String::from_utf8_lossy(&field).into_owned();
        Fields::new(line.as_bytes(), CSV).map(|field| field.map(text)).collect()
    }

    #[test]
    fn quotes_are_taken_off_and_doubled_ones_halved() {
        assert_eq!(all(r#"a,"b,c"#), Err(Problem::Quoting));
        assert_eq!(all(r#"a,"b,c","d ""e""","","#).expect("fields"), ["a", "b,c", "d \"e\"", "", ""]);
        assert_eq!(all(r#""""""#).expect("fields"), ["\""]);
        assert_eq!(all(r#""a"b"c",d"#).expect("fields"), ["ab\"c\"", "d"]);
    }

    #[test]
    fn plain_fields_keep_their_quotes() {
        let tabs = Separation { delimiter: b'\t', quoted: false };
        assert_eq!(&*field(b"\"a\tb\"", tabs, 1).expect("a field"), b"b\"");
        assert_eq!(field(b"a\tb", tabs, 2), Err(Problem::MissingField(3)));
    }
}
