//! Filters as files.

use crate::args::KeyArgs;
use crate::failure::{Failure, Result};
use crate::record::KeyOptions;
use crate::report::words;
use crate::{output, platform, scheme_file, state_file};
use everbloom::internal::codec;
use everbloom::{AnyFilter, Error, Filter};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// What a compressed filter may take when nothing is said: 1 GiB.
pub(crate) const UNPACKED_BITS: u64 = 1 << 33;

/// Reads the filter in a file, with its audit if it has one, built with this scheme if one is given; if it is compressed, it may
/// unpack to `limit_bits`.
pub(crate) fn load(path: &Path, limit_bits: Option<u64>, scheme: Option<&Path>) -> Result<AnyFilter> {
    let scheme = scheme.map(scheme_file::load).transpose()?;
    let (mut file, length) = open(path)?;
    let length = state_file::filter_bytes(&mut file, length).map_err(|error| Failure::io(path.display(), &error))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let limit = limit_bits.unwrap_or(UNPACKED_BITS) / 8;
    let read = match &scheme {
        Some(scheme) => codec::Decoder::new().limit(limit).scheme(scheme).read(&mut reader, length),
        None => codec::Decoder::new().limit(limit).read(&mut reader, length),
    };
    let filter = read.map_err(|error| match error {
        Error::Parameter { name: "unpacked size", given, .. } => {
            Failure::at(path, format!("is compressed and unpacks to {given}; allow that much with --memory"))
        }
        error => Failure::at(path, error),
    })?;
    scheme.map_or(Ok(()), |scheme| scheme_file::check(filter.as_ref(), &scheme))?;
    Ok(filter.into())
}

/// Opens a filter file, and says how long it is.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    let fail = |error: std::io::Error| Failure::io(path.display(), &error);
    if path.as_os_str() == "-" {
        return Err(Failure::new(
            "a filter is read from a file, not from stdin; name the file (./- if it is called so)",
        ));
    }
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if metadata.is_dir() {
        return Err(Failure::at(path, "is a directory; name a filter file in it"));
    }
    if !metadata.is_file() {
        return Err(Failure::at(path, "is not a regular file; copy the filter into one first"));
    }
    Ok((file, metadata.len()))
}

/// What the header of a filter file says.
pub(crate) fn summary(path: &Path) -> Result<codec::Summary> {
    let (file, length) = open(path)?;
    codec::summarise(&mut BufReader::new(file), length).map_err(|error| Failure::at(path, error))
}

/// The key options that the filter in a file was built with.
pub(crate) fn key_options(path: &Path) -> Result<KeyOptions> {
    KeyOptions::from_note(&summary(path)?.note).map_err(|failure| failure.within(path))
}

/// How the keys of a call are found: as when the filter in a file was built, unless options are given. Also what to add to a
/// failure if it is the file that says so, and not the caller.
pub(crate) fn key_arguments(path: &Path, given: &KeyArgs) -> Result<(KeyArgs, Option<String>)> {
    let (typed, stored) = (KeyOptions::of(given), key_options(path)?);
    let name = path.display();
    if typed.is_whole_lines() {
        let note = format!("{name} was built with {stored}, which holds unless other options are given");
        return Ok((stored.arguments(given), (!stored.is_whole_lines()).then_some(note)));
    }
    if !stored.is_whole_lines() && typed != stored {
        words::note(&format!("{name} was built with {stored}; the keys looked up are {typed}, as given"));
    }
    Ok((given.clone(), None))
}

/// Whether a file is a state of `dedup`, which has more in it than its filter.
pub(crate) fn is_dedup_state(path: &Path) -> Result<bool> {
    let (mut file, length) = open(path)?;
    let filter = state_file::filter_bytes(&mut file, length).map_err(|error| Failure::io(path.display(), &error))?;
    Ok(filter < length)
}

/// Takes a filter file that is to be read, changed and replaced, so that of two processes neither undoes what the other
/// did. It is ours until what this gives is dropped.
pub(crate) fn hold(path: &Path) -> Result<File> {
    let fail = |error: std::io::Error| Failure::io(path.display(), &error);
    loop {
        let (file, _) = open(path)?;
        if !platform::try_lock(&file).map_err(fail)? {
            return Err(Failure::at(path, "is being changed by another process; try again when it is done"));
        }
        // Another process may have put a file in its place before it let go of this one.
        let (held, named) = (platform::data_of(&file).map_err(fail)?, platform::stat(path).map_err(fail)?);
        if named.is_some_and(|named| platform::identity(&named) == platform::identity(&held)) {
            return Ok(file);
        }
    }
}

/// Saves a filter and the key options it was built with, replacing the file only once all is written.
pub(crate) fn save(path: &Path, filter: &dyn Filter, keys: &KeyOptions, compress: bool) -> Result<()> {
    let note = keys.to_note()?;
    output::replace(path, |out| match compress {
        true => codec::encode_compressed_to(filter, &note, out),
        false => codec::encode_noted_to(filter, &note, out),
    })
}
