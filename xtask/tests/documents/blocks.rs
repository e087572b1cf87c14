//! The blocks of a document that are run.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Sh,
    Console,
}

/// A fenced block: its lines without the indentation of the fence, and where they stand, counted from 0.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) language: Language,
    pub(crate) lines: Vec<String>,
    pub(crate) inside: Range<usize>,
    indentation: String,
}

/// A command of a console block.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its place in the document, counted from 1.
    pub(crate) line: usize,
    /// Its lines as the document shows them.
    pub(crate) shown: Vec<String>,
    pub(crate) code: String,
    pub(crate) expected: Vec<String>,
}

/// The blocks to run, in order.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some((indentation, ticks, info)) = fence(lines[at]) else {
            at += 1;
            continue;
        };
        let is_end = |line: &&str| fence(line).is_some_and(|(_, end, rest)| end >= ticks && rest.is_empty());
        let length = lines[at + 1..].iter().position(is_end).unwrap_or(lines.len() - at - 1);
        let inside = at + 1..at + 1 + length;
        if let Some(language) = language(info) {
            let inner = lines[inside.clone()].iter();
            let lines = inner.map(|line| line.strip_prefix(indentation).unwrap_or(line.trim_start()).to_string());
            let indentation = indentation.to_string();
            found.push(Block { language, lines: lines.collect(), inside: inside.clone(), indentation });
        }
        at = inside.end + 1;
    }
    found
}

/// The indentation, the number of ticks and the words after them, if the line is a fence.
fn fence(line: &str) -> Option<(&str, usize, &str)> {
    let rest = line.trim_start_matches(' ');
    let info = rest.trim_start_matches('`');
    let ticks = rest.len() - info.len();
    (ticks >= 3).then(|| (&line[..line.len() - rest.len()], ticks, info.trim()))
}

/// The language of a block that is run.
fn language(info: &str) -> Option<Language> {
    let (name, more) = info.split_once([' ', ',']).unwrap_or((info, ""));
    match name {
        _ if more.trim().starts_with("no-run") => None,
        "sh" => Some(Language::Sh),
        "console" => Some(Language::Console),
        _ => None,
    }
}

impl Block {
    /// The commands of a console block.
    pub(crate) fn commands(&self) -> Result<Vec<Command>, String> {
        let mut commands: Vec<Command> = Vec::new();
        let mut goes_on = false;
        for (index, line) in self.lines.iter().enumerate() {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (_, Some(command)) if goes_on => {
                    command.code += &format!("\n{line}");
                    command.shown.push(line.clone());
                }
                (Some(code), _) => commands.push(Command {
                    line: self.inside.start + index + 1,
                    shown: vec![line.clone()],
                    code: code.to_string(),
                    expected: Vec::new(),
                }),
                (None, Some(command)) => command.expected.push(line.trim_end().to_string()),
                (None, None) => return Err("a console block starts with `$ ` and a command".into()),
            }
            let command = commands.last().map_or("", |command| command.code.as_str());
            goes_on = (goes_on || line.starts_with("$ ")) && command.ends_with('\\');
        }
        Ok(commands)
    }

    /// Lines as they stand in the document.
    pub(crate) fn indented(&self, lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| format!("{}{line}", self.indentation).trim_end().to_string()).collect()
    }
}
