//! `everbloom man`: manual pages, from the definitions that `--help` is made of.

use crate::failure::{Ending, Failure, Result};
use crate::output;
use clap::{Args, CommandFactory as _};
use clap_mangen::Man as Page;
use everbloom::kind::suggestion;
use std::path::{Path, PathBuf};

/// Prints the manual page of a command, or writes all pages into a folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  To read one, and to install all:
    everbloom man dedup > dedup.1 # man ./dedup.1
    everbloom man --all ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The command, such as dedup, or lab run [default: everbloom itself]
    #[arg(conflicts_with = "all")]
    command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "FOLDER")]
    all: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<Ending> {
        let mut whole = crate::Cli::command();
        whole.build();
        match &self.all {
            Some(folder) => write_all(&whole, folder)?,
            None => output::print(&text(find(&whole, &self.command)?)?)?,
        }
        Ok(Ending::Done)
    }
}

fn find<'c>(whole: &'c clap::Command, words: &[String]) -> Result<&'c clap::Command> {
    words.iter().try_fold(whole, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let known: Vec<_> = shown(command).map(clap::Command::get_name).collect();
            let remedy = match known.is_empty() {
                true => "it has no commands of its own".into(),
                false => suggestion(word, known, "there are"),
            };
            Failure::new(format!("there is no command '{word}' in '{}'; {remedy}", command.get_name()))
        })
    })
}

/// The commands that a command has, but for the one that repeats their help.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help")
}

/// The name of a command's page, as `git-log` is one.
fn page_name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn write_all(command: &clap::Command, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{}.1", page_name(command)));
    std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder.display(), &error))?;
    std::fs::write(&path, text(command)?).map_err(|error| Failure::io(path.display(), &error))?;
    shown(command).try_for_each(|inner| write_all(inner, folder))
}

fn text(command: &clap::Command) -> Result<String> {
    let mut page = Vec::new();
    let titled = Page::new(command.clone()).title(page_name(command).to_uppercase());
    let rendered =
        titled.source(concat!("everbloom ", env!("CARGO_PKG_VERSION"))).manual("everbloom").render(&mut page);
    rendered.map_err(|error| Failure::io(page_name(command), &error))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
