//! A window of time, on times that the caller gives.

use super::AnyFilter;
use crate::filter::{Timeline, Times};
use crate::key::Key;
use crate::planning;
use crate::promise::{Error, Goal, Importances, Result, Span, Verdict, Window};

/// A filter of the last while: a key that came within it is never missed, and one that came before is forgotten.
///
/// It reads no clock. Times are microseconds since 1970, or since anything else; one that lies before an earlier one counts
/// as that.
///
/// ```
/// use everbloom::{Goal, TimeWindow};
///
/// const MINUTE: i64 = 60_000_000;
/// let mut alerts = TimeWindow::new("1h", &Goal::new().expected_items("10k").fpr("0.1%"))?;
/// assert!(alerts.insert("disk full", 0));
/// assert!(!alerts.insert("disk full", 59 * MINUTE), "within the hour");
/// assert!(alerts.insert("disk full", 200 * MINUTE), "long after the last one");
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TimeWindow {
    filter: AnyFilter,
    timeline: Timeline,
}

impl TimeWindow {
    /// A window of this length, such as `24h` or a `Duration`, sized for the goal's expected items within one window, or for
    /// as many as its memory holds. Every arrival of a key renews its age.
    pub fn new(length: impl Into<Span>, goal: &Goal) -> Result<Self> {
        let length = length.into().named("window").get()?;
        goal.checked()?;
        if let Some(named) = &goal.filter {
            return Err(named.error("a window of time has a filter of its own", "name no filter"));
        }
        let plan = planning::for_window(&Window::Time(length), goal, true, None)?;
        let mut filter = plan.build()?;
        let Some(windowed) = filter.as_windowed() else {
            return Err(Error::unsupported(
                plan.spec.kind(),
                "keep a window",
                "leave the filter to the planner".into(),
            ));
        };
        let timeline = Timeline::new(length, windowed.generations(), windowed.window())?;
        Ok(TimeWindow { filter, timeline })
    }

    /// Puts something around the filter inside, such as an audit.
    pub fn try_map(self, wrap: impl FnOnce(AnyFilter) -> Result<AnyFilter>) -> Result<Self> {
        Ok(TimeWindow { filter: wrap(self.filter)?, ..self })
    }

    /// Puts something around the filter inside, where it cannot fail.
    pub fn map(self, wrap: impl FnOnce(AnyFilter) -> AnyFilter) -> Self {
        TimeWindow { filter: wrap(self.filter), ..self }
    }

    /// Remembers a key that comes at this time; true if it seems new to the window.
    pub fn insert(&mut self, key: impl Key, time: i64) -> bool {
        let (hash, mut verdict) = ([key.hash_with(self.filter.hashing())], [Verdict::Distinct]);
        let times = [time];
        // The filter has a window, which is all that could be missing.
        let observed = self.timeline.observe_hashes(
            &mut *self.filter,
            &hash,
            Importances::default(),
            Times::Each(&times),
            &mut verdict,
        );
        observed.is_ok() && verdict[0].is_distinct()
    }

    /// Whether a key seems to have come within the window that ends at this time. The window moves on to it for good: what
    /// is then too old is forgotten, and an earlier time counts as this one.
    pub fn contains(&mut self, key: impl Key, time: i64) -> bool {
        // As above.
        let advanced = self.timeline.advance_to(&mut *self.filter, time);
        advanced.is_ok() && self.filter.contains(key)
    }

    /// The filter inside.
    pub fn filter(&self) -> &AnyFilter {
        &self.filter
    }
}
