//! `everbloom lab simulate`: systems that ship filters to each other, on a trace of your own or a generated one.

use crate::args::{Format, quantity};
use crate::failure::{Ending, Failure, Result};
use crate::input::{Arrival, Source};
use crate::progress::{Screen, Working};
use crate::report;
use clap::{Args, Subcommand, ValueEnum};
use everbloom_lab::simulators::caching::{self, Policy, Setting};
use everbloom_lab::simulators::keyword::{self, Law, Library, Recipe};
use everbloom_lab::simulators::trace::{self, Trace};
use serde::Serialize;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which system.
#[derive(Debug, Subcommand)]
pub(crate) enum Simulate {
    /// Proxies that tell each other what they have cached
    #[command(after_help = "Examples:\n    everbloom lab simulate caching --slots 100")]
    Caching(Caching),
    /// Nodes that intersect lists of documents
    #[command(after_help = "Examples:\n    everbloom lab simulate keyword --documents 500 --words 50 --queries 50")]
    Keyword(Keyword),
}

impl Simulate {
    pub(crate) fn run(self) -> Result<Ending> {
        match self {
            Simulate::Caching(caching) => caching.run(),
            Simulate::Keyword(keyword) => keyword.run(),
        }
    }
}

/// Runs caches over a trace: the first half trains every scheme, the second half counts their false hits.
#[derive(Debug, Args)]
pub(crate) struct Caching {
    /// A recorded trace: time, tab, proxy, tab, object, and tab and size if known; .gz, .zst, .xz, .bz2 and .lz4 too
    #[arg(long, value_name = "FILE", conflicts_with = "generate")]
    trace: Option<PathBuf>,
    /// A generated trace of ten proxies: zipf-0.75, zipf-0.9, zipf-1, zipf-1.2, one-timers, drift, settled
    #[arg(long, value_name = "NAME", default_value = "zipf-0.9")]
    generate: String,
    /// Objects in each cache
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = quantity::count)]
    slots: u64,
    /// Which object goes when another comes
    #[arg(long, value_name = "POLICY", default_value = "lfu")]
    policy: PolicyName,
    /// Bits of a summary per slot of the cache
    #[arg(long, value_name = "BITS", default_value_t = 8.0, value_parser = quantity::number)]
    bits_per_slot: f64,
    /// The seed of hashing and of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = quantity::seed)]
    seed: u64,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// A cache policy.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum PolicyName {
    /// The object not asked for longest goes
    Lru,
    /// The object asked for least since it came goes
    Lfu,
}

/// Proxies of a generated trace: the paper's ten.
const PROXIES: usize = 10;

/// Caches and libraries beyond this do not fit into the memory of most machines.
const MOST: u64 = 100_000_000;

#[derive(Debug, Serialize)]
struct CachingDocument {
    requests: u64,
    proxies: usize,
    hit_rate: f64,
    schemes: Vec<CachingRow>,
}

#[derive(Debug, Serialize)]
struct CachingRow {
    scheme: &'static str,
    measured_fpr: f64,
    false_hits_per_request: f64,
    stale_hits_per_request: f64,
    broadcast_bytes: u64,
    fill: f64,
    /// Objects whose number of hashes a table would have to hold.
    exceptions: usize,
}

impl Caching {
    fn run(&self) -> Result<Ending> {
        let slots = small("slots", self.slots)?;
        let trace = match &self.trace {
            Some(path) => read_trace(path)?,
            None => trace::Recipe::named(&self.generate)?.generate(PROXIES, self.slots, self.seed)?,
        };
        let working = Working::on("simulating", Screen::Free);
        let policy = match self.policy {
            PolicyName::Lru => Policy::Lru,
            PolicyName::Lfu => Policy::Lfu,
        };
        let study = caching::Study::new(&trace, Setting::new(policy, slots))?;
        let schemes = caching::Scheme::ALL.map(|scheme| self.row(&study, scheme)).into_iter().collect::<Result<_>>()?;
        let requests = trace.requests.len() as u64;
        let document = CachingDocument { requests, proxies: trace.proxies, hit_rate: study.hit_rate(), schemes };
        drop(working);
        report::print(self.format, &document, || caching_text(&document))?;
        Ok(Ending::Done)
    }

    fn row(&self, study: &caching::Study, scheme: caching::Scheme) -> Result<CachingRow> {
        let outcome = study.test(scheme, self.bits_per_slot, self.seed)?;
        Ok(CachingRow {
            scheme: scheme.name(),
            measured_fpr: outcome.measured_fpr(),
            false_hits_per_request: outcome.false_hits_per_request(),
            stale_hits_per_request: outcome.stale_hits as f64 / outcome.requests.max(1) as f64,
            broadcast_bytes: outcome.broadcast_bytes,
            fill: outcome.fill,
            exceptions: study.hashes(scheme, self.bits_per_slot)?.exceptions,
        })
    }
}

fn caching_text(document: &CachingDocument) -> String {
    let mut text = report::columns(&[
        ("requests", report::thousands(document.requests)),
        ("proxies", document.proxies.to_string()),
        ("local hits", report::percent(document.hit_rate)),
    ]);
    let rows: Vec<_> = document
        .schemes
        .iter()
        .map(|row| {
            let bytes = report::thousands(row.broadcast_bytes);
            let (fpr, hits) = (report::percent(row.measured_fpr), row.false_hits_per_request);
            (row.scheme, format!("fpr {fpr}, {hits:.5} false hits a request, {bytes} bytes broadcast"))
        })
        .collect();
    text.push_str(&report::columns(&rows));
    text
}

fn small(name: &str, count: u64) -> Result<usize> {
    match usize::try_from(count) {
        Ok(count) if count as u64 <= MOST => Ok(count),
        _ => Err(Failure::new(format!("{name} is {count}, but must be at most {MOST}; take fewer"))),
    }
}

fn read_trace(path: &Path) -> Result<Trace> {
    let source = Source::open(path, &Arc::default())?;
    Trace::read(BufReader::with_capacity(1 << 18, Bytes(source))).map_err(|error| Failure::at(path, error))
}

/// A source as the standard library reads it.
struct Bytes(Source);

impl Read for Bytes {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(bytes, None)? {
                Arrival::Bytes(count) => return Ok(count),
                // A slow pipe; there is nothing else to do meanwhile.
                Arrival::Nothing => {}
                Arrival::End | Arrival::Interrupted => return Ok(0),
            }
        }
    }
}

/// Intersects lists of documents for queries: the first half trains every scheme, the second half counts bytes.
#[derive(Debug, Args)]
pub(crate) struct Keyword {
    /// How many documents there are
    #[arg(long, value_name = "COUNT", default_value = "20000", value_parser = quantity::count)]
    documents: u64,
    /// How many words have a list
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = quantity::count)]
    words: u64,
    /// How many queries come
    #[arg(long, value_name = "COUNT", default_value = "500", value_parser = quantity::count)]
    queries: u64,
    /// How lengths of documents are spread: zipf:1, lognormal:1.5
    #[arg(long, value_name = "LAW", default_value = "zipf:1", value_parser = law)]
    document_lengths: Law,
    /// How frequencies of words are spread: zipf:1, lognormal:2
    #[arg(long, value_name = "LAW", default_value = "zipf:1", value_parser = law)]
    word_frequencies: Law,
    /// Common words are in documents of any length alike, and every query has one rare word
    #[arg(long)]
    direct: bool,
    /// Bits of a filter per member
    #[arg(long, value_name = "BITS", default_value_t = 8.0, value_parser = quantity::number)]
    bits_per_key: f64,
    /// The seed of hashing and of every random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = quantity::seed)]
    seed: u64,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Debug, Serialize)]
struct KeywordDocument {
    divergence_bits: f64,
    schemes: Vec<KeywordRow>,
}

#[derive(Debug, Serialize)]
struct KeywordRow {
    scheme: &'static str,
    measured_fpr: f64,
    bytes_per_query: f64,
    /// Where every filter has as many bits as the scheme thinks best.
    best_bytes_per_query: f64,
}

impl Keyword {
    fn run(&self) -> Result<Ending> {
        let recipe = Recipe {
            documents: small("documents", self.documents)?,
            words: small("words", self.words)?,
            document_lengths: self.document_lengths,
            word_frequencies: self.word_frequencies,
            direct: self.direct,
            queries: small("queries", self.queries)?,
        };
        let working = Working::on("simulating", Screen::Free);
        let library = Library::new(&recipe, self.seed)?;
        let study = keyword::Study::new(&library);
        let schemes = keyword::Scheme::ALL.map(|scheme| self.row(&study, scheme)).into_iter().collect::<Result<_>>()?;
        let document = KeywordDocument { divergence_bits: study.divergence()?, schemes };
        drop(working);
        report::print(self.format, &document, || keyword_text(&document))?;
        Ok(Ending::Done)
    }

    fn row(&self, study: &keyword::Study<'_>, scheme: keyword::Scheme) -> Result<KeywordRow> {
        let (given, best) = (study.at(scheme, self.bits_per_key, self.seed)?, study.at_own_best(scheme, self.seed)?);
        let per_query = |outcome: &keyword::Outcome| outcome.bytes() as f64 / outcome.queries.max(1) as f64;
        Ok(KeywordRow {
            scheme: scheme.name(),
            measured_fpr: given.measured_fpr(),
            bytes_per_query: per_query(&given),
            best_bytes_per_query: per_query(&best),
        })
    }
}

fn keyword_text(document: &KeywordDocument) -> String {
    let mut text = report::columns(&[("divergence", format!("{:.2} bits", document.divergence_bits))]);
    let rows: Vec<_> = document
        .schemes
        .iter()
        .map(|row| {
            let fpr = report::percent(row.measured_fpr);
            let (given, best) = (row.bytes_per_query, row.best_bytes_per_query);
            (row.scheme, format!("fpr {fpr}, {given:.0} bytes a query, {best:.0} at its own best size"))
        })
        .collect();
    text.push_str(&report::columns(&rows));
    text
}

/// `zipf:1` or `lognormal:1.5`.
fn law(text: &str) -> Result<Law, String> {
    let needed = || "must be a law such as zipf:1 or lognormal:1.5".to_string();
    let (name, number) = text.split_once(':').ok_or_else(needed)?;
    let number: f64 = number.parse().map_err(|_| needed())?;
    match name {
        _ if !(0.0..=10.0).contains(&number) => Err("must have a number between 0 and 10".into()),
        "zipf" => Ok(Law::Zipf(number)),
        "lognormal" => Ok(Law::Lognormal(number)),
        _ => Err(needed()),
    }
}
