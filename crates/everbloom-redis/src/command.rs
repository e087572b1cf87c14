//! The table of commands: what a server and its users are told of each, and who answers it.

use crate::server::Entry;
use std::ffi::CStr;

/// A command.
pub(crate) struct Command {
    /// As users write it.
    pub(crate) name: &'static CStr,
    /// The server's flags: `write deny-oom fast`.
    pub(crate) flags: &'static CStr,
    /// Categories for access control, where the server takes them.
    pub(crate) categories: &'static CStr,
    /// The number of words, its name included; at least so many if it is negative.
    pub(crate) arity: i32,
    /// Where its keys are.
    pub(crate) keys: &'static [Keys],
    /// One line for `COMMAND DOCS`.
    pub(crate) summary: &'static CStr,
    /// What it costs.
    pub(crate) complexity: &'static CStr,
    /// What it takes, for `COMMAND DOCS` and the hints of redis-cli.
    pub(crate) arguments: &'static [Argument],
    /// Who answers it.
    pub(crate) entry: Entry,
}

/// Keys of a command.
pub(crate) struct Keys {
    /// The place of the first.
    pub(crate) first: i32,
    /// Whether all words from there on are keys.
    pub(crate) many: bool,
    /// What becomes of them.
    pub(crate) role: Role,
}

/// What a command does with a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    /// Looks at it.
    Asked,
    /// Adds to it.
    Added,
    /// Changes or replaces it.
    Changed,
    /// Takes something out of it.
    Deleted,
}

/// One key, in the usual place.
pub(crate) const fn key(role: Role) -> Keys {
    Keys { first: 1, many: false, role }
}

/// An argument of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    /// What it is.
    pub(crate) name: &'static CStr,
    /// What it takes.
    pub(crate) takes: Takes,
    /// The word before it.
    pub(crate) token: Option<&'static CStr>,
    /// Whether it may be left out.
    pub(crate) is_optional: bool,
    /// Whether several may come.
    pub(crate) is_multiple: bool,
}

/// What an argument takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Takes {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// A key, of the command's keys the one with this index.
    Key(i32),
    /// Nothing: its word is all.
    Nothing,
    /// One of these.
    OneOf(&'static [Argument]),
    /// All of these.
    Block(&'static [Argument]),
}

impl Argument {
    /// An argument that must be there once.
    pub(crate) const fn new(name: &'static CStr, takes: Takes) -> Self {
        Argument { name, takes, token: None, is_optional: false, is_multiple: false }
    }

    /// The key of most commands.
    pub(crate) const KEY: Argument = Argument::new(c"key", Takes::Key(0));

    /// A word that says something by itself.
    pub(crate) const fn word(name: &'static CStr, token: &'static CStr) -> Self {
        Argument::new(name, Takes::Nothing).after(token)
    }

    /// This argument behind a word.
    pub(crate) const fn after(self, token: &'static CStr) -> Self {
        Argument { token: Some(token), ..self }
    }

    /// This argument, to be left out if not needed.
    pub(crate) const fn optional(self) -> Self {
        Argument { is_optional: true, ..self }
    }

    /// This argument, once or more often.
    pub(crate) const fn multiple(self) -> Self {
        Argument { is_multiple: true, ..self }
    }

    /// The arguments that it is made of.
    pub(crate) fn parts(&self) -> &'static [Argument] {
        match self.takes {
            Takes::OneOf(parts) | Takes::Block(parts) => parts,
            _ => &[],
        }
    }
}
