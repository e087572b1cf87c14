//! One pass over a line of JSON that finds pointers and checks all the rest of it.
//!
//! It either finds what [`json`](super::json) finds by parsing with serde_json, or says that it cannot tell: for lines that
//! are not JSON, and for what is rare enough to be parsed (a name written with escapes, two members of the same name on the
//! way to a value, arrays and objects nested more than 64 deep). So it need only be right when it answers, and errors come from one
//! place.

use super::json::Node;
use everbloom_cells::key::records;

/// Puts the values that the pointers of `root` lead to into `found`; false if the line has to be parsed. `quotes` is room
/// that is used again from line to line.
pub(super) fn find<'r>(root: &Node, line: &'r [u8], found: &mut [Option<&'r str>], quotes: &mut Vec<u64>) -> bool {
    let seen = records::quotes(line, quotes);
    // What is all ASCII is known to be text.
    if !seen.is_some_and(|seen| seen.is_ascii) && std::str::from_utf8(line).is_err() {
        return false;
    }
    let is_plain = seen.is_some_and(|seen| seen.is_plain);
    let quotes = is_plain.then_some(Quotes { words: quotes, word: 0, end: 0 });
    let mut scan = Scan { bytes: line, at: 0, quotes };
    scan.value(root, found).is_some() && scan.is_at_end()
}

/// Arrays and objects within each other, of which one bit each is kept.
const MOST_OPEN: u32 = u64::BITS;

struct Scan<'r, 'q> {
    bytes: &'r [u8],
    at: usize,
    /// Where the quotes are that were not passed yet, if each of them begins or ends a text.
    quotes: Option<Quotes<'q>>,
}

/// Quotes one after another. Where the next one is does not depend on anything read before it, so that processors need not
/// wait for one text to end before they look at those behind it.
struct Quotes<'q> {
    words: &'q [u64],
    /// What is left of the word before those, …
    word: u64,
    /// … and where that ends.
    end: usize,
}

impl Quotes<'_> {
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            (self.word, self.words) = self.words.split_first().map(|(word, rest)| (*word, rest))?;
            self.end += 64;
        }
        let at = self.end - 64 + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(at)
    }

    /// Passes a text whose first quote is the next one, and says where its last one is.
    #[inline(always)]
    fn pass_text(&mut self) -> Option<usize> {
        let behind_first = self.word & self.word.wrapping_sub(1);
        // Most texts end among the 64 bytes that they begin in: one question instead of two.
        if behind_first == 0 {
            self.next()?;
            return self.next();
        }
        self.word = behind_first & (behind_first - 1);
        Some(self.end - 64 + behind_first.trailing_zeros() as usize)
    }
}

/// Whether what was passed is as it should be.
type Passed = Option<()>;

impl<'r> Scan<'r, '_> {
    /// Passes a value and notes those that are wanted within it.
    fn value(&mut self, node: &Node, found: &mut [Option<&'r str>]) -> Passed {
        let first = self.next()?;
        let start = self.at - 1;
        match first {
            b'{' if !node.members.is_empty() => self.object(node, found)?,
            b'[' if !node.members.is_empty() => self.array(node, found)?,
            first => self.pass(first)?,
        }
        for index in &node.wanted_as {
            found[*index] = Some(std::str::from_utf8(self.bytes.get(start..self.at)?).ok()?);
        }
        Some(())
    }

    /// The members of an object that has been opened.
    fn object(&mut self, node: &Node, found: &mut [Option<&'r str>]) -> Passed {
        if self.closes(b'}') {
            return Some(());
        }
        let mut seen = 0u64;
        loop {
            let name = self.name()?;
            // Most names differ in their length or their first letter, for which nothing need be called.
            let is_wanted = |wanted: &[u8]| wanted.first() == name.first() && wanted == name;
            match node.members.iter().position(|(wanted, _)| is_wanted(wanted.as_bytes())) {
                // The last of equal names counts, and what was found in those before does not.
                Some(at) if at >= 64 || seen >> at & 1 == 1 => return None,
                Some(at) => {
                    seen |= 1 << at;
                    self.value(&node.members[at].1, found)?;
                }
                None => self.any()?,
            }
            if !self.goes_on(b'}')? {
                return Some(());
            }
        }
    }

    /// The elements of an array that has been opened.
    fn array(&mut self, node: &Node, found: &mut [Option<&'r str>]) -> Passed {
        if self.closes(b']') {
            return Some(());
        }
        for index in 0.. {
            match node.members.iter().find(|(_, member)| member.index == Some(index)) {
                Some((_, member)) => self.value(member, found)?,
                None => self.any()?,
            }
            if !self.goes_on(b']')? {
                break;
            }
        }
        Some(())
    }

    /// A member's name, as it is written, and the colon behind it.
    #[inline(always)]
    fn name(&mut self) -> Option<&'r [u8]> {
        let start = self.at_quote()?;
        let is_plain = self.text()?;
        let name = self.bytes.get(start..self.at - 1)?;
        (is_plain && self.next()? == b':').then_some(name)
    }

    #[inline(always)]
    fn any(&mut self) -> Passed {
        match self.next()? {
            // What most values are: without a call.
            b'"' => self.text().map(drop),
            first => self.pass(first),
        }
    }

    /// Passes a value whose first byte has been passed.
    #[inline]
    fn pass(&mut self, first: u8) -> Passed {
        match first {
            b'"' => self.text().map(drop),
            b'{' | b'[' => self.nested(first),
            _ => self.plain(first),
        }
    }

    /// A number, `true`, `false` or `null`.
    #[inline(always)]
    fn plain(&mut self, first: u8) -> Passed {
        match first {
            b'0'..=b'9' | b'-' => self.number(first),
            b't' => self.letters(b"rue"),
            b'f' => self.letters(b"alse"),
            b'n' => self.letters(b"ull"),
            _ => None,
        }
    }

    /// The rest of an array or object, whatever is in it.
    fn nested(&mut self, first: u8) -> Passed {
        // The last bit says whether the innermost is an object, the one before it whether that around it is, …
        let (mut objects, mut open) = (0u64, 0);
        let mut first = first;
        loop {
            let is_container = match first {
                b'{' | b'[' => true,
                b'"' => self.text().map(|_| false)?,
                _ => self.plain(first).map(|()| false)?,
            };
            if is_container {
                if open == MOST_OPEN {
                    return None;
                }
                (objects, open) = (objects << 1 | u64::from(first == b'{'), open + 1);
                if !self.closes(if first == b'{' { b'}' } else { b']' }) {
                    first = self.entry(objects & 1 == 1)?;
                    continue;
                }
                (objects, open) = (objects >> 1, open - 1);
            }
            loop {
                if open == 0 {
                    return Some(());
                }
                let is_object = objects & 1 == 1;
                if self.goes_on(if is_object { b'}' } else { b']' })? {
                    first = self.entry(is_object)?;
                    break;
                }
                (objects, open) = (objects >> 1, open - 1);
            }
        }
    }

    /// The first byte of the next value, behind its name if it has one.
    #[inline(always)]
    fn entry(&mut self, has_name: bool) -> Option<u8> {
        if has_name {
            self.at_quote()?;
            self.text()?;
            (self.next()? == b':').then_some(())?;
        }
        self.next()
    }

    /// The rest of a text whose quote has been passed, and the quote that ends it; whether it has no escapes.
    #[inline(always)]
    fn text(&mut self) -> Option<bool> {
        match &mut self.quotes {
            Some(quotes) => {
                self.at = quotes.pass_text()? + 1;
                Some(true)
            }
            None => self.text_with_escapes(),
        }
    }

    /// Passes a text in lines in which a quote may be a letter.
    fn text_with_escapes(&mut self) -> Option<bool> {
        let mut is_plain = true;
        loop {
            let stop = self.stop()?;
            self.at += 1;
            match stop {
                b'"' => return Some(is_plain),
                b'\\' => {
                    is_plain = false;
                    self.escape()?;
                }
                // Control characters are written as escapes.
                _ => return None,
            }
        }
    }

    /// Goes to the next byte that means something within a text.
    #[inline(always)]
    fn stop(&mut self) -> Option<u8> {
        while let Some(bytes) = self.bytes.get(self.at..)?.first_chunk() {
            let stops = stops(u64::from_le_bytes(*bytes));
            if stops != 0 {
                self.at += stops.trailing_zeros() as usize / 8;
                return self.bytes.get(self.at).copied();
            }
            self.at += 8;
        }
        while let Some(byte) = self.bytes.get(self.at) {
            if *byte < b' ' || matches!(byte, b'"' | b'\\') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    #[cold]
    fn escape(&mut self) -> Passed {
        let escaped = *self.bytes.get(self.at)?;
        self.at += 1;
        match escaped {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn number(&mut self, first: u8) -> Passed {
        let first = match first {
            b'-' => {
                self.at += 1;
                *self.bytes.get(self.at - 1)?
            }
            first => first,
        };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.some_digits()?;
        }
        Some(())
    }

    #[inline(always)]
    fn digits(&mut self) {
        // How many come cannot be predicted, so eight are looked at together.
        while let Some(bytes) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let others = no_digits(u64::from_le_bytes(*bytes));
            if others != 0 {
                self.at += others.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn some_digits(&mut self) -> Passed {
        let start = self.at;
        self.digits();
        (self.at > start).then_some(())
    }

    #[inline(always)]
    fn letters(&mut self, rest: &[u8]) -> Passed {
        let is_so = self.bytes[self.at..].starts_with(rest);
        self.at += rest.len();
        is_so.then_some(())
    }

    /// Whether another entry follows; no, if the array or object is closed.
    #[inline(always)]
    fn goes_on(&mut self, close: u8) -> Option<bool> {
        match self.next()? {
            b',' => Some(true),
            other => (other == close).then_some(false),
        }
    }

    /// Whether nothing is within what was just opened.
    #[inline(always)]
    fn closes(&mut self, close: u8) -> bool {
        self.skip_spaces();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// Passes a quote, and says where the text behind it starts.
    #[inline(always)]
    fn at_quote(&mut self) -> Option<usize> {
        (self.next()? == b'"').then_some(self.at)
    }

    /// Passes the next byte that is no space.
    #[inline(always)]
    fn next(&mut self) -> Option<u8> {
        let mut byte = *self.bytes.get(self.at)?;
        if byte <= b' ' {
            self.skip_spaces();
            byte = *self.bytes.get(self.at)?;
        }
        self.at += 1;
        Some(byte)
    }

    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    fn skip_spaces(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_spaces();
        self.at == self.bytes.len()
    }
}

/// The high bit of the first byte that is a quote, a backslash or a control character, and of some behind it.
#[inline(always)]
fn stops(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Less than `most`; what is borrowed is borrowed from bytes behind.
    let below = |word: u64, most: u64| word.wrapping_sub(ONES * most) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (equal(b'"') | equal(b'\\') | below(word, 0x20)) & (ONES << 7)
}

/// Nothing but zeros below the first byte that is no digit, and something in that.
#[inline(always)]
fn no_digits(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The upper half of a digit is 3, and so it is with 6 more; what is carried is carried into bytes behind.
    let upper = |word: u64| word & (ONES * 0xf0);
    (upper(word) | upper(word.wrapping_add(ONES * 6)) >> 4) ^ (ONES * 0x33)
}

#[cfg(test)]
mod tests {
    use super::super::json::Pointers;
    use proptest::prelude::*;

    const POINTERS: [&str; 6] = ["/a", "/a/b", "/a/1", "/b/0/a", "/", "/é"];

    type Found<'l> = Option<Vec<Option<&'l str>>>;

    /// What both ways find: by the pass alone, if it can tell, and by parsing.
    fn both(line: &str) -> (Found<'_>, Found<'_>) {
        let mut pointers = Pointers::default();
        POINTERS.iter().for_each(|pointer| {
            pointers.add(pointer).expect("a pointer");
        });
        let (mut scanned, mut parsed) = (vec![None; POINTERS.len()], vec![None; POINTERS.len()]);
        let can_tell = super::find(pointers.root(), line.as_bytes(), &mut scanned, &mut Vec::new());
        let is_json = pointers.parse(line, &mut parsed).is_ok();
        (can_tell.then_some(scanned), is_json.then_some(parsed))
    }

    fn agree(line: &str) -> Result<bool, TestCaseError> {
        let (scanned, parsed) = both(line);
        if scanned.is_some() {
            prop_assert_eq!(&scanned, &parsed, "{}", line);
        }
        Ok(scanned.is_some())
    }

    fn spaces() -> impl Strategy<Value = String> {
        prop_oneof![6 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"]
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![5 => "[abcé01]?", 2 => "[a-z ,:{}\\[\\]]{5,40}", 1 => r#"(a|\\u0061|\\\\|\\"|\\ud800|\\n){1,3}"#]
    }

    /// Documents as they may be written, with names that recur and with some that are written with escapes.
    fn document() -> impl Strategy<Value = String> {
        let number = "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?";
        let text = prop_oneof![4 => "[ -!#-\\[\\]-~é€\u{10000}]{0,40}", 1 => r#"([a ]|\\[\\"/bfnrt]|\\u[0-9a-fA-F]{4}){0,12}"#];
        let leaf = prop_oneof![
            number,
            text.prop_map(|text| format!("\"{text}\"")),
            prop_oneof![Just("true"), Just("false"), Just("null")].prop_map(String::from),
        ];
        leaf.prop_recursive(5, 60, 6, |value| {
            let spaced = (spaces(), value, spaces())
                .prop_map(|(before, value, behind)| [before, value, behind].concat())
                .boxed();
            let member = (spaces(), name(), spaces(), spaced.clone())
                .prop_map(|(before, name, behind, value)| format!("{before}\"{name}\"{behind}:{value}"));
            let joined = |open: &'static str, close: &'static str| {
                move |(parts, space): (Vec<String>, String)| {
                    format!("{open}{}{close}", if parts.is_empty() { space } else { parts.join(",") })
                }
            };
            prop_oneof![
                (prop::collection::vec(spaced, 0..4), spaces()).prop_map(joined("[", "]")),
                (prop::collection::vec(member, 0..6), spaces()).prop_map(joined("{", "}")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// What is JSON leads to the same values both ways, and the pass leaves little of it to the parser.
        #[test]
        fn documents_are_read_alike(document in document(), before in spaces(), behind in spaces()) {
            let line = [before, document, behind].concat();
            let told = agree(&line)?;
            prop_assert!(both(&line).1.is_some() || line.contains('\\'), "{} is JSON", line);
            prop_assert!(told || line.contains(r"\") || line.matches("\"a\"").count() > 1
                || ["\"b\"", "\"\"", "\"é\"", "\"0\"", "\"1\""].iter().any(|name| line.matches(name).count() > 1), "{}", line);
        }

        /// What is nearly JSON is refused by the pass whenever the parser refuses it.
        #[test]
        fn damage_is_seen_alike(
            document in document(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), 0..4, "[\"\\\\{}\\[\\],:0-9eE.+a\\-\u{1} \u{80}tnul]"), 1..4),
        ) {
            let mut letters: Vec<char> = document.chars().collect();
            for (at, what, with) in damage {
                let at = at.index(letters.len() + 1);
                let with = with.chars().next().unwrap_or(' ');
                match what {
                    0 => letters.insert(at, with),
                    1 if at < letters.len() => letters[at] = with,
                    2 if at < letters.len() => drop(letters.remove(at)),
                    3 => letters.truncate(at),
                    _ => {}
                }
            }
            agree(&letters.into_iter().collect::<String>())?;
        }

        /// Scanning and parsing agree on anything made of what JSON is made of.
        #[test]
        fn noise_is_seen_alike(noise in r#"(\{|\}|\[|\]|"|"a"|"b"|:|,|1|0|-|\.5|e3|true|null| |\\|\\u00|é){0,14}"#) {
            agree(&noise)?;
        }
    }

    #[test]
    fn the_first_byte_that_is_no_digit_is_found_whatever_stands_behind_it() {
        for before in 0..8 {
            for byte in 0..=u8::MAX {
                for behind in [b'0', b'9', b'/', b':', 0, 0xff] {
                    let mut bytes = [behind; 8];
                    bytes[..before].fill(if byte % 2 == 0 { b'0' } else { b'9' });
                    bytes[before] = byte;
                    let first = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(8);
                    let others = super::no_digits(u64::from_le_bytes(bytes));
                    assert_eq!(others.trailing_zeros() as usize / 8, first, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn what_it_cannot_tell_is_left_to_the_parser() {
        for line in [
            r#"{"a":1,"a":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"a":1} x"#,
            r#"{"a":"\ud8"}"#,
            &format!("{{\"x\":{}{}}}", "[".repeat(65), "]".repeat(65)),
            "{\"a\":\"\u{1}\"}",
            "",
        ] {
            assert_eq!(both(line).0, None, "{line}");
        }
        for line in [
            r#"{"x":1,"x":2,"\ud800":{"a":1,"a":1},"a":3}"#.replace(r"\ud800", "y"),
            format!("{{\"x\":{}{},\"a\":\"{}\"}}", "[".repeat(64), "]".repeat(64), "é".repeat(1000)),
            r#" [ { "a" : -0.5E-7 , "b" : "\ud800\\" } , [ ] , { } ] "#.into(),
        ] {
            let (scanned, parsed) = both(&line);
            assert!(scanned.is_some() && scanned == parsed, "{line}");
        }
    }
}
