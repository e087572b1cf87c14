//! What a stream is like, from its files or a first part of them.

use crate::args::{KeyArgs, OnError};
use crate::failure::{Failure, Result};
use crate::input::BlockReader;
use crate::progress::Screen;
use crate::record::{FaultWatch, Layout, Part, RecordReader, for_each_batch};
use everbloom::Hashing;
use everbloom_forecast::stream::Sample;
use std::path::PathBuf;

/// Learns at the speed at which files are read, from at least so many lines if there are more; and how many they were, and
/// whether that is all of them.
pub(crate) fn from_files(
    files: &[PathBuf],
    layout: Layout,
    keys: &KeyArgs,
    on_error: OnError,
    enough: Option<u64>,
    screen: Screen,
) -> Result<(Sample, u64, bool)> {
    let reader = RecordReader::new(BlockReader::new(files.to_vec(), keys.framing()), layout)?;
    let mut reader = reader.watched(files, screen);
    let (mut sample, mut watch) = (Sample::default(), FaultWatch::new(keys.on_error, on_error));
    let (mut lines, mut is_enough) = (0u64, false);
    let read = for_each_batch(&mut reader, &Hashing::default(), |part| {
        if let Part::Records(bytes, batch) = part {
            watch.check(bytes, batch)?;
            sample.observe(batch.hashes(), batch.importances());
            lines += batch.hashes().len() as u64;
            is_enough = enough.is_some_and(|enough| lines >= enough);
        }
        // Ends the reading, and is nobody's failure.
        if is_enough { Err(Failure::new("enough was read")) } else { Ok(()) }
    });
    match read {
        Err(failure) if !is_enough => Err(failure),
        _ => Ok((sample, lines, !is_enough)),
    }
}
