//! Whether a promise is kept while arrivals come.

use super::{Filter, Kind, Timeline, Times};
use crate::key::KeyHash;
use crate::promise::{Holds, Importances, Promise, Result, Spec, Standing, Status, Verdict};
use libm::sqrt;

/// Notices when a filter's promise is broken, at the arrival that breaks it, and when that is to be said.
///
/// A filter that fills up is changed by the keys that it calls new: an arrival that it takes for a duplicate changes
/// nothing in it. So the promise until n keys is broken by the arrival that is new number n + 1, which depends on nothing but
/// the arrivals: not on batches, threads or restarts. A window of time is watched by its arrivals, and by the rate of
/// false positives where they come in bursts. It is to be said at once, and again at each doubling.
///
/// ```
/// use everbloom::kind::Watch;
/// use everbloom::{Goal, Verdict};
///
/// let plan = Goal::new().expected_items(2).fpr(0.01).plan("bloom")?;
/// let mut watch = Watch::over(&plan.promise);
/// let (new, seen) = (Verdict::Distinct, Verdict::Duplicate);
/// assert_eq!(watch.note(&[new, seen, new, seen]), None);
/// assert_eq!(watch.note(&[seen, new, seen]), Some(1), "the third new key");
/// assert_eq!(watch.note(&[seen, new]), Some(1), "twice as many as promised");
/// assert_eq!(watch.note(&[new, new, new]), None);
/// # Ok::<(), everbloom::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    promise: Promise,
    /// New keys, or arrivals in a window, up to which the promise holds.
    limit: u64,
    /// How many came; of windows, the most in one.
    came: u64,
    /// Up to how many there is nothing to say.
    silent_until: u64,
    /// Up to which rate of a window there is nothing to say.
    silent_rate: f64,
    broken_at: Option<u64>,
    /// After how many arrivals the cells are looked at, where the verdicts do not tell all.
    look_at: Option<u64>,
}

/// A first look after so many arrivals.
const FIRST_LOOK: u64 = 1 << 16;

/// What became of some arrivals that were judged under a [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// How many were judged.
    pub judged: usize,
    /// The first at which there is something to say.
    pub passed: Option<usize>,
    /// Whether that is because a window's arrivals came in a burst, though no more than planned.
    pub is_burst: bool,
}

impl Watch {
    /// Watches a filter with this promise.
    pub fn over(promise: &Promise) -> Self {
        let limit = match promise.holds {
            Holds::UntilItems(items) => items,
            Holds::Always | Holds::Never => u64::MAX,
        };
        Self::until(*promise, limit)
    }

    /// Watches windows of time that a filter with this promise was planned for.
    pub fn over_window(promise: &Promise, timeline: &Timeline) -> Self {
        let silent_rate = rate_of_window(promise, timeline.planned_in_generation());
        Watch { silent_rate, ..Self::until(*promise, timeline.planned()) }
    }

    /// Watches windows of time whose arrivals others count: the rate that the cells show tells. They are planned for so
    /// many keys in a generation.
    pub fn over_cells(promise: &Promise, in_generation: u64) -> Self {
        Watch { silent_rate: rate_of_window(promise, in_generation), ..Self::by_looks(promise) }
    }

    /// Watches a filter whose keys fade, so that its verdicts do not tell how many are inside.
    pub(crate) fn by_looks(promise: &Promise) -> Self {
        Self::until(*promise, u64::MAX).with_looks()
    }

    /// Looks at the cells, too.
    pub(crate) fn with_looks(self) -> Self {
        Watch { look_at: Some(FIRST_LOOK), ..self }
    }

    fn until(promise: Promise, limit: u64) -> Self {
        Watch {
            promise,
            limit,
            came: 0,
            silent_until: limit,
            silent_rate: f64::INFINITY,
            broken_at: None,
            look_at: None,
        }
    }

    /// Goes on where an earlier watch ended; what it said need not be said again.
    pub fn resumed(mut self, came: u64, broken_at: Option<u64>) -> Self {
        (self.came, self.broken_at) = (came, broken_at);
        self.silence();
        self
    }

    /// What is watched.
    pub fn promise(&self) -> &Promise {
        &self.promise
    }

    /// New keys, or arrivals in a window, up to which the promise holds.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// New keys so far, or the most arrivals in a window.
    pub fn came(&self) -> u64 {
        self.came
    }

    /// The number of the arrival that broke the promise, as its caller counts.
    pub fn broken_at(&self) -> Option<u64> {
        self.broken_at
    }

    /// Takes note that the promise is broken; the first number stays.
    pub fn break_at(&mut self, arrival: u64) {
        self.broken_at.get_or_insert(arrival);
    }

    /// Whether the promise has been kept.
    pub fn standing(&self) -> Standing {
        match (self.promise.holds, self.broken_at) {
            (Holds::Never, _) => Standing::None,
            (_, Some(_)) => Standing::Broken,
            (_, None) => Standing::Kept,
        }
    }

    /// Whether it is time for a look at the filter, which takes a pass over it: whenever the arrivals have doubled, and in
    /// the end.
    pub fn wants_look(&mut self, arrivals: u64, is_end: bool) -> bool {
        let Some(at) = self.look_at.filter(|at| is_end || arrivals >= *at) else { return false };
        self.look_at = Some(at.max(arrivals).saturating_mul(2));
        true
    }

    /// Whether a look shows for the first time that the promise is broken.
    pub fn is_broken_by(&self, status: &Status) -> bool {
        let is_broken = match self.silent_rate.is_finite() {
            true => self.is_passed_by(status.estimated_fpr),
            false => self.promise.standing(status) == Standing::Broken,
        };
        self.broken_at.is_none() && is_broken
    }

    /// Counts the new keys among some verdicts, and says at which of them there is something to say.
    pub fn note(&mut self, verdicts: &[Verdict]) -> Option<usize> {
        let new = verdicts.iter().filter(|verdict| verdict.is_distinct()).count() as u64;
        let before = self.came;
        self.came = before.saturating_add(new);
        if self.came <= self.silent_until {
            return None;
        }
        let nth = (self.silent_until - before.min(self.silent_until)) as usize;
        self.silence();
        let mut places = verdicts.iter().enumerate().filter(|(_, verdict)| verdict.is_distinct());
        places.nth(nth).map(|(place, _)| place)
    }

    /// Takes note of how many new keys came in all, where others judge, too; whether there is something to say.
    pub fn note_total(&mut self, came: u64) -> bool {
        self.came = self.came.max(came);
        let is_news = self.came > self.silent_until;
        if is_news {
            self.silence();
        }
        is_news
    }

    /// Judges arrivals, with a window of time or without. With `stop`, ends before the one that breaks the promise, and
    /// the filter is as if it had never come.
    pub fn observe(
        &mut self,
        filter: &mut dyn Filter,
        window: Option<(&mut Timeline, Times<'_>)>,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
        stop: bool,
    ) -> Result<Watched> {
        match window {
            Some((timeline, times)) => {
                self.observe_window(filter, timeline, times, hashes, importances, verdicts, stop)
            }
            None if stop => self.observe_until_broken(filter, hashes, importances, verdicts),
            None => {
                filter.observe_hashes(hashes, importances, verdicts)?;
                Ok(Watched { judged: hashes.len(), passed: self.note(verdicts), is_burst: false })
            }
        }
    }

    fn observe_until_broken(
        &mut self,
        filter: &mut dyn Filter,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
    ) -> Result<Watched> {
        let mut judged = 0;
        while judged < hashes.len() {
            // So many cannot break it, whatever they are. When there is no room left, keys that are inside still fit.
            let room = self.limit.saturating_sub(self.came);
            let step = usize::try_from(room).unwrap_or(usize::MAX).clamp(1, hashes.len() - judged);
            if room == 0 && !filter.contains_hash(hashes[judged]) {
                return Ok(Watched { judged, passed: Some(judged), is_burst: false });
            }
            let part = judged..judged + step;
            filter.observe_hashes(&hashes[part.clone()], importances.skip(judged), &mut verdicts[part.clone()])?;
            self.came += verdicts[part].iter().filter(|verdict| verdict.is_distinct()).count() as u64;
            judged += step;
        }
        Ok(Watched { judged, passed: None, is_burst: false })
    }

    #[allow(clippy::too_many_arguments)]
    fn observe_window(
        &mut self,
        filter: &mut dyn Filter,
        timeline: &mut Timeline,
        times: Times<'_>,
        hashes: &[KeyHash],
        importances: Importances<'_>,
        verdicts: &mut [Verdict],
        stop: bool,
    ) -> Result<Watched> {
        let (mut judged, mut passed, mut is_burst) = (0, None, false);
        loop {
            let (hashes, verdicts) = (&hashes[judged..], &mut verdicts[judged..]);
            let (importances, times) = (importances.skip(judged), times.skip(judged));
            let most = (self.silent_until, self.silent_rate);
            let taken = timeline.observe_within(most, filter, hashes, importances, times, verdicts)?;
            judged += taken;
            self.came = self.came.max(timeline.most_arrivals());
            if taken == hashes.len() {
                return Ok(Watched { judged, passed, is_burst });
            }
            let is_bursting = timeline.highest_fpr() > self.silent_rate;
            is_burst |= passed.is_none() && is_bursting;
            passed.get_or_insert(judged);
            if stop {
                return Ok(Watched { judged, passed, is_burst });
            }
            match is_bursting {
                true => self.silent_rate = timeline.highest_fpr() * 2.0,
                false => {
                    self.came = self.came.max(self.silent_until.saturating_add(1));
                    self.silence();
                }
            }
        }
    }

    /// Whether what a window's filter looked like breaks the promise.
    pub fn is_passed_by(&self, highest_fpr: f64) -> bool {
        highest_fpr > self.silent_rate
    }

    /// Says nothing before the count doubles again.
    fn silence(&mut self) {
        if self.came <= self.limit {
            return;
        }
        let doublings = (self.came / self.limit.max(1)).max(1).ilog2();
        self.silent_until = self.limit.max(1).checked_mul(2 << doublings).map_or(u64::MAX, |next| next - 1);
    }
}

/// The rate up to which a window keeps its promise. With as many arrivals as planned it varies with the keys of a
/// generation, and with the sample of the cells that a status is taken from.
fn rate_of_window(promise: &Promise, in_generation: u64) -> f64 {
    promise.fpr_bound * (1.0 + 4.0 / sqrt(in_generation.clamp(1, 4096) as f64))
}

/// What a filter is held to: its promise, which for one that is exact, and grows, has no end.
fn held_to(kind: &Kind, promise: Promise) -> Promise {
    if kind.can.exact { Promise { holds: Holds::Always, ..promise } } else { promise }
}

/// Whether a filter keeps its promise, as far as its contents and its audit tell.
pub fn standing(filter: &dyn Filter, status: &Status) -> Standing {
    match filter.annex().is_some_and(|annex| annex.shows_breach(&filter.promise())) {
        true => Standing::Broken,
        false => standing_of(filter.kind(), filter.promise(), status),
    }
}

/// Whether a filter that is elsewhere keeps its promise, by its contents alone.
pub fn standing_of(kind: &Kind, promise: Promise, status: &Status) -> Standing {
    // Where keys are removed, few may be left while the counters that they filled stay full: only the fill tells.
    let arrivals = if kind.can.remove { u64::MAX } else { status.arrivals };
    held_to(kind, promise).standing(&Status { arrivals, ..*status })
}

/// Watches whether a filter keeps its promise. Where keys fade or are counted, looks at its cells tell.
pub fn watch(filter: &dyn Filter) -> Watch {
    watch_of(filter.kind(), filter.spec(), filter.promise())
}

/// Watches whether a filter that is elsewhere keeps its promise.
pub fn watch_of(kind: &Kind, spec: &Spec, promise: Promise) -> Watch {
    let promise = held_to(kind, promise);
    match (kind.forgets(spec) && !kind.can.forget, kind.can.count) {
        (true, _) => Watch::by_looks(&promise),
        (false, true) => Watch::over(&promise).with_looks(),
        (false, false) => Watch::over(&promise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Plan;
    use crate::key::{Generator, Hashing};
    use crate::promise::Goal;
    use core::time::Duration;

    fn bloom(items: u64) -> Plan {
        Goal::new().expected_items(items).fpr(0.01).plan("bloom").expect("plans")
    }

    fn arrivals(count: usize, keys: u64) -> Vec<KeyHash> {
        let (hashing, mut generator) = (Hashing::default(), Generator::seeded(3));
        (0..count).map(|_| hashing.hash_u64(generator.below(keys))).collect()
    }

    /// Where a promise is broken, found key by key.
    fn first_too_many(plan: &Plan, hashes: &[KeyHash], items: usize) -> usize {
        let mut filter = plan.build().expect("fits");
        let new = hashes.iter().enumerate().filter(|(_, hash)| filter.insert_hash(**hash));
        new.map(|(place, _)| place).nth(items).expect("more keys than promised")
    }

    #[test]
    fn a_promise_is_broken_at_the_same_arrival_in_batches_of_every_size() {
        let (plan, hashes) = (bloom(1000), arrivals(8000, 4000));
        let wanted = first_too_many(&plan, &hashes, 1000);
        for size in [1, 7, 64, 1001, 8000] {
            let mut filter = plan.build().expect("fits");
            let mut watch = Watch::over(&plan.promise);
            let (mut before, mut told) = (0, Vec::new());
            for part in hashes.chunks(size) {
                let mut verdicts = vec![Verdict::Distinct; part.len()];
                let importances = Importances::default();
                let watched = watch.observe(filter.as_mut(), None, part, importances, &mut verdicts, false);
                told.extend(watched.expect("no window").passed.map(|place| before + place));
                before += part.len();
            }
            assert_eq!(told[0], wanted, "batches of {size}");
            // 4,000 keys, less those that seemed seen: at 1,001, then at 2,000.
            assert_eq!(told.len(), if size == 8000 { 1 } else { 2 }, "batches of {size}: {told:?}");
        }
    }

    #[test]
    fn stopping_leaves_the_filter_as_if_the_rest_had_never_come() {
        let (plan, hashes) = (bloom(1000), arrivals(8000, 4000));
        let wanted = first_too_many(&plan, &hashes, 1000);
        for size in [1, 100, 8000] {
            let (mut filter, mut untouched) = (plan.build().expect("fits"), plan.build().expect("fits"));
            let mut watch = Watch::over(&plan.promise);
            let mut judged = 0;
            for part in hashes.chunks(size) {
                let mut verdicts = vec![Verdict::Distinct; part.len()];
                let importances = Importances::default();
                let watched = watch.observe(filter.as_mut(), None, part, importances, &mut verdicts, true);
                let watched = watched.expect("no window");
                judged += watched.judged;
                if watched.passed.is_some() {
                    break;
                }
            }
            assert_eq!((judged, watch.came()), (wanted, 1000), "batches of {size}");
            untouched.insert_hashes(&hashes[..wanted]);
            assert_eq!(filter.to_bytes(), untouched.to_bytes(), "batches of {size}");
        }
    }

    #[test]
    fn an_earlier_watch_goes_on_and_repeats_nothing() {
        let mut watch = Watch::over(&bloom(10).promise).resumed(25, Some(11));
        assert_eq!((watch.standing(), watch.broken_at()), (Standing::Broken, Some(11)));
        assert_eq!(watch.note(&[Verdict::Distinct; 14]), None);
        assert_eq!(watch.note(&[Verdict::Distinct; 3]), Some(0), "40 keys, four times what was promised");
        watch.break_at(99);
        assert_eq!(watch.broken_at(), Some(11));
    }

    #[test]
    fn what_is_not_promised_is_not_broken_and_what_always_holds_is_kept() {
        let promise = bloom(10).promise;
        for (holds, standing) in [(Holds::Never, Standing::None), (Holds::Always, Standing::Kept)] {
            let mut watch = Watch::over(&Promise { holds, ..promise });
            assert_eq!(watch.note(&[Verdict::Distinct; 1000]), None);
            assert_eq!(watch.standing(), standing);
        }
    }

    /// A window of a minute, planned for so many arrivals.
    fn minute(planned: u64) -> (crate::AnyFilter, Timeline) {
        let spec = format!("age_partitioned:window={planned},advance=caller");
        let mut filter = Goal::new().fpr(0.01).plan(&spec).and_then(|plan| plan.build()).expect("a filter");
        let generations = filter.as_windowed().map_or(0, |windowed| windowed.generations());
        let timeline = Timeline::new(Duration::from_secs(60), generations, planned).expect("a timeline");
        (filter, timeline)
    }

    /// The arrivals at which there was something to say, with one every so many microseconds.
    fn told(planned: u64, times: &[i64], size: usize, stop: bool) -> (Vec<usize>, usize) {
        let (mut filter, mut timeline) = minute(planned);
        let mut watch = Watch::over_window(&filter.promise(), &timeline);
        let hashes = arrivals(times.len(), 1 << 60);
        let (mut told, mut judged) = (Vec::new(), 0);
        for (hashes, times) in hashes.chunks(size).zip(times.chunks(size)) {
            let mut verdicts = vec![Verdict::Distinct; hashes.len()];
            let window = Some((&mut timeline, Times::Each(times)));
            let watched = watch.observe(filter.as_mut(), window, hashes, Importances::default(), &mut verdicts, stop);
            let watched = watched.expect("a window");
            told.extend(watched.passed.map(|place| judged + place));
            judged += watched.judged;
            if stop && watched.passed.is_some() {
                break;
            }
        }
        (told, judged)
    }

    #[test]
    fn a_window_is_broken_by_the_arrival_that_is_one_too_many() {
        // Ten a millisecond: the 2,001st comes long before the window turns.
        let times: Vec<i64> = (0..9000).map(|arrival| arrival * 100).collect();
        for size in [1, 100] {
            assert_eq!(told(2000, &times, size, false).0, [2000, 3999, 7999], "batches of {size}");
        }
        assert_eq!(told(2000, &times, 9000, false).0, [2000]);
        assert_eq!(told(2000, &times, 300, true), (vec![2000], 2000));
        // As many as planned, evenly, for ten windows.
        let times: Vec<i64> = (0..20_000).map(|arrival| arrival * 30_000).collect();
        assert_eq!(told(2000, &times, 100, false).0, [0; 0]);
    }

    #[test]
    fn where_others_count_the_cells_tell_whether_a_window_is_too_busy() {
        for (times, is_broken) in [(1, false), (3, true)] {
            let (mut filter, timeline) = minute(2000);
            let watch = Watch::over_cells(&filter.promise(), timeline.planned_in_generation());
            let in_generation = (timeline.planned_in_generation() * times) as usize;
            // Ten windows, so that many more came in all than were planned for one.
            let generations = filter.as_windowed().map_or(0, |windowed| windowed.generations());
            for part in arrivals(in_generation * 10 * generations as usize, 1 << 60).chunks(in_generation) {
                filter.insert_hashes(part);
                filter.advance().expect("a window");
            }
            assert_eq!(watch.is_broken_by(&filter.status()), is_broken, "{times} times as many");
        }
    }

    #[test]
    fn a_burst_within_the_plan_is_told_if_it_raises_the_rate() {
        // All that is planned for a minute comes in its first second; then nothing for half of one.
        let times: Vec<i64> = (0..20_000).map(|arrival| arrival * 50).chain([30_000_000]).collect();
        assert_eq!(told(20_000, &times, 1000, false).0, [20_000]);
        assert_eq!(told(20_000, &times, 1000, true), (vec![20_000], 20_000));
    }
}
