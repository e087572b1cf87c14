//! Cooperative caching: proxies send each other summaries of their caches (\[Zhong et al. 2008\], section 5.2; Fan et al.
//! 2000).
//!
//! On a local miss a proxy looks the object up in the last summary of every other proxy, and asks those that seem to
//! have it. A **false hit** is a summary that says yes for an object that it does not hold; a summary that was right
//! when it was sent and is out of date is a stale hit, which no filter can help.
//!
//! What the caches do depends on the requests alone, so it is worked out once ([`events`]): which requests miss, what
//! comes and goes, when a summary is sent, and which summaries truly hold what is asked for. The first half of the
//! trace trains ([`training`]), the second half tests every scheme on real counters and bits ([`replay`]).

pub mod events;
pub mod replay;
pub mod training;

pub use super::Scheme;
pub use events::{Policy, Setting};
pub use replay::Outcome;
pub use training::Hashes;

use super::trace::Trace;
use everbloom::Result;

/// A trace worked out for a cache policy, and what its first half teaches.
pub struct Study {
    events: events::Events,
    training: training::Training,
    slots: usize,
}

impl Study {
    /// Runs the caches over a trace.
    pub fn new(trace: &Trace, setting: Setting) -> Result<Self> {
        let events = events::Events::new(trace, setting)?;
        let training = training::Training::new(&events);
        Ok(Study { events, training, slots: setting.slots })
    }

    /// The share of requests that their own proxy has in its cache, in the second half.
    pub fn hit_rate(&self) -> f64 {
        self.events.hit_rate()
    }

    /// The hashes of every object by a scheme, for summaries of so many bits per slot.
    pub fn hashes(&self, scheme: Scheme, bits_per_slot: f64) -> Result<Hashes> {
        self.training.hashes(scheme, bits_per_slot)
    }

    /// The rate of the real-number optimum for what the first half shows, object by object: what no scheme fitted to it
    /// can be below there.
    pub fn optimal_fpr(&self, bits_per_slot: f64) -> Result<f64> {
        self.training.optimal_fpr(bits_per_slot)
    }

    /// The second half with summaries of so many bits per slot.
    pub fn test(&self, scheme: Scheme, bits_per_slot: f64, seed: u64) -> Result<Outcome> {
        let num_bits = (bits_per_slot * self.slots as f64).ceil().max(1.0) as u64;
        replay::replay(&self.events, &self.hashes(scheme, bits_per_slot)?, num_bits, seed)
    }
}

#[cfg(test)]
mod tests;
