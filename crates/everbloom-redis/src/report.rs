//! What the module counts, and its section of `INFO`.

use crate::server::InfoWriter;
use everbloom_all::KINDS;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counters since the server started, but for those of what is there now.
pub(crate) static COUNTERS: Counters = Counters {
    bytes: AtomicU64::new(0),
    observed: AtomicU64::new(0),
    distinct: AtomicU64::new(0),
    checks: AtomicU64::new(0),
    refused_by_limit: AtomicU64::new(0),
    loads_refused: AtomicU64::new(0),
    panics_caught: AtomicU64::new(0),
    by_kind: [const { AtomicU64::new(0) }; MOST_KINDS],
};

/// More kinds than there will be for a while; what comes after is counted with the last.
const MOST_KINDS: usize = 64;

/// What is counted.
pub(crate) struct Counters {
    /// The memory of the filters that are there.
    pub(crate) bytes: AtomicU64,
    /// Arrivals judged.
    pub(crate) observed: AtomicU64,
    /// Those judged new.
    pub(crate) distinct: AtomicU64,
    /// Keys looked up.
    pub(crate) checks: AtomicU64,
    /// Commands refused by `max-filter-bytes` or `maxmemory`.
    pub(crate) refused_by_limit: AtomicU64,
    /// Values that could not be loaded.
    pub(crate) loads_refused: AtomicU64,
    /// Panics that were caught.
    pub(crate) panics_caught: AtomicU64,
    /// The filters that are there, by the place of their kind in the registry.
    by_kind: [AtomicU64; MOST_KINDS],
}

/// Adds to a counter that the main thread alone changes: no other waits for it, so that it costs next to nothing.
#[inline]
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Counts a filter for as long as it is there.
pub(crate) struct Counted {
    kind: usize,
    bytes: u64,
}

impl Counted {
    /// A filter of this kind and size.
    pub(crate) fn new(kind: &str, bytes: u64) -> Self {
        let kind = KINDS.iter().position(|known| known.name == kind).unwrap_or(MOST_KINDS).min(MOST_KINDS - 1);
        COUNTERS.by_kind[kind].fetch_add(1, Relaxed);
        COUNTERS.bytes.fetch_add(bytes, Relaxed);
        Counted { kind, bytes }
    }

    /// The filter has this size now.
    pub(crate) fn resize(&mut self, bytes: u64) {
        COUNTERS.bytes.fetch_add(bytes.wrapping_sub(self.bytes), Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNTERS.by_kind[self.kind].fetch_sub(1, Relaxed);
        COUNTERS.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// Writes `INFO everbloom`.
pub(crate) fn write(out: &mut InfoWriter) {
    let of_kind = |place: usize| COUNTERS.by_kind.get(place).map_or(0, |count| count.load(Relaxed));
    out.number("filters", (0..MOST_KINDS).map(of_kind).sum());
    let counters = [
        ("bytes", &COUNTERS.bytes),
        ("observed", &COUNTERS.observed),
        ("distinct", &COUNTERS.distinct),
        ("checks", &COUNTERS.checks),
        ("refused_by_limit", &COUNTERS.refused_by_limit),
        ("loads_refused", &COUNTERS.loads_refused),
        ("panics_caught", &COUNTERS.panics_caught),
    ];
    for (name, counter) in counters {
        out.number(name, counter.load(Relaxed));
    }
    for (place, kind) in KINDS.iter().enumerate().filter(|(place, _)| of_kind(*place) > 0) {
        out.number(&format!("filters_{}", kind.name), of_kind(place));
    }
    out.text("instruction_set", everbloom_cells::simd::InstructionSet::used().name());
}
