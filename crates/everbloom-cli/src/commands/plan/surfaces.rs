//! What was planned as lines to paste, for every way in which filters can be used.

use super::Plan;
use super::command::{exact_rate, exact_time, quoted};
use super::sentence::is_stream;
use crate::args::Refresh;
use everbloom::Recommendation;
use everbloom::internal::promise::{Window, size_typed};
use serde::Serialize;

/// A way in which filters can be used.
struct Surface {
    name: &'static str,
    title: &'static str,
    /// Whether it exists. What does not is not shown.
    exists: bool,
    /// The lines, if it can do what was planned.
    lines: fn(&Planned) -> Option<String>,
}

/// All of them. The Python package and the Redis module are not there yet: what they will take is written down here as it
/// is designed, and shown once `exists` is true.
const SURFACES: &[Surface] = &[
    Surface { name: "cli", title: "command line", exists: true, lines: |planned| Some(planned.command.clone()) },
    Surface { name: "rust", title: "Rust", exists: true, lines: rust },
    Surface { name: "python", title: "Python", exists: false, lines: python },
    Surface { name: "redis", title: "Redis", exists: false, lines: redis },
];

/// What was planned, in words that every surface has.
struct Planned {
    command: String,
    spec: String,
    memory: Option<String>,
    fpr: Option<String>,
    expect: Option<u64>,
    seed: Option<u64>,
    window: Option<Window>,
    keeps_age: bool,
    /// The largest importance.
    importance_max: Option<f64>,
    is_stream: bool,
}

/// Lines to paste.
#[derive(Debug, Serialize)]
pub(super) struct Lines {
    surface: &'static str,
    #[serde(skip)]
    title: &'static str,
    lines: String,
}

impl Lines {
    /// As they stand below a plan, never broken, so that they can be pasted.
    pub(super) fn text(&self) -> String {
        let lines: String = self.lines.lines().map(|line| format!("  {line}\n")).collect();
        format!("\n{}\n{lines}", self.title)
    }
}

/// The lines of every surface that exists and can do it.
pub(super) fn lines(plan: &Plan, answer: &Recommendation, importance_max: Option<f64>, command: &str) -> Vec<Lines> {
    let planned = Planned {
        command: command.to_string(),
        spec: answer.best.plan.spec.to_string(),
        memory: plan.memory.map(size_typed),
        fpr: plan.fpr.map(exact_rate),
        expect: super::command::expected(plan, answer),
        seed: plan.seed,
        window: plan.window.filter(|_| plan.filter.is_none()),
        keeps_age: plan.refresh == Refresh::No,
        importance_max,
        is_stream: is_stream(answer),
    };
    let shown = SURFACES.iter().filter(|surface| surface.exists);
    shown
        .filter_map(|surface| {
            Some(Lines { surface: surface.name, title: surface.title, lines: (surface.lines)(&planned)? })
        })
        .collect()
}

/// An importance in lines to paste, out of the largest one.
fn some_importance(max: f64) -> f64 {
    max.min(3.0)
}

fn rust(planned: &Planned) -> Option<String> {
    let mut goal = String::from("everbloom::Goal::new()");
    let mut option = |name: &str, value: Option<String>| {
        goal.push_str(&value.map_or_else(String::new, |value| format!(".{name}({value})")));
    };
    let text = |value: &Option<String>| value.as_ref().map(|value| format!("{value:?}"));
    let time = match planned.window {
        Some(Window::Time(time)) => Some(exact_time(time)),
        _ => None,
    };
    option("filter", time.is_none().then(|| format!("{:?}", planned.spec)));
    option("memory", text(&planned.memory));
    option("fpr", text(&planned.fpr));
    option("expected_items", planned.expect.map(|count| format!("{count}u64")));
    option("hashing", planned.seed.map(|seed| format!("everbloom::Hashing::seeded({seed})")));
    Some(match (time, planned.importance_max) {
        // A window of time in which repeats do not count is only on the command line.
        (Some(_), _) if planned.keeps_age => return None,
        (Some(time), _) => format!(
            "let mut seen = everbloom::TimeWindow::new({time:?}, &{goal})?;\n\
             let is_new = seen.insert(\"a line\", 1_700_000_000_000_000);"
        ),
        (None, Some(max)) => {
            let is_whole = max.fract() == 0.0 && (3.0..=f64::from(u32::MAX)).contains(&max);
            let importance = match is_whole {
                true => format!("everbloom::Importance::new(3, {max})?"),
                false => format!("everbloom::ImportanceScale::linear({max:?})?.of({:?})?", some_importance(max)),
            };
            format!(
                "let mut seen = {goal}.build()?;\n\
                 let is_new = seen.observe(\"a line\", {importance}).is_distinct();"
            )
        }
        (None, None) if planned.is_stream => {
            format!("let mut seen = {goal}.build()?;\nlet is_new = seen.insert(\"a line\");")
        }
        (None, None) => format!(
            "let mut keys = {goal}.build()?;\nkeys.insert(\"a key\");\nlet is_inside = keys.contains(\"a key\");"
        ),
    })
}

fn python(planned: &Planned) -> Option<String> {
    let mut words = match planned.window {
        Some(_) if planned.keeps_age => return None,
        Some(Window::Arrivals(arrivals)) => vec![format!("window={arrivals}")],
        Some(Window::Time(time)) => vec![format!("window={:?}", exact_time(time))],
        _ => vec![format!("{:?}", planned.spec)],
    };
    words.extend(planned.memory.as_ref().map(|size| format!("memory={size:?}")));
    words.extend(planned.fpr.as_ref().map(|rate| format!("fpr={rate:?}")));
    words.extend(planned.expect.map(|count| format!("expect={count}")));
    words.extend(planned.seed.map(|seed| format!("seed={seed}")));
    let importance =
        planned.importance_max.map_or_else(String::new, |max| format!(", importance={} / {max}", some_importance(max)));
    let at = if matches!(planned.window, Some(Window::Time(_))) { ", at=time.time()" } else { "" };
    let import = if at.is_empty() { "import everbloom" } else { "import everbloom, time" };
    Some(match planned.is_stream {
        true => format!(
            "{import}\nseen = everbloom.Filter({})\nis_new = seen.add(\"a line\"{importance}{at})",
            words.join(", ")
        ),
        false => format!(
            "{import}\nkeys = everbloom.Filter({})\nkeys.add(\"a key\")\nis_inside = \"a key\" in keys",
            words.join(", ")
        ),
    })
}

fn redis(planned: &Planned) -> Option<String> {
    // A window of time is advanced by whoever keeps the time.
    if matches!(planned.window, Some(Window::Time(_))) {
        return None;
    }
    let mut words = vec![format!("redis-cli EB.RESERVE seen {}", quoted(&planned.spec))];
    words.extend(planned.memory.as_ref().map(|size| format!("MEMORY {size}")));
    words.extend(planned.fpr.as_ref().map(|rate| format!("FPR {rate}")));
    words.extend(planned.expect.map(|count| format!("EXPECT {count}")));
    words.extend(planned.importance_max.map(|max| format!("IMPORTANCE {max}")));
    words.extend(planned.seed.map(|seed| format!("SEED {seed}")));
    let importance =
        planned.importance_max.map_or_else(String::new, |max| format!(" IMPORTANCE {}", some_importance(max)));
    Some(format!("{}\nredis-cli EB.ADD seen 'a line'{importance}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surfaces_to_come_are_written_as_they_are_designed() {
        let planned = Planned {
            command: String::new(),
            spec: "ranked:lanes=5".into(),
            memory: Some("64MiB".into()),
            fpr: Some("1%".into()),
            expect: Some(1000),
            seed: Some(7),
            window: None,
            keeps_age: false,
            importance_max: None,
            is_stream: true,
        };
        assert_eq!(
            python(&planned).as_deref(),
            Some(
                "import everbloom\nseen = everbloom.Filter(\"ranked:lanes=5\", memory=\"64MiB\", fpr=\"1%\", expect=1000, \
                 seed=7)\nis_new = seen.add(\"a line\")"
            )
        );
        assert_eq!(
            redis(&planned).as_deref(),
            Some(
                "redis-cli EB.RESERVE seen 'ranked:lanes=5' MEMORY 64MiB FPR 1% EXPECT 1000 SEED 7\nredis-cli EB.ADD seen 'a \
                 line'"
            )
        );
    }
}
