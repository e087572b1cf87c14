//! What the handler of a command sees: its arguments, the keys that it names, and how it answers.

use super::raw::{self, api, context};
use super::values::Value;
use crate::report::COUNTERS;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_longlong};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

/// Why a command is refused. Nothing was changed.
#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    /// The whole reply, with its code: `ERR …`.
    Error(String),
    /// The key holds something else.
    WrongType,
    /// Too few or too many words.
    Arity,
}

impl Failure {
    /// `ERR ` and the sentence.
    pub(crate) fn new(sentence: impl std::fmt::Display) -> Self {
        Failure::Error(format!("ERR {sentence}"))
    }

    /// The key is there already.
    pub(crate) fn busy() -> Self {
        Failure::Error("BUSYKEY Target key name already exists.".into())
    }
}

/// A command at work.
pub(crate) struct Call<'a> {
    context: *mut raw::Context,
    words: &'a [*mut raw::Text],
    /// Keys that are open for reading, or -1 if one is open for writing.
    open: Cell<isize>,
}

impl<'a> Call<'a> {
    /// How many words the command has, its own name included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// A word; the command's own name is the first. Empty beyond the last.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> &'a [u8] {
        // SAFETY: the words of a command outlive its handler, and `'a` is no longer.
        self.words.get(index).map_or(&[], |text| unsafe { bytes_of(*text) })
    }

    /// The words from one on.
    #[inline]
    pub(crate) fn words_from(&self, index: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        // SAFETY: as above.
        self.words.get(index..).unwrap_or_default().iter().map(|text| unsafe { bytes_of(*text) })
    }

    /// Whether the command must be carried out whatever local limits say: it was replicated, is read from an append-only
    /// file, or moves a slot here.
    pub(crate) fn must_obey(&self) -> bool {
        // SAFETY: the context is the one of this call.
        unsafe {
            (api().GetContextFlags)(self.context) & (context::REPLICATED | context::LOADING) != 0
                || api().MustObeyClient.is_some_and(|must_obey| must_obey(self.context) != 0)
        }
    }

    /// The clock of the server, in milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        // SAFETY: it takes nothing.
        unsafe { (api().Milliseconds)() }
    }

    /// 64 bits of the server's randomness.
    pub(crate) fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        // SAFETY: there is room for so many.
        unsafe { (api().GetRandomBytes)(bytes.as_mut_ptr(), bytes.len()) };
        u64::from_le_bytes(bytes)
    }

    /// Bytes that may still be allocated before `maxmemory` is passed; `None` if there is none. Where the server makes
    /// room by evicting keys, all of `maxmemory` may be.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        memory_left(self.context)
    }

    /// Writes into the server's log.
    pub(crate) fn log(&self, level: Level, message: &str) {
        log_at(self.context, level, message);
    }

    /// The value of a key, to look at; `None` if there is no such key.
    pub(crate) fn read<V: Value>(&self, index: usize) -> Result<Option<Reading<'_, V>>, Failure> {
        if self.open.get() < 0 {
            return Err(Failure::new("the key is open already"));
        }
        let Some(key) = self.open_key(index, raw::READ) else { return Ok(None) };
        let Some(value) = key.value::<V>()? else { return Ok(None) };
        self.open.set(self.open.get() + 1);
        Ok(Some(Reading { value, _key: key, open: &self.open, lent: PhantomData }))
    }

    /// A key, to change its value or to give it one.
    pub(crate) fn write<V: Value>(&self, index: usize) -> Result<Writing<'_, V>, Failure> {
        if self.open.get() != 0 {
            return Err(Failure::new("the key is open already"));
        }
        let Some(key) = self.open_key(index, raw::READ | raw::WRITE) else { return Err(Failure::Arity) };
        let value = key.value::<V>()?;
        self.open.set(-1);
        Ok(Writing { value, key, open: &self.open, lent: PhantomData })
    }

    fn open_key(&self, index: usize, mode: c_int) -> Option<OpenKey> {
        let name = *self.words.get(index)?;
        // SAFETY: context and name are of this call.
        let key = unsafe { (api().OpenKey)(self.context, name, mode) };
        (!key.is_null()).then_some(OpenKey(key))
    }

    /// Replicates the command as it came.
    pub(crate) fn replicate_verbatim(&self) {
        // SAFETY: the context is the one of this call.
        unsafe { (api().ReplicateVerbatim)(self.context) };
    }

    /// Replicates these words instead.
    pub(crate) fn replicate<'w>(&self, command: &CStr, words: impl IntoIterator<Item = &'w [u8]>) {
        let words = Texts::of(words);
        // SAFETY: the format says that an array of strings and its length follow.
        unsafe {
            (api().Replicate)(self.context, command.as_ptr(), c"v".as_ptr(), words.0.as_ptr(), words.0.len());
        }
    }

    /// Tells who listens that something happened to a key.
    pub(crate) fn notify(&self, event: &CStr, index: usize) {
        if let Some(name) = self.words.get(index) {
            // SAFETY: context and name are of this call.
            unsafe { (api().NotifyKeyspaceEvent)(self.context, raw::NOTIFY_GENERIC, event.as_ptr(), *name) };
        }
    }

    /// Replies `OK`.
    pub(crate) fn reply_ok(&self) {
        self.reply_status(c"OK");
    }

    /// Replies a simple string.
    pub(crate) fn reply_status(&self, status: &CStr) {
        // SAFETY: the context is the one of this call; so for the replies below.
        unsafe { (api().ReplyWithSimpleString)(self.context, status.as_ptr()) };
    }

    /// Replies yes or no: 1 and 0 in RESP2.
    #[inline]
    pub(crate) fn reply_bool(&self, yes: bool) {
        // SAFETY: as above.
        unsafe { (api().ReplyWithBool)(self.context, yes.into()) };
    }

    /// Replies a number; more than 2^63 − 1 is said as that.
    pub(crate) fn reply_number(&self, number: u64) {
        self.reply_integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Replies a number.
    pub(crate) fn reply_integer(&self, number: i64) {
        // SAFETY: as above.
        unsafe { (api().ReplyWithLongLong)(self.context, number as c_longlong) };
    }

    /// Replies a fraction: a string in RESP2, as short as it can be, where the server would write 17 digits.
    pub(crate) fn reply_double(&self, number: f64) {
        match self.is_resp3() {
            false if number != 0.0 && number.abs() < 1e-4 => self.reply_bulk(format!("{number:e}").as_bytes()),
            false => self.reply_bulk(number.to_string().as_bytes()),
            // SAFETY: as above.
            true => _ = unsafe { (api().ReplyWithDouble)(self.context, number) },
        }
    }

    /// Whether the client speaks RESP3, which has maps, numbers and truth values of its own.
    pub(crate) fn is_resp3(&self) -> bool {
        // SAFETY: as above.
        unsafe { (api().GetContextFlags)(self.context) & context::RESP3 != 0 }
    }

    /// Replies bytes.
    pub(crate) fn reply_bulk(&self, bytes: &[u8]) {
        // SAFETY: as above.
        unsafe { (api().ReplyWithStringBuffer)(self.context, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Replies that there is nothing.
    pub(crate) fn reply_null(&self) {
        // SAFETY: as above.
        unsafe { (api().ReplyWithNull)(self.context) };
    }

    /// Begins an array; so many replies must follow.
    pub(crate) fn reply_array(&self, length: usize) {
        // SAFETY: as above.
        unsafe { (api().ReplyWithArray)(self.context, length as c_long) };
    }

    /// Begins a map; so many pairs of replies must follow. A flat array in RESP2.
    pub(crate) fn reply_map(&self, pairs: usize) {
        // SAFETY: as above.
        unsafe { (api().ReplyWithMap)(self.context, pairs as c_long) };
    }

    /// Replies an error, as a whole reply or as a part of an array: code and sentence.
    pub(crate) fn reply_error(&self, error: &str) {
        let error = harmless(error);
        // SAFETY: as above.
        unsafe { (api().ReplyWithError)(self.context, error.as_ptr()) };
    }

    fn fail(&self, failure: Failure) {
        match failure {
            Failure::Error(error) => self.reply_error(&error),
            Failure::WrongType => {
                self.reply_error("WRONGTYPE Operation against a key holding the wrong kind of value");
            }
            // SAFETY: as above.
            Failure::Arity => _ = unsafe { (api().WrongArity)(self.context) },
        }
    }
}

/// What [`Call::memory_left`] says, with a context or none.
pub(super) fn memory_left(context: *mut raw::Context) -> Option<u64> {
    // SAFETY: the context is that of a call, or none, which the server allows here; its answer is given back.
    unsafe {
        let flags = (api().GetContextFlags)(context);
        if flags & context::MAXMEMORY == 0 {
            return None;
        }
        let info = (api().GetServerInfo)(context, c"memory".as_ptr());
        let field = |name: &CStr| (api().ServerInfoGetFieldUnsigned)(info, name.as_ptr(), std::ptr::null_mut());
        let (most, used) = (field(c"maxmemory"), field(c"used_memory"));
        (api().FreeServerInfo)(context, info);
        Some(if flags & context::EVICT != 0 { most } else { most.saturating_sub(used) })
    }
}

/// A text as the server takes it: one line, which ends.
pub(super) fn harmless(text: &str) -> CString {
    // A NUL is a control character, and gone.
    CString::new(everbloom::kind::harmless(text)).unwrap_or_default()
}

/// How loud a line of the log is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    /// For the record.
    Notice,
    /// Something is wrong.
    Warning,
}

pub(super) fn log_at(context: *mut raw::Context, level: Level, message: &str) {
    let level = match level {
        Level::Notice => c"notice",
        Level::Warning => c"warning",
    };
    let message = harmless(message);
    // SAFETY: a context of the server or none; the format says that one string follows.
    unsafe { (api().Log)(context, level.as_ptr(), c"%s".as_ptr(), message.as_ptr()) };
}

/// The bytes of a string of the server.
///
/// # Safety
/// The string lives as long as what borrows from it, and the server does not change it meanwhile: an argument of a call or
/// a callback, until that is done.
#[inline(always)]
pub(super) unsafe fn bytes_of<'a>(text: *const raw::Text) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller's promise; the server gives so many bytes.
    unsafe {
        let start = (api().StringPtrLen)(text, &mut length);
        raw::slice(start.cast(), length)
    }
}

/// Strings of the server that are given back.
pub(super) struct Texts(pub(super) Vec<*mut raw::Text>);

impl Texts {
    pub(super) fn of<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> Self {
        Texts(words.into_iter().map(Self::one).collect())
    }

    pub(super) fn one(word: &[u8]) -> *mut raw::Text {
        // SAFETY: the server copies so many bytes.
        unsafe { (api().CreateString)(std::ptr::null_mut(), word.as_ptr().cast::<c_char>(), word.len()) }
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        for text in &self.0 {
            // SAFETY: they were created without a context, and nobody else frees them.
            unsafe { (api().FreeString)(std::ptr::null_mut(), *text) };
        }
    }
}

struct OpenKey(*mut raw::Key);

impl OpenKey {
    /// The value, which is a `V`; nothing if there is none. Another type is an error.
    #[inline]
    fn value<V: Value>(&self) -> Result<Option<NonNull<V>>, Failure> {
        let api = api();
        // SAFETY: the key is open.
        unsafe {
            let found = (api.ModuleTypeGetType)(self.0);
            if !found.is_null() && found == V::slot().get() {
                return Ok(NonNull::new((api.ModuleTypeGetValue)(self.0).cast()));
            }
            if (api.KeyType)(self.0) == raw::KEYTYPE_EMPTY { Ok(None) } else { Err(Failure::WrongType) }
        }
    }
}

impl Drop for OpenKey {
    fn drop(&mut self) {
        // SAFETY: the key is open, and closed once.
        unsafe { (api().CloseKey)(self.0) };
    }
}

/// A value that is looked at. No key is open for writing meanwhile.
pub(crate) struct Reading<'c, V> {
    value: NonNull<V>,
    _key: OpenKey,
    open: &'c Cell<isize>,
    lent: PhantomData<&'c V>,
}

impl<V: Value> std::ops::Deref for Reading<'_, V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        // SAFETY: the type was checked when the key was opened, and nobody changes a value while a key is read.
        unsafe { self.value.as_ref() }
    }
}

impl<V> Drop for Reading<'_, V> {
    fn drop(&mut self) {
        self.open.set(self.open.get() - 1);
    }
}

/// A key that is changed. No other key is open meanwhile.
pub(crate) struct Writing<'c, V> {
    value: Option<NonNull<V>>,
    key: OpenKey,
    open: &'c Cell<isize>,
    lent: PhantomData<&'c mut V>,
}

impl<V: Value> Writing<'_, V> {
    /// The value, if there is one.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<&mut V> {
        // SAFETY: the type was checked when the key was opened or is that of what was set; no other key is open.
        self.value.as_mut().map(|value| unsafe { value.as_mut() })
    }

    /// Gives the key a value, instead of what it has.
    pub(crate) fn set(&mut self, value: V) {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the key is open for writing; the value is a `V` in a box, as the callbacks of its type expect.
        let taken = unsafe { (api().ModuleTypeSetValue)(self.key.0, V::slot().get(), value.cast()) } == raw::OK;
        match taken {
            true => self.value = NonNull::new(value),
            // SAFETY: the server did not take it.
            false => drop(unsafe { Box::from_raw(value) }),
        }
    }
}

impl<V> Drop for Writing<'_, V> {
    fn drop(&mut self) {
        self.open.set(0);
    }
}

/// What a handler is: its words in, a reply or a failure out.
pub(crate) trait Handler: Fn(&mut Call<'_>) -> Result<(), Failure> + Copy + 'static {}
impl<H: Fn(&mut Call<'_>) -> Result<(), Failure> + Copy + 'static> Handler for H {}

/// A handler as the server calls it: a panic is caught, and answered with an error.
#[derive(Clone, Copy)]
pub(crate) struct Entry(pub(super) raw::CommandFunction);

impl Entry {
    /// A handler that changes nothing.
    pub(crate) const fn reading<H: Handler>(handler: H) -> Self {
        Self::writing(handler, nothing_to_repair)
    }

    /// A handler that changes something; `repair` is called after a panic, so that copies of the value elsewhere become
    /// what it is here.
    pub(crate) const fn writing<H: Handler, R: Handler>(handler: H, repair: R) -> Self {
        // Functions have no size: their type alone says which they are.
        const { assert!(size_of::<H>() == 0 && size_of::<R>() == 0) };
        let _ = (handler, repair);
        Entry(serve::<H, R>)
    }
}

fn nothing_to_repair(_: &mut Call<'_>) -> Result<(), Failure> {
    Ok(())
}

/// The function of a type that has no size.
fn witness<H: Handler>() -> H {
    const { assert!(size_of::<H>() == 0) };
    // SAFETY: nothing is read, since there is no size, and `Entry` was given one.
    unsafe { NonNull::<H>::dangling().read() }
}

extern "C" fn serve<H: Handler, R: Handler>(
    context: *mut raw::Context,
    words: *mut *mut raw::Text,
    count: c_int,
) -> c_int {
    // SAFETY: the server passes so many strings, which stay where they are until the command is done.
    let words = unsafe { raw::slice(words, count as usize) };
    let outcome = catch_unwind(|| {
        let mut call = Call { context, words, open: Cell::new(0) };
        if let Err(failure) = witness::<H>()(&mut call) {
            call.fail(failure);
        }
    });
    if outcome.is_err() {
        after_panic(context, words, witness::<R>());
    }
    raw::OK
}

#[cold]
#[inline(never)]
fn after_panic<R: Handler>(context: *mut raw::Context, words: &[*mut raw::Text], repair: R) {
    COUNTERS.panics_caught.fetch_add(1, Relaxed);
    let mut call = Call { context, words, open: Cell::new(0) };
    let name = String::from_utf8_lossy(call.word(0)).into_owned();
    call.reply_error(&format!(
        "ERR {name} failed for a defect of the everbloom module; the server's log has the place"
    ));
    let repaired = catch_unwind(AssertUnwindSafe(|| repair(&mut call)));
    if !matches!(repaired, Ok(Ok(()))) {
        call.log(Level::Warning, &format!("after a defect in {name}, replicas may differ; let them synchronise anew"));
    }
}
