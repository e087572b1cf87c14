//! Filters that are asked where they lie, without a copy: for files that are mapped into memory.
//!
//! Opening one reads its header and nothing else, so a filter of any size answers at once, and all
//! processes that map the same file share the pages. The price is trust: a damaged body is only noticed
//! by [`View::verify`], which reads all of it, and a file that another process cuts short while it is
//! mapped ends the process that reads beyond its new end (SIGBUS on Unix). So replace filter files, as
//! `everbloom build` does, by renaming a new one over them; never write into one that may be in use.

use crate::filter::sharded::is_sharded;
use crate::filter::{Kinds, Mapped};
use crate::format::{self, Coding, Header};
use crate::key::{Hashing, Key, KeyHash, SecretKey};
use crate::promise::{Error, Promise, Result, Spec};

/// A filter in bytes that somebody else holds. Kinds that can be mapped say so in [`Kind::can`](crate::kind::Kind::can).
///
/// ```
/// use everbloom::{Blocked, View};
///
/// let mut filter = Blocked::with_rate(1000, 0.01)?;
/// filter.insert("key");
/// # // A mapping is aligned; a vector need not be.
/// # let document = filter.to_bytes();
/// # let mut room = vec![0; document.len() + 64];
/// # let start = room.as_ptr().align_offset(64);
/// # room[start..start + document.len()].copy_from_slice(&document);
/// # let mapped = &room[start..start + document.len()];
/// // `mapped` are the filter's bytes, as `memmap2` or any other mapping has them.
/// let view = View::open(mapped, None)?;
/// assert!(view.contains("key"));
/// view.verify()?;
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug)]
pub struct View<'b> {
    spec: Spec,
    hashing: Hashing,
    promise: Promise,
    cells: Box<dyn Mapped + 'b>,
    /// The body, the zeros behind it and their checksum.
    sealed: &'b [u8],
}

impl<'b> View<'b> {
    /// The filter in these bytes, which start at a multiple of 64. Checks the header and all lengths, not
    /// the body. `key` is the secret key that the filter was built with, if it was.
    pub fn open(bytes: &'b [u8], key: Option<SecretKey>) -> Result<Self> {
        Self::open_among(Kinds::default(), bytes, key)
    }

    /// [`View::open`] of a filter of any of these kinds.
    pub fn open_among(kinds: Kinds, bytes: &'b [u8], key: Option<SecretKey>) -> Result<Self> {
        let length = bytes.len() as u64;
        let (header, start) = Header::read(&mut &*bytes, length)?;
        let end = start.checked_add(header.body_bytes).filter(|end| *end <= length);
        let end = end.ok_or_else(|| Error::corrupt("the filter ends before its header says it should"))?;
        let sealed = end.checked_add(format::body_padding(header.body_bytes) + format::CHECKSUM_BYTES as u64);
        let annex = sealed.and_then(|sealed| bytes.get(usize::try_from(sealed).ok()?..)).unwrap_or(b"short");
        let is_whole = match annex.first_chunk() {
            Some(annex_length) if header.has_annex => {
                format::annex_bytes(u64::from_le_bytes(*annex_length)) == Some(annex.len() as u64)
            }
            _ => annex.is_empty() && !header.has_annex,
        };
        if !is_whole {
            return Err(Error::corrupt("the filter's bytes are not as many as its header says"));
        }
        let refused = |what, remedy| Error::unsupported(what, "be read in place", remedy);
        if header.coding == Coding::Compressed {
            return Err(refused("compressed", "decode it, or build it without compression".into()));
        }
        let spec = Spec::parse(&header.spec)?;
        let kind = kinds.checked(&spec, header.kind_id)?;
        let Some(map) = kind.map.filter(|_| !is_sharded(&spec)) else {
            let able = kinds.names(|kind| kind.can.map);
            return Err(refused(kind.name, format!("decode it; filters without shards of these kinds can: {able}")));
        };
        let cells = map(&spec, &bytes[start as usize..end as usize])?;
        let hashing = header.hashing(key)?;
        Ok(View {
            spec,
            hashing,
            promise: header.promise,
            cells,
            sealed: &bytes[start as usize..bytes.len() - annex.len()],
        })
    }

    /// Reads all of the body, and compares it with its checksum.
    pub fn verify(&self) -> Result<()> {
        format::check_sealed(self.sealed)?;
        self.cells.verify()
    }

    /// The full spec.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How keys must be hashed for this filter.
    pub fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    /// What was promised when the filter was planned.
    pub fn promise(&self) -> Promise {
        self.promise
    }

    /// Whether the key seems to have been inserted.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash_with(&self.hashing))
    }

    /// Whether the key with this hash seems to have been inserted.
    pub fn contains_hash(&self, hash: KeyHash) -> bool {
        let mut found = [false];
        self.contains_hashes(&[hash], &mut found);
        found[0]
    }

    /// [`View::contains_hash`] for a batch; `found` is as long as `hashes`.
    pub fn contains_hashes(&self, hashes: &[KeyHash], found: &mut [bool]) {
        let count = hashes.len().min(found.len());
        self.cells.contains_hashes(&hashes[..count], &mut found[..count]);
    }
}
