//! The server: all that this crate knows of its interface, and all of its unsafe code.
//!
//! [`raw`] declares what the server offers; [`call`] is what a command's handler sees of it, [`values`] what a data type
//! must do, [`settings`] and [`register`] are for the time of loading. Everything that they show is safe to use, and no
//! panic leaves through them.

mod alias;
mod call;
mod memory;
mod raw;
mod register;
mod settings;
mod values;

pub(crate) use call::{Call, Entry, Failure, Level, Reading, Writing};
pub(crate) use register::{InfoWriter, Loading};
pub(crate) use settings::{Setting, Sort};
pub(crate) use values::{Digest, Loader, Rewriter, Saver, TypeSlot, Value};

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a server calls to load the module.
///
/// # Safety
/// Called by a server, with a context of its own and so many strings.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
unsafe extern "C" fn RedisModule_OnLoad(context: *mut raw::Context, words: *mut *mut raw::Text, count: c_int) -> c_int {
    // SAFETY: the server's own context. Nothing is allocated before this.
    if let Err(missing) = unsafe { raw::load(context) } {
        eprintln!("everbloom: this server has no {missing}; take Redis 7.0 or newer, or Valkey");
        return raw::ERR;
    }
    log_panics();
    // SAFETY: the server passes so many strings, which stay while the module is loaded.
    let words = unsafe { raw::slice(words, count as usize) };
    let loaded = catch_unwind(AssertUnwindSafe(|| {
        let loading = Loading::new(context, words);
        let outcome = crate::register(&loading);
        if let Err(problem) = &outcome {
            loading.log(Level::Warning, problem);
        }
        outcome.is_ok()
    }));
    if loaded.unwrap_or(false) { raw::OK } else { raw::ERR }
}

/// Writes where a panic came from into the server's log; what becomes of it is decided where it is caught.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        call::log_at(std::ptr::null_mut(), Level::Warning, &format!("a defect of the everbloom module: {panic}"));
    }));
}
