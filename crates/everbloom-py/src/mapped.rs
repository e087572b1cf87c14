//! Bytes that somebody else holds: a mapped file, or a buffer of Python's. With `filter/guarded.rs` the place of the bindings with unsafe code.

use memmap2::Mmap;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What a view looks at, for as long as there are references to it.
pub(crate) enum Held {
    /// A file, shared with every process that maps it.
    File { path: PathBuf, file: File, map: Mmap },
    /// Memory of Python's, which does not move or go away while it is held.
    Buffer(PyBuffer<u8>),
    /// Bytes that did not begin at a multiple of 64, copied to where they do.
    Copied { bytes: Vec<u8>, start: usize },
}

/// A filter's bytes begin at such an address.
const ALIGNMENT: usize = 64;

impl Held {
    /// Maps a file, of which nothing is read yet.
    #[allow(unsafe_code)]
    pub(crate) fn map(path: &Path, file: File) -> std::io::Result<Self> {
        // SAFETY: the bytes are only read, and no reference to them outlives the mapping. Another process may change them
        // meanwhile, which makes answers wrong, not unsound: they are plain integers, and positions are computed from the
        // header's copy, not from them. A file that is cut short makes reads beyond its end fatal, which the documentation
        // says, and `check` looks for it before every batch.
        let map = unsafe { Mmap::map(&file) }?;
        // Keys are everywhere: reading ahead would bring in pages that nobody asks for. A hint, no more.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random);
        Ok(Held::File { path: path.to_path_buf(), file, map })
    }

    /// Holds a buffer, or a copy of it where it does not lie as a filter must.
    pub(crate) fn buffer(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<u8>::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("the buffer's bytes do not lie one after another; give bytes(buffer)"));
        }
        if (buffer.buf_ptr() as usize).is_multiple_of(ALIGNMENT) {
            return Ok(Held::Buffer(buffer));
        }
        let own = buffer.to_vec(object.py())?;
        let mut bytes = vec![0; own.len() + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        bytes[start..start + own.len()].copy_from_slice(&own);
        bytes.truncate(start + own.len());
        Ok(Held::Copied { bytes, start })
    }

    /// The bytes.
    #[allow(unsafe_code)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Held::File { map, .. } => map,
            Held::Copied { bytes, start } => &bytes[*start..],
            Held::Buffer(buffer) => {
                // SAFETY: Python keeps the memory where it is while the buffer is held, and it is held as long as `self`.
                // It is contiguous, and of so many bytes. Others may write to it, as to a mapped file: answers may then be
                // wrong, but every position is computed from the header's copy, and bytes of any value are bytes.
                unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) }
            }
        }
    }

    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Held::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Refuses to go on with a file that was cut short.
    pub(crate) fn check(&self) -> PyResult<()> {
        match self {
            Held::File { path, file, map } if file.metadata().map_or(true, |data| data.len() < map.len() as u64) => {
                let problem = format!("{} was cut short while it was in use; build it again", path.display());
                Err(PyValueError::new_err(problem))
            }
            _ => Ok(()),
        }
    }
}
