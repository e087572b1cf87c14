//! What caches do with a trace.

use super::super::trace::{MOST_PROXIES, Request, Trace};
use crate::bad;
use everbloom::Result;
use std::collections::{BTreeSet, HashMap};

/// Which object goes when another comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The one that was not asked for longest.
    Lru,
    /// The one asked for least since it came; of several, the one not asked for longest.
    Lfu,
}

impl Policy {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Lru => "LRU",
            Policy::Lfu => "in-cache LFU",
        }
    }
}

/// How the caches are set up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Which object goes.
    pub policy: Policy,
    /// Objects in a cache.
    pub slots: usize,
    /// A summary is sent when this share of a cache has changed.
    pub rebroadcast: f64,
}

impl Setting {
    /// Caches of so many objects, sending a summary after 1 % of them have changed.
    pub fn new(policy: Policy, slots: usize) -> Self {
        Setting { policy, slots, rebroadcast: 0.01 }
    }
}

/// A request that its own proxy could not answer, and what followed.
#[derive(Debug, Clone, Copy)]
pub struct Miss {
    /// When: the number of the request.
    pub time: u64,
    /// Where and for what; it is in the cache from now on.
    pub request: Request,
    /// What left the cache for it.
    pub evicted: Option<u32>,
    /// A bit for each proxy whose last summary holds the object.
    pub summarised: u64,
    /// A bit for each proxy that has the object now.
    pub cached: u64,
    /// Whether the proxy sends a summary now.
    pub broadcasts: bool,
}

/// All misses of a trace.
pub struct Events {
    /// The misses in order.
    pub misses: Vec<Miss>,
    /// How many requests there are.
    pub requests: u64,
    /// How many proxies there are.
    pub proxies: usize,
    /// How many objects there are.
    pub objects: usize,
}

impl Events {
    /// Runs the caches.
    pub fn new(trace: &Trace, setting: Setting) -> Result<Self> {
        if setting.slots == 0 {
            return Err(bad("slots", 0, "at least 1", "the paper's caches have 100000"));
        }
        if !(2..=MOST_PROXIES).contains(&trace.proxies) {
            let needed = format!("between 2 and {MOST_PROXIES}");
            return Err(bad("proxies", trace.proxies, &needed, "caches alone have nobody to ask"));
        }
        let mut proxies: Vec<Proxy> = (0..trace.proxies).map(|_| Proxy::new(setting)).collect();
        let mut whereabouts = Whereabouts { cached: vec![0; trace.objects], summarised: vec![0; trace.objects] };
        let mut misses = Vec::new();
        for (time, &request) in trace.requests.iter().enumerate() {
            if !proxies[usize::from(request.proxy)].cache.touch(request.object, time as u64) {
                misses.push(whereabouts.miss(&mut proxies, request, time as u64));
            }
        }
        Ok(Events { misses, requests: trace.requests.len() as u64, proxies: trace.proxies, objects: trace.objects })
    }

    /// The number of the first request that tests.
    pub fn half(&self) -> u64 {
        self.requests / 2
    }

    /// The share of requests of the second half that are local hits.
    pub fn hit_rate(&self) -> f64 {
        let misses = self.misses.iter().filter(|miss| miss.time >= self.half()).count() as f64;
        1.0 - misses / (self.requests - self.half()) as f64
    }
}

/// Which proxies have which object, a bit each.
struct Whereabouts {
    cached: Vec<u64>,
    summarised: Vec<u64>,
}

impl Whereabouts {
    fn miss(&mut self, proxies: &mut [Proxy], request: Request, time: u64) -> Miss {
        let (proxy, bit) = (&mut proxies[usize::from(request.proxy)], 1 << request.proxy);
        let object = request.object as usize;
        let (summarised, cached) = (self.summarised[object], self.cached[object]);
        let evicted = proxy.cache.admit(request.object, time);
        self.cached[object] |= bit;
        proxy.changed.push(request.object);
        if let Some(old) = evicted {
            self.cached[old as usize] &= !bit;
            proxy.changed.push(old);
        }
        let broadcasts = proxy.changed.len() >= proxy.patience;
        if broadcasts {
            for object in proxy.changed.drain(..) {
                let summarised = &mut self.summarised[object as usize];
                *summarised = *summarised & !bit | self.cached[object as usize] & bit;
            }
        }
        Miss { time, request, evicted, summarised, cached, broadcasts }
    }
}

/// A cache, and what has changed in it since it told the others.
struct Proxy {
    cache: Cache,
    changed: Vec<u32>,
    /// How many changes make a summary.
    patience: usize,
}

impl Proxy {
    fn new(setting: Setting) -> Self {
        // An object in place of another is one member changed, and two entries of the list.
        let patience = (2.0 * setting.rebroadcast * setting.slots as f64).ceil().max(1.0) as usize;
        Proxy { cache: Cache::new(setting.policy, setting.slots), changed: Vec::new(), patience }
    }
}

/// Objects in the order in which they go.
struct Cache {
    policy: Policy,
    slots: usize,
    standing: HashMap<u32, (u32, u64)>,
    queue: BTreeSet<(u32, u64, u32)>,
}

impl Cache {
    fn new(policy: Policy, slots: usize) -> Self {
        Cache { policy, slots, standing: HashMap::new(), queue: BTreeSet::new() }
    }

    /// Notes a request; false if the object is not here.
    fn touch(&mut self, object: u32, time: u64) -> bool {
        let Some(standing) = self.standing.get_mut(&object) else { return false };
        self.queue.remove(&(standing.0, standing.1, object));
        standing.0 += u32::from(self.policy == Policy::Lfu);
        standing.1 = time;
        self.queue.insert((standing.0, time, object));
        true
    }

    /// Takes an object in; which one goes for it.
    fn admit(&mut self, object: u32, time: u64) -> Option<u32> {
        let evicted = if self.standing.len() >= self.slots { self.queue.pop_first() } else { None };
        if let Some((.., old)) = evicted {
            self.standing.remove(&old);
        }
        self.standing.insert(object, (0, time));
        self.queue.insert((0, time, object));
        evicted.map(|(.., old)| old)
    }
}
