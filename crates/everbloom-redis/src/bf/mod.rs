//! `BF.*`: what RedisBloom answers, byte for byte, and its data.
//!
//! `chain` is the value of a key, `numbers` reads arguments as a server does; `adding`, `asking` and `moving` are the
//! commands. What a filter does is the library's (`everbloom_compat::redisbloom`); here are words and replies.

mod adding;
mod asking;
mod chain;
mod commands;
mod moving;
mod numbers;

use crate::server::{Failure, Loading};

/// Registers the type and the commands; why not, if somebody else has them.
pub(crate) fn register(loading: &Loading<'_>) -> Result<(), String> {
    if !loading.value_type::<chain::Chain>() {
        return Err("another module has the type MBbloom--".into());
    }
    loading.category(c"bloom");
    match commands::COMMANDS.iter().find(|command| !loading.command(command)) {
        None => Ok(()),
        Some(taken) => Err(format!("another module has the command {}", taken.name.to_string_lossy())),
    }
}

/// The key is not there.
fn not_found() -> Failure {
    Failure::new("not found")
}

/// Some of RedisBloom's errors have no code.
fn without_code(text: &str) -> Failure {
    Failure::Error(text.into())
}
