//! `EB.*`: everything that the library has, by spec.

mod adding;
mod asking;
mod changing;
pub(crate) mod limits;
mod note;
mod reserve;
mod stored;
mod table;
mod tokens;
mod words;

use crate::server::Loading;
use stored::Stored;

/// Registers the type and the commands.
pub(crate) fn register(loading: &Loading<'_>) -> Result<(), String> {
    loading.category(c"everbloom");
    if !loading.value_type::<Stored>() {
        return Err("another module has the type 'everbloom'".into());
    }
    match table::COMMANDS.iter().find(|command| !loading.command(command)) {
        None => Ok(()),
        Some(command) => Err(format!("the server refused the command {}", command.name.to_string_lossy())),
    }
}
