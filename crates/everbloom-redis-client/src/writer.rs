//! Batches of arrivals, each of which counts once.

use crate::calls::{Call, Calls, Place};
use crate::error::{Error, Result};
use crate::exchange::{How, Request};
use crate::filter::{Filter, bits_of, packed};
use everbloom::{Importance, Importances, KeyHash, Verdict};
use std::collections::VecDeque;
use std::time::Duration;

/// The most keys of a batch: what a server keeps an answer for.
pub const MOST_KEYS: usize = 1 << 16;

/// What is remembered of batches that were acknowledged, to say what a failover lost.
const MOST_REMEMBERED: usize = 1 << 12;

/// The longest name of a client: a server takes 64 bytes, and `+` and a number come behind it.
const MOST_NAME_BYTES: usize = 53;

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
    forgotten: Forgotten,
    /// Keys of the last batch, while not all shards have answered it, and whose they are.
    unanswered: usize,
    place: Option<Place>,
    calls: Calls,
    /// Bytes that were sent and received, for whoever measures.
    sent_bytes: u64,
}

/// New keys that servers acknowledged and lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// How many are known of.
    pub keys: u64,
    /// Whether there may be more.
    pub or_more: bool,
}

/// What one shard has to do.
#[derive(Default)]
struct Shard {
    session: Session,
    /// Whether the server knows the client by the name of this session.
    is_registered: bool,
    /// Whether the batch may have counted.
    may_count: bool,
    /// The session to go back to, while the next one is tried.
    doubted: Option<Session>,
    hashes: Vec<u8>,
    importances: Vec<u8>,
    places: Vec<u32>,
    /// New keys of the last batches that were acknowledged, up to the one of this number.
    acknowledged: VecDeque<u32>,
    acknowledged_to: u64,
}

impl Writer {
    /// A client that was never here: its name, of 1 to 53 bytes, must be its own. It registers with every shard.
    pub fn new(filter: Filter, client: &str) -> Result<Self> {
        let sessions = vec![Session::default(); filter.keys.len()];
        let mut writer = Self::resume(filter, client, &sessions)?;
        writer.shards.iter_mut().for_each(|shard| shard.is_registered = false);
        let all: Vec<usize> = (0..sessions.len()).collect();
        writer.register(&all)?;
        Ok(writer)
    }

    /// A client that was here, with its sessions as they were when its last batch was dealt out: see [`Writer::sessions`].
    pub fn resume(filter: Filter, client: &str, sessions: &[Session]) -> Result<Self> {
        if client.is_empty() || client.len() > MOST_NAME_BYTES {
            let problem = format!("the name of a client must have 1 to {MOST_NAME_BYTES} bytes, not {}", client.len());
            return Err(Error::Usage(format!("{problem}; take a random word")));
        }
        if sessions.len() != filter.keys.len() {
            let (now, then) = (filter.keys.len(), sessions.len());
            return Err(Error::Exists(format!(
                "'{}' has {now} shards, and had {then}: it is another filter; take its own name, or begin anew",
                filter.name()
            )));
        }
        let shard = |session: &Session| Shard { session: *session, is_registered: true, ..Shard::default() };
        Ok(Writer {
            shards: sessions.iter().map(shard).collect(),
            filter,
            client: client.into(),
            forgotten: Forgotten::default(),
            unanswered: 0,
            place: None,
            calls: Calls::default(),
            sent_bytes: 0,
        })
    }

    /// With what an earlier run knew: what was lost, and the new keys of each shard's last batches, see
    /// [`Writer::acknowledged`].
    #[must_use]
    pub fn remembering(mut self, forgotten: Forgotten, acknowledged: &[Vec<u32>]) -> Self {
        self.forgotten = forgotten;
        for (shard, batches) in self.shards.iter_mut().zip(acknowledged) {
            shard.acknowledged = batches.iter().copied().collect();
        }
        self
    }

    /// The new keys of up to so many batches of each shard that were acknowledged last.
    pub fn acknowledged(&self, batches: usize) -> Vec<Vec<u32>> {
        let last = |shard: &Shard| {
            let skipped = shard.acknowledged.len().saturating_sub(batches);
            shard.acknowledged.iter().skip(skipped).copied().collect()
        };
        self.shards.iter().map(last).collect()
    }

    /// Takes the client off the servers, which remember 64 each; its name is not to be used again. One that cannot be reached within a
    /// second forgets it when others come.
    pub fn release(mut self) {
        let patience = self.filter.exchange.patience.min(Duration::from_secs(1));
        self.filter.exchange.patience = patience;
        let requests: Vec<Request> = (0..self.shards.len()).map(|at| self.empty_batch(at, b"END")).collect();
        let _ = self.filter.exchange.each(&requests, How::default());
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

    /// The filter, to look at.
    pub fn filter_ref(&self) -> &Filter {
        &self.filter
    }

    /// New keys that servers acknowledged and then lost in a failover: repeats of them are called new again.
    pub fn forgotten(&self) -> Forgotten {
        self.forgotten
    }

    /// Bytes of batches that were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Judges arrivals in order and remembers them, in batches of at most [`MOST_KEYS`].
    ///
    /// After an error nobody knows which of them counted. Given the same keys again, it gets the verdicts that it should
    /// have had; given others, the batch that was cut off counts first.
    pub fn observe(
        &mut self,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        check_lengths(hashes.len(), importances, verdicts)?;
        let (mut call, mut done) = (Call::default(), 0);
        let mut parts = hashes.chunks(MOST_KEYS).zip(verdicts.chunks_mut(MOST_KEYS));
        let judged = parts.try_for_each(|(part, verdicts)| {
            self.observe_part(&mut call, part, importances.skip(done), verdicts)?;
            done += part.len();
            Ok(())
        });
        self.end(&call, judged.is_ok());
        judged
    }

    /// A part of a call, of at most [`MOST_KEYS`], for who has the keys one after the other; [`Writer::end`] must follow the last
    /// one, or the one that failed.
    pub fn observe_part(
        &mut self,
        call: &mut Call,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        check_lengths(hashes.len(), importances, verdicts)?;
        let Some(place) = self.calls.next(call, hashes, verdicts) else { return Ok(()) };
        if !self.is_unanswered(hashes) {
            self.resend_unanswered()?;
            self.stage_batch(hashes, importances, true)?;
        }
        self.place = Some(place);
        self.send(verdicts)
    }

    /// Ends a call: well, or so that the same one may be made again.
    pub fn end(&mut self, call: &Call, is_well: bool) {
        self.calls.end(call, is_well);
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
    fn resend_unanswered(&mut self) -> Result<()> {
        let mut verdicts = vec![Verdict::Distinct; self.unanswered];
        if verdicts.is_empty() { Ok(()) } else { self.send(&mut verdicts) }
    }

    /// Stages a batch of at most [`MOST_KEYS`] for the shards, and numbers it; not `is_new` is one that may have been sent
    /// before, and keeps its numbers. Nothing is sent yet, so that the caller may take a note of it.
    pub fn stage_batch(&mut self, hashes: &[KeyHash], importances: Importances<'_>, is_new: bool) -> Result<()> {
        importances.check(hashes.len())?;
        if hashes.len() > MOST_KEYS {
            let problem = format!("a batch may have {MOST_KEYS} keys, not {}", hashes.len());
            return Err(Error::Usage(format!("{problem}; deal out smaller ones")));
        }
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
        for shard in self.shards.iter_mut().filter(|shard| !shard.places.is_empty()) {
            shard.session.sequence += u64::from(is_new);
            shard.may_count = !is_new;
        }
        (self.unanswered, self.place) = (hashes.len(), None);
        Ok(())
    }

    /// Sends what was dealt out, until every shard has answered; the verdicts are in the order of the batch. After an error the
    /// batch may be sent again.
    pub fn send(&mut self, verdicts: &mut [Verdict]) -> Result<()> {
        check_lengths(self.unanswered, Importances::default(), verdicts)?;
        let mut waiting: Vec<usize> = (0..self.shards.len()).filter(|at| !self.shards[*at].places.is_empty()).collect();
        let how = self.how();
        while !waiting.is_empty() {
            self.register(&waiting)?;
            let requests: Vec<Request> = waiting.iter().map(|at| self.request(*at)).collect();
            self.sent_bytes += requests.iter().map(|request| request.packed.len() as u64).sum::<u64>();
            let answers = self.filter.exchange.each(&requests, how);
            for (at, request) in waiting.iter().zip(&requests) {
                self.shards[*at].may_count = request.may_count.get();
            }
            let (mut again, mut failure) = (Vec::new(), None);
            for (at, answer) in waiting.iter().zip(answers?) {
                match answer {
                    Ok(value) => self.take(*at, &value, verdicts)?,
                    Err(error) => match self.renew(*at, error) {
                        Ok(()) => again.push(*at),
                        Err(error) => failure = Some(error),
                    },
                }
            }
            if let Some(error) = failure {
                return Err(self.explained(error));
            }
            waiting = again;
        }
        if let Some(place) = self.place.take() {
            self.calls.keep(place, &verdicts[..self.unanswered]);
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
        let request = Request::at(self.filter.slots[at], &words);
        request.may_count.set(shard.may_count);
        request
    }

    /// A batch without keys, which registers the client or ends it.
    fn empty_batch(&self, at: usize, number: &[u8]) -> Request {
        let (key, client) = (&self.filter.keys[at], self.name_at(at));
        let words: [&[u8]; 6] = [b"EB.ADDHASHES", key.as_bytes(), b"", b"TOKEN", client.as_bytes(), number];
        Request::at(self.filter.slots[at], &words)
    }

    /// The name of the client at a shard.
    fn name_at(&self, at: usize) -> String {
        match self.shards[at].session.generation {
            0 => self.client.clone(),
            generation => format!("{}+{generation}", self.client),
        }
    }

    /// Registers with those shards that do not know the client yet.
    fn register(&mut self, shards: &[usize]) -> Result<()> {
        let new: Vec<usize> = shards.iter().copied().filter(|at| !self.shards[*at].is_registered).collect();
        let requests: Vec<Request> = new.iter().map(|at| self.empty_batch(*at, b"0")).collect();
        let answers = if new.is_empty() { Vec::new() } else { self.filter.exchange.each(&requests, self.how())? };
        for (at, answer) in new.into_iter().zip(answers) {
            match (answer, self.shards[at].session.sequence) {
                // The first batch is there: a run that ended before it could be noted sent it.
                (Ok(_), _) | (Err(Error::TokenOrder(1, _)), 1) => self.shards[at].is_registered = true,
                (Err(error), _) => return Err(self.explained(error)),
            }
        }
        Ok(())
    }

    fn take(&mut self, at: usize, answer: &redis::Value, verdicts: &mut [Verdict]) -> Result<()> {
        let shard = &mut self.shards[at];
        shard.doubted = None;
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

    /// Goes on under a new name after a refusal that says that the batch never counted; an error if nobody can tell.
    fn renew(&mut self, at: usize, refusal: Error) -> Result<()> {
        let shard = &mut self.shards[at];
        let Session { generation, sequence } = shard.session;
        let next = Session { generation: generation + 1, sequence: 1 };
        match refusal {
            // A server that is behind was promoted without having heard of the last batches, and knows nothing of this one, either.
            Error::TokenOrder(last, _) if last + 1 < sequence => {
                let lost = usize::try_from(sequence - 1 - last).unwrap_or(usize::MAX);
                let known = shard.acknowledged.iter().rev().take(lost);
                self.forgotten.keys += known.map(|new| u64::from(*new)).sum::<u64>();
                self.forgotten.or_more |= lost > shard.acknowledged.len();
            }
            // A batch that never was here before did not count; but what was before it may be gone with the client.
            Error::TokenLost(_) if !shard.may_count => self.forgotten.or_more |= sequence > 1,
            // An earlier run may have been told so, gone on with the next name, and ended before that was noted.
            Error::TokenLost(_) if shard.doubted.is_none() => {
                (shard.doubted, shard.session) = (Some(shard.session), next);
                return Ok(());
            }
            other => {
                shard.session = shard.doubted.take().unwrap_or(shard.session);
                return Err(other);
            }
        }
        (shard.session, shard.is_registered, shard.may_count, shard.doubted) = (next, false, false, None);
        shard.acknowledged_to = 0;
        Ok(())
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
            Error::TokenOrder(last, text) => {
                let problem =
                    "servers know of later batches of this client, as if its state were a copy of an older one";
                let remedy = "go on with the newest state, or begin with a new one";
                Error::TokenOrder(last, format!("{text}: {problem}; {remedy}"))
            }
            Error::Server(text) if text.contains("ERR not found") => self.filter.gone(),
            other => other,
        }
    }
}

/// Refuses what does not fit together.
fn check_lengths(keys: usize, importances: Importances<'_>, verdicts: &[Verdict]) -> Result<()> {
    importances.check(keys)?;
    match verdicts.len() >= keys {
        true => Ok(()),
        false => {
            Err(Error::Usage(format!("there is room for {} verdicts, and {keys} keys; make room", verdicts.len())))
        }
    }
}
