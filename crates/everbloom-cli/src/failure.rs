//! How a command ends: exit 0 done, 1 a negative answer, 2 one clear line on stderr, 3 a promise is broken.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use everbloom::kind::{did_you_mean, harmless, rate_text};
use std::error::Error as _;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// How a command that did its work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was done.
    Done,
    /// A question was asked, and the answer is no.
    Negative,
    /// Everything was done, but with a filter that no longer keeps its promise.
    BrokenPromise,
    /// A signal came, and what was done until then is saved.
    Interrupted(u8),
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> ExitCode {
        match ending {
            Ending::Done => ExitCode::SUCCESS,
            Ending::Negative => ExitCode::from(1),
            Ending::BrokenPromise => ExitCode::from(3),
            // What shells report for a process that a signal ended.
            Ending::Interrupted(signal) => ExitCode::from(128u8.saturating_add(signal)),
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of our output went away: nothing to say, nothing wrong.
    ClosedPipe,
    /// One line for stderr.
    Message(String),
    /// One line for stderr, where somebody else broke off: exit 1.
    Gone(String),
    /// One line for stderr, because a promise would be broken.
    BrokenPromise(String),
}

/// The result of everything in this crate that can fail.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure with a line to show.
    pub(crate) fn new(message: impl Display) -> Self {
        Failure::Message(harmless(&one_line(&message.to_string())))
    }

    /// An I/O failure, with what it happened to.
    pub(crate) fn io(what: impl Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::new(format!("{what}: {}", plain_words(error))),
        }
    }

    /// The reader of something that is not stdout went away before it had everything.
    pub(crate) fn reader_gone(what: impl Display) -> Self {
        Failure::Gone(format!("{what}: its reader has gone; not everything was written"))
    }

    /// This failure, with the file that it concerns.
    pub(crate) fn within(self, path: &Path) -> Self {
        match self {
            Failure::Message(message) => Failure::at(path, message),
            other => other,
        }
    }

    /// This failure, with something more to know.
    pub(crate) fn with(self, note: &str) -> Self {
        match self {
            Failure::Message(message) => Failure::Message(format!("{message}; {note}")),
            other => other,
        }
    }

    /// A failure that concerns a file.
    pub(crate) fn at(path: &Path, problem: impl Display) -> Self {
        Failure::new(format!("{}: {problem}", path.display()))
    }
}

impl From<everbloom::Error> for Failure {
    fn from(error: everbloom::Error) -> Self {
        Failure::new(in_typed_words(error))
    }
}

/// The error in the words of the command line: its options, where one is meant, and sizes with their unit.
fn in_typed_words(error: everbloom::Error) -> String {
    let everbloom::Error::Parameter { name, given, needed, remedy } = error else { return error.to_string() };
    let option = match name {
        "memory" => "--memory",
        "fpr" => "--fpr",
        "target_fnr" => "--fnr",
        "expected_items" | "distinct" => "--expect",
        "arrivals" => "--arrivals",
        "transmitted_bytes" => "--transmit",
        "min_hashes" => "--min-hashes",
        "max_hashes" => "--max-hashes",
        "sets_sharing" => "--sets-sharing",
        "stream" => "--stream",
        "importance" => "--importance",
        name => name,
    };
    match given.as_str() {
        "not given" if needed.contains("expected_items") => format!("{option} or --expect is missing; {remedy}"),
        "not given" if needed.contains("memory") => format!("{option} or --memory is missing; {remedy}"),
        "not given" => format!("{option} is missing; {remedy}"),
        _ => {
            // A rate in the way in which rates are typed.
            let rate = given.parse().ok().filter(|_| matches!(name, "fpr" | "target_fnr"));
            let given = rate.map_or(given.clone(), rate_text);
            format!("{option} is {given}, but must be {needed}; {remedy}")
        }
    }
}

/// The error in words, without Rust's "(os error 2)".
fn plain_words(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::IsADirectory {
        return "is a directory; name a file".into();
    }
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = words.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.fold(String::new(), |said, line| match said.as_str() {
        "" => line.to_string(),
        // A list follows.
        before if before.ends_with(':') => format!("{before} {line}"),
        before => format!("{before}; {line}"),
    })
}

/// What clap has to say about a bad call, in one line.
pub(crate) fn from_usage(error: &clap::Error, command: &clap::Command) -> Failure {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        || error.kind() == ErrorKind::MissingSubcommand
    {
        let names = innermost(command).get_subcommands().filter(|command| !command.is_hide_set());
        let names: Vec<_> = names.map(clap::Command::get_name).collect();
        return Failure::new(format!("missing subcommand; one of {} (or --help)", names.join(", ")));
    }
    if let Some(message) = clash(error).or_else(|| missing(error)) {
        return Failure::new(message);
    }
    let problem = problem(error);
    if let Some(remedy) = file_remedy(error, command) {
        return Failure::new(format!("{problem}; {remedy}"));
    }
    let suggestion = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| error.get(kind).and_then(suggested))
        .or_else(|| nearest(error, command));
    match (suggestion, error.kind()) {
        (Some(name), _) => Failure::new(format!("{problem}; did you mean '{name}'?")),
        // What would be accepted is said already.
        (None, ErrorKind::ValueValidation) => Failure::new(problem),
        (None, ErrorKind::InvalidValue) => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(names)) if !names.is_empty() => {
                Failure::new(format!("{problem}: must be one of {}", names.join(", ")))
            }
            _ => Failure::new(format!("{problem}; see --help")),
        },
        (None, _) => Failure::new(format!("{problem}; see --help")),
    }
}

/// What is wrong with a call.
fn problem(error: &clap::Error) -> String {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (argument, value) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
    match error.kind() {
        ErrorKind::UnknownArgument => format!("unexpected argument '{argument}'"),
        ErrorKind::InvalidSubcommand => format!("unknown command '{}'", context(ContextKind::InvalidSubcommand)),
        ErrorKind::NoEquals => format!("'{argument}' takes its value behind an equals sign"),
        ErrorKind::TooManyValues => format!("'{argument}' takes no value '{value}'"),
        ErrorKind::InvalidValue if value.is_empty() => format!("'{argument}' is given without its value"),
        ErrorKind::InvalidValue => format!("invalid value '{value}' for '{argument}'"),
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            format!("invalid value '{value}' for '{argument}': {why}")
        }
        ErrorKind::TooFewValues => format!("'{argument}' needs at least {}", context(ContextKind::MinValues)),
        kind => kind.to_string(),
    }
}

/// Why two options exclude each other. Of the others, it is enough to know that they do.
const CLASHES: &[(&str, &str, &str)] = &[
    ("--exact", "--memory", "--exact takes as much memory as the keys need"),
    ("--exact", "--filter", "--exact is a filter of its own"),
    ("--exact", "--fpr", "--exact makes no mistakes to limit"),
    ("--exact", "--expect", "--exact grows with what comes"),
    ("--window", "--exact", "--exact never forgets"),
    ("--window", "--filter", "a window chooses its filter"),
    (
        "--audit",
        "--counts",
        "--counts counts exactly, and says itself how far the estimates of --filter spectral are off",
    ),
    ("--serve", "--counts", "--counts has nothing to show before the input ends"),
    ("--mmap", "--memory", "a mapped file takes no memory of its own"),
    ("--from-state", "--stream", "both say what the stream is like"),
];

/// Two options that exclude each other: why, and what to do.
fn clash(error: &clap::Error) -> Option<String> {
    let name = |kind| error.get(kind).filter(|_| error.kind() == ErrorKind::ArgumentConflict).and_then(suggested);
    // What has no name of its own is files.
    let word = |text: &str| match text.split([' ', '=', '[']).next().unwrap_or_default() {
        "" => "files".to_string(),
        name => name.to_string(),
    };
    let (one, other) = (word(&name(ContextKind::InvalidArg)?), word(&name(ContextKind::PriorArg)?));
    if one == other {
        return Some(format!("{one} is given twice; leave one of them out"));
    }
    let is_it = |names: (&str, &str)| names == (&one, &other) || names == (&other, &one);
    let why = CLASHES.iter().find(|(first, second, _)| is_it((first, second)));
    let why = why.map_or_else(String::new, |(.., why)| format!(": {why}"));
    Some(format!("{one} cannot be used with {other}{why}; leave one of them out"))
}

/// What an option is for that others need, and how it is written.
const NEEDED: &[(&str, &str, &str)] = &[
    ("--window", "--time and --refresh say how a window counts", "--window 24h"),
    ("--key", "--json needs to know which value is the key", "--key .user.id"),
    ("--count", "--format says how the totals of --count are printed", "--count"),
    ("--cost-fp", "what a new line costs that is dropped by mistake", "--cost-fp 5"),
    ("--cost-fn", "what a repeat costs that is let through", "--cost-fn 1"),
    ("--importance", "the field that the importance is in", "--importance 3"),
    ("--importance-max", "the largest importance that a record can have", "--importance-max 50"),
    ("--memory", "how much the filters may take", "--memory 64KiB"),
    ("--output", "the file to write", "--output FILE"),
    ("--log", "the queries to learn from", "--log queries.txt"),
    ("--keys", "the members of the set", "--keys members.txt"),
    ("--out", "the folder for the results", "--out results"),
];

/// An option that others need, and that is not given.
fn missing(error: &clap::Error) -> Option<String> {
    let names = error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::MissingRequiredArgument)?;
    let ContextValue::Strings(names) = names else { return None };
    let verb = if names.len() == 1 { "is" } else { "are" };
    let known = |name: &String| NEEDED.iter().find(|(known, ..)| name.split(' ').next() == Some(known));
    let Some(needed) = names.iter().map(known).collect::<Option<Vec<_>>>() else {
        return Some(format!("{} {verb} missing; see --help", names.join(" and ")));
    };
    let parts = |part: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        needed.iter().map(|needed| part(needed)).collect::<Vec<_>>()
    };
    let (names, whys, examples) = (parts(|it| it.0), parts(|it| it.1), parts(|it| it.2));
    Some(format!("{} {verb} missing ({}); add {}", names.join(" and "), whys.join("; "), examples.join(" ")))
}

/// What to do with a file where a command takes none but by an option.
fn file_remedy(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let given = error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)?.to_string();
    let takes_stream = innermost(command).get_arguments().any(|option| option.get_long() == Some("stream"));
    (takes_stream && !given.starts_with('-')).then(|| format!("write --stream {given} if it is a file to read"))
}

/// What was probably meant, where clap does not see it.
fn nearest(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let given = |kind| error.get(kind).map(ToString::to_string);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let given = given(ContextKind::InvalidSubcommand)?;
            let names: Vec<&str> = innermost(command).get_subcommands().map(clap::Command::get_name).collect();
            did_you_mean(&given, names).map(str::to_string)
        }
        ErrorKind::InvalidValue => {
            let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidValue) else { return None };
            let given = given(ContextKind::InvalidValue)?;
            did_you_mean(&given, names.iter().map(String::as_str)).map(str::to_string)
        }
        _ => None,
    }
}

/// The command that was typed, as far as it is one.
fn innermost(command: &clap::Command) -> &clap::Command {
    std::env::args_os().skip(1).fold(command, |command, word| command.find_subcommand(word).unwrap_or(command))
}

fn suggested(value: &ContextValue) -> Option<String> {
    match value {
        ContextValue::String(name) => Some(name.clone()),
        ContextValue::Strings(names) => names.first().cloned(),
        _ => None,
    }
}
