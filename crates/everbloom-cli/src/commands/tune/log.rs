//! Key lists and a query log: what they teach, judged on queries that the fit never saw.

use super::{Range, check_room};
use crate::args::{Format, KeyArgs, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::progress::{Screen, Working};
use crate::record::all_hashes;
use crate::{output, report, scheme_file};
use clap::Args;
use everbloom::Hashing;
use everbloom_tune::querylog::{self, Contender, Options, Sample, Tuned};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Key lists, a query log, and how much memory there is.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// The members of a set, .gz, .zst, .xz, .bz2 and .lz4 too; several files are several sets
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "log", help_heading = "Key lists and a log")]
    pub(super) keys: Vec<PathBuf>,
    /// The queries in order of time, .gz, .zst, .xz, .bz2 and .lz4 too: the first half is learned from, the second measured on
    #[arg(long, value_name = "FILE", requires_all = ["keys", "size", "output"], help_heading = "Key lists and a log")]
    log: Option<PathBuf>,
    /// The most memory for a set's filter and its share of the scheme, such as 64KiB; for several sets, on average
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits, requires = "log", help_heading = "Key lists and a log")]
    memory: Option<u64>,
    /// How many sets will share the scheme [default: as many as key lists]
    #[arg(long, value_name = "COUNT", value_parser = quantity::count, requires = "log", help_heading = "Key lists and a log")]
    sets_sharing: Option<u64>,
    /// Also try classes by the length of keys, which need no table
    #[arg(long, requires = "log", help_heading = "Key lists and a log")]
    by_length: bool,
    /// The scheme file to write, for build --scheme
    #[arg(short, long, value_name = "FILE", requires = "log", help_heading = "Key lists and a log")]
    output: Option<PathBuf>,
    /// The seed of the filters' hashing
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = quantity::seed, help_heading = "Key lists and a log")]
    seed: u64,
    /// The key of the log's records [default: that of the key lists]
    #[arg(long, value_name = "FIELDS", requires = "log", help_heading = "Records")]
    log_key: Option<String>,
    #[command(flatten)]
    records: KeyArgs,
}

/// What a query takes while a log is worked on, if each is for another key; measured: 90.
const BYTES_PER_QUERY: usize = 160;
/// Bytes that a member takes; measured: 60.
const BYTES_PER_MEMBER: usize = 96;
/// Filters of a set that are there together.
const FILTERS_AT_ONCE: usize = 4;

#[derive(Debug, Serialize)]
struct Document {
    /// What won: standard, popularity or stacked.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_fpr: Option<f64>,
    predicted_fpr: f64,
    lower_bound: f64,
    holdout_fpr: f64,
    /// The standard error of holdout_fpr.
    holdout_error: f64,
    standard_fpr: f64,
    /// False positives of the very filters that will be built, on the second half of the log.
    false_positives: u64,
    standard_false_positives: u64,
    holdout_queries: u64,
    /// The share of the second half's negative queries for keys that the first half never showed.
    unseen_share: f64,
    /// The rate at which half of the gain is lost.
    retune_fpr: f64,
    table_bits: u64,
    filter_bits: u64,
    memory_bits: u64,
    sets: usize,
    classes: Vec<KeyClass>,
    contenders: Vec<Row>,
    scheme: String,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct KeyClass {
    num_hashes: u32,
    key_share: f64,
    query_share: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    predicted_fpr: f64,
    holdout_fpr: f64,
    holdout_error: f64,
    table_bits: u64,
    filter_bits: u64,
}

impl Log {
    pub(super) fn run(&self, hashes: Range, target: Option<f64>, format: Format) -> Result<Ending> {
        let (Some(log), Some(output)) = (&self.log, &self.output) else {
            return Err(Failure::new("give --keys, --log, --memory and --output, or --popularity; see --help"));
        };
        let inputs = [&self.keys[..], std::slice::from_ref(log)].concat();
        output::check(output, &inputs)?;
        output::refuse_dash(output, "--output", "where the report goes", "name a file such as members.ebs")?;
        // Whether the memory suffices is asked of what is given; for a rate it is found.
        let mut options = Options::new(self.memory.unwrap_or(1 << 20));
        (options.sets_sharing, options.solver) = (self.sets_sharing, hashes.solver());
        (options.min_hashes, options.max_hashes) = (u32::from(hashes.min_hashes), u32::from(hashes.max_hashes()));
        // What is wrong with the numbers is said before long files are read.
        let options = options.checked()?;
        let sample = self.sample(log)?;
        let working = Working::on("fitting and measuring filters", Screen::Free);
        let (tuned, memory) = match target {
            Some(rate) => querylog::tune_for_rate(&sample, &options, rate)?,
            None => (querylog::tune(&sample, &options)?, options.memory_bits),
        };
        drop(working);
        scheme_file::save(output, &tuned.scheme)?;
        let document = Document { target_fpr: target, ..self.document(memory, &tuned) };
        report::print(format, &document, || text(&document, &tuned, output))?;
        Ok(Ending::Done)
    }

    fn sample(&self, log: &Path) -> Result<Sample> {
        let hashing = if self.by_length { Hashing::measured(self.seed) } else { Hashing::seeded(self.seed) };
        let mut sets = Vec::new();
        for path in &self.keys {
            let keys = all_hashes(vec![path.clone()], &self.records, &hashing, Screen::Free)?;
            if keys.is_empty() {
                return Err(Failure::at(path, "has no keys; list the members of the set"));
            }
            sets.push(keys);
        }
        let records = KeyArgs { key: self.log_key.clone().or(self.records.key.clone()), ..self.records.clone() };
        let queries = all_hashes(vec![log.to_path_buf()], &records, &hashing, Screen::Free)?;
        let members: usize = sets.iter().map(Vec::len).sum();
        let filters = usize::try_from(self.memory.unwrap_or(0) / 8).unwrap_or(usize::MAX).saturating_mul(sets.len());
        let bytes = BYTES_PER_QUERY
            .saturating_mul(queries.len())
            .saturating_add(BYTES_PER_MEMBER.saturating_mul(members))
            .saturating_add(filters.saturating_mul(FILTERS_AT_ONCE));
        check_room(bytes, "give a shorter log, or fewer keys")?;
        Sample::new(hashing, sets, queries).map_err(|error| Failure::at(log, error))
    }

    fn document(&self, memory_bits: u64, tuned: &Tuned) -> Document {
        let (winner, standard) = (&tuned.winner, &tuned.standard);
        let class = |class: &everbloom_tune::scheme::KeyClass| KeyClass {
            num_hashes: class.num_hashes,
            key_share: class.key_share,
            query_share: class.query_share,
        };
        Document {
            kind: winner.kind,
            target_fpr: None,
            predicted_fpr: winner.predicted_fpr,
            lower_bound: tuned.lower_bound,
            holdout_fpr: winner.score.fpr,
            holdout_error: winner.score.error,
            standard_fpr: standard.score.fpr,
            false_positives: winner.score.false_positives,
            standard_false_positives: standard.score.false_positives,
            holdout_queries: tuned.holdout_queries,
            unseen_share: tuned.unseen_share,
            retune_fpr: tuned.retune_fpr,
            table_bits: winner.table_bits,
            filter_bits: winner.filter_bits,
            memory_bits,
            sets: self.keys.len(),
            classes: winner.classes.iter().map(class).collect(),
            contenders: tuned.contenders.iter().map(Row::from).collect(),
            scheme: tuned.scheme.id().to_string(),
            notes: tuned.notes.clone(),
        }
    }
}

impl From<&Contender> for Row {
    fn from(contender: &Contender) -> Self {
        Row {
            kind: contender.kind,
            predicted_fpr: contender.predicted_fpr,
            holdout_fpr: contender.score.fpr,
            holdout_error: contender.score.error,
            table_bits: contender.table_bits,
            filter_bits: contender.filter_bits,
        }
    }
}

fn text(document: &Document, tuned: &Tuned, output: &Path) -> String {
    let fewer = document.standard_fpr / document.holdout_fpr;
    let gain = if document.kind == "standard" { String::new() } else { format!(", {fewer:.1} times fewer") };
    let rate = |row: &Row| {
        let table = if row.table_bits > 0 {
            format!(" and a table of {}", report::size(row.table_bits))
        } else {
            String::new()
        };
        format!(
            "{} of negative queries, with {}{table}",
            report::percent(row.holdout_fpr),
            report::size(row.filter_bits)
        )
    };
    let mut rows = vec![(
        "winner",
        format!(
            "{}: {} of negative queries are false positives{gain}",
            document.kind,
            report::percent(document.holdout_fpr)
        ),
    )];
    if let Some(target) = document.target_fpr {
        let memory = report::size(document.memory_bits);
        rows.push(("memory", format!("{memory}, the smallest for {} of negative queries", report::percent(target))));
    }
    rows.extend(document.contenders.iter().map(|row| (row.kind, rate(row))));
    rows.push(("predicted fpr", report::percent(document.predicted_fpr)));
    rows.push(("lower bound", format!("{}, for hashes per class", report::percent(document.lower_bound))));
    let own = format!(
        "{} false positives in {} negative queries, {} with a standard filter",
        report::thousands(document.false_positives),
        report::thousands(document.holdout_queries),
        report::thousands(document.standard_false_positives)
    );
    rows.push(("with this seed", own));
    rows.push((
        "unseen",
        format!(
            "{} of negative queries ask for keys that are not in the first half",
            report::percent(document.unseen_share)
        ),
    ));
    for class in &document.classes {
        let shares = (report::percent(class.key_share), report::percent(class.query_share));
        rows.push((
            "class",
            format!(
                "{}: {} of keys, {} of negative queries",
                report::counted(class.num_hashes.into(), "hash"),
                shares.0,
                shares.1
            ),
        ));
    }
    if document.kind != "standard" {
        rows.push((
            "tune again",
            format!(
                "when {} of negative queries are false positives: half of the gain is lost",
                report::percent(document.retune_fpr)
            ),
        ));
    }
    rows.push(("scheme", format!("{} in {}", tuned.scheme.id(), output.display())));
    rows.extend(document.notes.iter().map(|note| ("note", note.clone())));
    report::columns(&rows)
}
