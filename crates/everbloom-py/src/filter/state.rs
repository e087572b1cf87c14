//! What a filter's lock guards, and what is done under it.

use crate::batch::Keys;
use everbloom::kind::{Timeline, Times};
use everbloom::{AnyFilter, FilterExt, Hashing, Importances, KeyHash, Result, Verdict};
use std::time::Duration;

/// A filter, and the clock of its window if that is one of time.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) filter: AnyFilter,
    pub(crate) timeline: Option<Timeline>,
    /// Whether it must be asked to make room before keys come.
    grows: bool,
    /// Whether it counts insertions, each of which can be taken back: then a repeat is inserted, too.
    counts: bool,
}

/// When keys come.
#[derive(Clone, Copy)]
pub(crate) enum Arrivals<'t> {
    /// Now, by the clock of the machine.
    Now,
    /// Each at its own time, in microseconds.
    At(&'t [i64]),
}

impl State {
    pub(crate) fn new(mut filter: AnyFilter, window: Option<Duration>) -> Result<Self> {
        let timeline = match window {
            Some(window) => Some(timeline(&mut filter, window)?),
            None => None,
        };
        let can = &filter.kind().can;
        let (grows, counts) = (can.grow, can.remove);
        Ok(State { filter, timeline, grows, counts })
    }

    /// Whether a key may be inserted without further ado.
    pub(crate) fn is_plain(&self) -> bool {
        !self.grows && self.timeline.is_none()
    }

    /// Remembers keys.
    pub(crate) fn insert(&mut self, keys: Keys<'_>, hashing: &Hashing) -> Result<()> {
        if !self.is_plain() {
            let mut verdicts = vec![Verdict::Distinct; keys.len()];
            return self.observe(keys, hashing, Importances::default(), Arrivals::Now, &mut verdicts);
        }
        match keys {
            Keys::Raw(keys) => self.filter.as_mut().insert_keys(keys),
            Keys::Hashes(keys) => self.filter.insert_hashes(keys),
        }
        Ok(())
    }

    /// Judges keys, then remembers them, one after another.
    pub(crate) fn observe(
        &mut self,
        keys: Keys<'_>,
        hashing: &Hashing,
        importances: Importances<'_>,
        arrivals: Arrivals<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        if self.counts {
            // Judged as `add` does it, one by one.
            for (hash, verdict) in hashed(keys, hashing).into_iter().zip(verdicts) {
                *verdict = Verdict::from_seen(!self.filter.insert_hash(hash));
            }
            return Ok(());
        }
        if self.is_plain() {
            return match keys {
                Keys::Raw(keys) => self.filter.as_mut().observe_keys(keys, importances, verdicts),
                Keys::Hashes(keys) => self.filter.observe_hashes(keys, importances, verdicts),
            };
        }
        let hashes = hashed(keys, hashing);
        self.filter.make_room(&hashes)?;
        match &mut self.timeline {
            None => self.filter.observe_hashes(&hashes, importances, verdicts),
            Some(timeline) => {
                let times = match arrivals {
                    Arrivals::Now => Times::Now(now()),
                    Arrivals::At(times) => Times::Each(times),
                };
                timeline.observe_hashes(&mut *self.filter, &hashes, importances, times, verdicts)
            }
        }
    }

    /// Whether keys have been here.
    pub(crate) fn contains(&self, keys: Keys<'_>, found: &mut [bool]) {
        match keys {
            Keys::Raw(keys) => self.filter.as_ref().contains_keys(keys, found),
            Keys::Hashes(keys) => self.filter.contains_hashes(keys, found),
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.filter.clear();
        if let Some(window) = self.timeline.as_ref().map(Timeline::window) {
            self.timeline = Some(timeline(&mut self.filter, window)?);
        }
        Ok(())
    }
}

pub(crate) fn hashed(keys: Keys<'_>, hashing: &Hashing) -> Vec<KeyHash> {
    let mut hashes = Vec::with_capacity(keys.len());
    keys.hash(hashing, &mut hashes);
    hashes
}

/// The clock of a filter that keeps a window of time.
fn timeline(filter: &mut AnyFilter, window: Duration) -> Result<Timeline> {
    let no_window = filter.spec().error("it has no window", "name no filter, and one with a window is taken");
    let windowed = filter.as_windowed().filter(|windowed| windowed.window() > 0).ok_or(no_window)?;
    Timeline::new(window, windowed.generations(), windowed.window())
}

/// Microseconds since 1970.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
