//! A filter on servers.

use super::quantity;
use crate::failure::{Failure, Result};
use clap::Args;
use everbloom::kind::{self, shards_of};
use everbloom::{Spec, Window};
use std::time::Duration;

/// Where a filter is, if many machines share it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServersArgs {
    /// Keep the filter on Redis or Valkey servers that have everbloom's module, and share it with everybody who gives
    /// the same --name: redis://[USER:PASSWORD@]HOST:PORT, several with commas between; any nodes of a cluster will do
    #[arg(long, value_name = "URL,…", help_heading = "Servers")]
    pub(crate) redis: Option<String>,
    /// The filter's name on the servers; made if it is not there
    #[arg(long, value_name = "NAME", help_heading = "Servers")]
    pub(crate) name: Option<String>,
    /// How many keys the filter is split into: at least 8 for each node there will ever be [default: 64]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Servers")]
    pub(crate) shards: Option<u32>,
    /// Replicas that must have a batch before its lines are written, so that a failover loses nothing [default: 0]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=100), help_heading = "Servers")]
    pub(crate) replicas: Option<u32>,
    /// How long to wait for servers that do not answer, such as during a failover [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, help_heading = "Servers")]
    pub(crate) patience: Option<Duration>,
}

/// Keys of a filter when nothing is said.
pub(crate) const DEFAULT_SHARDS: u32 = 64;

/// The spec in so many shards, where it does not say itself how many it has.
pub(crate) fn in_shards(spec: &Spec, shards: Option<u32>) -> Result<Spec> {
    if spec.get(everbloom::kind::SHARDS_PARAMETER.name).is_none() {
        return Ok(kind::in_shards(spec, shards.unwrap_or(DEFAULT_SHARDS)));
    }
    match (shards_of(spec)?, shards) {
        (own, Some(shards)) if own != shards => {
            Err(Failure::new(format!("--filter has {own} shards, and --shards says {shards}; leave one of them out")))
        }
        _ => Ok(spec.clone()),
    }
}

/// Refuses shards for a window of lines.
pub(crate) fn refuse_split_window(window: Option<Window>, shards: Option<u32>) -> Result<()> {
    match (window, shards) {
        (Some(Window::Arrivals(_)), Some(2..)) => {
            let problem = "a window of lines in several shards would be shorter in one that gets a frequent line";
            let remedy = "leave --shards out, and it is one key on one server, or give a window of time: --window 24h";
            Err(Failure::new(format!("{problem}; {remedy}")))
        }
        _ => Ok(()),
    }
}
