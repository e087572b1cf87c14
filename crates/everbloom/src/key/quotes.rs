//! Where the quotes of a line are, 64 bytes to a number, for whoever reads texts between quotes.

use super::quoted::chunked;
use super::records::CHUNK;
use crate::simd;

/// Finds the quotes of a line: bit `b` of number `n` is byte `64 n + b`. False if the line has a backslash or a control
/// character, so that a quote of it may be a letter of a text, or a text not allowed; and where there are no wide registers:
/// there, going through the texts takes less time.
///
/// ```
/// use everbloom::internal::key::records;
///
/// let mut quotes = Vec::new();
/// if records::quotes(br#"{"a":"b"}"#, &mut quotes) {
///     assert_eq!(quotes[0], 0b10101010);
/// }
/// assert!(!records::quotes(br#"{"a":"\""}"#, &mut quotes));
/// ```
pub fn quotes(line: &[u8], quotes: &mut Vec<u64>) -> bool {
    quotes.resize(line.len() / CHUNK + 1, 0);
    simd::run(Finding { line, quotes })
}

struct Finding<'l> {
    line: &'l [u8],
    quotes: &'l mut [u64],
}

impl simd::Kernel for Finding<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, ops: impl simd::SimdOps) -> bool {
        if !ops.has_wide_registers() {
            return false;
        }
        let (chunks, last) = chunked(self.line, b' ');
        let mut odd = [false; CHUNK];
        for (chunk, quotes) in chunks.iter().chain([&last]).zip(self.quotes) {
            *quotes = ops.equal_bytes(chunk, b'"');
            for (odd, byte) in odd.iter_mut().zip(chunk) {
                *odd |= (*byte < b' ') | (*byte == b'\\');
            }
        }
        !odd.iter().fold(false, |any, odd| any | odd)
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
                let mut expected = vec![0; length / 64 + 1];
                line.iter()
                    .enumerate()
                    .for_each(|(at, byte)| expected[at / 64] |= u64::from(*byte == b'"') << (at % 64));
                let (plain, wider) = run_on_each(|| Filling { line: &line, quotes: vec![1; expected.len()] });
                assert!(!plain.0);
                for (name, outcome) in wider {
                    assert_eq!(outcome, (is_plain, expected.clone()), "{name}, {length} bytes");
                }
                let mut found = vec![1; length / 64 + 3];
                if quotes(&line, &mut found) {
                    assert!(is_plain && found == expected, "{length} bytes");
                }
            }
        }
    }

    /// The same with the numbers that it writes.
    struct Filling<'l> {
        line: &'l [u8],
        quotes: Vec<u64>,
    }

    impl Kernel for Filling<'_> {
        type Output = (bool, Vec<u64>);

        #[inline(always)]
        fn run(mut self, ops: impl simd::SimdOps) -> Self::Output {
            let is_plain = Finding { line: self.line, quotes: &mut self.quotes }.run(ops);
            (is_plain, self.quotes)
        }
    }
}
