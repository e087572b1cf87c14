//! What users hold: any filter behind one type, typed filters with the same methods, filters that threads share.

mod abilities;
mod any;
mod shared;
mod typed;
mod window;

pub use any::AnyFilter;
pub use shared::Shared;
pub use typed::{build_typed, typed_filter, typed_from_bytes};
pub use window::TimeWindow;

use crate::filter::{Kinds, Plan};
use crate::planning::{self, AUTO};
use std::io::Read;

use crate::promise::{Count, Goal, Result, Window};

impl Goal {
    /// Asks for a filter of the last so many arrivals, in which no repeat is missed. For windows of time see [`TimeWindow`].
    ///
    /// ```
    /// let mut recent = everbloom::Goal::new().window(1000).fpr("1%").build()?;
    /// (0..5000).for_each(|key| {
    ///     recent.insert(key);
    /// });
    /// assert!((4000..5000).all(|key| recent.contains(key)) && !recent.contains(17));
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn window(self, arrivals: impl Into<Count>) -> Self {
        let arrivals = arrivals.into().named("window").get();
        self.set_filter_once(arrivals.and_then(|arrivals| planning::windowed(&Window::Arrivals(arrivals), None, true)))
    }

    /// Plans a filter: the one that [`Goal::filter`] named, or the best that the planner finds.
    ///
    /// ```
    /// use everbloom::Goal;
    ///
    /// let mut seen = Goal::new().memory("64MiB").fpr("1%").build()?;
    /// assert!(seen.insert("alice"));
    /// assert!(!seen.insert("alice"));
    ///
    /// let error = Goal::new().memory("64 apples").fpr("1%").build().unwrap_err();
    /// assert!(error.to_string().contains("64 apples"), "{error}");
    /// # Ok::<(), everbloom::Error>(())
    /// ```
    pub fn build(&self) -> Result<AnyFilter> {
        self.build_among(Kinds::default())
    }

    /// [`Goal::build`] where the goal may name any of these kinds.
    pub fn build_among(&self, kinds: Kinds) -> Result<AnyFilter> {
        self.plan_among(kinds, AUTO)?.build()
    }
}

impl Kinds {
    /// The filter in these bytes, of any of these kinds.
    pub fn from_bytes(self, bytes: &[u8]) -> Result<AnyFilter> {
        self.decoder().decode(bytes).map(AnyFilter::from)
    }

    /// Reads a filter of any of these kinds, which must be all that the reader has.
    pub fn read_from(self, source: &mut impl Read) -> Result<AnyFilter> {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes)?;
        self.from_bytes(&bytes)
    }
}

impl Plan {
    /// Allocates the filter.
    pub fn build(&self) -> Result<AnyFilter> {
        self.filter().map(AnyFilter::from)
    }
}
