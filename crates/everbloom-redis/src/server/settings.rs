//! Settings that `CONFIG SET everbloom.NAME` changes, as safe statics.

use super::call::{Texts, bytes_of, harmless};
use super::raw::{self, api, config};
use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

/// A setting, and its value as 64 bits.
pub(crate) struct Setting {
    pub(crate) name: &'static CStr,
    pub(crate) sort: Sort,
    value: AtomicI64,
    /// What `CONFIG GET` is given of a fraction, which the server does not free.
    shown: AtomicPtr<raw::Text>,
}

/// What a setting takes.
#[derive(Clone, Copy)]
pub(crate) enum Sort {
    /// A whole number in a range.
    Number(i64, i64),
    /// An amount of memory in a range: `64mb` may be written.
    Memory(i64, i64),
    /// Yes or no.
    Flag,
    /// One of some words, which only counts when the module is loaded.
    Choice(&'static [&'static CStr]),
    /// A number with a fraction, which servers know as a text: what reads it, or says what is wrong with it.
    Fraction(fn(&[u8]) -> Result<f64, String>),
}

impl Setting {
    pub(crate) const fn new(name: &'static CStr, value: i64, sort: Sort) -> Self {
        Setting { name, sort, value: AtomicI64::new(value), shown: AtomicPtr::new(std::ptr::null_mut()) }
    }

    pub(crate) const fn fraction(name: &'static CStr, value: f64, read: fn(&[u8]) -> Result<f64, String>) -> Self {
        Setting::new(name, value.to_bits() as i64, Sort::Fraction(read))
    }

    /// The number; the place of the word of a choice; 0 for no.
    pub(crate) fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }

    pub(crate) fn get_fraction(&self) -> f64 {
        f64::from_bits(self.get() as u64)
    }

    pub(crate) fn set(&self, value: i64) {
        self.value.store(value, Relaxed);
    }

    pub(crate) fn set_fraction(&self, value: f64) {
        self.set(value.to_bits() as i64);
    }

    /// Tells the server; false if it refuses.
    pub(super) fn register(&'static self, context: *mut raw::Context) -> bool {
        let (name, value, none) = (self.name.as_ptr(), self.get(), std::ptr::null());
        let data = std::ptr::from_ref(self).cast_mut().cast();
        let number = |flags, least, most| {
            // SAFETY: the name is static, and so is what the callbacks are given; so below.
            unsafe {
                let register = api().RegisterNumericConfig;
                register(context, name, value, flags, least, most, get_number, set_number, none, data)
            }
        };
        let outcome = match self.sort {
            Sort::Number(least, most) => number(config::DEFAULT, least, most),
            Sort::Memory(least, most) => number(config::MEMORY, least, most),
            Sort::Flag => {
                let (register, value) = (api().RegisterBoolConfig, value as c_int);
                // SAFETY: as above.
                unsafe { register(context, name, value, config::DEFAULT, get_place, set_place, none, data) }
            }
            Sort::Choice(words) => {
                let words: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
                let places: Vec<c_int> = (0..words.len() as c_int).collect();
                let (known, places, count) = (words.as_ptr(), places.as_ptr(), words.len() as c_int);
                let (register, value, flags) = (api().RegisterEnumConfig, value as c_int, config::IMMUTABLE);
                // SAFETY: as above; the server copies the words.
                unsafe { register(context, name, value, flags, known, places, count, get_place, set_place, none, data) }
            }
            Sort::Fraction(_) => {
                let (register, value) = (api().RegisterStringConfig, harmless(&self.get_fraction().to_string()));
                let (value, flags) = (value.as_ptr(), config::DEFAULT);
                // SAFETY: as above; the server copies the value.
                unsafe { register(context, name, value, flags, get_text, set_text, none, data) }
            }
        };
        outcome == raw::OK
    }
}

/// The static that a setting was registered with.
///
/// # Safety
/// The pointer is the one that [`Setting::register`] handed to the server.
unsafe fn setting(data: *mut c_void) -> &'static Setting {
    // SAFETY: the caller's promise.
    unsafe { &*data.cast::<Setting>() }
}

extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: what was registered; so below.
    unsafe { setting(data) }.get()
}

extern "C" fn set_number(_: *const c_char, value: c_longlong, data: *mut c_void, _: *mut *mut raw::Text) -> c_int {
    // SAFETY: as above.
    unsafe { setting(data) }.set(value);
    raw::OK
}

extern "C" fn get_place(_: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { setting(data) }.get() as c_int
}

extern "C" fn set_place(_: *const c_char, value: c_int, data: *mut c_void, _: *mut *mut raw::Text) -> c_int {
    // SAFETY: as above.
    unsafe { setting(data) }.set(value.into());
    raw::OK
}

extern "C" fn get_text(_: *const c_char, data: *mut c_void) -> *mut raw::Text {
    // SAFETY: as above.
    unsafe { setting(data) }.shown.load(Relaxed)
}

extern "C" fn set_text(
    _: *const c_char,
    value: *mut raw::Text,
    data: *mut c_void,
    error: *mut *mut raw::Text,
) -> c_int {
    // SAFETY: as above.
    let setting = unsafe { setting(data) };
    let Sort::Fraction(read) = setting.sort else { return raw::ERR };
    // SAFETY: the server's string, which it keeps until this returns.
    let text = unsafe { bytes_of(value) };
    match read(text) {
        Ok(value) => {
            setting.set_fraction(value);
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
