//! Where records end: at a byte, or in CSV at that byte outside quotes.
//!
//! Quotes are read as csv-core reads them: one opens where a field starts, a doubled one within quotes stands for
//! itself, and any other is a letter.

use everbloom_cells::key::records::{self, Looked, Separators};
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

/// Lines.
impl Default for Framing {
    fn default() -> Self {
        b'\n'.into()
    }
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
        let Some(delimiter) = self.quoted_fields else { return records::split(bytes, start, self.ending, ends) };
        let (count, _) = Separators { delimiter, ending: self.ending }.split(bytes, start, ends);
        // What is left has a quote that is a letter, lacks an ending, or comes when there is room again.
        let end = if count == 0 { start } else { ends[count - 1] };
        match end < bytes.len() {
            true => count + self.split_quoted(bytes, end, delimiter, &mut ends[count..]),
            false => count,
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
                // Where one quoted field follows another, there is nothing to look for between them.
                while let [byte, QUOTE, rest @ ..] = &bytes[at..]
                    && *byte == delimiter
                {
                    at = behind_quotes(bytes, bytes.len() - rest.len()).unwrap_or(bytes.len());
                }
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
            Some(delimiter) => self.look_ahead(bytes, delimiter),
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
        let (bytes, ending) = (&bytes[range], self.framing.ending);
        // Between two quoted fields there is a byte or two, for which a call would take longer.
        let found = match bytes.len() {
            0..8 => bytes.iter().rposition(|byte| *byte == ending),
            _ => memrchr(ending, bytes),
        };
        self.end = found.map(|at| start + at + 1).or(self.end);
    }

    /// Looks at many bytes together, or where some quote is a letter at one quote after another.
    fn look_ahead(&mut self, bytes: &[u8], delimiter: u8) {
        let (opened, is_inside) = match self.quotes {
            Quotes::Outside => (None, false),
            Quotes::Inside(opened) => (Some(opened), true),
            Quotes::Ending(opened) => (Some(opened), false),
        };
        let (looked, separators) =
            (Looked { end: self.end, opened, is_inside }, Separators { delimiter, ending: self.framing.ending });
        match separators.look(bytes, self.looked_at, looked) {
            None => self.look_at_quotes(bytes, delimiter),
            Some(Looked { end, opened, is_inside }) => {
                self.end = end;
                self.quotes = match opened {
                    Some(opened) if is_inside => Quotes::Inside(opened),
                    Some(opened) if bytes.last() == Some(&QUOTE) => Quotes::Ending(opened),
                    _ => Quotes::Outside,
                };
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
    use proptest::prelude::*;

    /// The records of a whole text, as csv-core has them: without empty lines.
    fn twin(mut reader: Reader, mut text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let (mut output, mut ends, mut records) = (vec![0; text.len() + 1], vec![0; text.len() + 1], Vec::new());
        loop {
            let (used, written, fields) = (&mut 0, &mut 0, &mut 0);
            loop {
                let (result, read, wrote, ended) =
                    reader.read_record(&text[*used..], &mut output[*written..], &mut ends[*fields..]);
                (*used, *written, *fields) = (*used + read, *written + wrote, *fields + ended);
                match result {
                    ReadRecordResult::Record => break,
                    ReadRecordResult::End => return records,
                    ReadRecordResult::InputEmpty => {}
                    full => panic!("{full:?}"),
                }
            }
            let starts = [0].into_iter().chain(ends.iter().copied());
            records.push(starts.zip(&ends[..*fields]).map(|(start, end)| output[start..*end].to_vec()).collect());
            text = &text[*used..];
        }
    }

    /// The records of a text that comes in pieces, cut into blocks as they come; and whether a quote stays open.
    fn cut(framing: Framing, text: &[u8], pieces: &[usize]) -> (Vec<Vec<u8>>, bool) {
        let (mut records, mut block, mut cutter) = (Vec::new(), Vec::new(), Cutter::new(framing));
        let mut take = |block: &[u8]| {
            let (mut ends, mut start) = ([0; 70], 0);
            while start < block.len() {
                let count = framing.split(block, start, &mut ends);
                for &end in &ends[..count] {
                    records.push(block[start..end].to_vec());
                    start = end;
                }
            }
        };
        let (mut at, mut pieces) = (0, pieces.iter().cycle());
        while at < text.len() {
            let piece = (*pieces.next().expect("an endless number")).min(text.len() - at);
            block.extend_from_slice(&text[at..at + piece]);
            at += piece;
            // A block may be given whenever it has a whole record, or be filled further.
            if let (Some(end), false) = (cutter.last_end(&block), piece % 3 == 0) {
                take(&block[..end]);
                block.drain(..end);
                cutter = Cutter::new(framing);
            }
        }
        cutter.last_end(&block);
        let is_open = cutter.open_quote().is_some();
        take(&block);
        (records, is_open)
    }

    fn fields(record: &[u8], delimiter: u8, ending: u8) -> Vec<Vec<u8>> {
        let line = record.strip_suffix(&[ending]).unwrap_or(record);
        let separation = crate::record::Separation { delimiter, quoted: true };
        let fields = crate::record::Fields::new(line, separation);
        fields.map(|field| field.expect("quotes that are closed").into_owned()).collect()
    }

    proptest! {
        /// Anything at all, in whatever pieces it comes, has the records and fields that csv-core finds in the whole.
        #[test]
        fn cuts_change_nothing(
            text in proptest::collection::vec(prop_oneof![4 => Just(b'"'), 3 => Just(b','), 2 => Just(b'\n'), 1 => Just(b'\r'), 4 => Just(b'a')], 0..200),
            pieces in proptest::collection::vec(1usize..20, 1..10),
            delimiter in prop_oneof![Just(b','), Just(b'a'), Just(b'\r')],
        ) {
            let framing = Framing { ending: b'\n', quoted_fields: Some(delimiter) };
            let (mut records, is_open) = cut(framing, &text, &pieces);
            let reader = ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build();
            let mut expected = twin(reader, &text);
            prop_assert_eq!(records.concat(), text, "nothing is lost");
            if is_open {
                // What csv-core makes of it is refused here.
                records.pop();
                expected.pop();
            }
            records.retain(|record| record != b"\n");
            let found: Vec<_> = records.iter().map(|record| fields(record, delimiter, b'\n')).collect();
            prop_assert_eq!(found, expected);
        }

        /// What a spreadsheet writes, with carriage returns and breaks inside of fields.
        #[test]
        fn records_of_spreadsheets_are_whole(
            rows in proptest::collection::vec(proptest::collection::vec("[a,\"\n\r ]{1,8}", 1..4), 1..20),
            pieces in proptest::collection::vec(1usize..20, 1..10),
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n";
            let text: String = rows.iter().map(line).collect();
            let framing = Framing { ending: b'\n', quoted_fields: Some(b',') };
            let (records, is_open) = cut(framing, text.as_bytes(), &pieces);
            let expected = twin(Reader::new(), text.as_bytes());
            let found: Vec<_> = records.iter().map(|record| fields(&record[..record.len() - 2], b',', b'\n')).collect();
            prop_assert!(!is_open);
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(found.len(), rows.len());
        }
    }

    #[test]
    fn an_open_quote_is_known_and_where() {
        let mut cutter = Cutter::new(Framing { ending: b'\n', quoted_fields: Some(b',') });
        assert_eq!((cutter.last_end(b"a,\"b\n"), cutter.open_quote()), (None, Some(2)));
        assert_eq!((cutter.last_end(b"a,\"b\n\"\n"), cutter.open_quote()), (Some(7), None));
    }

    #[test]
    fn without_csv_quotes_are_letters() {
        let mut cutter = Cutter::new(Framing::from(b'\n'));
        assert_eq!((cutter.last_end(b"a,\"b\nc"), cutter.open_quote()), (Some(5), None));
    }
}
