//! Promises in words: what was promised, what came, and what to do about it.

use super::paper::Paper;
use super::{percent, short_size, thousands};
use crate::progress;
use everbloom::kind::{Watch, span_text as span};
use everbloom::{AnyFilter, Promise, Status};
use everbloom_forecast::Audits;
use std::io::Write as _;
use std::time::Duration;

/// Says something on stderr. Nobody may be listening there, which is no reason to stop.
pub(crate) fn say(text: impl std::fmt::Display) {
    let text = Paper::of_stderr().fit(&format!("everbloom: {text}"), 2);
    progress::aside(|| {
        let _ = writeln!(std::io::stderr(), "{text}");
    });
}

/// Says something that is not an error.
pub(crate) fn warn(text: &str) {
    say(format_args!("warning: {text}"));
}

/// Says something that is good to know.
pub(crate) fn note(text: &str) {
    say(format_args!("note: {text}"));
}

/// The line with which the keys no longer fit into the memory as they are.
pub(crate) fn begins_to_forget(line: u64, filter: &AnyFilter) -> String {
    // The filter's own: an audit beside it goes on.
    let audit = filter.audit().map_or(0, |audit| audit.memory_bits());
    let (line, memory) = (thousands(line), short_size(filter.memory_bits().saturating_sub(audit)));
    format!(
        "memory full at line {line} ({memory}): exact up to here; from now on at most {} of new lines are taken for repeats \
         by mistake, and old repeats can get through; a larger -m puts that off, --exact avoids it",
        percent(filter.promise().fpr_bound)
    )
}

/// A rate that is not exceeded: `1 in 100 (1 %)`.
pub(crate) fn at_most(rate: f64) -> String {
    format!("{} ({})", at_most_one_in(rate), percent(rate))
}

/// A rate as it is: `1 in 6 (16.2 %)`.
pub(crate) fn about(rate: f64) -> String {
    format!("{} ({})", about_one_in(rate), percent(rate))
}

/// A rate that is not exceeded: `1 in 100`.
pub(crate) fn at_most_one_in(rate: f64) -> String {
    share(rate, f64::floor, f64::ceil)
}

/// A rate as it is: `1 in 6`.
pub(crate) fn about_one_in(rate: f64) -> String {
    share(rate, f64::round, f64::round)
}

fn share(rate: f64, one_in: fn(f64) -> f64, of_hundred: fn(f64) -> f64) -> String {
    match rate {
        // 2^64 is more than anybody will count to.
        rate if rate < 5.5e-20 => "none".into(),
        rate if rate < 0.3 => format!("1 in {}", thousands(readable(1.0 / rate, one_in))),
        rate if rate <= 0.99 => format!("{} in 100", of_hundred(rate * 100.0).min(99.0)),
        rate => format!("{} in 1,000", thousands(of_hundred(rate * 1000.0) as u64)),
    }
}

/// What follows a rate: one in so many is, several are.
pub(crate) fn verb(rate: f64) -> &'static str {
    if rate < 0.3 { "is" } else { "are" }
}

/// A number with three digits and zeros.
fn readable(number: f64, round: fn(f64) -> f64) -> u64 {
    let unit = 10f64.powf((number.log10().floor() - 2.0).max(0.0));
    // A rate such as 0.001 is a little less or more than its decimal digits say.
    (round(number / unit + 1e-9) * unit) as u64
}

/// A number that is only roughly known, with two digits and zeros.
pub(crate) fn roughly(number: u64) -> String {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    thousands(number / unit * unit)
}

/// What a filter is filled with, and how it errs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Things {
    /// What is counted: `different lines`.
    pub(crate) many: &'static str,
    /// Of what the rate is: `new lines`.
    pub(crate) rated: &'static str,
    /// What a false positive is: `taken for a repeat by mistake`.
    pub(crate) mistaken: &'static str,
}

/// Lines of a stream.
pub(crate) const LINES: Things =
    Things { many: "different lines", rated: "new lines", mistaken: "taken for a repeat by mistake" };
/// Keys of a filter file.
pub(crate) const KEYS: Things = Things { many: "keys", rated: "other keys", mistaken: "taken for one that is inside" };

/// Where a promise is broken, or would be.
pub(crate) fn broken_at(line: u64, stopped: bool) -> String {
    let line = thousands(line);
    if stopped {
        format!("stopped before line {line}, which breaks the promise")
    } else {
        format!("the promise is broken at line {line}")
    }
}

/// One more than the filter was planned for.
pub(crate) fn one_too_many(watch: &Watch, things: Things) -> String {
    let Things { many, rated, mistaken } = things;
    format!(
        "the filter was planned for {} {many}, and this is one more; from here on more than {} of {rated} {} {mistaken}",
        thousands(watch.limit()),
        at_most(watch.promise().fpr_bound),
        verb(watch.promise().fpr_bound),
    )
}

/// Twice as many, or four times.
pub(crate) fn many_too_many(watch: &Watch, status: &Status, things: Things) -> String {
    let Things { many, rated, mistaken } = things;
    still_broken(watch, format!("{} {many} so far", thousands(watch.came())), status, rated, mistaken)
}

/// More in a window of time than the filter was planned for.
pub(crate) fn busy_window(watch: &Watch, window: Duration) -> String {
    let (window, planned) = (span(window), thousands(watch.limit()));
    format!(
        "the filter was planned for {planned} lines within {window}, and this is one more; from here on more than {} of new \
         lines may be taken for a repeat by mistake, though no repeat within {window} gets through",
        at_most(watch.promise().fpr_bound),
    )
}

/// No more than that, but all at once.
pub(crate) fn bursting_window(watch: &Watch, window: Duration, highest_fpr: f64) -> String {
    format!(
        "the filter was planned for {} lines within {} that come evenly, and these came in a burst; about {} of new lines was \
         taken for a repeat by mistake, instead of at most {}",
        thousands(watch.limit()),
        span(window),
        about(highest_fpr),
        at_most(watch.promise().fpr_bound),
    )
}

/// Twice as many, or four times.
pub(crate) fn busier_window(watch: &Watch, window: Duration, status: &Status) -> String {
    let came = format!("up to {} lines within {}", thousands(watch.came()), span(window));
    still_broken(watch, came, status, LINES.rated, LINES.mistaken)
}

/// More in a window than planned, or all at once, as the cells show.
pub(crate) fn crowded_window(promise: &Promise, window: Duration, planned: u64, status: &Status) -> String {
    let (window, planned) = (span(window), thousands(planned));
    format!(
        "the promise is broken: the filter was planned for {planned} lines within {window} from all machines, evenly, and \
         more came; about {} of new lines {} taken for a repeat by mistake now, instead of at most {}, though no repeat \
         within {window} gets through",
        about(status.estimated_fpr),
        verb(status.estimated_fpr),
        at_most(promise.fpr_bound),
    )
}

fn still_broken(watch: &Watch, came: String, status: &Status, rated: &str, mistaken: &str) -> String {
    format!(
        "the promise stays broken: {came}, and the filter was planned for {}; about {} of {rated} {} {mistaken} now, instead \
         of at most {}",
        thousands(watch.limit()),
        about(status.estimated_fpr),
        verb(status.estimated_fpr),
        at_most(watch.promise().fpr_bound),
    )
}

/// A number of keys to plan for: two digits and zeros, and no less.
pub(crate) fn enough(items: f64) -> u64 {
    let unit = 10f64.powf((items.max(1.0).log10().floor() - 1.0).max(0.0));
    ((items / unit).ceil() * unit) as u64
}

/// What the cells show.
pub(crate) fn seen_in_cells(promise: &Promise, status: &Status, things: Things) -> String {
    let Things { many, rated, mistaken } = things;
    if status.full_counters > 0 {
        return format!(
            "the promise is broken: {} counters are full, so what came most often counts as less than it did; give it wider counters",
            thousands(status.full_counters)
        );
    }
    let found = match (status.refused, status.estimated_items) {
        (1.., _) => format!("memory to grow was refused for {} {many}", thousands(status.refused)),
        (_, Some(items)) => format!("about {} {many} are inside", thousands(readable(items, f64::round))),
        (_, None) => "more came than there is room for".into(),
    };
    let planned =
        planned_for(promise).map_or(String::new(), |items| format!(", and the filter was planned for {items}"));
    format!(
        "the promise is broken: {found}{planned}; about {} of {rated} {} {mistaken} now, instead of at most {}",
        about(status.estimated_fpr),
        verb(status.estimated_fpr),
        at_most(promise.fpr_bound),
    )
}

fn planned_for(promise: &Promise) -> Option<String> {
    match promise.holds {
        everbloom::Holds::UntilItems(items) => Some(thousands(items)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_said_as_one_in_so_many() {
        assert_eq!((at_most(0.01), about(0.16)), ("1 in 100 (1 %)".into(), "1 in 6 (16 %)".into()));
        assert_eq!(at_most(0.00098), "1 in 1,020 (0.098 %)");
        assert_eq!(about(0.834), "83 in 100 (83.4 %)");
        assert_eq!(at_most(0.834), "84 in 100 (83.4 %)");
        assert_eq!((about(0.996), verb(0.996)), ("996 in 1,000 (99.6 %)".into(), "are"));
        assert_eq!((about(0.99996), about(1.0)), ("1,000 in 1,000 (99.996 %)".into(), "1,000 in 1,000 (100 %)".into()));
        assert_eq!((about(0.99), verb(0.16)), ("99 in 100 (99 %)".into(), "is"));
        assert_eq!(at_most(1e-9), "1 in 1,000,000,000 (1e-9)");
        assert_eq!(about_one_in(0.0), "none");
        assert_eq!(about(3e-61), "none (< 1e-15)");
        assert_eq!((enough(19_841.2), enough(7.5), enough(0.0)), (20_000, 8, 0));
        assert_eq!((roughly(12_345), roughly(7), roughly(0)), ("12,000".into(), "7".into(), "0".into()));
    }
}
