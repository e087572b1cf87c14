//! What users hold: any filter behind one type, typed filters with the same methods, filters that threads share.

mod any;
mod info;
mod shared;
mod typed;

pub use any::AnyFilter;
pub use info::Info;
pub use shared::Shared;

use crate::forecast::{self, AUTO};
use crate::promise::{Goal, Plan, Result, Spec};

impl Goal {
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
        self.checked()?;
        let spec = self.filter.clone().unwrap_or_else(|| Spec::new(AUTO));
        forecast::plan(&spec, self)?.build()
    }
}

impl Plan {
    /// Allocates the filter.
    pub fn build(&self) -> Result<AnyFilter> {
        forecast::build(self).map(AnyFilter::from)
    }
}
