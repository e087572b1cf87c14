//! Windows of time: when the generations of a windowed filter turn.

use super::{Filter, Windowed};
use crate::format::{StateReader, StateWriter};
use crate::key::KeyHash;
use crate::promise::{Error, Importances, Result, Verdict};
use core::time::Duration;
use std::collections::VecDeque;

/// When the generations of a windowed filter turn, for a window of time.
///
/// A generation is a fixed part of the window, counted from 1970, so that runs of the same stream turn
/// alike. The newest time so far is what counts as now: an arrival with an earlier one is late, and is
/// judged and remembered as if it came now. So nothing inside the window is ever forgotten; what is late is
/// forgotten later.
///
/// The caller has the clock, or the times of a log. The timeline says how many generations to begin before
/// the next arrivals, counts what came, and is saved beside the filter ([`Timeline::state`]).
///
/// ```
/// use core::time::Duration;
/// use everbloom::kind::{Timeline, Times};
/// use everbloom::{Goal, Importances, Key, Verdict};
///
/// let goal = Goal::new().fpr(0.01);
/// let mut recent = goal.plan("age_partitioned:window=1000,advance=caller")?.build()?;
/// let generations = recent.as_windowed().map_or(0, |windowed| windowed.generations());
/// let mut timeline = Timeline::new(Duration::from_secs(60), generations, 1000)?;
///
/// let hash = ["alice".hash_with(recent.hashing())];
/// let mut verdict = [Verdict::Distinct];
/// let mut at = |second: i64| {
///     let times = Times::Each(&[second * 1_000_000]);
///     timeline.observe_hashes(recent.as_mut(), &hash, Importances::default(), times, &mut verdict)?;
///     Ok::<_, everbloom::Error>(verdict[0])
/// };
/// assert_eq!(at(0)?, Verdict::Distinct);
/// assert_eq!(at(59)?, Verdict::Duplicate, "within a minute");
/// assert_eq!(at(30)?, Verdict::Duplicate, "late, and judged as if it came now");
/// assert_eq!(at(180)?, Verdict::Distinct, "forgotten");
/// assert_eq!(timeline.late(), 1);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    window: Duration,
    /// Microseconds of a generation.
    generation: i64,
    /// Arrivals of a window that the filter is planned for.
    planned: u64,
    clock: Clock,
    /// Arrivals since this was made that were late by more than the window.
    outdated: u64,
}

/// What a later run needs to go on.
#[derive(Debug, Clone, Default, PartialEq)]
struct Clock {
    /// The newest time so far, in microseconds since 1970.
    newest: Option<i64>,
    /// Arrivals of the present generation, and of those before it that are in the window.
    arrivals: VecDeque<u64>,
    late: u64,
    most_arrivals: u64,
    highest_fpr: f64,
}

/// The times of some arrivals, in microseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub enum Times<'t> {
    /// All arrive now, as the caller's clock says. A clock that was set back makes nothing late.
    Now(i64),
    /// Each has its own, in the order of the arrivals. One that has none comes at the newest time so far.
    Each(&'t [i64]),
}

/// What to do next: begin so many generations, then take so many arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineStep {
    /// Generations to begin first, with [`Windowed::advance_by`].
    pub generations: u64,
    /// Arrivals that follow in one generation.
    pub arrivals: usize,
}

/// What became of a window of time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct WindowStatus {
    /// Arrivals of a window that the filter was planned for, if they come evenly.
    pub planned_arrivals: u64,
    /// The most that came.
    pub most_arrivals: u64,
    /// The highest rate of false positives, from the filter's contents.
    pub highest_fpr: f64,
    /// Arrivals with a time before that of an earlier one.
    pub late: u64,
}

/// No filter has more generations; what claims to is not read.
const MOST_GENERATIONS: u32 = 1 << 16;

impl Timeline {
    /// The timeline of a filter with so many generations ([`Windowed::generations`]) that is planned for so
    /// many arrivals in a window of this length.
    pub fn new(window: Duration, generations: u32, planned_arrivals: u64) -> Result<Self> {
        if !(1..=MOST_GENERATIONS).contains(&generations) {
            let needed = format!("between 1 and {MOST_GENERATIONS}");
            return Err(Error::parameter("generations", generations, needed, "ask the filter for its own"));
        }
        // Rounded up, so that the generations together are never shorter than the window.
        let generation = i64::try_from(window.as_micros().div_ceil(generations.into()));
        let generation = generation.ok().filter(|micros| *micros > 0).ok_or_else(|| {
            Error::parameter("window", format!("{window:?}"), "at least 1us and at most 100,000 years", "try 24h")
        })?;
        let arrivals = VecDeque::from(vec![0; generations as usize + 1]);
        let clock = Clock { arrivals, ..Clock::default() };
        Ok(Timeline { window, generation, planned: planned_arrivals, clock, outdated: 0 })
    }

    /// The length of the window.
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The arrivals of a window that the filter is planned for.
    pub fn planned(&self) -> u64 {
        self.planned
    }

    /// The arrivals of a generation that the filter is planned for, if they come evenly.
    pub(crate) fn planned_in_generation(&self) -> u64 {
        self.planned.div_ceil(self.clock.arrivals.len() as u64 - 1)
    }

    /// The most arrivals in a window so far.
    pub fn most_arrivals(&self) -> u64 {
        self.clock.most_arrivals
    }

    /// The highest rate of false positives that the filter showed.
    pub fn highest_fpr(&self) -> f64 {
        self.clock.highest_fpr
    }

    /// Arrivals in the window that ends with the present generation.
    fn arrivals(&self) -> u64 {
        let generations = self.clock.arrivals.len() - 1;
        self.clock.arrivals.iter().take(generations).fold(0, |sum, arrivals| sum.saturating_add(*arrivals))
    }

    /// The newest time so far, in microseconds since 1970.
    pub fn newest(&self) -> Option<i64> {
        self.clock.newest
    }

    /// Arrivals with a time before that of an earlier one.
    pub fn late(&self) -> u64 {
        self.clock.late
    }

    /// Arrivals whose time is more than a window before that of an earlier one, since this was made or read: too many of them
    /// tell that the stream is not in the order of its times.
    pub fn outdated(&self) -> u64 {
        self.outdated
    }

    /// Takes the next arrivals, as many as belong to one generation, and says how many generations begin
    /// before them. Asked with no times, it has nothing to do.
    ///
    /// [`Timeline::observe_hashes`] does this for a filter; a caller with its own loop takes steps until all
    /// arrivals are taken.
    pub fn step(&mut self, times: Times<'_>, arrivals: usize) -> TimelineStep {
        self.step_within(u64::MAX, times, arrivals)
    }

    /// Takes the next arrivals, but no more than make `most` in the window.
    fn step_within(&mut self, most: u64, times: Times<'_>, arrivals: usize) -> TimelineStep {
        let Some(generations) = (arrivals > 0).then(|| self.turn_to(self.time_of(times, 0))) else {
            return TimelineStep { generations: 0, arrivals: 0 };
        };
        let room = most.saturating_sub(self.arrivals());
        let arrivals = usize::try_from(room).map_or(arrivals, |room| arrivals.min(room));
        let turns_at = self.turns_at();
        let window = u64::try_from(self.window.as_micros()).unwrap_or(u64::MAX);
        let mut taken = 0;
        while taken < arrivals {
            let time = self.time_of(times, taken);
            if taken > 0 && time >= turns_at {
                break;
            }
            let newest = self.clock.newest.get_or_insert(time);
            let is_late = matches!(times, Times::Each(_)) && time < *newest;
            self.clock.late = self.clock.late.saturating_add(u64::from(is_late));
            let is_outdated = is_late && newest.abs_diff(time) > window;
            self.outdated = self.outdated.saturating_add(u64::from(is_outdated));
            *newest = time.max(*newest);
            taken += 1;
        }
        self.clock.arrivals[0] = self.clock.arrivals[0].saturating_add(taken as u64);
        self.clock.most_arrivals = self.clock.most_arrivals.max(self.arrivals());
        TimelineStep { generations, arrivals: taken }
    }

    /// Judges arrivals and remembers them, each in the generation that it belongs to, as
    /// [`Filter::observe_hashes`] does for those of one generation.
    pub fn observe_hashes(
        &mut self,
        filter: &mut dyn Filter,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        times: Times<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<()> {
        self.observe_within((u64::MAX, f64::INFINITY), filter, hashes, importances, times, verdicts).map(|_| ())
    }

    /// Observes hashes until an arrival would make more in the window than the first number of `most`, or the filter showed a
    /// higher rate of false positives than the second; says how many were judged.
    pub(super) fn observe_within(
        &mut self,
        most: (u64, f64),
        filter: &mut dyn Filter,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        times: Times<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<usize> {
        importances.check(hashes.len())?;
        let count = hashes.len().min(verdicts.len());
        let mut start = 0;
        while start < count {
            // What is about to leave the filter is looked at first.
            if self.turns_before(self.time_of(times, start)) > 0 {
                self.look_at(filter);
            }
            if self.clock.highest_fpr > most.1 {
                break;
            }
            let step = self.step_within(most.0, times.skip(start), count - start);
            if step.generations > 0 {
                windowed(filter)?.advance_by(step.generations);
            }
            let end = start + step.arrivals;
            if step.arrivals == 0 {
                break;
            }
            filter.observe_checked(&hashes[start..end], importances.skip(start), &mut verdicts[start..end]);
            start = end;
        }
        Ok(start)
    }

    /// Turns an idle filter to a time, so that what is older than the window is forgotten though nothing comes.
    pub(crate) fn advance_to(&mut self, filter: &mut dyn Filter, time: i64) -> Result<()> {
        if self.turns_before(time) > 0 {
            self.look_at(filter);
            windowed(filter)?.advance_by(self.turn_to(time));
        }
        self.clock.newest = Some(self.clock.newest.map_or(time, |newest| newest.max(time)));
        Ok(())
    }

    /// What there is to report; takes a pass over the filter.
    pub fn status(&mut self, filter: &dyn Filter) -> WindowStatus {
        self.look_at(filter);
        self.clock.highest_fpr = self.clock.highest_fpr.max(filter.status().estimated_fpr);
        let Clock { late, most_arrivals, highest_fpr, .. } = self.clock;
        WindowStatus { planned_arrivals: self.planned, most_arrivals, highest_fpr, late }
    }

    /// Generations to begin before an arrival of this time.
    fn turns_before(&self, time: i64) -> u64 {
        let newest = self.clock.newest.unwrap_or(time);
        time.max(newest).div_euclid(self.generation).abs_diff(newest.div_euclid(self.generation))
    }

    /// Begins the generations up to a time.
    fn turn_to(&mut self, time: i64) -> u64 {
        let turns = self.turns_before(time);
        for _ in 0..turns.min(self.clock.arrivals.len() as u64) {
            self.clock.arrivals.rotate_right(1);
            self.clock.arrivals[0] = 0;
        }
        self.clock.newest = Some(self.clock.newest.map_or(time, |newest| newest.max(time)));
        turns
    }

    /// When the generation of the newest time ends.
    fn turns_at(&self) -> i64 {
        let now = self.clock.newest.unwrap_or(0).div_euclid(self.generation);
        now.saturating_add(1).saturating_mul(self.generation)
    }

    fn time_of(&self, times: Times<'_>, index: usize) -> i64 {
        match times {
            Times::Now(time) => time,
            Times::Each(times) => times.get(index).copied().or(self.clock.newest).unwrap_or(0),
        }
    }

    /// Takes note of what more than was planned did.
    fn look_at(&mut self, filter: &dyn Filter) {
        // Looking takes a pass over the filter, so it is only done where the promise no longer holds.
        if self.clock.arrivals[0] > self.planned_in_generation() || self.arrivals() > self.planned {
            self.clock.highest_fpr = self.clock.highest_fpr.max(filter.status().estimated_fpr);
        }
    }

    /// The clock as bytes, for [`Timeline::resume`].
    pub fn state(&self) -> Vec<u8> {
        let Clock { newest, arrivals, late, most_arrivals, highest_fpr } = &self.clock;
        let writer = StateWriter::new()
            .u64(self.generation as u64)
            .u64(newest.is_some().into())
            .u64(newest.unwrap_or(0) as u64)
            .u64(*late)
            .u64(*most_arrivals)
            .u64(highest_fpr.to_bits())
            .u64(arrivals.len() as u64);
        arrivals.iter().fold(writer, |writer, arrivals| writer.u64(*arrivals)).finish()
    }

    /// Goes on where a timeline of the same window and filter was saved; an error, and nothing changed, if
    /// the bytes are another's or damaged.
    pub fn resume(&mut self, state: &[u8]) -> Result<()> {
        let mut reader = StateReader::new(state);
        if reader.u64()? != self.generation as u64 {
            return Err(Error::Mismatch {
                what: "the length of their window",
                left: format!("{:?}", self.window),
                right: "another".into(),
                remedy: "give the window that it was saved with",
            });
        }
        let (has_newest, newest) = (reader.u64()?, reader.u64()? as i64);
        let (late, most_arrivals, highest_fpr) = (reader.u64()?, reader.u64()?, f64::from_bits(reader.u64()?));
        if has_newest > 1 || !(0.0..=1.0).contains(&highest_fpr) || reader.u64()? != self.clock.arrivals.len() as u64 {
            return Err(Error::corrupt("the clock of the window cannot be read"));
        }
        let arrivals = self.clock.arrivals.iter().map(|_| reader.u64()).collect::<Result<_>>()?;
        reader.finish()?;
        let newest = (has_newest == 1).then_some(newest);
        self.clock = Clock { newest, arrivals, late, most_arrivals, highest_fpr };
        Ok(())
    }
}

impl Times<'_> {
    /// The times from an arrival on.
    pub(super) fn skip(self, count: usize) -> Self {
        match self {
            Times::Now(time) => Times::Now(time),
            Times::Each(times) => Times::Each(times.get(count..).unwrap_or_default()),
        }
    }
}

fn windowed(filter: &mut dyn Filter) -> Result<&mut dyn Windowed> {
    let spec = filter.spec().clone();
    filter.as_windowed().ok_or_else(|| spec.error("it has no window", "take a filter that has one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promise::Goal;

    const SECOND: i64 = 1_000_000;

    /// A window of 24 seconds in 24 generations.
    fn timeline() -> Timeline {
        Timeline::new(Duration::from_secs(24), 24, 1000).expect("a timeline")
    }

    /// What a timeline asks for, over all of these times.
    fn steps(timeline: &mut Timeline, times: &[i64]) -> Vec<(u64, usize)> {
        let (mut steps, mut start) = (Vec::new(), 0);
        while start < times.len() {
            let step = timeline.step(Times::Each(&times[start..]), times.len() - start);
            assert!(step.arrivals > 0, "no progress");
            steps.push((step.generations, step.arrivals));
            start += step.arrivals;
        }
        steps
    }

    #[test]
    fn generations_turn_at_whole_parts_of_the_window() {
        let times = [10 * SECOND, 10 * SECOND + 999_999, 11 * SECOND, 14 * SECOND, 14 * SECOND];
        assert_eq!(steps(&mut timeline(), &times), [(0, 2), (1, 1), (3, 2)]);
        // Before 1970, too.
        assert_eq!(steps(&mut timeline(), &[-SECOND, -1, 0]), [(0, 2), (1, 1)]);
    }

    #[test]
    fn what_is_late_turns_nothing_and_is_counted() {
        let mut timeline = timeline();
        let times = [100 * SECOND, 5 * SECOND, 101 * SECOND, 100 * SECOND, 101 * SECOND];
        assert_eq!(steps(&mut timeline, &times), [(0, 2), (1, 3)]);
        assert_eq!((timeline.late(), timeline.newest()), (2, Some(101 * SECOND)));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_late() {
        let mut timeline = timeline();
        timeline.step(Times::Now(100 * SECOND), 3);
        assert_eq!(timeline.step(Times::Now(90 * SECOND), 3), TimelineStep { generations: 0, arrivals: 3 });
        assert_eq!((timeline.late(), timeline.newest()), (0, Some(100 * SECOND)));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let times = [i64::MIN, i64::MAX, i64::MIN, i64::MAX, 0];
        let steps = steps(&mut timeline(), &times);
        assert_eq!(steps.iter().map(|step| step.1).sum::<usize>(), times.len());
        let mut timeline = timeline();
        assert_eq!(timeline.step(Times::Each(&[]), 2), TimelineStep { generations: 0, arrivals: 2 });
        assert_eq!(timeline.step(Times::Now(0), 0), TimelineStep { generations: 0, arrivals: 0 });
    }

    #[test]
    fn windows_that_make_no_sense_are_refused() {
        assert!(Timeline::new(Duration::ZERO, 24, 1).is_err());
        assert!(Timeline::new(Duration::MAX, 24, 1).is_err());
        assert!(Timeline::new(Duration::from_secs(1), 0, 1).is_err());
    }

    #[test]
    fn a_saved_clock_goes_on_alike_and_a_damaged_one_is_refused() {
        let mut first = timeline();
        steps(&mut first, &[100 * SECOND, 5 * SECOND, 130 * SECOND]);
        let state = first.state();
        let mut second = timeline();
        second.resume(&state).expect("its own state");
        // What came too late is counted anew by every run.
        assert_eq!((first.outdated(), second.outdated()), (1, 0));
        assert_eq!(Timeline { outdated: 0, ..first.clone() }, second);
        assert_eq!(steps(&mut first, &[131 * SECOND]), steps(&mut second, &[131 * SECOND]));

        let before = second.clone();
        for length in 0..state.len() {
            assert!(second.resume(&state[..length]).is_err(), "{length} bytes");
        }
        assert!(second.resume(&[&state[..], &[0]].concat()).is_err());
        let mut other = Timeline::new(Duration::from_secs(48), 24, 1000).expect("a timeline");
        assert!(other.resume(&state).is_err());
        let mut not_a_rate = state.clone();
        not_a_rate[40..48].copy_from_slice(&f64::NAN.to_bits().to_le_bytes());
        assert!(second.resume(&not_a_rate).is_err());
        assert_eq!(second, before, "a refusal changes nothing");
    }

    #[test]
    fn idle_filters_forget() {
        let goal = Goal::new().fpr(0.01);
        let mut filter =
            goal.plan("age_partitioned:window=100,advance=caller").and_then(|plan| plan.build()).expect("it");
        let generations = filter.as_windowed().map_or(0, |windowed| windowed.generations());
        let mut timeline = Timeline::new(Duration::from_secs(60), generations, 100).expect("a timeline");
        let hash = [KeyHash::default()];
        let mut verdict = [Verdict::Distinct];
        let mut observe = |timeline: &mut Timeline, filter: &mut dyn Filter, second: i64| {
            let times = Times::Now(second * SECOND);
            timeline.observe_hashes(filter, &hash, Importances::default(), times, &mut verdict).expect("a window");
        };
        observe(&mut timeline, filter.as_mut(), 0);
        timeline.advance_to(filter.as_mut(), 59 * SECOND).expect("a window");
        assert!(filter.contains_hash(hash[0]));
        timeline.advance_to(filter.as_mut(), 120 * SECOND).expect("a window");
        assert!(!filter.contains_hash(hash[0]));
        let status = timeline.status(filter.as_ref());
        assert_eq!((status.planned_arrivals, status.most_arrivals, status.late), (100, 1, 0));
    }
}
