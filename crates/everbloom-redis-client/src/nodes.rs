//! Connections to servers, and which server has which slots.

use crate::error::{Error, Result};
use crate::exchange::Watcher;
use crate::slots::SLOTS;
use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, ConnectionLike as _, IntoConnectionInfo as _, ProtocolVersion,
    Value,
};
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server, as `host:port`.
pub(crate) type Address = String;

/// Who has the slots: a primary, and its replicas.
#[derive(Debug, Clone, Default)]
struct Owner {
    primary: Address,
    replicas: Vec<Address>,
}

/// The servers that are known.
pub(crate) struct Nodes {
    seeds: Vec<ConnectionInfo>,
    owners: Vec<Owner>,
    /// For each slot its place among the owners.
    slots: Vec<u16>,
    /// Whether the servers are a cluster.
    is_cluster: bool,
    /// Without a cluster, those of the servers that were named which are replicas, once somebody wants to know.
    named_replicas: Option<Vec<Address>>,
    connections: HashMap<Address, Connection>,
    /// For one answer.
    timeout: Duration,
    /// For all of what is asked for now, and from when on it is looked whether it is to be stopped.
    pub(crate) deadline: Instant,
    patient: Instant,
    watcher: Arc<dyn Watcher>,
    /// Of each server, whether it failed when it was last asked for something, and when it was asked for the slots.
    asked: HashMap<Address, (bool, u64)>,
    turn: u64,
}

/// So long nobody is asked whether to stop, which may cost more than an answer.
const PROMPT: Duration = Duration::from_millis(200);

/// What a server turned out to be.
enum Asked {
    Cluster,
    Primary,
    Replica,
}

const LET_IN: &str =
    "the server refuses to let us in; give the user and password in the address: redis://USER:PASSWORD@HOST:PORT";

/// What a connection is refused for.
pub(crate) enum Trouble {
    /// Trying again may help.
    Passing(String),
    /// It will not.
    Lasting(Error),
}

impl Nodes {
    /// The servers at these addresses, separated by commas. Nothing is connected yet.
    pub(crate) fn new(urls: &str, timeout: Duration, watcher: Arc<dyn Watcher>) -> Result<Self> {
        let parts = urls.split(',').map(str::trim).filter(|url| !url.is_empty());
        let seeds: Vec<ConnectionInfo> = parts.map(parsed).collect::<Result<_>>()?;
        if seeds.is_empty() {
            return Err(Error::Usage("no server is named; write redis://HOST:PORT".into()));
        }
        let nobody = vec![u16::MAX; usize::from(SLOTS)];
        let now = Instant::now();
        Ok(Nodes {
            seeds,
            owners: Vec::new(),
            slots: nobody,
            is_cluster: false,
            named_replicas: None,
            connections: HashMap::new(),
            timeout,
            deadline: now + timeout,
            patient: now + PROMPT,
            watcher,
            asked: HashMap::new(),
            turn: 0,
        })
    }

    /// From now on no answer is waited for beyond so long after the start.
    pub(crate) fn wait_until(&mut self, start: Instant, patience: Duration) {
        let ages = Duration::from_secs(u32::MAX.into());
        (self.deadline, self.patient) = (start + patience.min(ages), start + PROMPT);
    }

    /// What is left for an answer.
    pub(crate) fn left(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        left.clamp(Duration::from_millis(2), self.timeout)
    }

    /// Whether nothing more is to be waited for.
    pub(crate) fn is_over(&self) -> bool {
        let now = Instant::now();
        now >= self.deadline || now >= self.patient && self.watcher.should_stop()
    }

    /// The server that writes go to.
    pub(crate) fn primary(&self, slot: u16) -> Option<&Address> {
        self.owner(slot).map(|owner| &owner.primary)
    }

    /// A server that reads may go to: another one each `turn`.
    pub(crate) fn any(&mut self, slot: u16, turn: usize) -> Option<&Address> {
        if !self.is_cluster && self.named_replicas.is_none() {
            self.named_replicas = Some(self.find_replicas());
        }
        let owner = self.owner(slot)?;
        let replicas = if self.is_cluster { Some(&owner.replicas) } else { self.named_replicas.as_ref() };
        let replicas = replicas.filter(|replicas| !replicas.is_empty());
        Some(replicas.map_or(&owner.primary, |replicas| &replicas[turn % replicas.len()]))
    }

    /// The servers that were named and say that they are replicas, and up to date: without a cluster nobody else knows them.
    fn find_replicas(&mut self) -> Vec<Address> {
        let named: Vec<Address> = self.seeds.iter().map(|seed| address(seed.addr())).collect();
        let is_replica =
            |named: &Address| match self.connection(named).map(|server| server.req_command(&redis::cmd("ROLE"))) {
                // `slave, host, port, state, offset`
                Ok(Ok(Value::Array(role))) => {
                    let word = |at: usize| role.get(at).and_then(text);
                    word(0).as_deref() == Some("slave") && word(3).as_deref() == Some("connected")
                }
                Ok(_) => {
                    self.drop_connection(named);
                    false
                }
                Err(_) => false,
            };
        named.into_iter().filter(is_replica).collect()
    }

    fn owner(&self, slot: u16) -> Option<&Owner> {
        self.owners.get(usize::from(self.slots[usize::from(slot)]))
    }

    /// The primaries' addresses.
    pub(crate) fn primaries(&self) -> Vec<Address> {
        let mut all: Vec<Address> = self.owners.iter().map(|owner| owner.primary.clone()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// A slot that has moved, as a server says.
    pub(crate) fn moved(&mut self, slot: u16, address: &str) {
        let place = self.owners.iter().position(|owner| owner.primary == address).unwrap_or_else(|| {
            self.owners.push(Owner { primary: address.into(), replicas: Vec::new() });
            self.owners.len() - 1
        });
        self.slots[usize::from(slot)] = place as u16;
    }

    /// Asks the servers who has which slots, until one says: one that was not asked for long, because one that is cut off from the
    /// others may go on telling what was; those that failed come last.
    pub(crate) fn refresh(&mut self) -> Result<(), Trouble> {
        let named = self.seeds.iter().map(|seed| address(seed.addr()));
        let known =
            self.owners.iter().flat_map(|owner| std::iter::once(&owner.primary).chain(&owner.replicas)).cloned();
        let mut candidates: Vec<Address> = named.chain(known).collect();
        let mut seen = std::collections::HashSet::new();
        candidates.retain(|address| seen.insert(address.clone()));
        // Without a cluster nobody knows better than the primary.
        let is_primary = |address: &Address| !self.is_cluster && self.owners.iter().any(|own| own.primary == *address);
        candidates.sort_by_key(|address| {
            let (failed, turn) = self.asked.get(address).copied().unwrap_or_default();
            (failed, !is_primary(address), turn)
        });
        self.turn += 1;
        let (mut last, mut replicas) = (None, Vec::new());
        for candidate in candidates {
            if self.is_over() {
                return last.map_or(Ok(()), Err);
            }
            let answer = self.ask_for_slots(&candidate);
            self.asked.insert(candidate.clone(), (answer.is_err(), self.turn));
            match answer {
                Ok(Asked::Cluster) => return Ok(()),
                Ok(Asked::Primary) => {
                    if let Some(other) = self.stranger_to(&candidate) {
                        return Err(Trouble::Lasting(Error::Usage(format!(
                            "{candidate} and {other} know nothing of each other, so each would have a filter of its own; name one of \
                             them, a primary and its replicas, or servers of one cluster"
                        ))));
                    }
                    self.owners = vec![Owner { primary: candidate, replicas }];
                    self.slots.fill(0);
                    self.is_cluster = false;
                    return Ok(());
                }
                // Without a cluster a replica knows its primary by an address that may not be ours.
                Ok(Asked::Replica) => {
                    let problem = "is a replica, and no primary that answers is named beside it";
                    last = Some(Trouble::Passing(format!("{candidate}: {problem}")));
                    replicas.push(candidate);
                }
                Err(Trouble::Lasting(error)) => return Err(Trouble::Lasting(error)),
                Err(trouble) => last = Some(trouble),
            }
        }
        Err(last.unwrap_or_else(|| Trouble::Passing("no server answers".into())))
    }

    /// Of the servers that were named, one that is no replica and not this one either; looked for once, at the start.
    fn stranger_to(&mut self, primary: &Address) -> Option<Address> {
        if !self.owners.is_empty() || self.seeds.len() < 2 {
            return None;
        }
        let named: Vec<Address> = self.seeds.iter().map(|seed| address(seed.addr())).collect();
        let own = self.run_id(primary)?;
        named.into_iter().filter(|other| other != primary).find(|other| {
            let is_other = self.run_id(other).is_some_and(|id| id != own);
            is_other && !matches!(self.ask_for_slots(other), Ok(Asked::Replica) | Err(_))
        })
    }

    /// What tells a server from others that go by another name.
    fn run_id(&mut self, of: &Address) -> Option<String> {
        let info = self.connection(of).ok()?.req_command(redis::cmd("INFO").arg("server")).ok();
        let Some(info) = info else {
            self.drop_connection(of);
            return None;
        };
        text(&info)?.lines().find_map(|line| line.strip_prefix("run_id:").map(|id| id.trim().to_string()))
    }

    fn ask_for_slots(&mut self, from: &Address) -> Result<Asked, Trouble> {
        let host = from.rsplit_once(':').map_or(from.as_str(), |(host, _)| host).to_string();
        let connection = self.connection(from)?;
        let mut command = Vec::new();
        pack(&mut command, &[b"CLUSTER", b"SLOTS"]);
        pack(&mut command, &[b"ROLE"]);
        let sent = connection.send_packed_command(&command);
        let answer = sent.and_then(|()| Ok((connection.recv_response()?, connection.recv_response()?)));
        let (slots, role) = answer.map_err(|error| {
            self.connections.remove(from);
            Trouble::Passing(format!("{from}: {}", shown(&error)))
        })?;
        match slots {
            // Servers that are no cluster, or proxies that do not show one.
            Value::ServerError(error) if error.code() == "ERR" || error.code() == "NOPERM" => {
                let is_replica =
                    matches!(&role, Value::Array(fields) if fields.first().and_then(text).as_deref() == Some("slave"));
                Ok(if is_replica { Asked::Replica } else { Asked::Primary })
            }
            Value::ServerError(error) if ["NOAUTH", "WRONGPASS"].contains(&error.code()) => {
                Err(Trouble::Lasting(Error::Server(format!("{from}: {LET_IN}"))))
            }
            Value::ServerError(error) => Err(Trouble::Passing(format!("{from}: {}", text_of(&error)))),
            Value::Array(ranges) => {
                let (mut owners, mut slots) = (Vec::new(), vec![u16::MAX; usize::from(SLOTS)]);
                for range in ranges {
                    let Some((first, last, owner)) = range_of(&range, &host) else { continue };
                    slots[first..=last].fill(owners.len() as u16);
                    owners.push(owner);
                }
                if owners.is_empty() {
                    return Err(Trouble::Passing(format!("{from}: the cluster has no slots yet")));
                }
                (self.owners, self.slots, self.is_cluster) = (owners, slots, true);
                Ok(Asked::Cluster)
            }
            _ => Err(Trouble::Passing(format!("{from}: an answer to CLUSTER SLOTS that makes no sense"))),
        }
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    /// The connection to a server, made if need be.
    pub(crate) fn connection(&mut self, to: &Address) -> Result<&mut Connection, Trouble> {
        if !self.connections.contains_key(to) {
            let connection = self.connect(to)?;
            self.connections.insert(to.clone(), connection);
        }
        let left = self.left();
        let connection = self.connections.get_mut(to);
        let connection = connection.ok_or_else(|| Trouble::Passing(format!("{to}: no connection")))?;
        let limits = connection.set_read_timeout(Some(left)).and_then(|()| connection.set_write_timeout(Some(left)));
        limits.map_err(|error| Trouble::Passing(format!("{to}: {}", shown(&error))))?;
        Ok(connection)
    }

    /// Lets a connection go that failed. A replica that was named and fails once is not asked again.
    pub(crate) fn drop_connection(&mut self, to: &Address) {
        self.connections.remove(to);
        self.asked.entry(to.clone()).or_default().0 = true;
        self.named_replicas.iter_mut().for_each(|replicas| replicas.retain(|replica| replica != to));
    }

    pub(crate) fn drop_all(&mut self) {
        self.connections.clear();
    }

    fn connect(&self, to: &Address) -> Result<Connection, Trouble> {
        let named = self.seeds.iter().find(|seed| address(seed.addr()) == *to);
        let info = match named {
            Some(seed) => seed.clone(),
            None => {
                let (host, port) = to.rsplit_once(':').unwrap_or((to, "6379"));
                let port = port.parse().unwrap_or(6379);
                self.seeds[0].clone().set_addr(ConnectionAddr::Tcp(host.trim_matches(['[', ']']).into(), port))
            }
        };
        let opened = Client::open(info).and_then(|client| client.get_connection_with_timeout(self.left()));
        opened.map_err(|error| match error.code() {
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => Trouble::Lasting(Error::Server(format!("{to}: {LET_IN}"))),
            _ if error.kind() == redis::ErrorKind::AuthenticationFailed => Trouble::Lasting(Error::Server(format!(
                "{to}: the server refuses the user or the password of its address"
            ))),
            _ => Trouble::Passing(format!("{to}: {}", shown(&error))),
        })
    }
}

/// Reads an address. What is wrong with it is said without the password.
fn parsed(url: &str) -> Result<ConnectionInfo> {
    let shown = match url.rsplit_once('@') {
        Some((secret, host)) => {
            format!("{}://…@{host}", secret.split_once("://").map_or("redis", |(scheme, _)| scheme))
        }
        None => url.to_string(),
    };
    if url.starts_with("rediss://") || url.starts_with("valkeys://") {
        let remedy = "use redis:// through a tunnel such as stunnel or ssh";
        return Err(Error::Usage(format!("'{shown}': this everbloom speaks no TLS; {remedy}")));
    }
    let url = url.replacen("valkey://", "redis://", 1);
    let info = url.as_str().into_connection_info().ok().filter(|_| url.starts_with("redis://"));
    let info = info.ok_or_else(|| {
        Error::Usage(format!(
            "'{shown}' is no address of a server; write redis://HOST:PORT, several with commas between"
        ))
    })?;
    // Nothing of ours is worth a round trip, and servers before 7.2 refuse it. Answers are read as RESP2 has them, whatever
    // the address says.
    let settings = info.redis_settings().clone().set_skip_set_lib_name().set_protocol(ProtocolVersion::RESP2);
    Ok(info.set_redis_settings(settings))
}

fn address(addr: &ConnectionAddr) -> Address {
    match addr {
        ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
        other => other.to_string(),
    }
}

/// `[first, last, [host, port, …], replica…]`
fn range_of(range: &Value, asked: &str) -> Option<(usize, usize, Owner)> {
    let Value::Array(fields) = range else { return None };
    let number = |at: usize| match fields.get(at) {
        Some(Value::Int(number)) => usize::try_from(*number).ok().filter(|slot| *slot < usize::from(SLOTS)),
        _ => None,
    };
    let node = |value: &Value| {
        let Value::Array(fields) = value else { return None };
        let host = fields.first().and_then(text).filter(|host| !host.is_empty() && host != "?");
        let Some(Value::Int(port)) = fields.get(1) else { return None };
        Some(format!("{}:{port}", host.as_deref().unwrap_or(asked)))
    };
    let (first, last) = (number(0)?, number(1)?);
    let mut nodes = fields[2..].iter().filter_map(node);
    let owner = Owner { primary: nodes.next()?, replicas: nodes.collect() };
    (first <= last).then_some((first, last, owner))
}

/// A value as text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        Value::Okay => Some("OK".into()),
        Value::Int(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        _ => None,
    }
}

/// An error of a server as it was sent.
pub(crate) fn text_of(error: &redis::ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_string(),
    }
}

/// What went wrong on the way, without what the crate says around it.
pub(crate) fn shown(error: &redis::RedisError) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    if error.is_connection_refusal() {
        return "the connection is refused: no server is listening there".into();
    }
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

/// Adds a command to what is sent.
pub(crate) fn pack(out: &mut Vec<u8>, words: &[&[u8]]) {
    // A vector takes whatever is written to it.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(urls: &str) -> Result<Nodes> {
        Nodes::new(urls, Duration::from_secs(1), Arc::new(crate::exchange::Nobody))
    }

    #[test]
    fn no_password_is_in_a_message() {
        for url in ["rediss://me:secret@host:1", "redis://me:secret@:x/y/z", "http://me:secret@host", "me:secret@host"]
        {
            let error = nodes(url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.is_empty() && !error.contains("secret"), "{url}: {error}");
        }
        assert!(nodes("redis://:secret@h:7001, redis://h:7002").is_ok());
        assert!(nodes(" , ").is_err());
    }
}
