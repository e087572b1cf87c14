//! How far an input has been read, and how a file is known again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::{fault, platform};
use serde::{Deserialize, Serialize};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// So many bytes at its start, and before the place reached, tell a file from others, …
const FINGERPRINT_BYTES: u64 = 64 << 10;
/// … and so many parts of this size between them tell it from what it was before somebody wrote over it.
const SAMPLES: u64 = 64;
const SAMPLE_BYTES: u64 = 4 << 10;

/// How far an input has been read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// The input, counted from 0.
    pub(crate) input: usize,
    /// Bytes of it, unpacked, that are whole records and have been given.
    pub(crate) offset: u64,
    /// Bytes behind them that were given as a record, though it had no ending.
    pub(crate) unfinished: u64,
    /// Bytes as they are stored, the unfinished record included.
    pub(crate) stored: u64,
    /// Where unpacking can begin; nothing if the input is not packed.
    pub(crate) member: Option<Member>,
    /// Whether there is nothing to read, because the unfinished record is all there is behind the offset.
    pub(crate) is_read: bool,
    /// The file, if it is one that a later run can read again.
    pub(crate) file: Option<Arc<File>>,
    /// The file that it is a place in, until that is open.
    pub(crate) inode: Option<u64>,
}

/// The end of a packed member, which is where the next one starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    /// Bytes as they are stored.
    pub(crate) stored: u64,
    /// Bytes unpacked.
    pub(crate) offset: u64,
}

impl Place {
    /// The start of an input.
    pub(crate) fn start_of(input: usize) -> Self {
        Place { input, ..Place::default() }
    }

    /// The place so many bytes of whole records further on.
    pub(crate) fn further(&self, bytes: u64) -> Self {
        let offset = self.offset + bytes;
        Place { offset, stored: if self.member.is_some() { self.stored } else { offset }, ..self.clone() }
    }
}

/// What is kept of a file to go on with it later, by whatever name it then has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// What it was called.
    pub(crate) name: String,
    inode: u64,
    /// How many times the same file was named before it, among the inputs of its run.
    nth: usize,
    pub(crate) offset: u64,
    pub(crate) unfinished: u64,
    pub(crate) stored: u64,
    member: Option<Member>,
    /// Of the first bytes.
    head: u64,
    /// Of the last ones before the place reached.
    tail: u64,
    /// Of samples between them; states of earlier builds have none.
    #[serde(default)]
    middle: Option<u64>,
}

impl Mark {
    /// The mark of a place; nothing of what cannot be read again, or is no longer there.
    pub(crate) fn of(place: &Place, path: &Path, nth: usize) -> io::Result<Option<Self>> {
        let Some(file) = place.file.as_deref() else { return Ok(None) };
        let Some(Fingerprints { head, tail, middle }) = fingerprints(file, place.stored)? else { return Ok(None) };
        let inode = platform::inode(file)?;
        Ok(Some(Mark {
            name: path.display().to_string(),
            inode,
            nth,
            offset: place.offset,
            unfinished: place.unfinished,
            stored: place.stored,
            member: place.member,
            head,
            tail,
            middle: Some(middle),
        }))
    }

    /// Whether it is of this inode, named for the nth time.
    pub(crate) fn is_of(&self, inode: u64, nth: usize) -> bool {
        (self.inode, self.nth) == (inode, nth)
    }

    /// Whether another mark is to take the place of this one.
    pub(crate) fn is_renewed_by(&self, other: &Mark) -> bool {
        self.is_of(other.inode, other.nth)
    }

    /// Whether it is of this inode, whatever it was called.
    pub(crate) fn is_of_inode(&self, inode: u64) -> bool {
        self.inode == inode
    }

    /// Whether the file still begins with all that was read of it, as far as samples tell.
    pub(crate) fn fits(&self, file: &File) -> io::Result<bool> {
        let expected = (self.head, self.tail);
        Ok(fingerprints(file, self.stored)?.is_some_and(|found| {
            (found.head, found.tail) == expected && self.middle.is_none_or(|middle| middle == found.middle)
        }))
    }

    /// Where to go on, before the record that had no ending.
    pub(crate) fn place(&self, input: usize) -> Place {
        let (offset, member, inode) = (self.offset, self.member, Some(self.inode));
        let stored = if member.is_some() { self.stored } else { offset };
        Place { input, offset, member, stored, inode, ..Place::default() }
    }

    /// The place as it was left, if there is nothing new.
    pub(crate) fn place_left(&self, input: usize) -> Place {
        let (unfinished, stored) = (self.unfinished, self.stored);
        Place { unfinished, stored, is_read: unfinished > 0, ..self.place(input) }
    }

    /// Where to go on in a file that is not packed, behind the ending that the record got.
    pub(crate) fn place_behind(&self, input: usize) -> Place {
        Place { offset: self.stored, stored: self.stored, ..self.place(input) }.further(1)
    }

    /// Whether nothing packs it, so that its bytes are where they seem to be.
    pub(crate) fn is_plain(&self) -> bool {
        self.member.is_none()
    }
}

/// Hashes of a file's bytes up to some place.
struct Fingerprints {
    head: u64,
    tail: u64,
    middle: u64,
}

/// Hashes of the first bytes, of the last before `end`, and of samples between them; nothing if the file does not go that
/// far.
fn fingerprints(file: &File, end: u64) -> io::Result<Option<Fingerprints>> {
    match read_fingerprints(file, end) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        found => found.map(Some),
    }
}

fn read_fingerprints(file: &File, end: u64) -> io::Result<Fingerprints> {
    let length = end.min(FINGERPRINT_BYTES);
    let mut bytes = vec![0; length as usize];
    fault::point("read")?;
    file.read_exact_at(&mut bytes, 0)?;
    let head = xxh3_64(&bytes);
    fault::point("read")?;
    file.read_exact_at(&mut bytes, end - length)?;
    Ok(Fingerprints { head, tail: xxh3_64(&bytes), middle: middle(file, end)? })
}

/// A hash of what lies between the first and the last bytes: of all of it if that is little, otherwise of as many samples at
/// even distances.
fn middle(file: &File, end: u64) -> io::Result<u64> {
    let between = end.saturating_sub(2 * FINGERPRINT_BYTES);
    if between == 0 {
        return Ok(0);
    }
    fault::point("read")?;
    let mut bytes = vec![0; between.min(SAMPLES * SAMPLE_BYTES) as usize];
    let step = match bytes.len() as u64 == between {
        true => SAMPLE_BYTES,
        false => (between - SAMPLE_BYTES) / (SAMPLES - 1),
    };
    for (sample, at) in bytes.chunks_mut(SAMPLE_BYTES as usize).zip((FINGERPRINT_BYTES..).step_by(step as usize)) {
        file.read_exact_at(sample, at)?;
    }
    Ok(xxh3_64(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_is_known_by_its_ends_and_by_samples_between_them() {
        let mut file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..6_000_000u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        file.write_all(&bytes).expect("written");
        for end in [
            0,
            1,
            FINGERPRINT_BYTES,
            2 * FINGERPRINT_BYTES,
            2 * FINGERPRINT_BYTES + 1,
            300_000,
            393_216,
            393_217,
            6_000_000,
        ] {
            let mark = Mark::of(
                &Place { stored: end, file: Some(Arc::new(file.try_clone().expect("the same"))), ..Place::default() },
                Path::new("log"),
                0,
            )
            .expect("read")
            .expect("a mark");
            assert!(mark.fits(&file).expect("read"), "{end}");
            // One byte anywhere in what is hashed as a whole, or as many as lie between samples.
            let between = end.saturating_sub(2 * FINGERPRINT_BYTES);
            let length = if between <= SAMPLES * SAMPLE_BYTES { 1 } else { between / (SAMPLES - 1) };
            for part in 0..=16 {
                let at = (end.saturating_sub(length)) * part / 16;
                let kept = &bytes[at as usize..(at + length).min(end) as usize];
                let other: Vec<u8> = kept.iter().map(|byte| !byte).collect();
                file.write_all_at(&other, at).expect("written");
                assert_eq!(mark.fits(&file).expect("read"), end == 0, "{end} {at}");
                file.write_all_at(kept, at).expect("written");
            }
            assert!(mark.fits(&file).expect("read"), "{end}");
        }
    }
}
