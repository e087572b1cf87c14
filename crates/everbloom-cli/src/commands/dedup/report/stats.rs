//! What happened, in numbers.

use crate::commands::dedup::job::Mode;
use crate::commands::dedup::run::judge::Judge;
use crate::commands::dedup::run::window::WindowStats;
use crate::report::audit::Audited;
use crate::report::{columns, counted, percent, short_size, thousands, words};
use everbloom::kind::{Standing, span_text};
use everbloom::{Status, Window};
use everbloom_all::KINDS;
use everbloom_forecast::audit::Missed;
use serde::{Deserialize, Serialize};

/// Every record is written, dropped or skipped: `items = written + dropped + skipped`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Records read.
    pub(crate) items: u64,
    /// Records written to the output, or that would be where only totals are wanted.
    pub(crate) written: u64,
    /// Records not written because of what the filter said.
    pub(crate) dropped: u64,
    /// Records that the filter called repeats.
    pub(crate) repeats: u64,
    /// Records without a key, skipped or not.
    pub(crate) errors: u64,
    /// Records without a key that were not written.
    pub(crate) skipped: u64,
    /// Bytes read, unpacked.
    pub(crate) bytes: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.written += other.written;
        self.dropped += other.dropped;
        self.repeats += other.repeats;
        self.errors += other.errors;
        self.skipped += other.skipped;
        self.bytes += other.bytes;
    }
}

/// What `--count` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Totals {
    items: u64,
    new: u64,
    repeats: u64,
    errors: u64,
}

impl Totals {
    pub(crate) fn of(tally: &Tally) -> Self {
        let Tally { items, repeats, errors, .. } = *tally;
        Totals { items, new: items - repeats - errors, repeats, errors }
    }

    pub(crate) fn table(&self) -> String {
        let rows = [("lines", self.items), ("new", self.new), ("repeats", self.repeats), ("errors", self.errors)];
        columns(&rows.map(|(name, count)| (name, count.to_string())))
    }
}

/// The document of `--stats`.
#[derive(Debug, Serialize)]
pub(crate) struct Stats {
    /// The counts of this run.
    #[serde(flatten)]
    tally: Tally,
    /// The counts of all runs with the same state.
    total: Tally,
    seconds: f64,
    threads: usize,
    filter: String,
    memory_bits: u64,
    /// Whether the memory grows with the keys.
    grows: bool,
    predicted_fpr: f64,
    predicted_fnr: Option<f64>,
    fill: Option<f64>,
    estimated_fpr: f64,
    /// Whether the promised rate holds: kept, broken or none.
    promise: &'static str,
    #[serde(skip)]
    standing: Standing,
    /// The number of the record that broke it.
    broken_at: Option<u64>,
    /// The probability that any key was taken for another.
    collision_probability: Option<f64>,
    /// Records that were judged without error, but for that: all, or those before the filter began to forget.
    judged_exactly: u64,
    #[serde(skip)]
    judged: u64,
    /// Lines that servers acknowledged and lost in a failover, in all runs with the same state.
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten: Option<u64>,
    /// Whether there may be more of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten_or_more: Option<bool>,
    /// Whether all of the input was read.
    finished: bool,
    /// What else the plan says of the filter.
    pub(crate) notes: Vec<String>,
    /// What the audit measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit: Option<Audited>,
    /// What became of a window of time.
    #[serde(flatten)]
    pub(crate) window: Option<WindowStats>,
}

impl Stats {
    /// With a `look` at all of the filter's cells, which a summary of what was kept can do without.
    pub(crate) fn new(
        (tally, total): (Tally, Tally),
        judge: &Judge,
        look: bool,
        seconds: f64,
        threads: usize,
        finished: bool,
    ) -> Self {
        let Judge { memory: filter, watch, exact, .. } = judge;
        let promise = filter.promise();
        let can = KINDS.of(filter.spec()).ok().map(|kind| kind.can);
        let is_exact = can.is_some_and(|can| can.exact);
        let errs_not = is_exact || exact.is_some();
        let status = if look || errs_not { filter.status() } else { Status::default() };
        Stats {
            tally,
            total,
            seconds,
            threads,
            filter: filter.spec().to_string(),
            memory_bits: filter.memory_bits(),
            grows: can.is_some_and(|can| can.grow),
            predicted_fpr: if is_exact { status.estimated_fpr } else { promise.fpr_bound },
            predicted_fnr: promise.predicted_fnr,
            fill: (!is_exact).then_some(status.fill),
            estimated_fpr: status.estimated_fpr,
            promise: watch.standing().name(),
            standing: watch.standing(),
            broken_at: watch.broken_at(),
            collision_probability: errs_not.then(|| status.collision_probability()),
            judged_exactly: filter.own().map_or(0, |own| own.exact_arrivals()),
            judged: total.items - total.errors,
            forgotten: filter.lost().map(|(lost, _)| lost),
            forgotten_or_more: filter.lost().map(|(_, or_more)| or_more),
            finished,
            notes: Vec::new(),
            audit: None,
            window: None,
        }
    }

    /// A few sentences for people.
    pub(crate) fn summary(&self, told: &Told) -> String {
        let sentences = [
            self.lines(told),
            self.errors(told),
            self.exact_part(),
            self.window.as_ref().map_or(String::new(), |window| format!(" {}", window.summary())),
            self.audit.as_ref().map_or(String::new(), Audited::summary),
            self.cost(),
        ];
        sentences.concat()
    }

    /// How much came before the filter began to forget, if it did not forget at first.
    fn exact_part(&self) -> String {
        if self.judged_exactly == 0 || self.collision_probability.is_some() {
            return String::new();
        }
        let share = self.judged_exactly as f64 / self.judged as f64;
        let (lines, share) = (thousands(self.judged_exactly), percent(share));
        match self.judged_exactly {
            1 => format!(" The first line ({share}) was judged exactly."),
            _ => format!(" The first {lines} lines ({share}) were judged exactly."),
        }
    }

    fn lines(&self, told: &Told) -> String {
        let Tally { items, written, repeats, errors, skipped, .. } = self.tally;
        let (new, repeats) = (thousands(items - repeats - errors), counted(repeats, "repeat"));
        let what = match told.mode {
            Mode::OnlyDuplicates => format!(", {} written, all repeats", thousands(written)),
            Mode::Flag => format!(", {} written with a mark: {new} new, {repeats}", thousands(written)),
            Mode::Drop | Mode::Count => format!(": {new} new, {repeats}"),
        };
        let faulty = match (errors, skipped) {
            (0, _) => String::new(),
            (errors, 0) => format!(", {} without a key", thousands(errors)),
            (errors, _) => format!(", {} without a key left out", thousands(errors)),
        };
        format!("{}{what}{faulty}.", counted(items, "line"))
    }

    /// How often the filter was wrong, as far as that is known.
    fn errors(&self, told: &Told) -> String {
        let mistaken = if told.mode == Mode::Drop { "dropped" } else { "taken for a repeat" };
        let through = if told.mode == Mode::Drop { "got through" } else { "was taken for new" };
        let promised = percent(self.predicted_fpr);
        let is_stopped = self.broken_at.is_some_and(|record| record > self.total.items);
        let standing = if is_stopped { Standing::Kept } else { self.standing };
        let wrong = match (standing, self.collision_probability) {
            (Standing::Kept, Some(_)) => format!(" No line was {mistaken} by mistake"),
            (Standing::Kept, None) => format!(
                " At most {} new lines was {mistaken} by mistake (promised {promised})",
                words::at_most_one_in(self.predicted_fpr)
            ),
            (Standing::Broken, _) => format!(
                " The promise was broken at line {}: about {} new lines {} {mistaken} by mistake now (promised {promised})",
                thousands(self.broken_at.unwrap_or_default()),
                words::about_one_in(self.estimated_fpr),
                words::verb(self.estimated_fpr)
            ),
            (Standing::None, _) => format!(
                " About {} new lines {} {mistaken} by mistake now (nothing was promised)",
                words::about_one_in(self.estimated_fpr),
                words::verb(self.estimated_fpr)
            ),
        };
        let collision = self.collision_probability.filter(|chance| *chance > 0.0).map_or(String::new(), |chance| {
            format!(" (but for a chance of {} that two lines share a hash)", percent(chance))
        });
        match self.missed(told, through) {
            Some(missed) if self.collision_probability.is_some() => format!("{wrong} and {missed}{collision}."),
            Some(missed) => format!("{wrong}; {missed}."),
            None => format!("{wrong}."),
        }
    }

    /// What became of the repeats, if it is known.
    fn missed(&self, told: &Told, through: &str) -> Option<String> {
        match (told.window, &told.missed) {
            (Some(Window::Arrivals(lines)), _) => {
                let of = if told.is_shared { " of all machines" } else { "" };
                Some(format!("no repeat within {}{of} {through}", counted(lines, "line")))
            }
            (Some(Window::Time(time)), _) => Some(format!("no repeat within {} {through}", span_text(time))),
            _ if !told.forgets || self.collision_probability.is_some() => Some(format!("no repeat {through}")),
            (_, None) => None,
            // Of lines that an earlier run or another machine had seen nothing is known.
            (_, Some(missed)) if !missed.is_any && self.knows_others(told) => None,
            (_, Some(missed)) => Some(self.sampled(told, missed, through)),
        }
    }

    fn sampled(&self, told: &Told, missed: &Missed, through: &str) -> String {
        let of = if self.knows_others(told) { " of lines of this run" } else { "" };
        match (missed.is_any, missed.repeats) {
            (false, Some(_)) => format!("no repeat {through}"),
            (is_any, None) => format!(
                "{} repeats{of} {through} among the keys that were checked, 1 in {}",
                if is_any { "few" } else { "no" },
                thousands(missed.one_in),
                through = through.replace("was", "were")
            ),
            (_, Some(repeats)) => {
                let found = self.tally.repeats as f64;
                format!(
                    "about {} repeats{of} were missed, mostly ones last seen more than {} line{} ago",
                    words::about_one_in(repeats / (repeats + found)).replace(" in ", " of "),
                    words::roughly(missed.mostly_after),
                    if missed.mostly_after == 1 { "" } else { "s" }
                )
            }
        }
    }

    /// Whether the filter knows lines that this run did not see.
    fn knows_others(&self, told: &Told) -> bool {
        told.is_shared || self.total.items > self.tally.items
    }

    fn cost(&self) -> String {
        let rate = self.tally.bytes as f64 / 1e6 / self.seconds.max(1e-9);
        format!(" {:.2} s, {rate:.0} MB/s, {}.", self.seconds, short_size(self.memory_bits))
    }
}

/// What a summary says besides the numbers of [`Stats`].
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) mode: Mode,
    /// The window that is kept.
    pub(crate) window: Option<Window>,
    /// Whether others write to the filter, too.
    pub(crate) is_shared: bool,
    pub(crate) forgets: bool,
    /// What a filter that forgets has missed in this run, if that is known.
    pub(crate) missed: Option<Missed>,
}
