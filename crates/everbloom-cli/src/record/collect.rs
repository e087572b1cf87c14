//! All keys of some files at once, for what cannot be done as they come.

use super::{FaultWatch, Layout, Part, RecordReader, for_each_batch};
use crate::args::{ImportanceArgs, KeyArgs, OnError};
use crate::failure::Result;
use crate::input::BlockReader;
use everbloom::{Hashing, KeyHash};
use std::path::PathBuf;

/// The hashes of all keys in files, in order; of stdin if there are no files.
pub(crate) fn all_hashes(files: Vec<PathBuf>, keys: &KeyArgs, hashing: &Hashing) -> Result<Vec<KeyHash>> {
    let layout = Layout::new(keys, &ImportanceArgs::default())?;
    let mut reader = RecordReader::new(BlockReader::new(files, keys.framing()), layout)?;
    let mut watch = FaultWatch::new(keys.on_error, OnError::Fail);
    let mut hashes = Vec::new();
    for_each_batch(&mut reader, hashing, |part| {
        if let Part::Records(bytes, batch) = part {
            watch.check(bytes, batch)?;
            hashes.extend_from_slice(batch.hashes());
        }
        Ok(())
    })?;
    Ok(hashes)
}
