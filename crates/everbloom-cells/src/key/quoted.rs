//! Where records end whose fields may be quoted, and then have endings inside.
//!
//! A quote opens where a field starts, a doubled one within quotes stands for itself, and any other is a letter. Here 64 bytes
//! are looked at together: a byte lies within quotes if an odd number of them comes before it, as long as each that opens stands
//! at the start of a field or behind one that closes. Text in which one does not is left to whoever goes byte by byte.
//!
//! ```text
//! a,"b,""c",d      bytes
//! 001001101000     quotes
//! 001110110000     within them: the 1st quote opens, and the 3rd again what the 2nd closed
//! ```

use super::records::{CHUNK, write_down};
use crate::simd;
use std::hint::black_box;

const QUOTE: u8 = b'"';

/// What separates fields, and what ends records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Separators {
    /// The byte between two fields.
    pub delimiter: u8,
    /// The byte that ends a record outside quotes.
    pub ending: u8,
}

/// Text that was looked at up to some byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Where the last whole record ends.
    pub end: Option<usize>,
    /// Where the last quoted field begins; may be left out once that is closed and something else follows.
    pub opened: Option<usize>,
    /// Whether that is not closed; behind a quote that closes, the next one may open it again.
    pub is_inside: bool,
}

impl Separators {
    /// Writes down where the records of `bytes` from `start` on end, each behind its ending, and says how many there are,
    /// and whether that is all: it stops at a quote within a field that is not quoted, and when fewer than 64 places are left
    /// in `ends`.
    ///
    /// ```
    /// use everbloom_cells::key::records::Separators;
    ///
    /// let csv = Separators { delimiter: b',', ending: b'\n' };
    /// let mut ends = [0; 64];
    /// assert_eq!(csv.split(b"a,\"b\n\"\"\"\nc\nd", 0, &mut ends), (2, true));
    /// assert_eq!(ends[..2], [9, 11]);
    /// assert_eq!(csv.split(b"3\" pipe\n", 0, &mut ends), (0, false));
    /// ```
    ///
    /// # Panics
    ///
    /// If `start` lies beyond the bytes.
    #[inline]
    pub fn split(self, bytes: &[u8], start: usize, ends: &mut [usize]) -> (usize, bool) {
        simd::run(Splitting { separators: self, bytes, start, ends })
    }

    /// Looks at the bytes from `from` on, which go on with what was `looked` at; nothing if there is a quote within a field
    /// that is not quoted.
    ///
    /// # Panics
    ///
    /// If `from` lies beyond the bytes.
    #[inline]
    pub fn look(self, bytes: &[u8], from: usize, looked: Looked) -> Option<Looked> {
        simd::run(Looking { separators: self, bytes, from, looked })
    }

    /// A byte that means nothing.
    fn letter(self) -> u8 {
        [b'a', b'b', b'c'].into_iter().find(|byte| *byte != self.delimiter && *byte != self.ending).unwrap_or(b'a')
    }

    /// Whether a quote behind this byte may open.
    #[inline(always)]
    fn precedes_quote(self, byte: u8) -> bool {
        byte == self.delimiter || byte == self.ending || byte == QUOTE
    }
}

/// What 64 bytes are.
struct Seen {
    /// Endings outside quotes.
    endings: u64,
    /// Quotes that open a field.
    opening: u64,
}

/// The chunks of a text, one after another.
struct Chunks {
    separators: Separators,
    /// All ones within quotes.
    inside: u64,
    /// The byte before the next chunk.
    before: Option<u8>,
}

impl Chunks {
    /// Looks at the next chunk; nothing if a quote of it is a letter.
    #[inline(always)]
    fn see(&mut self, ops: impl simd::SimdOps, chunk: &[u8; CHUNK]) -> Option<Seen> {
        let Separators { delimiter, ending } = self.separators;
        // Boxed, because a compiler that sees how they were made puts masks together again bit by bit: five times as slow.
        let quotes = black_box(ops.equal_bytes(chunk, QUOTE));
        let endings = black_box(ops.equal_bytes(chunk, ending));
        let before = self.before.replace(chunk[CHUNK - 1]);
        if quotes == 0 {
            return Some(Seen { endings: endings & !self.inside, opening: 0 });
        }
        let within = odd_before(quotes) ^ self.inside;
        let opening = quotes & within;
        self.inside = 0u64.wrapping_sub(within >> 63);
        // Asked of the bytes before those that open.
        let (first, others) = (opening & 1, opening >> 1);
        let is_letter = first != 0 && before.is_some_and(|byte| !self.separators.precedes_quote(byte));
        if is_letter || others & !(ops.equal_bytes(chunk, delimiter) | endings | quotes) != 0 {
            return None;
        }
        // One that follows a quote opens again what that one closed.
        let new = (others & !quotes) << 1 | first & u64::from(before != Some(QUOTE));
        Some(Seen { endings: endings & !within, opening: new })
    }
}

/// For each bit, whether it and those below it are an odd number.
#[inline(always)]
fn odd_before(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(bits, |odd, shift| odd ^ odd << shift)
}

/// The whole chunks of some bytes, and the rest with letters behind it.
#[inline(always)]
pub(super) fn chunked(bytes: &[u8], letter: u8) -> (&[[u8; CHUNK]], [u8; CHUNK]) {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    let mut last = [letter; CHUNK];
    last[..rest.len()].copy_from_slice(rest);
    (chunks, last)
}

struct Splitting<'b> {
    separators: Separators,
    bytes: &'b [u8],
    start: usize,
    ends: &'b mut [usize],
}

impl simd::Kernel for Splitting<'_> {
    type Output = (usize, bool);

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) -> (usize, bool) {
        let Splitting { separators, bytes, start, ends } = self;
        let (chunks, last) = chunked(&bytes[start..], separators.letter());
        let mut text = Chunks { separators, inside: 0, before: None };
        let (mut count, mut behind) = (0, start + 1);
        for chunk in chunks.iter().chain([&last]) {
            let Some(places) = ends[count..].first_chunk_mut::<CHUNK>() else { return (count, false) };
            let Some(seen) = text.see(ops, chunk) else { return (count, false) };
            count += write_down(seen.endings, behind, places);
            behind += CHUNK;
        }
        (count, true)
    }
}

struct Looking<'b> {
    separators: Separators,
    bytes: &'b [u8],
    from: usize,
    looked: Looked,
}

impl simd::Kernel for Looking<'_> {
    type Output = Option<Looked>;

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) -> Option<Looked> {
        let Looking { separators, bytes, from, mut looked } = self;
        let (chunks, last) = chunked(&bytes[from..], separators.letter());
        let inside = if looked.is_inside { u64::MAX } else { 0 };
        // A quote closed a field if one was opened; else it is a letter, behind which none opens.
        let is_letter = |byte: u8| byte == QUOTE && looked.opened.is_none();
        let before = from.checked_sub(1).map(|at| bytes[at]);
        let before = before.map(|byte| if is_letter(byte) { separators.letter() } else { byte });
        let mut text = Chunks { separators, inside, before };
        let mut at = from;
        for chunk in chunks.iter().chain([&last]) {
            let Seen { endings, opening } = text.see(ops, chunk)?;
            if endings != 0 {
                looked.end = Some(at + 64 - endings.leading_zeros() as usize);
            }
            if opening != 0 {
                looked.opened = Some(at + 63 - opening.leading_zeros() as usize);
            }
            at += CHUNK;
        }
        Some(Looked { is_inside: text.inside != 0, ..looked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CSV: Separators = Separators { delimiter: b',', ending: b'\n' };

    /// Byte by byte: where records end, where the last quoted field opens and whether it is still open; and whether no quote
    /// is a letter.
    fn twin(bytes: &[u8]) -> (Vec<usize>, Looked, bool) {
        let (mut ends, mut looked, mut is_regular) = (Vec::new(), Looked::default(), true);
        let mut at = 0;
        while at < bytes.len() {
            match (looked.is_inside, bytes[at]) {
                (true, QUOTE) if bytes.get(at + 1) == Some(&QUOTE) => at += 1,
                (true, QUOTE) => looked.is_inside = false,
                (false, QUOTE) if at == 0 || [b',', b'\n'].contains(&bytes[at - 1]) => {
                    (looked.is_inside, looked.opened) = (true, Some(at));
                }
                (false, QUOTE) => is_regular = false,
                (false, b'\n') => ends.push(at + 1),
                _ => {}
            }
            at += 1;
        }
        looked.end = ends.last().copied();
        (ends, looked, is_regular)
    }

    fn agrees(text: &[u8], cut: usize) {
        let (expected, looked, is_regular) = twin(text);
        let mut ends = vec![0; text.len() + 64];
        let (count, is_all) = CSV.split(text, 0, &mut ends);
        let shown = String::from_utf8_lossy(text);
        assert_eq!(is_all, is_regular, "{shown:?}");
        assert!(expected.starts_with(&ends[..count]) && (count == expected.len() || !is_all), "{shown:?}");
        assert_eq!(CSV.look(text, 0, Looked::default()), is_regular.then_some(looked), "{shown:?}");
        // The same in two pieces, wherever they meet.
        let first = CSV.look(&text[..cut], 0, Looked::default());
        let both = first.and_then(|first| CSV.look(text, cut, first));
        assert_eq!(both, is_regular.then_some(looked), "{shown:?} cut at {cut}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn anything_ends_where_it_does_byte_by_byte(
            text in prop::collection::vec(prop_oneof![3 => Just(b'"'), 3 => Just(b','), 2 => Just(b'\n'), 3 => Just(b'a')], 0..300),
            cut in any::<prop::sample::Index>(),
        ) {
            agrees(&text, cut.index(text.len() + 1));
        }

        #[test]
        fn so_does_what_spreadsheets_write(
            rows in prop::collection::vec(prop::collection::vec("[a,\"\n]{0,40}", 1..4), 1..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
            let text: String = rows.iter().map(line).collect();
            prop_assert!(twin(text.as_bytes()).2, "every quote of it is one");
            agrees(text.as_bytes(), cut.index(text.len() + 1));
        }
    }

    #[test]
    fn a_quote_that_was_a_letter_opens_nothing_behind_it() {
        for delimiter in *b",abc" {
            let separators = Separators { delimiter, ..CSV };
            let outside = Looked { opened: None, ..Looked::default() };
            assert_eq!(separators.look(b"x\"\"\n", 2, outside), None, "{delimiter}");
            let closed = Looked { opened: Some(0), ..Looked::default() };
            let open = Some(Looked { is_inside: true, ..closed });
            assert_eq!(separators.look(b"\"x\"\"\n", 3, closed), open, "{delimiter}");
        }
    }

    #[test]
    fn it_stops_where_there_is_no_room_left() {
        let text = b"\"\n\",\n".repeat(100);
        let mut ends = [0; 80];
        let (count, is_all) = CSV.split(&text, 0, &mut ends);
        assert!(!is_all && (17..=80).contains(&count), "{count}");
        assert!(ends[..count].iter().enumerate().all(|(index, end)| *end == 5 * (index + 1)));
    }
}
