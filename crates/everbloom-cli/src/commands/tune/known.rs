//! Popularities that are known: every key with its share of the members and of the negative queries.

use super::{Range, check_room};
use crate::args::{Format, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::input::{Block, BlockReader, Reading};
use crate::progress::{Screen, Working};
use crate::{output, report};
use clap::{Args, ValueEnum as _};
use everbloom::{Error, Hashing, Key as _, KeyHash};
use everbloom_tune::querylog::popularity::{Allocation, Certified, Share, Solution, Solver};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Known popularities, and what to make of them.
#[derive(Debug, Args)]
pub(crate) struct Known {
    /// Known popularities, a line each: key, tab, share of members, tab, share of negative queries
    #[arg(long, value_name = "FILE", help_heading = "Known popularities")]
    pub(super) popularity: Option<PathBuf>,
    /// Bits of the filter per member [default: 8]
    #[arg(long, value_name = "BITS", value_parser = quantity::number, conflicts_with = "target_rate", help_heading = "Known popularities")]
    bits_per_key: Option<f64>,
    /// How many keys the limited method may give their own number of hashes
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = quantity::count, help_heading = "Known popularities")]
    limit: u64,
    /// Write every key, a tab and its number of hashes to a file
    #[arg(long, value_name = "FILE", help_heading = "Known popularities")]
    per_key: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Document {
    keys: u64,
    bits_per_key: f64,
    /// What a standard filter takes for the rate that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_bits_per_key: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_fpr: Option<f64>,
    /// free-fill, programme or approximation.
    solver: String,
    standard_fpr: f64,
    optimal_real_fpr: f64,
    rounding_fpr: f64,
    fixed_fill_fpr: f64,
    limited_fpr: f64,
    free_fill_fpr: f64,
    /// What the chosen solver found.
    predicted_fpr: f64,
    lower_bound: f64,
    /// The share of bits that its numbers of hashes set.
    fill: f64,
    /// What finding them took; ours are certified meanwhile.
    seconds: f64,
}

impl Known {
    pub(super) fn run(&self, popularity: &Path, range: Range, target: Option<f64>, format: Format) -> Result<Ending> {
        let hashes = range.min_hashes..=range.max_hashes();
        let bits_per_key = self.bits_per_key.unwrap_or(USUAL_BITS);
        // What is wrong with the numbers is said before a long file is read.
        Allocation::new(vec![Share::new(1.0, 1.0)], bits_per_key, hashes.clone())?;
        if let Some(output) = &self.per_key {
            output::check(output, &[popularity.to_path_buf()])?;
        }
        let table = Table::read(popularity, self.per_key.is_some())?;
        check_room(BYTES_PER_KEY.saturating_mul(table.classes.len()), "list fewer keys")?;
        let solver = range.solver();
        let start = Instant::now();
        let working = Working::on("finding numbers of hashes", Screen::Free);
        let problem = match target {
            Some(rate) => Allocation::for_rate(table.classes, rate, hashes, solver),
            None => Allocation::new(table.classes, bits_per_key, hashes),
        }
        .map_err(|error| refused(popularity, error, solver))?;
        // Ours is found with its certificate, which bounds the others, too.
        let mut found = problem.solve_with(solver).map_err(|error| refused(popularity, error, solver))?;
        let mut seconds = start.elapsed().as_secs_f64();
        let certified = problem.solve();
        if solver == Solver::FreeFill {
            (found, seconds) = (certified.solution.clone(), start.elapsed().as_secs_f64());
        }
        drop(working);
        let document = Document {
            target_fpr: target,
            standard_bits_per_key: target.map(Allocation::standard_bits),
            ..self.describe(&problem, &found, &certified, range, seconds)
        };
        if let Some(path) = &self.per_key {
            output::replace(path, |file| table.keys.write_with(&found.hashes, file))?;
        }
        report::print(format, &document, || text(&document))?;
        Ok(Ending::Done)
    }

    fn describe(
        &self,
        problem: &Allocation,
        found: &Solution,
        certified: &Certified,
        range: Range,
        seconds: f64,
    ) -> Document {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        Document {
            keys: problem.classes().len() as u64,
            bits_per_key: problem.bits_per_key(),
            standard_bits_per_key: None,
            target_fpr: None,
            solver: range.solver.to_possible_value().map_or_else(String::new, |name| name.get_name().to_string()),
            standard_fpr: problem.standard().fpr,
            optimal_real_fpr: problem.real_optimum().fpr,
            rounding_fpr: problem.rounding().fpr,
            fixed_fill_fpr: problem.fixed_fill().fpr,
            limited_fpr: problem.limited(limit).fpr,
            free_fill_fpr: certified.solution.fpr,
            predicted_fpr: found.fpr,
            lower_bound: certified.lower_bound,
            fill: found.fill,
            seconds,
        }
    }
}

/// What a key takes while the numbers of hashes are found; measured: 60.
const BYTES_PER_KEY: usize = 128;

/// Bits of the filter per member when nothing is said.
const USUAL_BITS: f64 = 8.0;

/// What a solver refuses, in the words of the command line.
fn refused(popularity: &Path, error: Error, solver: Solver) -> Failure {
    match error {
        Error::Infeasible { reason, .. } if solver != Solver::FreeFill => Failure::at(
            popularity,
            format!(
                "is too much for the paper's solver: {reason}; give fewer keys or --max-hashes, or take --solver free-fill"
            ),
        ),
        error => Failure::at(popularity, error),
    }
}

/// The name of the solver that needs no mention.
const FREE_FILL: &str = "free-fill";

fn text(document: &Document) -> String {
    let rate = |rate: f64| {
        let factor = document.standard_fpr / rate;
        if factor.is_finite() {
            format!("{}, {factor:.1}x fewer", report::percent(rate))
        } else {
            report::percent(rate)
        }
    };
    let bits = match document.standard_bits_per_key {
        Some(standard) => format!(
            "{:.3}, the smallest for {}; a standard filter takes {standard:.3}",
            document.bits_per_key,
            document.target_fpr.map_or_else(String::new, report::percent)
        ),
        None => document.bits_per_key.to_string(),
    };
    let mut rows = vec![
        ("keys", report::thousands(document.keys)),
        ("bits per key", bits),
        ("standard fpr", report::percent(document.standard_fpr)),
        ("optimal real fpr", rate(document.optimal_real_fpr)),
        ("rounding fpr", rate(document.rounding_fpr)),
        ("fixed fill fpr", rate(document.fixed_fill_fpr)),
        ("limited fpr", rate(document.limited_fpr)),
    ];
    if document.solver != FREE_FILL {
        rows.push(("free fill fpr", rate(document.free_fill_fpr)));
        rows.push(("solver", format!("{}, whose rate and hashes follow", document.solver)));
    }
    rows.extend([
        ("predicted fpr", rate(document.predicted_fpr)),
        ("lower bound", report::percent(document.lower_bound)),
        ("fill", report::percent(document.fill)),
        ("seconds", format!("{:.3}", document.seconds)),
    ]);
    report::columns(&rows)
}

/// The popularity file, read.
struct Table {
    classes: Vec<Share>,
    keys: Keys,
}

/// The keys one after another, if they are wanted again.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Table {
    fn read(path: &Path, keep_keys: bool) -> Result<Table> {
        let mut table = Table { classes: Vec::new(), keys: Keys::default() };
        let mut hashes: Vec<(KeyHash, u64)> = Vec::new();
        let mut reader = BlockReader::new(vec![path.to_path_buf()], b'\n');
        let mut block = Block::default();
        while reader.next(&mut block)? == Reading::Block {
            for record in block.bytes().split_inclusive(|byte| *byte == b'\n') {
                let line = hashes.len() as u64 + 1;
                let (key, class) =
                    parse(record).map_err(|problem| Failure::at(path, format!("line {line}: {problem}")))?;
                let refused = |_| Failure::at(path, "does not fit into memory; list fewer keys");
                table.classes.try_reserve(1).map_err(refused)?;
                hashes.try_reserve(1).map_err(refused)?;
                table.classes.push(class);
                hashes.push((key.hash_with(&Hashing::default()), line));
                if keep_keys {
                    let room = table.keys.bytes.try_reserve(key.len());
                    room.and_then(|()| table.keys.ends.try_reserve(1)).map_err(refused)?;
                    table.keys.push(key);
                }
            }
        }
        match (table.classes.is_empty(), repeated(hashes)) {
            (true, _) => {
                Err(Failure::at(path, "has no keys; write key, tab, share of members, tab, share of negative queries"))
            }
            (_, Some((one, other))) => {
                Err(Failure::at(path, format!("lines {one} and {other} have the same key; add their shares up")))
            }
            _ => Ok(table),
        }
    }
}

impl Keys {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn write_with(&self, hashes: &[u8], file: &mut dyn Write) -> io::Result<()> {
        let mut start = 0;
        for (&end, count) in self.ends.iter().zip(hashes) {
            file.write_all(&self.bytes[start..end])?;
            writeln!(file, "\t{count}")?;
            start = end;
        }
        Ok(())
    }
}

/// The lines of the first key that comes twice.
fn repeated(mut hashes: Vec<(KeyHash, u64)>) -> Option<(u64, u64)> {
    hashes.sort_unstable_by_key(|(hash, line)| (hash.high, hash.low, *line));
    let twice = hashes.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    twice.map(|pair| (pair[0].1, pair[1].1)).min_by_key(|(_, other)| *other)
}

fn parse(line: &[u8]) -> Result<(&[u8], Share), String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let [key, members, misses] = fields[..] else {
        return Err(format!(
            "{} fields instead of 3: key, tab, share of members, tab, share of negative queries",
            fields.len()
        ));
    };
    Ok((key, Share::new(share(members)?, share(misses)?)))
}

fn share(text: &[u8]) -> Result<f64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    match number {
        Some(share) if share >= 0.0 && f64::is_finite(share) => Ok(share),
        _ => Err(format!("'{}' is not a share; write a number of 0 or above", String::from_utf8_lossy(text))),
    }
}
