//! One process at a time works with a state.
//!
//! The lock is on the state file itself. Saving puts another file in its place, which is locked before it gets the name, so
//! that there is no moment in which the name leads to a file that nobody holds.

use crate::failure::{Failure, Result};
use crate::{fault, output, platform};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A state file that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// Whether there was no file.
    is_new: bool,
    /// What holds the lock.
    file: Mutex<File>,
}

impl Lock {
    /// Takes the state at `path`, which need not be there yet, or says who has it.
    pub(crate) fn take(path: &Path) -> Result<Self> {
        loop {
            // A pipe would be waited for when it is opened.
            let named = platform::stat(path).map_err(|error| Failure::io(path.display(), &error))?;
            if named.is_some_and(|named| !named.is_file() && !named.is_dir()) {
                return Err(Failure::at(path, "is not a regular file; name one for the state"));
            }
            let (file, is_new) = open_or_create(path).map_err(|error| Failure::io(path.display(), &error))?;
            let data = platform::data_of(&file).map_err(|error| Failure::io(path.display(), &error))?;
            if data.is_dir() {
                return Err(Failure::at(path, "is a directory; name a file for the state"));
            }
            if !data.is_file() {
                return Err(Failure::at(path, "is not a regular file; name one for the state"));
            }
            if !platform::try_lock(&file).map_err(|error| Failure::io(path.display(), &error))? {
                let who = super::process_of(&file).map_or("another process".into(), |id| format!("process {id}"));
                let remedy = "wait for it, or name another state file";
                return Err(Failure::at(path, format!("the state is in use by {who}; {remedy}")));
            }
            // Another process may have put a file in its place before it let go of this one.
            if platform::leads_to(path, &data).map_err(|error| Failure::io(path.display(), &error))? {
                return Ok(Lock { path: path.to_path_buf(), is_new, file: Mutex::new(file) });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there was no file at its path.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The state as it is.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }

    /// Replaces the state, and holds what takes its place.
    pub(crate) fn replace(&self, write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<()> {
        let taken = |file: &File| match platform::try_lock(file)? {
            true => Ok(()),
            false => Err(io::Error::other("somebody else locked a file that is not finished")),
        };
        if let Some(file) = output::replace_held(&self.path, taken, write)? {
            *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        }
        Ok(())
    }
}

impl Drop for Lock {
    /// Leaves no empty file where there was none.
    fn drop(&mut self) {
        let is_empty = self.file().and_then(|file| file.metadata()).is_ok_and(|data| data.len() == 0);
        if is_empty {
            // An empty file is no state, so that it does no harm if it stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file, and whether there was none.
fn open_or_create(path: &Path) -> io::Result<(File, bool)> {
    fault::point("open")?;
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fault::point("create")?;
            let created = File::options().read(true).write(true).create(true).truncate(false).open(path);
            created.map(|file| (file, true))
        }
        opened => opened.map(|file| (file, false)),
    }
}
