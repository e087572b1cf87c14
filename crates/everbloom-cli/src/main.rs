//! The command `everbloom`: filters as files, repeats out of streams.
//!
//! One file per subcommand in [`commands`]; around them the layers they share: [`args`] (what can be
//! typed), [`input`] (bytes to whole records), [`record`] (records to keys), [`output`] and
//! [`filter_file`] (results that never destroy what was there), [`mapped`] (filters where they lie), `web` (pages on this
//! machine). No algorithm lives here.

mod args;
mod commands;
mod descriptors;
mod failure;
mod fault;
mod filter_file;
mod input;
#[allow(unsafe_code)]
mod mapped;
mod output;
mod platform;
mod progress;
mod record;
mod report;
mod scheme_file;
mod state_file;
#[cfg(feature = "web")]
mod web;

use clap::{CommandFactory as _, Parser};
use everbloom_cells::simd::InstructionSet;
use failure::{Ending, Failure};
use std::process::ExitCode;

/// Membership filters for endless streams.
#[derive(Debug, Parser)]
#[command(
    name = "everbloom",
    version,
    about,
    max_term_width = 100,
    after_help = "\
Examples:
    everbloom dedup lines.txt > unique.txt
    everbloom build members.txt -o members.ebf
    everbloom query members.ebf lines.txt
    everbloom filters"
)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    platform::fail_at_the_file_limit();
    if let Err(failure) = limit_instructions() {
        return finish(Err(failure));
    }
    match Cli::try_parse() {
        Ok(cli) => finish(cli.command.run()),
        Err(error) if error.use_stderr() => finish(Err(failure::from_usage(&error, &Cli::command()))),
        Err(help) => finish(output::print(&help.render().to_string()).map(|()| Ending::Done)),
    }
}

/// Uses no newer instructions than `EVERBLOOM_ISA` names, so that older machines can be tried; without it, the newest.
fn limit_instructions() -> Result<(), Failure> {
    let Some(name) = std::env::var_os("EVERBLOOM_ISA").filter(|name| !name.is_empty()) else { return Ok(()) };
    let set = InstructionSet::ALL.into_iter().find(|set| name == *set.name()).ok_or_else(|| {
        let known = InstructionSet::ALL.map(InstructionSet::name).join(", ");
        Failure::new(format!("EVERBLOOM_ISA={} is not known; take one of {known}", name.display()))
    })?;
    set.limit();
    Ok(())
}

fn finish(result: Result<Ending, Failure>) -> ExitCode {
    match result {
        Ok(ending) => ending.into(),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            report::words::say(message);
            ExitCode::from(2)
        }
        Err(Failure::Gone(message)) => {
            report::words::say(message);
            ExitCode::from(1)
        }
        Err(Failure::BrokenPromise(message)) => {
            report::words::say(message);
            Ending::BrokenPromise.into()
        }
    }
}
