//! Filters as native types of Redis and Valkey: one module, two families of commands.
//!
//! - `EB.*` has everything that the library has, by spec: endless streams, importance, windows, counts, promises.
//! - `BF.*` answers what RedisBloom answers, and reads and writes its data.
//!
//! `server` is what the module sees of a server, and has all unsafe code; `command` is what a command is, `settings` what can
//! be configured, `report` what `INFO everbloom` says. `eb` and `bf` are the two families: handlers and the values that
//! they keep. The filters, their planning and their bytes are the library's; there is no algorithm here and no list
//! of filters.

#![allow(missing_docs, reason = "a server loads it; nothing is public")]

mod bf;
mod command;
mod eb;
mod fault;
mod report;
#[allow(unsafe_code)]
mod server;
mod settings;

use everbloom_cells::simd::InstructionSet;
use server::{Level, Loading};

/// Registers settings, types and commands; what is wrong if that cannot be done.
fn register(loading: &Loading<'_>) -> Result<(), String> {
    if loading.is_for_second_name() {
        return Ok(());
    }
    loading.introduce(c"everbloom", settings::MODULE_VERSION);
    limit_instructions()?;
    settings::register(loading)?;
    eb::register(loading)?;
    let with_bf = match settings::BF_COMMANDS.get() {
        settings::BF_NO => false,
        settings::BF_YES => bf::register(loading).map(|()| true)?,
        _ => match bf::register(loading) {
            Ok(()) => true,
            Err(problem) => {
                loading.log(Level::Notice, &format!("BF.* is left to another module: {problem}"));
                false
            }
        },
    };
    if with_bf {
        loading.add_second_name();
    }
    loading.info();
    let families = if with_bf { "EB.* and BF.*" } else { "EB.*" };
    loading.log(Level::Notice, &format!("everbloom {} offers {families}", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// Uses no newer instructions than `EVERBLOOM_ISA` names, so that older machines can be tried.
fn limit_instructions() -> Result<(), String> {
    let Some(name) = std::env::var_os("EVERBLOOM_ISA").filter(|name| !name.is_empty()) else { return Ok(()) };
    let set = InstructionSet::ALL.into_iter().find(|set| name == *set.name()).ok_or_else(|| {
        let known = InstructionSet::ALL.map(InstructionSet::name).join(", ");
        format!("EVERBLOOM_ISA={} is not known; take one of {known}", name.display())
    })?;
    set.limit();
    Ok(())
}
