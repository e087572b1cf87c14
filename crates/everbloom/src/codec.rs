//! Any filter to bytes, and bytes to whichever filter they hold.
//!
//! ```
//! use everbloom::{FilterExt, codec, filters::Bloom};
//!
//! let mut filter = Bloom::with_rate(1000, 0.01)?;
//! filter.insert("key");
//! let bytes = codec::encode(&filter);
//! assert!(codec::decode(&bytes)?.contains("key"));
//! assert!(codec::decode(&bytes[..bytes.len() - 7]).is_err());
//! # Ok::<(), everbloom::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::filters::{self, Needed, Restore};
use crate::goal::Forecast;
use crate::hash::SecretKey;
use crate::scheme::Scheme;
use crate::spec::Spec;
use crate::traits::{Body, Filter};
use crate::wire::{self, BodyReader, BodyWriter, Header, StateReader};
use std::io::{Read, Write};
use std::sync::Arc;

/// The length of a filter's bytes.
pub fn encoded_bytes(filter: &dyn Filter) -> u64 {
    wire::document_bytes(filter.spec().to_string().len(), filter.state().len(), body_bytes(&filter.body()))
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
    let spec = filter.spec();
    let (hash_id, seed, key_check) = Header::hash_fields(filter.hashing());
    let header = Header {
        kind_id: filters::id_of(&spec),
        hash_id,
        seed,
        key_check,
        forecast: filter.forecast(),
        spec: spec.to_string(),
        state: filter.state(),
        body_bytes: body_bytes(&body),
    };
    out.write_all(&header.encode())?;
    let mut writer = BodyWriter::new(out);
    match body {
        Body::Bytes(slices) => slices.into_iter().try_for_each(|slice| writer.write_all(slice))?,
        Body::Filters(filters) => filters.into_iter().try_for_each(|filter| encode_to(filter, &mut writer))?,
    }
    writer.finish()
}

/// A filter's bytes.
pub fn encode(filter: &dyn Filter) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded_bytes(filter) as usize);
    // A Vec takes every write.
    let _ = encode_to(filter, &mut bytes);
    bytes
}

/// The filter in these bytes. Allocates no more than their length.
pub fn decode(bytes: &[u8]) -> Result<Box<dyn Filter>> {
    decode_from(&mut &*bytes, bytes.len() as u64, None)
}

/// Reads a filter of exactly `length` bytes; allocates no more than that.
///
/// `key` is the secret key that the filter was built with, if it was.
pub fn decode_from(source: &mut dyn Read, length: u64, key: Option<SecretKey>) -> Result<Box<dyn Filter>> {
    whole_document(source, length, Needed { key, scheme: None })
}

/// Reads a filter of exactly `length` bytes that was built with this scheme; [`Error::Scheme`] if it was built with
/// another one. A filter that needs no scheme is read, too.
pub fn decode_with_scheme(source: &mut dyn Read, length: u64, scheme: &Arc<Scheme>) -> Result<Box<dyn Filter>> {
    whole_document(source, length, Needed { key: scheme.hashing().secret_key(), scheme: Some(scheme) })
}

fn whole_document(source: &mut dyn Read, length: u64, needed: Needed<'_>) -> Result<Box<dyn Filter>> {
    let (filter, used) = read_document(source, length, needed, 0)?;
    if used != length {
        return Err(Error::corrupt(format!("{} bytes follow the end of the filter", length - used)));
    }
    Ok(filter)
}

/// Filters may hold filters, but not for ever.
const MAX_DEPTH: u32 = 2;

/// Reads one document of at most `available` bytes; says how many it took.
pub(crate) fn read_document(
    source: &mut dyn Read,
    available: u64,
    needed: Needed<'_>,
    depth: u32,
) -> Result<(Box<dyn Filter>, u64)> {
    if depth > MAX_DEPTH {
        return Err(Error::corrupt("filters are nested too deeply"));
    }
    let (header, header_bytes) = Header::read(source, available)?;
    let total = header_bytes
        .checked_add(header.body_bytes)
        .and_then(|bytes| bytes.checked_add(wire::body_padding(header.body_bytes) + 8))
        .filter(|total| *total <= available)
        .ok_or_else(|| Error::corrupt("the filter ends before its header says it should"))?;
    let hashing = header.hashing(needed.key)?;
    let spec = Spec::parse(&header.spec)?;
    let mut body = BodyReader::new(source, header.body_bytes);
    let filter = filters::restore(
        header.kind_id,
        Restore {
            spec: &spec,
            hashing,
            forecast: header.forecast,
            state: StateReader::new(&header.state),
            body: &mut body,
            needed,
            depth,
        },
    )?;
    body.finish()?;
    Ok((filter, total))
}

/// What a filter's header says, without its cells.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The full spec.
    pub spec: Spec,
    /// What was promised of it.
    pub forecast: Forecast,
    /// The name of the hash function.
    pub hash: &'static str,
    /// The seed, where the hash has one.
    pub seed: Option<u64>,
}

/// Reads only the header of a filter of `length` bytes.
pub fn summarise(source: &mut dyn Read, length: u64) -> Result<Summary> {
    let (header, _) = Header::read(source, length)?;
    let (hash, seed) = match header.hash_id {
        1 => ("xxh3", Some(header.seed)),
        2 => ("siphash", None),
        3 => ("xxh3_measured", Some(header.seed)),
        id => return Err(wire::unknown_hash(id)),
    };
    Ok(Summary { spec: Spec::parse(&header.spec)?, forecast: header.forecast, hash, seed })
}
