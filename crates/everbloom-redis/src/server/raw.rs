//! What a server offers to modules: the types, constants and functions that this crate uses, declared by hand.
//!
//! By hand, because nothing else builds with a Rust tool chain alone: the published bindings want libclang, a C compiler
//! and eighty crates, ask for functions at load time that Redis 7.0 does not have, and allocate a string object for every
//! argument. What is declared here is a small part of an interface that only ever grows: functions are asked for by
//! name, structures carry their version, constants keep their values.
//!
//! A server hands one function over: the first word of a context is [`GetApi`], which finds all others. Redis knows them
//! as `RedisModule_…`; Valkey knows most under both names and the newest as `ValkeyModule_…` only. What may be
//! missing is an `Option`.

use std::ffi::{c_char, c_double, c_int, c_longlong, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// Types that only the server looks into.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub(super) struct $name([u8; 0]);
    )*};
}
opaque! {
    /// Where a command or a callback runs.
    Context;
    /// A string of the server.
    Text;
    /// An open key.
    Key;
    /// A data type.
    Type;
    /// A file that is saved or loaded.
    Io;
    /// A digest that is being computed.
    Digest;
    /// The answer to `INFO` that is being written.
    Info;
    /// A command that was created.
    CommandHandle;
    /// The server's own `INFO`.
    ServerInfo;
    /// The reply to a command that the module gave.
    Reply;
}

pub(super) const OK: c_int = 0;
pub(super) const ERR: c_int = 1;
pub(super) const API_VERSION: c_int = 1;

pub(super) const READ: c_int = 1 << 0;
pub(super) const WRITE: c_int = 1 << 1;
pub(super) const KEYTYPE_EMPTY: c_int = 0;

/// What [`Api::GetContextFlags`] says.
pub(super) mod context {
    use std::ffi::c_int;

    pub(crate) const REPLICA: c_int = 1 << 3;
    pub(crate) const MAXMEMORY: c_int = 1 << 8;
    pub(crate) const EVICT: c_int = 1 << 9;
    pub(crate) const REPLICATED: c_int = 1 << 12;
    pub(crate) const LOADING: c_int = 1 << 13;
    pub(crate) const IS_CHILD: c_int = 1 << 20;
    pub(crate) const RESP3: c_int = 1 << 22;
}

/// The class of our keyspace events: those of generic commands, as valkey-bloom's are.
pub(super) const NOTIFY_GENERIC: c_int = 1 << 2;

/// What a module can cope with.
pub(super) mod options {
    use std::ffi::c_int;

    /// A file that ends early is an error of the load function, not the end of the server.
    pub(crate) const HANDLE_IO_ERRORS: c_int = 1 << 0;
    /// Loading beside the data that is served: there are no globals but counters.
    pub(crate) const HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;
    /// Slots that move as commands; Valkey's alone, the bit may mean something else elsewhere.
    pub(crate) const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;
}

/// How a setting is treated.
pub(super) mod config {
    use std::ffi::c_uint;

    pub(crate) const DEFAULT: c_uint = 0;
    pub(crate) const IMMUTABLE: c_uint = 1 << 0;
    pub(crate) const MEMORY: c_uint = 1 << 7;
}

/// What a command does with a key.
pub(super) mod keys {
    pub(crate) const RO: u64 = 1 << 0;
    pub(crate) const RW: u64 = 1 << 1;
    pub(crate) const ACCESS: u64 = 1 << 4;
    pub(crate) const UPDATE: u64 = 1 << 5;
    pub(crate) const INSERT: u64 = 1 << 6;
    pub(crate) const DELETE: u64 = 1 << 7;
}
pub(super) const BEGIN_AT_INDEX: c_int = 2;
pub(super) const FIND_BY_RANGE: c_int = 2;

pub(super) const ARGUMENT_OPTIONAL: c_int = 1 << 0;
pub(super) const ARGUMENT_MULTIPLE: c_int = 1 << 1;

pub(super) type CommandFunction = extern "C" fn(*mut Context, *mut *mut Text, c_int) -> c_int;
pub(super) type InfoFunction = extern "C" fn(*mut Info, c_int);
pub(super) type TimerFunction = extern "C" fn(*mut Context, *mut c_void);

pub(super) const REPLY_ERROR: c_int = 1;

/// The callbacks of a data type, in the version of Redis 6.2.
#[repr(C)]
pub(super) struct TypeMethods {
    pub(super) version: u64,
    pub(super) rdb_load: extern "C" fn(*mut Io, c_int) -> *mut c_void,
    pub(super) rdb_save: extern "C" fn(*mut Io, *mut c_void),
    pub(super) aof_rewrite: extern "C" fn(*mut Io, *mut Text, *mut c_void),
    pub(super) mem_usage: extern "C" fn(*const c_void) -> usize,
    pub(super) digest: extern "C" fn(*mut Digest, *mut c_void),
    pub(super) free: extern "C" fn(*mut c_void),
    pub(super) aux_load: *const c_void,
    pub(super) aux_save: *const c_void,
    pub(super) aux_save_triggers: c_int,
    pub(super) free_effort: extern "C" fn(*mut Text, *const c_void) -> usize,
    pub(super) unlink: *const c_void,
    pub(super) copy: extern "C" fn(*mut Text, *mut Text, *const c_void) -> *mut c_void,
    pub(super) defrag: *const c_void,
}
pub(super) const TYPE_METHODS_VERSION: u64 = 3;

/// The sizes by which a server knows how its caller was compiled.
#[repr(C)]
pub(super) struct CommandInfoVersion {
    pub(super) version: c_int,
    pub(super) history_bytes: usize,
    pub(super) key_spec_bytes: usize,
    pub(super) argument_bytes: usize,
}

// SAFETY: numbers.
unsafe impl Sync for CommandInfoVersion {}

pub(super) static COMMAND_INFO_VERSION: CommandInfoVersion = CommandInfoVersion {
    version: 1,
    history_bytes: 2 * size_of::<*const c_char>(),
    key_spec_bytes: size_of::<CommandKeySpec>(),
    argument_bytes: size_of::<CommandArgument>(),
};

#[repr(C)]
pub(super) struct CommandInfo {
    pub(super) version: *const CommandInfoVersion,
    pub(super) summary: *const c_char,
    pub(super) complexity: *const c_char,
    pub(super) since: *const c_char,
    pub(super) history: *const c_void,
    pub(super) tips: *const c_char,
    pub(super) arity: c_int,
    pub(super) key_specs: *const CommandKeySpec,
    pub(super) arguments: *const CommandArgument,
}

/// Where a command has its keys. Of the two unions only one side each is used; the padding is what the other takes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct CommandKeySpec {
    pub(super) notes: *const c_char,
    pub(super) flags: u64,
    pub(super) begin_search: c_int,
    pub(super) begin: KeySpecBegin,
    pub(super) find_keys: c_int,
    pub(super) range: KeySpecRange,
}

/// `index.pos`, in a union with a pointer and a number.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct KeySpecBegin {
    pub(super) position: c_int,
    pub(super) rest: [c_int; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct KeySpecRange {
    pub(super) last_key: c_int,
    pub(super) step: c_int,
    pub(super) limit: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct CommandArgument {
    pub(super) name: *const c_char,
    pub(super) kind: c_int,
    pub(super) key_spec: c_int,
    pub(super) token: *const c_char,
    pub(super) summary: *const c_char,
    pub(super) since: *const c_char,
    pub(super) flags: c_int,
    pub(super) deprecated_since: *const c_char,
    pub(super) parts: *const CommandArgument,
    pub(super) display: *const c_char,
}

pub(super) type GetNumber = extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
pub(super) type SetNumber = extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut Text) -> c_int;
pub(super) type GetText = extern "C" fn(*const c_char, *mut c_void) -> *mut Text;
pub(super) type SetText = extern "C" fn(*const c_char, *mut Text, *mut c_void, *mut *mut Text) -> c_int;
pub(super) type GetFlag = extern "C" fn(*const c_char, *mut c_void) -> c_int;
pub(super) type SetFlag = extern "C" fn(*const c_char, c_int, *mut c_void, *mut *mut Text) -> c_int;

/// Finds a function by its name.
type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;

/// Declares the table of functions and how it is filled.
macro_rules! api {
    (
        needed { $($needed:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)* }
        variadic { $($open:ident: fn($($first:ty),*) $(-> $closed:ty)?;)* }
        optional { $($optional:ident: fn($($of:ty),*) $(-> $out:ty)?;)* }
    ) => {
        /// The server's functions, by the names that its documentation has.
        #[allow(non_snake_case)]
        pub(super) struct Api {
            $(pub(super) $needed: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
            $(pub(super) $open: unsafe extern "C" fn($($first),*, ...) $(-> $closed)?,)*
            $(pub(super) $optional: Option<unsafe extern "C" fn($($of),*) $(-> $out)?>,)*
            pub(super) is_valkey: bool,
        }

        impl Api {
            /// Asks for all of them; the name of the first that the server lacks.
            fn found(get: GetApi) -> Result<Api, &'static str> {
                // SAFETY: each function has the type that the server's documentation gives it.
                unsafe {
                    Ok(Api {
                        $($needed: find(get, names!($needed)).ok_or(stringify!($needed))?,)*
                        $($open: find(get, names!($open)).ok_or(stringify!($open))?,)*
                        $($optional: find(get, names!($optional)),)*
                        is_valkey: find::<*mut c_void>(get, [c"ValkeyModule_Alloc".as_ptr(); 2]).is_some(),
                    })
                }
            }
        }
    };
}

/// A function's two names, ended by NUL.
macro_rules! names {
    ($name:ident) => {
        [
            concat!("RedisModule_", stringify!($name), "\0").as_ptr().cast(),
            concat!("ValkeyModule_", stringify!($name), "\0").as_ptr().cast(),
        ]
    };
}

/// The function with one of these names.
///
/// # Safety
/// The names end with NUL, and `F` is a pointer to what the server has under them.
unsafe fn find<F: Copy>(get: GetApi, names: [*const c_char; 2]) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    for name in names {
        let mut function: *mut c_void = std::ptr::null_mut();
        // SAFETY: the name ends with NUL, and there is room for a pointer.
        if unsafe { get(name, &mut function) } == OK && !function.is_null() {
            // SAFETY: `F` is as large as a pointer, and what the caller says it is.
            return Some(unsafe { std::mem::transmute_copy(&function) });
        }
    }
    None
}

api! {
    needed {
        Alloc: fn(usize) -> *mut c_void;
        Realloc: fn(*mut c_void, usize) -> *mut c_void;
        Calloc: fn(usize, usize) -> *mut c_void;
        Free: fn(*mut c_void);
        SetModuleAttribs: fn(*mut Context, *const c_char, c_int, c_int);
        SetModuleOptions: fn(*mut Context, c_int);
        CreateCommand: fn(*mut Context, *const c_char, CommandFunction, *const c_char, c_int, c_int, c_int) -> c_int;
        GetCommand: fn(*mut Context, *const c_char) -> *mut CommandHandle;
        SetCommandInfo: fn(*mut CommandHandle, *const CommandInfo) -> c_int;
        CreateDataType: fn(*mut Context, *const c_char, c_int, *mut TypeMethods) -> *mut Type;
        ModuleTypeSetValue: fn(*mut Key, *mut Type, *mut c_void) -> c_int;
        ModuleTypeGetType: fn(*mut Key) -> *mut Type;
        ModuleTypeGetValue: fn(*mut Key) -> *mut c_void;
        OpenKey: fn(*mut Context, *mut Text, c_int) -> *mut Key;
        CloseKey: fn(*mut Key);
        KeyType: fn(*mut Key) -> c_int;
        StringPtrLen: fn(*const Text, *mut usize) -> *const c_char;
        CreateString: fn(*mut Context, *const c_char, usize) -> *mut Text;
        FreeString: fn(*mut Context, *mut Text);
        WrongArity: fn(*mut Context) -> c_int;
        ReplyWithLongLong: fn(*mut Context, c_longlong) -> c_int;
        ReplyWithError: fn(*mut Context, *const c_char) -> c_int;
        ReplyWithSimpleString: fn(*mut Context, *const c_char) -> c_int;
        ReplyWithArray: fn(*mut Context, std::ffi::c_long) -> c_int;
        ReplyWithMap: fn(*mut Context, std::ffi::c_long) -> c_int;
        ReplyWithBool: fn(*mut Context, c_int) -> c_int;
        ReplyWithNull: fn(*mut Context) -> c_int;
        ReplyWithStringBuffer: fn(*mut Context, *const c_char, usize) -> c_int;
        ReplyWithDouble: fn(*mut Context, c_double) -> c_int;
        ReplicateVerbatim: fn(*mut Context) -> c_int;
        GetContextFlags: fn(*mut Context) -> c_int;
        NotifyKeyspaceEvent: fn(*mut Context, c_int, *const c_char, *mut Text) -> c_int;
        Milliseconds: fn() -> c_longlong;
        GetRandomBytes: fn(*mut u8, usize);
        SaveUnsigned: fn(*mut Io, u64);
        LoadUnsigned: fn(*mut Io) -> u64;
        SaveDouble: fn(*mut Io, c_double);
        LoadDouble: fn(*mut Io) -> c_double;
        SaveStringBuffer: fn(*mut Io, *const c_char, usize);
        LoadStringBuffer: fn(*mut Io, *mut usize) -> *mut c_char;
        IsIOError: fn(*mut Io) -> c_int;
        DigestAddStringBuffer: fn(*mut Digest, *const c_char, usize);
        DigestEndSequence: fn(*mut Digest);
        RegisterInfoFunc: fn(*mut Context, InfoFunction) -> c_int;
        InfoAddSection: fn(*mut Info, *const c_char) -> c_int;
        InfoAddFieldULongLong: fn(*mut Info, *const c_char, c_ulonglong) -> c_int;
        InfoAddFieldCString: fn(*mut Info, *const c_char, *const c_char) -> c_int;
        GetServerInfo: fn(*mut Context, *const c_char) -> *mut ServerInfo;
        FreeServerInfo: fn(*mut Context, *mut ServerInfo);
        ServerInfoGetFieldUnsigned: fn(*mut ServerInfo, *const c_char, *mut c_int) -> c_ulonglong;
        RegisterNumericConfig: fn(*mut Context, *const c_char, c_longlong, c_uint, c_longlong, c_longlong, GetNumber, SetNumber, *const c_void, *mut c_void) -> c_int;
        RegisterStringConfig: fn(*mut Context, *const c_char, *const c_char, c_uint, GetText, SetText, *const c_void, *mut c_void) -> c_int;
        RegisterBoolConfig: fn(*mut Context, *const c_char, c_int, c_uint, GetFlag, SetFlag, *const c_void, *mut c_void) -> c_int;
        RegisterEnumConfig: fn(*mut Context, *const c_char, c_int, c_uint, *const *const c_char, *const c_int, c_int, GetFlag, SetFlag, *const c_void, *mut c_void) -> c_int;
        LoadConfigs: fn(*mut Context) -> c_int;
        CreateTimer: fn(*mut Context, c_longlong, TimerFunction, *mut c_void) -> u64;
        IsModuleNameBusy: fn(*const c_char) -> c_int;
        CallReplyType: fn(*mut Reply) -> c_int;
        FreeCallReply: fn(*mut Reply);
    }
    variadic {
        Log: fn(*mut Context, *const c_char, *const c_char);
        Replicate: fn(*mut Context, *const c_char, *const c_char) -> c_int;
        EmitAOF: fn(*mut Io, *const c_char, *const c_char);
        Call: fn(*mut Context, *const c_char, *const c_char) -> *mut Reply;
    }
    optional {
        TryAlloc: fn(usize) -> *mut c_void;
        TryCalloc: fn(usize, usize) -> *mut c_void;
        TryRealloc: fn(*mut c_void, usize) -> *mut c_void;
        AddACLCategory: fn(*mut Context, *const c_char) -> c_int;
        SetCommandACLCategories: fn(*mut CommandHandle, *const c_char) -> c_int;
        MustObeyClient: fn(*mut Context) -> c_int;
    }
}

/// So many elements from an address, which C gives as none where there are none.
///
/// # Safety
/// There are so many, and they outlive what borrows them.
#[inline(always)]
pub(super) unsafe fn slice<'a, T>(start: *const T, length: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if start.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(start, length) } }
}

static API: OnceLock<Api> = OnceLock::new();

/// Fills the table from a context that a server gave; the name of a function that it lacks. Nothing is allocated, because
/// the allocator is one of those functions.
///
/// # Safety
/// The context is one that a server passes when it loads a module.
pub(super) unsafe fn load(context: *mut Context) -> Result<(), &'static str> {
    // SAFETY: the first word of a context is the function that finds all others.
    let get: GetApi = unsafe { *context.cast::<GetApi>() };
    let api = Api::found(get)?;
    // A module that is loaded again finds what is there: the same server's.
    let _ = API.set(api);
    Ok(())
}

/// The table, if a server has loaded the module.
#[inline(always)]
pub(super) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// The table, in a callback of the server.
#[inline(always)]
pub(super) fn api() -> &'static Api {
    API.get().expect("a server that calls the module has loaded it")
}

/// What the system's loader knows of an address.
#[repr(C)]
pub(super) struct LoadedFrom {
    pub(super) path: *const c_char,
    pub(super) base: *mut c_void,
    pub(super) symbol: *const c_char,
    pub(super) address: *mut c_void,
}

unsafe extern "C" {
    /// Tells from which library an address is; 0 if from none.
    pub(super) fn dladdr(address: *const c_void, found: *mut LoadedFrom) -> c_int;
}
