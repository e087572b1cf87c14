//! What the bar says while repeats are dropped.

use crate::progress::Bar;
use crate::report;
use everbloom::Verdict;

/// The bar, and what it counts.
pub(crate) struct Progress {
    bar: Bar,
    items: u64,
    repeats: u64,
}

impl Progress {
    pub(crate) fn new(bar: Bar) -> Self {
        Progress { bar, items: 0, repeats: 0 }
    }

    /// Takes note of a batch, and shows the state of things now and then.
    pub(crate) fn show(&mut self, memory_bits: u64, verdicts: &[Verdict]) {
        self.items += verdicts.len() as u64;
        self.repeats += verdicts.iter().filter(|verdict| !verdict.is_distinct()).count() as u64;
        let (items, repeats) = (self.items, self.repeats);
        self.bar.show(|seconds| {
            // Only what is known without a look at the cells: others wait for the filter meanwhile.
            format!(
                "{} lines/s, {}, {}",
                report::thousands((items as f64 / seconds) as u64),
                report::counted(repeats, "repeat"),
                report::short_size(memory_bits),
            )
        });
    }
}
