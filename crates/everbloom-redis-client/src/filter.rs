//! A filter on servers: made, opened, asked, moved, deleted.

use crate::Options;
use crate::error::{Error, Result};
use crate::exchange::{Exchange, How, Request};
use crate::nodes::{Trouble, text};
use crate::record::Record;
use crate::slots::{record_key, shard_key, slot};
use crate::writer::MOST_KEYS;
use everbloom::internal::codec::{self, Decoder};
use everbloom::internal::filter::Watch;
use everbloom::internal::filters;
use everbloom::internal::promise::{Spec, Standing};
use everbloom::{AnyFilter, Hashing, KeyHash, Plan, Promise, Status};
use redis::Value;
use std::time::Duration;

/// A filter on servers.
pub struct Filter {
    pub(crate) exchange: Exchange,
    pub(crate) keys: Vec<String>,
    /// The slots of the keys.
    pub(crate) slots: Vec<u16>,
    name: String,
    record: Record,
    /// Generations and arrivals of a shard's window, if it has one.
    window: (u32, u64),
    from_replicas: bool,
    pub(crate) replicas: u32,
    /// The shard that is looked at next.
    looked: usize,
}

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
    /// Arrivals.
    pub observed: u64,
    /// Those that were called new.
    pub distinct: u64,
    /// The time between generations.
    pub every: Option<Duration>,
    /// The primaries, and how many shards each has.
    pub nodes: Vec<(String, u32)>,
}

/// Servers that are to be reached, before there is a filter.
struct Opening {
    exchange: Exchange,
    name: String,
    options: Options,
}

impl Opening {
    fn new(options: &Options, name: &str) -> Result<Self> {
        let is_fit = |sign: char| !sign.is_control() && !sign.is_whitespace() && sign != '{' && sign != '}';
        if name.is_empty() || name.len() > 200 || !name.chars().all(is_fit) {
            let needed = "1 to 200 bytes without spaces and braces";
            return Err(Error::Usage(format!("'{}' is no name for a filter: {needed}", name.escape_debug())));
        }
        let mut exchange = Exchange::new(options)?;
        // A first look: a wrong password need not be tried for a minute.
        if let Err(Trouble::Lasting(error)) = exchange.nodes.refresh() {
            return Err(error);
        }
        Ok(Opening { exchange, name: name.into(), options: options.clone() })
    }

    /// Whether the server of the record has the module, before anything is written to it.
    fn check_module(&mut self) -> Result<()> {
        let key = format!("{}:module", record_key(&self.name));
        self.exchange.one(&key, &asked(&key), How::default()).map(drop)
    }

    /// The record and whether all of it is there.
    fn record(&mut self) -> Result<Option<(Record, String)>> {
        let key = record_key(&self.name);
        let fields = self.exchange.one(&key, &[b"HMGET", key.as_bytes(), b"record", b"state"], How::default())?;
        let Value::Array(fields) = fields else { return Err(self.is_another()) };
        let [record, state] = fields.as_slice() else { return Err(self.is_another()) };
        let state = text(state).unwrap_or_default();
        match record {
            Value::BulkString(bytes) => Ok(Some((Record::from_bytes(&self.name, bytes)?, state))),
            _ => Ok(None),
        }
    }

    fn is_another(&self) -> Error {
        Error::Server(format!("the key {} is something else than a filter's record", record_key(&self.name)))
    }

    fn with(self, mut record: Record) -> Filter {
        let window = record.shard.as_windowed().map_or((0, 0), |shard| (shard.generations(), shard.window()));
        let keys: Vec<String> = (0..record.shards).map(|shard| shard_key(&self.name, shard, record.shards)).collect();
        let slots = keys.iter().map(|key| slot(key.as_bytes())).collect();
        let Opening { exchange, name, options } = self;
        let Options { from_replicas, replicas, .. } = options;
        Filter { exchange, keys, slots, name, record, window, from_replicas, replicas, looked: 0 }
    }

    fn not_found(&self) -> Error {
        let name = &self.name;
        Error::NotFound(format!(
            "there is no filter '{name}' on these servers; `everbloom redis create {name}` makes one"
        ))
    }
}

impl Filter {
    /// A filter that is there.
    pub fn open(options: &Options, name: &str) -> Result<Self> {
        let mut opening = Opening::new(options, name)?;
        match opening.record()? {
            None => Err(opening.not_found()),
            Some((record, state)) => opening.with(record).finished(&state),
        }
    }

    /// A new one, with a window of time or without; an error if there is one of this name, unless it is the same and somebody
    /// made it at the same time.
    pub fn create(options: &Options, name: &str, plan: &Plan, window: Option<Duration>) -> Result<Self> {
        let mut opening = Opening::new(options, name)?;
        if opening.record()?.is_some() {
            let remedy = "take another name, or delete it";
            return Err(Error::Exists(format!("there is a filter '{name}' already; {remedy}")));
        }
        Self::made(opening, planned(plan, window)?)
    }

    /// The filter of this name, or a new one. One that is there must be what was planned.
    pub fn open_or_create(options: &Options, name: &str, plan: &Plan, window: Option<Duration>) -> Result<Self> {
        Self::made(Opening::new(options, name)?, planned(plan, window)?)
    }

    fn made(mut opening: Opening, record: Record) -> Result<Self> {
        opening.check_module()?;
        let key = record_key(&opening.name);
        let how = How { replicas: opening.options.replicas, from_replicas: false };
        let bytes = record.to_bytes();
        // Whoever is first decides; who comes second finds out what was decided.
        opening.exchange.one(&key, &[b"HSETNX", key.as_bytes(), b"record", &bytes], how)?;
        let (there, state) = opening.record()?.ok_or_else(|| opening.not_found())?;
        if there.to_bytes() != bytes {
            let (name, there, asked) = (&opening.name, there.described(), record.described());
            let problem = format!("the filter '{name}' is {there}, and {asked} was asked for");
            let remedy = "leave the options of the filter out, or take another name";
            return Err(Error::Exists(format!("{problem}; {remedy}")));
        }
        opening.with(there).finished(&state)
    }

    /// Finishes what somebody may have left half-made, himself included.
    fn finished(mut self, state: &str) -> Result<Self> {
        let name = &self.name;
        match state {
            "ready" => return Ok(self),
            "deleting" => {
                return Err(Error::Exists(format!(
                    "'{name}' is being deleted; `everbloom redis delete {name}` finishes that"
                )));
            }
            _ if !self.record.begins_empty => {
                let remedy = format!("load it again with --replace, or `everbloom redis delete {name}`");
                return Err(Error::Exists(format!("'{name}' is being loaded, or was left half-loaded; {remedy}")));
            }
            _ => {}
        }
        // A server without the module quotes what it does not know, and bytes of a filter are no text.
        let asks: Vec<Request> = self.keys.iter().map(|key| Request::new(key, &asked(key))).collect();
        self.exchange.each(&asks, How::default())?.into_iter().try_for_each(|answer| answer.map(drop))?;
        let bytes = codec::encode_compressed(self.record.shard.as_ref());
        let loads: Vec<Request> = self.keys.iter().map(|key| self.load_request(key, &bytes, false)).collect();
        let answers = self.exchange.each(&loads, self.write())?;
        let busy: Vec<usize> = (0..answers.len()).filter(|at| is_busy(&answers[*at])).collect();
        answers
            .into_iter()
            .enumerate()
            .filter(|(at, _)| !busy.contains(at))
            .try_for_each(|(_, answer)| answer.map(drop))?;
        self.check_found(&busy)?;
        self.mark_ready()?;
        Ok(self)
    }

    /// Shards that were there already are ours and empty, or somebody else finished meanwhile, or they are left of another
    /// filter.
    fn check_found(&mut self, busy: &[usize]) -> Result<()> {
        for at in busy {
            let key = self.keys[*at].clone();
            let info = self.exchange.one(&key, &[b"EB.INFO", key.as_bytes()], How::default())?;
            let is_ours = field(&info, "spec") == Some(self.record.shard.spec().to_string());
            if is_ours && field(&info, "observed").as_deref() == Some("0") {
                continue;
            }
            let record = record_key(&self.name);
            let state = self.exchange.one(&record, &[b"HGET", record.as_bytes(), b"state"], How::default())?;
            if text(&state).as_deref() != Some("ready") {
                let remedy = format!("`everbloom redis delete {}` takes it away", self.name);
                return Err(Error::Exists(format!("the key {key} is left of another filter; {remedy}")));
            }
        }
        Ok(())
    }

    fn mark_ready(&mut self) -> Result<()> {
        let key = record_key(&self.name);
        let fields = self.record.for_people();
        let mut words: Vec<&[u8]> = vec![b"HSET", key.as_bytes()];
        fields.iter().for_each(|(field, value)| words.extend([field.as_bytes(), value.as_bytes()]));
        words.extend([&b"state"[..], b"ready"]);
        self.exchange.one(&key, &words, self.write()).map(drop)
    }

    fn load_request(&self, key: &str, bytes: &[u8], replace: bool) -> Request {
        let every = self.record.every.map(|every| format!("{}ms", every.as_millis()));
        let mut words: Vec<&[u8]> = vec![b"EB.LOAD", key.as_bytes(), bytes];
        words.extend(replace.then_some(&b"REPLACE"[..]));
        if let Some(every) = &every {
            words.extend([&b"EVERY"[..], every.as_bytes()]);
        }
        Request::new(key, &words)
    }

    fn write(&self) -> How {
        How { replicas: self.replicas, from_replicas: false }
    }

    /// What servers say of it.
    pub fn info(&mut self) -> Result<Info> {
        let infos = self.ask_all("EB.INFO")?;
        let sum = |name: &str| infos.iter().filter_map(|info| field(info, name)?.parse::<u64>().ok()).sum();
        let mut nodes: Vec<(String, u32)> =
            self.exchange.nodes.primaries().into_iter().map(|address| (address, 0)).collect();
        for slot in &self.slots {
            let address = self.exchange.nodes.primary(*slot);
            nodes.iter_mut().filter(|(node, _)| Some(node) == address).for_each(|(_, shards)| *shards += 1);
        }
        Ok(Info {
            spec: self.record.spec.clone(),
            shards: self.record.shards,
            memory_bytes: sum("memory_bytes"),
            observed: sum("observed"),
            distinct: sum("distinct"),
            every: self.record.every,
            nodes,
        })
    }

    /// What its cells say, which takes servers a look at all of them.
    pub fn status(&mut self) -> Result<Status> {
        let parts: Vec<Status> = self.ask_all("EB.STATUS")?.iter().map(status_of).collect();
        Ok(Status::of_parts(&parts))
    }

    /// The same of a few shards, others each time, where the rate is all that is asked for.
    pub fn sampled_status(&mut self) -> Result<Status> {
        let (count, start) = (self.keys.len(), self.looked);
        let looked_at = LOOKED_AT.min(count);
        self.looked = (start + looked_at) % count;
        let keys: Vec<usize> = (start..start + looked_at).map(|at| at % count).collect();
        let parts: Vec<Status> = self.ask("EB.STATUS", &keys)?.iter().map(status_of).collect();
        Ok(Status::of_parts(&parts))
    }

    fn ask_all(&mut self, command: &str) -> Result<Vec<Value>> {
        let all: Vec<usize> = (0..self.keys.len()).collect();
        self.ask(command, &all)
    }

    fn ask(&mut self, command: &str, shards: &[usize]) -> Result<Vec<Value>> {
        let request = |shard: &usize| {
            let key = &self.keys[*shard];
            Request::new(key, &[command.as_bytes(), key.as_bytes()])
        };
        let requests: Vec<Request> = shards.iter().map(request).collect();
        let answers = self.exchange.all(&requests, How { replicas: 0, from_replicas: self.from_replicas });
        answers.map_err(|error| match error {
            Error::Server(text) if text.contains("ERR not found") => self.gone(),
            other => other,
        })
    }

    /// Whether keys are inside. Replicas may answer, if the options say so.
    pub fn contains(&mut self, hashes: &[KeyHash], found: &mut [bool]) -> Result<()> {
        if found.len() < hashes.len() {
            let problem = format!("there is room for {} answers, and {} keys", found.len(), hashes.len());
            return Err(Error::Usage(format!("{problem}; make room")));
        }
        let mut parts = hashes.chunks(MOST_KEYS).zip(found.chunks_mut(MOST_KEYS));
        parts.try_for_each(|(hashes, found)| self.contains_some(hashes, found))
    }

    fn contains_some(&mut self, hashes: &[KeyHash], found: &mut [bool]) -> Result<()> {
        let shards = u64::from(self.record.shards);
        let mut parts: Vec<(Vec<u8>, Vec<usize>)> = vec![Default::default(); self.keys.len()];
        for (place, hash) in hashes.iter().enumerate().take(found.len()) {
            let (blob, places) = &mut parts[hash.shard(shards) as usize];
            blob.extend_from_slice(&packed(*hash));
            places.push(place);
        }
        let asked: Vec<usize> = (0..parts.len()).filter(|shard| !parts[*shard].1.is_empty()).collect();
        // A server finds nothing in a key that is gone, so it is asked for the key, too.
        let requests = |shard: &usize| {
            let key = &self.keys[*shard];
            let there = Request::new(key, &[b"EXISTS", key.as_bytes()]);
            [Request::new(key, &[b"EB.EXISTSHASHES", key.as_bytes(), &parts[*shard].0]), there]
        };
        let requests: Vec<Request> = asked.iter().flat_map(requests).collect();
        let answers = self.exchange.all(&requests, How { replicas: 0, from_replicas: self.from_replicas })?;
        for (shard, answer) in asked.iter().zip(answers.chunks_exact(2)) {
            if answer[1] == Value::Int(0) {
                return Err(self.gone());
            }
            let bits = bits_of(&answer[0], parts[*shard].1.len())?;
            parts[*shard].1.iter().zip(bits).for_each(|(place, bit)| found[*place] = bit);
        }
        Ok(())
    }

    /// What it means if a shard is not there.
    pub(crate) fn gone(&self) -> Error {
        let name = &self.name;
        let problem = format!("the filter '{name}' was deleted meanwhile, or a server lost a part of it");
        Error::NotFound(format!("{problem}; `everbloom redis info {name}` says what is there"))
    }

    /// All of it as one filter: the bytes of the library's on the same arrivals. Each shard is as it is when its turn comes.
    pub fn save(&mut self) -> Result<AnyFilter> {
        let mut shards = Vec::with_capacity(self.keys.len());
        for key in self.keys.clone() {
            let how = How { replicas: 0, from_replicas: self.from_replicas };
            let Value::BulkString(bytes) =
                self.exchange.one(&key, &[b"EB.DUMP", key.as_bytes(), b"COMPRESSED"], how)?
            else {
                return Err(Error::Server(format!("{key}: EB.DUMP gave no bytes")));
            };
            shards.push(Decoder::new().limit(1 << 34).decode(&bytes)?);
        }
        Ok(AnyFilter::from(filters::join(&self.record.spec, shards)?))
    }

    /// A filter of the library, put on servers. With `replace`, in the place of what has the name now. One whose window is
    /// turned by time needs to be told how long it is.
    pub fn load(
        options: &Options,
        name: &str,
        filter: AnyFilter,
        window: Option<Duration>,
        replace: bool,
    ) -> Result<Self> {
        let spec = filter.spec().clone();
        check_hashing(filter.hashing(), &spec)?;
        let mut shards = filters::split(filter.into_dyn());
        let every = turns(shards[0].as_mut(), window)?;
        if every.is_none() && filters::is_turned_by_caller(&spec) {
            let problem = "its window is one of time, of which the file does not say how long it is";
            return Err(Error::Usage(format!("{problem}; give the window, such as 24h")));
        }
        let mut opening = Opening::new(options, name)?;
        if let Some((record, _)) = opening.record()? {
            if !replace {
                return Err(Error::Exists(format!("there is a filter '{name}' already; --replace loads in its place")));
            }
            opening.with(record).delete()?;
            opening = Opening::new(options, name)?;
        }
        opening.check_module()?;
        let mut empty = shards[0].try_clone_boxed()?;
        empty.clear();
        let record = Record { spec, shards: shards.len() as u32, every, begins_empty: false, shard: empty };
        let key = record_key(name);
        let bytes = record.to_bytes();
        let how = How { replicas: options.replicas, from_replicas: false };
        opening.exchange.one(&key, &[b"HSETNX", key.as_bytes(), b"record", &bytes], how)?;
        let mut loaded = opening.with(record);
        for (key, shard) in loaded.keys.clone().iter().zip(shards) {
            let request = loaded.load_request(key, &codec::encode_compressed(shard.as_ref()), true);
            loaded.exchange.all(&[request], how)?;
        }
        loaded.mark_ready()?;
        Ok(loaded)
    }

    /// Takes it away, even half-made.
    pub fn delete_named(options: &Options, name: &str) -> Result<()> {
        let mut opening = Opening::new(options, name)?;
        let (record, _) = opening.record()?.ok_or_else(|| opening.not_found())?;
        opening.with(record).delete()
    }

    /// The record goes last: what is left of a filter without one would be taken for another's.
    fn delete(mut self) -> Result<()> {
        let (record, how) = (record_key(&self.name), self.write());
        self.exchange.one(&record, &[b"HSET", record.as_bytes(), b"state", b"deleting"], how)?;
        let unlinks: Vec<Request> =
            self.keys.iter().map(|key| Request::new(key, &[b"UNLINK", key.as_bytes()])).collect();
        self.exchange.all(&unlinks, how)?;
        self.exchange.one(&record, &[b"DEL", record.as_bytes()], how).map(drop)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, with its number of shards.
    pub fn spec(&self) -> &Spec {
        &self.record.spec
    }

    /// The number of its keys.
    pub fn num_shards(&self) -> u32 {
        self.record.shards
    }

    /// How keys are hashed.
    pub fn hashing(&self) -> &Hashing {
        self.record.shard.hashing()
    }

    /// What it promises.
    pub fn promise(&self) -> Promise {
        self.record.shard.promise()
    }

    /// What it took when it was made.
    pub fn memory_bits(&self) -> u64 {
        self.record.shard.memory_bits().saturating_mul(self.record.shards.into())
    }

    /// Watches over its promise. How many keys a window of time has on all machines is not known here: its cells are
    /// looked at.
    pub fn watch(&self) -> Watch {
        let (generations, arrivals) = self.window;
        if self.record.every.is_none() || generations == 0 {
            return filters::watch(self.record.shard.as_ref());
        }
        let looked_at = LOOKED_AT.min(self.keys.len()) as u64;
        Watch::over_cells(&self.promise(), arrivals.div_ceil(generations.into()).saturating_mul(looked_at))
    }

    /// Whether it keeps its promise, as far as what it looks like tells.
    pub fn standing(&self, status: &Status) -> Standing {
        match (self.window(), self.watch().is_broken_by(status)) {
            (None, _) => filters::standing(self.record.shard.as_ref(), status),
            (Some(_), true) => Standing::Broken,
            (Some(_), false) => Standing::Kept,
        }
    }

    /// The window of time that the servers turn, and how many arrivals it was planned for.
    pub fn window(&self) -> Option<(Duration, u64)> {
        let (generations, arrivals) = self.window;
        let millis = u64::try_from(self.record.every?.as_millis()).ok()?.checked_mul(generations.into())?;
        // What rounding up a generation added is of no interest to anybody.
        let rounding = millis % 1000;
        let is_rounding = millis >= 60_000 && rounding < u64::from(generations);
        let length = Duration::from_millis(if is_rounding { millis - rounding } else { millis });
        Some((length, filters::window_in_shards(arrivals, self.record.shards)))
    }

    /// Whether the servers are a cluster.
    pub fn is_clustered(&self) -> bool {
        self.exchange.nodes.is_cluster()
    }
}

/// The time between generations of a window with so many of them, rounded up: together they are never shorter than it.
fn turns(shard: &mut dyn everbloom::Filter, window: Option<Duration>) -> Result<Option<Duration>> {
    let Some(window) = window else { return Ok(None) };
    let spec = shard.spec().clone();
    let Some(windowed) = shard.as_windowed().filter(|_| filters::is_turned_by_caller(&spec)) else {
        return Err(Error::Usage(format!("'{spec}' has no window of time; leave the window out")));
    };
    let every = window.as_millis().div_ceil(windowed.generations().max(1).into()).max(1);
    Ok(Some(Duration::from_millis(u64::try_from(every).unwrap_or(u64::MAX))))
}

/// What a plan comes to.
fn planned(plan: &Plan, window: Option<Duration>) -> Result<Record> {
    check_hashing(&plan.hashing, &plan.spec)?;
    let mut shard = filters::build_shard(plan)?;
    let every = turns(shard.as_mut(), window)?;
    let shards = filters::shards_of(&plan.spec)?;
    Ok(Record { spec: plan.spec.clone(), shards, every, begins_empty: true, shard })
}

/// A question that changes nothing, and is answered whether the key is there or not.
fn asked(key: &str) -> [&[u8]; 3] {
    [b"EB.EXISTS", key.as_bytes(), b"-"]
}

/// Clients send hashes, so a kind that hashes in a way of its own cannot be split.
fn check_hashing(hashing: &Hashing, spec: &Spec) -> Result<()> {
    match hashing.seed() {
        Some(_) => Ok(()),
        None => Err(Error::Usage(format!(
            "{} filters hash keys by {}, and cannot be split over servers; take 'blocked' or 'scalable'",
            spec.kind(),
            hashing.name()
        ))),
    }
}

fn is_busy(answer: &Result<Value>) -> bool {
    matches!(answer, Err(Error::Server(text)) if text.contains("BUSYKEY"))
}

/// A hash on the wire: the highest byte first.
pub(crate) fn packed(hash: KeyHash) -> [u8; 16] {
    (u128::from(hash.high) << 64 | u128::from(hash.low)).to_be_bytes()
}

/// So many bits of an answer.
pub(crate) fn bits_of(answer: &Value, count: usize) -> Result<impl Iterator<Item = bool>> {
    match answer {
        Value::BulkString(bytes) if bytes.len() == count.div_ceil(8) => {
            Ok((0..count).map(|index| bytes[index / 8] >> (7 - index % 8) & 1 == 1))
        }
        _ => Err(Error::Server(format!("a server did not answer {count} hashes with as many bits"))),
    }
}

/// A field of a map, which comes as a list.
fn field(map: &Value, name: &str) -> Option<String> {
    let Value::Array(words) = map else { return None };
    words.chunks_exact(2).find(|pair| text(&pair[0]).as_deref() == Some(name)).and_then(|pair| text(&pair[1]))
}

fn status_of(map: &Value) -> Status {
    let number = |name| field(map, name).and_then(|text| text.parse::<f64>().ok());
    let count = |name| field(map, name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let mut status = Status::default();
    status.arrivals = count("arrivals");
    status.fill = number("fill").unwrap_or(0.0);
    status.estimated_fpr = number("estimated_fpr").unwrap_or(0.0);
    status.estimated_items = number("estimated_items");
    status.refused = count("refused");
    status.full_counters = count("full_counters");
    status
}
