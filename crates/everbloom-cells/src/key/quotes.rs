//! Where the quotes of a line are, 64 bytes to a number, for whoever reads texts between quotes.

use super::quoted::chunked;
use super::records::CHUNK;
use crate::simd;

/// What a line is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    /// Whether it has neither a backslash nor a control character, with which a quote may be a letter of a text, or a text
    /// not allowed.
    pub is_plain: bool,
    /// Whether all of its bytes are ASCII.
    pub is_ascii: bool,
}

/// Finds the quotes of a line: bit `b` of number `n` is byte `64 n + b`. Nothing where there are no wide registers: there,
/// going through the texts takes less time.
///
/// ```
/// use everbloom_cells::key::records;
///
/// let mut quotes = Vec::new();
/// if let Some(line) = records::quotes(br#"{"a":"b"}"#, &mut quotes) {
///     assert!(line.is_plain && line.is_ascii);
///     assert_eq!(quotes[0], 0b10101010);
/// }
/// assert!(records::quotes(br#"{"a":"\""}"#, &mut quotes).is_none_or(|line| !line.is_plain));
/// ```
#[inline]
pub fn quotes(line: &[u8], quotes: &mut Vec<u64>) -> Option<Quoted> {
    quotes.resize(line.len() / CHUNK + 1, 0);
    simd::run(Finding { line, quotes })
}

struct Finding<'l> {
    line: &'l [u8],
    quotes: &'l mut [u64],
}

impl simd::Kernel for Finding<'_> {
    type Output = Option<Quoted>;

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) -> Option<Quoted> {
        if !ops.has_wide_registers() {
            return None;
        }
        let (chunks, last) = chunked(self.line, b' ');
        let (mut backslashes, mut least, mut all) = (0, [b' '; CHUNK], [0; CHUNK]);
        for (chunk, quotes) in chunks.iter().chain([&last]).zip(self.quotes) {
            *quotes = ops.equal_bytes(chunk, b'"');
            backslashes |= ops.equal_bytes(chunk, b'\\');
            for ((least, all), byte) in least.iter_mut().zip(&mut all).zip(chunk) {
                *least = (*least).min(*byte);
                *all |= byte;
            }
        }
        let has_controls = least.iter().fold(b' ', |least, byte| least.min(*byte)) < b' ';
        let is_ascii = all.iter().fold(0, |all, byte| all | byte) < 0x80;
        Some(Quoted { is_plain: backslashes == 0 && !has_controls, is_ascii })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Generator;
    use crate::simd::{Kernel, run_on_each};

    #[test]
    fn they_are_where_they_are_one_byte_at_a_time() {
        let mut generator = Generator::seeded(11);
        for length in (0..200).chain([1000, 4096]) {
            for others in [&b"a {:"[..], b"a\\\x80\xff", b"a\x1f\n", b"ab\x20\x21"] {
                let byte = |_| match generator.below(12) {
                    0..3 => b'"',
                    3 => others[generator.below(others.len() as u64) as usize],
                    _ => b'x',
                };
                let line: Vec<u8> = (0..length).map(byte).collect();
                let is_plain = !line.iter().any(|byte| *byte < b' ' || *byte == b'\\');
                let is_as = Some(Quoted { is_plain, is_ascii: line.is_ascii() });
                let mut expected = vec![0; length / 64 + 1];
                line.iter()
                    .enumerate()
                    .for_each(|(at, byte)| expected[at / 64] |= u64::from(*byte == b'"') << (at % 64));
                let (plain, wider) = run_on_each(|| Filling { line: &line, quotes: vec![1; expected.len()] });
                assert_eq!(plain.0, None);
                for (name, outcome) in wider {
                    assert_eq!(outcome, (is_as, expected.clone()), "{name}, {length} bytes");
                }
                let mut found = vec![1; length / 64 + 3];
                if let Some(seen) = quotes(&line, &mut found) {
                    assert!(Some(seen) == is_as && found == expected, "{length} bytes");
                }
            }
        }
    }

    /// Looks for quotes with the numbers that it writes.
    struct Filling<'l> {
        line: &'l [u8],
        quotes: Vec<u64>,
    }

    impl Kernel for Filling<'_> {
        type Output = (Option<Quoted>, Vec<u64>);

        #[inline(always)]
        fn run(mut self, ops: impl simd::SimdOps) -> Self::Output {
            let seen = Finding { line: self.line, quotes: &mut self.quotes }.run(ops);
            (seen, self.quotes)
        }
    }
}
