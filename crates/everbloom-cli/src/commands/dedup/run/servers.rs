//! A filter on servers that many processes share, and what is noted of batches on their way.
//!
//! With a state, a batch is noted before it is sent. A run that was killed does not know whether it arrived: the next one
//! sends it again, under the same number, and gets the verdicts that were given, or should have been. Then it reads the
//! input from where the state says, and takes those verdicts for the same keys.

use super::memory::Memory;
use crate::commands::dedup::job::Job;
use crate::commands::dedup::state::OnServers;
use crate::failure::{Failure, Result};
use crate::platform::Interrupt;
use crate::record::Layout;
use crate::report::{thousands, words};
use everbloom::kind::Watch;
use everbloom::{Hashing, Importance, Importances, KeyHash, Plan, Promise, Spec, Status, Verdict};
use everbloom_redis_client::{Error, Filter, Forgotten, Options, Session, Watcher, Writer, new_name};
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A filter on servers.
pub(crate) struct Servers {
    writer: Mutex<Writer>,
    spec: Spec,
    hashing: Hashing,
    name: String,
    /// Whether a state is kept.
    keeps: bool,
    /// Keys since the place that a state would name, with their verdicts.
    decided: Vec<(KeyHash, Verdict)>,
    /// Verdicts of an earlier run for the next keys.
    known: VecDeque<(KeyHash, Verdict)>,
    /// The batch that is dealt out, and how many keys before it are known.
    dealt: Option<(usize, Vec<(KeyHash, Importance)>)>,
    /// When the servers were last asked what all have counted.
    asked: Option<Instant>,
    /// When a window was last looked at.
    looked: Option<Instant>,
    /// Whether a look was not answered.
    is_blind: AtomicBool,
    /// Whether a batch was not: nobody waits for anything more, then.
    is_given_up: bool,
}

/// How often others' counts are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Batches of each shard whose new lines a state remembers, to say what a failover lost: replicas seldom lag by more.
const REMEMBERED: usize = 16;

/// How often a window is looked at: about as often as it turns.
const LOOKS_IN_A_WINDOW: u32 = 24;

/// Passes trouble on to people, and signals to whoever waits for a server.
#[derive(Debug)]
struct Ear(Arc<Interrupt>, bool);

impl Watcher for Ear {
    fn should_stop(&self) -> bool {
        self.0.is_requested()
    }

    fn notice(&self, text: &str) {
        if !self.1 {
            words::note(text);
        }
    }
}

/// The filter of this name, made as planned if it is not there. One that is there is taken as it is, unless something else is
/// asked for.
pub(super) fn open(job: &Job, layout: &Layout, plan: &Plan, interrupt: &Arc<Interrupt>) -> Result<Servers> {
    let (options, name) = options(job, interrupt);
    let opened = match job.rules.describe_filter() {
        true => Err(Error::NotFound(String::new())),
        false => Filter::open(&options, &name),
    };
    let filter = match opened {
        Err(Error::NotFound(_)) => Filter::open_or_create(&options, &name, plan, job.rules.window_time()),
        other => other,
    };
    let filter = filter.map_err(failure)?;
    if layout.has_importance() {
        filter.check_importance().map_err(failure)?;
    }
    let writer = Writer::new(filter, &new_name()).map_err(failure)?;
    Ok(Servers::of(name, job.state.is_some(), writer))
}

/// A client that was here before, with what was on its way when it ended.
pub(super) fn resume(job: &Job, saved: &OnServers, bytes: &[u8], interrupt: &Arc<Interrupt>) -> Result<Servers> {
    let (options, name) = options(job, interrupt);
    let damaged = || Failure::new("the state is damaged; restore it from a copy, or remove it to start anew");
    let (known, flight) = read(bytes).ok_or_else(damaged)?;
    let filter = Filter::open(&options, &name).map_err(failure)?;
    let sessions: Vec<Session> = saved
        .sessions
        .iter()
        .map(|(generation, sequence)| Session { generation: *generation, sequence: *sequence })
        .collect();
    let writer = Writer::resume(filter, &saved.client, &sessions).map_err(failure)?;
    let forgotten = Forgotten { keys: saved.forgotten, or_more: saved.forgotten_or_more };
    let mut writer = writer.remembering(forgotten, &saved.acknowledged);
    let (hashes, importances): (Vec<KeyHash>, Vec<Importance>) = flight.into_iter().unzip();
    let mut verdicts = vec![Verdict::Distinct; hashes.len()];
    let importances = match importances.iter().all(|importance| *importance == Importance::FULL) {
        true => Importances::default(),
        false => Importances::Each(&importances),
    };
    writer.stage_batch(&hashes, importances, false).map_err(failure)?;
    writer.send(&mut verdicts).map_err(failure)?;
    let mut servers = Servers::of(name, job.state.is_some(), writer);
    servers.known = known.into_iter().chain(hashes.into_iter().zip(verdicts)).collect();
    Ok(servers)
}

impl Servers {
    fn of(name: String, keeps: bool, writer: Writer) -> Self {
        let (spec, hashing) = (writer.filter_ref().spec().clone(), *writer.filter_ref().hashing());
        Servers {
            writer: Mutex::new(writer),
            spec,
            hashing,
            name,
            keeps,
            decided: Vec::new(),
            known: VecDeque::new(),
            dealt: None,
            asked: None,
            looked: None,
            is_blind: AtomicBool::new(false),
            is_given_up: false,
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// New keys of everybody, now and then: what the promise is about. Servers that do not say are no reason to give up a batch that
    /// they have taken.
    fn counted_by_all(&mut self) -> Option<u64> {
        if self.asked.is_some_and(|asked| asked.elapsed() < LOOK_EVERY) {
            return None;
        }
        self.asked = Some(Instant::now());
        let info = self.writer().filter().info();
        self.is_blind.fetch_or(info.is_err(), Relaxed);
        info.ok().map(|info| info.distinct)
    }

    fn answered(&self, status: Result<Status, Error>) -> Status {
        status.unwrap_or_else(|_| {
            self.is_blind.store(true, Relaxed);
            Status::default()
        })
    }
}

impl Memory for Servers {
    /// Makes a batch ready to be sent, without the keys whose verdicts an earlier run left; whether there is anything to send.
    fn stage(&mut self, hashes: &[KeyHash], importances: Importances<'_>) -> Result<bool> {
        let known = self.known.len().min(hashes.len());
        if self.known.iter().zip(hashes).any(|((then, _), now)| then != now) {
            let problem = "the input is not what it was when the last run was cut off, so lines would be lost";
            return Err(Failure::new(format!("{problem}; run it once more with the same files in the same order")));
        }
        let rest = &hashes[known..];
        let flight = match self.keeps {
            true => rest.iter().enumerate().map(|(at, hash)| (*hash, importances.at(known + at))).collect(),
            false => Vec::new(),
        };
        self.writer().stage_batch(rest, importances.skip(known), true).map_err(failure)?;
        self.dealt = Some((known, flight));
        Ok(!rest.is_empty())
    }

    /// Judges a batch: the one that was dealt out, if one was.
    fn ask(
        &mut self,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<Option<u64>> {
        if self.dealt.is_none() {
            self.stage(hashes, importances)?;
        }
        let known = self.dealt.as_ref().map_or(0, |(known, _)| *known);
        let sent = self.writer().send(&mut verdicts[known..]);
        self.is_given_up = sent.is_err();
        sent.map_err(|error| match (self.keeps, failure(error)) {
            (true, failure) => failure.with("with the same --state a later run goes on"),
            // Some servers may have taken the batch, whose lines are then written by nobody.
            (false, failure) => failure.with(&format!(
                "up to {} lines may count as seen though they were not written: with --state a run can go on where it was",
                thousands(hashes.len() as u64)
            )),
        })?;
        self.known.drain(..known).zip(&mut *verdicts).for_each(|((_, then), now)| *now = then);
        if self.keeps {
            self.decided.extend(hashes.iter().copied().zip(verdicts.iter().copied()));
        }
        self.dealt = None;
        Ok(self.counted_by_all())
    }

    /// All that was decided is written.
    fn commit(&mut self) {
        self.decided.clear();
    }

    /// What a state keeps of keys since its place: those with verdicts, then those on their way.
    fn on_its_way(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let count = self.decided.len() + self.known.len();
        bytes.extend_from_slice(&(count as u64).to_le_bytes());
        for (hash, verdict) in self.decided.iter().chain(&self.known) {
            bytes.extend_from_slice(&hash.high.to_le_bytes());
            bytes.extend_from_slice(&hash.low.to_le_bytes());
            bytes.push(verdict.is_distinct().into());
        }
        for (hash, importance) in self.dealt.iter().flat_map(|(_, flight)| flight) {
            bytes.extend_from_slice(&hash.high.to_le_bytes());
            bytes.extend_from_slice(&hash.low.to_le_bytes());
            bytes.extend_from_slice(&importance.value().to_le_bytes());
            bytes.extend_from_slice(&importance.max().to_le_bytes());
        }
        bytes
    }

    fn on_servers(&self) -> Option<OnServers> {
        let writer = self.writer();
        let sessions = writer.sessions().iter().map(|session| (session.generation, session.sequence)).collect();
        let Forgotten { keys, or_more } = writer.forgotten();
        Some(OnServers {
            name: self.name.clone(),
            client: writer.client().into(),
            sessions,
            acknowledged: writer.acknowledged(REMEMBERED),
            forgotten: keys,
            forgotten_or_more: or_more,
        })
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    fn promise(&self) -> Promise {
        self.writer().filter_ref().promise()
    }

    fn memory_bits(&self) -> u64 {
        self.writer().filter_ref().memory_bits()
    }

    fn watch(&self) -> Watch {
        self.writer().filter_ref().watch()
    }

    /// What the cells say; of servers that do not answer, nothing, which is said in the end.
    fn status(&self) -> Status {
        if self.is_given_up {
            return Status::default();
        }
        self.answered(self.writer().filter().status())
    }

    /// What the cells say for the watch over the promise: of a window, a few shards tell.
    fn look(&mut self) -> Status {
        if self.shared_window().is_none() {
            return self.status();
        }
        self.looked = Some(Instant::now());
        self.answered(self.writer().filter().sampled_status())
    }

    /// A window of time that the servers turn, and the lines that it was planned for.
    fn shared_window(&self) -> Option<(Duration, u64)> {
        self.writer().filter_ref().window()
    }

    /// Whether a window was not looked at for the time of a generation.
    fn wants_look(&self) -> bool {
        let Some((window, _)) = self.shared_window() else { return false };
        let pause = (window / LOOKS_IN_A_WINDOW).max(LOOK_EVERY);
        self.looked.is_none_or(|looked| looked.elapsed() >= pause)
    }

    /// Lines that servers acknowledged and lost, and whether there may be more.
    fn lost(&self) -> Option<(u64, bool)> {
        let Forgotten { keys, or_more } = self.writer().forgotten();
        Some((keys, or_more))
    }

    /// What a failover cost, if it did, and what is not known.
    fn note(&self) -> Option<String> {
        let remedy = "--replicas 1 waits until a replica has them";
        let known = match self.lost().unwrap_or_default() {
            (0, false) => None,
            (0, true) => Some(format!(
                "servers no longer knew this client, after a failover or since 64 others came, and may have forgotten lines, \
                 repeats of which are written again; {remedy}"
            )),
            (lost, or_more) => {
                let (at_least, lines) = (if or_more { "at least " } else { "" }, thousands(lost));
                Some(format!(
                    "servers forgot {at_least}{lines} lines in a failover, repeats of which are written again; {remedy}"
                ))
            }
        };
        let is_blind = self.is_blind.load(Relaxed);
        known.or(is_blind.then(|| "servers did not say how full the filter is, so its promise may be broken".into()))
    }

    /// Takes this client off the servers, unless a later run goes on with it.
    fn release(self: Box<Self>) {
        if !self.keeps && !self.is_given_up {
            self.writer.into_inner().unwrap_or_else(PoisonError::into_inner).release();
        }
    }
}

fn options(job: &Job, interrupt: &Arc<Interrupt>) -> (Options, String) {
    let mut options = Options::new(job.servers.redis.clone().unwrap_or_default());
    options.watcher = Arc::new(Ear(Arc::clone(interrupt), job.promise.quiet));
    options.replicas = job.servers.replicas.unwrap_or(0);
    options.patience = job.servers.patience.unwrap_or(options.patience);
    (options, job.rules.name.clone().unwrap_or_default())
}

pub(crate) fn failure(error: Error) -> Failure {
    Failure::new(error)
}

type Read = (Vec<(KeyHash, Verdict)>, Vec<(KeyHash, Importance)>);

fn read(bytes: &[u8]) -> Option<Read> {
    let word = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?));
    let half = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?));
    let hash = |bytes: &[u8]| Some(KeyHash { high: word(bytes)?, low: word(bytes.get(8..)?)? });
    let count = usize::try_from(word(bytes)?).ok()?;
    let (known, flight) = bytes.get(8..)?.split_at_checked(count.checked_mul(17)?)?;
    let verdict = |byte: u8| if byte == 1 { Verdict::Distinct } else { Verdict::Duplicate };
    let known = known.chunks_exact(17).map(|key| Some((hash(key)?, verdict(key[16]))));
    let importance = |bytes: &[u8]| Importance::new(half(bytes)?, half(bytes.get(4..)?)?).ok();
    let pairs = flight.chunks_exact(24).map(|key| Some((hash(key)?, importance(&key[16..])?)));
    (flight.len().is_multiple_of(24)).then_some(())?;
    Some((known.collect::<Option<_>>()?, pairs.collect::<Option<_>>()?))
}
