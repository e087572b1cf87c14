//! Files: their names as Python gives them, read and written as a whole.

use crate::errors::io_error;
use pyo3::Borrowed;
use pyo3::prelude::*;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The name of a file: str, bytes or os.PathLike.
pub(crate) struct Name(pub(crate) PathBuf);

impl FromPyObject<'_, '_> for Name {
    type Error = PyErr;

    fn extract(name: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let text = name.py().import("os")?.call_method1("fsdecode", (name,))?;
        Ok(Name(text.extract()?))
    }
}

/// Refuses what is there and no regular file: a folder, and what would be waited for or written over.
fn check(path: &Path, remedy: &str) -> io::Result<()> {
    let data = fs::metadata(path)?;
    if data.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if data.is_file() { Ok(()) } else { Err(io::Error::other(format!("this is no regular file; {remedy}"))) }
}

/// Opens a regular file; other Python threads run meanwhile.
pub(crate) fn open(py: Python<'_>, path: &Path) -> PyResult<File> {
    let opened = py.detach(|| {
        check(path, "read its bytes and give them to from_bytes")?;
        File::open(path)
    });
    opened.map_err(|error| io_error(py, path, &error))
}

/// All bytes of a file.
pub(crate) fn contents(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    let mut file = open(py, path)?;
    let read = py.detach(|| {
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX)).map_err(io::Error::other)?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    read.map_err(|error: io::Error| io_error(py, path, &error))
}

/// What a name stands for once links are followed, be it there or not: a link stays one, and what it points to is replaced.
fn linked(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    // As many links as systems follow; a circle of them fails when it is opened.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    path
}

/// Writes a file aside and puts it in its place once it is whole and on disk.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let path = linked(path);
    match check(&path, "write what to_bytes gives to it") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".everbloom");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).map_or(0o666, |data| data.permissions().mode() & 0o777);
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let mut file = builder.tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(1 << 16, file.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    // The name is on disk with its folder; where a folder cannot be synced, it is when the system does it.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}
