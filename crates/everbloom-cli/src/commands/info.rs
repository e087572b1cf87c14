//! `everbloom info`: what a filter file holds and promises.

use crate::args::{Format, quantity};
use crate::failure::{Ending, Result};
use crate::{filter_file, report};
use clap::Args;
use everbloom::{Filter, Holds};
use serde::Serialize;
use std::path::PathBuf;

/// Shows what a filter file holds and promises.
#[derive(Debug, Args)]
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
    #[arg(long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    memory: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Document {
    filter: String,
    memory_bits: u64,
    predicted_fpr: f64,
    predicted_fnr: Option<f64>,
    /// Until how many distinct keys the prediction is a promise; nothing if for ever or not at all.
    promised_items: Option<u64>,
    promise: &'static str,
    arrivals: u64,
    fill: f64,
    estimated_fpr: f64,
    estimated_items: Option<f64>,
    hash: &'static str,
    seed: Option<u64>,
    file_bytes: u64,
    compressed: bool,
    /// The key options that it was built with, if they are not whole lines.
    keys: Option<String>,
}

impl Info {
    pub(crate) fn run(self) -> Result<Ending> {
        let (_, file_bytes) = filter_file::open(&self.filter)?;
        let compressed = filter_file::summary(&self.filter)?.compressed;
        let keys = filter_file::key_options(&self.filter)?;
        let filter = filter_file::load(&self.filter, self.memory, self.scheme.as_deref())?;
        let keys = (!keys.is_whole_lines()).then(|| keys.to_string());
        let document = describe(filter.as_ref(), file_bytes, compressed, keys);
        report::print(self.format, &document, || table(&document))?;
        Ok(Ending::Done)
    }
}

fn describe(filter: &dyn Filter, file_bytes: u64, compressed: bool, keys: Option<String>) -> Document {
    let (promise, status) = (filter.promise(), filter.status());
    let (holds, promised_items) = match promise.holds {
        Holds::Always => ("always", None),
        Holds::UntilItems(items) => ("until_items", Some(items)),
        Holds::Never => ("none", None),
    };
    Document {
        filter: filter.spec().to_string(),
        memory_bits: filter.memory_bits(),
        predicted_fpr: promise.predicted_fpr,
        predicted_fnr: promise.predicted_fnr,
        promised_items,
        promise: holds,
        arrivals: status.arrivals,
        fill: status.fill,
        estimated_fpr: status.estimated_fpr,
        estimated_items: status.estimated_items,
        hash: filter.hashing().name(),
        seed: filter.hashing().seed(),
        file_bytes,
        compressed,
        keys,
    }
}

fn table(document: &Document) -> String {
    let promise = match (document.promise, document.promised_items) {
        (_, Some(items)) => format!("until {} keys", report::thousands(items)),
        ("always", _) => "at every moment".to_string(),
        _ => "not promised".to_string(),
    };
    let items = document.estimated_items.map_or("unknown".into(), |items| report::thousands(items.round() as u64));
    let seed = document.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    let compressed = if document.compressed { ", compressed" } else { "" };
    let mut rows = vec![
        ("filter", document.filter.clone()),
        ("memory", report::size(document.memory_bits)),
        ("predicted fpr", format!("{}, {promise}", report::percent(document.predicted_fpr))),
    ];
    if let Some(fnr) = document.predicted_fnr {
        rows.push(("predicted fnr", report::percent(fnr)));
    }
    rows.extend([
        ("arrivals", report::thousands(document.arrivals)),
        ("fill", report::percent(document.fill)),
        ("estimated fpr", report::percent(document.estimated_fpr)),
        ("estimated items", items),
        ("hash", format!("{}{seed}", document.hash)),
        ("file", format!("{} bytes{compressed}", report::thousands(document.file_bytes))),
    ]);
    rows.extend(document.keys.iter().map(|keys| ("keys", keys.clone())));
    report::columns(&rows)
}
