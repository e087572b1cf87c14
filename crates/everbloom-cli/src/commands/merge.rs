//! `everbloom merge`: several filter files to one.

use crate::args::{KeyArgs, PromiseArgs, quantity, with_exit_codes};
use crate::failure::{Ending, Failure, Result};
use crate::filter_file::FilterFile;
use crate::progress::{Screen, Working};
use crate::report::audit;
use crate::report::words::{self, KEYS};
use crate::{filter_file, output};
use clap::Args;
use everbloom::AnyFilter;
use everbloom::kind::Standing;
use everbloom::kind::standing;
use everbloom_forecast::{Auditing, Audits};
use std::path::PathBuf;

/// Merges filters that were built with the same parameters and seed.
///
/// The key options they were built with are kept if they are the same; if not, that is said, and the merged file
/// has none.
#[derive(Debug, Args)]
#[command(after_help = with_exit_codes("\
Examples:
  One filter of two lists, which must be planned alike:
    everbloom build monday.txt --expect 10k --fpr 1% -o monday.ebf
    everbloom build tuesday.txt --expect 10k --fpr 1% -o tuesday.ebf
    everbloom merge monday.ebf tuesday.ebf -o both.ebf"))]
pub(crate) struct Merge {
    /// The filter files
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,
    /// The filter file to write; may be one of those read
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The scheme that the filters were built with
    #[arg(long, value_name = "FILE")]
    scheme: Option<PathBuf>,
    /// Keep the keys that are in all of them instead of in any of them
    #[arg(long)]
    intersection: bool,
    /// Compress the file that is written
    #[arg(long)]
    compress: bool,
    /// The most memory that a compressed filter may unpack to [default: 1GiB]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    memory: Option<u64>,
    #[command(flatten)]
    promise: PromiseArgs,
}

impl Merge {
    pub(crate) fn run(self) -> Result<Ending> {
        if output::is_dash(&self.output) {
            output::refuse_stdout(&self.filters, &[])?;
        }
        self.scheme.iter().try_for_each(|scheme| output::check_beside(&self.output, std::slice::from_ref(scheme)))?;
        let working = Working::on("merging", Screen::of(false, self.promise.quiet));
        let (first, others) = self.filters.split_first().ok_or_else(|| Failure::new("name at least two filters"))?;
        let read = |path| FilterFile::read(path, self.memory, self.scheme.as_deref());
        let file = read(first)?;
        let (mut keys, mut merged) = (file.keys(first)?, file.filter);
        for path in others {
            let file = read(path)?;
            let other = file.keys(path)?;
            if other != keys {
                let (first, path) = (first.display(), path.display());
                words::note(&format!(
                    "the keys of {first} are {keys}, those of {path} {other}; the merged file says nothing of keys"
                ));
                keys = KeyArgs::default();
            }
            let other = file.filter;
            merged = self.kept_audit(merged, &other);
            let merge = if self.intersection { AnyFilter::intersect } else { AnyFilter::merge };
            merge(&mut merged, &other).map_err(|error| Failure::at(path, error))?;
        }
        let (promise, status) = (merged.promise(), merged.status());
        drop(working);
        let is_broken = standing(merged.as_ref(), &status) == Standing::Broken;
        if let Some(breach) = merged.breach() {
            self.promise.broken(|| audit::breach(&breach, KEYS))?;
        } else if is_broken {
            let remedy = match status.estimated_items {
                Some(items) => format!("build all of them with --expect {}, and merge those", words::enough(items)),
                None => "build all of them with --expect for all keys together, and merge those".into(),
            };
            self.promise.broken(|| format!("{}; {remedy}", words::seen_in_cells(&promise, &status, KEYS)))?;
        }
        let _working = Working::on("writing the filter", Screen::of(false, self.promise.quiet));
        filter_file::save(&self.output, merged.as_ref(), &keys, self.compress)?;
        Ok(self.promise.ending(is_broken))
    }

    /// The filter with its audit, if that can be one with the other's.
    fn kept_audit(&self, filter: AnyFilter, other: &AnyFilter) -> AnyFilter {
        let why = match (filter.audit(), other.audit()) {
            (None, None) => return filter,
            (Some(_), Some(_)) if self.intersection => "that of an intersection cannot be made of theirs",
            (Some(audit), Some(other)) => match audit.clone().merge(other) {
                Ok(()) => return filter,
                Err(_) => {
                    "those of the filters do not follow the same keys; dedup --audit --audit-seed 1, say, lets all of them \
                     follow the same, with one window and one version"
                }
            },
            _ => "not all of the filters have one; give --audit and the same --audit-seed to every dedup",
        };
        if !self.promise.quiet {
            words::note(&format!("the merged file has no audit: {why}"));
        }
        filter.without_audit()
    }
}
