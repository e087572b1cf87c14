//! All keys of some files at once, for what cannot be done as they come.

use super::{FaultWatch, Layout, Part, RecordReader, for_each_batch};
use crate::args::{ImportanceArgs, KeyArgs, OnError};
use crate::failure::Result;
use crate::input::BlockReader;
use crate::progress::Screen;
use everbloom::{Error, Hashing, KeyHash};
use std::path::PathBuf;

/// The hashes of all keys in files, in order; of stdin if there are no files.
/// Memory that is refused is an error.
pub(crate) fn all_hashes(
    files: Vec<PathBuf>,
    keys: &KeyArgs,
    hashing: &Hashing,
    screen: Screen,
) -> Result<Vec<KeyHash>> {
    let layout = Layout::new(keys, &ImportanceArgs::default())?;
    let reader = RecordReader::new(BlockReader::new(files.clone(), keys.framing()), layout)?;
    let mut reader = reader.watched(&files, screen);
    let mut watch = FaultWatch::new(keys.on_error, OnError::Fail);
    let mut hashes: Vec<KeyHash> = Vec::new();
    for_each_batch(&mut reader, hashing, |part| {
        if let Part::Records(bytes, batch) = part {
            watch.check(bytes, batch)?;
            let bytes = size_of_val(batch.hashes()) + size_of_val(&hashes[..]);
            hashes.try_reserve(batch.len()).map_err(|_| Error::OutOfMemory { bytes: 2 * bytes as u64 })?;
            hashes.extend_from_slice(batch.hashes());
        }
        Ok(())
    })?;
    Ok(hashes)
}
