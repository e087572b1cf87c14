//! The filter, and who watches it: whether it keeps its promise, and how far things are.

use super::memory::Memory;
use super::progress::Progress;
use super::window;
use crate::args::{OnError, PromiseArgs};
use crate::commands::dedup::job::Rules;
use crate::failure::{Failure, Result};
use crate::record::{Batch, FaultWatch};
use crate::report::thousands;
use crate::report::words::{self, LINES};
use everbloom::kind::{Timeline, Watch, Watched};
use everbloom::{Importances, Verdict};
use everbloom_all::KINDS;
use everbloom_forecast::Audits;
use everbloom_forecast::audit::Audit;
use std::time::{Duration, Instant};

/// A first look at the audit after so many arrivals.
pub(crate) const FIRST_AUDIT_LOOK: u64 = 1 << 16;

/// What all blocks pass, one by one.
pub(crate) struct Judge {
    pub(crate) memory: Box<dyn Memory>,
    pub(crate) timeline: Option<Timeline>,
    pub(crate) watch: Watch,
    /// What becomes of records without a key.
    pub(crate) faults: FaultWatch,
    /// Keys judged so far, while all of them were judged exactly by a filter that will have to forget if they go on.
    pub(crate) exact: Option<u64>,
    /// Finds out what a filter that forgets missed, if that is to be told.
    pub(crate) spot_check: Option<Audit>,
    /// After how many arrivals the audit is looked at next.
    pub(crate) audit_look: u64,
    pub(crate) promise: PromiseArgs,
    /// What to do about a broken promise, in words.
    pub(crate) remedy: &'static str,
    pub(crate) progress: Option<Progress>,
    /// What a page shows of the run.
    #[cfg(feature = "web")]
    pub(crate) live: Option<super::live::Live>,
    pub(crate) records: u64,
    pub(crate) saved: Instant,
    pub(crate) saved_records: u64,
}

impl Judge {
    /// Judges by this memory, whose promise is watched from now on; `records` came before.
    pub(crate) fn new(rules: &Rules, promise: PromiseArgs, mut memory: Box<dyn Memory>, records: u64) -> Result<Self> {
        // Servers turn their filters by their own clocks.
        let timeline = match (memory.own_mut(), rules.window_time()) {
            (Some(memory), Some(window)) => Some(window::timeline(window, memory)?),
            _ => None,
        };
        let watch = match &timeline {
            Some(timeline) => Watch::over_window(&memory.promise(), timeline),
            None => memory.watch(),
        };
        let is_exact_first = KINDS.of(memory.spec())?.can.exact_first;
        let exact = memory
            .own()
            .filter(|_| is_exact_first)
            .and_then(|memory| Some(memory.status().arrivals).filter(|all| *all == memory.exact_arrivals()));
        Ok(Judge {
            memory,
            timeline,
            watch,
            faults: FaultWatch::new(rules.keys.on_error, OnError::Keep),
            exact,
            spot_check: None,
            audit_look: FIRST_AUDIT_LOOK,
            promise,
            remedy: rules.remedy(),
            progress: None,
            #[cfg(feature = "web")]
            live: None,
            records,
            saved: Instant::now(),
            saved_records: records,
        })
    }

    /// What measures how often the filter errs, if that is asked for.
    pub(crate) fn audit(&self) -> Option<&Audit> {
        self.memory.own().and_then(|memory| memory.audit())
    }

    /// Whether the filter may forget a key.
    pub(crate) fn forgets(&self) -> bool {
        KINDS.of(self.memory.spec()).is_ok_and(|kind| kind.forgets(self.memory.spec()))
    }

    /// Whether the time has come to save what has changed.
    pub(crate) fn is_due(&self, interval: Duration) -> bool {
        self.records != self.saved_records && self.saved.elapsed() >= interval
    }

    /// Judges the keys of a batch and remembers them; one verdict per key. Memory that is refused is an error before
    /// anything of the batch is judged. Where the promise must not be broken, the batch ends before it is, and the
    /// failure comes back.
    pub(crate) fn observe(&mut self, batch: &mut Batch, verdicts: &mut Vec<Verdict>) -> Result<Option<Failure>> {
        verdicts.resize(batch.hashes().len(), Verdict::Distinct);
        let Some(memory) = self.memory.own_mut() else { return self.ask_servers(batch, verdicts) };
        memory.make_room(batch.hashes())?;
        let times = self.timeline.is_some().then(|| window::times(batch));
        let window = self.timeline.as_mut().zip(times);
        let Watched { judged, passed, is_burst } = self.watch.observe(
            memory.as_mut(),
            window,
            batch.hashes(),
            batch.importances(),
            verdicts,
            self.promise.stops(),
        )?;
        let passed = passed.map(|key| batch.record_of_key(key));
        if let (Some(record), true) = (passed, self.promise.stops()) {
            batch.truncate(record);
            verdicts.truncate(judged);
        }
        if let Some(spot_check) = &mut self.spot_check {
            spot_check.observe(batch.hashes(), Importances::default(), verdicts);
        }
        self.tell_change(batch);
        self.judged(batch, verdicts, passed, is_burst)
    }

    /// Judges on servers, where others judge, too: the promise is watched by what all of them counted, and a batch that
    /// breaks it is judged to its end.
    fn ask_servers(&mut self, batch: &Batch, verdicts: &mut [Verdict]) -> Result<Option<Failure>> {
        let all = self.memory.ask(batch.hashes(), batch.importances(), verdicts)?;
        let mut passed = self.watch.note(verdicts).map(|key| batch.record_of_key(key));
        if all.is_some_and(|all| self.watch.note_total(all)) {
            passed = passed.or(Some(batch.len().saturating_sub(1)));
        }
        if let Some(spot_check) = &mut self.spot_check {
            spot_check.observe(batch.hashes(), Importances::default(), verdicts);
        }
        self.judged(batch, verdicts, passed, false)
    }

    fn judged(
        &mut self,
        batch: &Batch,
        verdicts: &[Verdict],
        passed: Option<usize>,
        is_burst: bool,
    ) -> Result<Option<Failure>> {
        let failure = passed.and_then(|record| self.is_broken_at(self.records + record as u64 + 1, is_burst));
        self.records += batch.len() as u64;
        if let Some(progress) = &mut self.progress {
            progress.show(self.memory.memory_bits(), verdicts);
        }
        let wants_look = self.watch.wants_look(self.records, false) || self.memory.wants_look();
        let failure = if failure.is_none() && wants_look { self.look() } else { failure };
        let failure = failure.or_else(|| self.look_at_audit(false));
        #[cfg(feature = "web")]
        self.show_live(batch.len(), verdicts);
        Ok(failure)
    }

    /// Says when the filter begins to forget.
    fn tell_change(&mut self, batch: &Batch) {
        let Some(before) = self.exact else { return };
        let Some(memory) = self.memory.own() else { return };
        let (exact, came) = (memory.exact_arrivals(), before + batch.hashes().len() as u64);
        self.exact = (exact == came).then_some(came);
        if self.exact.is_none() && !self.promise.quiet {
            let record = self.records + batch.record_of_key(exact.saturating_sub(before) as usize) as u64 + 1;
            words::note(&words::begins_to_forget(record, memory));
        }
    }

    /// A last look, when all has been read.
    pub(crate) fn finish(&mut self) -> Option<Failure> {
        self.last_look().or_else(|| self.look_at_audit(true))
    }

    fn last_look(&mut self) -> Option<Failure> {
        if let (Some(timeline), Some(memory)) = (&mut self.timeline, self.memory.own()) {
            let highest_fpr = timeline.status(memory.as_ref()).highest_fpr;
            let is_news = self.watch.broken_at().is_none() && self.watch.is_passed_by(highest_fpr);
            return is_news.then(|| self.is_broken_at(self.records, true)).flatten();
        }
        self.watch.wants_look(self.records, true).then(|| self.look()).flatten()
    }

    /// Looks at the cells, where the verdicts do not tell all.
    fn look(&mut self) -> Option<Failure> {
        let status = self.memory.look();
        if !self.watch.is_broken_by(&status) {
            return None;
        }
        self.watch.break_at(self.records);
        if let Some((window, planned)) = self.memory.shared_window() {
            let text = words::crowded_window(self.watch.promise(), window, planned, &status);
            return self.say(|remedy| format!("{text}; {remedy}"));
        }
        let text = words::seen_in_cells(self.watch.promise(), &status, LINES);
        self.say(|_| text)
    }

    /// What to do at the record that breaks the promise, or is one more after that.
    fn is_broken_at(&mut self, record: u64, is_burst: bool) -> Option<Failure> {
        let was_broken = self.watch.broken_at().is_some();
        // A state that is saved before a promise is broken belongs to one that is kept.
        if !self.promise.stops() {
            self.watch.break_at(record);
        }
        if !self.promise.warns() && !self.promise.stops() {
            return None;
        }
        let place = words::broken_at(record, self.promise.stops());
        let watch = &self.watch;
        // The status takes a look at all cells, but only at each doubling.
        let text = match self.timeline.as_ref().map(|timeline| (timeline.window(), timeline.highest_fpr())) {
            None if was_broken => words::many_too_many(watch, &self.memory.status(), LINES),
            None => format!("{place}: {}", words::one_too_many(watch, LINES)),
            Some((window, _)) if was_broken => words::busier_window(watch, window, &self.memory.status()),
            Some((window, rate)) if is_burst => format!("{place}: {}", words::bursting_window(watch, window, rate)),
            Some((window, _)) => format!("{place}: {}", words::busy_window(watch, window)),
        };
        self.say(|remedy| format!("{text}; {remedy}"))
    }

    /// What to say where an earlier run broke the promise.
    pub(crate) fn report_prior_breach(&mut self) -> Option<Failure> {
        let record = thousands(self.watch.broken_at()?);
        self.say(|remedy| {
            format!(
                "the promise was broken at line {record}, in an earlier run with this state; {remedy}, and a new state"
            )
        })
    }

    pub(crate) fn say(&mut self, text: impl FnOnce(&str) -> String) -> Option<Failure> {
        self.promise.broken(|| text(self.remedy)).err()
    }
}
