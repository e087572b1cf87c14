//! Which filter keeps a window in which nothing may be missed.

use super::AUTO;
use crate::filter::{Kinds, Plan};
use crate::promise::{Error, Goal, Result, Spec, Window};

/// The plan for a window: one of time is expected to have the goal's number of keys as its arrivals, if that is known.
/// `refresh`: whether a repeat renews a key's age. With `shards`, see [`windowed_in_shards`].
pub fn for_window(window: &Window, goal: &Goal, refresh: bool, shards: Option<u32>) -> Result<Plan> {
    goal.checked()?;
    let arrivals = goal.expected_items.filter(|_| matches!(window, Window::Time(_)));
    let mut within = goal.clone();
    if goal.assumed_memory && (arrivals.is_some() || matches!(window, Window::Arrivals(_))) {
        // A window whose arrivals are known takes what they need.
        within = within.without_memory();
    }
    let spec = match shards {
        Some(shards) => windowed_in_shards(window, arrivals, refresh, shards)?,
        None => windowed(window, arrivals, refresh)?,
    };
    // Windows count arrivals, so the number of keys that will ever come does not matter.
    Kinds::default().complete(&spec, &within.without_expected_items())
}

/// The spec of the kind for a window that misses nothing: so many arrivals, or a time in which `arrivals` are expected, if
/// that is known. `refresh`: whether a repeat renews a key's age.
pub fn windowed(window: &Window, arrivals: Option<u64>, refresh: bool) -> Result<Spec> {
    let able = Kinds::default().iter().filter_map(|kind| Some((kind, kind.can.window?)));
    let found = able.filter_map(|(kind, takes)| Some((kind, takes, takes.by_caller?, takes.refresh?))).next();
    let Some((kind, takes, by_caller, renews)) = found else {
        return Err(Error::unsupported(AUTO, "keep a window", "use a build that has a filter for it".into()));
    };
    let spec = Spec::new(kind.name).with(renews, if refresh { "yes" } else { "no" });
    Ok(match (window, arrivals) {
        (Window::Arrivals(arrivals), _) => spec.with(takes.parameter, arrivals),
        (Window::Time(_), Some(arrivals)) => spec.with(by_caller.0, by_caller.1).with(takes.parameter, arrivals),
        (Window::Time(_), None) => spec.with(by_caller.0, by_caller.1),
    })
}

/// The spec of [`windowed`] in shards: of a window of time, each with its part of the arrivals. A window of arrivals cannot be
/// kept in shards, and gets none: one that gets a frequent key would count its repeats, and forget sooner than the others.
pub fn windowed_in_shards(window: &Window, arrivals: Option<u64>, refresh: bool, shards: u32) -> Result<Spec> {
    match window {
        Window::Arrivals(_) => windowed(window, arrivals, refresh),
        Window::Time(_) => {
            let share = arrivals.map(|arrivals| crate::filter::sharded::largest_share(arrivals, shards.into()));
            Ok(crate::filter::sharded::in_shards(&windowed(window, share, refresh)?, shards))
        }
    }
}
