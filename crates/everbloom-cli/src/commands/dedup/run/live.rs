//! A page of the run, for this machine alone: what has come, how fast, what is promised and what the audit measured.

use super::judge::Judge;
use crate::failure::{Failure, Result};
use crate::report::audit::Audited;
use crate::report::{percent, short_size, thousands, words};
use crate::web::{HTML, Refusal, Site, asset, assets, json};
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use everbloom::Verdict;
use everbloom::kind::Standing;
use everbloom_forecast::Audits;
use everbloom_lab::charts::{self, Axis, Figure, Look, Panel, Point, Series};
use serde_json::{Value, json as object};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often things are looked at, lines or no lines.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// A stream that has brought nothing for so long pauses.
const PAUSE: Duration = Duration::from_secs(2);
/// The rate now is that of so much time.
const LATELY: Duration = Duration::from_secs(10);
/// Looks that are remembered: five minutes of a stream that does not pause.
const MOST_LOOKS: usize = 300;

/// The run's end of the page.
pub(crate) struct Live {
    shared: Arc<Mutex<Run>>,
    looked: Option<Instant>,
    /// How long until the next look.
    pause: Duration,
}

/// What is known of the run.
struct Run {
    started: Instant,
    now: Counts,
    /// When the last line came.
    last: Option<Instant>,
    /// Counts at earlier moments, a second or more apart.
    before: VecDeque<(Instant, Counts)>,
    seen: Option<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    arrivals: u64,
    repeats: u64,
}

/// What takes a look at the filter.
struct Seen {
    filter: String,
    memory_bits: u64,
    promised_fpr: f64,
    standing: Standing,
    broken_at: Option<u64>,
    audit: Option<Audited>,
}

fn lock(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A time as people say it, in two units at most.
fn lasted(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

impl Live {
    /// Takes a port and says where the page is. It goes when the run ends.
    pub(crate) fn start(port: u16) -> Result<Self> {
        let site = Site::bind(port)?;
        let run =
            Run { started: Instant::now(), now: Counts::default(), last: None, before: VecDeque::new(), seen: None };
        let shared = Arc::new(Mutex::new(run));
        words::say(format_args!("this run is shown at {}", site.address()));
        let pages = pages(Arc::clone(&shared));
        let serve = move || {
            if let Err(Failure::Message(problem)) = site.serve(pages, std::future::pending::<()>()) {
                words::say(format_args!("{problem}; the run goes on without its page"));
            }
        };
        std::thread::Builder::new()
            .name("page".into())
            .spawn(serve)
            .map_err(|error| Failure::io("a thread for the page", &error))?;
        Ok(Live { shared, looked: None, pause: INTERVAL })
    }
}

impl Judge {
    /// Shows a batch that was judged, and now and then how the filter is.
    pub(crate) fn show_live(&mut self, records: usize, verdicts: &[Verdict]) {
        let Judge { live: Some(live), memory, watch, .. } = self else { return };
        let is_due = live.looked.is_none_or(|looked| looked.elapsed() >= live.pause);
        let begun = Instant::now();
        let seen = is_due.then(|| Seen {
            filter: memory.spec().to_string(),
            memory_bits: memory.memory_bits(),
            promised_fpr: watch.promise().fpr_bound,
            standing: watch.standing(),
            broken_at: watch.broken_at(),
            audit: memory.own().and_then(|own| own.audit()).map(|audit| Audited::of(&audit.report())),
        });
        let mut run = lock(&live.shared);
        run.last = if records > 0 { Some(Instant::now()) } else { run.last };
        run.now.arrivals += records as u64;
        run.now.repeats += verdicts.iter().filter(|verdict| !verdict.is_distinct()).count() as u64;
        if let Some(seen) = seen {
            let (moment, counts) = (Instant::now(), run.now);
            run.seen = Some(seen);
            run.before.push_back((moment, counts));
            if run.before.len() > MOST_LOOKS {
                run.before.pop_front();
            }
            // A look at a large audit takes long: no more than a twentieth of the run goes to them.
            (live.looked, live.pause) = (Some(moment), INTERVAL.max((moment - begun) * 20));
        }
    }
}

impl Run {
    /// Lines a second over the last [`LATELY`].
    fn rate(&self) -> f64 {
        let now = Instant::now();
        let is_old = |(moment, _): &&(Instant, Counts)| now.duration_since(*moment) >= LATELY;
        let (since, counts) =
            self.before.iter().rev().find(is_old).copied().unwrap_or((self.started, Counts::default()));
        (self.now.arrivals - counts.arrivals) as f64 / now.duration_since(since).as_secs_f64().max(1e-3)
    }

    /// Whether lines come, in a sentence.
    fn state(&self) -> String {
        let since = self.last.unwrap_or(self.started).elapsed();
        let since_then = lasted(since);
        match self.last {
            None if since >= PAUSE => format!("No line has come yet, for {since_then}."),
            Some(_) if since >= PAUSE => format!("No lines come: the last one came {since_then} ago."),
            _ => "Running.".into(),
        }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let Counts { arrivals, repeats } = self.now;
        let share = percent(repeats as f64 / arrivals.max(1) as f64);
        let mut rows = vec![
            ("lines", thousands(arrivals)),
            ("repeats", format!("{} ({share})", thousands(repeats))),
            ("lines a second", format!("{} over the last {}", thousands(self.rate().round() as u64), lasted(LATELY))),
            ("running for", lasted(self.started.elapsed())),
        ];
        let Some(seen) = &self.seen else { return rows };
        let promise = match (seen.standing, seen.broken_at) {
            (Standing::Kept, _) => {
                format!("kept so far: at most {} of new lines dropped by mistake", words::at_most(seen.promised_fpr))
            }
            (Standing::Broken, Some(line)) => format!("broken at line {}", thousands(line)),
            (Standing::Broken, None) => "broken".into(),
            (Standing::None, _) => "nothing is promised of this filter".into(),
        };
        rows.extend([
            ("promise", promise),
            ("filter", seen.filter.replacen(':', ": ", 1).replace(',', ", ")),
            ("memory", short_size(seen.memory_bits)),
        ]);
        rows.extend(seen.audit.iter().flat_map(Audited::rows));
        rows
    }

    /// How it went, for the eye.
    fn figure(&self) -> Figure {
        let at = |moment: &Instant| moment.duration_since(self.started).as_secs_f64();
        let steps = || self.before.iter().zip(self.before.iter().skip(1));
        let rates = steps().map(|((from, before), (to, after))| {
            let seconds = to.duration_since(*from).as_secs_f64().max(1e-3);
            Point::new(at(to), (after.arrivals - before.arrivals) as f64 / seconds)
        });
        let shares = steps().filter(|((_, before), (_, after))| after.arrivals > before.arrivals).map(
            |((_, before), (to, after))| {
                let share = (after.repeats - before.repeats) as f64 / (after.arrivals - before.arrivals) as f64;
                Point::new(at(to), 100.0 * share)
            },
        );
        // One span of time in both, though no share is known of a pause.
        let seconds = || match (self.before.front(), self.before.back()) {
            (Some(first), Some(last)) if first.0 < last.0 => {
                Axis::linear("seconds since the start").from(at(&first.0), at(&last.0))
            }
            _ => Axis::linear("seconds since the start"),
        };
        let panel = |name: &str, points: Vec<Point>| {
            Panel::new("", seconds(), Axis::linear(name)).series(Series::new(name, Look::Line, points))
        };
        Figure::new("run", "", "")
            .panel(panel("lines a second", rates.collect()))
            .panel(panel("repeats, %", shares.collect()))
    }

    /// The run for Prometheus.
    fn metrics(&self) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, value: f64| {
            text.push_str(&format!(
                "# HELP everbloom_{name} {help}\n# TYPE everbloom_{name} {kind}\neverbloom_{name} {value}\n"
            ));
        };
        metric("arrivals_total", "counter", "Lines that were judged.", self.now.arrivals as f64);
        metric("repeats_total", "counter", "Lines that were called repeats.", self.now.repeats as f64);
        metric("arrivals_per_second", "gauge", "Lines a second over the last 10 s.", self.rate());
        let pause = self.last.unwrap_or(self.started).elapsed().as_secs_f64();
        metric("pause_seconds", "gauge", "How long no line has come.", pause);
        metric("run_seconds", "gauge", "How long the run takes already.", self.started.elapsed().as_secs_f64());
        let Some(seen) = &self.seen else { return text };
        let is = |standing: Standing| f64::from(u8::from(seen.standing == standing));
        metric("memory_bytes", "gauge", "Memory of the filter.", (seen.memory_bits / 8) as f64);
        if seen.standing != Standing::None {
            let help = "The highest rate of false positives that is promised.";
            metric("promised_fpr", "gauge", help, seen.promised_fpr);
            metric("promise_broken", "gauge", "1 once the promise is broken, 0 before.", is(Standing::Broken));
        }
        let audit = seen.audit.as_ref().and_then(|audit| serde_json::to_value(audit).ok());
        let Some(audit) = audit else { return text };
        let mut measured = |name: &str, help: &str, of: &Value| {
            let parts = [("", "rate"), ("_low", "low"), ("_high", "high")];
            for (end, part) in parts {
                let Some(value) = of[part].as_f64() else { continue };
                let what = match end {
                    "" => help.to_string(),
                    end => format!(
                        "{help} The {} end of its 95 % interval.",
                        if end == "_low" { "lower" } else { "upper" }
                    ),
                };
                metric(&format!("{name}{end}"), "gauge", &what, value);
            }
        };
        measured("audit_fpr", "New lines taken for repeats, measured.", &audit["measured_fpr"]);
        measured("audit_fnr", "Repeats taken for new, measured.", &audit["measured_fnr"]);
        measured(
            "audit_last_fpr",
            "New lines taken for repeats among the last lines, measured.",
            &audit["last"]["measured_fpr"],
        );
        measured(
            "audit_last_fnr",
            "Repeats taken for new among the last lines, measured.",
            &audit["last"]["measured_fnr"],
        );
        metric(
            "audit_followed_keys",
            "gauge",
            "Keys that the audit follows.",
            audit["followed_keys"].as_f64().unwrap_or(0.0),
        );
        text
    }
}

fn pages(run: Arc<Mutex<Run>>) -> Router {
    let css = concat!(include_str!("../../../web/page.css"), include_str!("live.css"));
    assets(css, include_str!("live.js"))
        .route("/", get(|| async { asset(HTML, include_str!("live.html")) }))
        .route("/api/run", get(run_now))
        .route("/metrics", get(metrics))
        .with_state(run)
}

async fn run_now(State(run): State<Arc<Mutex<Run>>>) -> Result<Response, Refusal> {
    // Drawn without the lock, for which the run would wait.
    let (state, rows, figure) = {
        let run = lock(&run);
        (run.state(), run.rows(), run.figure())
    };
    let svg = charts::svg(&figure).map_err(Failure::from)?;
    json(&object!({ "state": state, "rows": rows, "svg": svg }))
}

async fn metrics(State(run): State<Arc<Mutex<Run>>>) -> Response {
    let text = lock(&run).metrics();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
