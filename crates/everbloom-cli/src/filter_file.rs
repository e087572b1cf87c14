//! Filters as files.

use crate::commands::dedup;
use crate::failure::{Failure, Result};
use crate::output;
use everbloom::{Filter, codec};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Reads the filter in a file.
pub(crate) fn load(path: &Path) -> Result<Box<dyn Filter>> {
    let (mut file, length) = open(path)?;
    let length = dedup::filter_bytes(&mut file, length).map_err(|error| Failure::io(path.display(), &error))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    codec::decode_from(&mut reader, length, None).map_err(|error| Failure::at(path, error))
}

/// Opens a filter file, and says how long it is.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    let fail = |error: std::io::Error| Failure::io(path.display(), &error);
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if metadata.is_dir() {
        return Err(Failure::at(path, "is a directory"));
    }
    if !metadata.is_file() {
        return Err(Failure::at(path, "is not a regular file; copy the filter into one first"));
    }
    Ok((file, metadata.len()))
}

/// Saves a filter, replacing the file only once all is written.
pub(crate) fn save(path: &Path, filter: &dyn Filter) -> Result<()> {
    output::replace(path, |out| codec::encode_to(filter, out))
}
