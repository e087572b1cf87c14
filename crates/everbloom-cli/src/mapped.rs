//! Filter files mapped into memory: the one place of the command line with unsafe code.

use crate::failure::{Failure, Result};
use crate::{filter_file, state_file};
use everbloom::View;
use everbloom_all::KINDS;
use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A filter file in memory, shared with every process that maps it.
#[derive(Debug)]
pub(crate) struct Mapped {
    path: PathBuf,
    file: File,
    map: Mmap,
}

impl Mapped {
    /// Maps a file, of which nothing is read yet.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let fail = |error: std::io::Error| Failure::io(path.display(), &error);
        let (mut file, length) = filter_file::open(path)?;
        let length = state_file::filter_bytes(&mut file, length).map_err(fail)?;
        let length = usize::try_from(length).map_err(|_| Failure::at(path, "is larger than memory can be"))?;
        // SAFETY: the bytes are only read, and no reference to them outlives the mapping. Another process
        // may change them meanwhile, which makes answers wrong, not unsound: they are plain integers, and
        // positions are computed from the header's copy, not from them. Cutting the file short makes reads
        // beyond its end fatal, which the help says; `check` looks for it before every batch.
        let map = unsafe { MmapOptions::new().len(length).map(&file) }.map_err(fail)?;
        // Keys are everywhere: reading ahead would bring in pages that nobody asks for. A hint, no more.
        let _ = map.advise(memmap2::Advice::Random);
        Ok(Mapped { path: path.to_path_buf(), file, map })
    }

    /// The filter, its header checked.
    pub(crate) fn view(&self) -> Result<View<'_>> {
        View::open_among(KINDS, &self.map, None).map_err(|error| Failure::at(&self.path, error))
    }

    /// Refuses to go on with a file that was cut short.
    pub(crate) fn check(&self) -> Result<()> {
        match self.file.metadata() {
            Ok(data) if data.len() >= self.map.len() as u64 => Ok(()),
            _ => Err(Failure::at(&self.path, "was cut short while it was in use; build it again")),
        }
    }
}
