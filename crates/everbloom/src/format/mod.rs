//! The bytes of a filter: layout, checksums, bounded reading.
//!
//! ```text
//! offset  size
//!      0     8  magic 89 45 42 46 0d 0a 1a 0a ("\x89EBF\r\n\x1a\n": survives no text conversion)
//!      8     2  format version
//!     10     2  filter id, of its kind
//!     12     1  hash id: 1 = XXH3-128 with seed, 2 = SipHash-2-4-128 with a secret key,
//!              3 = XXH3-128 with seed and the key's length in its last byte,
//!              4 = MurmurHash64A twice, as RedisBloom hashes
//!     13     1  body coding: 0 = plain, 1 = compressed (`gaps.rs` has its layout); 2 more if an annex follows
//!     14     2  length of the note
//!     16     8  seed (XXH3), zero (others)
//!     24     8  check value of the secret key (SipHash), zero (others)
//!     32     8  predicted FPR, as a double
//!     40     8  predicted FNR, as a double; NaN where the stream is unknown
//!     48     8  promise: 0 = none, 2^64 − 1 = always, else the number of keys it holds for
//!     56     4  length of the spec
//!     60     4  length of the state
//!     64     8  length of the body
//!     72        spec (UTF-8), state, note (UTF-8), zeros
//!  h − 8     8  XXH3-64 of the header up to here; h is a multiple of 64
//!      h        body, 64-byte aligned; zeros
//!  e − 8     8  XXH3-64 of the body and the zeros; e is a multiple of 64, and the whole length without an annex
//!      e     8  length of the annex, if there is one
//!  e + 8        annex; zeros
//!  f − 8     8  XXH3-64 of the annex with its length and the zeros; f, then the whole length, is a multiple of 64
//! ```
//!
//! Everything is little-endian. The body of a filter made of filters is theirs, one whole document
//! after another. The spec is stored as text, so that what a file holds can be read off it, and so
//! that the parser which guards the command line guards the decoder, too.
//!
//! The note is for whoever wrote the file, and no part of the filter: the command line keeps there how keys were
//! found in records, the Python package the clock of a window of time. Most files have none; it is text without NUL.
//! The annex is the same for what is no text and may be long: the audit of a filter.

pub(crate) mod gaps;
pub(crate) mod golomb;

use crate::key::{Generator, Hashing, STATE_BYTES, SecretKey};
use crate::promise::{Error, Holds, Promise, Result};
use std::io::{Read, Write};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The first bytes of every filter.
pub const MAGIC: [u8; 8] = *b"\x89EBF\r\n\x1a\n";
/// The format version that this build writes, and the newest it reads.
pub const VERSION: u16 = 1;

const FIXED_BYTES: usize = 72;
pub(crate) const CHECKSUM_BYTES: usize = 8;
const ALIGNMENT: usize = 64;
/// No filter has a longer spec or state; what claims to is not read.
const MAX_SECTION_BYTES: u32 = 1 << 16;
/// The longest note.
pub const MAX_NOTE_BYTES: usize = u16::MAX as usize;

/// The bit of the body's coding that says that an annex follows.
const ANNEX: u8 = 2;

/// How the body is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain = 0,
    Compressed = 1,
}

/// A header, as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub(crate) kind_id: u16,
    pub(crate) hash_id: u8,
    pub(crate) coding: Coding,
    /// Whether an annex follows the body.
    pub(crate) has_annex: bool,
    pub(crate) seed: u64,
    pub(crate) key_check: u64,
    pub(crate) promise: Promise,
    pub(crate) spec: String,
    pub(crate) state: Vec<u8>,
    /// At most [`MAX_NOTE_BYTES`].
    pub(crate) note: String,
    pub(crate) body_bytes: u64,
}

impl Header {
    pub(crate) fn hash_fields(hashing: &Hashing) -> (u8, u64, u64) {
        (hashing.id(), hashing.seed().unwrap_or(0), hashing.check_value())
    }

    /// The hashing that the header describes; a secret key must be the right one.
    pub(crate) fn hashing(&self, key: Option<SecretKey>) -> Result<Hashing> {
        stored_hashing((self.hash_id, self.seed, self.key_check), key)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.kind_id.to_le_bytes());
        bytes.extend_from_slice(&[self.hash_id, self.coding as u8 | if self.has_annex { ANNEX } else { 0 }]);
        bytes.extend_from_slice(&(self.note.len() as u16).to_le_bytes());
        let promise = match self.promise.holds {
            Holds::Never => 0,
            Holds::Always => u64::MAX,
            Holds::UntilItems(items) => items,
        };
        let fnr = self.promise.predicted_fnr.unwrap_or(f64::NAN);
        for word in [self.seed, self.key_check, self.promise.fpr_bound.to_bits(), fnr.to_bits(), promise] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.spec.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.state.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.body_bytes.to_le_bytes());
        bytes.extend_from_slice(self.spec.as_bytes());
        bytes.extend_from_slice(&self.state);
        bytes.extend_from_slice(self.note.as_bytes());
        bytes.resize(header_bytes(self.spec.len(), self.state.len(), self.note.len()) - CHECKSUM_BYTES, 0);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Reads and checks a header; takes no more than `available` bytes, and says how many it took.
    pub(crate) fn read(source: &mut dyn Read, available: u64) -> Result<(Self, u64)> {
        let mut bytes = vec![0; FIXED_BYTES];
        read_start(source, &mut bytes, available)?;
        let version = u16::from_le_bytes(array(&bytes[8..]));
        if version > VERSION || version == 0 {
            return Err(Error::Version { found: version, supported: VERSION });
        }
        let word = |at: usize| u64::from_le_bytes(array(&bytes[at..]));
        let spec_bytes = u32::from_le_bytes(array(&bytes[56..]));
        let state_bytes = u32::from_le_bytes(array(&bytes[60..]));
        if spec_bytes > MAX_SECTION_BYTES || state_bytes > MAX_SECTION_BYTES {
            return Err(Error::corrupt("the filter's header is damaged"));
        }
        let (spec_bytes, state_bytes) = (spec_bytes as usize, state_bytes as usize);
        let note_bytes = usize::from(u16::from_le_bytes(array(&bytes[14..])));
        let total = header_bytes(spec_bytes, state_bytes, note_bytes);
        if total as u64 > available {
            return Err(Error::corrupt("the filter ends within its header"));
        }
        let (promise, forecast_bits, fnr) = (word(48), word(32), f64::from_bits(word(40)));
        let (seed, key_check, body_bytes) = (word(16), word(24), word(64));
        let (kind_id, hash_id, coding) = (u16::from_le_bytes(array(&bytes[10..])), bytes[12], bytes[13]);

        bytes.resize(total, 0);
        source.read_exact(&mut bytes[FIXED_BYTES..])?;
        let (content, checksum) = bytes.split_at(total - CHECKSUM_BYTES);
        if xxh3_64(content) != u64::from_le_bytes(array(checksum)) {
            return Err(Error::corrupt("the filter's header does not match its checksum"));
        }
        let has_annex = coding & ANNEX != 0;
        let coding = match coding & !ANNEX {
            0 => Coding::Plain,
            1 => Coding::Compressed,
            other => {
                return Err(Error::corrupt(format!("the filter's body has coding {other}, which does not exist")));
            }
        };
        let header_padding = &content[FIXED_BYTES + spec_bytes + state_bytes + note_bytes..];
        if header_padding.iter().any(|byte| *byte != 0) {
            return Err(Error::corrupt("the filter's header has bytes set that must be zero"));
        }
        let predicted_fpr = f64::from_bits(forecast_bits);
        if !(0.0..=1.0).contains(&predicted_fpr) || !(fnr.is_nan() || (0.0..=1.0).contains(&fnr)) {
            return Err(Error::corrupt("the filter's promise is not a rate"));
        }
        let spec = std::str::from_utf8(&bytes[FIXED_BYTES..FIXED_BYTES + spec_bytes])
            .map_err(|_| Error::corrupt("the filter's spec is not text"))?
            .to_string();
        let state = bytes[FIXED_BYTES + spec_bytes..][..state_bytes].to_vec();
        let note = std::str::from_utf8(&bytes[FIXED_BYTES + spec_bytes + state_bytes..][..note_bytes])
            .ok()
            .filter(|note| !note.contains('\0'))
            .ok_or_else(|| Error::corrupt("the filter's note is not text"))?
            .to_string();
        let promise = Promise {
            fpr_bound: predicted_fpr,
            predicted_fnr: (!fnr.is_nan()).then_some(fnr),
            holds: match promise {
                0 => Holds::Never,
                u64::MAX => Holds::Always,
                items => Holds::UntilItems(items),
            },
            // The kind knows, from its parameters.
            exact_until: None,
        };
        let header =
            Header { kind_id, hash_id, coding, has_annex, seed, key_check, promise, spec, state, note, body_bytes };
        Ok((header, total as u64))
    }
}

/// The hashing that stored fields describe (see [`Header::hash_fields`]); a secret key must be the right one.
pub fn stored_hashing((hash_id, seed, key_check): (u8, u64, u64), key: Option<SecretKey>) -> Result<Hashing> {
    match (hash_id, key) {
        (1, _) => Ok(Hashing::seeded(seed)),
        (3, _) => Ok(Hashing::measured(seed)),
        (4, _) if seed == 0 => Ok(Hashing::Murmur),
        (2, None) => Err(Error::SecretKey { needed: "a secret key", remedy: "decode it with that key" }),
        (2, Some(key)) if Hashing::keyed(key).check_value() == key_check => Ok(Hashing::keyed(key)),
        (2, Some(_)) => {
            Err(Error::SecretKey { needed: "another secret key", remedy: "decode it with the key it was built with" })
        }
        (id, _) => Err(unknown_hash(id)),
    }
}

pub(crate) fn unknown_hash(id: u8) -> Error {
    Error::corrupt(format!("the filter uses hash function {id}, which does not exist"))
}

/// Reads the fixed part, telling "too short" from "something else altogether".
fn read_start(source: &mut dyn Read, bytes: &mut [u8], available: u64) -> Result<()> {
    let foreign = || Error::Corrupt {
        problem: "this is not an everbloom filter".into(),
        remedy: "build one with `everbloom build`",
    };
    if available == 0 {
        return Err(Error::Corrupt {
            problem: "the filter is empty".into(),
            remedy: "build one with `everbloom build`",
        });
    }
    if available < bytes.len() as u64 {
        let mut start = vec![0; available.min(MAGIC.len() as u64) as usize];
        source.read_exact(&mut start)?;
        let known = MAGIC.starts_with(&start);
        return Err(if known { Error::corrupt("the filter ends within its header") } else { foreign() });
    }
    source.read_exact(bytes)?;
    if bytes[..MAGIC.len()] == MAGIC { Ok(()) } else { Err(foreign()) }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

fn header_bytes(spec: usize, state: usize, note: usize) -> usize {
    (FIXED_BYTES + spec + state + note + CHECKSUM_BYTES).next_multiple_of(ALIGNMENT)
}

/// Zeros between body and checksum.
pub(crate) fn body_padding(body_bytes: u64) -> u64 {
    let used = body_bytes.wrapping_add(CHECKSUM_BYTES as u64) % ALIGNMENT as u64;
    (ALIGNMENT as u64 - used) % ALIGNMENT as u64
}

/// The length of a whole document without a note.
pub(crate) fn document_bytes(spec: usize, state: usize, body_bytes: u64) -> u64 {
    header_bytes(spec, state, 0) as u64 + body_bytes + body_padding(body_bytes) + CHECKSUM_BYTES as u64
}

/// Writes a body and, at the end, its checksum.
pub(crate) struct BodyWriter<'w> {
    out: &'w mut dyn Write,
    checksum: Xxh3,
    written: u64,
}

impl<'w> BodyWriter<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        BodyWriter { out, checksum: Xxh3::new(), written: 0 }
    }

    pub(crate) fn finish(mut self) -> std::io::Result<()> {
        let zeros = [0; ALIGNMENT];
        let padding = body_padding(self.written) as usize;
        self.write_all(&zeros[..padding])?;
        let checksum = self.checksum.digest();
        self.out.write_all(&checksum.to_le_bytes())
    }
}

impl Write for BodyWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.checksum.update(&bytes[..count]);
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Reads a body of known length, keeping its checksum.
pub struct BodyReader<'r> {
    source: &'r mut dyn Read,
    checksum: Xxh3,
    total: u64,
    remaining: u64,
}

impl<'r> BodyReader<'r> {
    /// A body of so many bytes.
    pub fn new(source: &'r mut dyn Read, total: u64) -> Self {
        BodyReader { source, checksum: Xxh3::new(), total, remaining: total }
    }

    /// What is left of the body.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Refuses a body that is not as long as the spec needs, before anything is allocated for it.
    pub fn expect_bytes(&self, needed: u64) -> Result<()> {
        if self.total == needed {
            return Ok(());
        }
        Err(Error::corrupt(format!("the filter's body has {} bytes where its spec needs {needed}", self.total)))
    }

    /// Fills `bytes` from the body.
    pub fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.read_exact(bytes)?;
        Ok(())
    }

    /// So many numbers in ascending order, none of them zero, of which the body must be made.
    pub fn ascending(&mut self, count: u64) -> Result<impl Iterator<Item = Result<u64>>> {
        /// Numbers that are read together.
        const TOGETHER: u64 = 8192;
        self.expect_bytes(count.saturating_mul(8))?;
        let (mut last, mut chunk) = (0, vec![0; TOGETHER.min(count) as usize]);
        Ok((0..count).map(move |index| {
            let at = (index % TOGETHER) as usize;
            if at == 0 {
                let more = chunk.len().min((count - index) as usize);
                self.fill(bytemuck::cast_slice_mut(&mut chunk[..more]))?;
            }
            let bits = u64::from_le(chunk[at]);
            if bits <= last {
                return Err(Error::corrupt("the filter's hashes are not in ascending order"));
            }
            last = bits;
            Ok(bits)
        }))
    }

    /// Checks that the body was read to its end.
    pub fn end(&self) -> Result<()> {
        if self.remaining != 0 {
            return Err(Error::corrupt(format!("the filter's body has {} bytes too many", self.remaining)));
        }
        Ok(())
    }

    /// Checks that the body was read to its end and matches its checksum.
    pub fn finish(mut self) -> Result<()> {
        self.end()?;
        let mut padding = vec![0; body_padding(self.total) as usize];
        self.source.read_exact(&mut padding)?;
        self.checksum.update(&padding);
        let mut stored = [0; CHECKSUM_BYTES];
        self.source.read_exact(&mut stored)?;
        if self.checksum.digest() != u64::from_le_bytes(stored) {
            return Err(Error::corrupt("the filter's body does not match its checksum"));
        }
        Ok(())
    }
}

impl Read for BodyReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let most = self.remaining.min(bytes.len() as u64) as usize;
        let count = self.source.read(&mut bytes[..most])?;
        self.checksum.update(&bytes[..count]);
        self.remaining -= count as u64;
        Ok(count)
    }
}

/// Writes an annex.
pub(crate) fn write_annex(annex: &[u8], out: &mut dyn Write) -> std::io::Result<()> {
    let mut writer = BodyWriter::new(out);
    writer.write_all(&(annex.len() as u64).to_le_bytes())?;
    writer.write_all(annex)?;
    writer.finish()
}

/// Reads an annex of at most `available` bytes in all; says how many it took.
pub(crate) fn read_annex(source: &mut dyn Read, available: u64) -> Result<(Vec<u8>, u64)> {
    let short = || Error::corrupt("the filter ends before what was saved beside it does");
    let mut length = [0; 8];
    if available < length.len() as u64 {
        return Err(short());
    }
    source.read_exact(&mut length)?;
    let total = annex_bytes(u64::from_le_bytes(length)).filter(|total| *total <= available).ok_or_else(short)?;
    let annex_bytes = u64::from_le_bytes(length);
    let mut whole = (&length[..]).chain(source);
    let mut body = BodyReader::new(&mut whole, 8 + annex_bytes);
    body.fill(&mut [0; 8])?;
    let mut annex = vec![0; annex_bytes as usize];
    body.fill(&mut annex)?;
    body.finish()?;
    Ok((annex, total))
}

/// What an annex of this length takes, with its own length, zeros and checksum.
pub(crate) fn annex_bytes(length: u64) -> Option<u64> {
    let body = length.checked_add(8)?;
    body.checked_add(body_padding(body) + CHECKSUM_BYTES as u64)
}

/// Compares a body and its zeros with the checksum after them.
pub(crate) fn check_sealed(bytes: &[u8]) -> Result<()> {
    let sealed = bytes.split_last_chunk::<CHECKSUM_BYTES>();
    if sealed.is_some_and(|(body, checksum)| xxh3_64(body) == u64::from_le_bytes(*checksum)) {
        return Ok(());
    }
    Err(Error::corrupt("the filter's body does not match its checksum"))
}

/// Builds a filter's state: a few numbers and perhaps a generator.
#[derive(Default)]
pub struct StateWriter(Vec<u8>);

impl StateWriter {
    /// An empty state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a number.
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds bytes as they are.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a generator's state.
    pub fn generator(mut self, generator: &Generator) -> Self {
        self.0.extend_from_slice(&generator.state());
        self
    }

    /// The state's bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a filter's state back, in the same order.
pub struct StateReader<'s>(&'s [u8]);

impl<'s> StateReader<'s> {
    /// Reads these bytes.
    pub fn new(state: &'s [u8]) -> Self {
        StateReader(state)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| Error::corrupt("the filter's state is too short"))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// The next number.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// The next generator.
    pub fn generator(&mut self) -> Result<Generator> {
        Generator::resume(self.take::<STATE_BYTES>()?)
            .ok_or_else(|| Error::corrupt("the generator's state is all zeros, from which it cannot move"))
    }

    /// All that is left.
    pub fn rest(self) -> &'s [u8] {
        self.0
    }

    /// An error if anything is left.
    pub fn finish(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::corrupt("the filter's state is too long")) }
    }
}
