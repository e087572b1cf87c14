//! A proxy: answers its users from its own pages, from those of the others, or from the origin.

use crate::cache::{Cache, page};
use crate::processes::{Connection, Result, serve};
use everbloom::AnyFilter;
use everbloom_all::KINDS;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Who we are and who the others are, by their ports; ours first.
pub(crate) const PEERS: u8 = 0;
/// A user wants a page.
pub(crate) const GET: u8 = 1;
/// Another proxy asks for a page that we may have.
pub(crate) const HAVE: u8 = 2;
/// Another proxy, by its port, sends what it holds.
pub(crate) const SUMMARY: u8 = 3;
/// What there was to do.
pub(crate) const REPORT: u8 = 4;

/// Where a page came from: the first byte of an answer to a user.
const OWN: u8 = 0;
const PEER: u8 = 1;
const ORIGIN: u8 = 2;

/// A summary may not take more memory than this, whoever sends it.
const UNPACKED_BYTES: u64 = 1 << 20;

/// What to do, and with what.
pub(crate) fn message(what: u8, with: &[u8]) -> Vec<u8> {
    [&[what], with].concat()
}

/// Another proxy, and the last that it said of itself.
struct Peer {
    port: u16,
    connection: Mutex<Connection>,
    summary: Mutex<Option<AnyFilter>>,
}

/// Pages and summaries are locked for a moment only, and never while another process is asked: two proxies that ask each
/// other do not wait for ever.
struct Proxy {
    cache: Mutex<Cache>,
    /// Our own port, by which the others know us.
    port: OnceLock<u16>,
    peers: Mutex<Vec<Arc<Peer>>>,
    counts: Mutex<Counts>,
}

pub(crate) fn run(capacity: usize) -> Result<()> {
    let cache = Mutex::new(Cache::new(capacity)?);
    let proxy = Proxy { cache, port: OnceLock::new(), peers: Mutex::default(), counts: Mutex::default() };
    serve(move |message| proxy.answer(message))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    fn answer(&self, message: &[u8]) -> Result<Vec<u8>> {
        let (what, with) = message.split_first().ok_or("an empty message")?;
        match *what {
            PEERS => self.meet(std::str::from_utf8(with)?),
            GET => self.get(std::str::from_utf8(with)?),
            HAVE => Ok(locked(&self.cache).get(std::str::from_utf8(with)?).unwrap_or_default()),
            SUMMARY => self.take_summary(with),
            REPORT => self.report(),
            other => Err(format!("there is no message {other}").into()),
        }
    }

    fn meet(&self, ports: &str) -> Result<Vec<u8>> {
        let ports = ports.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<u16>, _>>()?;
        let (own, others) = ports.split_first().ok_or("no port of our own")?;
        self.port.set(*own).map_err(|_| "the others are known already")?;
        for &port in others {
            let connection = Mutex::new(Connection::to(port)?);
            locked(&self.peers).push(Arc::new(Peer { port, connection, summary: Mutex::new(None) }));
        }
        Ok(Vec::new())
    }

    fn get(&self, url: &str) -> Result<Vec<u8>> {
        let own = locked(&self.cache).get(url);
        if let Some(page) = own {
            return Ok(message(OWN, &page));
        }
        let (from, page) = match self.ask_peers(url)? {
            Some(page) => (PEER, page),
            None => (ORIGIN, page(url)),
        };
        locked(&self.cache).keep(url, page.clone())?;
        self.send_summary()?;
        Ok(message(from, &page))
    }

    /// Asks those whose summary has the address. It may be wrong: the page has gone since, or is a false positive. Then a
    /// question was wasted, and no more.
    fn ask_peers(&self, url: &str) -> Result<Option<Vec<u8>>> {
        let peers = locked(&self.peers).clone();
        for peer in peers {
            if !locked(&peer.summary).as_ref().is_some_and(|summary| summary.contains(url)) {
                continue;
            }
            let page = locked(&peer.connection).ask(&message(HAVE, url.as_bytes()))?;
            let mut counts = locked(&self.counts);
            counts.asked += 1;
            if !page.is_empty() {
                return Ok(Some(page));
            }
            counts.wasted += 1;
        }
        Ok(None)
    }

    fn send_summary(&self) -> Result<()> {
        let summary = locked(&self.cache).summary_if_due()?;
        let Some(summary) = summary else { return Ok(()) };
        let port = self.port.get().ok_or("the others are not known yet")?;
        let peers = locked(&self.peers).clone();
        for peer in peers {
            let sent = message(SUMMARY, &[&port.to_le_bytes(), &summary[..]].concat());
            locked(&peer.connection).ask(&sent)?;
            let mut counts = locked(&self.counts);
            counts.summaries += 1;
            counts.summary_bytes += summary.len() as u64;
        }
        Ok(())
    }

    /// Bytes from elsewhere are trusted with nothing: damage is an error, and so is what would unpack to too much.
    fn take_summary(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let (port, summary) = bytes.split_first_chunk().ok_or("a summary without its owner")?;
        let port = u16::from_le_bytes(*port);
        let summary = KINDS.decoder().limit(UNPACKED_BYTES).decode(summary)?;
        let peers = locked(&self.peers).clone();
        let owner = peers.iter().find(|peer| peer.port == port).ok_or("a summary of somebody unknown")?;
        *locked(&owner.summary) = Some(summary.into());
        Ok(Vec::new())
    }

    fn report(&self) -> Result<Vec<u8>> {
        let [ordinary, counters, addresses] = locked(&self.cache).sizes()?;
        let counts = Counts { ordinary, counters, addresses, proxies: 1, ..*locked(&self.counts) };
        Ok(counts.to_bytes())
    }
}

/// What a proxy did, or several together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Questions to other proxies.
    pub(crate) asked: u64,
    /// Those that did not have the page.
    pub(crate) wasted: u64,
    /// Summaries sent, and their bytes.
    pub(crate) summaries: u64,
    pub(crate) summary_bytes: u64,
    ordinary: u64,
    counters: u64,
    addresses: u64,
    proxies: u64,
}

/// What a proxy's summary takes, on average.
pub(crate) struct Sizes {
    pub(crate) sent: u64,
    pub(crate) ordinary: u64,
    pub(crate) counters: u64,
    pub(crate) addresses: u64,
}

impl Counts {
    fn all(&self) -> [u64; 8] {
        let Counts { asked, wasted, summaries, summary_bytes, ordinary, counters, addresses, proxies } = *self;
        [asked, wasted, summaries, summary_bytes, ordinary, counters, addresses, proxies]
    }

    fn of([asked, wasted, summaries, summary_bytes, ordinary, counters, addresses, proxies]: [u64; 8]) -> Self {
        Counts { asked, wasted, summaries, summary_bytes, ordinary, counters, addresses, proxies }
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        let (mine, theirs) = (self.all(), other.all());
        *self = Counts::of(std::array::from_fn(|place| mine[place] + theirs[place]));
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let proxies = self.proxies.max(1);
        Sizes {
            sent: self.summary_bytes / self.summaries.max(1),
            ordinary: self.ordinary / proxies,
            counters: self.counters / proxies,
            addresses: self.addresses / proxies,
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        self.all().iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (counts, rest) = bytes.as_chunks();
        match (counts.try_into(), rest) {
            (Ok(counts), []) => Ok(Counts::of(<[[u8; 8]; 8]>::map(counts, u64::from_le_bytes))),
            _ => Err("a report of another length".into()),
        }
    }
}
