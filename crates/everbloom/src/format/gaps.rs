//! Compressed bodies: the gaps between set bits, in Golomb codes, chunk by chunk.
//!
//! ```text
//! offset  size
//!      0     8  length of the plain body
//!      8        chunks of 256 KiB of it, the last one shorter:
//!               4  divisor of the codes; 0 = the chunk's bytes follow as they are
//!               4  how many bits are set
//!               4  length of the codes
//!                  codes, lowest bit first: ⌊gap/divisor⌋ ones and a zero, then the remainder
//! ```
//!
//! A filter that is planned for it is so sparse that the gaps take a tenth of its bits and less; half
//! full, it has nothing to gain, and its chunks stay as they are. Any filter can be compressed: what
//! its cells have in zeros is what it saves. A chunk of zeros takes 12 bytes, so a body expands to at
//! most 21,845 times its length, and the reader says how far it may.

use crate::format::golomb::{code_bits, divisor, remainder_code};
use crate::promise::{Error, Result};
use std::io::{self, Read, Write};

/// Plain bytes of a chunk.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNK_HEADER_BYTES: u64 = 12;
const LENGTH_BYTES: u64 = 8;
/// Codes that are not shorter than this share of the bytes are not worth the time they take.
const WORTHWHILE: (usize, usize) = (7, 8);
/// The bits of a word that are always read whole, wherever in a byte it starts.
const SURE_BITS: u32 = 57;
/// Zeros after the codes, so that a word can be read at their last bit.
const SLACK: usize = 8;

/// Standard deviations that a planned body may come out longer than expected: one of 3.5 million is longer still.
const MARGIN: f64 = 5.0;

/// The length that a compressed body stays within, if its bits are set at random: this share of them, which
/// varies with this variance.
///
/// Two things make it vary. More or fewer bits are set than expected, and each costs `code_bits`' slope. Once
/// their number is given, so is the sum of the gaps: what still varies is how each splits into quotient and
/// remainder. The code of a gap, less gap/divisor, stays in a range of one bit, so it has a standard deviation of
/// half a bit at most.
pub(crate) fn likely_bytes(plain_bytes: u64, fill: f64, variance: f64) -> u64 {
    let plain_bits = plain_bytes as f64 * 8.0;
    let step = 1e-3 * fill.min(1.0 - fill);
    let slope = (code_bits(fill + step) - code_bits(fill - step)) / (2.0 * step).max(f64::MIN_POSITIVE);
    let within = |bits: f64, variance: f64| {
        bits * code_bits(fill) + MARGIN * (0.25 * fill * bits + variance * slope * slope).sqrt()
    };
    // The bits of a single chunk are as if each were drawn independently.
    let chunk_bits = plain_bits.min(CHUNK_BYTES as f64 * 8.0);
    let dense = within(chunk_bits, chunk_bits * fill) * WORTHWHILE.1 as f64 >= chunk_bits * WORTHWHILE.0 as f64;
    if dense {
        return plain_bytes;
    }
    let chunks = plain_bytes.div_ceil(CHUNK_BYTES as u64);
    let codes = within(plain_bits, variance * plain_bits * plain_bits) / 8.0;
    // Every chunk's codes end with a whole byte.
    (LENGTH_BYTES + chunks * (CHUNK_HEADER_BYTES + 1) + codes.ceil() as u64).min(plain_bytes)
}

/// Takes a plain body and keeps the compressed one.
pub(crate) struct Compressor {
    chunk: Vec<u8>,
    body: Vec<u8>,
    plain_bytes: u64,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        Compressor { chunk: Vec::with_capacity(CHUNK_BYTES), body: vec![0; LENGTH_BYTES as usize], plain_bytes: 0 }
    }

    /// The compressed body, if it is shorter than the plain one.
    pub(crate) fn finish(mut self) -> Option<Vec<u8>> {
        self.end_chunk();
        self.body[..LENGTH_BYTES as usize].copy_from_slice(&self.plain_bytes.to_le_bytes());
        ((self.body.len() as u64) < self.plain_bytes).then_some(self.body)
    }

    fn end_chunk(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        self.plain_bytes += self.chunk.len() as u64;
        let ones = self.chunk.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let header = self.body.len();
        self.body.resize(header + CHUNK_HEADER_BYTES as usize, 0);
        let start = self.body.len();
        let mut divisor = if ones == 0 { 2 } else { divisor(f64::from(ones) / (self.chunk.len() as f64 * 8.0)) };
        if divisor >= 2 {
            encode_gaps(&self.chunk, divisor, &mut self.body);
        }
        if divisor < 2 || (self.body.len() - start) * WORTHWHILE.1 >= self.chunk.len() * WORTHWHILE.0 {
            divisor = 0;
            self.body.truncate(start);
            self.body.extend_from_slice(&self.chunk);
        }
        let length = (self.body.len() - start) as u32;
        let fields = [divisor, if divisor == 0 { 0 } else { ones }, length];
        for (place, field) in self.body[header..start].chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        self.chunk.clear();
    }
}

impl Write for Compressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..count]);
        if self.chunk.len() == CHUNK_BYTES {
            self.end_chunk();
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Appends the codes of the gaps before each set bit.
fn encode_gaps(chunk: &[u8], divisor: u32, out: &mut Vec<u8>) {
    let (bits, short) = remainder_code(divisor);
    let mut writer = BitWriter { out, word: 0, filled: 0 };
    let mut next = 0;
    for (index, bytes) in chunk.chunks(8).enumerate() {
        let mut word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        while word != 0 {
            let position = index as u32 * 64 + word.trailing_zeros();
            word &= word - 1;
            let gap = position - next;
            next = position + 1;
            writer.unary(gap / divisor);
            match gap % divisor {
                remainder if remainder < short => writer.push(remainder.into(), bits - 1),
                remainder => {
                    let code = remainder + short;
                    writer.push(u64::from(code >> 1), bits - 1);
                    writer.push(u64::from(code & 1), 1);
                }
            }
        }
    }
    writer.finish();
}

struct BitWriter<'o> {
    out: &'o mut Vec<u8>,
    word: u64,
    filled: u32,
}

impl BitWriter<'_> {
    /// Appends the lowest `count` bits, 32 at most; those above them are zero.
    fn push(&mut self, bits: u64, count: u32) {
        self.word |= bits << self.filled;
        self.filled += count;
        if self.filled >= 32 {
            self.out.extend_from_slice(&(self.word as u32).to_le_bytes());
            self.word >>= 32;
            self.filled -= 32;
        }
    }

    fn unary(&mut self, mut count: u32) {
        while count >= 31 {
            self.push((1 << 31) - 1, 31);
            count -= 31;
        }
        self.push((1 << count) - 1, count + 1);
    }

    fn finish(self) {
        let bytes = self.filled.div_ceil(8) as usize;
        self.out.extend_from_slice(&self.word.to_le_bytes()[..bytes]);
    }
}

/// The plain body of a compressed one, as it is read.
pub(crate) struct Expander<'r> {
    source: &'r mut dyn Read,
    /// Plain bytes that are not decoded yet.
    remaining: u64,
    chunk: Vec<u8>,
    given: usize,
    codes: Vec<u8>,
}

impl<'r> Expander<'r> {
    /// Reads the length of the plain body, of which no more than `limit` bytes are accepted.
    pub(crate) fn new(source: &'r mut dyn Read, body_bytes: u64, limit: u64) -> Result<Self> {
        let mut length = [0; LENGTH_BYTES as usize];
        source.read_exact(&mut length)?;
        let plain_bytes = u64::from_le_bytes(length);
        let chunks = body_bytes.saturating_sub(LENGTH_BYTES) / CHUNK_HEADER_BYTES;
        if plain_bytes.div_ceil(CHUNK_BYTES as u64) > chunks {
            return Err(Error::corrupt(format!(
                "the filter's compressed body has {body_bytes} bytes, too few for the {plain_bytes} it claims to hold"
            )));
        }
        if plain_bytes > limit {
            return Err(Error::parameter(
                "unpacked size",
                format!("{plain_bytes} bytes"),
                format!("at most {limit} bytes"),
                "raise the limit if you trust where the filter comes from",
            ));
        }
        Ok(Expander { source, remaining: plain_bytes, chunk: Vec::new(), given: 0, codes: Vec::new() })
    }

    /// Plain bytes still to come.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.remaining
    }

    fn next_chunk(&mut self) -> Result<()> {
        let plain = self.remaining.min(CHUNK_BYTES as u64) as usize;
        let mut header = [0; CHUNK_HEADER_BYTES as usize];
        self.source.read_exact(&mut header)?;
        let mut fields = header.chunks_exact(4).map(|field| u32::from_le_bytes(super::array(field)));
        let mut field = || fields.next().unwrap_or_default();
        let (divisor, ones, code_bytes) = (field(), field(), field() as usize);
        self.chunk.clear();
        self.chunk.resize(plain, 0);
        self.given = 0;
        match divisor {
            0 if code_bytes == plain && ones == 0 => self.source.read_exact(&mut self.chunk)?,
            2.. if code_bytes < plain && u64::from(ones) <= plain as u64 * 8 => {
                self.codes.clear();
                self.codes.resize(code_bytes + SLACK, 0);
                self.source.read_exact(&mut self.codes[..code_bytes])?;
                decode_gaps(&self.codes, divisor, ones, &mut self.chunk).ok_or_else(broken)?;
            }
            _ => return Err(broken()),
        }
        self.remaining -= plain as u64;
        Ok(())
    }
}

fn broken() -> Error {
    Error::corrupt("the filter's compressed body is damaged")
}

/// Sets the bits that the codes, with [`SLACK`] after them, stand for; `None` if they are
/// damaged.
fn decode_gaps(codes: &[u8], divisor: u32, ones: u32, chunk: &mut [u8]) -> Option<()> {
    let (bits, short) = remainder_code(divisor);
    let mask = (1u64 << (bits - 1)) - 1;
    let (mut at, mut next) = (0usize, 0u64);
    for _ in 0..ones {
        let mut word = word_at(codes, at)?;
        let mut quotient = u64::from(word.trailing_ones());
        at += quotient as usize + 1;
        if quotient as u32 + 1 + bits > SURE_BITS {
            (quotient, at) = long_unary(codes, at - quotient as usize - 1)?;
            word = word_at(codes, at)?;
        } else {
            word >>= quotient + 1;
        }
        // Its first bits tell whether it has one more. Which it is cannot be predicted, so nothing branches.
        let first = word & mask;
        let long = u64::from(first >= u64::from(short));
        let remainder = (first << long | word >> (bits - 1) & long) - (u64::from(short) & long.wrapping_neg());
        at += bits as usize - 1 + long as usize;
        let position = next + quotient * u64::from(divisor) + remainder;
        *chunk.get_mut((position >> 3) as usize)? |= 1 << (position & 7);
        next = position + 1;
    }
    (at.div_ceil(8) == codes.len() - SLACK).then_some(())
}

/// The 57 bits at `at`, and perhaps some more.
#[inline(always)]
fn word_at(codes: &[u8], at: usize) -> Option<u64> {
    let bytes = codes.get(at >> 3..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes) >> (at & 7))
}

/// A run of ones of any length from `at` on: how many, and where the bit after its zero is.
#[cold]
fn long_unary(codes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut count = 0;
    loop {
        let ones = word_at(codes, at)?.trailing_ones().min(SURE_BITS);
        (count, at) = (count + u64::from(ones), at + ones as usize);
        if ones < SURE_BITS {
            return Some((count, at + 1));
        }
    }
}

impl Read for Expander<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.given == self.chunk.len() && self.remaining > 0 {
            self.next_chunk().map_err(|error| match error {
                // A source that fails says so itself.
                Error::Io { source } => io::Error::new(source.kind(), source),
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
        }
        let count = bytes.len().min(self.chunk.len() - self.given);
        bytes[..count].copy_from_slice(&self.chunk[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Generator;
    use proptest::prelude::*;

    fn compress(plain: &[u8]) -> Option<Vec<u8>> {
        let mut compressor = Compressor::new();
        compressor.write_all(plain).expect("a Vec takes all");
        compressor.finish()
    }

    fn expand(body: &[u8]) -> Result<Vec<u8>> {
        let mut source = body;
        let mut expander = Expander::new(&mut source, body.len() as u64, 1 << 24)?;
        let mut plain = Vec::new();
        expander.read_to_end(&mut plain)?;
        Ok(plain)
    }

    fn random(bytes: usize, fill: f64, seed: u64) -> Vec<u8> {
        let mut generator = Generator::seeded(seed);
        let below = (fill * 2f64.powi(32)) as u64;
        let mut bit = || u8::from(generator.below(1 << 32) < below);
        (0..bytes).map(|_| (0..8).fold(0, |byte, _| byte << 1 | bit())).collect()
    }

    #[test]
    fn what_was_compressed_expands_to_itself() {
        for (seed, fill) in [0.0, 1e-5, 0.001, 0.01, 0.03, 0.1, 0.2, 0.25].into_iter().enumerate() {
            for bytes in [64, 1000, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7] {
                let plain = random(bytes, fill, seed as u64);
                let Some(body) = compress(&plain) else {
                    assert!(bytes < 1000, "{bytes} bytes with {fill} set are not compressed");
                    continue;
                };
                assert_eq!(expand(&body).expect("its own bytes"), plain, "{bytes} bytes with {fill} set");
            }
        }
    }

    #[test]
    fn codes_are_as_long_as_predicted() {
        for (seed, fill) in [0.001, 0.01, 0.0216, 0.1, 0.2].into_iter().enumerate() {
            let plain = random(2 << 20, fill, seed as u64);
            let body = compress(&plain).expect("sparse bits");
            let share = plain.iter().map(|byte| f64::from(byte.count_ones())).sum::<f64>() / (plain.len() * 8) as f64;
            let predicted = crate::format::golomb::code_bits(share) * plain.len() as f64;
            let measured = body.len() as f64;
            // The gaps' lengths vary by about two bits each; a chunk has a header and a last byte.
            let ones = share * plain.len() as f64 * 8.0;
            let slack = 4.0 * 2.0 * ones.sqrt() / 8.0 + 8.0 + 8.0 * 13.0;
            assert!((measured - predicted).abs() <= slack, "{measured} bytes, {predicted} predicted, {slack} allowed");
        }
    }

    #[test]
    fn lengths_vary_no_more_than_a_plan_allows_for() {
        let (bytes, seeds) = (4096, 300);
        for fill in [0.002, 0.01, 0.05, 0.2] {
            let variance = fill * (1.0 - fill) / (bytes as f64 * 8.0);
            let lengths: Vec<f64> =
                (0..seeds).map(|seed| compress(&random(bytes, fill, seed)).expect("sparse").len() as f64).collect();
            let mean = lengths.iter().sum::<f64>() / seeds as f64;
            let squares = lengths.iter().map(|length| (length - mean) * (length - mean)).sum::<f64>();
            let sigma = (squares / (seeds - 1) as f64).sqrt();
            // A standard deviation of so many samples is itself known to 1/√(2n).
            let slack = 1.0 + 4.0 / (2.0 * seeds as f64).sqrt();
            let fixed = (LENGTH_BYTES + CHUNK_HEADER_BYTES + 1) as f64;
            let expected = fixed + crate::format::golomb::code_bits(fill) * bytes as f64;
            let allowed = (likely_bytes(bytes as u64, fill, variance) as f64 - expected) / MARGIN;
            assert!(sigma <= allowed * slack && allowed <= sigma * 1.5 + 1.0, "{sigma} of {allowed} at {fill}");
            assert!((expected - 4.0..expected + 1.0).contains(&mean), "{mean} instead of {expected} at {fill}");
        }
    }

    #[test]
    fn dense_bytes_are_left_alone() {
        assert_eq!(compress(&random(1 << 20, 0.5, 1)), None);
        assert_eq!(compress(&vec![0xff; 1 << 20]), None);
        assert_eq!(compress(&[]), None);
        // A dense chunk between sparse ones stays as it is.
        let plain = [random(CHUNK_BYTES, 0.01, 1), random(CHUNK_BYTES, 0.5, 2), random(999, 0.01, 3)].concat();
        let body = compress(&plain).expect("two thirds are sparse");
        assert!(body.len() < CHUNK_BYTES + CHUNK_BYTES / 8);
        assert_eq!(expand(&body).expect("its own bytes"), plain);
    }

    #[test]
    fn uneven_chunks_with_gaps_of_any_length_come_back() {
        let mut plain = vec![0; CHUNK_BYTES];
        plain[..4000].fill(0x21);
        for last in [CHUNK_BYTES - 1, 5000, 200_000] {
            plain[last] = 0x80;
        }
        let body = compress(&plain).expect("mostly zeros");
        assert_eq!(expand(&body).expect("its own bytes"), plain);
    }

    #[test]
    fn claims_beyond_the_limit_or_the_bytes_are_refused() {
        let body = compress(&vec![0; 1 << 20]).expect("zeros");
        let refused = |limit| Expander::new(&mut &body[..], body.len() as u64, limit).err().map(|e| e.to_string());
        assert!(refused(1 << 20).is_none());
        let text = refused((1 << 20) - 1).expect("too large");
        assert!(text.contains("1048576 bytes") && text.contains("limit"), "{text}");
        let mut endless = body.clone();
        endless[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(expand(&endless).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_body(mut bytes in prop::collection::vec(any::<u8>(), 0..200), plain in 0u64..4000) {
            if bytes.len() >= 8 {
                bytes[..8].copy_from_slice(&plain.to_le_bytes());
            }
            if let Ok(expanded) = expand(&bytes) {
                prop_assert_eq!(expanded.len() as u64, plain);
            }
        }

        #[test]
        fn flipped_codes_are_an_error_or_another_body(at in 20usize..300, flip in 1u8..) {
            let plain = random(4000, 0.02, 9);
            let mut body = compress(&plain).expect("sparse");
            let at = at.min(body.len() - 1);
            body[at] ^= flip;
            if let Ok(expanded) = expand(&body) {
                prop_assert_eq!(expanded.len(), plain.len());
            }
        }
    }
}
