//! What was planned as lines to paste, for every way in which filters can be used.

use super::Plan;
use super::command::quoted;
use super::importance::Importances;
use super::sentence::is_stream;
use crate::args::quantity::exact_rate;
use crate::args::{Refresh, Scale};
use everbloom::Window;
use everbloom::kind::{Abilities, Kinds, size_typed, span_text};
use everbloom::planning::AUTO;
use everbloom_all::KINDS;
use everbloom_forecast::Recommendation;
use serde::Serialize;

/// A way in which filters can be used.
struct Surface {
    name: &'static str,
    title: &'static str,
    /// The lines, if it can do what was planned.
    lines: fn(&Planned) -> Option<String>,
}

const SURFACES: &[Surface] = &[
    Surface { name: "cli", title: "command line", lines: |planned| Some(planned.command.clone()) },
    Surface { name: "rust", title: "Rust", lines: rust },
    Surface { name: "python", title: "Python", lines: python },
    Surface { name: "redis", title: "Redis", lines: redis },
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
    /// The largest importance, and how it is scaled.
    importance: Option<(f64, Scale)>,
    is_stream: bool,
    can: Abilities,
    is_own: bool,
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

/// The lines of every surface that can do it.
pub(super) fn lines(
    plan: &Plan,
    answer: &Recommendation,
    importances: Option<&Importances>,
    command: &str,
) -> Vec<Lines> {
    let Ok(kind) = KINDS.of(&answer.best.plan.spec) else { return Vec::new() };
    let planned = Planned {
        command: command.to_string(),
        spec: answer.best.plan.spec.to_string(),
        memory: plan.memory.map(size_typed),
        fpr: super::command::promised(plan, answer).map(exact_rate),
        expect: super::command::expected(plan, answer),
        seed: plan.seed,
        window: plan.window.filter(|_| plan.filter.is_none()),
        keeps_age: plan.refresh == Refresh::No,
        importance: importances.map(|importances| (importances.max, importances.scale)),
        is_stream: is_stream(answer),
        can: kind.can,
        is_own: Kinds::default().named(kind.name).is_some(),
    };
    SURFACES
        .iter()
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
    let time = planned.time();
    option("filter", time.is_none().then(|| format!("{:?}", planned.spec)));
    option("memory", text(&planned.memory));
    option("fpr", text(&planned.fpr));
    option("expected_items", planned.expect.map(|count| format!("{count}u64")));
    option("hashing", planned.seed.map(|seed| format!("everbloom::Hashing::seeded({seed})")));
    // What is not everbloom's own kind is in the set of all.
    let build = if planned.is_own { "build()" } else { "build_among(everbloom_all::KINDS)" };
    Some(match (time, planned.importance) {
        // A window of time in which repeats do not count is only on the command line.
        (Some(_), _) if planned.keeps_age => return None,
        (Some(time), _) => format!(
            "let mut seen = everbloom::TimeWindow::new({time:?}, &{goal})?;\n\
             let is_new = seen.insert(\"a line\", 1_700_000_000_000_000);"
        ),
        (None, Some((max, scale))) => {
            let is_whole = max.fract() == 0.0 && (3.0..=f64::from(u32::MAX)).contains(&max);
            let some = some_importance(max);
            let importance = match scale {
                Scale::Linear if is_whole => format!("everbloom::Importance::new(3, {max})?"),
                Scale::Linear => format!("everbloom::ImportanceScale::linear({max:?})?.of({some:?})?"),
                Scale::Log => format!("everbloom::ImportanceScale::logarithmic({max:?})?.of({some:?})?"),
            };
            format!(
                "let mut seen = {goal}.{build}?;\n\
                 let is_new = seen.observe(\"a line\", {importance}).is_distinct();"
            )
        }
        (None, None) if planned.is_stream => {
            format!("let mut seen = {goal}.{build}?;\nlet is_new = seen.insert(\"a line\");")
        }
        (None, None) => format!(
            "let mut keys = {goal}.{build}?;\nkeys.insert(\"a key\");\nlet is_inside = keys.contains(\"a key\");"
        ),
    })
}

impl Planned {
    /// The largest importance, where the kind weighs it: elsewhere the word would be refused.
    fn weighed_importance(&self) -> Option<(f64, Scale)> {
        self.importance.filter(|_| self.can.weigh_importance)
    }

    /// The seed, where the kind does not hash in a way of its own.
    fn own_seed(&self) -> Option<u64> {
        self.seed.filter(|_| self.can.own_hash.is_none())
    }

    /// The window, if it is one of time.
    fn time(&self) -> Option<String> {
        match self.window {
            Some(Window::Time(time)) => Some(span_text(time)),
            _ => None,
        }
    }
}

fn python(planned: &Planned) -> Option<String> {
    let time = planned.time();
    if time.is_some() && planned.keeps_age || planned.can.follow_scheme.is_some() {
        return None;
    }
    let mut words = vec![match &time {
        Some(time) => format!("window={time:?}"),
        None => format!("{:?}", planned.spec),
    }];
    words.extend(planned.memory.as_ref().map(|size| format!("memory={size:?}")));
    words.extend(planned.fpr.as_ref().map(|rate| format!("fpr={rate:?}")));
    words.extend(planned.expect.map(|count| format!("expect={count}")));
    words.extend(planned.own_seed().map(|seed| format!("seed={seed}")));
    let importance = planned.weighed_importance();
    // Python knows no other scale.
    if importance.is_some_and(|(_, scale)| scale == Scale::Log) {
        return None;
    }
    let importance = importance.map(|(max, _)| max);
    words.extend(importance.map(|max| format!("importance={max}")));
    let words = words.join(", ");
    let importance = importance.map_or_else(String::new, |max| format!(", importance={}", some_importance(max)));
    let (import, at) = match time {
        Some(_) => ("import time\nimport everbloom", ", at=time.time()"),
        None => ("import everbloom", ""),
    };
    Some(match planned.is_stream {
        true => format!("{import}\nseen = everbloom.Filter({words})\nis_new = seen.add(\"a line\"{importance}{at})"),
        false => {
            format!("{import}\nkeys = everbloom.Filter({words})\nkeys.add(\"a key\")\nis_inside = \"a key\" in keys")
        }
    })
}

fn redis(planned: &Planned) -> Option<String> {
    let time = planned.time();
    if time.is_some() && planned.keeps_age || planned.can.follow_scheme.is_some() {
        return None;
    }
    let spec = if time.is_some() { AUTO } else { &planned.spec };
    let name = if planned.is_stream { "seen" } else { "keys" };
    let mut words = vec![format!("redis-cli EB.RESERVE {name} {}", quoted(spec))];
    words.extend(planned.memory.as_ref().map(|size| format!("MEMORY {size}")));
    words.extend(planned.fpr.as_ref().map(|rate| format!("FPR {rate}")));
    words.extend(planned.expect.map(|count| format!("EXPECT {count}")));
    words.extend(time.map(|time| format!("WINDOW {time}")));
    let importance = planned.weighed_importance();
    words.extend(
        importance.map(|(max, scale)| format!("IMPORTANCE {max}{}", if scale == Scale::Log { " LOG" } else { "" })),
    );
    words.extend(planned.own_seed().map(|seed| format!("SEED {seed}")));
    let reserve = words.join(" ");
    let importance = importance.map_or_else(String::new, |(max, _)| format!(" IMPORTANCE {}", some_importance(max)));
    Some(match planned.is_stream {
        true => format!("{reserve}\nredis-cli EB.ADD seen 'a line'{importance}"),
        false => format!("{reserve}\nredis-cli EB.ADD keys 'a key'\nredis-cli EB.EXISTS keys 'a key'"),
    })
}
