//! Two systems that ship filters to each other, simulated request by request with real bits.
//!
//! - [`caching`]: proxies that tell each other what they have cached.
//! - [`keyword`]: nodes that intersect lists of documents.
//! - [`trace`]: what is requested, recorded or generated.

pub mod caching;
pub mod keyword;
pub mod trace;

/// How the number of hashes of a key is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// The same for all.
    Standard,
    /// The real-number optimum, key by key, rounded.
    Rounding,
    /// The paper's integer solution, key by key, at half fill: what its programme, which would take hours for so many
    /// keys, tends to for small ε.
    Paper,
    /// By classes, solved with a free fill: held out in [`caching`], by the length of documents in [`keyword`].
    Ours,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Scheme; 4] = [Scheme::Standard, Scheme::Rounding, Scheme::Paper, Scheme::Ours];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Standard => "standard",
            Scheme::Rounding => "rounding",
            Scheme::Paper => "paper",
            Scheme::Ours => "ours",
        }
    }
}
