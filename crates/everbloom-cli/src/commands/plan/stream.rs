//! What is said of a stream on the command line, and what a sample says of it.

use super::Plan;
use crate::args::{ImportanceArgs, OnError};
use crate::commands::learn;
use crate::failure::{Failure, Result};
use crate::filter_file;
use crate::progress::Screen;
use crate::record::Layout;
use everbloom::{Importance, ImportanceMix, ImportanceScale, Stream};
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
            _ => Ok(Repeats::Sample(text.into())),
        }
    }
}

impl Repeats {
    /// The stream, learned from a sample where there is one.
    pub(super) fn load(&self, plan: &Plan) -> Result<Stream> {
        if let Repeats::Sample(path) = self {
            return learned(path, plan);
        }
        let Some(distinct) = plan.expect else {
            return Err(Failure::new("say how many distinct keys to expect, such as --expect 1e6"));
        };
        let arrivals = plan.arrivals.unwrap_or(distinct.saturating_mul(ARRIVALS_PER_KEY));
        let stream = match self {
            Repeats::Zipf(exponent) if plan.arrivals.is_none() => Stream::zipf_of(distinct, *exponent),
            Repeats::Zipf(exponent) => Stream::zipf(arrivals, distinct, *exponent),
            Repeats::Phases(count) => Stream::in_phases(arrivals, distinct, *count),
            Repeats::Lags(path) => Stream::by_lag(arrivals, distinct, &lags(path)?),
            _ => Stream::uniform(arrivals, distinct),
        };
        stream.map_err(Failure::new)
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
fn learned(path: &Path, plan: &Plan) -> Result<Stream> {
    let layout = Layout::new(&plan.keys, &ImportanceArgs::default())?;
    let files = [path.to_path_buf()];
    let (sample, ..) = learn::from_files(&files, layout, &plan.keys, OnError::Fail, None, Screen::Free)?;
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

fn read(path: &Path) -> Result<String> {
    let length = std::fs::metadata(path).map_err(|error| Failure::io(path.display(), &error))?.len();
    if length > MOST_BYTES {
        return Err(Failure::at(path, "is longer than 64 MiB; give a shorter list"));
    }
    std::fs::read_to_string(path).map_err(|error| Failure::io(path.display(), &error))
}

/// How importances are spread.
#[derive(Debug, Clone)]
pub(super) enum Mix {
    Linear,
    Exponential,
    File(PathBuf),
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "linear" => Ok(Mix::Linear),
            "exponential" => Ok(Mix::Exponential),
            "" => Err("must be linear, exponential or a file of importances".into()),
            // Elsewhere it is the field of a record.
            number if number.parse::<f64>().is_ok() && !Path::new(number).exists() => {
                Err("says here how importances are spread: linear, exponential, or a file of them, one per line"
                    .to_string())
            }
            path => Ok(Mix::File(path.into())),
        }
    }
}

/// The thesis's importances go up to 50.
const THESIS_MAX: u32 = 50;

impl Mix {
    /// How they are spread, and the largest of them.
    pub(super) fn load(&self) -> Result<(ImportanceMix, f64)> {
        let max = f64::from(THESIS_MAX);
        let of = |value: u32| Importance::new(value, THESIS_MAX).unwrap_or_default();
        match self {
            Mix::Linear => Ok((ImportanceMix::of((1..=THESIS_MAX).map(of)), max)),
            Mix::Exponential => {
                let value = |share: f64| (share * f64::from(THESIS_MAX + 1).ln()).exp().floor() as u32;
                let shares = (0..1000).map(|index| (f64::from(index) + 0.5) / 1000.0);
                Ok((ImportanceMix::of(shares.map(|share| of(value(share).clamp(1, THESIS_MAX)))), max))
            }
            Mix::File(path) => from_file(path),
        }
    }
}

fn from_file(path: &Path) -> Result<(ImportanceMix, f64)> {
    let text = read(path)?;
    let number = |(index, line): (usize, &str)| match line.trim().parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err(Failure::at(
            path,
            format!("line {}: '{}' is not an importance; write a number of 0 or above", index + 1, line.trim()),
        )),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let values = lines.map(number).collect::<Result<Vec<f64>>>()?;
    let most = values.iter().copied().fold(0.0, f64::max);
    if most == 0.0 {
        return Err(Failure::at(path, "has no importance above 0; write one number on each line"));
    }
    let scale = ImportanceScale::linear(most).map_err(Failure::new)?;
    let importances = values.iter().map(|value| scale.of(*value)).collect::<Result<Vec<_>, _>>();
    Ok((ImportanceMix::of(importances.map_err(Failure::new)?), most))
}
