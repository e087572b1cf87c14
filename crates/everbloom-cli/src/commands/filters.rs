//! `everbloom filters`: the kinds of filters, and the parameters of one. All of it comes from the registry.

use crate::args::Format;
use crate::failure::{Ending, Failure, Result};
use crate::report;
use clap::Args;
use everbloom::internal::filter::{Kind, Parameter, Takes, Unset};
use everbloom::internal::promise::suggestion;
use everbloom::{Spec, filters};
use serde::Serialize;
use serde_json::Value;

/// Lists the kinds of filters with what each never does, or explains one kind and its parameters.
///
/// A kind is what --filter takes; parameters follow it, as in --filter stable:cell_max=3,num_hashes=4. What a spec leaves out
/// is planned from --memory, --fpr and --expect, so that the name alone is usually enough.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    everbloom filters
    everbloom filters ranked
    everbloom filters bloom --format json")]
pub(crate) struct Filters {
    /// The kind to explain [default: list all]
    kind: Option<String>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    filters: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    summary: &'static str,
    never: Vec<&'static str>,
    can: Vec<&'static str>,
    parameters: Vec<Row>,
    example: String,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    meaning: &'static str,
    /// The values that it takes, in words.
    takes: String,
    /// The least and most, where it takes numbers.
    range: Option<[Value; 2]>,
    /// The names, where it takes one of some.
    choices: Option<&'static [&'static str]>,
    /// What holds without it, in words.
    default: String,
    /// The parameter and the value of it without which it means nothing.
    only_with: Option<String>,
}

impl Filters {
    pub(crate) fn run(self) -> Result<Ending> {
        match &self.kind {
            Some(name) => {
                let entry = Entry::of(find(name)?);
                report::print(self.format, &entry, || one(&entry))?;
            }
            None => {
                let document = Document { filters: filters::KINDS.iter().map(Entry::of).collect() };
                report::print(self.format, &document, || all(&document.filters))?;
            }
        }
        Ok(Ending::Done)
    }
}

fn find(name: &str) -> Result<&'static Kind> {
    // Whoever has a whole spec at hand means its kind.
    let kind = Spec::parse(name).map_or(name.to_string(), |spec| spec.kind().to_string());
    filters::KINDS.iter().find(|known| known.name == kind).ok_or_else(|| {
        let remedy = suggestion(&kind, filters::KINDS.iter().map(|known| known.name), "take one of");
        Failure::new(format!("there is no filter '{kind}'; {remedy}"))
    })
}

impl Entry {
    fn of(kind: &'static Kind) -> Self {
        let parameters = match kind.can.shard {
            true => filters::parameters(kind).map(Row::of).collect(),
            false => kind.parameters.iter().map(Row::of).collect(),
        };
        Entry {
            name: kind.name,
            summary: kind.summary,
            never: kind.never(),
            can: kind.abilities(),
            parameters,
            example: example(kind),
        }
    }
}

/// The shortest call that uses it.
fn example(kind: &Kind) -> String {
    let name = kind.name;
    match (kind.can.follow_scheme, kind.can.run_forever) {
        (Some(_), _) => "everbloom build members.txt --scheme members.ebs -o members.ebf".to_string(),
        (None, true) if kind.can.weigh_importance => {
            format!("everbloom dedup visits.tsv --filter {name} -m 64KiB -k 1 --importance 2 --importance-max 50")
        }
        (None, true) => format!("everbloom dedup lines.txt --filter {name} --memory 64KiB"),
        (None, false) => format!("everbloom build members.txt --filter {name} -o members.ebf"),
    }
}

impl Row {
    fn of(parameter: &Parameter) -> Self {
        let Parameter { name, meaning, takes, unset, needs, .. } = *parameter;
        let range = match takes {
            Takes::Whole(least, most) | Takes::Layers(least, most) => Some([least.into(), most.into()]),
            Takes::Between(least, most) | Takes::Within(least, most) | Takes::FromBelow(least, most) => {
                Some([least.into(), most.into()])
            }
            _ => None,
        };
        Row {
            name,
            meaning,
            takes: takes.to_string(),
            range,
            choices: if let Takes::Choice(names) = takes { Some(names) } else { None },
            default: if unset == Unset::Planned { "planned".into() } else { unset.to_string() },
            only_with: needs.map(|(name, values)| format!("{name}={}", values.join(" or "))),
        }
    }
}

/// Lines are no longer than this, but for a word that is.
const WIDTH: usize = 100;

/// A sentence in lines.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.split(' ').fold(Vec::new(), |mut lines: Vec<String>, word| {
        match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < width) {
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_string()),
        }
        lines
    })
}

/// Sentences in lines beside a name that has so many columns.
fn beside(name: &str, columns: usize, sentences: &[String]) -> String {
    let lines = sentences.iter().flat_map(|text| wrapped(text, WIDTH - columns - 2)).enumerate();
    lines.map(|(at, line)| format!("{:columns$}  {line}\n", if at == 0 { name } else { "" })).collect()
}

fn all(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in entries {
        let never = entry.never.iter().map(|never| format!("never {never}"));
        let sentences: Vec<String> = [entry.summary.to_string()].into_iter().chain(never).collect();
        text.push_str(&beside(entry.name, width, &sentences));
    }
    text.push_str("\nauto, which is used when --filter is not given, chooses among them.\n");
    text.push_str("everbloom filters KIND shows what a kind can do and its parameters.\n");
    text
}

fn one(entry: &Entry) -> String {
    let mut text = wrapped(&format!("{}: {}", entry.name, entry.summary), WIDTH).join("\n") + "\n\n";
    entry.never.iter().for_each(|never| text.push_str(&beside("never", 7, &[never.to_string()])));
    text.push_str(&beside("can", 7, &[entry.can.join(", ")]));
    text.push_str(&format!("example  {}\n", entry.example));
    if let Some(first) = entry.parameters.first() {
        text.push_str(&format!("\nparameters, as in --filter {}:{}=…\n", entry.name, first.name));
    }
    let width = entry.parameters.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in &entry.parameters {
        let only = row.only_with.as_ref().map_or(String::new(), |only| format!("; only with {only}"));
        let said = format!("{} [default: {}]{only}", row.takes, row.default);
        text.push_str(&beside(&format!("  {}", row.name), width + 2, &[row.meaning.to_string(), said]));
    }
    if entry.parameters.iter().any(|row| row.default == "planned") {
        text.push_str("\nplanned: chosen by --memory, --fpr and --expect\n");
    }
    text
}
