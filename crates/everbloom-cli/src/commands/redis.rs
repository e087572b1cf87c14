//! `everbloom redis`: filters on servers.

use crate::args::{
    DEFAULT_MEMORY_BITS, DEFAULT_SHARDS, Format, GoalArgs, KeyArgs, in_shards, quantity, refuse_split_window,
    with_exit_codes,
};
use crate::failure::{Ending, Failure, Result};
use crate::filter_file::FilterFile;
use crate::report::{self, columns, percent, short_size, thousands, words};
use crate::{filter_file, output};
use clap::{Args, Subcommand};
use everbloom::kind::is_turned_by_caller;
use everbloom::kind::span_text;
use everbloom::{Holds, Window, planning};
use everbloom_all::KINDS;
use everbloom_forecast::Audits;
use everbloom_redis_client::{Error, Filter, Options, Watcher};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  A filter for a billion keys at 1 %, and what became of it:
    everbloom redis create clicks --expect 1G --fpr 1% --redis redis://localhost:6379
    everbloom redis info clicks --redis redis://localhost:6379
  One that forgets what is older than a day:
    everbloom redis create recent --window 24h --expect 1G --fpr 1% --redis redis://localhost:6379
  From and into a file:
    everbloom redis save clicks clicks.ebf --redis redis://localhost:6379
    everbloom redis load clicks clicks.ebf --replace --redis redis://localhost:6379
  It is no longer needed:
    everbloom redis delete clicks --redis redis://localhost:6379";

/// Filters on Redis and Valkey servers that have everbloom's module, each split over the nodes of a cluster.
///
/// A filter NAME is a key for each shard, {NAME.i.k}, and a record, {NAME}. `everbloom dedup --redis URL --name NAME` uses it.
#[derive(Debug, Subcommand)]
#[command(after_help = with_exit_codes(EXAMPLES))]
pub(crate) enum Redis {
    /// Make an empty filter
    #[command(after_help = EXAMPLES)]
    Create(Create),
    /// Show what a filter is, and what it counted
    #[command(after_help = EXAMPLES)]
    Info(Info),
    /// Put a filter file on servers, without its audit; what it counted counts towards the promise
    #[command(after_help = EXAMPLES)]
    Load(Load),
    /// Write a filter on servers into a file
    #[command(after_help = EXAMPLES)]
    Save(Save),
    /// Take a filter away from servers
    #[command(after_help = EXAMPLES)]
    Delete(Delete),
}

/// Which filter, and where.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The filter's name
    name: String,
    /// The servers: redis://[USER:PASSWORD@]HOST:PORT, several with commas between [default: the variable EVERBLOOM_REDIS,
    /// or redis://127.0.0.1:6379]
    #[arg(long, value_name = "URL,…")]
    redis: Option<String>,
    /// How long to wait for servers that do not answer [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    patience: Option<Duration>,
    /// Replicas that must have what is written [default: 0]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=100))]
    replicas: Option<u32>,
    /// Let replicas answer, which may lag behind
    #[arg(long)]
    from_replicas: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    goal: GoalArgs,
    /// How many keys the filter is split into [default: 64]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=4096))]
    shards: Option<u32>,
    /// Forget what is older than this time (24h, 90s, 7d), by the servers' clocks, planned for --expect keys in a window, or
    /// for as many as --memory holds; or keep the last COUNT lines of all machines, as one key
    #[arg(long, value_name = "COUNT|TIME", value_parser = quantity::window, conflicts_with = "filter")]
    window: Option<Window>,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    #[command(flatten)]
    which: Which,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    #[command(flatten)]
    which: Which,
    /// The filter file; one with shards=N becomes N keys, any other one
    file: PathBuf,
    /// Load in the place of what has the name, which stays until all of the file is there: servers need room for both
    #[arg(long)]
    replace: bool,
    /// The most memory that a compressed filter may unpack to [default: 1GiB]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_in_bits)]
    memory: Option<u64>,
    /// How long the window of the filter is, if it is one of time: only files of Python or of EB.DUMP say
    #[arg(long, value_name = "TIME", value_parser = quantity::window)]
    window: Option<Window>,
}

#[derive(Debug, Args)]
pub(crate) struct Save {
    #[command(flatten)]
    which: Which,
    /// The file to write
    file: PathBuf,
    /// Compress it
    #[arg(long)]
    compress: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Serialize)]
struct Document {
    name: String,
    filter: String,
    shards: u32,
    memory_bytes: u64,
    predicted_fpr: f64,
    promised_items: Option<u64>,
    observed: u64,
    distinct: u64,
    window_seconds: Option<f64>,
    /// Keys of a window that it was planned for.
    planned_arrivals: Option<u64>,
    /// Primaries, and how many shards each has.
    nodes: Vec<(String, u32)>,
}

impl Redis {
    pub(crate) fn run(self) -> Result<Ending> {
        match self {
            Redis::Create(create) => create.run(),
            Redis::Info(Info { which, format }) => which.show(format),
            Redis::Load(load) => load.run(),
            Redis::Save(save) => save.run(),
            Redis::Delete(Delete { which }) => {
                Filter::delete_named(&which.options(), &which.name).map_err(failure)?;
                Ok(Ending::Done)
            }
        }
    }
}

fn failure(error: Error) -> Failure {
    Failure::new(error)
}

/// Tells people why it takes long.
#[derive(Debug)]
struct Ear;

// The small build has the option, too, and no client.
const _: () = assert!(DEFAULT_SHARDS == everbloom_redis_client::DEFAULT_SHARDS);

impl Watcher for Ear {
    fn notice(&self, text: &str) {
        words::note(text);
    }
}

impl Which {
    fn options(&self) -> Options {
        let mut options = Options::named(self.redis.clone());
        options.patience = self.patience.unwrap_or(options.patience);
        options.replicas = self.replicas.unwrap_or(0);
        options.from_replicas = self.from_replicas;
        options.watcher = Arc::new(Ear);
        options
    }

    fn open(&self) -> Result<Filter> {
        Filter::open(&self.options(), &self.name).map_err(failure)
    }

    fn show(&self, format: Format) -> Result<Ending> {
        let mut filter = self.open()?;
        let info = filter.info().map_err(failure)?;
        let promise = filter.promise();
        let document = Document {
            name: self.name.clone(),
            filter: info.spec.to_string(),
            shards: info.shards,
            memory_bytes: info.memory_bytes,
            predicted_fpr: promise.fpr_bound,
            promised_items: match (promise.holds, filter.window()) {
                (Holds::UntilItems(items), None) => Some(items),
                _ => None,
            },
            observed: info.observed,
            distinct: info.distinct,
            window_seconds: filter.window().map(|(window, _)| window.as_secs_f64()),
            planned_arrivals: filter.window().map(|(_, planned)| planned),
            nodes: info.nodes,
        };
        report::print(format, &document, || table(&document))?;
        Ok(Ending::Done)
    }
}

impl Document {
    /// Whether the promise does, as far as counts tell. A window's rate is what `dedup` watches.
    fn still_holds(&self) -> &'static str {
        match self.promised_items {
            Some(items) if self.distinct > items => "no: more keys came than it was planned for",
            _ if self.window_seconds.is_some() => "not known: it depends on what comes in a window",
            _ => "yes",
        }
    }
}

fn table(document: &Document) -> String {
    let promise = match document.promised_items {
        Some(items) => format!("{} until {} keys", percent(document.predicted_fpr), thousands(items)),
        None => percent(document.predicted_fpr),
    };
    let nodes: Vec<String> = document.nodes.iter().map(|(node, shards)| format!("{node} {shards}")).collect();
    let mut rows = vec![
        ("filter", document.filter.clone()),
        ("shards", document.shards.to_string()),
        ("memory", short_size(document.memory_bytes.saturating_mul(8))),
        ("false positives", promise),
        ("observed", thousands(document.observed)),
        ("new", thousands(document.distinct)),
        ("still holds", document.still_holds().into()),
        ("shards on nodes", nodes.join(", ")),
    ];
    if let (Some(seconds), Some(planned)) = (document.window_seconds, document.planned_arrivals) {
        let window = span_text(Duration::from_secs_f64(seconds));
        rows.push(("window", format!("{window}, planned for {} lines", thousands(planned))));
    }
    columns(&rows)
}

impl Create {
    fn run(self) -> Result<Ending> {
        refuse_split_window(self.window, self.shards)?;
        let goal = self.goal.goal().default_memory_bits(DEFAULT_MEMORY_BITS);
        let plan = match self.window {
            None => {
                let goal = goal.open_ended();
                planning::held_to_rate(KINDS.plan(&in_shards(&self.goal.filter, self.shards)?, &goal)?, &goal)?
            }
            Some(window) => planning::for_window(&window, &goal, true, Some(self.shards.unwrap_or(DEFAULT_SHARDS)))?,
        };
        let window = self.window.and_then(time_of);
        Filter::create(&self.which.options(), &self.which.name, &plan, window).map_err(failure)?;
        plan.notes.iter().for_each(|note| words::note(note));
        self.which.show(Format::Table)
    }
}

fn time_of(window: Window) -> Option<Duration> {
    match window {
        Window::Time(time) => Some(time),
        _ => None,
    }
}

impl Load {
    fn run(self) -> Result<Ending> {
        if let Some(Window::Arrivals(_)) = self.window {
            return Err(Failure::new("--window is how long a window of time is; write it as 24h, 90s or 7d"));
        }
        let FilterFile { filter, note, .. } = FilterFile::read(&self.file, self.memory, None)?;
        let is_timed = is_turned_by_caller(KINDS.of(filter.spec())?, filter.spec());
        let window = self.window.and_then(time_of).or_else(|| noted_window(&note).filter(|_| is_timed));
        let (options, name, has_audit) = (self.which.options(), &self.which.name, filter.audit().is_some());
        let mut loaded = Filter::load(&options, name, filter, window, self.replace).map_err(failure)?;
        if has_audit {
            words::note("the audit of the file was not loaded: on servers, many machines would feed it");
        }
        // What others noted is no way to find keys.
        let keys = KeyArgs::from_note(&note).unwrap_or_default();
        if !keys.is_whole_lines() {
            loaded.set_note(&note).map_err(failure)?;
            words::note(&format!("its keys were found with {keys}; give `everbloom dedup --redis` the same"));
        }
        Ok(Ending::Done)
    }
}

/// The window of time that the Python package or a server noted in a file.
fn noted_window(note: &str) -> Option<Duration> {
    let note: serde_json::Value = serde_json::from_str(note).ok()?;
    note.get("window_us")?.as_u64().map(Duration::from_micros)
}

impl Save {
    fn run(self) -> Result<Ending> {
        output::check(&self.file, &[])?;
        let mut filter = self.which.open()?;
        let keys = KeyArgs::from_note(&filter.note().map_err(failure)?)?;
        let saved = filter.save().map_err(failure)?;
        filter_file::save(&self.file, saved.as_ref(), &keys, self.compress)?;
        Ok(Ending::Done)
    }
}
