//! Commands to many servers at once, until all are answered.
//!
//! ```text
//! commands ──► by slot ──► node A: c1 c4 c7 [WAIT]   all are written before the first answer is read
//!                     └──► node B: c2 c3    [WAIT]
//! answers: kept · MOVED, ASK: again at once, elsewhere · lost connection, failover: again, after a while
//! ```
//!
//! A command may be carried out although its answer is lost, and is then sent again. So only commands that may come twice
//! belong here: reads, writes that are the same twice, and batches with a token.

use crate::Options;
use crate::error::{Error, Result};
use crate::nodes::{Address, Nodes, Trouble, pack, shown, text_of};
use redis::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who is told of trouble, and may end it.
pub trait Watcher: std::fmt::Debug + Send + Sync {
    /// Whether to give up now.
    fn should_stop(&self) -> bool {
        false
    }

    /// Something that takes longer than it should.
    fn notice(&self, _text: &str) {}
}

/// Nobody.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Watcher for Nobody {}

/// A command and the slot of its key.
pub(crate) struct Request {
    pub(crate) slot: u16,
    pub(crate) packed: Vec<u8>,
    /// Whether it may have been carried out: it was sent, and not every server that it was sent to refused it.
    pub(crate) may_count: Cell<bool>,
}

impl Request {
    pub(crate) fn new(key: &str, words: &[&[u8]]) -> Self {
        Self::at(crate::slots::slot(key.as_bytes()), words)
    }

    /// A request where the slot is known.
    pub(crate) fn at(slot: u16, words: &[&[u8]]) -> Self {
        let mut packed = Vec::with_capacity(64 + words.iter().map(|word| word.len() + 16).sum::<usize>());
        pack(&mut packed, words);
        Request { slot, packed, may_count: Cell::new(false) }
    }
}

/// How a request is to be carried out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    /// Replicas that must have it before it counts.
    pub(crate) replicas: u32,
    /// Whether replicas may answer.
    pub(crate) from_replicas: bool,
}

/// The way to servers.
pub(crate) struct Exchange {
    pub(crate) nodes: Nodes,
    pub(crate) patience: Duration,
    watcher: Arc<dyn Watcher>,
    turn: usize,
    /// When it was made, until it is used: what was spent on finding the servers counts.
    begun: Option<Instant>,
    used: Instant,
}

/// How long nothing is said.
const SILENCE: Duration = Duration::from_secs(2);
/// Connections that were silent for longer may be gone without our knowing, as behind a firewall that forgot them.
const IDLE: Duration = Duration::from_secs(10);
/// Between two attempts.
const PAUSES: [u64; 6] = [5, 20, 50, 100, 200, 300];

/// What became of a command that was sent.
enum Outcome {
    Answered(Value),
    /// Somebody else has the slot now.
    Moved(Address),
    /// Somebody else may have the key for now.
    Ask(Address),
    /// Later, perhaps.
    Later(String),
    Refused(Error),
}

impl Exchange {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let Options { urls, patience, watcher, .. } = options.clone();
        // A few attempts must fit into the patience, and a slow command into an attempt.
        let timeout = (patience / 4).clamp(Duration::from_millis(500), Duration::from_secs(15));
        let mut nodes = Nodes::new(&urls, timeout, Arc::clone(&watcher))?;
        let now = Instant::now();
        nodes.wait_until(now, patience);
        Ok(Exchange { nodes, patience, watcher, turn: 0, begun: Some(now), used: now })
    }

    /// Carries out one command.
    pub(crate) fn one(&mut self, key: &str, words: &[&[u8]], how: How) -> Result<Value> {
        let mut answers = self.all(&[Request::new(key, words)], how)?;
        answers.pop().ok_or(Error::Stopped)
    }

    /// Carries out commands, side by side on their nodes; those of one node in their order, as long as nothing goes wrong. An
    /// error of one is an error of all.
    pub(crate) fn all(&mut self, requests: &[Request], how: How) -> Result<Vec<Value>> {
        let answers = self.each(requests, how)?;
        answers.into_iter().collect()
    }

    /// Carries out commands, with an error for each that was refused.
    pub(crate) fn each(&mut self, requests: &[Request], how: How) -> Result<Vec<Result<Value>>> {
        if self.used.elapsed() >= IDLE {
            self.nodes.drop_all();
        }
        let answers = self.tried(requests, how);
        self.used = Instant::now();
        answers
    }

    fn tried(&mut self, requests: &[Request], how: How) -> Result<Vec<Result<Value>>> {
        let mut round = Round {
            answers: requests.iter().map(|_| None).collect(),
            pending: (0..requests.len()).collect(),
            asks: BTreeMap::new(),
            moves: Vec::new(),
            trouble: String::new(),
        };
        let start = self.begun.take().unwrap_or_else(Instant::now);
        self.nodes.wait_until(start, self.patience);
        let (mut said, mut attempt, mut pauses) = (false, 0, 0);
        while !round.pending.is_empty() {
            if attempt > 0 {
                if self.watcher.should_stop() {
                    self.nodes.drop_all();
                    return Err(Error::Stopped);
                }
                if start.elapsed() >= self.patience {
                    self.nodes.drop_all();
                    let seconds = self.patience.as_secs_f64();
                    let remedy = "see to the servers, or give it more time";
                    return Err(Error::Unreachable(format!("{}; gave up after {seconds} s; {remedy}", round.trouble)));
                }
                if start.elapsed() >= SILENCE && !said {
                    self.watcher.notice(&format!("{}; trying again", round.trouble));
                    said = true;
                }
            }
            match self.attempt(requests, how, &mut round, attempt) {
                Progress::Asked | Progress::Redirected if attempt < 8 => {}
                Progress::Done => {}
                _ => {
                    std::thread::sleep(Duration::from_millis(PAUSES[pauses.min(PAUSES.len() - 1)]));
                    pauses += 1;
                    match self.nodes.refresh() {
                        Err(Trouble::Lasting(error)) => return Err(error),
                        Err(Trouble::Passing(text)) => round.trouble = text,
                        Ok(()) => {}
                    }
                }
            }
            attempt += 1;
        }
        Ok(round.answers.into_iter().map(|answer| answer.unwrap_or(Err(Error::Stopped))).collect())
    }

    /// Sends what is pending to whoever has it, and reads the answers.
    fn attempt(&mut self, requests: &[Request], how: How, round: &mut Round, attempt: u32) -> Progress {
        self.turn += 1;
        let mut groups: BTreeMap<Address, Vec<usize>> = BTreeMap::new();
        for index in &round.pending {
            let slot = requests[*index].slot;
            let owner = match how.from_replicas && attempt == 0 {
                true => self.nodes.any(slot, self.turn),
                false => self.nodes.primary(slot),
            };
            let Some(address) = round.asks.get(index).or(owner) else {
                if round.trouble.is_empty() {
                    round.trouble = "no server has the slots of this filter".into();
                }
                return Progress::Later;
            };
            groups.entry(address.clone()).or_default().push(*index);
        }
        let mut progress = Progress::Done;
        let mut sent = Vec::new();
        for (address, indices) in groups {
            match self.send(&address, &indices, requests, how, round) {
                Ok(written) => sent.push((address, indices, written)),
                Err(text) => {
                    self.lost(&address, &indices, text, round);
                    progress = Progress::Later;
                }
            }
        }
        for (address, indices, written) in sent {
            // As long as all answer, who wants to stop waits for what was sent: it counts.
            let is_over = progress == Progress::Later && self.nodes.is_over();
            let received = match is_over {
                false => self.receive(&address, &indices, &written, requests, round),
                true => Err(format!("{address}: no answer in time")),
            };
            match received {
                Ok(received) => progress = progress.and(received),
                Err(text) => {
                    self.lost(&address, &indices, text, round);
                    progress = Progress::Later;
                }
            }
        }
        let answers = &round.answers;
        round.pending.retain(|index| answers[*index].is_none());
        if let Progress::Redirected = progress {
            // One slot has moved, and probably others.
            let _ = self.nodes.refresh();
            round.apply_moves(&mut self.nodes, requests);
        }
        progress
    }

    /// A node that does not answer: what it was to be asked for others need not be asked of it again.
    fn lost(&mut self, address: &Address, indices: &[usize], text: String, round: &mut Round) {
        self.nodes.drop_connection(address);
        indices.iter().for_each(|index| _ = round.asks.remove(index));
        // What is cut short in the end says nothing of what was wrong all the time.
        if round.trouble.is_empty() || !self.nodes.is_over() {
            round.trouble = text;
        }
    }

    fn send(
        &mut self,
        address: &Address,
        indices: &[usize],
        requests: &[Request],
        how: How,
        round: &Round,
    ) -> Result<Written, String> {
        // The answer to WAIT must come before its reader loses patience.
        let wait_ms = (self.nodes.left().as_millis() / 2).max(1).to_string();
        let connection = self.nodes.connection(address).map_err(|trouble| match trouble {
            Trouble::Passing(text) => text,
            Trouble::Lasting(error) => error.to_string(),
        })?;
        let mut written = Written { skipped: 0, waits_for: how.replicas, counted: Vec::with_capacity(indices.len()) };
        let mut out = Vec::new();
        if how.from_replicas {
            pack(&mut out, &[b"READONLY"]);
            written.skipped = 1;
        }
        for index in indices {
            if round.asks.contains_key(index) {
                pack(&mut out, &[b"ASKING"]);
            }
            out.extend_from_slice(&requests[*index].packed);
            written.counted.push(requests[*index].may_count.replace(true));
        }
        if how.replicas > 0 {
            pack(&mut out, &[b"WAIT", how.replicas.to_string().as_bytes(), wait_ms.as_bytes()]);
        }
        connection.send_packed_command(&out).map_err(|error| format!("{address}: {}", shown(&error)))?;
        Ok(written)
    }

    /// Reads the answers of one node. What is not known to be kept as it was asked for stays pending.
    fn receive(
        &mut self,
        address: &Address,
        indices: &[usize],
        written: &Written,
        requests: &[Request],
        round: &mut Round,
    ) -> Result<Progress, String> {
        let deadline = self.nodes.deadline;
        let connection = self.nodes.connection(address).map_err(|_| format!("{address}: the connection is lost"))?;
        let mut next = || loop {
            if Instant::now() >= deadline {
                return Err(format!("{address}: no answer in time"));
            }
            match connection.recv_response() {
                Ok(Value::Push { .. }) => {}
                other => return other.map_err(|error| format!("{address}: {}", shown(&error))),
            }
        };
        for _ in 0..written.skipped {
            next()?;
        }
        let mut outcomes = Vec::with_capacity(indices.len());
        for index in indices {
            if round.asks.contains_key(index) {
                next()?;
            }
            outcomes.push((*index, outcome(address, next()?)));
        }
        let mut is_kept = true;
        if written.waits_for > 0 {
            let reached = match next()? {
                Value::Int(replicas) => replicas,
                other => return Err(format!("{address}: WAIT answered {other:?}")),
            };
            is_kept = reached >= i64::from(written.waits_for);
            if !is_kept {
                round.trouble =
                    format!("{address}: {reached} of {} replicas confirmed a batch in time", written.waits_for);
            }
        }
        let mut progress = if is_kept { Progress::Done } else { Progress::Later };
        for ((index, outcome), counted) in outcomes.into_iter().zip(&written.counted) {
            round.asks.remove(&index);
            if !matches!(outcome, Outcome::Answered(_)) {
                requests[index].may_count.set(*counted);
            }
            match outcome {
                Outcome::Answered(value) if is_kept => round.answers[index] = Some(Ok(value)),
                Outcome::Answered(_) => {}
                Outcome::Refused(error) => round.answers[index] = Some(Err(error)),
                Outcome::Moved(to) => {
                    round.moves.push((index, to));
                    progress = progress.and(Progress::Redirected);
                }
                Outcome::Ask(to) => {
                    round.asks.insert(index, to);
                    progress = progress.and(Progress::Asked);
                }
                Outcome::Later(text) => {
                    round.trouble = text;
                    progress = Progress::Later;
                }
            }
        }
        Ok(progress)
    }
}

/// What was written beside the commands themselves.
struct Written {
    skipped: usize,
    waits_for: u32,
    /// Of each command, whether it may have been carried out before.
    counted: Vec<bool>,
}

/// How far the commands are.
struct Round {
    answers: Vec<Option<Result<Value>>>,
    pending: Vec<usize>,
    /// Where to ask for a command whose slot is being moved.
    asks: BTreeMap<usize, Address>,
    moves: Vec<(usize, Address)>,
    trouble: String,
}

impl Round {
    /// Servers that answer MOVED know better than those that were asked for the slots.
    fn apply_moves(&mut self, nodes: &mut Nodes, requests: &[Request]) {
        for (index, to) in self.moves.drain(..) {
            nodes.moved(requests[index].slot, &to);
        }
    }
}

/// What an attempt came to.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Progress {
    Done,
    Asked,
    Redirected,
    Later,
}

impl Progress {
    /// Both, the worse of which counts.
    fn and(self, other: Progress) -> Progress {
        if other > self { other } else { self }
    }
}

fn outcome(address: &Address, value: Value) -> Outcome {
    let Value::ServerError(error) = value else { return Outcome::Answered(value) };
    let text = text_of(&error);
    // `MOVED slot host:port`; without a host it is the same one.
    let target = || {
        let place = text.split(' ').nth(2)?;
        let host = address.rsplit_once(':').map_or("", |(host, _)| host);
        Some(if place.starts_with(':') { format!("{host}{place}") } else { place.to_string() })
    };
    match (error.code(), target()) {
        ("MOVED", Some(to)) => Outcome::Moved(to),
        ("ASK", Some(to)) => Outcome::Ask(to),
        (
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" | "NOREPLICAS" | "BUSY" | "UNBLOCKED",
            _,
        ) => Outcome::Later(format!("{address}: {text}")),
        ("TOKENORDER", _) => {
            let mut words = text.splitn(3, ' ').skip(1);
            match (words.next().and_then(|last| last.parse().ok()), words.next()) {
                (Some(last), Some(text)) => Outcome::Refused(Error::TokenOrder(last, format!("{address}: {text}"))),
                _ => Outcome::Refused(Error::Server(format!("{address}: {text}"))),
            }
        }
        ("TOKENLOST", _) => Outcome::Refused(Error::TokenLost(format!("{address}: {text}"))),
        ("ERR", _) if text.to_ascii_lowercase().starts_with("err unknown command") && text.contains("EB.") => {
            let remedy = "load it with MODULE LOAD, or `loadmodule /usr/lib/everbloom/libeverbloom_redis.so` in its \
                          configuration; `cargo build --release -p everbloom-redis` builds it";
            Outcome::Refused(Error::NoModule(format!("{address}: the server lacks the everbloom module; {remedy}")))
        }
        _ => Outcome::Refused(Error::Server(format!("{address}: {text}"))),
    }
}
