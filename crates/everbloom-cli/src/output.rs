//! Bytes out: stdout in large writes, and files that are whole or not there.

use crate::failure::{Failure, Result};
use crate::fault::{self, Fallible};
use crate::input::is_stdin;
use crate::{descriptors, platform};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Writes are this large.
const BUFFER_BYTES: usize = 256 << 10;

/// Stdout without the line buffering of the standard library.
pub(crate) fn raw_stdout() -> Result<File> {
    let stdout = descriptors::check_stdout().and_then(|()| io::stdout().as_fd().try_clone_to_owned());
    stdout.map(File::from).map_err(|error| Failure::io("stdout", &error))
}

/// Buffered stdout.
pub(crate) struct Stdout(BufWriter<Fallible<File>>);

impl Stdout {
    /// Stdout, buffered.
    pub(crate) fn new() -> Result<Self> {
        Ok(Stdout(BufWriter::with_capacity(BUFFER_BYTES, Fallible(raw_stdout()?))))
    }

    /// Writes bytes, sooner or later.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|error| Failure::io("stdout", &error))
    }

    /// For whoever writes piece by piece.
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        &mut self.0
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    /// Writes what has gathered.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(|error| Failure::io("stdout", &error))
    }
}

/// Prints text on stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = Stdout::new()?;
    stdout.write(text.as_bytes())?;
    stdout.finish()
}

/// Refuses, before anything is read, a file that could not be written in the end, or that is one of the inputs: stdin, if
/// none is named.
pub(crate) fn check(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    if inputs.is_empty() { check_beside(output, &["-".into()]) } else { check_beside(output, inputs) }
}

/// Refuses an output that could not be written, or that is one of the files that are read beside the input, if there are any.
pub(crate) fn check_beside(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    let folder = folder_of(&linked(output));
    if descriptor_of(output).is_none() && !folder.is_dir() {
        return Err(Failure::at(output, format!("there is no folder {}; make it first", folder.display())));
    }
    let target = Place::of_output(output);
    let reads_stdin = inputs.iter().any(|input| is_stdin(input));
    if target.is_some() && reads_stdin && Place::of_descriptor(io::stdin()) == target {
        return Err(Failure::at(output, "is also read as stdin; write to another file"));
    }
    match inputs.iter().filter(|input| !is_stdin(input)).find(|input| target.is_some() && Place::of(input) == target) {
        Some(input) => Err(Failure::at(output, format!("is also read as {}; write to another file", input.display()))),
        None => Ok(()),
    }
}

/// Refuses a file that another process writes to: to replace it would take away what that one writes. Where files cannot be
/// opened or locked, nothing is known of others.
pub(crate) fn refuse_in_use(output: &Path) -> Result<()> {
    let is_file = platform::stat(output).ok().flatten().is_some_and(|data| data.is_file());
    let file = (is_file && descriptor_of(output).is_none()).then(|| File::open(output).ok()).flatten();
    match file.is_none_or(|file| platform::try_lock(&file).unwrap_or(true)) {
        true => Ok(()),
        false => Err(Failure::at(output, "is in use by another process; wait for it, or name another file")),
    }
}

/// Refuses stdout where it is a file that is read, or named for something else: one would write over the other.
pub(crate) fn refuse_stdout(inputs: &[PathBuf], outputs: &[&PathBuf]) -> Result<()> {
    let Some(stdout) = Place::of_descriptor(io::stdout()) else { return Ok(()) };
    let reads_stdin = inputs.is_empty() || inputs.iter().any(|input| is_stdin(input));
    if reads_stdin && Place::of_descriptor(io::stdin()).as_ref() == Some(&stdout) {
        return Err(Failure::new("stdout: is also read as stdin; write to another file"));
    }
    let is_it = |path: &&PathBuf| !is_dash(path) && Place::of(path).as_ref() == Some(&stdout);
    let read = inputs.iter().find(is_it).map(|path| format!("is also read as {}", path.display()));
    let named = || outputs.iter().find(|path| is_it(path)).map(|path| format!("is also written as {}", path.display()));
    match read.or_else(named) {
        Some(problem) => Err(Failure::new(format!("stdout: {problem}; write to another file"))),
        None => Ok(()),
    }
}

/// Refuses two outputs in one file.
pub(crate) fn refuse_same(outputs: &[&PathBuf]) -> Result<()> {
    let places: Vec<Option<Place>> = outputs.iter().map(|path| Place::of_output(path)).collect();
    for (index, output) in outputs.iter().enumerate() {
        if let Some(other) = (0..index).find(|other| places[index].is_some() && places[*other] == places[index]) {
            let problem =
                format!("is the same file as {}, named for another output; name two files", outputs[other].display());
            return Err(Failure::at(output, problem));
        }
    }
    Ok(())
}

/// Whether an output is stdout: `-`, or what systems call it. Opened by such a name, a file that stdout appends to would
/// be written from its beginning.
pub(crate) fn is_dash(path: &Path) -> bool {
    descriptor_of(path) == Some(1)
}

/// The number of what is open already that a path leads to: of stderr for `/dev/stderr`, say, or a link to it. It is
/// written to as it is, at its end.
pub(crate) fn descriptor_of(path: &Path) -> Option<u32> {
    if path.as_os_str() == "-" {
        return Some(1);
    }
    let own = fs::canonicalize("/proc/self/fd").ok();
    let is_open = |path: &PathBuf| {
        let folder = folder_of(path);
        folder == Path::new("/dev/fd") || own.is_some() && fs::canonicalize(&folder).ok() == own
    };
    platform::links(path).find(is_open)?.file_name()?.to_str()?.parse().ok()
}

/// Refuses `-` for an output where stdout is taken.
pub(crate) fn refuse_dash(path: &Path, option: &str, why: &str, remedy: &str) -> Result<()> {
    match is_dash(path) {
        true => Err(Failure::new(format!("{option} - would write to stdout, {why}; {remedy}"))),
        false => Ok(()),
    }
}

/// What a path leads to, if that is a file, or would be one.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A file that is there, by whatever name.
    File((u64, u64)),
    /// A name in a folder.
    New((u64, u64), OsString),
}

impl Place {
    fn of_descriptor(descriptor: impl AsFd) -> Option<Self> {
        let data = File::from(descriptor.as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        data.is_file().then(|| Place::File(platform::identity(&data)))
    }

    fn of_output(path: &Path) -> Option<Self> {
        if is_dash(path) { Place::of_descriptor(io::stdout()) } else { Place::of(path) }
    }

    fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(data) => data.is_file().then(|| Place::File(platform::identity(&data))),
            Err(_) => {
                let path = linked(path);
                let folder = fs::metadata(folder_of(&path)).ok()?;
                Some(Place::New(platform::identity(&folder), path.file_name()?.to_os_string()))
            }
        }
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_path_buf()
}

/// Replaces a file by what `write` writes, or leaves it as it was.
///
/// The bytes go to a file beside it, which is synced and only then renamed. What is not a regular
/// file (`/dev/stderr`, a named pipe) is written to directly, and `-` is stdout.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    replace_held(path, |_| Ok(()), write).map(drop)
}

/// Replaces a file by a text, which may be shown.
pub(crate) fn replace_text(path: &Path, text: &str) -> Result<()> {
    if is_dash(path) { print(text) } else { replace(path, |out| out.write_all(text.as_bytes())) }
}

/// Replaces a file, with something done to the new one before it gets its name; gives that file.
pub(crate) fn replace_held(
    path: &Path,
    prepare: impl FnOnce(&File) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Option<File>> {
    if is_dash(path) {
        return to_stdout(write).map(|()| None);
    }
    let result = platform::stat(path).and_then(|existing| match existing {
        Some(data) if !data.is_file() || descriptor_of(path).is_some() => {
            let opened = fault::point("open").and_then(|()| File::options().append(true).open(path));
            opened.and_then(|file| write_into(&file, write)).map(|()| None)
        }
        existing => replace_file(path, existing.as_ref(), prepare, write).map(Some),
    });
    result.map_err(|error| match Failure::io(path.display(), &error) {
        // Only stdout may be left by its reader without a word.
        Failure::ClosedPipe => Failure::reader_gone(path.display()),
        failure => failure,
    })
}

/// Writes to stdout, unless a person would see the bytes of a file.
fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let stdout = raw_stdout()?;
    if stdout.is_terminal() {
        return Err(Failure::new("stdout is a terminal, and what is written is not text; name a file, or pipe it on"));
    }
    write_into(&stdout, write).map_err(|error| Failure::io("stdout", &error))
}

fn replace_file(
    path: &Path,
    existing: Option<&fs::Metadata>,
    prepare: impl FnOnce(&File) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    // A link keeps pointing to the file; the file is what is replaced.
    fault::point("stat")?;
    let path = if existing.is_some() { fs::canonicalize(path)? } else { linked(path) };
    fault::point("create")?;
    let folder = folder_of(&path);
    let mut named = tempfile::Builder::new();
    named.prefix(".everbloom-").permissions(platform::permissions_of_new_files());
    // Without a name it is gone whatever ends us; else under one that nobody can have put there before.
    let (file, name) = match platform::unnamed_file(&folder) {
        Some(file) => (file, None),
        None => named.tempfile_in(&folder).map(|aside| aside.into_parts()).map(|(file, name)| (file, Some(name)))?,
    };
    prepare(&file)?;
    write_into(&file, write)?;
    if let Some(existing) = existing {
        fault::point("chmod")?;
        file.set_permissions(existing.permissions())?;
    }
    fault::point("rename")?;
    let name = match name {
        Some(name) => name,
        None => named.make_in(&folder, |name| platform::name_file(&file, name))?.into_temp_path(),
    };
    name.persist(&path)?;
    sync_directory(&path)?;
    Ok(file)
}

/// Where a link leads that leads to nothing yet.
fn linked(path: &Path) -> PathBuf {
    platform::links(path).last().unwrap_or_else(|| path.to_path_buf())
}

fn write_into(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(BUFFER_BYTES, Fallible(file));
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    match platform::data_of(file)?.is_file() {
        true => fault::point("sync").and_then(|()| file.sync_all()),
        false => Ok(()),
    }
}

/// A rename is only safe on disk once its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    fault::point("open")?;
    let folder = File::open(folder_of(path))?;
    fault::point("sync")?;
    folder.sync_all()
}
