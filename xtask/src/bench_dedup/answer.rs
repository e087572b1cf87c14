//! The exact answer, and how an output differs from it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Result};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// A seed that no contender uses.
const SEED: u64 = 0x1d8e_4e27_c47d_124f;

/// Of every record of an input, whether it is new.
pub(super) struct Truth {
    is_new: Vec<bool>,
}

/// How an output differs from the exact one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    pub(super) wrongly_dropped: u64,
    pub(super) wrongly_kept: u64,
}

impl Truth {
    /// Finds it with 128-bit hashes, which do not collide.
    pub(super) fn of(path: &Path, key: fn(&[u8]) -> &[u8]) -> Result<Self> {
        let mut seen = HashSet::new();
        let mut is_new = Vec::new();
        for_each_line(path, |line| is_new.push(seen.insert(xxh3_128_with_seed(key(line), SEED))))?;
        Ok(Truth { is_new })
    }

    pub(super) fn records(&self) -> u64 {
        self.is_new.len() as u64
    }

    pub(super) fn distinct(&self) -> u64 {
        self.is_new.iter().filter(|is_new| **is_new).count() as u64
    }

    /// Walks along the input and an output that is a part of it, in order.
    pub(super) fn compare(&self, input: &Path, output: &Path) -> Result<Errors> {
        let mut output = BufReader::with_capacity(1 << 20, File::open(output)?);
        let mut kept = Vec::new();
        output.read_until(b'\n', &mut kept)?;
        let (mut errors, mut index, mut problem) = (Errors::default(), 0, None);
        for_each_line(input, |line| {
            let is_kept = !kept.is_empty() && kept.strip_suffix(b"\n").unwrap_or(&kept) == line;
            match (self.is_new[index], is_kept) {
                (true, false) => errors.wrongly_dropped += 1,
                (false, true) => errors.wrongly_kept += 1,
                _ => {}
            }
            index += 1;
            if is_kept {
                kept.clear();
                problem = output.read_until(b'\n', &mut kept).err();
            }
        })?;
        match problem {
            Some(error) => Err(error),
            None if !kept.is_empty() => Err(std::io::Error::other("the output is not a part of the input, in order")),
            None => Ok(errors),
        }
    }
}

fn for_each_line(path: &Path, mut act: impl FnMut(&[u8])) -> Result<()> {
    let mut lines = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        act(line.strip_suffix(b"\n").unwrap_or(&line));
        line.clear();
    }
    Ok(())
}
