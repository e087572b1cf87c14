//! The filters that one should use: a page each, with how it works, what it costs, and when to choose it.

pub mod age_partitioned;
pub mod blocked;
pub mod bloom;
pub mod counting;
pub mod exact;
pub mod ranked;
pub mod scalable;
pub mod spectral;

use crate::filter::sharded::SHARDS;
use crate::filter::{Base, Filter, Kind, Kinds, Sharded, alone};
use crate::promise::{Error, Result};
use std::any::Any;

pub use age_partitioned::AgePartitioned;
pub use blocked::{AtomicBlocked, Blocked};
pub use bloom::Bloom;
pub use counting::Counting;
pub use exact::Exact;
pub use ranked::{Graceful, Ranked};
pub use scalable::Scalable;
pub use spectral::Spectral;

/// The kinds of this crate: those that one should use.
pub const KINDS: &[&Kind] = &[
    &bloom::KIND,
    &blocked::KIND,
    &counting::KIND,
    &exact::KIND,
    &ranked::GRACEFUL,
    &ranked::KIND,
    &age_partitioned::KIND,
    &scalable::KIND,
    &spectral::KIND,
];

/// The kinds of this crate. Those of other crates are named together with them: see the crate `everbloom-all`.
impl Default for Kinds {
    fn default() -> Self {
        const STANDARD: &[&[&Kind]] = &[KINDS];
        Kinds::new(STANDARD)
    }
}

/// The plain filter to send to others: a bit for every counter that is not zero.
///
/// This is what the summary cache does: counters at home, bits on the wire.
///
/// ```
/// use everbloom::FilterExt;
/// use everbloom::filters::{Bloom, Counting};
///
/// let mut cached = Counting::with_rate(1000, 0.01)?;
/// cached.insert("page");
/// let summary = Bloom::try_from(&cached)?;
/// assert!(summary.contains("page"));
/// assert_eq!(summary.spec().to_string(), "bloom:num_bits=9595,num_hashes=7");
/// # use everbloom::Filter;
/// # Ok::<(), everbloom::Error>(())
/// ```
impl TryFrom<&Counting> for Bloom {
    type Error = Error;

    fn try_from(counting: &Counting) -> Result<Bloom> {
        let mut base = counting.base().clone();
        if counting.saturated() > 0 {
            // Counters that are stuck stand for keys that may be gone, and their bits go on being set.
            let seen = counting.status().estimated_items.map_or(u64::MAX, |items| items as u64);
            base.arrivals = base.arrivals.max(seen);
        }
        Ok(Bloom::from_bits(counting.parameters().size, counting.to_bits()?, base))
    }
}

/// A filter with counters as plain bits, in shards if it is: the same cells, so that it answers alike and keeps the same
/// promise. An error for what has no counters to reduce.
pub fn to_bits(filter: &dyn Filter) -> Result<Box<dyn Filter>> {
    let filter = alone(filter);
    let any: &dyn Any = filter;
    if let Some(counting) = any.downcast_ref::<Counting>() {
        return Ok(Box::new(Bloom::try_from(counting)?));
    }
    if let Some(sharded) = any.downcast_ref::<Sharded>().filter(|_| *filter.kind() == counting::KIND) {
        let shards = sharded.shards().iter().map(|shard| to_bits(shard.as_ref())).collect::<Result<Vec<_>>>()?;
        let base = Base {
            kind: &bloom::KIND,
            spec: shards[0].spec().clone().with(SHARDS, shards.len()),
            ..filter.base().clone()
        };
        return Ok(Box::new(Sharded::of(shards, base)));
    }
    let remedy = match *filter.kind() == bloom::KIND {
        true => "it has bits already, so send the file itself".to_string(),
        false => format!("these can: {}; build a filter to send from the keys", counting::KIND.name),
    };
    Err(Error::unsupported(filter.kind().name, "be reduced to bits", remedy))
}
