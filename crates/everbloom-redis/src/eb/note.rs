//! What a file notes beside its filter: the time of its window, and the largest importance.
//!
//! A file has a filter's cells and not its clock. The Python package keeps the clock in the note of the header, as a JSON object
//! (`window_us`, `clock`, `importance_max`); without it a window that was moved would never turn again and forget nothing.
//! `EB.DUMP` writes the same, and `EB.LOAD` reads it.

use super::stored::{Scale, Stored, Turns};
use everbloom::kind::{Timeline, Times};
use std::time::Duration;

const WINDOW: &str = "window_us";
const CLOCK: &str = "clock";
const IMPORTANCE: &str = "importance_max";

/// What a note says that concerns a server.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Noted {
    /// Microseconds of the window.
    window: Option<u64>,
    importance_max: Option<f64>,
}

impl Noted {
    /// Reads a note, which may be anybody's and say anything; an error if it has a time that cannot be read.
    pub(super) fn read(note: &str) -> Result<Self, String> {
        let unreadable =
            |name: &str| format!("the file's note has a {name} that cannot be read; give EVERY or IMPORTANCE");
        let window = field(note, WINDOW).map(|text| text.parse().map_err(|_| unreadable(WINDOW))).transpose()?;
        let max = field(note, IMPORTANCE).map(|text| text.parse().map_err(|_| unreadable(IMPORTANCE))).transpose()?;
        Ok(Noted { window, importance_max: max })
    }

    /// The turns of a filter with so many generations. The present one begins anew, so that nothing is forgotten early.
    pub(super) fn turns(&self, generations: u32, now: i64) -> Option<Result<Turns, String>> {
        let window = self.window.filter(|_| generations > 0)?;
        // Rounded up: the generations together are never shorter than the window.
        let every = window.div_ceil(1000).div_ceil(generations.into());
        Some(Turns::checked(every, Turns::at(every, now)))
    }

    pub(super) fn importance(&self) -> Option<everbloom::Result<Scale>> {
        self.importance_max.map(|max| Scale::new(max, false))
    }
}

/// The number behind a name of a JSON object, as text.
fn field<'n>(note: &'n str, name: &str) -> Option<&'n str> {
    let (_, behind) = note.split_once(&format!("\"{name}\""))?;
    let value = behind.trim_start().strip_prefix(':')?.trim_start();
    Some(value.split([',', '}', ' ']).next().unwrap_or_default())
}

/// What `EB.DUMP` notes; empty if there is nothing to note.
pub(super) fn note_of(stored: &Stored) -> String {
    let mut fields = Vec::new();
    if let Some(turns) = stored.turns
        && let Some(clock) = clock_of(turns, stored.generations, stored.window)
    {
        let window = turns.every.saturating_mul(1000).saturating_mul(stored.generations.into());
        let clock: String = clock.iter().map(|byte| format!("{byte:02x}")).collect();
        fields.push(format!("\"{WINDOW}\":{window},\"{CLOCK}\":\"{clock}\""));
    }
    // Others know no logarithmic ones.
    if let Some(Scale { max, is_logarithmic: false, .. }) = stored.importance {
        fields.push(format!("\"{IMPORTANCE}\":{max}"));
    }
    if fields.is_empty() { String::new() } else { format!("{{{}}}", fields.join(",")) }
}

/// The clock of the window in the present generation, as the library keeps it.
fn clock_of(turns: Turns, generations: u32, arrivals: u64) -> Option<Vec<u8>> {
    let window = Duration::from_millis(turns.every.checked_mul(generations.into())?);
    let mut timeline = Timeline::new(window, generations, arrivals).ok()?;
    let now = i64::try_from(turns.every.checked_mul(turns.generation)?.checked_mul(1000)?).ok()?;
    timeline.step(Times::Now(now), 1);
    Some(timeline.state())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_whatever_else_is_in_it() {
        let noted = Noted::read(r#"{"clock":"00ff","importance_max": 16.5,"key":"1","window_us": 1000000}"#);
        assert_eq!(noted, Ok(Noted { window: Some(1_000_000), importance_max: Some(16.5) }));
        for nothing in ["", "{}", "text", r#"{"key":"window_us"}"#] {
            assert_eq!(Noted::read(nothing), Ok(Noted::default()), "{nothing}");
        }
        assert!(Noted::read(r#"{"window_us":-1}"#).is_err() && Noted::read(r#"{"window_us":""#).is_err());
        assert!(Noted::read(r#"{"window_us":1e99}"#).is_err());
    }

    #[test]
    fn generations_together_are_never_shorter_than_the_window() {
        let noted = Noted { window: Some(1_000_001), importance_max: None };
        for generations in 1..100 {
            let turns = noted.turns(generations, 5_000).expect("a window").expect("a time");
            assert!(turns.every * 1000 * u64::from(generations) >= 1_000_001, "{generations}");
            assert_eq!(turns.generation, 5_000 / turns.every);
        }
        assert_eq!(noted.turns(0, 5_000), None, "a filter without generations");
    }
}
