//! What is said of a stream on the command line, and what a sample says of it.

use super::Plan;
use super::importance::Importances;
use crate::args::{OnError, quantity};
use crate::commands::learn;
use crate::failure::{Failure, Result};
use crate::filter_file;
use crate::progress::Screen;
use crate::record::Layout;
use everbloom::kind::MAX_ITEMS;
use everbloom_forecast::{Audits, Stream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Arrivals for each distinct key, where nothing is said: every second one is a repeat.
const ARRIVALS_PER_KEY: u64 = 2;

/// How keys come back.
#[derive(Debug, Clone)]
pub(super) enum Repeats {
    Uniform,
    Zipf(f64),
    Phases(u64),
    Lags(PathBuf),
    Sample(PathBuf),
}

impl FromStr for Repeats {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "uniform" => Ok(Repeats::Uniform),
            None if text == "zipf" => Ok(Repeats::Zipf(1.0)),
            Some(("zipf", exponent)) => match exponent.parse() {
                Ok(exponent) if exponent > 0.0 && exponent <= 10.0 => Ok(Repeats::Zipf(exponent)),
                _ => Err("must have an exponent between 0 and 10, such as zipf:1.1".into()),
            },
            Some(("phases", count)) => match count.parse() {
                Ok(count) if count > 0 => Ok(Repeats::Phases(count)),
                _ => Err("must have a number of phases, such as phases:10".into()),
            },
            Some(("lag", path)) if !path.is_empty() => Ok(Repeats::Lags(path.into())),
            Some(("lag", _)) => {
                Err("must name a file, as lag:FILE, with a lag and the weight of the repeats up to it on each line"
                    .into())
            }
            _ if text.is_empty() => Err("must be uniform, zipf:1.1, phases:10, lag:FILE or a file".into()),
            _ => quantity::file_beside(&["uniform", "zipf", "phases", "lag"], text).map(Repeats::Sample),
        }
    }
}

impl Repeats {
    /// The file that says so, if one does.
    #[cfg(feature = "lab")]
    pub(super) fn file(&self) -> Option<&PathBuf> {
        match self {
            Repeats::Lags(path) | Repeats::Sample(path) => Some(path),
            Repeats::Uniform | Repeats::Zipf(_) | Repeats::Phases(_) => None,
        }
    }

    /// The stream, learned from a sample where there is one, with the importances that its records have.
    pub(super) fn load(&self, plan: &Plan, importances: Option<&Importances>) -> Result<Stream> {
        if let Repeats::Sample(path) = self {
            return learned(path, plan, importances);
        }
        let Some(distinct) = plan.expect else {
            return Err(Failure::new("say how many distinct keys to expect, such as --expect 1e6"));
        };
        let arrivals = plan.arrivals.unwrap_or(distinct.saturating_mul(ARRIVALS_PER_KEY).min(MAX_ITEMS));
        let stream = match self {
            Repeats::Zipf(exponent) if plan.arrivals.is_none() => Stream::zipf_of(distinct, *exponent),
            Repeats::Zipf(exponent) => Stream::zipf(arrivals, distinct, *exponent),
            Repeats::Phases(count) => Stream::in_phases(arrivals, distinct, *count),
            Repeats::Lags(path) => Stream::by_lag(arrivals, distinct, &lags(path)?),
            _ => Stream::uniform(arrivals, distinct),
        };
        stream.map_err(Failure::from)
    }
}

/// The stream that an audited state has seen.
pub(super) fn of_state(path: &Path) -> Result<Stream> {
    let filter = filter_file::load(path, None, None)?;
    let audit = filter.audit().ok_or_else(|| {
        Failure::at(path, "has no audit to learn from; save it with dedup --audit, or give a sample with --stream")
    })?;
    audit.stream().map_err(|error| Failure::at(path, error))
}

/// Learns a stream at the speed at which it is read.
fn learned(path: &Path, plan: &Plan, importances: Option<&Importances>) -> Result<Stream> {
    let layout = Layout::new(&plan.keys, &importances.map(Importances::of_records).unwrap_or_default())?;
    let files = [path.to_path_buf()];
    let (sample, ..) =
        learn::from_files(&files, layout, &plan.keys, OnError::Fail, None, Screen::of(false, plan.quiet))?;
    sample.finish().map_err(|error| Failure::at(path, error))
}

/// Lines of a lag and the weight of the repeats up to it and beyond the lag before, apart by spaces, tabs or a comma.
fn lags(path: &Path) -> Result<Vec<(f64, f64)>> {
    let text = read(path)?;
    let line = |(index, line): (usize, &str)| {
        let mut numbers =
            line.split(|letter: char| letter == ',' || letter.is_whitespace()).filter(|part| !part.is_empty());
        let pair = (numbers.next().map(str::parse), numbers.next().map_or(Ok(1.0), str::parse));
        match pair {
            (Some(Ok(lag)), Ok(weight)) => Ok((lag, weight)),
            _ => Err(Failure::at(
                path,
                format!("line {} is not a lag and a weight; write them as '100 0.25'", index + 1),
            )),
        }
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(line).collect()
}

/// Descriptions are small; more is a mistake.
const MOST_BYTES: u64 = 64 << 20;

pub(super) fn read(path: &Path) -> Result<String> {
    let length = std::fs::metadata(path).map_err(|error| Failure::io(path.display(), &error))?.len();
    if length > MOST_BYTES {
        return Err(Failure::at(path, "is longer than 64 MiB; give a shorter list"));
    }
    std::fs::read_to_string(path).map_err(|error| Failure::io(path.display(), &error))
}
