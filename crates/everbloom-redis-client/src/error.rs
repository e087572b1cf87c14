//! What can go wrong, in the words of whoever runs it.

use std::fmt;

/// Why something was not done. No password is in any of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An address or a name that is none.
    Usage(String),
    /// There is no filter of this name.
    NotFound(String),
    /// There is another filter of this name.
    Exists(String),
    /// A server lacks the module.
    NoModule(String),
    /// A server answered with an error that sending again would not help.
    Server(String),
    /// Servers did not answer in the time there was.
    Unreachable(String),
    /// A server forgot this client, so nobody knows whether its batch arrived.
    TokenLost(String),
    /// A server's last batch of this client is another than the one before: its number, and what to say.
    TokenOrder(u64, String),
    /// Whoever called asked to stop.
    Stopped,
    /// The library refused something.
    Filter(everbloom::Error),
}

/// What may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text)
            | Error::NotFound(text)
            | Error::Exists(text)
            | Error::NoModule(text)
            | Error::Server(text)
            | Error::Unreachable(text)
            | Error::TokenLost(text)
            | Error::TokenOrder(_, text) => out.write_str(text),
            Error::Stopped => out.write_str("it was stopped"),
            Error::Filter(error) => error.fmt(out),
        }
    }
}

impl Error {
    /// What to do about it: the last part of what is shown.
    pub fn remedy(&self) -> String {
        let text = self.to_string();
        text.rsplit_once("; ").map_or(String::new(), |(_, remedy)| remedy.to_string())
    }
}

impl std::error::Error for Error {}

impl From<everbloom::Error> for Error {
    fn from(error: everbloom::Error) -> Self {
        Error::Filter(error)
    }
}
