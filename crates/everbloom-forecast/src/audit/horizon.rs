//! What an arrival was: new, a repeat, or what a window may call either.

use everbloom::Verdict;

/// For a filter with a window: which arrivals are repeats to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// An arrival no farther from the last one of its key than this is a repeat.
    pub within: u64,
    /// One farther than this is new. What lies between, a window that forgets in steps may call either: traces are left, and
    /// what they lead to is no error of the kind that is promised for keys that never came.
    pub beyond: u64,
    /// How far a turn of the window moves all that was before; every arrival moves it by one if `counts_arrivals`.
    pub turn: u64,
    /// Whether arrivals move the window, and not turns alone.
    pub counts_arrivals: bool,
    /// Whether every arrival renews a key's age; only those called new otherwise.
    pub renews: bool,
}

impl Horizon {
    /// The window of so many arrivals of a filter with so many generations of whole arrivals, in which traces fade for so many
    /// more. The one at work is not over yet when a key comes.
    pub fn of_arrivals(window: u64, generations: u32, partial_generations: u32, renews: bool) -> Self {
        let turn = window.div_ceil(generations.max(1).into());
        let beyond = turn.saturating_mul(u64::from(generations.max(1)) + u64::from(partial_generations) + 1);
        Horizon { within: window, beyond, turn, counts_arrivals: true, renews }
    }

    /// The window of a filter whose generations its caller turns, by a clock most of the time: what came within so many
    /// turns is known.
    pub fn of_turns(generations: u32, partial_generations: u32, renews: bool) -> Self {
        let within = u64::from(generations);
        Horizon { within, beyond: within + u64::from(partial_generations), turn: 1, counts_arrivals: false, renews }
    }

    /// What an arrival at this place was, whose key counts its age from there.
    pub(super) fn truth(&self, place: i64, anchor: i64) -> Truth {
        match place.saturating_sub(anchor).max(0) as u64 {
            age if age <= self.within => Truth::Repeat,
            age if age > self.beyond => Truth::New,
            _ => Truth::Either,
        }
    }
}

/// What an arrival was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    New,
    Repeat,
    /// A window may call it either.
    Either,
}

impl Truth {
    pub(super) fn is_wrong(self, verdict: Verdict) -> bool {
        match self {
            Truth::New => !verdict.is_distinct(),
            Truth::Repeat => verdict.is_distinct(),
            Truth::Either => false,
        }
    }
}
