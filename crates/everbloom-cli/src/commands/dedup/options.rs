//! The options that decide verdicts: a state keeps them as they were typed, so that nobody need repeat them.

use super::Dedup;
use crate::Cli;
use crate::args::KeyArgs;
use crate::commands::Command;
use crate::failure::{self, Failure, Result};
use crate::record::KeyOptions;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// An option and its value, which is empty if it takes none.
pub(super) type Typed = (String, String);

/// The options that are no part of a state, because a run with other ones gives the same verdicts.
const FREE: [&str; 22] = [
    "--redis",
    "--patience",
    "--replicas",
    "--output",
    "--duplicates",
    "--state",
    "--checkpoint",
    "--stats",
    "--serve",
    "--threads",
    "--flag",
    "--only-duplicates",
    "--count",
    "--counts",
    "--format",
    "--follow",
    "--on-error",
    "--on-broken-promise",
    "--quiet",
    "--verbose",
    "--help",
    "--version",
];

/// The options of this call that decide verdicts.
pub(super) fn typed() -> Vec<Typed> {
    matches_of(std::env::args_os()).map_or(Vec::new(), |matches| typed_in(&matches))
}

/// This call with the options that a state was saved with, unless it has others.
pub(super) fn adopt(path: &Path, saved: &[Typed]) -> Result<Dedup> {
    let mut now = typed();
    now.retain(|option| !saved.contains(option));
    for option in now {
        check(path, saved, &option)?;
    }
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let repeated: Vec<String> = typed().into_iter().map(|(name, _)| name).collect();
    let missing = saved.iter().filter(|(name, _)| !repeated.contains(name)).map(|option| joined(option, "=").into());
    arguments.splice(2..2, missing);
    parse(arguments)
}

/// How keys are found with these options.
pub(super) fn keys_of(options: &[Typed]) -> Result<KeyArgs> {
    let start = ["everbloom", "dedup"].map(OsString::from).into_iter();
    Ok(parse(start.chain(options.iter().map(|option| joined(option, "=").into())))?.keys)
}

/// Refuses an option that the state was not saved with, unless it means the same.
fn check(path: &Path, saved: &[Typed], now: &Typed) -> Result<()> {
    let before = saved.iter().find(|(name, _)| *name == now.0);
    let mut others: Vec<Typed> = saved.iter().filter(|(name, _)| *name != now.0).cloned().collect();
    others.push(now.clone());
    let meaning = |options: &[Typed]| {
        let start = ["everbloom", "dedup"].map(OsString::from).into_iter();
        let dedup = parse(start.chain(options.iter().map(|option| joined(option, "=").into())));
        dedup.ok().map(|dedup| format!("{dedup:?}"))
    };
    if meaning(&others).is_some_and(|others| meaning(saved) == Some(others)) {
        return Ok(());
    }
    let (name, now) = (&now.0, joined(now, " "));
    let saved = match before {
        Some(before) => format!("the state was saved with {}, not {now}", joined(before, " ")),
        None if now == *name => format!("the state was saved without {now}"),
        None => format!("the state was saved without {name}, not with {now}"),
    };
    Err(Failure::at(path, format!("{saved}; leave {name} out to go on with it, or name another state file")))
}

/// An option as it is typed.
fn joined((name, value): &Typed, between: &str) -> String {
    if value.is_empty() { name.clone() } else { format!("{name}{between}{value}") }
}

fn matches_of(arguments: impl IntoIterator<Item = OsString>) -> Result<ArgMatches> {
    Cli::command().try_get_matches_from(arguments).map_err(|error| failure::from_usage(&error, &Cli::command()))
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Dedup> {
    let matches = matches_of(arguments)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| failure::from_usage(&error, &Cli::command()))?;
    match cli.command {
        Command::Dedup(mut dedup) => {
            // Two ways to write a key are one.
            dedup.keys.key = KeyOptions::of(&dedup.keys).key();
            Ok(*dedup)
        }
        _ => Err(Failure::new("a state belongs to dedup")),
    }
}

fn typed_in(matches: &ArgMatches) -> Vec<Typed> {
    let mut command = Cli::command();
    command.build();
    let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
    let Some(command) = command.find_subcommand(name) else { return Vec::new() };
    let mut options = Vec::new();
    for argument in command.get_arguments() {
        let Some(option) = argument.get_long().map(|name| format!("--{name}")) else { continue };
        let id = argument.get_id().as_str();
        if FREE.contains(&option.as_str()) || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let value = match argument.get_action() {
            ArgAction::SetTrue => String::new(),
            _ => {
                let raw = matches.get_raw(id).and_then(Iterator::last);
                raw.map(OsStr::to_string_lossy).unwrap_or_default().into_owned()
            }
        };
        options.push((option, value));
    }
    options
}
