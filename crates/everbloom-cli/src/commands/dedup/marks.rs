//! What is known of the files that were ever read with a state.

use crate::input::{Mark, Place, rereadable};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The marks of files, and the inputs that they are renewed for.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
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

/// How a named file stands to its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// There is nothing new in it.
    None,
    /// Its last record, which had no ending, got one, and more may follow.
    Ended,
    /// Its last record went on.
    WentOn,
}

impl Marks {
    /// The marks of a state, with the inputs of this run.
    pub(super) fn new(known: Vec<Mark>, paths: &[PathBuf]) -> Self {
        let mut inputs: Vec<Input> = Vec::new();
        for path in paths {
            let inode = rereadable(path).map(|data| data.ino());
            let nth = inputs.iter().filter(|before| inode.is_some() && before.inode == inode).count();
            inputs.push(Input { path: path.clone(), inode, nth });
        }
        Marks { known, inputs }
    }

    /// The mark that a file had, if it still begins with all that was read of it.
    pub(super) fn of_input(&self, input: usize) -> Option<(&Mark, &Path)> {
        let Input { path, inode, nth } = self.inputs.get(input)?;
        let inode = (*inode)?;
        let mark = self.known.iter().find(|mark| mark.is_of(inode, *nth))?;
        mark.fits(&File::open(path).ok()?).then_some((mark, path.as_path()))
    }

    /// Which of the inputs has this mark.
    pub(super) fn input_of(&self, wanted: &Mark) -> Option<usize> {
        (0..self.inputs.len()).find(|input| self.of_input(*input).is_some_and(|(mark, _)| mark.is_renewed_by(wanted)))
    }

    /// Takes note of how far an input has been read.
    pub(super) fn note(&mut self, place: &Place) {
        let Some(mark) = self.mark(place) else { return };
        match self.known.iter_mut().find(|known| known.is_renewed_by(&mark)) {
            Some(known) => *known = mark,
            None => self.known.push(mark),
        }
    }

    pub(super) fn mark(&self, place: &Place) -> Option<Mark> {
        let input = self.inputs.get(place.input)?;
        Mark::of(place, &input.path, input.nth)
    }

    pub(super) fn known(&self) -> Vec<Mark> {
        self.known.clone()
    }
}

/// What became of the record without an ending that a file had.
pub(super) fn growth(mark: &Mark, path: &Path, ending: u8) -> io::Result<Growth> {
    let file = File::open(path)?;
    let mut next = [0];
    Ok(match file.read_at(&mut next, mark.stored)? {
        0 => Growth::None,
        _ if mark.is_plain() && mark.unfinished > 0 && next[0] == ending => Growth::Ended,
        _ => Growth::WentOn,
    })
}
