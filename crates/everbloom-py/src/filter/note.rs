//! What a file keeps beside its filter: the clock of a window of time, and the largest importance.
//!
//! It is a JSON object in the header's note. What others noted there (the command line: how keys are found in records) is
//! kept when a filter is saved again.

use everbloom::{Error, Result};
use serde_json::{Map, Value};
use std::time::Duration;

/// What is noted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note {
    /// The length of the window and the state of its clock.
    pub(crate) window: Option<(Duration, Vec<u8>)>,
    pub(crate) importance_max: Option<f64>,
    /// What others noted, as they wrote it, and its fields if it has any.
    original: String,
    fields: Map<String, Value>,
}

const WINDOW: &str = "window_us";
const CLOCK: &str = "clock";
const IMPORTANCE: &str = "importance_max";

impl Note {
    /// Reads a note, of which nothing is trusted.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else {
            return Ok(Note { original: text.to_string(), ..Note::default() });
        };
        let damaged = || Error::Corrupt {
            problem: "the clock of the window cannot be read".into(),
            remedy: "restore it from a copy or build it again",
        };
        let window = match (fields.remove(WINDOW), fields.remove(CLOCK)) {
            (None, None) => None,
            (Some(micros), Some(clock)) => {
                let micros = micros.as_u64().ok_or_else(damaged)?;
                let clock = clock.as_str().and_then(from_hex).ok_or_else(damaged)?;
                Some((Duration::from_micros(micros), clock))
            }
            _ => return Err(damaged()),
        };
        let importance_max = match fields.remove(IMPORTANCE) {
            None => None,
            Some(max) => Some(max.as_f64().filter(|max| *max > 0.0 && max.is_finite()).ok_or_else(damaged)?),
        };
        Ok(Note { window, importance_max, original: text.to_string(), fields })
    }

    /// The note as text; empty if there is nothing to note.
    pub(crate) fn text(&self) -> String {
        if self.window.is_none() && self.importance_max.is_none() {
            return self.original.clone();
        }
        let mut fields = self.fields.clone();
        if let Some((window, clock)) = &self.window {
            let micros = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
            fields.insert(WINDOW.into(), micros.into());
            fields.insert(CLOCK.into(), to_hex(clock).into());
        }
        if let Some(max) = self.importance_max {
            fields.insert(IMPORTANCE.into(), max.into());
        }
        Value::Object(fields).to_string()
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
