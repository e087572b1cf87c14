//! Any filter to bytes, and bytes to whichever filter they hold.
//!
//! For the wire, bytes can be compressed, and a filter can be planned for it: sparser and larger in memory, smaller
//! compressed, at the same rate (\[Mitzenmacher 2001\]). Whoever receives one says how far it may unpack
//! ([`Decoder::limit`]).
//!
//! ```
//! use everbloom::Goal;
//! use everbloom::Decoder;
//! use everbloom::codec::encode_compressed;
//!
//! let goal = Goal::new().expected_items(10_000).fpr(0.01).filter("bloom");
//! let mut filter = goal.clone().compressed().build()?;
//! filter.extend(0..10_000u64);
//! let sent = encode_compressed(&*filter);
//! let usual = goal.plan("bloom")?.memory_bits / 8;
//! assert!(sent.len() as u64 * 100 < usual * 88, "{} bytes instead of {usual}", sent.len());
//! assert!(Decoder::new().limit(1 << 20).decode(&sent).is_ok());
//! assert!(Decoder::new().limit(1 << 10).decode(&sent).is_err());
//! # Ok::<(), everbloom::Error>(())
//! ```

mod view;

pub use crate::format::{MAGIC, MAX_NOTE_BYTES, VERSION};
pub use view::View;

use crate::filter::{Body, Filter, Kind, Kinds, Restore, id_of, restore, sharded};
use crate::format::gaps::{Compressor, Expander};
use crate::format::{self, BodyReader, BodyWriter, Coding, Header, StateReader};
use crate::key::{Hashing, SecretKey};
use crate::promise::{Error, Goal, Promise, Result, Spec};
use std::any::Any;
use std::io::{Read, Write};

/// The length of a filter's bytes.
pub fn encoded_bytes(filter: &dyn Filter) -> u64 {
    let document =
        format::document_bytes(filter.spec().to_string().len(), filter.state().len(), body_bytes(&filter.body()));
    let annex = filter.annex().and_then(|annex| format::annex_bytes(annex.encoded_bytes()));
    document + annex.unwrap_or(0)
}

fn body_bytes(body: &Body<'_>) -> u64 {
    match body {
        Body::Bytes(slices) => slices.iter().map(|slice| slice.len() as u64).sum(),
        Body::Words(count, _) => count * 8,
        Body::Filters(filters) => filters.iter().map(|filter| encoded_bytes(*filter)).sum(),
    }
}

/// Writes a filter, without a copy of its cells.
pub fn encode_to(filter: &dyn Filter, out: &mut dyn Write) -> std::io::Result<()> {
    encode_noted_to(filter, "", out)
}

/// Writes a filter with a note that [`Decoder::summarise`] reads back: text without NUL, of at most [`MAX_NOTE_BYTES`].
pub fn encode_noted_to(filter: &dyn Filter, note: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let body = filter.body();
    out.write_all(&header(filter, Coding::Plain, note, body_bytes(&body))?.encode())?;
    let mut writer = BodyWriter::new(&mut *out);
    write_body(body, &mut writer)?;
    writer.finish()?;
    write_audit(filter, out)
}

/// Writes a filter with its body compressed, if that makes it smaller; holds the compressed body meanwhile.
pub fn encode_compressed_to(filter: &dyn Filter, note: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let mut compressor = Compressor::new();
    write_body(filter.body(), &mut compressor)?;
    let Some(body) = compressor.finish() else { return encode_noted_to(filter, note, out) };
    out.write_all(&header(filter, Coding::Compressed, note, body.len() as u64)?.encode())?;
    let mut writer = BodyWriter::new(&mut *out);
    writer.write_all(&body)?;
    writer.finish()?;
    write_audit(filter, out)
}

fn write_audit(filter: &dyn Filter, out: &mut dyn Write) -> std::io::Result<()> {
    filter.annex().map_or(Ok(()), |annex| format::write_annex(&annex.to_bytes(), out))
}

fn header(filter: &dyn Filter, coding: Coding, note: &str, body_bytes: u64) -> std::io::Result<Header> {
    if note.len() > MAX_NOTE_BYTES || note.contains('\0') {
        let problem = format!("the note must be text without NUL of at most {MAX_NOTE_BYTES} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, problem));
    }
    let spec = filter.spec();
    let (hash_id, seed, key_check) = Header::hash_fields(filter.hashing());
    Ok(Header {
        kind_id: id_of(filter.kind(), spec),
        hash_id,
        coding,
        has_annex: filter.annex().is_some(),
        seed,
        key_check,
        promise: filter.promise(),
        spec: spec.to_string(),
        state: filter.state(),
        note: note.to_string(),
        body_bytes,
    })
}

fn write_body(body: Body<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    match body {
        Body::Bytes(slices) => slices.into_iter().try_for_each(|slice| out.write_all(slice)),
        Body::Words(_, words) => write_words(words, out),
        Body::Filters(filters) => filters.into_iter().try_for_each(|filter| encode_to(filter, out)),
    }
}

/// Writes words in chunks: each by itself would be a call, and a checksum, too many.
fn write_words(words: impl Iterator<Item = u64>, out: &mut dyn Write) -> std::io::Result<()> {
    const CHUNK: usize = 1 << 16;
    let mut chunk = Vec::with_capacity(CHUNK);
    for word in words {
        chunk.extend_from_slice(&word.to_le_bytes());
        if chunk.len() >= CHUNK {
            out.write_all(&chunk)?;
            chunk.clear();
        }
    }
    out.write_all(&chunk)
}

/// A filter's bytes.
pub fn encode(filter: &dyn Filter) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded_bytes(filter) as usize);
    // A Vec takes every write.
    let _ = encode_to(filter, &mut bytes);
    bytes
}

/// A filter's bytes with the body compressed, or as [`encode`] has them if that is no gain.
pub fn encode_compressed(filter: &dyn Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A Vec takes every write.
    let _ = encode_compressed_to(filter, "", &mut bytes);
    bytes
}

/// Whether two filters have the same spec, hash alike and have the same cells: whatever one answers, the other does.
///
/// ```
/// use everbloom::Bloom;
/// use everbloom::codec::same_cells;
///
/// let (mut one, mut other) = (Bloom::with_rate(1000, 0.01)?, Bloom::with_rate(1000, 0.01)?);
/// one.extend(["a", "b"]);
/// other.extend(["b", "a", "b"]);
/// assert!(same_cells(&one, &other));
/// other.insert("c");
/// assert!(!same_cells(&one, &other));
/// # Ok::<(), everbloom::Error>(())
/// ```
pub fn same_cells(one: &dyn Filter, other: &dyn Filter) -> bool {
    one.spec() == other.spec() && one.hashing() == other.hashing() && same_body(one.body(), other.body())
}

fn same_body(one: Body<'_>, other: Body<'_>) -> bool {
    match (one, other) {
        (Body::Bytes(one), Body::Bytes(other)) => one == other,
        (Body::Words(count, one), Body::Words(others, other)) => count == others && one.eq(other),
        (Body::Filters(one), Body::Filters(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_cells(*one, other))
        }
        _ => false,
    }
}

/// Reads filters back. Says what may be spent on it and what some filters cannot be read without.
///
/// ```
/// use everbloom::{Bloom, Hashing, SecretKey};
/// use everbloom::Decoder;
/// use everbloom::codec::encode;
///
/// let key = SecretKey::new([7; 16]);
/// let mut filter = Bloom::with_rate(1000, 0.01)?;
/// filter.insert("key");
/// assert!(Decoder::new().decode(&encode(&filter))?.contains_hash(Hashing::default().hash(b"key")));
/// assert!(Decoder::new().secret_key(key).decode(b"no filter").is_err());
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Decoder<'d> {
    limit: Option<u64>,
    key: Option<SecretKey>,
    attachment: Option<&'d (dyn Any + Send + Sync)>,
    kinds: Kinds,
}

impl Kinds {
    /// A decoder for filters of these kinds.
    pub fn decoder(self) -> Decoder<'static> {
        Decoder::new().kinds(self)
    }
}

impl<'d> Decoder<'d> {
    /// A decoder that unpacks nothing beyond the length of its bytes, and has neither key nor scheme.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a compressed body unpack to so many bytes.
    pub fn limit(self, bytes: u64) -> Self {
        Decoder { limit: Some(bytes), ..self }
    }

    /// Gives the secret key that the filter was built with, if there is one.
    pub fn secret_key(self, key: impl Into<Option<SecretKey>>) -> Self {
        Decoder { key: key.into(), ..self }
    }

    /// Gives what a filter was built with and cannot be read without, such as its scheme; filters that need nothing are read,
    /// too.
    pub fn attach(self, attachment: &'d (dyn Any + Send + Sync)) -> Self {
        Decoder { attachment: Some(attachment), ..self }
    }

    /// Reads filters of these kinds, and no others.
    pub fn kinds(self, kinds: Kinds) -> Self {
        Decoder { kinds, ..self }
    }

    /// The filter in these bytes. Allocates no more than their length or the limit, whichever is larger, and half a
    /// megabyte to unpack with.
    pub fn decode(self, bytes: &[u8]) -> Result<Box<dyn Filter>> {
        self.read(&mut &*bytes, bytes.len() as u64)
    }

    /// Reads a filter of exactly `length` bytes, with its audit if it has one; allocates no more than for [`Decoder::decode`].
    pub fn read(self, source: &mut dyn Read, length: u64) -> Result<Box<dyn Filter>> {
        let limit = Some(self.limit.unwrap_or(length));
        let (mut filter, mut used, has_annex) = self.read_document(source, length, limit, 0)?;
        if has_annex {
            let (bytes, taken) = format::read_annex(source, length - used)?;
            filter = self.kinds.annexed(filter, &bytes)?;
            used += taken;
        }
        if used != length {
            return Err(Error::corrupt(format!("{} bytes follow the end of the filter", length - used)));
        }
        Ok(filter)
    }

    /// Reads one document of at most `available` bytes; says how many it took, and whether an annex follows. A compressed body may unpack
    /// to `limit` bytes; where there is none, as within a filter, it may not be compressed.
    fn read_document(
        self,
        source: &mut dyn Read,
        available: u64,
        limit: Option<u64>,
        depth: u32,
    ) -> Result<(Box<dyn Filter>, u64, bool)> {
        if depth > MAX_DEPTH {
            return Err(Error::corrupt("filters are nested too deeply"));
        }
        let (header, header_bytes) = Header::read(source, available)?;
        let total = header_bytes
            .checked_add(header.body_bytes)
            .and_then(|bytes| bytes.checked_add(format::body_padding(header.body_bytes) + 8))
            .filter(|total| *total <= available)
            .ok_or_else(|| Error::corrupt("the filter ends before its header says it should"))?;
        let mut body = BodyReader::new(source, header.body_bytes);
        let filter = match (header.coding, limit) {
            (Coding::Plain, _) => self.restore(&header, &mut body, depth)?,
            (Coding::Compressed, Some(limit)) => {
                let mut expander = Expander::new(&mut body, header.body_bytes, limit)?;
                let plain_bytes = expander.plain_bytes();
                let mut plain = BodyReader::new(&mut expander, plain_bytes);
                let filter = self.restore(&header, &mut plain, depth)?;
                plain.end()?;
                filter
            }
            (Coding::Compressed, None) => return Err(Error::corrupt("a part of the filter is compressed by itself")),
        };
        body.finish()?;
        Ok((filter, total, header.has_annex))
    }

    /// Reads only the header of a filter of `length` bytes.
    pub fn summarise(self, source: &mut dyn Read, length: u64) -> Result<Summary> {
        let (header, _) = Header::read(source, length)?;
        let (hash, seed) = match header.hash_id {
            1 => ("xxh3", Some(header.seed)),
            2 => ("siphash", None),
            3 => ("xxh3_measured", Some(header.seed)),
            4 => ("murmur64a", None),
            id => return Err(format::unknown_hash(id)),
        };
        let compressed = header.coding == Coding::Compressed;
        let spec = Spec::parse(&header.spec)?;
        let kind = self.kinds.of(&spec)?;
        let (promise, hashing) = (promised(kind, &header, &spec)?, header.hashing(None).ok());
        Ok(Summary { spec, promise, hash, seed, hashing, compressed, note: header.note })
    }

    fn restore(self, header: &Header, body: &mut BodyReader<'_>, depth: u32) -> Result<Box<dyn Filter>> {
        let spec = Spec::parse(&header.spec)?;
        // Before the secret key is asked for: who looks for it in vain should not have been sent.
        let kind = self.kinds.checked(&spec, header.kind_id)?;
        let (hashing, state) = (header.hashing(self.key)?, StateReader::new(&header.state));
        let read_part = |body: &mut BodyReader<'_>| {
            let available = body.remaining();
            match self.read_document(body, available, None, depth + 1)? {
                (part, _, false) => Ok(part),
                _ => Err(Error::corrupt("a part of the filter has something saved beside it")),
            }
        };
        let (promise, attachment) = (promised(kind, header, &spec)?, self.attachment);
        restore(Restore { kind, spec: &spec, hashing, promise, state, body, attachment, read_part: &read_part })
    }
}

/// Filters may hold filters, but not for ever.
const MAX_DEPTH: u32 = 2;

/// What a filter's header says, without its cells.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The full spec.
    pub spec: Spec,
    /// What was promised of it.
    pub promise: Promise,
    /// The name of the hash function.
    pub hash: &'static str,
    /// The seed, where the hash has one.
    pub seed: Option<u64>,
    /// How keys are hashed, where that takes no secret.
    pub hashing: Option<Hashing>,
    /// Whether the body is compressed.
    pub compressed: bool,
    /// What its writer noted beside the filter.
    pub note: String,
}

/// What is promised of a stored filter: what was stored, and what the kind knows from its parameters.
fn promised(kind: &Kind, header: &Header, spec: &Spec) -> Result<Promise> {
    let exact_until = match kind.can.exact_first {
        true => sharded::plan_any(kind, spec, &Goal::new())?.promise.exact_until,
        false => None,
    };
    Ok(Promise { exact_until, ..header.promise })
}
