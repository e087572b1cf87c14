//! A scheme's bytes (`.ebs`).
//!
//! ```text
//! offset  size
//!      0     8  magic 89 45 42 53 0d 0a 1a 0a ("\x89EBS\r\n\x1a\n")
//!      8     2  format version
//!     10     1  recipe: 0 = standard, 1 = popularity, 2 = stacked
//!     11     1  hash id, as in a filter's bytes
//!     12     4  zero
//!     16     8  seed
//!     24     8  check value of the secret key
//!     32     8  bits per key, as a double
//!     40     8  length of the rest, without the checksum
//!     48        popularity: number of classes (1), for each hashes (1), key share, query share (doubles);
//!                 1 and the class of each of 256 lengths, or 0; number of codes (1), and if there are any:
//!                 the class of each (1), width (1), slots (8), seed (8), table
//!               stacked: query share (double), number of pairs of layers (1), for each width (1) and
//!                 rate (double); number of keys (8), for each the 16 bytes of its hash, ascending
//!  e − 8     8  XXH3-64 of everything before: also the scheme's id
//! ```

use super::classes::{Exceptions, check_width};
use super::{Classes, Design, HotNegatives, KeyClass, Pair, Recipe, Scheme};
use crate::ribbon::{Ribbon, Shape};
use everbloom::kind::stored_hashing;
use everbloom::{Error, KeyHash, Result, SecretKey};
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

/// The first bytes of every scheme.
pub(crate) const MAGIC: [u8; 8] = *b"\x89EBS\r\n\x1a\n";
const VERSION: u16 = 1;
const FIXED_BYTES: usize = 48;
const CHECKSUM_BYTES: usize = 8;

impl Scheme {
    /// The scheme's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.content();
        bytes.extend_from_slice(&self.id.0.to_le_bytes());
        bytes
    }

    pub(super) fn checksum(&self) -> u64 {
        xxh3_64(&self.content())
    }

    /// Everything but the checksum.
    fn content(&self) -> Vec<u8> {
        let (recipe, body) = match &self.recipe {
            Recipe::Standard => (0, Vec::new()),
            Recipe::Popularity(classes) => (1, encode_classes(classes)),
            Recipe::Stacked(negatives) => (2, encode_negatives(negatives)),
        };
        let (hash_id, seed, key_check) =
            (self.hashing.id(), self.hashing.seed().unwrap_or(0), self.hashing.check_value());
        let mut bytes = Vec::with_capacity(FIXED_BYTES + body.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[recipe, hash_id, 0, 0, 0, 0]);
        for word in [seed, key_check, self.bits_per_key.to_bits(), body.len() as u64] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The scheme in these bytes. Allocates no more than their length.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::decode_with_key(bytes, None)
    }

    /// The scheme in these bytes, whose filters were built with this secret key.
    pub fn decode_with_key(bytes: &[u8], key: Option<SecretKey>) -> Result<Self> {
        if !bytes.starts_with(&MAGIC) {
            let problem = "this is not an everbloom scheme".into();
            return Err(Error::Corrupt { problem, remedy: "make one with `everbloom tune`" });
        }
        let content = checked_content(bytes)?;
        let mut reader = Reader(&content[MAGIC.len()..]);
        // The version was checked before the checksum.
        reader.bytes(2)?;
        let (recipe, hash_id, zeros) = (reader.byte()?, reader.byte()?, reader.bytes(4)?);
        if zeros.iter().any(|byte| *byte != 0) {
            return Err(damaged("has bytes set that must be zero"));
        }
        let hashing = stored_hashing((hash_id, reader.word()?, reader.word()?), key)?;
        let bits_per_key = reader.number()?;
        if reader.word()? != reader.0.len() as u64 {
            return Err(damaged("is not as long as it says"));
        }
        let recipe = match recipe {
            0 => Recipe::Standard,
            1 => Recipe::Popularity(decode_classes(&mut reader)?),
            2 => Recipe::Stacked(decode_negatives(&mut reader)?),
            other => return Err(damaged(&format!("has recipe {other}, which does not exist"))),
        };
        if !reader.0.is_empty() {
            return Err(damaged("has bytes behind its end"));
        }
        let scheme = Scheme::new(hashing, bits_per_key, recipe)?;
        // Another spelling of the same content would be another id for one scheme.
        if scheme.content() == content { Ok(scheme) } else { Err(damaged("is not written as it should be")) }
    }

    /// Reads a scheme of exactly `length` bytes; allocates no more than that.
    pub fn decode_from(source: &mut dyn Read, length: u64, key: Option<SecretKey>) -> Result<Self> {
        let mut bytes = Vec::new();
        source.take(length).read_to_end(&mut bytes)?;
        Self::decode_with_key(&bytes, key)
    }
}

fn damaged(problem: &str) -> Error {
    let remedy = "restore it from a copy or make it again with `everbloom tune`";
    Error::Corrupt { problem: format!("the scheme {problem}"), remedy }
}

/// What precedes the checksum, if that is right.
fn checked_content(bytes: &[u8]) -> Result<&[u8]> {
    if bytes.len() < FIXED_BYTES + CHECKSUM_BYTES {
        return Err(damaged("ends too early"));
    }
    let version = u16::from_le_bytes([bytes[8], bytes[9]]);
    if version == 0 || version > VERSION {
        let problem = format!("the scheme has format version {version}, this build reads up to {VERSION}");
        return Err(Error::Corrupt { problem, remedy: "upgrade everbloom" });
    }
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    if xxh3_64(content).to_le_bytes() == checksum { Ok(content) } else { Err(damaged("does not match its checksum")) }
}

fn encode_classes(classes: &Classes) -> Vec<u8> {
    let mut bytes = vec![classes.classes.len() as u8];
    for class in &classes.classes {
        bytes.push(class.num_hashes as u8);
        bytes.extend_from_slice(&class.key_share.to_le_bytes());
        bytes.extend_from_slice(&class.query_share.to_le_bytes());
    }
    match &classes.by_length {
        None => bytes.push(0),
        Some(by_length) => {
            bytes.push(1);
            bytes.extend_from_slice(&by_length[..]);
        }
    }
    let Some(exceptions) = &classes.exceptions else {
        bytes.push(0);
        return bytes;
    };
    let shape = exceptions.map.shape();
    bytes.push(exceptions.codes.len() as u8);
    bytes.extend_from_slice(&exceptions.codes);
    bytes.push(shape.width as u8);
    bytes.extend_from_slice(&shape.slots.to_le_bytes());
    bytes.extend_from_slice(&exceptions.map.seed().to_le_bytes());
    bytes.extend_from_slice(exceptions.map.bytes());
    bytes
}

fn decode_classes(reader: &mut Reader<'_>) -> Result<Classes> {
    let count = reader.byte()?;
    let class = |reader: &mut Reader<'_>| -> Result<KeyClass> {
        let num_hashes = u32::from(reader.byte()?);
        Ok(KeyClass { num_hashes, key_share: reader.number()?, query_share: reader.number()? })
    };
    let mut classes = Classes::new((0..count).map(|_| class(reader)).collect::<Result<_>>()?)?;
    match reader.byte()? {
        0 => {}
        1 => {
            let mut by_length = [0; 256];
            by_length.copy_from_slice(reader.bytes(256)?);
            classes = classes.by_length(by_length)?;
        }
        other => return Err(damaged(&format!("has feature {other}, which does not exist"))),
    }
    let codes = reader.byte()?;
    if codes > 0 {
        classes.exceptions = Some(decode_exceptions(reader, &classes, usize::from(codes))?);
    }
    Ok(classes)
}

fn decode_exceptions(reader: &mut Reader<'_>, classes: &Classes, count: usize) -> Result<Exceptions> {
    let codes = reader.bytes(count)?.to_vec();
    codes.iter().try_for_each(|class| classes.check_class(*class))?;
    let shape = Shape { width: u32::from(reader.byte()?), slots: reader.word()? }.checked()?;
    check_width(count, shape.width)?;
    let seed = reader.word()?;
    // The table is there before anything is allocated for it.
    let table = reader.bytes(shape.bits() / 8)?;
    let mut map = Ribbon::empty(shape, seed)?;
    map.bytes_mut().copy_from_slice(table);
    map.check()?;
    Ok(Exceptions { codes, map })
}

fn encode_negatives(negatives: &HotNegatives) -> Vec<u8> {
    let mut bytes = negatives.query_share.to_le_bytes().to_vec();
    let pairs = negatives.design.pairs();
    bytes.push(pairs.len() as u8);
    for pair in pairs {
        bytes.push(pair.width as u8);
        bytes.extend_from_slice(&pair.target_fpr.to_le_bytes());
    }
    bytes.extend_from_slice(&(negatives.keys.len() as u64).to_le_bytes());
    for hash in &negatives.keys {
        bytes.extend_from_slice(&hash.high.to_le_bytes());
        bytes.extend_from_slice(&hash.low.to_le_bytes());
    }
    bytes
}

fn decode_negatives(reader: &mut Reader<'_>) -> Result<HotNegatives> {
    let query_share = reader.number()?;
    let pair = |reader: &mut Reader<'_>| -> Result<Pair> {
        Ok(Pair { width: u32::from(reader.byte()?), target_fpr: reader.number()? })
    };
    let count = reader.byte()?;
    let pairs = (0..count).map(|_| pair(reader)).collect::<Result<_>>()?;
    let count = reader.word()?;
    let bytes = reader.bytes(count.checked_mul(16).ok_or_else(|| damaged("claims more keys than there are"))?)?;
    let mut hashes = Reader(bytes);
    let keys = (0..count).map(|_| Ok(KeyHash { high: hashes.word()?, low: hashes.word()? })).collect::<Result<_>>()?;
    HotNegatives::new(keys, Design::new(pairs)?, query_share)
}

/// Takes a scheme's bytes apart, never beyond their end.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, count: impl TryInto<usize>) -> Result<&'b [u8]> {
        let taken = count.try_into().ok().and_then(|count: usize| self.0.split_at_checked(count));
        let (taken, rest) = taken.ok_or_else(|| damaged("ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1usize)?[0])
    }

    fn word(&mut self) -> Result<u64> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8usize)?);
        Ok(u64::from_le_bytes(word))
    }

    fn number(&mut self) -> Result<f64> {
        self.word().map(f64::from_bits)
    }
}
