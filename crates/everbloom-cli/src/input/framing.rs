//! Where records end: at a byte, or in CSV at that byte outside quotes.
//!
//! Quotes are read as csv-core reads them: one opens where a field starts, a doubled one within quotes stands for
//! itself, and any other is a letter.

use everbloom::internal::key::records;
use memchr::{memchr, memchr2, memrchr};

const QUOTE: u8 = b'"';

/// How records are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Framing {
    /// The byte that ends a record.
    pub(crate) ending: u8,
    /// What separates the fields, if these may be quoted and then have endings inside.
    pub(crate) quoted_fields: Option<u8>,
}

impl From<u8> for Framing {
    fn from(ending: u8) -> Self {
        Framing { ending, quoted_fields: None }
    }
}

impl Framing {
    /// Writes down where the records of `bytes` from `start` on end, as many as fit, and says how many those are. The
    /// bytes are whole records, though the last may lack its ending.
    pub(crate) fn split(self, bytes: &[u8], start: usize, ends: &mut [usize]) -> usize {
        match self.quoted_fields {
            Some(delimiter) if memchr(QUOTE, &bytes[start..]).is_some() => {
                self.split_quoted(bytes, start, delimiter, ends)
            }
            _ => records::split(bytes, start, self.ending, ends),
        }
    }

    /// Where the first record ends, behind its ending.
    pub(crate) fn first_end(self, bytes: &[u8]) -> usize {
        let mut end = [0];
        match self.quoted_fields {
            Some(delimiter) => self.split_quoted(bytes, 0, delimiter, &mut end),
            None => {
                end[0] = memchr(self.ending, bytes).map_or(bytes.len(), |at| at + 1);
                1
            }
        };
        end[0]
    }

    fn split_quoted(self, bytes: &[u8], start: usize, delimiter: u8, ends: &mut [usize]) -> usize {
        let (mut count, mut at, mut end) = (0, start, start);
        while count < ends.len() {
            let Some(found) = memchr2(QUOTE, self.ending, &bytes[at..]).map(|found| at + found) else { break };
            at = found + 1;
            if bytes[found] == self.ending {
                (ends[count], end) = (at, at);
                count += 1;
            } else if found == end || bytes[found - 1] == delimiter {
                at = behind_quotes(bytes, at).unwrap_or(bytes.len());
            }
        }
        if count < ends.len() && end < bytes.len() {
            ends[count] = bytes.len();
            count += 1;
        }
        count
    }
}

/// Where a quoted field that was opened before `at` is closed; nothing if it is not.
fn behind_quotes(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr(QUOTE, &bytes[at..])? + 1;
        match bytes.get(at) {
            Some(&QUOTE) => at += 1,
            _ => return Some(at),
        }
    }
}

/// Finds the last end of a record in bytes that come piece by piece, each looked at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutter {
    framing: Framing,
    looked_at: usize,
    end: Option<usize>,
    quotes: Quotes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Outside,
    /// Within quotes opened there.
    Inside(usize),
    /// Behind a quote within those: another one makes it a letter, anything else closes them.
    Ending(usize),
}

impl Cutter {
    /// For bytes that begin with a record.
    pub(super) fn new(framing: Framing) -> Self {
        Cutter { framing, looked_at: 0, end: None, quotes: Quotes::Outside }
    }

    /// Where the last whole record of `bytes` ends, of which more are there than the last time.
    pub(super) fn last_end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.framing.quoted_fields {
            Some(delimiter) => self.look_at_quotes(bytes, delimiter),
            None => self.note_end(bytes, self.looked_at..bytes.len()),
        }
        self.looked_at = bytes.len();
        self.end
    }

    /// Where a quote was opened that is not closed yet.
    pub(super) fn open_quote(&self) -> Option<usize> {
        match self.quotes {
            Quotes::Inside(opened) => Some(opened),
            Quotes::Outside | Quotes::Ending(_) => None,
        }
    }

    fn note_end(&mut self, bytes: &[u8], range: std::ops::Range<usize>) {
        let start = range.start;
        self.end = memrchr(self.framing.ending, &bytes[range]).map(|at| start + at + 1).or(self.end);
    }

    fn look_at_quotes(&mut self, bytes: &[u8], delimiter: u8) {
        let mut at = self.looked_at;
        while at < bytes.len() {
            if let Quotes::Ending(opened) = self.quotes {
                let is_letter = bytes[at] == QUOTE;
                self.quotes = if is_letter { Quotes::Inside(opened) } else { Quotes::Outside };
                at += usize::from(is_letter);
            }
            let found = memchr(QUOTE, &bytes[at..]).map(|found| at + found);
            match (self.quotes, found) {
                (Quotes::Outside, Some(quote)) => {
                    self.note_end(bytes, at..quote);
                    if quote == 0 || bytes[quote - 1] == delimiter || bytes[quote - 1] == self.framing.ending {
                        self.quotes = Quotes::Inside(quote);
                    }
                }
                (Quotes::Inside(opened), Some(_)) => self.quotes = Quotes::Ending(opened),
                (Quotes::Outside, None) => self.note_end(bytes, at..bytes.len()),
                _ => {}
            }
            at = found.map_or(bytes.len(), |found| found + 1);
        }
    }
}
