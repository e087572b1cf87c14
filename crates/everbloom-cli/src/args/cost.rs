//! What errors cost.

use super::quantity;
use crate::failure::{Failure, Result};
use clap::Args;
use everbloom::ImportanceScale;
use everbloom_forecast::{Cost, Price};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What errors and memory cost, in one unit of the user's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args)]
pub(crate) struct CostArgs {
    /// Cost of a false positive (a new line dropped), in any unit, the same for all costs: the cheapest filter is taken
    ///
    /// Where neither --memory nor --memory-cost says how much, as much is taken as pays: more would save less than a
    /// hundredth of what it costs to have no filter
    #[arg(long, value_name = "COST", value_parser = quantity::cost, allow_negative_numbers = true, requires = "cost_fn", help_heading = "Cost")]
    pub(crate) cost_fp: Option<f64>,
    /// Cost of a false negative (a repeat let through)
    #[arg(long, value_name = "COST", value_parser = quantity::cost, allow_negative_numbers = true, requires = "cost_fp", help_heading = "Cost")]
    pub(crate) cost_fn: Option<f64>,
    /// How --cost-fp depends on the importance: constant, linear (all of it at the greatest), or a file with an importance
    /// and a factor on each line, interpolated between [default: constant]
    #[arg(long, value_name = "HOW", requires = "cost_fp", help_heading = "Cost")]
    pub(crate) cost_fp_by_importance: Option<By>,
    /// How --cost-fn depends on the importance, as --cost-fp-by-importance says it [default: constant]
    #[arg(long, value_name = "HOW", requires = "cost_fn", help_heading = "Cost")]
    pub(crate) cost_fn_by_importance: Option<By>,
    /// Cost of a MiB of memory for as long as the stream takes, in the same unit: how much to take is then chosen, too
    #[arg(long, value_name = "COST", value_parser = quantity::cost, allow_negative_numbers = true, requires = "cost_fp", help_heading = "Cost")]
    pub(crate) memory_cost: Option<f64>,
}

/// How a cost depends on the importance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    Constant,
    Linear,
    Table(PathBuf),
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "constant" => Ok(By::Constant),
            "linear" => Ok(By::Linear),
            "" => Err("must be constant, linear or a file".into()),
            _ => quantity::file_beside(&["constant", "linear"], text).map(By::Table),
        }
    }
}

impl By {
    fn price(how: Option<&Self>, each: f64, importances: Option<ImportanceScale>) -> Result<Price> {
        match how {
            None | Some(By::Constant) => Ok(Price::constant(each)),
            Some(By::Linear) => Ok(Price::linear(each)),
            Some(By::Table(path)) => {
                let scale = importances.ok_or_else(|| {
                    Failure::at(
                        path,
                        "gives costs by importance, and nothing is said of importances; give --importance",
                    )
                })?;
                Price::table(each, &table(path, scale)?).map_err(|error| Failure::at(path, error))
            }
        }
    }
}

impl CostArgs {
    /// The tables that are read.
    pub(crate) fn tables(&self) -> Vec<PathBuf> {
        let hows = [&self.cost_fp_by_importance, &self.cost_fn_by_importance].into_iter().flatten();
        let table = |how: &By| match how {
            By::Table(path) => Some(path.clone()),
            By::Constant | By::Linear => None,
        };
        hows.filter_map(table).collect()
    }

    /// The costs, if any were given.
    pub(crate) fn cost(&self, importances: Option<ImportanceScale>) -> Result<Option<Cost>> {
        let (Some(cost_fp), Some(cost_fn)) = (self.cost_fp, self.cost_fn) else { return Ok(None) };
        let false_positive = By::price(self.cost_fp_by_importance.as_ref(), cost_fp, importances)?;
        let false_negative = By::price(self.cost_fn_by_importance.as_ref(), cost_fn, importances)?;
        if cost_fp == 0.0 && cost_fn == 0.0 {
            return Err(Failure::new(
                "--cost-fp and --cost-fn are both 0, so that every filter costs the same; try --cost-fn 1",
            ));
        }
        Ok(Some(Cost::of(false_positive, false_negative).memory_per_mib(self.memory_cost.unwrap_or(0.0))))
    }
}

/// Lines of an importance, as records have it, and a factor.
fn table(path: &Path, scale: ImportanceScale) -> Result<Vec<(f64, f64)>> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io(path.display(), &error))?;
    let mut points = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let parts = line.split(|letter: char| letter == ',' || letter.is_whitespace()).filter(|part| !part.is_empty());
        let numbers: Vec<Option<f64>> = parts.map(|part| part.parse::<f64>().ok()).collect();
        let [Some(importance), Some(factor)] = numbers[..] else {
            let line = line.trim().chars().take(80).collect::<String>();
            let problem = format!("line {}: '{line}' is not an importance and a factor, such as 10 2.5", index + 1);
            return Err(Failure::at(path, problem));
        };
        let importance =
            scale.of(importance).map_err(|error| Failure::at(path, format!("line {}: {error}", index + 1)))?;
        points.push((importance.share(), factor));
    }
    Ok(points)
}
