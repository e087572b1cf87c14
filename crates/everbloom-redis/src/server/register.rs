//! What a module tells the server while it is loaded.

use super::call::{Level, bytes_of, log_at};
use super::raw::{self, api, keys, options};
use super::settings::Setting;
use super::values::{self, Value};
use crate::command::{Argument, Command, Keys, Role, Takes};
use crate::report;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The module while it is loaded.
pub(crate) struct Loading<'a> {
    context: *mut raw::Context,
    words: &'a [*mut raw::Text],
}

impl<'a> Loading<'a> {
    pub(super) fn new(context: *mut raw::Context, words: &'a [*mut raw::Text]) -> Self {
        Loading { context, words }
    }

    pub(super) fn context(&self) -> *mut raw::Context {
        self.context
    }

    /// The arguments of `MODULE LOAD` or `loadmodule`.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // SAFETY: the module's arguments outlive its loading.
        self.words.iter().map(|word| unsafe { bytes_of(*word) })
    }

    /// Writes into the server's log.
    pub(crate) fn log(&self, level: Level, message: &str) {
        log_at(self.context, level, message);
    }

    /// Says who the module is and what it can cope with.
    pub(crate) fn introduce(&self, name: &CStr, version: i32) {
        let slots = if api().is_valkey { options::HANDLE_ATOMIC_SLOT_MIGRATION } else { 0 };
        // SAFETY: the context is the one of the module that is being loaded; so below.
        unsafe {
            (api().SetModuleAttribs)(self.context, name.as_ptr(), version, raw::API_VERSION);
            (api().SetModuleOptions)(self.context, options::HANDLE_IO_ERRORS | options::HANDLE_REPL_ASYNC_LOAD | slots);
        }
    }

    /// Registers settings; false if the server refuses one.
    pub(crate) fn settings(&self, settings: &[&'static Setting]) -> bool {
        settings.iter().all(|setting| setting.register(self.context))
            // SAFETY: as above. Takes over what the server's configuration file says.
            && unsafe { (api().LoadConfigs)(self.context) } == raw::OK
    }

    /// Registers a data type; false if there is one of this name.
    pub(crate) fn value_type<V: Value>(&self) -> bool {
        // SAFETY: as above.
        unsafe { values::register::<V>(self.context) }
    }

    /// Adds a category for access control, where the server has such.
    pub(crate) fn category(&self, name: &CStr) {
        if let Some(add) = api().AddACLCategory {
            // SAFETY: as above.
            unsafe { add(self.context, name.as_ptr()) };
        }
    }

    /// Creates a command; false if there is one of this name.
    pub(crate) fn command(&self, command: &Command) -> bool {
        let first = command.keys.first().map_or((0, 0, 0), |keys| match keys.many {
            true => (keys.first, -1, 1),
            false => (keys.first, keys.first, 1),
        });
        let (name, flags) = (command.name.as_ptr(), command.flags.as_ptr());
        // SAFETY: as above; the server copies the strings.
        let created =
            unsafe { (api().CreateCommand)(self.context, name, command.entry.0, flags, first.0, first.1, first.2) };
        if created != raw::OK {
            return false;
        }
        // SAFETY: as above.
        let handle = unsafe { (api().GetCommand)(self.context, name) };
        if handle.is_null() {
            return false;
        }
        if !describe(handle, command) {
            let name = command.name.to_string_lossy();
            self.log(Level::Warning, &format!("the server does not take the documentation of {name}"));
        }
        if let Some(set) = api().SetCommandACLCategories {
            // SAFETY: the command is the one that was created.
            unsafe { set(handle, command.categories.as_ptr()) };
        }
        true
    }

    /// Adds what the module has to say to `INFO`.
    pub(crate) fn info(&self) {
        // SAFETY: as above.
        unsafe { (api().RegisterInfoFunc)(self.context, info) };
    }
}

/// Tells `COMMAND DOCS`, and the server where the keys are.
fn describe(handle: *mut raw::CommandHandle, command: &Command) -> bool {
    let mut specs: Vec<raw::CommandKeySpec> = command.keys.iter().map(key_spec).collect();
    specs.push(NO_KEY_SPEC);
    let arguments = Arguments::of(command.arguments);
    let info = raw::CommandInfo {
        version: &raw::COMMAND_INFO_VERSION,
        summary: command.summary.as_ptr(),
        complexity: command.complexity.as_ptr(),
        since: c"0.1.0".as_ptr(),
        history: std::ptr::null(),
        tips: std::ptr::null(),
        arity: command.arity,
        key_specs: if command.keys.is_empty() { std::ptr::null() } else { specs.as_ptr() },
        arguments: arguments.list.as_ptr(),
    };
    // SAFETY: both lists end with an entry that is all zero, and the server copies everything.
    unsafe { (api().SetCommandInfo)(handle, &info) == raw::OK }
}

const NO_KEY_SPEC: raw::CommandKeySpec = raw::CommandKeySpec {
    notes: std::ptr::null(),
    flags: 0,
    begin_search: 0,
    begin: raw::KeySpecBegin { position: 0, rest: [0; 3] },
    find_keys: 0,
    range: raw::KeySpecRange { last_key: 0, step: 0, limit: 0 },
};

fn key_spec(keys: &Keys) -> raw::CommandKeySpec {
    let flags = match keys.role {
        Role::Asked => keys::RO | keys::ACCESS,
        Role::Added => keys::RW | keys::INSERT,
        Role::Changed => keys::RW | keys::UPDATE,
        Role::Deleted => keys::RW | keys::DELETE,
    };
    raw::CommandKeySpec {
        flags,
        begin_search: raw::BEGIN_AT_INDEX,
        begin: raw::KeySpecBegin { position: keys.first, rest: [0; 3] },
        find_keys: raw::FIND_BY_RANGE,
        range: raw::KeySpecRange { last_key: if keys.many { -1 } else { 0 }, step: 1, limit: 0 },
        ..NO_KEY_SPEC
    }
}

/// A list of arguments as the server takes it, with the lists that it points to.
struct Arguments {
    list: Vec<raw::CommandArgument>,
    _parts: Vec<Arguments>,
}

impl Arguments {
    fn of(arguments: &[Argument]) -> Self {
        let parts: Vec<Arguments> = arguments.iter().map(|argument| Arguments::of(argument.parts())).collect();
        let list = arguments.iter().zip(&parts).map(|(argument, parts)| raw_argument(argument, parts));
        Arguments { list: list.chain([NO_ARGUMENT]).collect(), _parts: parts }
    }
}

const NO_ARGUMENT: raw::CommandArgument = raw::CommandArgument {
    name: std::ptr::null(),
    kind: 0,
    key_spec: 0,
    token: std::ptr::null(),
    summary: std::ptr::null(),
    since: std::ptr::null(),
    flags: 0,
    deprecated_since: std::ptr::null(),
    parts: std::ptr::null(),
    display: std::ptr::null(),
};

fn raw_argument(argument: &Argument, parts: &Arguments) -> raw::CommandArgument {
    let (kind, key_spec) = match argument.takes {
        Takes::Text => (0, -1),
        Takes::Integer => (1, -1),
        Takes::Double => (2, -1),
        Takes::Key(spec) => (3, spec),
        Takes::Nothing => (6, -1),
        Takes::OneOf(_) => (7, -1),
        Takes::Block(_) => (8, -1),
    };
    let optional = if argument.is_optional { raw::ARGUMENT_OPTIONAL } else { 0 };
    let multiple = if argument.is_multiple { raw::ARGUMENT_MULTIPLE } else { 0 };
    raw::CommandArgument {
        name: argument.name.as_ptr(),
        kind,
        key_spec,
        token: argument.token.map_or(std::ptr::null(), CStr::as_ptr),
        flags: optional | multiple,
        parts: if argument.parts().is_empty() { std::ptr::null() } else { parts.list.as_ptr() },
        ..NO_ARGUMENT
    }
}

extern "C" fn info(info: *mut raw::Info, _for_crash_report: c_int) {
    // SAFETY: the server's own answer; without a name the section has the module's.
    if unsafe { (api().InfoAddSection)(info, std::ptr::null::<c_char>()) } != raw::OK {
        return;
    }
    // A report is nothing to end a server for.
    let _ = catch_unwind(AssertUnwindSafe(|| report::write(&mut InfoWriter { info })));
}

/// Writes the module's section of `INFO`.
pub(crate) struct InfoWriter {
    info: *mut raw::Info,
}

impl InfoWriter {
    /// A field.
    pub(crate) fn number(&mut self, name: &str, value: u64) {
        let Ok(name) = CString::new(name) else { return };
        // SAFETY: the answer that is being written.
        unsafe { (api().InfoAddFieldULongLong)(self.info, name.as_ptr(), value) };
    }

    /// A field.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) else { return };
        // SAFETY: as above.
        unsafe { (api().InfoAddFieldCString)(self.info, name.as_ptr(), value.as_ptr()) };
    }
}
