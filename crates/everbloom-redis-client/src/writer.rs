//! Batches of arrivals, each of which counts once.

use crate::error::{Error, Result};
use crate::exchange::{How, Request};
use crate::filter::{Filter, bits_of, packed};
use everbloom::{Importance, Importances, KeyHash, Verdict};
use std::collections::VecDeque;

/// The most keys of a batch: what a server keeps an answer for.
pub const MOST_KEYS: usize = 1 << 16;

/// What is remembered of batches that were acknowledged, to say what a failover lost.
const MOST_REMEMBERED: usize = 1 << 12;

/// How far a client is with one shard: its generation, if it had to register anew, and the number of its last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Session {
    /// How often it registered anew.
    pub generation: u32,
    /// Its last batch.
    pub sequence: u64,
}

/// Judges arrivals, one batch at a time for each shard.
pub struct Writer {
    filter: Filter,
    client: String,
    shards: Vec<Shard>,
    forgotten: u64,
    /// Keys of the last batch, while not all shards have answered it.
    unanswered: usize,
    /// Bytes that were sent and received, for whoever measures.
    sent_bytes: u64,
}

/// What one shard has to do.
#[derive(Default)]
struct Shard {
    session: Session,
    hashes: Vec<u8>,
    importances: Vec<u8>,
    places: Vec<u32>,
    /// New keys of the last batches that were acknowledged, up to the one of this number.
    acknowledged: VecDeque<u32>,
    acknowledged_to: u64,
}

impl Writer {
    /// A client that was never here: its name must be its own. It registers with every shard.
    pub fn new(filter: Filter, client: &str) -> Result<Self> {
        let sessions = vec![Session::default(); filter.keys.len()];
        let mut writer = Self::resume(filter, client, &sessions)?;
        let all: Vec<usize> = (0..sessions.len()).collect();
        writer.register(&all)?;
        Ok(writer)
    }

    /// A client that was here, with its sessions as they were when its last batch was dealt out: see [`Writer::sessions`].
    pub fn resume(filter: Filter, client: &str, sessions: &[Session]) -> Result<Self> {
        if sessions.len() != filter.keys.len() {
            let (now, then) = (filter.keys.len(), sessions.len());
            return Err(Error::Exists(format!(
                "'{}' has {now} shards, and had {then}: it is another filter",
                filter.name()
            )));
        }
        let shards = sessions.iter().map(|session| Shard { session: *session, ..Shard::default() }).collect();
        Ok(Writer { filter, client: client.into(), shards, forgotten: 0, unanswered: 0, sent_bytes: 0 })
    }

    /// How far it is with each shard.
    pub fn sessions(&self) -> Vec<Session> {
        self.shards.iter().map(|shard| shard.session).collect()
    }

    /// The name it goes by.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// The filter.
    pub fn filter(&mut self) -> &mut Filter {
        &mut self.filter
    }

    /// The same, to look at.
    pub fn filter_ref(&self) -> &Filter {
        &self.filter
    }

    /// New keys that servers acknowledged and then lost in a failover: repeats of them are called new again.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Bytes of batches that were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Judges arrivals in order and remembers them, in batches of at most [`MOST_KEYS`].
    ///
    /// After an error nobody knows whether the batch counted. Given the same keys again, it gets the verdicts that it should
    /// have had; given others, the batch that was cut off counts first.
    pub fn observe(
        &mut self,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        let mut done = 0;
        for (part, verdicts) in hashes.chunks(MOST_KEYS).zip(verdicts.chunks_mut(MOST_KEYS)) {
            if !self.is_unanswered(part) {
                self.settle()?;
                self.deal(part, importances.skip(done), true);
            }
            self.send(verdicts)?;
            done += part.len();
        }
        Ok(())
    }

    /// Whether these are the keys of a batch that was cut off.
    fn is_unanswered(&self, hashes: &[KeyHash]) -> bool {
        let is_dealt = |shard: &Shard| {
            let own = shard.places.iter().zip(shard.hashes.chunks_exact(16));
            own.into_iter().all(|(place, hash)| packed(hashes[*place as usize]) == hash)
        };
        self.unanswered > 0 && self.unanswered == hashes.len() && self.shards.iter().all(is_dealt)
    }

    /// Sends a batch again that was cut off.
    fn settle(&mut self) -> Result<()> {
        let mut verdicts = vec![Verdict::Distinct; self.unanswered];
        if verdicts.is_empty() { Ok(()) } else { self.send(&mut verdicts) }
    }

    /// Deals a batch of at most [`MOST_KEYS`] out to the shards, and numbers it; not `is_new` is one that may have been sent
    /// before, and keeps its numbers. Nothing is sent yet, so that the caller may take a note of it.
    pub fn deal(&mut self, hashes: &[KeyHash], importances: Importances<'_>, is_new: bool) {
        let count = self.shards.len() as u64;
        for shard in &mut self.shards {
            shard.hashes.clear();
            shard.importances.clear();
            shard.places.clear();
        }
        let is_weighed = !matches!(importances, Importances::All(importance) if importance == Importance::FULL);
        for (place, hash) in hashes.iter().enumerate() {
            let shard = &mut self.shards[hash.shard(count) as usize];
            shard.hashes.extend_from_slice(&packed(*hash));
            shard.places.push(place as u32);
            if is_weighed {
                let importance = importances.at(place);
                shard.importances.extend_from_slice(&importance.value().to_be_bytes());
                shard.importances.extend_from_slice(&importance.max().to_be_bytes());
            }
        }
        for shard in self.shards.iter_mut().filter(|shard| is_new && !shard.places.is_empty()) {
            shard.session.sequence += 1;
        }
        self.unanswered = hashes.len();
    }

    /// Sends what was dealt out, until every shard has answered; the verdicts are in the order of the batch. After an error the
    /// batch may be sent again.
    pub fn send(&mut self, verdicts: &mut [Verdict]) -> Result<()> {
        let mut waiting: Vec<usize> = (0..self.shards.len()).filter(|at| !self.shards[*at].places.is_empty()).collect();
        let how = self.how();
        while !waiting.is_empty() {
            let requests: Vec<Request> = waiting.iter().map(|at| self.request(*at)).collect();
            self.sent_bytes += requests.iter().map(|request| request.packed.len() as u64).sum::<u64>();
            let answers = self.filter.exchange.each(&requests, how)?;
            let (mut behind, mut failure) = (Vec::new(), None);
            for (at, answer) in waiting.iter().zip(answers) {
                match answer {
                    Ok(value) => self.take(*at, &value, verdicts)?,
                    Err(error) => match self.last_known(*at, &error) {
                        Some(last) => behind.push((*at, last)),
                        None => failure = Some(error),
                    },
                }
            }
            if let Some(error) = failure {
                return Err(self.explained(error));
            }
            for (at, last) in &behind {
                self.forget_after(*at, *last);
            }
            waiting = behind.into_iter().map(|(at, _)| at).collect();
            self.register(&waiting)?;
            waiting.iter().for_each(|at| self.shards[*at].session.sequence = 1);
        }
        self.unanswered = 0;
        Ok(())
    }

    fn how(&self) -> How {
        How { replicas: self.filter.replicas, from_replicas: false }
    }

    fn request(&self, at: usize) -> Request {
        let (shard, key) = (&self.shards[at], &self.filter.keys[at]);
        let (client, sequence) = (self.name_at(at), shard.session.sequence.to_string());
        let mut words: Vec<&[u8]> = vec![b"EB.ADDHASHES", key.as_bytes(), &shard.hashes];
        if !shard.importances.is_empty() {
            words.extend([&b"IMPORTANCES"[..], &shard.importances]);
        }
        words.extend([&b"TOKEN"[..], client.as_bytes(), sequence.as_bytes()]);
        Request::at(self.filter.slots[at], key, &words)
    }

    /// The name of the client at a shard.
    fn name_at(&self, at: usize) -> String {
        match self.shards[at].session.generation {
            0 => self.client.clone(),
            generation => format!("{}+{generation}", self.client),
        }
    }

    fn register(&mut self, shards: &[usize]) -> Result<()> {
        let request = |at: &usize| {
            let key = &self.filter.keys[*at];
            let client = self.name_at(*at);
            Request::new(key, &[b"EB.ADDHASHES", key.as_bytes(), b"", b"TOKEN", client.as_bytes(), b"0"])
        };
        let requests: Vec<Request> = shards.iter().map(request).collect();
        let how = self.how();
        self.filter.exchange.all(&requests, how).map(drop).map_err(|error| self.explained(error))
    }

    fn take(&mut self, at: usize, answer: &redis::Value, verdicts: &mut [Verdict]) -> Result<()> {
        let shard = &mut self.shards[at];
        let mut new = 0;
        for (place, bit) in shard.places.iter().zip(bits_of(answer, shard.places.len())?) {
            verdicts[*place as usize] = if bit { Verdict::Distinct } else { Verdict::Duplicate };
            new += u32::from(bit);
        }
        if shard.acknowledged_to == shard.session.sequence {
            return Ok(());
        }
        shard.acknowledged_to = shard.session.sequence;
        shard.acknowledged.push_back(new);
        if shard.acknowledged.len() > MOST_REMEMBERED {
            shard.acknowledged.pop_front();
        }
        Ok(())
    }

    /// The last batch that a server knows of, if it is behind what it acknowledged: then it was promoted without having
    /// heard of them, and knows nothing of this one, either.
    fn last_known(&self, at: usize, error: &Error) -> Option<u64> {
        let Error::Server(text) = error else { return None };
        let rest = text.split_once(" came after ")?.1;
        let last: u64 = rest.split(',').next()?.parse().ok()?;
        (last + 1 < self.shards[at].session.sequence).then_some(last)
    }

    /// Counts what a shard lost after a batch, and begins anew with it.
    fn forget_after(&mut self, at: usize, last: u64) {
        let shard = &mut self.shards[at];
        let lost = (shard.session.sequence - 1 - last) as usize;
        self.forgotten += shard.acknowledged.iter().rev().take(lost).map(|new| u64::from(*new)).sum::<u64>();
        shard.acknowledged.clear();
        shard.acknowledged_to = 0;
        shard.session = Session { generation: shard.session.generation + 1, sequence: 0 };
    }

    /// What a user can do about it.
    fn explained(&self, error: Error) -> Error {
        match error {
            Error::TokenLost(text) => {
                let problem =
                    format!("{text}: the last batch of this client may have counted or not, so it stops here");
                let remedy = "no more than 64 may write at once, and none after the filter was deleted and made again";
                Error::TokenLost(format!("{problem}; see who writes to '{}': {remedy}", self.filter.name()))
            }
            Error::Server(text) if text.contains("ERR not found") => self.filter.gone(),
            other => other,
        }
    }
}
