//! What servers say of a filter: its counts, its cells, and whether it keeps its promise.

use crate::error::{Error, Result};
use crate::exchange::{How, Request};
use crate::filter::Filter;
use crate::nodes::text;
use everbloom::kind::{Standing, Watch};
use everbloom::kind::{standing_of, watch_of, window_in_shards};
use everbloom::{Spec, Status};
use redis::Value;
use std::time::Duration;

/// Shards that a look takes: they are alike, because hashes deal the keys out.
const LOOKED_AT: usize = 16;

/// What servers say of a filter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// What it is.
    pub spec: Spec,
    /// Its number of keys.
    pub shards: u32,
    /// What its shards take together.
    pub memory_bytes: u64,
    /// Arrivals; of a filter that was loaded, with those that its file counted.
    pub observed: u64,
    /// Those that were called new; of a filter that was loaded, with as many as its cells stood for.
    pub distinct: u64,
    /// The time between generations.
    pub every: Option<Duration>,
    /// The primaries, and how many shards each has.
    pub nodes: Vec<(String, u32)>,
}

impl Filter {
    /// What servers say of it.
    pub fn info(&mut self) -> Result<Info> {
        let infos = self.ask_all("EB.INFO")?;
        let sum = |name: &str| infos.iter().map(|info| number::<u64>(info, name)).sum::<Result<u64>>();
        let (memory_bytes, observed, distinct) = (sum("memory_bytes")?, sum("observed")?, sum("distinct")?);
        let mut nodes: Vec<(String, u32)> =
            self.exchange.nodes.primaries().into_iter().map(|address| (address, 0)).collect();
        for slot in &self.slots {
            let address = self.exchange.nodes.primary(*slot);
            nodes.iter_mut().filter(|(node, _)| Some(node) == address).for_each(|(_, shards)| *shards += 1);
        }
        let (spec, shards, every) = (self.record.spec.clone(), self.record.shards, self.record.every);
        Ok(Info { spec, shards, memory_bytes, observed, distinct, every, nodes })
    }

    /// What its cells say, which takes servers a look at all of them.
    pub fn status(&mut self) -> Result<Status> {
        let parts: Vec<Status> = self.ask_all("EB.STATUS")?.iter().map(status_of).collect::<Result<_>>()?;
        Ok(Status::of_parts(&parts))
    }

    /// What the cells of a few shards say, others each time, where the rate is all that is asked for.
    pub fn sampled_status(&mut self) -> Result<Status> {
        let (count, start) = (self.keys.len(), self.looked);
        let looked_at = LOOKED_AT.min(count);
        self.looked = (start + looked_at) % count;
        let keys: Vec<usize> = (start..start + looked_at).map(|at| at % count).collect();
        let parts: Vec<Status> = self.ask("EB.STATUS", &keys)?.iter().map(status_of).collect::<Result<_>>()?;
        Ok(Status::of_parts(&parts))
    }

    fn ask_all(&mut self, command: &str) -> Result<Vec<Value>> {
        let all: Vec<usize> = (0..self.keys.len()).collect();
        self.ask(command, &all)
    }

    fn ask(&mut self, command: &str, shards: &[usize]) -> Result<Vec<Value>> {
        self.read(shards, |key| Request::new(key, &[command.as_bytes(), key.as_bytes()]))
    }

    /// Asks for shards. A replica that lacks one may be behind, or its primary is giving the shard away: then the primary
    /// knows where it is.
    pub(crate) fn read(&mut self, shards: &[usize], request: impl Fn(&str) -> Request) -> Result<Vec<Value>> {
        let mut how = How { replicas: 0, from_replicas: self.from_replicas };
        let mut found: Vec<Option<Value>> = vec![None; shards.len()];
        loop {
            let asked: Vec<usize> = (0..shards.len()).filter(|at| found[*at].is_none()).collect();
            let requests: Vec<Request> = asked.iter().map(|at| request(&self.keys[shards[*at]])).collect();
            for (at, answer) in asked.into_iter().zip(self.exchange.each(&requests, how)?) {
                match answer {
                    Err(Error::Server(text)) if text.contains("ERR not found") => {}
                    answer => found[at] = Some(answer?),
                }
            }
            if let Some(all) = found.iter().cloned().collect() {
                return Ok(all);
            }
            if !how.from_replicas {
                let missing = (0..shards.len()).filter(|at| found[*at].is_none());
                return Err(self.missing(&missing.map(|at| shards[at]).collect::<Vec<_>>()));
            }
            how.from_replicas = false;
        }
    }

    /// What it means if shards are not there.
    pub(crate) fn missing(&self, shards: &[usize]) -> Error {
        let (name, all, first) = (&self.name, self.keys.len(), &self.keys[shards[0]]);
        let which = match shards.len() {
            1 => format!("the key {first}, one of its {all} shards, is missing"),
            count => format!("{count} of its {all} shards are missing, such as {first}"),
        };
        let problem = format!("the filter '{name}' was deleted meanwhile, or a server lost a part of it: {which}");
        let remedy =
            format!("load it from a file with --replace, or `everbloom redis delete {name}` and make it again");
        Error::NotFound(format!("{problem}; {remedy}"))
    }

    /// Watches over its promise. How many keys a window of time has on all machines is not known here: its cells are
    /// looked at.
    pub fn watch(&self) -> Watch {
        let (generations, arrivals) = self.record.window;
        if self.record.every.is_none() || generations == 0 {
            return watch_of(self.record.kind, &self.record.spec, self.record.promise);
        }
        let looked_at = LOOKED_AT.min(self.keys.len()) as u64;
        Watch::over_cells(&self.promise(), arrivals.div_ceil(generations.into()).saturating_mul(looked_at))
    }

    /// Whether it keeps its promise, as far as what it looks like tells.
    pub fn standing(&self, status: &Status) -> Standing {
        match (self.window(), self.watch().is_broken_by(status)) {
            (None, _) => standing_of(self.record.kind, self.record.promise, status),
            (Some(_), true) => Standing::Broken,
            (Some(_), false) => Standing::Kept,
        }
    }

    /// The window of time that the servers turn, and how many arrivals it was planned for.
    pub fn window(&self) -> Option<(Duration, u64)> {
        let (generations, arrivals) = self.record.window;
        let millis = u64::try_from(self.record.every?.as_millis()).ok()?.checked_mul(generations.into())?;
        // What rounding up a generation added is of no interest to anybody.
        let rounding = millis % 1000;
        let is_rounding = millis >= 60_000 && rounding < u64::from(generations);
        let length = Duration::from_millis(if is_rounding { millis - rounding } else { millis });
        Some((length, window_in_shards(arrivals, self.record.shards)))
    }
}

/// A field of a map, which comes as a list.
pub(crate) fn field(map: &Value, name: &str) -> Option<String> {
    let Value::Array(words) = map else { return None };
    words.chunks_exact(2).find(|pair| text(&pair[0]).as_deref() == Some(name)).and_then(|pair| text(&pair[1]))
}

/// A field as a number that must be there: without it a promise would seem to be kept.
fn number<T: std::str::FromStr>(map: &Value, name: &str) -> Result<T> {
    field(map, name).and_then(|text| text.parse().ok()).ok_or_else(|| {
        Error::Server(format!("a server did not say '{name}' of a filter; do all have the same version of the module?"))
    })
}

fn status_of(map: &Value) -> Result<Status> {
    Ok(Status {
        arrivals: number(map, "arrivals")?,
        fill: number(map, "fill")?,
        estimated_fpr: number(map, "estimated_fpr")?,
        estimated_items: field(map, "estimated_items").and_then(|text| text.parse().ok()),
        refused: number(map, "refused")?,
        full_counters: number(map, "full_counters")?,
    })
}
