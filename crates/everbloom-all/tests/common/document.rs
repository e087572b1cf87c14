//! A filter's bytes taken apart and put together again, checksums and all: how to write a lie.
//!
//! The layout is copied from `wire` on purpose: a change there that this does not follow is a change
//! of the format.

use xxhash_rust::xxh3::xxh3_64;

const FIXED: usize = 72;

/// One document, its sections apart.
#[derive(Clone)]
pub struct Document {
    /// The fixed part of the header; lengths are filled in when written.
    pub fixed: [u8; FIXED],
    pub spec: Vec<u8>,
    pub state: Vec<u8>,
    pub body: Vec<u8>,
    /// The length that the header claims for the body, if not the true one.
    pub claimed_body: Option<u64>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(word)
}

impl Document {
    pub fn parse(bytes: &[u8]) -> Self {
        let (spec, state) = (number::<4>(bytes, 56) as usize, number::<4>(bytes, 60) as usize);
        let header = (FIXED + spec + state + 8).next_multiple_of(64);
        let body = number::<8>(bytes, 64) as usize;
        Document {
            fixed: bytes[..FIXED].try_into().expect("72 bytes"),
            spec: bytes[FIXED..][..spec].to_vec(),
            state: bytes[FIXED + spec..][..state].to_vec(),
            body: bytes[header..][..body].to_vec(),
            claimed_body: None,
        }
    }

    /// The document with these bytes of the fixed part changed.
    pub fn with(&self, at: usize, bytes: &[u8]) -> Self {
        let mut changed = self.clone();
        changed.fixed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    }

    pub fn with_spec(&self, spec: impl Into<Vec<u8>>) -> Self {
        Document { spec: spec.into(), ..self.clone() }
    }

    pub fn with_state(&self, state: Vec<u8>) -> Self {
        Document { state, ..self.clone() }
    }

    pub fn with_body(&self, body: Vec<u8>) -> Self {
        Document { body, ..self.clone() }
    }

    pub fn claiming_body(&self, length: u64) -> Self {
        Document { claimed_body: Some(length), ..self.clone() }
    }

    /// The document with each of the documents in its body changed.
    pub fn with_parts(&self, mut change: impl FnMut(&mut Document)) -> Self {
        let (mut rest, mut body) = (&self.body[..], Vec::new());
        while !rest.is_empty() {
            let mut part = Document::parse(rest);
            rest = &rest[part.bytes().len()..];
            change(&mut part);
            body.extend(part.bytes());
        }
        self.with_body(body)
    }

    /// The bytes, with true section lengths (but for the claim) and right checksums.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.fixed.to_vec();
        bytes[56..60].copy_from_slice(&(self.spec.len() as u32).to_le_bytes());
        bytes[60..64].copy_from_slice(&(self.state.len() as u32).to_le_bytes());
        let claimed = self.claimed_body.unwrap_or(self.body.len() as u64);
        bytes[64..72].copy_from_slice(&claimed.to_le_bytes());
        bytes.extend_from_slice(&self.spec);
        bytes.extend_from_slice(&self.state);
        seal(&mut bytes, 0);
        let start = bytes.len();
        bytes.extend_from_slice(&self.body);
        seal(&mut bytes, start);
        bytes
    }
}

/// Pads what starts at `start` and ends it with its checksum, on a multiple of 64.
fn seal(bytes: &mut Vec<u8>, start: usize) {
    let length = (bytes.len() + 8).next_multiple_of(64) - 8;
    bytes.resize(length, 0);
    let checksum = xxh3_64(&bytes[start..]);
    bytes.extend_from_slice(&checksum.to_le_bytes());
}
