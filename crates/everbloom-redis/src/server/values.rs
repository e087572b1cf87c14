//! Data types: what a value must be able to do, and the callbacks that a server makes of it.

use super::call::{Level, Texts, log_at, memory_left};
use super::raw::{self, api, context};
use crate::report::COUNTERS;
use std::ffi::{CStr, c_int, c_void};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The longest string in a file: a server allocates each as a whole, and one of some gigabytes could not be sent.
pub(crate) const CHUNK_BYTES: usize = 16 << 20;

/// What a key holds. It may be freed by another thread.
pub(crate) trait Value: Sized + Send + 'static {
    /// The nine letters by which files and `TYPE` know it.
    const NAME: &'static CStr;
    /// The version of what [`Value::save`] writes, 0 to 1023.
    const VERSION: i32;

    /// Where the server's handle of the type is kept.
    fn slot() -> &'static TypeSlot;

    /// Writes it into an RDB file.
    fn save(&self, out: &mut Saver);

    /// Reads it back, or why it cannot be. Whatever may be in the file, it must not panic nor allocate more than it
    /// justifies.
    fn load(from: &mut Loader, version: i32) -> Result<Self, String>;

    /// Writes the commands that make it.
    fn rewrite(&self, out: &mut Rewriter);

    /// Adds all that makes two values differ.
    fn digest(&self, out: &mut Digest);

    /// The bytes that it takes.
    fn memory_usage(&self) -> usize;

    /// How much there is to free: above 64 the server does it in the background, where it can.
    fn free_effort(&self) -> usize {
        self.memory_usage() / 4096
    }

    /// A copy, or nothing if the memory for it is refused.
    fn copy(&self) -> Option<Self>;
}

/// The server's handle of a type, once it is registered.
pub(crate) struct TypeSlot(AtomicPtr<raw::Type>);

impl TypeSlot {
    /// Of a type that no server knows yet.
    pub(crate) const fn new() -> Self {
        TypeSlot(AtomicPtr::new(std::ptr::null_mut()))
    }

    #[inline]
    pub(super) fn get(&self) -> *mut raw::Type {
        self.0.load(Relaxed)
    }
}

/// Registers a type; false if there is one of this name.
///
/// # Safety
/// The context is that of a module that is being loaded.
pub(super) unsafe fn register<V: Value>(context: *mut raw::Context) -> bool {
    let mut methods = raw::TypeMethods {
        version: raw::TYPE_METHODS_VERSION,
        rdb_load: load::<V>,
        rdb_save: save::<V>,
        aof_rewrite: rewrite::<V>,
        mem_usage: memory_usage::<V>,
        digest: digest::<V>,
        free: free::<V>,
        aux_load: std::ptr::null(),
        aux_save: std::ptr::null(),
        aux_save_triggers: 0,
        free_effort: free_effort::<V>,
        unlink: std::ptr::null(),
        copy: copy::<V>,
        defrag: std::ptr::null(),
    };
    // SAFETY: the server copies the methods.
    let found = unsafe { (api().CreateDataType)(context, V::NAME.as_ptr(), V::VERSION, &mut methods) };
    V::slot().0.store(found, Relaxed);
    !found.is_null()
}

/// Runs a callback; a panic becomes nothing.
fn guarded<T>(what: &str, act: impl FnOnce() -> T) -> Option<T> {
    let outcome = catch_unwind(AssertUnwindSafe(act));
    if outcome.is_err() {
        COUNTERS.panics_caught.fetch_add(1, Relaxed);
        log_at(std::ptr::null_mut(), Level::Warning, &format!("a defect of the everbloom module was met while {what}"));
    }
    outcome.ok()
}

/// The value behind a server's pointer.
///
/// # Safety
/// The pointer is one that [`super::Writing::set`] or [`load`] handed to the server, and nobody changes the value
/// meanwhile.
unsafe fn value<'a, V: Value>(pointer: *const c_void) -> &'a V {
    // SAFETY: the caller's promise.
    unsafe { &*pointer.cast() }
}

extern "C" fn load<V: Value>(io: *mut raw::Io, version: c_int) -> *mut c_void {
    let loaded = guarded("loading a value", || V::load(&mut Loader { io }, version));
    let problem = match loaded {
        Some(Ok(value)) => return Box::into_raw(Box::new(value)).cast(),
        Some(Err(problem)) => problem,
        None => "a defect of the module".into(),
    };
    COUNTERS.loads_refused.fetch_add(1, Relaxed);
    let name = V::NAME.to_string_lossy();
    log_at(std::ptr::null_mut(), Level::Warning, &format!("a value of type {name} was refused: {problem}"));
    std::ptr::null_mut()
}

extern "C" fn save<V: Value>(io: *mut raw::Io, pointer: *mut c_void) {
    // SAFETY: the server's pointer to a value of this type; so in the callbacks below.
    let saved = guarded("saving a value", || unsafe { value::<V>(pointer) }.save(&mut Saver { io }));
    if saved.is_none() {
        end_child();
    }
}

extern "C" fn rewrite<V: Value>(io: *mut raw::Io, key: *mut raw::Text, pointer: *mut c_void) {
    let mut out = Rewriter { io, key };
    // SAFETY: as above.
    let written = guarded("writing a value as commands", || unsafe { value::<V>(pointer) }.rewrite(&mut out));
    if written.is_none() {
        end_child();
    }
}

/// A file that lacks a value must not take the place of one that has it: the child that writes it ends, and the server
/// keeps the old one. Without a child there is one payload, which ends early and is refused by whoever reads it.
fn end_child() {
    // SAFETY: no context is needed for what concerns the whole server.
    if unsafe { (api().GetContextFlags)(std::ptr::null_mut()) } & context::IS_CHILD != 0 {
        std::process::abort();
    }
}

extern "C" fn digest<V: Value>(sum: *mut raw::Digest, pointer: *mut c_void) {
    let mut out = Digest { sum };
    guarded("computing a digest", || {
        // SAFETY: as above.
        unsafe { value::<V>(pointer) }.digest(&mut out);
        // SAFETY: the server's own digest.
        unsafe { (api().DigestEndSequence)(out.sum) };
    });
}

extern "C" fn free<V: Value>(pointer: *mut c_void) {
    // SAFETY: the server gives the value up; it came from a box.
    guarded("freeing a value", || drop(unsafe { Box::from_raw(pointer.cast::<V>()) }));
}

extern "C" fn memory_usage<V: Value>(pointer: *const c_void) -> usize {
    // SAFETY: as above.
    guarded("telling the memory of a value", || unsafe { value::<V>(pointer) }.memory_usage()).unwrap_or(0)
}

extern "C" fn free_effort<V: Value>(_: *mut raw::Text, pointer: *const c_void) -> usize {
    // SAFETY: as above.
    guarded("telling the size of a value", || unsafe { value::<V>(pointer) }.free_effort()).unwrap_or(1)
}

extern "C" fn copy<V: Value>(_: *mut raw::Text, _: *mut raw::Text, pointer: *const c_void) -> *mut c_void {
    // SAFETY: as above.
    let copied = guarded("copying a value", || unsafe { value::<V>(pointer) }.copy()).flatten();
    copied.map_or(std::ptr::null_mut(), |copied| Box::into_raw(Box::new(copied)).cast())
}

/// Writes the fields of an RDB file.
pub(crate) struct Saver {
    io: *mut raw::Io,
}

impl Saver {
    /// A number.
    pub(crate) fn number(&mut self, number: u64) {
        // SAFETY: the file is the one that is being written; so below.
        unsafe { (api().SaveUnsigned)(self.io, number) };
    }

    /// A fraction.
    pub(crate) fn double(&mut self, number: f64) {
        // SAFETY: as above.
        unsafe { (api().SaveDouble)(self.io, number) };
    }

    /// A string.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above.
        unsafe { (api().SaveStringBuffer)(self.io, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// What `write` writes, in strings of at most [`CHUNK_BYTES`].
    pub(crate) fn stream(&mut self, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
        let mut chunks = Chunks { take: |chunk: &[u8]| self.bytes(chunk), held: Vec::new() };
        write(&mut chunks)?;
        chunks.flush()
    }
}

/// Collects what is written into chunks of one length, but for the last.
pub(super) struct Chunks<T: FnMut(&[u8])> {
    pub(super) take: T,
    pub(super) held: Vec<u8>,
}

impl<T: FnMut(&[u8])> Write for Chunks<T> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // A whole chunk is handed on as it lies.
        if self.held.is_empty() && bytes.len() >= CHUNK_BYTES {
            (self.take)(&bytes[..CHUNK_BYTES]);
            return Ok(CHUNK_BYTES);
        }
        let part = bytes.len().min(CHUNK_BYTES - self.held.len());
        self.held.extend_from_slice(&bytes[..part]);
        if self.held.len() == CHUNK_BYTES {
            (self.take)(&self.held);
            self.held.clear();
        }
        Ok(part)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if !self.held.is_empty() {
            (self.take)(&self.held);
            self.held.clear();
        }
        Ok(())
    }
}

/// Reads the fields of an RDB file, or of what `RESTORE` is given. Each may be missing.
pub(crate) struct Loader {
    io: *mut raw::Io,
}

const ENDS_EARLY: &str = "the data ends early";

impl Loader {
    /// Whether the limits of a user hold: a `RESTORE`, and not a file that is loaded, nor what a primary sent.
    pub(crate) fn is_limited(&self) -> bool {
        // SAFETY: no context is needed for what concerns the whole server.
        let flags = unsafe { (api().GetContextFlags)(std::ptr::null_mut()) };
        flags & (context::LOADING | context::REPLICA) == 0
    }

    /// Bytes that may be allocated before `maxmemory` is passed, if there is one.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        memory_left(std::ptr::null_mut())
    }

    fn sound<T>(&self, field: T) -> Result<T, String> {
        // SAFETY: the file is the one that is being read; so below.
        if unsafe { (api().IsIOError)(self.io) } == 0 { Ok(field) } else { Err(ENDS_EARLY.into()) }
    }

    /// A number.
    pub(crate) fn number(&mut self) -> Result<u64, String> {
        // SAFETY: as above.
        let number = unsafe { (api().LoadUnsigned)(self.io) };
        self.sound(number)
    }

    /// A fraction.
    pub(crate) fn double(&mut self) -> Result<f64, String> {
        // SAFETY: as above.
        let number = unsafe { (api().LoadDouble)(self.io) };
        self.sound(number)
    }

    /// A string.
    pub(crate) fn bytes(&mut self) -> Result<Loaded, String> {
        let mut length = 0;
        // SAFETY: as above.
        let start = unsafe { (api().LoadStringBuffer)(self.io, &mut length) };
        if start.is_null() {
            return Err(ENDS_EARLY.into());
        }
        self.sound(Loaded { start: start.cast(), length })
    }

    /// Strings that together have so many bytes, as one reader.
    pub(crate) fn stream(&mut self, length: u64) -> ChunkReader<Loaded, impl FnMut() -> Result<Loaded, String>> {
        ChunkReader::new(length, || self.bytes())
    }
}

/// A string that the server allocated.
pub(crate) struct Loaded {
    start: *mut u8,
    length: usize,
}

impl std::ops::Deref for Loaded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the server gave so many bytes.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the string is ours to free.
        unsafe { (api().Free)(self.start.cast()) };
    }
}

/// Reads strings one after another, each of which must have something and none of which may go beyond the end.
pub(crate) struct ChunkReader<C, N> {
    next: N,
    held: Option<(C, usize)>,
    /// Bytes that are not yet loaded.
    left: u64,
}

impl<C: std::ops::Deref<Target = [u8]>, N: FnMut() -> Result<C, String>> ChunkReader<C, N> {
    fn new(length: u64, next: N) -> Self {
        ChunkReader { next, held: None, left: length }
    }

    /// Refuses what nobody read.
    pub(crate) fn finish(self) -> Result<(), String> {
        let is_read = self.held.is_none_or(|(chunk, at)| chunk.len() == at);
        if self.left == 0 && is_read { Ok(()) } else { Err("more data than the filter has".into()) }
    }
}

impl<C: std::ops::Deref<Target = [u8]>, N: FnMut() -> Result<C, String>> Read for ChunkReader<C, N> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.held.as_ref().is_none_or(|(chunk, at)| chunk.len() == *at) {
            self.held = None;
            if self.left == 0 {
                return Ok(0);
            }
            let chunk = (self.next)().map_err(std::io::Error::other)?;
            let length = chunk.len() as u64;
            if length == 0 || length > self.left {
                return Err(std::io::Error::other("the parts of the data do not make up its length"));
            }
            self.left -= length;
            self.held = Some((chunk, 0));
        }
        let Some((chunk, at)) = &mut self.held else { return Ok(0) };
        let count = out.len().min(chunk.len() - *at);
        out[..count].copy_from_slice(&chunk[*at..*at + count]);
        *at += count;
        Ok(count)
    }
}

/// Writes the commands that make a value.
pub(crate) struct Rewriter {
    io: *mut raw::Io,
    key: *mut raw::Text,
}

impl Rewriter {
    /// A command about the key: its words behind the key.
    pub(crate) fn command<'w>(&mut self, command: &CStr, words: impl IntoIterator<Item = &'w [u8]>) {
        let words = Texts::of(words);
        // SAFETY: the format says that a string, an array of strings and its length follow.
        unsafe {
            (api().EmitAOF)(self.io, command.as_ptr(), c"sv".as_ptr(), self.key, words.0.as_ptr(), words.0.len());
        }
    }
}

/// Sums up what a value is.
pub(crate) struct Digest {
    sum: *mut raw::Digest,
}

impl Digest {
    /// A number.
    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Some bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the server's own digest.
        unsafe { (api().DigestAddStringBuffer)(self.sum, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// What `write` writes, however it is cut.
    pub(crate) fn stream(&mut self, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
        let mut chunks = Chunks { take: |chunk: &[u8]| self.bytes(chunk), held: Vec::new() };
        write(&mut chunks)?;
        chunks.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(length: u64, chunks: &[&[u8]]) -> Result<Vec<u8>, String> {
        let mut chunks = chunks.iter();
        let next = || chunks.next().map(|chunk| chunk.to_vec()).ok_or(ENDS_EARLY.to_string());
        let mut reader = ChunkReader::new(length, next);
        let mut bytes = vec![0; length as usize];
        reader.read_exact(&mut bytes).map_err(|error| error.to_string())?;
        reader.finish().map(|()| bytes)
    }

    #[test]
    fn strings_are_read_as_one() {
        assert_eq!(read_all(6, &[b"ab", b"c", b"def"]), Ok(b"abcdef".to_vec()));
        assert_eq!(read_all(0, &[]), Ok(Vec::new()));
    }

    #[test]
    fn strings_that_are_not_what_the_length_says_are_refused() {
        for chunks in [&[b"ab".as_slice(), b""][..], &[b"ab", b"cdefg"], &[b"ab"], &[]] {
            assert!(read_all(6, chunks).is_err(), "{chunks:?}");
        }
        let mut reader = ChunkReader::new(6, || Ok(b"abc".to_vec()));
        reader.read_exact(&mut [0; 2]).expect("there is more");
        assert!(reader.finish().is_err(), "nobody read the rest");
    }

    #[test]
    fn writer_makes_equal_chunks_of_any_pieces() {
        let bytes: Vec<u8> = (0..2 * CHUNK_BYTES + 5).map(|index| index as u8).collect();
        for piece in [1 << 20, CHUNK_BYTES - 1, CHUNK_BYTES, bytes.len()] {
            let mut lengths = Vec::new();
            let mut found = Vec::new();
            let take = |chunk: &[u8]| {
                lengths.push(chunk.len());
                found.extend_from_slice(chunk);
            };
            let mut chunks = Chunks { take, held: Vec::new() };
            bytes.chunks(piece).for_each(|piece| chunks.write_all(piece).expect("it takes all"));
            chunks.flush().expect("it takes all");
            drop(chunks);
            assert_eq!(lengths, [CHUNK_BYTES, CHUNK_BYTES, 5], "pieces of {piece}");
            assert!(found == bytes, "pieces of {piece}");
        }
    }
}
