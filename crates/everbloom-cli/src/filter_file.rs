//! Filters as files.

use crate::args::KeyArgs;
use crate::failure::{Failure, Result};
use crate::report::words;
use crate::{output, platform, scheme_file, state_file};
use everbloom::{AnyFilter, Error, Filter, codec};
use everbloom_all::KINDS;
use everbloom_tune::Scheme;
use everbloom_tune::WithScheme;
use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::path::Path;
use std::sync::Arc;

/// What a compressed filter may take when nothing is said: 1 GiB.
pub(crate) const UNPACKED_BITS: u64 = 1 << 33;

/// What is in a filter file.
pub(crate) struct FilterFile {
    /// The filter, with its audit if it has one.
    pub(crate) filter: AnyFilter,
    /// How long the file is.
    pub(crate) bytes: u64,
    pub(crate) compressed: bool,
    /// What its builder noted.
    pub(crate) note: String,
    /// Whether it is a state of `dedup`, which has more in it than its filter.
    pub(crate) is_state: bool,
}

impl FilterFile {
    /// Reads all of a file, built with this scheme if one is given; if it is compressed, it may unpack to `limit_bits`.
    pub(crate) fn read(path: &Path, limit_bits: Option<u64>, scheme: Option<&Path>) -> Result<Self> {
        let scheme = scheme.map(scheme_file::load).transpose()?;
        let (mut file, bytes) = open(path)?;
        let fail = |error| Failure::io(path.display(), &error);
        let codec::Summary { compressed, note, .. } = summarise(path, &file, bytes)?;
        file.rewind().map_err(fail)?;
        let length = state_file::filter_bytes(&mut file, bytes).map_err(fail)?;
        let filter = decode(path, file, length, limit_bits, scheme.as_ref())?;
        Ok(FilterFile { filter, bytes, compressed, note, is_state: length < bytes })
    }

    /// The key options that it was built with.
    pub(crate) fn keys(&self, path: &Path) -> Result<KeyArgs> {
        KeyArgs::from_note(&self.note).map_err(|failure| failure.within(path))
    }
}

/// The filter in a file, as [`FilterFile::read`] reads it.
pub(crate) fn load(path: &Path, limit_bits: Option<u64>, scheme: Option<&Path>) -> Result<AnyFilter> {
    FilterFile::read(path, limit_bits, scheme).map(|file| file.filter)
}

fn decode(
    path: &Path,
    file: File,
    length: u64,
    limit_bits: Option<u64>,
    scheme: Option<&Arc<Scheme>>,
) -> Result<AnyFilter> {
    let mut decoder = KINDS.decoder().limit(limit_bits.unwrap_or(UNPACKED_BITS) / 8);
    if let Some(scheme) = scheme {
        decoder = decoder.scheme(scheme);
    }
    let read = decoder.read(&mut BufReader::with_capacity(1 << 16, file), length);
    let filter = read.map_err(|error| match error {
        Error::Parameter { name: "unpacked size", given, .. } => {
            Failure::at(path, format!("is compressed and unpacks to {given}; allow that much with --memory"))
        }
        error => Failure::at(path, error),
    })?;
    scheme.map_or(Ok(()), |scheme| scheme_file::check(filter.as_ref(), scheme))?;
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
fn summarise(path: &Path, file: &File, length: u64) -> Result<codec::Summary> {
    KINDS.decoder().summarise(&mut BufReader::new(file), length).map_err(|error| Failure::at(path, error))
}

/// The key options that the filter in a file was built with.
pub(crate) fn key_options(path: &Path) -> Result<KeyArgs> {
    let (file, length) = open(path)?;
    KeyArgs::from_note(&summarise(path, &file, length)?.note).map_err(|failure| failure.within(path))
}

/// How the keys of a call are found: as when the filter in a file was built, unless options are given. Also what to add to a
/// failure if it is the file that says so, and not the caller.
pub(crate) fn key_arguments(path: &Path, given: &KeyArgs) -> Result<(KeyArgs, Option<String>)> {
    let (typed, stored) = (given.canonical(), key_options(path)?);
    let name = path.display();
    if typed.is_whole_lines() {
        let note = format!("{name} was built with {stored}, which holds unless other options are given");
        let is_told = !stored.is_whole_lines();
        return Ok((KeyArgs { on_error: given.on_error, ..stored }, is_told.then_some(note)));
    }
    if !stored.is_whole_lines() && typed != stored {
        words::note(&format!("{name} was built with {stored}; the keys looked up are {typed}, as given"));
    }
    Ok((given.clone(), None))
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
        let held = platform::data_of(&file).map_err(fail)?;
        if platform::leads_to(path, &held).map_err(fail)? {
            return Ok(file);
        }
    }
}

/// Saves a filter and the key options it was built with, replacing the file only once all is written.
pub(crate) fn save(path: &Path, filter: &dyn Filter, keys: &KeyArgs, compress: bool) -> Result<()> {
    let note = keys.to_note()?;
    output::replace(path, |out| match compress {
        true => codec::encode_compressed_to(filter, &note, out),
        false => codec::encode_noted_to(filter, &note, out),
    })
}
