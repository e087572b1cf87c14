//! One filter over many Redis or Valkey servers.
//!
//! A filter with `shards=N` becomes N keys of a cluster, each a filter of the module's own type, and a record that says
//! what they are together. The keys' slots divide the cluster evenly, so that N shards use all of its nodes. A client
//! hashes a key once, by the library, and sends 16 bytes of it to the shard it belongs to; verdicts are those of the
//! library's `shards=N` filter on the same arrivals, and the shards put together are its bytes. A single server works
//! the same.
//!
//! ```no_run
//! use everbloom::{Goal, Hashing, Importances, Verdict};
//! use everbloom_redis_client::{Filter, Options, Writer};
//!
//! let plan = Goal::new().memory_bits(1 << 33).fpr(0.01).plan("auto:shards=64")?;
//! let options = Options::new("redis://localhost:6379,redis://localhost:6380");
//! let filter = Filter::open_or_create(&options, "clicks", &plan, None)?;
//! let hashing = *filter.hashing();
//! let mut writer = Writer::new(filter, "machine 1, process 4711")?;
//! let hashes: Vec<_> = ["a", "b", "a"].iter().map(|key| hashing.hash(key.as_bytes())).collect();
//! let mut verdicts = vec![Verdict::Distinct; hashes.len()];
//! writer.observe(&hashes, Importances::default(), &mut verdicts)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **A batch counts once.** A client whose connection broke does not know whether its batch arrived. Sent again, its new keys
//! would look seen. So batches carry a client's name and a number, and a server answers one that comes again as it did
//! the first time. One batch is under way for each shard and client.
//!
//! **Failover.** A server may die after it answered and before its replica knew. With [`Options::replicas`] a batch counts when
//! so many replicas have it. Without, keys may be forgotten: [`Writer::forgotten`] says how many were.

mod calls;
mod error;
mod exchange;
mod filter;
mod moving;
mod nodes;
mod record;
mod slots;
mod status;
mod writer;

pub use calls::Call;
pub use error::{Error, Result};
pub use exchange::Watcher;
pub use filter::Filter;
pub use slots::{SLOTS, record_key, shard_key, slot};
pub use status::Info;
pub use writer::{Forgotten, MOST_KEYS, Session, Writer};

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// How servers are reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// `redis://USER:PASSWORD@HOST:PORT`, several with commas between: any nodes of a cluster, or a server and its replicas.
    pub urls: String,
    /// How long something that may pass is waited for: a failover, a server that starts.
    pub patience: Duration,
    /// How many replicas must have a batch before it counts.
    pub replicas: u32,
    /// Whether replicas may be asked, which may lag behind.
    pub from_replicas: bool,
    /// Who is told of trouble, and may end it.
    pub watcher: Arc<dyn Watcher>,
}

impl Options {
    /// A minute's patience; primaries only.
    pub fn new(urls: impl Into<String>) -> Self {
        let (patience, watcher) = (Duration::from_secs(60), Arc::new(exchange::Nobody));
        Options { urls: urls.into(), patience, replicas: 0, from_replicas: false, watcher }
    }

    /// The servers that are named, or that the variable `EVERBLOOM_REDIS` names, or the one of this machine.
    pub fn named(urls: Option<String>) -> Self {
        let urls = urls.or_else(|| std::env::var("EVERBLOOM_REDIS").ok());
        Self::new(urls.unwrap_or_else(|| "redis://127.0.0.1:6379".into()))
    }
}

/// Keys of a filter where nobody says how many.
pub const DEFAULT_SHARDS: u32 = 64;

/// A name for a client that nobody else has, ever: two of a name would take each other's answers.
pub fn new_name() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{random:016x}-{}", std::process::id())
}
