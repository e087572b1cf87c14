//! What is said of importances on the command line: how they are spread, or which field of a sample has them.

use super::Plan;
use super::stream::{Repeats, read};
use crate::args::{ImportanceArgs, Scale, quantity};
use crate::failure::{Failure, Result};
use everbloom::{Importance, ImportanceMix, ImportanceScale};
use std::path::Path;

/// The importances of a stream.
#[derive(Debug, Clone)]
pub(super) struct Importances {
    /// The largest of them.
    pub(super) max: f64,
    pub(super) scale: Scale,
    pub(super) known: Known,
}

/// What is known of them.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// How they are spread.
    Spread(Box<ImportanceMix>),
    /// The field of a sample that has them.
    Field(String),
}

/// The thesis's importances go up to 50.
const THESIS_MAX: u32 = 50;

impl Importances {
    /// What was typed. Of a sample the records have them: how they are spread does not say which keys have which.
    pub(super) fn of(plan: &Plan) -> Result<Option<Self>> {
        let Some(typed) = &plan.importance else { return Ok(None) };
        let is_sample = matches!(plan.stream, Some(Repeats::Sample(_)));
        match (is_sample, plan.importance_max) {
            (true, Some(max)) => {
                let scale = plan.importance_scale.unwrap_or_default();
                Ok(Some(Importances { max, scale, known: Known::Field(typed.clone()) }))
            }
            (true, None) => Err(Failure::new(format!(
                "--importance {typed} does not say which records of the sample have which importance; give the field that has \
                 it and the largest, such as --importance 3 --importance-max 50"
            ))),
            (false, Some(_)) => Err(Failure::new(
                "--importance-max is for the field of a sample; give the sample with --stream FILE, or leave \
                 --importance-max out",
            )),
            (false, None) => spread(typed).map(Some),
        }
    }

    /// How they are spread, where that was described.
    pub(super) fn mix(&self) -> Option<ImportanceMix> {
        match &self.known {
            Known::Spread(mix) => Some(**mix),
            Known::Field(_) => None,
        }
    }

    /// Where the records of a sample have them.
    pub(super) fn of_records(&self) -> ImportanceArgs {
        match &self.known {
            Known::Spread(_) => ImportanceArgs::default(),
            Known::Field(field) => ImportanceArgs {
                importance: Some(field.clone()),
                importance_max: Some(self.max),
                importance_scale: self.scale,
            },
        }
    }

    /// How they are made of values.
    pub(super) fn scale(&self) -> Result<ImportanceScale> {
        self.scale.up_to(self.max)
    }
}

fn spread(how: &str) -> Result<Importances> {
    let described =
        |mix: ImportanceMix, max: f64| Importances { max, scale: Scale::Linear, known: Known::Spread(Box::new(mix)) };
    let max = f64::from(THESIS_MAX);
    let of = |value: u32| Importance::new(value, THESIS_MAX).unwrap_or_default();
    match how {
        "linear" => Ok(described(ImportanceMix::of((1..=THESIS_MAX).map(of)), max)),
        "exponential" => {
            let value = |share: f64| (share * f64::from(THESIS_MAX + 1).ln()).exp().floor() as u32;
            let shares = (0..1000).map(|index| (f64::from(index) + 0.5) / 1000.0);
            Ok(described(ImportanceMix::of(shares.map(|share| of(value(share).clamp(1, THESIS_MAX)))), max))
        }
        "" => Err(Failure::new("--importance must be linear, exponential or a file of importances")),
        // With a sample it is the field of a record.
        number if number.parse::<f64>().is_ok() && !Path::new(number).exists() => Err(Failure::new(format!(
            "--importance {number} is a field of a sample, and none is given; give it with --stream FILE, or say how \
             importances are spread: linear, exponential, or a file of them, one per line"
        ))),
        path => {
            let path = quantity::file_beside(&["linear", "exponential"], path);
            let path = path.map_err(|problem| Failure::new(format!("--importance {how}: {problem}")))?;
            from_file(&path).map(|(mix, max)| described(mix, max))
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
