//! `everbloom completions`: what a shell needs to complete our commands and options.

use crate::failure::{Ending, Result};
use crate::output;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

/// Prints the completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    everbloom completions bash > ~/.local/share/bash-completion/completions/everbloom
    everbloom completions fish > ~/.config/fish/completions/everbloom.fish")]
pub(crate) struct Completions {
    /// The shell that they are for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Ending> {
        let mut command = crate::Cli::command();
        let (name, mut text) = (command.get_name().to_string(), Vec::new());
        clap_complete::generate(self.shell, &mut command, name, &mut text);
        output::print(&String::from_utf8_lossy(&text))?;
        Ok(Ending::Done)
    }
}
