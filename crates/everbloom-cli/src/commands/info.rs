//! `everbloom info`: what a filter file holds and promises.

use crate::args::{Format, quantity};
use crate::failure::{Ending, Result};
use crate::filter_file::FilterFile;
#[cfg(feature = "lab")]
use crate::output;
use crate::progress::{Screen, Working};
use crate::report;
use crate::report::audit::Audited;
use crate::report::words;
use clap::Args;
use everbloom::kind::Standing;
use everbloom::kind::standing;
use everbloom::{AnyFilter, Filter, Goal, Holds};
use everbloom_all::KINDS;
use everbloom_forecast::Audits;
use everbloom_forecast::audit::Audit;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Shows what a filter file holds and promises.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    everbloom build members.txt -o members.ebf
    everbloom info members.ebf
    everbloom info members.ebf --format json")]
pub(crate) struct Info {
    /// The filter file
    filter: PathBuf,
    /// The scheme that the filter was built with
    #[arg(long, value_name = "FILE")]
    scheme: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// The most memory that a compressed filter may unpack to [default: 1GiB]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    memory: Option<u64>,
    /// Also draw what its audit measured, as SVG
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Document {
    filter: String,
    memory_bits: u64,
    /// What it may take as keys come, if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_memory_bits: Option<u64>,
    predicted_fpr: f64,
    predicted_fnr: Option<f64>,
    /// Until how many distinct keys the prediction is a promise; nothing if for ever or not at all.
    promised_items: Option<u64>,
    promise: &'static str,
    /// Whether the promise still holds: kept, broken or none.
    standing: &'static str,
    /// The distinct keys up to which it makes no mistake, if it begins so.
    exact_until: Option<u64>,
    /// Arrivals that were judged so.
    judged_exactly: u64,
    /// Whether a key that was inserted may be missed later.
    forgets: bool,
    #[serde(skip)]
    is_exact: bool,
    arrivals: u64,
    pub(crate) fill: f64,
    estimated_fpr: f64,
    estimated_items: Option<f64>,
    /// Counters that are full.
    full_counters: u64,
    hash: &'static str,
    seed: Option<u64>,
    file_bytes: u64,
    compressed: bool,
    /// The key options that it was built with, if they are not whole lines.
    keys: Option<String>,
    /// What was measured while it worked, if it was audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<Audited>,
    /// Which keys it follows: audits of one seed can be merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_seed: Option<u64>,
}

impl Info {
    pub(crate) fn run(self) -> Result<Ending> {
        #[cfg(feature = "lab")]
        if let Some(chart) = &self.chart {
            let read: Vec<PathBuf> =
                [Some(&self.filter), self.scheme.as_ref()].into_iter().flatten().cloned().collect();
            output::check_beside(chart, &read)?;
        }
        let working = Working::on("reading the filter", Screen::Free);
        let (document, _filter) = Document::read(&self.filter, self.memory, self.scheme.as_deref())?;
        drop(working);
        #[cfg(feature = "lab")]
        self.chart.as_deref().map_or(Ok(()), |path| report::figures::audit(path, _filter.audit_report().as_ref()))?;
        report::print(self.format, &document, || report::columns(&document.rows()))?;
        Ok(Ending::Done)
    }
}

impl Document {
    /// What a file holds, and the filter; if it is compressed, it may unpack to `memory` bits.
    pub(crate) fn read(path: &Path, memory: Option<u64>, scheme: Option<&Path>) -> Result<(Self, AnyFilter)> {
        let file = FilterFile::read(path, memory, scheme)?;
        let keys = file.keys(path)?;
        let keys = (!keys.is_whole_lines()).then(|| keys.to_string());
        Ok((describe(file.filter.as_ref(), file.bytes, file.compressed, keys), file.filter))
    }

    /// Names and values, for people.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let items = self.estimated_items.map_or("unknown".into(), |items| report::thousands(items.round() as u64));
        let seed = self.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        let compressed = if self.compressed { ", compressed" } else { "" };
        // An empty filter errs never; a rate below what hashes justify is only called so.
        let estimated = match self.estimated_fpr {
            0.0 => report::percent(0.0),
            rate => report::predicted(rate),
        };
        let now = report::size(self.memory_bits);
        let memory = match self.most_memory_bits {
            Some(most) => format!("{now} now, up to {} as keys come", report::size(most)),
            None => now,
        };
        let mut rows = vec![
            ("filter", self.filter.clone()),
            ("memory", memory),
            ("promise", promise(self)),
            ("still holds", still_holds(self)),
            ("forgets", forgets(self)),
            ("predicted fpr", report::predicted(self.predicted_fpr)),
        ];
        if let Some(fnr) = self.predicted_fnr {
            rows.push(("predicted fnr", report::percent(fnr)));
        }
        rows.extend([
            ("lines", report::thousands(self.arrivals)),
            ("fill", format!("{} of the cells are in use", report::percent(self.fill))),
            ("estimated fpr", estimated),
            ("estimated items", items),
            ("hash", format!("{}{seed}", self.hash)),
            ("file", format!("{}{compressed}", report::counted(self.file_bytes, "byte"))),
        ]);
        rows.extend(self.keys.iter().map(|keys| ("keys", keys.clone())));
        rows.extend(self.audit.iter().flat_map(Audited::rows));
        rows.extend(self.audit_seed.map(|seed| ("audit seed", seed.to_string())));
        rows
    }
}

fn describe(filter: &dyn Filter, file_bytes: u64, compressed: bool, keys: Option<String>) -> Document {
    let (promise, status) = (filter.promise(), filter.status());
    let (holds, promised_items) = match promise.holds {
        Holds::Always => ("always", None),
        Holds::UntilItems(items) => ("until_items", Some(items)),
        Holds::Never => ("none", None),
    };
    let memory_bits = filter.memory_bits();
    Document {
        filter: filter.spec().to_string(),
        memory_bits,
        most_memory_bits: most_memory_bits(filter).filter(|most| *most > memory_bits),
        predicted_fpr: promise.fpr_bound,
        predicted_fnr: promise.predicted_fnr,
        promised_items,
        promise: holds,
        standing: standing(filter, &status).name(),
        exact_until: promise.exact_until,
        judged_exactly: filter.exact_arrivals(),
        forgets: KINDS.of(filter.spec()).is_ok_and(|kind| kind.forgets(filter.spec())),
        is_exact: KINDS.of(filter.spec()).is_ok_and(|kind| kind.can.exact),
        arrivals: status.arrivals,
        fill: status.fill,
        estimated_fpr: status.estimated_fpr,
        estimated_items: status.estimated_items,
        full_counters: status.full_counters,
        hash: filter.hashing().name(),
        seed: filter.hashing().seed(),
        file_bytes,
        compressed,
        keys,
        audit: filter.audit().map(|audit| Audited::of(&audit.report())),
        audit_seed: filter.audit().map(Audit::seed),
    }
}

/// What a filter may take that keeps whole hashes as long as they fit: its memory comes as they do.
fn most_memory_bits(filter: &dyn Filter) -> Option<u64> {
    KINDS.of(filter.spec()).ok().filter(|kind| kind.can.exact_first)?;
    let most = KINDS.plan(filter.spec(), &Goal::new()).ok()?.memory_bits;
    Some(most.saturating_add(filter.audit().map_or(0, |audit| audit.memory_bits())))
}

fn promise(document: &Document) -> String {
    if document.is_exact {
        return "no mistakes, but for chance collisions of hashes".into();
    }
    let until = match (document.promise, document.promised_items) {
        (_, Some(items)) => format!("up to {}", report::counted(items, "key")),
        ("always", _) => "however many come".into(),
        _ => return format!("none: {} is a forecast, and no bound", report::percent(document.predicted_fpr)),
    };
    let rate = words::at_most(document.predicted_fpr);
    let exact = document.exact_until.map_or(String::new(), |items| {
        format!("no mistakes up to {}, but for chance collisions of hashes; then ", report::counted(items, "key"))
    });
    format!("{exact}at most {rate} of keys that are not inside is taken for one that is, {until}")
}

fn still_holds(document: &Document) -> String {
    let now = words::about(document.estimated_fpr);
    let is_kept = document.standing == Standing::Kept.name();
    match (document.promised_items, document.standing) {
        (None, _) if is_kept => "yes".into(),
        _ if is_kept && document.is_exact => "yes".into(),
        (Some(items), _) if is_kept && document.arrivals <= items => "yes: no more have come".into(),
        _ if is_kept => "yes, as far as the fill tells".into(),
        _ if document.full_counters > 0 => {
            format!("no: {} counters are full, so counts are too low", report::thousands(document.full_counters))
        }
        (_, name) if name == Standing::Broken.name() => format!("no: more keys came than that; now about {now}"),
        _ => format!("nothing is promised; now about {now}"),
    }
}

fn forgets(document: &Document) -> String {
    match document.forgets {
        true if document.exact_until.is_some() && document.judged_exactly == document.arrivals => {
            "not yet: every key so far is found; once there are too many, those that came long ago may be taken for new"
                .into()
        }
        true => "yes: keys that came long ago may be taken for new".into(),
        false => "no: every key that was inserted is found".into(),
    }
}
