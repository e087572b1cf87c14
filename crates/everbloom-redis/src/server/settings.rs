//! Settings that `CONFIG SET everbloom.NAME` changes, as safe statics.

use super::call::{Texts, bytes_of, harmless};
use super::raw::{self, api, config};
use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU64, Ordering::Relaxed};

/// A whole number, or an amount of memory.
pub(crate) struct Number {
    pub(crate) name: &'static CStr,
    pub(crate) range: (i64, i64),
    /// Whether `64mb` may be written.
    pub(crate) is_memory: bool,
    value: AtomicI64,
}

impl Number {
    pub(crate) const fn new(name: &'static CStr, value: i64, range: (i64, i64), is_memory: bool) -> Self {
        Number { name, range, is_memory, value: AtomicI64::new(value) }
    }

    pub(crate) fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }

    /// Before the server knows it.
    pub(crate) fn set(&self, value: i64) {
        self.value.store(value, Relaxed);
    }

    pub(super) fn register(&'static self, context: *mut raw::Context) -> bool {
        let flags = if self.is_memory { config::MEMORY } else { config::DEFAULT };
        let data = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the name is static, and so is what the callbacks are given.
        let outcome = unsafe {
            (api().RegisterNumericConfig)(
                context,
                self.name.as_ptr(),
                self.get(),
                flags,
                self.range.0,
                self.range.1,
                get_number,
                set_number,
                std::ptr::null(),
                data,
            )
        };
        outcome == raw::OK
    }
}

/// The static that a setting was registered with.
///
/// # Safety
/// The pointer is the one that [`Number::register`] and the like handed to the server, for a setting of this type.
unsafe fn setting<T>(data: *mut c_void) -> &'static T {
    // SAFETY: the caller's promise.
    unsafe { &*data.cast::<T>() }
}

extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: registered with a `Number`; the others likewise.
    unsafe { setting::<Number>(data) }.get()
}

extern "C" fn set_number(_: *const c_char, value: c_longlong, data: *mut c_void, _: *mut *mut raw::Text) -> c_int {
    // SAFETY: as above.
    unsafe { setting::<Number>(data) }.set(value);
    raw::OK
}

/// Yes or no.
pub(crate) struct Flag {
    pub(crate) name: &'static CStr,
    value: AtomicBool,
}

impl Flag {
    pub(crate) const fn new(name: &'static CStr, value: bool) -> Self {
        Flag { name, value: AtomicBool::new(value) }
    }

    pub(crate) fn get(&self) -> bool {
        self.value.load(Relaxed)
    }

    /// Before the server knows it.
    pub(crate) fn set(&self, value: bool) {
        self.value.store(value, Relaxed);
    }

    pub(super) fn register(&'static self, context: *mut raw::Context) -> bool {
        let data = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the name is static, and so is what the callbacks are given.
        let outcome = unsafe {
            let (name, none) = (self.name.as_ptr(), std::ptr::null());
            (api().RegisterBoolConfig)(
                context,
                name,
                self.get().into(),
                config::DEFAULT,
                get_flag,
                set_flag,
                none,
                data,
            )
        };
        outcome == raw::OK
    }
}

extern "C" fn get_flag(_: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { setting::<Flag>(data) }.get().into()
}

extern "C" fn set_flag(_: *const c_char, value: c_int, data: *mut c_void, _: *mut *mut raw::Text) -> c_int {
    // SAFETY: as above.
    unsafe { setting::<Flag>(data) }.set(value != 0);
    raw::OK
}

/// One of some words, which only counts when the module is loaded.
pub(crate) struct Choice {
    pub(crate) name: &'static CStr,
    pub(crate) words: &'static [&'static CStr],
    value: AtomicI32,
}

impl Choice {
    pub(crate) const fn new(name: &'static CStr, words: &'static [&'static CStr], value: i32) -> Self {
        Choice { name, words, value: AtomicI32::new(value) }
    }

    /// The place of the word that holds.
    pub(crate) fn get(&self) -> usize {
        self.value.load(Relaxed) as usize
    }

    /// Before the server knows it.
    pub(crate) fn set(&self, place: usize) {
        self.value.store(place as i32, Relaxed);
    }

    pub(super) fn register(&'static self, context: *mut raw::Context) -> bool {
        let words: Vec<*const c_char> = self.words.iter().map(|word| word.as_ptr()).collect();
        let places: Vec<c_int> = (0..words.len() as c_int).collect();
        let data = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the name is static, and so is what the callbacks are given; the server copies the words.
        let outcome = unsafe {
            (api().RegisterEnumConfig)(
                context,
                self.name.as_ptr(),
                self.value.load(Relaxed),
                config::IMMUTABLE,
                words.as_ptr(),
                places.as_ptr(),
                words.len() as c_int,
                get_choice,
                set_choice,
                std::ptr::null(),
                data,
            )
        };
        outcome == raw::OK
    }
}

extern "C" fn get_choice(_: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { setting::<Choice>(data) }.value.load(Relaxed)
}

extern "C" fn set_choice(_: *const c_char, value: c_int, data: *mut c_void, _: *mut *mut raw::Text) -> c_int {
    // SAFETY: as above.
    unsafe { setting::<Choice>(data) }.value.store(value, Relaxed);
    raw::OK
}

/// A number with a fraction, which servers know as a text.
pub(crate) struct Fraction {
    pub(crate) name: &'static CStr,
    /// Reads it, or says what is wrong with it.
    pub(crate) read: fn(&[u8]) -> Result<f64, String>,
    bits: AtomicU64,
    /// What `CONFIG GET` is given, which the server does not free.
    shown: AtomicPtr<raw::Text>,
}

impl Fraction {
    pub(crate) const fn new(name: &'static CStr, value: f64, read: fn(&[u8]) -> Result<f64, String>) -> Self {
        Fraction { name, read, bits: AtomicU64::new(value.to_bits()), shown: AtomicPtr::new(std::ptr::null_mut()) }
    }

    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Relaxed))
    }

    /// Before the server knows it.
    pub(crate) fn set(&self, value: f64) {
        self.bits.store(value.to_bits(), Relaxed);
    }

    pub(super) fn register(&'static self, context: *mut raw::Context) -> bool {
        let value = harmless(&self.get().to_string());
        let data = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the name is static, and so is what the callbacks are given; the server copies the value.
        let outcome = unsafe {
            (api().RegisterStringConfig)(
                context,
                self.name.as_ptr(),
                value.as_ptr(),
                config::DEFAULT,
                get_fraction,
                set_fraction,
                std::ptr::null(),
                data,
            )
        };
        outcome == raw::OK
    }
}

extern "C" fn get_fraction(_: *const c_char, data: *mut c_void) -> *mut raw::Text {
    // SAFETY: as above.
    unsafe { setting::<Fraction>(data) }.shown.load(Relaxed)
}

extern "C" fn set_fraction(
    _: *const c_char,
    value: *mut raw::Text,
    data: *mut c_void,
    error: *mut *mut raw::Text,
) -> c_int {
    // SAFETY: as above.
    let setting = unsafe { setting::<Fraction>(data) };
    // SAFETY: the server's string, which it keeps until this returns.
    let text = unsafe { bytes_of(value) };
    match (setting.read)(text) {
        Ok(value) => {
            setting.set(value);
            let before = setting.shown.swap(Texts::one(text), Relaxed);
            if !before.is_null() {
                // SAFETY: it was created here, and nobody has it any more.
                unsafe { (api().FreeString)(std::ptr::null_mut(), before) };
            }
            raw::OK
        }
        Err(problem) => {
            // SAFETY: the server gives room for a string, which it frees.
            unsafe { error.write(Texts::one(harmless(&problem).as_bytes())) };
            raw::ERR
        }
    }
}
