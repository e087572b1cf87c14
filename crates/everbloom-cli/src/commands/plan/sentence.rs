//! A plan in one sentence, for whoever has to decide.

use super::{Plan, cost};
use crate::args::Refresh;
use crate::report::words::about_one_in;
use crate::report::{counted, short_size, thousands};
use everbloom::kind::{LEAST_RATE, span_text};
use everbloom::{Holds, Window};
use everbloom_all::KINDS;
use everbloom_forecast::Recommendation;

/// What one gets for the memory: which stream, which mistakes, which repeats.
pub(super) fn of(plan: &Plan, answer: &Recommendation) -> String {
    let best = &answer.best.plan;
    let is_stream = is_stream(answer);
    let wrong = match is_stream {
        true => mistakes(best.promise.fpr_bound, "new lines", "dropped by mistake"),
        false => mistakes(best.promise.fpr_bound, "other keys", "taken for one of them by mistake"),
    };
    let wrong = match best.promise.holds {
        Holds::Never => "how many new lines are dropped by mistake is not promised".to_string(),
        _ => wrong,
    };
    let memory = match best.memory_bits {
        bits if bits < 8 << 10 && bits.is_multiple_of(8) => format!("{} bytes", bits / 8),
        bits => short_size(bits),
    };
    let found = found(plan, answer, is_stream);
    match answer.best.cost {
        Some(cost) => format!("With {memory} {}: {wrong}; {found}.", cost::saved(cost, answer)),
        None => format!("With {memory} you can {}: {wrong}; {found}.", purpose(plan, answer, is_stream)),
    }
}

/// Whether it is for a stream, and not for a set of keys.
pub(super) fn is_stream(answer: &Recommendation) -> bool {
    let lasts = KINDS.of(&answer.best.plan.spec).is_ok_and(|kind| kind.can.run_forever || !answer.assumed);
    // Costs are those of lines that are dropped or let through.
    lasts || answer.best.cost.is_some()
}

fn purpose(plan: &Plan, answer: &Recommendation, is_stream: bool) -> String {
    if let (Some(Window::Time(time)), Some(lines)) = (plan.window, window_of(answer)) {
        let (lines, time) = (counted(lines, "line"), span_text(time));
        return format!("drop the repeats from a stream that never ends, with up to {lines} in {time}");
    }
    match (answer.best.plan.promise.holds, is_stream) {
        (Holds::UntilItems(items), true) => {
            format!("drop the repeats from a stream of up to {}", counted(items, "different line"))
        }
        (_, true) => "drop the repeats from a stream that never ends".into(),
        (Holds::UntilItems(items), false) => format!("remember {}", counted(items, "key")),
        (_, false) => "remember as many keys as come".into(),
    }
}

/// The lines of the filter's window, if it has one.
pub(super) fn window_of(answer: &Recommendation) -> Option<u64> {
    let spec = &answer.best.plan.spec;
    let takes = KINDS.of(spec).ok()?.can.window?;
    spec.get(takes.parameter)?.parse().ok()
}

/// Of so many, at most so many.
fn mistakes(rate: f64, things: &str, mistaken: &str) -> String {
    if rate <= LEAST_RATE {
        return format!("practically none of the {things} is {mistaken}");
    }
    let (wrong, of) = at_most_of(rate);
    let verb = if wrong == 1 { "is" } else { "are" };
    format!("of {} {things} at most {} {verb} {mistaken}", thousands(of), thousands(wrong))
}

/// A rate as so many of a power of ten, rounded up, and by no more than half.
fn at_most_of(rate: f64) -> (u64, u64) {
    let mut of = 100u64;
    while (rate * of as f64) < 0.7 && of < 10u64.pow(15) {
        of *= 10;
    }
    // A rate such as 0.07 is a little less or more than its decimal digits say.
    (((rate * of as f64 - 1e-9).ceil() as u64).max(1), of)
}

/// Which repeats are found.
fn found(plan: &Plan, answer: &Recommendation, is_stream: bool) -> String {
    let (best, forecast) = (&answer.best.plan, &answer.best.forecast);
    if best.promise.predicted_fnr == Some(0.0) {
        return if is_stream { "every repeat is found".into() } else { "none of them is ever missed".into() };
    }
    // Where a repeat does not renew a key's age, what counts is the line that was let through.
    let of_what = if plan.refresh == Refresh::No { " of the line that was kept" } else { "" };
    if let Some(Window::Time(time)) = plan.window {
        return format!("every repeat within {}{of_what} is found", span_text(time));
    }
    let missed = match forecast.predicted_fnr {
        rate if answer.assumed || rate <= 0.0 => None,
        rate => {
            let share = about_one_in(rate);
            let verb = if share.starts_with("1 in") { "gets" } else { "get" };
            Some(format!("about {share} repeats {verb} through"))
        }
    };
    match (window_of(answer), best.promise.exact_until, missed) {
        (Some(window), _, missed) => {
            let missed = missed.map_or_else(String::new, |missed| format!(", and in all {missed}"));
            format!("every repeat within {}{of_what} is found{missed}", counted(window, "line"))
        }
        (_, _, Some(missed)) => missed,
        (_, Some(until), None) if answer.assumed => format!(
            "every repeat among the first {} different lines is found, and afterwards those that come soon enough (--stream \
             says how many)",
            thousands(until)
        ),
        _ if answer.assumed => "repeats that come soon enough are found (--stream says how many)".into(),
        _ => "on this stream no repeat is expected to get through".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_said_of_round_numbers_and_never_too_low() {
        for (rate, wrong, of) in [
            (0.001, 1, 1000),
            (0.01, 1, 100),
            (0.00977, 1, 100),
            (0.000977, 1, 1000),
            (0.05, 5, 100),
            (0.0055, 6, 1000),
            (0.3, 30, 100),
            (1e-9, 1, 1_000_000_000),
        ] {
            assert_eq!(at_most_of(rate), (wrong, of), "{rate}");
            assert!(wrong as f64 / of as f64 >= rate * (1.0 - 1e-6), "{rate}");
        }
    }
}
