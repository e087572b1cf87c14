//! Disk look-ups saved: a store of sorted files, with a filter for each that says which files need not be read.
//!
//! `cargo run -p everbloom-all --example disk_lookups`
//!
//! Databases such as BigTable, Cassandra or RocksDB write what comes in as sorted files ("runs") that never change. A key may
//! be in any of them, so that looking one up means looking into every run, newest first. A filter per run, in memory, says
//! "not here" for nearly all of them without touching the disk.

use everbloom::Bloom;
use everbloom::FilterExt;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A key and its value, 8 bytes each.
const RECORD: usize = 16;
/// Records that are read together.
const BLOCK: usize = 256;

/// A sorted file, the first key of each of its blocks, and the filter of its keys.
struct Run {
    file: File,
    first_keys: Vec<u64>,
    records: usize,
    filter: Bloom,
}

impl Run {
    fn write(path: &Path, mut records: Vec<(u64, u64)>) -> Result<Self> {
        records.sort_unstable();
        let bytes: Vec<u8> =
            records.iter().flat_map(|(key, value)| [key.to_le_bytes(), value.to_le_bytes()]).flatten().collect();
        let mut file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
        file.write_all(&bytes)?;
        let mut filter = Bloom::with_rate(records.len() as u64, 0.01)?;
        filter.extend(records.iter().map(|(key, _)| *key));
        let first_keys = records.chunks(BLOCK).map(|block| block[0].0).collect();
        Ok(Run { file, first_keys, records: records.len(), filter })
    }

    /// Reads the one block in which the key would be.
    fn look_up(&mut self, key: u64) -> Result<Option<u64>> {
        let Some(block) = self.first_keys.partition_point(|first| *first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let count = BLOCK.min(self.records - block * BLOCK);
        let mut bytes = vec![0; count * RECORD];
        self.file.seek(SeekFrom::Start((block * BLOCK * RECORD) as u64))?;
        self.file.read_exact(&mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let records: Vec<[u64; 2]> =
            words.chunks_exact(2).map(|pair| [pair[0], pair[1]].map(u64::from_le_bytes)).collect();
        Ok(records.binary_search_by_key(&key, |record| record[0]).ok().map(|place| records[place][1]))
    }
}

/// Runs, the newest last, and how many blocks were read.
struct Store {
    runs: Vec<Run>,
    uses_filters: bool,
    reads: u64,
}

impl Store {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        for run in self.runs.iter_mut().rev() {
            if self.uses_filters && !run.filter.contains(key) {
                continue;
            }
            self.reads += 1;
            if let Some(value) = run.look_up(key)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() -> Result<()> {
    let folder = Folder(std::env::temp_dir().join(format!("everbloom-disk-lookups-{}", std::process::id())));
    fs::create_dir_all(&folder.0)?;

    // Eight runs of 10,000 even keys each; a later run has newer values for some keys of earlier ones.
    let mut store = Store { runs: Vec::new(), uses_filters: false, reads: 0 };
    for run in 0..8u64 {
        let records = (0..10_000).map(|number| (2 * (run * 8000 + number), run)).collect();
        store.runs.push(Run::write(&folder.0.join(format!("run-{run}")), records)?);
    }

    // Half of what is asked for is there; odd keys never are.
    let asked: Vec<u64> = (0..10_000).map(|number| number * 13 % 132_000).collect();
    let without: Vec<Option<u64>> = asked.iter().map(|key| store.get(*key)).collect::<Result<_>>()?;
    let reads_without = std::mem::take(&mut store.reads);
    store.uses_filters = true;
    let with: Vec<Option<u64>> = asked.iter().map(|key| store.get(*key)).collect::<Result<_>>()?;

    let found = with.iter().flatten().count();
    let memory: u64 = store.runs.iter().map(|run| run.filter.info().memory_bits / 8).sum();
    println!("{} keys looked up in {} runs, {found} found", asked.len(), store.runs.len());
    println!("without filters: {reads_without} blocks read from disk");
    println!("with filters:    {} blocks read, {memory} bytes of filters for 80,000 records", store.reads);
    println!(
        "                 {} of them for nothing: a false positive costs a read, and no mistake",
        store.reads - found as u64
    );

    assert_eq!(with, without, "the same answers, newest values first");
    // Each of the other runs is read for nothing once in a hundred times.
    assert!(store.reads - (found as u64) < 10_000 * 8 / 100 * 3 / 2, "promised 1 %");
    assert!(store.reads * 8 < reads_without);
    Ok(())
}
