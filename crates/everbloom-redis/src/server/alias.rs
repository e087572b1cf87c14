//! A second name in the server's list of modules.
//!
//! Tools that look for RedisBloom look for a module called `bf`, and some refuse to work without one, though all of its
//! commands are there. A module has one name, and ours gives settings and `INFO` theirs. So, once the server is up, the
//! library is loaded a second time under the other name, with nothing in it.

use super::call::{Level, log_at};
use super::raw::{self, api};
use super::register::Loading;
use std::ffi::{CStr, c_void};
use std::panic::catch_unwind;

/// The name that tools look for,
const NAME: &CStr = c"bf";
/// and the argument that stands before it when the library is loaded for its sake.
const ARGUMENT: &CStr = c"listed-as";

/// The version of RedisBloom whose commands and data `BF.*` has, as `MODULE LIST` shows it there.
const VERSION: i32 = 20_820;

impl Loading<'_> {
    /// Whether the library is loaded for its second name alone, which is then given.
    pub(crate) fn is_for_second_name(&self) -> bool {
        let is = self.arguments().eq([ARGUMENT.to_bytes(), NAME.to_bytes()]);
        if is {
            self.introduce(NAME, VERSION);
        }
        is
    }

    /// Adds the second name, once the server has read its configuration: `CONFIG REWRITE` writes it there.
    pub(crate) fn add_second_name(&self) {
        // SAFETY: the context is the one of the module that is being loaded; the callback needs no data.
        unsafe { (api().CreateTimer)(self.context(), 0, add, std::ptr::null_mut()) };
    }
}

extern "C" fn add(context: *mut raw::Context, _: *mut c_void) {
    // Without the name everything works but what looks for it.
    let _ = catch_unwind(|| {
        // SAFETY: the name ends with NUL.
        if unsafe { (api().IsModuleNameBusy)(NAME.as_ptr()) } == 0 && !load_again(context) {
            let name = NAME.to_string_lossy();
            log_at(context, Level::Notice, &format!("the server does not list everbloom as '{name}', too"));
        }
    });
}

/// Loads the library again, for its second name.
fn load_again(context: *mut raw::Context) -> bool {
    let mut from = raw::LoadedFrom {
        path: std::ptr::null(),
        base: std::ptr::null_mut(),
        symbol: std::ptr::null(),
        address: std::ptr::null_mut(),
    };
    // SAFETY: the address is that of a function of this library; there is room for what is told of it.
    if unsafe { raw::dladdr(add as *const c_void, &mut from) } == 0 || from.path.is_null() {
        return false;
    }
    // SAFETY: the format says that four strings follow, all of which end with NUL; the reply is given back.
    unsafe {
        let (argument, name) = (ARGUMENT.as_ptr(), NAME.as_ptr());
        let reply =
            (api().Call)(context, c"MODULE".as_ptr(), c"cccc".as_ptr(), c"LOAD".as_ptr(), from.path, argument, name);
        if reply.is_null() {
            return false;
        }
        let is_loaded = (api().CallReplyType)(reply) != raw::REPLY_ERROR;
        (api().FreeCallReply)(reply);
        is_loaded
    }
}
