//! What is known of the files that were ever read with a state.

use crate::failure::{Failure, Result};
use crate::fault;
use crate::input::{Mark, Place, rereadable};
use std::fs::{File, Metadata};
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The marks of files, and the inputs that they are renewed for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    known: Vec<Mark>,
    inputs: Vec<Input>,
}

#[derive(Debug, Clone)]
struct Input {
    path: PathBuf,
    /// What it is now, if it can be read again.
    inode: Option<u64>,
    /// How many inputs before it are the same file.
    nth: usize,
}

impl Marks {
    /// The marks of a state, with the inputs of this run.
    pub(crate) fn new(known: Vec<Mark>, paths: &[PathBuf]) -> Result<Self> {
        let mut inputs: Vec<Input> = Vec::new();
        for path in paths {
            let data = rereadable(path).map_err(|error| Failure::io(path.display(), &error))?;
            let inode = data.map(|data| data.ino());
            let nth = inputs.iter().filter(|before| inode.is_some() && before.inode == inode).count();
            inputs.push(Input { path: path.clone(), inode, nth });
        }
        Ok(Marks { known, inputs })
    }

    /// The mark that a file had, if it still begins with all that was read of it.
    pub(crate) fn of_input(&self, input: usize) -> Result<Option<(&Mark, &Path)>> {
        let Some(Input { path, inode: Some(inode), nth }) = self.inputs.get(input) else { return Ok(None) };
        let Some(mark) = self.known.iter().find(|mark| mark.is_of(*inode, *nth)) else { return Ok(None) };
        let fits = fault::point("open").and_then(|()| File::open(path)).and_then(|file| mark.fits(&file));
        let fits = fits.map_err(|error| Failure::io(path.display(), &error))?;
        Ok(fits.then_some((mark, path.as_path())))
    }

    /// Files that were read by the name of an input, are called something else by now, and have more than was read of
    /// them: what each is called, what it was called, and how many bytes more.
    pub(crate) fn left_behind(&self) -> Vec<(PathBuf, PathBuf, u64)> {
        let mut found = Vec::new();
        for Input { path, inode, .. } in &self.inputs {
            let name = path.display().to_string();
            let is_read =
                |mark: &Mark| self.inputs.iter().any(|input| input.inode.is_some_and(|own| mark.is_of_inode(own)));
            let renamed: Vec<&Mark> = self.known.iter().filter(|mark| mark.name == name && !is_read(mark)).collect();
            if inode.is_none() || renamed.is_empty() {
                continue;
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // Whoever may not look there is not told: it is only a help.
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let Some(mark) = renamed.iter().find(|mark| mark.is_of_inode(entry.ino())) else { continue };
                let more = || {
                    let file =
                        entry.metadata().ok().filter(Metadata::is_file).and_then(|_| File::open(entry.path()).ok())?;
                    let length = file.metadata().ok()?.len();
                    (length > mark.stored && mark.fits(&file).ok()?).then_some(length - mark.stored)
                };
                if let Some(more) = more() {
                    found.push((path.with_file_name(entry.file_name()), path.clone(), more));
                }
            }
        }
        found
    }

    /// Which of the inputs has this very mark.
    pub(crate) fn input_of(&self, wanted: &Mark) -> Result<Option<usize>> {
        for input in 0..self.inputs.len() {
            if self.of_input(input)?.is_some_and(|(mark, _)| mark == wanted) {
                return Ok(Some(input));
            }
        }
        Ok(None)
    }

    /// Takes note of how far an input has been read.
    pub(crate) fn note(&mut self, place: &Place) -> Result<()> {
        let Some(mark) = self.mark(place)? else { return Ok(()) };
        match self.known.iter_mut().find(|known| known.is_renewed_by(&mark)) {
            Some(known) => *known = mark,
            None => self.known.push(mark),
        }
        Ok(())
    }

    /// Marks an input before its half line, which is to be read again.
    pub(crate) fn take_back(&mut self, input: usize) -> Result<()> {
        let Some((mark, path)) = self.of_input(input)? else { return Ok(()) };
        let file = fault::point("open").and_then(|()| File::open(path));
        let file = file.map_err(|error| Failure::io(path.display(), &error))?;
        let place = Place { file: Some(Arc::new(file)), ..mark.place(input) };
        self.note(&place)
    }

    pub(crate) fn mark(&self, place: &Place) -> Result<Option<Mark>> {
        let Some(Input { path, nth, .. }) = self.inputs.get(place.input) else { return Ok(None) };
        Mark::of(place, path, *nth).map_err(|error| Failure::io(path.display(), &error))
    }

    pub(crate) fn known(&self) -> Vec<Mark> {
        self.known.clone()
    }
}
