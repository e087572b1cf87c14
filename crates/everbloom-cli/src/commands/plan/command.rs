//! The command that uses what was planned, with every option that was given.

use super::Plan;
use super::importance::{Importances, Known};
use super::sentence::is_stream;
use super::stream::Repeats;
use crate::args::quantity::{self, delimiter_typed, exact_rate};
use crate::args::{DEFAULT_FPR, KeyArgs, OnError, Refresh, Scale};
use clap::ValueEnum;
use everbloom::Holds;
use everbloom::kind::size_typed;
use everbloom_forecast::Recommendation;

/// On a stream, if one was described or the filter is made for one; otherwise for a set of keys.
///
/// A description of importances does not say in which field of a record they are: the line has a word in that place.
pub(super) fn to_use(plan: &Plan, answer: &Recommendation, importances: Option<&Importances>) -> String {
    let spec = &answer.best.plan.spec;
    let on_stream = is_stream(answer);
    let mut words = vec!["everbloom".to_string()];
    // Both read stdin where no file is named.
    words.push(if on_stream { "dedup".into() } else { "build".into() });
    if let (true, Some(Repeats::Sample(path))) = (on_stream, &plan.stream) {
        let name = path.display().to_string();
        // A name like an option's is none with its folder before it.
        words.push(quoted(&if name.starts_with('-') { format!("./{name}") } else { name }));
    }
    match window_of(plan, answer) {
        Some(window) => words.push(window),
        None => words.push(format!("--filter {}", quoted(&spec.to_string()))),
    }
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name} {}", quoted(&value))));
    };
    option("memory", plan.memory.map(size_typed));
    option("fpr", promised(plan, answer).map(exact_rate));
    option("expect", expected(plan, answer).map(|count| count.to_string()));
    option("seed", plan.seed.map(|seed| seed.to_string()));
    words.extend(importances.filter(|_| on_stream).map(of_importances));
    words.extend(of_keys(&plan.keys));
    if !on_stream {
        words.push("-o keys.ebf".into());
    }
    words.join(" ")
}

/// The keys to expect: as given, or, where fewer were given than come, those for which the filter keeps what it promises.
pub(super) fn expected(plan: &Plan, answer: &Recommendation) -> Option<u64> {
    let enough = |items: &u64| !answer.stream.is_learned() || *items >= answer.stream.distinct();
    match (answer.best.plan.promise.holds, plan.window) {
        (Holds::UntilItems(items), None) => plan.expect.filter(enough).or(Some(items)),
        _ => plan.expect,
    }
}

/// The rate to promise: as given, or that of the plan where the spec alone does not settle it: the usual one, or, where that is
/// not kept and by the cheapest filter, its own, rounded up to three digits.
pub(super) fn promised(plan: &Plan, answer: &Recommendation) -> Option<f64> {
    let best = &answer.best;
    let (rate, is_by_cost) = (best.plan.promise.fpr_bound, best.cost.is_some());
    let is_filled = matches!(best.plan.promise.holds, Holds::UntilItems(_)) && plan.window.is_none();
    match plan.fpr {
        Some(given) => Some(given),
        None if is_by_cost || is_filled && rate > DEFAULT_FPR => rounded_up(rate),
        None => is_filled.then_some(DEFAULT_FPR),
    }
}

/// A rate as it is typed in percent with three digits: what is read is what is shown.
fn rounded_up(rate: f64) -> Option<f64> {
    let unit = 10f64.powf((100.0 * rate).log10().floor() - 2.0);
    let percent = format!("{:.2e}", (100.0 * rate / unit).ceil() * unit).parse::<f64>().ok()?;
    quantity::rate(&format!("{percent}%")).ok().filter(|promised| *promised >= rate)
}

/// The window, if `dedup --window` would plan this kind for it.
fn window_of(plan: &Plan, answer: &Recommendation) -> Option<String> {
    let window = plan.window.filter(|_| plan.filter.is_none())?;
    let planned = everbloom::planning::windowed(&window, plan.expect, plan.refresh == Refresh::Yes).ok()?;
    let refresh = if plan.refresh == Refresh::No { " --refresh no" } else { "" };
    let text = quantity::window_typed(window);
    (planned.kind() == answer.best.plan.spec.kind()).then(|| format!("--window {text}{refresh}"))
}

fn of_importances(importances: &Importances) -> String {
    let field = match &importances.known {
        Known::Spread(_) => "FIELD".into(),
        Known::Field(field) => quoted(field),
    };
    let scale = if importances.scale == Scale::Log { " --importance-scale log" } else { "" };
    format!("--importance {field} --importance-max {}{scale}", importances.max)
}

fn of_keys(keys: &KeyArgs) -> Vec<String> {
    let flags = [
        (keys.csv, "--csv"),
        (keys.header, "--header"),
        (keys.json, "--json"),
        (keys.ignore_case, "--ignore-case"),
        (keys.null, "--null"),
    ];
    let how = |how: OnError| how.to_possible_value().map(|value| format!("--on-error {}", value.get_name()));
    let mut words: Vec<String> =
        flags.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag.to_string()).collect();
    words.extend(keys.key.iter().map(|key| format!("--key {}", quoted(key))));
    words.extend(keys.delimiter.map(|byte| format!("--delimiter {}", quoted(&delimiter_typed(byte)))));
    words.extend(keys.on_error.and_then(how));
    words
}

/// A word as a shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./%".contains(letter);
    if word.chars().any(char::is_control) {
        return format!("$'{}'", word.chars().map(escaped).collect::<String>());
    }
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// A letter within `$'…'`.
fn escaped(letter: char) -> String {
    match letter {
        '\'' | '\\' => format!("\\{letter}"),
        letter if letter.is_ascii_control() => format!("\\x{:02x}", u32::from(letter)),
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_shell_reads() {
        assert_eq!(quoted("a\n'b"), r"$'a\x0a\'b'");
        assert_eq!((quoted("a b"), quoted("it's"), quoted("1%")), ("'a b'".into(), r"'it'\''s'".into(), "1%".into()));
    }
}
