//! What an experiment measures: rows of labels and values, and what they come to over the seeds.
//!
//! Everything is kept in tidy form: a row says with its labels what was measured (which filter, how
//! large, at which importance) and with its values what came out. Rows of several seeds with the same
//! labels are repetitions of one measurement, a [`Sample`].

use crate::bad;
use everbloom::{Error, Result};
use serde::{Deserialize, Serialize};

/// What a row is about, in one respect: a word or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value", into = "serde_json::Value")]
pub enum Label {
    /// Such as the name of a filter.
    Text(String),
    /// Such as a size.
    Number(f64),
}

impl Label {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Label::Number(number) => Some(*number),
            Label::Text(_) => None,
        }
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Text(text) => out.write_str(text),
            Label::Number(number) => write!(out, "{number}"),
        }
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Label::Text(text.to_string())
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Label::Text(text)
    }
}

impl From<&String> for Label {
    fn from(text: &String) -> Self {
        Label::Text(text.clone())
    }
}

impl From<&Label> for Label {
    fn from(label: &Label) -> Self {
        label.clone()
    }
}

impl From<f64> for Label {
    fn from(number: f64) -> Self {
        Label::Number(number)
    }
}

impl From<u64> for Label {
    fn from(number: u64) -> Self {
        Label::Number(number as f64)
    }
}

impl From<u32> for Label {
    fn from(number: u32) -> Self {
        Label::Number(f64::from(number))
    }
}

impl From<Label> for serde_json::Value {
    fn from(label: Label) -> Self {
        match label {
            Label::Text(text) => text.into(),
            Label::Number(number) => number.into(),
        }
    }
}

impl TryFrom<serde_json::Value> for Label {
    type Error = Error;

    fn try_from(value: serde_json::Value) -> Result<Self> {
        match value {
            serde_json::Value::String(text) => Ok(Label::Text(text)),
            serde_json::Value::Number(number) if number.as_f64().is_some() => {
                Ok(Label::Number(number.as_f64().unwrap_or_default()))
            }
            other => Err(bad("label", other, "a word or a number", "run the experiment again")),
        }
    }
}

/// One measurement of one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The table it belongs to; an experiment may have several, with labels of their own.
    pub table: String,
    /// What was measured, in the order of the columns.
    pub labels: Vec<(String, Label)>,
    /// What came out. A rate without a denominator is left out.
    pub values: Vec<(String, f64)>,
}

impl Row {
    /// A row without labels or values yet.
    pub fn new(table: &str) -> Self {
        Row { table: table.to_string(), labels: Vec::new(), values: Vec::new() }
    }

    /// Says what was measured.
    #[must_use]
    pub fn label(mut self, name: &str, label: impl Into<Label>) -> Self {
        self.labels.push((name.to_string(), label.into()));
        self
    }

    /// Says what came out; what is missing or not a finite number is left out.
    #[must_use]
    pub fn value(mut self, name: &str, value: impl Into<Option<f64>>) -> Self {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.values.push((name.to_string(), value));
        }
        self
    }

    /// The label of this name.
    pub fn get_label(&self, name: &str) -> Option<&Label> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, label)| label)
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn is(&self, table: &str, labels: &[(&str, Label)]) -> bool {
        self.table == table && labels.iter().all(|(name, label)| self.get_label(name) == Some(label))
    }
}

/// One measurement for several seeds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample(pub Vec<f64>);

impl Sample {
    /// The mean; not a number if there is nothing.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation from seed to seed; 0 for a single one.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (value - mean) * (value - mean)).sum();
        (squares / (self.0.len() as f64 - 1.0).max(1.0)).sqrt()
    }

    /// The standard error of the mean.
    pub fn error(&self) -> f64 {
        self.deviation() / (self.0.len() as f64).max(1.0).sqrt()
    }

    /// The sample in another unit.
    #[must_use]
    pub fn times(&self, unit: f64) -> Sample {
        Sample(self.0.iter().map(|value| value * unit).collect())
    }

    /// The sample in percent.
    #[must_use]
    pub fn percent(&self) -> Sample {
        self.times(100.0)
    }

    /// Seed by seed, what two samples come to together.
    #[must_use]
    pub fn with(&self, other: &Sample, join: impl Fn(f64, f64) -> f64) -> Sample {
        Sample(self.0.iter().zip(&other.0).map(|(mine, theirs)| join(*mine, *theirs)).collect())
    }

    /// How many seeds.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// All that an experiment measured.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<(u64, Row)>,
}

/// A measurement over all seeds.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The table it belongs to.
    pub table: String,
    /// What was measured.
    pub labels: Vec<(String, Label)>,
    /// What came out.
    pub values: Vec<(String, Sample)>,
}

impl Summary {
    /// The label of this name.
    pub fn label(&self, name: &str) -> Option<&Label> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, label)| label)
    }

    /// Whether it has all of these labels.
    pub fn has(&self, labels: &[(&str, Label)]) -> bool {
        labels.iter().all(|(name, label)| self.label(name) == Some(label))
    }

    /// The values of this name.
    pub fn sample(&self, name: &str) -> Option<&Sample> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, sample)| sample)
    }
}

impl Table {
    /// Takes the rows of a seed.
    pub fn extend(&mut self, seed: u64, rows: impl IntoIterator<Item = Row>) {
        self.rows.extend(rows.into_iter().map(|row| (seed, row)));
    }

    /// The rows with their seeds.
    pub fn rows(&self) -> &[(u64, Row)] {
        &self.rows
    }

    /// The names of the tables, in order of appearance.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (_, row) in &self.rows {
            if !names.contains(&row.table.as_str()) {
                names.push(row.table.as_str());
            }
        }
        names
    }

    /// The values of a measurement over the seeds, possibly none.
    pub fn sample(&self, table: &str, value: &str, labels: &[(&str, Label)]) -> Sample {
        Sample(
            self.rows.iter().filter(|(_, row)| row.is(table, labels)).filter_map(|(_, row)| row.get(value)).collect(),
        )
    }

    /// [`Table::sample`] where there must be one.
    pub fn need(&self, table: &str, value: &str, labels: &[(&str, Label)]) -> Result<Sample> {
        let sample = self.sample(table, value, labels);
        if sample.0.is_empty() {
            let wanted: Vec<_> = labels.iter().map(|(name, label)| format!("{name} {label}")).collect();
            return Err(Error::Infeasible {
                wanted: format!("a verdict on {value} of {}", wanted.join(", ")),
                reason: format!("table {table} has no such measurement"),
                remedy: "run the experiment again in an empty directory".into(),
            });
        }
        Ok(sample)
    }

    /// [`Table::need`], in percent.
    pub fn percent(&self, table: &str, value: &str, labels: &[(&str, Label)]) -> Result<Sample> {
        Ok(self.need(table, value, labels)?.percent())
    }

    /// The labels of this name in a table, each once, in order of appearance.
    pub fn labels(&self, table: &str, name: &str) -> Vec<Label> {
        let mut labels = Vec::new();
        for (_, row) in self.rows.iter().filter(|(_, row)| row.table == table) {
            if let Some(label) = row.get_label(name)
                && !labels.contains(label)
            {
                labels.push(label.clone());
            }
        }
        labels
    }

    /// Every measurement of a table over its seeds, in order of appearance.
    pub fn summary(&self, table: &str) -> Vec<Summary> {
        let mut places = std::collections::HashMap::new();
        let mut summaries: Vec<Summary> = Vec::new();
        for (_, row) in self.rows.iter().filter(|(_, row)| row.table == table) {
            let key: Vec<_> = row.labels.iter().map(|(name, label)| format!("{name}={label}")).collect();
            let place = *places.entry(key).or_insert_with(|| {
                summaries.push(Summary { table: table.into(), labels: row.labels.clone(), values: Vec::new() });
                summaries.len() - 1
            });
            let values = &mut summaries[place].values;
            for (name, value) in &row.values {
                match values.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sample)) => sample.0.push(*value),
                    None => values.push((name.clone(), Sample(vec![*value]))),
                }
            }
        }
        summaries
    }
}

/// Comma-separated values, one line a row and seed.
pub(super) fn csv(table: &Table, name: &str) -> String {
    let rows: Vec<_> = table.rows.iter().filter(|(_, row)| row.table == name).collect();
    let mut labels: Vec<&str> = Vec::new();
    let mut values: Vec<&str> = Vec::new();
    for (_, row) in &rows {
        row.labels.iter().for_each(|(name, _)| note(&mut labels, name));
        row.values.iter().for_each(|(name, _)| note(&mut values, name));
    }
    let head = labels.iter().copied().chain(["seed"]).chain(values.iter().copied());
    let mut text = line(head.map(str::to_string));
    for (seed, row) in rows {
        let label = |name: &&str| row.get_label(name).map(Label::to_string).unwrap_or_default();
        let value = |name: &&str| row.get(name).map(|value| value.to_string()).unwrap_or_default();
        let cells = labels.iter().map(label).chain([seed.to_string()]).chain(values.iter().map(value));
        text.push_str(&line(cells));
    }
    text
}

fn note<'a>(known: &mut Vec<&'a str>, name: &'a str) {
    if !known.contains(&name) {
        known.push(name);
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| {
        if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    };
    let mut line = cells.map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::default();
        for seed in 0..3 {
            let row = |filter: &str, fnr: f64| {
                Row::new("rates").label("filter", filter).label("bits", 8u64).value("fnr", fnr)
            };
            table.extend(seed, [row("a", seed as f64), row("b, \"c\"", 5.0), row("a", f64::NAN)]);
        }
        table
    }

    #[test]
    fn seeds_of_one_measurement_make_a_sample() {
        let sample = table().sample("rates", "fnr", &[("filter", "a".into()), ("bits", 8u64.into())]);
        assert_eq!((sample.mean(), sample.deviation(), sample.count()), (1.0, 1.0, 3));
        assert_eq!(table().sample("rates", "fnr", &[("filter", "z".into())]).count(), 0);
        assert!(table().need("rates", "fnr", &[("filter", "z".into())]).is_err());
        assert_eq!(table().summary("rates").len(), 2);
        assert_eq!(table().labels("rates", "filter").len(), 2);
    }

    #[test]
    fn values_are_written_as_csv_with_quotes_where_needed() {
        let text = csv(&table(), "rates");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("filter,bits,seed,fnr"));
        assert_eq!(lines.next(), Some("a,8,0,0"));
        assert_eq!(lines.next(), Some("\"b, \"\"c\"\"\",8,0,5"));
        assert_eq!(lines.next(), Some("a,8,0,"));
    }

    #[test]
    fn rows_survive_json() {
        let row = Row::new("t").label("filter", "a").label("x", 0.1 + 0.2).value("y", 1.0 / 3.0);
        let text = serde_json::to_string(&row).expect("JSON");
        assert_eq!(serde_json::from_str::<Row>(&text).expect("a row"), row);
        assert!(serde_json::from_str::<Label>("[1]").is_err());
    }
}
