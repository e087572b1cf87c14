//! The least that any dedup must do: split, hash, write everything.

use memchr::{memchr_iter, memrchr};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// What marks the call of the helper.
pub(super) const ARGUMENT: &str = "--floor";

const BLOCK_BYTES: usize = 256 << 10;

/// Copies a file to stdout, and hashes each of its lines on the way.
pub(super) fn run(path: &Path) -> std::io::Result<()> {
    let mut input = File::open(path)?;
    let mut output = std::io::stdout().lock();
    let mut block = vec![0; BLOCK_BYTES];
    let (mut filled, mut all) = (0, 0);
    loop {
        let count = input.read(&mut block[filled..])?;
        filled += count;
        let end = if count == 0 { filled } else { memrchr(b'\n', &block[..filled]).map_or(0, |at| at + 1) };
        let mut start = 0;
        for at in memchr_iter(b'\n', &block[..end]) {
            all ^= xxh3_128(&block[start..at]);
            start = at + 1;
        }
        output.write_all(&block[..end])?;
        block.copy_within(end..filled, 0);
        filled -= end;
        if count == 0 {
            // So that no compiler finds the hashes useless.
            eprint!("{}", if all == 1 { " " } else { "" });
            return Ok(());
        }
    }
}
