//! A filter on servers: made, opened, asked.

use crate::Options;
use crate::error::{Error, Result};
use crate::exchange::{Exchange, How, Request};
use crate::nodes::{Trouble, text};
use crate::record::Record;
use crate::slots::{record_key, shard_key, slot};
use crate::status::field;
use crate::writer::MOST_KEYS;
use everbloom::kind::size_text;
use everbloom::kind::{build_shard, is_turned_by_caller, shard_spec, shards_of};
use everbloom::{Hashing, KeyHash, Plan, Promise, Spec};
use everbloom_all::KINDS;
use redis::Value;
use std::time::Duration;

/// A filter on servers.
pub struct Filter {
    pub(crate) exchange: Exchange,
    pub(crate) keys: Vec<String>,
    /// The slots of the keys.
    pub(crate) slots: Vec<u16>,
    pub(crate) name: String,
    pub(crate) record: Record,
    pub(crate) from_replicas: bool,
    pub(crate) replicas: u32,
    /// The shard that is looked at next.
    pub(crate) looked: usize,
}

/// Servers that are to be reached, before there is a filter.
pub(crate) struct Opening {
    pub(crate) exchange: Exchange,
    pub(crate) name: String,
    pub(crate) options: Options,
}

impl Opening {
    pub(crate) fn new(options: &Options, name: &str) -> Result<Self> {
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
    pub(crate) fn check_module(&mut self) -> Result<()> {
        let key = format!("{}:module", record_key(&self.name));
        self.exchange.one(&key, &asked(&key), How::default()).map(drop)
    }

    /// Refuses shards that would one day be larger than their server allows, as far as it says what it allows.
    fn check_size(&mut self, plan: &Plan) -> Result<()> {
        let key = record_key(&self.name);
        let words: [&[u8]; 3] = [b"CONFIG", b"GET", b"everbloom.max-filter-bytes"];
        let most = match self.exchange.one(&key, &words, How::default()) {
            // Who may not ask is told when it is too late.
            Err(Error::Server(_)) => None,
            answer => field(&answer?, "everbloom.max-filter-bytes").and_then(|most| most.parse::<u64>().ok()),
        };
        let (shards, bits) = (u64::from(shards_of(&plan.spec)?), plan.memory_bits);
        match most.map(|most| most.saturating_mul(8)).filter(|most| bits / shards > *most) {
            None => Ok(()),
            Some(most) => {
                let (shard, needed) = (size_text(bits / shards), bits.div_ceil(most));
                let problem = format!("a shard would take {shard}, and the servers allow {}", size_text(most));
                let remedy = format!("take {needed} shards or more, or raise everbloom.max-filter-bytes");
                Err(Error::Usage(format!("{problem}; {remedy}")))
            }
        }
    }

    /// The record and whether all of it is there.
    fn record(&mut self) -> Result<Option<(Record, String)>> {
        let Some((bytes, state)) = self.stored_record()? else { return Ok(None) };
        Ok(Some((Record::from_bytes(&self.name, bytes)?, state)))
    }

    /// The record as it is stored, readable or not.
    pub(crate) fn stored_record(&mut self) -> Result<Option<(Vec<u8>, String)>> {
        let key = record_key(&self.name);
        let fields = self.exchange.one(&key, &[b"HMGET", key.as_bytes(), b"record", b"state"], How::default());
        let fields = fields.map_err(|error| match error {
            Error::Server(text) if text.contains("WRONGTYPE") => self.is_another(),
            other => other,
        })?;
        let Value::Array(fields) = fields else { return Err(self.is_another()) };
        let [record, state] = <[Value; 2]>::try_from(fields).map_err(|_| self.is_another())?;
        Ok(match record {
            Value::BulkString(bytes) => Some((bytes, text(&state).unwrap_or_default())),
            _ => None,
        })
    }

    /// Writes a record where there is none; whether it is there now, and whether nobody can have begun with its shards.
    pub(crate) fn claim(&mut self, record: &Record) -> Result<Claim> {
        let (key, how) = (record_key(&self.name), self.write());
        // Whoever is first decides; who comes second finds out what was decided.
        let set = self.exchange.one(&key, &[b"HSETNX", key.as_bytes(), b"record", record.bytes()], how)?;
        let (there, state) = self.stored_record()?.ok_or_else(|| self.not_found())?;
        Ok(match (there == record.bytes(), set == Value::Int(1)) {
            (true, true) => Claim::First,
            (true, false) => Claim::Same(state),
            (false, _) => Claim::Other(there),
        })
    }

    pub(crate) fn write(&self) -> How {
        How { replicas: self.options.replicas, from_replicas: false }
    }

    fn is_another(&self) -> Error {
        let (key, remedy) = (record_key(&self.name), "take another name");
        Error::Exists(format!("the key {key} is something else than the record of a filter; {remedy}"))
    }

    pub(crate) fn with(self, record: Record) -> Filter {
        let keys: Vec<String> = (0..record.shards).map(|shard| shard_key(&self.name, shard, record.shards)).collect();
        let slots = keys.iter().map(|key| slot(key.as_bytes())).collect();
        let Opening { exchange, name, options } = self;
        let Options { from_replicas, replicas, .. } = options;
        Filter { exchange, keys, slots, name, record, from_replicas, replicas, looked: 0 }
    }

    pub(crate) fn not_found(&self) -> Error {
        let name = &self.name;
        Error::NotFound(format!(
            "there is no filter '{name}' on these servers; `everbloom redis create {name}` makes one"
        ))
    }
}

/// Whose record there is.
pub(crate) enum Claim {
    /// Ours, and we are the first.
    First,
    /// Ours, or one like it, with its state.
    Same(String),
    /// Another one.
    Other(Vec<u8>),
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
        Self::made(opening, plan, window)
    }

    /// The filter of this name, or a new one. One that is there must be what was planned.
    pub fn open_or_create(options: &Options, name: &str, plan: &Plan, window: Option<Duration>) -> Result<Self> {
        Self::made(Opening::new(options, name)?, plan, window)
    }

    fn made(mut opening: Opening, plan: &Plan, window: Option<Duration>) -> Result<Self> {
        opening.check_module()?;
        opening.check_size(plan)?;
        let record = planned(plan, window)?;
        match opening.claim(&record)? {
            Claim::First => opening.with(record).begun(),
            Claim::Same(state) => opening.with(record).finished(&state),
            Claim::Other(there) => {
                let (name, asked) = (&opening.name, record.described());
                let there = Record::from_bytes(name, there)?.described();
                let problem = format!("the filter '{name}' is {there}, and {asked} was asked for");
                let remedy = "leave the options of the filter out, or take another name";
                Err(Error::Exists(format!("{problem}; {remedy}")))
            }
        }
    }

    /// Makes the shards of a record that is new. If a server refuses one, nothing is left of it.
    fn begun(mut self) -> Result<Self> {
        let mut made = Vec::new();
        match self.make_shards(&mut made) {
            Ok(()) => Ok(self),
            Err(error @ (Error::Server(_) | Error::NoModule(_))) => {
                // What is refused to us is refused to whoever does the same; what cannot be taken back, `delete` can.
                let _ = self.take_away(&made);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Finishes what somebody may have left half-made.
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
        self.make_shards(&mut Vec::new())?;
        Ok(self)
    }

    /// Makes the shards that are not there, and says in the end that all are; which ones it made.
    fn make_shards(&mut self, made: &mut Vec<String>) -> Result<()> {
        // A server without the module quotes what it does not know, and bytes of a filter are no text.
        let asks: Vec<Request> = self.keys.iter().map(|key| Request::new(key, &asked(key))).collect();
        self.exchange.all(&asks, How::default())?;
        let shard = self.record.empty_shard();
        let loads: Vec<Request> = self.keys.iter().map(|key| self.load_request(key, shard, &[])).collect();
        let answers = self.exchange.each(&loads, self.write())?;
        let (mut busy, mut refusal) = (Vec::new(), None);
        for (at, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(_) => made.push(self.keys[at].clone()),
                Err(Error::Server(text)) if text.contains("BUSYKEY") => busy.push(at),
                Err(error) => refusal = Some(error),
            }
        }
        refusal.map_or(Ok(()), Err)?;
        self.check_found(&busy)?;
        self.mark_ready()
    }

    /// Shards that were there already are ours and empty, or somebody else finished meanwhile, or they are left of another
    /// filter.
    fn check_found(&mut self, busy: &[usize]) -> Result<()> {
        for at in busy {
            let key = self.keys[*at].clone();
            let info = self.exchange.one(&key, &[b"EB.INFO", key.as_bytes()], How::default())?;
            let is_ours = field(&info, "spec") == Some(shard_spec(&self.record.spec).to_string());
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

    pub(crate) fn mark_ready(&mut self) -> Result<()> {
        let key = record_key(&self.name);
        let fields = self.record.for_people();
        let mut words: Vec<&[u8]> = vec![b"HSET", key.as_bytes()];
        fields.iter().for_each(|(field, value)| words.extend([field.as_bytes(), value.as_bytes()]));
        words.extend([&b"state"[..], b"ready"]);
        self.exchange.one(&key, &words, self.write()).map(drop)
    }

    pub(crate) fn load_request(&self, key: &str, bytes: &[u8], more: &[&[u8]]) -> Request {
        let every = self.record.every.map(|every| format!("{}ms", every.as_millis()));
        let mut words: Vec<&[u8]> = vec![b"EB.LOAD", key.as_bytes(), bytes];
        words.extend(more);
        if let Some(every) = &every {
            words.extend([&b"EVERY"[..], every.as_bytes()]);
        }
        Request::new(key, &words)
    }

    pub(crate) fn write(&self) -> How {
        How { replicas: self.replicas, from_replicas: false }
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
        let mut asked: Vec<usize> = (0..parts.len()).filter(|shard| !parts[*shard].1.is_empty()).collect();
        let mut how = How { replicas: 0, from_replicas: self.from_replicas };
        while !asked.is_empty() {
            // A server finds nothing in a key that is gone, so it is asked for the key, too.
            let requests = |shard: &usize| {
                let key = &self.keys[*shard];
                let there = Request::new(key, &[b"EXISTS", key.as_bytes()]);
                [Request::new(key, &[b"EB.EXISTSHASHES", key.as_bytes(), &parts[*shard].0]), there]
            };
            let requests: Vec<Request> = asked.iter().flat_map(requests).collect();
            let answers = self.exchange.all(&requests, how)?;
            let mut missing = Vec::new();
            for (shard, answer) in asked.iter().zip(answers.chunks_exact(2)) {
                if answer[1] == Value::Int(0) {
                    missing.push(*shard);
                    continue;
                }
                let bits = bits_of(&answer[0], parts[*shard].1.len())?;
                parts[*shard].1.iter().zip(bits).for_each(|(place, bit)| found[*place] = bit);
            }
            if !missing.is_empty() && !how.from_replicas {
                return Err(self.missing(&missing));
            }
            // A replica that lacks a shard may be behind, or its primary is giving the shard away.
            (asked, how.from_replicas) = (missing, false);
        }
        Ok(())
    }

    /// What it means if a shard is not there.
    pub(crate) fn gone(&self) -> Error {
        let name = &self.name;
        let problem = format!("the filter '{name}' was deleted meanwhile, or a server lost a part of it");
        Error::NotFound(format!("{problem}; `everbloom redis info {name}` says what is there"))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was noted beside it, for whoever saves it; empty if nothing was.
    pub fn note(&mut self) -> Result<String> {
        let key = record_key(&self.name);
        let note = self.exchange.one(&key, &[b"HGET", key.as_bytes(), b"note"], How::default())?;
        Ok(text(&note).unwrap_or_default())
    }

    /// Notes something beside it, in the place of what was.
    pub fn set_note(&mut self, note: &str) -> Result<()> {
        let key = record_key(&self.name);
        let words: [&[u8]; 4] = [b"HSET", key.as_bytes(), b"note", note.as_bytes()];
        self.exchange.one(&key, &words, self.write()).map(drop)
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
        &self.record.hashing
    }

    /// Refuses importances where they would be of no effect.
    pub fn check_importance(&self) -> Result<()> {
        let kind = KINDS.of(&self.record.spec)?;
        match kind.can.weigh_importance {
            true => Ok(()),
            false => {
                let problem = format!("the filter '{}' is {}, which weighs no importance", self.name, kind.name);
                Err(Error::Exists(format!("{problem}; leave the importance out, or take another name")))
            }
        }
    }

    /// What it promises.
    pub fn promise(&self) -> Promise {
        self.record.promise
    }

    /// What it took when it was made.
    pub fn memory_bits(&self) -> u64 {
        self.record.shard_bits.saturating_mul(self.record.shards.into())
    }

    /// Whether the servers are a cluster.
    pub fn is_clustered(&self) -> bool {
        self.exchange.nodes.is_cluster()
    }
}

/// The time between generations of a window with so many of them, rounded up: together they are never shorter than it.
pub(crate) fn turns(shard: &mut dyn everbloom::Filter, window: Option<Duration>) -> Result<Option<Duration>> {
    let Some(window) = window else { return Ok(None) };
    let (kind, spec) = (shard.kind(), shard.spec().clone());
    let Some(windowed) = shard.as_windowed().filter(|_| is_turned_by_caller(kind, &spec)) else {
        return Err(Error::Usage(format!("'{spec}' has no window of time; leave the window out")));
    };
    let every = window.as_millis().div_ceil(windowed.generations().max(1).into()).max(1);
    Ok(Some(Duration::from_millis(u64::try_from(every).unwrap_or(u64::MAX))))
}

/// What a plan comes to.
fn planned(plan: &Plan, window: Option<Duration>) -> Result<Record> {
    check_hashing(&plan.hashing, &plan.spec)?;
    let mut shard = build_shard(plan)?;
    let every = turns(shard.as_mut(), window)?;
    Record::new(&plan.spec, every, None, shard.as_mut())
}

/// A question that changes nothing, and is answered whether the key is there or not.
fn asked(key: &str) -> [&[u8]; 3] {
    [b"EB.EXISTS", key.as_bytes(), b"-"]
}

/// Clients send hashes, so a kind that hashes in a way of its own cannot be split.
pub(crate) fn check_hashing(hashing: &Hashing, spec: &Spec) -> Result<()> {
    match hashing.seed() {
        Some(_) => Ok(()),
        None => Err(Error::Usage(format!(
            "{} filters hash keys by {}, and cannot be split over servers; take another kind, or EB.LOAD it as one key",
            spec.kind(),
            hashing.name()
        ))),
    }
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
