//! Any filter to bytes, and bytes to whichever filter they hold.
//!
//! ```
//! use everbloom::{FilterExt, codec};
//! use everbloom::filters::Bloom;
//!
//! let mut filter = Bloom::with_rate(1000, 0.01)?;
//! filter.insert("key");
//! let bytes = codec::encode(&filter);
//! assert!(codec::decode(&bytes)?.contains("key"));
//! assert!(codec::decode(&bytes[..bytes.len() - 7]).is_err());
//! # Ok::<(), everbloom::Error>(())
//! ```
//!
//! For the wire, bytes can be compressed, and a filter can be planned for it: sparser and larger in
//! memory, smaller compressed, at the same rate (\[Mitzenmacher 2001\]). Whoever receives one says how
//! far it may unpack.
//!
//! ```
//! use everbloom::{FilterExt, Goal, codec};
//!
//! let goal = Goal::new().expected_items(10_000).target_fpr(0.01);
//! let mut filter = goal.compressed().plan("bloom")?.build()?;
//! (0..10_000u64).for_each(|key| { filter.insert(&key); });
//! let sent = codec::encode_compressed(&*filter);
//! let usual = goal.plan("bloom")?.memory_bits / 8;
//! assert!(sent.len() as u64 * 100 < usual * 88, "{} bytes instead of {usual}", sent.len());
//! assert!(codec::decode_compressed(&sent, 1 << 20)?.contains(&9_999u64));
//! assert!(codec::decode_compressed(&sent, 1 << 10).is_err());
//! # Ok::<(), everbloom::Error>(())
//! ```

mod view;

pub use view::View;

use crate::filter::Restore;
use crate::filter::{Body, Filter};
use crate::filters;
use crate::format::gaps::{Compressor, Expander};
use crate::format::{self, BodyReader, BodyWriter, Coding, Header, StateReader};
use crate::key::SecretKey;
use crate::promise::{Error, Promise, Result, Spec};
use crate::scheme::Scheme;
use std::io::{Read, Write};
use std::sync::Arc;

/// The length of a filter's bytes.
pub fn encoded_bytes(filter: &dyn Filter) -> u64 {
    format::document_bytes(filter.spec().to_string().len(), filter.state().len(), body_bytes(&filter.body()))
}

fn body_bytes(body: &Body<'_>) -> u64 {
    match body {
        Body::Bytes(slices) => slices.iter().map(|slice| slice.len() as u64).sum(),
        Body::Filters(filters) => filters.iter().map(|filter| encoded_bytes(*filter)).sum(),
    }
}

/// Writes a filter, without a copy of its cells.
pub fn encode_to(filter: &dyn Filter, out: &mut dyn Write) -> std::io::Result<()> {
    let body = filter.body();
    out.write_all(&header(filter, Coding::Plain, body_bytes(&body)).encode())?;
    let mut writer = BodyWriter::new(out);
    write_body(body, &mut writer)?;
    writer.finish()
}

/// Writes a filter with its body compressed, if that makes it smaller; holds the compressed body meanwhile.
pub fn encode_compressed_to(filter: &dyn Filter, out: &mut dyn Write) -> std::io::Result<()> {
    let mut compressor = Compressor::new();
    write_body(filter.body(), &mut compressor)?;
    let Some(body) = compressor.finish() else { return encode_to(filter, out) };
    out.write_all(&header(filter, Coding::Compressed, body.len() as u64).encode())?;
    let mut writer = BodyWriter::new(out);
    writer.write_all(&body)?;
    writer.finish()
}

fn header(filter: &dyn Filter, coding: Coding, body_bytes: u64) -> Header {
    let spec = filter.spec();
    let (hash_id, seed, key_check) = Header::hash_fields(filter.hashing());
    Header {
        kind_id: filters::id_of(&spec),
        hash_id,
        coding,
        seed,
        key_check,
        promise: filter.promise(),
        spec: spec.to_string(),
        state: filter.state(),
        body_bytes,
    }
}

fn write_body(body: Body<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    match body {
        Body::Bytes(slices) => slices.into_iter().try_for_each(|slice| out.write_all(slice)),
        Body::Filters(filters) => filters.into_iter().try_for_each(|filter| encode_to(filter, out)),
    }
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
    let _ = encode_compressed_to(filter, &mut bytes);
    bytes
}

/// The filter in these bytes. Allocates no more than their length, so compressed ones need
/// [`decode_compressed`].
pub fn decode(bytes: &[u8]) -> Result<Box<dyn Filter>> {
    decode_from(&mut &*bytes, bytes.len() as u64, None)
}

/// The filter in these bytes, whose body may be compressed and unpack to `limit` bytes.
pub fn decode_compressed(bytes: &[u8], limit: u64) -> Result<Box<dyn Filter>> {
    decode_within(&mut &*bytes, bytes.len() as u64, limit, None)
}

/// Reads a filter of exactly `length` bytes; allocates no more than that.
///
/// `key` is the secret key that the filter was built with, if it was.
pub fn decode_from(source: &mut dyn Read, length: u64, key: Option<SecretKey>) -> Result<Box<dyn Filter>> {
    decode_within(source, length, length, key)
}

/// Reads a filter of exactly `length` bytes that was built with this scheme; [`Error::Scheme`] if it was built with
/// another one. A filter that needs no scheme is read, too.
pub fn decode_with_scheme(source: &mut dyn Read, length: u64, scheme: &Arc<Scheme>) -> Result<Box<dyn Filter>> {
    decode_with_scheme_within(source, length, length, scheme)
}

/// The same for a body that may be compressed and unpack to `limit` bytes.
pub fn decode_with_scheme_within(
    source: &mut dyn Read,
    length: u64,
    limit: u64,
    scheme: &Arc<Scheme>,
) -> Result<Box<dyn Filter>> {
    whole_document(source, length, limit, Needed { key: scheme.hashing().secret_key(), scheme: Some(scheme) })
}

/// Reads a filter of exactly `length` bytes, whose body may be compressed and unpack to `limit` bytes.
///
/// Allocates no more than the larger of the two, and half a megabyte to unpack with.
pub fn decode_within(
    source: &mut dyn Read,
    length: u64,
    limit: u64,
    key: Option<SecretKey>,
) -> Result<Box<dyn Filter>> {
    whole_document(source, length, limit, Needed { key, scheme: None })
}

fn whole_document(source: &mut dyn Read, length: u64, limit: u64, needed: Needed<'_>) -> Result<Box<dyn Filter>> {
    let (filter, used) = read_document(source, length, Some(limit), needed, 0)?;
    if used != length {
        return Err(Error::corrupt(format!("{} bytes follow the end of the filter", length - used)));
    }
    Ok(filter)
}

/// What some filters cannot be read without.
#[derive(Clone, Copy, Default)]
struct Needed<'n> {
    key: Option<SecretKey>,
    scheme: Option<&'n Arc<Scheme>>,
}

/// Filters may hold filters, but not for ever.
const MAX_DEPTH: u32 = 2;

/// Reads one document of at most `available` bytes; says how many it took. A compressed body may unpack
/// to `limit` bytes; where there is none, as within a filter, it may not be compressed.
fn read_document(
    source: &mut dyn Read,
    available: u64,
    limit: Option<u64>,
    needed: Needed<'_>,
    depth: u32,
) -> Result<(Box<dyn Filter>, u64)> {
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
        (Coding::Plain, _) => restore(&header, &mut body, needed, depth)?,
        (Coding::Compressed, Some(limit)) => {
            let mut expander = Expander::new(&mut body, header.body_bytes, limit)?;
            let plain_bytes = expander.plain_bytes();
            let mut plain = BodyReader::new(&mut expander, plain_bytes);
            let filter = restore(&header, &mut plain, needed, depth)?;
            plain.end()?;
            filter
        }
        (Coding::Compressed, None) => return Err(Error::corrupt("a part of the filter is compressed by itself")),
    };
    body.finish()?;
    Ok((filter, total))
}

fn restore(header: &Header, body: &mut BodyReader<'_>, needed: Needed<'_>, depth: u32) -> Result<Box<dyn Filter>> {
    let spec = Spec::parse(&header.spec)?;
    let (hashing, state) = (header.hashing(needed.key)?, StateReader::new(&header.state));
    let read_part = |body: &mut BodyReader<'_>| {
        let available = body.remaining();
        Ok(read_document(body, available, None, needed, depth + 1)?.0)
    };
    let (promise, scheme) = (header.promise, needed.scheme);
    filters::restore(
        header.kind_id,
        Restore { spec: &spec, hashing, promise, state, body, scheme, read_part: &read_part },
    )
}

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
    /// Whether the body is compressed.
    pub compressed: bool,
}

/// Reads only the header of a filter of `length` bytes.
pub fn summarise(source: &mut dyn Read, length: u64) -> Result<Summary> {
    let (header, _) = Header::read(source, length)?;
    let (hash, seed) = match header.hash_id {
        1 => ("xxh3", Some(header.seed)),
        2 => ("siphash", None),
        3 => ("xxh3_measured", Some(header.seed)),
        id => return Err(format::unknown_hash(id)),
    };
    let compressed = header.coding == Coding::Compressed;
    Ok(Summary { spec: Spec::parse(&header.spec)?, promise: header.promise, hash, seed, compressed })
}
