//! A filter between servers and files, and away from servers.
//!
//! ```text
//! load   every shard as {clicks.3.17}:load-ID, for a day ──► whatever has the name goes ──► the record ──► RENAME ──► ready
//!        └── what servers refuse, they refuse here: nothing has changed
//! ```

use crate::error::{Error, Result};
use crate::exchange::{How, Request};
use crate::filter::{Claim, Filter, Opening, check_hashing, turns};
use crate::record::Record;
use crate::slots::{record_key, shard_key};
use crate::{Options, new_name};
use everbloom::codec;
use everbloom::kind::Standing;
use everbloom::kind::{is_turned_by_caller, join, split, standing};
use everbloom::{AnyFilter, Holds, Status};
use everbloom_all::KINDS;
use redis::Value;
use std::time::Duration;

/// The longest that servers take as one word, unless they are told otherwise.
const LONGEST_WORD: usize = 512 << 20;

/// What was put aside and never used goes by itself.
const ASIDE_FOR: Duration = Duration::from_secs(86_400);

impl Filter {
    /// All of it as one filter: the bytes of the library's on the same arrivals. Each shard is as it is when its turn comes.
    pub fn save(&mut self) -> Result<AnyFilter> {
        let mut shards = Vec::with_capacity(self.keys.len());
        for at in 0..self.keys.len() {
            let dump = |key: &str| Request::new(key, &[b"EB.DUMP", key.as_bytes(), b"COMPRESSED"]);
            let answer = self.read(&[at], dump)?.pop();
            let Some(Value::BulkString(bytes)) = answer else {
                return Err(Error::Server(format!("{}: EB.DUMP gave no bytes", self.keys[at])));
            };
            shards.push(KINDS.decoder().limit(1 << 34).decode(&bytes)?);
        }
        Ok(AnyFilter::from(join(&self.record.spec, shards)?))
    }

    /// A filter of the library, put on servers. With `replace`, in the place of what has the name now, which stays until all of
    /// the new one is there. One whose window is turned by time needs to be told how long it is.
    pub fn load(
        options: &Options,
        name: &str,
        filter: AnyFilter,
        window: Option<Duration>,
        replace: bool,
    ) -> Result<Self> {
        let (spec, counted) = (filter.spec().clone(), Counted::of(&filter));
        check_hashing(filter.hashing(), &spec)?;
        let mut shards = split(filter.into_dyn());
        let every = turns(shards[0].as_mut(), window)?;
        if every.is_none() && is_turned_by_caller(KINDS.of(&spec)?, &spec) {
            let problem = "its window is one of time, of which the file does not say how long it is";
            return Err(Error::Usage(format!("{problem}; give the window, such as 24h")));
        }
        let load = new_name();
        let mut empty = shards[0].try_clone_boxed()?;
        empty.clear();
        let record = Record::new(&spec, every, Some(&load), empty.as_mut())?;
        drop(empty);
        let mut opening = Opening::new(options, name)?;
        let is_there = opening.stored_record()?.is_some();
        if is_there && !replace {
            return Err(Error::Exists(format!("there is a filter '{name}' already; --replace loads in its place")));
        }
        opening.check_module()?;
        let mut loaded = opening.with(record);
        let aside: Vec<String> = loaded.keys.iter().map(|key| aside_key(key, &load)).collect();
        let done = loaded.put_aside(&aside, shards, &counted).and_then(|()| loaded.put_in_place(options, &aside));
        if done.as_ref().is_err_and(|error| !matches!(error, Error::Unreachable(_) | Error::Stopped)) {
            // What cannot be taken back now goes in a day, or with the record.
            let _ = loaded.unlink(&aside);
        }
        done.map(|()| loaded)
    }

    /// Sends the shards under names of their own.
    fn put_aside(
        &mut self,
        aside: &[String],
        shards: Vec<Box<dyn everbloom::Filter>>,
        counted: &Counted,
    ) -> Result<()> {
        let how = self.write();
        for (key, shard) in aside.iter().zip(shards) {
            let bytes = codec::encode_compressed(shard.as_ref());
            if bytes.len() > LONGEST_WORD {
                let problem = format!("a shard takes {} MiB, and servers take 512 MiB at once", bytes.len() >> 20);
                return Err(Error::Usage(format!("{problem}; build the filter with more shards")));
            }
            let (observed, distinct) = counted.of_shard(&shard.status());
            let counts: [&[u8]; 4] = [b"REPLACE", b"COUNTS", observed.as_bytes(), distinct.as_bytes()];
            let expiry = ASIDE_FOR.as_millis().to_string();
            let expire = Request::new(key, &[b"PEXPIRE", key.as_bytes(), expiry.as_bytes()]);
            self.exchange.all(&[self.load_request(key, &bytes, &counts), expire], how)?;
        }
        Ok(())
    }

    /// Lets the shards that were sent take the name. From the record on nobody else does the same.
    fn put_in_place(&mut self, options: &Options, aside: &[String]) -> Result<()> {
        let mut opening = Opening::new(options, &self.name)?;
        if let Some((bytes, _)) = opening.stored_record()? {
            opening.delete(&bytes)?;
        }
        if let Claim::Other(_) = opening.claim(&self.record)? {
            let problem = format!("somebody made a filter '{}' while this one was being loaded", self.name);
            return Err(Error::Exists(format!("{problem}; load it again with --replace, or under another name")));
        }
        let how = self.write();
        let stay: Vec<Request> = aside.iter().map(|key| Request::new(key, &[b"PERSIST", key.as_bytes()])).collect();
        self.exchange.all(&stay, how)?;
        let rename = |(from, to): (&String, &String)| Request::new(from, &[b"RENAME", from.as_bytes(), to.as_bytes()]);
        let renames: Vec<Request> = aside.iter().zip(&self.keys).map(rename).collect();
        for answer in self.exchange.each(&renames, how)? {
            match answer {
                // It was done before, and the answer was lost: whether it was is seen below.
                Err(Error::Server(text)) if text.contains("no such key") => {}
                answer => drop(answer?),
            }
        }
        let exists: Vec<Request> =
            self.keys.iter().map(|key| Request::new(key, &[b"EXISTS", key.as_bytes()])).collect();
        let there = self.exchange.all(&exists, How::default())?;
        let missing: Vec<usize> = (0..there.len()).filter(|at| there[*at] == Value::Int(0)).collect();
        if !missing.is_empty() {
            return Err(self.missing(&missing));
        }
        self.mark_ready()
    }

    fn unlink(&mut self, keys: &[String]) -> Result<()> {
        let unlinks: Vec<Request> = keys.iter().map(|key| Request::new(key, &[b"UNLINK", key.as_bytes()])).collect();
        self.exchange.all(&unlinks, self.write()).map(drop)
    }

    /// Takes shards away that were made a moment ago, and the record.
    pub(crate) fn take_away(&mut self, shards: &[String]) -> Result<()> {
        self.unlink(shards)?;
        let record = record_key(&self.name);
        self.exchange.one(&record, &[b"DEL", record.as_bytes()], self.write()).map(drop)
    }

    /// Takes it away, even half-made or with a record that cannot be read.
    pub fn delete_named(options: &Options, name: &str) -> Result<()> {
        let mut opening = Opening::new(options, name)?;
        let none = || Error::NotFound(format!("there is no filter '{name}' on these servers"));
        let (bytes, _) = opening.stored_record()?.ok_or_else(none)?;
        opening.delete(&bytes)
    }
}

impl Opening {
    /// Takes a filter with this record away. The record goes last: what is left of a filter without one would be taken for
    /// another's.
    fn delete(&mut self, record: &[u8]) -> Result<()> {
        let (shards, load) = Record::shards_and_load(&self.name, record)?;
        let (record, how) = (record_key(&self.name), self.write());
        self.exchange.one(&record, &[b"HSET", record.as_bytes(), b"state", b"deleting"], how)?;
        let unlink = |key: String| Request::new(&key, &[b"UNLINK", key.as_bytes()]);
        let keys = (0..shards).map(|shard| shard_key(&self.name, shard, shards));
        let with_aside = keys.flat_map(|key| [load.map(|load| aside_key(&key, load)), Some(key)]);
        let unlinks: Vec<Request> = with_aside.flatten().map(unlink).collect();
        self.exchange.all(&unlinks, how)?;
        self.exchange.one(&record, &[b"DEL", record.as_bytes()], how).map(drop)
    }
}

/// Where a load puts a shard until all are there.
fn aside_key(key: &str, load: &str) -> String {
    format!("{key}:load-{load}")
}

/// What a file says of arrivals, so that the promise is watched on servers, too.
struct Counted {
    /// The part of what the cells seem to hold that counts: a promise that was kept is not called broken because of the
    /// noise of an estimate.
    part: f64,
}

impl Counted {
    fn of(filter: &AnyFilter) -> Self {
        let status = filter.status();
        let is_kept = standing(filter.as_ref(), &status) == Standing::Kept;
        let part = match (filter.promise().holds, status.estimated_items) {
            (Holds::UntilItems(promised), Some(items)) if is_kept => (promised as f64 / items).min(1.0),
            _ => 1.0,
        };
        Counted { part }
    }

    /// Arrivals at a shard and those that were new. Cells that do not tell may stand for as many as arrived.
    fn of_shard(&self, status: &Status) -> (String, String) {
        let arrivals = status.arrivals;
        let items = status.estimated_items.map_or(arrivals, |items| (items * self.part) as u64);
        (arrivals.to_string(), items.min(arrivals).to_string())
    }
}
