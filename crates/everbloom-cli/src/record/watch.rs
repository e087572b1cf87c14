//! What becomes of records without a key, time or importance.

use super::Batch;
use crate::args::OnError;
use crate::failure::{Failure, Result};

/// Whether an option is mistaken is decided on so many records at the start of a run.
const FIRST_RECORDS: u64 = 1000;
/// What is shown of a record.
const SHOWN_LETTERS: usize = 80;

/// Counts records and those among them that cannot be used, and says when to stop: at the first, if that was asked for,
/// or when it is more than half of the first 1,000, which is no record's mistake.
#[derive(Debug, Default)]
pub(crate) struct FaultWatch {
    on_error: OnError,
    is_chosen: bool,
    /// Whether earlier records showed that the options are no mistake.
    is_proven: bool,
    records: u64,
    faults: u64,
    /// Those among the first records.
    early_faults: u64,
    /// The first that cannot be used, in words.
    first: Option<String>,
    /// What was probably meant where it was looked for.
    meant: Option<String>,
}

impl FaultWatch {
    /// Does as was `chosen`, or else as is usual.
    pub(crate) fn new(chosen: Option<OnError>, usual: OnError) -> Self {
        let (on_error, is_chosen) = (chosen.unwrap_or(usual), chosen.is_some());
        FaultWatch { on_error, is_chosen, ..FaultWatch::default() }
    }

    /// Of so many records of earlier runs so many could not be used: if most could, one more is no sign of a mistake.
    pub(crate) fn after(self, records: u64, faults: u64) -> Self {
        FaultWatch { is_proven: records > 2 * faults, ..self }
    }

    /// Records counted so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Those that could not be used.
    pub(crate) fn faults(&self) -> u64 {
        self.faults
    }

    /// What to do with a record that cannot be used.
    pub(crate) fn on_error(&self) -> OnError {
        self.on_error
    }

    /// Counts the records of a batch; if it is to end before one of them, says which, and why.
    pub(crate) fn count(&mut self, bytes: &[u8], batch: &Batch) -> Option<(usize, Failure)> {
        for (index, fault) in batch.faults() {
            let number = self.records + *index as u64 + 1;
            let described = || format!("{fault}: {}", shown(batch.record(bytes, *index)));
            if self.on_error == OnError::Fail {
                let meant = fault.meant(batch.record(bytes, *index)).map(|meant| format!("did you mean '{meant}'?"));
                let remedy = meant.unwrap_or_else(|| "--on-error skip leaves such records out".into());
                let problem = format!("record {number} cannot be used: {}; {remedy}", described());
                return Some((*index, Failure::new(problem)));
            }
            self.faults += 1;
            if self.first.is_none() {
                self.first = Some(format!("the first is record {number}: {}", described()));
                self.meant = fault.meant(batch.record(bytes, *index));
            }
            self.early_faults += u64::from(number <= FIRST_RECORDS);
            if !self.is_chosen && !self.is_proven && number <= FIRST_RECORDS && self.early_faults * 2 > FIRST_RECORDS {
                self.records = number;
                return Some((*index, self.mistaken()));
            }
        }
        self.records += batch.len() as u64;
        None
    }

    /// Counts a batch of which nothing is used if one of its records is refused.
    pub(crate) fn check(&mut self, bytes: &[u8], batch: &Batch) -> Result<()> {
        self.count(bytes, batch).map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Refuses an input that ended before there were enough records to decide by, if most of them cannot be used.
    pub(crate) fn finish(&self) -> Result<()> {
        let is_short = self.records <= FIRST_RECORDS;
        if !self.is_chosen && !self.is_proven && is_short && self.faults * 2 > self.records {
            Err(self.mistaken())
        } else {
            Ok(())
        }
    }

    /// What to say at the end of records that could not be used, unless it was chosen to keep them: those that are not
    /// written are lost.
    pub(crate) fn note(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let records = if self.faults == 1 { "record" } else { "records" };
        let treated = match self.on_error {
            OnError::Skip => "left out",
            _ if self.is_chosen => return None,
            _ => "treated as new",
        };
        Some(format!("{} {records} that cannot be used, {treated}; {first}", self.faults))
    }

    fn mistaken(&self) -> Failure {
        let first = self.first.as_deref().unwrap_or_default();
        let remedy = match &self.meant {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => "correct the option, or go on with --on-error keep or skip".into(),
        };
        let (faults, records) = (self.faults, self.records);
        Failure::new(format!("{faults} of the first {records} records cannot be used; {first}; {remedy}"))
    }
}

/// A record that fits into a line and does nothing to a terminal.
pub(crate) fn shown(record: &[u8]) -> String {
    let ending = record.iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r' | 0)).count();
    let record = &record[..record.len() - ending];
    // A letter has at most four bytes.
    let start = String::from_utf8_lossy(&record[..record.len().min(4 * SHOWN_LETTERS)]);
    let mut shown = String::from("'");
    for letter in start.chars().take(SHOWN_LETTERS) {
        match letter {
            '"' | '\'' | '\\' => shown.push(letter),
            _ => shown.extend(letter.escape_debug()),
        }
    }
    let is_cut = record.len() > 4 * SHOWN_LETTERS || start.chars().count() > SHOWN_LETTERS;
    shown.push_str(if is_cut { "…'" } else { "'" });
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_shown_in_one_harmless_line() {
        assert_eq!(shown(b"a\t\"b\"\r\n"), r#"'a\t"b"'"#);
        assert_eq!(shown(b"\x1b[2J\xff\0"), r"'\u{1b}[2J\u{fffd}'".replace(r"\u{fffd}", "\u{fffd}"));
        assert_eq!(shown(&[b'x'; 10_000]), format!("'{}…'", "x".repeat(80)));
        assert_eq!(shown("ä".repeat(81).as_bytes()), format!("'{}…'", "ä".repeat(80)));
    }
}
