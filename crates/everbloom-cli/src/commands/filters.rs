//! `everbloom filters`: the kinds of filters, and the parameters of one. All of it comes from the registry.

use crate::args::Format;
use crate::failure::{Ending, Failure, Result};
use crate::report;
use crate::report::paper::Paper;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args};
use everbloom::Spec;
use everbloom::kind::{Kind, Parameter, Takes, Unset, suggestion};
use everbloom::planning::AUTO;
use everbloom_all::KINDS;
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsStr;

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
    #[arg(value_parser = KindName, hide_possible_values = true)]
    kind: Option<String>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// Any name, of which shells are told the ones that exist: what is wrong with another is said when it is looked up.
#[derive(Debug, Clone)]
struct KindName;

impl TypedValueParser for KindName {
    type Value = String;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(names().map(PossibleValue::new)))
    }
}

/// All that --filter takes.
fn names() -> impl Iterator<Item = &'static str> + Clone {
    KINDS.iter().map(|kind| kind.name).chain([AUTO])
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
                let entry = find(name)?;
                report::print(self.format, &entry, || one(&entry, &Paper::of_stdout()))?;
            }
            None => {
                let document = Document { filters: KINDS.iter().map(Entry::of).collect() };
                report::print(self.format, &document, || all(&document.filters, &Paper::of_stdout()))?;
            }
        }
        Ok(Ending::Done)
    }
}

fn find(name: &str) -> Result<Entry> {
    // Whoever has a whole spec at hand means its kind.
    let kind = Spec::parse(name).map_or(name.to_string(), |spec| spec.kind().to_string());
    if kind == AUTO {
        return Ok(Entry::of_auto());
    }
    KINDS.iter().find(|known| known.name == kind).map(Entry::of).ok_or_else(|| {
        let remedy = suggestion(&kind, names(), "take one of");
        Failure::new(format!("there is no filter '{kind}'; {remedy}"))
    })
}

impl Entry {
    /// What the word stands for that is no kind, but taken where none is named.
    fn of_auto() -> Self {
        Entry {
            name: AUTO,
            summary: "the kind that suits what is wanted, which is what you get without --filter: dedup and compare take one \
                      for endless streams, build one that never misses a key; everbloom plan with the same options shows \
                      which, and why",
            never: Vec::new(),
            can: Vec::new(),
            parameters: Vec::new(),
            example: "everbloom plan --memory 64KiB --stream lines.txt".into(),
        }
    }

    fn of(kind: &'static Kind) -> Self {
        let parameters = match kind.can.shard {
            true => kind.all_parameters().map(Row::of).collect(),
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
            default: unset.to_string(),
            only_with: needs.map(|(name, values)| format!("{name}={}", values.join(" or "))),
        }
    }
}

fn all(entries: &[Entry], paper: &Paper) -> String {
    let mut rows = Vec::new();
    for entry in entries {
        rows.push((entry.name, entry.summary.to_string()));
        rows.extend(entry.never.iter().map(|never| ("", format!("never {never}"))));
    }
    let mut text = paper.columns(&rows);
    text.push('\n');
    text.push_str(&paper.wrap("auto, which is used when --filter is not given, chooses among them.", 0));
    text.push_str(&paper.wrap("everbloom filters KIND shows what a kind can do and its parameters.", 0));
    text
}

fn one(entry: &Entry, paper: &Paper) -> String {
    let mut text = paper.wrap(&format!("{}: {}", entry.name, entry.summary), 0) + "\n";
    let never = entry.never.iter().map(|never| ("never", never.to_string()));
    let can = (!entry.can.is_empty()).then(|| ("can", entry.can.join(", ")));
    let rows = never.chain(can).chain([("example", entry.example.clone())]);
    text.push_str(&paper.columns(&rows.collect::<Vec<_>>()));
    if let Some(first) = entry.parameters.first() {
        text.push('\n');
        text.push_str(&paper.wrap(&format!("parameters, as in --filter {}:{}=…", entry.name, first.name), 0));
    }
    let names: Vec<_> = entry.parameters.iter().map(|row| format!("  {}", row.name)).collect();
    let mut rows = Vec::new();
    for (name, row) in names.iter().zip(&entry.parameters) {
        let only = row.only_with.as_ref().map_or(String::new(), |only| format!("; only with {only}"));
        rows.push((name.as_str(), row.meaning.to_string()));
        rows.push(("", format!("{} [default: {}]{only}", row.takes, row.default)));
    }
    text.push_str(&paper.columns(&rows));
    if entry.parameters.iter().any(|row| row.default == Unset::Planned.to_string()) {
        text.push('\n');
        text.push_str(&paper.wrap("planned: chosen by --memory, --fpr and --expect", 0));
    }
    text
}
