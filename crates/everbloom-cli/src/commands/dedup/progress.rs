//! What the bar says while repeats are dropped.

use super::memory::Memory;
use crate::progress::Bar;
use crate::report;
use everbloom::Verdict;

/// The bar, and what it counts.
pub(super) struct Progress {
    bar: Bar,
    items: u64,
    repeats: u64,
}

impl Progress {
    pub(super) fn new(bar: Bar) -> Self {
        Progress { bar, items: 0, repeats: 0 }
    }

    /// Takes note of a batch, and shows the state of things now and then.
    pub(super) fn show(&mut self, memory: &Memory, verdicts: &[Verdict]) {
        self.items += verdicts.len() as u64;
        self.repeats += verdicts.iter().filter(|verdict| !verdict.is_distinct()).count() as u64;
        let (items, repeats) = (self.items, self.repeats);
        self.bar.show(|seconds| {
            let error = match memory {
                Memory::Filter(filter) => filter.status().estimated_fpr,
                Memory::Exact(set, _) => set.collision_probability(),
            };
            format!(
                "{} lines/s, {} repeats, {}, error now {}",
                report::thousands((items as f64 / seconds) as u64),
                report::thousands(repeats),
                report::size(memory.memory_bits()),
                report::percent(error),
            )
        });
    }
}
