//! All keys of some files at once, for what cannot be done as they come.

use super::{Batch, Layout, Part, RecordReader, for_each_batch};
use crate::args::{ImportanceArgs, KeyArgs, OnError};
use crate::failure::{Failure, Result};
use crate::input::BlockReader;
use everbloom::{Hashing, KeyHash};
use std::path::PathBuf;

/// The hashes of all keys in files, in order; of stdin if there are no files.
pub(crate) fn all_hashes(files: Vec<PathBuf>, keys: &KeyArgs, hashing: &Hashing) -> Result<Vec<KeyHash>> {
    let layout = Layout::new(keys, &ImportanceArgs::default())?;
    let mut reader = RecordReader::new(BlockReader::new(files, keys.ending()), layout)?;
    let mut hashes = Vec::new();
    let mut records = 0;
    for_each_batch(&mut reader, hashing, |part| {
        if let Part::Records(_, batch) = part {
            check_faults(keys, batch, records)?;
            records += batch.len();
            hashes.extend_from_slice(batch.hashes());
        }
        Ok(())
    })?;
    Ok(hashes)
}

/// Refuses records without a key, unless they are to be left out.
pub(crate) fn check_faults(keys: &KeyArgs, batch: &Batch, before: usize) -> Result<()> {
    match (keys.on_error, batch.faults().first()) {
        (None | Some(OnError::Fail), Some((index, fault))) => Err(Failure::new(format!(
            "record {} cannot be used: {fault}; --on-error skip leaves such records out",
            before + index + 1
        ))),
        _ => Ok(()),
    }
}
